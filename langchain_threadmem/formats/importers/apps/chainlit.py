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
from langchain_threadmem.formats.importers.content_parts import Part, ToolResult, ToolUse
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
    return (
        fields.has(value, steps=list)
        and "userIdentifier" in value
        and all("threadId" in one for one in value["steps"])
    )


def _of_chainlit(value: fields.Record) -> Iterator[ChatRecord]:
    files: dict[Any, list[Any]] = {}
    for one in fields.values(value, "elements"):
        files.setdefault(fields.at(one, "forId"), []).append(one)
    steps = []
    for one in fields.records(value, "steps", "the thread"):
        kind, step = one.get("type"), {**one, "files": files.get(one.get("id"))}
        if kind in _CALLS:
            steps.append(step | {"role": ASSISTANT, "name": None, "tool": one.get("name")})
        elif kind in _ROLES:
            steps.append(step | {"role": _ROLES[kind]})
    yield ChatRecord(value, sorted(steps, key=lambda step: str(step.get("createdAt") or "")))


def _parts_of_chainlit(step: fields.Record) -> Iterator[Part]:
    if name := fields.text(step, "tool"):
        id = fields.text(step, "id")
        yield ToolUse(name, step.get("input"), id)
        yield ToolResult(step.get("output"), id, name, bool(step.get("isError")))
    else:
        yield from parts_of(step.get("output"))
    yield from files_of(step.get("files"))


def _rows(source: Source) -> Iterator[fields.Record]:
    for thread in source.records("threads", _TABLES["threads"], 'ORDER BY "createdAt", "id"'):
        tags, rest = thread["tags"], 'WHERE "threadId" = ? ORDER BY rowid'
        is_json = isinstance(tags, str) and tags[:1] == "["
        yield {
            **thread,
            "tags": loads(tags, f"thread {thread['id']!r}") if is_json else tags,
            "steps": [*source.records("steps", _STEP, rest, thread["id"])],
            "elements": [*source.records("elements", _ELEMENT, rest, thread["id"])],
        }


CHAINLIT = Program(
    "chainlit",
    "threads of Chainlit, or the database of its data layer",
    _is_chainlit,
    _parts_of_chainlit,
    _of_chainlit,
    is_database=lambda source: source.has(**_TABLES),
    rows=_rows,
)
