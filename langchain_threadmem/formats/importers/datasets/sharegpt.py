"""Conversations of ShareGPT.

The fields are those of the data sets on their pages, and are not confirmed by a source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Bad, Chats, chat_of, kept, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Part,
    Said,
    ToolResult,
    ToolUse,
    arguments_of,
    entries_of,
)
from langchain_threadmem.formats.importers.source import FAULTS, Source, problem_of
from langchain_threadmem.messages.ids import chained_id

_SHAREGPT = {
    **dict.fromkeys(("human", "user", "prompter"), USER),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "assistant", "model", "function_call"), ASSISTANT),
    **dict.fromkeys(("system",), SYSTEM),
    **dict.fromkeys(("observation", "tool", "function_response", "function-response"), TOOL),
}
_PIECE = re.compile(r"(.+)_(\d+)")
"""The id of a piece of a long chat."""


def is_item(value: object) -> bool:
    """Whether an item is a conversation of ShareGPT."""
    turns = value.get("conversations") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        return False
    return bool(turns) and all(isinstance(one, dict) and "from" in one and "value" in one for one in turns)


def chats(source: Source) -> Chats:
    """The conversations of a file; the pieces of a long chat follow each other."""
    ends: dict[str, str] = {}
    for number, item in enumerate(source.objects(), 1):
        if isinstance(item, Bad):
            yield item
            continue
        position, value = item
        id = text_or_none(value.get("id")) or (str(value["id"]) if isinstance(value.get("id"), int) else None)
        piece = _PIECE.fullmatch(id or "")
        name = piece[1] if piece else id or f"{source.name}-{number}"
        goes_on = piece is not None and int(piece[2]) > 0 and name in ends
        try:
            said = _turns(value["conversations"], ends.get(name) if goes_on else None, name, position)
            if said and piece:
                ends[name] = said[-1].key
            yield chat_of(
                position,
                name,
                entries_of(said),
                title=text_or_none(value.get("title")),
                goes_on=goes_on,
                metadata=kept(model=text_or_none(value.get("model"))),
            )
        except FAULTS as error:
            yield Bad(problem_of(error, position))


def _turns(turns: Sequence[Record], previous: str | None, name: str, position: str) -> list[Said]:
    said: list[Said] = []
    for turn in turns:
        sender, value = str(turn.get("from")).lower(), turn.get("value")
        role = _SHAREGPT.get(sender)
        if role is None:
            raise InputError(
                f"{position} has the sender {turn.get('from')!r}; use one of {', '.join(_SHAREGPT)}"
            )
        key = chained_id("import-", previous, [sender, value])
        said.append(Said(key, previous, role, _parts(sender, role, value), id=key))
        previous = key
    return said


def _parts(sender: str, role: str, value: Any) -> list[Part]:
    if sender == "function_call":
        call = arguments_of(value)
        if isinstance(call.get("name"), str):
            return [ToolUse(call["name"], call.get("arguments", call.get("parameters")))]
        return [ToolUse("function", call)]
    return [ToolResult(value)] if role == TOOL else parts_of(value)
