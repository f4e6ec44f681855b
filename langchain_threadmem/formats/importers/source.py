"""A file that is read by an importer, with its items, lines or rows; and the formats that files have."""

from __future__ import annotations

import codecs
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats
from langchain_threadmem.formats.importers.json_items import Item, items_of, object_of
from langchain_threadmem.formats.importers.paths import UNREADABLE, InputFile, Inputs, unreadable
from langchain_threadmem.messages.records import reason

_SQLITE = b"SQLite format 3\0"
_BEGINNING = 1 << 14
"""The number of bytes of a file that are read to detect formats of text."""


class Source:
    """A file that is imported: JSON, JSON Lines, text, or an SQLite database.

    Args:
        file: The file; it is opened read-only.
        inputs: The files of the import.
        shared: Values that the files of a format share during an import.

    Raises:
        PersistenceError: The file cannot be read.

    Attributes:
        label: The path of the file for people.
        file_name: The name of the file.
        name: The name of the file without its suffix, for a conversation without a name.
        folder: The name of the folder with the file.
        time: The time of the last change, in seconds since 1970, for messages without a time.
        size: The size in bytes.
        read: The number of items that were read.
        tables: The columns of each table, if the file is an SQLite database.
        beginning: The text at the beginning of the file; empty for a database.
    """

    def __init__(self, file: InputFile, inputs: Inputs, shared: dict[str, Any] | None = None) -> None:
        self._file, self._stack = file, ExitStack()
        self.shared = {} if shared is None else shared
        self.label, self.file_name, self.name = file.label, file.path.name, file.path.stem
        self.folder = file.path.parent.name or (file.on_disk.absolute().parent.name if file.on_disk else "")
        self.time, self.size, self.read = file.time, file.size, 0
        self.tables: dict[str, set[str]] = {}
        try:
            self._stream: BinaryIO = self._stack.enter_context(file.open())
            beginning = self._stream.read(_BEGINNING)
            self._stream.seek(0)
            self.is_database = beginning.startswith(_SQLITE)
            self.beginning = "" if self.is_database else _decoded(beginning)
            if self.is_database:
                self.database = self._open_database(file.on_disk or inputs.copied(file))
                self.tables = self._tables()
        except (*UNREADABLE, sqlite3.Error) as error:
            self._stack.close()
            if isinstance(error, PersistenceError):
                raise
            raise unreadable(file.label, error) from error

    @property
    def position(self) -> int:
        """The number of bytes that were read; the size for a database."""
        return self.size if self.is_database else min(self._stream.tell(), self.size)

    def items(self) -> Iterator[Item]:
        """The parsed items of the file from its beginning; see `items_of`.

        Raises:
            InputError: The file is damaged; the error names the item.
            PersistenceError: The file cannot be read.
        """
        try:
            self._stream.seek(0)
            self.read = 0
            for item in items_of(self._stream):
                self.read += 1
                yield item
        except UNREADABLE as error:
            if isinstance(error, InputError):
                raise
            raise unreadable(self.label, error) from error

    def each(self, read: Read) -> Chats:
        """The results of `read` for value and position of each item; a refused item is a `Bad`."""
        for item in self.items():
            yield from checked(item.where, lambda item: read(object_of(item), item.where), item)

    def lines(self) -> Iterator[str]:
        """The lines of a text from its beginning, without line ends.

        Raises:
            InputError: The file is not UTF-8 text.
            PersistenceError: The file cannot be read.
        """
        text = io.TextIOWrapper(self._stream, "utf-8-sig")
        try:
            self._stream.seek(0)
            for line in text:
                self.read += 1
                yield line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"the file is not UTF-8 text ({error.reason})") from error
        except UNREADABLE as error:
            raise unreadable(self.label, error) from error
        finally:
            text.detach()  # The stream stays open.

    def rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query of the database.

        Raises:
            PersistenceError: The database cannot be read.
        """
        try:
            for row in self.database.execute(query, values):
                self.read += 1
                yield row
        except sqlite3.Error as error:
            raise unreadable(self.label, error) from error

    def has(self, **tables: set[str]) -> bool:
        """Whether the database has tables with some columns."""
        return all(self.tables.get(name, set()) >= columns for name, columns in tables.items())

    def tables_with(self, columns: set[str]) -> list[str]:
        """The tables of the database with some columns, by name."""
        return [name for name, found in sorted(self.tables.items()) if found >= columns]

    def records(
        self, table: str, columns: Iterable[str], rest: str, *values: object
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table; none without the table, and `None` in place of columns that it does not have.

        Args:
            table: The table.
            columns: The columns.
            rest: The end of the query, such as `ORDER BY id`.
            values: The parameters of the query.
        """
        names = [*columns]
        if table not in self.tables:
            return
        listed = ", ".join(quoted(name) if name in self.tables[table] else "NULL" for name in names)
        for row in self.rows(f"SELECT {listed} FROM {quoted(table)} {rest}", *values):
            yield dict(zip(names, row, strict=True))

    def beside(self, name: str) -> Any:
        """The parsed JSON of another file of the folder or archive; `None` without such a file."""
        data = self._file.beside(name)
        try:
            return None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return None

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def _open_database(self, path: Path) -> sqlite3.Connection:
        url = f"{path.absolute().as_uri()}?mode=ro"
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


def _decoded(beginning: bytes) -> str:
    """The beginning of a file as text; a character that is cut off at its end is omitted."""
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(beginning)
    except UnicodeDecodeError:
        return ""


def quoted(name: str) -> str:
    """The name of a table or a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


Read = Callable[..., Chat | Iterable[Chat | Bad] | None]
"""Reads an item, or several values of it."""


def checked(where: str, read: Read, *arguments: Any) -> Chats:
    """The result of `read`, or the problem of a value that `read` refuses.

    Args:
        where: The position of the value.
        read: Reads the value.
        arguments: The arguments of `read`.
    """
    try:
        found = read(*arguments)
        yield from (found,) if isinstance(found, Chat) else found or ()
    except FAULTS as error:
        yield Bad(problem_of(error, where))


FAULTS = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""The errors of values of other types than those of a format."""


def problem_of(error: Exception, where: str) -> str:
    """The problem of an item, with its position."""
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {reason(error)}"
    return text if where in text else f"{where}: {text}"


class Format(NamedTuple):
    """A format.

    A file has the format if all values of its first 20 items that can be read fit. At least one of `is_item`,
    `is_log`, `is_text` and `is_database` is set.

    Attributes:
        name: The name of the format in arguments.
        contents: The contents of the files in a few words.
        chats: Reads the conversations of a file.
        is_item: Whether a JSON item has the format: a conversation, or a message.
        is_log: Whether the values of the first items have the format, if they are of several kinds.
        is_text: Whether the beginning of a text has the format.
        is_database: Whether an SQLite database has the format.
        collect: Keeps values of the first items in `Source.shared` before any file of the import is read.
    """

    name: str
    contents: str
    chats: Callable[[Source], Chats]
    is_item: Callable[[Any], bool] | None = None
    is_log: Callable[[Sequence[Any]], bool] | None = None
    is_text: Callable[[str], bool] | None = None
    is_database: Callable[[Source], bool] | None = None
    collect: Callable[[Source, Sequence[Any]], object] | None = None

    def fits(self, source: Source, values: Sequence[Any]) -> bool:
        """Whether a file has the format, given the values of its first items."""
        try:
            return self._fits(source, values)
        except FAULTS:  # A value may have any type.
            return False

    def _fits(self, source: Source, values: Sequence[Any]) -> bool:
        if source.is_database:
            return self.is_database is not None and self.is_database(source)
        if self.is_text is not None:
            return self.is_text(source.beginning)
        if not values:
            return False
        if self.is_log is not None and self.is_log(values):
            return True
        return self.is_item is not None and all(map(self.is_item, values))

    def can_be(self, source: Source) -> bool:
        """Whether a file is of the type of the format: a database with its tables, JSON, or text."""
        if source.is_database:
            return self.is_database is not None and self.is_database(source)
        if self.is_text is not None and self.is_text(source.beginning):
            return True
        return self.is_item is not None or self.is_log is not None
