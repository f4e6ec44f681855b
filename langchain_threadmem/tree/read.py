"""Verbs that read the tip, a thread, the messages through a window and the history."""

from __future__ import annotations

from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.messages.codec import StoredMessage, decode_stored
from langchain_threadmem.messages.prompt import open_turn, shown
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.messages.windows import BoundWindow, Window
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import Conversation, node_in, tree_of
from langchain_threadmem.tree.node import ConversationNode, DecodedMessages, nodes_of
from langchain_threadmem.tree.trees import TreeEpoch

_TAIL = 64
"""The number of newest messages that are read first for a window."""
_MORE = 8
"""The factor by which that number grows while the window shows more messages."""


class ThreadSnapshot(NamedTuple):
    """The active thread at one time.

    Attributes:
        messages: The messages for a model.
        tip: Number of the node at the end of the thread; `None` for an empty conversation.
        read_in: The epoch in which the thread was read.
    """

    messages: list[BaseMessage]
    tip: int | None
    read_in: TreeEpoch


def messages(conversation: Conversation) -> Flow[list[BaseMessage]]:
    """The messages of the active thread for a model: the newest system message, then those in the window."""
    return (yield from active_thread(conversation)).messages


def active_thread(conversation: Conversation) -> Flow[ThreadSnapshot]:
    """The result of `messages` with the tip.

    For a window that shows the newest messages, the cost is linear in the number of messages that it shows.
    """
    window, runtime = conversation.window, conversation.runtime
    bound = window if isinstance(window, BoundWindow) else None
    tail = bound if bound and bound.reads_from_end else None
    most = _TAIL
    while True:
        rows, tip, is_complete, epoch = yield from _active(conversation, None if tail is None else most)
        thread = decode_stored(rows, runtime.get(DecodedMessages).bodies(), runtime.parts.read)
        if bound is not None and tail is None:
            return ThreadSnapshot(bound(thread), tip, epoch)  # Exactly what its options ask for.
        # The window counts the messages that are shown.
        thread = whole_exchanges(thread)
        turn = open_turn(thread)
        if tail is None or is_complete:
            return ThreadSnapshot(thread if window is None else _through(window, thread, turn), tip, epoch)
        if (turn is None or thread[turn].type == "human") and (newest := tail.from_end(thread)) is not None:
            view = newest if turn is None else _through(lambda messages: newest, thread, turn)
            return ThreadSnapshot(view, tip, epoch)
        most *= _MORE


def _through(window: Window, thread: list[BaseMessage], turn: int | None) -> list[BaseMessage]:
    """A thread through a window. The turn that is being answered, which begins at `turn`, is shown whole."""
    if turn is None:
        return whole_exchanges(list(window(thread)))
    return shown(thread[:turn], thread[turn:], window)


def _active(
    conversation: Conversation, most: int | None
) -> Flow[tuple[list[StoredMessage], int | None, bool, TreeEpoch]]:
    """The active thread, or its last `most` messages, after the newest system message.

    Returns:
        Ids, bodies and roles of messages; the number of the tip; whether they are all messages of the thread;
        the epoch.
    """
    tree = conversation.tree or (yield from tree_of(conversation))

    def read(conn: Conn) -> tuple[list[StoredMessage], int | None, bool, TreeEpoch]:
        head = trees.head(conn, tree)
        epoch = tree, head.epoch
        if head.tip is None:
            return [], None, True, epoch
        rows = nodes.thread_messages(conn, head.tip, most)
        shown: list[StoredMessage] = [row for row in rows if row[2] != "system"]
        if head.system is not None and (system := nodes.by_key(conn, head.system)):
            shown.insert(0, (system.message, system.body, system.role))
        return shown, rows[-1][3], most is None or len(rows) < most, epoch

    return (yield from Sql(read))


class History(NamedTuple):
    """All nodes of a conversation at one time.

    Attributes:
        history: All nodes, in the order of writing.
        tip: The node at the end of the active thread; `None` for an empty conversation.
        read_in: The epoch in which the nodes were read.
    """

    history: list[ConversationNode]
    tip: ConversationNode | None
    read_in: TreeEpoch


def full_history(conversation: Conversation) -> Flow[History]:
    """The nodes of a conversation with their placements, and the tip."""
    tree = yield from tree_of(conversation)
    rows, placements, head = yield from Sql(
        lambda conn: (nodes.since(conn, tree), stored_placements.since(conn, tree), trees.head(conn, tree))
    )
    history = nodes_of(rows, conversation.runtime.parts.read, placements)
    tip = next((node for row, node in zip(rows, history, strict=True) if row.key == head.tip), None)
    return History(history, tip, (tree, head.epoch))


def history(conversation: Conversation) -> Flow[list[ConversationNode]]:
    """The nodes of a conversation with their placements, in the order of writing."""
    return (yield from full_history(conversation)).history


def thread(conversation: Conversation, node_id: int) -> Flow[list[ConversationNode]]:
    """The nodes from the root to a node, oldest first."""
    tree = yield from tree_of(conversation)
    rows = yield from Sql(lambda conn: nodes.thread(conn, node_in(conn, tree, node_id).key))
    return nodes_of(rows, conversation.runtime.parts.read)


def tip(conversation: Conversation) -> Flow[ConversationNode | None]:
    """The node at the end of the active thread; `None` for an empty conversation."""
    tree = yield from tree_of(conversation)

    row = yield from Sql(lambda conn: nodes.tip(conn, tree))
    return None if row is None else nodes_of([row], conversation.runtime.parts.read)[0]
