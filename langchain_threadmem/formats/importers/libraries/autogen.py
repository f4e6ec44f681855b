"""States of agents and teams of AutoGen.

The fields are those that autogen-core 0.7 writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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


def _is_structured(event: Record) -> bool:
    return str(event.get("type")).startswith("StructuredMessage")


def _said_in(events: Iterable[Record]) -> list[Record]:
    """The events that someone has said, with their roles."""
    said = (*_EVENTS, *_TOOL_EVENTS)
    return [_with_role(one) for one in events if one.get("type") in said or _is_structured(one)]


def _of_autogen(value: Record) -> Iterator[ChatRecord]:
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
    if _is_structured(message):
        yield json.dumps(content, ensure_ascii=False)
        return
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
    "autogen",
    "AutoGen's state of an agent or a team, or the messages of a run",
    _is_autogen,
    _of_autogen,
    _parts_of_autogen,
    _is_event,
)
