"""Values that callers pass: paths, times, numbers and callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from langchain_threadmem.errors import InputError

Progress = Callable[[int, int], object]
"""A callback of the steps done and of all steps."""


def path_of(path: str | Path) -> Path:
    """The path of a file.

    Raises:
        InputError: The value is neither text nor a path.

    Example:
        >>> str(path_of("chat.json"))
        'chat.json'
    """
    try:
        return Path(path)
    except TypeError as error:
        raise InputError(f"{path!r:.200} is not the path of a file; pass text or a Path") from error


def zoned(time: datetime) -> datetime:
    """A time with a time zone; a time without a zone is in UTC."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def time_of(value: object) -> datetime | None:
    """The time, with a zone, of a datetime, ISO text or seconds since 1970; `None` for other values.

    Example:
        >>> time_of("2024-01-15T10:30:00"), time_of("noon")
        (datetime.datetime(2024, 1, 15, 10, 30, tzinfo=datetime.timezone.utc), None)
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif is_number(value):
            value = datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return zoned(value) if isinstance(value, datetime) else None


def seconds_of(time: datetime) -> float:
    """A time that can be stored and read back, in seconds since 1970; without a zone in UTC.

    Raises:
        InputError: The time is not in the years 1 to 9999 in UTC, also after rounding.

    Example:
        >>> seconds_of(datetime(2024, 1, 15, 10, 30))
        1705314600.0
    """
    seconds = zoned(time).timestamp()
    try:
        datetime.fromtimestamp(seconds, UTC)
    except ValueError as error:
        raise InputError(
            f"{time.isoformat()} is outside of the years 1 to 9999 in UTC; pass a time in these years"
        ) from error
    return seconds


def check_one_of(name: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value of an option that is none of the allowed values.

    Example:
        >>> check_one_of("order", "backwards", ("chronological", "relevance"))
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: order='backwards' is not one of 'chronological', 'relevance'
    """
    values = list(allowed)
    if value not in values:
        raise InputError(f"{name}={value!r} is not one of {', '.join(map(repr, values))}")


def check_no_class(name: str, value: object) -> None:
    """Refuse a class where an object of it is expected.

    Example:
        >>> check_no_class("window", dict)
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: window is the class dict; pass an object: dict(...)
    """
    if isinstance(value, type):
        raise InputError(f"{name} is the class {value.__name__}; pass an object: {value.__name__}(...)")


def value_in(holder: Any, name: str) -> Any:
    """A value of a mapping, or an attribute of another object; `None` if it is missing.

    Example:
        >>> value_in({"name": "ada"}, "name"), value_in(Path("chat.json"), "stem"), value_in(None, "name")
        ('ada', 'chat', None)
    """
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def plain_number(value: Any) -> Any:
    """A number of NumPy, such as the score of a hit, as Python's number; any other value itself.

    Example:
        >>> import numpy as np
        >>> plain_number(np.float32(0.5)), plain_number("0.5")
        (0.5, '0.5')
    """
    numpy = sys.modules.get("numpy")  # A program with a number of NumPy has imported it.
    if numpy is not None and isinstance(value, numpy.number | numpy.bool_):
        return value.item()
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is an integer or a float; `True` and `False` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether a value is an integer of at least `least`; `True` and `False` are not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_share(value: object) -> TypeGuard[float]:
    """Whether a value is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1
