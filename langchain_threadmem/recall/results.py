"""Results of recall: `Recollection`, `Why`, `Covers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from langchain_threadmem.messages.display import Cell, Displayed, table
from langchain_threadmem.tree.node import ConversationNode


@dataclass(frozen=True, slots=True)
class Covers:
    """The messages that a summary covers.

    Attributes:
        messages: The number of messages, including the messages of covered summaries.
        started: The time of the first message.
        ended: The time of the last message.
        stale: Whether a message was changed or removed after the summary was written.

    Example:
        >>> from langchain_threadmem.tree.node import EPOCH
        >>> str(Covers(12, EPOCH, EPOCH))
        'summary of 12 messages from 1970-01-01'
        >>> str(Covers(1, EPOCH, datetime(1970, 3, 1), stale=True))
        'summary of 1 message from 1970-01-01 to 1970-03-01, written before a message changed'
    """

    messages: int
    started: datetime
    ended: datetime
    stale: bool = False

    def __str__(self) -> str:
        first, last = self.started.date().isoformat(), self.ended.date().isoformat()
        return "".join(
            [
                f"summary of {self.messages} message{'s' * (self.messages != 1)} from {first}",
                f" to {last}" if last != first else "",
                ", written before a message changed" if self.stale else "",
            ]
        )


@dataclass(frozen=True, slots=True)
class Why:
    """The reason for a hit, in numbers and words.

    Attributes:
        terms: Words that the query and the message share, the rarest first.
        lexical: The score of these words: 0.0 without shared words, about 1 if the message contains all
            words of the query.
        similarity: The cosine of query and message, -1 to 1; `None` without embeddings.
        neighbours: The score of the words that the query shares with the messages around the hit.
        person: The speaker of the message, if the query names the speaker; else empty.
        date: The nearness of the message to the time that the query names, 0 to 1; 0.0 if the query names no
            time.
        covers: The messages that a summary covers; `None` for a message.
        weak: Whether nothing but its meaning makes the message a hit, and its similarity is no greater than
            that of messages to a meaningless query; see `weak_below` of the embedding model.
        standing: Whether the message is a standing instruction, such as "always answer in French".

    Example:
        >>> str(Why(terms=("csv", "read"), lexical=0.9, similarity=0.71, person="ada"))
        'shares csv, read; similarity 0.71; said by ada'
        >>> str(Why(neighbours=0.8, date=1.0)), str(Why(similarity=0.12, weak=True))
        ('next to messages that match; said at the named time', 'similarity 0.12; weak')
    """

    terms: Sequence[str] = ()
    lexical: float = 0.0
    similarity: float | None = None
    neighbours: float = 0.0
    person: str = ""
    date: float = 0.0
    covers: Covers | None = None
    weak: bool = False
    standing: bool = False

    @property
    def likeness(self) -> float:
        """How much the message is like the query, by words and by meaning."""
        return self.lexical + (self.similarity or 0.0)

    def __str__(self) -> str:
        parts = [] if self.covers is None else [str(self.covers)]
        if self.standing:
            parts.append("a standing instruction")
        if self.terms:
            parts.append("shares " + ", ".join(self.terms))
        if self.similarity is not None:
            parts.append(f"similarity {self.similarity:.2f}")
        if self.neighbours > 0 and not self.terms:
            parts.append("next to messages that match")
        if self.person:
            parts.append(f"said by {self.person}")
        if self.date:
            parts.append("said at the named time" if self.date == 1 else "said near the named time")
        if self.weak:
            parts.append("weak")
        return "; ".join(parts) or "among the most recent"


@dataclass(frozen=True, slots=True)
class Recollection(Displayed):
    """One hit of `ChatMemory.recall`.

    Attributes:
        node: The node of the message. A summary is a message of the role "ai-summary" with the summary's id;
            its node id counts summaries, not messages.
        score: The score of the hit; comparable within one call only.
        thread: The hit after `context_depth` ancestors, oldest first; for a summary the summary alone.
        why: The reason for the hit; for a summary also the messages that it covers.
        conversation_id: The conversation of the message; empty for a summary of the long-term memory.
        rank: 0 for a message, 1 for a summary within a conversation, 2 for a summary of the long-term
            memory. `MemorySystem.unfold` returns the messages of a summary.
    """

    node: ConversationNode
    score: float
    thread: Sequence[ConversationNode] = field(default=())
    why: Why = field(default_factory=Why)
    conversation_id: str = ""
    rank: int = 0

    @property
    def weak(self) -> bool:
        """Whether the hit is probably chance, see `Why.weak`."""
        return self.why.weak

    @property
    def time(self) -> datetime:
        """The time of the message, which it may bring itself; of a summary, that of the last message."""
        return self.node.time

    def _cells(self) -> dict[str, Cell]:
        cells = self.node._cells()
        if self.rank:
            del cells["message"]
        return {
            "score": f"{self.score:.2f}",
            "conversation": self.conversation_id,
            **cells,
            "why": str(self.why),
        }

    def _line(self) -> str:
        return f"{self.score:.2f} {self.node._line()} ({self.why})"


class Hits(list[Recollection]):
    """Hits, the best first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return table(self) if self else "<small>no hits</small>"
