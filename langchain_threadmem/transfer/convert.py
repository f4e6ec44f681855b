"""Copying a memory into another database, or into a folder of JSON and back.

Everything goes through a folder (see `transfer.folder`), a temporary one between two databases, so no
transaction waits for another and no more than one conversation is held at a time. What was written is read
back and compared before it counts: in the transaction that wrote it, or before the folder gets its name. So
a conversion is whole, or nothing of it is there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import Database
from langchain_threadmem.storage.urls import is_url, sqlite_file
from langchain_threadmem.transfer import folder
from langchain_threadmem.transfer import rows as memory_rows
from langchain_threadmem.transfer.folder import Contents, Manifest
from langchain_threadmem.verify import problems_of

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is, and how much there is (0 if that is not known yet)."""


@dataclass(frozen=True)
class Converted:
    """What a conversion carried over.

    Attributes:
        owners: Whose memory.
        rows: How many rows of each table.
    """

    owners: tuple[str, ...]
    rows: dict[str, int]

    @property
    def conversations(self) -> int:
        """How many trees of messages."""
        return self.rows.get("tree", 0)

    @property
    def messages(self) -> int:
        """How many messages, whatever their state."""
        return self.rows.get("node", 0)

    @property
    def items(self) -> int:
        """How many values of the store."""
        return self.rows.get("item", 0)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    owner: str | None = "user",
    progress: Progress = lambda what, done, total: None,
) -> Converted:
    """Copy a memory from one place to another, and make sure that the copy is the same.

    Messages, whatever their state, summaries, vectors, what memory knows of each unit, checkpoints and the
    store's values go along. The index of words and that over all vectors are made anew when they are needed.

    Args:
        source: A database (a file or a URL), or a folder that this function wrote. It is only read.
        target: A database, made if it is not there, in which the owner has nothing yet; or a folder, which
            must not exist. A name without a suffix is a folder.
        owner: Whose memory; `None` for everybody's.
        progress: Called as it goes on.

    Raises:
        InputError: The source is not there or is no memory, the target holds something of the owner already,
            or both are folders. Nothing was changed.
        PersistenceError: One of them cannot be read or written, or the copy was not the same. Nothing was
            changed.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with MemorySystem(f"{place}/memory.db", owner="ada") as system:
        ...         nodes = system.conversation("monday").append("Hello", "Hi!")
        ...     done = convert(f"{place}/memory.db", f"{place}/copy", owner="ada")
        ...     back = convert(f"{place}/copy", f"{place}/back.db", owner="ada")
        ...     (done.conversations, done.messages, back == done)
        (1, 2, True)
    """
    if owner is not None:
        check_name("an owner", owner)
    if is_folder(source):
        if is_folder(target):
            raise InputError(f"{str(source)!r} and {str(target)!r} are both folders; copy the files instead")
        return _into_database(Path(source), target, owner, progress)
    with ExitStack() as stack:
        database = stack.enter_context(closing(_opened(source)))
        if is_folder(target):
            return _into_folder(database, Path(target), owner, progress)
        spool = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmem-")))
        _write(database, spool, owner, progress)
        return _into_database(spool, target, owner, progress)


def is_folder(place: str | Path) -> bool:
    """Whether a place is meant to be a folder: it is one, or its name has no suffix."""
    if is_url(place):
        return False
    path = Path(place)
    return path.is_dir() or (not path.exists() and path.suffix == "")


def _opened(source: str | Path) -> Database:
    """A database to read from, which has to be there."""
    file = sqlite_file(source)
    if file is not None and not file.is_file():
        raise InputError(f"there is no database file {str(file)!r} to convert")
    return open_database(source, read_only=True)


def _into_folder(database: Database, target: Path, owner: str | None, progress: Progress) -> Converted:
    if target.exists():
        raise InputError(f"there is a folder {str(target)!r} already; choose a name that is free")
    draft = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        manifest = _write(database, draft, owner, progress)
        found = Contents()
        for count, _ in enumerate(folder.read(draft, found), 1):
            progress("compare", count, sum(manifest.contents.rows.values()))
        _same(manifest.contents, found, str(target))
        os.rename(draft, target)
    except OSError as error:
        raise PersistenceError(f"cannot write {str(target)!r}: {error}; choose another place") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Converted(manifest.owners, manifest.contents.rows)


def _write(database: Database, place: Path, owner: str | None, progress: Progress) -> Manifest:
    def read(conn: Conn) -> Manifest:
        if owner is not None:
            memory_rows.check_owner(conn, owner)
        chosen = memory_rows.owners(conn) if owner is None else [owner]
        total, done = memory_rows.count(conn, chosen), 0

        def written() -> None:
            nonlocal done
            done += 1
            progress("write", done, total)

        return folder.write(place, chosen, memory_rows.dump(conn, chosen), written)

    return database.read(read)


def _into_database(place: Path, target: str | Path, owner: str | None, progress: Progress) -> Converted:
    manifest = folder.manifest_of(place)
    if owner is not None and list(manifest.owners) != [owner]:
        raise InputError(
            f"{str(place)!r} holds the memory of {', '.join(map(repr, manifest.owners))}, "
            f"not of {owner!r} alone; name that owner, or convert everybody's"
        )
    total = sum(manifest.contents.rows.values())

    def write(conn: Conn) -> Contents:
        if taken := [name for name in manifest.owners if memory_rows.holds(conn, name)]:
            raise InputError(
                f"{str(target)!r} holds memory of {taken[0]!r} already; convert into a database without it"
            )
        done = 0

        def written(count: int) -> None:
            nonlocal done
            done += count
            progress("read", done, total)

        found = Contents()
        memory_rows.load(conn, folder.read(place, found), written)
        if manifest.contents.rows:
            _same(manifest.contents, found, str(place))
        copied = Contents()
        for count, (part, rows) in enumerate(memory_rows.dump(conn, manifest.owners), 1):
            for row in rows:
                copied.add(part, folder.line_of(part, row))
            progress("compare", count, 0)
        _same(found, copied, str(target))
        for name in manifest.owners:
            if problems := problems_of(conn, name):
                raise InputError(f"{str(place)!r} holds no whole memory: {problems[0]}")

        return found

    with _made(target) as database:
        return Converted(manifest.owners, database.write(write).rows)


@contextmanager
def _made(target: str | Path) -> Iterator[Database]:
    """A database to write into; if that fails and its file is new, the file goes again."""
    path = sqlite_file(target)
    fresh = path is not None and not path.exists()
    with closing(open_database(target)) as database:
        try:
            yield database
        except BaseException:
            database.close()
            if fresh and path is not None:
                for suffix in ("", "-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
            raise


def _same(expected: Contents, found: Contents, where: str) -> None:
    """Refuse a copy that differs."""
    for table in sorted({*expected.rows, *found.rows}):
        counts = expected.rows.get(table, 0), found.rows.get(table, 0)
        if counts[0] != counts[1]:
            raise PersistenceError(
                f"{where!r} has {counts[1]} rows of {table!r}, and {counts[0]} are expected; nothing was kept"
            )
        if expected.digests.get(table) != found.digests.get(table):
            raise PersistenceError(
                f"the rows of {table!r} in {where!r} are not those that were written; nothing was kept. "
                f"Was a file changed by hand? Then delete 'tables' in {folder.MANIFEST!r}"
            )
