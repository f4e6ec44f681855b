"""Reading: the active thread, other threads, the whole tree."""

from __future__ import annotations

from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.bodies import decode
from langchain_threadmem.core.nodes import ConversationNode
from langchain_threadmem.flows.conversation import Conversation, node_in, tree_of
from langchain_threadmem.flows.rows import nodes_of
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import nodes, trees
from langchain_threadmem.storage.queries.nodes import NodeRow
from langchain_threadmem.storage.statements import Conn


class Seen(NamedTuple):
    """The active thread at one moment.

    Attributes:
        messages: As a model is shown them.
        tip: Number of the node that the thread ended in; `None` if nothing was said.
    """

    messages: list[BaseMessage]
    tip: int | None


def messages(conversation: Conversation) -> Flow[list[BaseMessage]]:
    """The active thread as a model is shown it: the newest system message first, then the window's view."""
    return (yield from seen(conversation)).messages


def seen(conversation: Conversation) -> Flow[Seen]:
    """`messages`, with the tip they end in."""
    tree = conversation.tree or (yield from tree_of(conversation))

    def read(conn: Conn) -> tuple[list[tuple[str, str]], int | None]:
        head = trees.head(conn, tree)
        if head.tip is None:
            return [], None
        rows = nodes.thread_messages(conn, head.tip)
        shown = [(message, body) for message, body, role, _ in rows if role != "system"]
        if head.system is not None and (system := nodes.by_key(conn, head.system)):
            shown.insert(0, (system.message, system.body))
        return shown, rows[-1][3]

    rows, tip = yield from Sql(read)
    thread = decode(rows)
    return Seen(thread if conversation.window is None else list(conversation.window(thread)), tip)


def everything(conversation: Conversation) -> Flow[list[ConversationNode]]:
    """All nodes of the conversation, whatever their state, in the order they were written."""
    tree = yield from tree_of(conversation)
    return nodes_of((yield from Sql(lambda conn: nodes.since(conn, tree))))


def thread(conversation: Conversation, node_id: int) -> Flow[list[ConversationNode]]:
    """The nodes from the root to a node, oldest first."""
    tree = yield from tree_of(conversation)
    rows = yield from Sql(lambda conn: nodes.thread(conn, node_in(conn, tree, node_id).key))
    return nodes_of(rows)


def tip(conversation: Conversation) -> Flow[ConversationNode | None]:
    """The node in which the active thread ends; `None` in an empty conversation."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[NodeRow]:
        key = trees.head(conn, tree).tip
        row = None if key is None else nodes.by_key(conn, key)
        return [row] if row else []

    found = nodes_of((yield from Sql(read)))
    return found[0] if found else None
