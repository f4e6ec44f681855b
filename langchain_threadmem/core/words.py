"""Words: what the lexical index holds and what a query is reduced to.

Words are runs of letters and digits, lower-cased, in any script. A query loses the words that nearly every
question holds (`STOP_WORDS`), unless nothing else is left of it. Pass other stop words for other languages:
without a list, every word counts and the ranking's rarity weights do the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection

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


def query_words(text: str, stop_words: Collection[str] = STOP_WORDS) -> list[str]:
    """The distinct words that a query is about, in order.

    Example:
        >>> query_words("What did we say about the CSV files?")
        ['csv', 'files']
        >>> query_words("what about it")
        ['what', 'about', 'it']
    """
    distinct = list(dict.fromkeys(words(text)))
    return [word for word in distinct if word not in stop_words] or distinct
