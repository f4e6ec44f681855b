"""Dates: the time of a message, and the time that a question names.

The time of a message is `additional_kwargs["time"]` in a known format (ISO 8601, seconds since 1970,
"2023/05/20 02:21", or a date with a month's name: "1:56 pm on 8 May, 2023", "March-15-2024"); otherwise the
node's timestamp. A time without a zone is read as UTC, since only differences of times matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from langchain_threadmem.common.inputs import is_number, zoned

DAY = 86_400.0
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)(?::\d\d)?\s*([ap])?\.?m?\b", re.IGNORECASE)
_ISO_DATE = re.compile(r"\b(\d{4})([-/])(\d\d)\2(\d\d)\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_RELATIVE = re.compile(r"\b(?:yesterday|today|(?:this|last) (?:week|month))\b")
_LETTERS = re.compile(r"[^\W\d_]+")


class Span(NamedTuple):
    """A period, from `start` to before `end`, in seconds since 1970."""

    start: float
    end: float


def said_at(time: object, months: Mapping[str, int]) -> float | None:
    """A time in one of the known formats, in seconds since 1970; `None` for an unknown format.

    Example:
        >>> said_at("2 pm", {}), said_at("2024-03-15T10:00:00", {}), said_at("8 May, 2023", {"may": 5})
        (None, 1710496800.0, 1683504000.0)
    """
    if isinstance(time, datetime):
        return zoned(time).timestamp()
    if is_number(time):
        return float(time) if abs(time) < 1e11 else None
    if not isinstance(time, str):
        return None
    try:
        return said_at(datetime.fromisoformat(time), months)
    except ValueError:
        pass
    clock = _CLOCK.search(time)
    year, month, day = _named(_CLOCK.sub(" ", time.lower()), months)
    if year is None or month is None or day is None:
        return None
    try:
        midnight = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return (midnight + _time_of_day(clock)).timestamp()


def _time_of_day(clock: re.Match[str] | None) -> timedelta:
    if clock is None:
        return timedelta()
    hour, half = int(clock[1]), (clock[3] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return timedelta(hours=min(hour, 23), minutes=min(int(clock[2]), 59))


def _named(text: str, months: Mapping[str, int]) -> tuple[int | None, int | None, int | None]:
    """The year, month and day in a text in lower case, `None` for each absent part."""
    iso = _ISO_DATE.search(text)
    if iso:
        return int(iso[1]), int(iso[3]), int(iso[4])
    found = _YEAR.search(text)
    year = int(found[1]) if found else None
    for word in _LETTERS.finditer(text):
        month = months.get(word[0])
        # "May" and "march" are also verbs; near a number they are months.
        if month and re.search(r"\d", text[max(word.start() - 14, 0) : word.end() + 8]):
            beside = text[max(word.start() - 9, 0) : word.start()] + " " + text[word.end() : word.end() + 6]
            day = next((int(match[1]) for match in _DAY.finditer(beside) if 1 <= int(match[1]) <= 31), None)
            return year, month, day
        if (
            month
            and len(word[0]) > 3
            and re.search(r"\b(?:in|during|of|on|since|by|last)\s+$", text[: word.start()])
        ):
            return year, month, None
    return year, None, None


def span_of(question: str, months: Mapping[str, int], newest: float, now: float) -> Span | None:
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
    year, month, day = _named(question, months)
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
    return Span(_seconds(first), _seconds(after))


def _relative(question: str, now: float) -> Span | None:
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
    return Span(_seconds(first), _seconds(after))


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
