"""SQL: units and their links."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import (
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
)

from langchain_threadmem.index.units.unit import SUMMARY_SOURCE, MemoryUnit
from langchain_threadmem.messages.codec import decode_stored, text_of
from langchain_threadmem.messages.roles import source_of
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, node, recallable, summary, tree, unit
from langchain_threadmem.storage.statements import ZERO, Conn, Statement, insert_of, within
from langchain_threadmem.tree.graph import parents_first


class UnitRow(NamedTuple):
    """A unit as a row of the database.

    Attributes:
        key: The key of the node.
        tree: The tree of the node.
        session: The name of the conversation; empty for summaries of the long-term memory.
        seq: The number of the node in its tree.
        parent_id: The id of the summary that covers the unit.
        previous: The id of the live message before the unit in the conversation; `None` for summaries.
        following: The id of the live message after the unit in the conversation; `None` for summaries.
        id: The id of a summary; `None` for messages, as in all later fields.
    """

    key: int
    tree: int
    session: str
    seq: int
    message: str
    role: str
    body: str
    created: float
    state: int
    parent_id: str | None
    visits: int
    last_visit: int
    never_delete: int
    forgotten: float | None
    previous: str | None
    following: str | None
    id: str | None
    rank: int | None
    level: int | None
    thread: int | None
    messages: int | None
    started: float | None
    ended: float | None
    stale: int | None


IN_MEMORY = and_(node.c.state == int(State.LIVE), unit.c.forgotten.is_(None))
"""Whether a node is live and not forgotten."""
_above = summary.alias("above")


def _neighbour(column: str, *, after: bool) -> object:
    """A column of the next live message in memory before or after a node."""
    neighbour, state = node.alias("neighbour"), unit.alias("neighbour_unit")
    column_of = (
        select(neighbour.c[column])
        .select_from(neighbour.outerjoin(state, state.c.key == neighbour.c.key))
        .where(neighbour.c.state == int(State.LIVE), state.c.forgotten.is_(None))
    )
    beyond = node_keys.after if after else node_keys.before
    nearest = beyond(column_of, node.c.tree, node.c.seq, neighbour).limit(1).correlate(node).scalar_subquery()
    return case((tree.c.scope == "", nearest))


def _rows() -> Select[tuple[int]]:
    counts = (
        func.coalesce(unit.c.visits, ZERO),
        func.coalesce(unit.c.last_visit, ZERO),
        func.coalesce(unit.c.never_delete, ZERO),
    )
    rows = select(
        *(node.c.key, node.c.tree, tree.c.conversation),
        *node.c["seq", "message", "role", "body", "created", "state"],
        *(_above.c.id, *counts, unit.c.forgotten),
        *(_neighbour("message", after=False), _neighbour("message", after=True)),  # type: ignore[call-overload]
        *summary.c["id", "rank", "level", "thread", "messages", "started", "ended", "stale"],
    )
    joined = (
        node.join(tree, tree.c.id == node.c.tree)
        .outerjoin(unit, unit.c.key == node.c.key)
        .outerjoin(_above, _above.c.key == unit.c.parent)
        .outerjoin(summary, summary.c.key == node.c.key)
    )
    statement: Select[tuple[int]] = rows.select_from(joined)
    return statement


OWNED = and_(tree.c.owner.concat("") == bindparam("owner"), recallable)
"""Whether nodes that are read by their keys belong to an owner.

The condition uses no indexed column, because SQLite would read all nodes of the owner before the keys.
"""
_BY_KEYS = Statement(_rows().where(within(node.c.key, "keys"), OWNED), "keys", "owner")
_FORGOTTEN = Statement(
    node_keys.keys_of(bindparam("tree"))
    .with_only_columns(node.c.seq, unit.c.forgotten)
    .join(unit, unit.c.key == node.c.key)
    .where(unit.c.forgotten.is_not(None)),
    "tree",
)
_CHILDREN = Statement(
    select(
        unit.c.parent,
        node.c.key,
        func.coalesce(summary.c.id, node.c.message),
        case((summary.c.id.is_(None), node.c.seq)),
        node.c.parent,
    )
    .select_from(
        unit.join(node, node.c.key == unit.c.key)
        .outerjoin(summary, summary.c.key == unit.c.key)
        .join(_above, _above.c.key == unit.c.parent)
    )
    .where(within(unit.c.parent, "keys"), unit.c.forgotten.is_(None))
    # Sessions below the long-term memory are in the order in which they began.
    .order_by(
        case((_above.c.rank > summary.c.rank, summary.c.started)),
        func.coalesce(summary.c.place, node.c.seq),
        node.c.key,
    ),
    "keys",
)
_LATEST = Statement(
    node_keys.before(
        select(node.c.key).select_from(node.outerjoin(unit, unit.c.key == node.c.key)).where(IN_MEMORY),
        bindparam("tree"),
        literal_column(str(1 << 62)),
    ).limit(bindparam("most")),
    *("tree", "most"),
)
_NEIGHBOURS = Statement(
    select(_neighbour("key", after=False), _neighbour("key", after=True))  # type: ignore[call-overload]
    .select_from(node.join(tree, tree.c.id == node.c.tree))
    .where(within(node.c.key, "keys")),
    "keys",
)
_SUMMARY_NAMED = Statement(
    select(summary.c.key)
    .join(tree, tree.c.id == summary.c.tree)
    .where(summary.c.id == bindparam("id"), tree.c.owner == bindparam("owner"))
    .order_by(summary.c.rank.desc(), summary.c.key),
    *("id", "owner"),
)
_MESSAGE_NAMED = Statement(
    select(node.c.key)
    .join(tree, tree.c.id == node.c.tree)
    .where(
        node.c.message == bindparam("message"),
        node.c.state == ZERO,
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        or_(bindparam("session") == "", tree.c.conversation == bindparam("session")),
    )
    .order_by(node.c.key),
    *("message", "owner", "session"),
)
_PROTECT = insert_of(unit, "key", "never_delete", replace=True)


def forgotten(conn: Conn, tree_id: int) -> dict[int, float]:
    """The times of forgetting of the forgotten nodes of a tree, by number."""
    return dict(conn.all(_FORGOTTEN, tree_id))


def by_keys(conn: Conn, owner: str, keys: Iterable[int]) -> list[UnitRow]:
    """Units of an owner by the keys of their nodes, in the order of trees and numbers.

    Units of other owners are omitted.
    """
    # Sorted in Python, because SQLite reads whole trees for ORDER BY.
    rows = [UnitRow(*row) for row in conn.all(_BY_KEYS, json.dumps(list(keys)), owner)]
    if (seal := conn.seal) is not None:
        rows = [row._replace(body=seal.open_body(row.message, row.role, row.body)) for row in rows]
    return sorted(rows, key=attrgetter("tree", "seq"))


def children(conn: Conn, keys: Iterable[int]) -> dict[int, list[tuple[int, str]]]:
    """The keys and ids of the units that summaries cover, in order."""
    below: dict[int, dict[int, tuple[int, str]]] = {}
    parents: dict[int, dict[int, int | None]] = {}
    for covering, key, name, seq, above in conn.all(_CHILDREN, json.dumps(list(keys))):
        number = -key if seq is None else seq  # Summaries are numbered in another tree, and have no parents.
        below.setdefault(covering, {})[number] = key, name
        parents.setdefault(covering, {})[number] = None if seq is None else above
    return {
        covering: [rows[number] for number in parents_first(parents[covering])]
        for covering, rows in below.items()
    }


def neighbours(conn: Conn, keys: Iterable[int]) -> list[int]:
    """The keys of the messages before and after the given messages, without duplicates."""
    rows = conn.all(_NEIGHBOURS, json.dumps(list(keys)))
    return list(dict.fromkeys(key for row in rows for key in row if key is not None))


def latest(conn: Conn, tree_id: int, most: int) -> list[int]:
    """The keys of the newest messages of a conversation that are live and not forgotten, oldest first."""
    return [row[0] for row in conn.all(_LATEST, tree_id, most)][::-1]


def summaries_named(conn: Conn, owner: str, name: str) -> list[int]:
    """The keys of the summaries with an id, the highest rank first."""
    return [row[0] for row in conn.all(_SUMMARY_NAMED, name, owner)]


def messages_named(conn: Conn, owner: str, name: str, session: str = "") -> list[int]:
    """The keys of the live messages with an id, in one session or in all."""
    return [row[0] for row in conn.all(_MESSAGE_NAMED, name, owner, session)]


def protect(conn: Conn, key: int) -> None:
    """Exempt a unit from forgetting."""
    conn.run(_PROTECT, key, 1)


TITLE = "title"
"""The key of a summary's title in the `additional_kwargs` of its message."""


def read_units(conn: Conn, owner: str, keys: Iterable[int]) -> list[MemoryUnit]:
    """The units with the given keys, in this order; units of other owners are omitted."""
    ordered = list(keys)
    rows = {row.key: row for row in by_keys(conn, owner, ordered)}
    below = children(conn, [row.key for row in rows.values() if row.id is not None])
    return units_of(
        owner,
        [rows[key] for key in ordered if key in rows],
        {parent: [name for _, name in pairs] for parent, pairs in below.items()},
    )


def units_of(owner: str, rows: Sequence[UnitRow], children: Mapping[int, Sequence[str]]) -> list[MemoryUnit]:
    """Units from rows, and from the ids of the children by the keys of summaries."""
    messages = decode_stored([(row.message, row.body, row.role) for row in rows])
    return [
        MemoryUnit(
            id=row.message if row.id is None else row.id,
            content=text_of(message),
            source=source_of(message) if row.id is None else SUMMARY_SOURCE,
            creation_time=datetime.fromtimestamp(row.created if row.started is None else row.started, UTC),
            end_time=datetime.fromtimestamp(row.created if row.ended is None else row.ended, UTC),
            rank=row.rank or 0,
            group_id=row.session or owner,
            parent_id=row.parent_id,
            children_ids=tuple(children.get(row.key, ())),
            pre_id=row.previous,
            next_id=row.following,
            visit_count=row.visits,
            last_visit=row.last_visit,
            never_delete=bool(row.never_delete),
            metadata=message.additional_kwargs if row.id is None else _about(row),
            title=message.additional_kwargs.get(TITLE, "") if row.id is not None else "",
            stale=bool(row.stale),
            node_id=row.seq if row.id is None else None,
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def _about(row: UnitRow) -> dict[str, object]:
    about: dict[str, object] = {"action": "summary", "level": row.level, "messages": row.messages}
    return {**about, "thread": row.thread} if row.thread else about
