"""The backup of big-AGI.

The fields follow enricoros/big-AGI (src/modules/trade/trade.types.ts).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import Program, itself
from langchain_threadmem.formats.importers.said import Other, Part, Reasoning, ToolResult, ToolUse

_NAMES = ("systemPurposeId", "userTitle", "autoTitle")
"""Fields that only conversations of big-AGI have."""


def _is_big_agi(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    return any(name in value for name in _NAMES) or any(
        isinstance(one, dict) and isinstance(one.get("fragments"), list) for one in messages
    )


def _parts_of_big_agi(message: Record) -> Iterator[Part]:
    fragments = message.get("fragments")
    if not isinstance(fragments, list):
        yield from parts_of(message.get("text"))
        return
    for fragment in fragments:
        part = fragment.get("part")
        part = part if isinstance(part, dict) else {}
        kind = part.get("pt")
        if kind == "text":
            yield from parts_of(part.get("text"))
        elif kind == "ma":
            yield Reasoning(str(part.get("aText") or ""))
        elif kind == "error":
            yield from parts_of(part.get("error"))
        elif kind == "tool_invocation":
            call = part.get("invocation") or {}
            name = text_or_none(call.get("name")) or str(call.get("type"))
            yield ToolUse(name, call.get("args") or call.get("code"), text_or_none(part.get("id")))
        elif kind == "tool_response":
            response = part.get("response") or {}
            yield ToolResult(
                response.get("result"),
                text_or_none(part.get("id")),
                text_or_none(response.get("name")),
                bool(part.get("error")),
            )
        elif fragment.get("ft") == "attachment" or kind in ("reference", "image_ref", "doc"):
            value = {**fragment, "type": "image" if kind == "image_ref" else "file"}
            yield file_of(value, is_beside=fragment.get("ft") == "attachment")
        elif kind not in ("_pt_sentinel", "ph", None):
            yield Other(fragment)


PROGRAM = Program("big_agi", "big-AGI's backup", _is_big_agi, itself, _parts_of_big_agi)
