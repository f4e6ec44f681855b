"""A PostgreSQL database whose reads may run on a replica.

A replica follows its primary by streaming replication, so it lacks the newest commits for a moment. A read
uses it only if it has replayed the position in the write-ahead log that this process knows: the end of the
log as a read of the primary saw it last. Each write makes that position unknown, so the next read runs on the
primary and learns a new one. A process therefore reads what it wrote, and never an older state than it has
read before; what other processes wrote arrives with the replica's delay. No read waits for a replica.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Unpack, cast

from sqlalchemy.engine import URL

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import PersistenceError, ThreadMemError
from langchain_threadmem.storage.database import ServerOptions
from langchain_threadmem.storage.postgres import IS_PARTITIONED, LATEST, READ, PostgresDatabase
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.storage.transaction import Transaction

if TYPE_CHECKING:
    from langchain_threadmem.storage.owned import OwnedDatabase

log = logging.getLogger(__package__)
RETRY_SECONDS = 10.0
"""The time after which a replica that did not answer is asked again."""
CONNECT_SECONDS = 2
"""The timeout of a connection to a replica, if its URL has no `connect_timeout`."""
_IF = f"SELECT CASE WHEN {{}} THEN ({{}} - '0/0')::bigint END, {IS_PARTITIONED}"
_END = Statement.of(
    sqlite="", postgresql=_IF.format("NOT pg_is_in_recovery()", "pg_current_wal_insert_lsn()")
)
"""The end of the primary's log, `NULL` on a server that is no primary; whether there are partitions."""
_REPLAYED = Statement.of(sqlite="", postgresql=_IF.format("pg_is_in_recovery()", "pg_last_wal_replay_lsn()"))
"""The position that a replica has replayed, `NULL` after its promotion; whether there are partitions."""


class _Behind(Exception):  # noqa: N818 # never leaves this module
    """A replica lacks a state that this process has seen, or has a form of tables that it has not seen."""


class ReplicatedDatabase(PostgresDatabase):
    """A PostgreSQL database and a replica, each with a connection pool.

    Args:
        url: A SQLAlchemy URL of the primary.
        replica: A SQLAlchemy URL of the replica.
        **options: The options of both pools; see `PostgresDatabase`.
    """

    def __init__(self, url: URL, replica: URL, **options: Unpack[ServerOptions]) -> None:
        super().__init__(url, **options)
        timed = {"connect_timeout": str(CONNECT_SECONDS)} | dict(replica.query)
        self._replica = PostgresDatabase(replica.set(query=timed), **options | ServerOptions(read_only=True))
        self._seen: int | None = None  # the position in the log up to which this process has seen commits
        self._writes = 0  # the number of beginnings and ends of writes
        self._ask_at: float = 0
        self._guard = forking.lock()

    def _write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        self._forget()
        try:
            return super()._write(transaction, owner)
        finally:
            self._forget()

    def _forget(self) -> None:
        with self._guard:
            self._writes += 1
            self._seen = None

    def _learn(self, position: int | None, writes: int) -> None:
        with self._guard:
            if position is not None and writes == self._writes:
                self._seen = max(position, self._seen or 0)

    def read(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """Run a function on one snapshot of the replica, or of the primary if the replica is behind or down.

        Raises:
            PersistenceError: The server failed; if it was the replica, the next call uses the primary.
        """
        self.open()
        seen, writes = self._seen, self._writes
        if seen is not None and time.monotonic() >= self._ask_at:
            try:
                return self._read_replica(transaction, owner, seen, writes)
            except _Behind:
                pass

        def read(conn: Conn) -> tuple[T, int | None]:
            result = transaction(conn)
            return result, self._position(conn, _END)

        result, position = super().read(read, owner)
        self._learn(position, writes)
        return result

    def _read_replica(
        self, transaction: Transaction[T], owner: OwnedDatabase | None, seen: int, writes: int
    ) -> T:
        import psycopg

        began = False

        def read(conn: Conn) -> tuple[T, int | None]:
            nonlocal began
            # The snapshot must be newer than the position, so it is the snapshot of another transaction.
            form = self._form
            if (self._position(conn, _REPLAYED) or -1) < seen or self._form != form:
                raise _Behind
            conn.script("COMMIT", READ)
            began = True
            if owner is not None:
                owner.own(conn)  # The name of an owner ends with a transaction.
            result = transaction(conn)
            return result, self._position(conn, _REPLAYED)

        try:
            self._open_replica()
            result, position = self._replica._transact(f"{LATEST}, READ ONLY", read)
        except PersistenceError as error:
            if began and not isinstance(error.__cause__, psycopg.Error):
                raise
            self._note(error)
            if began:
                raise
            raise _Behind from error
        self._learn(position, writes)
        return result

    def _position(self, conn: Conn, statement: Statement) -> int | None:
        """The position of a server; statements name partitions from now on if the tables have any."""
        row: tuple[Any, ...] | None = conn.one(statement)
        if row is None:
            return None
        if row[1]:
            self._form = self._replica._form = "partitioned"
        return cast("int | None", row[0])

    def _open_replica(self) -> None:
        """Connect to the replica, which may lack the tables.

        Raises:
            PersistenceError: The replica cannot be used.
        """
        if not self._replica.opened:
            try:
                self._replica.open()
            except PersistenceError:
                raise
            except ThreadMemError as error:
                raise PersistenceError(str(error)) from error

    def _note(self, error: PersistenceError) -> None:
        """Use the primary for a while, and say so when it begins."""
        if not self.closed and time.monotonic() >= self._ask_at:
            log.warning("reading from the primary for %.0f s, not from the replica: %s", RETRY_SECONDS, error)
            self._ask_at = time.monotonic() + RETRY_SECONDS

    def close(self) -> None:
        """Complete the queued writes and close all connections of both pools."""
        super().close()
        self._replica.close()
