"""Excerpts of texts for a prompt: the beginning, and the lines that matter for a question."""

from __future__ import annotations

import re
from collections.abc import Set

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""The letters of scripts that are written without spaces, and Korean."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_TERM = re.compile(rf"[{_UNSPACED}]{{2}}|[^\W\d_{_UNSPACED}]{{4,}}|\d{{2,}}")
_LINE = re.compile(r"[^\n.!?。！？]+(?:[.!?。！？]+|\n|$)")
LINES, LINE_WORDS = 2, 30
"""The maximum number of later lines in an excerpt, and of words in each."""
_LETTERS = 2
"""The number of letters of a script without spaces that count as a word."""


def excerpt(text: str, words: int, about: str = "", lines: int = LINES) -> str:
    """The first words of a text, and later lines that share words with a question.

    Args:
        text: The text; returned unchanged if it has few more words.
        words: The number of words from the beginning. Of Chinese, Japanese, Korean, Thai and similar scripts
            two letters count as a word.
        about: The question.
        lines: The maximum number of later lines.

    Returns:
        The excerpt. It says how many words are left out.

    Example:
        >>> text = "I planned the trip. We fly on Monday. Bring coats. The hotel in Oslo costs 90 euros."
        >>> excerpt(text, 4, "How much is the hotel in Oslo?")
        'I planned the trip. [... 6 words left out] The hotel in Oslo costs 90 euros.'
    """
    if text.isascii() and len(text) <= 2 * words + 4:  # There is a space between two words.
        return text
    ends = _ends(text)
    if len(ends) <= words + 2:
        return text
    start = ends[words - 1] if words else 0
    parts, position = [text[:start].rstrip()] if words else [], start
    for first, last in _lines(text, start, about, lines) if lines else ():
        parts += [*_left_out(ends, position, first), text[first:last].strip()]
        position = last
    return " ".join([*parts, *_left_out(ends, position, len(text))])


def count_words(text: str) -> int:
    """The number of words of a text, as `excerpt` counts them."""
    return len(_ends(text))


def _ends(text: str) -> list[int]:
    """The positions at which the words of a text end."""
    if text.isascii():
        return [found.end() for found in _WORD.finditer(text)]
    letters, ends = 0, list[int]()
    for found in _WORD.finditer(text):
        if found.end() - found.start() == 1 and found[0] > "\u0dff":
            letters += 1
            if letters % _LETTERS:
                continue
        ends.append(found.end())
    return ends


def _left_out(ends: list[int], first: int, last: int) -> list[str]:
    count = sum(first < end <= last for end in ends)
    return [f"[... {count} words left out]"] if count else []


def _terms(text: str) -> Set[str]:
    return {found[0].casefold() for found in _TERM.finditer(text)}


def _lines(text: str, start: int, about: str, most: int) -> list[tuple[int, int]]:
    """The positions of the lines after `start` that share most words with a question, in their order."""
    asked = _terms(about) - _terms(text[:start])
    found = []
    for line in _LINE.finditer(text, start) if asked else ():
        shared = len(asked & _terms(line[0]))
        if shared and count_words(line[0]) <= LINE_WORDS:
            found.append((-shared, line.start(), line.end()))
    return sorted(line[1:] for line in sorted(found)[:most])
