"""Partitioned databases: their tables, and the SQL in which a comparison of keys also compares trees.

PostgreSQL requires the column by which a table is partitioned in each unique key of the table. The tables
that grow with messages are partitioned by the hash of their tree. The others have a row for a conversation
or a fork (`tree`, `profile`, `segment`, `watermark`), for a moved message (`graft`), or rows of owners and of
LangGraph's store, which belong to no tree. `segment` gives the tree of each key.

A key of a node belongs to one tree, so `a.key = b.key` and `a.key = b.key AND a.tree = b.tree` select the
same rows; with the second condition PostgreSQL reads one partition. `PartitionedCompiler` adds the condition
to comparisons of keys, the tree to the unique keys of ON CONFLICT, and a column to INSERT. The tree of a
parameter is that of its segment, which takes one look-up.

The other tree has `+ 0`, which hides that both rows have the tree of the statement: PostgreSQL would read all
rows of the tree in both tables and compare each with each, since it expects few rows in a tree. It now looks
up each row by tree and key; the row to look up is the left one, if both tables are partitioned.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    Alias,
    BigInteger,
    BinaryExpression,
    BindParameter,
    Case,
    Column,
    ColumnElement,
    Index,
    Insert,
    MetaData,
    PrimaryKeyConstraint,
    Table,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import ColumnClause, Grouping

from langchain_threadmem.storage import schema
from langchain_threadmem.storage.schema import POSITION_BITS, graft, segment

TREE = "tree"
_lexicon = Table(
    schema.LEXICON,
    MetaData(),
    Column("key", BigInteger, primary_key=True, autoincrement=False),
    Column("words", TSVECTOR, nullable=False),
)
Index(f"{schema.LEXICON}_words", _lexicon.c.words, postgresql_using="gin")
_OF_NODES = (
    *(schema.node, schema.message_summary, schema.placement, schema.unit, schema.embedding),
    *(schema.document, schema.summary, _lexicon),
)
_OF_TREES = (schema.lineage, schema.checkpoint, schema.blob, schema.write)
KEYED_BY_NODE = frozenset(table.name for table in _OF_NODES)
"""The partitioned tables whose rows have the key of a node."""
WITHOUT_TREE = frozenset(table.name for table in _OF_NODES if TREE not in table.c)
"""The tables whose rows have a tree in a partitioned database only."""


@cache
def partitioned_tables() -> tuple[Table, ...]:
    """The partitioned tables."""
    stored = MetaData()
    for table in (*schema.metadata.sorted_tables, _lexicon):
        table.to_metadata(stored)
    for name in WITHOUT_TREE:
        stored.tables[name].append_column(Column(TREE, BigInteger, nullable=False))
    tables = tuple(stored.tables[table.name] for table in (*_OF_NODES, *_OF_TREES))
    for table in tables:
        if TREE not in table.primary_key.columns:
            # The tree is first, so that the nodes of a range of keys of a tree are a range of the index.
            table.c[TREE].primary_key = True
            table.append_constraint(PrimaryKeyConstraint(TREE, *table.primary_key.columns.keys()))
        table.dialect_options["postgresql"]["partition_by"] = f"HASH ({TREE})"
    return tables


_VALUES = re.compile(r"(INSERT INTO \w+ )\(([^)]*)\) VALUES \((.*?)\)( ON CONFLICT .*)?")
_ROWS = re.compile(r"(INSERT INTO \w+ )\(([^)]*)\) (SELECT .*?)( ON CONFLICT .*)?")
_CONFLICT = re.compile(r"( ON CONFLICT \([^)]*)\)")
_KEYS = frozenset(
    {
        *((name, "key") for name in KEYED_BY_NODE),
        *((graft.name, "key"), (graft.name, "parent"), (segment.name, "parent"), (segment.name, "id")),
        ("ranges", "first"),  # of `statements.range_rows`
    }
)
"""The columns with a key of a node, or with its segment, in rows that have its tree too."""


def tree_of(key: str) -> str:
    """The SQL expression of the tree of a key; `NULL` if there is no such segment."""
    return f"(SELECT s.{TREE} FROM {segment.name} s WHERE s.id = {key} >> {POSITION_BITS})"


def with_tree(insertion: str) -> str:
    """An INSERT with a column of trees more.

    Example:
        >>> with_tree("INSERT INTO a (key, b) VALUES (%s, %s)")  # doctest: +ELLIPSIS
        'INSERT INTO a (key, b, tree) VALUES (%s, %s, (SELECT s.tree FROM threadmem_segment s ...'
    """
    if found := _VALUES.fullmatch(insertion):
        into, names, values, rest = found.groups(default="")
        key = values.split(", ")[names.split(", ").index("key")]
        return f"{into}({names}, {TREE}) VALUES ({values}, {tree_of(key)}){rest}"
    found = _ROWS.fullmatch(insertion)
    assert found is not None, insertion
    into, names, rows, rest = found.groups(default="")
    return (
        f"{into}({names}, {TREE}) SELECT added.*, s.{TREE} FROM ({rows}) AS added ({names}) "
        f"JOIN {segment.name} s ON s.id = added.key >> {POSITION_BITS}{rest}"
    )


class PartitionedCompiler(PGCompiler_psycopg):
    """Compiles statements for a partitioned database."""

    def visit_binary(self, binary: BinaryExpression[Any], *given: object, **options: object) -> str:
        """A comparison, of trees too if it compares keys."""
        sql: str = super().visit_binary(binary, *given, **options)  # type: ignore[no-untyped-call]
        if binary.operator is operators.eq:
            return self._with_trees(sql, binary.left, binary.right)
        if binary.operator is operators.between_op:
            return self._with_trees(sql, binary.left, binary.right.clauses[0])
        return sql

    def visit_insert(self, insert_stmt: Insert, *given: object, **options: object) -> str:
        """An INSERT with the tree of each row, and in its unique key."""
        sql: str = super().visit_insert(insert_stmt, *given, **options)  # type: ignore[no-untyped-call]
        name = cast("Table", insert_stmt.table).name
        if name in KEYED_BY_NODE:
            sql = _CONFLICT.sub(rf"\1, {TREE})", sql)
        return with_tree(" ".join(sql.split())) if name in WITHOUT_TREE else sql

    def among(self, key: ColumnElement[int], rows: str) -> str | None:
        """The condition that a key is one of the keys that a query returns; `None` if it is no such key."""
        if not _is_partitioned(key):
            return None
        tree = self._tree(key)
        # OFFSET makes key and tree columns of one relation, so that PostgreSQL looks both up together.
        of_segment = (
            f"SELECT u.key, s.{TREE} FROM {segment.name} s WHERE s.id = u.key >> {POSITION_BITS} OFFSET 0"
        )
        return (
            f"({self.process(key)}, {tree}) IN (SELECT listed.key, listed.{TREE} + 0 "
            f"FROM unnest(ARRAY{rows}) AS u (key), LATERAL ({of_segment}) AS listed)"
        )

    def _with_trees(self, sql: str, left: ColumnElement[Any], right: ColumnElement[Any]) -> str:
        if not (_is_partitioned(left) or _is_partitioned(right)):
            return sql
        row, other = (left, right) if _is_partitioned(left) else (right, left)
        tree, others = self._tree(row), self._tree(other)
        return sql if tree is None or others is None else f"({sql} AND {tree} = {others} + 0)"

    def _tree(self, key: ColumnElement[Any]) -> str | None:
        """The SQL expression of the tree of a key; `None` if the key does not say it."""
        if isinstance(key, BindParameter):
            return tree_of(self.process(key))
        column = _column_of(key)
        if column is None or (_table_of(column), column.name) not in _KEYS:
            return None
        return f"{self.process(column).rpartition('.')[0]}.{TREE}"


def _is_partitioned(key: ColumnElement[Any]) -> bool:
    """Whether a column is the key of a partitioned table."""
    column = _column_of(key)
    return column is not None and column.name == "key" and _table_of(column) in KEYED_BY_NODE


def _column_of(key: ColumnElement[Any]) -> ColumnClause[Any] | None:
    """The column of a key, or of a key in the same segment, such as `key + 1`."""
    while not isinstance(key, ColumnClause):
        if isinstance(key, Grouping):
            key = cast("ColumnElement[Any]", key.element)
        elif isinstance(key, Case) and key.else_ is not None:  # whose other keys are of the same tree
            key = key.else_
        elif isinstance(key, BinaryExpression) and _is_of_segment(key):
            key = key.left
        else:
            return None
    return key


def _is_of_segment(key: BinaryExpression[Any]) -> bool:
    """Whether a key is computed from a key of its segment, or from the segment."""
    return key.operator in (operators.add, operators.sub) or getattr(key.operator, "opstring", "") in (
        "|",
        "<<",
    )


def _table_of(column: ColumnClause[Any]) -> str:
    table = column.table
    named = table.element if isinstance(table, Alias) and isinstance(table.element, Table) else table
    return str(getattr(named, "name", ""))


class PartitionedDialect(psycopg):
    """The dialect of psycopg for partitioned databases."""

    statement_compiler = PartitionedCompiler
    supports_statement_cache = True
