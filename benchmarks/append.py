"""The time to append a durable turn, compared with raw `sqlite3` and `SQLChatMessageHistory`.

The raw baseline is the least work that stores the same two message bodies: one table with an INTEGER PRIMARY
KEY, in WAL mode, with two rows per transaction. A turn is a question and an answer, both as prebuilt message
objects.

    python -m benchmarks.append [--full]
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from statistics import median

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks._measure import Line, Times, against, command, ratio, rounds
from langchain_threadmem import ChatMemory, MemorySystem

QUESTION = "How do I read a CSV file with a header, and what if some of the columns hold dates? (case {n})"
ANSWER = (
    "Use pandas.read_csv with parse_dates for those columns (case {n}). The header is read by default; "
    "pass header=None if there is none. For large files read in chunks, or name the columns you need with "
    "usecols, which saves memory."
)
CALLERS = 16
CHECKPOINTS = 4000
"""The number of turns in which each side copies its write-ahead log to the database several times."""


def turns(number: int) -> Iterator[tuple[HumanMessage, AIMessage]]:
    """Turns that differ from each other."""
    for n in range(number):
        yield HumanMessage(QUESTION.format(n=n)), AIMessage(ANSWER.format(n=n))


class Raw:
    """Two inserts per turn through `sqlite3`, with `group` turns per transaction."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(f"PRAGMA synchronous={synchronous}")
        self._database.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def append(self, bodies: list[tuple[str, str]], group: int = 1) -> None:
        execute, insert = self._database.execute, "INSERT INTO message (body) VALUES (?)"
        for start in range(0, len(bodies), group):
            execute("BEGIN IMMEDIATE")
            for human, ai in bodies[start : start + group]:
                execute(insert, (human,))
                execute(insert, (ai,))
            execute("COMMIT")


class RawGroup:
    """The minimal group commit for asyncio callers: a queue, a thread and two inserts per turn."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._raw = Raw(path, synchronous)
        self._queue: SimpleQueue[tuple[tuple[str, str], asyncio.Future[None]] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._commit, daemon=True)
        self._thread.start()

    async def append(self, bodies: tuple[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        future = self._loop.create_future()
        self._queue.put((bodies, future))
        await future

    def _commit(self) -> None:
        while first := self._queue.get():
            batch = [first]
            while not self._queue.empty():
                if (job := self._queue.get()) is None:
                    return
                batch.append(job)
            self._raw.append([bodies for bodies, _ in batch], len(batch))
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._answer, [future for _, future in batch])

    def _answer(self, futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            future.set_result(None)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


def bodies_of(messages: list[tuple[HumanMessage, AIMessage]]) -> list[tuple[str, str]]:
    """The stored text of each message, so that both sides write the same number of bytes."""
    from langchain_threadmem.messages.codec import encode

    return [(encode(human), encode(ai)) for human, ai in messages]


def peer(directory: Path) -> BaseChatMessageHistory:
    """`SQLChatMessageHistory` on a file, set up as in its documentation."""
    from langchain_community.chat_message_histories import SQLChatMessageHistory

    return SQLChatMessageHistory("s", connection=f"sqlite:///{directory / 'peer.db'}")


def one_by_one(directory: Path, synchronous: str, block: int, repeats: int, *, others: bool) -> Times:
    """The times of one caller, with one turn per transaction."""
    messages = list(turns(block))
    bodies = bodies_of(messages)
    system = MemorySystem(f"sqlite:///{directory / 'ours.db'}?synchronous={synchronous}", embeddings=False)
    memory = system.conversation("c")
    raw = Raw(directory / "raw.db", synchronous)

    def ours() -> None:
        for human, ai in messages:
            memory.append(human, ai)

    contestants: dict[str, Callable[[], object]] = {
        "raw sqlite3": lambda: raw.append(bodies),
        "langchain_threadmem": ours,
    }
    if others:
        history = peer(directory)
        share = max(block // 20, 5)

        def community() -> None:
            for human, ai in messages[:share]:
                history.add_messages([human, ai])

        contestants["SQLChatMessageHistory"] = community
    times = rounds(contestants, repeats, block)
    if others:
        times["SQLChatMessageHistory"] = [
            seconds * block / share for seconds in times["SQLChatMessageHistory"]
        ]
    system.close()
    return times


def together(directory: Path, block: int, repeats: int) -> Times:
    """The times of sixteen callers on one event loop, in one conversation and in a conversation each.

    The baselines are the same callers on a raw group commit, and a loop without callers that writes sixteen
    turns per transaction, which is the limit of the disk and of SQLite.
    """
    messages = list(turns(block))
    bodies = bodies_of(messages)
    system = MemorySystem(f"sqlite:///{directory / 'ours16.db'}?synchronous=FULL", embeddings=False)
    shared = [system.conversation("shared")] * CALLERS
    own = [system.conversation(f"c{n}") for n in range(CALLERS)]
    raw = Raw(directory / "raw16.db", "FULL")
    group = RawGroup(directory / "group16.db", "FULL")

    async def raw_caller(n: int) -> None:
        for pair in bodies[n::CALLERS]:
            await group.append(pair)

    async def raw_callers() -> None:
        await asyncio.gather(*map(raw_caller, range(CALLERS)))

    async def caller(memory: ChatMemory, n: int) -> None:
        for human, ai in messages[n::CALLERS]:
            await memory.aappend(human, ai)

    async def callers(memories: list[ChatMemory]) -> None:
        await asyncio.gather(*(caller(memory, n) for n, memory in enumerate(memories)))

    with asyncio.Runner() as runner:
        times = rounds(
            {
                "raw loop": lambda: raw.append(bodies, CALLERS),
                "raw group commit": lambda: runner.run(raw_callers()),
                "one conversation": lambda: runner.run(callers(shared)),
                "one conversation each": lambda: runner.run(callers(own)),
            },
            repeats,
            block,
        )
    system.close()
    group.close()
    return times


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    block, repeats = (1000, 31) if full else (400, 21)
    lines = []
    for synchronous, most in (("NORMAL", 2.5), ("FULL", 1.35)):
        with tempfile.TemporaryDirectory() as directory:
            normal = synchronous == "NORMAL"
            # SQLite copies its log after every few hundred turns, which is half the cost of raw inserts.
            # Rounds are long, so that each contains several of these copies.
            size = max(block, CHECKPOINTS) if normal else block
            times = one_by_one(Path(directory), synchronous, size, repeats, others=normal)
        what = f"append a turn, {synchronous}"
        lines.append(against(what, times, "langchain_threadmem", "raw sqlite3", most=most))
        if normal:
            lines.append(against(what, times, "langchain_threadmem", "SQLChatMessageHistory"))
    with tempfile.TemporaryDirectory() as directory:
        times = together(Path(directory), 4 * block, repeats)
    raw, loop = (1 / median(times[name]) for name in ("raw group commit", "raw loop"))
    for how in ("one conversation", "one conversation each"):
        share = 1 / ratio(times, how, "raw group commit")
        lines.append(
            Line(
                f"append, {CALLERS} async callers, {how}, FULL",
                f"{1 / median(times[how]):,.0f} turns/s",
                f"{share:.2f} × raw group commit ({raw:,.0f} turns/s; {loop:,.0f} without callers)",
                "≥ 0.4 ×",
                share >= 0.4,
            )
        )
    return lines


if __name__ == "__main__":
    command(measure, __doc__, full="more and longer rounds")
