"""SQL: `ChatMemory.save` and llamabot, MemForest, LangChain's SQL history, and OpenAI's Agents SDK.

Of MemForest, messages (rank 0) are imported, each session as a conversation, with their links to the previous
message. Summaries are not imported; `MemorySystem.summarize_session` writes new summaries.

The names of the tables of `SQLiteSession` and `AdvancedSQLiteSession` can be chosen, so they are found by
their columns. A branch shares the rows of its beginning with another branch; the tree is the union of the
chains of all branches. Times have no zone and are in UTC. The tables follow openai/openai-agents-python
(src/agents/memory/sqlite_session.py and src/agents/extensions/memory/advanced_sqlite_session.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError, InvalidGraphStateError
from langchain_threadmem.formats.exporters.json import read_document
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import PIECE_SIZE, Bad, Chat, Chats, Entry
from langchain_threadmem.formats.importers.libraries.message_lists import List
from langchain_threadmem.formats.importers.libraries.openai_items import parts_of_item, role_of_item
from langchain_threadmem.formats.importers.said import ASSISTANT, Said, chat_of
from langchain_threadmem.formats.importers.source import FAULTS, Format, Source, checked, problem_of, quoted
from langchain_threadmem.index.units.unit import message_from
from langchain_threadmem.messages.records import as_object, loads
from langchain_threadmem.tree.node import EPOCH, ConversationNode
from langchain_threadmem.tree.revise import HIGHEST_ID


def _chats_of_llamabot(source: Source) -> Chats:
    """The conversations of a file, in most cases one."""

    def read(value: fields.Record, position: str) -> Chat:
        name = source.name if source.read == 1 else f"{source.name}-{source.read}"
        return _chat_of_llamabot(value, position, name)

    return source.each(read)


def _chat_of_llamabot(value: fields.Record, position: str, name: str) -> Chat:
    try:
        document = read_document(value)
    except InvalidGraphStateError as error:
        raise InputError(f"{position}: {error}") from error
    if document.nodes and document.nodes[-1].id > HIGHEST_ID:
        raise InputError(f"the node id {document.nodes[-1].id} is too high; use ids up to {HIGHEST_ID}")
    tip, metadata = document.metadata.get("tip"), document.metadata
    return Chat(
        position,
        fields.text(metadata, "conversation_id") or name,
        [_entry(node) for node in document.nodes],
        title=fields.text(metadata, "title"),
        tip=str(tip) if isinstance(tip, int) else None,
    )


def _entry(node: ConversationNode) -> Entry:
    return Entry(
        str(node.id),
        None if node.parent_id is None else str(node.parent_id),
        lambda: node.message,
        None if node.timestamp == EPOCH else node.timestamp.timestamp(),
        node.message.id or f"node-{node.id}",
        node.state,
        None if node.superseded_by is None else str(node.superseded_by),
        node.summary,
        node.placement,
        node.id,
    )


LLAMABOT = Format(
    "llamabot",
    "a document with nodes, of llamabot or ChatMemory.save",
    _chats_of_llamabot,
    lambda value: fields.has(value, nodes=list),
)


_UNITS, _MEMBERS, _LINKS = "memory_units", "session_unit_membership", "mu_sequence_edges"
Unit = Mapping[str, Any]


def _is_memforest(value: object) -> bool:
    """Whether a JSON document has units by their ids."""
    unit = next(iter(value.values()), None) if isinstance(value, dict) else None
    return isinstance(unit, dict) and unit.keys() >= {"id", "content", "rank", "source"}


def _chats_of_memforest(source: Source) -> Chats:
    """The conversations of a memory."""
    if source.is_database:
        for session, of_session in groupby(_rows(source), itemgetter("session")):
            yield from checked(f"session {session!r}", _chat_of_memforest, session or source.name, of_session)
        return

    def read(document: fields.Record, position: str) -> Iterator[Chat]:
        units = sorted(
            _messages(document), key=lambda unit: (unit["session"], str(unit.get("creation_time") or ""))
        )
        for session, of_session in groupby(units, itemgetter("session")):
            yield _chat_of_memforest(session or source.name, of_session)

    yield from source.each(read)


def _messages(document: fields.Record) -> Iterator[Unit]:
    for key, value in document.items():
        unit = as_object(value, f"unit {key!r}")
        if not unit.get("rank"):
            yield {**unit, "session": fields.text(unit, "group_id") or ""}


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


def _chat_of_memforest(name: str, units: Iterable[Unit]) -> Chat:
    """The conversation of a session; a message without a link continues the previous message in time."""
    position = f"session {name!r}"
    entries: list[Entry] = []
    ordered = list(units)
    ids = {unit.get("id") for unit in ordered}
    for unit in ordered:
        key = fields.text(unit, "id")
        if key is None:
            raise InputError(f"{position} has a unit without an id")
        link = unit.get("pre_id")
        parent = link if link in ids else entries[-1].key if entries else None
        time = fields.seconds(unit.get("creation_time"), f"unit {key!r}")
        entries.append(Entry(key, parent, partial(_message, unit), time, source=unit))
    return Chat(position, name, entries)


def _message(unit: Unit) -> BaseMessage:
    metadata, position = unit.get("metadata") or {}, f"unit {unit['id']!r}"
    if isinstance(metadata, str):
        metadata = loads(metadata, f"the metadata of {position}")
    if not isinstance(unit.get("content"), str):
        raise InputError(f"{position} has the content {unit.get('content')!r:.80}, which is not text")
    return message_from(
        unit["content"], str(unit.get("source") or "ai"), as_object(metadata, f"the metadata of {position}")
    )


MEMFOREST = Format(
    "memforest",
    "MemForest's database or memory_units.json",
    _chats_of_memforest,
    _is_memforest,
    is_database=lambda source: (
        source.tables.get(_UNITS, set()) >= {"id", "content", "creation_time", "source", "rank"}
    ),
)


_COLUMNS = {"id", "session_id", "message"}


def _sessions(source: Source, table: str, columns: str) -> Iterator[tuple[str, Iterator[Any]] | Bad]:
    """The rows of each session of a table, by id."""
    rows = source.rows(f"SELECT session_id, id, {columns} FROM {quoted(table)} ORDER BY session_id, id")
    for session, of_session in groupby(rows, itemgetter(0)):
        name = None if session is None else fields.text_or_none(str(session))
        yield (
            Bad(f"table {table!r} has messages without a session_id") if name is None else (name, of_session)
        )


def _chats_of_sql_history(source: Source) -> Chats:
    """The conversations of all tables of histories."""
    for table in source.tables_with(_COLUMNS):
        for session in _sessions(source, table, "message"):
            if isinstance(session, Bad):
                yield session
                continue
            messages = List(session[0])
            for _, number, text in session[1]:
                position = f"row {number} of table {table!r}"
                try:
                    messages.add(loads(str(text), position), position)
                except InputError as error:
                    yield Bad(str(error))
                if len(messages.entries) >= PIECE_SIZE:
                    yield from messages.pieces()
            yield from messages.pieces()


SQL_HISTORY = Format(
    "sql_history",
    "an SQLite database of SQLChatMessageHistory",
    _chats_of_sql_history,
    is_database=lambda source: bool(source.tables_with(_COLUMNS)),
)


FORMATS = (LLAMABOT, MEMFOREST)


_MESSAGES = {"id", "session_id", "message_data"}
_STRUCTURE = {"session_id", "message_id", "branch_id", "sequence_number"}
_MAIN = "main"


def _chats_of_agents_sdk(source: Source) -> Chats:
    """The sessions of a database."""
    [table, *_] = source.tables_with(_MESSAGES)
    time = "created_at" if "created_at" in source.tables[table] else "NULL"
    for session in _sessions(source, table, f"message_data, {time}"):
        if isinstance(session, Bad):
            yield session
            continue
        items: dict[int, Said] = {}
        for _, id, data, created in session[1]:
            position = f"row {id} of table {table!r}"
            try:
                item = as_object(loads(data, position), position)
                if "__enc__" in item:
                    raise InputError(f"{position} is encrypted; decrypt the session with its key first")
                parts, role = parts_of_item(item), role_of_item(item)
                items[id] = Said(f"row-{id}", None, role, parts, fields.seconds(created, position))
            except FAULTS as error:
                yield Bad(problem_of(error, position))
        position = f"session {session[0]!r}"
        yield from checked(position, _chat_of_agents_sdk, source, session[0], items, position)


def _chat_of_agents_sdk(source: Source, name: str, items: dict[int, Said], position: str) -> Chat:
    said: dict[str, Said] = {}
    ends: dict[str, str] = {}
    for branch, chain in _chains(source, name, items):
        previous: str | None = None
        for group in _answers(chain, items):
            one = items[group[-1]]
            key = f"{name}-{one.key}"
            if key not in said:
                parts = [part for id in group for part in items[id].parts]
                said[key] = Said(key, previous, one.role, parts, one.time)
            previous = key
        if previous is not None:
            ends[branch] = previous
    # The current branch is not stored: a session that is opened again is in the branch "main".
    last = max(ends.values(), key=lambda key: int(key.rpartition("-")[2]), default=None)
    return chat_of(position, name, said.values(), tip=ends.get(_MAIN, last))


def _chains(source: Source, session: str, items: dict[int, Said]) -> Iterator[tuple[str, list[int]]]:
    """The rows of each branch, the oldest branch first."""
    chained: set[int] = set()
    for table in source.tables_with(_STRUCTURE)[:1]:
        where = "WHERE session_id = ? ORDER BY branch_id <> 'main', branch_id, sequence_number, id"
        rows = source.records(table, ("branch_id", "message_id"), where, session)
        for branch, of_branch in groupby(rows, itemgetter("branch_id")):
            chain = [row["message_id"] for row in of_branch if row["message_id"] in items]
            chained.update(chain)
            yield branch, chain
    if rest := [id for id in items if id not in chained]:
        yield "" if chained else _MAIN, rest


def _answers(chain: list[int], items: dict[int, Said]) -> Iterator[list[int]]:
    """The rows of each message: reasoning and calls belong to the answer with the next text."""
    group: list[int] = []
    for id in chain:
        one = items[id]
        has_text = any(isinstance(part, str) for before in group for part in items[before].parts)
        is_next = has_text and any(isinstance(part, str) for part in one.parts)
        if group and (one.role != ASSISTANT or is_next):
            yield group
            group = []
        group.append(id)
        if one.role != ASSISTANT:
            yield group
            group = []
    if group:
        yield group


AGENTS_SDK = Format(
    "agents_sdk",
    "a database of sessions of the OpenAI Agents SDK",
    _chats_of_agents_sdk,
    is_database=lambda source: bool(source.tables_with(_MESSAGES)),
)
