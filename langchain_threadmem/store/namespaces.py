"""Namespaces encoded as bytes that sort and nest as their labels do.

A namespace is a tuple of labels. Each label is written as UTF-8 and ended by a zero byte; the bytes 0 and 1
inside of a label are escaped. So encoding is reversible, no label has a special meaning, the bytes sort as
tuples do, and everything below a namespace is one range of bytes: an index finds it, and `("a",)` can never
match `("ab",)` (CVE-2026-71433) nor `("a_b",)` be taken for `("a", "b")`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_threadmem.errors import InputError

Namespace = tuple[str, ...]

LONGEST = 2000
"""The most bytes of an encoded namespace or key, less than an index of PostgreSQL can hold."""
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
