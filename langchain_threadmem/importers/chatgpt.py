"""ChatGPT's export: `conversations.json`, in which `mapping` is a tree of messages.

Every branch is imported. Hidden messages, such as custom instructions, and messages without content become
nodes that recall does not find (`State.ASIDE`). Images and other files are imported as references: the export
names them, and their bytes are in files beside `conversations.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_threadmem.errors import InputError
from langchain_threadmem.importers.chats import Chat, Chats, Entry, joined, seconds, text_or_none
from langchain_threadmem.importers.source import Source, chats_of_items
from langchain_threadmem.messages.records import as_list, as_object
from langchain_threadmem.storage.schema import State

_HIDDEN = "is_visually_hidden_from_conversation"
_TEXTS = ("text", "result", "content", "model_set_context", "user_profile", "user_instructions")
"""The fields with text in contents without parts."""

Nodes = Mapping[str, Mapping[str, Any]]


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of ChatGPT."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def chats(source: Source) -> Chats:
    """The conversations of an export."""
    return chats_of_items(source, _chat)


def _chat(record: dict[str, Any], position: str) -> Chat:
    name = text_or_none(record.get("conversation_id")) or text_or_none(record.get("id"))
    if name is None:
        raise InputError(
            f"{position} has no 'conversation_id' and no 'id'; it is not a conversation of ChatGPT"
        )
    nodes = {
        key: as_object(node, f"node {key!r} of {position}")
        for key, node in as_object(record.get("mapping"), f"'mapping' of {position}").items()
    }
    with_message = {key: node for key, node in nodes.items() if node.get("message")}
    created, updated = (seconds(record.get(field), position) for field in ("create_time", "update_time"))
    current = text_or_none(record.get("current_node"))
    return Chat(
        position,
        name,
        [*with_message],
        partial(_entries, nodes, with_message, position),
        text_or_none(record.get("title")),
        _parent(nodes, current) if current in nodes and current not in with_message else current,
        created,
        updated or created if record.get("is_archived") else None,
    )


def _entries(nodes: Nodes, with_message: Nodes, position: str) -> list[Entry]:
    for key, node in with_message.items():
        as_object(node["message"], f"'message' of node {key!r} of {position}")
    parents = {key: _parent(nodes, key) for key in with_message}
    calls = _calls(with_message, parents)
    return [_entry(key, parents[key], calls, node["message"]) for key, node in with_message.items()]


def _parent(nodes: Nodes, key: str) -> str | None:
    """The nearest ancestor with a message."""
    above = _ancestors(key, lambda name: text_or_none(nodes[name].get("parent")) if name in nodes else None)
    return next((name for name in above if name not in nodes or nodes[name].get("message")), None)


def _ancestors(key: str, parent_of: Callable[[str], str | None]) -> Iterator[str]:
    """The ancestors of a node, up to a root or a circle."""
    visited = {key}
    while (parent := parent_of(key)) is not None and parent not in visited:
        yield parent
        visited.add(parent)
        key = parent


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    if not isinstance(role, str) or not role:
        raise InputError(f"message {message.get('id')!r} has the author {author!r:.80}, without a role")
    return role


def _calls(with_message: Nodes, parents: Mapping[str, str | None]) -> dict[str, str]:
    """The key of the call, by the keys of each tool result and of each call.

    A message to a tool is a call only if a result follows it, since providers refuse a call without results.
    """
    calls: dict[str, str] = {}
    for key, node in with_message.items():
        if _role(node["message"]) != "tool":
            continue
        above = (name for name in _ancestors(key, parents.get) if name in with_message)
        asking = next((name for name in above if _role(with_message[name]["message"]) != "tool"), None)
        if asking is not None and _is_call(with_message[asking]["message"]):
            calls[key] = calls[asking] = asking
    return calls


def _is_call(message: Mapping[str, Any]) -> bool:
    return _role(message) == "assistant" and message.get("recipient") not in (None, "", "all")


def _entry(key: str, parent: str | None, calls: Mapping[str, str], message: Mapping[str, Any]) -> Entry:
    content, metadata = message.get("content"), message.get("metadata")
    hidden = bool(isinstance(metadata, dict) and metadata.get(_HIDDEN))
    is_aside = hidden or (key not in calls and not _content(content))
    return Entry(
        key,
        parent,
        partial(_message, message, calls.get(key)),
        seconds(message.get("create_time"), f"message {key!r}"),
        state=State.ASIDE if is_aside else State.LIVE,
    )


def _message(record: Mapping[str, Any], call: str | None) -> BaseMessage:
    role = _role(record)
    content, metadata = record.get("content"), record.get("metadata")
    extra: dict[str, Any] = {}
    kind = content.get("content_type") if isinstance(content, dict) else None
    if kind not in (None, "text", "multimodal_text"):
        extra["content_type"] = kind
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("attachments"):
        extra["attachments"] = metadata["attachments"]
    if metadata.get(_HIDDEN):
        extra["hidden"] = True
    text: Any = _content(content)
    fields: dict[str, Any] = {"additional_kwargs": extra}
    name = record["author"].get("name")
    if role == "user":
        return HumanMessage(text, **fields)
    if role == "assistant":
        if isinstance(model := metadata.get("model_slug"), str):
            fields["response_metadata"] = {"model_name": model}
        if call is None:
            return AIMessage(text, **fields)
        arguments = text if isinstance(text, str) else ""
        calls = [{"name": str(record["recipient"]), "args": _arguments(arguments), "id": call}]
        return AIMessage("" if arguments else text, tool_calls=calls, **fields)
    if role == "tool":
        if isinstance(name, str):
            fields["name"] = name
        status = "error" if kind == "system_error" else "success"
        return ToolMessage(text, tool_call_id=call or "", status=status, **fields)
    if role == "system":
        return SystemMessage(text, **fields)
    return ChatMessage(content=text, role=role, **fields)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # Most tools take text, such as code or a query.
        value = None
    return value if isinstance(value, dict) else {"input": text}


def _content(content: Any) -> str | list[Any]:
    """The content of a message: text, or blocks as LangChain defines them."""
    if not isinstance(content, dict):
        return content if isinstance(content, str) else ""
    if "parts" in content:
        content_parts = as_list(content["parts"] or [], "'parts' of a message")
        return joined([block for item in content_parts for block in _blocks(item)])
    if isinstance(content.get("thoughts"), list):
        return [
            {"type": "reasoning", "reasoning": str(thought.get("content") or thought.get("summary") or "")}
            for thought in content["thoughts"]
            if isinstance(thought, dict)
        ]
    texts = [content[field] for field in _TEXTS if isinstance(content.get(field), str) and content[field]]
    if texts or not set(content) - {"content_type", "language", "response_format_name", *_TEXTS}:
        return "\n\n".join(texts)
    return [{"type": "non_standard", "value": content}]


def _blocks(item: Any) -> Iterator[dict[str, Any]]:
    if isinstance(item, str):
        if item.strip():
            yield {"type": "text", "text": item}
    elif isinstance(item, dict):
        kind = str(item.get("content_type") or "")
        medium = next(
            (name for name in ("image", "audio", "video") if kind.startswith(f"{name}_asset")), None
        )
        if isinstance(item.get("text"), str):
            yield {"type": "text", "text": item["text"]}
        elif medium is not None and isinstance(item.get("asset_pointer"), str):
            extras = {name: value for name, value in item.items() if name != "asset_pointer"}
            yield {"type": medium, "file_id": item["asset_pointer"], "extras": extras}
        else:
            yield {"type": "non_standard", "value": item}
