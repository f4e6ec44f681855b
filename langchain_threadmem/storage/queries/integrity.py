"""What the database itself can say about its health."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from langchain_threadmem.storage.schema import segment
from langchain_threadmem.storage.statements import Conn, Statement

_CHECK = Statement.of(sqlite="PRAGMA quick_check", postgresql="SELECT 'ok'")
_SEGMENTS = Statement(
    select(segment.c.id, segment.c.parent).where(segment.c.tree == bindparam("tree")), "tree"
)


def problems(conn: Conn) -> list[str]:
    """Faults of the file; PostgreSQL checks its own."""
    return [f"the database file: {row[0]}" for row in conn.all(_CHECK) if row[0] != "ok"]


def segments(conn: Conn, tree_id: int) -> dict[int, int | None]:
    """The segments of a tree and the key of the node each forks from."""
    return {row[0]: row[1] for row in conn.all(_SEGMENTS, tree_id)}
