"""`Question`: the terms, people and times that a query asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from langchain_threadmem.index.language import Language, split
from langchain_threadmem.messages.times import date_in

DAY = 86_400.0
_RELATIVE = re.compile(r"\b(?:yesterday|today|(?:this|last) (?:week|month))\b")


class Period(NamedTuple):
    """A period, from `start` to before `end`, in seconds since 1970."""

    start: float
    end: float


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


def span_of(question: str, months: Mapping[str, int], newest: float, now: float) -> Period | None:
    """The period that a question names, if any.

    Args:
        question: The question, in lower case.
        months: Numbers of the months by name; without them only years and ISO dates are read.
        newest: The time of the newest message, from which the year of a date without a year follows.
        now: The current time, for relative dates such as "yesterday".

    Example:
        >>> span = span_of("what did we do on may 3, 2023?", {"may": 5}, 0.0, 0.0)
        >>> (span.end - span.start) / DAY, datetime.fromtimestamp(span.start, UTC).isoformat()
        (1.0, '2023-05-03T00:00:00+00:00')
    """
    if months:
        relative = _relative(question, now)
        if relative:
            return relative
    year, month, day = date_in(question, months)
    if year is None and month is None:
        return None
    try:
        if year is None:
            latest = datetime.fromtimestamp(newest, UTC).date()
            year = latest.year if (month or 0) <= latest.month else latest.year - 1
        if month is None:
            first, after = date(year, 1, 1), date(year + 1, 1, 1)
        elif day is None:
            first = date(year, month, 1)
            after = date(year + month // 12, month % 12 + 1, 1)
        else:
            first = date(year, month, day)
            after = first + timedelta(days=1)
    except ValueError:
        return None  # The month does not have this day, or the year cannot be represented.
    return Period(_seconds(first), _seconds(after))


def _relative(question: str, now: float) -> Period | None:
    match = _RELATIVE.search(question)
    if match is None:
        return None
    today = datetime.fromtimestamp(now, UTC).date()
    week = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    day = timedelta(days=1)
    first, after = {
        "yesterday": (today - day, today),
        "today": (today, today + day),
        "this week": (week, week + 7 * day),
        "last week": (week - 7 * day, week),
        "this month": (month, today + day),
        "last month": (before, month),
    }[match[0]]
    return Period(_seconds(first), _seconds(after))


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
