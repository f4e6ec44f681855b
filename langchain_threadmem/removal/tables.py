"""SQL: all tables, and the rows of each that belong to an owner, a conversation or the store.

Copies and erasures use this list; a test checks that it names every table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Table, and_, bindparam, delete, func, select, union

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.storage import node_keys, schema
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.store import queries as item_queries
from langchain_threadmem.tree.nodes import STORED


class Id(Enum):
    """The kind of number that a column holds."""

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
        ids: The columns with numbers that this database has assigned.
        under: The kind of number that rows are read by: of a tree or a namespace; `None` for the owner.
        derived: Whether the rows are made from other rows: copies leave them out.
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
    MemoryTable(schema.summary, _OF_NODE, Id.TREE),
    MemoryTable(schema.choice, _OF_NODE, Id.TREE),
    MemoryTable(schema.lineage, _IN_TREE, Id.TREE),
    MemoryTable(schema.embedding, _OF_NODE, Id.TREE),
    MemoryTable(schema.gist, _OF_NODE, Id.TREE, derived=True),
    MemoryTable(schema.digest, {**_OF_NODE, **_IN_TREE}, Id.TREE),
    MemoryTable(schema.unit, {**_OF_NODE, "parent": Id.NODE}, Id.TREE),
    MemoryTable(schema.draft, _IN_TREE, Id.TREE),
    MemoryTable(schema.mark, _IN_TREE, Id.TREE),
    MemoryTable(schema.checkpoint, _IN_TREE, Id.TREE),
    MemoryTable(schema.blob, _IN_TREE, Id.TREE),
    MemoryTable(schema.write, _IN_TREE, Id.TREE),
    MemoryTable(schema.memory, {}, None),
    MemoryTable(schema.bias, {}, None),
    MemoryTable(schema.key, {}, None),
    MemoryTable(schema.chat_memory, {}, None),
    MemoryTable(schema.namespace, {"id": Id.NAMESPACE}, None),
    MemoryTable(schema.item, {"id": Id.ITEM, "namespace": Id.NAMESPACE}, Id.NAMESPACE),
    MemoryTable(schema.item_vector, {"item": Id.ITEM}, Id.NAMESPACE),
)
"""Every table of a memory, each after the tables it refers to."""
COPIED_TABLES = tuple(part for part in TABLES if not part.derived)
PREFIX = "threadmem_"


def scope(part: MemoryTable) -> ColumnElement[bool]:
    """The condition for the rows of a table under one owner, tree or namespace."""
    columns = part.table.c
    under: BindParameter[Any] = bindparam("under")
    if part.under is None:
        return columns.owner == under
    if part.under is Id.TREE:
        if "tree" in columns and part.table is not schema.node:
            return columns.tree == under
        return columns.key.in_(node_keys.keys_of(under))
    if "namespace" in columns:
        return columns.namespace == under
    return columns.item.in_(select(schema.item.c.id).where(schema.item.c.namespace == under))


def name_of(part: MemoryTable) -> str:
    """The name of a table in receipts."""
    return part.table.name.removeprefix(PREFIX)


_HEADS = tuple(part for part in TABLES if part.under is None)
_BELOW_TREE = tuple(part for part in TABLES if part.under is Id.TREE)
_COUNT = {
    part.table.name: Statement(
        select(func.count())
        .select_from(part.table)
        .where(scope(part), *([STORED] if part.table is schema.node else [])),
        "under",
    )
    for part in TABLES
}
_owned_namespaces = select(schema.namespace.c.id).where(schema.namespace.c.owner == bindparam("owner"))
_owned_items = select(schema.item.c.id).where(schema.item.c.namespace.in_(_owned_namespaces))
_OF_STORE = (
    (schema.item_vector, schema.item_vector.c.item.in_(_owned_items)),
    (schema.item, schema.item.c.namespace.in_(_owned_namespaces)),
    (schema.namespace, schema.namespace.c.owner == bindparam("owner")),
)
_old_items = _owned_items.where(schema.item.c.updated < bindparam("before"))
_chats = schema.chat_memory.c.owner == bindparam("owner")
_CHAT_MEMORY = (schema.chat_memory, and_(_chats, schema.chat_memory.c.id == bindparam("id")))
_OLD = (
    (schema.item_vector, schema.item_vector.c.item.in_(_old_items)),
    (schema.item, schema.item.c.id.in_(_old_items)),
    (schema.chat_memory, and_(_chats, schema.chat_memory.c.updated < bindparam("before"))),
)
_TREES = Statement(
    select(schema.tree.c.id, schema.tree.c.conversation)
    .where(schema.tree.c.owner == bindparam("owner"))
    .order_by(schema.tree.c.id),
    "owner",
)
_OWNERS = Statement(union(*(select(part.table.c.owner) for part in _HEADS)))
_DROP_TREE = Statement(delete(schema.tree).where(schema.tree.c.id == bindparam("tree")), "tree")


def trees_of(conn: Conn, owner: str, conversation: str | None) -> list[tuple[int, str]]:
    """The trees of a conversation, or of all conversations of an owner, in every scope, with their names."""
    rows = conn.all(_TREES, owner)
    return [(row[0], row[1]) for row in rows if conversation in (None, row[1])]


def owners(conn: Conn) -> list[str]:
    """All owners, in alphabetical order.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    check_sees_all_owners(conn)
    return sorted(row[0] for row in conn.all(_OWNERS))


def count_below(conn: Conn, tree_id: int) -> Counter[str]:
    """The number of rows of a tree in each table."""
    return Counter({name_of(part): _counted(conn, part, tree_id) for part in _BELOW_TREE})


def count_owned(conn: Conn, owner: str) -> dict[str, int]:
    """The number of rows of an owner in each table with an owner column, if there are any."""
    found = {name_of(part): _counted(conn, part, owner) for part in _HEADS}
    return {name: count for name, count in found.items() if count}


def _counted(conn: Conn, part: MemoryTable, under: object) -> int:
    return int(conn.all(_COUNT[part.table.name], under)[0][0])


def delete_rest(conn: Conn, owner: str, conversation: str | None) -> Counter[str]:
    """Delete the emptied trees of a conversation, or everything of an owner; the numbers of rows."""
    gone: Counter[str] = Counter()
    for tree, _ in trees_of(conn, owner, conversation):
        conn.run(_DROP_TREE, tree)
        gone["tree"] += 1
    if conversation is None:
        gone += _deleted(conn, (*_OF_STORE, *_NAMING), owner=owner)
    else:
        gone += _deleted(conn, (_CHAT_MEMORY,), owner=owner, id=conversation)
    return gone


def delete_older(conn: Conn, owner: str, before: float) -> Counter[str]:
    """Delete items of the store and lists of chat memories that were last changed before a time, and
    namespaces that are empty then.
    """
    gone = _deleted(conn, _OLD, owner=owner, before=before)
    gone["namespace"] += item_queries.prune_all(conn, owner)
    return gone


_NAMING = tuple(
    (part.table, part.table.c.owner == bindparam("owner"))
    for part in _HEADS
    if part.table not in (schema.tree, schema.namespace)
)


def _deleted(
    conn: Conn, doomed: tuple[tuple[Table, ColumnElement[bool]], ...], **values: object
) -> Counter[str]:
    gone: Counter[str] = Counter()
    for table, condition in doomed:
        count = Statement(select(func.count()).select_from(table).where(condition), *values)
        gone[table.name.removeprefix(PREFIX)] += int(conn.all(count, *values.values())[0][0])
        conn.run(Statement(delete(table).where(condition), *values), *values.values())
    return gone


def delete_checkpoints_before(conn: Conn, tree_id: int, before: float) -> Counter[str]:
    """Delete the checkpoints before a time, and the values that only they refer to; the numbers of rows."""
    before_deletion = count_below(conn, tree_id)
    old = [
        address
        for address in checkpoint_queries.addresses(conn, tree_id, None)
        if checkpoint_queries.made_at(address.id) < before
    ]
    checkpoint_queries.remove(conn, old)
    checkpoint_queries.collect(conn, tree_id)
    return before_deletion - count_below(conn, tree_id)
