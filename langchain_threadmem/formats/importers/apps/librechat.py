"""LibreChat's export of a conversation as JSON, flat (`messages`) or nested (`messagesTree`).

The fields follow danny-avila/LibreChat (api/server/utils/import/importers.js and
client/src/hooks/Conversations/useExportConversation.ts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of, text_in
from langchain_threadmem.formats.importers.chats import Chat, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import object_in
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    Other,
    Part,
    Said,
    ToolResult,
    ToolUse,
    entries_of,
    system_prompt,
)
from langchain_threadmem.formats.importers.source import Format, each_item
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


def _chat(record: dict[str, Any], position: str) -> Chat:
    field = next(name for name in _LISTS if isinstance(record.get(name), list))
    options = object_in(record, "options")
    said = system_prompt(options.get("promptPrefix") or options.get("system"))
    for parent, message in _flat(as_list(record[field], f"{field!r} of {position}"), position):
        said += _said(message, parent, position)
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


def _said(message: dict[str, Any], parent: str | None, position: str) -> Iterator[Said]:
    """A message, and what its person has said while it was written (`steer`)."""
    key = text_or_none(message.get("messageId"))
    if key is None:
        raise InputError(f"{position} has a message without 'messageId'")
    sender = text_or_none(message.get("sender")) or ""
    is_user = message.get("isCreatedByUser")
    role = USER if is_user or (is_user is None and sender.lower() == "user") else ASSISTANT
    content, text = message.get("content"), text_in(message.get("text"))
    blocks = content if isinstance(content, list) and content else [text or text_in(content)]
    time = seconds(message.get("createdAt"), f"message {key!r} of {position}")
    is_agent = message.get("endpoint") == "agents" and sender != message.get("model")
    pieces = [
        [*of_one]
        for _, of_one in groupby(
            blocks, lambda block: isinstance(block, dict) and block.get("type") == "steer"
        )
    ]
    for number, piece in enumerate(pieces, 1):
        is_last = number == len(pieces)
        parts = [part for block in piece if isinstance(block, dict) for part in _steered(block)]
        speaker = USER if parts else role
        parts = parts or [*_rounds(piece)]
        if not parts and is_last and text:
            parts = [text]
        if number == 1 and role == USER:
            parts = [*_quotes(message), *parts]
        if is_last:
            parts += [*files_of(message.get("files")), *files_of(message.get("attachments"))]
        part_key = key if is_last else f"{key}-s{number}"
        yield Said(
            part_key,
            parent,
            speaker,
            parts,
            time,
            text_or_none(message.get("model")) if speaker == ASSISTANT else None,
            text_or_none(message.get("name")) or (sender if is_agent and speaker == ASSISTANT else None),
            extra={name: message[name] for name in _KEPT if is_last and message.get(name)},
        )
        parent = part_key


def _steered(block: dict[str, Any]) -> list[Part]:
    """The parts of what a person has said in the middle of an answer."""
    if block.get("type") != "steer":
        return []
    return [*_quotes(block), text_in(block.get("steer")), *files_of(block.get("files"))]


def _quotes(record: dict[str, Any]) -> Iterator[str]:
    """The passages to which a person has referred, which LibreChat puts before the text for the model."""
    for quote in record.get("quotes") or ():
        if text := text_in(quote):
            yield "\n".join(f"> {line}" for line in text.split("\n"))


def _rounds(blocks: Sequence[Any]) -> Iterator[Part]:
    """The parts of an answer; calls that `tool_call_ids` names were made at once, before their results."""
    together: set[str] = set()
    results: list[Part] = []
    for block in blocks:
        parts = parts_of(block)
        named = block.get("tool_call_ids") if isinstance(block, dict) else None
        call = next((part for part in parts if isinstance(part, ToolUse)), None)
        if parts and all(isinstance(part, Other) for part in parts):  # A note of the program about the calls.
            yield from parts
            continue
        if named or call is None or call.id not in together:
            yield from results
            results = []
        if isinstance(named, list):
            together = {*named}
        if call is None or call.id not in together:
            yield from parts
        else:
            yield call
            results += [part for part in parts if isinstance(part, ToolResult)]
    yield from results


FORMAT = Format("librechat", "a conversation of LibreChat", each_item(_chat), is_item)
