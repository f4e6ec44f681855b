"""The cost of changing early messages: edit, regenerated answer, move, and replacement in a checkpoint.

The cost of a change should not depend on the number of messages after it. The figures are milliseconds and
bytes on disk at several lengths of a conversation. Every saver reads the whole list that it saves, so the
replacement of a message through a saver has a time limit at 1,000 messages only, where LangGraph's
`SqliteSaver` is the peer; longer lists have a limit on bytes alone. The next append after a change selects a
thread again from what it reads anew; its figure is processor time with vectors of known words, which cost
nothing to compute.

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

from benchmarks._measure import Line, command, duration, within
from benchmarks.append import turns
from benchmarks.checkpoint import config_of, size, sqlite_saver
from benchmarks.statements import SUBJECTS, WordVectors
from langchain_threadmem import MemorySystem, SemanticNodeSelector, ThreadMemSaver

ROUNDS = 9
SECONDS = 0.01
BYTES = 5 * 1024
AT_ONCE = 10_000
SAVER_BAR_UP_TO = 1000
"""The highest number of messages of a list whose saving has a time limit."""
LONG, SELECTS_AGAIN = 16_000, 20e-3


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


def selecting_again(path: Path) -> list[Line]:
    """The lines of the first append with a selection after an edit, a move and a restart."""

    def turn(n: int) -> tuple[str, str]:
        subject = SUBJECTS[n % len(SUBJECTS)]
        question = f"What about {subject} number {n}, and how does {subject} go on?"
        return question, f"An answer to: {question}"

    def opened() -> MemorySystem:
        return MemorySystem(path, embeddings=WordVectors())

    def append_again(system: MemorySystem, n: int) -> float:
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        begin = time.process_time()
        memory.append(*turn(LONG + n))
        return time.process_time() - begin

    with opened() as system:
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        said = [pair for n in range(LONG // 2) for pair in zip(("user", "ai"), turn(n), strict=True)]
        memory.extend(said)
        memory.append(*turn(LONG))
        changes: dict[str, Callable[[int], object]] = {
            "an edit": lambda n: memory.edit(LONG // 2 + 1, f"another question {n}"),
            "a move": lambda n: memory.place(LONG // 2 + 401 + 4 * n, None),
        }
        taken: dict[str, list[float]] = {name: [] for name in changes}
        for n in range(ROUNDS):
            for name, change in changes.items():
                append_again(system, n)
                change(n)
                taken[name].append(append_again(system, n))
    taken["a restart"] = []
    for n in range(ROUNDS):
        with opened() as system:
            taken["a restart"].append(append_again(system, n))
    return [
        within(f"an append after {name} among {LONG:,} messages", median(times), most=SELECTS_AGAIN)
        for name, times in taken.items()
    ]


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        lengths = (1000, 100_000, 1_000_000) if full else (1000, 100_000)
        lines = [one for number in lengths for one in verbs(home, number)]
        lines += [replacing(home, number) for number in lengths]
        return lines + selecting_again(home / "long.db")


if __name__ == "__main__":
    command(measure, __doc__, full="up to 1,000,000 messages")
