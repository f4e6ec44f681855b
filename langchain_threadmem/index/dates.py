"""Dates: the time that a question names; `messages.times` reads the time of a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from langchain_threadmem.messages.times import date_in
from langchain_threadmem.messages.times import said_at as said_at

DAY = 86_400.0
_RELATIVE = re.compile(r"\b(?:yesterday|today|(?:this|last) (?:week|month))\b")


class Period(NamedTuple):
    """A period, from `start` to before `end`, in seconds since 1970."""

    start: float
    end: float


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
