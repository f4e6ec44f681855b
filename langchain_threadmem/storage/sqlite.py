"""SQLite databases, with one connection for writing and several for reading (see `storage.transaction`)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_threadmem.common import forking
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.errors import InputError, LostDatabaseError, PersistenceError, StorageBusyError
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.group_commit import Threaded
from langchain_threadmem.storage.migrations import CLEAN, check, migrate
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import Transaction, inside_transaction, nested

if TYPE_CHECKING:
    from langchain_threadmem.storage.free_space import FreeSpace
    from langchain_threadmem.storage.owned import OwnedDatabase

BUSY_SECONDS = 60.0
_RESTORE = "nothing was written; restore the file, or close this memory and open it again"
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""The errors of a damaged file, of which the schema, and so the text of an error, may be no UTF-8."""
FORK_SECONDS = 5.0
"""The time that a fork waits for transactions of other threads."""
SCRUB_SECONDS = 2.0
"""The time that `scrub` waits for readers of an older state of the file."""
SHARED_BYTES = 1 << 15
"""The size of the file that SQLite creates beside a file in WAL mode."""
MAPPED_BYTES = 0 if sys.platform == "win32" else 1 << 30
"""The bytes of the file that a reader maps to memory, if the system allows it. Not on Windows, where `scrub`
could not shrink a mapped file (https://sqlite.org/mmap.html)."""
_PAGES_TO_CHECKPOINT = {"OFF": 4000, "NORMAL": 4000, "FULL": 1000, "EXTRA": 1000}
"""The number of pages of the log from which it is copied to the file and overwritten from its beginning.

With a long log (8 MB) a page that every append changes is copied less often. With FULL each commit waits for
the disk, twice as long while the log grows as while it is overwritten, so the log is shorter.
"""


class SqliteDatabase(Threaded, forking.Forkable):
    """An SQLite file, or a database in memory.

    Connections are opened when they are needed. A forked child must not use a connection of its parent: it
    would regard the locks of the parent as its own, and lose writes (https://sqlite.org/howtocorrupt.html,
    2.6). A fork therefore waits for the transactions of other threads and closes all connections; parent and
    child open new connections. A database in memory stays open, and the child has its own copy.

    Args:
        path: The file; `None` for a database in memory.
        synchronous: SQLite's setting: NORMAL, FULL, EXTRA or OFF.
        read_only: Whether to allow reads only.
    """

    dialect = "sqlite"
    row_security: bool | None = False

    def __init__(self, path: Path | None, synchronous: str = "NORMAL", *, read_only: bool = False) -> None:
        if synchronous.upper() not in _PAGES_TO_CHECKPOINT:
            raise InputError(f"synchronous={synchronous!r} is not one of OFF, NORMAL, FULL, EXTRA")
        super().__init__()
        self.path = path
        self.read_only = read_only
        self._begin_write = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._synchronous = synchronous.upper()
        self._lock = forking.lock()
        self._reader_lock = forking.lock()  # to open connections for reading
        self._readers: deque[sqlite3.Connection] = deque()
        self._reader_count = 0  # including the connections in use, which are not in `_readers`
        self._writer: sqlite3.Connection | None = None
        self._connections: set[sqlite3.Connection] = set()  # the writer, and all readers
        # A connection that is deleted before it is closed warns since Python 3.13. Not at the exit of the
        # interpreter, since other functions that run then may still use the database.
        weakref.finalize(self, _close_connections, self._connections).atexit = False
        self._cursor: Any = None
        self._conn: Any = None
        self._is_ready = False
        """Whether the writer has the triggers of checksums; they take longer than to open and read a file."""
        self._migrated = False
        self._file: tuple[str, int, int] | None = None
        """The path, inode and device of the file when it was opened."""
        self._free_space: FreeSpace | None = None
        self._clear_before: int | None = None
        """The salt of the log until which no page has remains of deleted rows; `None` if that is unknown."""
        self._version = 0  # of the data, when the pages were searched for remains
        self._is_quiescent = False
        self._inherited: object = None  # the connections of a parent that was forked in a transaction
        self.watch()

    @property
    def opened(self) -> bool:
        """Whether the database was opened; it then exists and has the newest tables."""
        return self._migrated

    def open(self) -> None:
        """Open the file, and create or migrate the tables."""
        with self._lock:
            if self._writer is None:
                self._open()

    def _open(self) -> None:
        """Open the connection for writing; the caller has the lock."""
        if self.closed:
            raise self._closed()
        if self._inherited is not None:
            raise PersistenceError(
                f"this process was forked during a transaction on {self._name}; "
                "make a new ChatMemory or MemorySystem in this process"
            )
        if self.read_only and self.path is None:
            raise InputError("a database in memory cannot be opened read-only; pass the path of a file")
        if self.read_only and self.path is not None and not self.path.is_file():
            raise InputError(f"there is no database file {str(self.path)!r}; check the path")
        self._check_file()  # Otherwise SQLite would create an empty file.
        writer = self._connect()
        cursor = writer.cursor()
        conn = Conn(cursor, "sqlite")
        try:
            if not self._migrated:
                cursor.execute(self._begin_write)
                if self.read_only:
                    check(conn, self._name)
                else:
                    migrate(conn, time.time())
                cursor.execute("COMMIT")
            if self.path is not None and self._file is None:
                status = os.stat(self.path)
                self._file = os.path.abspath(self.path), status.st_ino, status.st_dev
            self._migrated = True
        except BaseException as error:
            writer.close()
            if isinstance(error, _UNREADABLE):
                raise translated(error, self._name) from error
            raise
        self._connections.add(writer)
        self._writer, self._cursor, self._conn = writer, cursor, conn
        self._is_ready = self.read_only

    def _add_triggers(self) -> None:
        """Create the triggers of the writer, before its first transaction; the caller has the lock."""
        writer = self._cursor.connection
        try:
            checksums.create_triggers(writer)
        except BaseException as error:
            self._writer = None  # The next write opens another connection.
            self._close(writer)
            if isinstance(error, _UNREADABLE):
                raise translated(error, self._name) from error
            raise
        self._is_ready = True

    def before_fork(self) -> None:
        """Wait for transactions, and close all connections to the file."""
        limit = time.monotonic() + (0 if inside_transaction.get() else FORK_SECONDS)
        self._is_quiescent = False
        if not self._reader_lock.acquire(timeout=FORK_SECONDS):
            return
        if not self._lock.acquire(timeout=max(limit - time.monotonic(), 0)):
            self._reader_lock.release()
            return
        while len(self._readers) < self._reader_count:
            if time.monotonic() > limit:
                self._lock.release()
                self._reader_lock.release()
                return
            time.sleep(0.001)
        self._is_quiescent = True
        if self.path is not None:
            self._close_all()

    def after_fork(self, *, child: bool) -> None:
        """Release the locks in the parent; drop threads and, after a busy fork, connections in the child."""
        if child:
            self._pool, self._group = None, None
            if not self._is_quiescent:
                self._inherited = list(self._connections)  # The child must not close them.
                self._connections.clear()
                self._writer, self._readers, self._reader_count = None, deque(), 0
        elif self._is_quiescent:
            self._lock.release()
            self._reader_lock.release()

    @property
    def _name(self) -> str:
        return "the database in memory" if self.path is None else repr(str(self.path))

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            location: str | Path = ":memory:" if self.path is None else self.path
            options: dict[str, Any] = {}
            if self.read_only:
                location = f"{Path(location).absolute().as_uri()}?mode={_read_only_mode(Path(location))}"
                options = {"uri": True}
            connection = sqlite3.connect(
                location,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                **options,
            )
            checksums.connect(connection)
            if self.read_only:
                connection.execute("PRAGMA query_only=ON")
                return connection
            # A commit writes whole pages, so pages are small. Only for new files, and set before WAL.
            connection.execute("PRAGMA page_size=2048")
            _use_wal(connection)
            connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES_TO_CHECKPOINT[self._synchronous]}")
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            # Deleted rows are overwritten with zeros; the cost is within the noise of appends and edits.
            connection.execute("PRAGMA secure_delete=ON")
        except _UNREADABLE as error:
            if connection is not None:
                connection.close()
            if self.path is not None and not self.path.parent.is_dir():
                raise PersistenceError(
                    f"cannot open {self._name}: there is no folder {str(self.path.parent)!r}; create it, or "
                    "choose another location"
                ) from error
            raise translated(error, self._name) from error
        except ValueError as error:  # NUL, or a surrogate of a name that is not Unicode.
            raise PersistenceError(
                f"{self._name} is not the name of a database file: {error}; choose another name"
            ) from error
        return connection

    def _check_file(self) -> None:
        """Check that the open file still exists, since writes to a deleted file would be lost."""
        if self._file is not None:
            try:
                current = os.stat(self._file[0])
            except FileNotFoundError:
                raise LostDatabaseError(f"{self._name} was deleted while it was open; {_RESTORE}") from None
            if (current.st_ino, current.st_dev) != self._file[1:]:
                raise LostDatabaseError(f"{self._name} was replaced while it was open; {_RESTORE}")

    def write(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """Run a function in a write transaction in the calling thread."""
        if inside_transaction.get():
            raise nested()
        outside = inside_transaction.set(True)
        try:
            with self._lock:
                if self._writer is None:
                    self._open()
                if self._file is not None:
                    self._check_file()
                cursor, conn = self._cursor, self._conn
                if not self._is_ready:
                    self._add_triggers()
                try:
                    cursor.execute(self._begin_write)
                    if owner is None:
                        conn.seal = conn.plain = None
                    else:
                        owner.own(conn)
                    result = transaction(conn)
                    cursor.execute("COMMIT")
                except BaseException as error:
                    if cursor.connection.in_transaction:
                        cursor.execute("ROLLBACK")
                    if isinstance(error, _UNREADABLE):
                        raise translated(error, self._name, read_only=self.read_only) from error
                    raise
                return result
        finally:
            inside_transaction.reset(outside)

    def read(self, transaction: Transaction[T], owner: OwnedDatabase | None = None) -> T:
        """Run a function on one snapshot of the committed data, in parallel with a writer."""
        if self.path is None:
            return self.write(transaction, owner)  # A database in memory has one connection.
        if inside_transaction.get():
            raise nested()
        if self.closed:
            raise self._closed()
        outside = inside_transaction.set(True)
        try:
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._new_reader()
            try:
                cursor = connection.execute("BEGIN")
                try:
                    conn = Conn(cursor, "sqlite")
                    if owner is not None:
                        owner.own(conn)
                    return transaction(conn)
                finally:
                    cursor.execute("ROLLBACK")
            except _UNREADABLE as error:
                raise translated(error, self._name) from error
            finally:
                self._readers.append(connection)
        finally:
            inside_transaction.reset(outside)

    def _new_reader(self) -> sqlite3.Connection:
        with self._reader_lock:
            if self._writer is None:
                self.open()
            self._check_file()  # Otherwise SQLite would create an empty file.
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")  # Otherwise a write would be lost without an error.
            # Each write invalidates the page cache of a reader, but not the mapped file.
            connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
            self._connections.add(connection)
            self._reader_count += 1
            return connection

    def damage(self) -> str | None:
        """The first damage of the rows or pages of a file, as the beginning of a sentence; reads it whole."""
        if self.path is None or self.closed:
            return None
        try:
            return self.read(lambda conn: _first_damage(conn, self._name))
        except PersistenceError as error:
            return str(error)

    def scrub(self, *, rewrite: bool = False) -> str:
        """Clear the bytes of deleted data from the file and its log.

        Deleted rows are overwritten with zeros when they are deleted. The log, which contains older versions
        of pages, is emptied. The file is rewritten only if the unallocated space of a page contains text
        (`storage.free_space`), or once if an earlier version of this package has written it. To find that
        out, the pages that were written since the last call are read, a few milliseconds; all pages, 0.3 ms
        for 1 MB, if another connection has emptied the log since.

        Args:
            rewrite: Whether to rewrite the file in any case, which returns free space to the disk. Takes
                about a second for 100 MB, during which no other process can write, and as much free space as
                the size of the file.

        Returns:
            The reason why bytes may remain, or an empty text.

        Raises:
            PersistenceError: The disk has no space, or other processes write all the time.
        """
        if inside_transaction.get():
            raise nested()
        with self._lock:
            if self._writer is None:
                self._open()
            self._check_file()
            try:
                if rewrite or self._holds_remains():
                    self._cursor.execute("VACUUM")
                    self._cursor.execute(f"PRAGMA user_version={CLEAN}")
                    self._version = 0  # The pages that were written now are searched by the next call.
                return self._empty_log()
            except sqlite3.DatabaseError as error:
                raise translated(error, self._name) from error

    def _holds_remains(self) -> bool:
        """Whether the file may contain text of deleted rows."""
        if self.path is None:
            return False
        if self._cursor.execute("PRAGMA user_version").fetchone()[0] != CLEAN:
            return True  # Written by an earlier version of this package.
        if self._free_space is None:
            from langchain_threadmem.storage.free_space import FreeSpace

            self._free_space = FreeSpace(self.path)
        self._cursor.execute("BEGIN IMMEDIATE")  # Nobody writes until the pages are read.
        try:
            log = self._free_space.log()
            is_next = log is not None and log.salt == self._clear_before
            return self._free_space.holds_text(log, only_log=is_next)
        finally:
            self._version = self._data_version()
            self._cursor.execute("ROLLBACK")

    def _empty_log(self) -> str:
        """Move the log to the file; return the reason if another connection prevents that."""
        salt = None if self._free_space is None else self._free_space.salt()
        self._clear_before = None
        self._cursor.execute(f"PRAGMA busy_timeout={SCRUB_SECONDS * 1000:.0f}")
        try:
            busy = self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self._cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
        if busy:
            return f"{self._name}: another connection reads an older state of the file"
        if salt is not None and self._data_version() == self._version:
            self._clear_before = (salt + 1) % (1 << 32)
        return ""

    def _data_version(self) -> int:
        """A number that changes when another connection writes."""
        return int(self._cursor.execute("PRAGMA data_version").fetchone()[0])

    def copy_to(self, target: Path) -> list[str]:
        """Write a consistent copy of the database to a new file, while others read and write the database.

        The copy gets its name when it is complete. It contains all changes until the last step of the copy.

        Returns:
            The faults of the copied file, one sentence each; damage of the source is copied too.

        Raises:
            PersistenceError: The file cannot be written.
        """
        self._check_file()
        source = self._connect()
        try:
            with draft_of(target) as draft, closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # A single file, which can be opened read-only.
                return [row[0] for row in copy.execute("PRAGMA integrity_check") if row[0] != "ok"]
        except sqlite3.DatabaseError as error:
            raise translated(error, repr(str(target))) from error
        finally:
            source.close()

    def close(self) -> None:
        """Complete the queued writes and close all connections; a second call does nothing."""
        if self.closed:
            return
        self._finish()
        with self._lock:
            self.closed = True
            self._close_all()

    def _close_all(self) -> None:
        while self._readers:
            self._close(self._readers.pop())
            self._reader_count -= 1
        if self._writer is not None:
            self._close(self._writer)
            self._writer = None
        self._clear_before = None
        if self._free_space is not None:
            self._free_space.close()
            self._free_space = None

    def _close(self, connection: sqlite3.Connection) -> None:
        connection.close()
        self._connections.discard(connection)


_SHOWN = 40
"""The number of characters of its final name that the name of a draft begins with."""


@contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """A path for a new database file, which gets its name when it is complete and closed.

    Raises:
        PersistenceError: The file cannot be written, or another process has made it meanwhile.
    """
    place = target.resolve()  # A link stays, and what it names is written.
    draft = place.with_name(f".{place.name[:_SHOWN]}.{uuid4().hex}")  # A name has at most 255 bytes.
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            raise PersistenceError(f"another process has made {str(target)!r} meanwhile; it was not changed")
        _remove_logs(place)
        os.rename(draft, place)
    except OSError as error:
        raise PersistenceError(f"cannot write {str(target)!r}: {error}; choose another place") from error
    finally:
        draft.unlink(missing_ok=True)
        _remove_logs(draft)


def _remove_logs(path: Path) -> None:
    """Remove the logs of a file that does not exist; SQLite would write them into a file of this name."""
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _first_damage(conn: Conn, name: str) -> str | None:
    for fault in checksums.wrong_types(conn):
        return f"{name}: {fault}"
    for table in checksums.tables():
        for key in checksums.damaged_keys(conn, table):
            return f"{name}: the row {key!r} of {table.name!r} differs from the written row"
    return next((f"{name}: {fault}" for fault in checksums.page_faults(conn)), None)


def _close_connections(connections: Iterable[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def _read_only_mode(path: Path) -> str:
    """The mode in which a file is opened for reading: `ro`, or `rw` if it is in WAL mode and not in use.

    Opening a file in WAL mode creates two files beside it, which only a connection with mode `rw` deletes. On
    a full disk, where nobody can create these files or write, the file is read without them.
    """
    with path.open("rb") as file:
        in_wal_mode = file.read(20)[18:] == b"\x02\x02"
    if not in_wal_mode:
        return "ro"
    log = path.with_name(f"{path.name}-wal")
    is_used = log.exists()
    if not (is_used and log.stat().st_size) and shutil.disk_usage(log.parent).free < SHARED_BYTES:
        return "ro&immutable=1"
    return "ro" if is_used else "rw"


def _use_wal(connection: sqlite3.Connection) -> None:
    """Set the mode WAL of a file.

    Waits for other connections, as when several processes open one new file. SQLite itself waits for the mode
    only while it cannot read the file (https://sqlite.org/c3ref/busy_handler.html).
    """
    limit = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(0.005)
        else:
            return


def translated(error: Exception, name: str, *, read_only: bool = False) -> PersistenceError:
    """The error of this package for an error of SQLite, with the database and the next step."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError):
        if "locked" in text or "busy" in text:
            return StorageBusyError(
                f"another process kept {name} locked for {BUSY_SECONDS:.0f} s; nothing was written; try again"
            )
        if "readonly" in text:
            hint = (
                "open it without read_only=True" if read_only else "check the permissions of file and folder"
            )
            return PersistenceError(f"cannot write {name}: {text}; {hint}")
        if "unable to open" in text:
            return PersistenceError(
                f"cannot open or write {name}: {text}; check the file permissions or choose another location"
            )
        if "full" in text:
            return PersistenceError(
                f"no space to write {name}: {text}; free up space or choose another location"
            )
        if "invalid fts5" in text:
            return PersistenceError(
                f"another process with a newer SQLite than {sqlite3.sqlite_version} has overwritten words in "
                f"the index of {name}; open the database again, with write access, to make the index again"
            )
        if "disk I/O" in text:
            return PersistenceError(
                f"the disk of {name} is full or failed: {text}; free up space, or check the disk"
            )
    if type(error) is sqlite3.DatabaseError:  # A damaged file, or another kind of file.
        return PersistenceError(f"{name}: {text}; check the path, or restore a backup")
    return PersistenceError(f"{name}: {text}")
