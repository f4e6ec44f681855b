"""Messages of Haystack.

The fields are those that haystack-ai 3.4 writes, and older versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself
from langchain_threadmem.formats.importers.said import Part, Reasoning, ToolResult, ToolUse


def _is_haystack(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    if isinstance(messages, list):
        return bool(messages) and all(map(_is_haystack_message, messages))
    return _is_haystack_message(value)


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


def _parts_of_haystack(message: Record) -> Iterator[Part]:
    content = message.get("content")
    for one in content if content is not None else message.get("_content") or ():
        if isinstance(call := one.get("tool_call"), dict):
            yield ToolUse(str(call.get("tool_name")), call.get("arguments"), text_or_none(call.get("id")))
        elif isinstance(result := one.get("tool_call_result"), dict):
            origin = result.get("origin") or {}
            id, name = text_or_none(origin.get("id")), text_or_none(origin.get("tool_name"))
            yield ToolResult(result.get("result"), id, name, bool(result.get("error")))
        elif isinstance(thought := one.get("reasoning"), dict):
            yield Reasoning(str(thought.get("reasoning_text") or ""))
        elif "image" in one or "file" in one:
            yield file_of(
                {**(one.get("image") or one.get("file") or {}), "type": "image" if "image" in one else "file"}
            )
        else:
            yield from parts_of(one)


PROGRAM = Program(
    "haystack", "Haystack's messages", _is_haystack, itself, _parts_of_haystack, _is_haystack_message
)
