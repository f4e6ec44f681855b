"""SQL: counts of an owner's rows, and bytes by table of the whole database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import NamedTuple

from sqlalchemy import LargeBinary, Table, Text, bindparam, cast, func, literal_column, select, text

from langchain_threadmem.maintenance.removal.tables import PREFIX
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.storage import node_keys, schema
from langchain_threadmem.storage.schema import (
    State,
    checkpoint,
    embedding,
    item,
    namespace,
    node,
    segment,
    summary,
    tree,
)
from langchain_threadmem.storage.statements import Conn, Statement

_ROWS = func.count(literal_column("1"))
_OWNED = tree.c.owner == bindparam("owner")
_SEGMENTS = tree.join(segment, segment.c.tree == tree.c.id)
_SAID = [literal_column(f"'{role}'", Text()) for role in SPOKEN]
_MESSAGES = Statement(
    select(func.count(tree.c.id.distinct()), _ROWS)
    .select_from(_SEGMENTS.join(node, node_keys.inside(node.c.key)))
    .where(_OWNED, tree.c.scope == "", node.c.state == int(State.LIVE), node.c.role.in_(_SAID)),
    "owner",
)
_SUMMARIES = Statement(
    select(_ROWS).select_from(tree.join(summary, summary.c.tree == tree.c.id)).where(_OWNED), "owner"
)
_VECTORS = Statement(
    select(_ROWS).select_from(_SEGMENTS.join(embedding, node_keys.inside(embedding.c.key))).where(_OWNED),
    "owner",
)
_CHECKPOINTS = Statement(
    select(_ROWS).select_from(tree.join(checkpoint, checkpoint.c.tree == tree.c.id)).where(_OWNED), "owner"
)
_ITEMS = Statement(
    select(_ROWS)
    .select_from(namespace.join(item, item.c.namespace == namespace.c.id))
    .where(namespace.c.owner == bindparam("owner")),
    "owner",
)
_COUNTS = (_MESSAGES, _SUMMARIES, _VECTORS, _CHECKPOINTS, _ITEMS)
_SIZE = Statement.of(
    sqlite="SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    postgresql="SELECT pg_database_size(current_database())",
)
_MEASURABLE = Statement.of(
    sqlite="SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')", postgresql="SELECT 1"
)
_TABLES = Statement.of(
    sqlite=(
        "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) "
        f"WHERE aggregate = TRUE AND tbl_name GLOB '{PREFIX}*' GROUP BY tbl_name"
    ),
    postgresql=(
        "SELECT coalesce(p.relname, c.relname), pg_total_relation_size(c.oid) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid "
        "LEFT JOIN pg_class p ON p.oid = i.inhparent WHERE c.relkind = 'r' "
        f"AND nspname = ANY (current_schemas(false)) AND starts_with(c.relname, '{PREFIX}')"
    ),
)


def _length(table: Table) -> Statement:
    """The statement for the lengths of all values of a table of SQLite."""
    lengths = (func.ifnull(func.length(cast(column, LargeBinary)), 0) for column in table.columns)
    return Statement(select(func.ifnull(func.sum(reduce(add, lengths)), 0)))


_LENGTHS = {
    **{table.name: _length(table) for table in schema.metadata.sorted_tables},
    schema.LEXICON: Statement(text(f"SELECT ifnull(sum(length(block)), 0) FROM {schema.LEXICON}_data")),
}


class Counts(NamedTuple):
    """Numbers of an owner's rows; see `Statistics`."""

    conversations: int
    messages: int
    summaries: int
    vectors: int
    checkpoints: int
    items: int


def counts(conn: Conn, owner: str) -> Counts:
    """The numbers of an owner's rows."""
    found = conn.each(*((statement, (owner,)) for statement in _COUNTS))
    return Counts(*(int(number) for rows in found for number in rows[0]))


def size(conn: Conn) -> int:
    """The bytes of the database: the pages of an SQLite database, the files of one on a server."""
    return int(conn.all(_SIZE)[0][0])


def table_sizes(conn: Conn) -> tuple[Mapping[str, int], bool]:
    """The bytes of each table with its indexes, the largest first, and whether they are estimates.

    An SQLite without the table `dbstat` cannot tell which pages a table has: the estimate of a table is the
    length of its values.
    """
    estimated = not conn.all(_MEASURABLE)[0][0]
    found: Counter[str] = Counter()
    if estimated:
        for name, statement in _LENGTHS.items():
            found[name.removeprefix(PREFIX)] = int(conn.all(statement)[0][0])
    else:
        for name, number in conn.all(_TABLES):
            # SQLite keeps the lexicon in several tables, and PostgreSQL a partitioned table.
            whole = schema.LEXICON if name.startswith(schema.LEXICON) else name
            found[whole.removeprefix(PREFIX)] += int(number)
    return dict(found.most_common()), estimated
