"""Names that a caller chooses: owners, conversations, message ids.

They are columns of their own, so they must be text that every database can keep: PostgreSQL takes no NUL,
and half of a surrogate pair is no character in any encoding. What a message *says* has no such limits: its
body is JSON, which escapes both.
"""

from __future__ import annotations

import re

from langchain_threadmem.errors import InputError

_UNKEPT = re.compile("[\0\ud800-\udfff]")


def check_name(what: str, name: object) -> None:
    """Refuse a name that cannot be stored as it is.

    Args:
        what: What it names, for the error: "an owner".
        name: The name.

    Raises:
        InputError: It is no text, is empty, or holds NUL or a lone surrogate.

    Example:
        >>> check_name("an owner", "Ada Löwe")
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"{what} is text that is not empty, not {name!r}")
    if "\0" in name or not (name.isascii() or _is_unicode(name)):
        raise InputError(f"{what} holds NUL or half of a surrogate pair, which no database keeps: {name!r}")


def is_key(number: object) -> bool:
    """Whether a number may be that of something stored: a whole one from 1 up that a database can hold.

    Example:
        >>> is_key(1), is_key(0), is_key(2**63), is_key("1"), is_key(True)
        (True, False, False, False, False)
    """
    return isinstance(number, int) and not isinstance(number, bool) and 0 < number < 1 << 63


def kept_text(text: str) -> str:
    r"""A text that every database keeps: NUL and halves of surrogate pairs become U+FFFD.

    Example:
        >>> kept_text("Ada\0") == "Ada\ufffd"
        True
    """
    return _UNKEPT.sub("\ufffd", text)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
