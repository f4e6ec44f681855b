"""Storing the new messages of LangGraph's lists, and finding messages that are stored already.

A graph passes its whole list of messages at every step. Stored messages are found by their ids, and every
function is idempotent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from langchain_threadmem.checkpoints import lists
from langchain_threadmem.checkpoints.values import encode_messages
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.messages.codec import encode, text_of
from langchain_threadmem.messages.ids import identify
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.roles import ANSWERING, is_answer
from langchain_threadmem.messages.tool_pairs import exchanges, follows_call
from langchain_threadmem.messages.typed_json import Writer
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.threads.append import with_own_ids
from langchain_threadmem.threads.run_selector import ThreadedConversation, parent_if_emptied
from langchain_threadmem.threads.tree_view import turns
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import grafts, nodes, run_lineage, superseding, trees
from langchain_threadmem.tree.append import TIP, Draft, Parent
from langchain_threadmem.tree.conversation import created_tree_of, tree_of
from langchain_threadmem.tree.nodes import NodeRow, Outline
from langchain_threadmem.tree.rows import drafts_of
from langchain_threadmem.tree.run_lineage import Lineage, within


@telemetry.observed("create_memory", telemetry.of_conversation, lambda count: {telemetry.COUNT: count})
def store(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], routed: str | None = None
) -> Flow[int]:
    """Store the end of a list: the messages after the last stored message.

    A message with a stored id and other content is a new version of the stored message; an answer beside
    older answers of the same turn supersedes them. Summaries, recalled text and system messages are not
    stored: no person, model or tool of the conversation wrote them.

    Args:
        conversation: The conversation.
        given: The list.
        routed: Id of the human message that was routed last, in the graph's state. If it is in the list, and
            no message of the list is stored, the conversation was emptied meanwhile, and the list does not
            continue the messages that were stored since.

    Returns:
        The number of messages that were written.
    """
    spoken = yield from with_own_ids(conversation, spoken_of(given))
    tree, write_value = (yield from tree_of(conversation)), conversation.runtime.parts.keep
    written = yield from _answer_calls(conversation, spoken)
    first = yield from Sql(lambda conn: _first_new(conn, tree, spoken, write_value))
    if first == len(spoken):
        return written
    tree = yield from created_tree_of(conversation)
    tail = spoken[max(first - 1, 0) :]  # From the last stored message.
    drafts = drafts_of(tail, other=write_value)
    was_stored = routed in {message.id for message in spoken}
    otherwise = parent_if_emptied(conversation) if was_stored else TIP

    def write(conn: Conn) -> int:
        trees.lock(conn, tree)
        start = _first_new(conn, tree, tail, write_value)  # Another writer may have stored messages since.
        if start < len(tail):
            earlier = {message.id for message in spoken[:first]}
            write_new(conn, tree, drafts, start, earlier, otherwise)
        return len(tail) - start

    return written + (yield from Sql(write, write=True))


def store_turn(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage, routed: str | None
) -> Flow[None]:
    """Store the end of a list at the end of a run; `routed` is that of `store`."""
    yield from store(conversation, given, routed)
    if lineage.replaced:
        yield from store_branch(conversation, given, lineage)


def store_branch(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage
) -> Flow[None]:
    """Store that a new answer to an earlier question begins a branch, in a run from `ThreadMemSaver.fork`.

    The list is stored already. The successors of the run do not see the replaced message and the turns below
    it.
    """
    spoken = [message for message in given if message.type in ("human", *ANSWERING)]
    if not spoken or spoken[-1].type == "human":
        return
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> None:
        trees.lock(conn, tree)
        answer = nodes.first_version(conn, tree, str(spoken[-1].id))
        newest, _ = next(run_lineage.newest_first(conn, tree, lineage.thread), (0, None))
        since = newest_turn(conn, tree, spoken, lineage.thread)
        if answer is not None and since is not None and since != newest < answer:
            is_unseen = is_unseen_after(conn, tree, lineage)
            run_lineage.begin(conn, tree, lineage.thread, answer, since, is_unseen)

    yield from Sql(write, write=True)


def _answer_calls(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[int]:
    """Store results that were inserted after the tool calls of an abandoned turn, and return their number.

    The result of a tool comes right before a human message only in an abandoned turn.
    """
    written = 0
    for end in range(2, len(messages)):
        if not (isinstance(messages[end - 1], ToolMessage) and isinstance(messages[end], HumanMessage)):
            continue
        if follows_call(messages[:end]):
            call = exchanges(messages[:end])[-1]
            written += yield from _answer_call(conversation, messages[call : end + 1])
    return written


def _answer_call(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[int]:
    """Store the results between a call and the next message, and graft that message below the last result.

    Both messages must be stored with this content; other versions are not changed.
    """
    tree = yield from tree_of(conversation)
    exchange = encode_messages(messages, conversation.runtime.parts.keep)

    def stored(conn: Conn) -> list[NodeRow | None]:
        rows = [nodes.by_message(conn, tree, item.id) for item in exchange or ()]
        unchanged = [
            row is None or row.body == item.body for row, item in zip(rows, exchange or (), strict=True)
        ]
        return rows if all(unchanged) and rows and rows[0] and rows[-1] else []

    def is_apart(conn: Conn, rows: Sequence[NodeRow | None]) -> bool:
        """Whether the message after the results is stored beside the last result, and not above it."""
        live = [row for row in rows if row is not None and row.state == State.LIVE]
        if not rows or len(live) < len(rows) or live[-1].parent not in {row.seq for row in live[:-2]}:
            return False
        return not nodes.contain(nodes.spans(conn, live[-2].key), live[-1].key)

    def write(conn: Conn) -> int:
        trees.lock(conn, tree)
        count, tip = stored(conn).count(None), trees.head(conn, tree).tip
        if count:
            lists.place(conn, tree, exchange or (), None, time.time())
        if is_apart(conn, rows := stored(conn)):
            *_, last, following = rows
            assert last is not None
            assert following is not None
            grafts.move(conn, tree, following.key, last.key, last.seq)
            trees.changed(conn, tree)
        trees.move_tip(conn, tree, tip)
        return count

    def is_new(conn: Conn) -> bool:
        return None in (rows := stored(conn)) or is_apart(conn, rows)

    return (yield from Sql(write, write=True)) if (yield from Sql(is_new)) else 0


def repeats(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[bool]:
    """Whether messages repeat stored messages with other ids, as from a client that sends its whole history.

    Human messages and answers without a stored id are compared by their texts, in the order of time. Messages
    without an answer are no history: a person may repeat a message.
    """
    tree = yield from tree_of(conversation)
    said = [message for message in messages if isinstance(message, HumanMessage) or is_answer(message)]
    if not any(map(is_answer, said)):
        return False
    if (yield from Sql(lambda conn: nodes.first_version(conn, tree, str(said[-1].id)))) is not None:
        return False
    stored = (yield from turns(conversation.runtime, tree)).in_order()
    origins = yield from Sql(
        lambda conn: [nodes.first_version(conn, tree, str(message.id)) for message in said]
    )
    if origins[-1] is not None:
        return False  # A saver has stored the list meanwhile.
    earlier = reversed(stored)

    def is_stored(message: BaseMessage, origin: int | None) -> bool:
        wanted = isinstance(message, HumanMessage), text_of(message)
        return any(
            wanted == (not speech.is_answer, speech.text) if origin is None else origin == first
            for first, speech in earlier
        )

    return all(map(is_stored, reversed(said), reversed(origins)))


def spoken_of(given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of a list without system messages and without messages that were made for a prompt.

    Messages without an id get one. `RemoveMessage` is no message: LangGraph's `add_messages` keeps those that
    follow `REMOVE_ALL_MESSAGES` in an update.
    """
    identify(given)
    return [
        message
        for message in given
        if not (isinstance(message, (SystemMessage, RemoveMessage)) or is_made_up(message))
    ]


def newest_turn(conn: Conn, tree: int, given: Sequence[BaseMessage], thread: str) -> int | None:
    """Number of the first node of the newest turn in a list.

    A graph around a chat appends the messages of earlier turns to its list when the chat returns to them, so
    the last human message of a list may belong to an earlier turn.
    """
    ids = {message.id for message in given}
    turns = run_lineage.newest_first(conn, tree, thread) if ids else ()
    return next((seq for seq, message in turns if message in ids), None)


def is_unseen_after(conn: Conn, tree: int, lineage: Lineage) -> Callable[[int], bool] | None:
    """Whether the successors of a run do not see a turn, by the number of its first node.

    They do not see the replaced message, the turns below it and the turns that its run did not see. `None` if
    the run replaces no stored message.
    """
    versions = nodes.versions(conn, tree, lineage.replaced) if lineage.replaced else []
    if not versions:
        return None
    keys = [row.key for row in versions]
    unseen = run_lineage.unseen_by(conn, tree, lineage.thread, min(row.seq for row in versions))

    def is_unseen(seq: int) -> bool:
        first = nodes.by_seq(conn, tree, seq)
        row = None if first is None else nodes.by_message(conn, tree, first.message)
        above = [] if row is None else nodes.spans(conn, row.key)
        return within(unseen, seq) or any(nodes.contain(above, key) for key in keys)

    return is_unseen


def _first_new(conn: Conn, tree: int, spoken: Sequence[BaseMessage], write_value: Writer) -> int:
    """The position after the last message that is stored with this content; usually the end of the list."""
    for index in range(len(spoken) - 1, -1, -1):
        rows = nodes.versions(conn, tree, str(spoken[index].id))
        if rows and (body := encode(spoken[index], write_value)) and any(row.body == body for row in rows):
            return index + 1
    return 0


def write_new(
    conn: Conn,
    tree: int,
    drafts: Sequence[Draft],
    start: int,
    earlier: Collection[str | None],
    otherwise: Parent = TIP,
) -> None:
    """Write the drafts from `start` on, and supersede the messages that they replace.

    A new version is a sibling of the old version if the list contains the parent of the old version
    (`earlier`), or if the list was trimmed. If no message of the list is stored, its first message continues
    the parent `otherwise`.
    """
    new = drafts[start:]
    before = _stored_as(conn, tree, drafts[start - 1]) if start else None
    old = [row for draft in new for row in nodes.versions(conn, tree, draft.id)]
    replaced: dict[int, NodeRow | Outline] = {row.key: row for row in old}
    for former in old:
        replaced.update({row.key: row for row in nodes.answers(conn, tree, former.key, former.seq)})
    version = old[0] if old and old[0].message == new[0].id else None
    above = None if version is None or version.parent is None else nodes.by_seq(conn, tree, version.parent)
    if version is not None and (before is None or above is None or above.message in earlier):
        parent = version.parent
    elif before is not None:
        parent = before.seq
        if new[0].role in ANSWERING:
            other_answers = nodes.answers(conn, tree, before.key, before.seq)
            replaced.update({row.key: row for row in other_answers})
    elif otherwise is TIP:
        tip = nodes.tip(conn, tree)
        parent = None if tip is None else tip.seq
    else:
        parent = otherwise
    live = [row.key for row in replaced.values() if row.state == State.LIVE]
    if old or live:
        superseding.replace(conn, tree, new, parent, live)
    else:
        writer.append(conn, tree, new, parent)


def _stored_as(conn: Conn, tree: int, draft: Draft) -> NodeRow | None:
    """The node of a message with the same content; a live node comes before others."""
    return next((row for row in nodes.versions(conn, tree, draft.id) if row.body == draft.body), None)
