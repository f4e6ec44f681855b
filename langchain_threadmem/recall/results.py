"""Results of recall: `Recollection`, `Why`, `Covers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from langchain_threadmem.tree.node import ConversationNode


@dataclass(frozen=True, slots=True)
class Covers:
    """The messages that a summary covers.

    Attributes:
        messages: How many messages, those below other summaries included.
        started: The time of the first message.
        ended: The time of the last message.
        stale: Whether a message was changed or removed since the summary was written.

    Example:
        >>> from langchain_threadmem.tree.node import EPOCH
        >>> str(Covers(12, EPOCH, EPOCH))
        'summary of 12 messages from 1970-01-01'
        >>> str(Covers(1, EPOCH, datetime(1970, 3, 1), stale=True))
        'summary of 1 message from 1970-01-01 to 1970-03-01, written before some changed'
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
                ", written before some changed" if self.stale else "",
            ]
        )


@dataclass(frozen=True, slots=True)
class Why:
    """The reason for a hit, in numbers and words.

    Attributes:
        terms: Words that the query and the message share, the rarest first.
        lexical: Score of those words: 0.0 if none, about 1 if it holds all of the query.
        similarity: Cosine of query and message, -1 to 1; `None` without embeddings.
        neighbours: Score of the words that the messages around it share with the query, like `lexical`.
        person: Who said it, if the query names them; else empty.
        date: How near it was said to the time that the query names, 0 to 1; 0.0 if it names none.
        covers: The messages that it covers, if it is a summary.

    Example:
        >>> str(Why(terms=("csv", "read"), lexical=0.9, similarity=0.71, person="ada"))
        'shares csv, read; similarity 0.71; said by ada'
        >>> str(Why(neighbours=0.8, date=1.0))
        'beside messages that fit; said at the time'
    """

    terms: Sequence[str] = ()
    lexical: float = 0.0
    similarity: float | None = None
    neighbours: float = 0.0
    person: str = ""
    date: float = 0.0
    covers: Covers | None = None

    def __str__(self) -> str:
        parts = [] if self.covers is None else [str(self.covers)]
        if self.terms:
            parts.append("shares " + ", ".join(self.terms))
        if self.similarity is not None:
            parts.append(f"similarity {self.similarity:.2f}")
        if self.neighbours > 0 and not self.terms:
            parts.append("beside messages that fit")
        if self.person:
            parts.append(f"said by {self.person}")
        if self.date:
            parts.append("said at the time" if self.date == 1 else "said near the time")
        return "; ".join(parts) or "among the most recent"


@dataclass(frozen=True, slots=True)
class Recollection:
    """One hit of `ChatMemory.recall`.

    Attributes:
        node: The message that was found. A summary is a message of the role "ai-summary" with the summary's
            id, and the number of its node counts summaries, not messages.
        score: How well it fits; comparable within one call only.
        thread: The hit after its ancestors, oldest first, as deep as was asked; of a summary itself alone.
        why: The reason for the hit; of a summary also the messages that it covers.
        conversation_id: The conversation it was said in; empty for a summary of the long-term memory.
        rank: 0 for a message, 1 for a summary within a conversation, 2 for one of the long-term memory.
            `MemorySystem.unfold` goes from a summary to its messages.
    """

    node: ConversationNode
    score: float
    thread: Sequence[ConversationNode] = field(default=())
    why: Why = field(default_factory=Why)
    conversation_id: str = ""
    rank: int = 0
