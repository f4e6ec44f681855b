"""Exports of assistants: DeepSeek, Grok (`prod-grok-backend.json`) and HuggingChat.

In DeepSeek's tree, and in single chats of its web API, a message has no author: its fragments tell who wrote
it. The ids of messages are unique in a conversation only. Grok's responses have parents. HuggingChat's
messages have ancestors; old chats have none, and are one chain.

The fields follow andrmkrff/deepseek-chat-export, ceyaima/deepseek-exporter,
yetanotherchris/openwebui-importer and huggingface/chat-ui.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.content_parts import (
    File,
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program, standard_parts
from langchain_threadmem.formats.importers.said import ASSISTANT, ROLES, USER
from langchain_threadmem.messages.records import as_object

_TEXTS = ("REQUEST", "RESPONSE", "ANSWER", "TIP")


def _is_deepseek(value: Any) -> bool:
    if not fields.has(value, mapping=dict):
        return bool(_session(value))
    root = fields.record(value, "mapping", "root")
    return "inserted_at" in value or (root.get("message") is None and root.get("id") == "root")


def _session(value: Any) -> fields.Record:
    """The answer of the web API with a single chat; empty for another value."""
    found = fields.record(value, "data", "biz_data") or fields.record(value, "biz_data")
    return found if isinstance(found.get("chat_session"), dict) else {}


def _of_deepseek(value: fields.Record) -> Iterator[ChatRecord]:
    session = _session(value)
    about = session.get("chat_session") or value
    messages = fields.records(session, "chat_messages", "the chat") if session else [*_in_mapping(value)]
    by_key: dict[str | None, fields.Record] = {}
    for message in messages:
        key, parent = (fields.id_in(message, field) for field in ("message_id", "parent_id"))
        by_key[key] = message
        fragments = fields.values(message, "fragments")
        found = [one for fragment in fragments for one in fields.values(fragment, "results")]
        found += fields.values(message, "search_results")
        sources = [one for one in found if isinstance(one, dict)]
        message |= {"role": _role(message, by_key.get(parent)), "sources": sources}
    yield ChatRecord(about, messages, others={"prefix": f"{fields.text(about, 'id') or ''}-"})


def _in_mapping(value: fields.Record) -> Iterator[fields.Record]:
    """The messages of a tree, each with the nearest node above it that has a message."""
    nodes = fields.nodes(value, "mapping", "the chat")
    for key, node in nodes.items():
        if message := node.get("message"):
            parents = fields.ancestors(key, lambda key: fields.id_in(nodes.get(key), "parent"))
            parent = next((one for one in parents if one not in nodes or nodes[one].get("message")), None)
            message = as_object(message, f"the message of node {key!r}")
            yield {**message, "message_id": key, "parent_id": parent}


def _role(message: fields.Record, before: fields.Record | None) -> str:
    if role := fields.text(message, "role"):
        return role.lower()
    if kinds := [fields.at(one, "type") for one in fields.values(message, "fragments")]:
        return USER if "REQUEST" in kinds else ASSISTANT
    # Older exports have neither a role nor fragments.
    is_answer = message.get("reasoning_content") or (before and before["role"] == USER)
    return ASSISTANT if is_answer else USER


def _parts_of_deepseek(message: fields.Record) -> Iterator[Part]:
    fragments = [one for one in fields.values(message, "fragments") if isinstance(one, dict)]
    for one in fragments:
        kind, content = str(one.get("type") or ""), one.get("content")
        if kind == "THINK":
            yield Reasoning(str(content or ""))
        elif kind != "SEARCH":
            yield from parts_of(content if isinstance(content, str) else None)
            if kind not in _TEXTS:
                yield Other(one)
    yield from files_of(message.get("files")) if fragments else standard_parts(message)


DEEPSEEK = Program(
    "deepseek",
    "conversations.json of DeepSeek's export",
    _is_deepseek,
    _parts_of_deepseek,
    _of_deepseek,
    names=("id",),
    parents=("parent_id",),
    kept=("sources",),
)


_CARD = re.compile(r"\s*<grok:render\b.*?</grok:render>", re.DOTALL)
"""A mark of a card, such as a citation, which the program draws."""
_SOURCES = ("cited_web_search_results", "web_search_results", "xpost_ids", "cited_xposts", "xposts")


def _of_grok(value: fields.Record) -> Iterator[ChatRecord]:
    about = value["conversation"]
    messages = []
    for outer in fields.records(value, "responses", "the conversation"):
        one = fields.record(outer, "response") or outer
        role = ROLES.get(str(one.get("sender") or "").lower())
        model = fields.text(one, "model") or fields.at(one, "metadata", "requestModelDetails", "modelId")
        sources = [source for name in _SOURCES for source in fields.values(one, name)]
        role = USER if role == USER else ASSISTANT
        messages.append({**one, "role": role, "model": model, "sources": sources})
    projects = fields.values(about, "workspaces") or fields.values(about, "project_ids")
    metadata = fields.kept(temporary=bool(about.get("temporary")), projects=projects)
    yield ChatRecord(about, messages, fields.text(about, "conversation_id"), {"metadata": metadata})


def _parts_of_grok(response: fields.Record) -> Iterator[Part]:
    for trace in (response.get("thinking_trace"), *fields.values(response, "agent_thinking_traces")):
        if isinstance(trace, dict):
            found = fields.text(trace, "thinking_trace", "text", "trace")
            yield Reasoning(found) if found is not None else Other(trace)
        elif isinstance(trace, str) and trace:
            yield Reasoning(trace)
    yield from parts_of(_CARD.sub("", fields.text(response, "message") or ""))
    for field in ("file_attachments", "image_attachments"):
        yield from files_of(response.get(field))
    for url in response.get("generated_image_urls") or ():
        yield File("image", str(url).rpartition("/")[2], {"url": url})


GROK = Program(
    "grok",
    "prod-grok-backend.json of Grok's export",
    lambda value: fields.has(value, conversation=dict, responses=list),
    _parts_of_grok,
    _of_grok,
    names=("conversation_id", "id"),
    parents=("parent_response_id",),
    kept=("steps", "error", "query", "query_type", "media_types", "xai_user_id", "sources"),
    asides=("is_control",),
)


def _is_huggingchat(value: Any) -> bool:
    messages = fields.at(value, "messages")
    if not isinstance(messages, list):
        return False
    if not messages:
        return "rootMessageId" in value or ("_id" in value and "model" in value)
    return all(fields.at(one, "from") in ("user", "assistant", "system") for one in messages)


def _of_huggingchat(value: fields.Record) -> Iterator[ChatRecord]:
    messages = fields.records(value, "messages", "the conversation")
    is_tree = any(one.get("ancestors") or one.get("children") for one in messages)
    for one in messages:
        one["model"] = fields.at(one, "routerMetadata", "model")
        if is_tree:
            one["parent"] = (one.get("ancestors") or [None])[-1]
    instructions, assistant = fields.text(value, "preprompt"), fields.id_in(value, "assistantId")
    metadata = fields.kept(instructions=instructions, assistant=assistant)
    yield ChatRecord(value, messages, others={"metadata": metadata})


def _parts_of_huggingchat(message: fields.Record) -> Iterator[Part]:
    if isinstance(message.get("reasoning"), str) and message["reasoning"]:
        yield Reasoning(message["reasoning"])
    # The updates of a message are its steps; the last of them repeats the text.
    for update in fields.values(message, "updates"):
        if fields.at(update, "type") == "tool":
            yield from _step(update)
    yield from [*parts_of(message.get("content")), *files_of(message.get("files"))]


def _step(update: fields.Record) -> Iterator[Part]:
    """The call of a tool, or its result; before 2024-06 a call has its parameters, and there is no result."""
    id, kind = fields.text(update, "uuid"), update.get("subtype") or update.get("messageType")
    result = fields.record(update, "result")
    if kind in ("call", "parameters"):
        call = fields.record(update, "call") or update
        yield ToolUse(str(call.get("name")), call.get("parameters"), id)
    elif kind in ("result", "error"):
        is_error = kind == "error" or result.get("status") == "error"
        output = {**update, **result}.get("message") if is_error else result.get("outputs")
        yield ToolResult(output, id, is_error=is_error)
    elif kind != "eta":
        yield Other(update)


HUGGINGCHAT = Program(
    "huggingchat",
    "conversations.json of HuggingChat",
    _is_huggingchat,
    _parts_of_huggingchat,
    _of_huggingchat,
    names=("_id", "id"),
    parents=("parent",),
    kept=("interrupted", "score", "webSearch"),
)
