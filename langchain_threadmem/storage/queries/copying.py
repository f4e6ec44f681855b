"""Copying a tree to another one, row for row, under new keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import bindparam, select

from langchain_threadmem.core.nodes import State
from langchain_threadmem.storage.queries import grafts, integrity, revision, strides, trees
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    POSITION_BITS,
    node,
    segment,
)
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within

_NODES = Statement(strides.keys_of(bindparam("tree")).with_only_columns(node).order_by(node.c.key), "tree")
_KEY_FIRST = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    "tree",
    "parent",
)
_INSERT = insert_of(node)
_LIVE = Statement(
    select(node.c.tree, node.c.key).where(within(node.c.key, "keys"), node.c.state == int(State.LIVE)), "keys"
)
_SPOKEN = Statement(
    select(node.c.key).where(within(node.c.key, "keys"), node.c.state != int(State.ASIDE)), "keys"
)


def moved(key: int, segments: Mapping[int, int]) -> int:
    """The key of a copy, given the new segment of each old one."""
    return segments[key >> POSITION_BITS] << POSITION_BITS | key & LAST_POSITION


def copy_tree(conn: Conn, source: int, target: int) -> dict[int, int]:
    """Copy every message of a tree to an empty one, whatever its state, with summaries, vectors and reasons.

    Returns:
        The new segment of each old one.
    """
    segments: dict[int, int] = {}
    # A segment is made after the one it forks from.
    for old, parent in sorted(integrity.segments(conn, source).items()):
        row = conn.one(_KEY_FIRST, target, None if parent is None else moved(parent, segments))
        assert row is not None
        segments[old] = int(row[0])
    rows = conn.all(_NODES, source)
    conn.many(_INSERT, [(moved(row[0], segments), target, *row[2:]) for row in rows])
    for statement in (*revision.COPIES, revision.COPY_CHOICE):
        conn.many(statement, [(moved(row[0], segments), row[0]) for row in rows])
    for key, parent in grafts.of_tree(conn, source).items():
        grafts.record(conn, target, moved(key, segments), moved(parent, segments))
    head = trees.head(conn, source)
    tip, system = (None if key is None else moved(key, segments) for key in (head.tip, head.system))
    trees.settle(conn, target, tip, system)
    return segments


def live_by_tree(conn: Conn, keys: Iterable[int]) -> dict[int, list[int]]:
    """Those of some nodes that are live, by their trees."""
    found: dict[int, list[int]] = {}
    for home, key in conn.all(_LIVE, json.dumps(sorted(keys))):
        found.setdefault(home, []).append(key)
    return found


def spoken(conn: Conn, keys: Sequence[int]) -> int | None:
    """The last of some nodes that is part of the conversation."""
    said = {row[0] for row in conn.all(_SPOKEN, json.dumps(keys))}
    return next((key for key in reversed(keys) if key in said), None)
