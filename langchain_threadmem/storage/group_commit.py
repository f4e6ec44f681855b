"""Group commit: queued writes of many callers in one transaction.

On SQLite a commit costs more than its rows: a file write, and with `synchronous=FULL` a wait for the disk.
Async writes are therefore queued for a writer thread, which runs all queued writes in one transaction and
returns their results after the commit. The writes that the tasks of a loop submit in one iteration of the
loop are queued together; otherwise the thread would begin with the first write alone, and both threads would
compete for the interpreter's lock.

A write is a function of a transaction that can safely be repeated: if a write of a batch fails, the batch is
rolled back and its writes run one by one, so that only the failing caller gets an error. Neighbouring writes
of a class with a method `together` are executed by one call of that method, so that many writes become one
statement. The write of a caller that is cancelled while it waits is still executed. `Threaded` is the base
class of databases whose async reads and writes run in threads.

On PostgreSQL a batch may wait for a conversation that another transaction has locked. Writes that wait behind
it for too long are committed by an additional thread, which ends when the queue is empty.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import ClosedError, DriverError, PersistenceError, StorageBusyError
from langchain_threadmem.storage.transaction import Transaction

if TYPE_CHECKING:
    from langchain_threadmem.storage.owned import OwnedDatabase
    from langchain_threadmem.storage.statements import Conn

AnyTransaction = Transaction[Any]
MAX_BATCH = 512
"""The number of writes from which a batch takes no more jobs from the queue."""
READER_THREADS = 4
STALLED_SECONDS = 1.0
"""The time in seconds after which an additional thread takes the writes behind a batch."""


def run_all(conn: Conn, writes: Sequence[AnyTransaction]) -> list[Any]:
    """Run writes in one transaction, in order; neighbours of a class with `together` run in one call.

    Returns:
        The result of each write.
    """
    results: list[Any] = []
    for kind, neighbours in groupby(writes, type):
        run_together, group = getattr(kind, "together", None), list(neighbours)
        results += run_together(conn, group) if run_together else [write(conn) for write in group]
    return results


class _Jobs(NamedTuple):
    """Writes that were submitted in one iteration of a loop, and the futures of their results."""

    loop: asyncio.AbstractEventLoop
    writes: list[AnyTransaction]
    waiting: list[asyncio.Future[Any]]


class _Failed(NamedTuple):
    """The error of a write, in place of its result."""

    error: BaseException


class GroupWriter:
    """Queues writes from event loops for a writer thread.

    Args:
        commit: Runs writes in one transaction and returns their results.
        max_threads: The maximum number of threads that call `commit` at the same time.
    """

    def __init__(self, commit: Callable[[Sequence[AnyTransaction]], list[Any]], max_threads: int = 1) -> None:
        self._commit = commit
        self._max_threads = max_threads
        self._extra_threads: set[threading.Thread] = set()
        self._batches = 0  # the number of batches so far
        self._pending: dict[asyncio.AbstractEventLoop, _Jobs] = {}
        self._queue: SimpleQueue[_Jobs | None] = SimpleQueue()
        self._stopped: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="threadmem-writer", daemon=True)
        self._thread.start()

    async def submit(self, write: AnyTransaction) -> Any:
        """Queue a write and wait until it is committed.

        Raises:
            PersistenceError: The writer has stopped; the write was not executed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        jobs = self._pending.get(loop)
        if jobs is None:
            jobs = self._pending[loop] = _Jobs(loop, [], [])
            loop.call_soon(self._hand_over, loop)
        jobs.writes.append(write)
        jobs.waiting.append(future)
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        _, writes, waiting = self._pending.pop(loop)
        for start in range(0, len(writes), MAX_BATCH):
            chunk = slice(start, start + MAX_BATCH)
            self._queue.put(_Jobs(loop, writes[chunk], waiting[chunk]))
        if self._max_threads > 1:
            loop.call_later(STALLED_SECONDS, self._add_thread, self._batches)
        if self._stopped is not None:  # The writer may have stopped before or while the jobs were queued.
            self._fail_waiting(self._stopped)

    def _add_thread(self, batches: int) -> None:
        """Start an additional thread, if no batch was begun since `batches` were counted."""
        self._extra_threads = {thread for thread in self._extra_threads if thread.is_alive()}
        if (
            batches != self._batches
            or self._queue.empty()
            or len(self._extra_threads) + 1 >= self._max_threads
        ):
            return
        thread = threading.Thread(target=self._run, args=(False,), name="threadmem-writer-too", daemon=True)
        self._extra_threads.add(thread)
        thread.start()

    def close(self) -> None:
        """Commit the queued writes, then stop."""
        self._queue.put(None)
        for thread in (self._thread, *self._extra_threads):
            thread.join()

    def _run(self, permanent: bool = True) -> None:
        error: BaseException = ClosedError("the database was closed; open it again to write")
        try:
            while batch := self._next_batch(wait=permanent):
                self._batches += 1
                try:
                    results = self._results([write for jobs in batch for write in jobs.writes])
                except BaseException as failure:
                    error = PersistenceError(
                        f"the writer thread died of {failure!r}; open the database again"
                    )
                    for jobs in batch:
                        _answer(jobs, [_Failed(error)] * len(jobs.waiting))
                    raise
                remaining = iter(results)
                for jobs in batch:
                    _answer(jobs, list(islice(remaining, len(jobs.waiting))))
                del batch, jobs, results, remaining  # A waiting thread keeps no texts.
        finally:
            if permanent or type(error) is PersistenceError:
                self._stopped = error
                self._fail_waiting(error)

    def _next_batch(self, *, wait: bool) -> list[_Jobs]:
        """The queued jobs, at least one; an empty list to stop the thread."""
        batch: list[_Jobs] = []
        count = 0
        try:
            jobs = self._queue.get(block=wait)
        except Empty:
            return batch
        if jobs is None and not wait:
            self._queue.put(None)  # The end is for the permanent thread.
        while jobs is not None:
            batch.append(jobs)
            count += len(jobs.writes)
            if count >= MAX_BATCH:
                return batch
            try:
                jobs = self._queue.get_nowait()
            except Empty:
                return batch
        if batch:
            self._queue.put(None)  # The thread stops after these jobs.
        return batch

    def _results(self, writes: Sequence[AnyTransaction]) -> list[Any]:
        """The results of writes in one transaction or, if it fails, in a transaction for each write."""
        try:
            return self._commit(writes)
        except Exception as error:
            # If the database is busy, each single write would wait for the lock again.
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
    # The call fails if the loop is closed; no task waits there, and the rows are committed.
    with suppress(RuntimeError):
        jobs.loop.call_soon_threadsafe(_deliver, jobs.waiting, results)


def _deliver(waiting: Sequence[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(waiting, results, strict=True):
        if future.done():  # The caller was cancelled.
            continue
        if type(result) is _Failed:
            future.set_exception(result.error)
        else:
            future.set_result(result)


def deliverable(error: BaseException) -> BaseException:
    """An error that futures and generators can raise: StopIteration would block the one and end the other."""
    if isinstance(error, StopIteration):
        wrapped = DriverError(f"a step raised StopIteration({error.value!r}); raise another error")
        wrapped.__cause__ = error
        return wrapped
    return error


def guarded(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function, and raise its error as a `deliverable` error."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise deliverable(error) from error


class Threaded:
    """The async methods of a database, implemented with its sync methods.

    Args:
        max_writers: The maximum number of writer threads; another thread starts only if a write has to wait.
    """

    def __init__(self, max_writers: int = 1) -> None:
        self._max_writers = max_writers
        self.closed = False
        self._group: GroupWriter | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._starting = forking.lock()

    @property
    @abstractmethod
    def _name(self) -> str: ...

    @abstractmethod
    def read(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T: ...

    @abstractmethod
    def write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T: ...

    @abstractmethod
    def close(self) -> None: ...

    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]:
        """Run a function in a transaction in the writer thread; returns after the commit."""
        if self.closed:
            raise self._closed()
        if self._group is None:
            with self._starting:
                if self._group is None:
                    self._group = GroupWriter(self._commit, self._max_writers)
        return self._group.submit(transaction)

    def _commit(self, writes: Sequence[Transaction[Any]]) -> list[Any]:
        return self.write(lambda conn: run_all(conn, writes))

    async def aread(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """`read` in a thread pool."""
        if self.closed:
            raise self._closed()
        if self._pool is None:
            with self._starting:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(READER_THREADS, "threadmem-reader")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, guarded, self.read, transaction, owner)

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def _finish(self) -> None:
        """Complete the queued writes, and end the threads."""
        if self._group is not None:
            self._group.close()
        if self._pool is not None:
            self._pool.shutdown()

    def _closed(self) -> ClosedError:
        return ClosedError(f"{self._name} was closed; make a new ChatMemory or MemorySystem")
