"""LibreChat's export of a conversation as JSON, flat (`messages`) or nested (`messagesTree`).

The fields follow danny-avila/LibreChat (api/server/utils/import/importers.js and
client/src/hooks/Conversations/useExportConversation.ts).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of, text_in
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Said, entries_of
from langchain_threadmem.formats.importers.source import Source, chats_of_items
from langchain_threadmem.messages.records import as_list, as_object

_LISTS = ("messagesTree", "messages")
_KEPT = ("error", "unfinished", "feedback", "finish_reason", "plugin", "endpoint", "iconURL")


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of LibreChat."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("conversationId"), str)
        and any(isinstance(value.get(name), list) for name in _LISTS)
    )


def chats(source: Source) -> Chats:
    """The conversations of an export."""
    return chats_of_items(source, _chat)


def _chat(record: dict[str, Any], position: str) -> Chat:
    field = next(name for name in _LISTS if isinstance(record.get(name), list))
    said = [
        _said(message, parent, position)
        for parent, message in _flat(as_list(record[field], f"{field!r} of {position}"), position)
    ]
    options = record.get("options")
    options = options if isinstance(options, dict) else {}
    model = text_or_none(options.get("model")) or text_or_none(record.get("model"))
    return chat_of(
        position,
        record["conversationId"],
        entries_of(said),
        title=text_or_none(record.get("title")),
        tip=text_or_none(record.get("activeMessageId")),
        created=seconds(record.get("createdAt"), position),
        metadata=kept(
            model=model or next((one.model for one in said if one.model), None),
            endpoint=text_or_none(record.get("endpoint")),
            tags=record.get("tags"),
        ),
    )


def _flat(messages: list[Any], position: str) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Each message with the key of its parent: of the message around it, else of its field."""
    waiting: list[tuple[str | None, bool, Any]] = [(None, False, one) for one in reversed(messages)]
    while waiting:
        parent, is_nested, item = waiting.pop()
        message = as_object(item, f"a message of {position}")
        yield parent if is_nested else text_or_none(message.get("parentMessageId")), message
        children = message.get("children")
        if isinstance(children, list):
            key = text_or_none(message.get("messageId"))
            waiting += [(key, True, one) for one in reversed(children)]


def _said(message: dict[str, Any], parent: str | None, position: str) -> Said:
    key = text_or_none(message.get("messageId"))
    if key is None:
        raise InputError(f"{position} has a message without 'messageId'")
    sender = str(message.get("sender") or "").lower()
    is_user = message.get("isCreatedByUser")
    role = USER if is_user or (is_user is None and sender == "user") else ASSISTANT
    content = message.get("content")
    parts = parts_of(content) if isinstance(content, list) and content else []
    if not parts and (text := text_in(message.get("text")) or text_in(content)):
        parts = [text]
    return Said(
        key,
        parent,
        role,
        [*parts, *files_of(message.get("files")), *files_of(message.get("attachments"))],
        seconds(message.get("createdAt"), f"message {key!r} of {position}"),
        text_or_none(message.get("model")) if role == ASSISTANT else None,
        extra={name: message[name] for name in _KEPT if message.get(name)},
    )
