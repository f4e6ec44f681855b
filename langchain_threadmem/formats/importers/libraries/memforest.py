"""SQL: MemForest's memories: its SQLite database, or its `memory_units.json`.

Messages (rank 0) are imported, each session as a conversation, with their links to the previous message.
Summaries are not imported; `MemorySystem.summarize_session` writes new summaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.chats import Bad, Chats, Entry, chat_of, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import object_of
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.index.units.unit import message_from
from langchain_threadmem.messages.records import as_object, loads

_UNITS, _MEMBERS, _LINKS = "memory_units", "session_unit_membership", "mu_sequence_edges"
Unit = Mapping[str, Any]


def is_database(source: Source) -> bool:
    """Whether a database has MemForest's table of units."""
    return source.tables.get(_UNITS, set()) >= {"id", "content", "creation_time", "source", "rank"}


def is_item(value: object) -> bool:
    """Whether a JSON document has units by their ids."""
    unit = next(iter(value.values()), None) if isinstance(value, dict) else None
    return isinstance(unit, dict) and unit.keys() >= {"id", "content", "rank", "source"}


def chats(source: Source) -> Chats:
    """The conversations of a memory."""
    if source.is_database:
        for session, of_session in groupby(_rows(source), itemgetter("session")):
            yield from _chat(session or source.name, of_session)
        return
    for item in source.items():
        try:
            units = [as_object(unit, f"unit {key!r}") for key, unit in object_of(item).items()]
        except InputError as error:
            yield Bad(str(error))
            continue
        messages: dict[str, list[Unit]] = {}
        for unit in units:
            if not unit.get("rank"):
                messages.setdefault(text_or_none(unit.get("group_id")) or source.name, []).append(unit)
        for name, units_of_session in messages.items():
            yield from _chat(
                name, sorted(units_of_session, key=lambda unit: str(unit.get("creation_time") or ""))
            )


def _rows(source: Source) -> Iterator[Unit]:
    """The messages of a database, by session and time."""
    columns = source.tables[_UNITS]
    session, link, joins = "NULL", "NULL", ""
    if _MEMBERS in source.tables:
        session, joins = "m.session_id", f"LEFT JOIN {_MEMBERS} m ON m.unit_id = u.id "
    elif "group_id" in columns:
        session = "u.group_id"
    if _LINKS in source.tables:
        link, joins = "e.pre_unit_id", f"{joins}LEFT JOIN {_LINKS} e ON e.unit_id = u.id "
    elif "pre_id" in columns:
        link = "u.pre_id"
    names = ("id", "content", "creation_time", "source", "metadata", "session", "pre_id")
    for row in source.rows(
        f"SELECT u.id, u.content, u.creation_time, u.source, u.metadata, {session} AS session, {link} "
        f"FROM {_UNITS} u {joins}WHERE u.rank = 0 ORDER BY session, u.creation_time, u.rowid"
    ):
        yield dict(zip(names, row, strict=True))


def _chat(name: str, units: Iterable[Unit]) -> Chats:
    """The conversation of a session; a message without a link continues the previous message in time."""
    position = f"session {name!r}"
    entries: list[Entry] = []
    ordered = list(units)
    ids = {unit.get("id") for unit in ordered}
    try:
        for unit in ordered:
            key = text_or_none(unit.get("id"))
            if key is None:
                raise InputError(f"{position} has a unit without an id")
            link = unit.get("pre_id")
            parent = link if link in ids else entries[-1].key if entries else None
            time = seconds(unit.get("creation_time"), f"unit {key!r}")
            entries.append(Entry(key, parent, partial(_message, unit), time, source=unit))
        yield chat_of(position, name, entries)
    except InputError as error:
        yield Bad(str(error))


def _message(unit: Unit) -> BaseMessage:
    metadata, position = unit.get("metadata") or {}, f"unit {unit['id']!r}"
    if isinstance(metadata, str):
        metadata = loads(metadata, f"the metadata of {position}")
    if not isinstance(unit.get("content"), str):
        raise InputError(f"{position} has the content {unit.get('content')!r:.80}, which is not text")
    return message_from(
        unit["content"], str(unit.get("source") or "ai"), as_object(metadata, f"the metadata of {position}")
    )
