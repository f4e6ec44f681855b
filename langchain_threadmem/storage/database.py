"""Databases: where transactions begin and end.

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

import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langchain_threadmem.errors import (
    DriverError,
    InputError,
    PersistenceError,
    StorageBusyError,
)
from langchain_threadmem.storage.migrations import check, migrate
from langchain_threadmem.storage.sealing import Seal
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.threaded import Threaded, Transaction

T = TypeVar("T")

inside_transaction: ContextVar[bool] = ContextVar("threadmem_inside_transaction", default=False)
BUSY_SECONDS = 60.0
SCRUB_SECONDS = 2.0
"""How long to wait for readers of an older state of the file."""
MOST_ENDS = 4096
"""Of how many trees the end is known, so that an append reads nothing."""
MAPPED_BYTES = 0 if sys.platform == "win32" else 1 << 30
"""How much of its file a reader maps into memory, if the system allows. Not on Windows: a mapped file cannot
shrink there, as it does when what was erased is scrubbed from it (https://sqlite.org/mmap.html)."""
_PAGES_TO_CHECKPOINT = {"OFF": 4000, "NORMAL": 4000, "FULL": 1000, "EXTRA": 1000}
"""How long the log grows before it is copied to the file and written over from its beginning.

A page that every append changes is copied less often if that is late (8 MB). But with FULL each commit waits
for the disk, and for twice as long while the log grows than while it is written over.
"""


class Database(Protocol):
    """Runs functions in transactions, for callers with and without an event loop."""

    dialect: str
    path: Path | None
    """The file, if the database is one."""
    closed: bool
    seal: Seal | None

    def encrypt(self, seal: Seal) -> None: ...
    def read(self, transaction: Transaction[T]) -> T: ...
    def write(self, transaction: Transaction[T]) -> T: ...
    async def aread(self, transaction: Transaction[T]) -> T: ...
    def awrite(self, transaction: Transaction[T]) -> Coroutine[Any, Any, T]: ...
    def scrub(self) -> str: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


def open_database(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> Database:
    """Open a database, creating or migrating its tables.

    Args:
        url: `sqlite:///file.db`, a path to an SQLite file, `postgresql://user@host/name`, or
            `None` (`sqlite://`) for one in memory. For SQLite, `?synchronous=FULL` waits for the disk; for
            PostgreSQL, `?pool_size=20&max_overflow=0` says how many connections there may be.
        pool_size: How many connections to PostgreSQL are kept open; before what the URL says.
        max_overflow: How many more may be open while they are needed; before what the URL says.
        read_only: Look only: nothing is written, and a database that is not there or holds no memory is
            refused.

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
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    pool = {
        name: value
        for name, value in (("pool_size", pool_size), ("max_overflow", max_overflow))
        if value is not None
    }
    if url is None or isinstance(url, Path) or "://" not in url:
        _refuse_pool(url, pool)
        path = None if url is None or str(url) == ":memory:" else Path(url)
        return SqliteDatabase(path, read_only=read_only)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise InputError(
            f"{url!r} is no database URL; write sqlite:///memory.db or postgresql://user@host/name"
        ) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        _refuse_pool(url, pool)
        file = parsed.database
        path = None if file in (None, "", ":memory:") else Path(str(file))
        if unknown := set(parsed.query) - {"synchronous"}:
            raise InputError(
                f"{url!r} has the unknown option {min(unknown)!r}; SQLite takes only synchronous="
            )
        return SqliteDatabase(path, str(parsed.query.get("synchronous", "NORMAL")), read_only=read_only)
    if backend in ("postgresql", "postgres"):
        try:
            from langchain_threadmem.storage.postgres import PostgresDatabase
        except ImportError as error:
            raise PersistenceError(
                f"{parsed.render_as_string()!r} needs the driver psycopg, which is not installed ({error}); "
                'install it with pip install "langchain-threadmem[postgres]"'
            ) from error

        for name, least in (("pool_size", 1), ("max_overflow", 0)):
            value = pool.get(name, parsed.query.get(name))
            if value is not None:
                pool[name] = _number(name, value, least)
        return PostgresDatabase(
            parsed.set(drivername="postgresql+psycopg").difference_update_query(pool),
            read_only=read_only,
            **pool,
        )
    raise InputError(
        f"no support for {backend!r} databases (in {parsed.render_as_string()!r}); use sqlite:/// or postgresql://"
    )


def _refuse_pool(url: object, pool: Mapping[str, int]) -> None:
    if pool:
        name, value = next(iter(pool.items()))
        raise InputError(f"{name}={value!r} is for PostgreSQL, and {str(url)!r} is SQLite: leave it out")


def _number(name: str, value: object, least: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if type(number) is not int or number < least:
        raise InputError(f"{name}={value!r} is no number of connections; pass {least} or more")
    return number


def sqlite_file(url: str | Path) -> Path | None:
    """The file that a URL or a path names; `None` if it names no file.

    Example:
        >>> str(sqlite_file("sqlite:///memory.db")), sqlite_file("postgresql://user@host/name")
        ('memory.db', None)
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if isinstance(url, Path) or "://" not in url:
        return None if str(url) == ":memory:" else Path(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return None  # `open_database` says what is wrong with it.
    file = parsed.database if parsed.get_backend_name() == "sqlite" else None
    return None if file in (None, "", ":memory:") else Path(str(file))


def enter_transaction() -> Token[bool]:
    """Mark that a transaction is open here, until `inside_transaction` is reset with what this returns.

    Raises:
        DriverError: One is open already.
    """
    if inside_transaction.get():
        raise _inside()
    return inside_transaction.set(True)


def _inside() -> DriverError:
    return DriverError(
        "a transaction was opened inside another one; "
        "return from the Sql function first, then yield the next step"
    )


class SqliteDatabase(Threaded):
    """One SQLite file, or one database in memory.

    Args:
        path: The file; `None` for memory.
        synchronous: SQLite's setting: NORMAL, FULL, EXTRA or OFF.
        read_only: Whether to look only.
    """

    dialect = "sqlite"

    def __init__(self, path: Path | None, synchronous: str = "NORMAL", *, read_only: bool = False) -> None:
        if synchronous.upper() not in _PAGES_TO_CHECKPOINT:
            raise InputError(f"synchronous={synchronous!r} is not one of OFF, NORMAL, FULL, EXTRA")
        super().__init__()
        self.path = path
        self._read_only = read_only
        if read_only and (path is None or not path.is_file()):
            raise InputError(f"there is no database file {str(path)!r}; check the path")
        self._synchronous = synchronous.upper()
        self._lock = threading.Lock()
        self._readers: deque[sqlite3.Connection] = deque()
        self.seal: Seal | None = None
        self._writer = self._connect()
        self._cursor = self._writer.cursor()
        self._conn = Conn(self._cursor, "sqlite")
        self._ends: dict[int, Any] = {}
        self._others: object = None  # changes with every commit of another connection
        try:
            if read_only:
                self.read(lambda conn: check(conn, self._name))
            else:
                self.write(lambda conn: migrate(conn, time.time()))
        except BaseException:
            self._writer.close()
            raise

    def encrypt(self, seal: Seal) -> None:
        """Encrypt what is said from now on, and read nothing else."""
        with self._lock:
            self.seal, self._conn.seal = seal, seal
            self._ends = {}

    @property
    def _name(self) -> str:
        return "the database in memory" if self.path is None else repr(str(self.path))

    def _connect(self) -> sqlite3.Connection:
        connection = None
        try:
            place: str | Path = ":memory:" if self.path is None else self.path
            if self._read_only:
                place = f"{Path(place).absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(
                place,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                uri=self._read_only,
            )
            if self._read_only:
                return connection
            # A commit writes whole pages, so small ones; for new files only, and it must come before WAL.
            connection.execute("PRAGMA page_size=2048")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES_TO_CHECKPOINT[self._synchronous]}")
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
        except sqlite3.DatabaseError as error:
            if connection is not None:
                connection.close()
            raise translated(error, self._name) from error
        return connection

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a write transaction, in the calling thread."""
        cursor, conn = self._cursor, self._conn
        appends = getattr(transaction, "appends", False)
        if inside_transaction.get():
            raise _inside()
        # An append calls no code of others, but for a cipher: nothing in it could open a transaction.
        token = None if appends and self.seal is None else inside_transaction.set(True)
        try:
            with self._lock:
                if self.closed:
                    raise self._closed()
                try:
                    cursor.execute("BEGIN IMMEDIATE")
                    conn.ends = self._known_ends() if appends else None
                    result = transaction(conn)
                    cursor.execute("COMMIT")
                    if not appends:
                        self._ends = {}
                except BaseException as error:
                    self._ends = {}
                    if self._writer.in_transaction:
                        cursor.execute("ROLLBACK")
                    if isinstance(error, sqlite3.DatabaseError):
                        raise translated(error, self._name) from error
                    raise
                return result
        finally:
            if token is not None:
                inside_transaction.reset(token)

    def _known_ends(self) -> dict[int, Any]:
        """Where trees end, as far as this connection knows: nothing if another one has written since."""
        others = self._cursor.execute("PRAGMA data_version").fetchone()
        if others != self._others or len(self._ends) > MOST_ENDS:
            self._ends, self._others = {}, others
        return self._ends

    def read(self, transaction: Transaction[T]) -> T:
        """Run a function on one consistent state, beside a writer if there is one."""
        if self.path is None:
            return self.write(transaction)  # A database in memory has one connection.
        token = enter_transaction()
        try:
            if self.closed:
                raise self._closed()
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
                connection.execute("PRAGMA query_only=ON")  # A write in a read would be lost without a word.
                # A reader's own pages are void after every write; those of the mapped file are not.
                connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
            try:
                cursor = connection.execute("BEGIN")
                try:
                    return transaction(Conn(cursor, "sqlite", self.seal))
                finally:
                    cursor.execute("ROLLBACK")
            except sqlite3.DatabaseError as error:
                raise translated(error, self._name) from error
            finally:
                self._readers.append(connection)
        finally:
            inside_transaction.reset(token)

    def scrub(self) -> str:
        """Write the file anew without what was deleted, so that its bytes hold nothing of it.

        Takes about a second for 100 MB, in which nobody else can write, and as much free space as the file.

        Returns:
            Why it may still hold some; empty if it does not.

        Raises:
            PersistenceError: There is no room for it, or somebody writes all the time.
        """
        token = enter_transaction()
        try:
            with self._lock:
                if self.closed:
                    raise self._closed()
                try:
                    self._cursor.execute("VACUUM")
                    self._cursor.execute(f"PRAGMA busy_timeout={SCRUB_SECONDS * 1000:.0f}")
                    busy = self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                except sqlite3.DatabaseError as error:
                    raise translated(error, self._name) from error
                finally:
                    self._cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
        finally:
            inside_transaction.reset(token)
        return f"{self._name}: somebody is reading an older state of it" if busy else ""

    def close(self) -> None:
        """Finish queued writes and close all connections; a second call does nothing."""
        if self.closed:
            return
        self._finish()
        with self._lock:
            self.closed = True
            while self._readers:
                self._readers.pop().close()
            self._writer.close()


def translated(error: sqlite3.DatabaseError, name: str) -> PersistenceError:
    """One of SQLite's errors as this package's, naming the database and the next step."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text or "busy" in text:
            return StorageBusyError(
                f"another process kept {name} locked for {BUSY_SECONDS:.0f} s; nothing was written: try again"
            )
        if "unable to open" in text or "readonly" in text:
            return PersistenceError(
                f"cannot open or write {name}: {text}. Check file permissions or choose a different location."
            )
        if "full" in text:
            return PersistenceError(
                f"no room to write {name}: {text}. Free up space or choose a different location."
            )
    return PersistenceError(f"{name}: {text}")
