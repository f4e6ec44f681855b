"""Approximate numbers of tokens, by a table that was measured with the tokenizer `o200k_base`.

LangChain counts four characters as a token, which is right for English prose alone: Chinese has three times
as many tokens, emoji five times, JSON half as many again. Here the pieces of a text count: English words,
groups of digits, runs of punctuation, and the letters of each other script with the share of a token that
texts of this script have. Texts in Chinese, Japanese, Korean, Thai, Hindi, code, JSON and emoji have within a
fifth of the counted tokens; older tokenizers have up to four times as many for some scripts. `TokenWindow`
takes the counter of a model where exact numbers matter.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem.messages.codec import clone

_LENGTH = 340
"""The number of characters for which encoded data counts: 85 tokens, as LangChain counts an image."""
_ENCODED = re.compile(rf"(?:data:[^,]{{1,100}},)?[\w+/=\r\n-]{{{_LENGTH}}}", re.ASCII)
_PIECE = re.compile(r"[A-Za-z\u00c0-\u024f]{1,9}|[0-9]{1,3}|\n\s*|[ \t]{2,}|[!-/:-@\[-`{-~]{1,3}")
"""A part of a text in Latin letters that is about one token."""
_LONGEST_TOKEN = 4.9
"""The greatest mean number of characters of a token; words that are no words have shorter pieces."""
_SHARES = (
    ("\u00c0-\u024f", 0.6),  # Latin letters with marks, beside their piece
    ("\u0250-\u03ff\u0530-\u05ff", 0.43),  # Greek, Armenian, Hebrew
    ("\u0400-\u052f", 0.29),  # Cyrillic
    ("\u0600-\u08ff", 0.39),  # Arabic
    ("\u0900-\u097f", 0.36),  # Devanagari
    ("\u0980-\u0dff", 0.37),  # Bengali, Tamil and other scripts of India
    ("\u0e00-\u109f\u1780-\u17ff", 0.4),  # Thai, Lao, Burmese, Khmer
    ("\u3000-\u303f\uff00-\uffef", 0.9),  # punctuation of East Asia
    ("\u3040-\u30ff", 0.68),  # kana
    ("\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", 0.74),  # Han
    ("\u1100-\u11ff\uac00-\ud7af", 0.76),  # Hangul
    ("\u200d\ufe0f\u2190-\u2bff\U0001f000-\U0001ffff", 1.5),  # emoji, and what joins them
)
"""Characters and the tokens that each of them counts."""
_RUNS = tuple((re.compile(f"[{characters}]+"), share) for characters, share in _SHARES)


def count_tokens(messages: Iterable[BaseMessage]) -> int:
    """The number of tokens of messages: texts and calls as `count_text`, and the rest as LangChain does.

    LangChain counts an image as 85 tokens, and all other data in content blocks (audio, files, signatures,
    encrypted reasoning) by its characters: a file of 1 MB in Base64 as 350,000 tokens. Here any encoded data
    counts as an image.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> audio = {"type": "input_audio", "input_audio": {"data": "UklGRiQA" * 100_000, "format": "wav"}}
        >>> count_tokens([HumanMessage([audio])])
        107
        >>> count_tokens([HumanMessage("早班车六点半出发。")])
        11
    """
    listed = list(messages)
    texts = sum(count_text(text) for message in listed for text in _texts(message))
    return texts + count_tokens_approximately([_without_texts(message) for message in listed])


def count_text(text: str) -> int:
    """The number of tokens of a text.

    Example:
        >>> count_text("Which train should I take?"), count_text("我该坐哪一趟火车？")
        (6, 7)
    """
    count: float = len(_PIECE.findall(text))
    if not text.isascii():
        count += sum(share * sum(map(len, run.findall(text))) for run, share in _RUNS)
    return math.ceil(max(count, len(text) / _LONGEST_TOKEN))


def _texts(message: BaseMessage) -> Iterator[str]:
    """The texts and calls of a message."""
    if isinstance(message.content, str):
        yield message.content
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                yield f"{call['name']}{json.dumps(call['args'], ensure_ascii=False, default=str)}"
        return
    for block in message.content:
        if isinstance(block, str):
            yield block
        elif block.get("type") == "text":
            yield str(block.get("text") or "")


def _without_texts(message: BaseMessage) -> BaseMessage:
    """The message without the results of `_texts`, and with the beginnings of encoded data."""
    if isinstance(message.content, str):
        return clone(message, content="", **({"tool_calls": []} if isinstance(message, AIMessage) else {}))
    blocks = [
        _short(block)
        for block in message.content
        if not isinstance(block, str) and block.get("type") != "text"
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
