"""Verbs that read: the tip, a thread, the messages through a window, the history."""

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
"""How many of the newest messages are read first for a window."""
_MORE = 8
"""How many times as many are read next, if the window shows more."""


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
    """`messages`, with the tip they end in.

    Through a window of newest messages no more of a long thread is read than about what it shows.
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
    """The active thread, or the last `most` messages of it, with the newest system message in front.

    Returns:
        Ids, bodies and roles; the number of the tip; whether this is the whole thread.
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
    """A conversation at one moment.

    Attributes:
        history: All nodes, as `everything` gives them.
        tip: The node in which the active thread ends; `None` if nothing was said.
    """

    history: list[ConversationNode]
    tip: ConversationNode | None


def whole(conversation: Conversation) -> Flow[Whole]:
    """The conversation as it is at one moment."""
    tree = yield from tree_of(conversation)
    rows, placements, key = yield from Sql(
        lambda conn: (
            nodes.since(conn, tree),
            stored_placements.since(conn, tree),
            trees.head(conn, tree).tip,
        )
    )
    found = nodes_of(rows, conversation.runtime.parts.read)
    if placements:
        found = [
            replace(node, placement=placements[node.id]) if node.id in placements else node for node in found
        ]
    return Whole(found, next((node for row, node in zip(rows, found, strict=True) if row.key == key), None))


def everything(conversation: Conversation) -> Flow[list[ConversationNode]]:
    """All nodes of the conversation, whatever their state, in the order they were written, each with why it
    is where it is.
    """
    return (yield from whole(conversation)).history


def thread(conversation: Conversation, node_id: int) -> Flow[list[ConversationNode]]:
    """The nodes from the root to a node, oldest first."""
    tree = yield from tree_of(conversation)
    rows = yield from Sql(lambda conn: nodes.thread(conn, node_in(conn, tree, node_id).key))
    return nodes_of(rows, conversation.runtime.parts.read)


def tip(conversation: Conversation) -> Flow[ConversationNode | None]:
    """The node in which the active thread ends; `None` in an empty conversation."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[NodeRow]:
        key = trees.head(conn, tree).tip
        row = None if key is None else nodes.by_key(conn, key)
        return [row] if row else []

    found = nodes_of((yield from Sql(read)), conversation.runtime.parts.read)
    return found[0] if found else None
