"""Copies of a memory in another database or in a folder of JSON, and backups of a database in use.

Conversions go through a folder (see `apps.transfer.folder`), between two databases a temporary one, so that
no transaction waits for another, and at most one conversation is in memory at a time. The copy is read and
compared with the source before it becomes visible: in the transaction that wrote it, or before the folder
gets its name. A conversion is therefore complete or leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

from langchain_threadmem.apps.transfer import folder
from langchain_threadmem.apps.transfer import rows as memory_rows
from langchain_threadmem.apps.transfer.folder import ContentDigest, Manifest
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.maintenance.removal import tables
from langchain_threadmem.maintenance.verify import problems_of
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.storage.database import is_url, open_database, quoted, sqlite_file
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.sqlite import SqliteDatabase, draft_of
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import Database

TableProgress = Callable[[str, int, int], None]
"""A callback of the current activity, the steps done, and all steps (0 if the number is unknown)."""


@dataclass(frozen=True)
class Converted:
    """The result of a conversion.

    Attributes:
        owners: The owners of the copied memories.
        rows: The number of copied rows, by table.
    """

    owners: tuple[str, ...]
    rows: dict[str, int]

    @property
    def conversations(self) -> int:
        """The number of conversations."""
        return self.rows.get("tree", 0)

    @property
    def messages(self) -> int:
        """The number of messages of any state."""
        return self.rows.get("node", 0)

    @property
    def items(self) -> int:
        """The number of values of the store."""
        return self.rows.get("item", 0)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    owner: str | None = "user",
    progress: TableProgress = lambda activity, done, total: None,
) -> Converted:
    """Copy a memory from one place to another, and compare the copy with the source.

    The copy contains messages of any state, summaries, vectors, visits of units, checkpoints and values of
    the store. The lexicon and the index over all vectors are rebuilt at their first use.

    Args:
        source: A database (a file or a URL), or a folder that this function wrote; opened read-only.
        target: A database without data of the owner, which is made if it does not exist; or a folder, which
            must not exist. A name without a suffix is a folder.
        owner: The owner of the memory; `None` for all owners.
        progress: Called after each step with the activity, the steps done, and all steps.

    Raises:
        InputError: The source does not exist or is not a memory, the target has data of the owner, or both
            are folders. Nothing was changed.
        PersistenceError: A place cannot be read or written, or the copy differs. Nothing was changed.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with MemorySystem(f"{folder}/memory.db", owner="ada") as system:
        ...         nodes = system.conversation("monday").append("Hello", "Hi!")
        ...     saved = convert(f"{folder}/memory.db", f"{folder}/copy", owner="ada")
        ...     loaded = convert(f"{folder}/copy", f"{folder}/loaded.db", owner="ada")
        ...     (saved.conversations, saved.messages, loaded == saved)
        (1, 2, True)
    """
    if owner is not None:
        owner = name_of("an owner", owner)
    if is_folder(source):
        if is_folder(target):
            raise InputError(f"{str(source)!r} and {str(target)!r} are both folders; copy the files instead")
        return _into_database(Path(source), target, owner, progress)
    with ExitStack() as stack:
        database = stack.enter_context(closing(open_database(source, read_only=True)))
        if is_folder(target):
            return _into_folder(database, Path(target), owner, progress)
        spool = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threadmem-")))
        _write(database, spool, owner, progress)
        return _into_database(spool, target, owner, progress)


def is_folder(location: str | Path) -> bool:
    """Whether a location is an existing folder, or a new name without a suffix."""
    if is_url(location):
        return False
    path = Path(location)
    return path.is_dir() or (not path.exists() and path.suffix == "")


def _into_folder(database: Database, target: Path, owner: str | None, progress: TableProgress) -> Converted:
    if target.exists():
        raise InputError(f"the folder {str(target)!r} exists already; choose another name")
    draft = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        manifest = _write(database, draft, owner, progress)
        copied = ContentDigest()
        for done, _ in enumerate(folder.read(draft, manifest, copied), 1):
            progress("compare", done, sum(manifest.contents.rows.values()))
        _check_same(manifest.contents, copied, repr(str(target)))
        os.rename(draft, target)
    except OSError as error:
        raise PersistenceError(f"cannot write {str(target)!r}: {error}; choose another place") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Converted(manifest.owners, manifest.contents.rows)


def _write(database: Database, directory: Path, owner: str | None, progress: TableProgress) -> Manifest:
    def read(conn: Conn) -> Manifest:
        if owner is not None:
            memory_rows.check_owner_exists(conn, owner)
        owners = tables.owners(conn) if owner is None else [owner]
        total, done = memory_rows.count(conn, owners), count(1)
        blocks = memory_rows.dump(conn, owners)
        return folder.write(directory, owners, blocks, lambda: progress("write", next(done), total))

    return database.read(read)


def _into_database(
    directory: Path, target: str | Path, owner: str | None, progress: TableProgress
) -> Converted:
    manifest = folder.manifest_of(directory)
    if owner is not None and list(manifest.owners) != [owner]:
        raise InputError(
            f"{str(directory)!r} contains the memory of {', '.join(map(repr, manifest.owners))}, "
            f"not of {owner!r} alone; pass that owner, or None for all owners"
        )
    total = sum(manifest.contents.rows.values())

    def write(conn: Conn) -> ContentDigest:
        check_sees_all_owners(conn)
        if existing := [name for name in manifest.owners if memory_rows.has_rows(conn, name)]:
            raise InputError(
                f"{quoted(target)} already contains a memory of {existing[0]!r}; "
                "convert into a database without data of this owner"
            )
        done = 0

        def on_batch(rows: int) -> None:
            nonlocal done
            done += rows
            progress("read", done, total)

        contents = given = ContentDigest()
        stored = folder.read(directory, manifest, given)
        if manifest.version != folder.VERSION:
            contents = ContentDigest()
            stored = folder.counted(stored, contents)
        memory_rows.load(conn, stored, on_batch)
        if manifest.contents.rows:
            _check_same(manifest.contents, given, repr(str(directory)))
        copied = ContentDigest()
        for blocks, (entry, rows) in enumerate(memory_rows.dump(conn, manifest.owners), 1):
            for row in rows:
                copied.add(tables.name_of(entry), folder.line_of(entry, row))
            progress("compare", blocks, 0)
        _check_same(contents, copied, quoted(target))
        for name in manifest.owners:
            if problems := problems_of(conn, name):
                raise InputError(f"{str(directory)!r} does not contain a complete memory: {problems[0]}")
        return contents

    with _target(target) as database:
        return Converted(manifest.owners, database.write(write).rows)


@contextmanager
def _target(target: str | Path) -> Iterator[Database]:
    """Open the database to write; a new file gets its name when the copy is complete."""
    path = sqlite_file(target)
    with ExitStack() as stack:
        if path is not None and not path.exists():
            target = stack.enter_context(draft_of(path))
        yield stack.enter_context(closing(open_database(target)))


def _check_same(expected: ContentDigest, actual: ContentDigest, location: str) -> None:
    """Raise an error if the contents of a copy differ."""
    for table in sorted({*expected.rows, *actual.rows}):
        counts = expected.rows.get(table, 0), actual.rows.get(table, 0)
        if counts[0] != counts[1]:
            raise PersistenceError(
                f"{location} has {counts[1]} rows of {table!r}, and {counts[0]} are expected; "
                "the copy was deleted"
            )
        if expected.digests.get(table) != actual.digests.get(table):
            raise PersistenceError(
                f"the rows of {table!r} in {location} differ from the rows that were written; the copy was "
                f"deleted. If a file was changed by hand, delete 'tables' in {folder.MANIFEST!r}"
            )


def backup(
    source: str | Path,
    target: str | Path,
    progress: TableProgress = lambda activity, done, total: None,
) -> list[str]:
    """Copy a database with the memories of all owners, while other processes use the database.

    An SQLite file is copied page by page in one transaction, with other tables of the file, in about half a
    second for 100 MB. Between different kinds of databases `convert` copies. The vector index in a folder
    beside the file is not copied; a search with the copy builds a new one.

    Args:
        source: A database: a file or a URL; it is not changed.
        target: A new file, a folder (a name without a suffix), or the URL of an empty database.
        progress: Called after each step, where `convert` copies.

    Returns:
        The faults of a copied SQLite file, one sentence each; `convert` raises an error instead.

    Raises:
        InputError: The source does not exist or has no memory, or the target exists. Nothing was written.
        PersistenceError: The copy cannot be written. Nothing was kept.

    Example:
        >>> import tempfile
        >>> from langchain_threadmem import MemorySystem
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with MemorySystem(f"{folder}/memory.db", embeddings=False) as system:
        ...         nodes = system.conversation("monday").append("Hello", "Hi!")
        ...         problems = backup(f"{folder}/memory.db", f"{folder}/copy.db")
        ...     with MemorySystem(f"{folder}/copy.db", embeddings=False) as copy:
        ...         (problems, copy.conversations())
        ([], ['monday'])
    """
    copy = sqlite_file(target)
    if copy is not None and copy.exists():
        raise InputError(f"the file {str(copy)!r} exists already; choose another name")
    if sqlite_file(source) is None or copy is None or is_folder(target):
        convert(source, target, owner=None, progress=progress)
        return []
    with closing(open_database(source, read_only=True)) as database:
        assert isinstance(database, SqliteDatabase)
        return database.copy_to(copy)
