"""`Threaded`, the base class of databases whose async reads and writes run in threads."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import ClosedError
from langchain_threadmem.storage.group_commit import GroupWriter, guarded, run_all
from langchain_threadmem.storage.transaction import Transaction

READER_THREADS = 4


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
    def read(self, transaction: Transaction[T]) -> T: ...

    @abstractmethod
    def write(self, transaction: Transaction[T]) -> T: ...

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

    async def aread(self, transaction: Transaction[T]) -> T:
        """`read` in a thread pool."""
        if self.closed:
            raise self._closed()
        if self._pool is None:
            with self._starting:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(READER_THREADS, "threadmem-reader")
        return await asyncio.get_running_loop().run_in_executor(self._pool, guarded, self.read, transaction)

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
