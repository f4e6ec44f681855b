"""PostgreSQL databases, over connection pools of SQLAlchemy and psycopg.

A transaction is a pipeline: statements that return nothing travel with the next one that does, or with the
COMMIT, so it takes as many round trips as it asks questions. The first statement of every write takes the row
of its tree (`SELECT ... FOR UPDATE`), so writes to one conversation follow each other and writes to others do
not wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import TimeoutError as NoneFreeError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from langchain_threadmem.errors import PersistenceError, StorageBusyError
from langchain_threadmem.storage.migrations import check, migrate
from langchain_threadmem.storage.statements import Asked, Conn, refused
from langchain_threadmem.storage.threaded import Threaded, Transaction
from langchain_threadmem.storage.transaction import enter_transaction, inside_transaction

T = TypeVar("T")
_SETUP_LOCK = 0x7468_7265_6164  # "thread"
POOL_SIZE, MAX_OVERFLOW = 5, 10
WRITER_THREADS = 4
POOL_SECONDS = 30.0
"""How long to wait for a connection while nobody gives one back."""
IDLE_SECONDS = 1.0
"""A connection that was not used for longer is asked whether it is still alive."""


class PostgresDatabase(Threaded):
    """A PostgreSQL database, reached by one pool of connections for sync and async.

    Args:
        url: A SQLAlchemy URL with the psycopg driver.
        pool_size: How many connections are kept open.
        max_overflow: How many more may be open for a while.
        read_only: Whether to look only.
    """

    dialect = "postgresql"
    path: Path | None = None

    def __init__(
        self,
        url: URL,
        pool_size: int = POOL_SIZE,
        max_overflow: int = MAX_OVERFLOW,
        *,
        read_only: bool = False,
    ) -> None:
        super().__init__(WRITER_THREADS)
        self._url = url
        self._read_only = read_only
        arguments, options = psycopg_dialect().create_connect_args(url)  # type: ignore[no-untyped-call]
        self._connections = QueuePool(
            lambda: cast("DBAPIConnection", psycopg.connect(*arguments, **options, autocommit=True)),
            pool_size=pool_size,
            max_overflow=max_overflow,
            timeout=POOL_SECONDS,
            use_lifo=True,  # The connection that was used last knows the statements.
        )
        self._ended = 0  # how many transactions have

        def setup(conn: Conn) -> None:
            if read_only:
                check(conn, self._name)
                return
            conn.script(f"SELECT pg_advisory_xact_lock({_SETUP_LOCK})")
            migrate(conn, time.time())

        try:
            self.write(setup)
        except BaseException:
            self.close()
            raise

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a transaction, in the calling thread."""
        return self._transact("BEGIN READ ONLY" if self._read_only else "BEGIN", transaction)

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one consistent state of what is committed."""
        return self._transact("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", transaction)

    def _transact(self, begin: str, transaction: Transaction[T]) -> T:
        token = enter_transaction()
        try:
            with self._connection() as connection:
                try:
                    with connection.pipeline():
                        conn = PipelinedConn(connection)
                        conn.script(begin)
                        result = transaction(conn)
                        conn.script("COMMIT")
                except BaseException:
                    with suppress(psycopg.Error):
                        connection.rollback()
                    raise
            return result
        except psycopg.Error as error:
            raise PersistenceError(f"{self._name}: {error}") from error
        finally:
            inside_transaction.reset(token)

    def scrub(self) -> str:
        """Why the server's files may hold what was deleted: its own VACUUM is up to who runs it."""
        return f"{self._name}: the server keeps what was deleted in its files until its own VACUUM"

    def close(self) -> None:
        """Finish what is queued and close all connections; a second call does nothing.

        What is being done in another thread is finished, and its connection closed then.
        """
        self._finish()
        self.closed = True
        self._connections.dispose()

    @property
    def _name(self) -> str:
        return repr(self._url.render_as_string(hide_password=True))

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        held = self._checked_out()
        connection = cast("psycopg.Connection[Any]", held.driver_connection)
        try:
            yield connection
        finally:
            self._ended += 1
            held.info["used"] = time.monotonic()
            if connection.closed:
                held.invalidate()
            held.close()
            if self.closed:
                # Closed meanwhile: a connection that was in use then is closed by who used it.
                self._connections.dispose()

    def _checked_out(self) -> PoolProxiedConnection:
        while True:
            if self.closed:
                raise self._closed()
            ended = self._ended
            try:
                held = self._connections.connect()
            except NoneFreeError as error:
                if self._ended != ended:
                    continue
                raise StorageBusyError(
                    f"{self._name}: no connection was given back for {POOL_SECONDS:.0f} s, and nothing was "
                    "written: try again, or allow more connections with pool_size"
                ) from error
            if time.monotonic() - held.info.get("used", inf) < IDLE_SECONDS:
                return held
            try:
                cast("psycopg.Connection[Any]", held.driver_connection).execute("")
                return held
            except psycopg.Error:
                held.invalidate()
                held.close()


class PipelinedConn(Conn):
    """An open transaction in a pipeline."""

    __slots__ = ("_connection",)

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # A cursor that is used again before its result is there would take that for the next one's.
        super().__init__(connection.cursor(), "postgresql", connection.cursor())
        self._connection = connection

    def each(self, *asked: Asked) -> list[list[tuple[Any, ...]]]:
        """Execute statements, none of which needs another's rows, in one round trip."""
        cursors = []
        for statement, values in asked:
            sql, order = statement.forms.get(self.dialect) or statement.form(self.dialect)
            try:
                cursors.append(self._connection.execute(sql, values if order is None else order(values)))
            except (UnicodeEncodeError, OverflowError) as error:
                raise refused(error) from error
        return [cursor.fetchall() for cursor in cursors]
