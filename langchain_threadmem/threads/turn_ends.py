"""Turn ends: the answers that a new human message can continue.

A turn is a human message and the AI and tool messages that answer it. Its *end* is the last answer without
tool calls: calls and their results are inside a turn, and nothing continues them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from langchain_threadmem.common import forking
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.lineage import Span, within
from langchain_threadmem.tree.node import EPOCH, ConversationNode, MessageSummary, Placement


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
        chances: Candidates for `previous` and their probabilities when the turn was placed; empty where its
            place is certain.
    """

    id: int
    previous: int | None
    human: str
    answer: str
    human_id: int | None = None
    summary: MessageSummary | None = None
    timestamp: datetime = EPOCH
    chances: Sequence[tuple[int | None, float]] = ()


class TurnIndex:
    """The turn ends of a growing conversation, kept up to date node by node.

    Nodes are added in the order of their ids; a node that is added twice counts once. After a change of a
    stored node's state a new index is needed; `version` shows that.

    Args:
        version: Version of the tree that the first nodes came from.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> index = TurnIndex()
        >>> index.add([ConversationNode(1, HumanMessage("Hi")), ConversationNode(2, AIMessage("Hello"), 1)])
        >>> [(end.id, end.human, end.answer) for end in index.ends()]
        [(2, 'Hi', 'Hello')]
    """

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.last = 0
        """Id of the newest node that was added."""
        self._ends: dict[int, TurnEnd] = {}
        self._openings: dict[int, int] = {}
        self._following: dict[int, int] = {}
        self._turn_of: dict[int, tuple[int | None, str, int | None]] = {}
        # For each node: the human node of its turn, that node's text, and the turn end before the turn.
        self._first: dict[int, int] = {}
        # For a human node that is a new version of another, or was moved: the first one.
        self._placements: dict[int, Placement] = {}
        self._lock = forking.lock()

    def add(
        self, nodes: Iterable[ConversationNode], placements: Mapping[int, Placement] = MappingProxyType({})
    ) -> None:
        """Add nodes that are newer than `last`; others are ignored.

        Args:
            nodes: In the order of their ids.
            placements: The placements of human nodes, by their ids.
        """
        with self._lock:
            self._placements.update(placements)
            new = {node.id: node for node in nodes if node.id > self.last}
            self.last = max(new, default=self.last)
            for id_, node in new.items():
                if node.superseded_by is not None and node.message.type == "human":
                    self._first[node.superseded_by] = self._first.get(id_, id_)
            for id_ in parents_first({id_: node.parent_id for id_, node in new.items()}):
                self._add(new[id_])

    def ends(self) -> list[TurnEnd]:
        """The turn ends, oldest first."""
        with self._lock:
            return sorted(self._ends.values(), key=lambda end: end.id)

    def belongs(self, id_: int, spans: Sequence[Span]) -> bool:
        """Whether the first version of the human message of a node's turn is in one of the ranges of ids."""
        human = self._turn_of.get(id_, (None,))[0]
        return within(spans, id_ if human is None else self._first.get(human, human))

    def without(self, spans: Sequence[Span]) -> TurnIndex:
        """An index without the turns that belong to ranges of ids, and without the turns that continue them.

        Its cost is linear, and it does not grow with this index.
        """
        left = TurnIndex(self.version)
        left.last, left._openings = self.last, self._openings
        gone: set[int] = set()
        with self._lock:
            ends = list(self._ends.values())  # A turn comes before the turns that continue it.
        for end in ends:
            if end.previous in gone or self.belongs(end.id, spans):
                gone.add(end.id)
            else:
                left._ends[end.id] = end
                if end.previous is not None:
                    left._following[end.previous] = end.id
        return left

    def upwards(self, id_: int | None) -> Iterator[TurnEnd]:
        """The turn end with an id and those that it continues, the latest first."""
        while id_ is not None and (end := self._ends.get(id_)):
            yield end
            id_ = end.previous

    def leaf(self, id_: int) -> int:
        """The end of the thread of a turn end; at a branch, of the newest branch."""
        while (following := self._following.get(id_)) is not None:
            id_ = following
        return id_

    def opening(self, id_: int) -> TurnEnd | None:
        """The first turn end of the thread of another, if it is there."""
        return self._ends.get(self._openings[id_])

    def _add(self, node: ConversationNode) -> None:
        parent = node.parent_id
        above = self._turn_of.get(parent) if parent is not None else None
        if node.message.type == "human":
            previous = parent if parent in self._ends else (above[2] if above else None)
            turn: tuple[int | None, str, int | None] = (node.id, text_of(node.message), previous)
        else:
            turn = above or (None, "", None)
            if node.state is State.LIVE and parent in self._ends:
                del self._ends[parent]  # The turn goes on: its end is further down.
        self._turn_of[node.id] = turn
        if node.state is State.LIVE and is_answer(node.message):
            human_id, human, previous = turn
            placement = self._placements.get(human_id or 0)
            self._openings[node.id] = self._openings.get(previous or 0, node.id)
            if previous is not None:
                self._following[previous] = node.id
            self._ends[node.id] = TurnEnd(
                node.id,
                previous,
                human,
                text_of(node.message),
                human_id,
                node.summary,
                node.timestamp,
                placement.chances if placement else (),
            )
