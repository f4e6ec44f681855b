"""Chat histories of Semantic Kernel.

The fields are those that semantic-kernel 1.45 writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import parts_of, text_in
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself
from langchain_threadmem.formats.importers.said import Part, Reasoning, ToolResult, ToolUse


def _is_semantic_kernel(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return _is_kernel_message(value) or (
        isinstance(messages, list) and bool(messages) and all(map(_is_kernel_message, messages))
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


def _parts_of_kernel(message: Record) -> Iterator[Part]:
    for item in message.get("items") or message.get("Items") or ():
        kind = str(item.get("content_type") or item.get("$type") or "").lower().removesuffix("content")
        id = text_or_none(item.get("id") or item.get("Id") or item.get("call_id") or item.get("CallId"))
        name = text_or_none(item.get("name") or item.get("FunctionName"))
        if kind in ("function_call", "functioncall"):
            yield ToolUse(name or "tool", item.get("arguments", item.get("Arguments")), id)
        elif kind in ("function_result", "functionresult"):
            id = text_or_none(item.get("CallId")) or id
            yield ToolResult(item.get("result", item.get("Result")), id, name)
        elif kind in ("reasoning", "streaming_reasoning"):
            yield Reasoning(str(item.get("text") or ""))
        elif text := text_in(item.get("text") or item.get("Text")):
            yield text
        elif kind != "text":
            yield from parts_of({**item, "type": kind})


PROGRAM = Program(
    "semantic_kernel",
    "Semantic Kernel's chat history",
    _is_semantic_kernel,
    itself,
    _parts_of_kernel,
    _is_kernel_message,
)
