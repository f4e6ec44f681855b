"""Values as JSON text, and back, exactly: the same types, the same order, nothing more.

Plain JSON turns tuples into lists and integer keys into strings. A value that holds such things is written
with tags instead (`{"#": "tuple", "v": [...]}`), and so is one that has a key `"#"` of its own. Tags are a
fixed list of the standard library's value types. Nothing stored can name a class, call a constructor or reach
an import, so `{"lc": 2, "type": "constructor", ...}` is what it looks like: a dictionary (CVE-2025-68664 and
CVE-2025-64439 were about the opposite). A value of any other class is refused with the path to it.

The law, held by a property test: `loads(dumps(value)) == value`, type for type.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_threadmem.errors import InputError

TAG = "#"
_MARK = f'"{TAG}":'
"""Compact JSON holds this wherever a dictionary has the key `#`, and never inside of a string."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dumps(value: Any, path: str = "value") -> str:
    """Write a value as JSON text.

    Args:
        value: Text, numbers, `None`, lists, dictionaries, tuples, sets, bytes, dates, decimals, UUIDs.
        path: What the value is called in errors.

    Returns:
        JSON text that any encoding holds and that has no NUL in it.

    Raises:
        InputError: It holds something that cannot be kept exactly, itself, or too many levels.

    Example:
        >>> dumps({"a": [1, None]}), dumps((1, 2))
        ('{"a":[1,null]}', '{"#":"tuple","v":[1,2]}')
    """
    try:
        if is_plain(value):
            text = _encode(value)
            if _MARK not in text and (text.isascii() or is_unicode(text)):
                return text
        return json.dumps(tag(value, path), separators=(",", ":"))
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply, or holds itself; flatten it first") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot store {path} as JSON: {error}; shorten the number") from error


def loads(text: str) -> Any:
    """Read back what `dumps` wrote: new objects at every call.

    Raises:
        InputError: `dumps` never wrote this.

    Example:
        >>> loads('{"#":"tuple","v":[1,2]}')
        (1, 2)
    """
    try:
        value = json.loads(text)
        return untag(value) if _MARK in text else value
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"a stored value cannot be read: {error}; the row was changed by others") from error


def is_unicode(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which no encoding holds; JSON escapes it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_SCALARS = frozenset({str, int, bool, type(None)})


def is_plain(value: Any) -> bool:
    """Whether JSON gives the value back as it is, type for type."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return all(map(is_plain, value))
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(is_plain, value.values()))
    return False


_FOLD = " fold"  # ISO 8601 has no word for the second of two equal hours.
_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", repr),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    datetime: ("datetime", lambda value: value.isoformat() + _FOLD * value.fold),
    date: ("date", date.isoformat),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": base64.b64decode,
    "datetime": lambda text: datetime.fromisoformat(text.removesuffix(_FOLD)).replace(
        fold=text.endswith(_FOLD)
    ),
    "date": date.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "tuple": lambda items: tuple(map(untag, items)),
    "set": lambda items: set(map(untag, items)),
    "frozenset": lambda items: frozenset(map(untag, items)),
    "dict": lambda items: {untag(key): untag(value) for key, value in items},
}


def tag(value: Any, path: str) -> Any:
    """A value in which everything that JSON does not know is written with tags.

    Raises:
        InputError: It holds something that has no tag; the message names the path to it.

    Example:
        >>> tag({"at": date(2026, 1, 2)}, "value")
        {'at': {'#': 'date', 'v': '2026-01-02'}}
    """
    kind = type(value)
    if kind in _SCALARS or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [tag(item, f"{path}[{n}]") for n, item in enumerate(value)]
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: tag(item, f"{path}.{key}") for key, item in value.items()}
        return {TAG: "dict", "v": _pairs(value.items(), path)}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": [tag(item, f"{path}[{n}]") for n, item in enumerate(value)]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {TAG: name, "v": write(value)}
    raise InputError(
        f"cannot store {value!r} ({kind.__name__}) at {path!r} exactly; "
        "put text, numbers, lists or dictionaries there before it is remembered"
    )


def _pairs(pairs: Iterable[tuple[Any, Any]], path: str) -> list[list[Any]]:
    return [[tag(key, path), tag(item, f"{path}.{key}")] for key, item in pairs]


def untag(value: Any) -> Any:
    """The value that `tag` was given."""
    if type(value) is list:
        return [untag(item) for item in value]
    if type(value) is dict:
        if TAG in value:
            return _READERS[value[TAG]](value["v"])
        return {key: untag(item) for key, item in value.items()}
    return value
