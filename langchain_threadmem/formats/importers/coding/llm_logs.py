"""SQL: `logs.db` of the program `llm`: the tree of messages since version 0.32, and the tables before it.

A message is a row that all threads with the same beginning share. A conversation has the threads that were
forked from each other, and each tip is a leaf. A message has no time of its own: it has the time of the
first turn that wrote it.

The tables follow simonw/llm (llm/migrations.py and llm/logs.py of 0.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.parts import File, Other, Part, Reasoning, ToolResult, ToolUse
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.records import as_object, loads

_MESSAGES = {"hash", "parent_hash", "role"}
_RESPONSES = {"id", "prompt", "response", "conversation_id"}


def is_database(source: Source) -> bool:
    """Whether a database is one of `llm`."""
    tables = source.tables
    return _has_tree(source) or tables.get("responses", set()) >= _RESPONSES


def _has_tree(source: Source) -> bool:
    tables = source.tables
    return tables.get("messages", set()) >= _MESSAGES and "threads" in tables and "parts" in tables


def chats(source: Source) -> Chats:
    """The conversations of a database; one that both generations of tables have is read from the tree."""
    threads: set[str] = set()
    if _has_tree(source):
        for conversation in _conversations(source):
            threads.update(thread.id for thread in conversation)
            position = f"thread {conversation[0].id!r}"
            yield from checked(position, _chat_of_tree, source, conversation, position)
    if source.tables.get("responses", set()) >= _RESPONSES:
        yield from _older_chats(source, threads)


class _LoggedThread(NamedTuple):
    id: str
    name: str | None
    tip: str | None
    forked_from: str | None
    time: Any


class _LoggedTurn(NamedTuple):
    parent: str | None
    tip: str | None
    model: str | None
    time: Any


def _conversations(source: Source) -> list[list[_LoggedThread]]:
    """The threads that were forked from each other, by the oldest of them."""
    rows = source.rows(
        "SELECT id, name, tip_message_hash, forked_from, datetime_utc FROM threads ORDER BY datetime_utc, id"
    )
    threads = {row[0]: _LoggedThread(*row) for row in rows}
    groups: dict[str, list[_LoggedThread]] = {}
    for thread in threads.values():
        origin, seen = thread, {thread.id}
        while origin.forked_from in threads and origin.forked_from not in seen:
            origin = threads[origin.forked_from]
            seen.add(origin.id)
        groups.setdefault(origin.id, []).append(thread)
    return [sorted(group, key=lambda one: one.id != origin) for origin, group in groups.items()]


def _chat_of_tree(source: Source, threads: Sequence[_LoggedThread], position: str) -> Chat:
    turns = [turn for thread in threads for turn in _turns(source, thread.id)]
    tips = [*(turn.tip for turn in turns), *(thread.tip for thread in threads)]
    rows: dict[str, tuple[str | None, str, str | None]] = {}
    for tip in tips:
        for hash, parent, role, metadata in _chain(source, tip, rows):
            rows[hash] = parent, role, metadata
    written = _written(rows, turns, position)
    said = [
        Said(
            hash,
            parent,
            role,
            [*_parts_of(source, hash, position)],
            written.get(hash, (None, None))[0],
            written.get(hash, (None, None))[1] if role == ASSISTANT else None,
            extra={"provider_metadata": metadata} if metadata else {},
        )
        for hash, (parent, role, metadata) in rows.items()
    ]
    newest = max((turn for turn in turns if turn.tip), key=lambda turn: str(turn.time), default=None)
    written_at = [*(one.time for one in turns), *(one.time for one in threads)]
    times = [str(time) for time in written_at if time]
    return chat_of(
        position,
        threads[0].id,
        said,
        title=fields.text_or_none(threads[0].name),
        tip=_last_used(threads, turns),
        created=fields.seconds(min(times, default=None), position),
        model=newest.model if newest is not None else None,
    )


def _last_used(threads: Sequence[_LoggedThread], turns: Sequence[_LoggedTurn]) -> str | None:
    """The tip that was written last; of two at one time, that of the thread."""
    used = [
        *((str(turn.time), 0, turn.tip) for turn in turns),
        *((str(one.time), 1, one.tip) for one in threads),
    ]
    return max((one for one in used if one[2] is not None), key=lambda one: one[:2], default=("", 0, None))[2]


def _turns(source: Source, thread: str) -> list[_LoggedTurn]:
    if "turns" not in source.tables:
        return []
    rows = source.rows(
        "SELECT parent_message_hash, tip_message_hash, model, datetime_utc FROM turns "
        "WHERE thread_id = ? ORDER BY id",
        thread,
    )
    return [_LoggedTurn(*row) for row in rows]


def _chain(
    source: Source, tip: str | None, known: dict[str, Any]
) -> list[tuple[str, str | None, str, str | None]]:
    """The messages up to a tip that are not known yet, oldest first."""
    chain: list[tuple[str, str | None, str, str | None]] = []
    hash, seen = tip, {*known}
    while hash is not None and hash not in seen:
        seen.add(hash)
        row = next(
            source.rows(
                "SELECT hash, parent_hash, role, provider_metadata FROM messages WHERE hash = ?", hash
            ),
            None,
        )
        if row is None:
            break
        chain.append(row)
        hash = row[1]
    return chain[::-1]


def _written(
    rows: dict[str, tuple[str | None, str, str | None]], turns: Sequence[_LoggedTurn], position: str
) -> dict[str, tuple[float | None, str | None]]:
    """The time and the model of each message: of the first turn between whose ends it is."""
    written: dict[str, tuple[float | None, str | None]] = {}
    for turn in sorted(turns, key=lambda turn: str(turn.time)):
        hash, time = turn.tip, fields.seconds(turn.time, position)
        while hash is not None and hash in rows and hash not in written:
            written[hash] = time, turn.model
            hash = rows[hash][0]
    return written


def _parts_of(source: Source, hash: str, position: str) -> Iterator[Part]:
    query = "SELECT type, tool_name, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
    for kind, tool, text, data in [*source.rows(query, hash)]:
        payload = as_object(loads(data, f"a part of {position}"), f"a part of {position}") if data else {}
        if text is None:
            text = payload.get("text")
        if text is None and isinstance(payload.get("text_ref"), list):
            text = "".join(_piece(source, piece) for piece in payload["text_ref"])
        id = fields.text(payload, "tool_call_id")
        if kind == "text":
            yield text or ""
        elif kind == "reasoning":
            if text:
                yield Reasoning(text)
        elif kind == "tool_call":
            yield ToolUse(str(tool or payload.get("name")), payload.get("arguments"), id)
        elif kind == "tool_result":
            failed = payload.get("exception")
            yield ToolResult(
                payload.get("output") or failed, id, fields.text_or_none(tool), failed is not None
            )
        elif kind == "attachment":
            attachment = payload.get("attachment")
            yield _attachment(source, attachment.get("id") if isinstance(attachment, dict) else None)
        else:
            yield Other({"type": kind, "text": text, **payload})


def _piece(source: Source, piece: Any) -> str:
    if not isinstance(piece, dict):
        return ""
    if "literal" in piece:
        return str(piece["literal"])
    row = next(source.rows("SELECT content FROM fragments WHERE id = ?", piece.get("fragment")), None)
    return str(row[0]) if row is not None else ""


def _attachment(source: Source, id: Any) -> File:
    row = None
    if "attachments" in source.tables:
        row = next(source.rows("SELECT type, path, url FROM attachments WHERE id = ?", id), None)
    type, path, url = row if row is not None else (None, None, None)
    medium = str(type or "").partition("/")[0]
    name = str(path or url or id or "").rpartition("/")[2]
    kind = medium if medium in ("image", "audio", "video") else "file"
    return File(kind, name or None, {"id": id, "type": type, "path": path, "url": url}, is_beside=True)


def _older_chats(source: Source, known: set[str]) -> Chats:
    """The conversations of the tables before version 0.32, in which a row is a question and its answer."""
    abouts: dict[str, fields.Record] = {}
    if "conversations" in source.tables:
        rows = source.rows("SELECT id, name, model FROM conversations")
        abouts = {id: {"name": name, "model": model} for id, name, model in rows}
    query = "SELECT DISTINCT coalesce(conversation_id, id) FROM responses ORDER BY 1"
    for (name,) in [*source.rows(query)]:
        if name not in known:
            yield from checked(f"conversation {name!r}", _older_chat, source, str(name), abouts.get(name))


def _older_chat(source: Source, name: str, about: fields.Record | None) -> Chat:
    position = f"conversation {name!r}"
    return chat_of(position, name, _older_messages(source, name, position), about)


def _older_messages(source: Source, conversation: str, position: str) -> Iterator[Said]:
    columns = source.tables["responses"]
    names = ("id", "prompt", "system", "response", "model", "datetime_utc", "reasoning")
    selected = ", ".join(name if name in columns else "NULL" for name in names)
    rows = source.rows(
        f"SELECT {selected} FROM responses WHERE conversation_id = ? OR (conversation_id IS NULL AND id = ?) "
        "ORDER BY datetime_utc, id",
        conversation,
        conversation,
    )
    previous: str | None = None
    for id, prompt, system, response, model, time, reasoning in [*rows]:
        written = fields.seconds(time, position)
        if system:
            yield Said(f"{id}-system", previous, SYSTEM, [system], written)
        results = _rows_of(source, "tool_results", ("output", "tool_call_id", "name"), id)
        question: list[Part] = [ToolResult(*one) for one in results]
        question += [*_fragments_of(source, id), *([prompt] if prompt else [])]
        files = _rows_of(source, "prompt_attachments", ("attachment_id",), id)
        question += [_attachment(source, one) for (one,) in files]
        if question:
            yield Said(f"{id}-prompt", previous, USER, question, written)
            previous = f"{id}-prompt"
        answer: list[Part] = [Reasoning(reasoning)] if reasoning else []
        answer += [response] if response else []
        calls = _rows_of(source, "tool_calls", ("name", "arguments", "tool_call_id"), id)
        answer += [ToolUse(str(name), arguments, call) for name, arguments, call in calls]
        yield Said(str(id), previous, ASSISTANT, answer, written, fields.text_or_none(model))
        previous = str(id)


def _fragments_of(source: Source, response: str) -> list[str]:
    """The texts that a prompt had before its own text."""
    if not {"fragments", "prompt_fragments"} <= source.tables.keys():
        return []
    rows = source.rows(
        "SELECT f.content FROM prompt_fragments p JOIN fragments f ON f.id = p.fragment_id "
        'WHERE p.response_id = ? ORDER BY p."order"',
        response,
    )
    return [str(row[0]) for row in rows if row[0]]


def _rows_of(source: Source, table: str, names: Sequence[str], response: str) -> list[tuple[Any, ...]]:
    """The rows of a table that belong to a response; none without the table."""
    if not source.tables.get(table, set()) >= {*names, "response_id"}:
        return []
    return [
        *source.rows(f"SELECT {', '.join(names)} FROM {table} WHERE response_id = ? ORDER BY rowid", response)
    ]


FORMAT = Format("llm", "logs.db of the program llm", chats, is_database=is_database)
