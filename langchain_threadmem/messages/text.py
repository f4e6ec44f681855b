"""Text for people: one line, cut, with control characters escaped.

A message may contain escape sequences of terminals and marks that change the direction of text. Pages,
pictures, plain text and terminals show these characters as escapes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# C0 and C1 controls except tab and line ends, bidirectional marks and controls, lone surrogates.
_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile("\r\n|[\t\n\r\u2028\u2029]")


def visible(text: str) -> str:
    r"""Show control characters as escapes; tabs and line ends stay.

    Example:
        >>> visible("\x1b[31mred \u202eder")
        '\\x1b[31mred \\u202eder'
    """
    return _ACTING.sub(lambda found: ascii(found[0])[1:-1], text)


def escape(text: str) -> str:
    """A text for HTML and XML, with control characters as escapes.

    Example:
        >>> escape("<b>")
        '&lt;b&gt;'
    """
    return html.escape(_ILLEGAL.sub("\ufffd", visible(text)))


def plural(number: int, noun: str) -> str:
    """A number and a noun.

    Example:
        >>> plural(1, "message"), plural(2000, "message")
        ('1 message', '2,000 messages')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(values: Sequence[object], most: int = 5) -> str:
    """The first values for an error; empty if there are none.

    Example:
        >>> listed(["a", "b"]), listed(range(9))
        ("'a', 'b'", '0, 1, 2, 3, 4 ...')
    """
    return ", ".join(map(repr, values[:most])) + (" ..." if len(values) > most else "")


def cut(text: str, width: int) -> str:
    """At most `width` characters of a text; a cut text ends in an ellipsis.

    Example:
        >>> cut("say this, then that", 10)
        'say this,…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def without_middle(text: str, width: int) -> str:
    """The beginning and the end of a text, `width` characters together, with an ellipsis between them.

    Example:
        >>> without_middle("say this, then that", 10), without_middle("say this", 10)
        ('say t… that', 'say this')
    """
    half = width // 2
    return text if len(text) <= width else f"{text[:half]}…{text[-half:]}"


def one_line(text: str, width: int | None = None) -> str:
    """A text on one line, with spaces for line ends and tabs, `visible`, and cut to `width`, if given.

    Example:
        >>> one_line("say this, then that", 10)
        'say this,…'
    """
    line = visible(_BREAKS.sub(" ", text if width is None else text[: 2 * width]))
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)].rstrip() + "…"
