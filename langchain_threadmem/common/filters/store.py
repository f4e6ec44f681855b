"""The filter dialect of LangGraph's store, on values of any shape.

A filter has the same meaning as in LangGraph's own stores. A filter that those stores ignore or fail on
raises an `InputError` before any item is read. Filters are evaluated in Python, as those of
`common.filters.conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from langchain_threadmem.common.filters.conditions import ORDER, equal, number_of, ordered
from langchain_threadmem.common.inputs import plain_number
from langchain_threadmem.errors import InputError

Filter = Mapping[str, Any]
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": equal,
    "$ne": lambda value, operand: not equal(value, operand),
    **{name: partial(ordered, compare=compare) for name, compare in ORDER.items()},
}
_LEAVES = (str, int, float, bytes, date, Decimal, UUID, type(None))


def check_filter(filter_: object) -> None:
    """Check a filter of store items.

    Raises:
        InputError: The filter is not a dictionary with text as keys, contains an unknown operator or mixes
            operators with keys, orders by a value without an order, or compares with a value that a store
            cannot contain.

    Example:
        >>> check_filter({"score": {"$gte": 3}, "color": "red"})
    """
    if filter_ is None:
        return
    if not isinstance(filter_, Mapping):
        raise InputError(f'a filter must be a dictionary like {{"color": "red"}}, not {filter_!r}')
    try:
        _check_value(dict(filter_))
    except RecursionError as error:
        raise InputError("a filter contains itself, or has too many levels; flatten it") from error


def _check_operand(condition: object) -> None:
    if not isinstance(condition, Mapping) or not any(_is_operator(key) for key in condition):
        _check_value(condition)
        return
    for name, operand in condition.items():
        if name not in _OPERATORS:
            raise InputError(
                f"{name!r} is not an operator of a filter; use {', '.join(_OPERATORS)} without other keys; "
                'to compare with a dictionary that has such keys, write {"$eq": {...}}'
            )
        if name in ("$eq", "$ne"):
            _check_plain(operand)
        elif not isinstance(operand, str) and number_of(operand) is None:
            raise InputError(f"{name} compares numbers or text, not {operand!r}")


def _check_value(value: object, check: Callable[[object], None] = _check_operand) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InputError(f"a key of a filter must be text, not {key!r}")
            check(item)
    elif isinstance(value, list | tuple):
        for item in value:
            check(item)
    elif isinstance(value, set | frozenset):
        return
    elif not isinstance(plain_number(value), _LEAVES):
        raise InputError(
            f"a store item cannot contain {value!r}; compare with text, numbers, lists or dictionaries"
        )


def _check_plain(value: object) -> None:
    _check_value(value, _check_plain)


def passes(value: Mapping[str, Any], filter_: Filter | None) -> bool:
    """Whether a stored value matches a checked filter; a missing key counts as `None`.

    Text that represents a number is ordered as a number; values without a common order do not match.

    Example:
        >>> passes({"score": 4.5, "color": "red"}, {"score": {"$gt": 4, "$lt": 5}, "color": "red"})
        True
    """
    return not filter_ or all(_matches(value.get(key), condition) for key, condition in filter_.items())


def _matches(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(map(_is_operator, condition)):
            return all(_OPERATORS[name](value, operand) for name, operand in condition.items())
        return isinstance(value, dict) and all(
            _matches(value.get(key), inner) for key, inner in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(_matches(item, inner) for item, inner in zip(value, condition, strict=True))
        )
    return equal(value, condition)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")
