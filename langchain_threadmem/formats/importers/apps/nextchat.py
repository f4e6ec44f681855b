"""The backup of NextChat.

The fields follow ChatGPTNextWeb/NextChat (app/store/chat.ts).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import file_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program, standard_parts
from langchain_threadmem.formats.importers.said import Part, ToolResult


def _is_nextchat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat-next-web-store"), dict)


def _of_nextchat(value: Record) -> Iterator[ChatRecord]:
    for session in value["chat-next-web-store"].get("sessions") or ():
        mask = session.get("mask") if isinstance(session.get("mask"), dict) else {}
        config = mask.get("modelConfig")
        model = config.get("model") if isinstance(config, dict) else None
        record = {**session, "model": model, "created": None}
        yield ChatRecord(record, session.get("messages") or [])


def _parts_of_nextchat(message: Record) -> Iterator[Part]:
    for tool in message.get("tools") or ():
        if isinstance(tool, dict):
            yield from parts_of(
                {"type": "tool_call", "function": tool.get("function") or {}, "id": tool.get("id")}
            )
            if tool.get("content") is not None or tool.get("errorMsg"):
                output = tool.get("content") or tool.get("errorMsg")
                yield ToolResult(output, text_or_none(tool.get("id")), None, bool(tool.get("isError")))
    yield from standard_parts(message)
    if message.get("audio_url"):
        yield file_of({"type": "audio", "url": message["audio_url"]}, is_beside=True)


PROGRAM = Program("nextchat", "NextChat's backup", _is_nextchat, _of_nextchat, _parts_of_nextchat)
