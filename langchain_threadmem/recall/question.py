"""`Question`: the terms, people and times that a query asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from langchain_threadmem.index.dates import Period, span_of
from langchain_threadmem.index.language import Language, split


class Question(NamedTuple):
    """A parsed query.

    Attributes:
        terms: The terms to search for, in order, each with its word in the query.
        named: Words of the query that are names of people in the conversation.
        when: Whether the query asks for a time.
        amount: Whether the query asks for a number.
        about_other: Whether the query asks about the person who answers ("you").
        span: The time that the query names, if any.
    """

    terms: Mapping[str, str]
    named: frozenset[str] = frozenset()
    when: bool = False
    amount: bool = False
    about_other: bool = False
    span: Period | None = None


def question_of(
    query: str, language: Language, names: Collection[str] = (), newest: float = 0.0, now: float = 0.0
) -> Question:
    """Parse a query.

    Stop words, question words and the names of people in the conversation are not terms, unless the query
    contains no other words.

    Args:
        query: The text of the query.
        language: The language of the query.
        names: The names of people in the conversation, as words in lower case.
        newest: The time of the newest message, in seconds since 1970.
        now: The current time, in seconds since 1970.

    Example:
        >>> from langchain_threadmem.index.language import ENGLISH
        >>> asked = question_of("When did Ada mention reading files?", ENGLISH, {"ada"})
        >>> dict(asked.terms), sorted(asked.named), asked.when
        ({'read': 'reading', 'file': 'files'}, ['ada'], True)
    """
    words = list(dict.fromkeys(split(query)))
    # A name that is also a common word ("Will") counts as a name if it is capitalized.
    capitals = {
        word.lower() for word in query.replace("'", " ").replace("’", " ").split()[1:] if word[:1].isupper()
    }
    capitals = {word.strip('?!.,;:()"') for word in capitals}
    named = {
        word for word in words if word in names and (word not in language.stop_words or word in capitals)
    }
    stop, asking = language.stop_words, language.asking_words
    sought: list[str] = words
    for choice in (
        [word for word in words if word not in stop and word not in asking and word not in named],
        [word for word in words if word not in stop and word not in named],
        [word for word in words if word not in stop],
    ):
        if choice:
            sought = choice
            break
    lower = query.lower()
    terms: dict[str, str] = {}
    for word in sought:
        terms.setdefault(language.term(word), word)
    return Question(
        terms,
        frozenset(named),
        language.asks_when is not None and bool(language.asks_when.search(lower)),
        language.asks_amount is not None and bool(language.asks_amount.search(lower)),
        not language.other_words.isdisjoint(words),
        span_of(lower, language.months, newest, now),
    )
