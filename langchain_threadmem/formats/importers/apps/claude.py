"""Claude's export: `conversations.json`, in which each conversation has a list of `chat_messages`.

A message with tool calls and results becomes a message for each call and each result, followed by its text.
The text of attachments is text of the person who pasted it; files are imported as references.

Design chats, and single chats of the web API with `current_leaf_message_uuid`, have the same fields or
`messages`. The fields follow Sinity/polylogue and queelius/ctk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.messages.records import as_list, as_object

_OF_FILES = ("files", "files_v2", "sync_sources")
_CITATIONS, _ATTACHMENTS = "citations", "attachments"


def _is_claude(value: Any) -> bool:
    """Whether a value is a conversation, or a design chat."""
    is_design = any(
        "contentBlocks" in fields.record(one, "content") for one in fields.values(value, "messages")
    )
    return isinstance(fields.at(value, "chat_messages"), list) or is_design


def _of_claude(value: fields.Record) -> Iterator[ChatRecord]:
    field = "chat_messages" if "chat_messages" in value else "messages"
    messages = [_message(one) for one in fields.records(value, field, "the conversation")]
    metadata = fields.kept(
        project=fields.text(value, "project_uuid") or fields.text(fields.record(value, "project"), "uuid"),
        project_name=fields.text(fields.record(value, "project"), "name"),
        summary=fields.text(value, "summary"),
    )
    yield ChatRecord(value, messages, others={"metadata": metadata})


def _message(message: fields.Record) -> fields.Record:
    """A message with its blocks; `text` doubles them, and is read without blocks only."""
    design, content = fields.record(message, "content"), message.get("content")
    blocks = design.get("contentBlocks") or design.get("content") if design else content
    if isinstance(blocks, str) or not blocks:
        blocks = [{"type": "text", "text": blocks or message.get("text")}]
    blocks = [as_object(one, "a block of 'content'") for one in as_list(blocks, "'content'")]
    citations = [one for block in blocks for one in as_list(block.get(_CITATIONS) or [], "'citations'")]
    attached = [
        {name: value for name, value in one.items() if name != "extracted_content"}
        for one in fields.values(message, _ATTACHMENTS)
        if isinstance(one, dict)
    ]
    return {
        **message,
        "role": message.get("sender") or design.get("role") or message.get("role"),
        "blocks": blocks,
        _CITATIONS: citations,
        _ATTACHMENTS: attached,
        "attached": fields.values(message, _ATTACHMENTS),
    }


def _parts(message: fields.Record) -> Iterator[Part]:
    for block in message["blocks"]:
        yield from _of_block(block)
    yield from _attachments(message)


def _of_block(block: fields.Record) -> Iterator[Part]:
    kind = block.get("type")
    call = fields.record(block, "toolCall")
    if kind == "tool_result":
        output = block.get("content") or block.get("structured_content") or ""
        id, name = fields.text(block, "tool_use_id"), fields.text(block, "name")
        yield ToolResult(output, id, name, bool(block.get("is_error")))
    elif kind == "tool_call" and call:
        id, name = fields.text(call, "id"), str(call.get("name"))
        yield ToolUse(name, call.get("input"), id)
        if call.get("output") is not None:
            yield ToolResult(call["output"], id, name, bool(call.get("isError")))
    elif kind in ("thinking", "redacted_thinking"):
        summaries = (fields.text(one, "summary") for one in fields.values(block, "summaries"))
        text = str(block.get("thinking") or block.get("text") or "")
        yield Reasoning(text, "\n".join(one for one in summaries if one))
    else:
        yield from parts_of(block)


def _attachments(message: fields.Record) -> Iterator[Part]:
    """Pasted text and the text of attached documents, which is text of the person; references to files."""
    for one in message["attached"]:
        name, text = fields.text(one, "file_name"), fields.at(one, "extracted_content")
        if not isinstance(one, dict):
            yield Other(one)
        elif isinstance(text, str) and text.strip():
            yield f"{File('file', name)}\n{text}" if name else text
        elif name:
            yield File("file", name, one, is_beside=True)
    files = [one for field in _OF_FILES for one in fields.values(message, field)]
    by_id = {
        fields.text(one, "file_uuid", "uuid", "file_name", "name") or str(one): one for one in reversed(files)
    }
    for one in reversed(by_id.values()):
        kind = "image" if fields.at(one, "file_kind") == "image" else "file"
        yield File(kind, fields.text(one, "file_name", "name"), one, is_beside=True)


CLAUDE = Program(
    "claude",
    "conversations.json of Claude's export",
    _is_claude,
    _parts,
    _of_claude,
    names=("uuid", "id"),
    parents=("parent_message_uuid",),
    kept=("stop_reason", "truncated", "compaction_summary", "feedback", _CITATIONS, _ATTACHMENTS),
)
