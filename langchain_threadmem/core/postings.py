"""Which messages hold a word, in memory: for conversations whose words no index on disk may hold."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence


class Postings:
    """The words of a growing conversation.

    Nodes are added in the order of their numbers; one added twice counts once, so callers may overlap.

    Example:
        >>> held = Postings()
        >>> held.add([(1, 100, ["flat", "bread"]), (2, 101, ["bread"])])
        >>> held.holding("bread", 5), held.documents, held.words
        ([101, 100], 2, 3)
    """

    def __init__(self) -> None:
        self.last = 0
        """Number of the newest node that was added."""
        self.documents = 0
        self.words = 0
        self._keys: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def add(self, entries: Iterable[tuple[int, int, Sequence[str]]]) -> None:
        """Take in number, key and words of nodes that are newer than `last`; others are known."""
        with self._lock:
            for seq, key, words in entries:
                if seq <= self.last:
                    continue
                self.last = seq
                self.documents += bool(words)
                self.words += len(words)
                for word in set(words):
                    self._keys.setdefault(word, []).append(key)

    def holding(self, word: str, most: int) -> list[int]:
        """Keys of the newest nodes that hold a word, the newest first."""
        with self._lock:
            return self._keys.get(word, [])[: -most - 1 : -1]
