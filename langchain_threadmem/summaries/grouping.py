"""Grouping of units that share a summary.

Units are grouped in order, greedily: the next units join a group up to its limits of units and tokens. The
summaries of the groups are grouped in the same way, level by level, until one summary is left.

Each level has fewer groups than units: if every unit is too large to share a group, pairs are formed.
So the number of levels is at most the number of units, and about log(units) / log(group size) if summaries
are shorter than their texts.

New messages change only the last group, the groups after it and the summaries above these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from langchain_threadmem.tree.graph import parents_first

MAX_GROUP_SIZE = 60
MAX_TOKEN_COUNT = 2000


def most_tokens(text: str) -> int:
    """An upper bound of the tokens of a text in any tokenizer: one for each character, and an end token.

    Example:
        >>> most_tokens("Hello")
        6
    """
    return len(text) + 1


class Limits(NamedTuple):
    """The limits of a group.

    Attributes:
        size: The maximum number of units.
        tokens: The maximum number of tokens of all texts together.
        count: A function that counts the tokens of a text.
    """

    size: int = MAX_GROUP_SIZE
    tokens: int = MAX_TOKEN_COUNT
    count: Callable[[str], int] = most_tokens


def group(tokens: Sequence[int], limits: Limits, begun: Sequence[int] = ()) -> tuple[int, list[int]]:
    """Group units.

    Args:
        tokens: The tokens of each unit, in order.
        begun: The tokens of the units in the last stored group.

    Returns:
        The number of units that join the last stored group, and the sizes of the new groups.

    Example:
        >>> group([6, 6, 6, 6], Limits(size=3, tokens=12))
        (0, [2, 2])
        >>> group([6, 6, 6], Limits(size=3, tokens=100), begun=[6, 6])
        (1, [2])
        >>> group([50, 50, 50], Limits(size=3, tokens=12))
        (0, [2, 1])
    """
    joined = _fit(tokens, 0, limits, len(begun), sum(begun)) if begun else 0
    start, sizes = joined, []
    while start < len(tokens):
        sizes.append(max(_fit(tokens, start, limits), 1))
        start += sizes[-1]
    if len(sizes) > 1 and max(sizes) == 1:
        sizes = [2] * (len(sizes) // 2) + [1] * (len(sizes) % 2)
    return joined, sizes


def _fit(tokens: Sequence[int], start: int, limits: Limits, size: int = 0, total: int = 0) -> int:
    """The number of units from a position on that fit into a group with `size` units and `total` tokens."""
    for count in range(len(tokens) - start):
        total += tokens[start + count]
        if size + count == limits.size or total > limits.tokens:
            return count
    return len(tokens) - start


def calls(tokens: Sequence[int], limits: Limits) -> int:
    """The number of summaries that units need, if the summaries are short.

    Example:
        >>> [calls([1] * units, Limits(size=3)) for units in (1, 7, 10)]
        [1, 4, 7]
    """
    groups = total = len(group(tokens, limits)[1])
    while groups > 1:
        groups = -(-groups // limits.size)
        total += groups
    return total


def own_threads(nodes: Sequence[tuple[int, int | None, bool]]) -> dict[int, int]:
    """The thread that each node belongs to; the oldest thread of a shared node.

    Args:
        nodes: The number, the parent's number and the liveness of every node, in any order.

    Returns:
        For each node that is live or has live descendants, the first node of its thread: a root, or a node
        whose parent is continued by an older thread.

    Example:
        >>> own_threads([(1, None, True), (2, 1, True), (3, 1, True), (4, None, False)])
        {1: 1, 2: 1, 3: 3}
    """
    states = {node: live for node, _, live in nodes}
    parents = {node: parent for node, parent, _ in sorted(nodes)}
    order = parents_first(parents)
    living: set[int | None] = set()
    for node in reversed(order):
        if states[node] or node in living:
            living |= {node, parents[node]}
    threads: dict[int, int] = {}
    continued: set[int] = set()
    for node in order:
        parent = parents[node]
        if node in living:
            continues = parent is not None and parent not in continued
            threads[node] = threads[parent] if continues else node  # type: ignore[index]
            if parent is not None:
                continued.add(parent)
    return threads
