"""Options of recall: whose messages, from when, from where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.errors import InputError
from langchain_threadmem.filters.conditions import Condition, FieldFilter, Kind, parse
from langchain_threadmem.messages.roles import TYPES
from langchain_threadmem.recall.postings import Floats, Postings
from langchain_threadmem.recall.summary_index import SummaryIndex

Scope = Literal["thread", "conversation", "owner"]
RANKS = frozenset({0, 1, 2})
RERANKED = 50
FIELDS = {
    "content": Kind.TEXT,
    "role": Kind.TEXT,
    "speaker": Kind.TEXT,
    "time": Kind.TIME,
    "rank": Kind.NUMBER,
    "metadata": Kind.MAP,
}
"""The fields of `filters`: a message's text, type, `name`, time of storing, rank and `additional_kwargs`."""
ROLES = {name: kind == "human" for name, kind in TYPES.items() if kind in ("human", "ai")}
"""The roles that recall can be limited to, and whether the role is that of the human."""


class Conditions(TypedDict, total=False):
    """Options of `recall` beside query, number and depth; described in `RecallOptions`."""

    scope: Scope
    include_superseded: bool
    speaker: str | None
    role: str | None
    rank: int | Iterable[int] | None
    since: datetime | None
    until: datetime | None
    half_life: timedelta | None
    max_tokens: int | None
    reranker: Reranker | None
    filters: FieldFilter | None
    wait: bool | None


class Reranker(Protocol):
    """Judges anew how well texts answer a query; may also have an async `arerank`."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, the higher the better."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Conditions that a hit must meet, and how age counts.

    Attributes:
        n_results: How many hits at most.
        scope: The active "thread", this "conversation", or everything of the "owner".
        include_superseded: Also messages that were edited, regenerated or moved.
        speaker: Only messages of a speaker with this name (`message.name`; one of its words is enough).
        role: Only messages of the "human", or of the "ai".
        rank: 0 for messages, 1 for summaries within a conversation, 2 for those of the long-term memory (in
            the scope of an "owner"), or several of these; `None` for all. A summary has no speaker, so there
            is none where a speaker or a role is asked for.
        since: No message from before, and no summary of one.
        until: No message of this time or later, and no summary of one.
        half_life: The time in which the odds of a message halve.
        max_tokens: Fill so many tokens with whole turns; see `recall.packing`.
        reranker: Puts the best `RERANKED` in an order of its own.
        filters: Conditions on `FIELDS`, as `filters.conditions` reads them: `{"metadata.topic": "bread"}`.
            Messages are read until enough of them meet it, the best first: some 4 µs each.
        wait: Whether to embed new messages first (`True`), or to find them by words alone (`False`). By
            default up to 2,000 messages are embedded first; more, as after a large import, are found by
            words alone while they are embedded in the background.

    Raises:
        InputError: A value is out of its range.

    Example:
        >>> RecallOptions(role="robot")
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: role='robot' is none of 'user', 'human', 'assistant', 'ai'
    """

    n_results: int = 10
    scope: Scope = "conversation"
    include_superseded: bool = False
    speaker: str | None = None
    role: str | None = None
    rank: int | Iterable[int] | None = None
    since: datetime | None = None
    until: datetime | None = None
    half_life: timedelta | None = None
    max_tokens: int | None = None
    reranker: Reranker | None = None
    filters: FieldFilter | None = None
    wait: bool | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.n_results, "__index__") or self.n_results < 0:
            raise InputError(
                f"n_results={self.n_results!r} is no number from 0 up; pass how many messages to find"
            )
        _one_of("scope", self.scope, get_args(Scope))
        if self.role is not None:
            _one_of("role", self.role, tuple(ROLES))
        _ranks(self.rank)
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, datetime):
                raise InputError(f"{name}={value!r} is no datetime; pass one, with its time zone (or in UTC)")
        if self.half_life is not None and not (
            isinstance(self.half_life, timedelta) and self.half_life > timedelta()
        ):
            raise InputError(f"half_life={self.half_life!r} is no timedelta above zero")
        if self.max_tokens is not None and not (
            hasattr(self.max_tokens, "__index__") and self.max_tokens > 0
        ):
            raise InputError(
                f"max_tokens={self.max_tokens!r} leaves room for nothing; pass a positive number"
            )
        if self.reranker is not None and not callable(getattr(self.reranker, "rerank", None)):
            raise InputError(f"{self.reranker!r} is no reranker; pass an object with rerank(query, texts)")
        parse(self.filters, FIELDS)

    @property
    def condition(self) -> Condition | None:
        """The condition of `filters`."""
        return parse(self.filters, FIELDS)

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks that count."""
        given = _ranks(self.rank)
        return given if self.speaker is None and self.role is None else given & {0}

    @property
    def looked_at(self) -> int:
        """How many hits are needed before they are reranked and packed."""
        return self.n_results if self.reranker is None else max(self.n_results, RERANKED)

    @property
    def narrow(self) -> bool:
        """Whether a condition may exclude most messages that fit the query."""
        given = (self.speaker, self.role, self.since, self.until, self.condition)
        return self.scope == "thread" or any(option is not None for option in given)

    def most(self, postings: Postings) -> int:
        """How many texts to rank: all, if they have yet to pass `filters`."""
        return self.looked_at if self.condition is None else max(len(postings.rows), 1)

    def allowed(self, postings: Postings) -> NDArray[np.bool_]:
        """Which messages meet the conditions, the scope apart."""
        rows = postings.rows
        allowed = rows["recallable"] & (0 in self.ranks)
        if not self.include_superseded:
            allowed &= rows["live"]
        if self.speaker is not None:
            allowed &= postings.spoken_by(self.speaker.lower().split())
        if self.role is not None:
            allowed &= rows["human"] == ROLES[self.role]
        if self.since is not None:
            allowed &= rows["time"] >= _seconds(self.since)
        if self.until is not None:
            allowed &= rows["time"] < _seconds(self.until)
        return allowed

    def allowed_summaries(self, index: SummaryIndex, *, singles: bool = False) -> NDArray[np.bool_]:
        """Which summaries meet the conditions, the scope apart.

        A summary of a single message is left to the message if messages are looked for, unless `singles` says
        otherwise.
        """
        rows = index.postings.rows
        allowed = rows["recallable"] & np.isin(index.rank, sorted(self.ranks))
        if 0 in self.ranks and not singles:
            allowed &= index.messages > 1
        if self.since is not None:
            allowed &= index.started >= _seconds(self.since)
        if self.until is not None:
            allowed &= rows["time"] < _seconds(self.until)
        return allowed

    def aged(self, scores: Floats, postings: Postings, now: float) -> Floats:
        """Scores after age: they are logarithms of odds, so a half-life takes off log 2."""
        if self.half_life is None:
            return scores
        age = np.maximum(now - postings.rows["time"], 0.0)
        aged: Floats = scores - np.log(2) * age / self.half_life.total_seconds()
        return aged


def _ranks(given: object) -> frozenset[int]:
    if given is None:
        return RANKS
    several: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if not several or any(isinstance(rank, bool) or rank not in RANKS for rank in several):
        raise InputError(f"rank={given!r} is none of 0, 1 and 2, nor several of them; None means all")
    return frozenset(several)


def _one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r} is none of {', '.join(map(repr, allowed))}")


def _seconds(time: datetime) -> float:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
