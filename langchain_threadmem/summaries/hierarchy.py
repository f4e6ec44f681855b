"""Hierarchies of summaries: units are summarised in groups, level by level, until one summary is left.

A group and the summaries above it are summarised again only if a unit of the group changed or if more units
join the group (`summaries.grouping`). `Condenser` stores no summary; it collects the changes in `created` and
`removed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.summaries.grouping import Limits, group
from langchain_threadmem.tree.node import MessageSummary


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
