"""Checksums of rows on SQLite, which detect damage.

SQLite does not check its file: a bit of a text, a number or a state that changes on disk is read without an
error. So on SQLite each table of `schema` has an additional column `checksum`, which no other statement
names. Triggers on the writing connection compute it. The triggers are temporary and not part of the file, so
other SQL tools can read and write the file; `verify` reports rows that they wrote without a checksum. A
damaged row keeps its wrong checksum if only its state changes, and gets a correct checksum if its text is
replaced or removed.

PostgreSQL has checksums of pages (`initdb --data-checksums`, the default since version 18), so its tables
have no such column.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any
from zlib import crc32

from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    literal_column,
    select,
)
from sqlalchemy.dialects import sqlite as sqlite_dialect

from langchain_threadmem.storage import schema
from langchain_threadmem.storage.statements import Conn, Statement

COLUMN = "checksum"
_FUNCTION, _FUNCTION_OF_VALUES = "threadmem_checksum", "threadmem_checksum_of_values"
NULL = -0x6E756C6C
"""The number that represents SQL's NULL."""
_INTEGER, _FLOAT, _NODE = (struct.Struct(form).pack for form in ("<q", "<d", "<4qd2q"))
_NO_NUMBER = "WHEN 'text' THEN NULL WHEN 'blob' THEN NULL"
_PARTLY_CHANGED = (
    schema.node,
    schema.tree,
    schema.unit,
    schema.summary,
    schema.item,
    schema.blob,
)
"""Tables whose rows are changed in some columns only."""


def checksum(values: Iterable[object]) -> int:
    """The checksum of a row, a 32-bit number, of its numbers and then of its texts and bytes.

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


def checked_node(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of `node` with its `checksum`, computed five times as fast, since every append computes it."""
    key, tree, seq, parent, message, role, body, created, state, superseded_by = row
    numbers = _NODE(
        *(key, tree, seq, NULL if parent is None else parent, created),
        *(state, NULL if superseded_by is None else superseded_by),
    )
    return *row, crc32(f"'{message};'{role};'{body}".encode(), crc32(numbers))


def tables() -> list[Table]:
    """The tables with checksums: all except the record of migrations, which is created first."""
    return [table for table in schema.metadata.sorted_tables if table is not schema.migration]


class _Packs(dict[str, Callable[..., bytes]]):
    """The functions that pack the numbers of rows, by format."""

    def __missing__(self, form: str) -> Callable[..., bytes]:
        return self.setdefault(form, struct.Struct(form).pack)


_PACK = _Packs()


_CHECK = Statement.of(sqlite="PRAGMA integrity_check", postgresql="SELECT 'ok'")
_TYPES = Statement.of(
    sqlite="SELECT m.name, c.name, c.type FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c "
    "WHERE m.type = 'table'",
    postgresql="",
)


@cache
def with_checksums() -> MetaData:
    """The tables with the additional column."""
    stored = MetaData()
    for table in schema.metadata.sorted_tables:
        table.to_metadata(stored)
    for table in tables():
        stored.tables[table.name].append_column(Column(COLUMN, Integer))
    return stored


def connect(connection: sqlite3.Connection) -> None:
    """Register the checksum function of a connection."""
    connection.create_function(_FUNCTION, -1, _checksum_of_row, deterministic=True)
    connection.create_function(_FUNCTION_OF_VALUES, -1, _checksum_of_values, deterministic=True)


def create_triggers(connection: sqlite3.Connection) -> None:
    """Create the triggers of a connection that writes."""
    for trigger in _triggers():
        connection.execute(trigger)


def page_faults(conn: Conn) -> list[str]:
    """Faults of the pages of an SQLite file, its indexes included; PostgreSQL checks its own pages."""
    return [str(fault) for (fault,) in conn.all(_CHECK) if fault != "ok"]


def wrong_types(conn: Conn) -> list[str]:
    """The columns of an SQLite file whose type is not that of the schema, one sentence each.

    No checksum contains the text of the schema. SQLite accepts any word as a type, and reads the numbers of
    such a column as other numbers.
    """
    if conn.dialect != "sqlite":
        return []
    stored = {(table, column): type_ for table, column, type_ in conn.all(_TYPES)}
    declared = {
        (table.name, column.name): column.type.compile(sqlite_dialect.dialect())
        for table in tables()
        for column in table.c
    }
    return [
        f"the column {column!r} of {table!r} has the type {stored.get((table, column))!r}, not {type_!r}"
        for (table, column), type_ in declared.items()
        if stored.get((table, column)) != type_
    ]


def damaged_keys(
    conn: Conn, table: Table, within: ColumnElement[bool] | None = None, *under: int
) -> list[tuple[Any, ...]]:
    """The primary keys of the damaged rows of a table; an empty list on PostgreSQL.

    Args:
        conn: A transaction.
        table: The table.
        within: The condition of the rows to check, with the parameter `under`; `None` for all rows.
        *under: The value of the parameter.
    """
    if conn.dialect != "sqlite":
        return []
    if within is None:
        return conn.all(_all_damaged(table))
    return conn.all(Statement(_damaged(table).where(within), *(["under"] if under else [])), *under)


def _damaged(table: Table) -> Select[Any]:
    is_damaged: ColumnElement[bool] = literal_column(
        f"{table.name}.{COLUMN} IS NOT {expression(table, table.name + '.')}"
    )
    return select(*table.primary_key).where(is_damaged)


@cache
def _all_damaged(table: Table) -> Statement:
    return Statement(_damaged(table))


@cache
def _triggers() -> tuple[str, ...]:
    return tuple(trigger for table in tables() for trigger in _triggers_of(table))


def _triggers_of(table: Table) -> tuple[str, ...]:
    name = table.name
    condition = " AND ".join(f"{column.name} = NEW.{column.name}" for column in table.primary_key)
    update = f"BEGIN UPDATE {name} SET {COLUMN} = {_written(table, 'NEW.')} WHERE {condition}; END"
    columns = ", ".join(column.name for column in table.columns)
    intact = "1"
    if table in _PARTLY_CHANGED:
        replaced = [
            f"OLD.{column.name} IS NOT NEW.{column.name}"
            for column in table.columns
            if isinstance(column.type, Text | LargeBinary) and not column.primary_key
        ]
        intact = " OR ".join([f"OLD.{COLUMN} IS {_written(table, 'OLD.')}", *replaced])
    on_insert = f"CREATE TEMP TRIGGER {name}_written AFTER INSERT ON main.{name} {update}"
    return (
        # `node` has no insert trigger, since even an empty trigger costs a tenth of an append.
        *(() if table is schema.node else (on_insert,)),
        f"CREATE TEMP TRIGGER {name}_changed AFTER UPDATE OF {columns} ON main.{name} WHEN {intact} {update}",
    )


def expression(table: Table, prefix: str) -> str:
    """The SQL expression of the checksum of a row; a value of the wrong type changes the checksum."""
    of_row, of_values = _of_row(table, prefix), _of_values(table, prefix)
    return of_row if of_values is None else f"ifnull({of_values}, {of_row})"


def _written(table: Table, prefix: str) -> str:
    """The expression for a row that is written, which has values of the declared types.

    A row with other values, which is damaged, gets another checksum than that of `expression`, or none. Each
    connection that writes parses the triggers, in half the time without the cases of `expression`.
    """
    of_values = _of_values(table, prefix)
    if of_values is not None:
        return of_values
    kinds, values = "", []
    for column in table.columns:
        value, is_text = prefix + column.name, isinstance(column.type, Text)
        kinds += "t" if is_text else "-"
        # The product is a number in any case, and a number as it is, also -0.0.
        values.append(
            f"CAST({value} AS BLOB)" if is_text or isinstance(column.type, LargeBinary) else f"{value}*1"
        )
    return f"{_FUNCTION}('{kinds}', {', '.join(values)})"


def _of_row(table: Table, prefix: str) -> str:
    """The expression for a row with values of any types."""
    kinds, values = "", []
    for column in table.columns:
        value = prefix + column.name
        if isinstance(column.type, Text):  # Read as bytes, since a damaged text may be invalid UTF-8.
            kinds += "t"
            cases = f"WHEN 'text' THEN CAST({value} AS BLOB) WHEN 'blob' THEN 0"
        else:
            kinds += "-"
            cases = "WHEN 'text' THEN 0" if isinstance(column.type, LargeBinary) else _NO_NUMBER
        values.append(f"CASE typeof({value}) {cases} ELSE {value} END")
    return f"{_FUNCTION}('{kinds}', {', '.join(values)})"


def _of_values(table: Table, prefix: str) -> str | None:
    """The expression for a row with values of the declared types, which is null for other rows.

    `None` for a table in which a text or a fraction may be null. SQLite joins the texts.
    """
    texts, typed, numbers = [], [], []
    for column in table.columns:
        value = prefix + column.name
        if isinstance(column.type, Text):  # All numbers are below all texts, and these below all bytes.
            typed.append(f"+{value} >= '' AND +{value} < x''")
            texts.append(f"'''' || {value}")
        elif isinstance(column.type, LargeBinary):
            typed.append(f"+{value} >= x''")
            texts.append(f"'x' || {value}")
        else:
            numbers.append(f"ifnull({value}, {NULL})" if column.nullable else value)
        if column.nullable and not isinstance(column.type, Integer):
            return None
    joined = "x''"
    if texts:
        bytes_ = " || ';' || ".join(texts)
        joined = f"CASE WHEN {' AND '.join(typed)} THEN CAST({bytes_} AS BLOB) END"
    return f"{_FUNCTION_OF_VALUES}('{_form(table)}', {', '.join([joined, *numbers])})"


def _form(table: Table) -> str:
    """The format of the numbers of a row, for `struct`."""
    numbers = (column for column in table.columns if not isinstance(column.type, Text | LargeBinary))
    return "<" + "".join("d" if isinstance(column.type, Float) else "q" for column in numbers)


def _checksum_of_row(kinds: str, *values: Any) -> int:
    """`checksum` of a row whose texts are bytes."""
    numbers, texts = [], []
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(value, bytes):
            texts.append((b"'" if kind == "t" else b"x") + value)
        elif isinstance(value, float):
            numbers.append(_FLOAT(value))
        else:
            numbers.append(_INTEGER(NULL if value is None else value))
    return crc32(b";".join(texts), crc32(b"".join(numbers)))


def _checksum_of_values(form: str, texts: bytes, *numbers: float) -> int | None:
    """`checksum` of a row whose values have the declared types, in half the time; `None` for other rows."""
    try:
        return crc32(texts, crc32(_PACK[form](*numbers)))
    except (struct.error, TypeError):
        return None  # A value has another type.
