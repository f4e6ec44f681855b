"""Removing a conversation for good: its rows, its words, its vectors."""

from __future__ import annotations

from sqlalchemy import BigInteger, BindParameter, bindparam, delete, select, update

from langchain_threadmem.storage.queries import gists, lexicon, marks, strides
from langchain_threadmem.storage.schema import (
    choice,
    digest,
    draft,
    embedding,
    gist,
    graft,
    node,
    segment,
    summary,
    tree,
    unit,
)
from langchain_threadmem.storage.statements import Conn, Statement

_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
_keys = strides.keys_of(_TREE)
_DERIVED = tuple(
    Statement(delete(table).where(table.c.key.in_(_keys)), "tree")
    for table in (choice, embedding, gist, summary, unit)
)
_LET_GO = Statement(
    update(unit)
    .where(unit.c.parent.in_(select(digest.c.key).where(digest.c.tree == _TREE)))
    .values(parent=None),
    "tree",
)
_SUMMARISED = tuple(
    Statement(delete(table).where(table.c.tree == _TREE), "tree") for table in (digest, draft)
)
_NODES = Statement(delete(node).where(node.c.key.in_(_keys)), "tree")
_PLACES = tuple(Statement(delete(table).where(table.c.tree == _TREE), "tree") for table in (segment, graft))
_EMPTY = Statement(
    update(tree)
    .where(tree.c.id == _TREE)
    .values(tip=None, system=None, version=tree.c.version + 1, epoch=tree.c.epoch + 1),
    "tree",
)


def clear(conn: Conn, tree_id: int, owner: str) -> None:
    """Remove everything in a tree; the tree itself stays, empty, and numbers its nodes from 1 again.

    What lay below summaries in it is below nothing from then on.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        owner: Whose it is.
    """
    forget_words(conn, tree_id, owner)
    for statement in (_LET_GO, *_DERIVED, *_SUMMARISED):
        conn.run(statement, tree_id)
    conn.run(_NODES, tree_id)
    for statement in (*_PLACES, _EMPTY):
        conn.run(statement, tree_id)
    marks.clear_tree(conn, tree_id)


def forget_words(conn: Conn, tree_id: int, owner: str) -> None:
    """Take a tree out of the lexicon, with what was kept of its messages for recall."""
    lexicon.remove(conn, tree_id, owner, gists.entries(conn, tree_id))
    gists.remove(conn, tree_id)
