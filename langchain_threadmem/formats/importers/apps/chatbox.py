"""Chatbox: the export of all data, with an object for each session, its earlier topics and its forks.

The fields follow chatboxai/chatbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record, object_in
from langchain_threadmem.formats.importers.said import ASSISTANT, Part, Said, ToolResult, ToolUse, entries_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.records import as_list, as_object

_SESSION = "session:"
_LIST = "chat-sessions-list"


def is_item(value: object) -> bool:
    """Whether a JSON document is an export of Chatbox."""
    return isinstance(value, dict) and (
        _LIST in value or any(name.startswith(_SESSION) for name in value) or _is_old(value)
    )


def _is_old(value: Record) -> bool:
    """Whether an export has its sessions in a list, as the first versions wrote it."""
    sessions = value.get("chat-sessions")
    return isinstance(sessions, list) and all(isinstance(one, dict) and "messages" in one for one in sessions)


def chats(source: Source) -> Chats:
    """The conversations of an export: a session, and each of its earlier topics."""

    def read(document: Record, position: str) -> Chats:
        about = {one.get("id"): one for one in document.get(_LIST) or () if isinstance(one, dict)}
        sessions = [value for name, value in document.items() if name.startswith(_SESSION)]
        sessions += document.get("chat-sessions") or []
        for number, session in enumerate(sessions, 1):
            where = f"session {number} of {position}"
            yield from checked(where, _chats_of, session, about, where)

    return source.each(read)


def _chats_of(value: Any, about: dict[Any, Record], position: str) -> Iterator[Chat]:
    session = as_object(value, position)
    name = text_or_none(session.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'id'")
    forks = object_in(session, "messageForksHash")
    starred = session.get("starred") or about.get(name, {}).get("starred")
    for topic in session.get("threads") or ():
        if isinstance(topic, dict) and topic.get("messages"):
            topic_name = f"{name}-{text_or_none(topic.get('id')) or 'topic'}"
            metadata = kept(topic_of=name)
            yield _chat(topic_name, topic, topic["messages"], forks, metadata, position)
    yield _chat(name, session, session.get("messages"), forks, kept(starred=bool(starred)), position)


def _chat(name: str, about: Record, messages: Any, forks: Record, metadata: Record, position: str) -> Chat:
    said: dict[str, Said] = {}
    end = _add(said, as_list(messages or [], f"'messages' of {position}"), None, forks, position)
    return chat_of(
        position,
        name,
        entries_of([*said.values()]),
        title=text_or_none(about.get("threadName")) or text_or_none(about.get("name")),
        tip=end,
        created=seconds(about.get("createdAt"), position),
        metadata=metadata | kept(model=next((one.model for one in said.values() if one.model), None)),
    )


def _add(
    said: dict[str, Said], messages: list[Any], previous: str | None, forks: Record, position: str
) -> str | None:
    """Add a list of messages and the forks after them; returns the end of the list."""
    for item in messages:
        message = as_object(item, f"a message of {position}")
        one = _said(message, previous, position)
        if one.key in said:
            previous = one.key
            continue
        said[one.key] = one
        previous = one.key
        fork = forks.get(one.key)
        for other in (fork.get("lists") if isinstance(fork, dict) else None) or ():
            _add(said, other.get("messages") or [], one.key, forks, position)
    return previous


def _said(message: Record, previous: str | None, position: str) -> Said:
    key = text_or_none(message.get("id"))
    if key is None:
        raise InputError(f"{position} has a message without 'id'")
    parts = message.get("contentParts")
    read = [*_parts(parts)] if isinstance(parts, list) and parts else parts_of(message.get("content"))
    role = str(message.get("role") or "user")
    if message.get("reasoningContent") and not isinstance(parts, list):
        read = [*parts_of({"type": "reasoning", "text": message["reasoningContent"]}), *read]
    files = [
        *files_of(message.get("files")),
        *files_of(message.get("pictures")),
        *files_of(message.get("links")),
    ]
    return Said(
        key,
        previous,
        role,
        [*read, *files],
        seconds(message.get("timestamp"), f"message {key!r} of {position}"),
        text_or_none(message.get("model")) if role == ASSISTANT else None,
        is_aside=bool(message.get("isSummary")),
        extra=kept(error=message.get("error"), provider=message.get("aiProvider")),
    )


def _parts(parts: list[Any]) -> Iterator[Part]:
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool-call":
            id, name = text_or_none(part.get("toolCallId")), str(part.get("toolName"))
            yield ToolUse(name, part.get("args"), id)
            if part.get("result") is not None:
                yield ToolResult(part["result"], id, name, part.get("state") == "error")
        elif kind == "info":
            continue
        else:
            yield from parts_of(part)


FORMAT = Format("chatbox", "Chatbox's export", chats, is_item)
