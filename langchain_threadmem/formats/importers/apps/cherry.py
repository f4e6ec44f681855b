"""The backup of Cherry Studio.

The fields follow CherryHQ/cherry-studio.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import (
    ChatRecord,
    Program,
    ReadParts,
    said_of,
    standard_parts,
)
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    Other,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
)


def _is_cherry(value: Any) -> bool:
    database = value.get("indexedDB") if isinstance(value, dict) else None
    return isinstance(database, dict) and isinstance(database.get("topics"), list)


def _of_cherry(value: Record) -> Iterator[ChatRecord]:
    database = value["indexedDB"]
    listed = [one for one in database.get("message_blocks") or () if isinstance(one, dict)]
    blocks = {one.get("id"): one for one in listed}
    of_message: dict[Any, list[Any]] = {}
    for one in listed:
        of_message.setdefault(one.get("messageId"), []).append(one.get("id"))
    names = _topics_of_cherry(value)
    for topic in database["topics"]:
        messages = [
            {**message, "_blocks": [blocks[id] for id in _ids(message, of_message) if id in blocks]}
            if isinstance(message, dict)
            else message
            for message in topic.get("messages") or ()
        ]
        yield ChatRecord({**topic, **names.get(topic.get("id"), {})}, messages)


def _ids(message: Record, of_message: Mapping[Any, Sequence[Any]]) -> Sequence[Any]:
    """The ids of the blocks of a message, which the message or the blocks name."""
    return message.get("blocks") or of_message.get(message.get("id"), ())


def _topics_of_cherry(value: Record) -> dict[Any, Record]:
    """The titles of topics, which are in the state of the assistants."""
    state = value.get("localStorage")
    text = state.get("persist:cherry-studio") if isinstance(state, dict) else None
    try:
        outer = _json(text)
        assistants = _json(outer.get("assistants")).get("assistants") or ()
        topics = [topic for one in assistants for topic in one.get("topics") or ()]
    except (AttributeError, TypeError):
        return {}
    return {topic.get("id"): {"name": topic.get("name"), "pinned": topic.get("pinned")} for topic in topics}


def _json(value: Any) -> Any:
    from langchain_threadmem.messages.records import loads

    try:
        return loads(value, "a state") if isinstance(value, str) else value or {}
    except InputError:
        return {}


def _parts_of_cherry(message: Record) -> Iterator[Part]:
    blocks = message.get("_blocks") or []
    if not blocks:
        yield from standard_parts(message)
        return
    for block in blocks:
        kind, content = block.get("type"), block.get("content")
        if kind in ("main_text", "code", "translation"):
            yield from parts_of(content)
        elif kind == "thinking":
            yield Reasoning(str(content or ""))
        elif kind == "tool":
            id = text_or_none(block.get("toolId"))
            yield ToolUse(text_or_none(block.get("toolName")) or "tool", block.get("arguments"), id)
            if content is not None:
                yield ToolResult(content, id, text_or_none(block.get("toolName")))
        elif kind in ("file", "image", "video"):
            yield file_of(block, is_beside=kind == "file")
        else:
            yield Other(block)


def _said_of_cherry(conversation: ChatRecord, read: ReadParts, position: str) -> list[Said]:
    """The messages of a topic: several answers to one question are siblings, and one of them is continued."""
    said: list[Said] = []
    previous: str | None = None
    asked: str | None = None
    is_chosen = False
    for item in conversation.messages:
        one = said_of(item, previous, read, position)
        model = item.get("model")
        one.model = (
            text_or_none(model.get("id") or model.get("name")) if isinstance(model, dict) else one.model
        )
        question = text_or_none(item.get("askId"))
        if one.role == ASSISTANT and question is not None and any(before.key == question for before in said):
            one.parent = question
            is_first = asked != question
            chosen = bool(item.get("foldSelected") or item.get("useful"))
            if is_first or chosen or not is_chosen:
                previous, is_chosen = one.key, chosen or (is_chosen and not is_first)
            asked = question
        else:
            previous = one.key
        said.append(one)
    return said


PROGRAM = Program(
    "cherry", "Cherry Studio's backup", _is_cherry, _of_cherry, _parts_of_cherry, said=_said_of_cherry
)
