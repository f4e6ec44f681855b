"""Encoding of namespaces as bytes with the order and the nesting of their labels.

A namespace is a tuple of labels. Each label is encoded as UTF-8 and followed by a zero byte; the bytes 0 and
1 in a label are escaped. So the encoding is reversible, no label has a special meaning, and the bytes sort as
the tuples do. The namespaces below a namespace are one range of bytes, which an index can search: `("a",)`
never matches `("ab",)` (CVE-2026-71433), and `("a_b",)` differs from `("a", "b")`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.ids import LONGEST_ID

Namespace = tuple[str, ...]

LONGEST = LONGEST_ID
"""The maximum number of bytes of an encoded namespace or key."""
ANY = "*"
"""The wildcard for a single label in a list of namespaces."""

_END = b"\0"
_ESCAPES = {b"\0": b"\1\1", b"\1": b"\1\2"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


def encode_label(label: object) -> bytes:
    r"""Encode a label or a key as bytes that sort as its characters do.

    Raises:
        InputError: The label is not text, or too long.

    Example:
        >>> encode_label("Ada"), encode_label("a\0b")
        (b'Ada', b'a\x01\x01b')
    """
    if not isinstance(label, str):
        raise InputError(f"labels and keys are text, not {label!r}; pass str(...) of it")
    data = label.encode("utf-8", "surrogatepass")
    if b"\0" in data or b"\1" in data:
        data = re.sub(b"[\0\1]", lambda match: _ESCAPES[match[0]], data)
    if len(data) > LONGEST:
        raise InputError(
            f"{label[:40]!r}... takes {len(data)} bytes; a label or a key has at most {LONGEST}, so "
            "shorten it"
        )
    return data


def decode_label(data: bytes) -> str:
    """Decode a label or a key."""
    if b"\1" in data:
        data = re.sub(b"\1[\1\2]", lambda match: _CHARACTERS[match[0]], data)
    return data.decode("utf-8", "surrogatepass")


def encode(namespace: Sequence[str]) -> bytes:
    r"""Encode a namespace.

    Raises:
        InputError: The namespace is not a tuple of labels, or too long.

    Example:
        >>> encode(("users", "ada"))
        b'users\x00ada\x00'
    """
    if isinstance(namespace, str) or not isinstance(namespace, Sequence):
        raise InputError(f'a namespace is a tuple of labels like ("users", "ada"), not {namespace!r}')
    path = b"".join([encode_label(label) + _END for label in namespace])
    if len(path) > LONGEST:
        raise InputError(
            f"the namespace {namespace[:3]!r:.200}... takes {len(path)} bytes, one of them after each "
            f"label; a namespace has at most {LONGEST}, so shorten it"
        )
    return path


def decode(path: bytes) -> Namespace:
    """Decode a namespace.

    Example:
        >>> decode(encode(("a.b", "%", "")))
        ('a.b', '%', '')
    """
    return tuple([decode_label(label) for label in path.split(_END)[:-1]])


def below(path: bytes) -> tuple[bytes, bytes]:
    """The range of an encoded namespace and the namespaces below it: the first bytes, and the end, exclusive.

    Example:
        >>> low, high = below(encode(("a",)))
        >>> [low <= encode(other) < high for other in [("a",), ("a", "b"), ("ab",)]]
        [True, True, False]
    """
    return path, path[:-1] + b"\1" if path else b"\xff"


def matches(namespace: Namespace, pattern: Sequence[str], kind: str) -> bool:
    """Whether a namespace begins ("prefix") or ends ("suffix") with labels; `*` matches any single label.

    Raises:
        InputError: `kind` is neither "prefix" nor "suffix".

    Example:
        >>> matches(("a", "b", "c"), ("a", "*"), "prefix"), matches(("a", "b", "c"), ("b",), "suffix")
        (True, False)
    """
    if kind not in ("prefix", "suffix"):
        raise InputError(f'namespaces are matched by "prefix" or "suffix", not {kind!r}')
    if len(namespace) < len(pattern):
        return False
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(expected in (ANY, label) for label, expected in zip(part, pattern, strict=True))
