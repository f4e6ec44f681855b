"""SQL: the units that may be forgotten, in the order of forgetting."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Float,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.memory import OF_OWNER, current_round, units_by_key, units_of_owner
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, node, summary, tree, unit
from langchain_threadmem.storage.statements import ZERO, Conn, Statement, within

_SAID = node.c.role.in_([literal_column(f"'{role}'") for role in SPOKEN])
"""The messages of people and models; messages of systems and tools are stored but not recalled."""
_IN_MEMORY = and_(unit_queries.IN_MEMORY, _SAID)
_covered = node.alias("covered")
_covered_unit = unit.alias("covered_unit")
_has_children = exists().where(
    _covered_unit.c.parent == node.c.key,
    _covered_unit.c.forgotten.is_(None),
    _covered.c.key == _covered_unit.c.key,
    _covered.c.state == int(State.LIVE),
)
_MAY_GO = and_(
    _IN_MEMORY,
    func.coalesce(unit.c.never_delete, ZERO) == ZERO,
    # A summary may be forgotten when none of its units is in memory; the summary of a session or of an
    # owner is never forgotten.
    or_(
        summary.c.key.is_(None),
        and_(summary.c.id != tree.c.conversation, summary.c.id != tree.c.owner, ~_has_children),
    ),
)
_ORDER = (
    func.coalesce(unit.c.last_visit, ZERO),
    func.coalesce(unit.c.visits, ZERO),
    node.c.created,
    node.c.key,
)
"""The default order of forgetting: by the last visit, by the number of visits, by age."""


def _counted(condition: ColumnElement[bool]) -> Select[int]:
    return select(func.count()).select_from(units_of_owner).where(OF_OWNER, condition)


_SIZE = Statement(_counted(_IN_MEMORY), "owner")
_MAY_GO_COUNT = Statement(_counted(_MAY_GO), "owner")
_newest = node_keys.newest(tree.c.id, "seq")
_AT_MOST = Statement(select(func.coalesce(func.sum(_newest), ZERO)).where(OF_OWNER), "owner")
_forgettable = select(node.c.key, bindparam("now", type_=Float())).where(OF_OWNER, _MAY_GO)


def _forgetting(units: Select[Any], *names: str) -> Statement:
    """The statement that forgets units and returns their keys."""
    forget = insert(unit).from_select(["key", "forgotten"], units)
    forgotten = forget.on_conflict_do_update(
        index_elements=["key"], set_={"forgotten": forget.excluded.forgotten}
    )
    return Statement(forgotten.returning(unit.c.key), *names)


_FORGET = _forgetting(
    _forgettable.select_from(units_of_owner).order_by(*_ORDER).limit(bindparam("most")),
    "now",
    "owner",
    "most",
)
_FORGET_NAMED = _forgetting(
    _forgettable.select_from(units_by_key).where(within(node.c.key, "keys")), "now", "owner", "keys"
)
_before = node.alias("before")
_CANDIDATES = Statement(
    select(
        node.c.key,
        unit.c.parent,
        _before.c.key,
        func.coalesce(summary.c.rank, ZERO),
        func.coalesce(unit.c.visits, ZERO),
        func.coalesce(unit.c.last_visit, ZERO),
        node.c.created,
    )
    .select_from(units_of_owner.outerjoin(_before, node_keys.is_at(_before, node.c.tree, node.c.parent)))
    .where(OF_OWNER, _MAY_GO)
    .order_by(*_ORDER),
    "owner",
)


class ForgettableUnit(NamedTuple):
    """A unit that may be forgotten.

    Attributes:
        key: The key of the node; candidates are in the order of forgetting.
        parent: The key of the summary that covers the unit, if any.
        previous: The key of the message that the message continues, if any.
        rank: 0 for a message, 1 and 2 for summaries.
        visits: The number of recalls.
        last_visit: The round of the last recall; 0 for none.
        created: The time of storing, in seconds since 1970.
        round: The current round.
    """

    key: int
    parent: int | None
    previous: int | None
    rank: int
    visits: int
    last_visit: int
    created: float
    round: int


def size(conn: Conn, owner: str) -> int:
    """The number of units in an owner's memory."""
    return int(conn.all(_SIZE, owner)[0][0])


def at_most(conn: Conn, owner: str) -> int:
    """An upper bound of `size`, without counting."""
    return int(conn.all(_AT_MOST, owner)[0][0])


def may_go(conn: Conn, owner: str) -> int:
    """The number of units that may be forgotten."""
    return int(conn.all(_MAY_GO_COUNT, owner)[0][0])


def candidates(conn: Conn, owner: str) -> list[ForgettableUnit]:
    """The units that may be forgotten, in the order of forgetting."""
    now = current_round(conn, owner)
    return [ForgettableUnit._make((*row, now)) for row in conn.all(_CANDIDATES, owner)]


def forget(conn: Conn, owner: str, most: int, now: float) -> list[int]:
    """Forget the first units in the order of forgetting, and return their keys."""
    return [row[0] for row in conn.all(_FORGET, now, owner, most)]


def forget_named(conn: Conn, owner: str, keys: Iterable[int], now: float) -> list[int]:
    """Forget the given units as far as they may be forgotten, and return their keys."""
    return [row[0] for row in conn.all(_FORGET_NAMED, now, owner, json.dumps(list(keys)))]
