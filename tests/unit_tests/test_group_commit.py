"""The group writer: few commits for many callers; each caller gets the result of its own write."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import ClosedError, DriverError, PersistenceError, StorageBusyError
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.group_commit import MAX_BATCH, AnyTransaction, GroupWriter
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees

SOON = 60.0
CONN: Any = None


class Commits:
    """Counts commits; the first waits until further writes are queued."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.go = threading.Event()

    def __call__(self, writes: Sequence[AnyTransaction]) -> list[Any]:
        self.go.wait(SOON)
        self.sizes.append(len(writes))
        return [write(CONN) for write in writes]


def raising(error: BaseException) -> AnyTransaction:
    def write(conn: Conn) -> None:
        raise error

    return write


def together(commit: Any, *writes: AnyTransaction, go: threading.Event | None = None) -> list[Any]:
    """Submit writes together and wait for all; returns errors among the results."""

    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(writer.submit(write)) for write in writes]
        await asyncio.sleep(0)
        if go is not None:
            go.set()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), SOON)

    writer = GroupWriter(commit)
    try:
        return asyncio.run(main())
    finally:
        writer.close()


def test_what_is_queued_together_is_committed_together() -> None:
    commits = Commits()
    values = together(commits, *[lambda conn, n=n: n for n in range(100)], go=commits.go)  # type: ignore[misc]
    assert values == list(range(100))
    assert len(commits.sizes) <= 2  # the first may have been taken alone


def test_no_commit_is_without_bounds() -> None:
    commits = Commits()
    number = 2 * MAX_BATCH + 1
    values = together(commits, *[lambda conn, n=n: n for n in range(number)], go=commits.go)  # type: ignore[misc]
    assert values == list(range(number))
    assert max(commits.sizes) <= MAX_BATCH


def test_a_failing_write_fails_only_its_caller() -> None:
    commits = Commits()
    values = together(commits, lambda conn: 1, raising(ValueError("mine")), lambda conn: 3, go=commits.go)
    assert (values[0], values[2]) == (1, 3)
    assert repr(values[1]) == "ValueError('mine')"


def test_a_busy_database_is_waited_for_once_not_once_a_caller() -> None:
    calls: list[int] = []

    def busy(writes: Sequence[AnyTransaction]) -> list[Any]:
        calls.append(len(writes))
        time.sleep(0.02)
        raise StorageBusyError("locked")

    values = together(busy, *[lambda conn: 1] * 20)
    assert {type(value) for value in values} == {StorageBusyError}
    assert len(calls) <= 2


@pytest.mark.parametrize("death", [SystemExit(3), GeneratorExit()])
def test_a_dying_writer_fails_every_waiting_and_every_later_caller(death: BaseException) -> None:
    async def main(writer: GroupWriter) -> list[Any]:
        waiting = [asyncio.ensure_future(writer.submit(raising(death))) for _ in range(3)]
        first = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), SOON)
        later = await asyncio.wait_for(
            asyncio.gather(writer.submit(lambda conn: 1), return_exceptions=True), SOON
        )
        return first + later

    commits = Commits()
    commits.go.set()
    previous = threading.excepthook
    threading.excepthook = lambda args: None
    try:
        writer = GroupWriter(commits)
        found = asyncio.run(main(writer))
        writer.close()
    finally:
        threading.excepthook = previous
    assert [type(error) for error in found] == [PersistenceError] * 4
    assert "the writer thread died" in str(found[0])


def test_stop_iteration_arrives_as_a_driver_error() -> None:
    commits = Commits()
    commits.go.set()
    (error,) = together(commits, raising(StopIteration("end")))
    assert isinstance(error, DriverError)
    assert "StopIteration('end')" in str(error)


def test_a_cancelled_callers_write_still_happens() -> None:
    commits, done = Commits(), threading.Event()

    async def main(writer: GroupWriter) -> None:
        task = asyncio.ensure_future(writer.submit(lambda conn: done.set()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        commits.go.set()
        assert await asyncio.wait_for(writer.submit(lambda conn: "next"), SOON) == "next"

    writer = GroupWriter(commits)
    asyncio.run(main(writer))
    writer.close()
    assert done.is_set()


def test_closing_finishes_what_is_queued() -> None:
    commits = Commits()

    async def main(writer: GroupWriter) -> list[Any]:
        tasks = [asyncio.ensure_future(writer.submit(lambda conn, n=n: n)) for n in range(50)]  # type: ignore[misc]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(asyncio.to_thread(writer.close))
        await asyncio.sleep(0.01)
        commits.go.set()
        await asyncio.wait_for(closing, SOON)
        return list(await asyncio.wait_for(asyncio.gather(*tasks), SOON))

    assert asyncio.run(main(GroupWriter(commits))) == list(range(50))


def test_a_write_after_closing_is_refused() -> None:
    commits = Commits()
    commits.go.set()
    writer = GroupWriter(commits)
    writer.close()
    with pytest.raises(ClosedError):
        asyncio.run(asyncio.wait_for(writer.submit(lambda conn: 1), SOON))


def test_a_loop_that_ended_with_a_pending_write_harms_nobody() -> None:
    commits, done = Commits(), threading.Event()
    writer = GroupWriter(commits)

    async def leave() -> None:
        task = asyncio.ensure_future(writer.submit(lambda conn: done.set()))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())
    commits.go.set()
    assert done.wait(SOON)
    assert asyncio.run(asyncio.wait_for(writer.submit(lambda conn: "alive"), SOON)) == "alive"
    writer.close()


def test_one_database_serves_one_loop_after_another(url: str, owner: str) -> None:
    system = MemorySystem(url, owner=owner, embeddings=False)
    memory = system.conversation("c")
    for n in range(3):
        asyncio.run(_wait(lambda n=n: memory.aappend(f"q{n}", f"a{n}")))  # type: ignore[misc]
    assert len(memory.history) == 6
    system.close()


def test_loops_in_several_threads_share_one_database(url: str, owner: str) -> None:
    system = MemorySystem(url, owner=owner, embeddings=False)
    memory = system.conversation("c")

    async def talk(n: int) -> None:
        await asyncio.gather(*(memory.aappend(f"q{n}.{k}", f"a{n}.{k}") for k in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(talk(n),)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert len(memory.history) == 60
    assert memory.verify().ok
    system.close()


@pytest.mark.postgres
def test_a_locked_conversation_keeps_no_other_waiting(postgres_url: str, owner: str) -> None:
    system = MemorySystem(postgres_url, owner=owner, embeddings=False)
    memories = [system.conversation(name) for name in ("locked", "free")]
    for memory in memories:
        memory.append("q", "a")
    locked, free = threading.Event(), threading.Event()

    def hold(conn: Conn) -> None:
        trees.find_or_create_all(conn, owner, "locked", [""], 0.0, {}, lambda homes: ())
        locked.set()
        free.wait(SOON)

    async def main() -> None:
        waiting = asyncio.ensure_future(memories[0].aappend("q", "a"))
        await asyncio.sleep(0.05)
        await asyncio.wait_for(memories[1].aappend("q", "a"), SOON / 2)
        assert not waiting.done()
        free.set()
        await asyncio.wait_for(waiting, SOON)

    holder = threading.Thread(target=system.runtime.database.write, args=(hold,))
    holder.start()
    assert locked.wait(SOON)
    asyncio.run(main())
    holder.join(SOON)
    system.close()


def test_closing_the_database_finishes_queued_turns(tmp_path: Path) -> None:
    system = MemorySystem(tmp_path / "memory.db", embeddings=False)

    async def main() -> None:
        memory = system.conversation("c")
        tasks = [asyncio.ensure_future(memory.aappend(f"q{n}", f"a{n}")) for n in range(20)]
        await asyncio.wait_for(asyncio.gather(*tasks), SOON)
        await system.aclose()

    asyncio.run(main())
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as again:
        assert len(again.conversation("c").history) == 40


def test_a_failing_write_leaves_its_neighbours_on_the_real_database(tmp_path: Path) -> None:
    database = open_database(tmp_path / "memory.db")

    def note(n: int) -> AnyTransaction:
        def write(conn: Conn) -> int:
            conn.script(f"INSERT INTO note VALUES ({n})")
            if n == 3:
                raise KeyError(n)
            return n

        return write

    async def main() -> list[Any]:
        waiting: list[Awaitable[Any]] = [database.awrite(note(n)) for n in range(6)]
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), SOON)

    database.write(lambda conn: conn.script("CREATE TABLE note (n INTEGER)"))
    found = asyncio.run(main())
    assert [value for value in found if isinstance(value, int)] == [0, 1, 2, 4, 5]
    assert isinstance(found[3], KeyError)
    from langchain_threadmem.storage.statements import Statement

    every = Statement.of(sqlite="SELECT n FROM note ORDER BY n", postgresql="")
    assert [row[0] for row in database.read(lambda conn: conn.all(every))] == [0, 1, 2, 4, 5]
    database.close()


async def _wait(make: Callable[[], Awaitable[Any]]) -> Any:
    return await asyncio.wait_for(make(), SOON)
