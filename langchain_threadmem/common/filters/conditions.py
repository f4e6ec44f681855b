"""Mongo-like filters on named fields, parsed to conditions.

A filter has one of two equivalent forms:

- `{"source": {"$eq": "ai"}, "rank": {"$gte": 1}}`, with `$and`, `$or` and `$not` around such dictionaries;
- `[("source", "==", "ai"), ("rank", ">=", 1)]`, which are joined by AND.

`parse` checks a filter against the existing fields and returns a `Condition`. An unknown field or operator,
or an operand of the wrong type, raises an `InputError` before any row is read; if it were ignored, the result
would contain too many rows. No part of a filter becomes part of a statement (CVE-2025-67644, CVE-2025-8709):
conditions are evaluated here, and `common.filters.sql` binds their values.

A missing value matches only `None`. Text that represents a number is ordered as a number, and values without
a common order do not match.

Filters of store items, on values of any shape, have LangGraph's meaning: see `common.filters.store`, which
uses the same comparisons.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from operator import ge, gt, le, lt
from typing import Any

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.common.inputs import plain_number, time_of, value_in
from langchain_threadmem.errors import InputError


class FieldType(Enum):
    """The type of a field, with the operands that it is compared with."""

    TEXT = "text"
    NUMBER = "a number"
    TIME = "a datetime, ISO text or seconds since 1970"
    FLAG = "True or False"
    MAP = "text, a number, True, False or None"
    """A dictionary, of which filters name keys: `metadata.topic` or `metadata["topic"]`."""


Fields = Mapping[str, FieldType]
"""The fields that a filter may name."""
FieldFilter = Mapping[str, Any] | Sequence[tuple[str, str, Any]]
"""A filter in either form."""

_EQUALITY = ("$eq", "$ne")
_LISTS = ("$in", "$nin")
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
"""The operators that compare the order of two values."""
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
    """A condition on a record, which is an object with attributes or a dictionary."""

    @abstractmethod
    def holds(self, record: object) -> bool:
        """Whether the record satisfies the condition."""


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """The comparison of a field with an operand.

    Attributes:
        path: The field and the keys below it.
        operator: One of `OPERATORS`.
        operand: The operand, checked for the kind of the field; times are datetimes with a time zone.
        kind: The type of the field.
    """

    path: tuple[str, ...]
    operator: str
    operand: Any
    kind: FieldType

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
    """The conjunction of several conditions."""

    parts: tuple[Condition, ...]

    def holds(self, record: object) -> bool:
        return all(part.holds(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either(Condition):
    """The disjunction of several conditions."""

    parts: tuple[Condition, ...]

    def holds(self, record: object) -> bool:
        return any(part.holds(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Inverse(Condition):
    """The negation of a condition."""

    part: Condition

    def holds(self, record: object) -> bool:
        return not self.part.holds(record)


def parse(filter_: FieldFilter | None, fields: Fields) -> Condition | None:
    """Parse a filter in either form.

    Args:
        filter_: The filter; `None`, `{}` and `[]` are the empty filter.

    Returns:
        The condition, or `None` for the empty filter.

    Raises:
        InputError: The filter has another form, an unknown field or operator, or a wrong type of operand.

    Example:
        >>> fields = {"source": FieldType.TEXT, "rank": FieldType.NUMBER, "metadata": FieldType.MAP}
        >>> record = {"source": "ai", "rank": 1, "metadata": {"topic": "bread"}}
        >>> parse({"$or": [{"rank": 2}, {"metadata.topic": {"$in": ["bread"]}}]}, fields).holds(record)
        True
        >>> parse([("source", "==", "ai"), ("rank", ">", 1)], fields).holds(record)
        False
        >>> parse({"soruce": "ai"}, fields)
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: there is no field 'soruce' to filter by; use source, rank, ...
    """
    if filter_ is None or (isinstance(filter_, Mapping | list | tuple) and not filter_):
        return None
    try:
        return _parse(filter_, fields)
    except RecursionError as error:
        raise InputError("a filter contains itself, or has too many levels; flatten it") from error


def _parse(filter_: object, fields: Fields) -> Condition:
    if isinstance(filter_, Mapping) and filter_:
        return _every(_entry(key, item, fields) for key, item in filter_.items())
    if isinstance(filter_, list | tuple) and filter_:
        return _every(_triple(item, fields) for item in filter_)
    raise InputError(
        'a filter is a dictionary like {"source": {"$eq": "ai"}} or a list like [("source", "==", "ai")], '
        f"not {filter_!r:.200}"
    )


def _every(parts: Iterable[Condition]) -> Condition:
    conditions = tuple(parts)
    return conditions[0] if len(conditions) == 1 else Every(conditions)


def _entry(key: object, value: object, fields: Fields) -> Condition:
    if key == "$not":
        return Inverse(_parse(value, fields))
    if key in ("$and", "$or"):
        if not isinstance(value, list | tuple) or not value:
            raise InputError(f"{key} needs a non-empty list of filters, not {value!r:.200}")
        parts = tuple(_parse(item, fields) for item in value)
        return Every(parts) if key == "$and" else Either(parts)
    if not isinstance(value, Mapping):
        return _comparison(key, "$eq", value, fields)
    if not value:
        raise InputError(f"the filter of {key!r} has no operator; use one of {', '.join(OPERATORS)}")
    return _every(_comparison(key, operator, operand, fields) for operator, operand in value.items())


def _triple(item: object, fields: Fields) -> Condition:
    if not isinstance(item, list | tuple) or len(item) != 3:
        raise InputError(f'each part of a filter is like ("source", "==", "ai"), not {item!r:.200}')
    key, sign, operand = item
    if not isinstance(sign, str) or sign not in _SIGNS:
        raise InputError(f"{sign!r:.200} is not an operator of a filter; use one of {', '.join(_SIGNS)}")
    return _comparison(key, _SIGNS[sign], operand, fields)


def _comparison(key: object, operator: object, operand: object, fields: Fields) -> Comparison:
    path = _path(key, fields)
    kind = fields[path[0]]
    if operator not in OPERATORS:
        raise InputError(
            f"{operator!r:.200} is not an operator of a filter; use {', '.join(OPERATORS)}; for the keys of "
            'a dictionary write "metadata.key"'
        )
    operator = str(operator)
    if operator in _LISTS:
        if not isinstance(operand, list | tuple | set | frozenset):
            raise InputError(f"{operator} of {key!r} needs a list, not {operand!r:.200}")
        return Comparison(path, operator, tuple(_operand(kind, key, item) for item in operand), kind)
    if operator in _TEXTS and (kind not in (FieldType.TEXT, FieldType.MAP)):
        raise InputError(
            f"{operator} searches text, but {key!r} is {kind.value}; use $eq or another comparison"
        )
    if operator == "$like" and not isinstance(operand, str):
        raise InputError(f"$like of {key!r} needs text, with the wildcards % and _, not {operand!r}")
    checked = _operand(kind, key, operand)
    is_none = checked is None and operator in (*ORDER, "$contains")
    if is_none or (isinstance(checked, bool) and operator in ORDER):
        raise InputError(f"{operator} of {key!r} cannot compare with {operand!r}; use $eq or $ne")
    return Comparison(path, operator, checked, kind)


def _path(key: object, fields: Fields) -> tuple[str, ...]:
    match = _PATH.fullmatch(key) if isinstance(key, str) else None
    if match is None or match[1] not in fields:
        raise InputError(f"there is no field {key!r:.200} to filter by; use {', '.join(fields)}")
    steps = tuple("".join(step) for step in _STEP.findall(match[2]))
    if bool(steps) != (fields[match[1]] is FieldType.MAP):
        raise InputError(
            f"{key!r:.200} has no keys; leave them out"
            if steps
            else f'{key!r} is a dictionary; name one of its keys, like "{key}.topic"'
        )
    return (match[1], *steps)


def _operand(kind: FieldType, key: object, operand: object) -> Any:
    """Check an operand; a time becomes a datetime with a time zone."""
    if operand is None:
        return None
    operand = plain_number(operand)
    number = isinstance(operand, int | float) and operand == operand
    match kind:
        case FieldType.TEXT if isinstance(operand, str):
            return operand
        case FieldType.FLAG if isinstance(operand, bool):
            return operand
        case FieldType.NUMBER if number and not isinstance(operand, bool):
            return operand
        case FieldType.MAP if number or isinstance(operand, str):
            return operand
        case FieldType.TIME if (time := time_of(operand)) is not None:
            return time
    raise InputError(f"{key!r} is compared with {kind.value}, not {operand!r:.200}")


def _at(record: object, path: tuple[str, ...]) -> object:
    """The value of a field or of a key below it; `None` if it does not exist."""
    name, *steps = path
    value = value_in(record, name)
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _contains(value: object, operand: object) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    return isinstance(value, list | tuple) and any(equal(item, operand) for item in value)


@cache_of_texts(256)
def _like(pattern: str) -> Callable[[str], bool]:
    """A test of text by a pattern.

    `%` matches any characters and `_` a single character; a pattern without `%` matches anywhere in the text.
    The pieces between `%` are searched from left to right, each at its first place, so the cost is at most
    the length of the text times the number of pieces.
    """
    if "%" not in pattern:
        pattern = f"%{pattern}%"
    first, *middle, last = [
        re.compile("".join("." if sign == "_" else re.escape(sign) for sign in piece), re.DOTALL)
        for piece in pattern.split("%")
    ]
    tail = len(pattern) - pattern.rindex("%") - 1

    def test(text: str) -> bool:
        match = first.match(text)
        for piece in middle:
            if match is None:
                return False
            match = piece.search(text, match.end())
        end = len(text) - tail
        return match is not None and match.end() <= end and last.match(text, end) is not None

    return test


def equal(value: Any, operand: Any) -> bool:
    """Whether two values are equal; values that cannot be compared are not."""
    try:
        return bool(value == operand)
    except ArithmeticError:
        return False  # A signalling NaN raises an error.


def ordered(value: Any, operand: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Compare the order of two numbers, texts or times; `False` for values without a common order."""
    left, right = number_of(value), number_of(operand)
    if left is not None and right is not None:
        return compare(left, right)
    kind = next((kind for kind in (str, datetime) if isinstance(operand, kind)), None)
    return kind is not None and isinstance(value, kind) and compare(value, operand)


def number_of(value: object) -> float | None:
    """The number that a value is or represents."""
    value = plain_number(value)
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str | Decimal) else None
    except ValueError:
        return None
