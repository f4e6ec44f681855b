"""Verbs of corrections by hand: the list of doubtful places, and messages that a person places.

Each correction moves the thresholds at which a selector begins a new thread or goes back to an earlier turn,
for one owner. It is a step of a logistic regression with a strong prior: a `Bias` is added to the log-odds of
a new thread, and to those of all turns but the last.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from operator import itemgetter

from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.selection.titles import title_of_thread
from langchain_threadmem.selection.tree_view import Biases, turns
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import branches, nodes, revise, superseding, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import Conversation, node_in, tree_of
from langchain_threadmem.tree.navigate import MessageRef, message_in
from langchain_threadmem.tree.node import (
    BY_HAND,
    DOUBTFUL,
    Bias,
    Chances,
    ConversationNode,
    Placement,
    nodes_of,
)
from langchain_threadmem.tree.nodes import NodeRow

PRIOR = 3.0
"""The precision of the prior of a bias, which is normal with mean 0: one correction adds at most a third."""
CURVATURE = 0.25
"""An upper bound of the precision that one correction adds."""
LARGEST = 0.75
"""The largest bias; a larger one would cost owners too much whose other conversations differ from those that
they corrected."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The likeliest other place of a message.

    Attributes:
        parent_id: Id of the turn end that the message may continue; `None` for a new thread.
        probability: The probability of the place, 0 to 1.
        title: Title of the thread that the message continues or begins there, as in
            `ChatMemory.list_threads`.
    """

    parent_id: int | None
    probability: float
    title: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A message whose place is doubtful; `memory.place(node.id, runner_up.parent_id)` moves it.

    Attributes:
        node: The message, with its `placement`.
        parent_id: Id of the node that the message continues; `None` at a root.
        probability: The probability of the place when it was chosen, 0 to 1.
        runner_up: The likeliest other place.
        reason: The reason for the place, in a few words.
    """

    node: ConversationNode
    parent_id: int | None
    probability: float
    runner_up: RunnerUp
    reason: str


@dataclass(frozen=True, slots=True)
class _DoubtfulRows:
    """The rows of a doubtful place; `opening` are the first nodes of the thread of the runner-up."""

    row: NodeRow
    placement: Placement
    probability: float
    runner_up: tuple[int | None, float]
    opening: Sequence[NodeRow]


def doubtful(conversation: Conversation, limit: int) -> Flow[list[Doubt]]:
    """The messages with doubtful places, the most doubtful first; see `ChatMemory.doubtful`."""
    if not is_whole(limit, 1):
        raise InputError(f"limit={limit!r} is not an integer of at least 1; pass a number of messages")
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[_DoubtfulRows]:
        unsure = []
        for key, seq, parent, chances in stored_placements.live(conn, tree):
            among = dict(chances)
            probability = among.pop(parent, 0.0)
            if probability < DOUBTFUL:
                unsure.append((probability, seq, key, among))
        unsure.sort(key=itemgetter(0, 1))
        rows = (
            _doubtful_rows(conn, tree, key, probability, others) for probability, _, key, others in unsure
        )
        return list(islice(filter(None, rows), min(limit, sys.maxsize)))

    return [_doubt(conversation, found) for found in (yield from Sql(read))]


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.written)
def place(conversation: Conversation, node_id: int, parent_id: int | None) -> Flow[ConversationNode]:
    """Move a message by hand, or confirm its place, and learn from it; see `ChatMemory.place`."""
    runtime, tree = conversation.runtime, (yield from tree_of(conversation))

    def chosen(conn: Conn) -> tuple[Chances, int]:
        row = node_in(conn, tree, node_id)
        placement = stored_placements.by_key(conn, row.key)
        origin = nodes.first_version(conn, tree, row.message)
        return (() if placement is None else placement.chances), node_id if origin is None else origin

    chances, origin = yield from Sql(chosen)
    index = (yield from turns(runtime, tree, newest=1)) if chances else None
    if index is not None and origin <= index.since:
        index = yield from turns(runtime, tree)

    def write(conn: Conn) -> tuple[NodeRow, Placement | None]:
        placed = revise.place_turn(conn, tree, node_id, parent_id, BY_HAND)
        if index is not None:
            end = None if parent_id is None else index.end_above(parent_id)
            old = stored_placements.bias_of(conn, runtime.owner)
            new = corrected(old, chances, index.latest_before(origin), end)
            stored_placements.put_bias(conn, runtime.owner, new)
        return placed

    row, placement = yield from Sql(write, write=True)
    runtime.get(Biases).value = None
    return replace(nodes_of([row], runtime.parts.read)[0], placement=placement)


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.written)
def revive(conversation: Conversation, message: MessageRef) -> Flow[ConversationNode]:
    """Make the thread of a message active and its versions live; see `ChatMemory.switch`."""
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> NodeRow:
        trees.lock(conn, tree)
        row = message_in(conn, tree, message)
        end = branches.newest_below(conn, tree, row._replace(state=State.LIVE))
        if end == row.key:
            end = branches.newest_below(conn, tree, row)
        path = nodes.thread(conn, end)
        below = next(index for index, node in enumerate(path) if node.key == row.key) + 1
        ahead = takewhile(lambda node: not _is_moved_away(conn, tree, node), path[below:])
        thread = [*path[:below], *ahead]
        old = [node for node in thread if node.state == State.SUPERSEDED and node.role != "system"]
        for node in old:
            for version in branches.versions(conn, tree, node):
                if version.state == State.LIVE:
                    turn = [version, *nodes.answers(conn, tree, version.key, version.seq)]
                    live = [other.key for other in turn if other.state == State.LIVE]
                    superseding.supersede(conn, tree, live, node.seq)
        revived = [node.key for node in old if not superseding.is_live(conn, tree, node.message)]
        superseding.make_live(conn, tree, revived)
        summary_queries.reopen(conn, tree, revived)
        trees.move_tip(conn, tree, thread[-1].key)
        [last] = nodes.by_keys(conn, [thread[-1].key])
        return last

    return nodes_of([(yield from Sql(write, write=True))], conversation.runtime.parts.read)[0]


def _is_moved_away(conn: Conn, tree: int, row: NodeRow) -> bool:
    """Whether a node is the former place of a message."""
    successor = None if row.superseded_by is None else nodes.by_seq(conn, tree, row.superseded_by)
    return successor is not None and successor.message == row.message and successor.parent != row.parent


def reset_corrections(runtime: Runtime) -> Flow[None]:
    """Forget the bias of the owner; see `MemorySystem.reset_corrections`."""
    yield from Sql(lambda conn: stored_placements.drop_bias(conn, runtime.owner), write=True)


def corrected(bias: Bias, chances: Chances, last: int | None, right: int | None) -> Bias:
    """The bias after one more message was placed by hand.

    Args:
        bias: The bias before.
        chances: The candidates of the message and their probabilities.
        last: The turn end that was the last when the message was stored.
        right: The turn end below which the message belongs; `None` for a new thread.

    Example:
        >>> bias = corrected(Bias(), ((None, 0.6), (4, 0.4)), 4, 4)
        >>> round(bias.new_thread, 2), bias.going_back, bias.corrections
        (-0.2, 0.0, 1)
    """
    whole = sum(chance for _, chance in chances) or 1.0
    opened = sum(chance for candidate, chance in chances if candidate is None) / whole
    back = sum(chance for candidate, chance in chances if candidate not in (None, last)) / whole
    rate = 1.0 / (PRIOR + bias.corrections * CURVATURE)
    return Bias(
        _bounded(bias.new_thread + rate * ((right is None) - opened)),
        _bounded(bias.going_back + rate * ((right not in (None, last)) - back)),
        bias.corrections + 1,
    )


def _bounded(offset: float) -> float:
    return max(-LARGEST, min(LARGEST, offset))


def _doubtful_rows(
    conn: Conn, tree: int, key: int, probability: float, others: Mapping[int | None, float]
) -> _DoubtfulRows | None:
    """A doubtful place with its runner-up; `None` if the message cannot be moved to any other candidate."""
    row, placement = nodes.by_key(conn, key), stored_placements.by_key(conn, key)
    if row is None or placement is None:
        return None
    for candidate, chance in others.items():
        if candidate is None:
            return _DoubtfulRows(row, placement, probability, (None, chance), [row])
        end = nodes.by_seq(conn, tree, candidate)
        if end is not None and end.state == State.LIVE:
            spans = nodes.spans(conn, end.key)
            # A turn that was moved below the message itself is no other place for it.
            if not nodes.contain(spans, key):
                opening = nodes.first_of(conn, spans, 2)
                return _DoubtfulRows(row, placement, probability, (candidate, chance), opening)
    return None


def _doubt(conversation: Conversation, found: _DoubtfulRows) -> Doubt:
    read = conversation.runtime.parts.read
    [node], opening = nodes_of([found.row], read), nodes_of(found.opening)
    return Doubt(
        replace(node, placement=found.placement),
        node.parent_id,
        found.probability,
        RunnerUp(*found.runner_up, title_of_thread(first.message for first in opening)),
        found.placement.reason,
    )
