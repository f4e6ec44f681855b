"""Data sets: trees of Open Assistant, conversations of ShareGPT, and texts that alternate (UltraChat).

The fields follow LAION-AI/Open-Assistant, and the pages of the other data sets, which no source confirms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any

from langchain_threadmem.common.inputs import is_number
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.content_parts import Part, ToolResult, ToolUse, arguments_of
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.said import ASSISTANT, ROLES, TOOL, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.records import as_object

_TREE = "message_tree_id"


def _is_oasst(value: Any) -> bool:
    """Whether a value is a tree, or a message of a tree, of Open Assistant."""
    is_one = isinstance(value, dict) and _TREE in value
    return is_one and (fields.has(value, prompt=dict) or value.keys() >= {"message_id", "role"})


def _of_oasst(value: fields.Record) -> Iterator[ChatRecord]:
    is_tree = fields.has(value, prompt=dict)
    trees: dict[str, list[fields.Record]] = {}
    for row in _flat(value["prompt"]) if is_tree else value["messages"]:
        trees.setdefault(str((value if is_tree else row)[_TREE]), []).append(row)
    for name, messages in trees.items():
        metadata = fields.kept(lang=fields.text(messages[0], "lang"))
        yield ChatRecord({}, messages, name, {"tip": _best(messages), "metadata": metadata})


def _flat(message: fields.Record) -> Iterable[fields.Record]:
    waiting: list[tuple[str | None, Any]] = [(None, message)]
    while waiting:
        parent, value = waiting.pop()
        one = as_object(value, "a reply")
        yield {**one, "parent_id": one.get("parent_id") or parent}
        waiting += [(fields.text(one, "message_id"), reply) for reply in reversed(one.get("replies") or [])]


def _best(messages: Sequence[fields.Record]) -> str | None:
    """The end of the thread with the best reply at each step: rank 0, else the first."""
    keys = {one.get("message_id") for one in messages}
    replies: dict[str | None, list[fields.Record]] = {}
    for one in messages:
        if not one.get("deleted"):
            replies.setdefault(one["parent_id"] if one.get("parent_id") in keys else None, []).append(one)
    end: str | None = None
    while found := replies.pop(end, None):
        best = min(found, key=lambda one: one["rank"] if is_number(one.get("rank")) else len(keys))
        end = fields.text(best, "message_id")
    return end


OASST = Program(
    "oasst",
    "trees or messages of Open Assistant",
    _is_oasst,
    conversations=_of_oasst,
    is_message=lambda value: _is_oasst(value) and "prompt" not in value,
    parents=("parent_id",),
    kept=("lang", "rank", "quality", "synthetic", "review_result", "deleted", "labels", "emojis"),
    asides=("deleted",),
)


_PIECE = re.compile(r"(.+)_(\d+)")
"""The id of a piece of a long chat."""


def _is_sharegpt(value: Any) -> bool:
    """Whether a value is a conversation of ShareGPT."""
    turns = fields.values(value, "conversations")
    return bool(turns) and all("from" in one and "value" in one for one in turns if as_object(one, "a turn"))


def _parts(turn: fields.Record) -> list[Part]:
    sender, value = str(turn.get("from")).lower(), turn.get("value")
    if sender == "function_call":
        call = arguments_of(value)
        if isinstance(call.get("name"), str):
            return [ToolUse(call["name"], call.get("arguments", call.get("parameters")))]
        return [ToolUse("function", call)]
    return [ToolResult(value)] if ROLES.get(sender) == TOOL else parts_of(value)


_TURNS = Program("sharegpt", "conversations of ShareGPT", _is_sharegpt, _parts)


def _chats_of_sharegpt(source: Source) -> Chats:
    """The conversations of a file; the pieces of a long chat follow each other."""
    ends: dict[str, str] = {}

    def read(value: fields.Record, position: str) -> Chat:
        id = fields.id_in(value, "id")
        piece = _PIECE.fullmatch(id or "")
        name = piece[1] if piece else id or f"{source.name}-{source.read}"
        goes_on = piece is not None and int(piece[2]) > 0 and name in ends
        said: list[Said] = []
        previous = ends.get(name) if goes_on else None
        for turn in value["conversations"]:
            said.append(_TURNS.message({"from": turn["from"], "value": turn["value"]}, previous, position))
            previous = said[-1].key
        if previous is not None and piece:
            ends[name] = previous
        return chat_of(position, name, said, value, goes_on=goes_on)

    return source.each(read)


SHAREGPT = Format(_TURNS.name, _TURNS.contents, _chats_of_sharegpt, _is_sharegpt)


def _of_ultrachat(value: fields.Record) -> Iterator[ChatRecord]:
    roles = cycle((USER, ASSISTANT))
    yield ChatRecord(value, [{"role": next(roles), "content": text} for text in value["data"]])


ULTRACHAT = Program(
    "ultrachat",
    "conversations of UltraChat",
    lambda value: fields.has(value, data=list) and {*map(type, value["data"])} == {str},
    conversations=_of_ultrachat,
)


FORMATS = (OASST.format, SHAREGPT, ULTRACHAT.format)
