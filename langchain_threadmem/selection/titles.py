"""Titles without a model: the first words of the question that opens a conversation or a thread.

A greeting before the question is left out, and so is the constant text of several messages, such as a prompt
template or a time stamp. A message that is a greeting and nothing else gives no title if another one follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.messages.codec import UNREADABLE, texts_of
from langchain_threadmem.messages.constant_text import ConstantText, constant_text, question_in
from langchain_threadmem.messages.courtesies import GREETING, greets
from langchain_threadmem.messages.text import one_line

LONGEST_TITLE: Final = 40
"""The maximum number of characters of a title."""
ASKED: Final = 2
"""The number of human messages in which the title of a thread is searched: the first may be a greeting."""
LOOKED_AT: Final = 4000
"""The number of characters at the beginning of a text in which its first words are searched."""
_SPACES: Final = re.compile(r"\s+")
_WORD: Final = re.compile(r"\w")
_MARKS_AFTER: Final = " ,;:\u3001\uff0c\uff1b\uff1a-\u2013\u2014("


def title_of(opening: str) -> str:
    """The first words of a text, without its greeting; empty without text.

    Example:
        >>> title_of("Hi, how do I feed a sourdough starter?")
        'How do I feed a sourdough starter?'
        >>> title_of("I want to run 10k in autumn, at the moment I run 3k twice a week")
        'I want to run 10k in autumn, at the'
        >>> title_of("<user_query>Is rye sour?</user_query>")
        'Is rye sour?'
    """
    bare = question_in(opening[:LOOKED_AT]).strip()
    greeting = GREETING.match(bare)
    if greeting and _WORD.search(bare, greeting.end()):
        bare = bare[greeting.end() :].lstrip()
    words = one_line(_SPACES.sub(" ", bare).strip())
    title = _first_words(words)
    return title[:1].upper() + title[1:]


def _first_words(words: str) -> str:
    if len(words) <= LONGEST_TITLE:
        return words
    beginning, space, _ = words[: LONGEST_TITLE + 1].rpartition(" ")
    if not space or 2 * len(beginning) < LONGEST_TITLE:  # A long word, or a language without spaces.
        beginning = words[:LONGEST_TITLE]
    return beginning.rstrip(_MARKS_AFTER) or beginning


@cache_of_texts(256)
def _constant_of(texts: tuple[str, ...]) -> ConstantText:
    """`constant_text`; the title of a thread is in the event of each of its messages."""
    return constant_text(texts)


def title_of_thread(opening: Iterable[BaseMessage]) -> str:
    """The title by the first human message that is more than a greeting; empty if no message can be read.

    Args:
        opening: The first messages of a thread; their constant text is left out.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> title_of_thread([HumanMessage("Hello!"), HumanMessage("Is rye sour?")])
        'Is rye sour?'
    """
    asked_first = [
        message
        for message in opening
        if message.type == "human" and UNREADABLE not in message.response_metadata
    ]
    texts = list(filter(None, map(str.strip, texts_of(asked_first))))
    asked = next((text for text in texts if not greets(text)), None)
    opening_text = asked or next(iter(texts), "")
    return title_of(_constant_of(tuple(texts)).without(opening_text[:LOOKED_AT]))
