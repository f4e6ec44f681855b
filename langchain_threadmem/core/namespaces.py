"""A store's namespaces as bytes that sort and nest as the labels do, and the filters of its searches.

A namespace is a tuple of labels. Each label is written as UTF-8 and ended by a zero byte; the bytes 0 and 1
inside of a label are escaped. So encoding is reversible, no label has a special meaning, the bytes sort as
tuples do, and everything below a namespace is one range of bytes: an index finds it, and `("a",)` can never
match `("ab",)` (CVE-2026-71433) nor `("a_b",)` be taken for `("a", "b")`.

Filters are compared here, in Python, so no key and no operator ever becomes part of a statement
(CVE-2025-67644, CVE-2025-8709). They mean what they mean to LangGraph's own stores; what those pass over or
fail on is an `InputError` before anything is read, never a wider result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_threadmem.errors import InputError

Namespace = tuple[str, ...]

LONGEST = 2000
"""Bytes of an encoded namespace or key: what an index of PostgreSQL holds, with room to spare."""
ANY = "*"
"""The label that stands for any one label when namespaces are listed."""

_END = b"\0"
_ESCAPES = {b"\0": b"\1\1", b"\1": b"\1\2"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


def encode_label(label: object) -> bytes:
    r"""A label or a key as bytes that sort as its characters do.

    Raises:
        InputError: It is no text, or too long.

    Example:
        >>> encode_label("Ada"), encode_label("a\0b")
        (b'Ada', b'a\x01\x01b')
    """
    if not isinstance(label, str):
        raise InputError(f"labels and keys are text, not {label!r}; write str(...) around it")
    data = label.encode("utf-8", "surrogatepass")
    if len(data) > LONGEST:
        raise InputError(f"{label[:40]!r}... takes {len(data)} bytes; a label or key has at most {LONGEST}")
    if b"\0" in data or b"\1" in data:
        data = re.sub(b"[\0\1]", lambda found: _ESCAPES[found[0]], data)
    return data


def decode_label(data: bytes) -> str:
    """The label or key that `encode_label` was given."""
    if b"\1" in data:
        data = re.sub(b"\1[\1\2]", lambda found: _CHARACTERS[found[0]], data)
    return data.decode("utf-8", "surrogatepass")


def encode(namespace: Sequence[str]) -> bytes:
    r"""A namespace as bytes.

    Raises:
        InputError: It is no tuple of labels, or too long.

    Example:
        >>> encode(("users", "ada"))
        b'users\x00ada\x00'
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InputError(f'a namespace is a tuple of labels like ("users", "ada"), not {namespace!r}')
    path = b"".join([encode_label(label) + _END for label in namespace])
    if len(path) > LONGEST:
        raise InputError(f"the namespace {namespace[:3]!r}... takes {len(path)} bytes, at most {LONGEST} fit")
    return path


def decode(path: bytes) -> Namespace:
    """The namespace that `encode` was given.

    Example:
        >>> decode(encode(("a.b", "%", "")))
        ('a.b', '%', '')
    """
    return tuple([decode_label(label) for label in path.split(_END)[:-1]])


def below(path: bytes) -> tuple[bytes, bytes]:
    """The range of an encoded namespace and all below it: from the first, up to but without the second.

    Example:
        >>> low, high = below(encode(("a",)))
        >>> [low <= encode(other) < high for other in [("a",), ("a", "b"), ("ab",)]]
        [True, True, False]
    """
    return path, path[:-1] + b"\1" if path else b"\xff"


def matches(namespace: Namespace, pattern: Sequence[str], kind: str) -> bool:
    """Whether a namespace begins ("prefix") or ends ("suffix") with labels; `*` is any one label.

    Raises:
        InputError: The kind is another.

    Example:
        >>> matches(("a", "b", "c"), ("a", "*"), "prefix"), matches(("a", "b", "c"), ("b",), "suffix")
        (True, False)
    """
    if kind not in ("prefix", "suffix"):
        raise InputError(f'namespaces are matched by "prefix" or "suffix", not {kind!r}')
    if len(namespace) < len(pattern):
        return False
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(wanted in (ANY, label) for label, wanted in zip(part, pattern, strict=True))


Filter = Mapping[str, Any]
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, operand: _equal(value, operand),
    "$ne": lambda value, operand: not _equal(value, operand),
    "$gt": lambda value, operand: _ordered(value, operand, lambda a, b: a > b),
    "$gte": lambda value, operand: _ordered(value, operand, lambda a, b: a >= b),
    "$lt": lambda value, operand: _ordered(value, operand, lambda a, b: a < b),
    "$lte": lambda value, operand: _ordered(value, operand, lambda a, b: a <= b),
}
_LEAVES = (str, int, float, bytes, date, Decimal, UUID, type(None))


def check_filter(wanted: object) -> None:
    """Refuse a filter that means nothing.

    Raises:
        InputError: It is no dictionary with text as keys, holds an operator that is not known or mixes
            operators with keys, orders by something that has no order, or compares with something that no
            store holds.

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
        raise InputError("a filter holds itself, or has too many levels; flatten it") from error


def _check(wanted: object) -> None:
    if not isinstance(wanted, Mapping) or not any(_is_operator(key) for key in wanted):
        _check_data(wanted)
        return
    for name, operand in wanted.items():
        if name not in _OPERATORS:
            raise InputError(
                f"{name!r} is no operator of a filter: use {', '.join(_OPERATORS)} and no other keys beside; "
                'to compare with a dictionary that has such keys, write {"$eq": {...}}'
            )
        if name in ("$eq", "$ne"):
            _check_plain(operand)
        elif not isinstance(operand, str) and _number(operand) is None:
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
        raise InputError(f"a filter compares with values that a store holds, which {wanted!r} is not")


def _check_plain(wanted: object) -> None:
    _check_data(wanted, _check_plain)


def passes(value: Mapping[str, Any], wanted: Filter | None) -> bool:
    """Whether a stored value is what a checked filter asks for; a key that is not there counts as `None`.

    Text that reads as a number is ordered as a number; values that have no common order do not match.

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
    return _equal(value, wanted)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def _equal(value: Any, operand: Any) -> bool:
    try:
        return bool(value == operand)
    except ArithmeticError:
        return False  # A signalling NaN equals nothing, and says so by raising.


def _ordered(value: Any, operand: Any, compare: Callable[[Any, Any], bool]) -> bool:
    left, right = _number(value), _number(operand)
    if left is not None and right is not None:
        return compare(left, right)
    return isinstance(value, str) and isinstance(operand, str) and compare(value, operand)


def _number(value: object) -> float | None:
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str | Decimal) else None
    except ValueError:
        return None
