"""Plain values as JSON text with type tags, and back, exactly.

Plain JSON turns tuples into lists and integer keys into strings. A value that holds such things is written
with tags instead (`{"#": "tuple", "v": [...]}`), and so is one that has a key `"#"` of its own. Tags are a
fixed list of the standard library's value types. Nothing stored can name a class, call a constructor or reach
an import, so `{"lc": 2, "type": "constructor", ...}` is what it looks like: a dictionary (CVE-2025-68664 and
CVE-2025-64439 were about the opposite). A value of any other class is refused with the path to it.

Values of a subclass of `str`, `int` or `float` (LangChain's `message.text`, an `IntEnum`, NumPy's `str_`) are
written as their base.

`tag` is passed a serializer as `other` where values of any other class are kept too: each is written as an
`Opaque`, three texts, and `untag` gives that back, or what the reader's `other` makes of it.

The law, held by a property test: `loads(dumps(value)) == value`, type for type but for such subclasses.
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

from langchain_threadmem.errors import InputError

TAG = "#"
_MARK = f'"{TAG}":'
"""Compact JSON holds this wherever a dictionary has the key `#`, and never inside of a string."""

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""A plain value as JSON text without spaces."""


UNTRUSTED = "untrusted "
"""Stands before the format of an opaque value that came from a file: no class of a caller's is made of it."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that JSON does not know, as a serializer wrote it.

    Attributes:
        name: Its class, for people: `module.Class`.
        format: The name of the serializer's format.
        data: What the serializer wrote, in Base64.
    """

    name: str
    format: str
    data: str

    def __post_init__(self) -> None:
        """Refuse what no serializer wrote."""
        if not all(type(part) is str for part in astuple(self)):
            raise TypeError(f"an opaque value consists of three texts, not {astuple(self)!r}")


Writer = Callable[[Any, str], Opaque | None]
"""From a value of another class, and the path to it, to an `Opaque`; `None` if it cannot be written."""
Reader = Callable[[Opaque], Any]
"""From an `Opaque` to the value that it stands for, or to itself."""


def dumps(value: Any, path: str = "value", other: Writer | None = None) -> str:
    """Write a value as JSON text.

    Args:
        value: Text, numbers, `None`, lists, dictionaries, tuples, sets, bytes, dates, decimals, UUIDs.
        path: What the value is called in errors.
        other: Writes values of any other class.

    Returns:
        JSON text that any encoding holds and that has no NUL in it.

    Raises:
        InputError: It holds something that cannot be kept exactly, itself, or too many levels.

    Example:
        >>> dumps({"a": [1, None]}), dumps((1, 2))
        ('{"a":[1,null]}', '{"#":"tuple","v":[1,2]}')
    """
    try:
        if is_plain(value) or is_plain(value := based(value)):
            text = compact(value)
            if _MARK not in text and (text.isascii() or is_unicode(text)):
                return text
        return json.dumps(tag(value, path, other), separators=(",", ":"))
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


_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,  # what str() makes of an Enum is its name
    int: int.__int__,
    float: float.__float__,
}


def based(value: Any, containers: bool = False) -> Any:
    """A value in which subclasses of `str`, `int` and `float` are their base.

    Args:
        value: The value.
        containers: Whether subclasses of `dict` and `list` become their base too.

    Raises:
        InputError: Two keys of a dictionary are equal then.

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
        found = {based(key, containers): based(item, containers) for key, item in value.items()}
        if len(found) < len(value):
            raise InputError(f"cannot store {value!r}: two of its keys are the same text; rename one of them")
        return found
    if kind in _CONTAINERS:
        return kind(based(item, containers) for item in value)
    return next((make(value) for base, make in _BASES.items() if isinstance(value, base)), value)


_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})
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
}
_COLLECTIONS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
}
_OPAQUE = "opaque"


def tag(value: Any, path: str, other: Writer | None = None) -> Any:
    """A value, as `based` gave it, in which everything that JSON does not know is written with tags.

    Args:
        value: The value.
        path: What it is called in errors.
        other: Writes a value of any other class.

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
        return [tag(item, f"{path}[{n}]", other) for n, item in enumerate(value)]
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: tag(item, f"{path}.{key}", other) for key, item in value.items()}
        return {TAG: "dict", "v": _pairs(value.items(), path, other)}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": [tag(item, f"{path}[{n}]", other) for n, item in enumerate(value)]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {TAG: name, "v": write(value)}
    opaque = value if kind is Opaque else other and other(value, path)
    if opaque is not None:
        return {TAG: _OPAQUE, "v": astuple(opaque)}
    raise InputError(
        f"cannot store {value!r} ({kind.__name__}) at {path!r} exactly; "
        "put text, numbers, lists or dictionaries there before it is remembered"
    )


def _pairs(pairs: Iterable[tuple[Any, Any]], path: str, other: Writer | None) -> list[list[Any]]:
    return [[tag(key, path, other), tag(item, f"{path}.{key}", other)] for key, item in pairs]


def untag(value: Any, other: Reader | None = None) -> Any:
    """The value that `tag` was given; what `other` cannot read of it, or nobody does, stays an `Opaque`."""
    if type(value) is list:
        return [untag(item, other) for item in value]
    if type(value) is not dict:
        return value
    if TAG not in value:
        return {key: untag(item, other) for key, item in value.items()}
    kind, written = value[TAG], value["v"]
    if kind == _OPAQUE:
        opaque = Opaque(*written)
        return opaque if other is None else other(opaque)
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](untag(item, other) for item in written)
    return _READERS[kind](written)
