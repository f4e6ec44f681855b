"""Chats of Mistral's export.

The fields are not confirmed by a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program, ReadParts, itself, said_of
from langchain_threadmem.formats.importers.said import Part, Said


def _is_mistral(value: Any) -> bool:
    return _is_mistral_message(value) or (
        isinstance(value, list) and bool(value) and all(map(_is_mistral_message, value))
    )


def _is_mistral_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and "parentId" in value
        and "version" in value
    )


def _parts_of_mistral(message: Record) -> Iterator[Part]:
    chunks = message.get("contentChunks")
    parts = parts_of(chunks)
    yield from (
        parts if any(isinstance(part, str) for part in parts) else [*parts_of(message.get("content")), *parts]
    )
    yield from files_of(message.get("files"))


def _said_of_mistral(conversation: ChatRecord, read: ReadParts, position: str) -> list[Said]:
    """The messages of a chat with their parents; another version of a message is a sibling."""
    said: list[Said] = []
    for item in conversation.messages:
        one = said_of(item, said[-1].key if said else None, read, position)
        if item.get("parentId") is not None or not said:
            one.parent = text_or_none(item.get("parentId"))
        said.append(one)
    return said


PROGRAM = Program(
    "mistral",
    "chats of Mistral's export",
    _is_mistral,
    itself,
    _parts_of_mistral,
    _is_mistral_message,
    _said_of_mistral,
)
