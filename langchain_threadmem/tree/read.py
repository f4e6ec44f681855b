"""Verbs that read the tip, a thread, the messages through a window and the history."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.messages.codec import decode_stored
from langchain_threadmem.messages.windows import BoundWindow
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import Conversation, node_in, tree_of
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import DecodedMessages, nodes_of

_TAIL = 64
"""The number of newest messages that are read first for a window."""
_MORE = 8
"""The factor by which this number grows while the window shows more messages."""


class Seen(NamedTuple):
    """The active thread as read in one transaction.

    Attributes:
        messages: The messages for a model.
        tip: Number of the node at the end of the thread; `None` for an empty conversation.
    """

    messages: list[BaseMessage]
    tip: int | None


def messages(conversation: Conversation) -> Flow[list[BaseMessage]]:
    """The messages of the active thread for a model: the newest system message, then those in the window."""
    return (yield from seen(conversation)).messages


def seen(conversation: Conversation) -> Flow[Seen]:
    """The messages as in `messages`, with the tip.

    If the window shows the newest messages, about as many messages are read as it shows.
    """
    window, runtime = conversation.window, conversation.runtime
    tail = window if isinstance(window, BoundWindow) and window.reads_from_end else None
    most = _TAIL
    while True:
        rows, tip, is_whole = yield from _active(conversation, None if tail is None else most)
        thread = decode_stored(rows, runtime.get(DecodedMessages).bodies(), runtime.parts.read)
        if tail is None or is_whole:
            return Seen(thread if window is None else list(window(thread)), tip)
        shown = tail.from_end(thread)
        if shown is not None:
            return Seen(shown, tip)
        most *= _MORE


def _active(
    conversation: Conversation, most: int | None
) -> Flow[tuple[list[tuple[str, str, str]], int | None, bool]]:
    """The active thread, or its last `most` messages, after the newest system message.

    Returns:
        Ids, bodies and roles; the number of the tip; whether these are all messages of the thread.
    """
    tree = conversation.tree or (yield from tree_of(conversation))

    def read(conn: Conn) -> tuple[list[tuple[str, str, str]], int | None, bool]:
        head = trees.head(conn, tree)
        if head.tip is None:
            return [], None, True
        rows = nodes.thread_messages(conn, head.tip, most)
        shown = [row[:3] for row in rows if row[2] != "system"]
        if head.system is not None and (system := nodes.by_key(conn, head.system)):
            shown.insert(0, (system.message, system.body, system.role))
        return shown, rows[-1][3], most is None or len(rows) < most

    return (yield from Sql(read))


class Whole(NamedTuple):
    """A conversation as read in one transaction.

    Attributes:
        history: All nodes, in the order of writing.
        tip: The node at the end of the active thread; `None` for an empty conversation.
    """

    history: list[ConversationNode]
    tip: ConversationNode | None


def whole(conversation: Conversation) -> Flow[Whole]:
    """All nodes of the conversation with their placements, and the tip."""
    tree = yield from tree_of(conversation)
    rows, placements, key = yield from Sql(
        lambda conn: (
            nodes.since(conn, tree),
            stored_placements.since(conn, tree),
            trees.head(conn, tree).tip,
        )
    )
    history = nodes_of(rows, conversation.runtime.parts.read)
    if placements:
        history = [
            replace(node, placement=placements[node.id]) if node.id in placements else node
            for node in history
        ]
    return Whole(
        history, next((node for row, node in zip(rows, history, strict=True) if row.key == key), None)
    )


def everything(conversation: Conversation) -> Flow[list[ConversationNode]]:
    """All nodes of the conversation with their placements, in the order of writing."""
    return (yield from whole(conversation)).history


def thread(conversation: Conversation, node_id: int) -> Flow[list[ConversationNode]]:
    """The nodes from the root to a node, oldest first."""
    tree = yield from tree_of(conversation)
    rows = yield from Sql(lambda conn: nodes.thread(conn, node_in(conn, tree, node_id).key))
    return nodes_of(rows, conversation.runtime.parts.read)


def tip(conversation: Conversation) -> Flow[ConversationNode | None]:
    """The node at the end of the active thread; `None` for an empty conversation."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[NodeRow]:
        key = trees.head(conn, tree).tip
        row = None if key is None else nodes.by_key(conn, key)
        return [row] if row else []

    nodes_read = nodes_of((yield from Sql(read)), conversation.runtime.parts.read)
    return nodes_read[0] if nodes_read else None
