"""What prompts cost with a provider's cache, and whether they contain a turn.

A provider bills the beginning of a prompt that it has seen before at a fraction, about a tenth. Here every
earlier prompt of the conversation is still cached, and the size of a prompt is its number of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

FIRST_WORDS = 60
"""The number of words of an answer that are shown if the answer is covered."""


@dataclass
class Cost:
    """The words of the prompts of a conversation.

    Attributes:
        sent: All words of all prompts.
        cached: Those at the beginning of a prompt that an earlier prompt had at its beginning.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> cost = Cost()
        >>> for text in ("Which tea?", "Which bread?"):
        ...     cost.add([HumanMessage("Be very brief."), HumanMessage(text)])
        >>> cost.sent, cost.cached, cost.at(0.1)
        (10, 4, 6.4)
    """

    sent: int = 0
    cached: int = 0
    _seen: dict[Any, Any] = field(default_factory=dict)

    def add(self, prompt: Sequence[BaseMessage]) -> None:
        """Count a prompt."""
        seen: dict[Any, Any] | None = self._seen
        branch = self._seen
        for message in prompt:
            words = message.text.split()
            self.sent += len(words)
            key = message.type, tuple(words)
            if seen is not None:
                begun = [len(words)] if key in seen else [_common(words, other) for _, other in seen]
                self.cached += max(begun, default=0)
                seen = seen.get(key)
            branch = branch.setdefault(key, {})

    def at(self, share: float) -> float:
        """The cost in words, if a cached word costs this share of a word."""
        return self.sent - self.cached + share * self.cached


def covers(prompt: Sequence[BaseMessage], question: str, answer: str) -> bool:
    """Whether a prompt contains a question and the first words of its answer.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> covers([HumanMessage("<human>Which tea?</human> <ai>Green.</ai>")], "Which tea?", "Green.")
        True
    """
    shown = _plain("\n".join(message.text for message in prompt))
    first = " ".join(answer.split()[:FIRST_WORDS])
    return _plain(question) in shown and _plain(first) in shown


def _plain(text: str) -> str:
    return " ".join(text.replace("&lt;", "<").split())


def _common(words: Sequence[str], other: Sequence[str]) -> int:
    """The number of words with which two texts begin alike."""
    most = min(len(words), len(other))
    return next((n for n in range(most) if words[n] != other[n]), most)
