"""SQL: the units of an owner's memory: which are in memory, filters, visits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Join, and_, bindparam, case, func, select
from sqlalchemy.dialects.postgresql import insert

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.common.filters.conditions import Condition
from langchain_threadmem.common.filters.sql import Columns, where
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import node, recallable, segment, summary, tree, unit, visit_round
from langchain_threadmem.storage.statements import ZERO, Conn, Statement, within
from langchain_threadmem.tree.nodes import STORED

OF_OWNER = and_(tree.c.owner == bindparam("owner"), recallable)


def _with_units(nodes: Join) -> Join:
    """Nodes with the rows of their units and summaries, if any."""
    return nodes.outerjoin(unit, unit.c.key == node.c.key).outerjoin(summary, summary.c.key == node.c.key)


# All units of an owner and units by their keys need separate joins: SQLite begins with the first table.
units_of_owner = _with_units(
    tree.join(segment, segment.c.tree == tree.c.id).join(node, node_keys.inside(node.c.key))
)
units_by_key = _with_units(node.join(tree, tree.c.id == node.c.tree))
_ABSENT = Statement(
    node_keys.after(
        select(node.c.key).join(unit, unit.c.key == node.c.key).where(unit.c.forgotten.is_not(None)),
        bindparam("tree"),
        bindparam("seq"),
    ),
    *("tree", "seq"),
)
_PRESENT_AMONG = Statement(
    select(node.c.key)
    .outerjoin(unit, unit.c.key == node.c.key)
    .where(within(node.c.key, "keys"), STORED, unit.c.forgotten.is_(None)),
    "keys",
)
_PLACES = Statement(
    select(node.c.tree, node.c.seq, node.c.key).where(within(node.c.key, "keys")).order_by(node.c.key), "keys"
)
_ROUND = Statement(select(visit_round.c.round).where(visit_round.c.owner == bindparam("owner")), "owner")


def _later_of(first: ColumnElement[int], second: ColumnElement[int]) -> ColumnElement[int]:
    return case((first > second, first), else_=second)  # MAX and GREATEST exist in one database each.


_later = insert(visit_round).values(owner=bindparam("owner"), round=bindparam("round"))
_SET_ROUND = Statement(
    _later.on_conflict_do_update(
        index_elements=["owner"],
        set_={"round": _later_of(visit_round.c.round, _later.excluded.round)},
    ),
    *("owner", "round"),
)
_visited = insert(unit).values(
    key=bindparam("key"), visits=bindparam("visits"), last_visit=bindparam("last_visit")
)
_VISIT = Statement(
    _visited.on_conflict_do_update(
        index_elements=["key"],
        set_={
            "visits": unit.c.visits + _visited.excluded.visits,
            "last_visit": _later_of(unit.c.last_visit, _visited.excluded.last_visit),
        },
    ),
    *("key", "visits", "last_visit"),
)
_OWN = Statement(
    select(node.c.key)
    .join(tree, tree.c.id == node.c.tree)
    .where(within(node.c.key, "keys"), unit_queries.OWNED),
    *("keys", "owner"),
)
_PARENTS = Statement(
    select(unit.c.key, unit.c.parent).where(within(unit.c.key, "keys"), unit.c.parent.is_not(None)), "keys"
)


class Visit(NamedTuple):
    """The number of recalls of a unit, and the round of the last."""

    times: int
    round: int


class UnitPlace(NamedTuple):
    """The tree and the number of the node of a unit."""

    tree: int
    seq: int
    key: int


def present(conn: Conn, owner: str, keys: Iterable[int], condition: Condition | None = None) -> set[int]:
    """The keys of the given units that are in the owner's memory and may pass a filter."""
    _, statement, _ = _matching(condition)
    return {row[0] for row in conn.all(statement, owner, json.dumps(list(keys)))}


_FIELDS: Columns = {
    "id": func.coalesce(summary.c.id, node.c.message),
    "group_id": case((tree.c.conversation == "", tree.c.owner), else_=tree.c.conversation),
    "rank": func.coalesce(summary.c.rank, ZERO),
    "visit_count": func.coalesce(unit.c.visits, ZERO),
    "last_visit": func.coalesce(unit.c.last_visit, ZERO),
    "creation_time": func.coalesce(summary.c.started, node.c.created),
    "end_time": func.coalesce(summary.c.ended, node.c.created),
}
"""The fields of a unit that are columns."""


@cache_of_texts(64)
def _matching(condition: Condition | None) -> tuple[Statement, Statement, bool]:
    """The statements for all units and for given units that may pass a filter.

    The last value is whether SQL can evaluate any part of the filter.
    """
    elements = where(condition, _FIELDS)
    keys = select(node.c.key).where(unit_queries.IN_MEMORY, *elements)
    among = keys.select_from(units_by_key).where(unit_queries.OWNED, within(node.c.key, "keys"))
    return (
        Statement(keys.select_from(units_of_owner).where(OF_OWNER).limit(bindparam("most")), "owner", "most"),
        Statement(among, "owner", "keys"),
        bool(elements),
    )


def matching(conn: Conn, owner: str, condition: Condition, most: int) -> list[int] | None:
    """Keys of the units in memory that may pass a filter, as far as its fields are columns.

    Returns:
        The keys of all units that pass, and possibly of others; `None` if SQL cannot evaluate any part of the
        filter, or if there are more than `most` keys.
    """
    statement, _, is_partial = _matching(condition)
    if not is_partial:
        return None
    keys = [row[0] for row in conn.all(statement, owner, most + 1)]
    return keys if len(keys) <= most else None


def absent(conn: Conn, tree_id: int, seq: int = 0) -> set[int]:
    """The keys of forgotten nodes with numbers above `seq`, which no index contains."""
    return {row[0] for row in conn.all(_ABSENT, tree_id, seq)}


def present_among(conn: Conn, keys: Sequence[int]) -> set[int]:
    """The keys of the given nodes that exist and were neither purged nor forgotten."""
    return {row[0] for row in conn.all(_PRESENT_AMONG, json.dumps(keys))}


def places(conn: Conn, keys: Sequence[int]) -> list[UnitPlace]:
    """The places of nodes, by their keys."""
    return [UnitPlace(*row) for row in conn.all(_PLACES, json.dumps(keys))]


def current_round(conn: Conn, owner: str) -> int:
    """The number of the last query."""
    row = conn.one(_ROUND, owner)
    return int(row[0]) if row else 0


def visit(conn: Conn, owner: str, visits: Mapping[int, Visit], round: int) -> None:
    """Record visits of units, and the last round of the summaries above them.

    Args:
        conn: A write transaction.
        owner: The owner; units of other owners are skipped.
        visits: The visits, by the keys of the units.
        round: The number of the last query.
    """
    conn.run(_SET_ROUND, owner, round)
    owned = {row[0] for row in conn.all(_OWN, json.dumps(list(visits)), owner)}
    conn.many(_VISIT, [(key, *visits[key]) for key in sorted(owned)])
    refreshed: dict[int, int] = {}
    level = {key: visits[key].round for key in owned}
    while level:
        above: dict[int, int] = {}
        for key, parent in conn.all(_PARENTS, json.dumps(list(level))):
            if level[key] > refreshed.get(parent, 0):
                above[parent] = refreshed[parent] = max(above.get(parent, 0), level[key])
        level = above
    conn.many(_VISIT, [(key, 0, last) for key, last in sorted(refreshed.items())])
