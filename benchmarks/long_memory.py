"""The cost of summarising 100,000 messages, and of summarising 100 further messages.

The summarizer is a fake without delay: the time is that of the memory alone, and the count is the number of
calls that a model would receive. The messages are in one session or in a hundred. The texts are short enough
that the limit of 60 messages, not the limit of tokens, determines each group.

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
    """A summarizer that counts its calls and returns a prepared text."""

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, message: BaseMessage) -> MessageSummary:
        self.calls += 1
        return MessageSummary(
            title="A title", summary=f"What was said, in short, for the {self.calls}th time."
        )


def ancestors(units: int) -> int:
    """The highest number of summaries above consecutive units that are added to `MANY` messages."""
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
    # The summaries of long-term memory are above those of sessions, on two levels for 100 sessions and on one
    # level for one session.
    most = ancestors(NEW) + 2
    return [
        Line(f"summarise {what}, once", duration(whole), f"{all_calls:,} calls"),
        Line(
            f"summarise {NEW} more of {what}",
            duration(median(spent)),
            f"{median(spent) / whole:.1%} of the time for all at once",
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
