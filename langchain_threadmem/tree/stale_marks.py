"""SQL: marks on stale summaries, whose messages have changed."""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import bindparam, select, update

from langchain_threadmem.storage.schema import summary, unit
from langchain_threadmem.storage.statements import Conn, Statement, within

_PARENTS = Statement(
    select(unit.c.parent).where(within(unit.c.key, "keys"), unit.c.parent.is_not(None)), "keys"
)
_PARENTS_OF_TREE = Statement(
    select(unit.c.parent)
    .join(summary, summary.c.key == unit.c.key)
    .where(summary.c.tree == bindparam("tree"), unit.c.parent.is_not(None)),
    "tree",
)
_STALE = Statement(update(summary).where(within(summary.c.key, "keys")).values(stale=1), "keys")


def ancestors(conn: Conn, keys: Collection[int]) -> set[int]:
    """The keys of all summaries above units."""
    above: set[int] = set()
    while keys:
        keys = {row[0] for row in conn.all(_PARENTS, json.dumps(list(keys)))} - above
        above |= keys
    return above


def above_tree(conn: Conn, summaries: int) -> set[int]:
    """The keys of all summaries above the summaries in a tree."""
    above = {row[0] for row in conn.all(_PARENTS_OF_TREE, summaries)}
    return above | ancestors(conn, above)


def mark_stale(conn: Conn, keys: Collection[int]) -> None:
    """Mark summaries as stale."""
    if keys:
        conn.run(_STALE, json.dumps(list(keys)))
