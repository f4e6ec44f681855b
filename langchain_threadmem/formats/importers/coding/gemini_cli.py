"""Gemini CLI: the log of a session (`session-*.jsonl`), or a document with `messages` of earlier versions.

After a rewind the next message takes the place of a message, as its sibling. A repeated id replaces a
message. Notes of the program are asides. The fields follow google-gemini/gemini-cli.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.content_parts import (
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    at_once,
    called,
)
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id

_ROLES = {"user": USER, "gemini": ASSISTANT, "model": ASSISTANT}

_WRITTEN_BY_PROGRAM = ("<session_context>", "<hook_context>")
"""The beginnings of messages of the role of the person that the program has written."""
_REWIND, _SET = "$rewindTo", "$set"


def _is_log(values: Sequence[Any]) -> bool:
    types = (*_ROLES, "info", "error", "warning")
    return any(map(_is_header, values)) and all(
        _is_header(value)
        or any(name in value for name in (_REWIND, _SET))
        or (value["type"] in types and "content" in value)
        for value in values
    )


def _is_header(value: Any) -> bool:
    return fields.has(value, sessionId=str) and "projectHash" in value


def _chats(source: Source) -> Chats:
    about: fields.Record = {}
    said: dict[str, Said] = {}
    last: str | None = None

    def read(line: fields.Record, position: str) -> None:
        nonlocal last
        if _REWIND in line:
            one = said.get(str(line[_REWIND]))
            last = one.parent if one is not None else None
            return
        values = line[_SET] if isinstance(line.get(_SET), dict) else line if _is_header(line) else {}
        about.update({name: value for name, value in values.items() if name != "messages"})
        if isinstance(values.get("messages"), list):
            # A list of all messages, as earlier versions wrote it; one that is shorter now was rewound.
            last = None
        listed = {"messages": [], **values} if values or _SET in line else {"messages": [line]}
        for message in fields.records(listed, "messages", position):
            key = fields.text(message, "id") or chained_id("import-", last, message)
            said[key] = _said(key, said[key].parent if key in said else last, message, position)
            last = key

    yield from source.each(read)
    kind = about.get("kind") if about.get("kind") != "main" else None
    metadata = fields.kept(project=fields.text(about, "projectHash"), kind=kind)
    name, title = fields.text(about, "sessionId") or source.name, fields.text(about, "summary")
    yield chat_of("the log", name, said.values(), about, title=title, tip=last, metadata=metadata)


def _said(key: str, parent: str | None, message: fields.Record, position: str) -> Said:
    role = _ROLES.get(str(message.get("type")), SYSTEM)
    parts, time = [*_parts(message)], fields.seconds(message.get("timestamp"), position)
    is_aside = role == USER and bool(parts) and str(parts[0]).startswith(_WRITTEN_BY_PROGRAM)
    model = fields.text(message, "model") if role == ASSISTANT else None
    extra = fields.kept(display=message.get("displayContent"))
    return Said(key, parent, role, parts, time, model, None, is_aside, extra)


def _parts(message: fields.Record) -> Iterator[Part]:
    """The parts of a message; newer sessions have the thoughts and calls in the content as well."""
    content = parts_of(message.get("content"))
    is_whole = any(isinstance(part, ToolUse | Reasoning) for part in content)
    for thought in () if is_whole else message.get("thoughts") or ():
        if isinstance(thought, dict):
            lines = (fields.text_or_none(thought.get(name)) for name in ("subject", "description"))
            yield Reasoning("\n".join(line for line in lines if line))
    steps = at_once(part for call in message.get("toolCalls") or () for part in _call(call))
    if is_whole:
        yield from [*content, *(part for part in steps if isinstance(part, ToolResult))]
    else:
        yield from [*steps, *content]


def _call(call: fields.Record) -> Iterator[Part]:
    """A call and its result."""
    outputs = [
        part.output if isinstance(part, ToolResult) else part
        for part in parts_of(call.get("result"))
        if isinstance(part, ToolResult | str)
    ]
    output = (outputs if len(outputs) > 1 else outputs[0]) if outputs else call.get("resultDisplay")
    id, name = fields.text(call, "id"), fields.text(call, "name")
    yield from called(name, call.get("args"), id, output, call.get("status") == "error")


FORMAT = Format("gemini_cli", "a session of Gemini CLI", _chats, is_log=_is_log)
