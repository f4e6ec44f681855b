"""SQL: grafts: messages that hang below another message than they were written below.

What follows a message is neither copied nor touched when the message is replaced or moved: the first message
of it is grafted, and its row names its new parent. See `schema`.
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
    """Let a node, and all that follows it, hang under another node, given by key and number."""
    record(conn, tree_id, key, under)
    conn.run(_HANG, under_seq, key)


def record(conn: Conn, tree_id: int, key: int, under: int) -> None:
    """Record where a node hangs whose row names its parent already."""
    conn.run(_RECORD, key, tree_id, under)


def of_tree(conn: Conn, tree_id: int) -> dict[int, int]:
    """The keys of the grafted nodes of a tree, each with the key of the node that it hangs under."""
    return dict(conn.all(_OF_TREE, tree_id))


def below(conn: Conn, tree_id: int, keys: Iterable[int]) -> list[tuple[int, int, str]]:
    """The grafted nodes that hang under some nodes: its key, and key and message id of that node."""
    return [(row[0], row[1], row[2]) for row in conn.all(_BELOW, tree_id, json.dumps(list(keys)))]


def hung(conn: Conn, tree_id: int) -> list[tuple[int, int]]:
    """The numbers of the grafted nodes of a tree, each with the number of its parent."""
    return [(row[0], row[1]) for row in conn.all(_HUNG, tree_id)]
