"""Candidates by the terms in their neighbourhood, from posting lists alone.

A posting list contains the keys of the messages that contain a term. Keys of a segment that differ by at
most `REACH` are neighbours. The lists are merged into a line of keys, in which longer gaps are shortened.
The value of a key is the weight of the terms in its message and in the neighbours, in the proportion of
`recall.scoring`. The message itself may contain no term, such as the answer to a question between people.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Keys
from langchain_threadmem.recall.postings import REACH, Doubles
from langchain_threadmem.recall.weights import PEOPLE
from langchain_threadmem.storage.schema import POSITION_BITS

FINE = 1 << 18
"""The sum of the integer weights of all terms of a question."""
OWN = (REACH + 1) * PEOPLE["own"][1] / PEOPLE["window"][1]
"""The additional weight of a term in the message itself; a term `REACH` messages away has the weight 1."""


def likely_keys(lists: Sequence[Keys], weights: Sequence[float], most: int) -> tuple[Keys, Doubles]:
    """The keys with the highest values, in no order, with the lexical scores of their neighbourhoods.

    Messages of different segments are not neighbours.

    Args:
        lists: For each term, the keys of the messages that contain it.
        weights: The weight of each term.
        most: The maximum number of keys.

    Example:
        >>> keys, scores = likely_keys([np.array([40, 41]), np.array([70])], [1.0, 1.0], 2)
        >>> sorted(keys.tolist()), scores.round(2).tolist()
        ([40, 41], [0.94, 0.94])
    """
    keys = np.concatenate(lists) if lists else np.empty(0, np.int64)
    total = sum(weights)
    if not len(keys) or not total:
        return np.empty(0, np.int64), np.empty(0)
    order = np.argsort(keys)
    keys = keys[order]
    weight_of = np.repeat([round(FINE * weight / total) for weight in weights], [*map(len, lists)])[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    with_term, own_weight = keys[first], np.add.reduceat(weight_of, first)
    places = (
        np.cumsum(np.minimum(np.diff(with_term, prepend=with_term[0] - 1), 2 * REACH + 1)) + 2 * REACH + 1
    )
    line = np.zeros(int(places[-1]) + 2 * (REACH + 1), np.int32)
    line[places] = own_weight
    windows = _windows(line)
    places -= REACH + 2
    value = windows.copy()
    value[places] += (OWN * own_weight).astype(np.int32)
    # Most places contain no term: places below the best `most` places with a term need not be ranked.
    least = np.partition(value[places], -most)[-most] if len(places) > most else 1
    best = np.flatnonzero(value >= least)
    if len(best) > most:
        best = best[np.argpartition(value[best], -most)[-most:]]
    # A place represents the key at the same distance from the nearest key with a term.
    before = np.clip(np.searchsorted(places, best, "right") - 1, 0, None)
    after = np.clip(before + 1, None, len(places) - 1)
    nearer = np.where(np.abs(places[after] - best) < np.abs(places[before] - best), after, before)
    candidates = with_term[nearer] + (best - places[nearer])
    inside = candidates >> POSITION_BITS == with_term[nearer] >> POSITION_BITS
    return candidates[inside], windows[best[inside]] / (FINE * (REACH + 1))


def _windows(line: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sums of values around each place from `REACH + 2` on, weighted by a triangle of height `REACH + 1`.
    A triangle is the convolution of two boxes, and a box is the difference of two running sums, which are
    exact for integers. This is several times faster than `np.convolve`.
    """
    for _ in range(2):
        running = np.cumsum(line, dtype=np.int32)
        line = running[REACH + 1 :] - running[: -REACH - 1]
    return line
