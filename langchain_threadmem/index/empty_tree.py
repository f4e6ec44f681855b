"""SQL: the removal of all nodes of a tree, with everything that is derived from them."""

from __future__ import annotations

from sqlalchemy import BigInteger, BindParameter, bindparam, delete, literal_column, select, update

from langchain_threadmem.index.queries import forget_words
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import (
    blob,
    checkpoint,
    embedding,
    graft,
    lineage,
    message_summary,
    node,
    placement,
    profile,
    segment,
    summary,
    summary_draft,
    tree,
    unit,
    watermark,
    write,
)
from langchain_threadmem.storage.statements import Conn, Statement

_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
# `in_tree` reads `node` and `segment`, so their rows are deleted after those of the other tables.
_BY_KEY = tuple(
    Statement(delete(table).where(node_keys.in_tree(table.c.key, _TREE)), "tree")
    for table in (placement, embedding, message_summary, unit, node)
)
_CLEAR_PARENTS = Statement(
    update(unit)
    .where(unit.c.parent.in_(select(summary.c.key).where(summary.c.tree == _TREE)))
    .values(parent=None),
    "tree",
)
_OF_TREE = tuple(
    Statement(delete(table).where(table.c.tree == _TREE), "tree")
    for table in (
        write,
        checkpoint,
        blob,
        summary,
        summary_draft,
        profile,
        watermark,
        lineage,
        segment,
        graft,
    )
)
_RESET_TREE = Statement(
    update(tree)
    .where(tree.c.id == _TREE)
    .values(
        tip=None,
        system=None,
        version=tree.c.version + 1,
        epoch=tree.c.epoch + 1,
        used=tree.c.used * literal_column("0"),  # null stays null
    ),
    "tree",
)


def empty_tree(conn: Conn, tree_id: int, owner: str) -> None:
    """Remove all nodes and derived data of a tree; the empty tree numbers its nodes from 1 again.

    Units below its summaries are no longer below a summary.
    """
    forget_words(conn, tree_id, owner)
    for statement in (_CLEAR_PARENTS, *_BY_KEY, *_OF_TREE, _RESET_TREE):
        conn.run(statement, tree_id)
