"""Exports of assistants: DeepSeek, Grok (`prod-grok-backend.json`) and HuggingChat.

In DeepSeek's tree, and in single chats of its web API, a message has no author: its fragments tell who wrote
it. The ids of messages are unique in a conversation only. Grok's responses have parents. HuggingChat's
messages have ancestors; old chats have none, and are one chain.

The fields follow andrmkrff/deepseek-chat-export, ceyaima/deepseek-exporter,
yetanotherchris/openwebui-importer and huggingface/chat-ui.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, chat_of, kept, seconds, text_or_none
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
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_ROOT = "root"
_TEXTS = ("REQUEST", "RESPONSE", "ANSWER", "TIP")
_ROLES = {"user": USER, "assistant": ASSISTANT}


def _is_deepseek(value: object) -> bool:
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


def _chat_of_deepseek(record: dict[str, Any], position: str) -> Chat:
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
            said[key] = _said_of_deepseek(name, key, parent, message, said.get(parent or ""), position)
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
        said[key] = _said_of_deepseek(
            name, key, None if parent is None else str(parent), message, before, position
        )
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


def _said_of_deepseek(
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


DEEPSEEK = Format(
    "deepseek", "conversations.json of DeepSeek's export", each_item(_chat_of_deepseek), _is_deepseek
)


_USERS = ("human", "user")
_PARENT = "parent_response_id"
_CARD = re.compile(r"\s*<grok:render\b.*?</grok:render>", re.DOTALL)
"""A mark of a card, such as a citation, which the program draws."""
_SOURCES = ("cited_web_search_results", "web_search_results", "xpost_ids", "cited_xposts", "xposts")
_KEPT = ("steps", "error", "query", "query_type", "media_types", "xai_user_id")


def _is_grok(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of Grok."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("conversation"), dict)
        and isinstance(value.get("responses"), list)
    )


def _chat_of_grok(record: dict[str, Any], position: str) -> Chat:
    about = record["conversation"]
    name = text_or_none(about.get("conversation_id")) or text_or_none(about.get("id"))
    if name is None:
        raise InputError(f"{position} has no 'conversation_id'; it is not a conversation of Grok")
    said: list[Said] = []
    for item in as_list(record["responses"], f"'responses' of {position}"):
        outer = as_object(item, f"a response of {position}")
        response = outer["response"] if isinstance(outer.get("response"), dict) else outer
        said.append(_said_of_grok(response, said[-1].key if said else None, position))
    projects = about.get("workspaces") or about.get("project_ids")
    return chat_of(
        position,
        name,
        entries_of(said),
        title=text_or_none(about.get("title")),
        tip=text_or_none(about.get("leaf_response_id")),
        created=seconds(about.get("create_time"), position),
        metadata=kept(
            starred=bool(about.get("starred")),
            temporary=bool(about.get("temporary")),
            model=next((one.model for one in said if one.model), None),
            projects=projects if isinstance(projects, list) else None,
        ),
    )


def _said_of_grok(response: dict[str, Any], previous: str | None, position: str) -> Said:
    key = text_or_none(response.get("response_id")) or text_or_none(response.get("_id"))
    parent = text_or_none(response.get(_PARENT))
    if key is None or _PARENT not in response:  # Older exports have no parents: a chain.
        parent = parent or previous
    if key is None:
        key = chained_id(
            "import-",
            previous,
            [response.get("sender"), response.get("message"), response.get("create_time")],
        )
    role = USER if str(response.get("sender") or "").lower() in _USERS else ASSISTANT
    metadata = response.get("metadata")
    details = metadata.get("requestModelDetails") if isinstance(metadata, dict) else None
    model = text_or_none(response.get("model"))
    if model is None and isinstance(details, dict):
        model = text_or_none(details.get("modelId"))
    extra = {name: response[name] for name in _KEPT if response.get(name)}
    sources = [one for name in _SOURCES if isinstance(response.get(name), list) for one in response[name]]
    if sources:
        extra["sources"] = sources
    return Said(
        key,
        parent,
        role,
        [*_parts_of_grok(response)],
        seconds(response.get("create_time"), f"message {key!r} of {position}"),
        model if role == ASSISTANT else None,
        is_aside=bool(response.get("is_control")),
        extra=extra,
    )


def _parts_of_grok(response: dict[str, Any]) -> Iterator[Part]:
    traces = response.get("agent_thinking_traces")
    for trace in (response.get("thinking_trace"), *(traces if isinstance(traces, list) else ())):
        if isinstance(trace, dict):
            texts = (text_or_none(trace.get(name)) for name in ("thinking_trace", "text", "trace"))
            found = next((text for text in texts if text), None)
            yield Reasoning(found) if found is not None else Other(trace)
        elif isinstance(trace, str) and trace:
            yield Reasoning(trace)
    message = response.get("message")
    if isinstance(message, str) and (text := _CARD.sub("", message)).strip():
        yield text
    for field in ("file_attachments", "image_attachments"):
        yield from files_of(response.get(field))
    for url in response.get("generated_image_urls") or ():
        yield File("image", str(url).rpartition("/")[2], {"url": url})


GROK = Format("grok", "prod-grok-backend.json of Grok's export", each_item(_chat_of_grok), _is_grok)


_SENDERS = ("user", "assistant", "system")


def _is_huggingchat(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of HuggingChat."""
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not isinstance(value, dict):
        return False
    if not messages:
        return "rootMessageId" in value or ("_id" in value and "model" in value)
    return all(isinstance(one, dict) and one.get("from") in _SENDERS for one in messages)


def _chat_of_huggingchat(record: Record, position: str) -> Chat:
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
        said.append(_said_of_huggingchat(message, parent, previous, position))
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


def _said_of_huggingchat(message: Record, parent: str | None, previous: str | None, position: str) -> Said:
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


HUGGINGCHAT = Format(
    "huggingchat", "conversations.json of HuggingChat", each_item(_chat_of_huggingchat), _is_huggingchat
)
