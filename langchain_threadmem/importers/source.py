"""The file of an import: its name, its time, and its items."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

from langchain_threadmem.common.inputs import path_of
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.importers.chats import Bad, Chat, Chats
from langchain_threadmem.importers.json_items import Item, items_of, object_of

_SQLITE = b"SQLite format 3\0"
_MEMBER = "conversations"
"""The beginning of the name of the archive member with the conversations."""


class Source:
    """A file that is imported: JSON, JSON Lines, a ZIP archive with such a file, or an SQLite database.

    Args:
        path: The file; it is opened read-only.

    Raises:
        InputError: The archive has no file of conversations.
        PersistenceError: The file cannot be read.

    Attributes:
        name: The name of the file without its suffix, for a conversation without a name.
        time: The time of the last change, in seconds since 1970, for messages without a time.
        size: The size in bytes.
        tables: The columns of each table, if the file is an SQLite database.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path_of(path)
        self._stack = ExitStack()
        self.tables: dict[str, set[str]] = {}
        try:
            state = self._path.stat()
            self.name, self.time = self._path.stem, state.st_mtime
            file = self._stack.enter_context(self._path.open("rb"))
            beginning = file.read(len(_SQLITE))
            file.seek(0)
            self.is_database = beginning == _SQLITE
            self.size = state.st_size
            self._stream: BinaryIO = file
            if self.is_database:
                self.database = self._open_database()
                self.tables = self._tables()
            elif beginning.startswith(b"PK\x03\x04"):
                self._stream = self._open_member(file)
        except (OSError, ValueError, sqlite3.Error, zipfile.BadZipFile) as error:
            self._stack.close()
            if isinstance(error, InputError):
                raise
            raise PersistenceError(f"Cannot read {str(path)!r}: {error}") from error

    @property
    def position(self) -> int:
        """The number of bytes that were read; the size for a database."""
        return self.size if self.is_database else self._stream.tell()

    def items(self) -> Iterator[Item]:
        """The parsed items of the file from its beginning; see `items_of`.

        Raises:
            InputError: The file is damaged; the error names the item.
            PersistenceError: The file cannot be read.
        """
        try:
            self._stream.seek(0)
            yield from items_of(self._stream)
        except (OSError, zipfile.BadZipFile) as error:
            raise PersistenceError(f"Cannot read {str(self._path)!r}: {error}") from error

    def rows(self, query: str, *values: object) -> Iterator[tuple[object, ...]]:
        """The rows of a query of the database.

        Raises:
            PersistenceError: The database cannot be read.
        """
        try:
            yield from self.database.execute(query, values)
        except sqlite3.Error as error:
            raise PersistenceError(f"Cannot read {str(self._path)!r}: {error}") from error

    def close(self) -> None:
        self._stack.close()

    def _open_database(self) -> sqlite3.Connection:
        url = f"{self._path.absolute().as_uri()}?mode=ro"
        # Batches of an async import are read in different threads, one after the other.
        database = sqlite3.connect(url, uri=True, check_same_thread=False)
        self._stack.callback(database.close)
        return database

    def _tables(self) -> dict[str, set[str]]:
        names = self.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: {row[0] for row in self.database.execute("SELECT name FROM pragma_table_info(?)", (name,))}
            for (name,) in names
        }

    def _open_member(self, file: BinaryIO) -> BinaryIO:
        archive = self._stack.enter_context(zipfile.ZipFile(file))
        names = [
            member
            for member in archive.infolist()
            if Path(member.filename).name.startswith(_MEMBER)
            and member.filename.endswith((".json", ".jsonl"))
        ]
        if len(names) != 1:
            raise InputError(
                f"{str(self._path)!r} has {len(names) or 'no'} files {_MEMBER}*.json; extract it, and "
                "import each file"
            )
        self.size = names[0].file_size
        self.name = Path(names[0].filename).stem
        return cast("BinaryIO", self._stack.enter_context(archive.open(names[0])))


def chats_of_items(source: Source, chat_of: Callable[[dict[str, Any], str], Chat]) -> Chats:
    """The conversations of a file whose items are conversations, given the value and position of each."""
    for item in source.items():
        try:
            yield chat_of(object_of(item), item.where)
        except InputError as error:
            yield Bad(str(error))
