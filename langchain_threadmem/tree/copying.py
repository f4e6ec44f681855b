"""SQL: trees that are copied, or restored from saved nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Float, bindparam, select

from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, node
from langchain_threadmem.storage.statements import Conn, Statement, within
from langchain_threadmem.tree import grafts, nodes, placements, superseding, trees, turn_branches
from langchain_threadmem.tree.append import NodeWriter, insert, new_segment
from langchain_threadmem.tree.node import MessageSummary, Placement


class SavedNode(NamedTuple):
    """A node to restore, with its number."""

    seq: int
    parent: int | None
    message: str
    role: str
    body: str
    created: float
    state: int
    superseded_by: int | None
    summary: MessageSummary | None
    placement: Placement | None = None


def restore(conn: Conn, tree_id: int, saved: Sequence[SavedNode], tip: int | None) -> None:
    """Write saved nodes with their numbers to an empty tree.

    Args:
        conn: A write transaction.
        tree_id: A tree without nodes.
        saved: The nodes in the order of their numbers, except that parents precede their children.
        tip: Number of the node at the end of the active thread.
    """
    writer = NodeWriter(conn, tree_id, trees.head(conn, tree_id))
    keys: dict[int | None, int] = {}
    for row in saved:
        keys[row.seq] = writer.add(keys.get(row.parent), *row[1:8], seq=row.seq)
    writer.flush()
    for row in saved:
        if row.summary is not None:
            nodes.put_summary(conn, tree_id, keys[row.seq], row.message, row.summary)
    placements.put(
        conn, [(keys[row.seq], row.message, row.placement) for row in saved if row.placement is not None]
    )
    systems = [row.seq for row in saved if row.role == "system" and row.state == State.LIVE]
    trees.set_head(conn, tree_id, keys.get(tip), keys.get(max(systems, default=None)))


_NODES = Statement(node_keys.keys_of(bindparam("tree")).with_only_columns(node).order_by(node.c.key), "tree")
_LIVE = Statement(
    select(node.c.tree, node.c.key).where(within(node.c.key, "keys"), node.c.state == int(State.LIVE)), "keys"
)
_NOT_ASIDE = Statement(
    select(node.c.key).where(within(node.c.key, "keys"), node.c.state != int(State.ASIDE)), "keys"
)

_WRITTEN_SINCE = Statement(
    select(node.c.key).where(
        within(node.c.key, "keys"),
        node.c.state != int(State.PURGED),
        node.c.created >= bindparam("since", type_=Float()),
    ),
    *("keys", "since"),
)


def key_of_copy(key: int, segments: Mapping[int, int]) -> int:
    """The key of the copy of a node, by its key and the new segment of each old segment."""
    return segments[key >> POSITION_BITS] << POSITION_BITS | key & LAST_POSITION


def copy_tree(conn: Conn, source: int, target: int) -> dict[int, int]:
    """Copy all messages of a tree to an empty tree, with their summaries, vectors and placements.

    Returns:
        The new segment of each old segment.
    """
    segments: dict[int, int] = {}
    # A segment has a higher number than the segment it forks from.
    for old, parent in sorted(trees.segments(conn, source).items()):
        segments[old] = new_segment(conn, target, None if parent is None else key_of_copy(parent, segments))
    rows = conn.all(_NODES, source)
    insert(conn, [(key_of_copy(row[0], segments), target, *row[2:]) for row in rows])
    for statement in (*superseding.COPIES, superseding.COPY_CHOICE):
        conn.many(statement, [(key_of_copy(row[0], segments), row[0]) for row in rows])
    for key, parent in grafts.of_tree(conn, source).items():
        grafts.record(conn, target, key_of_copy(key, segments), key_of_copy(parent, segments))
    turn_branches.copy(conn, source, target)
    head = trees.head(conn, source)
    tip, system = (None if key is None else key_of_copy(key, segments) for key in (head.tip, head.system))
    trees.set_head(conn, target, tip, system)
    if head.used is not None:
        trees.use(conn, target, head.used)
    return segments


def live_by_tree(conn: Conn, keys: Iterable[int]) -> dict[int, list[int]]:
    """The keys of the live nodes among `keys`, by tree."""
    live: dict[int, list[int]] = {}
    for tree_id, key in conn.all(_LIVE, json.dumps(sorted(keys))):
        live.setdefault(tree_id, []).append(key)
    return live


def last_not_aside(conn: Conn, keys: Sequence[int]) -> int | None:
    """The last key in `keys` whose node is not an aside."""
    not_aside = {row[0] for row in conn.all(_NOT_ASIDE, json.dumps(keys))}
    return next((key for key in reversed(keys) if key in not_aside), None)


def written_since(conn: Conn, keys: Iterable[int], since: float) -> set[int]:
    """The keys of the nodes among `keys`, removed nodes included, that were written at a time or later."""
    return {row[0] for row in conn.all(_WRITTEN_SINCE, json.dumps(sorted(keys)), since)}
