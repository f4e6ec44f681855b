"""SQL: OpenCode and Goose, which store sessions in a database and export a session as JSON.

The messages of a session are a chain. In OpenCode each step of an answer is a message, whose calls were made
at once, and `parentID` names the question of all steps. Undone messages stay until the next question.
Texts that OpenCode adds to a question are no content, and messages that Goose hides from people are asides.

The fields and tables follow opencode-ai 1.18.33, which wrote the sample of the tests, and block/goose
(crates/goose/src: session/session_manager.rs, conversation/message.rs and conversation/tool_result_serde.rs).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.content_parts import (
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    at_once,
    called,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import loads


def _is_opencode(value: Any) -> bool:
    return (
        fields.has(value, info=dict, messages=list)
        and fields.has(value["info"], id=str)
        and all(fields.has(one, info=dict) and "parts" in one for one in value["messages"])
    )


def _of_opencode(value: fields.Record) -> Iterator[ChatRecord]:
    info, time = value["info"], fields.record(value, "info", "time")
    messages = [_message_of_opencode(one) for one in fields.records(value, "messages", "the session")]
    keys = [one.get("id") for one in messages]
    undone = fields.at(info, "revert", "messageID")
    yield ChatRecord(
        {"id": info["id"], "title": info.get("title"), "created": time.get("created")},
        messages,
        others={
            "tip": keys[keys.index(undone) - 1] if undone in keys[1:] else None,
            "archived": fields.seconds(time.get("archived"), "the session"),
            "metadata": fields.kept(folder=info.get("directory"), parent=info.get("parentID")),
        },
    )


def _message_of_opencode(message: fields.Record) -> fields.Record:
    info = message["info"]
    return {
        "id": info.get("id"),
        "role": info.get("role"),
        "created": fields.at(info, "time", "created"),
        "model": info.get("modelID"),
        "error": info.get("error"),
        "parts": message["parts"],
        "is_summary": info.get("role") == "assistant" and info.get("summary") is True,
    }


def _parts_of_opencode(message: fields.Record) -> list[Part]:
    return at_once(part for one in fields.records(message, "parts", "a message") for part in _of_part(one))


_IDS = ("id", "sessionID", "messageID")
"""The fields of parts that only exported parts have."""


def _of_part(record: fields.Record) -> Iterator[Part]:
    part = {name: value for name, value in record.items() if name not in _IDS}
    kind = part.get("type")
    if kind == "text" and not part.get("synthetic"):
        yield from parts_of(part.get("text"))
    elif kind == "reasoning":
        yield Reasoning(str(part.get("text") or ""))
    elif kind == "file":
        yield file_of(part, is_beside=True)
    elif kind == "tool":
        state, status = fields.record(part, "state"), fields.at(part, "state", "status")
        output = {"completed": state.get("output") or "", "error": state.get("error") or ""}.get(str(status))
        name, id = fields.text(part, "tool"), fields.text(part, "callID")
        yield from called(name, state.get("input"), id, output, status == "error")
        yield from files_of(state.get("attachments"))
    elif kind in ("text", "subtask", "agent"):
        yield Other(part)


_OPENCODE = {
    "session": {"id", "parent_id", "directory", "title", "revert", "time_created", "time_archived"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "data"},
}


def _rows_of_opencode(source: Source) -> Iterator[fields.Record]:
    for session in source.records("session", _OPENCODE["session"], "ORDER BY id"):
        messages = []
        where = "WHERE session_id = ? ORDER BY time_created, id"
        for one in source.records("message", ("id", "data"), where, session["id"]):
            key = one["id"]
            rows = source.records("part", ("data",), "WHERE message_id = ? ORDER BY id", key)
            parts = [loads(row["data"], f"a part of {key!r}") for row in rows]
            messages.append({"info": {"id": key, **loads(one["data"], f"message {key!r}")}, "parts": parts})
        revert = session["revert"]
        info = {
            **session,
            "parentID": session["parent_id"],
            "revert": loads(revert, f"session {session['id']!r}") if revert else None,
            "time": {"created": session["time_created"], "archived": session["time_archived"]},
        }
        yield {"info": info, "messages": messages}


OPENCODE = Program(
    "opencode",
    "a session of OpenCode, or opencode.db",
    _is_opencode,
    _parts_of_opencode,
    _of_opencode,
    asides=("is_summary",),
    is_database=lambda source: source.has(**_OPENCODE),
    rows=_rows_of_opencode,
)


def _of_goose(value: fields.Record) -> Iterator[ChatRecord]:
    name = fields.text(value, "name", "description")
    messages = [
        {**one, "is_hidden": fields.at(one, "metadata", "userVisible") is False}
        for one in fields.records(value, "conversation", "the session")
    ]
    yield ChatRecord({**value, "name": name, "cwd": value.get("working_dir")}, messages)


def _parts_of_goose(message: fields.Record) -> Iterator[Part]:
    for block in fields.records(message, "content", "a message"):
        kind, id = block.get("type"), fields.text(block, "id")
        if kind in ("toolRequest", "frontendToolRequest"):
            call = fields.record(block, "toolCall", "value")
            yield ToolUse(fields.text(call, "name") or "tool", call.get("arguments"), id)
        elif kind == "toolResponse":
            result = fields.record(block, "toolResult")
            value = result.get("value")
            output = value.get("content") if isinstance(value, dict) else value
            is_error = result.get("status") == "error" or bool(fields.at(value, "isError"))
            yield ToolResult(output if "value" in result else result.get("error"), id, None, is_error)
        elif kind in ("text", "image", "thinking"):
            yield from parts_of(block)
        else:
            yield Other(block)


_GOOSE = {
    "sessions": {"id", "working_dir", "description", "created_at"},
    "messages": {"id", "session_id", "role", "content_json", "created_timestamp"},
}


def _rows_of_goose(source: Source) -> Iterator[fields.Record]:
    """The sessions that Goose lists; a message has the id with which Goose exports it."""
    kinds = "WHERE session_type IN ('user', 'scheduled')"
    is_listed = kinds if "session_type" in source.tables["sessions"] else ""
    columns = ("id", "name", "description", "working_dir", "created_at")
    for session in source.records("sessions", columns, f"{is_listed} ORDER BY id"):
        id, conversation = session["id"], []
        names, where = ("role", "content_json", "created_timestamp", "metadata_json"), "WHERE session_id = ?"
        rows = source.records("messages", names, f"{where} ORDER BY timestamp, id", id)
        for number, row in enumerate(rows):
            position = f"message {number} of session {id!r}"
            about, content = row["metadata_json"], loads(row["content_json"], position)
            one = {"id": f"msg_{id}_{number}", "created": row["created_timestamp"], "content": content}
            about = loads(about, position) if about else {}
            conversation.append(one | {"role": row["role"], "metadata": about})
        yield {**session, "conversation": conversation}


GOOSE = Program(
    "goose",
    "a session of Goose, or sessions.db",
    lambda value: fields.has(value, conversation=list) and "working_dir" in value,
    _parts_of_goose,
    _of_goose,
    asides=("is_hidden",),
    is_database=lambda source: source.has(**_GOOSE),
    rows=_rows_of_goose,
)
PROGRAMS = (OPENCODE, GOOSE)
