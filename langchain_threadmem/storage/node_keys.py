"""SQL: keys of nodes (`segment << 24 | position`), and the index from node numbers to keys.

A *stride* is a part of a segment with consecutive numbers and consecutive keys. Only its first node is in
the index on numbers; the key of any other node is the first key plus the difference of the numbers. So an
append that continues the newest message writes no index entry, and a conversation that switches the thread at
each turn has one entry per turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    ScalarSelect,
    Select,
    case,
    desc,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, mark, node, segment
from langchain_threadmem.storage.statements import ONE, ZERO, Conn, Statement, within, within_rows

# PostgreSQL shifts by an INTEGER only; a parameter beside a key would be a BIGINT.
_LAST: ColumnElement[int] = literal_column(str(LAST_POSITION))
_BITS: ColumnElement[int] = literal_column(str(POSITION_BITS))


def end_of(key: ColumnElement[int]) -> ColumnElement[int]:
    """The highest possible key in the segment of a key."""
    last: ColumnElement[int] = key.op("|")(_LAST)
    return last


def segment_of(key: ColumnElement[int]) -> ColumnElement[int]:
    """The segment of a key."""
    number: ColumnElement[int] = key.op(">>")(_BITS)
    return number


def first_in(number: int) -> int:
    """The key of the first node of a segment, by the number of the segment."""
    return number << POSITION_BITS


def last_in(key: int) -> int:
    """The highest possible key in the segment of a key."""
    return key | LAST_POSITION


def first_key(number: ColumnElement[int]) -> ColumnElement[int]:
    """The key of the first node of a segment."""
    first: ColumnElement[int] = number.op("<<")(_BITS)
    return first


def inside(key: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a key is in the joined segment."""
    first = first_key(segment.c.id)
    return key.between(first, end_of(first))


def keys_of(tree: ColumnElement[int]) -> Select[Any]:
    """The keys of all nodes of a tree."""
    return (
        select(node.c.key).select_from(segment.join(node, inside(node.c.key))).where(segment.c.tree == tree)
    )


def in_tree(key: ColumnElement[int], tree: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a key is that of a node of a tree; for a table without a column of trees."""
    return within_rows(key, keys_of(tree))


class _NotBefore(FunctionElement[bool]):
    """Whether a key is not below the first key of its stride, which holds for every row of `after`.

    PostgreSQL may join nodes with strides before it knows the number to begin at, and then reads all lower
    keys for each stride. SQLite would use this bound in place of the number, and read the whole stride.
    """

    inherit_cache = True


@compiles(_NotBefore, "sqlite")
def _not_before_sqlite(element: _NotBefore, compiler: SQLCompiler, **options: object) -> str:
    return "1"


@compiles(_NotBefore, "postgresql")
def _not_before_postgresql(element: _NotBefore, compiler: SQLCompiler, **options: object) -> str:
    key, first = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{key} >= {first}"


_OPEN = Statement(update(node).where(within(node.c.key, "keys")).values(opens=ONE), "keys")


def keys_after(keys: Iterable[int]) -> list[int]:
    """The key after each key that is not the last of its segment."""
    return [key + 1 for key in keys if key & LAST_POSITION != LAST_POSITION]


def open_after(conn: Conn, keys: Iterable[int]) -> None:
    """Make the nodes after `keys` the first of their strides, before the nodes of `keys` are deleted."""
    conn.run(_OPEN, json.dumps(keys_after(keys)))


def key_at(tree: ColumnElement[int], seq: ColumnElement[int]) -> ScalarSelect[int]:
    """The key that the node of a tree with a number has if it exists; the caller checks the node."""
    opener = node.alias()
    return _first_row(
        select(opener.c.key + seq - opener.c.seq)
        .where(opener.c.tree == tree, opener.c.opens == ONE, opener.c.seq <= seq)
        .order_by(desc(opener.c.seq)),
        opener,
    )


def is_at(row: FromClause, tree: ColumnElement[int], seq: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a node is the node of a tree with a number."""
    return (row.c.key == key_at(tree, seq)) & (row.c.seq == seq) & (row.c.tree == tree)


def newest(tree: ColumnElement[int], column: str = "key") -> ScalarSelect[int]:
    """The key, or another column, of the newest node of a tree."""
    opener, last = node.alias(), node.alias()
    stride = _first_row(
        select(end_of(opener.c.key))
        .where(opener.c.tree == tree, opener.c.opens == ONE)
        .order_by(desc(opener.c.seq)),
        opener,
    )
    return _first_row(select(last.c[column]).where(last.c.key <= stride).order_by(desc(last.c.key)), last)


def marked(tree: ColumnElement[int], name: ColumnElement[str]) -> ColumnElement[int]:
    """The watermark of a tree by name: the number of its last indexed node, or 0."""
    seq = select(mark.c.seq).where(mark.c.tree == tree, mark.c.name == name)
    watermark: ColumnElement[int] = func.coalesce(seq.correlate_except(mark).scalar_subquery(), ZERO)
    return watermark


def after(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], nodes: FromClause = node
) -> Select[Any]:
    """Restrict a query of nodes to the nodes of a tree above a number, in the order of their numbers."""
    opener, earlier = node.alias(), node.alias()
    first = (
        select(func.max(earlier.c.seq))
        .where(earlier.c.tree == tree, earlier.c.opens == ONE, earlier.c.seq <= seq)
        .correlate_except(earlier)
        .scalar_subquery()
    )
    # The stride with the number begins after it; all later strides begin with their first node.
    skipped = seq - opener.c.seq + ONE
    begin = opener.c.key + case((skipped > ZERO, skipped), else_=ZERO)
    return (
        rows.where(opener.c.tree == tree, opener.c.opens == ONE, opener.c.seq >= func.coalesce(first, ZERO))
        .where(nodes.c.key.between(begin, _end(opener)), _NotBefore(nodes.c.key, opener.c.key))
        .order_by(opener.c.seq, nodes.c.key)
    )


def before(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], nodes: FromClause = node
) -> Select[Any]:
    """Restrict a query of nodes to the nodes of a tree below a number, newest first."""
    opener = node.alias()
    last, end = opener.c.key + seq - opener.c.seq - ONE, _end(opener)
    return (
        rows.where(opener.c.tree == tree, opener.c.opens == ONE, opener.c.seq < seq)
        .where(nodes.c.key.between(opener.c.key, case((last < end, last), else_=end)))
        .order_by(desc(opener.c.seq), desc(nodes.c.key))
    )


def _end(opener: FromClause) -> ColumnElement[int]:
    """The highest possible key of a stride, before the numbers of the next stride."""
    following = node.alias()
    next_seq = (
        select(func.min(following.c.seq))
        .where(following.c.tree == opener.c.tree, following.c.opens == ONE, following.c.seq > opener.c.seq)
        .correlate_except(following)
        .scalar_subquery()
    )
    # The last stride of a tree extends to the end of its segment.
    end: ColumnElement[int] = func.coalesce(
        opener.c.key + next_seq - opener.c.seq - ONE, end_of(opener.c.key)
    )
    return end


def _first_row(rows: Select[Any], *aliases: FromClause) -> ScalarSelect[int]:
    # LIMIT and OFFSET are literals, since SQLAlchemy would send them as parameters.
    return rows.limit(ONE).offset(ZERO).correlate_except(*aliases).scalar_subquery()
