"""Opening a database by its URL, at once or at its first transaction.

`read` and `write` take a function of one open transaction (`Conn`) and return what it returns;
`aread` and `awrite` are the same for asyncio. Everything that a function does is committed together or
not at all, and results are handed out only after the commit, so no cache can be filled with rows that
were rolled back.

`SqliteDatabase` keeps one connection for writing and a few for reading. Writes begin IMMEDIATE: a
transaction that starts by reading and then writes fails under a second writer, whatever the time-out.
WAL with `synchronous=NORMAL` keeps every acknowledged write
through the death of the process; `?synchronous=FULL` in the URL also through a power cut.

`PostgresDatabase` keeps a pool of psycopg connections. For both, async writes go through one `GroupWriter`,
and async reads through a few threads (`threaded`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import URL

from langchain_threadmem.common import forking
from langchain_threadmem.errors import ClosedError, InputError, PersistenceError
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.threaded import Transaction
from langchain_threadmem.storage.transaction import Database, T
from langchain_threadmem.storage.urls import named, with_pool


def open_database(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> Database:
    """Open a database, creating or migrating its tables.

    Args:
        url: As for `unopened`.
        pool_size: As for `unopened`.
        max_overflow: As for `unopened`.
        read_only: As for `unopened`.

    Raises:
        InputError: The URL names no database that this package can use, or none that can be looked at; or an
            option does not fit it.
        PersistenceError: It cannot be opened.
        NewerDatabaseError: A newer version of this package wrote it.

    Example:
        >>> database = open_database(None)
        >>> database.dialect
        'sqlite'
        >>> database.close()
    """
    database = unopened(url, pool_size=pool_size, max_overflow=max_overflow, read_only=read_only)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def unopened(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> SqliteDatabase | ServerDatabase:
    """The database that a URL names, which the first transaction opens; nothing is looked at before.

    Args:
        url: `sqlite:///file.db`, a path to an SQLite file, `postgresql://user@host/name`, or
            `None` (`sqlite://`) for one in memory. For SQLite, `?synchronous=FULL` waits for the disk; for
            PostgreSQL, `?pool_size=20&max_overflow=0` limits the number of connections.
        pool_size: The number of connections to PostgreSQL that are kept open; overrides the URL.
        max_overflow: The number of further connections that may be open while they are needed; overrides
            the URL.
        read_only: Look only: nothing is written, and a database that is not there or holds no memory is
            refused when it is opened.

    Raises:
        InputError: The URL names no database that this package can use, or an option does not fit it.
    """
    found = named(url)
    pool = {"pool_size": pool_size, "max_overflow": max_overflow}
    if isinstance(found, URL):
        return ServerDatabase(*with_pool(found, pool), read_only=read_only)
    for name, value in pool.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for PostgreSQL, and {str(url)!r} is SQLite: leave it out")
    return SqliteDatabase(*found, read_only=read_only)


def _connected(url: URL, pool: Mapping[str, int], read_only: bool) -> Database:
    try:
        from langchain_threadmem.storage.postgres import PostgresDatabase
    except ImportError as error:
        raise PersistenceError(
            f"{url.render_as_string()!r} needs the driver psycopg, which is not installed ({error}); "
            'install it with pip install "langchain-threadmem[postgres]"'
        ) from error

    return PostgresDatabase(url.set(drivername="postgresql+psycopg"), read_only=read_only, **pool)


class ServerDatabase(forking.Forkable):
    """A PostgreSQL database that is connected to when it is needed, and anew in a forked child.

    Args:
        url: A SQLAlchemy URL.
        pool: The options `pool_size` and `max_overflow` of `PostgresDatabase`, where they are given.
        read_only: Whether to look only.
    """

    dialect = "postgresql"
    path: Path | None = None

    def __init__(self, url: URL, pool: Mapping[str, int], *, read_only: bool = False) -> None:
        self._url = url
        self._pool = pool
        self._read_only = read_only
        self._opening = forking.lock()
        self._opened: Database | None = None
        self._inherited: list[object] = []  # of a parent process: to let go of it might close its connections
        self.closed = False
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether it was opened; then it is there, with the newest tables."""
        return self._opened is not None

    @property
    def row_security(self) -> bool | None:
        """Whether row-level security restricts transactions to one owner; `None` before it was opened."""
        opened = self._opened
        return None if opened is None else opened.row_security

    def open(self) -> None:
        """Make sure that the database is there, with the newest tables."""
        self._now()

    def _now(self) -> Database:
        opened = self._opened
        if opened is not None:
            return opened
        with self._opening:
            if self.closed:
                name = self._url.render_as_string(hide_password=True)
                raise ClosedError(f"{name!r} was closed; make a new ChatMemory or MemorySystem to go on")
            if self._opened is not None:
                return self._opened
            self._opened = _connected(self._url, self._pool, self._read_only)
            return self._opened

    async def _soon(self) -> Database:
        opened = self._opened
        return await asyncio.to_thread(self._now) if opened is None else opened

    def after_fork(self, *, child: bool) -> None:
        """In a child, connect anew, and leave the connections of the parent as they are."""
        if child and self._opened is not None:
            self._inherited.append(self._opened)
            self._opened = None

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one consistent state of what is committed."""
        return self._now().read(transaction)

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction, in the calling thread."""
        return self._now().write(transaction)

    async def aread(self, transaction: Transaction[T]) -> T:
        """Run `read` without blocking the event loop."""
        return await (await self._soon()).aread(transaction)

    async def awrite(self, transaction: Transaction[T]) -> T:
        """Run `write` without blocking the event loop."""
        return await (await self._soon()).awrite(transaction)

    def scrub(self) -> str:
        """Why the server's files may hold what was deleted."""
        return self._now().scrub()

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        with self._opening:
            self.closed = True
            opened = self._opened
        if opened is not None:
            opened.close()

    async def aclose(self) -> None:
        """`close`, without blocking the event loop."""
        self.closed = True
        if self._opened is not None:
            await self._opened.aclose()
