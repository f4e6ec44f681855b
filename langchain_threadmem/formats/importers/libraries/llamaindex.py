"""Chat stores and memories of LlamaIndex.

The fields are those that llama-index-core 0.14 writes; a database is that of a memory, `SQLAlchemyChatStore`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program
from langchain_threadmem.formats.importers.said import Part, ToolResult, ToolUse
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.records import as_object, loads

_COLUMNS = {"id", "key", "timestamp", "role", "status", "data"}
_NANOSECONDS = 1e9


def _is_llamaindex(value: Any) -> bool:
    if isinstance(value, dict) and isinstance(value.get("chat_store"), dict):
        value = value["chat_store"]
    store = value.get("store") if isinstance(value, dict) else None
    return isinstance(store, dict) and all(isinstance(one, list) for one in store.values())


def _of_llamaindex(value: Record) -> Iterator[ChatRecord]:
    store = value.get("chat_store", value)["store"]
    return (ChatRecord({}, messages, str(key)) for key, messages in store.items())


def _parts_of_llamaindex(message: Record) -> Iterator[Part]:
    extra = message.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    if id := text_or_none(extra.get("tool_call_id")):
        blocks = message.get("blocks")
        texts = (
            [block.get("text") for block in blocks if isinstance(block, dict)]
            if isinstance(blocks, list)
            else []
        )
        output = "\n\n".join(text for text in texts if isinstance(text, str)) or message.get("content")
        yield ToolResult(output, id, text_or_none(extra.get("name")))
        return
    blocks = message.get("blocks")
    if not isinstance(blocks, list):
        yield from parts_of(message.get("content"))
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("block_type")
        if kind == "tool_call":
            id = text_or_none(block.get("tool_call_id"))
            yield ToolUse(str(block.get("tool_name")), block.get("tool_kwargs"), id)
        else:
            yield from parts_of({**block, "type": kind})
    for call in extra.get("tool_calls") or ():
        yield from parts_of({**call, "type": "tool_call"})


def _tables(source: Source) -> list[str]:
    return [name for name, columns in source.tables.items() if columns >= _COLUMNS]


def _rows(source: Source) -> Iterator[ChatRecord]:
    """The conversations of a database, with the messages that left the memory of the model."""
    for table in _tables(source):
        query = f'SELECT key, timestamp, data FROM "{table}" ORDER BY key, timestamp, id'
        for key, rows in groupby(source.rows(query), key=lambda row: str(row[0])):
            position = f"conversation {key!r}"
            messages = [
                {**as_object(loads(data, position), position), "created": time / _NANOSECONDS}
                for _, time, data in rows
            ]
            yield ChatRecord({}, messages, key)


PROGRAM = Program(
    "llamaindex",
    "LlamaIndex's chat store, or its database",
    _is_llamaindex,
    _of_llamaindex,
    _parts_of_llamaindex,
    is_database=lambda source: bool(_tables(source)),
    rows=_rows,
)
