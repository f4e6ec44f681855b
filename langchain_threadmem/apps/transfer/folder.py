"""A memory as a folder of JSON: one file of lines for each table, and a manifest.

Rows have ids that are independent of the database (see `apps.transfer.rows`), so folders can be compared, put
under version control and read into any database. Messages are JSON in LangChain's format, bytes are base64.
Folders are untrusted: every line is checked against the columns of its table.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from sqlalchemy import Boolean, Column, Float, Integer, LargeBinary, Text

from langchain_threadmem.apps.transfer.rows import Row
from langchain_threadmem.common.inputs import is_number, is_whole
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.maintenance.removal.tables import COPIED_TABLES, MemoryTable, name_of
from langchain_threadmem.messages.records import loads
from langchain_threadmem.messages.typed_json import compact
from langchain_threadmem.storage.migrations import RENAMED

MANIFEST = "manifest.json"
FORMAT: Final = "threadmem-folder"
VERSION: Final = 2
"""The version of the format. In version 1 tables had the names, and nodes the columns, before migration 9."""
_OLD_NAMES: Final = {new: old for old, new in RENAMED.items()}
_OLD_COLUMNS: Final = {"node": ("named", "opens")}
_MODULUS = 1 << 256
_EARLIEST, _LATEST = (time.replace(tzinfo=UTC).timestamp() for time in (datetime.min, datetime.max))
"""The limits of the times that `datetime` can represent; all other floats are between them."""
_JSON = {"body": dict, "refs": list, "chances": list}
"""Columns with JSON text, and the type of the value."""


@dataclass
class ContentDigest:
    """The number of rows of each table, and a digest of the rows that does not depend on their order."""

    rows: dict[str, int] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, line: str) -> None:
        digest = int.from_bytes(hashlib.sha256(line.encode()).digest())
        self.rows[name] = self.rows.get(name, 0) + 1
        self.digests[name] = (self.digests.get(name, 0) + digest) % _MODULUS


@dataclass(frozen=True)
class Manifest:
    """The manifest of a folder.

    Attributes:
        owners: The owners of the memories, in the order of their rows.
        contents: The contents of the files; empty if the manifest does not list them.
        version: The version of the format.
    """

    owners: tuple[str, ...]
    contents: ContentDigest
    version: int = VERSION

    def name_of(self, entry: MemoryTable) -> str:
        """The name of a table in the folder."""
        name = name_of(entry)
        return name if self.version == VERSION else _OLD_NAMES.get(name, name)


def line_of(entry: MemoryTable, row: Row) -> str:
    """A row as one line of JSON; the body of a message is nested JSON if that is exactly reversible."""
    record = {}
    for column in entry.table.c:
        value = row[column.name]
        if value is not None and isinstance(column.type, LargeBinary):
            value = base64.b64encode(value).decode()
        elif column.name == "body":
            parsed = json.loads(value)
            value = parsed if compact(parsed) == value else value
        elif isinstance(column.type, Boolean):
            value = bool(value)  # SQLite returns integers.
        record[column.name] = value
    return compact(record)


def row_of(entry: MemoryTable, line: str, location: str, omitted: Iterable[str] = ()) -> Row:
    """The row of a line, without the columns `omitted`, which the table had before.

    Raises:
        InputError: The line is not a row of the table; the error names the line and the cause.
    """
    record = loads(line, location)
    names = [*entry.table.c.keys(), *omitted]
    if not isinstance(record, dict) or set(record) != set(names):
        keys = sorted(record) if isinstance(record, dict) else record
        raise InputError(f"{location} has {keys!r:.200}; a row has exactly {', '.join(names)}")
    return {column.name: _value(column, record[column.name], location) for column in entry.table.c}


def _value(column: Column[Any], value: object, location: str) -> Any:
    if value is None and column.nullable:
        return None
    if isinstance(column.type, LargeBinary) and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError(f"{location} has invalid base64 in {column.name!r}: {error}") from error
    if column.name == "body" and isinstance(value, dict):
        return compact(value)
    if isinstance(column.type, Text) and isinstance(value, str) and _fits(column, value):
        return value
    if isinstance(column.type, Boolean) and isinstance(value, bool):
        return value
    if isinstance(column.type, Float) and is_number(value) and _EARLIEST <= value < _LATEST:
        return float(value)
    if isinstance(column.type, Integer) and is_whole(value, 1 - (1 << 63)) and value < 1 << 63:
        return value
    raise InputError(f"{location} has {value!r:.200} in {column.name!r}, which is not a value of this column")


def _fits(column: Column[Any], text: str) -> bool:
    """Whether a text can be stored and, in a column of JSON, is JSON of the right type."""
    try:
        text.encode()
        kind = _JSON.get(column.name)
        return kind is None or isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def write(
    folder: Path,
    owners: Iterable[str],
    blocks: Iterable[tuple[MemoryTable, list[Row]]],
    on_block: Callable[[], None],
) -> Manifest:
    """Write rows into an empty folder; `on_block` is called after each block."""
    contents = ContentDigest()
    files: dict[str, TextIO] = {}
    try:
        for entry in COPIED_TABLES:
            path = folder / f"{name_of(entry)}.jsonl"
            files[name_of(entry)] = path.open("x", encoding="utf-8", newline="\n")
        for entry, rows in blocks:
            for row in rows:
                line = line_of(entry, row)
                contents.add(name_of(entry), line)
                files[name_of(entry)].write(line + "\n")
            on_block()
    except OSError as error:
        raise PersistenceError(f"cannot write {str(folder)!r}: {error}; choose another place") from error
    finally:
        for file in files.values():
            file.close()
    manifest = Manifest(tuple(owners), contents)
    tables = {
        name: {"rows": count, "digest": f"{contents.digests[name]:064x}"}
        for name, count in contents.rows.items()
    }
    document = {"format": FORMAT, "version": VERSION, "owners": manifest.owners, "tables": tables}
    (folder / MANIFEST).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return manifest


def manifest_of(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        InputError: The folder was not written by `write`, or by a newer version of it.
    """
    path = folder / MANIFEST
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT or type(document["version"]) is not int:
            raise ValueError(f"its format is {document['format']!r}")
        if not 1 <= document["version"] <= VERSION:
            raise InputError(
                f"{str(path)!r} has version {document['version']!r}, and this package reads versions up to "
                f"{VERSION}; upgrade the package"
            )
        tables = document.get("tables", {})
        contents = ContentDigest(
            {str(name): int(table["rows"]) for name, table in tables.items()},
            {str(name): int(table["digest"], 16) for name, table in tables.items()},
        )
        return Manifest(tuple(str(owner) for owner in document["owners"]), contents, document["version"])
    except OSError as error:
        raise InputError(
            f"{str(folder)!r} is not the folder of a memory: {error.strerror} {MANIFEST!r}; "
            "`threadmem convert memory.db FOLDER` writes such a folder"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is not the manifest of a memory: {error}") from error


def read(folder: Path, manifest: Manifest, contents: ContentDigest) -> Iterator[tuple[MemoryTable, Row]]:
    """Read the rows of a folder, table by table, and add them to `contents` as they are in the folder.

    Raises:
        InputError: A line is not a row of its table.
        PersistenceError: A file cannot be read.
    """
    for entry in COPIED_TABLES:
        name = manifest.name_of(entry)
        omitted = () if manifest.version == VERSION else _OLD_COLUMNS.get(name, ())
        path = folder / f"{name}.jsonl"
        try:
            with path.open(encoding="utf-8", newline="\n") as file:
                for number, line in enumerate(file, 1):
                    row = row_of(entry, line, f"line {number} of {str(path)!r}", omitted)
                    contents.add(name, line.removesuffix("\n") if omitted else line_of(entry, row))
                    yield entry, row
        except (OSError, UnicodeDecodeError) as error:
            raise PersistenceError(
                f"cannot read {str(path)!r}: {error}; check that the folder is complete"
            ) from error


def counted(
    rows: Iterable[tuple[MemoryTable, Row]], contents: ContentDigest
) -> Iterator[tuple[MemoryTable, Row]]:
    """The rows, which are added to `contents` as `write` would write them."""
    for entry, row in rows:
        contents.add(name_of(entry), line_of(entry, row))
        yield entry, row
