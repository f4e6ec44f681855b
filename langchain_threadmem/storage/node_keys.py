"""SQL: keys of nodes (`segment << 24 | position`), and conditions on node numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, FromClause, ScalarSelect, Select, desc, func, literal_column, select

from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, node, segment, watermark
from langchain_threadmem.storage.statements import ONE, ZERO, within_rows

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


def keys_after(keys: Iterable[int]) -> list[int]:
    """The key after each key that is not the last of its segment."""
    return [key + 1 for key in keys if key & LAST_POSITION != LAST_POSITION]


def is_at(row: FromClause, tree: ColumnElement[int], seq: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a node is the node of a tree with a number."""
    return (row.c.tree == tree) & (row.c.seq == seq)


def newest(tree: ColumnElement[int], column: str = "key") -> ScalarSelect[int]:
    """The key, or another column, of the newest node of a tree."""
    last = node.alias()
    # LIMIT and OFFSET are literals, since SQLAlchemy would send them as parameters.
    row = select(last.c[column]).where(last.c.tree == tree).order_by(desc(last.c.seq)).limit(ONE).offset(ZERO)
    return row.correlate_except(last).scalar_subquery()


def watermark_of(tree: ColumnElement[int], name: ColumnElement[str]) -> ColumnElement[int]:
    """The watermark of a tree by name: the number of its last indexed node, or 0."""
    seq = select(watermark.c.seq).where(watermark.c.tree == tree, watermark.c.name == name)
    number: ColumnElement[int] = func.coalesce(seq.correlate_except(watermark).scalar_subquery(), ZERO)
    return number


def after(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], nodes: FromClause = node
) -> Select[Any]:
    """Restrict a query of nodes to the nodes of a tree above a number, in the order of their numbers."""
    return rows.where(nodes.c.tree == tree, nodes.c.seq > seq).order_by(nodes.c.seq)


def before(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], nodes: FromClause = node
) -> Select[Any]:
    """Restrict a query of nodes to the nodes of a tree below a number, newest first."""
    return rows.where(nodes.c.tree == tree, nodes.c.seq < seq).order_by(desc(nodes.c.seq))
