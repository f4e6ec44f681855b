"""Candidates by their neighbourhood, from posting lists alone.

For each term of a question the lexicon says which messages hold it, by their keys. Keys of a segment that are
at most `REACH` apart are neighbours, so the lists are laid on one line with longer gaps cut, and each place
of that line is a key, which may hold no term itself: among people the turn after a question often holds none.
The value of a place is that of the terms in it and around it, as `recall.scoring` weighs the two by words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.recall.postings import REACH, Floats
from langchain_threadmem.recall.weights import PEOPLE

Keys = NDArray[np.int64]
FINE = 1 << 18
"""Into how many parts the weight of a question's terms is divided, to be summed as integers."""
OWN = (REACH + 1) * PEOPLE["own"][1] / PEOPLE["window"][1]
"""The weight of a term in a message, beside one that is `REACH` messages away."""


def likely_keys(
    lists: Sequence[Keys], weights: Sequence[float], most: int, position_bits: int
) -> tuple[Keys, Floats]:
    """The keys with the highest values, in no order, with the lexical scores of their neighbourhoods.

    Args:
        lists: For each term the keys of messages that hold it.
        weights: The weight of each term.
        most: How many keys at most.
        position_bits: How many of a key's bits are its place in its segment: no neighbour is in another.

    Example:
        >>> keys, scores = likely_keys([np.array([40, 41]), np.array([70])], [1.0, 1.0], 2, 24)
        >>> sorted(keys.tolist()), scores.round(2).tolist()
        ([40, 41], [0.94, 0.94])
    """
    keys = np.concatenate(lists) if lists else np.empty(0, np.int64)
    total = sum(weights)
    if not len(keys) or not total:
        return np.empty(0, np.int64), np.empty(0)
    order = np.argsort(keys)
    keys = keys[order]
    worth = np.repeat([round(FINE * weight / total) for weight in weights], [*map(len, lists)])[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    holding, own = keys[first], np.add.reduceat(worth, first)
    places = np.cumsum(np.minimum(np.diff(holding, prepend=holding[0] - 1), 2 * REACH + 1)) + 2 * REACH + 1
    line = np.zeros(int(places[-1]) + 2 * (REACH + 1), np.int32)
    line[places] = own
    windows = _windows(line)
    places -= REACH + 2
    value = windows.copy()
    value[places] += (OWN * own).astype(np.int32)
    # Most places hold no term: those below the best that hold one need not be ranked.
    least = np.partition(value[places], -most)[-most] if len(places) > most else 1
    best = np.flatnonzero(value >= least)
    if len(best) > most:
        best = best[np.argpartition(value[best], -most)[-most:]]
    # A place of the line stands for the key as far from the nearest one that holds a term.
    before = np.clip(np.searchsorted(places, best, "right") - 1, 0, None)
    after = np.clip(before + 1, None, len(places) - 1)
    nearer = np.where(np.abs(places[after] - best) < np.abs(places[before] - best), after, before)
    found = holding[nearer] + (best - places[nearer])
    inside = found >> position_bits == holding[nearer] >> position_bits
    return found[inside], windows[best[inside]] / (FINE * (REACH + 1))


def _windows(line: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sums of values around each place by a triangle that is `REACH + 1` at its own; the first is that of the
    place `REACH + 2`.

    A triangle is a box over a box, and a box the difference of two running sums, which are exact for
    integers: a fraction of the time that `np.convolve` takes.
    """
    for _ in range(2):
        running = np.cumsum(line, dtype=np.int32)
        line = running[REACH + 1 :] - running[: -REACH - 1]
    return line
