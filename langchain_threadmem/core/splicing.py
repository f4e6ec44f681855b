"""Splicing: the order of a tree's nodes, and what it looks like once some of them are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


def spliced(parents: Mapping[int, int | None], gone: Collection[int]) -> dict[int, int | None]:
    """The nodes that hung under one that is gone, and what they hang under now: the nearest that is left.

    Args:
        parents: The parent of each node, of those that are gone too.
        gone: The nodes that go.

    Example:
        >>> spliced({1: None, 2: 1, 3: 2, 4: 3}, {2, 3})
        {4: 1}
    """
    return {
        node: left_of(parent, parents, gone)
        for node, parent in parents.items()
        if node not in gone and parent in gone
    }


def left_of(node: int | None, parents: Mapping[int, int | None], gone: Collection[int]) -> int | None:
    """A node, or the nearest above it that is left; `None` if none is."""
    while node is not None and node in gone:
        node = parents.get(node)
    return node


def parents_first(parents: Mapping[int, int | None]) -> list[int]:
    """Nodes in their order, but each parent before its children. Linear.

    Args:
        parents: The parent of each node; one that is not among them counts as none.

    Example:
        >>> parents_first({1: None, 2: 4, 3: 2, 4: 1})
        [1, 4, 2, 3]
    """
    order: dict[int, None] = {}
    for node in parents:
        chain: list[int] = []
        above: int | None = node
        while above is not None and above in parents and above not in order and len(chain) <= len(parents):
            chain.append(above)
            above = parents[above]
        order.update(dict.fromkeys(reversed(chain)))
    return list(order)


def circular(parents: Mapping[int, int | None]) -> list[int]:
    """The nodes that descend from themselves, or from such a node. Linear but for those.

    Example:
        >>> circular({1: None, 2: 1, 3: 4, 4: 3})
        [3, 4]
    """
    reached: set[int | None] = {None}
    lost = []
    for node in parents_first(parents):
        if parents[node] in reached or parents[node] not in parents:
            reached.add(node)
        else:
            lost.append(node)
    return sorted(lost)


def with_results(rows: Iterable[tuple[int, int | None, str]], chosen: Collection[int]) -> set[int]:
    """Chosen nodes and the tools' results right below them: a call and its results go together.

    Args:
        rows: Number, parent and role of each node, in the order of their numbers.
        chosen: Numbers of nodes.

    Example:
        >>> sorted(with_results([(1, None, "human"), (2, 1, "ai"), (3, 2, "tool"), (4, 3, "ai")], {1, 2}))
        [1, 2, 3]
    """
    found = set(chosen)
    for number, parent, role in rows:
        if role == "tool" and parent in found:
            found.add(number)
    return found
