"""Data sets: trees of Open Assistant, conversations of ShareGPT, and texts that alternate (UltraChat).

The fields follow LAION-AI/Open-Assistant, and the pages of the other data sets, which no source confirms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_threadmem.common.inputs import is_number
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
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
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_object

_OASST = {"prompter": USER, "assistant": ASSISTANT}
_KEPT = ("lang", "rank", "quality", "synthetic", "review_result", "deleted", "labels", "emojis")


def _is_oasst(value: object) -> bool:
    """Whether an item is a tree, or a message of a tree, of Open Assistant."""
    if not isinstance(value, dict) or "message_tree_id" not in value:
        return False
    return isinstance(value.get("prompt"), dict) or ("message_id" in value and "role" in value)


def _chats_of_oasst(source: Source) -> Chats:
    """The conversations: one for each tree."""
    rows: dict[str, list[Record]] = {}

    def read(value: Record, position: str) -> Chats:
        if isinstance(value.get("prompt"), dict):
            yield _tree(str(value["message_tree_id"]), [*_flat(value["prompt"])], position)
        else:
            rows.setdefault(str(value["message_tree_id"]), []).append(value)

    yield from source.each(read)
    for name, messages in rows.items():
        where = f"tree {name!r}"
        yield from checked(where, _tree, name, messages, where)


def _flat(message: Record) -> Iterable[Record]:
    waiting: list[tuple[str | None, Any]] = [(None, message)]
    while waiting:
        parent, value = waiting.pop()
        one = as_object(value, "a reply")
        yield {**one, "parent_id": one.get("parent_id") or parent}
        replies = one.get("replies")
        waiting += [(text_or_none(one.get("message_id")), reply) for reply in reversed(replies or [])]


def _tree(name: str, messages: Sequence[Record], position: str) -> Chat:
    said: list[Said] = []
    for message in messages:
        key = text_or_none(message.get("message_id"))
        if key is None:
            raise InputError(f"{position} has a message without 'message_id'")
        role = _OASST.get(str(message.get("role")), str(message.get("role")))
        said.append(
            Said(
                key,
                text_or_none(message.get("parent_id")),
                role,
                parts_of(message.get("text")),
                seconds(message.get("created_date"), position),
                text_or_none(message.get("model_name")) if role == ASSISTANT else None,
                is_aside=bool(message.get("deleted")),
                extra={name: message[name] for name in _KEPT if message.get(name) not in (None, False)},
            )
        )
    ranks = {one.key: message.get("rank") for one, message in zip(said, messages, strict=True)}
    return chat_of(
        position,
        name,
        entries_of(said),
        tip=_best(said, ranks),
        metadata=kept(lang=text_or_none(messages[0].get("lang")) if messages else None),
    )


def _best(said: Sequence[Said], ranks: dict[str, Any]) -> str | None:
    """The end of the thread with the best reply at each step: rank 0, else the first."""
    keys = {one.key for one in said}
    replies: dict[str | None, list[Said]] = {}
    for one in said:
        if not one.is_aside:
            replies.setdefault(one.parent if one.parent in keys else None, []).append(one)
    end: str | None = None
    while found := replies.pop(end, None):
        rank = {one.key: ranks[one.key] for one in found}
        end = min(found, key=lambda one: rank[one.key] if is_number(rank[one.key]) else len(rank)).key
    return end


OASST = Format("oasst", "trees or messages of Open Assistant", _chats_of_oasst, _is_oasst)


_SHAREGPT = {
    **dict.fromkeys(("human", "user", "prompter"), USER),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "assistant", "model", "function_call"), ASSISTANT),
    **dict.fromkeys(("system",), SYSTEM),
    **dict.fromkeys(("observation", "tool", "function_response", "function-response"), TOOL),
}
_PIECE = re.compile(r"(.+)_(\d+)")
"""The id of a piece of a long chat."""


def _is_sharegpt(value: object) -> bool:
    """Whether an item is a conversation of ShareGPT."""
    turns = value.get("conversations") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        return False
    return bool(turns) and all(isinstance(one, dict) and "from" in one and "value" in one for one in turns)


def _chats_of_sharegpt(source: Source) -> Chats:
    """The conversations of a file; the pieces of a long chat follow each other."""
    ends: dict[str, str] = {}

    def read(value: Record, position: str) -> Chats:
        id = text_or_none(value.get("id")) or (str(value["id"]) if isinstance(value.get("id"), int) else None)
        piece = _PIECE.fullmatch(id or "")
        name = piece[1] if piece else id or f"{source.name}-{source.read}"
        goes_on = piece is not None and int(piece[2]) > 0 and name in ends
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

    return source.each(read)


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


SHAREGPT = Format("sharegpt", "conversations of ShareGPT", _chats_of_sharegpt, _is_sharegpt)


def _is_ultrachat(value: object) -> bool:
    """Whether an item is a conversation whose texts alternate."""
    texts = value.get("data") if isinstance(value, dict) else None
    return isinstance(texts, list) and bool(texts) and all(isinstance(text, str) for text in texts)


def _chats_of_ultrachat(source: Source) -> Chats:
    """The conversations of a file; the first text is of the user."""

    def read(value: Record, position: str) -> Chats:
        id = value.get("id")
        said: list[Said] = []
        previous: str | None = None
        for n, text in enumerate(value["data"]):
            role = ASSISTANT if n % 2 else USER
            said.append(Said(chained_id("import-", previous, [role, text]), previous, role, [text]))
            previous = said[-1].key
        name = f"{source.name}-{source.read}" if id is None else str(id)
        yield chat_of(position, name, entries_of(said))

    return source.each(read)


ULTRACHAT = Format("ultrachat", "conversations of UltraChat", _chats_of_ultrachat, _is_ultrachat)


FORMATS = (OASST, SHAREGPT, ULTRACHAT)
