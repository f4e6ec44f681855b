"""Mongo-like filters over named fields, as predicates of one value.

A filter of fields comes in either of two shapes, which mean the same:

- `{"source": {"$eq": "ai"}, "rank": {"$gte": 1}}`, with `$and`, `$or` and `$not` around such dictionaries;
- `[("source", "==", "ai"), ("rank", ">=", 1)]`, all of which have to hold.

`parse` reads both against a list of the fields that there are, and gives a `Condition`. A field, an operator
or an operand that means nothing there is an `InputError` that shows it, before anything is read: it is never
passed over, which would show more than was asked for. No part of a filter becomes part of a statement
(CVE-2025-67644, CVE-2025-8709): conditions are compared here, and `filters.sql` binds what it hands on.

A value that is not there passes no comparison but with `None`. Text that reads as a number is ordered as a
number, and values that have no common order do not match.

A store's filters, over values of any shape, mean what they mean to LangGraph: see `filters.store`, which
compares with the same functions.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.errors import InputError


class Kind(Enum):
    """What a field holds, and so what it is compared with."""

    TEXT = "text"
    NUMBER = "a number"
    TIME = "a datetime, ISO text or seconds since 1970"
    FLAG = "True or False"
    MAP = "text, a number, True, False or None"
    """A dictionary, asked for by its keys: `metadata.topic` or `metadata["topic"]`."""


Fields = Mapping[str, Kind]
"""The fields that a filter may name."""
FieldFilter = Mapping[str, Any] | Sequence[tuple[str, str, Any]]
"""A filter of fields, in either shape."""

_EQUALITY = ("$eq", "$ne")
_LISTS = ("$in", "$nin")
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
}
"""The operators that need an order, and what they ask of two values that have one."""
_TEXTS = ("$contains", "$like")
OPERATORS = (*_EQUALITY, *ORDER, *_LISTS, *_TEXTS)
_SIGNS = {
    "==": "$eq",
    "!=": "$ne",
    ">": "$gt",
    ">=": "$gte",
    "<": "$lt",
    "<=": "$lte",
    "in": "$in",
    "not in": "$nin",
    "like": "$like",
    "contains": "$contains",
}
_PATH = re.compile(r"""(\w+)((?:\.[^.\[\]]+|\["[^"]*"\]|\['[^']*'\])*)""")
_STEP = re.compile(r"""\.([^.\[\]]+)|\["([^"]*)"\]|\['([^']*)'\]""")


class Condition(ABC):
    """A question about a record: an object with attributes, or a dictionary."""

    @abstractmethod
    def holds(self, record: object) -> bool:
        """Whether the record is wanted."""


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """One field compared with one operand.

    Attributes:
        path: The field, and the keys below it.
        operator: One of `OPERATORS`.
        operand: What it is compared with, checked for the kind of the field; times are datetimes with a zone.
        kind: What the field holds.
    """

    path: tuple[str, ...]
    operator: str
    operand: Any
    kind: Kind

    def holds(self, record: object) -> bool:
        value = _at(record, self.path)
        match self.operator:
            case "$eq":
                return equal(value, self.operand)
            case "$in":
                return any(equal(value, item) for item in self.operand)
        if value is None:
            return False
        match self.operator:
            case "$ne":
                return not equal(value, self.operand)
            case "$nin":
                return not any(equal(value, item) for item in self.operand)
            case "$contains":
                return _contains(value, self.operand)
            case "$like":
                return isinstance(value, str) and _like(self.operand)(value)
        return ordered(value, self.operand, ORDER[self.operator])


@dataclass(frozen=True, slots=True)
class Every(Condition):
    """All of some conditions."""

    parts: tuple[Condition, ...]

    def holds(self, record: object) -> bool:
        return all(part.holds(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either(Condition):
    """At least one of some conditions."""

    parts: tuple[Condition, ...]

    def holds(self, record: object) -> bool:
        return any(part.holds(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Inverse(Condition):
    """The opposite of a condition."""

    part: Condition

    def holds(self, record: object) -> bool:
        return not self.part.holds(record)


def parse(wanted: FieldFilter | None, fields: Fields) -> Condition | None:
    """Read a filter of fields in either shape.

    Args:
        wanted: The filter; `None`, `{}` and `[]` ask for nothing.
        fields: The fields that it may name.

    Returns:
        The condition, or `None` if nothing is asked for.

    Raises:
        InputError: It has no such shape, or names a field, an operator or an operand that means nothing.

    Example:
        >>> fields = {"source": Kind.TEXT, "rank": Kind.NUMBER, "metadata": Kind.MAP}
        >>> record = {"source": "ai", "rank": 1, "metadata": {"topic": "bread"}}
        >>> parse({"$or": [{"rank": 2}, {"metadata.topic": {"$in": ["bread"]}}]}, fields).holds(record)
        True
        >>> parse([("source", "==", "ai"), ("rank", ">", 1)], fields).holds(record)
        False
        >>> parse({"soruce": "ai"}, fields)
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: there is no field 'soruce' to filter by; use source, rank, ...
    """
    if wanted is None or (isinstance(wanted, Mapping | list | tuple) and not wanted):
        return None
    try:
        return _parse(wanted, fields)
    except RecursionError as error:
        raise InputError("a filter holds itself, or has too many levels; flatten it") from error


def _parse(wanted: object, fields: Fields) -> Condition:
    if isinstance(wanted, Mapping) and wanted:
        return _every(_entry(key, part, fields) for key, part in wanted.items())
    if isinstance(wanted, list | tuple) and wanted:
        return _every(_triple(part, fields) for part in wanted)
    raise InputError(
        'a filter is a dictionary like {"source": {"$eq": "ai"}} or a list like [("source", "==", "ai")], '
        f"not {wanted!r:.200}"
    )


def _every(parts: Iterable[Condition]) -> Condition:
    found = tuple(parts)
    return found[0] if len(found) == 1 else Every(found)


def _entry(key: object, part: object, fields: Fields) -> Condition:
    if key == "$not":
        return Inverse(_parse(part, fields))
    if key in ("$and", "$or"):
        if not isinstance(part, list | tuple) or not part:
            raise InputError(f"{key} takes a list of filters that is not empty, not {part!r:.200}")
        parts = tuple(_parse(item, fields) for item in part)
        return Every(parts) if key == "$and" else Either(parts)
    if not isinstance(part, Mapping):
        return _comparison(key, "$eq", part, fields)
    if not part:
        raise InputError(f"the filter of {key!r} names no operator; use one of {', '.join(OPERATORS)}")
    return _every(_comparison(key, operator, operand, fields) for operator, operand in part.items())


def _triple(part: object, fields: Fields) -> Condition:
    if not isinstance(part, list | tuple) or len(part) != 3:
        raise InputError(f'each part of a filter is like ("source", "==", "ai"), not {part!r:.200}')
    key, sign, operand = part
    if not isinstance(sign, str) or sign not in _SIGNS:
        raise InputError(f"{sign!r:.200} is no operator of a filter; use one of {', '.join(_SIGNS)}")
    return _comparison(key, _SIGNS[sign], operand, fields)


def _comparison(key: object, operator: object, operand: object, fields: Fields) -> Comparison:
    path = _path(key, fields)
    kind = fields[path[0]]
    if operator not in OPERATORS:
        raise InputError(
            f"{operator!r:.200} is no operator of a filter: use {', '.join(OPERATORS)}; for the keys of a "
            'dictionary write "metadata.key"'
        )
    operator = str(operator)
    if operator in _LISTS:
        if not isinstance(operand, list | tuple | set | frozenset):
            raise InputError(f"{operator} of {key!r} takes a list, not {operand!r:.200}")
        return Comparison(path, operator, tuple(_operand(kind, key, item) for item in operand), kind)
    if operator in _TEXTS and (kind not in (Kind.TEXT, Kind.MAP)):
        raise InputError(f"{operator} looks inside of text, and {key!r} is {kind.value}; compare it instead")
    if operator == "$like" and not isinstance(operand, str):
        raise InputError(
            f"$like of {key!r} takes text with % and _ for what may stand there, not {operand!r}"
        )
    checked = _operand(kind, key, operand)
    blank = checked is None and operator in (*ORDER, "$contains")
    if blank or (isinstance(checked, bool) and operator in ORDER):
        raise InputError(f"{operator} of {key!r} has nothing to compare with in {operand!r}; use $eq or $ne")
    return Comparison(path, operator, checked, kind)


def _path(key: object, fields: Fields) -> tuple[str, ...]:
    found = _PATH.fullmatch(key) if isinstance(key, str) else None
    if found is None or found[1] not in fields:
        raise InputError(f"there is no field {key!r:.200} to filter by; use {', '.join(fields)}")
    steps = tuple("".join(step) for step in _STEP.findall(found[2]))
    if bool(steps) != (fields[found[1]] is Kind.MAP):
        raise InputError(
            f"{key!r:.200} has no keys; leave them out"
            if steps
            else f'{key!r} is a dictionary; name one of its keys, like "{key}.topic"'
        )
    return (found[1], *steps)


def _operand(kind: Kind, key: object, operand: object) -> Any:
    """What a field is compared with; a time becomes a datetime with a zone."""
    if operand is None:
        return None
    number = isinstance(operand, int | float) and operand == operand
    match kind:
        case Kind.TEXT if isinstance(operand, str):
            return operand
        case Kind.FLAG if isinstance(operand, bool):
            return operand
        case Kind.NUMBER if number and not isinstance(operand, bool):
            return operand
        case Kind.MAP if number or isinstance(operand, str):
            return operand
        case Kind.TIME if (time := _time(operand)) is not None:
            return time
    raise InputError(f"{key!r} is compared with {kind.value}, not {operand!r:.200}")


def _time(operand: object) -> datetime | None:
    try:
        if isinstance(operand, str):
            operand = datetime.fromisoformat(operand)
        elif isinstance(operand, int | float) and not isinstance(operand, bool):
            operand = datetime.fromtimestamp(operand, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(operand, datetime):
        return None
    return operand if operand.tzinfo else operand.replace(tzinfo=UTC)


def _at(record: object, path: tuple[str, ...]) -> object:
    """The value of a field, or of a key below it; `None` if it is not there."""
    name, *steps = path
    value = record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _contains(value: object, operand: object) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    return isinstance(value, list | tuple) and any(equal(item, operand) for item in value)


@cache_of_texts(256)
def _like(pattern: str) -> Callable[[str], bool]:
    """A test of text: `%` is any run of characters, `_` any one; without `%` it may stand anywhere.

    The pieces between `%` are looked for from left to right, each as early as it can be, so that no pattern
    takes longer than the text times its pieces.
    """
    if "%" not in pattern:
        pattern = f"%{pattern}%"
    first, *middle, last = [
        re.compile("".join("." if sign == "_" else re.escape(sign) for sign in piece), re.DOTALL)
        for piece in pattern.split("%")
    ]
    tail = len(pattern) - pattern.rindex("%") - 1

    def test(text: str) -> bool:
        found = first.match(text)
        for piece in middle:
            if found is None:
                return False
            found = piece.search(text, found.end())
        end = len(text) - tail
        return found is not None and found.end() <= end and last.match(text, end) is not None

    return test


def equal(value: Any, operand: Any) -> bool:
    """Whether two values are equal; what cannot be compared is not."""
    try:
        return bool(value == operand)
    except ArithmeticError:
        return False  # A signalling NaN equals nothing, and says so by raising.


def ordered(value: Any, operand: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Whether two numbers, texts or times stand in an order; those that have none in common do not."""
    left, right = number_of(value), number_of(operand)
    if left is not None and right is not None:
        return compare(left, right)
    kind = next((kind for kind in (str, datetime) if isinstance(operand, kind)), None)
    return kind is not None and isinstance(value, kind) and compare(value, operand)


def number_of(value: object) -> float | None:
    """The number that a value is or reads as."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str | Decimal) else None
    except ValueError:
        return None
