"""The export of TypingMind.

The fields are not confirmed by a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.program import ChatRecord, Program, standard_parts


def _is_typingmind(value: Any) -> bool:
    return _is_chat_of_typingmind(value) or (
        isinstance(value, dict)
        and isinstance(value.get("data"), dict)
        and isinstance(value["data"].get("chats"), list)
    )


def _is_chat_of_typingmind(value: Any) -> bool:
    return isinstance(value, dict) and "chatID" in value and isinstance(value.get("messages"), list)


def _of_typingmind(value: Record) -> Iterator[ChatRecord]:
    chats = [value] if _is_chat_of_typingmind(value) else value["data"]["chats"]
    return (ChatRecord(chat, chat.get("messages") or []) for chat in chats)


PROGRAM = Program("typingmind", "TypingMind's export", _is_typingmind, _of_typingmind, standard_parts)
