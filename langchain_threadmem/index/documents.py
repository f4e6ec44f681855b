"""Documents: the terms and traits of messages, which recall scores."""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.index.language import (
    DATA,
    NUMBER,
    ONE_WORD,
    Language,
    WordKinds,
    kinds_of,
    split,
    stemmed,
    stop_terms,
    words,
)
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.messages.ids import storable
from langchain_threadmem.messages.roles import TYPES
from langchain_threadmem.messages.times import own_time

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
CODE = 0.3
"""The weight of a word in code; a word outside of code has the weight 1."""
LEAD = 35
"""The number of words in the lead, the beginning of a message."""
SHORT = 1_000
"""The number of letters of a text in which all matches are found faster than the first."""
ROLES_AS_NAMES = frozenset({*TYPES, "bot", "chatbot", "model"})
"""Names that are roles, not names of people."""


class Traits(NamedTuple):
    """Counts in the text of a message.

    Attributes:
        asks: 1 if the message contains a question mark, else 0.
        times: Number of expressions of time, up to 3.
        numbers: Number of numbers, up to 7.
        selfs: Number of words with which speakers refer to themselves, up to 7.
        lead: Number of terms in the lead, without stop words.
        length: Weighted number of terms, without stop words.
    """

    asks: int = 0
    times: int = 0
    numbers: int = 0
    selfs: int = 0
    lead: int = 0
    length: int = 0

    def pack(self) -> int:
        """The traits as one number, for the database."""
        return (
            self.asks
            | self.times << 1
            | self.numbers << 3
            | self.selfs << 6
            | self.lead << 9
            | self.length << 16
        )


def unpack(packed: int) -> Traits:
    """The traits of a packed number.

    Example:
        >>> unpack(Traits(1, 3, 5, 7, 50, 9_000).pack())
        Traits(asks=1, times=3, numbers=5, selfs=7, lead=50, length=9000)
    """
    return Traits(
        packed & 1, packed >> 1 & 3, packed >> 3 & 7, packed >> 6 & 7, packed >> 9 & 127, packed >> 16
    )


def length_of(packed: int) -> int:
    """The length of packed traits, see `Traits.length`."""
    return packed >> 16


class Document(NamedTuple):
    """The terms and traits of a message.

    Attributes:
        terms: The terms of the text on one line, the terms of code, if any, on a second line.
        traits: Packed `Traits`.
        speaker: The name of the speaker in lower case; empty if the message names a role only.
        time: The time of the message, in seconds since 1970.
    """

    terms: str
    traits: int
    speaker: str
    time: float


def lines_of(terms: str) -> tuple[list[str], list[str]]:
    """The terms of the text, and the terms of code, of `Document.terms`."""
    spoken, _, code = terms.partition("\n")
    return spoken.split(), code.split() if code else []


def document_of(message: BaseMessage, text: str, created: float, language: Language) -> Document:
    """The document of a message.

    Args:
        message: The message, with its own time if that differs from `created` (`messages.times`).
        text: The text of the message.
        created: The node's timestamp, in seconds since 1970.
        language: The language of the text.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langchain_threadmem.index.language import ENGLISH
        >>> message = HumanMessage("I read 3 files. Which? ```import csv```", name="Ada")
        >>> document = document_of(message, message.content, 60.0, ENGLISH)
        >>> lines_of(document.terms), document.speaker
        ((['i', 'read', '3', 'file', 'which'], ['import', 'csv']), 'ada')
        >>> unpack(document.traits)
        Traits(asks=1, times=0, numbers=1, selfs=1, lead=3, length=4)
    """
    spoken, code = text, ""
    if "```" in text:
        spoken, code = _FENCE.sub(" ", text), " ".join(_FENCE.findall(text))
    said = split(spoken)
    spoken_terms, code_terms = stemmed(said, language), language.terms(code) if code else []
    terms = " ".join(spoken_terms) + ("\n" + " ".join(code_terms) if code_terms else "")
    kinds = kinds_of(said, language)
    lead_terms = (spoken_terms or code_terms)[:LEAD]
    is_whole = len(lead_terms) == len(spoken_terms)
    lead = len(lead_terms) - (kinds.stop if is_whole else _among(stop_terms(language), lead_terms))
    length = len(spoken_terms) - kinds.stop + round(CODE * len(code_terms))
    digits, times = _digits_and_times(spoken, kinds, language)
    numbers = min(digits + kinds.numerals, 7)
    traits = Traits(int("?" in spoken), times, numbers, min(kinds.selfs, 7), lead, length).pack()
    time = own_time(message, language.months)
    return Document(terms, traits, speaker_of(message), created if time is None else time)


def _digits_and_times(text: str, kinds: WordKinds, language: Language) -> tuple[int, int]:
    """The numbers of numbers in digits, up to 7, and of expressions of time, up to 3, in a text.

    Args:
        text: The text.
        kinds: The kinds of its words, without what `split` omits.
        language: The language of the text.
    """
    pattern = language.time_expression
    if DATA in text or not (pattern is None or pattern in ONE_WORD):
        times = 0 if pattern is None else _count(pattern, text.lower(), 3)
        return _count(NUMBER, text, 7), times
    if "'" in text or "’" in text:  # Only `split` omits the end of the word.
        kinds = kinds_of(words(text), language)
    return min(kinds.digits, 7), min(kinds.times, 3)


def _count(pattern: re.Pattern[str], text: str, most: int) -> int:
    """The number of matches of a pattern, up to `most`; the rest of a long text is not searched."""
    if len(text) < SHORT:
        return min(len(pattern.findall(text)), most)
    return sum(1 for _ in islice(pattern.finditer(text), most))


def _among(known: frozenset[str], words: list[str]) -> int:
    """The number of words that are known."""
    return sum(map(known.__contains__, words))


def speaker_of(message: BaseMessage) -> str:
    """The name of a message's speaker in lower case; empty if the name is a role."""
    name = storable((message.name or "").strip().lower())
    return "" if name in ROLES_AS_NAMES else name


def document_of_unit(unit: MemoryUnit, language: Language) -> Document:
    """The document of a unit without a stored document."""
    return document_of(unit.to_message(), unit.content, unit.creation_time.timestamp(), language)


class DocumentRow(NamedTuple):
    """A message as a row of `recall.postings.Postings`."""

    key: int
    seq: int
    parent: int | None
    role: str
    live: bool
    document: Document
