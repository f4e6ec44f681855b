"""Message ids that are made here: each ends in the number of its node.

`0f3c9a51-77d2-8c04-9b6e-000000000012` is the id of node 12: a UUID of version 8 (RFC 9562) whose last twelve
digits are decimal. Such a node is found by its number, so its id costs no index entry, which would be a
fifth of an append. Everything before the number, the *stem*, is random: nobody can give a message the id
that another is going to get.

The rule is about a node and its own id alone, whoever made the id. So it holds for copies of a node, which
keep its number, and a message that was moved to a node with another number is simply found by its id.

Example:
    >>> numbered("0f3c9a51-77d2-8c04-9b6e-", 12)
    '0f3c9a51-77d2-8c04-9b6e-000000000012'
    >>> number_in("0f3c9a51-77d2-8c04-9b6e-000000000012"), number_in("h1")
    (12, 0)
    >>> is_numbered("0f3c9a51-77d2-8c04-9b6e-000000000012", 12), is_numbered("h1", 1)
    (True, False)
"""

from __future__ import annotations

import os

_AT_ONCE = 64
_DIGITS = 12
_LIMIT = 10**_DIGITS


def stem(randoms: bytes) -> str:
    """The beginning of an id from nine random bytes, put together from digits: `uuid.UUID` costs ten times
    as much.

    Example:
        >>> stem(bytes(range(9)))
        '00010203-0405-8060-8708-'
    """
    digits = randoms.hex()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-8{digits[15:]}-"


_ready: list[str] = []


def new_stem() -> str:
    """A stem that nothing else has had: made beforehand, many at once, at a third of the cost."""
    while True:
        try:
            return _ready.pop()
        except IndexError:
            _ready.extend(stem(os.urandom(9)) for _ in range(_AT_ONCE))


if hasattr(os, "register_at_fork"):  # Not on Windows, where nothing forks.
    os.register_at_fork(after_in_child=_ready.clear)


def numbered(beginning: str, number: int) -> str:
    """The id of the node with this number."""
    return beginning + str(number).zfill(_DIGITS)


def is_numbered(message_id: str, number: int) -> bool:
    """Whether the id of a node ends in the node's number."""
    return message_id.endswith(f"{number:012d}") and number < _LIMIT


def number_in(message_id: str) -> int:
    """The number of the node that an id may be found at; 0, which no node has, if it ends in none."""
    digits = message_id[-_DIGITS:]
    return int(digits) if len(digits) == _DIGITS and digits.isascii() and digits.isdecimal() else 0
