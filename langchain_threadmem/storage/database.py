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

import asyncio
import os
import re
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langchain_threadmem.core import forking
from langchain_threadmem.errors import (
    ClosedError,
    DriverError,
    InputError,
    LostDatabaseError,
    PersistenceError,
    StorageBusyError,
)
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.migrations import check, migrate
from langchain_threadmem.storage.sealing import Seal
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.threaded import Threaded, Transaction

T = TypeVar("T")
_FORMS = "sqlite:///memory.db or postgresql://user@host/name"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|:")
"""How a URL begins; one letter is a drive of Windows."""
_PASSWORD = re.compile(r"(://[^/:@]*):.*@")

inside_transaction: ContextVar[bool] = ContextVar("threadmem_inside_transaction", default=False)
BUSY_SECONDS = 60.0
_PUT_BACK = "nothing was written: put the file back, or close this memory and open it again"
FORK_SECONDS = 5.0
"""How long a fork waits for transactions of other threads."""
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
    found = _named(url)
    pool = {"pool_size": pool_size, "max_overflow": max_overflow}
    if isinstance(found, URL):
        return ServerDatabase(*_with_pool(found, pool), read_only=read_only)
    for name, value in pool.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for PostgreSQL, and {str(url)!r} is SQLite: leave it out")
    return SqliteDatabase(*found, read_only=read_only)


def _with_pool(url: URL, pool: Mapping[str, int | None]) -> tuple[URL, dict[str, int]]:
    """A URL without the size of the pool, and that size, as far as it is given."""
    sizes: dict[str, int] = {}
    for name, least in (("pool_size", 1), ("max_overflow", 0)):
        value = pool[name] if pool[name] is not None else url.query.get(name)
        if value is not None:
            sizes[name] = _number(name, value, least)
    return url.difference_update_query(pool), sizes


def _number(name: str, value: object, least: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if type(number) is not int or number < least:
        raise InputError(f"{name}={value!r} is no number of connections; pass {least} or more")
    return number


def _connected(url: URL, pool: Mapping[str, int], read_only: bool) -> Database:
    try:
        from langchain_threadmem.storage.postgres import PostgresDatabase
    except ImportError as error:
        raise PersistenceError(
            f"{url.render_as_string()!r} needs the driver psycopg, which is not installed ({error}); "
            'install it with pip install "langchain-threadmem[postgres]"'
        ) from error

    return PostgresDatabase(url.set(drivername="postgresql+psycopg"), read_only=read_only, **pool)


def on_event_loop() -> bool:
    """Whether this thread runs an event loop, which nothing may block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def sqlite_file(url: str | Path) -> Path | None:
    """The file that a URL or a path names; `None` if it names no file.

    Raises:
        InputError: The URL names no database that this package can use.

    Example:
        >>> str(sqlite_file("sqlite:///memory.db")), sqlite_file("postgresql://user@host/name")
        ('memory.db', None)
    """
    found = _named(url)
    return None if isinstance(found, URL) else found[0]


def is_url(place: str | Path) -> bool:
    """Whether a place is written as a URL, right or wrong; one that begins with a drive of Windows is not.

    Example:
        >>> [is_url(place) for place in ("sqlite:memory.db", "http://host", "C:/memory.db", "a/memory.db")]
        [True, True, False, False]
    """
    return isinstance(place, str) and ("://" in place or _SCHEME.match(place) is not None)


def _named(url: str | Path | None) -> URL | tuple[Path | None, str]:
    """The URL of a server, or an SQLite file (`None` for memory) and its `synchronous` setting."""
    if url is None or str(url) == ":memory:":
        return None, "NORMAL"
    if isinstance(url, Path):
        return url, "NORMAL"
    if not isinstance(url, str) or not url.strip():
        raise InputError(f"{url!r} is no database; pass a path, {_FORMS}, or None for one in memory")
    if not is_url(url):
        return Path(url), "NORMAL"
    shown = _PASSWORD.sub(r"\1:***@", url)
    if "://" not in url:
        raise InputError(
            f"{shown!r} is no database URL; write {_FORMS}, or pass a file of this name as a pathlib.Path"
        )
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise InputError(f"{shown!r} is no database URL; write {_FORMS}") from error
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed
    if backend != "sqlite":
        raise InputError(f"no support for {backend!r} databases (in {shown!r}); write {_FORMS}")
    if parsed.host is not None or (url.endswith("///") and not parsed.database):
        name = f"{parsed.host or 'memory.db'}" + (f"/{parsed.database}" if parsed.database else "")
        raise InputError(
            f"{shown!r} names no file; write sqlite:///{name} (three slashes, four before an absolute path), "
            "or sqlite:// for a database in memory"
        )
    if unknown := set(parsed.query) - {"synchronous"}:
        raise InputError(f"{shown!r} has the unknown option {min(unknown)!r}; SQLite takes only synchronous=")
    file = parsed.database
    path = None if file in (None, "", ":memory:") else Path(str(file))
    return path, str(parsed.query.get("synchronous", "NORMAL"))


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


class SqliteDatabase(Threaded, forking.Forkable):
    """One SQLite file, or one database in memory.

    Connections are opened when they are needed, the first by `open`. None may live on in a forked child: it
    would take its parent's locks for its own, and lose what it writes (https://sqlite.org/howtocorrupt.html,
    2.6). So a fork waits for the transactions of other threads and closes all connections; parent and child
    open new ones. A database in memory stays open, and the child has a copy of its own.

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
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._synchronous = synchronous.upper()
        self._lock = forking.lock()
        self._reading = forking.lock()  # held to open connections for reading
        self._readers: deque[sqlite3.Connection] = deque()
        self._reader_count = 0  # those in use are not in the queue
        self.seal: Seal | None = None
        self._writer: sqlite3.Connection | None = None
        self._cursor: Any = None
        self._conn: Any = None
        self._migrated = False
        self.first: Callable[[Conn], object] | None = None
        """What else is to be done before anything, once the database is open."""
        self._ends: dict[int, Any] = {}
        self._file: tuple[str, int, int] | None = None
        """The file as it was when it was opened: its place, inode and device."""
        self._others: object = None  # changes with every commit of another connection
        self._at_rest = False
        self._torn: object = None  # what a child took over amid a transaction
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether it was opened; then it is there, with the newest tables."""
        return self._migrated

    def open(self) -> None:
        """Make sure that the database is there, with the newest tables."""
        with self._lock:
            if self._writer is None:
                self._open()

    def _open(self) -> None:
        """Open the connection that writes; the caller holds the lock."""
        if self.closed:
            raise self._closed()
        if self._torn is not None:
            raise PersistenceError(
                f"this process was forked amid a transaction on {self._name}; "
                "make a new ChatMemory or MemorySystem in it"
            )
        if self._read_only and (self.path is None or not self.path.is_file()):
            raise InputError(f"there is no database file {str(self.path)!r}; check the path")
        self._check_file()  # Or an empty file would be made in its place.
        writer = self._connect()
        cursor = writer.cursor()
        conn = Conn(cursor, "sqlite", self.seal)
        try:
            if not self._migrated:
                cursor.execute(self._begin)
                if self._read_only:
                    check(conn, self._name)
                else:
                    migrate(conn, time.time())
                cursor.execute("COMMIT")
            if not self._read_only:
                checksums.keep(writer)
            if self.first is not None:
                cursor.execute(self._begin)
                self.first(conn)
                cursor.execute("COMMIT")
            if self.path is not None and self._file is None:
                found = os.stat(self.path)
                self._file = os.path.abspath(self.path), found.st_ino, found.st_dev
            self._migrated, self.first = True, None
        except BaseException as error:
            writer.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise translated(error, self._name) from error
            raise
        self._writer, self._cursor, self._conn = writer, cursor, conn
        self._ends, self._others = {}, None

    def before_fork(self) -> None:
        """Wait for transactions, and close all connections to a file."""
        limit = time.monotonic() + (0 if inside_transaction.get() else FORK_SECONDS)
        self._at_rest = False
        if not self._reading.acquire(timeout=FORK_SECONDS):
            return
        if not self._lock.acquire(timeout=max(limit - time.monotonic(), 0)):
            self._reading.release()
            return
        while len(self._readers) < self._reader_count:
            if time.monotonic() > limit:
                self._lock.release()
                self._reading.release()
                return
            time.sleep(0.001)
        self._at_rest = True
        if self.path is not None:
            self._close_all()

    def after_fork(self, *, child: bool) -> None:
        """Go on with new connections; in a child also with new threads."""
        if child:
            self._pool, self._group = None, None
            if not self._at_rest:
                self._torn = self._writer, list(self._readers)  # Kept, for closing them is using them.
                self._writer, self._readers, self._reader_count = None, deque(), 0
        elif self._at_rest:
            self._lock.release()
            self._reading.release()

    def encrypt(self, seal: Seal) -> None:
        """Encrypt what is said from now on, and read nothing else."""
        with self._lock:
            self.seal = seal
            if self._conn is not None:
                self._conn.seal = seal
            self._ends = {}

    @property
    def _name(self) -> str:
        return "the database in memory" if self.path is None else repr(str(self.path))

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            place: str | Path = ":memory:" if self.path is None else self.path
            options: dict[str, Any] = {}
            if self._read_only:
                place = f"{Path(place).absolute().as_uri()}?mode={_looking_mode(Path(place))}"
                options = {"uri": True}
            connection = sqlite3.connect(
                place,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                **options,
            )
            checksums.connect(connection)
            if self._read_only:
                connection.execute("PRAGMA query_only=ON")
                return connection
            # A commit writes whole pages, so small ones; for new files only, and it must come before WAL.
            connection.execute("PRAGMA page_size=2048")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES_TO_CHECKPOINT[self._synchronous]}")
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # A damaged schema may be no text.
            if connection is not None:
                connection.close()
            raise translated(error, self._name) from error
        return connection

    def _check_file(self) -> None:
        """Refuse to go on with a file that is not there any more: what is written to it would be lost.

        Raises:
            LostDatabaseError: It was deleted, or another one has its name.
        """
        if self._file is not None:
            try:
                now = os.stat(self._file[0])
            except FileNotFoundError:
                raise LostDatabaseError(f"{self._name} was deleted while it was open; {_PUT_BACK}") from None
            if (now.st_ino, now.st_dev) != self._file[1:]:
                raise LostDatabaseError(f"{self._name} was replaced while it was open; {_PUT_BACK}")

    def write(self, transaction: Transaction[T]) -> T:
        """Run a function in a write transaction, in the calling thread."""
        appends = getattr(transaction, "appends", False)
        if inside_transaction.get():
            raise _inside()
        # An append calls no code of others, but for a cipher: nothing in it could open a transaction.
        token = None if appends and self.seal is None else inside_transaction.set(True)
        try:
            with self._lock:
                if self._writer is None:
                    self._open()
                self._check_file()
                cursor, conn = self._cursor, self._conn
                try:
                    cursor.execute(self._begin)
                    conn.ends = self._known_ends() if appends else None
                    result = transaction(conn)
                    cursor.execute("COMMIT")
                    if not appends:
                        self._ends = {}
                except BaseException as error:
                    self._ends = {}
                    if cursor.connection.in_transaction:
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
                connection = self._new_reader()
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

    def _new_reader(self) -> sqlite3.Connection:
        with self._reading:
            if self._writer is None:
                self.open()
            self._check_file()  # Or an empty file would be made in its place.
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")  # A write in a read would be lost without a word.
            # A reader's own pages are void after every write; those of the mapped file are not.
            connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
            self._reader_count += 1
            return connection

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
                if self._writer is None:
                    self._open()
                self._check_file()
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
            self._close_all()

    def _close_all(self) -> None:
        while self._readers:
            self._readers.pop().close()
            self._reader_count -= 1
        if self._writer is not None:
            self._writer.close()
            self._writer = None


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
        self.first: Callable[[Conn], object] | None = None
        """What else is to be done before anything, once the database is open."""
        self._opened: Database | None = None
        self._inherited: list[object] = []  # of a parent process: to let go of it might close its connections
        self.closed = False
        self.seal: Seal | None = None
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether it was opened; then it is there, with the newest tables."""
        return self._opened is not None

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
            opened = _connected(self._url, self._pool, self._read_only)
            try:
                if self.first is not None:
                    opened.write(self.first)
            except BaseException:
                opened.close()
                raise
            if self.seal is not None:
                opened.encrypt(self.seal)
            self._opened, self.first = opened, None
            return opened

    async def _soon(self) -> Database:
        opened = self._opened
        return await asyncio.to_thread(self._now) if opened is None else opened

    def after_fork(self, *, child: bool) -> None:
        """In a child, connect anew, and leave the connections of the parent as they are."""
        if child and self._opened is not None:
            self._inherited.append(self._opened)
            self._opened = None

    def encrypt(self, seal: Seal) -> None:
        """Encrypt what is said from now on, and read nothing else."""
        self.seal = seal
        if self._opened is not None:
            self._opened.encrypt(seal)

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


def _looking_mode(path: Path) -> str:
    """How to open a file that is only looked at: `ro`, but for a database in WAL mode that nobody has open.

    Whoever opens one makes two files beside it, and only who may write takes them away again.
    """
    with path.open("rb") as file:
        in_wal_mode = file.read(20)[18:] == b"\x02\x02"
    return "rw" if in_wal_mode and not path.with_name(f"{path.name}-wal").exists() else "ro"


def translated(error: Exception, name: str) -> PersistenceError:
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
