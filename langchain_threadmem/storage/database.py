"""Opening a database by its URL, immediately or at its first transaction (see `storage.transaction`)."""

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
from langchain_threadmem.storage.urls import parse_url, with_pool


def open_database(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> Database:
    """Open a database, and create or migrate its tables.

    Raises:
        InputError: The URL is not the URL of a supported database, an option does not apply to it, or a
            read-only database does not exist or is not a memory.
        PersistenceError: The database cannot be opened.
        NewerDatabaseError: A newer version of this package wrote the database.

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
    """The database of a URL, which the first transaction opens; this call does not access it.

    Args:
        url: `sqlite:///file.db`, a path to an SQLite file, `postgresql://user@host/name`, or
            `None` (`sqlite://`) for a database in memory. For SQLite, `?synchronous=FULL` waits for the disk;
            for PostgreSQL, `?pool_size=20&max_overflow=0` limits the number of connections.
        pool_size: The number of connections to PostgreSQL that stay open; overrides the URL.
        max_overflow: The maximum number of additional connections; overrides the URL.
        read_only: Whether to allow reads only; opening then refuses a database that does not exist or is not
            a memory.

    Raises:
        InputError: The URL is not the URL of a supported database, or an option does not apply to it.
    """
    location = parse_url(url)
    pool = {"pool_size": pool_size, "max_overflow": max_overflow}
    if isinstance(location, URL):
        return ServerDatabase(*with_pool(location, pool), read_only=read_only)
    for name, value in pool.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for PostgreSQL, but {str(url)!r} is SQLite; leave it out")
    return SqliteDatabase(*location, read_only=read_only)


def _connect(url: URL, pool: Mapping[str, int], read_only: bool) -> Database:
    try:
        from langchain_threadmem.storage.postgres import PostgresDatabase
    except ImportError as error:
        raise PersistenceError(
            f"{url.render_as_string()!r} requires the driver psycopg, which is not installed ({error}); "
            'install it with pip install "langchain-threadmem[postgres]"'
        ) from error

    return PostgresDatabase(url.set(drivername="postgresql+psycopg"), read_only=read_only, **pool)


class ServerDatabase(forking.Forkable):
    """A PostgreSQL database that connects at its first transaction, and again in a forked child.

    Args:
        url: A SQLAlchemy URL.
        pool: The options `pool_size` and `max_overflow` of `PostgresDatabase`, if they are given.
        read_only: Whether to allow reads only.
    """

    dialect = "postgresql"
    path: Path | None = None

    def __init__(self, url: URL, pool: Mapping[str, int], *, read_only: bool = False) -> None:
        self._url = url
        self._pool = pool
        self._read_only = read_only
        self._open_lock = forking.lock()
        self._opened: Database | None = None
        self._inherited: list[object] = []  # databases of the parent, whose deletion might close connections
        self.closed = False
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether the database was opened; it then exists and has the newest tables."""
        return self._opened is not None

    @property
    def row_security(self) -> bool | None:
        """Whether row-level security restricts transactions to one owner; `None` until it is open."""
        opened = self._opened
        return None if opened is None else opened.row_security

    def open(self) -> None:
        """Connect, and create or migrate the tables."""
        self._open()

    def _open(self) -> Database:
        opened = self._opened
        if opened is not None:
            return opened
        with self._open_lock:
            if self.closed:
                name = self._url.render_as_string(hide_password=True)
                raise ClosedError(f"{name!r} was closed; make a new ChatMemory or MemorySystem")
            if self._opened is not None:
                return self._opened
            self._opened = _connect(self._url, self._pool, self._read_only)
            return self._opened

    async def _aopen(self) -> Database:
        opened = self._opened
        return await asyncio.to_thread(self._open) if opened is None else opened

    def after_fork(self, *, child: bool) -> None:
        """In a child, disconnect without closing the connections of the parent."""
        if child and self._opened is not None:
            self._inherited.append(self._opened)
            self._opened = None

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one snapshot of the committed data."""
        return self._open().read(transaction)

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction in the calling thread."""
        return self._open().write(transaction)

    async def aread(self, transaction: Transaction[T]) -> T:
        """Run `read` without blocking the event loop."""
        return await (await self._aopen()).aread(transaction)

    async def awrite(self, transaction: Transaction[T]) -> T:
        """Run `write` without blocking the event loop."""
        return await (await self._aopen()).awrite(transaction)

    def scrub(self) -> str:
        """The reason why deleted data may remain in the files of the server."""
        return self._open().scrub()

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        with self._open_lock:
            self.closed = True
            opened = self._opened
        if opened is not None:
            opened.close()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        self.closed = True
        if self._opened is not None:
            await self._opened.aclose()
