"""GitHub Copilot: the events of a session (`events.jsonl`), one for each line.

What was rewound is not in the log. What a sub-agent says, what the program adds, such as the text of a skill,
and summaries of a compaction are asides.

The events follow github/copilot-sdk (nodejs/src/generated/session-events.ts) and the transcripts of
microsoft/vscode-copilot-chat, which have the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.parts import Part, Reasoning, ToolResult, ToolUse
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, TOOL, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source

_FIRST = ("session.start", "session.resume", "user.message", "assistant.message")


def is_log(values: Sequence[Any]) -> bool:
    """Whether the lines of a file are events of a session."""
    return all(
        isinstance(fields.at(value, "type"), str)
        and isinstance(fields.at(value, "data"), dict)
        and value.keys() >= {"id", "timestamp", "parentId"}
        for value in values
    ) and any(value["type"] in _FIRST for value in values)


def chats(source: Source) -> Chats:
    """The conversation of a log."""
    session = _CopilotSession(source.folder if source.name == "events" else source.name)
    yield from source.each(lambda event, position: session.read(event, position))
    metadata = fields.kept(model=session.model, folder=session.folder, branch=session.branch)
    yield chat_of("the log", session.name, session.said, created=session.created, metadata=metadata)


class _CopilotSession:
    """The messages of a log, read event by event.

    Attributes:
        name: The id of the session.
        said: The messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: list[Said] = []
        self.created: float | None = None
        self.model: str | None = None
        self.folder: str | None = None
        self.branch: str | None = None

    def read(self, event: fields.Record, position: str) -> None:
        """Read an event."""
        kind, data = event["type"], fields.record(event, "data")
        if kind == "session.start":
            self.name = fields.text(data, "sessionId") or self.name
            self.created = fields.seconds(data.get("startTime"), position)
            self.folder = fields.text(data.get("context"), "cwd")
            self.branch = fields.text(data.get("context"), "branch")
        self.model = fields.text(data, "newModel", "selectedModel", "model") or self.model
        read = _READERS.get(kind)
        if read is None:
            return
        role, parts = read(data)
        is_aside = role == SYSTEM or str(data.get("source") or "").startswith("skill-")
        self.said.append(
            Said(
                str(event["id"]),
                self.said[-1].key if self.said else None,
                role,
                parts,
                fields.seconds(event["timestamp"], position),
                self.model if role == ASSISTANT else None,
                is_aside=is_aside or bool(event.get("agentId") or data.get("parentToolCallId")),
            )
        )


def _of_user(data: fields.Record) -> tuple[str, list[Part]]:
    return USER, [*parts_of(data.get("content")), *files_of(data.get("attachments"))]


def _of_assistant(data: fields.Record) -> tuple[str, list[Part]]:
    thought = fields.text(data, "reasoningText")
    calls = [
        ToolUse(fields.text(one, "name") or "tool", one.get("arguments"), fields.text(one, "toolCallId"))
        for one in fields.records({"toolRequests": [], **data}, "toolRequests", "a message")
    ]
    return ASSISTANT, [*([Reasoning(thought)] if thought else []), *parts_of(data.get("content")), *calls]


def _of_tool(data: fields.Record) -> tuple[str, list[Part]]:
    is_error = data.get("success") is False
    output = fields.at(data, "error", "message") if is_error else fields.at(data, "result", "content")
    return TOOL, [ToolResult(output, fields.text(data, "toolCallId"), None, is_error)]


def _of_summary(data: fields.Record) -> tuple[str, list[Part]]:
    return SYSTEM, parts_of(data.get("summaryContent"))


_READERS = {
    "user.message": _of_user,
    "assistant.message": _of_assistant,
    "tool.execution_complete": _of_tool,
    "session.compaction_complete": _of_summary,
}
FORMAT = Format("copilot", "a session of GitHub Copilot", chats, is_log=is_log)
