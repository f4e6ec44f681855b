"""Search in long-term memory: units that fit a text or a vector and pass a filter.

A text is looked for as recall looks for it, among messages and summaries of all conversations
(`recall.search`); a vector alone by cosines alone. Where a filter leaves few units, all of them are scored.
Else words and vectors bring candidates; what is not in memory any more, or not wanted, is left out, and more
are asked for until there are enough.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.filters.conditions import Condition
from langchain_threadmem.index import lexicon
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index.catch_up import catch_up_owner
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.vector_index import ExactIndex, VectorIndex
from langchain_threadmem.long_term.short_term import Range
from langchain_threadmem.recall.candidates import by_words, nearest
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.search import scored
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.units import memory
from langchain_threadmem.units.queries import read_units
from langchain_threadmem.units.unit import MemoryUnit

FEWEST_CANDIDATES = 64
GROWTH = 8
"""By how much more is asked for where a filter left too little."""
FEW = 2000
"""How many units a filter may leave so that all of them are compared."""
NO_VECTOR = np.empty(0, np.float32)


class Hit(NamedTuple):
    """A unit of long-term memory that fits, by the key of its node."""

    key: int
    unit: MemoryUnit


class _Ranked(NamedTuple):
    """Candidates in their order.

    Attributes:
        keys: The best first.
        cosines: As far as they are known.
        whole: Whether to ask for more would bring none that counts.
    """

    keys: Sequence[int]
    cosines: Mapping[int, float]
    whole: bool


class _Sought(NamedTuple):
    """What is searched for, and where.

    Attributes:
        text: A question; `None` for meaning alone.
        vector: A unit vector; of no dimensions for words alone.
        low: The lowest cosine that counts.
        only: The only units that a filter may leave, if these are few.
        vectors: The index over all vectors; `None` if SQL serves.
    """

    text: str | None
    vector: NDArray[np.float32]
    low: float | None
    only: Sequence[int] | None
    vectors: VectorIndex | ExactIndex | None


def search(
    runtime: Runtime,
    vector: NDArray[np.float32] | None,
    text: str | None,
    most: int,
    within: Range,
    wanted: Condition | None,
    known: Collection[int] = (),
) -> Flow[list[Hit]]:
    """The units that fit best, the best first.

    Args:
        runtime: Whose memory.
        vector: A unit vector to compare meanings with; `None` for words alone.
        text: What is asked; `None` for meaning alone.
        most: How many at most.
        within: The lowest and highest cosine that counts; of no effect without a vector.
        wanted: Which units count at all.
        known: Keys of units that are not to be found again.
    """
    index = yield from catch_up_owner(runtime)
    only = None
    if wanted is not None:
        only = yield from Sql(lambda conn: memory.matching(conn, runtime.owner, wanted, FEW))
    sought = _Sought(text, NO_VECTOR if vector is None else vector, within[0], only, index)
    rank = _by_vector if text is None else _by_text
    count = max(FEWEST_CANDIDATES, 4 * most)
    while True:
        ranked = yield from rank(runtime, sought, count, filtered=wanted is not None)
        keys = [key for key in ranked.keys if key not in known]
        if vector is not None:
            keys = [key for key in keys if _inside(ranked.cosines.get(key), within)]
        hits = yield from Sql(lambda conn: _units(conn, runtime, keys, wanted, most))  # noqa: B023 - driven before the next turn
        if len(hits) >= most or ranked.whole:
            return hits
        count *= GROWTH


def _by_text(runtime: Runtime, sought: _Sought, count: int, *, filtered: bool) -> Flow[_Ranked]:
    """What fits a text, ranked as recall ranks it."""
    text, vector, only = sought.text or "", sought.vector, sought.only
    # Without a filter, what is not among the newest that hold a word would not come first either.
    each = max(lexicon.MOST_PER_WORD, count) if filtered else lexicon.MOST_PER_WORD
    now = time.time()
    suggested = yield from Sql(lambda conn: by_words(conn, runtime, None, text, count, now, each))
    near: dict[int, float] | None = {} if vector.size else None
    if vector.size and only is None:
        near = yield from nearest(runtime, sought.vectors, vector, count)
    everything = RecallOptions(len(only or ()) + 2 * count, "owner")
    found = yield from scored(runtime, None, suggested, vector, near, everything, now, only, singles=filtered)
    cosines = {hit.key: hit.why.similarity for hit in found.hits if hit.why.similarity is not None}
    fewer = len(suggested.keys) < count and not (filtered and suggested.cut)
    return _Ranked(
        [hit.key for hit in found.hits],
        cosines,
        only is not None or (fewer and _past(near, sought.low, count)),
    )


def _by_vector(runtime: Runtime, sought: _Sought, count: int, *, filtered: bool) -> Flow[_Ranked]:
    """What is near a vector, the nearest first."""
    only = sought.only
    if only is not None:
        vectors = yield from Sql(lambda conn: embeddings.by_keys(conn, runtime.get(Indexes).model, only))
        near = {key: float(vector @ sought.vector) for key, vector in vectors.items()}
    else:
        near = yield from nearest(runtime, sought.vectors, sought.vector, count)
    ordered = sorted(near, key=lambda key: -near[key])
    return _Ranked(ordered, near, only is not None or _past(near, sought.low, count))


def _past(near: Mapping[int, float] | None, low: float | None, count: int) -> bool:
    """Whether nothing that is less near would count."""
    return not near or len(near) < count or (low is not None and min(near.values()) < low)


def _inside(cosine: float | None, within: Range) -> bool:
    low, high = within
    if cosine is None:
        return low is None and high is None
    return (low is None or cosine >= low) and (high is None or cosine <= high)


def _units(
    conn: Conn, runtime: Runtime, keys: Sequence[int], wanted: Condition | None, most: int
) -> list[Hit]:
    """The first of some units that are in memory and wanted; no more are read than it takes."""
    owner = runtime.owner
    there = memory.present(conn, owner, keys, wanted)
    ranked = [key for key in keys if key in there]
    hits: list[Hit] = []
    at_once = max(FEWEST_CANDIDATES, most) if wanted is not None else most
    for start in range(0, len(ranked), at_once):
        part = ranked[start : start + at_once]
        units = zip(part, read_units(conn, owner, part), strict=True)
        hits += [Hit(key, unit) for key, unit in units if wanted is None or wanted.holds(unit)]
        if len(hits) >= most:
            break
    return hits[:most]
