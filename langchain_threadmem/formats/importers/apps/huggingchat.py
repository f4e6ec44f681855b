"""HuggingChat: `conversations.json` of an export, a tree by the ancestors of each message.

Old chats have no ancestors: they are one chain. The fields follow huggingface/chat-ui.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record, list_in, object_in
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    Other,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, each_item
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_SENDERS = ("user", "assistant", "system")


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of HuggingChat."""
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not isinstance(value, dict):
        return False
    if not messages:
        return "rootMessageId" in value or ("_id" in value and "model" in value)
    return all(isinstance(one, dict) and one.get("from") in _SENDERS for one in messages)


def _chat(record: Record, position: str) -> Chat:
    name = _id(record.get("_id")) or text_or_none(record.get("id"))
    if name is None:
        raise InputError(f"{position} has no '_id'; it is not a conversation of HuggingChat")
    messages = [
        as_object(one, f"a message of {position}") for one in as_list(record["messages"], "'messages'")
    ]
    is_tree = any(one.get("ancestors") or one.get("children") for one in messages)
    said: list[Said] = []
    for message in messages:
        previous = said[-1].key if said else None
        ancestors = [_id(one) for one in message.get("ancestors") or ()]
        parent = (ancestors[-1] if ancestors else None) if is_tree else previous
        said.append(_said(message, parent, previous, position))
    return chat_of(
        position,
        name,
        entries_of(said),
        title=text_or_none(record.get("title")),
        created=seconds(record.get("createdAt"), position),
        metadata=kept(
            model=text_or_none(record.get("model")),
            assistant=_id(record.get("assistantId")),
            instructions=text_or_none(record.get("preprompt")),
        ),
    )


def _id(value: Any) -> str | None:
    """An id as text, or of MongoDB (`{"$oid": ...}`)."""
    return text_or_none(value.get("$oid")) if isinstance(value, dict) else text_or_none(value)


def _said(message: Record, parent: str | None, previous: str | None, position: str) -> Said:
    role = str(message["from"])
    parts: list[Part] = []
    if isinstance(message.get("reasoning"), str) and message["reasoning"]:
        parts.append(Reasoning(message["reasoning"]))
    # The updates of a message are its steps; the last of them repeats the text.
    for update in list_in(message, "updates"):
        if isinstance(update, dict) and update.get("type") == "tool":
            parts += _step(update)
    parts += parts_of(message.get("content"))
    parts += files_of(message.get("files"))
    routed = message.get("routerMetadata")
    model = text_or_none(routed.get("model")) if isinstance(routed, dict) else None
    return Said(
        _id(message.get("id")) or chained_id("import-", previous, message),
        parent,
        role,
        parts,
        seconds(message.get("createdAt"), position),
        model if role == ASSISTANT else None,
        extra={name: message[name] for name in ("interrupted", "score", "webSearch") if message.get(name)},
    )


def _step(update: Record) -> Iterator[Part]:
    """The call of a tool, or its result; before 2024-06 a call has its parameters, and there is no result."""
    id, kind = text_or_none(update.get("uuid")), update.get("subtype") or update.get("messageType")
    call, result = object_in(update, "call"), object_in(update, "result")
    if kind == "call":
        yield ToolUse(str(call.get("name")), call.get("parameters"), id)
    elif kind == "parameters":
        yield ToolUse(str(update.get("name")), update.get("parameters"), id)
    elif kind == "result":
        is_error = result.get("status") == "error"
        yield ToolResult(result.get("message" if is_error else "outputs"), id, is_error=is_error)
    elif kind == "error":
        yield ToolResult(update.get("message"), id, is_error=True)
    elif kind != "eta":
        yield Other(update)


FORMAT = Format("huggingchat", "conversations.json of HuggingChat", each_item(_chat), is_item)
