"""Coverage: the turns of other threads that a model is shown because the message may continue them.

A selector is sometimes wrong, and then the turn that the message continues is in another thread. So a model
is shown the active thread and the runners-up: the next likeliest turns, until the turns that are shown have a
given share of the probability. The turns are whole and in the order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_threadmem.common.inputs import is_share, is_whole
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import decode_stored
from langchain_threadmem.messages.prompt import newest_human
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.threads.run_selector import ThreadedConversation
from langchain_threadmem.tree import nodes, read
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import tree_of

_TAIL: Final = 16
"""The number of the newest messages of a thread that are read first."""
_MORE: Final = 8
"""The factor by which this number grows while more messages are needed."""
_ROUNDING: Final = 1e-9
"""The rounding error of a sum of probabilities."""
_Row: TypeAlias = tuple[str, str, str, int]
"""Message id, body, role and number of a node."""


class Turn(NamedTuple):
    """A turn of another thread.

    Attributes:
        number: Number of its first node.
        messages: Its messages.
    """

    number: int
    messages: Sequence[BaseMessage]


def messages(conversation: ThreadedConversation) -> Flow[list[BaseMessage]]:
    """The messages of the active thread for a model, as `tree.read.messages`, with the runners-up."""
    return (yield from covered(conversation, (yield from read.messages(conversation))))


def covered(conversation: ThreadedConversation, thread: list[BaseMessage]) -> Flow[list[BaseMessage]]:
    """The messages of a thread for a model, with the runners-up.

    Args:
        conversation: The conversation, with its options `cover` and `cover_tokens`.
        thread: The messages of the thread through its window, to the turn that is being answered.

    Returns:
        The list, with the turns of other threads that its newest human message may continue. The list itself
        if that message has an answer, or a place without probabilities.

    Cost: two statements, about 0.15 ms; five more, about 0.4 ms together, for an uncertain place.
    """
    newest = newest_human(thread)
    if conversation.cover is None or newest is None or is_answer(thread[-1]):
        return thread
    tree, cover = (yield from tree_of(conversation)), conversation.cover
    message_id, ids = str(thread[newest].id), {message.id for message in thread}

    def read_turns(conn: Conn) -> tuple[list[list[_Row]], dict[str, int]]:
        row = nodes.by_message(conn, tree, message_id)
        turns = [] if row is None else _runners_up(conn, tree, row.key, ids, cover)
        if row is None or not turns:
            return [], {}
        oldest = min(turn[0][3] for turn in turns)
        newer = _tail(conn, row.key, lambda rows: rows[0][3] < oldest)
        return turns, {id_: number for id_, _, _, number in newer}

    turn_rows, numbers = yield from Sql(read_turns)
    turns: list[Turn] = []
    tokens = 0
    for rows in turn_rows:
        turn = Turn(
            rows[0][3], decode_stored([row[:3] for row in rows], other=conversation.runtime.parts.read)
        )
        tokens += count_tokens(turn.messages)
        if tokens > conversation.cover_tokens:
            break
        turns.append(turn)
    return whole_exchanges(merged(thread, numbers, turns)) if turns else thread


def merged(
    thread: Sequence[BaseMessage], numbers: Mapping[str, int], turns: Sequence[Turn]
) -> list[BaseMessage]:
    """A thread with turns of other threads, in the order of time.

    Args:
        thread: The messages of the thread, which end with a turn that is being answered.
        numbers: Numbers of messages of the thread, by id; all others are older than the turns.
        turns: Turns of other threads. Each stands before the first human message that is newer, so that it
            divides no tool call from its results.

    Example:
        >>> thread = [HumanMessage("rye?", id="1"), HumanMessage("when?", id="7")]
        >>> turn = Turn(3, [HumanMessage("the car", id="3")])
        >>> [message.content for message in merged(thread, {"1": 1, "7": 7}, [turn])]
        ['rye?', 'the car', 'when?']
    """
    combined = list(thread)
    for turn in sorted(turns):
        at = newest_human(combined) or 0
        for place, message in enumerate(combined[:at]):
            if isinstance(message, HumanMessage) and numbers.get(str(message.id), 0) > turn.number:
                at = place
                break
        combined[at:at] = turn.messages
    return combined


def check_cover(cover: float | None, tokens: int) -> None:
    """Refuse values of the options `cover` and `cover_tokens` that are out of range.

    Raises:
        InputError: `cover` is not from 0 to 1, or `tokens` is not a number of tokens.
    """
    if cover is not None and not is_share(cover):
        raise InputError(
            f"cover={cover!r} is not a share; pass a number from 0 to 1, or None to show the thread alone"
        )
    if not is_whole(tokens, 0):
        raise InputError(f"cover_tokens={tokens!r} is not a number of tokens; pass an integer of at least 0")


def _runners_up(
    conn: Conn, tree: int, key: int, shown_ids: set[str | None], share: float
) -> list[list[_Row]]:
    """The rows of the turns that a human message may continue and that are not shown, the likeliest first."""
    placement = stored_placements.by_key(conn, key)
    chances = () if placement is None else placement.chances
    ends = {id_: None if id_ is None else nodes.by_seq(conn, tree, id_) for id_, _ in chances}
    hidden = {id_: row for id_, row in ends.items() if row is not None and row.message not in shown_ids}
    missing = sum(chance for id_, chance in chances if id_ in hidden)
    turns: list[list[_Row]] = []
    for id_, chance in chances:
        if missing <= 1.0 - share + _ROUNDING:
            break
        row = hidden.get(id_)
        if row is not None:
            missing -= chance
            turn = _turn(conn, row.key)
            turn_ids = {message_id for message_id, *_ in turn}
            # A question that is shown already is not shown again with another answer.
            if row.state == State.LIVE and shown_ids.isdisjoint(turn_ids):
                turns.append(turn)
                shown_ids = shown_ids | turn_ids
    return turns


def _turn(conn: Conn, end: int) -> list[_Row]:
    """The messages of a turn, by its last node."""
    rows = _tail(conn, end, lambda rows: any(role == "human" for _, _, role, _ in rows))
    first = max((place for place, row in enumerate(rows) if row[2] == "human"), default=0)
    return [row for row in rows[first:] if row[2] != "system"]


def _tail(conn: Conn, end: int, is_enough: Callable[[list[_Row]], bool]) -> list[_Row]:
    """The newest messages of a thread, oldest first, until `is_enough`; else all."""
    limit = _TAIL
    while True:
        rows = nodes.thread_messages(conn, end, limit)
        if len(rows) < limit or is_enough(rows):
            return rows
        limit *= _MORE
