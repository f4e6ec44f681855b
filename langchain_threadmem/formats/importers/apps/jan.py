"""Threads of Jan.

The fields follow janhq/jan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself
from langchain_threadmem.formats.importers.said import Part, ToolResult


def _is_jan(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.get("object") == "thread.message" or ("role" in value and _has_values(value.get("content")))


def _has_values(content: Any) -> bool:
    """Whether the text of a block is the value of an object."""
    blocks = content if isinstance(content, list) else []
    return any(
        isinstance(block, dict) and isinstance(block.get("text"), dict) and "value" in block["text"]
        for block in blocks
    )


def _parts_of_jan(message: Record) -> Iterator[Part]:
    yield from parts_of(message.get("content"))
    metadata = message.get("metadata")
    calls = metadata.get("tool_calls") if isinstance(metadata, dict) else None
    for call in calls if isinstance(calls, list) else ():
        inner = call.get("tool") if isinstance(call.get("tool"), dict) else call
        yield from parts_of({**inner, "type": "tool_call"})
        if isinstance(call.get("response"), dict):
            yield ToolResult(call["response"].get("content"), text_or_none(inner.get("id")))


PROGRAM = Program("jan", "messages.jsonl of a thread of Jan", _is_jan, itself, _parts_of_jan, _is_jan)
