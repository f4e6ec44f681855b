"""The same statements on PostgreSQL, over SQLAlchemy's pools and psycopg.

The first statement of every write takes the row of its tree (`SELECT ... FOR UPDATE`), so writes to
one conversation follow each other and writes to others do not wait. All statements of a read see one state of
the database, and none of them can write.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import greenlet_spawn

from langchain_threadmem.errors import ClosedError, PersistenceError
from langchain_threadmem.storage.database import Transaction, enter_transaction, inside_transaction
from langchain_threadmem.storage.migrations import check, migrate
from langchain_threadmem.storage.sealing import Seal
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.writer import guarded

T = TypeVar("T")
_SETUP_LOCK = 0x7468_7265_6164  # "thread"
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class PostgresDatabase:
    """A PostgreSQL database, reached by a pool of connections for each of sync and async.

    Args:
        url: A SQLAlchemy URL with the psycopg driver.
        read_only: Whether to look only.
    """

    dialect = "postgresql"
    path: Path | None = None

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        self._url = url
        self._options = {"postgresql_readonly": True} if read_only else {}
        self._engine = create_engine(url, pool_pre_ping=True, execution_options=self._options)
        self._async: dict[asyncio.AbstractEventLoop, _LoopEngine] = {}
        self.closed = False
        self.seal: Seal | None = None

        def setup(conn: Conn) -> None:
            if read_only:
                check(conn, repr(url.render_as_string(hide_password=True)))
                return
            conn.script(f"SELECT pg_advisory_xact_lock({_SETUP_LOCK})")
            migrate(conn, time.time())

        try:
            self.write(setup)
        except BaseException:
            self.close()
            raise

    def encrypt(self, seal: Seal) -> None:
        """Encrypt what is said from now on, and read nothing else."""
        self.seal = seal

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction, in the calling thread."""
        with self._ready():
            try:
                with self._engine.begin() as connection:
                    result: T = _run(connection, transaction, self.seal)
                    return result
            finally:
                if self.closed:
                    # Closed meanwhile: a connection that was in use then is closed by who used it.
                    self._engine.pool.dispose()

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one consistent state of what is committed."""
        return self.write(partial(_on_snapshot, transaction))

    async def awrite(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction on the async driver."""
        with self._ready():
            engine = self._async_engine()
            try:
                async with engine.begin() as connection:
                    return await connection.run_sync(partial(guarded, _run), transaction, self.seal)
            finally:
                if self.closed:
                    await greenlet_spawn(engine.sync_engine.pool.dispose)

    async def aread(self, transaction: Transaction[T]) -> T:
        """Run `read` on the async driver."""
        return await self.awrite(partial(_on_snapshot, transaction))

    def scrub(self) -> str:
        """Why the server's files may hold what was deleted: its own VACUUM is up to who runs it."""
        name = self._url.render_as_string(hide_password=True)
        return f"{name!r}: the server keeps what was deleted in its files until its own VACUUM"

    def _async_engine(self) -> AsyncEngine:
        # Connections belong to the loop that opened them: each loop gets a pool of its own.
        loop = asyncio.get_running_loop()
        if loop not in self._async:
            for ended in [other for other in self._async if other.is_closed()]:
                self._async.pop(ended).abandon()
            self._async[loop] = _LoopEngine(self._url, self._options)
        return self._async[loop].engine

    def close(self) -> None:
        """Close all pools; a second call does nothing.

        What is being done in another thread is finished, and its connection closed then.
        """
        self.closed = True
        # Not the engine's own `dispose`: it puts a new pool in place of the one that connections return to.
        self._engine.pool.dispose()
        while self._async:
            self._async.popitem()[1].abandon()

    async def aclose(self) -> None:
        """`close`; what other tasks of this loop are doing is finished too."""
        self.closed = True
        own = self._async.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await greenlet_spawn(own.engine.sync_engine.pool.dispose)
        await asyncio.to_thread(self.close)

    @contextmanager
    def _ready(self) -> Iterator[None]:
        name = self._url.render_as_string(hide_password=True)
        if self.closed:
            raise ClosedError(f"{name!r} was closed; make a new ChatMemory or MemorySystem to go on")
        token = enter_transaction()
        try:
            yield
        except DBAPIError as error:
            raise PersistenceError(f"{name!r}: {error.orig}") from error
        except (SQLAlchemyError, psycopg.Error) as error:
            raise PersistenceError(f"{name!r}: {error}") from error
        finally:
            inside_transaction.reset(token)


class _LoopEngine:
    """The pool of one event loop, whose connections can be closed after the loop has ended."""

    def __init__(self, url: URL, options: Mapping[str, Any]) -> None:
        self.engine = create_async_engine(url, pool_pre_ping=True, execution_options=options)
        self._opened: WeakSet[Any] = WeakSet()
        event.listen(self.engine.sync_engine, "connect", self._remember)

    def _remember(self, connection: Any, record: object) -> None:
        self._opened.add(connection.driver_connection)

    def abandon(self) -> None:
        """Close the connections without their loop."""
        for connection in list(self._opened):
            connection.pgconn.finish()
        self.engine.sync_engine.dispose(close=False)


def _run(connection: Connection, transaction: Transaction[Any], seal: Seal | None) -> Any:
    # The pool's own connection: its cursor is the driver's, or SQLAlchemy's adapter of the async one.
    cursor = connection.connection.cursor()
    try:
        return transaction(Conn(cursor, "postgresql", seal))
    finally:
        cursor.close()


def _on_snapshot(transaction: Transaction[T], conn: Conn) -> T:
    conn.script(_SNAPSHOT)
    return transaction(conn)
