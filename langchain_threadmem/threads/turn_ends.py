"""Turn ends: the answers, and in a group chat the messages, that a new human message can continue.

A turn is a human message and the AI and tool messages that answer it. Its *end* is the last answer without
tool calls: a human message never continues a tool call or its result. In a group chat, whose human messages
have two or more different names, a turn without an answer ends in its human message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from langchain_threadmem.common import forking
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tool_pairs import text_of_calls, with_calls
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import EPOCH, Chances, ConversationNode, MessageSummary, Placement
from langchain_threadmem.tree.run_lineage import Span, within

T = TypeVar("T")


class Speech(NamedTuple):
    """A human message or an answer, with its speaker.

    Attributes:
        id: Node id of the message.
        human: Node id of the human message of its turn; its own id if there is none.
        previous: `id` of the message that it continues or answers; `None` at a root.
        speaker: `name` of the message; empty if it has none.
        text: Text of the message.
        is_answer: Whether it is an answer.
    """

    id: int
    human: int
    previous: int | None
    speaker: str
    text: str
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The last answer of a turn, which a new human message can continue.

    Attributes:
        id: Node id of the answer; in a group chat, of a human message without an answer.
        previous: `id` of the turn end that this turn continues; `None` at a root.
        human: Text of the human message of the turn.
        answer: Text of the answer; empty without an answer.
        human_id: Node id of the human message.
        summary: Summary of the answer, if any.
        timestamp: Time of the answer.
        chances: Candidates for `previous` and their probabilities when the turn was placed; empty if the
            place is certain.
        settled: Whether the probabilities include the answer, since the turn was moved because of it.
        title: The title of the thread that the turn began, if a model has given one.
        calls: The arguments and results of the tool calls of the turn, see `tool_pairs.text_of_calls`.
    """

    id: int
    previous: int | None
    human: str
    answer: str
    human_id: int | None = None
    summary: MessageSummary | None = None
    timestamp: datetime = EPOCH
    chances: Chances = ()
    settled: bool = False
    title: str = ""
    calls: str = ""

    @property
    def answer_with_calls(self) -> str:
        """The text by which the answer is compared, see `tool_pairs.with_calls`."""
        return with_calls(self.answer, self.calls)


class _Turn(NamedTuple):
    """The part of a turn down to a node.

    Attributes:
        human_id: Node id of the human message; `None` if the turn has none.
        human: Text of the human message.
        previous: `id` of the turn end that the turn continues.
        calls: The text of the tool calls and their results.
    """

    human_id: int | None = None
    human: str = ""
    previous: int | None = None
    calls: str = ""


_NO_TURN = _Turn()


class TurnIndex:
    """The turn ends of a growing conversation.

    Nodes are added in the order of their ids; a node that is added twice counts once. A change of a stored
    node's state raises the tree's version and needs a new index.

    Args:
        version: Version of the tree whose nodes are added.
        epoch: Epoch of this tree.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> index = TurnIndex()
        >>> index.add([ConversationNode(1, HumanMessage("Hi")), ConversationNode(2, AIMessage("Hello"), 1)])
        >>> [(end.id, end.human, end.answer) for end in index.ends()]
        [(2, 'Hi', 'Hello')]
    """

    def __init__(self, version: int = 0, epoch: int = 0) -> None:
        self.version, self.epoch = version, epoch
        self.last = 0
        """Id of the newest node in the index."""
        self.speeches: list[Speech] = []
        """The human messages and answers, parents before their children."""
        self._derived: dict[Callable[[], Any], Any] = {}
        self._ends: dict[int, TurnEnd] = {}
        self._open: dict[int, TurnEnd] = {}
        # Human nodes without an answer, as turn ends of a group chat.
        self._names: set[str] = set()
        self._group_from: int | None = None
        # The first human node with another name than an earlier one.
        self._openings: dict[int, int] = {}
        self._following: dict[int, int] = {}
        self._turn_of: dict[int, _Turn] = {}
        self._first: dict[int, int] = {}
        # For a human node that replaces another (an edit or a move): the first version.
        self._above_system: dict[int, int | None] = {}
        # For a system node: the nearest node above it that is not a system node.
        self._placements: dict[int, Placement] = {}
        self._lock = forking.lock()

    def add(
        self, nodes: Iterable[ConversationNode], placements: Mapping[int, Placement] = MappingProxyType({})
    ) -> None:
        """Add nodes that are newer than `last`; others are ignored.

        Args:
            nodes: The nodes, in the order of their ids.
            placements: The placements of human nodes, by id of the node.
        """
        with self._lock:
            self._placements.update(placements)
            new = {node.id: node for node in nodes if node.id > self.last}
            self.last = max(new, default=self.last)
            for id_, node in new.items():
                if node.message.type == "human":
                    if node.superseded_by is not None:
                        self._first[node.superseded_by] = self._first.get(id_, id_)
                    if node.message.name:
                        self._names.add(node.message.name)
                        if self._group_from is None and len(self._names) > 1:
                            self._group_from = id_
            for id_ in parents_first({id_: node.parent_id for id_, node in new.items()}):
                self._add(new[id_])

    def explain(self, id_: int, placement: Placement) -> None:
        """Add the placement of a human node that was stored after the node, and before its answer."""
        with self._lock:
            self._placements[id_] = placement

    def derived(self, make: Callable[[], T]) -> T:
        """A value that a selector derives from the speeches, which lasts as long as the index.

        Args:
            make: The class of the value, or another function that makes it at the first call.
        """
        with self._lock:
            if make not in self._derived:
                self._derived[make] = make()
            value: T = self._derived[make]
            return value

    def is_group(self, speaker: str | None = None) -> bool:
        """Whether human messages, with one of a new speaker, have two or more different names."""
        return len(self._names | {speaker} if speaker else self._names) > 1

    def ends(self, speaker: str | None = None) -> list[TurnEnd]:
        """The turn ends for a new message, oldest first.

        Args:
            speaker: `name` of the new message.
        """
        with self._lock:
            ends = [*self._ends.values(), *(self._open.values() if self.is_group(speaker) else ())]
        return sorted(ends, key=lambda end: end.id)

    def in_order(self) -> list[tuple[int, Speech]]:
        """The speeches in the order in which they were first stored, with the id of the first version."""
        with self._lock:
            speeches = [(self._first.get(speech.id, speech.id), speech) for speech in self.speeches]
        return sorted(speeches, key=lambda item: item[0])

    def end(self, id_: int) -> TurnEnd | None:
        """The turn end with an id."""
        return self._ends.get(id_)

    def belongs(self, id_: int, spans: Sequence[Span]) -> bool:
        """Whether the turn of a node began, in its first version, in one of the ranges of ids."""
        human = self._turn_of.get(id_, _NO_TURN).human_id
        return within(spans, id_ if human is None else self._first.get(human, human))

    def without(self, spans: Sequence[Span]) -> TurnIndex:
        """A copy of the index without the turns that belong to ranges of ids and their descendants.

        Later additions to this index do not change the copy. The cost is linear.
        """
        copy = TurnIndex(self.version, self.epoch)
        copy.last, copy._openings, copy._names = self.last, self._openings, self._names
        removed: set[int] = set()
        with self._lock:
            ends = list(self._ends.values())  # A turn comes before the turns that continue it.
            speeches, unanswered = list(self.speeches), dict(self._open)
        for end in ends:
            if end.previous in removed or self.belongs(end.id, spans):
                removed.add(end.id)
            else:
                copy._ends[end.id] = end
                if end.previous is not None:
                    copy._following[end.previous] = end.id
        for speech in speeches:
            if speech.previous in removed or speech.id in removed or self.belongs(speech.id, spans):
                removed.add(speech.id)
                continue
            copy.speeches.append(speech)
            if speech.id in unanswered:
                copy._open[speech.id] = unanswered[speech.id]
        return copy

    def upwards(self, id_: int | None) -> Iterator[TurnEnd]:
        """A turn end and its ancestors, the latest first."""
        while id_ is not None and (end := self._end(id_)):
            yield end
            id_ = end.previous

    def end_above(self, id_: int) -> int | None:
        """The turn end with the id of a node, or else the turn end that the turn of the node continues."""
        return id_ if self._end(id_) else self._turn_of.get(id_, _NO_TURN).previous

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
        return self._end(self._openings[id_])

    def _end(self, id_: int) -> TurnEnd | None:
        end = self._ends.get(id_)
        return end or (self._open.get(id_) if self.is_group() else None)

    def _add(self, node: ConversationNode) -> None:
        parent = None if node.parent_id is None else self._above_system.get(node.parent_id, node.parent_id)
        if node.message.type == "system":
            self._above_system[node.id] = parent
        above = self._turn_of.get(parent) if parent is not None else None
        live, is_human = node.state is State.LIVE, node.message.type == "human"
        if is_human:
            in_group = self._group_from is not None and node.id >= self._group_from
            continues = parent in self._ends or (in_group and parent in self._open)
            previous = parent if continues else (above.previous if above else None)
            turn = _Turn(node.id, text_of(node.message), previous)
        else:
            turn = above or _NO_TURN
            if calls := text_of_calls(node.message, turn.calls):
                turn = turn._replace(calls=calls)
            if live and node.message.type != "system":
                self._ends.pop(parent or 0, None)  # A further answer of the same turn moves its end.
                self._open.pop(turn.human_id or 0, None)
        self._turn_of[node.id] = turn
        if not live or not (is_human or is_answer(node.message)):
            return
        human_id, human, previous, calls = turn
        placement = self._placements.get(human_id or 0)
        answer = "" if is_human else text_of(node.message)
        end = TurnEnd(
            node.id,
            previous,
            human,
            answer,
            human_id,
            node.summary,
            node.timestamp,
            placement.chances if placement else (),
            placement is not None and placement.is_move,
            placement.title if placement else "",
            calls,
        )
        speaker = node.message.name or ""
        if is_human:
            before = above.human_id if above and parent not in self._ends else parent
            self._openings[node.id] = self._openings.get(previous or 0, node.id)
            self._open[node.id] = end
            self.speeches.append(Speech(node.id, node.id, before, speaker, human))
            return
        self.put(end)
        self.speeches.append(Speech(node.id, human_id or node.id, human_id, speaker, answer, is_answer=True))

    def put(self, end: TurnEnd) -> None:
        """Add a turn end that is newer than the turn end that it continues."""
        self._openings[end.id] = self._openings.get(end.previous or 0, end.id)
        if end.previous is not None:
            self._following[end.previous] = end.id
        self._ends[end.id] = end
