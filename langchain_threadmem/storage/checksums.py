"""Checksums of rows on SQLite, by which damage is found.

SQLite trusts its file: if the disk turns over a bit of a text, a number or a state, it is read as if it had
been written. So every table of `schema` has one more column there, `checksum`, which no other statement
names. Triggers fill it in on the connection that writes. They are temporary and no part of the file, which
any SQL tool can read and write as before; what it writes without a checksum is named by `verify`. A damaged
row keeps its wrong checksum when its state changes; one whose text is replaced or removed gets a right one.

PostgreSQL checks its own pages (`initdb --data-checksums`, the default since version 18); nothing is added
there.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any
from zlib import crc32

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    literal_column,
    select,
)

from langchain_threadmem.storage import schema
from langchain_threadmem.storage.statements import Conn, Statement

COLUMN = "checksum"
_FUNCTION = "threadmem_checksum"
NULL = -0x6E756C6C
"""Stands for no value among numbers."""
_INTEGER, _FLOAT, _NODE = (struct.Struct(form).pack for form in ("<q", "<d", "<4qd4q"))
_NO_NUMBER = "WHEN 'text' THEN NULL WHEN 'blob' THEN NULL"
_CHANGED_IN_PART = (
    schema.node,
    schema.tree,
    schema.unit,
    schema.digest,
    schema.item,
    schema.blob,
)
"""Tables with rows of which some columns stay what they were when others change."""


def checksum(values: Iterable[object]) -> int:
    """The checksum of a row, as a number of 32 bits: over its numbers, then over its texts and bytes.

    Example:
        >>> checksum([1, "Hello", None]) == crc32(b"'Hello", crc32(struct.pack("<qq", 1, NULL)))
        True
    """
    numbers: list[bytes] = []
    texts: list[bytes] = []
    for value in values:
        if isinstance(value, str):
            texts.append(b"'" + value.encode("utf-8", "surrogateescape"))
        elif isinstance(value, bytes):
            texts.append(b"x" + value)
        elif isinstance(value, float):
            numbers.append(_FLOAT(value))
        else:
            numbers.append(_INTEGER(NULL if value is None else value))
    return crc32(b";".join(texts), crc32(b"".join(numbers)))


def of_node(row: Sequence[Any]) -> int:
    """`checksum` of a row of `node`, in a fifth of its time: every append waits for it."""
    key, tree, seq, parent, message, role, body, created, state, superseded_by, named, opens = row
    numbers = _NODE(
        *(key, tree, seq, NULL if parent is None else parent, created),
        *(state, NULL if superseded_by is None else superseded_by, named, opens),
    )
    return crc32(f"'{message};'{role};'{body}".encode(), crc32(numbers))


def tables() -> list[Table]:
    """The tables with checksums: all but the record of migrations, which comes before them."""
    return [table for table in schema.metadata.sorted_tables if table is not schema.migration]


@cache
def with_checksums() -> MetaData:
    """The tables as SQLite has them."""
    stored = MetaData()
    for table in schema.metadata.sorted_tables:
        table.to_metadata(stored)
    for table in tables():
        stored.tables[table.name].append_column(Column(COLUMN, Integer))
    return stored


def add(conn: Conn) -> None:
    """Give the rows of a database that was made without them their checksums."""
    if conn.dialect != "sqlite":
        return
    columns = Statement.of(sqlite="SELECT 1 FROM pragma_table_info(?) WHERE name = ?", postgresql="")
    for table in tables():
        if not conn.all(columns, table.name, COLUMN):
            conn.script(f"ALTER TABLE {table.name} ADD COLUMN {COLUMN} INTEGER")
        conn.script(f"UPDATE {table.name} SET {COLUMN} = {_expression(table)}")


def connect(connection: sqlite3.Connection) -> None:
    """Let a connection compute checksums."""
    connection.create_function(_FUNCTION, -1, _computed, deterministic=True)


def keep(connection: sqlite3.Connection) -> None:
    """Let every row that a connection writes get its checksum."""
    for table in tables():
        for trigger in _triggers(table):
            connection.execute(trigger)


def wrong(
    conn: Conn, table: Table, within: ColumnElement[bool] | None = None, *under: int
) -> list[tuple[Any, ...]]:
    """The primary keys of the rows of a table that are not what was written; none on PostgreSQL.

    Args:
        conn: A transaction.
        table: The table.
        within: Which of its rows, with the parameter `under`; `None` for all.
        under: The value of it.
    """
    if conn.dialect != "sqlite":
        return []
    damaged: ColumnElement[bool] = literal_column(
        f"{table.name}.{COLUMN} IS NOT {_expression(table, table.name + '.')}"
    )
    rows = select(*table.primary_key).where(damaged, *(() if within is None else (within,)))
    return conn.all(Statement(rows, *(["under"] if under else [])), *under)


def _triggers(table: Table) -> tuple[str, ...]:
    name = table.name
    where = " AND ".join(f"{column.name} = NEW.{column.name}" for column in table.primary_key)
    renew = f"BEGIN UPDATE {name} SET {COLUMN} = {_expression(table, 'NEW.')} WHERE {where}; END"
    watched = ", ".join(column.name for column in table.columns)
    sound = "1"
    if table in _CHANGED_IN_PART:
        replaced = [
            f"OLD.{column.name} IS NOT NEW.{column.name}"
            for column in table.columns
            if isinstance(column.type, Text | LargeBinary) and not column.primary_key
        ]
        sound = " OR ".join([f"OLD.{COLUMN} IS {_expression(table, 'OLD.')}", *replaced])
    written = f"CREATE TEMP TRIGGER {name}_written AFTER INSERT ON main.{name} {renew}"
    return (
        # A trigger that does nothing would still cost a tenth of an append.
        *(() if table is schema.node else (written,)),
        f"CREATE TEMP TRIGGER {name}_changed AFTER UPDATE OF {watched} ON main.{name} WHEN {sound} {renew}",
    )


def _expression(table: Table, prefix: str = "") -> str:
    """The checksum of a row in SQL; of a value that is not of its column's kind, that it is not."""
    kinds, values = "", []
    for column in table.columns:
        value = prefix + column.name
        if isinstance(column.type, Text):  # As bytes: a damaged text may be none.
            kinds += "t"
            cases = f"WHEN 'text' THEN CAST({value} AS BLOB) WHEN 'blob' THEN 0"
        else:
            kinds += "-"
            cases = "WHEN 'text' THEN 0" if isinstance(column.type, LargeBinary) else _NO_NUMBER
        values.append(f"CASE typeof({value}) {cases} ELSE {value} END")
    return f"{_FUNCTION}('{kinds}', {', '.join(values)})"


def _computed(kinds: str, *values: object) -> int:
    return checksum(
        value.decode("utf-8", "surrogateescape") if kind == "t" and isinstance(value, bytes) else value
        for kind, value in zip(kinds, values, strict=True)
    )
