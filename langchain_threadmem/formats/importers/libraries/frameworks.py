"""Messages of LlamaIndex, Semantic Kernel, AutoGen, Haystack and the AI SDK, see `program`.

The fields are those that llama-index-core 0.14 writes (with the database of a memory, `SQLAlchemyChatStore`),
semantic-kernel 1.45, autogen-agentchat 0.7, haystack-ai 3.4 and older versions, and ai 6 (`UIMessage`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, parts_of, text_in
from langchain_threadmem.formats.importers.content_parts import (
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    at_once,
    called,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are, standard_parts
from langchain_threadmem.formats.importers.said import ASSISTANT, TOOL, USER
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import as_object, loads

_COLUMNS = {"id", "key", "timestamp", "role", "status", "data"}
_NANOSECONDS = 1e9


def _is_llamaindex(value: Any) -> bool:
    store = fields.at(fields.at(value, "chat_store") or value, "store")
    return isinstance(store, dict) and all(isinstance(one, list) for one in store.values())


def _of_llamaindex(value: fields.Record) -> Iterator[ChatRecord]:
    """The conversations of a store, in which a message may be a row of a database with a message."""
    for key, messages in value.get("chat_store", value)["store"].items():
        is_row = bool(messages) and isinstance(messages[0].get("data"), str)
        loaded = [one | loads(one["data"], "a message") for one in messages] if is_row else messages
        yield ChatRecord({}, loaded, str(key))


def _parts_of_llamaindex(message: fields.Record) -> Iterator[Part]:
    extra, blocks = fields.record(message, "additional_kwargs"), message.get("blocks")
    if id := fields.text(extra, "tool_call_id"):
        texts = (fields.at(block, "text") for block in fields.values(message, "blocks"))
        output = "\n\n".join(text for text in texts if isinstance(text, str)) or message.get("content")
        yield ToolResult(output, id, fields.text(extra, "name"))
        return
    if isinstance(blocks, list):
        yield from parts_of([{**block, "type": block.get("block_type")} for block in blocks])
    else:
        yield from parts_of(message.get("content"))
    yield from parts_of([{**call, "type": "tool_call"} for call in extra.get("tool_calls") or ()])


def _rows(source: Source) -> Iterator[fields.Record]:
    """The conversations of a database, with the messages that left the memory of the model."""
    for table in source.tables_with(_COLUMNS):
        rows = source.records(table, ("key", "timestamp", "data"), "ORDER BY key, timestamp, id")
        for key, of_key in groupby(rows, key=lambda row: str(row["key"])):
            listed = [{"created": row["timestamp"] / _NANOSECONDS, "data": row["data"]} for row in of_key]
            yield {"store": {key: listed}}


LLAMAINDEX = Program(
    "llamaindex",
    "LlamaIndex's chat store, or its database",
    _is_llamaindex,
    _parts_of_llamaindex,
    _of_llamaindex,
    is_database=lambda source: bool(source.tables_with(_COLUMNS)),
    rows=_rows,
)


def _is_kernel_message(value: Any) -> bool:
    if fields.has(value, Items=list):
        return fields.has(value, Role=dict)
    return fields.has(value, items=list) and any("content_type" in one for one in [value, *value["items"]])


def _parts_of_kernel(message: fields.Record) -> Iterator[Part]:
    for item in message.get("items") or message.get("Items") or ():
        kind = str(item.get("content_type") or item.get("$type") or "").lower().removesuffix("content")
        id = fields.text(item, "id", "Id", "call_id", "CallId")
        name = fields.text(item, "name", "FunctionName")
        if kind in ("function_call", "functioncall"):
            yield ToolUse(name or "tool", item.get("arguments", item.get("Arguments")), id)
        elif kind in ("function_result", "functionresult"):
            id = fields.text(item, "CallId") or id
            yield ToolResult(item.get("result", item.get("Result")), id, name)
        elif kind in ("reasoning", "streaming_reasoning"):
            yield Reasoning(str(item.get("text") or ""))
        elif text := text_in(item.get("text") or item.get("Text")):
            yield text
        elif kind != "text":
            yield from parts_of({**item, "type": kind})


SEMANTIC_KERNEL = Program(
    "semantic_kernel",
    "Semantic Kernel's chat history",
    lambda value: all_are(value, _is_kernel_message),
    _parts_of_kernel,
    is_message=_is_kernel_message,
)


_EVENTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
_TOOL_EVENTS = {"ToolCallRequestEvent": ASSISTANT, "ToolCallExecutionEvent": TOOL, "ThoughtEvent": "thinking"}

_OTHER_EVENTS = ("MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent", "SelectorEvent")


def _is_autogen(value: Any) -> bool:
    if _is_event(value):
        return True
    if fields.has(value, messages=list):  # The result of a run.
        return bool(value["messages"]) and all(map(_is_event, value["messages"]))
    return ("llm_context" in value or "agent_states" in value) and "version" in value


def _is_event(value: Any) -> bool:
    """Whether a value is a message or an event of AgentChat."""
    is_known = fields.at(value, "type") in (*_EVENTS, *_TOOL_EVENTS, *_OTHER_EVENTS)
    return fields.has(value, source=str) and (is_known or _is_structured(value))


def _is_structured(event: fields.Record) -> bool:
    return str(event.get("type")).startswith("StructuredMessage")


def _of_autogen(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of a run, of the agents of a team that all have seen, or of each agent."""
    states = fields.record(value, "agent_states")
    threads = [fields.values(state, "message_thread") for state in states.values()]
    events = value["messages"] if "messages" in value else max(threads, key=len, default=[])
    if "messages" in value or events:
        messages = []
        for one in events:
            kind, source = one.get("type"), str(one.get("source"))
            if kind in (*_EVENTS, *_TOOL_EVENTS) or _is_structured(one):
                role = _TOOL_EVENTS.get(str(kind)) or (USER if source == USER else ASSISTANT)
                messages.append({**one, "role": role})
        yield ChatRecord({}, messages)
        return
    if "agent_states" not in value:
        yield ChatRecord({}, fields.at(value, "llm_context", "messages") or [])
    for name, state in states.items():
        if messages := fields.values(state.get("agent_state", state), "llm_context", "messages"):
            yield ChatRecord({}, messages, str(name))


def _parts_of_autogen(message: fields.Record) -> Iterator[Part]:
    if isinstance(message.get("thought"), str):
        yield Reasoning(message["thought"])
    content = message.get("content")
    if _is_structured(message):
        yield json.dumps(content, ensure_ascii=False)
        return
    for one in content if isinstance(content, list) else [content]:
        block = fields.record(one)
        if "call_id" in block:
            id, name = fields.text(block, "call_id"), fields.text(block, "name")
            yield ToolResult(block.get("content"), id, name, bool(block.get("is_error")))
        elif "arguments" in block:
            yield ToolUse(str(block.get("name")), block["arguments"], fields.text(block, "id"))
        elif "data" in block:
            yield file_of({**block, "type": "image"})
        else:
            yield from parts_of(one)


AUTOGEN = Program(
    "autogen",
    "AutoGen's state of an agent or a team, or the messages of a run",
    _is_autogen,
    _parts_of_autogen,
    _of_autogen,
    _is_event,
)


def _is_haystack_message(value: Any) -> bool:
    if "_role" in value and fields.has(value, _content=list):
        return True
    is_message = fields.has(value, role=str, content=list) and "meta" in value
    return is_message and all(isinstance(one, dict) and "type" not in one for one in value["content"])


def _parts_of_haystack(message: fields.Record) -> Iterator[Part]:
    content = message.get("content")
    for one in content if content is not None else message.get("_content") or ():
        call, result, thought = (fields.record(one, name) for name in _HAYSTACK)
        media = next((name for name in ("image", "file") if name in one), None)
        if call:
            yield ToolUse(str(call.get("tool_name")), call.get("arguments"), fields.text(call, "id"))
        elif result:
            id, name = (fields.text(result.get("origin"), name) for name in ("id", "tool_name"))
            yield ToolResult(result.get("result"), id, name, bool(result.get("error")))
        elif thought:
            yield Reasoning(str(thought.get("reasoning_text") or ""))
        elif media:
            yield file_of({**(one[media] or {}), "type": media})
        else:
            yield from parts_of(one)


_HAYSTACK = ("tool_call", "tool_call_result", "reasoning")


HAYSTACK = Program(
    "haystack",
    "Haystack's messages",
    lambda value: all_are(value, _is_haystack_message),
    _parts_of_haystack,
    is_message=_is_haystack_message,
)


_MASTRA = {"id", "thread_id", "content", "role", "createdAt"}


def _rows_of_mastra(source: Source) -> Iterator[fields.Record]:
    threads = source.records("mastra_threads", ("id", "title"), "")
    titles = {row["id"]: row["title"] for row in threads}
    rows = source.records("mastra_messages", _MASTRA, 'ORDER BY thread_id, "createdAt", rowid')
    for thread, of_thread in groupby(rows, key=lambda row: row["thread_id"]):
        messages = [{**row, "threadId": thread} for row in of_thread]
        yield {"title": titles.get(thread), "messages": messages}


def _of_ai(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of each thread; Mastra has the parts of a message in its content."""
    threads: dict[str | None, list[fields.Record]] = {}
    for one in fields.records(value, "messages", "the list"):
        content = one.get("content")
        if isinstance(content, str) and "parts" not in one:
            content = _unpacked(content)
        found = {"parts": [], **one, **fields.record({"content": content}, "content")}
        threads.setdefault(fields.text(one, "threadId"), []).append(found)
    for name, messages in threads.items():
        yield ChatRecord(value if len(threads) == 1 else {}, messages, name)


def _unpacked(content: str) -> fields.Record:
    """The parts in a text of JSON, as Mastra's databases store them, or the text itself."""
    with suppress(InputError):
        found = loads(content, "the content of a message") if content.startswith(("{", "[")) else None
        if isinstance(found, list) and all(fields.has(part, type=str) for part in found):
            return {"parts": found}
        if fields.has(found, parts=list):
            return as_object(found, "the content of a message")
    return {"content": content}


def _is_ai_message(value: Any) -> bool:
    if fields.has(value, content=dict):
        value = {**value, "parts": value["content"].get("parts")}
    is_message = fields.has(value, role=str, parts=list) and "content_type" not in value
    return is_message and all(fields.has(part, type=str) for part in value["parts"])


def _parts_of_ai(message: fields.Record) -> Iterator[Part]:
    """The parts of a message; the calls of a step were made at once."""
    step: list[Part] = []
    for part in message["parts"]:
        found = [*_parts_of_part(part)]
        if part["type"] == "step-start" or any(isinstance(one, str | Reasoning) for one in found):
            yield from at_once(step)
            step = []
        step += found
    yield from at_once(step)
    if not message["parts"]:
        yield from standard_parts(message)


def _parts_of_part(part: fields.Record) -> Iterator[Part]:
    kind = part["type"]
    if kind == "tool-invocation":
        part = {**part.get("toolInvocation", {}), "type": kind}
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        name = fields.text(part, "toolName") or kind.removeprefix("tool-")
        arguments = (part[field] for field in ("input", "args", "rawInput") if part.get(field) is not None)
        failed = part.get("errorText")
        if part.get("state") == "output-denied":
            failed = part.get("approval", {}).get("reason") or "Tool execution denied."
        output = part.get("output", part.get("result")) if failed is None else failed
        id, is_error = fields.text(part, "toolCallId"), failed is not None
        yield from called(name, next(arguments, None), id, output, is_error)
    elif kind in ("source-url", "source-document", "source"):
        yield Other(part)
    else:
        yield from parts_of(part)


AI_SDK = Program(
    "ai_sdk",
    "messages of Vercel's AI SDK, or of Mastra",
    lambda value: all_are(value, _is_ai_message),
    _parts_of_ai,
    _of_ai,
    _is_ai_message,
    is_database=lambda source: "mastra_messages" in source.tables and source.has(mastra_messages=_MASTRA),
    rows=_rows_of_mastra,
)


PROGRAMS = (LLAMAINDEX, SEMANTIC_KERNEL, AUTOGEN, HAYSTACK, AI_SDK)
