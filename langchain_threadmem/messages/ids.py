"""Names and ids: checks of callers' names, and ids of new messages."""

from __future__ import annotations

import os
import re

from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.errors import InputError

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_name(subject: str, name: object) -> None:
    """Check that a name can be stored exactly.

    Args:
        subject: The subject of the error message, such as "an owner".
        name: The name.

    Raises:
        InputError: The name is not a string, is empty, or contains NUL or a lone surrogate.

    Example:
        >>> check_name("an owner", "Ada Löwe")
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"{subject} must be a non-empty text, not {name!r}")
    if _UNSTORABLE.search(name):
        raise InputError(
            f"{subject} contains NUL or half of a surrogate pair, which no database can store: {name!r}"
        )


def is_key(number: object) -> bool:
    """Whether a value can be the number of a stored row: an integer of at least 1 that a database can store.

    Example:
        >>> is_key(1), is_key(0), is_key(2**63), is_key("1"), is_key(True)
        (True, False, False, False, False)
    """
    return is_whole(number, 1) and number < 1 << 63


def storable(text: str) -> str:
    r"""Replace NUL and lone surrogates, which no database can store, by U+FFFD.

    Example:
        >>> storable("Ada\0") == "Ada\ufffd"
        True
    """
    return _UNSTORABLE.sub("\ufffd", text)


_DIGITS = 12
_LIMIT = 10**_DIGITS


def stem(randoms: bytes) -> str:
    """The beginning of an id, from nine random bytes; `uuid.UUID` takes ten times as long.

    Example:
        >>> stem(bytes(range(9)))
        '00010203-0405-8060-8708-'
    """
    digits = randoms.hex()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-8{digits[15:]}-"


def new_stem() -> str:
    """A stem of random digits."""
    return stem(os.urandom(9))


def numbered(beginning: str, number: int) -> str:
    """The id of the node with this number."""
    return beginning + str(number).zfill(_DIGITS)


def is_numbered(message_id: str, number: int) -> bool:
    """Whether the id of a node ends in the node's number."""
    return message_id.endswith(str(number).zfill(_DIGITS)) and number < _LIMIT


def number_in(message_id: str) -> int:
    """The number of the node that an id may belong to; 0, which no node has, for other ids."""
    digits = message_id[-_DIGITS:]
    return int(digits) if len(digits) == _DIGITS and digits.isascii() and digits.isdecimal() else 0
