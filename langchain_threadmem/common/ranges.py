"""Ranges of numbers, each with its first and its last number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""The first and the last number of a range."""
ENDLESS = 1 << 62
"""The last number of a range without an end."""


def joined(spans: Iterable[Range]) -> list[Range]:
    """Sorted ranges, with overlapping and adjacent ranges merged.

    Example:
        >>> joined([(5, 6), (1, 2), (3, 4), (9, 9)])
        [(1, 6), (9, 9)]
    """
    merged: list[Range] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def within(spans: Sequence[Range], number: int) -> bool:
    """Whether a number is in one of several ranges, which are sorted and do not overlap.

    Example:
        >>> within([(1, 2), (5, 6)], 5), within([(1, 2), (5, 6)], 3)
        (True, False)
    """
    index = bisect_right(spans, (number, ENDLESS)) - 1
    return index >= 0 and spans[index][1] >= number
