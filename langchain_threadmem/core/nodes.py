"""The values that everything else passes around: nodes, their summaries, what recall found.

A *node* is one stored message with its place in the tree. Nodes are values: they know
nothing of storage, are never changed, and compare by content. Storage gives them identity
(`id`, rising by one within a conversation: 1, 2, 3 ...); `dataclasses.replace` makes a
changed copy, for instance one with a summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import IntEnum

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field

EPOCH = datetime.fromtimestamp(0, UTC)


class State(IntEnum):
    """What a stored node is to the conversation; the numbers are those in the database."""

    LIVE = 0
    """Part of the conversation."""
    SUPERSEDED = 1
    """Replaced by an edit, a regeneration or a move: in history, out of recall."""
    ASIDE = 2
    """A summary or notice inside a list of messages: no part of the conversation."""
    PURGED = 3
    """Erased: only its number is left, so that no other message ever gets it. Nothing shows it."""


class MessageSummary(BaseModel):
    """A title and at most two sentences about one message.

    Example:
        >>> MessageSummary(title="CSV files", summary="The user asks how to read them.").title
        'CSV files'
    """

    title: str = Field(..., description="Title of the message")
    summary: str = Field(..., description="Summary of the message. Two sentences max.")


@dataclass(frozen=True, slots=True)
class Placement:
    """Why a human message was placed where it is.

    Attributes:
        reason: In a few words.
        chances: The likeliest candidates, each with its probability: the `id` of the turn end to continue, or
            `None` for a new root. Empty where no probabilities were weighed.

    Example:
        >>> str(Placement("continues the last thread", ((2, 0.9), (None, 0.1))))
        'continues the last thread; node 2: 90 %, new thread: 10 %'
    """

    reason: str
    chances: Sequence[tuple[int | None, float]] = ()

    def __str__(self) -> str:
        weighed = [
            f"{'new thread' if candidate is None else f'node {candidate}'}: {100 * chance:.0f} %"
            for candidate, chance in self.chances
        ]
        return "; ".join(filter(None, [self.reason, ", ".join(weighed)]))


BY_HAND = Placement("moved by hand")
"""Why a message is where a person placed it."""


@dataclass(frozen=True, slots=True)
class ConversationNode:
    """One message of a conversation and its place in the tree.

    Attributes:
        id: Number of the node within its conversation, from 1, in the order of writing.
        message: The LangChain message, with its own `id` set.
        parent_id: `id` of the node it continues; `None` for a root.
        summary: What `ChatMemory.summarize` wrote about it, if anything.
        timestamp: When it was said, with its time zone.
        state: Live, superseded or aside.
        superseded_by: `id` of the node that replaced it, if one did.
        placement: Why it is where it is, if that was weighed: of a node that was just appended or placed, and
            of all nodes where the whole history was read. No part of what the node is: nodes that differ in
            nothing else are equal.

    Raises:
        ValueError: `id` or `parent_id` is not positive.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> ConversationNode(1, HumanMessage("Hello")).parent_id is None
        True
    """

    id: int
    message: BaseMessage
    parent_id: int | None = None
    summary: MessageSummary | None = None
    timestamp: datetime = EPOCH
    state: State = State.LIVE
    superseded_by: int | None = None
    placement: Placement | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.id <= 0:
            raise ValueError(f"a node id is a positive number, not {self.id!r}")
        if self.parent_id is not None and self.parent_id <= 0:
            raise ValueError(f"a parent id is a positive number or None, not {self.parent_id!r}")


# The slots of a node, set directly; see `bodies` for the same of messages.
_set_id, _set_message, _set_parent, _set_summary, _set_time, _set_state, _set_by, _set_placement = (
    getattr(ConversationNode, slot.name).__set__ for slot in fields(ConversationNode)
)


def stored_node(
    id: int,
    message: BaseMessage,
    parent_id: int | None,
    summary: MessageSummary | None,
    timestamp: datetime,
    state: State,
    superseded_by: int | None,
) -> ConversationNode:
    """A node whose values come from storage, which has checked them: made in half the time.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> hello = HumanMessage("Hello")
        >>> made = stored_node(2, hello, 1, None, EPOCH, State.LIVE, None)
        >>> made == ConversationNode(2, hello, 1)
        True
    """
    node = object.__new__(ConversationNode)
    _set_id(node, id)
    _set_message(node, message)
    _set_parent(node, parent_id)
    _set_summary(node, summary)
    _set_time(node, timestamp)
    _set_state(node, state)
    _set_by(node, superseded_by)
    _set_placement(node, None)
    return node


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The last answer of a turn: what a new human message can continue.

    Attributes:
        id: Node id of the answer.
        previous: `id` of the turn end that this turn itself continued; `None` at a root.
        human: Text of the human message of the turn.
        answer: Text of the answer.
        human_id: Node id of the human message.
        summary: Summary of the answer, if one was written.
        timestamp: When the answer was given.
        chances: Candidates for `previous` and their probabilities, as a selector saw them when it placed
            the turn; empty where its place is certain.
    """

    id: int
    previous: int | None
    human: str
    answer: str
    human_id: int | None = None
    summary: MessageSummary | None = None
    timestamp: datetime = EPOCH
    chances: Sequence[tuple[int | None, float]] = ()


@dataclass(frozen=True, slots=True)
class Covers:
    """What a summary covers.

    Attributes:
        messages: How many messages it was made from, those below other summaries included.
        started: When the first of them was said.
        ended: When the last of them was.
        stale: Whether some of them changed or went since it was written.

    Example:
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
        neighbours: What the messages around it share with the query, on the scale of `lexical`.
        person: Who said it, if the query names them; else empty.
        date: How near it was said to the time that the query names, 0 to 1; 0.0 if it names none.
        covers: What it covers, if it is a summary.

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
        why: The reason for the hit; of a summary also what it covers.
        conversation_id: The conversation it was said in; empty for a summary of the long-term memory.
        rank: 0 for a message, 1 for a summary within a conversation, 2 for one of the long-term memory.
            `MemorySystem.unfold` goes from a summary to what it covers.
    """

    node: ConversationNode
    score: float
    thread: Sequence[ConversationNode] = field(default=())
    why: Why = field(default_factory=Why)
    conversation_id: str = ""
    rank: int = 0
