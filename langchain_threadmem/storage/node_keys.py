"""Keys of nodes: `segment << 24 | position`, and the index from node numbers to keys.

A *stride* is a stretch of a segment whose numbers follow each other, as its keys do. Only the node that opens
one is entered into the index over numbers; any other node's key is as far from that one's as its number is.
So an append that continues the newest message writes no index, while a conversation that switches its thread
at every turn has one entry a turn.
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

from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, mark, node, segment
from langchain_threadmem.storage.statements import Conn, Statement, within

_LAST: ColumnElement[int] = literal_column(str(LAST_POSITION))
_BITS: ColumnElement[int] = literal_column(str(POSITION_BITS))
_ZERO: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")


def end_of(key: ColumnElement[int]) -> ColumnElement[int]:
    """The last key that a segment can have, by any of its keys."""
    found: ColumnElement[int] = key.op("|")(_LAST)
    return found


def inside(key: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a key lies in the segment that is joined."""
    first: ColumnElement[int] = segment.c.id.op("<<")(_BITS)
    return key.between(first, end_of(first))


def keys_of(tree: ColumnElement[int]) -> Select[Any]:
    """The keys of all nodes of a tree."""
    return (
        select(node.c.key).select_from(segment.join(node, inside(node.c.key))).where(segment.c.tree == tree)
    )


_OPEN = Statement(update(node).where(within(node.c.key, "keys")).values(opens=_ONE), "keys")


def part(conn: Conn, keys: Iterable[int]) -> None:
    """Before nodes are deleted: what follows one of them in its segment opens a stride from now on."""
    following = [key + 1 for key in keys if key & LAST_POSITION != LAST_POSITION]
    conn.run(_OPEN, json.dumps(following))


def key_at(tree: ColumnElement[int], seq: ColumnElement[int]) -> ScalarSelect[int]:
    """The key of the node of a tree that has a number, if any has: the node that is found must be asked."""
    opener = node.alias()
    return _one(
        select(opener.c.key + seq - opener.c.seq)
        .where(opener.c.tree == tree, opener.c.opens == _ONE, opener.c.seq <= seq)
        .order_by(desc(opener.c.seq)),
        opener,
    )


def is_at(place: FromClause, tree: ColumnElement[int], seq: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a node is the one of a tree that has a number."""
    return (place.c.key == key_at(tree, seq)) & (place.c.seq == seq) & (place.c.tree == tree)


def newest(tree: ColumnElement[int], column: str = "key") -> ScalarSelect[int]:
    """The key, or another column, of the node of a tree that was written last."""
    opener, last = node.alias(), node.alias()
    stride = _one(
        select(end_of(opener.c.key))
        .where(opener.c.tree == tree, opener.c.opens == _ONE)
        .order_by(desc(opener.c.seq)),
        opener,
    )
    return _one(select(last.c[column]).where(last.c.key <= stride).order_by(desc(last.c.key)), last)


def marked(tree: ColumnElement[int], name: ColumnElement[str]) -> ColumnElement[int]:
    """Up to which number an index knows the nodes of a tree, by the name of its marks; 0 if it knows none."""
    known = select(mark.c.seq).where(mark.c.tree == tree, mark.c.name == name)
    found: ColumnElement[int] = func.coalesce(known.correlate_except(mark).scalar_subquery(), _ZERO)
    return found


def after(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], place: FromClause = node
) -> Select[Any]:
    """Those of some rows of nodes that lie in a tree, above a number, in the order of their numbers."""
    opener, holder = node.alias(), node.alias()
    held = (
        select(func.max(holder.c.seq))
        .where(holder.c.tree == tree, holder.c.opens == _ONE, holder.c.seq <= seq)
        .correlate_except(holder)
        .scalar_subquery()
    )
    # In the stride that holds the number from the next one on, in later ones all.
    known = seq - opener.c.seq + _ONE
    begin = opener.c.key + case((known > _ZERO, known), else_=_ZERO)
    return (
        rows.where(opener.c.tree == tree, opener.c.opens == _ONE, opener.c.seq >= func.coalesce(held, _ZERO))
        .where(place.c.key.between(begin, _end(opener)))
        .order_by(opener.c.seq, place.c.key)
    )


def before(
    rows: Select[Any], tree: ColumnElement[int], seq: ColumnElement[int], place: FromClause = node
) -> Select[Any]:
    """Those of some rows of nodes that lie in a tree, below a number, the newest first."""
    opener = node.alias()
    last, end = opener.c.key + seq - opener.c.seq - _ONE, _end(opener)
    return (
        rows.where(opener.c.tree == tree, opener.c.opens == _ONE, opener.c.seq < seq)
        .where(place.c.key.between(opener.c.key, case((last < end, last), else_=end)))
        .order_by(desc(opener.c.seq), desc(place.c.key))
    )


def _end(opener: FromClause) -> ColumnElement[int]:
    """The key that a stride ends with, at the latest: that before the next one's numbers."""
    following = node.alias()
    next_seq = (
        select(func.min(following.c.seq))
        .where(following.c.tree == opener.c.tree, following.c.opens == _ONE, following.c.seq > opener.c.seq)
        .correlate_except(following)
        .scalar_subquery()
    )
    # The last stride of a tree goes on to the end of its segment.
    end: ColumnElement[int] = func.coalesce(
        opener.c.key + next_seq - opener.c.seq - _ONE, end_of(opener.c.key)
    )
    return end


def _one(rows: Select[Any], *own: FromClause) -> ScalarSelect[int]:
    # Written out, or SQLite is sent parameters for them.
    return rows.limit(_ONE).offset(_ZERO).correlate_except(*own).scalar_subquery()
