"""What the loops count, and the table of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

COLUMNS = ("runs", "kills", "acknowledged", "lost", "half", "false alarms", "raw errors")
"""What is counted. A fault of the disk or of the server counts as a kill."""
BAD = ("lost", "half", "false alarms", "raw errors")
"""The columns that are zero if the memory keeps its promises."""
SHOWN = 5


def rounds(seconds: float) -> Iterator[None]:
    """Rounds until the time is over; at least one."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        yield


@dataclass
class Tally:
    """The counts of a loop on a database, and the first examples of what should not be."""

    loop: str
    database: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    examples: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, column: str, count: int = 1, example: str = "") -> None:
        self.counts[column] += count
        if example and len(self.examples) < SHOWN:
            self.examples.append(f"{column}: {example}")

    @property
    def ok(self) -> bool:
        """Whether something ran, and nothing was lost, half written, reported wrongly or untyped."""
        return self.counts["runs"] > 0 and not any(self.counts[column] for column in BAD)


def table(tallies: Iterable[Tally]) -> str:
    """The counts of all loops as aligned text, with the examples below."""
    found = list(tallies)
    rows = [["loop", "database", *COLUMNS, "kills a minute"]]
    for tally in found:
        rate = 60 * tally.counts["kills"] / tally.seconds if tally.seconds else 0.0
        counts = (str(tally.counts[column]) for column in COLUMNS)
        rows.append([tally.loop, tally.database, *counts, f"{rate:.0f}"])
    totals = (str(sum(tally.counts[column] for tally in found)) for column in COLUMNS)
    rows.append(["all", "", *totals, ""])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [
                *(cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)),
                *(cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    ]
    lines += [f"{tally.loop} on {tally.database}: {example}" for tally in found for example in tally.examples]
    return "\n".join(lines)
