"""Which earlier turns are candidates, and what the tree says about them.

Plain arrays over the turn ends of a conversation, oldest first. The tree is what earlier choices made of it;
`probabilities` and `along` take into account how sure those choices were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.errors import InputError

Table: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]

PATH = 6
"""How many turns of a thread, counted from its end, speak for it."""
PATH_DECAY = 0.7
LATELY = 16
"""How many turns tell how often somebody switches."""
USUAL_TURNS, USUALLY_STAYS, USUALLY_OPENS = 4.0, 0.65, 0.2
"""The first guess of it, and how many turns it weighs."""
RECENT_TURNS = 24
"""How many of the latest turns are candidates even where they have been continued."""
RECENT_THREADS = 12
SIMILAR_THREADS = 8
SIMILAR_TURNS = 4
LEAST_CHANCE = 0.005
"""Candidates that are less likely are not kept with a choice."""


class Tracks(NamedTuple):
    """What turns may have continued: three columns of one table, the turns rising.

    Attributes:
        turns: The place of a turn, once for each that it may have continued.
        parents: The place of that one.
        chances: How likely it is.
    """

    turns: Places
    parents: Places
    chances: Table


def links(turn_ends: Sequence[TurnEnd]) -> tuple[NDArray[np.int64], Places, Places]:
    """The ids of turn ends; where the one stands that each continued (-1: none), and where its thread opened.

    Raises:
        InputError: They do not rise, or one continues what is not there.
    """
    ids = ids_of(turn_ends)
    unordered = np.flatnonzero(np.diff(ids, prepend=0) <= 0)
    if len(unordered):
        turn, latest = int(ids[unordered[0]]), int(ids[unordered[0] - 1]) if unordered[0] else 0
        raise InputError(f"turn ends come oldest first, but {turn!r} follows {latest!r}; sort them by id")
    previous, places = standing(ids, continued(turn_ends)), np.arange(len(ids))
    opens = np.array([end.previous is None for end in turn_ends], bool)
    unknown = np.flatnonzero(~opens & ((previous < 0) | (previous >= places)))
    if len(unknown):
        end = turn_ends[unknown[0]]
        raise InputError(
            f"turn end {end.id!r} continues {end.previous!r}, which is not among the earlier ones; "
            "pass the turn ends of the whole conversation"
        )
    return ids, previous, followed(np.where(opens, places, previous))


def ids_of(turn_ends: Sequence[TurnEnd]) -> NDArray[np.int64]:
    """The ids of turn ends."""
    return np.fromiter([end.id for end in turn_ends], np.int64, len(turn_ends))


def continued(turn_ends: Sequence[TurnEnd]) -> NDArray[np.int64]:
    """The id of the turn end that each continues; 0, which no node has, for a root."""
    return np.fromiter([end.previous or 0 for end in turn_ends], np.int64, len(turn_ends))


def standing(ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> Places:
    """Where each of the wanted stands among ids that rise, of which there is one at least; -1: nowhere."""
    at = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
    found: Places = np.where(ids[at] == wanted, at, -1)
    return found


def followed(step: Places) -> Places:
    """Where each place leads by steps that are taken until they stay where they are."""
    while True:
        further = step[step]
        if np.array_equal(further, step):
            return step
        step = further


def shortlist(ended: NDArray[np.bool_], nearest: Table, *, similar: bool) -> Places:
    """Positions of the candidates, rising: a number that does not grow with the conversation."""
    chosen = np.zeros(len(ended), bool)
    chosen[-RECENT_TURNS:] = True
    ends = np.flatnonzero(ended)
    chosen[ends[-RECENT_THREADS:]] = True
    if similar:
        chosen[ends[np.argsort(-nearest[ends], kind="stable")[:SIMILAR_THREADS]]] = True
        chosen[np.argsort(-nearest, kind="stable")[:SIMILAR_TURNS]] = True
    return np.flatnonzero(chosen)


def paths(previous: Places, positions: Places) -> Places:
    """Find the last turns of each thread, its end first, -1 where it is shorter."""
    path = np.full((len(positions), PATH), -1, np.intp)
    path[:, 0] = positions
    for step in range(1, PATH):
        before = path[:, step - 1]
        path[:, step] = np.where(before >= 0, previous[before], -1)
    return path


def probabilities(
    turn_ends: Sequence[TurnEnd], ids: NDArray[np.int64], previous: Places
) -> tuple[Table, Table, Tracks]:
    """How far each turn has been continued, how surely it was placed, and what it may have continued."""
    count = len(turn_ends)
    sizes = np.fromiter([len(end.chances) for end in turn_ends], np.intp, count)
    likely = [one for end in turn_ends for one in end.chances]
    parents = np.fromiter([parent or 0 for parent, _ in likely], np.int64, len(likely))
    chances = np.fromiter([chance for _, chance in likely], np.float64, len(likely))
    turns = np.repeat(np.arange(count), sizes)
    placed, chosen = np.ones(count), parents == continued(turn_ends)[turns]
    placed[turns[chosen]] = chances[chosen]
    at = standing(ids, parents)
    there, told = at >= 0, np.flatnonzero((sizes == 0) & (previous >= 0))
    turns = np.concatenate([turns[there], told])
    order = np.argsort(turns, kind="stable")
    tracks = Tracks(
        turns[order],
        np.concatenate([at[there], previous[told]])[order],
        np.concatenate([chances[there], np.ones(len(told))])[order],
    )
    softly: Table = np.bincount(tracks.parents, tracks.chances, count).astype(float)
    return softly, placed, tracks


def habits(tracks: Tracks, count: int) -> tuple[float, float]:
    """How often, of the latest of `count` turns, one continued the one before, and how often one opened."""
    first = max(1, count - LATELY)
    late = tracks.turns >= first
    chances, next_to = tracks.chances[late], (tracks.parents == tracks.turns - 1)[late]
    stays = USUAL_TURNS * USUALLY_STAYS + chances[next_to].sum()
    opens = USUAL_TURNS * USUALLY_OPENS + (count - first) - chances.sum()
    weight = USUAL_TURNS + count - first
    return float(stays / weight), float(opens / weight)


def along(values: Table, tracks: Tracks) -> Table:
    """Values of turns, each averaged with those of the turns that it may have continued."""
    sure = np.bincount(tracks.turns, tracks.chances, len(values))
    found: list[float] = ((1.0 - PATH_DECAY * sure) * values).tolist()
    weights = (PATH_DECAY * tracks.chances).tolist()
    # Turns rise: when a turn is reached, those that it may have continued are finished.
    for turn, parent, weight in zip(tracks.turns.tolist(), tracks.parents.tolist(), weights, strict=True):
        found[turn] += weight * found[parent]
    return np.array(found)
