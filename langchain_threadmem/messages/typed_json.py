"""Plain values as JSON text with type tags, which is read back exactly.

Plain JSON turns tuples into lists and integer keys into strings. Such values are written with tags
(`{"#": "tuple", "v": [...]}`), and so are dictionaries with a key `"#"`. Tags are a fixed list of the
standard library's value types. Stored text cannot name a class, call a constructor or import a module, so
`{"lc": 2, "type": "constructor", ...}` is read as a dictionary (compare CVE-2025-68664 and CVE-2025-64439). A
value of any other class is refused; the error names the path to the value.

Values of a subclass of `str`, `int` or `float` (LangChain's `message.text`, an `IntEnum`, NumPy's `str_`) are
written as values of the base class, and NumPy's numbers, such as the score of a hit, as Python's.

The argument `other` of `tag` is a serializer for values of any other class: each is written as an `Opaque`,
three strings. `untag` returns the `Opaque`, or the result of its own argument `other`.

A property test checks that `loads(dumps(value)) == value`, with equal types except for these subclasses.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_threadmem.common.inputs import plain_number
from langchain_threadmem.errors import InputError

TAG = "#"
_MARK = f'"{TAG}":'
"""The text of the key `#` in compact JSON, which never occurs inside a string."""

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""A plain value as JSON text without spaces."""


UNTRUSTED = "untrusted "
"""The prefix of the format of an opaque value from a file, which is never read as a caller's class."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that JSON cannot represent, written by a serializer.

    Attributes:
        name: The class of the value, for people: `module.Class`.
        format: The name of the serializer's format.
        data: The output of the serializer, in Base64.
    """

    name: str
    format: str
    data: str

    def __post_init__(self) -> None:
        """Refuse values that are not strings."""
        if not all(type(text) is str for text in astuple(self)):
            raise TypeError(f"an opaque value consists of three texts, not {astuple(self)!r}")


WriteOpaque = Callable[[Any], Opaque | None]
"""A function from a value to an `Opaque`, or to `None` if the value cannot be written."""
ReadOpaque = Callable[[Opaque], Any]
"""A function from an `Opaque` to its value, or to the `Opaque` itself."""


def dumps(value: Any, other: WriteOpaque | None = None) -> str:
    """Write a value as JSON text.

    Args:
        value: Text, numbers, `None`, lists, dictionaries, tuples, sets, bytes, dates, decimals, UUIDs.
        other: Writes values of any other class.

    Returns:
        JSON text without NUL and lone surrogates.

    Raises:
        InputError: The value contains itself, a value that cannot be stored exactly, or too many levels.

    Example:
        >>> dumps({"a": [1, None]}), dumps((1, 2))
        ('{"a":[1,null]}', '{"#":"tuple","v":[1,2]}')
    """
    try:
        if is_plain(value) or is_plain(value := based(value)):
            text = compact(value)
            if _MARK not in text and (text.isascii() or is_unicode(text)):
                return text
        return json.dumps(tag(value, "value", other), separators=(",", ":"))
    except RecursionError as error:
        raise InputError("value is nested too deeply, or contains itself; flatten it first") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot store value as JSON: {error}; shorten the number") from error


def loads(text: str) -> Any:
    """Read the output of `dumps`, as new objects.

    Raises:
        InputError: The text is not an output of `dumps`.

    Example:
        >>> loads('{"#":"tuple","v":[1,2]}')
        (1, 2)
    """
    try:
        value = json.loads(text)
        return untag(value) if _MARK in text else value
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"a stored value cannot be read: {error}; run verify()") from error


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate, which UTF-8 cannot encode and JSON escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_SCALARS = frozenset({str, int, bool, type(None)})


def is_plain(value: Any) -> bool:
    """Whether plain JSON represents a value exactly, with equal types."""
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


_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,  # str() of an Enum is its name.
    int: int.__int__,
    float: float.__float__,
}


def based(value: Any, containers: bool = False) -> Any:
    """A value in which NumPy's numbers, and subclasses of `str`, `int` and `float`, are plain values.

    Args:
        containers: Whether to convert subclasses of `dict` and `list` as well.

    Raises:
        InputError: Two keys of a dictionary are equal after the conversion.

    Example:
        >>> from enum import IntEnum
        >>> based([IntEnum("Level", ["LOW"]).LOW, True])
        [1, True]
    """
    kind = type(value)
    if kind in _SCALARS or kind in _WRITERS:
        return value
    if containers and kind not in _CONTAINERS:
        kind = next((base for base in (dict, list) if isinstance(value, base)), kind)
    if kind is dict:
        converted = {based(key, containers): based(item, containers) for key, item in value.items()}
        if len(converted) < len(value):
            raise InputError(f"cannot store {value!r:.200}: two keys have the same text; rename one of them")
        return converted
    if kind in _CONTAINERS:
        return kind(based(item, containers) for item in value)
    return next(
        (make(value) for base, make in _BASES.items() if isinstance(value, base)), plain_number(value)
    )


_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})
_FOLD = " fold"  # ISO 8601 cannot represent `datetime.fold`.
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
}
_COLLECTIONS: dict[str, Callable[[Iterable[Any]], Any]] = {
    kind.__name__: kind for kind in (tuple, set, frozenset, dict)
}
_OPAQUE = "opaque"


def tag(value: Any, path: str, other: WriteOpaque | None = None) -> Any:
    """A result of `based` with tags for all values that plain JSON cannot represent.

    Args:
        path: The name of the value in errors.
        other: Writes a value of any other class.

    Raises:
        InputError: The value contains a value without a tag; the error names the path.

    Example:
        >>> tag({"at": date(2026, 1, 2)}, "value")
        {'at': {'#': 'date', 'v': '2026-01-02'}}
    """
    kind = type(value)
    if kind in _SCALARS or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [tag(item, f"{path}[{n}]", other) for n, item in enumerate(value)]
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: tag(item, f"{path}.{key}", other) for key, item in value.items()}
        pairs = [[tag(key, path, other), tag(item, f"{path}.{key}", other)] for key, item in value.items()]
        return {TAG: "dict", "v": pairs}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": [tag(item, f"{path}[{n}]", other) for n, item in enumerate(value)]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {TAG: name, "v": write(value)}
    opaque = value if kind is Opaque else other and other(value)
    if opaque is not None:
        return {TAG: _OPAQUE, "v": astuple(opaque)}
    raise InputError(
        f"cannot store {value!r:.200} ({kind.__name__}) at {path!r} exactly; "
        "replace it by text, numbers, lists or dictionaries"
    )


def untag(value: Any, other: ReadOpaque | None = None) -> Any:
    """The value of a result of `tag`; an `Opaque` is passed to `other`, or returned unchanged without it."""
    if type(value) is list:
        return [untag(item, other) for item in value]
    if type(value) is not dict:
        return value
    if TAG not in value:
        return {key: untag(item, other) for key, item in value.items()}
    kind, content = value[TAG], value["v"]
    if kind == _OPAQUE:
        opaque = Opaque(*content)
        return opaque if other is None else other(opaque)
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](untag(item, other) for item in content)
    return _READERS[kind](content)
