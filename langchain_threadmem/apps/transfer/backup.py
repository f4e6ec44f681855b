"""Backups: consistent copies of a database that is in use."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from langchain_threadmem.apps.transfer.convert import TableProgress, convert, is_folder
from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.database import open_database, sqlite_file
from langchain_threadmem.storage.sqlite import SqliteDatabase


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
