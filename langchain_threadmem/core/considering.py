"""Which turns a choice looks at: a number that does not grow with the conversation.

People mostly go on with something recent. But who comes back to a matter after months says what it is about.
So of the older threads those are looked at in which something lies near to the message: their last turns, and
the one that opened them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.candidates import Places, paths
from langchain_threadmem.core.nodes import TurnEnd

CONSIDERED = 256
"""A conversation of so many turns is looked at whole."""
NEWEST = 128
"""How many turns are looked at of a longer one, whatever they are about."""
NEAR_TURNS, NEAR_THREADS = 12, 6
"""How many older ones are looked at because they are near to the message, and the ends of how many threads.
"""


def considered(turn_ends: Sequence[TurnEnd], near: Sequence[int] = ()) -> list[TurnEnd]:
    """The turn ends that a choice looks at, oldest first.

    Args:
        turn_ends: Turn ends of the whole conversation, oldest first.
        near: Ids of the nodes among those before the newest turns that are near to the message, the nearest
            first.

    Returns:
        Those of a short conversation, or some 130 to 250. One that continues a turn which is not among them
        continues the nearest one above it that is; without such a turn it counts as a root.

    Cost: 0.1 ms; 0.5 ms with older turns in a conversation of 2,000.

    Example:
        >>> turns = [TurnEnd(2 * n, None, "Hello", "Hi!") for n in range(1, 1000)]
        >>> len(considered(turns)), len(considered(turns, [8, 6])), considered(turns, [8, 6])[0].id
        (128, 130, 6)
    """
    whole = len(turn_ends) <= CONSIDERED
    if not (whole or near):
        turn_ends = turn_ends[-NEWEST:]
    ids = np.fromiter((end.id for end in turn_ends), np.int64, len(turn_ends))
    previous, places = _previous(ids, turn_ends), np.arange(len(ids))
    if whole or not near:
        return _linked(turn_ends, previous, places >= 0)
    kept = places >= len(ids) - NEWEST
    turns = list(dict.fromkeys(np.searchsorted(ids, near).tolist()))[:NEAR_TURNS]
    leaves = list(dict.fromkeys(_leaves(previous)[turns].tolist()))[:NEAR_THREADS]
    path = paths(previous, np.array(leaves, np.intp))
    kept[turns] = True
    kept[path[path >= 0]] = True
    kept[_followed(np.where(previous < 0, places, previous))[kept]] = True  # what opened their threads
    return _linked(turn_ends, previous, kept)


def _previous(ids: NDArray[np.int64], turn_ends: Sequence[TurnEnd]) -> Places:
    """Where the turn stands that each continues; -1 for none that is there."""
    wanted = np.fromiter((end.previous or 0 for end in turn_ends), np.int64, len(turn_ends))
    at = np.searchsorted(ids, wanted).clip(max=len(ids) - 1)
    found: Places = np.where(ids[at] == wanted, at, -1)
    return found


def _leaves(previous: Places) -> Places:
    """Where the thread ends that each turn is part of: the one continued latest, where it branches."""
    following = np.arange(len(previous))
    continued = previous >= 0
    following[previous[continued]] = np.flatnonzero(continued)
    return _followed(following)


def _followed(step: Places) -> Places:
    """Where each place leads by steps that are taken until they stay where they are."""
    while True:
        further = step[step]
        if np.array_equal(further, step):
            return step
        step = further


def _linked(turn_ends: Sequence[TurnEnd], previous: Places, kept: NDArray[np.bool_]) -> list[TurnEnd]:
    """Those that are kept, each as the continuation of the nearest one above it that is kept too."""
    above = _followed(np.where(kept | (previous < 0), np.arange(len(previous)), previous))
    # A root that is not kept leads to itself.
    nearest = np.where((previous >= 0) & kept[above[previous]], above[previous], -1).tolist()
    found = []
    for place in np.flatnonzero(kept).tolist():
        end, before = turn_ends[place], nearest[place]
        parent = turn_ends[before].id if before >= 0 else None
        found.append(end if end.previous == parent else replace(end, previous=parent))
    return found
