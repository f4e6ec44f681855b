"""DeepSeek's export: `conversations.json` with a tree of fragments, and single chats of its web API.

A message has no author: its fragments tell who wrote it. The ids of messages are unique in a conversation
only. The fields follow andrmkrff/deepseek-chat-export and ceyaima/deepseek-exporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of
from langchain_threadmem.formats.importers.chats import Chat, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    USER,
    Other,
    Part,
    Reasoning,
    Said,
    entries_of,
)
from langchain_threadmem.formats.importers.source import Format, each_item
from langchain_threadmem.messages.records import as_list, as_object

_ROOT = "root"
_TEXTS = ("REQUEST", "RESPONSE", "ANSWER", "TIP")
_ROLES = {"user": USER, "assistant": ASSISTANT}


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of DeepSeek."""
    if not isinstance(value, dict):
        return False
    mapping = value.get("mapping")
    if isinstance(mapping, dict):
        root = mapping.get(_ROOT)
        is_root = isinstance(root, dict) and root.get("message") is None and root.get("id") == _ROOT
        return "inserted_at" in value or is_root
    return _session(value) is not None


def _session(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer of the web API with a single chat."""
    data = record.get("data")
    data = data.get("biz_data") if isinstance(data, dict) else record.get("biz_data")
    return data if isinstance(data, dict) and isinstance(data.get("chat_session"), dict) else None


def _chat(record: dict[str, Any], position: str) -> Chat:
    session = _session(record)
    if session is not None:
        return _chat_of_session(session, position)
    name = text_or_none(record.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'id'; it is not a conversation of DeepSeek")
    said: dict[str, Said] = {}
    nodes = {
        key: as_object(node, f"node {key!r} of {position}")
        for key, node in as_object(record.get("mapping"), f"'mapping' of {position}").items()
    }
    for key, node in nodes.items():
        if message := node.get("message"):
            message = as_object(message, f"'message' of node {key!r} of {position}")
            parent = _parent(nodes, key)
            said[key] = _said(name, key, parent, message, said.get(parent or ""), position)
    return chat_of(
        position,
        name,
        entries_of([*said.values()]),
        title=text_or_none(record.get("title")),
        created=seconds(record.get("inserted_at"), position),
        metadata=kept(model=next((one.model for one in said.values() if one.model), None)),
    )


def _parent(nodes: Mapping[str, Mapping[str, Any]], key: str) -> str | None:
    """The nearest node above a node that has a message."""
    seen = {key}
    parent = nodes[key].get("parent")
    while (found := nodes.get(str(parent))) is not None and str(parent) not in seen:
        if found.get("message"):
            return str(parent)
        seen.add(str(parent))
        parent = found.get("parent")
    return None


def _chat_of_session(session: dict[str, Any], position: str) -> Chat:
    about = session["chat_session"]
    name = text_or_none(about.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'id' in 'chat_session'; it is not a conversation of DeepSeek")
    said: dict[str, Said] = {}
    for item in as_list(session.get("chat_messages"), f"'chat_messages' of {position}"):
        message = as_object(item, f"a message of {position}")
        key, parent = str(message.get("message_id")), message.get("parent_id")
        before = said.get(str(parent))
        said[key] = _said(name, key, None if parent is None else str(parent), message, before, position)
    current = about.get("current_message_id")
    return chat_of(
        position,
        name,
        entries_of([*said.values()]),
        title=text_or_none(about.get("title")),
        tip=None if current is None else str(current),
        created=seconds(about.get("inserted_at"), position),
        metadata=kept(pinned=about.get("pinned"), model=text_or_none(about.get("model_type"))),
    )


def _said(
    name: str, key: str, parent: str | None, message: dict[str, Any], before: Said | None, position: str
) -> Said:
    fragments = [one for one in message.get("fragments") or () if isinstance(one, dict)]
    role = _ROLES.get(str(message.get("role")).lower())
    if role is None and fragments:
        role = USER if any(one.get("type") == "REQUEST" for one in fragments) else ASSISTANT
    if role is None:  # Older exports have neither a role nor fragments.
        role = ASSISTANT if message.get("reasoning_content") or (before and before.role == USER) else USER
    sources = [
        one for fragment in fragments for one in fragment.get("results") or () if isinstance(one, dict)
    ]
    sources += [one for one in message.get("search_results") or () if isinstance(one, dict)]
    return Said(
        key,
        parent,
        role,
        [*_parts(message, fragments), *files_of(message.get("files"))],
        seconds(message.get("inserted_at"), f"message {key!r} of {position}"),
        text_or_none(message.get("model")) if role == ASSISTANT else None,
        extra={"sources": sources} if sources else {},
        id=f"{name}-{key}",
    )


def _parts(message: dict[str, Any], fragments: list[dict[str, Any]]) -> Iterator[Part]:
    if not fragments:
        for field in ("reasoning_content", "thinking_content"):
            if isinstance(message.get(field), str) and message[field]:
                yield Reasoning(message[field])
        if isinstance(message.get("content"), str):
            yield message["content"]
    for one in fragments:
        kind, content = str(one.get("type") or ""), one.get("content")
        if kind == "THINK":
            yield Reasoning(str(content or ""))
        elif kind == "SEARCH":
            continue
        else:
            if isinstance(content, str) and content.strip():
                yield content
            if kind not in _TEXTS:
                yield Other(one)


FORMAT = Format("deepseek", "conversations.json of DeepSeek's export", each_item(_chat), is_item)
