"""Messages of Vercel's AI SDK.

The fields follow vercel/ai (UIMessage).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself, standard_parts
from langchain_threadmem.formats.importers.said import Other, Part, Reasoning, ToolResult, ToolUse, at_once


def _is_ai_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("parts"), list)
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in value["parts"])
        and "content_type" not in value
    )


def _is_ai_sdk(value: Any) -> bool:
    messages = (
        value.get("messages") if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    if isinstance(messages, list):
        return bool(messages) and all(map(_is_ai_message, messages))
    return _is_ai_message(value)


def _parts_of_ai(message: Record) -> Iterator[Part]:
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


def _parts_of_part(part: Record) -> Iterator[Part]:
    kind = part["type"]
    if kind == "tool-invocation":
        part = {**part.get("toolInvocation", {}), "type": kind}
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        name = text_or_none(part.get("toolName")) or kind.removeprefix("tool-")
        id = text_or_none(part.get("toolCallId"))
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


PROGRAM = Program("ai_sdk", "messages of Vercel's AI SDK", _is_ai_sdk, itself, _parts_of_ai, _is_ai_message)
