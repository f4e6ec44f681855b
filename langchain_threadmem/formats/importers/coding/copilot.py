"""GitHub Copilot: the events of a session (`events.jsonl`), one for each line.

What was rewound is not in the log. What a sub-agent says, what the program adds, such as the text of a skill,
and summaries of a compaction are asides.

The events follow github/copilot-sdk (nodejs/src/generated/session-events.ts) and the transcripts of
microsoft/vscode-copilot-chat, which have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.content_parts import Part, Reasoning, ToolResult
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, TOOL, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source

_FIRST = ("session.start", "session.resume", "user.message", "assistant.message")


def _is_log(values: Sequence[Any]) -> bool:
    return all(
        fields.has(value, type=str, data=dict) and value.keys() >= {"id", "timestamp", "parentId"}
        for value in values
    ) and any(value["type"] in _FIRST for value in values)


def _chats(source: Source) -> Chats:
    about: fields.Record = {"sessionId": source.folder if source.name == "events" else source.name}
    said: list[Said] = []

    def read(event: fields.Record, position: str) -> None:
        kind, data = event["type"], event["data"]
        if kind == "session.start":
            context = fields.record(data, "context")
            about.update(data | {"created": fields.seconds(data.get("startTime"), position), **context})
        about["model"] = fields.text(data, "newModel", "selectedModel", "model") or about.get("model")
        role, parts = _ROLES.get(kind), [*_parts(kind, data)]
        if role is None:
            return
        time, is_model = fields.seconds(event["timestamp"], position), role == ASSISTANT
        is_aside = role == SYSTEM or str(data.get("source") or "").startswith("skill-")
        is_aside |= bool(event.get("agentId") or data.get("parentToolCallId"))
        previous, model = said[-1].key if said else None, about["model"] if is_model else None
        said.append(Said(str(event["id"]), previous, role, parts, time, model, is_aside=is_aside))

    yield from source.each(read)
    metadata = {name: fields.text(about, field) for name, field in _METADATA.items()}
    name = fields.text(about, "sessionId") or source.name
    yield chat_of("the log", name, said, created=about.get("created"), metadata=fields.kept(**metadata))


def _parts(kind: str, data: fields.Record) -> Iterator[Part]:
    if kind == "tool.execution_complete":
        is_error = data.get("success") is False
        output = fields.at(data, "error", "message") if is_error else fields.at(data, "result", "content")
        yield ToolResult(output, fields.text(data, "toolCallId"), None, is_error)
        return
    if thought := fields.text(data, "reasoningText"):
        yield Reasoning(thought)
    yield from parts_of(data.get("summaryContent" if kind == "session.compaction_complete" else "content"))
    yield from files_of(data.get("attachments"))
    yield from parts_of([{**one, "type": "tool_call"} for one in data.get("toolRequests") or ()])


_METADATA = {"model": "model", "folder": "cwd", "branch": "branch"}
_ROLES = {
    "user.message": USER,
    "assistant.message": ASSISTANT,
    "tool.execution_complete": TOOL,
    "session.compaction_complete": SYSTEM,
}
FORMAT = Format("copilot", "a session of GitHub Copilot", _chats, is_log=_is_log)
