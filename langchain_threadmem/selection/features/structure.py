"""Structure features: the place of a turn in the tree, and its probability.

A choice compares some of the turns (`compared_turns`), and some of these are candidates (`shortlist`).
Neither number grows with the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter, gt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Floats
from langchain_threadmem.errors import InputError
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex
from langchain_threadmem.tree.graph import parents_first

Table: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]
Tracks: TypeAlias = list[list[tuple[int, float]]]
"""For each turn, the positions of the turns that it may continue, and their probabilities."""

NEWEST = 48
"""The number of latest turns that a choice compares. More turns do not improve the choices, and returns to
old threads are recognised less often (`docs/experiments.md`)."""
NEAR_TURNS, OLD_PATH = 3, 3
"""The number of older turns that are compared because they resemble the message, and of turns at the ends of
their threads. Twice these numbers recognise about as many returns."""
_ID = attrgetter("id")
PATH = 6
"""The number of turns at the end of a thread that represent it."""
PATH_DECAY = 0.7
_DECAY = PATH_DECAY ** np.arange(PATH)
LATELY = 16
"""The number of latest turns from which the rate of thread switches is estimated."""
USUAL_TURNS, USUALLY_STAYS, USUALLY_OPENS = 4.0, 0.65, 0.2
"""The prior of this rate: its weight in turns, the share of turns that stay, the share that open a thread."""
RECENT_TURNS = 24
"""The number of latest turns that are candidates even if other turns continue them."""
RECENT_THREADS = 12
SIMILAR_THREADS = 8
SIMILAR_TURNS = 4
LEAST_CHANCE = 0.005
"""Candidates with a lower probability are not stored with a choice."""
MOST_CHILDREN = 3.0
LEAST = -9.0
"""A value below any similarity or compatibility."""


def compared_turns(turn_ends: Sequence[TurnEnd], index: TurnIndex, near: Sequence[int]) -> list[TurnEnd]:
    """The turn ends that a choice compares, oldest first.

    Args:
        turn_ends: At least the newest turn ends of the conversation, oldest first.
        index: The index of the conversation; it may contain newer turns.
        near: Ids of nodes before the newest turns, those nearest to the message first.

    Returns:
        The newest turns, about ten older turns that resemble the message, and the first turns of their
        threads. `previous` of each turn is its nearest ancestor among these turns, or `None`.

    Cost: 0.1 ms, and 0.1 ms for each thousand turns between two of the returned turns.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from langchain_threadmem.tree.node import ConversationNode
        >>> index = TurnIndex()
        >>> for n in range(1, 1000, 2):
        ...     asked = ConversationNode(n, HumanMessage("Hi"))
        ...     index.add([asked, ConversationNode(n + 1, AIMessage("Hi!"), n)])
        >>> ends = index.ends()
        >>> len(compared_turns(ends, index, [])), [end.id for end in compared_turns(ends, index, [8, 5])[:3]]
        (48, [6, 8, 906])
    """
    newest = turn_ends[-NEWEST:]
    if not near or len(turn_ends) <= NEWEST:
        return detached(newest)
    by_id = {end.id: end for end in newest}
    turns = {end.id: end for id_ in near if (end := index.end_from(id_)) is not None}
    similar = list(islice(turns.values(), NEAR_TURNS))
    leaves = dict.fromkeys(index.leaf(end.id) for end in similar)
    for leaf in leaves:
        similar += islice(index.upwards(leaf), OLD_PATH)
    by_id |= {end.id: end for end in similar}
    # The opening of a turn is that of the turn before it.
    tops = [end.id for end in by_id.values() if end.previous is not None and end.previous not in by_id]
    by_id |= {end.id: end for end in map(index.opening, tops) if end is not None}
    # Turns after the newest are newer than `turn_ends`.
    compared = {id_: end for id_, end in sorted(by_id.items()) if id_ <= newest[-1].id}
    linked = []
    for end in compared.values():
        if end.previous is not None and end.previous not in compared:
            end = end._replace(previous=index.nearest_among(end.previous, compared))
        linked.append(end)
    return linked


def detached(turn_ends: Sequence[TurnEnd]) -> list[TurnEnd]:
    """The turn ends as a conversation of their own: a turn that continues any other turn becomes a root."""
    ids = {None, *map(_ID, turn_ends)}
    return [end if end.previous in ids else end._replace(previous=None) for end in turn_ends]


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of the turns, by position: the number of older turns.

    Attributes:
        previous: For each turn the position of its predecessor; -1 at a root.
        openings: For each turn the position of the first turn of its thread.
        ended: Whether no turn continues the turn.
        expected_children: The expected number of turns that continue the turn.
        placed: The probability of the place of the turn.
        tracks: The possible predecessors of each turn.
    """

    previous: Places
    openings: Places
    ended: NDArray[np.bool_]
    expected_children: Table
    placed: Table
    tracks: Tracks

    @classmethod
    def of(cls, turn_ends: Sequence[TurnEnd]) -> Tree:
        """The tree of turn ends, which come oldest first."""
        previous, openings, places = _links(turn_ends)
        ended = np.ones(len(turn_ends), bool)
        ended[previous[previous >= 0]] = False
        return cls(previous, openings, ended, *_probabilities(turn_ends, previous, places))


def shortlist(ended: NDArray[np.bool_], nearest: Table, least: float) -> Places:
    """Positions of the candidates, ascending; their number does not grow with the conversation.

    Args:
        ended: For each turn, whether it is the end of a thread.
        nearest: The similarity of each turn to the message.
        least: The similarity that a turn must exceed to be a candidate by similarity.
    """
    chosen = np.zeros(len(ended), bool)
    chosen[-RECENT_TURNS:] = True
    ends = np.flatnonzero(ended)
    chosen[ends[-RECENT_THREADS:]] = True
    for places, most in ((ends, SIMILAR_THREADS), (np.arange(len(ended)), SIMILAR_TURNS)):
        similar = places[np.argsort(-nearest[places], kind="stable")[:most]]
        chosen[similar[nearest[similar] > least]] = True
    return np.flatnonzero(chosen)


@dataclass(frozen=True, slots=True)
class ThreadEnds:
    """The ends of the threads of candidates, one row each.

    Attributes:
        turns: (candidates, PATH) the positions of the last turns of the thread, the candidate first; -1 where
            the thread is shorter.
        last: (candidates,) the positions of the candidates.
        inside: (candidates, PATH) whether `turns` is a position.
        weight: (candidates, PATH) the weights of the turns, whose sum is 1 for each candidate.
        below: Positions of turns that continue a turn, where one of both is a candidate.
        above: Positions of the turns that the turns of `below` continue.
    """

    turns: Places
    last: Places
    inside: NDArray[np.bool_]
    weight: Table
    below: Places
    above: Places

    @classmethod
    def of(cls, previous: Places, positions: Places) -> ThreadEnds:
        """The threads of the candidates at some positions."""
        above = np.append(previous, -1)  # The last item is the missing parent of roots.
        turns = np.empty((len(positions), PATH), np.intp)
        turns[:, 0] = positions
        for step in range(1, PATH):
            turns[:, step] = above[turns[:, step - 1]]
        inside = turns >= 0
        decay = inside * _DECAY
        candidate = np.zeros(len(above), bool)
        candidate[positions] = True
        (below,) = ((previous >= 0) & (candidate[:-1] | candidate[previous])).nonzero()
        return cls(turns, positions, inside, decay / decay.sum(1, keepdims=True), below, previous[below])


def _links(turn_ends: Sequence[TurnEnd]) -> tuple[Places, Places, Mapping[int | None, int]]:
    """`Tree.previous`, `Tree.openings`, and the position of each id."""
    ids = list(map(_ID, turn_ends))
    for latest, id_ in pairwise([0, *ids]):
        if id_ <= latest:
            raise InputError(f"turn ends come oldest first, but {id_!r} follows {latest!r}; sort them by id")
    places: dict[int | None, int] = dict(zip(ids, range(len(ids)), strict=True))
    previous = [-1 if turn.previous is None else places.get(turn.previous, len(places)) for turn in turn_ends]
    if len(places) in previous:
        turn = turn_ends[previous.index(len(places))]
        raise InputError(
            f"turn end {turn.id!r} continues {turn.previous!r}, which is not a turn end; "
            "pass the turn ends of the whole conversation"
        )
    openings = list(range(len(previous)))
    order: Iterable[int] = range(len(previous))
    if any(map(gt, previous, order)):
        order = parents_first(dict(enumerate(previous)))  # `place` has put a turn below a later turn.
    for place in order:
        if previous[place] >= 0:
            openings[place] = openings[previous[place]]
    return np.array(previous, np.intp), np.array(openings, np.intp), places


def _probabilities(
    turn_ends: Sequence[TurnEnd], previous: Places, places: Mapping[int | None, int]
) -> tuple[Table, Table, Tracks]:
    """`Tree.expected_children`, `Tree.placed` and `Tree.tracks`."""
    children, placed = [0.0] * len(turn_ends), [1.0] * len(turn_ends)
    tracks: Tracks = []
    for place, (turn, before) in enumerate(zip(turn_ends, previous.tolist(), strict=True)):
        tracks.append(track := [])
        for parent, chance in turn.chances or (((turn.previous, 1.0),) if before >= 0 else ()):
            if parent == turn.previous:
                placed[place] = chance
            if (at := places.get(parent)) is not None:
                track.append((at, chance))
                children[at] += chance
    return np.array(children), np.array(placed), tracks


def habits(tracks: Tracks) -> tuple[float, float]:
    """The share of the latest turns that continue the turn before, and the share that open a thread."""
    stays, opens, weight = USUAL_TURNS * USUALLY_STAYS, USUAL_TURNS * USUALLY_OPENS, USUAL_TURNS
    for place in range(max(1, len(tracks) - LATELY), len(tracks)):
        weight += 1.0
        opens += 1.0
        for at, chance in tracks[place]:
            opens -= chance
            if at == place - 1:
                stays += chance
    return stays / weight, opens / weight


def along(values: Table | Floats, tracks: Tracks) -> Table:
    """The value of each turn, averaged with the values of the turns that it may continue."""
    averaged: list[float] = values.tolist()
    for place, track in enumerate(tracks):
        if track:
            sure = mean = 0.0
            for at, chance in track:
                sure += chance
                mean += chance * averaged[at]
            averaged[place] = (1.0 - PATH_DECAY * sure) * averaged[place] + PATH_DECAY * mean
    return np.array(averaged)


def by_place(tree: Tree, paths: ThreadEnds) -> dict[str, Table | Floats]:
    """The place of the candidates in the tree and in time, and the probability of the place."""
    previous, ended, positions = tree.previous, tree.ended, paths.last
    count = len(previous)
    followers = np.flatnonzero(previous >= 0)
    threads_since = ended[::-1].cumsum()[::-1] - ended
    children = np.bincount(previous[followers], minlength=count)
    newest = np.full(count, count)
    newest[previous[followers]] = followers
    return {
        "latest": (positions == count - 1).astype(float),
        "second": (ended[positions] & (threads_since[positions] == 1)).astype(float),
        "turns_since": np.log1p(count - 1 - positions),
        "threads_since": np.log1p(threads_since[positions]),
        "depth": np.log1p(paths.inside.sum(1) - 1),
        "continued": 1.0 - ended[positions],
        "continued_softly": np.minimum(tree.expected_children[positions], MOST_CHILDREN),
        "children": np.minimum(children[positions], MOST_CHILDREN),
        "child_since": np.log1p(count - newest[positions]),
        "placed": tree.placed[positions],
        "path_placed": np.where(paths.inside, tree.placed[paths.turns], 1.0).prod(1),
    }


def best_after(values: Table, previous: Places) -> Table:
    """The greatest value among the turns that continue each turn; 0 without such turns."""
    best = np.full(len(previous), LEAST)
    followers = np.flatnonzero(previous >= 0)
    np.maximum.at(best, previous[followers], values[followers])
    return np.where(best > LEAST, best, 0.0)


def fitted(count: int, paths: ThreadEnds, fits: Floats) -> tuple[Floats, Floats]:
    """For each turn its fit to its predecessor, and the best fit of the turns that follow it.

    `fits` are the fits of the turns `paths.below` to their predecessors; others are not computed.
    """
    own, best = np.zeros(count, np.float32), np.full(count, LEAST, np.float32)
    own[paths.below] = fits
    np.maximum.at(best, paths.above, fits)
    return own, best


def children(fit: str, lead: str, follows: Floats, best: Floats) -> dict[str, Floats]:
    """Two columns: the best fit of the turns that continue a candidate, and the message's fit less that fit.

    Both are 0 if no turn continues the candidate.
    """
    continued = best > LEAST
    return {fit: np.where(continued, best, 0.0), lead: np.where(continued, follows - best, 0.0)}


def best_before(values: Table | Floats, inside: NDArray[np.bool_]) -> Table | Floats:
    """The greatest value among the turns of each thread before its last turn; 0 without such turns."""
    best = np.where(inside[:, 1:], values[:, 1:], LEAST).max(1)
    return np.where(inside[:, 1], best, 0.0)
