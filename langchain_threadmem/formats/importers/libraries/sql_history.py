"""SQL: the tables of LangChain's `SQLChatMessageHistory` in an SQLite database."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.chats import PIECE_SIZE, Bad, Chats, text_or_none
from langchain_threadmem.formats.importers.libraries.message_lists import List
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import loads

_COLUMNS = {"id", "session_id", "message"}


def is_database(source: Source) -> bool:
    """Whether a database has a table of histories."""
    return bool(_tables(source))


def _tables(source: Source) -> list[str]:
    return [name for name, columns in sorted(source.tables.items()) if columns >= _COLUMNS]


def chats(source: Source) -> Chats:
    """The conversations of all tables of histories."""
    for table in _tables(source):
        yield from _chats_of(source, table)


def _chats_of(source: Source, table: str) -> Chats:
    quoted = '"' + table.replace('"', '""') + '"'
    rows = source.rows(f"SELECT session_id, id, message FROM {quoted} ORDER BY session_id, id")
    for session, of_session in groupby(rows, itemgetter(0)):
        name = None if session is None else text_or_none(str(session))
        if name is None:
            yield Bad(f"table {table!r} has messages without a session_id")
            continue
        messages = List(name)
        for _, number, text in of_session:
            position = f"row {number} of table {table!r}"
            try:
                messages.add(loads(str(text), position), position)
            except InputError as error:
                yield Bad(str(error))
            if len(messages.entries) >= PIECE_SIZE:
                yield from messages.pieces()
        yield from messages.pieces()
