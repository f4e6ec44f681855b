"""Units from rows: what is read from the database becomes a `MemoryUnit` with its links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from langchain_threadmem.core.bodies import decode_stored, text_of
from langchain_threadmem.core.units import SUMMARY_SOURCE, MemoryUnit, source_of
from langchain_threadmem.storage.queries import units
from langchain_threadmem.storage.queries.units import UnitRow
from langchain_threadmem.storage.statements import Conn

TITLE = "title"
"""Where the message that holds a summary's text has its title."""


def read_units(conn: Conn, owner: str, keys: Iterable[int]) -> list[MemoryUnit]:
    """The units with some keys, in the order of the keys; those that are not the owner's are left out."""
    wanted = list(keys)
    rows = {row.key: row for row in units.by_keys(conn, owner, wanted)}
    below = units.children(conn, [row.key for row in rows.values() if row.id is not None])
    return units_of(
        owner,
        [rows[key] for key in wanted if key in rows],
        {parent: [name for _, name in found] for parent, found in below.items()},
    )


def units_of(owner: str, rows: Sequence[UnitRow], children: Mapping[int, Sequence[str]]) -> list[MemoryUnit]:
    """The units that rows stand for, given the ids of their children by their keys."""
    messages = decode_stored([(row.message, row.body, row.role) for row in rows])
    return [
        MemoryUnit(
            id=row.message if row.id is None else row.id,
            content=text_of(message),
            source=source_of(message) if row.id is None else SUMMARY_SOURCE,
            creation_time=_time(row.created if row.started is None else row.started),
            end_time=_time(row.created if row.ended is None else row.ended),
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


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
