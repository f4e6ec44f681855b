"""SQL: all tables, and the rows of each that belong to an owner, a conversation or the store.

Copies and erasures use the list `TABLES`; a test checks that it contains every table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Table, and_, bindparam, delete, func, select, union

from langchain_threadmem.maintenance import upkeep
from langchain_threadmem.storage import node_keys, schema
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree.nodes import STORED


class Id(Enum):
    """The kind of id in a column."""

    TREE = "tree"
    SEGMENT = "segment"
    NODE = "node"
    """A key: a segment and a position in it."""
    NAMESPACE = "namespace"
    ITEM = "item"


class MemoryTable(NamedTuple):
    """A table of a memory.

    Attributes:
        table: The table.
        ids: The columns with ids that this database has assigned.
        under: The kind of id by which rows are read: of a tree or of a namespace; `None` for the owner.
        derived: Whether the rows are derived from other rows, so that copies omit them.
    """

    table: Table
    ids: Mapping[str, Id]
    under: Id | None
    derived: bool = False


_IN_TREE = {"tree": Id.TREE}
_OF_NODE = {"key": Id.NODE}
TABLES = (
    MemoryTable(schema.tree, {"id": Id.TREE, "tip": Id.NODE, "system": Id.NODE}, None),
    MemoryTable(schema.profile, _IN_TREE, Id.TREE),
    MemoryTable(schema.segment, {"id": Id.SEGMENT, "tree": Id.TREE, "parent": Id.NODE}, Id.TREE),
    MemoryTable(schema.graft, {**_OF_NODE, **_IN_TREE, "parent": Id.NODE}, Id.TREE),
    MemoryTable(schema.node, {"key": Id.NODE, "tree": Id.TREE}, Id.TREE),
    MemoryTable(schema.message_summary, _OF_NODE, Id.TREE),
    MemoryTable(schema.placement, _OF_NODE, Id.TREE),
    MemoryTable(schema.lineage, _IN_TREE, Id.TREE),
    MemoryTable(schema.embedding, _OF_NODE, Id.TREE),
    MemoryTable(schema.document, _OF_NODE, Id.TREE, derived=True),
    MemoryTable(schema.summary, {**_OF_NODE, **_IN_TREE}, Id.TREE),
    MemoryTable(schema.unit, {**_OF_NODE, "parent": Id.NODE}, Id.TREE),
    MemoryTable(schema.summary_draft, _IN_TREE, Id.TREE),
    MemoryTable(schema.watermark, _IN_TREE, Id.TREE),
    MemoryTable(schema.checkpoint, _IN_TREE, Id.TREE),
    MemoryTable(schema.blob, _IN_TREE, Id.TREE),
    MemoryTable(schema.write, _IN_TREE, Id.TREE),
    MemoryTable(schema.visit_round, {}, None),
    MemoryTable(schema.selector_bias, {}, None),
    MemoryTable(schema.key_proof, {}, None),
    MemoryTable(schema.chat_memory, {}, None),
    MemoryTable(schema.namespace, {"id": Id.NAMESPACE}, None),
    MemoryTable(schema.item, {"id": Id.ITEM, "namespace": Id.NAMESPACE}, Id.NAMESPACE),
    MemoryTable(schema.item_vector, {"item": Id.ITEM}, Id.NAMESPACE),
)
"""Every table of a memory, each after the tables that it refers to."""
COPIED_TABLES = tuple(entry for entry in TABLES if not entry.derived)
PREFIX = "threadmem_"


def scope(entry: MemoryTable) -> ColumnElement[bool]:
    """The condition for the rows of a table under one owner, tree or namespace."""
    columns = entry.table.c
    under: BindParameter[Any] = bindparam("under")
    if entry.under is None:
        return columns.owner == under
    if entry.under is Id.TREE:
        if "tree" in columns and entry.table is not schema.node:
            return columns.tree == under
        return node_keys.in_tree(columns.key, under)
    if "namespace" in columns:
        return columns.namespace == under
    return columns.item.in_(select(schema.item.c.id).where(schema.item.c.namespace == under))


def name_of(entry: MemoryTable) -> str:
    """The name of a table in receipts."""
    return entry.table.name.removeprefix(PREFIX)


def _rows(table: Table, condition: ColumnElement[bool], *names: str) -> tuple[str, Statement, Statement]:
    """The name of a table, and the statements that count and delete some of its rows."""
    count = select(func.count()).select_from(table).where(condition)
    return (
        table.name.removeprefix(PREFIX),
        Statement(count, *names),
        Statement(delete(table).where(condition), *names),
    )


_OWNED_TABLES = tuple(entry for entry in TABLES if entry.under is None)
_COUNT = {
    entry.table.name: Statement(
        select(func.count())
        .select_from(entry.table)
        .where(scope(entry), *([STORED] if entry.table is schema.node else [])),
        "under",
    )
    for entry in TABLES
}
_COUNT_OWNED, _COUNT_IN_TREE = (
    {name_of(entry): _COUNT[entry.table.name] for entry in TABLES if entry.under is under}
    for under in (None, Id.TREE)
)
_owned_namespaces = select(schema.namespace.c.id).where(schema.namespace.c.owner == bindparam("owner"))
_owned_items = select(schema.item.c.id).where(schema.item.c.namespace.in_(_owned_namespaces))
_STORE_ROWS = (
    _rows(schema.item_vector, schema.item_vector.c.item.in_(_owned_items), "owner"),
    _rows(schema.item, schema.item.c.namespace.in_(_owned_namespaces), "owner"),
    _rows(schema.namespace, schema.namespace.c.owner == bindparam("owner"), "owner"),
)
_OWNED_ROWS = tuple(
    _rows(entry.table, entry.table.c.owner == bindparam("owner"), "owner")
    for entry in _OWNED_TABLES
    if entry.table not in (schema.tree, schema.namespace)
)
_old_items = _owned_items.where(schema.item.c.updated < bindparam("before"))
_owned_lists = schema.chat_memory.c.owner == bindparam("owner")
_old_lists = and_(_owned_lists, schema.chat_memory.c.updated < bindparam("before"))
_CHAT_MEMORY = _rows(
    schema.chat_memory, and_(_owned_lists, schema.chat_memory.c.id == bindparam("id")), "owner", "id"
)
_OLD_ROWS = tuple(
    _rows(table, condition, "owner", "before")
    for table, condition in (
        (schema.item_vector, schema.item_vector.c.item.in_(_old_items)),
        (schema.item, schema.item.c.id.in_(_old_items)),
        (schema.chat_memory, _old_lists),
    )
)
_trees = (
    select(schema.tree.c.id, schema.tree.c.conversation)
    .where(schema.tree.c.owner == bindparam("owner"))
    .order_by(schema.tree.c.id)
)
_TREES = Statement(_trees, "owner")
_TREES_OF_CONVERSATION = Statement(
    _trees.where(schema.tree.c.conversation == bindparam("conversation")), "owner", "conversation"
)
_OWNERS = Statement(union(*(select(entry.table.c.owner) for entry in _OWNED_TABLES)))
_DELETE_TREE = Statement(delete(schema.tree).where(schema.tree.c.id == bindparam("tree")), "tree")


def trees_of(conn: Conn, owner: str, conversation: str | None) -> list[tuple[int, str]]:
    """The trees of a conversation, or of all conversations of an owner, in every scope, with their names."""
    if conversation is None:
        return conn.all(_TREES, owner)
    return conn.all(_TREES_OF_CONVERSATION, owner, conversation)


def owners(conn: Conn) -> list[str]:
    """All owners, in alphabetical order.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    check_sees_all_owners(conn)
    return sorted(row[0] for row in conn.all(_OWNERS))


def count_below(conn: Conn, tree_id: int) -> Counter[str]:
    """The number of rows of a tree in each table."""
    return _counts(conn, _COUNT_IN_TREE, tree_id)


def count_nodes(conn: Conn, tree_id: int) -> int:
    """The number of nodes of a tree that are neither purged nor removed."""
    return int(conn.all(_COUNT_IN_TREE["node"], tree_id)[0][0])


def count_owned(conn: Conn, owner: str) -> dict[str, int]:
    """The number of rows of an owner in each table with an owner column; zeros are omitted."""
    return {name: count for name, count in _counts(conn, _COUNT_OWNED, owner).items() if count}


def _counts(conn: Conn, statements: Mapping[str, Statement], under: object) -> Counter[str]:
    counted = conn.each(*[(statement, (under,)) for statement in statements.values()])
    return Counter({name: int(rows[0][0]) for name, rows in zip(statements, counted, strict=True)})


def delete_rest(conn: Conn, owner: str, conversation: str | None) -> Counter[str]:
    """Delete the emptied trees of a conversation, or all rows of an owner; returns the numbers of rows."""
    counts: Counter[str] = Counter()
    for tree, _ in trees_of(conn, owner, conversation):
        conn.run(_DELETE_TREE, tree)
        counts["tree"] += 1
    if conversation is None:
        counts += _delete(conn, (*_STORE_ROWS, *_OWNED_ROWS), owner)
    else:
        counts += _delete(conn, (_CHAT_MEMORY,), owner, conversation)
    return counts


def delete_older(conn: Conn, owner: str, before: float) -> Counter[str]:
    """Delete items of the store and lists of chat memories that were last changed before a time, and what
    nothing needs then.
    """
    counts = _delete(conn, _OLD_ROWS, owner, before)
    for one in upkeep.registered():
        counts.update(one.prune(conn, owner))
    return counts


def _delete(conn: Conn, rows: Sequence[tuple[str, Statement, Statement]], *values: object) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, count, deletion in rows:
        counts[name] += int(conn.all(count, *values)[0][0])
        conn.run(deletion, *values)
    return counts


def delete_before(conn: Conn, tree_id: int, before: float) -> Counter[str]:
    """Delete the rows of other capabilities of a conversation that were written before a time; returns the
    numbers of rows.
    """
    before_deletion = count_below(conn, tree_id)
    for one in upkeep.registered():
        one.delete_before(conn, tree_id, before)
    return before_deletion - count_below(conn, tree_id)
