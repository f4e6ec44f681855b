"""The cost of changing early messages: edit, regenerated answer, move, and replacement in a checkpoint.

The cost of a change should not depend on the number of messages after it. The figures are milliseconds and
bytes on disk at several lengths of a conversation. Every saver reads the whole list that it saves, so the
replacement of a message through a saver has a time limit at 1,000 messages only, where LangGraph's
`SqliteSaver` is the peer; longer lists have a limit on bytes alone.

    python -m benchmarks.revise [--full]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from benchmarks._measure import Line, command, duration
from benchmarks.append import turns
from benchmarks.checkpoint import config_of, size, sqlite_saver
from langchain_threadmem import MemorySystem, ThreadMemSaver

ROUNDS = 9
SECONDS = 0.01
BYTES = 5 * 1024
AT_ONCE = 10_000
SAVER_BAR_UP_TO = 1000
"""The highest number of messages of a list whose saving has a time limit."""


def measured(path: Path, call: Callable[[int], object]) -> tuple[float, float]:
    """The seconds and the bytes on disk of a call; its argument is the number of earlier calls."""
    call(0)
    before, times = size(path), []
    for n in range(1, ROUNDS + 1):
        begin = time.perf_counter()
        call(n)
        times.append(time.perf_counter() - begin)
    return median(times), (size(path) - before) / ROUNDS


def line(what: str, seconds: float, written: float, *, beside: str = "", timed: bool = True) -> Line:
    bar = f"≤ {BYTES / 1024:g} KB" + (f", ≤ {duration(SECONDS)}" if timed else "")
    holds = written <= BYTES and (seconds <= SECONDS or not timed)
    return Line(what, f"{duration(seconds)}, {written / 1024:.2f} KB", beside, bar, holds)


def verbs(directory: Path, number: int) -> list[Line]:
    """The lines of `edit`, `regenerate` and `place` on the first turns."""
    path = directory / f"verbs{number}.db"
    with MemorySystem(path, embeddings=False) as system:
        memory = system.conversation("c")
        said = [message for turn in turns(number // 2) for message in turn]
        for start in range(0, len(said), AT_ONCE):
            memory.extend(said[start : start + AT_ONCE])
        moved = 3

        def move(n: int) -> None:
            nonlocal moved
            moved = memory.place(moved, None if n % 2 else 2).id

        calls: dict[str, Callable[[int], object]] = {
            "place": move,
            "regenerate": lambda n: memory.regenerate(1, f"another answer {n}"),
            "edit": lambda n: memory.edit(1, f"another question {n}"),
        }
        return [
            line(f"{name} among {number:,} messages", *measured(path, call)) for name, call in calls.items()
        ]


def replacing(directory: Path, number: int) -> Line:
    """The line of saving a list whose second message is replaced."""
    said: list[BaseMessage] = [
        message.model_copy(update={"id": f"{n}-{message.type}"})
        for n, turn in enumerate(turns(number // 2))
        for message in turn
    ]

    def saving(saver: BaseCheckpointSaver[Any]) -> Callable[[int], object]:
        def save(n: int) -> None:
            messages = [said[0], HumanMessage(f"another {n}", id=said[1].id), *said[2:]] if n else said
            checkpoint = empty_checkpoint() | {
                "id": str(uuid6()),
                "channel_versions": {"messages": n + 1},
                "channel_values": {"messages": messages},
            }
            config = config_of()
            config["configurable"]["checkpoint_ns"] = ""
            saver.put(config, checkpoint, {"step": n}, {"messages": n + 1})

        return save

    path, peer_path = directory / f"saver{number}.db", directory / f"peer{number}.db"
    with MemorySystem(path, embeddings=False) as system:
        seconds, written = measured(path, saving(ThreadMemSaver(system)))
    beside = ""
    if number <= SAVER_BAR_UP_TO:
        peer = sqlite_saver(peer_path)
        peer.setup()
        theirs, their_bytes = measured(peer_path, saving(peer))
        beside = f"SqliteSaver {duration(theirs)}, {their_bytes / 1024:.0f} KB"
    what = f"an early message of {number:,} replaced in a checkpoint"
    return line(what, seconds, written, beside=beside, timed=number <= SAVER_BAR_UP_TO)


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        lengths = (1000, 100_000, 1_000_000) if full else (1000, 100_000)
        lines = [one for number in lengths for one in verbs(home, number)]
        return lines + [replacing(home, number) for number in lengths]


if __name__ == "__main__":
    command(measure, __doc__, full="up to 1,000,000 messages")
