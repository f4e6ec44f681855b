"""Counts of model calls and tokens, by purpose and conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_threadmem.common import forking

Purpose = Literal["selection", "summary", "answer"]
"""The purpose of a model call: the selection of a thread, a summary, or the answer of a ready-made graph."""


@dataclass(frozen=True, slots=True)
class Used:
    """Model calls, and the tokens that the models reported.

    Example:
        >>> Used(1, 100, 20) + Used(1, 50, 10)
        Used(calls=2, input_tokens=150, output_tokens=30)
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Used) -> Used:
        return Used(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


class Usage:
    """Counts model calls since the memory was opened; any thread may count and read.

    A call without reported tokens counts as a call, and so does a failed call. Calls of custom selectors and
    summarizers are not counted.

    Example:
        >>> usage = Usage()
        >>> usage.add("summary", "monday", {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100})
        >>> usage.add("selection", "monday", None)
        >>> usage.of("summary").total_tokens, usage.of(conversation="monday").calls, usage.total.calls
        (100, 2, 2)
        >>> usage.by_purpose()["summary"]
        Used(calls=1, input_tokens=90, output_tokens=10)
    """

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._used: dict[tuple[str, str], Used] = {}

    def add(self, purpose: Purpose, conversation: str, tokens: Mapping[str, Any] | None) -> None:
        """Count one call.

        Args:
            conversation: The id of the conversation; empty for calls about all conversations.
            tokens: The `usage_metadata` of the answer, if there is any.
        """
        counts = tokens or {}
        used = Used(1, int(counts.get("input_tokens") or 0), int(counts.get("output_tokens") or 0))
        with self._lock:
            self._used[purpose, conversation] = self._used.get((purpose, conversation), Used()) + used

    def of(self, purpose: Purpose | None = None, conversation: str | None = None) -> Used:
        """The calls of a purpose, of a conversation, or of both; all calls by default."""
        with self._lock:
            return sum(
                (
                    used
                    for (used_for, used_in), used in self._used.items()
                    if purpose in (None, used_for) and conversation in (None, used_in)
                ),
                Used(),
            )

    @property
    def total(self) -> Used:
        """All calls."""
        return self.of()

    def by_purpose(self) -> dict[str, Used]:
        """The calls of each purpose."""
        return self._by(0)

    def by_conversation(self) -> dict[str, Used]:
        """The calls of each conversation."""
        return self._by(1)

    def _by(self, index: int) -> dict[str, Used]:
        sums: dict[str, Used] = {}
        with self._lock:
            for names, used in self._used.items():
                sums[names[index]] = sums.get(names[index], Used()) + used
        return sums

    def __repr__(self) -> str:
        return f"Usage({self.by_purpose()!r})"
