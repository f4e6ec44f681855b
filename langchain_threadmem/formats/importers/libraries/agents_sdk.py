"""SQL: databases of the OpenAI Agents SDK: `SQLiteSession` and `AdvancedSQLiteSession` with branches.

The names of the tables can be chosen, so they are found by their columns. A branch shares the rows of its
beginning with another branch; the tree is the union of the chains of all branches. Times have no zone and
are in UTC.

The tables follow openai/openai-agents-python (src/agents/memory/sqlite_session.py and
src/agents/extensions/memory/advanced_sqlite_session.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats, chat_of, seconds, text_or_none
from langchain_threadmem.formats.importers.libraries.openai_items import parts_of_item, role_of_item
from langchain_threadmem.formats.importers.said import ASSISTANT, Said, entries_of
from langchain_threadmem.formats.importers.source import FAULTS, Format, Source, problem_of
from langchain_threadmem.messages.records import as_object, loads

_MESSAGES = {"id", "session_id", "message_data"}
_STRUCTURE = {"session_id", "message_id", "branch_id", "sequence_number"}
_MAIN = "main"
SessionRow = tuple[int, str, Any]


def is_database(source: Source) -> bool:
    """Whether a database has a table of items."""
    return _table(source, _MESSAGES) is not None


def _table(source: Source, columns: set[str]) -> str | None:
    return next((name for name, found in sorted(source.tables.items()) if found >= columns), None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def chats(source: Source) -> Chats:
    """The sessions of a database."""
    table = _table(source, _MESSAGES) or ""
    time = "created_at" if "created_at" in source.tables[table] else "NULL"
    rows = source.rows(
        f"SELECT session_id, id, message_data, {time} FROM {_quoted(table)} ORDER BY session_id, id"
    )
    for session, of_session in groupby(rows, itemgetter(0)):
        name = None if session is None else text_or_none(str(session))
        if name is None:
            yield Bad(f"table {table!r} has messages without a session_id")
            continue
        position = f"session {name!r}"
        items: dict[int, Said] = {}
        try:
            for _, id, data, created in of_session:
                found = _said(id, data, created, f"row {id} of table {table!r}")
                if isinstance(found, Bad):
                    yield found
                else:
                    items[id] = found
            yield _chat(source, name, items, position)
        except FAULTS as error:
            yield Bad(problem_of(error, position))


def _said(id: int, data: Any, created: Any, position: str) -> Said | Bad:
    try:
        item = as_object(loads(data, position), position)
        if "__enc__" in item:
            raise InputError(f"{position} is encrypted; decrypt the session with its key first")
        parts = parts_of_item(item)
        return Said(f"row-{id}", None, role_of_item(item), parts, seconds(created, position))
    except FAULTS as error:
        return Bad(problem_of(error, position))


def _chat(source: Source, name: str, items: dict[int, Said], position: str) -> Chat:
    chains = [*_chains(source, name, items)] or [(_MAIN, [*items])]
    said: dict[str, Said] = {}
    ends: dict[str, str] = {}
    for branch, chain in chains:
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
    return chat_of(position, name, entries_of([*said.values()]), tip=ends.get(_MAIN, last))


def _chains(source: Source, session: str, items: dict[int, Said]) -> Iterator[tuple[str, list[int]]]:
    """The rows of each branch, the oldest branch first."""
    structure = _table(source, _STRUCTURE)
    if structure is None:
        return
    rows = source.rows(
        f"SELECT branch_id, message_id FROM {_quoted(structure)} WHERE session_id = ? "
        "ORDER BY branch_id <> 'main', branch_id, sequence_number, id",
        session,
    )
    chained: set[int] = set()
    for branch, of_branch in groupby(rows, itemgetter(0)):
        chain = [id for _, id in of_branch if id in items]
        chained.update(chain)
        yield branch, chain
    if rest := [id for id in items if id not in chained]:
        yield "", rest


def _answers(chain: list[int], items: dict[int, Said]) -> Iterator[list[int]]:
    """The rows of each message: reasoning and calls belong to the answer with the next text."""
    group: list[int] = []
    for id in chain:
        one = items[id]
        has_text = any(isinstance(part, str) for before in group for part in items[before].parts)
        if group and (
            one.role != ASSISTANT or (has_text and any(isinstance(part, str) for part in one.parts))
        ):
            yield group
            group = []
        group.append(id)
        if one.role != ASSISTANT:
            yield group
            group = []
    if group:
        yield group


FORMAT = Format(
    "agents_sdk", "a database of sessions of the OpenAI Agents SDK", chats, is_database=is_database
)
