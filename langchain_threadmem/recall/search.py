"""The search engine: sources give candidates with scores, which are filtered, ranked and cut here.

A source is one place to look: the messages and summaries of a conversation or of an owner (`recall.sources`),
long-term memory, short-term memory, an external collection (`long_term.sources`). It scores its candidates
itself; whether a candidate counts, which comes first and how many there are is decided here alone.
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
"""The lowest and the highest cosine that counts; `None` for no bound."""
ANY: Range = (None, None)
READ_AT_ONCE = 64
"""How many candidates are read first to see whether they meet a condition; then twice as many each time."""
GROWTH = 8
"""By how much more candidates are asked for where too few of them count."""


class Hit(NamedTuple, Generic[K]):
    """A message, a summary or an external text that fits a query.

    Attributes:
        key: The key of its node; of an external text its collection and its id.
        score: How well it fits, the higher the better.
        why: The reason.
        rank: 0 for a message, 1 and 2 for summaries.
    """

    key: K
    score: float
    why: Why
    rank: int = 0


class Candidates(NamedTuple, Generic[K]):
    """The candidates of a source.

    Attributes:
        hits: The candidates, in any order.
        complete: Whether asking for more would bring none that counts.
    """

    hits: Sequence[Hit[K]]
    complete: bool


class Source(Protocol[K, T_co]):
    """One place to search."""

    def candidates(self, most: int, growth: int) -> Flow[Candidates[K]]:
        """The candidates that fit best.

        Args:
            most: How many hits are asked for.
            growth: How many times as many candidates as at first are looked at.
        """

    def read(self, hits: Sequence[Hit[K]]) -> Flow[Mapping[K, T_co]]:
        """The values that hits stand for, by their keys; hits that are gone are left out."""


def search(
    source: Source[K, T],
    most: int,
    condition: Condition | None = None,
    within: Range = ANY,
    excluded: Collection[K] = (),
) -> Flow[list[tuple[Hit[K], T]]]:
    """The hits of a source that count, the best first, each with the value that it stands for.

    Args:
        source: Where to search.
        most: How many hits at most.
        condition: The condition that values must meet.
        within: The lowest and the highest cosine that counts; a hit without a cosine counts where there is no
            bound.
        excluded: Keys of hits that do not count.
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
        found = yield from _read(source, hits, most, condition)
        if len(found) >= most or candidates.complete:
            return found
        growth *= GROWTH


def _read(
    source: Source[K, T], hits: Sequence[Hit[K]], most: int, condition: Condition | None
) -> Flow[list[tuple[Hit[K], T]]]:
    """The first hits that are there and meet a condition; not many more are read than that takes."""
    found: list[tuple[Hit[K], T]] = []
    start, size = 0, most if condition is None else max(most, READ_AT_ONCE)
    while start < len(hits) and len(found) < most:
        part = hits[start : start + size]
        values = yield from source.read(part)
        found += [
            (hit, values[hit.key])
            for hit in part
            if hit.key in values and (condition is None or condition.holds(values[hit.key]))
        ]
        start, size = start + size, 2 * size
    return found[:most]


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
