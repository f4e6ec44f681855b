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
from langchain_threadmem.formats.importers.parts import Part, Reasoning, ToolResult, ToolUse, at_once
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id

_ROLES = {"user": USER, "gemini": ASSISTANT, "model": ASSISTANT}
_TYPES = (*_ROLES, "info", "error", "warning")
_WRITTEN_BY_PROGRAM = ("<session_context>", "<hook_context>")
"""The beginnings of messages of the role of the person that the program has written."""
_REWIND, _SET = "$rewindTo", "$set"


def is_log(values: Sequence[Any]) -> bool:
    """Whether the lines of a file are those of a session, or a document is a session."""
    if not all(isinstance(value, dict) for value in values) or not any(map(_is_header, values)):
        return False
    return all(
        _is_header(value) or _REWIND in value or _SET in value or _is_message(value) for value in values
    )


def _is_header(value: fields.Record) -> bool:
    return isinstance(value.get("sessionId"), str) and "projectHash" in value


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _TYPES and "content" in value


def chats(source: Source) -> Chats:
    """The conversation of a log."""
    session = _GeminiSession()
    yield from source.each(session.read)
    about = session.about
    yield chat_of(
        "the log",
        fields.text(about, "sessionId") or source.name,
        session.said.values(),
        about,
        title=fields.text(about, "summary"),
        tip=session.last,
        metadata=fields.kept(
            project=fields.text(about, "projectHash"),
            kind=about.get("kind") if about.get("kind") != "main" else None,
        ),
    )


class _GeminiSession:
    """The messages of a log, read line by line.

    Attributes:
        about: The values of the header and of later changes.
        said: The messages by id.
        last: The message that the next one continues.
    """

    def __init__(self) -> None:
        self.about: fields.Record = {}
        self.said: dict[str, Said] = {}
        self.last: str | None = None

    def read(self, line: fields.Record, position: str) -> None:
        """Read a line."""
        if _REWIND in line:
            self._rewind(str(line[_REWIND]))
        elif isinstance(line.get(_SET), dict):
            self._set(line[_SET], position)
        elif _is_header(line):
            self._set(line, position)
        else:
            self._add(line, position)

    def _set(self, values: fields.Record, position: str) -> None:
        self.about |= {name: value for name, value in values.items() if name != "messages"}
        if isinstance(values.get("messages"), list):
            # A list of all messages, as earlier versions wrote it; one that is shorter now was rewound.
            self.last = None
            for message in fields.records(values, "messages", position):
                self._add(message, position)

    def _rewind(self, id: str) -> None:
        one = self.said.get(id)
        self.last = one.parent if one is not None else None

    def _add(self, message: fields.Record, position: str) -> None:
        key = fields.text(message, "id") or chained_id("import-", self.last, message)
        before = self.said.get(key)
        one = _said(key, before.parent if before is not None else self.last, message, position)
        self.said[key] = one
        self.last = key


def _said(key: str, parent: str | None, message: fields.Record, position: str) -> Said:
    role = _ROLES.get(str(message.get("type")), SYSTEM)
    parts = [*_parts(message)]
    return Said(
        key,
        parent,
        role,
        parts,
        fields.seconds(message.get("timestamp"), position),
        fields.text(message, "model") if role == ASSISTANT else None,
        is_aside=role == USER and bool(parts) and str(parts[0]).startswith(_WRITTEN_BY_PROGRAM),
        extra=fields.kept(display=message.get("displayContent")),
    )


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
        yield from content
        yield from (part for part in steps if isinstance(part, ToolResult))
    else:
        yield from steps
        yield from content


def _call(call: fields.Record) -> Iterator[Part]:
    """A call and its result."""
    id, name = fields.text(call, "id"), fields.text(call, "name") or "tool"
    yield ToolUse(name, call.get("args"), id)
    outputs = [part for part in parts_of(call.get("result")) if isinstance(part, ToolResult | str)]
    if outputs:
        output = [part.output if isinstance(part, ToolResult) else part for part in outputs]
        yield ToolResult(output if len(output) > 1 else output[0], id, name, call.get("status") == "error")
    elif call.get("resultDisplay") is not None:
        yield ToolResult(call["resultDisplay"], id, name, call.get("status") == "error")


FORMAT = Format("gemini_cli", "a session of Gemini CLI", chats, is_log=is_log)
