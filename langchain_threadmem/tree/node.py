"""`ConversationNode`, a message and its place in the tree, with its placement and summary, and its row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field

from langchain_threadmem.engine.runtime import Resources, SharedComponent
from langchain_threadmem.messages.codec import UNREADABLE, Parsed, decode_stored, text_of
from langchain_threadmem.messages.display import MAX_LENGTH, Cell, Displayed, body_of, content_of, label_of
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.messages.times import time_said
from langchain_threadmem.messages.tool_pairs import calls_tools
from langchain_threadmem.messages.typed_json import ReadOpaque
from langchain_threadmem.storage.schema import State

if TYPE_CHECKING:
    from langchain_threadmem.tree.nodes import NodeRow

EPOCH = datetime.fromtimestamp(0, UTC)
MOST_PARSED = 20_000
"""The number of parsed bodies above which `DecodedMessages` forgets them."""


class MessageSummary(BaseModel):
    """A title and at most two sentences about one message.

    Example:
        >>> MessageSummary(title="CSV files", summary="The user asks how to read them.").title
        'CSV files'
    """

    title: str = Field(..., description="Title of the message")
    summary: str = Field(..., description="Summary of the message. Two sentences max.")


Chances = Sequence[tuple[int | None, float]]
"""Candidates for the parent of a message and their probabilities. A candidate is the `id` of the turn end to
continue, or `None` for a new root."""
MOVED = "moved"
"""The first word of the reasons of messages that were moved."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The reason for the place of a human message.

    Attributes:
        reason: The reason in a few words; empty if only the title was set.
        chances: The most probable candidates; empty if no probabilities were computed.
        title: A title for the thread that the message begins, if a person or a chat model has given one.

    Example:
        >>> str(Placement("continues the last thread", ((2, 0.9), (None, 0.1))))
        'continues the last thread; node 2: 90 %, new thread: 10 %'
    """

    reason: str
    chances: Chances = ()
    title: str = ""

    @property
    def is_move(self) -> bool:
        """Whether the message was moved, by a person or because of its answer."""
        return self.reason.startswith(MOVED)

    def __str__(self) -> str:
        candidates = [
            f"{'new thread' if candidate is None else f'node {candidate}'}: {100 * chance:.0f} %"
            for candidate, chance in self.chances
        ]
        title = f"titled {self.title!r}" if self.title else ""
        return "; ".join(filter(None, [self.reason, ", ".join(candidates)])) or title


def known_chances(placement: Placement, numbers: Collection[int]) -> Placement:
    """A placement without candidates that do not exist, by the numbers of a conversation's nodes.

    Example:
        >>> known_chances(Placement("opens a thread", ((None, 0.9), (7, 0.1))), {1, 2}).chances
        ((None, 0.9),)
    """
    chances = tuple(pair for pair in placement.chances if pair[0] is None or pair[0] in numbers)
    return replace(placement, chances=chances)


BY_HAND = Placement(f"{MOVED} by hand")
"""The placement of a message that a person moved."""
KEPT_BY_HAND = Placement("kept by hand")
"""The placement of a message whose place a person confirmed."""


@dataclass(frozen=True, slots=True)
class Bias:
    """The thresholds of an owner, learned from the messages that the owner placed by hand.

    Attributes:
        new_thread: The number that is added to the log-odds of a new thread, from -0.75 to 0.75.
        going_back: The number that is added to the log-odds of every turn but the last.
        corrections: The number of messages that the owner placed by hand.
    """

    new_thread: float = 0.0
    going_back: float = 0.0
    corrections: int = 0


@dataclass(frozen=True, slots=True)
class ConversationNode(Displayed):
    """One message of a conversation and its place in the tree.

    Attributes:
        id: Number of the node within its conversation, from 1, in the order of writing.
        message: The LangChain message, with its own `id`.
        parent_id: `id` of the parent; `None` for a root.
        summary: The summary that `ChatMemory.summarize` wrote, if there is one.
        timestamp: Time at which the message was stored, or the time that was passed with it, with a time
            zone; `time` is the time that the message itself brings.
        state: Live, superseded or aside.
        superseded_by: `id` of the node that replaced this node, if there is one.
        placement: The reason for the place of the node, if a selector or a person chose it. Only
            methods that append or place a node, or read the whole history, set this field. It is not compared
            by `==`.

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

    @property
    def time(self) -> datetime:
        """The time of the message: the time that it brings (`messages.times.FIELDS`), else `timestamp`.

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> message = HumanMessage("Hello", additional_kwargs={"time": "2021-05-06T07:08:09Z"})
            >>> ConversationNode(1, message).time.isoformat()
            '2021-05-06T07:08:09+00:00'
        """
        return time_said(self.message) or self.timestamp

    def _cells(self) -> dict[str, Cell]:
        summary = self.summary
        return {
            "message": str(self.id),
            "below": str(self.parent_id or ""),
            "role": label_of(self.message),
            "text": body_of(self.message, MAX_LENGTH),
            "summary": f"{summary.title}: {summary.summary}" if summary else "",
            "time": "" if self.time == EPOCH else f"{self.time:%Y-%m-%d %H:%M}",
            "state": "" if self.state is State.LIVE else self.state.label,
            "place": str(self.placement or ""),
        }

    def _line(self) -> str:
        return f"{self.id} {label_of(self.message)}: {content_of(self.message)}"


DOUBTFUL = 0.7
"""The probability of a place below which the place is doubtful. On `threads_dev` 17 % of the messages have
such places; 44 % of these places are wrong, and 63 % of the wrong places are among them."""


def probability_of(node: ConversationNode) -> float | None:
    """The probability of the place of a node when the place was chosen.

    Returns:
        0 to 1; `None` if no probabilities were computed, or the node is not live.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> placement = Placement("continues the last thread", ((2, 0.6), (None, 0.4)))
        >>> probability_of(ConversationNode(3, HumanMessage("Hello"), 2, placement=placement))
        0.6
    """
    if node.state is not State.LIVE or node.placement is None or not node.placement.chances:
        return None
    return dict(node.placement.chances).get(node.parent_id, 0.0)


def is_said(node: ConversationNode) -> bool:
    """Whether lists and drawings count a node as a message: a live message of a person or a model.

    Superseded versions and places, system messages, tool results and asides are not counted.

    Example:
        >>> from langchain_core.messages import HumanMessage, SystemMessage
        >>> [is_said(ConversationNode(1, message)) for message in (HumanMessage("Hi"), SystemMessage("!"))]
        [True, False]
    """
    return node.state == State.LIVE and node.message.type in SPOKEN


def is_doubtful(node: ConversationNode) -> bool:
    """Whether the place of a node is less probable than `DOUBTFUL`; see `probability_of`."""
    probability = probability_of(node)
    return probability is not None and probability < DOUBTFUL


def nodes_of(
    rows: Sequence[NodeRow],
    other: ReadOpaque | None = None,
    placements: Mapping[int, Placement] | None = None,
) -> list[ConversationNode]:
    """The nodes of rows, in their order.

    Args:
        rows: The rows.
        other: Reads values that are not JSON; without it they are returned as `Opaque` values.
        placements: Placements by number of the node.
    """
    messages = decode_stored([(row.message, row.body, row.role) for row in rows], other=other)
    placement_of = (placements or {}).get
    return [
        ConversationNode(
            row.seq,
            message,
            row.parent,
            None if row.title is None else MessageSummary(title=row.title, summary=row.summary or ""),
            datetime.fromtimestamp(row.created, UTC),
            State(row.state),
            row.superseded_by,
            placement_of(row.seq),
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def is_recallable(node: ConversationNode) -> bool:
    """Whether recall may return a node, see `recallable_text`."""
    return bool(recallable_text(node.message))


def recallable_text(message: BaseMessage) -> str:
    """The text of a message that recall may return, a readable one of a person or a model; otherwise empty.

    Tool calls and their results are returned only with the answer that follows them.
    """
    if message.type not in SPOKEN or calls_tools(message) or UNREADABLE in message.response_metadata:
        return ""
    text = text_of(message)
    return "" if text.isspace() else text


def is_lost(node: ConversationNode) -> bool:
    """Whether the stored message of a node cannot be read."""
    return UNREADABLE in node.message.response_metadata


class DecodedMessages(SharedComponent):
    """A cache of parsed message bodies, since each turn of a chat reads the messages before it again."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._bodies: Parsed = {}

    def bodies(self) -> Parsed:
        """The parsed bodies by text; decoders add to them."""
        if len(self._bodies) > MOST_PARSED:
            self._bodies = {}
        return self._bodies

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self._bodies = {}
