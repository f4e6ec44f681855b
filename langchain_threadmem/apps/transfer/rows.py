"""SQL: all rows of a memory, with ids that do not depend on the database.

Ids of trees, segments, namespaces and items belong to a database. Rows are dumped with the ids 1, 2, 3 ... in
the order of these ids, and keys of nodes accordingly, and loaded under new ids in the same order. A memory
that was dumped and loaded therefore gives the same rows, byte for byte, by which a copy is checked.

Derived data is omitted: the lexicon, and the watermarks of indexes outside of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import bindparam, select, update

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.index import watermarks
from langchain_threadmem.langgraph.checkpoints.values import KIND, ListPart, Span, unpack
from langchain_threadmem.maintenance.removal.tables import COPIED_TABLES, Id, MemoryTable, owners, scope
from langchain_threadmem.messages.text import listed
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS
from langchain_threadmem.storage.statements import Conn, Statement, insert_of
from langchain_threadmem.tree import append

Row = dict[str, Any]
"""The columns of a row."""
ROWS_AT_ONCE = 1000
_COPIED_WATERMARKS = (watermarks.embeddings_of(""), watermarks.SUMMARIES_OF)


_READ = {
    entry.table.name: Statement(select(entry.table).where(scope(entry)), "under") for entry in COPIED_TABLES
}
_WRITE = {entry.table.name: insert_of(entry.table) for entry in COPIED_TABLES}
_INSERT_RETURNING_ID = {
    entry.table.name: Statement(
        entry.table.insert()
        .values({column.name: bindparam(column.name) for column in entry.table.c if column.name != "id"})
        .returning(entry.table.c.id),
        *(column.name for column in entry.table.c if column.name != "id"),
    )
    for entry in COPIED_TABLES
    if "id" in entry.ids
}
_SET_TIP = Statement(
    update(schema.tree)
    .where(schema.tree.c.id == bindparam("tree"))
    .values(tip=bindparam("tip"), system=bindparam("system_")),
    *("tip", "system_", "tree"),
)


class IdMap:
    """A mapping from ids of one database to ids of the other."""

    def __init__(self) -> None:
        self._new: dict[Id, dict[int, int]] = {kind: {} for kind in Id}

    def assign(self, kind: Id, old: int, new: int | None = None) -> None:
        """Map an id to a new id, by default to the next number from 1 on."""
        new_ids = self._new[kind]
        new_ids[old] = len(new_ids) + 1 if new is None else new

    def of(self, kind: Id, id: int) -> int:
        """The new id of an old id.

        Raises:
            PersistenceError: The id is unknown.
        """
        try:
            if kind is Id.NODE:
                return self._new[Id.SEGMENT][id >> POSITION_BITS] << POSITION_BITS | id & LAST_POSITION
            return self._new[kind][id]
        except KeyError:
            raise PersistenceError(
                f"a row refers to {kind.value} {id!r}, which does not exist; see `threadmem verify`"
            ) from None

    def mapped(self, entry: MemoryTable, row: Row) -> Row:
        changed: Row = {
            name: self.of(kind, row[name]) for name, kind in entry.ids.items() if row[name] is not None
        }
        if row.get("kind") == KIND:
            # A stored list of messages contains keys of nodes.
            changed["data"] = unpack(bytes(row["data"])).mapped(self._item).pack()
        return {**row, **changed}

    def _item(self, item: ListPart) -> ListPart:
        return Span(*(self.of(Id.NODE, key) for key in item)) if isinstance(item, Span) else item


def check_owner_exists(conn: Conn, owner: str) -> None:
    """Refuse an owner without a memory."""
    existing = owners(conn)
    if owner not in existing:
        raise InputError(f"there is no memory of {owner!r}; there is {listed(existing) or 'none'}")


def has_rows(conn: Conn, owner: str) -> bool:
    """Whether an owner has any row."""
    return any(conn.all(_READ[entry.table.name], owner) for entry in COPIED_TABLES if entry.under is None)


def count(conn: Conn, owner_names: Sequence[str]) -> int:
    """The number of blocks of rows that `dump` yields."""
    return sum(
        len(conn.all(_READ[entry.table.name], owner))
        * (1 + sum(child.under is entry.ids.get("id", 0) for child in COPIED_TABLES))
        for owner in owner_names
        for entry in COPIED_TABLES
        if entry.under is None
    )


def dump(conn: Conn, owner_names: Sequence[str]) -> Iterator[tuple[MemoryTable, list[Row]]]:
    """The rows of memories, one conversation or namespace of the store after the other.

    Args:
        owner_names: The owners, in the order of their rows.
    """
    ids = IdMap()
    for owner in owner_names:
        top_rows = [
            (entry, row)
            for entry in COPIED_TABLES
            if entry.under is None
            for row in _rows(conn, entry, owner)
        ]
        for entry, row in top_rows:
            if kind := entry.ids.get("id"):
                _assign_ids(conn, ids, kind, row["id"])
        for entry, row in top_rows:
            yield entry, [ids.mapped(entry, row)]
            if kind := entry.ids.get("id"):
                yield from _rows_below(conn, ids, kind, row["id"])


def _assign_ids(conn: Conn, ids: IdMap, kind: Id, id: int) -> None:
    """Map the id of a tree or a namespace, and the ids below it."""
    ids.assign(kind, id)
    for entry in COPIED_TABLES:
        if entry.under is kind and (id_kind := entry.ids.get("id")):
            for row in _rows(conn, entry, id):
                ids.assign(id_kind, row["id"])


def _rows_below(conn: Conn, ids: IdMap, kind: Id, id: int) -> Iterator[tuple[MemoryTable, list[Row]]]:
    """The rows of a tree or of a namespace."""
    for entry in COPIED_TABLES:
        if entry.under is kind:
            rows = [ids.mapped(entry, row) for row in _rows(conn, entry, id)]
            yield entry, sorted(rows, key=itemgetter(*entry.table.primary_key.columns.keys()))


def _rows(conn: Conn, entry: MemoryTable, under: object) -> list[Row]:
    names = entry.table.c.keys()
    rows = [dict(zip(names, row, strict=True)) for row in conn.all(_READ[entry.table.name], under)]
    if entry.table is schema.watermark:
        return [row for row in rows if row["name"].startswith(_COPIED_WATERMARKS)]
    return sorted(rows, key=lambda row: row["id"]) if "id" in entry.ids else rows


def load(conn: Conn, rows: Iterable[tuple[MemoryTable, Row]], on_batch: Callable[[int], None]) -> None:
    """Write rows of `dump`, table by table in the order of `COPIED_TABLES`.

    Args:
        on_batch: Called with the number of rows of each batch.
    """
    ids = IdMap()
    tips: list[tuple[int | None, int | None, int]] = []
    for entry, group in groupby(rows, key=lambda pair: pair[0]):
        kind = entry.ids.get("id")
        while batch := [row for _, (_, row) in zip(range(ROWS_AT_ONCE), group, strict=False)]:
            if kind is None:
                mapped = [tuple(ids.mapped(entry, row).values()) for row in batch]
                if entry.table is schema.node:
                    append.insert(conn, mapped)
                else:
                    conn.many(_WRITE[entry.table.name], mapped)
            else:
                for row in batch:
                    new_id = _insert_numbered(conn, ids, entry, kind, row)
                    if kind is Id.TREE:
                        tips.append((row["tip"], row["system"], new_id))
            on_batch(len(batch))
    for tip, system, tree in tips:
        keys = [None if key is None else ids.of(Id.NODE, key) for key in (tip, system)]
        conn.run(_SET_TIP, *keys, tree)


def _insert_numbered(conn: Conn, ids: IdMap, entry: MemoryTable, kind: Id, row: Row) -> int:
    """Write a row, and return its new id; the tip and the system message of a tree are set later."""
    insertable = {**row, "tip": None, "system": None} if kind is Id.TREE else row
    ids.assign(kind, row["id"], 0)
    values = ids.mapped(entry, insertable)
    del values["id"]
    ((new_id,),) = conn.all(_INSERT_RETURNING_ID[entry.table.name], *values.values())
    ids.assign(kind, row["id"], new_id)
    return int(new_id)
