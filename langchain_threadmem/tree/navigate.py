"""Verbs by message: its siblings, its versions, its fork point, its thread, and the switch to its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import branches, nodes, placements, trees
from langchain_threadmem.tree.conversation import Conversation, node_in, tree_of
from langchain_threadmem.tree.node import ConversationNode, Placement, nodes_of
from langchain_threadmem.tree.nodes import NodeRow, Outline

MessageRef = str | int
"""A message of a conversation: the `id` of the message, or the `id` of its node."""


def message_in(conn: Conn, tree: int, message: MessageRef) -> NodeRow:
    """The node of a message: its live node, else its newest node.

    Raises:
        NodeNotFoundError: The conversation has no such message.
    """
    if not isinstance(message, str):
        return node_in(conn, tree, message)
    row = nodes.by_message(conn, tree, str.__str__(message))
    if row is None:
        raise NodeNotFoundError(
            f"there is no message with the id {message!r} in this conversation; pass the id of one of its "
            "messages, or the id of a node"
        )
    return row


def _read(
    conversation: Conversation, message: MessageRef, rows: Callable[[Conn, int, NodeRow], Iterable[NodeRow]]
) -> Flow[list[ConversationNode]]:
    tree = yield from tree_of(conversation)
    stored = yield from Sql(lambda conn: list(rows(conn, tree, message_in(conn, tree, message))))
    return nodes_of(stored, conversation.runtime.parts.read)


def message(conversation: Conversation, ref: MessageRef) -> Flow[ConversationNode]:
    """The node of a message."""
    return (yield from _read(conversation, ref, lambda conn, tree, row: [row]))[0]


def roots(conversation: Conversation) -> Flow[list[ConversationNode]]:
    """The messages without a parent that are live or have a live message below them."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> tuple[list[NodeRow], dict[int, Placement]]:
        keys = [root.key for root in branches.roots(conn, tree) if _is_living(conn, tree, root)]
        return nodes.by_keys(conn, keys), placements.by_keys(conn, keys)

    rows, stored = yield from Sql(read)
    return nodes_of(rows, conversation.runtime.parts.read, stored)


def _is_living(conn: Conn, tree: int, row: Outline) -> bool:
    """Whether a node is live or has a live node below it."""
    if row.state == State.LIVE:
        return True
    return branches.newest_below(conn, tree, row._replace(state=State.LIVE)) != row.key


def siblings(conversation: Conversation, message: MessageRef) -> Flow[list[ConversationNode]]:
    """The messages with the role and the parent of a message, including the message."""
    return (yield from _beside(conversation, message, branches.siblings))


def versions(conversation: Conversation, message: MessageRef) -> Flow[list[ConversationNode]]:
    """The messages that replaced a message or that it replaced, including the message."""
    return (yield from _beside(conversation, message, branches.versions))


def _beside(
    conversation: Conversation, message: MessageRef, choose: Callable[[Conn, int, NodeRow], list[Outline]]
) -> Flow[list[ConversationNode]]:
    def rows(conn: Conn, tree: int, row: NodeRow) -> list[NodeRow]:
        return nodes.by_keys(conn, [outline.key for outline in choose(conn, tree, row)])

    return (yield from _read(conversation, message, rows))


def fork_point(conversation: Conversation, message: MessageRef) -> Flow[ConversationNode | None]:
    """The nearest ancestor of a message with more than one child."""

    def above(conn: Conn, tree: int, row: NodeRow) -> list[NodeRow]:
        fork = branches.fork_above(conn, tree, row)
        return [] if fork is None else [fork]

    return next(iter((yield from _read(conversation, message, above))), None)


def thread_of(conversation: Conversation, message: MessageRef) -> Flow[list[ConversationNode]]:
    """The messages from the root through a message to the newest message below it."""
    return (
        yield from _read(
            conversation,
            message,
            lambda conn, tree, row: nodes.thread(conn, branches.newest_below(conn, tree, row)),
        )
    )


def switch(conversation: Conversation, message: MessageRef) -> Flow[ConversationNode]:
    """Make the thread of a message the active thread; returns the new tip."""
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> NodeRow:
        trees.lock(conn, tree)
        end = branches.newest_below(conn, tree, message_in(conn, tree, message))
        trees.move_tip(conn, tree, end)
        [row] = nodes.by_keys(conn, [end])
        return row

    return nodes_of([(yield from Sql(write, write=True))], conversation.runtime.parts.read)[0]
