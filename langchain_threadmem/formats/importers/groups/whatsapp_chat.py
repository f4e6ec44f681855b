"""A chat of WhatsApp as text, in which each message continues the message before it.

The lines are those of its exports, and are not confirmed by a source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from langchain_threadmem.formats.importers.chats import Chats, chat_of, local_time
from langchain_threadmem.formats.importers.said import SYSTEM, USER, Said, entries_of
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.ids import chained_id

_LINE = re.compile(
    r"^\u200e?\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4})[,.]?\s+(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[APap]\.?\s?[Mm]\.?)?)"
    r"(?:\]\s*|\s+-\s+)(?P<text>.*)$"
)
_SPEAKER = re.compile(r"^(?:\u200e)?(?P<name>[^:\n]{1,80}?):\s(?P<text>.*)$", re.DOTALL)


def is_text(text: str) -> bool:
    """Whether a text is a chat of WhatsApp: the first line is a message with a time."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(_LINE.match(first.strip()))


def chats(source: Source) -> Chats:
    """The conversation of a text, in which each message continues the message before it."""
    said: list[Said] = []
    records = [*_records(source.lines())]
    day_first = _is_day_first(date for date, _, _ in records)
    for date, time, text in records:
        found = _SPEAKER.match(text)
        name, content = (found["name"].strip(), found["text"]) if found else (None, text)
        previous = said[-1].key if said else None
        content = content.replace("\u200e", "").strip()
        key = chained_id("import-", previous, [date, time, text])
        said.append(
            Said(key, previous, USER if name else SYSTEM, [content], _when(date, time, day_first), None, name)
        )
    title = (
        re.sub(r"^WhatsApp[ -]Chat (with |mit |con |avec )?(- )?", "", source.name).strip("_ ") or source.name
    )
    yield chat_of("the chat", f"whatsapp-{title}", entries_of(said), title=title)


def _records(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Date, time and text of each message; a line without a time continues the message before it."""
    current: list[str] | None = None
    for line in lines:
        found = _LINE.match(line.replace("\u202f", " "))
        if found:
            if current is not None:
                yield current[0], current[1], current[2]
            current = [found["date"], found["time"], found["text"]]
        elif current is not None:
            current[2] += f"\n{line}"
    if current is not None:
        yield current[0], current[1], current[2].rstrip()


def _is_day_first(dates: Iterable[str]) -> bool:
    """Whether the day stands before the month: unless a second number is above 12."""
    seconds_of_dates = [int(re.split(r"[./-]", date)[1]) for date in dates]
    return not any(number > 12 for number in seconds_of_dates)


def _when(date: str, time: str, day_first: bool) -> float | None:
    numbers = [int(number) for number in re.split(r"[./-]", date)]
    if numbers[0] > 31:
        year, month, day = numbers
    else:
        day, month, year = numbers if day_first else (numbers[1], numbers[0], numbers[2])
    year += 2000 if year < 100 else 0
    plain = re.sub(r"\.(?=[mM]|$|\s)", "", time.replace(".", ":", 2) if time[1:3].count(".") else time)
    hour = re.match(r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s?([APap])?", plain)
    if hour is None:
        return None
    hours = int(hour[1]) % 12 + (12 if hour[4] in ("p", "P") else 0) if hour[4] else int(hour[1])
    return local_time(f"{year:04}-{month:02}-{day:02} {hours:02}:{hour[2]}:{hour[3] or '00'}")
