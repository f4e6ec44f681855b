"""ChatGPT's export: `conversations.json`, in which `mapping` is a tree of messages.

Every branch is kept. Hidden messages, such as custom instructions, and messages without content become nodes
that recall does not find (`State.ASIDE`). Images and other files are kept by reference: the export names
them, and their bytes lie beside `conversations.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from langchain_threadmem.importers.chats import Bad, Chat, Chats, Entry, seconds, text_or_none
from langchain_threadmem.importers.json_items import object_of
from langchain_threadmem.importers.source import Source
from langchain_threadmem.messages.records import as_list, as_object
from langchain_threadmem.storage.schema import State

_HIDDEN = "is_visually_hidden_from_conversation"
_TEXTS = ("text", "result", "content", "model_set_context", "user_profile", "user_instructions")
"""The fields of contents without parts that have text."""

Nodes = Mapping[str, Mapping[str, Any]]


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of ChatGPT."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def chats(source: Source) -> Chats:
    """The conversations of an export."""
    for item in source.items():
        try:
            yield _chat(object_of(item), item.where)
        except InputError as error:
            yield Bad(str(error))


def _chat(record: dict[str, Any], where: str) -> Chat:
    name = text_or_none(record.get("conversation_id")) or text_or_none(record.get("id"))
    if name is None:
        raise InputError(f"{where} has no 'conversation_id' and no 'id'; it is no conversation of ChatGPT")
    nodes = {
        key: as_object(node, f"node {key!r} of {where}")
        for key, node in as_object(record.get("mapping"), f"'mapping' of {where}").items()
    }
    said = {key: node for key, node in nodes.items() if node.get("message")}
    created, updated = (seconds(record.get(field), where) for field in ("create_time", "update_time"))
    current = text_or_none(record.get("current_node"))
    return Chat(
        where,
        name,
        [*said],
        partial(_entries, nodes, said, where),
        text_or_none(record.get("title")),
        _parent(nodes, current) if current in nodes and current not in said else current,
        created,
        updated or created if record.get("is_archived") else None,
    )


def _entries(nodes: Nodes, said: Nodes, where: str) -> list[Entry]:
    for key, node in said.items():
        as_object(node["message"], f"'message' of node {key!r} of {where}")
    parents = {key: _parent(nodes, key) for key in said}
    calls = _calls(said, parents)
    return [_entry(key, parents[key], calls, node["message"]) for key, node in said.items()]


def _parent(nodes: Nodes, key: str) -> str | None:
    """The nearest ancestor with a message; a circle ends at the node itself."""
    above = text_or_none(nodes[key].get("parent"))
    seen = {key}
    while above is not None and above in nodes and not nodes[above].get("message") and above not in seen:
        seen.add(above)
        above = text_or_none(nodes[above].get("parent"))
    return above


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    if not isinstance(role, str) or not role:
        raise InputError(f"message {message.get('id')!r} has the author {author!r:.80}, without a role")
    return role


def _calls(said: Nodes, parents: Mapping[str, str | None]) -> dict[str, str]:
    """The call of each result of a tool, and each call itself, by their keys.

    A message to a tool is a call if a result follows it: model providers refuse a call without results.
    """
    calls: dict[str, str] = {}
    for key, node in said.items():
        if _role(node["message"]) != "tool":
            continue
        above: Any = parents[key]
        seen = {key}
        while above in said and above not in seen and _role(said[above]["message"]) == "tool":
            seen.add(above)
            above = parents[above]
        if above in said and _is_call(said[above]["message"]):
            calls[key] = calls[above] = above
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
    said: Any = _content(content)
    fields: dict[str, Any] = {"additional_kwargs": extra}
    name = record["author"].get("name")
    if role == "user":
        return HumanMessage(said, **fields)
    if role == "assistant":
        if isinstance(model := metadata.get("model_slug"), str):
            fields["response_metadata"] = {"model_name": model}
        if call is None:
            return AIMessage(said, **fields)
        arguments = said if isinstance(said, str) else ""
        calls = [{"name": str(record["recipient"]), "args": _arguments(arguments), "id": call}]
        return AIMessage("" if arguments else said, tool_calls=calls, **fields)
    if role == "tool":
        if isinstance(name, str):
            fields["name"] = name
        status = "error" if kind == "system_error" else "success"
        return ToolMessage(said, tool_call_id=call or "", status=status, **fields)
    if role == "system":
        return SystemMessage(said, **fields)
    return ChatMessage(content=said, role=role, **fields)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # Code, or a query: most tools take text.
        value = None
    return value if isinstance(value, dict) else {"input": text}


def _content(content: Any) -> str | list[Any]:
    """The content of a message: text, or blocks as LangChain defines them."""
    if not isinstance(content, dict):
        return content if isinstance(content, str) else ""
    if "parts" in content:
        parts = as_list(content["parts"] or [], "'parts' of a message")
        blocks = [block for part in parts for block in _blocks(part)]
        if all(block["type"] == "text" for block in blocks):
            return "\n\n".join(block["text"] for block in blocks)
        return blocks
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


def _blocks(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, str):
        if part.strip():
            yield {"type": "text", "text": part}
    elif isinstance(part, dict):
        kind = str(part.get("content_type") or "")
        medium = next(
            (name for name in ("image", "audio", "video") if kind.startswith(f"{name}_asset")), None
        )
        if isinstance(part.get("text"), str):
            yield {"type": "text", "text": part["text"]}
        elif medium is not None and isinstance(part.get("asset_pointer"), str):
            rest = {name: value for name, value in part.items() if name != "asset_pointer"}
            yield {"type": medium, "file_id": part["asset_pointer"], "extras": rest}
        else:
            yield {"type": "non_standard", "value": part}
