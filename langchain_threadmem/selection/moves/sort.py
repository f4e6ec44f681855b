"""The verbs `sort` and `unsort`: all turns of a conversation moved to their threads, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from langchain_core.messages import BaseMessage

from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.bare_texts import BareTexts, BareTextsOfTrees
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.index.embed import catch_up_vectors
from langchain_threadmem.index.vectors import NONE, Vectors
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.constant_text import LATEST
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tool_pairs import calls_tools, text_of_calls
from langchain_threadmem.selection.features.phrases import language_of
from langchain_threadmem.selection.moves.sort_plan import Sorter, Turn
from langchain_threadmem.selection.selectors import OtherLanguages, TurnReader, rows_of
from langchain_threadmem.selection.tree_view import bare_turns, bias_of
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, read, revise, trees
from langchain_threadmem.tree.conversation import Conversation
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import BY_HAND, KEPT_BY_HAND, ConversationNode, Placement
from langchain_threadmem.tree.trees import TreeEpoch

SORTED = "sorted: "
"""The beginning of the reason of a message that `sort` has moved."""
PLACED_BY_HAND = (BY_HAND.reason, KEPT_BY_HAND.reason)
AT_ONCE, MOVED_AT_ONCE = 32, 64
"""The number of turns between two reports of the progress, and of moves in a transaction."""


@dataclass(frozen=True, slots=True)
class Move:
    """A message that `ChatMemory.sort` or `ChatMemory.unsort` moves, with the messages of its turn.

    Attributes:
        node_id: Number of its node before the move.
        message: The message.
        old_parent_id: Number of the node that it continues before the move; `None` at a root.
        parent_id: Number of the node that it continues after the move; `None` at a root.
        probability: Probability of the new place, 0 to 1; `None` if a message is moved back.
        reason: The reason, in a few words for people.
    """

    node_id: int
    message: BaseMessage
    old_parent_id: int | None
    parent_id: int | None
    probability: float | None
    reason: str


@dataclass(slots=True)
class _Spoken:
    """A turn while it is read: first node, live human nodes, last answer, and the turn that it continues.

    `end` is the last answer, or else the last human message or tool result.
    """

    since: int
    opening: ConversationNode | None
    above: _Spoken | None
    humans: list[ConversationNode] = field(default_factory=list)
    answer: ConversationNode | None = None
    end: ConversationNode | None = None
    calls: str = ""
    number: int = 0


_PlannedMove = tuple[Move, Placement | None]


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.nodes)
def sort(
    conversation: Conversation, dry_run: bool = False, progress: Progress | None = None
) -> Flow[list[Move]]:
    """Move the turns of a conversation to the threads that their messages and answers show."""
    history, _, read_in = yield from read.full_history(conversation)
    spoken = _turns(history)
    sorter = yield from _sorter(conversation.runtime, read_in[0], spoken, _as_turns(spoken))
    total = len(spoken)
    for done in range(0, total, AT_ONCE):
        yield from Call(lambda: sorter.advance(AT_ONCE))
        if progress is not None:
            progress(min(done + AT_ONCE, total), total)
    planned = _plan(spoken, sorter)
    return [move for move, _ in planned] if dry_run else (yield from _move(read_in, planned))


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.nodes)
def unsort(conversation: Conversation) -> Flow[list[Move]]:
    """Move the messages that `sort` has moved back to their places before it."""
    history, _, read_in = yield from read.full_history(conversation)
    known = {node.id: node for node in history}
    before: dict[int | None, ConversationNode] = {
        node.superseded_by: node for node in known.values() if node.superseded_by is not None
    }

    def is_sorted(node: ConversationNode) -> bool:
        return node.placement is not None and node.placement.reason.startswith(SORTED)

    planned: list[_PlannedMove] = []
    for node in sorted(known.values(), key=lambda node: _first(before, node).id):
        earlier = node
        while is_sorted(earlier) and earlier.id in before:
            earlier = before[earlier.id]
        if node.state is not State.LIVE or earlier is node:
            continue
        parent = None if earlier.parent_id is None else _current(known, earlier.parent_id)
        if parent != node.parent_id:
            move = Move(
                node.id, node.message, node.parent_id, parent, None, "back to its place before the sort"
            )
            planned.append((move, earlier.placement))
    return (yield from _move(read_in, planned))


def _first(before: Mapping[int | None, ConversationNode], node: ConversationNode) -> ConversationNode:
    """The first version of a message."""
    while (earlier := before.get(node.id)) is not None:
        node = earlier
    return node


def _current(known: Mapping[int, ConversationNode], id_: int) -> int:
    """The number of the newest place of a message that was moved."""
    node = known[id_]
    visited = Visited()
    while node.superseded_by is not None and known[node.superseded_by].message.id == node.message.id:
        visited.add(node.id)
        node = known[node.superseded_by]
    return node.id


def _turns(history: Sequence[ConversationNode]) -> list[_Spoken]:
    """The live turns of a conversation in the order in which they began, numbered from 1."""
    known = {node.id: node for node in history}
    first: dict[int, int] = {}
    for node in history:
        if node.superseded_by is not None:
            first[node.superseded_by] = first.get(node.id, node.id)
    turn_of: dict[int, _Spoken | None] = {}
    found = []
    for id_ in parents_first({node.id: node.parent_id for node in history}):
        node, parent = known[id_], known.get(known[id_].parent_id or 0)
        turn = None if parent is None else turn_of.get(parent.id)
        is_human = node.message.type == "human"
        # Several human messages in a row are one turn.
        if is_human and (parent is None or parent.message.type != "human" or turn is None):
            turn = _Spoken(first.get(id_, id_), node, turn)
            found.append(turn)
        elif turn is None and node.message.type == "ai":
            turn = _Spoken(first.get(id_, id_), None, None)
            found.append(turn)
        turn_of[id_] = turn
        if turn is not None and node.state is State.LIVE:
            if is_human:
                turn.humans.append(node)
            turn.calls = text_of_calls(node.message, turn.calls)
            if is_answer(node.message) and (turn.answer is None or turn.answer.id < id_):
                turn.answer = turn.end = node
            elif turn.answer is None and not calls_tools(node.message):
                turn.end = node
    living = sorted((turn for turn in found if turn.humans or turn.answer), key=lambda turn: turn.since)
    for number, turn in enumerate(living, 1):
        turn.number = number
    return living


def _as_turns(spoken: Sequence[_Spoken]) -> list[Turn]:
    """The turns as a sorter takes them; a turn that a person has placed is fixed."""
    turns = []
    for turn in spoken:
        above = turn.above
        while above is not None and not above.number:
            above = above.above  # It was superseded.
        previous = None if above is None else above.number
        placement = turn.opening.placement if turn.opening else None
        # Without a reason, a turn that does not continue the turn before it follows an edit or a checkout.
        is_chosen = (placement is None or not placement.reason) and (previous or 0) != turn.number - 1
        end = TurnEnd(
            turn.number,
            previous,
            "\n".join(text_of(node.message) for node in turn.humans),
            text_of(turn.answer.message) if turn.answer else "",
            calls=turn.calls,
            is_open=turn.answer is None,
        )
        is_fixed = turn.opening is None or turn.opening.state is not State.LIVE or is_chosen
        is_fixed = is_fixed or (placement is not None and placement.reason in PLACED_BY_HAND)
        turns.append(Turn(end, is_fixed))
    return turns


def _sorter(runtime: Runtime, tree: int, spoken: Sequence[_Spoken], turns: Sequence[Turn]) -> Flow[Sorter]:
    bare = runtime.get(BareTextsOfTrees).values.setdefault((tree,), BareTexts)
    bare.learn([turn.end.human for turn in turns[-LATEST:] if turn.end.human])
    bare_ends = bare_turns((turn.end for turn in turns), bare)
    turns = [replace(turn, end=end) for turn, end in zip(turns, bare_ends, strict=True)]
    languages = Counter(language_of(text) for turn in turns for text in (turn.end.human, turn.end.answer))
    language = languages.most_common(1)[0][0] if languages else "en"
    asked, answered = [_longest(turn.humans) for turn in spoken], [turn.answer for turn in spoken]
    other = yield from runtime.get(OtherLanguages).model_for(language)
    if other is None:
        cached = yield from catch_up_vectors(runtime, tree)
        vectors, model = NONE if cached is None else cached.vectors, runtime.embedder.model
    else:
        text_by_id = {node.id: bare.of(text_of(node.message)) for node in asked if node}
        text_by_id |= {
            node.id: turn.end.answer_with_calls for node, turn in zip(answered, turns, strict=True) if node
        }
        known = sorted(text_by_id.items())
        texts, ids = [text for _, text in known], np.array([id_ for id_, _ in known], np.int64)
        rows = yield from other.embed(texts)
        vectors, model = Vectors(ids, ids, rows), other.model
    dimensions = vectors.matrix.shape[1]
    humans, answers = (
        rows_of(vectors, [node.id if node else 0 for node in each], dimensions) for each in (asked, answered)
    )
    bias = yield from bias_of(runtime)
    return Sorter(turns, humans, answers, model, runtime.get(TurnReader).of(language), bias)


def _longest(several: Sequence[ConversationNode]) -> ConversationNode | None:
    """The node with the longest text, whose vector stands for several human messages in a row."""
    return max(several, key=lambda node: len(text_of(node.message)), default=None)


def _plan(spoken: Sequence[_Spoken], sorter: Sorter) -> list[_PlannedMove]:
    """The moves that a sorter's places need, in the order of time."""
    ends: dict[int | None, int | None] = {None: None}  # A turn without a predecessor becomes a root.
    ends |= {turn.number: turn.end.id for turn in spoken if turn.end is not None}
    planned: list[_PlannedMove] = []
    for turn, weighed, parent, chances in zip(
        spoken, sorter.turns, sorter.parents, sorter.chances, strict=True
    ):
        if turn.opening is None or weighed.fixed or parent == weighed.end.previous:
            continue
        node, under, reason = turn.opening, ends[parent], sorter.reason(turn.number)
        by_node = tuple((ends[number], chance) for number, chance in chances)
        move = Move(node.id, node.message, node.parent_id, under, dict(by_node).get(under, 1.0), reason)
        planned.append((move, Placement(SORTED + reason, by_node)))
    return planned


def _move(read_in: TreeEpoch, planned: Iterable[_PlannedMove]) -> Flow[list[Move]]:
    """Make moves, some in each transaction; a move whose message has changed meanwhile is omitted.

    No move is made in a conversation that was emptied since it was read.
    """
    made: list[Move] = []
    waiting = list(planned)
    while waiting:
        later: list[_PlannedMove] = []
        before = len(made)
        for first in range(0, len(waiting), MOVED_AT_ONCE):
            several = waiting[first : first + MOVED_AT_ONCE]
            done, put_off = yield from Sql(lambda conn: _moved(conn, read_in, several), write=True)  # noqa: B023 - driven before the next turn
            made += done
            later += put_off
        # The new parent of a message may be below it until another message has moved.
        waiting = later if len(made) > before else []
    return made


def _moved(
    conn: Conn, read_in: TreeEpoch, several: Sequence[_PlannedMove]
) -> tuple[list[Move], list[_PlannedMove]]:
    """The moves that were made in a write transaction, and those that other moves must precede."""
    tree, _ = read_in
    trees.lock(conn, tree)
    if not trees.is_current(conn, read_in):
        return [], []
    done: list[Move] = []
    later: list[_PlannedMove] = []
    for move, why in several:
        row = nodes.by_seq(conn, tree, move.node_id)
        if row is None or row.state != State.LIVE or row.parent != move.old_parent_id:
            continue
        under = None if move.parent_id is None else nodes.by_seq(conn, tree, move.parent_id)
        if under is not None and under.state != State.LIVE and move.probability is not None:
            continue  # The new parent was superseded.
        try:
            revise.place_turn(conn, tree, move.node_id, move.parent_id, why)
        except InvalidGraphStateError:
            later.append((move, why))
        except (InputError, NodeNotFoundError):
            continue  # The new parent was removed, or calls tools now.
        else:
            done.append(move)
    return done, later
