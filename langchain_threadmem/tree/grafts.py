"""SQL: grafts, which are nodes that were moved under another parent.

If a message is replaced or moved, the messages below it are not written again: only its children become
grafts, whose rows name the new parent. See `schema`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import bindparam, select, update

from langchain_threadmem.storage.schema import graft, node
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within

_RECORD = insert_of(graft, replace=True)
_HANG = Statement(
    update(node).where(node.c.key == bindparam("at")).values(parent=bindparam("under")), "under", "at"
)
_OF_TREE = Statement(select(graft.c.key, graft.c.parent).where(graft.c.tree == bindparam("tree")), "tree")
_ABOVE = node.alias("above")
_BELOW = Statement(
    select(graft.c.key, graft.c.parent, _ABOVE.c.message)
    .join(_ABOVE, _ABOVE.c.key == graft.c.parent)
    .where(graft.c.tree == bindparam("tree"), within(graft.c.parent, "keys")),
    "tree",
    "keys",
)
_HUNG = Statement(
    select(node.c.seq, node.c.parent)
    .join(graft, graft.c.key == node.c.key)
    .where(graft.c.tree == bindparam("tree")),
    "tree",
)


def hang(conn: Conn, tree_id: int, key: int, under: int, under_seq: int) -> None:
    """Move a node, with all nodes below it, under another node, given by key and number."""
    record(conn, tree_id, key, under)
    conn.run(_HANG, under_seq, key)


def record(conn: Conn, tree_id: int, key: int, under: int) -> None:
    """Record a graft whose node row already names its parent."""
    conn.run(_RECORD, key, tree_id, under)


def of_tree(conn: Conn, tree_id: int) -> dict[int, int]:
    """Key and parent key of the grafts of a tree."""
    return dict(conn.all(_OF_TREE, tree_id))


def below(conn: Conn, tree_id: int, keys: Iterable[int]) -> list[tuple[int, int, str]]:
    """Key, parent key and message id of the parent, of the grafts under the given nodes."""
    return [(row[0], row[1], row[2]) for row in conn.all(_BELOW, tree_id, json.dumps(list(keys)))]


def hung(conn: Conn, tree_id: int) -> list[tuple[int, int]]:
    """Number and parent number of the grafts of a tree."""
    return [(row[0], row[1]) for row in conn.all(_HUNG, tree_id)]
