"""SQL: threads of Chainlit, as its data layer returns them, or in the SQLite database of this layer.

A thread has steps: messages, and what the program did for an answer. A step of a tool or a retrieval is a
call with its result; other steps repeat the texts of the messages. A step names the step around it, not the
message before it, so the messages are a chain by time.

The fields and the tables follow chainlit 2.12.0 (`data/sql_alchemy.py`), which wrote the sample of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.parts import Part, ToolResult, ToolUse
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import loads

_ROLES = {"user_message": USER, "assistant_message": ASSISTANT, "system_message": SYSTEM}
_CALLS = ("tool", "retrieval")
_TABLES = {
    "threads": {"id", "createdAt", "name", "tags"},
    "steps": {"id", "threadId", "name", "type", "input", "output", "isError", "createdAt"},
}
_STEP = ("id", "name", "type", "input", "output", "isError", "createdAt")
_ELEMENT = ("id", "forId", "type", "name", "url", "objectKey", "mime", "size")


def _is_chainlit(value: Any) -> bool:
    steps = fields.at(value, "steps")
    return isinstance(steps, list) and "userIdentifier" in value and all("threadId" in one for one in steps)


def _of_chainlit(value: fields.Record) -> Iterator[ChatRecord]:
    files: dict[Any, list[Any]] = {}
    for one in fields.values(value, "elements"):
        files.setdefault(fields.at(one, "forId"), []).append(one)
    steps = [
        {**step, "files": files.get(one.get("id"))}
        for one in fields.records(value, "steps", "the thread")
        if (step := _message_of(one)) is not None
    ]
    yield ChatRecord(value, sorted(steps, key=lambda step: str(step.get("createdAt") or "")))


def _message_of(step: fields.Record) -> fields.Record | None:
    """A step as a message; `None` for a step that is neither a message nor a call."""
    kind = step.get("type")
    if kind in _CALLS:
        return {**step, "role": ASSISTANT, "name": None, "tool": step.get("name")}
    return {**step, "role": _ROLES[kind]} if kind in _ROLES else None


def _parts_of_chainlit(step: fields.Record) -> Iterator[Part]:
    if name := fields.text(step, "tool"):
        id = fields.text(step, "id")
        yield ToolUse(name, step.get("input"), id)
        yield ToolResult(step.get("output"), id, name, bool(step.get("isError")))
    else:
        yield from parts_of(step.get("output"))
    yield from files_of(step.get("files"))


def _rows(source: Source) -> Iterator[fields.Record]:
    for id, created, name, tags in source.rows(
        'SELECT "id", "createdAt", "name", "tags" FROM threads ORDER BY "createdAt", "id"'
    ):
        yield {
            "id": id,
            "createdAt": created,
            "name": name,
            "tags": loads(tags, f"thread {id!r}") if isinstance(tags, str) and tags[:1] == "[" else tags,
            "steps": _records(source, "steps", _STEP, id),
            "elements": _records(source, "elements", _ELEMENT, id),
        }


def _records(source: Source, table: str, columns: tuple[str, ...], thread: str) -> list[fields.Record]:
    present = [name for name in columns if name in source.tables.get(table, ())]
    if not present:
        return []
    listed = ", ".join(f'"{name}"' for name in present)
    rows = source.rows(f'SELECT {listed} FROM {table} WHERE "threadId" = ? ORDER BY rowid', thread)
    return [dict(zip(present, row, strict=True)) for row in rows]


CHAINLIT = Program(
    "chainlit",
    "threads of Chainlit, or the database of its data layer",
    _is_chainlit,
    _parts_of_chainlit,
    _of_chainlit,
    is_database=lambda source: all(source.tables.get(name, set()) >= its for name, its in _TABLES.items()),
    rows=_rows,
)
