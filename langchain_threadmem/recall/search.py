"""The search engine, which filters, orders and cuts the scored candidates of sources.

A source searches one set of texts and scores its candidates: the messages and summaries of a conversation or
of an owner (`recall.sources`), long-term memory, short-term memory, an external collection
(`long_term.sources`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.filters.conditions import Condition
from langchain_threadmem.recall.results import Why

K = TypeVar("K", bound=Hashable)
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Range = tuple[float | None, float | None]
"""The lowest and the highest cosine of a hit; `None` for no bound."""
ANY: Range = (None, None)
READ_AT_ONCE = 64
"""The number of candidates that are read first to check a condition; each later batch is twice as large."""
GROWTH = 8
"""The factor on the number of candidates after a search with too few hits."""


class Hit(NamedTuple, Generic[K]):
    """A message, a summary or an external text that matches a query.

    Attributes:
        key: The key of the node; for an external text its collection and id.
        score: The score; higher is better.
        why: The reason for the hit.
        rank: 0 for a message, 1 or 2 for a summary.
    """

    key: K
    score: float
    why: Why
    rank: int = 0


class Candidates(NamedTuple, Generic[K]):
    """The candidates of a source.

    Attributes:
        hits: The candidates, in any order.
        complete: Whether a request for more candidates would find no further hit.
    """

    hits: Sequence[Hit[K]]
    complete: bool


class Source(Protocol[K, T_co]):
    """A searchable set of texts."""

    def candidates(self, most: int, growth: int) -> Flow[Candidates[K]]:
        """The candidates with the highest scores.

        Args:
            most: The number of requested hits.
            growth: The factor on the number of candidates in a first request.
        """

    def read(self, hits: Sequence[Hit[K]]) -> Flow[Mapping[K, T_co]]:
        """The values of hits, by key; hits that no longer exist are omitted."""


def search(
    source: Source[K, T],
    most: int,
    condition: Condition | None = None,
    within: Range = ANY,
    excluded: Collection[K] = (),
) -> Flow[list[tuple[Hit[K], T]]]:
    """The hits of a source that meet all conditions, the best first, each with its value.

    Args:
        source: The source.
        most: The maximum number of hits.
        condition: The condition on the values.
        within: The lowest and the highest cosine; with a bound, only texts with a cosine are hits.
        excluded: The keys that may not be hits.
    """
    growth = 1
    while True:
        candidates = yield from source.candidates(most, growth)
        hits = [
            hit
            for hit in candidates.hits
            if hit.key not in excluded and is_within(hit.why.similarity, within)
        ]
        hits.sort(key=lambda hit: -hit.score)
        results = yield from _read(source, hits, most, condition)
        if len(results) >= most or candidates.complete:
            return results
        growth *= GROWTH


def _read(
    source: Source[K, T], hits: Sequence[Hit[K]], most: int, condition: Condition | None
) -> Flow[list[tuple[Hit[K], T]]]:
    """The first `most` hits that exist and meet a condition, read in batches."""
    results: list[tuple[Hit[K], T]] = []
    start, size = 0, most if condition is None else max(most, READ_AT_ONCE)
    while start < len(hits) and len(results) < most:
        batch = hits[start : start + size]
        values = yield from source.read(batch)
        results += [
            (hit, values[hit.key])
            for hit in batch
            if hit.key in values and (condition is None or condition.holds(values[hit.key]))
        ]
        start, size = start + size, 2 * size
    return results[:most]


def is_within(cosine: float | None, within: Range) -> bool:
    """Whether a cosine lies in a range.

    Example:
        >>> is_within(0.5, (0.4, None)), is_within(None, (0.4, None)), is_within(None, (None, None))
        (True, False, True)
    """
    low, high = within
    if cosine is None:
        return low is None and high is None
    return (low is None or cosine >= low) and (high is None or cosine <= high)
