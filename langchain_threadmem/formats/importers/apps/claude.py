"""Claude's export: `conversations.json`, in which each conversation has a list of `chat_messages`.

A message with tool calls and results becomes a message for each call and each result, followed by its text.
The text of attachments is text of the person who pasted it; files are imported as references.

Design chats, and single chats of the web API with `current_leaf_message_uuid`, have the same fields or
`messages`. The fields follow Sinity/polylogue and queelius/ctk.
"""

from __future__ import annotations

from collections.abc import Iterator

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.chats import Chat, chat_of, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record, list_in, object_in
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    File,
    Other,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, each_item
from langchain_threadmem.messages.records import as_list, as_object

_PARENT = "parent_message_uuid"
_ROLES = {"human": USER, "user": USER, "assistant": ASSISTANT}
_SKIPPED = ("token_budget", "flag")
"""The types of blocks that say nothing."""
_OF_FILES = ("files", "files_v2", "sync_sources")


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of Claude."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("chat_messages"), list) or _is_design(value)


def _is_design(value: Record) -> bool:
    """Whether a conversation is a design chat."""
    messages = value.get("messages")
    return isinstance(messages, list) and any(
        isinstance(one, dict) and isinstance(one.get("content"), dict) and "contentBlocks" in one["content"]
        for one in messages
    )


def _chat(record: Record, position: str) -> Chat:
    name = text_or_none(record.get("uuid")) or text_or_none(record.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'uuid'; it is not a conversation of Claude")
    field = "chat_messages" if "chat_messages" in record else "messages"
    said: list[Said] = []
    for number, item in enumerate(as_list(record.get(field), f"{field!r} of {position}"), 1):
        where = f"{position}, message {number}"
        message = as_object(item, where)
        previous = said[-1].key if said else None
        parent = text_or_none(message.get(_PARENT)) if _PARENT in message else previous
        said.append(_said(message, where, parent))
    return chat_of(
        position,
        name,
        entries_of(said),
        title=text_or_none(record.get("name")) or text_or_none(record.get("title")),
        tip=text_or_none(record.get("current_leaf_message_uuid")),
        created=seconds(record.get("created_at"), position),
        metadata=_metadata(record),
    )


def _metadata(record: Record) -> Record:
    project = object_in(record, "project")
    values = {
        "model": text_or_none(record.get("model")),
        "starred": bool(record.get("is_starred")) or None,
        "project": text_or_none(record.get("project_uuid")) or text_or_none(project.get("uuid")),
        "project_name": text_or_none(project.get("name")),
        "summary": text_or_none(record.get("summary")),
    }
    return {name: value for name, value in values.items() if value}


def _said(message: Record, position: str, parent: str | None) -> Said:
    key = text_or_none(message.get("uuid")) or text_or_none(message.get("id"))
    if key is None:
        raise InputError(f"{position} has no 'uuid'")
    inner = message.get("content")
    design = inner if isinstance(inner, dict) else {}
    sender = message.get("sender") or design.get("role") or message.get("role")
    role = _ROLES.get(str(sender).lower())
    if role is None:
        raise InputError(f"{position} has the sender {sender!r}; use human or assistant")
    extra: Record = {}
    parts = [*_parts(message, design, position, extra), *_attachments(message, extra)]
    return Said(
        key,
        parent,
        role,
        parts,
        seconds(message.get("created_at") or message.get("timestamp"), position),
        text_or_none(message.get("model")),
        extra=extra,
    )


def _parts(message: Record, design: Record, position: str, extra: Record) -> Iterator[Part]:
    """The parts of the content; `text` doubles them, and is used without a content only."""
    subject = f"'content' of {position}"
    content = message.get("content") if not design else design.get("contentBlocks") or design.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = as_list(content or [], subject)
    if not blocks and isinstance(message.get("text"), str):
        blocks = [{"type": "text", "text": message["text"]}]
    for item in blocks:
        block = as_object(item, subject)
        yield from _of_block(block, extra)
    for name in ("stop_reason", "truncated", "compaction_summary", "feedback"):
        if message.get(name):
            extra[name] = message[name]


def _of_block(block: Record, extra: Record) -> Iterator[Part]:
    kind = block.get("type")
    if kind in _SKIPPED:
        return
    if kind == "text":
        if (text := str(block.get("text") or "")).strip():
            yield text
        if block.get("citations"):
            extra.setdefault("citations", []).extend(as_list(block["citations"], "'citations'"))
    elif kind in ("thinking", "redacted_thinking"):
        summaries = [one.get("summary") for one in block.get("summaries") or () if isinstance(one, dict)]
        summary = "\n".join(text for text in summaries if isinstance(text, str))
        yield Reasoning(str(block.get("thinking") or block.get("text") or ""), summary)
    elif kind == "tool_use":
        yield ToolUse(str(block.get("name")), block.get("input"), text_or_none(block.get("id")))
    elif kind == "tool_result":
        yield _result(block)
    elif kind == "tool_call" and isinstance(call := block.get("toolCall"), dict):
        id = text_or_none(call.get("id"))
        yield ToolUse(str(call.get("name")), call.get("input"), id)
        if call.get("output") is not None:
            yield ToolResult(call["output"], id, text_or_none(call.get("name")), bool(call.get("isError")))
    elif isinstance(block.get("text"), str) and block["text"].strip():
        yield block["text"]
        yield Other(block)
    else:
        yield Other(block)


def _result(block: Record) -> ToolResult:
    output = block.get("content")
    if not output and block.get("structured_content") is not None:
        output = block["structured_content"]
    id = text_or_none(block.get("tool_use_id"))
    return ToolResult(output or "", id, text_or_none(block.get("name")), bool(block.get("is_error")))


def _attachments(message: Record, extra: Record) -> Iterator[Part]:
    """Pasted text and the text of attached documents, which is text of the person; references to files."""
    for one in list_in(message, "attachments"):
        if not isinstance(one, dict):
            yield Other(one)
            continue
        name = text_or_none(one.get("file_name"))
        others = {key: value for key, value in one.items() if key != "extracted_content"}
        extra.setdefault("attachments", []).append(others)
        if (text := one.get("extracted_content")) and isinstance(text, str) and text.strip():
            yield f"{File('file', name)}\n{text}" if name else text
        elif name:
            yield File("file", name, others, is_beside=True)
    known: set[str] = set()
    for field in _OF_FILES:
        for one in list_in(message, field):
            name = text_or_none(one.get("file_name") or one.get("name")) if isinstance(one, dict) else None
            id = str(one.get("file_uuid") or one.get("uuid") or name) if isinstance(one, dict) else str(one)
            if id not in known:
                known.add(id)
                kind = "image" if isinstance(one, dict) and one.get("file_kind") == "image" else "file"
                yield File(kind, name, one, is_beside=True)


FORMAT = Format("claude", "conversations.json of Claude's export", each_item(_chat), is_item)
