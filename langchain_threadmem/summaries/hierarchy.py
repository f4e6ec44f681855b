"""Hierarchies of summaries: units are summarised in groups, level by level, until one summary is left.

Units are grouped in order, greedily: the next units join a group up to its limits of units and tokens. The
summaries of the groups are grouped in the same way. Each level has fewer groups than units: if every unit is
too large to share a group, pairs are formed. So the number of levels is at most the number of units, and
about log(units) / log(group size) if summaries are shorter than their texts.

A group and the summaries above it are summarised again only if a unit of the group changed or if more units
join the group: new messages change only the last group, the groups after it and the summaries above these.
`Condenser` stores no summary; it collects the changes in `created` and `removed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import MessageSummary

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


@dataclass(slots=True, eq=False)
class Piece:
    """A unit to summarise: a message, a stored summary, or a new summary.

    Attributes:
        place: The order among siblings.
        messages: The number of covered messages.
        started: The time of the first covered message, in seconds since 1970.
        ended: The time of the last covered message, in seconds since 1970.
        text: The text for the summarizer; `None` until it is read.
        tokens: The tokens of the text; 0 until it is read.
        key: The key of the node; 0 until it is stored.
        title: The title of a new summary.
        level: The level of a summary: 1 above the units, then 2, 3 ...
        thread: The thread of the summary; 0 for several threads.
        parent: The key of the stored summary that covers the unit, in the same hierarchy.
        several: Whether a stored summary covers more than one unit.
        stale: Whether a stored summary must be written again.
        children: The units of a new summary.
        replaces: The stored summary that a new summary replaces.
    """

    place: int
    messages: int
    started: float
    ended: float
    text: str | None = None
    tokens: int = 0
    key: int = 0
    title: str = ""
    level: int = 0
    thread: int = 0
    parent: int | None = None
    several: bool = False
    stale: bool = False
    children: Sequence[Piece] = ()
    replaces: Piece | None = None


Changes = dict[int, Piece | None]
"""The replacements of stored units, by key; `None` for a removed unit."""
SummarizeTexts = Callable[[Sequence[str], str], Flow[MessageSummary]]
"""Summarises texts; the second argument is the summary of the texts before them."""
Below = Callable[[Sequence[Piece]], Flow[list[Piece]]]
"""Reads the units of stored summaries, in order."""
ReadPieces = Callable[[Sequence[Piece]], Flow[None]]
"""Reads the texts of stored pieces."""


class Condenser:
    """Builds hierarchies of summaries, several in one run.

    Args:
        write: Summarises a group.
        below: Reads the units of stored summaries.
        read: Reads texts.
    """

    def __init__(self, write: SummarizeTexts, below: Below, read: ReadPieces, limits: Limits) -> None:
        self._write = write
        self._below = below
        self._read = read
        self._limits = limits
        self.created: list[Piece] = []
        """New summaries, lower levels first."""
        self.removed: list[Piece] = []
        """Stored summaries without a replacement."""

    def condense(
        self,
        levels: Mapping[int, Sequence[Piece]],
        new: Sequence[Piece],
        *,
        thread: int = 0,
        changed: Changes | None = None,
        touched: Collection[int | None] = (),
    ) -> Flow[Piece | None]:
        """Update one hierarchy.

        Args:
            levels: The stored summaries of the hierarchy by level, in order.
            new: The units without a summary, in order.
            thread: The thread of the summaries.
            changed: The replacements of stored units.
            touched: The keys of the summaries that cover a changed unit.

        Returns:
            The root, a stored or a new summary; `None` without units.
        """
        level, changed = 1, changed or {}
        while True:
            current = list(levels.get(level, ()))
            units, replacements = yield from self._level(level, thread, current, new, changed, touched)
            if len(units) <= 1:
                self.removed += [piece for above in levels for piece in levels[above] if above > level]
                return units[0] if units else None
            touched = {piece.parent for piece in current if piece.key in replacements}
            changed = replacements
            new = [unit for unit in units if unit.parent is None]
            level += 1

    def _level(
        self,
        level: int,
        thread: int,
        stored: Sequence[Piece],
        new: Sequence[Piece],
        changed: Changes,
        touched: Collection[int | None],
    ) -> Flow[tuple[list[Piece], Changes]]:
        """The current summaries of one level, and the replacements of the stored summaries that changed."""
        units: list[Piece] = []
        replacements: Changes = {}
        if stored and not any(piece.several for piece in stored) and (new or len(stored) > 1):
            # A level with as many groups as units would be followed by the same level.
            new = [*(yield from self._children(stored, changed)), *new]
            self.removed += stored
            replacements |= dict.fromkeys(piece.key for piece in stored)
            stored = []
        yield from self._read(new)
        tokens = [unit.tokens for unit in new]
        joined, sizes = group(tokens, self._limits)
        for piece in stored:
            grows = False
            children: list[Piece] = []
            if piece is stored[-1] and new:
                children = yield from self._children([piece], changed)
                yield from self._read(children)
                joined, sizes = group(tokens, self._limits, [unit.tokens for unit in children])
                grows = joined > 0
            if not (grows or piece.stale or piece.key in touched):
                units.append(piece)
                continue
            children = [
                *(children or (yield from self._children([piece], changed))),
                *(new[:joined] if grows else ()),
            ]
            if children:
                units.append((yield from self._summary(level, thread, children, units, piece)))
                replacements[piece.key] = units[-1]
            else:
                self.removed.append(piece)
                replacements[piece.key] = None
        for size in sizes:
            units.append((yield from self._summary(level, thread, new[joined : joined + size], units)))
            joined += size
        return units, replacements

    def _children(self, summaries: Sequence[Piece], changed: Changes) -> Flow[list[Piece]]:
        units = yield from self._below(summaries)
        current = [changed.get(unit.key, unit) for unit in units]
        return [unit for unit in current if unit is not None]

    def _summary(
        self,
        level: int,
        thread: int,
        children: Sequence[Piece],
        before: Sequence[Piece],
        replaces: Piece | None = None,
    ) -> Flow[Piece]:
        previous = before[-1:]
        yield from self._read([*children, *previous])
        summary = yield from self._write(
            [unit.text or "" for unit in children], previous[0].text or "" if previous else ""
        )
        piece = Piece(
            place=children[0].place,
            messages=sum(unit.messages for unit in children),
            started=min(unit.started for unit in children),
            ended=max(unit.ended for unit in children),
            text=summary.summary,
            tokens=self._limits.count(summary.summary),
            title=summary.title,
            level=level,
            thread=thread,
            parent=replaces.parent if replaces else None,
            children=children,
            replaces=replaces,
        )
        self.created.append(piece)
        return piece
