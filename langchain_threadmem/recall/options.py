"""`RecallOptions`: the conditions and limits of a recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.filters.conditions import Condition, FieldFilter, FieldType, parse
from langchain_threadmem.common.inputs import check_one_of, is_whole, zoned
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.roles import TYPES
from langchain_threadmem.recall.postings import Postings
from langchain_threadmem.recall.scoring import SummaryIndex

Scope = Literal["thread", "conversation", "owner"]
RANKS = frozenset({0, 1, 2})
RERANKED = 50
FIELDS = {
    "content": FieldType.TEXT,
    "role": FieldType.TEXT,
    "speaker": FieldType.TEXT,
    "time": FieldType.TIME,
    "rank": FieldType.NUMBER,
    "metadata": FieldType.MAP,
}
"""The fields of `filters`: a message's text, type, `name`, time, rank and `additional_kwargs`."""
ROLES = {name: kind == "human" for name, kind in TYPES.items() if kind in ("human", "ai")}
"""The roles of the option `role`, and whether each is the human role."""


class Conditions(TypedDict, total=False):
    """Keyword options of `recall`; `RecallOptions` describes them."""

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
    """Scores how well texts answer a query, such as a cross-encoder; `arerank` is an optional async form."""

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text; higher is better."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """The conditions and limits of a recall.

    Attributes:
        n_results: The maximum number of hits.
        scope: The active "thread", the "conversation", or all conversations of the "owner".
        include_superseded: Whether edited, regenerated and moved messages may be hits.
        speaker: Only messages whose speaker (`message.name`) has one of the words of this name.
        role: Only messages of the "human", or of the "ai".
        rank: 0 for messages, 1 for summaries within a conversation, 2 for summaries of the long-term memory
            (in the scope "owner"), or several ranks; `None` for all. A summary has neither speaker nor role,
            so no summary is a hit if one of these options is given.
        since: Only messages of this time or later, and summaries that cover only these messages.
        until: Only messages before this time, and summaries that cover only these messages.
        half_life: The age at which the odds of a message are halved.
        max_tokens: The token budget of the result, which is filled with whole turns (`recall.packing`).
        reranker: Scores the best 50 hits again and decides their order.
        filters: Conditions on `FIELDS`, in the syntax of `common.filters.conditions`: `{"metadata.topic":
            "bread"}`. Messages are read, the best first, until enough of them meet the conditions; about 4 µs
            each.
        wait: Whether to index and embed all new messages first (`True`), or to find them by words alone
            (`False`). By default up to 2,000 messages are embedded first; more messages, as after a large
            import, are found by words alone while they are embedded in the background. If the words of more
            than 10,000 messages are not indexed, only the newest of these are found, until the background has
            indexed them.

    Raises:
        InputError: A value is out of its range.

    Example:
        >>> RecallOptions(role="robot")
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: role='robot' is not one of 'user', 'human', 'assistant', 'ai'
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
        if not is_whole(self.n_results, 0):
            raise InputError(
                f"n_results={self.n_results!r} is not an integer of at least 0; pass a number of messages"
            )
        check_one_of("scope", self.scope, get_args(Scope))
        if not isinstance(self.speaker, str | None):
            raise InputError(f"speaker={self.speaker!r} is not a name; pass the name of one person")
        if self.role is not None:
            check_one_of("role", self.role, ROLES)
        object.__setattr__(self, "rank", _ranks(self.rank))  # An iterator can be read only once.
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, datetime):
                raise InputError(
                    f"{name}={value!r} is not a datetime; pass a datetime with a time zone, or in UTC"
                )
        if self.half_life is not None and not (
            isinstance(self.half_life, timedelta) and self.half_life > timedelta()
        ):
            raise InputError(
                f"half_life={self.half_life!r} is not a positive timedelta; pass timedelta(days=30)"
            )
        if self.max_tokens is not None and not is_whole(self.max_tokens, 1):
            raise InputError(
                f"max_tokens={self.max_tokens!r} is not a positive integer; pass a number of tokens"
            )
        if self.reranker is not None and not callable(getattr(self.reranker, "rerank", None)):
            raise InputError(f"{self.reranker!r} is not a reranker; pass an object with rerank(query, texts)")
        _ = self.condition

    @property
    def condition(self) -> Condition | None:
        """The condition of `filters`."""
        return None if self.filters is None else parse(self.filters, FIELDS)

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks of possible hits."""
        ranks: frozenset[int] = self.rank  # type: ignore[assignment] # as `__post_init__` sets it
        return ranks if self.speaker is None and self.role is None else ranks & {0}

    @property
    def looked_at(self) -> int:
        """The number of hits before reranking and packing."""
        return self.n_results if self.reranker is None else max(self.n_results, RERANKED)

    @property
    def narrow(self) -> bool:
        """Whether a condition may exclude most messages that match the query."""
        options = (self.speaker, self.role, self.since, self.until, self.condition)
        return self.scope == "thread" or any(option is not None for option in options)

    def most(self, postings: Postings, wanted: int) -> int:
        """The number of texts to rank for a number of hits: all if `filters` are applied afterwards."""
        return wanted if self.condition is None else max(len(postings.rows), 1)

    def allowed(self, postings: Postings) -> NDArray[np.bool_]:
        """Whether each message meets the conditions, except scope and filters."""
        rows = postings.rows
        allowed = rows["recallable"] & (0 in self.ranks)
        if not self.include_superseded:
            allowed &= rows["live"]
        if self.speaker is not None:
            allowed &= postings.spoken_by(self.speaker.lower().split())
        if self.role is not None:
            allowed &= rows["human"] == ROLES[self.role]
        if self.since is not None:
            allowed &= rows["time"] >= zoned(self.since).timestamp()
        if self.until is not None:
            allowed &= rows["time"] < zoned(self.until).timestamp()
        return allowed

    def allowed_summaries(self, index: SummaryIndex, *, singles: bool = False) -> NDArray[np.bool_]:
        """Whether each summary meets the conditions, except scope and filters.

        Without `singles`, the summary of a single message is excluded if the message may be a hit.
        """
        rows = index.postings.rows
        allowed = rows["recallable"] & np.isin(index.rank, sorted(self.ranks))
        if 0 in self.ranks and not singles:
            allowed &= index.messages > 1
        if self.since is not None:
            allowed &= index.started >= zoned(self.since).timestamp()
        if self.until is not None:
            allowed &= rows["time"] < zoned(self.until).timestamp()
        return allowed


def check_context_depth(depth: object) -> None:
    """Refuse a number of ancestors that is not an integer of at least 0.

    Raises:
        InputError: The number is not an integer, or is negative.
    """
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise InputError(f"context_depth must be an integer, not {depth!r}; pass a number of ancestors")
    if depth < 0:
        raise InputError("context_depth must be non-negative")


def _ranks(rank: object) -> frozenset[int]:
    if rank is None:
        return RANKS
    ranks: list[Any] = list(rank) if isinstance(rank, Iterable) else [rank]
    if not ranks or any(not is_whole(rank, 0) or rank not in RANKS for rank in ranks):
        raise InputError(f"rank={rank!r} is not 0, 1, 2 or several of these; pass None for all")
    return frozenset(ranks)
