"""One thread that commits together what callers queued together.

On SQLite a commit costs more than the rows in it (a file write, with `synchronous=FULL` a wait for the
disk). Sixteen asyncio tasks that append at once therefore hand their writes to this thread, which takes all
that are waiting, runs them in one transaction and answers all of them after the commit. What the tasks of a
loop submit in one pass of the loop is handed over together: were it handed over one by one, the thread
would begin with the first alone, and both threads would then fight for the interpreter's lock.

A write is a function of the transaction that is safe to run again: if one write of a batch fails, the
batch is rolled back and its writes run one by one, so that only the failing caller sees an error. Writes
that are data and say how to run `together` are joined with their neighbours of the same kind, so that many
appends become one statement. A caller that is cancelled while it waits is not told, but its write still
happens.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from langchain_threadmem.errors import ClosedError, DriverError, PersistenceError, StorageBusyError
from langchain_threadmem.storage.statements import Conn

T = TypeVar("T")
Write = Callable[[Conn], Any]
MOST_AT_ONCE = 512


def run_all(conn: Conn, writes: Sequence[Write]) -> list[Any]:
    """Run writes in one transaction, in their order; neighbours of a kind that can be joined as one.

    Returns:
        The result of each.
    """
    results: list[Any] = []
    for together, neighbours in groupby(writes, lambda write: getattr(write, "together", None)):
        some = list(neighbours)
        results += together(conn, some) if together else [write(conn) for write in some]
    return results


class _Job(NamedTuple):
    write: Write
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Outcome(NamedTuple):
    value: Any
    error: BaseException | None


class GroupWriter:
    """Queues writes from event loops for one committing thread.

    Args:
        commit: Runs writes in one transaction and returns their results; all or nothing.
    """

    def __init__(self, commit: Callable[[Sequence[Write]], list[Any]]) -> None:
        self._commit = commit
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._queue: SimpleQueue[Sequence[_Job] | None] = SimpleQueue()
        self._ended: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="threadmem-writer", daemon=True)
        self._thread.start()

    async def submit(self, write: Write) -> Any:
        """Queue a write and wait until it is committed.

        Raises:
            PersistenceError: The writer has stopped; the write did not happen.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if loop not in self._gathered:
            self._gathered[loop] = []
            loop.call_soon(self._hand_over, loop)
        self._gathered[loop].append(_Job(write, loop, future))
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        jobs = self._gathered.pop(loop)
        for start in range(0, len(jobs), MOST_AT_ONCE):
            self._queue.put(jobs[start : start + MOST_AT_ONCE])
        if self._ended is not None:  # It may have stopped before or while this was queued.
            self._fail_waiting()

    def close(self) -> None:
        """Commit what is queued, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended: BaseException = ClosedError("the database was closed; open it again to write")
        try:
            while batch := self._next_batch():
                try:
                    outcomes = self._outcomes(batch)
                except BaseException as error:
                    ended = PersistenceError(f"the writer thread died of {error!r}; open the database again")
                    self._answer(batch, [_Outcome(None, ended)] * len(batch))
                    raise
                self._answer(batch, outcomes)
        finally:
            self._ended = ended
            self._fail_waiting()

    def _next_batch(self) -> list[_Job]:
        """The jobs that are waiting, at least one; empty when it is time to stop."""
        batch: list[_Job] = []
        jobs = self._queue.get()
        while jobs is not None:
            batch += jobs
            if len(batch) >= MOST_AT_ONCE:
                return batch
            try:
                jobs = self._queue.get_nowait()
            except Empty:
                return batch
        if batch:
            self._queue.put(None)  # Finish these first, then meet the end again.
        return batch

    def _outcomes(self, batch: Sequence[_Job]) -> list[_Outcome]:
        try:
            return [_Outcome(value, None) for value in self._commit([job.write for job in batch])]
        except Exception as error:
            # A busy database is busy for all of them: one by one they would each wait for the lock again.
            if len(batch) == 1 or isinstance(error, StorageBusyError):
                return [_Outcome(None, deliverable(error))] * len(batch)
            return [outcome for job in batch for outcome in self._outcomes([job])]

    def _answer(self, batch: Sequence[_Job], outcomes: Sequence[_Outcome]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Outcome]]] = {}
        for job, outcome in zip(batch, outcomes, strict=True):
            by_loop.setdefault(job.loop, []).append((job.future, outcome))
        for loop, answers in by_loop.items():
            try:
                loop.call_soon_threadsafe(_deliver, answers)
            except RuntimeError:
                continue  # The loop is closed: nobody waits there any more, and the rows are committed.

    def _fail_waiting(self) -> None:
        while True:
            try:
                jobs = self._queue.get_nowait()
            except Empty:
                return
            if jobs is not None:
                self._answer(jobs, [_Outcome(None, self._ended)] * len(jobs))


def _deliver(answers: Sequence[tuple[asyncio.Future[Any], _Outcome]]) -> None:
    for future, (value, error) in answers:
        if future.done():  # Its caller was cancelled.
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def deliverable(error: BaseException) -> BaseException:
    """An error that can cross a future or a generator: StopIteration would hang the one and end the other."""
    if isinstance(error, StopIteration):
        stop = DriverError(f"a step raised StopIteration({error.value!r}); raise another error in it")
        stop.__cause__ = error
        return stop
    return error


def guarded(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function whose error is to be delivered to another thread."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise deliverable(error) from error
