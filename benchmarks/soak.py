"""A soak test: several threads and processes append many turns to one SQLite file.

Each process has its own `MemorySystem` on the file. Its threads append to conversations of their own and to a
conversation that all threads share. A turn counts as acknowledged when `append` has returned. At the end each
of its messages must be stored exactly once, the answer below the question, and `verify()` must report no
problem.

    python benchmarks/soak.py                    # 50,000 turns, 2 processes of 8 threads
    python benchmarks/soak.py --turns 2000       # a short run

The exit code is 0 only if no append fails and no message is lost, doubled, misplaced or damaged.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem

OWNER = "soak"
SHARED = "shared"
SHARED_EVERY = 10  # one of this number of turns goes to the shared conversation


class Report(NamedTuple):
    """The results of a soak test.

    Attributes:
        turns: The number of acknowledged turns.
        seconds: The time from the first append to the last, in seconds.
        slowest: The longest time of an append, in seconds.
        errors: The errors that `append` raised.
        missing: Ids of acknowledged messages that are not stored.
        doubled: Ids of messages that are stored more than once.
        misplaced: Ids of answers that are not below their question.
        problems: The problems that `verify()` reported.
        verify_seconds: The time of `verify()`, in seconds.
        megabytes: The size of the file, in megabytes.
    """

    turns: int
    seconds: float
    slowest: float
    errors: list[str]
    missing: list[str]
    doubled: list[str]
    misplaced: list[str]
    problems: list[str]
    verify_seconds: float
    megabytes: float

    @property
    def ok(self) -> bool:
        return not (self.errors or self.missing or self.doubled or self.misplaced or self.problems)


class Work(NamedTuple):
    """The results of a process: ids of acknowledged turns, errors, its start and end, its slowest append."""

    acknowledged: list[tuple[str, str]]
    errors: list[str]
    began: float
    ended: float
    slowest: float


def work(path: str, process: int, threads: int, turns: int) -> Work:
    """Append turns from several threads of one process."""
    acknowledged: list[tuple[str, str]] = []
    errors: list[str] = []
    slowest = [0.0] * threads

    def talk(thread: int) -> None:
        own = system.conversation(f"own-{process}-{thread}")
        shared = system.conversation(SHARED)
        for turn in range(thread, turns, threads):
            name = f"{process}-{thread}-{turn}"
            memory = own if turn // threads % SHARED_EVERY else shared
            question = HumanMessage(f"What came of {name}?", id=f"q-{name}")
            answer = AIMessage(f"{name} was stored and will be found again.", id=f"a-{name}")
            start = time.perf_counter()
            try:
                memory.append(question, answer)
            except Exception as error:
                errors.append(f"{name}: {error!r}")
            else:
                acknowledged.append((f"q-{name}", f"a-{name}"))
            slowest[thread] = max(slowest[thread], time.perf_counter() - start)

    with MemorySystem(path, owner=OWNER, embeddings=False) as system:
        began = time.time()
        running = [threading.Thread(target=talk, args=(n,)) for n in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return Work(acknowledged, errors, began, time.time(), max(slowest))


def check(path: Path, done: list[Work]) -> Report:
    """Open the file again and look up every acknowledged turn."""
    acknowledged = [turn for one in done for turn in one.acknowledged]
    below: dict[str, str | None] = {}
    doubled: list[str] = []
    with MemorySystem(path, owner=OWNER, embeddings=False) as system:
        start = time.perf_counter()
        verification = system.verify()
        verify_seconds = time.perf_counter() - start
        for name in system.conversations():
            ids: dict[int, str] = {}
            for node in system.conversation(name).history:
                ids[node.id] = message = str(node.message.id)
                if message in below:
                    doubled.append(message)
                below[message] = ids.get(node.parent_id or 0)
    return Report(
        turns=len(acknowledged),
        seconds=max(one.ended for one in done) - min(one.began for one in done),
        slowest=max(one.slowest for one in done),
        errors=[error for one in done for error in one.errors],
        missing=[message for turn in acknowledged for message in turn if message not in below],
        doubled=doubled,
        misplaced=[answer for question, answer in acknowledged if below.get(answer) != question],
        problems=list(verification.problems),
        verify_seconds=verify_seconds,
        megabytes=path.stat().st_size / 1e6,
    )


def soak(path: Path, turns: int, threads: int = 8, processes: int = 2) -> Report:
    """Run a soak test on a file that does not exist yet."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        jobs = [(str(path), n, threads, turns // processes) for n in range(processes)]
        done = pool.starmap(work, jobs, chunksize=1)
    return check(path, done)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=8, help="threads of each process")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = soak(Path(folder) / "soak.db", arguments.turns, arguments.threads, arguments.processes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = report.turns / report.seconds
    print(f"{report.turns} turns acknowledged in {report.seconds:.1f} s: {rate:.0f} per second")
    print(
        f"slowest append {report.slowest * 1000:.0f} ms; file {report.megabytes:.1f} MB; peak {peak:.0f} MB"
    )
    print(f"verify: {report.verify_seconds:.1f} s, problems: {len(report.problems)}")
    for what in ("errors", "missing", "doubled", "misplaced", "problems"):
        found = getattr(report, what)
        print(f"{what}: {len(found)}{''.join(f'{chr(10)}  {item}' for item in found[:5])}")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
