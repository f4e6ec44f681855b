"""SQL: encrypted rows of a memory, which are encrypted again with another key, a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import LargeBinary, Table, Text, bindparam, select, tuple_, update

from langchain_threadmem.maintenance import upkeep
from langchain_threadmem.maintenance.removal.tables import COPIED_TABLES, Id, MemoryTable, scope
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.encryption import SEALED_ITEM, Seal, is_sealed
from langchain_threadmem.storage.statements import Conn, Statement

ROWS_AT_ONCE = 500
"""The number of rows that are read, and encrypted again, in one transaction."""
PrimaryKey = tuple[Any, ...]
"""The primary key of a row."""
Values = dict[str, Any]
"""The columns of a row that may be encrypted."""


def _columns(table: Table) -> list[str]:
    """The columns that may be encrypted: texts, vectors, and bytes of a serializer with their format."""
    keys = set(table.primary_key.columns.keys())
    kinds = {column.name: column.type for column in table.columns if column.name not in keys}
    return [
        name
        for name, kind in kinds.items()
        if isinstance(kind, Text) or (isinstance(kind, LargeBinary) and name in ("vector", "data"))
    ]


_TABLES = [entry for entry in COPIED_TABLES if _columns(entry.table) and entry.table is not schema.key_proof]


def _page(entry: MemoryTable, *, first: bool) -> Statement:
    """Rows in the order of their primary keys, from the first one on or after a key."""
    keys = list(entry.table.primary_key.columns)
    rows = select(*keys, *entry.table.c[*_columns(entry.table)]).where(scope(entry))
    names = [f"after_{column.name}" for column in keys]
    if not first:
        after = [bindparam(name, type_=column.type) for name, column in zip(names, keys, strict=True)]
        rows = rows.where(tuple_(*keys) > tuple_(*after))
    rows = rows.order_by(*keys).limit(ROWS_AT_ONCE).with_for_update()
    return Statement(rows, "under", *([] if first else names))


def _update(table: Table) -> Statement:
    keys = {column.name: bindparam(f"key_{column.name}", type_=column.type) for column in table.primary_key}
    values = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in _columns(table)}
    changed = update(table).where(*(table.c[name] == value for name, value in keys.items())).values(values)
    return Statement(changed, *(value.key for value in (*values.values(), *keys.values())))


_FIRST = {entry.table.name: _page(entry, first=True) for entry in _TABLES}
_NEXT = {entry.table.name: _page(entry, first=False) for entry in _TABLES}
_UPDATE = {entry.table.name: _update(entry.table) for entry in _TABLES}
_TREES = Statement(
    select(schema.tree.c.id).where(schema.tree.c.owner == bindparam("owner"), schema.tree.c.sealed), "owner"
)
_NAMESPACES = Statement(
    select(schema.namespace.c.id).where(schema.namespace.c.owner == bindparam("owner")), "owner"
)


def parts(conn: Conn, owner: str) -> list[tuple[MemoryTable, Any]]:
    """The tables with the owner, tree or namespace under which rows are read."""
    under: dict[Id | None, list[Any]] = {
        None: [owner],
        Id.TREE: [row[0] for row in conn.all(_TREES, owner)],
        Id.NAMESPACE: [row[0] for row in conn.all(_NAMESPACES, owner)],
    }
    return [(entry, one) for entry in _TABLES for one in under[entry.under]]


def renew(
    conn: Conn, entry: MemoryTable, under: Any, after: PrimaryKey, seal: Seal
) -> tuple[int, PrimaryKey | None]:
    """Encrypt the next rows again; returns the number of changed rows, and the last key of a full batch."""
    table = entry.table
    rows = conn.all((_NEXT if after else _FIRST)[table.name], under, *after)
    names, width = _columns(table), len(table.primary_key.columns)
    changed = [
        (*values.values(), *row[:width])
        for row in rows
        if (values := _renewed(table, dict(zip(names, row[width:], strict=True)), seal)) is not None
    ]
    if changed:
        conn.many(_UPDATE[table.name], changed)
    return len(changed), tuple(rows[-1][:width]) if len(rows) == ROWS_AT_ONCE else None


def _renewed(table: Table, values: Values, seal: Seal) -> Values | None:
    """The columns of a row with the new key; `None` if nothing changes."""
    new = {**values, **dict(_changes(table, values, seal))}
    return None if new == values else new


def _changes(table: Table, values: Values, seal: Seal) -> Iterator[tuple[str, Any]]:
    """The columns that have the previous key, with their new values."""
    for name, value in values.items():
        if name == "vector":
            yield name, seal.renewed_vector(bytes(value)) or value
        elif table is schema.chat_memory and name == "messages":
            yield name, _renewed_messages(value, seal)
        elif isinstance(value, str):
            yield name, _renewed_text(value, seal)
    if "data" in values:
        kind, data = _renewed_value(values["kind"], bytes(values["data"]), seal)
        yield from (("kind", kind), ("data", data))


def _renewed_text(text: str, seal: Seal) -> str:
    mark = SEALED_ITEM if text.startswith(SEALED_ITEM) else ""
    sealed = text.removeprefix(mark)
    return mark + (seal.renewed_text(sealed) or sealed) if is_sealed(sealed) else text


def _renewed_messages(text: str, seal: Seal) -> str:
    """The list of a chat memory: JSON of pairs of id and body."""
    messages: Sequence[Sequence[Any]] = json.loads(text)
    new = [[id, _renewed_text(body, seal)] for id, body in messages]
    return text if new == messages else json.dumps(new)


def _renewed_value(kind: str, data: bytes, seal: Seal) -> tuple[str, bytes]:
    """Bytes of LangGraph's encrypting serializer, whose format ends in `+` and the name of the cipher, or of
    a format of a capability, which contains such bytes and texts.
    """
    texts, values = partial(_renewed_text, seal=seal), partial(_renewed_value, seal=seal)
    if (own := upkeep.renewed(kind, data, texts, values)) is not None:
        return kind, own
    format, encrypted, cipher = kind.partition("+")
    renewed = seal.renewed(cipher, data) if encrypted else None
    return (kind, data) if renewed is None else (f"{format}+{renewed[0]}", renewed[1])
