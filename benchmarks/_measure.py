"""Timing and table output that all benchmarks share.

Timings vary with the load of the machine. The contestants therefore take turns within each round, a figure is
the median over rounds, and a ratio is the median of the ratios within rounds, since load during a round
affects both sides of its ratio.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

Times = dict[str, list[float]]
"""Seconds of one operation, by contestant and round."""


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        what: The measurement and its subject.
        figure: The measured value, with its unit.
        beside: The comparison with peers.
        bar: The target for the value; empty without a target.
        holds: Whether the value meets the target; `None` without a target.
    """

    what: str
    figure: str
    beside: str = ""
    bar: str = ""
    holds: bool | None = None


def rounds(contestants: Mapping[str, Callable[[], object]], repeats: int, operations: int = 1) -> Times:
    """Time contestants in turns.

    Args:
        contestants: The functions to call, by name; each call performs `operations` operations.
        repeats: The number of counted rounds; an uncounted round precedes them.
        operations: The number of operations in a call, by which its time is divided.
    """
    times: Times = {name: [] for name in contestants}
    for round_ in range(repeats + 1):
        for name, call in contestants.items():
            gc.collect()
            begin = time.perf_counter()
            call()
            spent = time.perf_counter() - begin
            if round_:
                times[name].append(spent / operations)
    return times


def ratio(times: Times, mine: str, peer: str) -> float:
    """The ratio of the times of `mine` and `peer`, as the median over rounds."""
    return median(one / other for one, other in zip(times[mine], times[peer], strict=True))


def duration(seconds: float) -> str:
    """A duration as text, in seconds, milliseconds or microseconds."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def against(
    what: str, times: Times, mine: str, peer: str, *, most: float | None = None, figure: str | None = None
) -> Line:
    """A line with the time of `mine` as a multiple of the time of `peer`; the target is at most `most`."""
    times_as_long = ratio(times, mine, peer)
    return Line(
        what,
        figure or duration(median(times[mine])),
        f"{times_as_long:.2f} × {peer} ({duration(median(times[peer]))})",
        "" if most is None else f"≤ {most:g} ×",
        None if most is None else times_as_long <= most,
    )


def within(what: str, seconds: float, *, most: float, beside: str = "") -> Line:
    """A line with a time whose target is at most `most` seconds."""
    return Line(what, duration(seconds), beside, f"≤ {duration(most)}", seconds <= most)


def beside(times: Times, mine: str) -> str:
    """The times of all other contestants in the same rounds, with the ratio of `mine` to each."""
    return "; ".join(
        f"{ratio(times, mine, name):.2g} × {name} ({duration(median(times[name]))})"
        for name in times
        if name != mine
    )


def table(lines: Iterable[Line]) -> str:
    """Lines as a Markdown table with aligned columns."""
    rows: list[Sequence[str]] = [("measured", "figure", "beside", "bar", "")]
    marks = {True: "holds", False: "**falls short**", None: ""}
    rows += [(line.what, line.figure, line.beside, line.bar, marks[line.holds]) for line in lines]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def machine() -> str:
    """The date, the versions of Python and SQLite, and the number of cores."""
    today = datetime.now(UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{today}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {cores} cores"


def show(lines: Iterable[Line]) -> None:
    """Print the table, below the date and the environment of the measurement."""
    print(f"{machine()}\n\n{table(lines)}")


def command(measure: Callable[..., Iterable[Line]], description: str | None, full: str | None) -> None:
    """Run a benchmark as a command.

    Args:
        measure: Returns the lines of the table.
        description: The docstring of the benchmark, whose first line describes the command.
        full: The help text of the option `--full`; `None` for a command without this option.
    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    if full is not None:
        parser.add_argument("--full", action="store_true", help=full)
    show(measure(**vars(parser.parse_args())))
