"""What all benchmarks share: fair timing, and one table.

Machines are noisy, so contestants take turns within each round, a figure is the median over rounds, and a
ratio is the median of the ratios within rounds: what slows a round down slows both sides of its ratio.
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
        what: What was measured, and of whom.
        figure: The measured value, with its unit.
        beside: How it compares, and with whom.
        bar: What it is to be, if there is a bar.
        holds: Whether it is; `None` without a bar.
    """

    what: str
    figure: str
    beside: str = ""
    bar: str = ""
    holds: bool | None = None


def rounds(contestants: Mapping[str, Callable[[], object]], repeats: int, operations: int = 1) -> Times:
    """Time contestants in turns.

    Args:
        contestants: What to call, by name; each call does `operations` operations.
        repeats: How many rounds; one more goes before, uncounted.
        operations: By how much to divide the time of a call.
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
    """How many times as long as its peer, by the median over rounds."""
    return median(one / other for one, other in zip(times[mine], times[peer], strict=True))


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def against(
    what: str, times: Times, mine: str, peer: str, *, most: float | None = None, figure: str | None = None
) -> Line:
    """A line for `mine`, its time a multiple of a peer's, which is to be at most `most`."""
    times_as_long = ratio(times, mine, peer)
    return Line(
        what,
        figure or duration(median(times[mine])),
        f"{times_as_long:.2f} × {peer} ({duration(median(times[peer]))})",
        "" if most is None else f"≤ {most:g} ×",
        None if most is None else times_as_long <= most,
    )


def within(what: str, seconds: float, *, most: float, beside: str = "") -> Line:
    """A line for a time that is to be at most `most` seconds."""
    return Line(what, duration(seconds), beside, f"≤ {duration(most)}", seconds <= most)


def beside(times: Times, mine: str) -> str:
    """What all others took in the same rounds, and how `mine` compares."""
    return "; ".join(
        f"{ratio(times, mine, name):.2g} × {name} ({duration(median(times[name]))})"
        for name in times
        if name != mine
    )


def table(lines: Iterable[Line]) -> str:
    """Lines as a Markdown table, aligned for reading as text."""
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
    """When and on what the figures were measured."""
    today = datetime.now(UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{today}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {cores} cores"


def show(lines: Iterable[Line]) -> None:
    """Print the table, and when and on what it was measured."""
    print(f"{machine()}\n\n{table(lines)}")


def command(measure: Callable[..., Iterable[Line]], description: str | None, full: str | None) -> None:
    """Run a benchmark as a command.

    Args:
        measure: Gives the lines of the table.
        description: The docstring of the benchmark, whose first line describes the command.
        full: What the option `--full` adds; `None` for a command without it.
    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    if full is not None:
        parser.add_argument("--full", action="store_true", help=full)
    show(measure(**vars(parser.parse_args())))
