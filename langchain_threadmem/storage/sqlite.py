"""SQLite databases: one connection that writes, several that read.

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

import os
import sqlite3
import sys
import time
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_threadmem.common import forking
from langchain_threadmem.errors import InputError, LostDatabaseError, PersistenceError, StorageBusyError
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.migrations import check, migrate
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.threaded import Threaded, Transaction
from langchain_threadmem.storage.transaction import T, enter_transaction, inside_transaction

BUSY_SECONDS = 60.0
_PUT_BACK = "nothing was written: put the file back, or close this memory and open it again"
FORK_SECONDS = 5.0
"""How long a fork waits for transactions of other threads."""
SCRUB_SECONDS = 2.0
"""How long to wait for readers of an older state of the file."""
MAPPED_BYTES = 0 if sys.platform == "win32" else 1 << 30
"""How much of its file a reader maps into memory, if the system allows. Not on Windows: a mapped file cannot
shrink there, as it does when what was erased is scrubbed from it (https://sqlite.org/mmap.html)."""
_PAGES_TO_CHECKPOINT = {"OFF": 4000, "NORMAL": 4000, "FULL": 1000, "EXTRA": 1000}
"""How long the log grows before it is copied to the file and written over from its beginning.

A page that every append changes is copied less often if that is late (8 MB). But with FULL each commit waits
for the disk, and for twice as long while the log grows than while it is written over.
"""


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
    row_security: bool | None = False

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
        self._writer: sqlite3.Connection | None = None
        self._cursor: Any = None
        self._conn: Any = None
        self._migrated = False
        self._file: tuple[str, int, int] | None = None
        """The file as it was when it was opened: its place, inode and device."""
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
        conn = Conn(cursor, "sqlite")
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
            if self.path is not None and self._file is None:
                found = os.stat(self.path)
                self._file = os.path.abspath(self.path), found.st_ino, found.st_dev
            self._migrated = True
        except BaseException as error:
            writer.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise translated(error, self._name) from error
            raise
        self._writer, self._cursor, self._conn = writer, cursor, conn

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
        token = enter_transaction()
        try:
            with self._lock:
                if self._writer is None:
                    self._open()
                self._check_file()
                cursor, conn = self._cursor, self._conn
                try:
                    cursor.execute(self._begin)
                    result = transaction(conn)
                    cursor.execute("COMMIT")
                except BaseException as error:
                    if cursor.connection.in_transaction:
                        cursor.execute("ROLLBACK")
                    if isinstance(error, sqlite3.DatabaseError):
                        raise translated(error, self._name) from error
                    raise
                return result
        finally:
            inside_transaction.reset(token)

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
                    return transaction(Conn(cursor, "sqlite"))
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

    def copy_to(self, target: Path) -> list[str]:
        """Write a consistent copy of the database to a new file, while others read and write the database.

        The copy has its name when it is complete, and all changes until its last step.

        Args:
            target: The new file.

        Returns:
            The faults of the file of the copy, one sentence each; damage of the source is copied too.

        Raises:
            PersistenceError: The file cannot be written.
        """
        self._check_file()
        draft = target.with_name(f".{target.name}.{uuid4().hex}")
        source = self._connect()
        try:
            with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # One file, that can be opened read-only.
                faults = [row[0] for row in copy.execute("PRAGMA integrity_check") if row[0] != "ok"]
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            os.rename(draft, target)
        except sqlite3.DatabaseError as error:
            raise translated(error, repr(str(target))) from error
        except OSError as error:
            raise PersistenceError(f"cannot write {str(target)!r}: {error}; choose another place") from error
        finally:
            source.close()
            draft.unlink(missing_ok=True)
        return faults

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
