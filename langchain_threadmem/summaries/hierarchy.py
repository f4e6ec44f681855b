"""Levels of a hierarchy: units are summarised in groups until one summary is left.

A group is summarised anew only if a unit in it changed or if it takes in more units, and so are the summaries
above it (`summaries.grouping`). Nothing is stored here: the changes are in `Condenser.made` and
`Condenser.gone` in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.summaries.grouping import Limits, group
from langchain_threadmem.tree.node import MessageSummary


@dataclass(slots=True, eq=False)
class Piece:
    """A unit that goes into a summary: a message, a stored summary, or one that was just written.

    Attributes:
        place: Its order among its siblings.
        messages: How many messages it covers.
        started: The time it covers, in seconds since 1970.
        text: The text that a summarizer is shown; `None` until it is read.
        tokens: Of its text; 0 until it is read.
        key: Of its node; 0 until it is stored.
        parent: Key of the stored summary above it, in the same hierarchy.
        several: Of a stored summary: whether it covers more than one unit.
        stale: Of a stored summary: whether it must be written anew.
        children: Of a summary that was just written: the units that it was made from.
        replaces: Of one that was just written: the stored one whose place it takes.
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
"""The replacements of stored units, by their keys; `None` for a unit that is gone."""
Write = Callable[[Sequence[str], str], Flow[MessageSummary]]
"""Summarises texts, given the summary of the texts before them."""
Below = Callable[[Sequence[Piece]], Flow[list[Piece]]]
"""Reads the units that stored summaries were made from, in order."""
Read = Callable[[Sequence[Piece]], Flow[None]]
"""Fills in the texts of stored pieces."""


class Condenser:
    """Builds hierarchies of summaries, several in one run.

    Args:
        write: Summarises one group.
        below: Reads the units that stored summaries were made from.
        read: Reads texts.
        limits: How much a group may hold.
    """

    def __init__(self, write: Write, below: Below, read: Read, limits: Limits) -> None:
        self._write = write
        self._below = below
        self._read = read
        self._limits = limits
        self.made: list[Piece] = []
        """Written summaries, lower levels first."""
        self.gone: list[Piece] = []
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
        """Bring one hierarchy up to date.

        Args:
            levels: The stored summaries of the hierarchy by level, in order.
            new: The units that no summary covers yet, in order.
            thread: The thread that the summaries are of.
            changed: The replacements of stored units that the summaries cover.
            touched: The keys of the summaries that cover a changed unit.

        Returns:
            The root: a stored summary or a new one; `None` if there is nothing to summarise.
        """
        level, changed = 1, changed or {}
        while True:
            stored = list(levels.get(level, ()))
            units, after = yield from self._level(_Level(level, thread), stored, new, changed, touched)
            if len(units) <= 1:
                self.gone += [piece for above in levels for piece in levels[above] if above > level]
                return units[0] if units else None
            touched = {piece.parent for piece in stored if piece.key in after}
            changed = after
            new = [unit for unit in units if unit.parent is None]
            level += 1

    def _level(
        self,
        at: _Level,
        stored: Sequence[Piece],
        new: Sequence[Piece],
        changed: Changes,
        touched: Collection[int | None],
    ) -> Flow[tuple[list[Piece], Changes]]:
        """The current summaries of one level, and the replacements of the stored summaries that changed."""
        units: list[Piece] = []
        after: Changes = {}
        if stored and not any(piece.several for piece in stored) and (new or len(stored) > 1):
            # As many groups as units: this level would never end.
            new = [*(yield from self._children(stored, changed)), *new]
            self.gone += stored
            after |= dict.fromkeys(piece.key for piece in stored)
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
                units.append((yield from self._summary(at, children, units, piece)))
                after[piece.key] = units[-1]
            else:
                self.gone.append(piece)
                after[piece.key] = None
        for size in sizes:
            units.append((yield from self._summary(at, new[joined : joined + size], units, None)))
            joined += size
        return units, after

    def _children(self, stored: Sequence[Piece], changed: Changes) -> Flow[list[Piece]]:
        found = yield from self._below(stored)
        current = [changed.get(unit.key, unit) for unit in found]
        return [unit for unit in current if unit is not None]

    def _summary(
        self, at: _Level, children: Sequence[Piece], before: Sequence[Piece], replaces: Piece | None
    ) -> Flow[Piece]:
        previous = before[-1:]
        yield from self._read([*children, *previous])
        written = yield from self._write(
            [unit.text or "" for unit in children], previous[0].text or "" if previous else ""
        )
        piece = Piece(
            place=children[0].place,
            messages=sum(unit.messages for unit in children),
            started=min(unit.started for unit in children),
            ended=max(unit.ended for unit in children),
            text=written.summary,
            tokens=self._limits.count(written.summary),
            title=written.title,
            level=at.level,
            thread=at.thread,
            parent=replaces.parent if replaces else None,
            children=children,
            replaces=replaces,
        )
        self.made.append(piece)
        return piece


@dataclass(slots=True, frozen=True)
class _Level:
    level: int
    thread: int
