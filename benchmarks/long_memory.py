"""What summarising a long memory costs: 100,000 messages once, then what 100 new ones add to that.

The summarizer is a stand-in that answers at once, so what is timed is the memory's own work, and what is
counted are the calls that a model would get. The messages are in one session, and in a hundred; texts are
short enough that groups are full by number, 60 messages each.

    python -m benchmarks.long_memory [--full]
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from statistics import median

from langchain_core.messages import BaseMessage

from benchmarks._measure import Line, command, duration
from langchain_threadmem import MemorySystem, MessageSummary

MANY, NEW = 100_000, 100
SIZE = 60


class StandIn:
    """Counts what it is asked, and has an answer ready."""

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, message: BaseMessage) -> MessageSummary:
        self.calls += 1
        return MessageSummary(
            title="A title", summary=f"What was said, in short, for the {self.calls}th time."
        )


def ancestors(units: int) -> int:
    """How many summaries lie above some units that follow each other, at most, among `MANY`."""
    found = 0
    level = MANY + units
    while level > 1:
        units, level = math.ceil((units - 1) / SIZE) + 1, math.ceil(level / SIZE)
        found += min(units, level)
    return found


def texts(first: int, number: int) -> list[str]:
    return [f"message {n}" for n in range(first, first + number)]


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    lines = []
    for sessions in (1, 100):
        with tempfile.TemporaryDirectory() as directory:
            lines += _measure(Path(directory) / "memory.db", sessions, repeats=7 if full else 3)
    return lines


def _measure(path: Path, sessions: int, repeats: int) -> list[Line]:
    writer = StandIn()
    what = f"{MANY:,} messages in {sessions} session{'s' * (sessions > 1)}"
    limits = {"max_group_size": SIZE, "max_token_count": 100_000}
    with MemorySystem(path, embeddings=False, summarizer=writer, settings=limits) as system:
        each = MANY // sessions
        for number in range(sessions):
            system.conversation(f"session {number}").extend(texts(number * each, each))
        begin = time.perf_counter()
        system.summarize_long_term_memory()
        whole, all_calls = time.perf_counter() - begin, writer.calls
        spent, calls = [], []
        for turn in range(repeats):
            system.conversation("session 0").extend(texts(MANY + turn * NEW, NEW))
            writer.calls = 0
            begin = time.perf_counter()
            root = system.summarize_long_term_memory()
            spent.append(time.perf_counter() - begin)
            calls.append(writer.calls)
        assert root is not None
        assert root.metadata["messages"] == MANY + repeats * NEW
    # Above a session there are the long-term memory's own summaries: two levels for a hundred, one for one.
    most = ancestors(NEW) + 2
    return [
        Line(f"summarise {what}, once", duration(whole), f"{all_calls:,} calls"),
        Line(
            f"summarise {NEW} more of {what}",
            duration(median(spent)),
            f"{median(spent) / whole:.1%} of all at once",
        ),
        Line(
            f"calls for {NEW} more of {what}",
            f"{max(calls)} calls",
            f"{all_calls:,} calls for all at once",
            f"≤ {most}, their ancestors",
            max(calls) <= most,
        ),
    ]


if __name__ == "__main__":
    command(measure, __doc__, full="longer rounds")
