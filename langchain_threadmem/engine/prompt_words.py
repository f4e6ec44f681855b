"""Counts of the words of prompts, and of the words that repeat the beginning of an earlier prompt."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.messages.codec import texts_of

_CONVERSATIONS = 64
"""The number of conversations whose prompts are compared."""
_MOST_MESSAGES = 20_000
"""The number of different messages of prompts of a conversation, from which on they are compared anew."""
_ROOT = 0


@dataclass(frozen=True, slots=True)
class PromptWords:
    """The words of prompts, separated by spaces.

    Providers bill a beginning that an earlier prompt had at about a tenth, for some minutes.

    Attributes:
        prompts: The number of prompts.
        words: The number of their words.
        repeated: The number of words in messages at the beginning of a prompt that began an earlier prompt of
            the conversation, too.

    Example:
        >>> PromptWords(1, 10, 0) + PromptWords(1, 30, 10)
        PromptWords(prompts=2, words=40, repeated=10)
    """

    prompts: int = 0
    words: int = 0
    repeated: int = 0

    def price(self, cached: float) -> float:
        """The price, in words that no earlier prompt began with.

        Args:
            cached: The price of a repeated word, as a share of that of another word.

        Example:
            >>> PromptWords(2, 40, 10).price(0.1)
            31.0
        """
        return self.words - self.repeated + cached * self.repeated

    def __sub__(self, other: PromptWords) -> PromptWords:
        return PromptWords(
            self.prompts - other.prompts, self.words - other.words, self.repeated - other.repeated
        )

    def __add__(self, other: PromptWords) -> PromptWords:
        return PromptWords(
            self.prompts + other.prompts, self.words + other.words, self.repeated + other.repeated
        )


class PromptCounter(Component):
    """Counts the words of an owner's prompts since the memory was opened; any thread may count and read."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._lock = forking.lock()
        self.total = PromptWords()
        # The messages that follow a beginning: the beginning that they end, and their words.
        self._known = LruCache[str, dict[tuple[int, str | None, int], tuple[int, int]]](_CONVERSATIONS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self._known.clear()

    def close(self) -> None:
        self._known.clear()

    def count(self, conversation: str, prompt: Sequence[BaseMessage]) -> PromptWords:
        """Count a prompt.

        Returns:
            The words of this prompt.
        """
        with self._lock:
            known = self._known.setdefault(conversation, dict)
            if len(known) > _MOST_MESSAGES:
                known.clear()
            words, repeated, beginning = 0, 0, _ROOT
            for message, text in zip(prompt, texts_of(prompt), strict=True):
                following = beginning, message.id, hash(text)
                if (found := known.get(following)) is not None:
                    beginning, number = found
                    repeated += number
                else:
                    beginning, number = len(known) + 1, len(text.split())
                    known[following] = beginning, number
                words += number
            counted = PromptWords(1, words, repeated)
            self.total += counted
        return counted
