"""SQL: all rows of a memory, with ids that do not depend on the database.

Ids of trees, segments, namespaces and items belong to a database. Rows are dumped with the ids 1, 2, 3 ... in
the order of these ids, and keys of nodes accordingly, and loaded under new ids in the same order. A memory
that was dumped and loaded therefore gives the same rows, byte for byte, by which a copy is checked.

Derived data is left out: the lexicon, and the watermarks of indexes outside of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from sqlalchemy import bindparam, select, update

from langchain_threadmem.checkpoints.values import KIND, Item, Span, unpack
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.index import watermarks
from langchain_threadmem.removal.tables import COPIED, Id, Part, owners, scope
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS
from langchain_threadmem.storage.statements import Conn, Statement, insert_of
from langchain_threadmem.tree import append

Row = dict[str, Any]
"""The columns of a row."""
ROWS_AT_ONCE = 1000
_COPIED_MARKS = (watermarks.embeddings_of(""), watermarks.SUMMARIES_OF)


_READ = {part.table.name: Statement(select(part.table).where(scope(part)), "under") for part in COPIED}
_WRITE = {part.table.name: insert_of(part.table) for part in COPIED}
_NUMBERED = {
    part.table.name: Statement(
        part.table.insert()
        .values({column.name: bindparam(column.name) for column in part.table.c if column.name != "id"})
        .returning(part.table.c.id),
        *(column.name for column in part.table.c if column.name != "id"),
    )
    for part in COPIED
    if "id" in part.ids
}
_SETTLE = Statement(
    update(schema.tree)
    .where(schema.tree.c.id == bindparam("tree"))
    .values(tip=bindparam("tip"), system=bindparam("system_")),
    *("tip", "system_", "tree"),
)


class Numbers:
    """A mapping from ids of one database to ids of the other."""

    def __init__(self) -> None:
        self._new: dict[Id, dict[int, int]] = {kind: {} for kind in Id}

    def give(self, kind: Id, old: int, new: int | None = None) -> None:
        """Map an id; by default to the next number, from 1."""
        ids = self._new[kind]
        ids[old] = len(ids) + 1 if new is None else new

    def of(self, kind: Id, old: int) -> int:
        """The new id of an old id.

        Raises:
            PersistenceError: The id is unknown.
        """
        try:
            if kind is Id.NODE:
                return self._new[Id.SEGMENT][old >> POSITION_BITS] << POSITION_BITS | old & LAST_POSITION
            return self._new[kind][old]
        except KeyError:
            raise PersistenceError(
                f"a row refers to {kind.value} {old!r}, which does not exist; see `threadmem verify`"
            ) from None

    def moved(self, part: Part, row: Row) -> Row:
        """A row with new ids."""
        changed: Row = {
            name: self.of(kind, row[name]) for name, kind in part.ids.items() if row[name] is not None
        }
        if row.get("kind") == KIND:
            # A stored list of messages contains keys of nodes.
            changed["data"] = unpack(bytes(row["data"])).mapped(self._item).pack()
        return {**row, **changed}

    def _item(self, _: str | None, item: Item) -> Item:
        return Span(*(self.of(Id.NODE, key) for key in item)) if isinstance(item, Span) else item


def check_owner(conn: Conn, owner: str) -> None:
    """Refuse an owner without a memory.

    Raises:
        InputError: The owner has no memory in the database.
    """
    existing = owners(conn)
    if owner not in existing:
        names = ", ".join(map(repr, existing[:5])) + (" ..." if len(existing) > 5 else "")
        raise InputError(f"there is no memory of {owner!r}; there is {names or 'none'}")


def holds(conn: Conn, owner: str) -> bool:
    """Whether an owner has any row."""
    return any(conn.all(_READ[part.table.name], owner) for part in COPIED if part.under is None)


def count(conn: Conn, of: Sequence[str]) -> int:
    """The number of blocks of rows that `dump` yields."""
    return sum(
        len(conn.all(_READ[part.table.name], owner))
        * (1 + sum(below.under is part.ids.get("id", 0) for below in COPIED))
        for owner in of
        for part in COPIED
        if part.under is None
    )


def dump(conn: Conn, of: Sequence[str]) -> Iterator[tuple[Part, list[Row]]]:
    """The rows of memories, one conversation or namespace of the store after the other.

    Args:
        conn: A transaction.
        of: The owners, in the order of their numbers.
    """
    numbers = Numbers()
    for owner in of:
        heads = [(part, row) for part in COPIED if part.under is None for row in _rows(conn, part, owner)]
        for part, row in heads:
            if kind := part.ids.get("id"):
                _number(conn, numbers, kind, row["id"])
        for part, row in heads:
            yield part, [numbers.moved(part, row)]
            if kind := part.ids.get("id"):
                yield from _below(conn, numbers, kind, row["id"])


def _number(conn: Conn, numbers: Numbers, kind: Id, number: int) -> None:
    """Map the id of a tree or a namespace, and the ids below it."""
    numbers.give(kind, number)
    for part in COPIED:
        if part.under is kind and (below := part.ids.get("id")):
            for row in _rows(conn, part, number):
                numbers.give(below, row["id"])


def _below(conn: Conn, numbers: Numbers, kind: Id, number: int) -> Iterator[tuple[Part, list[Row]]]:
    """The rows of a tree or of a namespace."""
    for part in COPIED:
        if part.under is kind:
            rows = [numbers.moved(part, row) for row in _rows(conn, part, number)]
            yield part, sorted(rows, key=partial(_place, part))


def _rows(conn: Conn, part: Part, under: object) -> list[Row]:
    names = part.table.c.keys()
    rows = [dict(zip(names, row, strict=True)) for row in conn.all(_READ[part.table.name], under)]
    if part.table is schema.mark:
        return [row for row in rows if row["name"].startswith(_COPIED_MARKS)]
    return sorted(rows, key=lambda row: row["id"]) if "id" in part.ids else rows


def _place(part: Part, row: Row) -> tuple[Any, ...]:
    """The sort key of a row, independent of the database."""
    return tuple(row[column.name] for column in part.table.primary_key)


def load(
    conn: Conn, rows: Iterable[tuple[Part, Row]], written: Callable[[int], None] = lambda count: None
) -> None:
    """Write rows of `dump`, table by table in the order of `COPIED`.

    Args:
        conn: A write transaction.
        rows: The rows.
        written: Called with the number of rows of each batch.
    """
    numbers = Numbers()
    ends: list[tuple[int | None, int | None, int]] = []
    for part, group in groupby(rows, key=lambda pair: pair[0]):
        kind = part.ids.get("id")
        while batch := [row for _, (_, row) in zip(range(ROWS_AT_ONCE), group, strict=False)]:
            if kind is None:
                moved = [tuple(numbers.moved(part, row).values()) for row in batch]
                if part.table is schema.node:
                    append.insert(conn, moved)
                else:
                    conn.many(_WRITE[part.table.name], moved)
            else:
                for row in batch:
                    ends += _enter(conn, numbers, part, kind, row)
            written(len(batch))
    for tip, system, tree in ends:
        keys = [None if key is None else numbers.of(Id.NODE, key) for key in (tip, system)]
        conn.run(_SETTLE, *keys, tree)


def _enter(
    conn: Conn, numbers: Numbers, part: Part, kind: Id, row: Row
) -> Iterator[tuple[int | None, int | None, int]]:
    """Write a row that gets a new id; yields the tip and system message of a tree, to set after its nodes."""
    plain = {**row, "tip": None, "system": None} if kind is Id.TREE else row
    numbers.give(kind, row["id"], 0)
    values = numbers.moved(part, plain)
    del values["id"]
    ((new,),) = conn.all(_NUMBERED[part.table.name], *values.values())
    numbers.give(kind, row["id"], new)
    if kind is Id.TREE:
        yield row["tip"], row["system"], new
