"""Turn ends: the answers that a new human message can continue.

A turn is a human message and the AI and tool messages that answer it. Its *end* is the last answer without
tool calls: a human message never continues a tool call or its result.
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
    """The last answer of a turn, which a new human message can continue.

    Attributes:
        id: Node id of the answer.
        previous: `id` of the turn end that this turn continues; `None` at a root.
        human: Text of the human message of the turn.
        answer: Text of the answer.
        human_id: Node id of the human message.
        summary: Summary of the answer, if any.
        timestamp: Time of the answer.
        chances: Candidates for `previous` and their probabilities when the turn was placed; empty if the
            place is certain.
        title: The title of the thread that the turn began, if a model has given one.
    """

    id: int
    previous: int | None
    human: str
    answer: str
    human_id: int | None = None
    summary: MessageSummary | None = None
    timestamp: datetime = EPOCH
    chances: Sequence[tuple[int | None, float]] = ()
    title: str = ""


class TurnIndex:
    """The turn ends of a growing conversation.

    Nodes are added in the order of their ids; a node that is added twice counts once. A change of a stored
    node's state raises the tree's version and needs a new index.

    Args:
        version: Version of the tree whose nodes are added.

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
        """Id of the newest node in the index."""
        self._ends: dict[int, TurnEnd] = {}
        self._openings: dict[int, int] = {}
        self._following: dict[int, int] = {}
        self._turn_of: dict[int, tuple[int | None, str, int | None]] = {}
        # For each node: the human node of its turn, that node's text, and the turn end before the turn.
        self._first: dict[int, int] = {}
        # For a human node that replaces another (an edit or a move): the first version.
        self._placements: dict[int, Placement] = {}
        self._lock = forking.lock()

    def add(
        self, nodes: Iterable[ConversationNode], placements: Mapping[int, Placement] = MappingProxyType({})
    ) -> None:
        """Add nodes that are newer than `last`; others are ignored.

        Args:
            nodes: The nodes, in the order of their ids.
            placements: The placements of human nodes, by id.
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
        """Whether the turn of a node began, in its first version, in one of the ranges of ids."""
        human = self._turn_of.get(id_, (None,))[0]
        return within(spans, id_ if human is None else self._first.get(human, human))

    def without(self, spans: Sequence[Span]) -> TurnIndex:
        """A copy of the index without the turns that belong to ranges of ids and their descendants.

        Later additions to this index do not change the copy. The cost is linear.
        """
        copy = TurnIndex(self.version)
        copy.last, copy._openings = self.last, self._openings
        left_out: set[int] = set()
        with self._lock:
            ends = list(self._ends.values())  # A turn comes before the turns that continue it.
        for end in ends:
            if end.previous in left_out or self.belongs(end.id, spans):
                left_out.add(end.id)
            else:
                copy._ends[end.id] = end
                if end.previous is not None:
                    copy._following[end.previous] = end.id
        return copy

    def upwards(self, id_: int | None) -> Iterator[TurnEnd]:
        """A turn end and its ancestors, the latest first."""
        while id_ is not None and (end := self._ends.get(id_)):
            yield end
            id_ = end.previous

    def end_above(self, id_: int) -> int | None:
        """The turn end that a node is, or else that the turn of the node continues."""
        return id_ if id_ in self._ends else self._turn_of.get(id_, (None, "", None))[2]

    def leaf(self, id_: int) -> int:
        """The end of the thread of a turn end; at a branch, of the newest branch."""
        while (following := self._following.get(id_)) is not None:
            id_ = following
        return id_

    def latest_before(self, id_: int) -> int | None:
        """The latest turn end before a message was first stored."""
        first = self._first.get(id_, id_)
        return max((end for end in self._ends if end < first), default=None)

    def opening(self, id_: int) -> TurnEnd | None:
        """The first turn end of the thread of a turn end, if the index contains it."""
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
                del self._ends[parent]  # A further answer of the same turn moves its end.
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
                placement.title if placement else "",
            )
