"""Approximate numbers of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem.messages.codec import clone

_LENGTH = 340
"""The number of characters for which encoded data counts: 85 tokens, as LangChain counts an image."""
_ENCODED = re.compile(rf"(?:data:[^,]{{1,100}},)?[\w+/=\r\n-]{{{_LENGTH}}}", re.ASCII)


def count_tokens(messages: Iterable[BaseMessage]) -> int:
    """The number of tokens of messages, as LangChain's `count_tokens_approximately` counts them.

    LangChain counts an image as 85 tokens, and all other data in content blocks (audio, files, signatures,
    encrypted reasoning) by its characters: a file of 1 MB in Base64 as 350,000 tokens. Here any encoded data
    counts as an image.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> audio = {"type": "input_audio", "input_audio": {"data": "UklGRiQA" * 100_000, "format": "wav"}}
        >>> count_tokens([HumanMessage([audio])])
        107
    """
    return count_tokens_approximately([_without_data(message) for message in messages])


def count_text(text: str) -> int:
    """The number of tokens of a text."""
    return -(-len(text) // 4)


def _without_data(message: BaseMessage) -> BaseMessage:
    """The message with the beginnings of encoded data; its text is complete."""
    if isinstance(message.content, str):
        return message
    blocks = [
        _short(block) if isinstance(block, dict) and block.get("type") != "text" else block
        for block in message.content
    ]
    return clone(message, content=blocks)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, bytes):
        return " " * min(len(value), _LENGTH)
    return value[:_LENGTH] if isinstance(value, str) and _ENCODED.match(value) else value
