"""SQL: grafts, which are nodes that were moved under another parent.

If a message is replaced or moved, the messages below it are not written again: only its children become
grafts, whose rows name the new parent. See `storage.schema`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import bindparam, select, update

from langchain_threadmem.storage.schema import graft, node
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within

_RECORD = insert_of(graft, replace=True)
SET_PARENT = Statement(
    update(node).where(node.c.key == bindparam("at")).values(parent=bindparam("new")), "new", "at"
)
"""Changes the number of the parent of a node: parameters `new`, the number, and `at`, the key of the node."""
_OF_TREE = Statement(select(graft.c.key, graft.c.parent).where(graft.c.tree == bindparam("tree")), "tree")
_parent = node.alias("parent_node")
_BELOW = Statement(
    select(graft.c.key, graft.c.parent, _parent.c.message)
    .join(_parent, _parent.c.key == graft.c.parent)
    .where(graft.c.tree == bindparam("tree"), within(graft.c.parent, "keys")),
    *("tree", "keys"),
)
_PARENTS = Statement(
    select(node.c.seq, node.c.parent)
    .join(graft, graft.c.key == node.c.key)
    .where(graft.c.tree == bindparam("tree")),
    "tree",
)


def move(conn: Conn, tree_id: int, key: int, parent: int, parent_seq: int) -> None:
    """Move a node, with all nodes below it, under a parent with a key and a number."""
    record(conn, tree_id, key, parent)
    conn.run(SET_PARENT, parent_seq, key)


def record(conn: Conn, tree_id: int, key: int, parent: int) -> None:
    """Store a graft; the row of its node already has the number of the parent."""
    conn.run(_RECORD, key, tree_id, parent)


def of_tree(conn: Conn, tree_id: int) -> dict[int, int]:
    """The key of the parent of each graft of a tree, by key."""
    return dict(conn.all(_OF_TREE, tree_id))


def below(conn: Conn, tree_id: int, keys: Iterable[int]) -> list[tuple[int, int, str]]:
    """The grafts under nodes: key of the graft, key of its parent, message id of its parent."""
    return [(row[0], row[1], row[2]) for row in conn.all(_BELOW, tree_id, json.dumps(list(keys)))]


def parents(conn: Conn, tree_id: int) -> list[tuple[int, int]]:
    """The number of each graft of a tree and the number of its parent."""
    return [(row[0], row[1]) for row in conn.all(_PARENTS, tree_id)]
