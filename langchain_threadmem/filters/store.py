"""The filter dialect of LangGraph's store, on values of any shape.

A filter has the meaning that it has in LangGraph's own stores. A filter that those ignore or fail on raises
an `InputError` before anything is read. Filters are evaluated in Python, so no key and no operator becomes
part of a statement (CVE-2025-67644, CVE-2025-8709).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from langchain_threadmem.errors import InputError
from langchain_threadmem.filters.conditions import ORDER, equal, number_of, ordered

Filter = Mapping[str, Any]
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": equal,
    "$ne": lambda value, operand: not equal(value, operand),
    **{name: partial(ordered, compare=compare) for name, compare in ORDER.items()},
}
_LEAVES = (str, int, float, bytes, date, Decimal, UUID, type(None))


def check_filter(wanted: object) -> None:
    """Check a filter of store items.

    Raises:
        InputError: The filter is not a dictionary with text as keys, contains an unknown operator or mixes
            operators with keys, orders by a value without an order, or compares with a value that a store
            cannot contain.

    Example:
        >>> check_filter({"score": {"$gte": 3}, "color": "red"})
    """
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InputError(f'a filter is a dictionary like {{"color": "red"}}, not {wanted!r}')
    try:
        _check_data(dict(wanted))
    except RecursionError as error:
        raise InputError("a filter contains itself, or has too many levels; flatten it") from error


def _check(wanted: object) -> None:
    if not isinstance(wanted, Mapping) or not any(_is_operator(key) for key in wanted):
        _check_data(wanted)
        return
    for name, operand in wanted.items():
        if name not in _OPERATORS:
            raise InputError(
                f"{name!r} is not an operator of a filter; use {', '.join(_OPERATORS)} without other keys; "
                'to compare with a dictionary that has such keys, write {"$eq": {...}}'
            )
        if name in ("$eq", "$ne"):
            _check_plain(operand)
        elif not isinstance(operand, str) and number_of(operand) is None:
            raise InputError(f"{name} compares numbers or text, not {operand!r}")


def _check_data(wanted: object, check: Callable[[object], None] = _check) -> None:
    if isinstance(wanted, Mapping):
        for key, part in wanted.items():
            if not isinstance(key, str):
                raise InputError(f"a key of a filter is text, not {key!r}")
            check(part)
    elif isinstance(wanted, list | tuple):
        for part in wanted:
            check(part)
    elif isinstance(wanted, set | frozenset):
        return
    elif not isinstance(wanted, _LEAVES):
        raise InputError(
            f"a store item cannot contain {wanted!r}; compare with text, numbers, lists or dictionaries"
        )


def _check_plain(wanted: object) -> None:
    _check_data(wanted, _check_plain)


def passes(value: Mapping[str, Any], wanted: Filter | None) -> bool:
    """Whether a stored value passes a checked filter; a missing key counts as `None`.

    Text that represents a number is ordered as a number; values without a common order do not match.

    Example:
        >>> passes({"score": 4.5, "color": "red"}, {"score": {"$gt": 4, "$lt": 5}, "color": "red"})
        True
    """
    return not wanted or all(_passes(value.get(key), part) for key, part in wanted.items())


def _passes(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(map(_is_operator, wanted)):
            return all(_OPERATORS[name](value, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(_passes(value.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_passes(item, part) for item, part in zip(value, wanted, strict=True))
        )
    return equal(value, wanted)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")
