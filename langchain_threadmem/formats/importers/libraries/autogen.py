"""States of agents and teams of AutoGen.

The fields are those that autogen-core 0.7 writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    TOOL,
    USER,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
)

_EVENTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
_TOOL_EVENTS = {"ToolCallRequestEvent": ASSISTANT, "ToolCallExecutionEvent": TOOL, "ThoughtEvent": "thinking"}


def _is_autogen(value: Any) -> bool:
    return (
        isinstance(value, dict) and ("llm_context" in value or "agent_states" in value) and "version" in value
    )


def _of_autogen(value: Record) -> Iterator[ChatRecord]:
    if "agent_states" not in value:
        yield ChatRecord({}, (value["llm_context"] or {}).get("messages") or [])
        return
    states = value["agent_states"]
    threads = [_thread_of(state) for state in states.values()]
    thread = max((one for one in threads if one), key=len, default=None)
    if thread is not None:
        messages = [_with_role(one) for one in thread if one.get("type") in (*_EVENTS, *_TOOL_EVENTS)]
        yield ChatRecord({}, messages)
        return
    for name, state in states.items():
        inner = state.get("agent_state", state)
        context = inner.get("llm_context") if isinstance(inner, dict) else None
        if isinstance(context, dict) and context.get("messages"):
            yield ChatRecord({}, context["messages"], str(name))


def _thread_of(state: Any) -> list[Record] | None:
    """The messages that all agents of a team have seen."""
    thread = state.get("message_thread") if isinstance(state, dict) else None
    return thread if isinstance(thread, list) else None


def _with_role(event: Record) -> Record:
    source = str(event.get("source"))
    role = _TOOL_EVENTS.get(str(event.get("type"))) or (USER if source == USER else ASSISTANT)
    return {**event, "role": role}


def _parts_of_autogen(message: Record) -> Iterator[Part]:
    if isinstance(message.get("thought"), str):
        yield Reasoning(message["thought"])
    content = message.get("content")
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, dict) and "call_id" in one:
            id, name = text_or_none(one["call_id"]), text_or_none(one.get("name"))
            yield ToolResult(one.get("content"), id, name, bool(one.get("is_error")))
        elif isinstance(one, dict) and "arguments" in one:
            yield ToolUse(str(one.get("name")), one["arguments"], text_or_none(one.get("id")))
        elif isinstance(one, dict) and "data" in one:
            yield file_of({**one, "type": "image"})
        else:
            yield from parts_of(one)


PROGRAM = Program(
    "autogen", "AutoGen's state of an agent or a team", _is_autogen, _of_autogen, _parts_of_autogen
)
