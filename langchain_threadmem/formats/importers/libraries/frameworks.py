"""Messages of LlamaIndex, Semantic Kernel, AutoGen, Haystack and the AI SDK, see `program`.

The fields are those that llama-index-core 0.14 writes (with the database of a memory, `SQLAlchemyChatStore`),
semantic-kernel 1.45, autogen-agentchat 0.7, haystack-ai 3.4 and older versions, and ai 6 (`UIMessage`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, parts_of, text_in
from langchain_threadmem.formats.importers.parts import Other, Part, Reasoning, ToolResult, ToolUse, at_once
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are, standard_parts
from langchain_threadmem.formats.importers.said import ASSISTANT, TOOL, USER
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import loads

_COLUMNS = {"id", "key", "timestamp", "role", "status", "data"}
_NANOSECONDS = 1e9


def _is_llamaindex(value: Any) -> bool:
    if isinstance(value, dict) and isinstance(value.get("chat_store"), dict):
        value = value["chat_store"]
    store = value.get("store") if isinstance(value, dict) else None
    return isinstance(store, dict) and all(isinstance(one, list) for one in store.values())


def _of_llamaindex(value: fields.Record) -> Iterator[ChatRecord]:
    for key, messages in value.get("chat_store", value)["store"].items():
        yield ChatRecord({}, [_loaded(one) for one in messages], str(key))


def _loaded(message: fields.Record) -> fields.Record:
    """A message, or a row of a database with a message."""
    return message | loads(message["data"], "a message") if isinstance(message.get("data"), str) else message


def _parts_of_llamaindex(message: fields.Record) -> Iterator[Part]:
    extra = fields.record(message, "additional_kwargs")
    if id := fields.text(extra, "tool_call_id"):
        texts = (fields.at(block, "text") for block in fields.values(message, "blocks"))
        output = "\n\n".join(text for text in texts if isinstance(text, str)) or message.get("content")
        yield ToolResult(output, id, fields.text(extra, "name"))
        return
    blocks = message.get("blocks")
    if not isinstance(blocks, list):
        yield from parts_of(message.get("content"))
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("block_type")
        if kind == "tool_call":
            id = fields.text(block, "tool_call_id")
            yield ToolUse(str(block.get("tool_name")), block.get("tool_kwargs"), id)
        else:
            yield from parts_of({**block, "type": kind})
    for call in extra.get("tool_calls") or ():
        yield from parts_of({**call, "type": "tool_call"})


def _tables(source: Source) -> list[str]:
    return [name for name, columns in source.tables.items() if columns >= _COLUMNS]


def _rows(source: Source) -> Iterator[fields.Record]:
    """The conversations of a database, with the messages that left the memory of the model."""
    for table in _tables(source):
        query = f'SELECT key, timestamp, data FROM "{table}" ORDER BY key, timestamp, id'
        for key, rows in groupby(source.rows(query), key=lambda row: str(row[0])):
            yield {"store": {key: [{"created": time / _NANOSECONDS, "data": data} for _, time, data in rows]}}


LLAMAINDEX = Program(
    "llamaindex",
    "LlamaIndex's chat store, or its database",
    _is_llamaindex,
    _parts_of_llamaindex,
    _of_llamaindex,
    is_database=lambda source: bool(_tables(source)),
    rows=_rows,
)


def _is_kernel_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("Items"), list):
        return isinstance(value.get("Role"), dict)
    items = value.get("items")
    return isinstance(items, list) and (
        "content_type" in value or any(isinstance(one, dict) and "content_type" in one for one in items)
    )


def _parts_of_kernel(message: fields.Record) -> Iterator[Part]:
    for item in message.get("items") or message.get("Items") or ():
        kind = str(item.get("content_type") or item.get("$type") or "").lower().removesuffix("content")
        id = fields.text_or_none(
            item.get("id") or item.get("Id") or item.get("call_id") or item.get("CallId")
        )
        name = fields.text_or_none(item.get("name") or item.get("FunctionName"))
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
    if not isinstance(value, dict):
        return False
    if _is_event(value):
        return True
    if isinstance(value.get("messages"), list):  # The result of a run.
        return bool(value["messages"]) and all(map(_is_event, value["messages"]))
    return ("llm_context" in value or "agent_states" in value) and "version" in value


def _is_event(value: Any) -> bool:
    """Whether a value is a message or an event of AgentChat."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("source"), str)
        and (value.get("type") in (*_EVENTS, *_TOOL_EVENTS, *_OTHER_EVENTS) or _is_structured(value))
    )


def _is_structured(event: fields.Record) -> bool:
    return str(event.get("type")).startswith("StructuredMessage")


def _said_in(events: Iterable[fields.Record]) -> list[fields.Record]:
    """The events that someone has said, with their roles."""
    said = (*_EVENTS, *_TOOL_EVENTS)
    return [_with_role(one) for one in events if one.get("type") in said or _is_structured(one)]


def _of_autogen(value: fields.Record) -> Iterator[ChatRecord]:
    if "messages" in value:
        yield ChatRecord({}, _said_in(value["messages"]))
        return
    if "agent_states" not in value:
        yield ChatRecord({}, (value["llm_context"] or {}).get("messages") or [])
        return
    states = value["agent_states"]
    threads = [_thread_of(state) for state in states.values()]
    thread = max((one for one in threads if one), key=len, default=None)
    if thread is not None:
        yield ChatRecord({}, _said_in(thread))
        return
    for name, state in states.items():
        inner = state.get("agent_state", state)
        context = inner.get("llm_context") if isinstance(inner, dict) else None
        if isinstance(context, dict) and context.get("messages"):
            yield ChatRecord({}, context["messages"], str(name))


def _thread_of(state: Any) -> list[fields.Record] | None:
    """The messages that all agents of a team have seen."""
    thread = state.get("message_thread") if isinstance(state, dict) else None
    return thread if isinstance(thread, list) else None


def _with_role(event: fields.Record) -> fields.Record:
    source = str(event.get("source"))
    role = _TOOL_EVENTS.get(str(event.get("type"))) or (USER if source == USER else ASSISTANT)
    return {**event, "role": role}


def _parts_of_autogen(message: fields.Record) -> Iterator[Part]:
    if isinstance(message.get("thought"), str):
        yield Reasoning(message["thought"])
    content = message.get("content")
    if _is_structured(message):
        yield json.dumps(content, ensure_ascii=False)
        return
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, dict) and "call_id" in one:
            id, name = fields.text_or_none(one["call_id"]), fields.text(one, "name")
            yield ToolResult(one.get("content"), id, name, bool(one.get("is_error")))
        elif isinstance(one, dict) and "arguments" in one:
            yield ToolUse(str(one.get("name")), one["arguments"], fields.text(one, "id"))
        elif isinstance(one, dict) and "data" in one:
            yield file_of({**one, "type": "image"})
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
    if not isinstance(value, dict):
        return False
    if "_role" in value and isinstance(value.get("_content"), list):
        return True
    content = value.get("content")
    return (
        isinstance(value.get("role"), str)
        and isinstance(content, list)
        and "meta" in value
        and all(isinstance(one, dict) and "type" not in one for one in content)
    )


def _parts_of_haystack(message: fields.Record) -> Iterator[Part]:
    content = message.get("content")
    for one in content if content is not None else message.get("_content") or ():
        if isinstance(call := one.get("tool_call"), dict):
            yield ToolUse(str(call.get("tool_name")), call.get("arguments"), fields.text(call, "id"))
        elif isinstance(result := one.get("tool_call_result"), dict):
            origin = result.get("origin") or {}
            id, name = fields.text(origin, "id"), fields.text(origin, "tool_name")
            yield ToolResult(result.get("result"), id, name, bool(result.get("error")))
        elif isinstance(thought := one.get("reasoning"), dict):
            yield Reasoning(str(thought.get("reasoning_text") or ""))
        elif "image" in one or "file" in one:
            yield file_of(
                {**(one.get("image") or one.get("file") or {}), "type": "image" if "image" in one else "file"}
            )
        else:
            yield from parts_of(one)


HAYSTACK = Program(
    "haystack",
    "Haystack's messages",
    lambda value: all_are(value, _is_haystack_message),
    _parts_of_haystack,
    is_message=_is_haystack_message,
)


def _is_ai_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("parts"), list)
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value["parts"])
        and "content_type" not in value
    )


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
        id = fields.text(part, "toolCallId")
        arguments = (part[field] for field in ("input", "args", "rawInput") if part.get(field) is not None)
        yield ToolUse(name, next(arguments, None), id)
        failed = part.get("errorText")
        if part.get("state") == "output-denied":
            failed = part.get("approval", {}).get("reason") or "Tool execution denied."
        output = part.get("output", part.get("result"))
        if failed is not None or output is not None:
            yield ToolResult(output if failed is None else failed, id, name, failed is not None)
    elif kind in ("source-url", "source-document", "source"):
        yield Other(part)
    elif kind == "file":
        yield file_of(part)
    else:
        yield from parts_of(part)


AI_SDK = Program(
    "ai_sdk",
    "messages of Vercel's AI SDK",
    lambda value: all_are(value, _is_ai_message),
    _parts_of_ai,
    is_message=_is_ai_message,
)


PROGRAMS = (LLAMAINDEX, SEMANTIC_KERNEL, AUTOGEN, HAYSTACK, AI_SDK)
