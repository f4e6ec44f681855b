"""Blocks of code as texts and coloured texts, by the language that the message names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MarkupNode = str | list[Any]
"""A text, or an element: its tag, its attributes by name, and its parts."""

LONGEST_CODE, LONGEST_LINE = 5_000, 500
"""The lengths of a block of code and of a line, in characters, beyond which code has no colours: many lexers
take quadratic time (20,000 characters of one line: several seconds)."""
_GAP = re.compile(r"\s{100}")
"""Space for which the lexers of C, Java and Python take quadratic time."""


def colored(code: str, info: str) -> list[MarkupNode]:
    """Code as texts and coloured texts, by the language after the fence."""
    code = code.removesuffix("\n")
    language = info.split(maxsplit=1)[0].strip("{}.").lower() if info.strip() else ""
    lexer = _lexer(language) if 0 < len(language) <= 30 and _is_quick(code) else None
    if lexer is None:
        return [code]
    parts: list[Any] = []
    for kind, text in lexer.get_tokens(code):  # The lexer adds a line end.
        color = next((name for name, kinds in _colors() if any(kind in each for each in kinds)), "")
        if not color or not text.strip():
            parts.append(text)
        elif parts and isinstance(parts[-1], list) and parts[-1][1]["class"] == color:
            parts[-1][2] += text
        else:
            parts.append(["span", {"class": color}, text])
    last = parts[-1]
    parts[-1] = last.removesuffix("\n") if isinstance(last, str) else [*last[:2], last[2].removesuffix("\n")]
    return joined(parts)


def _is_quick(code: str) -> bool:
    """Whether lexers take little time, whatever the code is."""
    return (
        len(code) <= LONGEST_CODE
        and max(map(len, code.split("\n"))) <= LONGEST_LINE
        and _GAP.search(code) is None
    )


@cache
def _colors() -> Sequence[tuple[str, Sequence[Any]]]:
    from pygments import token

    name = token.Name
    return (
        ("comment", (token.Comment,)),
        ("keyword", (token.Keyword, token.Operator.Word)),
        ("string", (token.String,)),
        ("number", (token.Number,)),
        ("name", (name.Builtin, name.Function, name.Class, name.Decorator, name.Tag, name.Attribute)),
        ("deleted", (token.Generic.Deleted,)),
        ("inserted", (token.Generic.Inserted,)),
    )


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


def joined(parts: list[Any]) -> list[MarkupNode]:
    """Parts in which a text follows no text."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, list) and len(part) > 2:
            part[2:] = joined(part[2:])
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return found
