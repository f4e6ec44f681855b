"""Times: the time of a message, as people and programs write it.

A message brings its own time in one of the fields `FIELDS` of `additional_kwargs`, or in the first of its
`events`, in a known format (ISO 8601, seconds or milliseconds since 1970, "2023/05/20 02:21", or a date with
a month's name: "1:56 pm on 8 May, 2023", "March-15-2024"). A time without a zone is read as UTC, since only
differences of times matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.inputs import is_number, time_of, zoned

FIELDS = (
    "time",
    "timestamp",
    "created_at",
    "create_time",
    "created",
    "sent_at",
    "message_time",
    "message_time_as_datetime",
)
"""The fields of `additional_kwargs` with the time of a message; the first time that can be read counts."""
EVENTS = "events"
"""The field in which langchain-community's loaders of Slack, Telegram, WhatsApp and Discord chats list
`{"message_time": ...}`, one for each message that was merged into one."""
LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS = {name: n for n, month in enumerate(LONG_MONTHS, 1) for name in {month, month[:3]}} | {"sept": 9}
"""The number of each month, by its English name and abbreviation."""
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)(?::\d\d)?\s*([ap])?\.?m?\b", re.IGNORECASE)
_ISO_DATE = re.compile(r"\b(\d{4})([-/])(\d\d)\2(\d\d)\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_SECONDS = re.compile(r"\d{9,13}(?:\.\d+)?", re.ASCII)
_MOST_SECONDS, _MOST_MILLISECONDS = 1e11, 1e14
_APPLE_EPOCH = 978_307_200.0
"""The start of 2001 in seconds since 1970."""


def own_time(message: BaseMessage, months: Mapping[str, int] = MONTHS) -> float | None:
    """The time that a message brings, in seconds since 1970; `None` if it brings none that can be read.

    Args:
        months: Numbers of the months by name.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> own_time(HumanMessage("Hello", additional_kwargs={"created_at": "2021-05-06T07:08:09Z"}))
        1620284889.0
    """
    if not message.additional_kwargs:
        return None
    values = _times(message.additional_kwargs)
    return next((time for value in values if (time := said_at(value, months)) is not None), None)


def time_said(message: BaseMessage) -> datetime | None:
    """The time that a message brings, with a zone; `None` if it brings none that can be read."""
    if not message.additional_kwargs:
        return None
    seconds = own_time(message)
    return None if seconds is None else time_of(seconds)


def _times(extra: Mapping[str, object]) -> Iterator[object]:
    """The values of `additional_kwargs` that may be times, in the order in which they are read."""
    imessage = extra.get("message_time")
    if isinstance(imessage, int) and not isinstance(imessage, bool) and imessage > _MOST_MILLISECONDS:
        # langchain-community 0.4.2, IMessageChatLoader: nanoseconds since 2001, and a `datetime` that is an
        # hour off in the summers of a zone with daylight saving time.
        yield _APPLE_EPOCH + imessage / 1e9
    yield from (extra[name] for name in FIELDS if name in extra)
    events = extra.get(EVENTS)
    for event in events if isinstance(events, list) else ():
        if isinstance(event, Mapping):
            yield event.get("message_time")


def said_at(time: object, months: Mapping[str, int]) -> float | None:
    """A time in one of the known formats, in seconds since 1970; `None` for an unknown format.

    Example:
        >>> said_at("2 pm", {}), said_at("2024-03-15T10:00:00", {}), said_at("8 May, 2023", {"may": 5})
        (None, 1710496800.0, 1683504000.0)
    """
    if isinstance(time, datetime):
        return zoned(time).timestamp()
    if is_number(time):
        return _seconds_of(float(time))
    if not isinstance(time, str):
        return None
    if _SECONDS.fullmatch(time):
        return _seconds_of(float(time))
    try:
        return said_at(datetime.fromisoformat(time), months)
    except ValueError:
        pass
    clock = _CLOCK.search(time)
    year, month, day = date_in(_CLOCK.sub(" ", time.lower()), months)
    if year is None or month is None or day is None:
        return None
    try:
        midnight = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return (midnight + _time_of_day(clock)).timestamp()


def _seconds_of(number: float) -> float | None:
    """Seconds of a number of seconds or milliseconds; `None` for a number that is too large."""
    if abs(number) < _MOST_SECONDS:
        return number
    return number / 1000 if abs(number) < _MOST_MILLISECONDS else None


def _time_of_day(clock: re.Match[str] | None) -> timedelta:
    if clock is None:
        return timedelta()
    hour, half = int(clock[1]), (clock[3] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return timedelta(hours=min(hour, 23), minutes=min(int(clock[2]), 59))


def date_in(text: str, months: Mapping[str, int]) -> tuple[int | None, int | None, int | None]:
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
