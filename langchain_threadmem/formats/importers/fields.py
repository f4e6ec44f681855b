"""Values in the fields of records, whose types no file guarantees: texts, records, lists, times and roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from langchain_threadmem.common.inputs import is_number, seconds_of
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.ids import storable
from langchain_threadmem.messages.records import as_list, as_object

Record = dict[str, Any]
"""A JSON object of a file, or a line of a log."""


def text(record: object, *names: str) -> str | None:
    """The first text in one of some fields, see `text_or_none`; `None` for a value that is no object.

    Example:
        >>> text({"name": "", "title": "Figs"}, "name", "title"), text(["Figs"], "title")
        ('Figs', None)
    """
    if not isinstance(record, dict):
        return None
    return next((found for name in names if (found := text_or_none(record.get(name)))), None)


def text_or_none(value: object) -> str | None:
    """A title or a name as text that a database can store; `None` for other values and empty text."""
    return storable(value).strip() or None if isinstance(value, str) else None


def id_in(value: object, *names: str) -> str | None:
    """The first id in one of some fields: text, a number, or an id of MongoDB (`{"$oid": ...}`).

    Example:
        >>> id_in({"_id": {"$oid": "a1"}}, "id", "_id"), id_in({"id": 7}, "id"), id_in({}, "id")
        ('a1', '7', None)
    """
    found = (value.get(name) for name in names) if isinstance(value, dict) else ()
    plain = (one.get("$oid") if isinstance(one, dict) else one for one in found)
    texts = (str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in plain)
    return next((text for one in texts if (text := text_or_none(one))), None)


def at(value: Any, *path: str) -> Any:
    """The value in a field of an object, or of objects inside each other; `None` without it."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def record(value: Any, *path: str) -> Record:
    """The object at a path, see `at`; empty for another value."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def values(value: Any, *path: str) -> list[Any]:
    """The list at a path, see `at`; empty for another value."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def has(value: Any, **types: type | tuple[type, ...]) -> bool:
    """Whether a value is an object with fields of some types.

    Example:
        >>> has({"id": "a", "parts": []}, id=str, parts=list), has({"id": "a"}, parts=list), has("a", id=str)
        (True, False, False)
    """
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in types.items())


def records(value: Record, name: str, position: str) -> list[Record]:
    """The objects of a list in a field.

    Raises:
        InputError: The value is no list, or a value of the list is no object; the error names the position.
    """
    listed = as_list(value.get(name), f"{name!r} of {position}")
    return [
        as_object(one, f"value {number} of {name!r} of {position}") for number, one in enumerate(listed, 1)
    ]


def nodes(value: Record, name: str, position: str) -> dict[str, Record]:
    """The objects of an object in a field, by their keys.

    Raises:
        InputError: A value is no object; the error names the position.
    """
    found = as_object(value.get(name), f"{name!r} of {position}")
    return {key: as_object(one, f"node {key!r} of {position}") for key, one in found.items()}


def ancestors(key: str, parent_of: Callable[[str], str | None]) -> Iterator[str]:
    """The ancestors of a node, up to a root or a circle.

    Example:
        >>> [*ancestors("c", {"c": "b", "b": "a", "a": "b"}.get)]
        ['b', 'a']
    """
    visited = {key}
    while (parent := parent_of(key)) is not None and parent not in visited:
        yield parent
        visited.add(parent)
        key = parent


def filled(record: Record, names: Iterable[str]) -> Record:
    """The fields of a record that have a value that says something."""
    return {name: record[name] for name in names if record.get(name)}


def kept(**values: Any) -> dict[str, Any]:
    """The values for the metadata of a conversation, without empty ones.

    Example:
        >>> kept(model="gpt-5", starred=False, project=None)
        {'model': 'gpt-5'}
    """
    return {name: value for name, value in values.items() if value not in (None, False, "", [], {})}


_MILLISECONDS, _MICROSECONDS = 1e11, 1e14
"""Numbers above these are times in milliseconds and in microseconds."""


def seconds(value: object, position: str) -> float | None:
    """A time of an export in seconds since 1970.

    Args:
        value: A number of seconds, milliseconds or microseconds, also as text; ISO text, without a zone in
            UTC; a date of MongoDB (`{"$date": ...}`).
        position: The position of the value, for errors.

    Returns:
        The time; `None` without a value, and for other text.

    Raises:
        InputError: The number is not a time.

    Example:
        >>> seconds("2024-01-15T10:30:00Z", "line 1"), seconds(1705314600000, "line 1")
        (1705314600.0, 1705314600.0)
    """
    if isinstance(value, dict):
        value = next(
            (value[name] for name in ("$date", "$numberLong", "$numberDouble") if name in value), None
        )
        return seconds(value, position)
    if value is None or value == "" or isinstance(value, bool):
        return None
    try:
        if isinstance(value, str):
            return _of_text(value.strip())
        if is_number(value):
            return _of_number(value)
        raise TypeError("the value is neither a number nor text")
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InputError(f"{position} has the time {value!r:.80}: {error}; use ISO 8601") from error


def _of_number(value: float) -> float:
    size = abs(value)
    scale = 1_000_000 if size > _MICROSECONDS else 1_000 if size > _MILLISECONDS else 1
    return seconds_of(datetime.fromtimestamp(value / scale, UTC))  # A time out of range raises an error here.


def _of_text(value: str) -> float | None:
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        pass
    else:
        return seconds_of(time)
    try:
        number = float(value)
    except ValueError:
        return None
    return _of_number(number)


_LOCAL = (
    *("%m/%d/%Y, %I:%M:%S %p", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y, %H:%M:%S", "%d/%m/%Y, %H:%M:%S"),
    *("%d/%m/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y, %H:%M:%S"),
    *("%d.%m.%Y %H:%M:%S", "%B %d, %Y %I:%M%p", "%B %d, %Y %H:%M", "%Y-%m-%d@%Hh%Mm%Ss"),
    *("%Y-%m-%d @%Hh %Mm %Ss %fms", "%Y-%m-%d@%Hh%Mm%Ss%fms", "%A, %B %d, %Y at %I:%M:%S %p UTC"),
)
"""The forms of times that programs write in the language of the person."""


def time(record: object, position: str, *names: str) -> float | None:
    """The time in the first of some fields that has a value: of `seconds`, else of `local_time`.

    Example:
        >>> time({"date": "5/28/2026, 10:01:00 AM"}, "line 1", "created", "date")
        1779962460.0
    """
    found = next((value for name in names if (value := at(record, name))), None)
    given = seconds(found, position)
    return local_time(found) if given is None and isinstance(found, str) else given


def local_time(text: str) -> float | None:
    """A time in one of the forms that programs write for people, in seconds since 1970, as of UTC.

    Example:
        >>> local_time("5/28/2026, 10:01:00 AM"), local_time("28/05/2026, 10:01:00"), local_time("yesterday")
        (1779962460.0, 1779962460.0, None)
    """
    plain = " ".join(text.replace("\u202f", " ").split())
    for form in _LOCAL:
        try:
            return datetime.strptime(plain, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None
