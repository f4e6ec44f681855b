"""The verbs `append` and `extend`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.embed import embed_soon
from langchain_threadmem.index.latest_vectors import stored_now
from langchain_threadmem.messages.codec import (
    MessageInput,
    decode_stored,
    encode,
    is_same_answer,
    messages_of,
)
from langchain_threadmem.messages.ids import own_id
from langchain_threadmem.messages.roles import ANSWERING, OPENING, TYPES
from langchain_threadmem.messages.tool_pairs import call_ids
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.selection.moves import heal
from langchain_threadmem.selection.moves.heal import TurnMove
from langchain_threadmem.selection.run_selector import (
    Selected,
    ThreadedConversation,
    parent_if_emptied,
    select,
)
from langchain_threadmem.selection.tree_view import add_written, turns
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.append import TIP, Append, Draft, Parent, Written, drafts_of, is_below
from langchain_threadmem.tree.conversation import created_tree_of, tree_of
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.trees import TreeEpoch

log = logging.getLogger(__package__)


@telemetry.observed("create_memory", telemetry.of_conversation, telemetry.nodes)
def append(
    conversation: ThreadedConversation, human: MessageInput, *answers: MessageInput
) -> Flow[list[ConversationNode]]:
    """Store one turn below the parent that the selector chooses."""
    messages = messages_of(human, *answers)
    if messages and messages[0].type != "human":
        return _append_answers(conversation, messages)
    check_turn(messages)
    drafts = drafts_of(messages, other=conversation.runtime.resources.parts.write)
    return (_write if conversation.is_linear else _write_turn)(conversation, drafts)


def _append_answers(
    conversation: ThreadedConversation, messages: Sequence[BaseMessage]
) -> Flow[list[ConversationNode]]:
    """Store the end of a turn, below the calls that its first result answers, or below the tip."""
    called = yield from _called(conversation, messages)
    check_turn(messages, called.calls)
    drafts = drafts_of(messages, other=conversation.runtime.parts.write)
    return (yield from _write(conversation, drafts, called.parent, called.read_in))


def _write_turn(conversation: ThreadedConversation, drafts: Sequence[Draft]) -> Flow[list[ConversationNode]]:
    """Write a turn below the parent that the selector chooses for its human message.

    A stored message keeps its place.
    """
    first = drafts[0]
    if first.given:
        tree = yield from tree_of(conversation)
        if (yield from Sql(lambda conn: nodes.by_message(conn, tree, first.id))) is not None:
            return (yield from _write(conversation, drafts))
    selected = yield from select(conversation, first.message)
    drafts = selected.explains(drafts)
    return (yield from _write(conversation, drafts, selected.parent, selected.chosen_in, selected))


@telemetry.observed("create_memory", telemetry.of_conversation, telemetry.nodes)
def extend(
    conversation: ThreadedConversation,
    given: Iterable[MessageInput],
    timestamps: Iterable[datetime] | None = None,
    selects: bool = False,
) -> Flow[list[ConversationNode]]:
    """Store messages as one chain below the tip, or each turn below the parent that the selector chooses."""
    check_several("extend", given)
    if not isinstance(timestamps, Iterable | None) or isinstance(timestamps, str):
        raise InputError(f"timestamps is a list of datetimes, one for each message, not {timestamps!r:.200}")
    messages = [message for item in given for message in messages_of(item)]
    times = None if timestamps is None else list(timestamps)
    if times is not None and len(times) != len(messages):
        raise InputError(
            f"{len(messages)} messages and {len(times)} timestamps; pass one timestamp for each message"
        )
    drafts = drafts_of(messages, times, conversation.runtime.parts.write)
    if not selects or conversation.is_linear:
        return (yield from _write(conversation, drafts))
    starts = [at for at, draft in enumerate(drafts) if draft.role == "human"]
    written = yield from _write(conversation, drafts[: min(starts, default=len(drafts))])
    for first, end in pairwise([*starts, len(drafts)]):
        written += yield from _write_turn(conversation, drafts[first:end])
    return written


def check_several(method: str, given: object) -> None:
    """Check that an argument is several messages, and not one."""
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping | BaseMessage) or _is_pair(given):
        raise InputError(f"{method}() takes a list of messages, not {given!r:.200}; pass [message]")


def _is_pair(given: Iterable[object]) -> bool:
    """Whether the argument is a single message, written as a pair of role and text."""
    return isinstance(given, tuple) and len(given) == 2 and given[0] in TYPES and isinstance(given[1], str)


@telemetry.observed("create_memory", telemetry.of_conversation, telemetry.written)
def begin(conversation: ThreadedConversation, message: BaseMessage) -> Flow[ConversationNode]:
    """Store a message as the root of a new thread."""
    drafts = drafts_of(messages_of(message), other=conversation.runtime.parts.write)
    return (yield from _write(conversation, drafts, None))[0]


_NO_MOVES: Sequence[TurnMove] = ()


def _write(
    conversation: ThreadedConversation,
    drafts: Sequence[Draft],
    parent: Parent = TIP,
    chosen_in: TreeEpoch | None = None,
    selected: Selected | None = None,
) -> Flow[list[ConversationNode]]:
    if not drafts:
        return []
    # The drafts are encoded already, so a message that cannot be stored creates no tree.
    tree = conversation.tree or (yield from created_tree_of(conversation))
    write, moves, vectors = Append(tree, drafts, parent), _NO_MOVES, None
    if selected is not None:
        moves, vectors = selected.moves, selected.vectors
        write.version, write.unquoted = selected.version, selected.unquoted
    version = write.version
    if chosen_in is not None:
        write.chosen_in, write.otherwise = chosen_in, parent_if_emptied(conversation)

    def move_and_write(conn: Conn) -> Written:
        if moves:
            trees.lock(conn, tree)
            is_current = trees.head(conn, tree).version == version
            heal.move(conn, tree, moves, chosen_in)
            write.version = None if is_current else version  # A move changes the version.
        if vectors is not None:
            trees.lock(conn, tree)
            vectors.store(conn, conn.each(vectors.places_query())[0])
        return write(conn)

    # Several queued appends without moves and vectors become one write (`storage.group_commit`).
    written = yield from Sql(move_and_write if moves or vectors else write, write=True)
    if vectors is not None:
        stored_now(conversation.runtime, vectors)
    if not (moves or conversation.is_linear):
        add_written(conversation.runtime, tree, written.nodes)
    if conversation.runtime.embeds_ahead:
        embed_soon(conversation.runtime, (tree,))
    for draft, node in zip(drafts, written.nodes, strict=True):
        if draft.given and draft.role in ANSWERING and node.message.id != draft.id:
            warn_of_reuse(draft.id, node.message.id)
    return written.nodes


def warn_of_reuse(reused: str, own: str | None) -> None:
    """Log that an answer has an id of its own."""
    log.warning(
        "message id %r is that of an answer to another question; this answer has the id %r", reused, own
    )


def with_own_ids(
    conn: Conn, tree: int, turn: Sequence[BaseMessage], write_value: WriteOpaque
) -> tuple[list[BaseMessage], list[tuple[str, str]]]:
    """A turn in which answers that reuse an id have ids of their own, and the new pairs of both ids.

    A cache of answers (`set_llm_cache`) returns the same message, with its id, for equal prompts. In a tree
    two questions may have equal prompts, and a message id has one live place.

    The question of the turn must be stored: another one may be a stored question with a new id, as from a
    client that sends its whole history. An answer after another answer is no answer to the question.
    """
    owned, new = list(turn), list[tuple[str, str]]()
    question = nodes.by_message(conn, tree, str(turn[0].id))
    if question is None:
        return owned, new
    for n, message in enumerate(turn[1:], 1):
        rows = nodes.versions(conn, tree, str(message.id))
        body = encode(message, write_value) if rows and message.type in ANSWERING else ""
        if not any(is_same_answer(row.body, body) for row in rows):
            continue
        if any(is_below(conn, tree, row, question) for row in rows):
            continue
        own = own_id(str(message.id), question.message)
        if nodes.by_message(conn, tree, own) is None:
            answers = nodes.answers(conn, tree, question.key, question.seq) if n == 1 else []
            if any(answer.state == State.LIVE for answer in answers):
                continue
            if n > 1 and not isinstance(turn[n - 1], ToolMessage):
                continue
            new.append((str(message.id), own))
        owned[n] = message.model_copy(update={"id": own})
    return owned, new


class _Called(NamedTuple):
    """The calls that messages without a human message answer.

    Attributes:
        calls: Ids of stored tool calls.
        parent: The node below which the messages belong.
        read_in: The epoch in which the parent was read.
    """

    calls: Set[str | None] = frozenset()
    parent: Parent = TIP
    read_in: TreeEpoch | None = None


_NOWHERE = _Called()


def _called(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[_Called]:
    """The stored calls of the results among messages.

    In a linear conversation all messages are one chain. Otherwise the first result belongs to its call, which
    may be in another thread: a question may have been asked while the tool was at work.
    """
    if not any(isinstance(message, ToolMessage) for message in messages):
        return _NOWHERE
    tree = yield from tree_of(conversation)
    if not conversation.is_linear and isinstance(messages[0], ToolMessage):
        index = yield from turns(conversation.runtime, tree, newest=1)
        if messages[0].tool_call_id not in index.exchanges:
            index = yield from turns(conversation.runtime, tree)
        exchange = index.exchanges.get(messages[0].tool_call_id)
        if exchange is not None:
            return _Called(exchange.calls, exchange.end, (tree, index.epoch))

    def ai_messages(conn: Conn) -> list[tuple[str, str, str]]:
        tip = trees.head(conn, tree).tip
        rows = [] if tip is None else nodes.thread_messages(conn, tip)
        return [row[:3] for row in rows if row[2] == "ai"]

    answers = decode_stored((yield from Sql(ai_messages)))
    return _Called({id_ for answer in answers for id_ in call_ids(answer)})


def check_turn(messages: Sequence[BaseMessage], open_calls: Collection[str | None] = ()) -> None:
    """Refuse messages that are not one turn: a human message and the AI and tool messages that answer it.

    Args:
        messages: A turn, or the end of a turn whose beginning is stored.
        open_calls: Ids of the stored tool calls.

    Raises:
        InputError: A message does not belong to the turn; the error names its position.
    """
    if not messages:
        raise InputError("append() needs a message; pass a human message and its answers")
    calls, known = set(open_calls), 0
    for position, message in enumerate(messages):
        kind = message.type
        if position and kind in OPENING:
            raise InputError(
                f"append() takes one turn, but message {position} is another {kind} message "
                f"({message.content!r:.60}); call append() for each turn, or extend() for all of them"
            )
        if isinstance(message, ToolMessage):
            calls.update(*map(call_ids, messages[known:position]))
            known = position
            if message.tool_call_id not in calls:
                raise InputError(
                    f"message {position} is the result of tool call {message.tool_call_id!r}, but no "
                    f"earlier message of the turn makes this call; the calls are {sorted(map(str, calls))}"
                )
