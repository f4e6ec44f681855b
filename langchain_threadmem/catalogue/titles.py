"""Titles of threads: the first informative words of the message that opens a thread."""

from __future__ import annotations

import re
from collections.abc import Iterable

from langchain_core.messages import BaseMessage

from langchain_threadmem.messages.codec import UNREADABLE, text_of
from langchain_threadmem.messages.text import one_line
from langchain_threadmem.summaries.text_rank import informative

LOOKED_AT = 120
"""The number of characters at the beginning of a text whose words are considered."""
WORDS_OF_TITLE = 5
# Matches words without the ends of English contractions ("we're", "Ada's").
_WORD = re.compile(r"(\w+)(?:['\u2019](?:s|re|ve|ll|d|m|t)\b)?", re.IGNORECASE)


def title_of(opening: str) -> str:
    """The title of a thread: the first informative words of the text that opens it; empty without text.

    Example:
        >>> title_of("How do I feed a sourdough starter?"), title_of("I've a question about Ada's bees")
        ('Feed sourdough starter', 'Question Ada bees')
    """
    opening = opening[:LOOKED_AT].strip()
    terms = informative(opening)
    words = list(dict.fromkeys(word for word in _WORD.findall(opening) if word.lower() in terms))
    title = " ".join(words[:WORDS_OF_TITLE]) or one_line(opening, WORDS_OF_TITLE * 8)
    return title[:1].upper() + title[1:]


def title_of_thread(opening: Iterable[BaseMessage]) -> str:
    """The title by the first human message with text; empty if the message cannot be read."""
    texts = (
        text_of(message)
        for message in opening
        if message.type == "human" and UNREADABLE not in message.response_metadata
    )
    return next(filter(None, map(title_of, texts)), "")
