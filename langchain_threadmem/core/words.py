"""Words, as summaries by extraction count them: runs of letters and digits, lower-cased, in any script.

Recall has terms of its own, by language (`core.language`).
"""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "again",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "being",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "for",
        "from",
        "get",
        "give",
        "go",
        "got",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "let",
        "like",
        "me",
        "more",
        "most",
        "my",
        "no",
        "not",
        "now",
        "of",
        "off",
        "on",
        "one",
        "or",
        "our",
        "out",
        "please",
        "say",
        "said",
        "she",
        "should",
        "so",
        "some",
        "such",
        "tell",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "too",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yours",
    ]
)
"""English words that say little about what a message is about."""


def words(text: str) -> list[str]:
    """The words of a text, in order, lower-cased.

    Example:
        >>> words("Read CSV-files, größer!")
        ['read', 'csv', 'files', 'größer']
    """
    return _WORD.findall(text.lower())
