"""Group commit: queued writes of many callers in one transaction.

On SQLite a commit costs more than the rows in it (a file write, with `synchronous=FULL` a wait for the
disk). Sixteen asyncio tasks that append at once therefore hand their writes to this thread, which takes all
that are waiting, runs them in one transaction and answers all of them after the commit. What the tasks of a
loop submit in one pass of the loop is handed over together: were it handed over one by one, the thread
would begin with the first alone, and both threads would then fight for the interpreter's lock.

A write is a function of the transaction that is safe to run again: if one write of a batch fails, the
batch is rolled back and its writes run one by one, so that only the failing caller sees an error. Writes
that are data and say how to run `together` are joined with their neighbours of the same kind, so that many
of them become one statement. A caller that is cancelled while it waits is not told, but its write still
happens.

On PostgreSQL a batch may wait for a conversation that somebody else has locked. What waits behind it for
too long is then committed by another thread, which ends when nothing is left to do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from langchain_threadmem.errors import ClosedError, DriverError, PersistenceError, StorageBusyError
from langchain_threadmem.storage.statements import Conn

T = TypeVar("T")
Write = Callable[[Conn], Any]
MOST_AT_ONCE = 512
"""With so many writes at hand a commit waits for no more."""
STALLED_SECONDS = 1.0
"""After so long behind a batch, others are given to another thread, if there may be one."""


def run_all(conn: Conn, writes: Sequence[Write]) -> list[Any]:
    """Run writes in one transaction, in their order; neighbours of a kind that can be joined as one.

    Returns:
        The result of each.
    """
    results: list[Any] = []
    for kind, neighbours in groupby(writes, type):
        together, some = getattr(kind, "together", None), list(neighbours)
        results += together(conn, some) if together else [write(conn) for write in some]
    return results


class _Jobs(NamedTuple):
    """Writes that were submitted in one pass of a loop, and who waits for each."""

    loop: asyncio.AbstractEventLoop
    writes: list[Write]
    waiting: list[asyncio.Future[Any]]


class _Failed(NamedTuple):
    """In place of the result of a write."""

    error: BaseException


class GroupWriter:
    """Queues writes from event loops for one committing thread.

    Args:
        commit: Runs writes in one transaction and returns their results; all or nothing.
        most_threads: How many may call it at the same time.
    """

    def __init__(self, commit: Callable[[Sequence[Write]], list[Any]], most_threads: int = 1) -> None:
        self._commit = commit
        self._most_threads = most_threads
        self._relief: set[threading.Thread] = set()
        self._began = 0  # how many batches were
        self._gathered: dict[asyncio.AbstractEventLoop, _Jobs] = {}
        self._queue: SimpleQueue[_Jobs | None] = SimpleQueue()
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
        jobs = self._gathered.get(loop)
        if jobs is None:
            jobs = self._gathered[loop] = _Jobs(loop, [], [])
            loop.call_soon(self._hand_over, loop)
        jobs.writes.append(write)
        jobs.waiting.append(future)
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        _, writes, waiting = self._gathered.pop(loop)
        for start in range(0, len(writes), MOST_AT_ONCE):
            part = slice(start, start + MOST_AT_ONCE)
            self._queue.put(_Jobs(loop, writes[part], waiting[part]))
        if self._most_threads > 1:
            loop.call_later(STALLED_SECONDS, self._relieve, self._began)
        if self._ended is not None:  # It may have stopped before or while this was queued.
            self._fail_waiting(self._ended)

    def _relieve(self, began: int) -> None:
        """Start another thread, if nothing of what is queued was begun since."""
        self._relief = {thread for thread in self._relief if thread.is_alive()}
        if began != self._began or self._queue.empty() or len(self._relief) + 1 >= self._most_threads:
            return
        thread = threading.Thread(target=self._run, args=(False,), name="threadmem-writer-too", daemon=True)
        self._relief.add(thread)
        thread.start()

    def close(self) -> None:
        """Commit what is queued, then stop."""
        self._queue.put(None)
        for thread in (self._thread, *self._relief):
            thread.join()

    def _run(self, stays: bool = True) -> None:
        ended: BaseException = ClosedError("the database was closed; open it again to write")
        try:
            while batch := self._next_batch(wait=stays):
                self._began += 1
                try:
                    results = self._results([write for jobs in batch for write in jobs.writes])
                except BaseException as error:
                    ended = PersistenceError(f"the writer thread died of {error!r}; open the database again")
                    for jobs in batch:
                        _answer(jobs, [_Failed(ended)] * len(jobs.waiting))
                    raise
                following = iter(results)
                for jobs in batch:
                    _answer(jobs, list(islice(following, len(jobs.waiting))))
                del (
                    batch,
                    jobs,
                    results,
                    following,
                )  # A waiting thread keeps no text.
        finally:
            if stays or type(ended) is PersistenceError:
                self._ended = ended
                self._fail_waiting(ended)

    def _next_batch(self, *, wait: bool) -> list[_Jobs]:
        """What is waiting, at least one write; empty when it is time to stop."""
        batch: list[_Jobs] = []
        count = 0
        try:
            jobs = self._queue.get(block=wait)
        except Empty:
            return batch
        if jobs is None and not wait:
            self._queue.put(None)  # Meant for the thread that stays.
        while jobs is not None:
            batch.append(jobs)
            count += len(jobs.writes)
            if count >= MOST_AT_ONCE:
                return batch
            try:
                jobs = self._queue.get_nowait()
            except Empty:
                return batch
        if batch:
            self._queue.put(None)  # Finish these first, then meet the end again.
        return batch

    def _results(self, writes: Sequence[Write]) -> list[Any]:
        """What comes of writes: of all in one transaction, or if that fails of each in its own."""
        try:
            return self._commit(writes)
        except Exception as error:
            # A busy database is busy for all of them: one by one they would each wait for the lock again.
            if len(writes) == 1 or isinstance(error, StorageBusyError):
                return [_Failed(deliverable(error))] * len(writes)
            return [result for write in writes for result in self._results([write])]

    def _fail_waiting(self, error: BaseException) -> None:
        while True:
            try:
                jobs = self._queue.get_nowait()
            except Empty:
                return
            if jobs is not None:
                _answer(jobs, [_Failed(error)] * len(jobs.waiting))


def _answer(jobs: _Jobs, results: Sequence[Any]) -> None:
    # It fails if the loop is closed: nobody waits there any more, and the rows are committed.
    with suppress(RuntimeError):
        jobs.loop.call_soon_threadsafe(_deliver, jobs.waiting, results)


def _deliver(waiting: Sequence[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(waiting, results, strict=True):
        if future.done():  # Its caller was cancelled.
            continue
        if type(result) is _Failed:
            future.set_exception(result.error)
        else:
            future.set_result(result)


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
