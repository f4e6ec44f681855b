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
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
)
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.records import as_object, loads

_TREE: dict[str, set[str]] = {"messages": {"hash", "parent_hash", "role"}, "threads": set(), "parts": set()}
_OLDER = {"responses": {"id", "prompt", "response", "conversation_id"}}


def _has_tree(source: Source) -> bool:
    return source.has(**_TREE) and source.tables.keys() >= _TREE.keys()


def _chats(source: Source) -> Chats:
    """The conversations of a database; one that both generations of tables have is read from the tree."""
    threads: set[str] = set()
    for conversation in _conversations(source) if _has_tree(source) else ():
        threads.update(thread.id for thread in conversation)
        position = f"thread {conversation[0].id!r}"
        yield from checked(position, _chat_of_tree, source, conversation, position)
    if source.has(**_OLDER):
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
    turns = [
        _LoggedTurn(*row.values())
        for thread in threads
        for row in source.records("turns", _TURN, "WHERE thread_id = ? ORDER BY id", thread.id)
    ]
    rows: dict[str, fields.Record] = {}
    for tip in (*(turn.tip for turn in turns), *(thread.tip for thread in threads)):
        chain: list[fields.Record] = []
        hash, seen = tip, {*rows}
        while hash is not None and hash not in seen:
            seen.add(hash)
            found = next(source.records("messages", _MESSAGE, "WHERE hash = ?", hash), None)
            chain += [found] if found else []
            hash = found["parent_hash"] if found else None
        rows |= {row["hash"]: row for row in reversed(chain)}
    # A message has the time and the model of the first turn between whose ends it is.
    written: dict[str, tuple[float | None, str | None]] = {}
    for turn in sorted(turns, key=lambda turn: str(turn.time)):
        hash, time = turn.tip, fields.seconds(turn.time, position)
        while hash is not None and hash in rows and hash not in written:
            written[hash] = time, turn.model
            hash = rows[hash]["parent_hash"]
    said = []
    for hash, row in rows.items():
        (time, model), role = written.get(hash, (None, None)), row["role"]
        extra = fields.kept(provider_metadata=row["provider_metadata"])
        parts, model = [*_parts_of(source, hash, position)], model if role == ASSISTANT else None
        said.append(Said(hash, row["parent_hash"], role, parts, time, model, extra=extra))
    # The tip that was written last; of two at one time, that of the thread.
    used = [(one.time, False, one.tip) for one in turns] + [(one.time, True, one.tip) for one in threads]
    tips = [(str(time), is_thread, tip) for time, is_thread, tip in used if tip]
    newest = max((turn for turn in turns if turn.tip), key=lambda turn: str(turn.time), default=None)
    return chat_of(
        position,
        threads[0].id,
        said,
        title=fields.text_or_none(threads[0].name),
        tip=max(tips, key=lambda one: one[:2], default=("", False, None))[2],
        created=fields.seconds(min((str(time) for time, *_ in used if time), default=None), position),
        model=newest.model if newest is not None else None,
    )


_TURN = ("parent_message_hash", "tip_message_hash", "model", "datetime_utc")
_MESSAGE = ("hash", "parent_hash", "role", "provider_metadata")
_PART = ("type", "tool_name", "text", "payload")


def _parts_of(source: Source, hash: str, position: str) -> Iterator[Part]:
    for row in source.records("parts", _PART, "WHERE message_hash = ? ORDER BY position", hash):
        kind, tool, text, data = row.values()
        payload = as_object(loads(data, f"a part of {position}"), f"a part of {position}") if data else {}
        text = payload.get("text") if text is None else text
        if text is None and isinstance(payload.get("text_ref"), list):
            text = "".join(_piece(source, piece) for piece in payload["text_ref"])
        id = fields.text(payload, "tool_call_id")
        if kind == "text":
            yield text or ""
        elif kind == "reasoning":
            yield from [Reasoning(text)] if text else []
        elif kind == "tool_call":
            yield ToolUse(str(tool or payload.get("name")), payload.get("arguments"), id)
        elif kind == "tool_result":
            failed = payload.get("exception")
            output, name = payload.get("output") or failed, fields.text_or_none(tool)
            yield ToolResult(output, id, name, failed is not None)
        elif kind == "attachment":
            yield _attachment(source, fields.at(payload, "attachment", "id"))
        else:
            yield Other({"type": kind, "text": text, **payload})


def _piece(source: Source, piece: Any) -> str:
    if "literal" in fields.record(piece):
        return str(piece["literal"])
    rows = source.records("fragments", ("content",), "WHERE id = ?", fields.at(piece, "fragment"))
    return "".join(str(row["content"]) for row in rows)


def _attachment(source: Source, id: Any) -> File:
    found = next(source.records("attachments", ("id", "type", "path", "url"), "WHERE id = ?", id), {})
    medium = str(found.get("type") or "").partition("/")[0]
    name = str(found.get("path") or found.get("url") or id or "").rpartition("/")[2]
    kind = medium if medium in ("image", "audio", "video") else "file"
    value = {"id": id} | {field: found.get(field) for field in ("type", "path", "url")}
    return File(kind, name or None, value, is_beside=True)


_RESPONSE = ("id", "prompt", "system", "response", "model", "datetime_utc", "reasoning")


def _older_chats(source: Source, known: set[str]) -> Chats:
    """The conversations of the tables before version 0.32, in which a row is a question and its answer."""
    rows = source.records("conversations", ("id", "name", "model"), "")
    abouts = {row.pop("id"): row for row in rows}
    query = "SELECT DISTINCT coalesce(conversation_id, id) FROM responses ORDER BY 1"
    for (name,) in [*source.rows(query)]:
        if name not in known:
            yield from checked(f"conversation {name!r}", _older_chat, source, str(name), abouts.get(name))


def _older_chat(source: Source, name: str, about: fields.Record | None) -> Chat:
    position = f"conversation {name!r}"
    said: list[Said] = []
    previous: str | None = None
    where = "WHERE conversation_id = ? OR (conversation_id IS NULL AND id = ?) ORDER BY datetime_utc, id"
    for row in [*source.records("responses", _RESPONSE, where, name, name)]:
        id, time = row["id"], fields.seconds(row["datetime_utc"], position)
        if row["system"]:
            said.append(Said(f"{id}-system", previous, SYSTEM, [row["system"]], time))
        results = _rows_of(source, "tool_results", ("output", "tool_call_id", "name"), id)
        files = _rows_of(source, "prompt_attachments", ("attachment_id",), id)
        fragments = (
            _piece(source, {"fragment": fragment})
            for (fragment,) in _rows_of(source, "prompt_fragments", ("fragment_id",), id, '"order"')
        )
        question: list[Part] = [*(ToolResult(*one) for one in results), *filter(None, fragments)]
        question += [*filter(None, [row["prompt"]]), *(_attachment(source, one) for (one,) in files)]
        if question:
            said.append(Said(f"{id}-prompt", previous, USER, question, time))
            previous = f"{id}-prompt"
        calls = _rows_of(source, "tool_calls", ("name", "arguments", "tool_call_id"), id)
        answer: list[Part] = [Reasoning(row["reasoning"])] if row["reasoning"] else []
        answer += [*filter(None, [row["response"]]), *(ToolUse(str(one), *rest) for one, *rest in calls)]
        said.append(Said(str(id), previous, ASSISTANT, answer, time, fields.text_or_none(row["model"])))
        previous = str(id)
    return chat_of(position, name, said, about)


def _rows_of(
    source: Source, table: str, names: Sequence[str], response: str, order: str = "rowid"
) -> list[tuple[Any, ...]]:
    """The rows of a table that belong to a response; none without the table."""
    if not source.has(**{table: {*names, "response_id"}}) or table not in source.tables:
        return []
    rows = source.records(table, names, f"WHERE response_id = ? ORDER BY {order}", response)
    return [tuple(row.values()) for row in rows]


FORMAT = Format(
    "llm",
    "logs.db of the program llm",
    _chats,
    is_database=lambda source: _has_tree(source) or source.has(**_OLDER),
)
