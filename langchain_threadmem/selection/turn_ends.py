"""Turn ends: the messages that a new human message can continue.

A turn is a human message and the AI and tool messages that answer it. Its *end* is the last answer without
tool calls. A turn that nothing answers yet is *open*: it was stopped, failed, or waits for an approval. Its
end is its human message, or the last result of a tool: a human message never continues a tool call.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage

from langchain_threadmem.common import forking
from langchain_threadmem.common.ranges import ENDLESS, Range, within
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.common.visited import Visited, circle
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tool_pairs import call_ids, calls_tools, text_of_calls, with_calls
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import EPOCH, Chances, ConversationNode, MessageSummary, Placement

_CALLS, _CANDIDATE = attrgetter("calls"), itemgetter(0)
SHARE_OF_AGENT = 0.25
"""The least share of the turns of an agent's conversation that have tool calls. It is 44 to 85 of 100 in the
agents' conversations of `training`."""
NEWEST_NODES = 200
"""The number of newest nodes with which an index begins, and whose speakers make a group chat."""


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


class TurnEnd(NamedTuple):
    """The end of a turn, which a new human message can continue.

    Attributes:
        id: Node id of the answer; in an open turn of the human message, or of the last tool result.
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
        is_open: Whether nothing answers the human message yet.
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
    is_open: bool = False

    @property
    def answer_id(self) -> int:
        """Node id of the answer; 0, which no node has, without an answer."""
        return 0 if self.is_open else self.id

    @property
    def answer_with_calls(self) -> str:
        """The text by which the answer is compared, see `tool_pairs.with_calls`."""
        return with_calls(self.answer, self.calls)


def is_of_agent(turn_ends: Sequence[TurnEnd]) -> bool:
    """Whether turn ends are of an agent's conversation: at least a quarter of them have tool calls."""
    return sum(map(bool, map(_CALLS, turn_ends))) >= SHARE_OF_AGENT * max(len(turn_ends), 1)


@dataclass(slots=True)
class Exchange:
    """A live message that calls tools, with its results.

    Attributes:
        calls: The ids of the calls.
        end: Node id of the last result, or of the message itself.
    """

    calls: Set[str | None]
    end: int


class _TurnSoFar(NamedTuple):
    """The part of a turn down to a node.

    Attributes:
        human_id: Node id of the human message; `None` if the turn has none.
        human: Text of the human message.
        previous: `id` of the turn end that the turn continues.
        calls: The text of the tool calls and their results.
        end: `id` of the end of the turn, down to the node; `None` below a message that was replaced.
        said: Node id of the last human message or answer.
    """

    human_id: int | None = None
    human: str = ""
    previous: int | None = None
    calls: str = ""
    end: int | None = None
    said: int | None = None


_NO_TURN = _TurnSoFar()


class TurnIndex:
    """The turn ends of a growing conversation.

    Nodes are added in the order of their ids; a node that is added twice counts once. A change of a stored
    node's state raises the tree's version and needs a new index. The index of a long conversation may contain
    its newest nodes alone, and then some older threads (`insert`).

    Args:
        version: Version of the tree whose nodes are added.
        epoch: Epoch of this tree.
        since: Id of the last node that is not in the index; 0 if it contains all nodes.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> index = TurnIndex()
        >>> index.add([ConversationNode(1, HumanMessage("Hi")), ConversationNode(2, AIMessage("Hello"), 1)])
        >>> [(end.id, end.human, end.answer) for end in index.ends()]
        [(2, 'Hi', 'Hello')]
    """

    def __init__(self, version: int = 0, epoch: int = 0, since: int = 0) -> None:
        self.version, self.epoch, self.since = version, epoch, since
        self.last = since
        """Id of the newest node in the index."""
        self.severed: dict[int, int] = {}
        """For a human node whose parent is not in the index: the parent."""
        self.read: set[int] = set()
        """Numbers of older nodes whose threads were inserted."""
        self.speeches: list[Speech] = []
        """The human messages and answers, parents before their children."""
        self._derived: dict[Callable[[], Any], Any] = {}
        self._ends: dict[int, TurnEnd] = {}
        # Every turn comes before the turns that continue it.
        self._open: dict[int, int] = {}
        # The end of each open turn, by its human node.
        self._moved: dict[int, int] = {}
        # For a former end of a turn that went on: the next end of the turn.
        self.exchanges: dict[str | None, Exchange] = {}
        """The newest exchange of each tool call."""
        self._sorted: list[int] = []
        # The ids of the ends, ascending.
        self._names: dict[str, int] = {}
        # The newest human node of each name.
        self._openings: dict[int, int] = {}
        self._following: dict[int, int] = {}
        self._leaves: dict[int, int] = {}
        # Known ends of threads below turn ends, valid until a thread branches.
        self._turn_of: dict[int, _TurnSoFar] = {}
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
            order: Iterable[int] = new
            for id_, node in new.items():
                if node.parent_id is not None and node.parent_id > self.last:
                    order = parents_first({id_: node.parent_id for id_, node in new.items()})
                self.last = max(self.last, id_)
                if node.message.type == "human":
                    if node.superseded_by is not None and id_ < node.superseded_by:
                        self._first[node.superseded_by] = self._first.get(id_, id_)
                    if node.message.name:
                        self._names[node.message.name] = id_
            for id_ in order:
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
        """Whether the newest human messages, with one of a new speaker, have two or more different names."""
        if len(self._names) < (1 if speaker else 2):
            return False
        newest = {name for name, id_ in self._names.items() if id_ > self.last - NEWEST_NODES}
        return len(newest | {speaker} if speaker else newest) > 1

    def ends(self, before: int = ENDLESS, most: int | None = None) -> list[TurnEnd]:
        """The turn ends in the index, oldest first.

        Args:
            before: Only turn ends with a lower id.
            most: The number of the newest of them; `None` for all.
        """
        with self._lock:
            last = len(self._sorted) if before > self.last else bisect_left(self._sorted, before)
            first = 0 if most is None else max(last - most, 0)
            return list(map(self._ends.__getitem__, self._sorted[first:last]))

    def count(self, before: int = ENDLESS) -> int:
        """The number of turn ends in the index with a lower id than `before`."""
        with self._lock:
            return bisect_left(self._sorted, before)

    def end_from(self, id_: int) -> TurnEnd | None:
        """The first turn end from a node on, which is the end of the turn of the node."""
        with self._lock:
            place = bisect_left(self._sorted, id_)
            return self._ends[self._sorted[place]] if place < len(self._sorted) else None

    def in_order(self) -> list[tuple[int, Speech]]:
        """The speeches in the order in which they were first stored, with the id of the first version."""
        with self._lock:
            speeches = [(self.first_version(speech.id), speech) for speech in self.speeches]
        return sorted(speeches, key=lambda item: item[0])

    def end(self, id_: int) -> TurnEnd | None:
        """The turn end with an id."""
        return self._ends.get(id_)

    def ends_at(self, ids: Iterable[int]) -> list[TurnEnd | None]:
        """The result of `end` for several ids."""
        return list(map(self._ends.get, ids))

    def first_version(self, id_: int) -> int:
        """The first version of a human node that may replace another one."""
        return self._first.get(id_, id_)

    def belongs(self, id_: int, spans: Sequence[Range]) -> bool:
        """Whether the turn of a node began, in its first version, in one of the ranges of ids."""
        human = self._turn_of.get(id_, _NO_TURN).human_id
        return within(spans, id_ if human is None else self.first_version(human))

    def without(self, spans: Sequence[Range]) -> TurnIndex:
        """A copy of the index without the turns that belong to ranges of ids and their descendants.

        Later additions to this index do not change the copy. The cost is linear.
        """
        copy = TurnIndex(self.version, self.epoch, self.since)
        copy.last, copy._openings, copy._names = self.last, self._openings, self._names
        copy._moved, copy._first = self._moved, self._first
        removed: set[int] = set()
        with self._lock:
            ends, speeches = list(self._ends.values()), list(self.speeches)
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
        copy._sorted = sorted(copy._ends)
        return copy

    def upwards(self, id_: int | None) -> Iterator[TurnEnd]:
        """A turn end and its ancestors, the latest first."""
        visited = Visited()
        while id_ is not None and (end := self._end(id_)):
            visited.add(id_)
            yield end
            id_ = end.previous

    def nearest_among(self, id_: int | None, ids: Container[int]) -> int | None:
        """The first of some turn ends, from a turn end upwards."""
        ends = self._ends
        for _ in range(len(ends) + 1):  # No path has more turns.
            if id_ is None or (end := ends.get(id_) or self._end(id_)) is None:
                return None
            if end.id in ids:
                return end.id
            id_ = end.previous
        raise circle(id_)

    def end_above(self, id_: int) -> int | None:
        """The turn end with the id of a node, or else the turn end that the turn of the node continues."""
        if id_ in self._ends or id_ <= self.since:
            return id_
        previous = self._turn_of.get(id_, _NO_TURN).previous
        return None if previous is None else self._now(previous)

    def leaf(self, id_: int) -> int:
        """The end of the thread of a turn end; at a branch, of the newest branch."""
        passed = []
        id_ = self._now(id_)
        while (following := self._leaves.get(id_) or self._following.get(id_)) is not None:
            passed.append(id_)
            id_ = following if following in self._ends else self._now(following)
        self._leaves |= dict.fromkeys(passed, id_)
        return id_

    def latest_before(self, id_: int) -> int | None:
        """The latest turn end before a message was first stored."""
        place = bisect_left(self._sorted, self.first_version(id_))
        return self._sorted[place - 1] if place else None

    def opening(self, id_: int) -> TurnEnd | None:
        """The first turn end of the thread of a turn end, if the index contains it."""
        while (above := self._openings.get(id_, id_)) != id_:
            id_ = above
        return self._end(id_)

    def _end(self, id_: int) -> TurnEnd | None:
        return self._ends.get(id_) or self._ends.get(self._now(id_))

    def _now(self, id_: int) -> int:
        """The present end of a turn, by a present or former end."""
        while (later := self._moved.get(id_)) is not None:
            id_ = later
        return id_

    def _add(self, node: ConversationNode) -> None:
        parent = None if node.parent_id is None else self._above_system.get(node.parent_id, node.parent_id)
        if node.message.type == "system":
            self._above_system[node.id] = parent
        above = self._turn_of.get(parent) if parent is not None else None
        if node.parent_id is not None and node.parent_id <= self.since and above is None:
            if node.message.type != "human":
                self._turn_of[node.id] = _NO_TURN  # Its turn began before the nodes of the index.
                self._add_to_exchange(node)
                return
            self.severed[node.id] = node.parent_id
        if node.message.type == "human":
            turn = _TurnSoFar(node.id, text_of(node.message), self._continued(above), said=node.id)
        else:
            turn = above or _NO_TURN
            calls = text_of_calls(node.message, turn.calls)
            if calls != turn.calls:
                turn = turn._replace(calls=calls)
        if node.state is not State.LIVE:
            turn = turn._replace(end=None)
        elif node.message.type != "system":
            turn = self._extended(node, turn, above)
        self._turn_of[node.id] = turn

    def _continued(self, above: _TurnSoFar | None) -> int | None:
        """The turn end that a human message continues, by the part of the turn above it."""
        if above is None or above.end is None:
            return above.previous if above else None
        return self._now(above.end)

    def _extended(self, node: ConversationNode, turn: _TurnSoFar, above: _TurnSoFar | None) -> _TurnSoFar:
        """The part of a turn down to a live node, which may be its new end."""
        is_human, answers = node.message.type == "human", is_answer(node.message)
        self._add_to_exchange(node)
        former = self._ends.get(turn.end or 0)
        if answers and former is None:
            former = self._ends.get(self._open.get(turn.human_id or 0, 0))
        if is_human or answers:
            text, before = text_of(node.message), turn.human_id if answers else above and above.said
            human_id, speaker = turn.human_id or node.id, node.message.name or ""
            self.speeches.append(Speech(node.id, human_id, before, speaker, text, answers))
            end = self._made(node, turn, is_open=is_human)
        elif former is None:
            return turn
        elif calls_tools(node.message):
            self._ends[former.id] = former._replace(calls=turn.calls)
            return turn
        else:
            end = former._replace(id=node.id, timestamp=node.timestamp, calls=turn.calls)
        self._put(former, end)
        said = node.id if answers else turn.said
        return _TurnSoFar(turn.human_id, turn.human, turn.previous, turn.calls, end.id, said)

    def _add_to_exchange(self, node: ConversationNode) -> None:
        if isinstance(node.message, ToolMessage):
            if exchange := self.exchanges.get(node.message.tool_call_id):
                exchange.end = node.id
        elif calls := call_ids(node.message):
            self.exchanges |= dict.fromkeys(calls, Exchange(calls, node.id))

    def _made(self, node: ConversationNode, turn: _TurnSoFar, is_open: bool) -> TurnEnd:
        """The end of a turn in a human message or an answer."""
        placement = self._placements.get(turn.human_id or 0)
        return TurnEnd(
            node.id,
            None if turn.previous is None else self._now(turn.previous),
            turn.human,
            "" if is_open else text_of(node.message),
            turn.human_id,
            node.summary,
            node.timestamp,
            self._present(placement.chances) if placement else (),
            placement is not None and placement.is_move,
            placement.title if placement else "",
            turn.calls,
            is_open,
        )

    def put(self, end: TurnEnd) -> None:
        """Add a turn end that is newer than the turn end that it continues."""
        self._openings[end.id] = self._openings.get(end.previous or 0, end.id)
        self._follow(end)
        self._ends[end.id] = end
        if self._sorted and self._sorted[-1] > end.id:
            insort(self._sorted, end.id)
        else:
            self._sorted.append(end.id)

    def _follow(self, end: TurnEnd) -> None:
        if end.previous is not None:
            if end.previous in self._following:
                self._leaves = {}
            self._following[end.previous] = end.id

    def insert(self, thread: Sequence[TurnEnd], severed: Collection[int]) -> None:
        """Add turns of a thread that is older than the nodes of the index.

        Args:
            thread: Some turns of the thread, oldest first, each with the turn before it as `previous`.
            severed: Human nodes of the index below the thread, among `severed`.
        """
        with self._lock:
            for end in thread:
                if end.id not in self._ends:
                    self.put(end)
            for human in severed:
                below = self._end(self._turn_of[human].end or 0)
                if self.severed.pop(human, None) is not None and below is not None and thread:
                    linked = below._replace(previous=thread[-1].id)
                    self._ends[below.id] = linked
                    self._openings[below.id] = thread[-1].id
                    self._follow(linked)

    def _put(self, former: TurnEnd | None, end: TurnEnd) -> None:
        """Add a turn end, or move the end of its turn from a former end."""
        if former is None:
            self.put(end)
        elif former.id == next(reversed(self._ends)):  # Nothing continues it.
            del self._ends[former.id]
            self._sorted.remove(former.id) if self._sorted[-1] != former.id else self._sorted.pop()
            self.put(end)
        else:
            self._move(former.id, end)
        if former is not None:
            self._moved[former.id] = end.id
        if end.is_open:
            self._open[end.human_id or 0] = end.id
        else:
            self._open.pop(end.human_id or 0, None)

    def _move(self, former: int, end: TurnEnd) -> None:
        """Move the end of a turn that other turns may continue."""
        self._moved[former] = end.id
        self._openings[end.id] = self._openings[former]
        if former in self._following:
            self._following[end.id] = self._following.pop(former)
        if end.previous is not None and self._following.get(end.previous) == former:
            self._following[end.previous] = end.id
        # The dictionary keeps its order.
        self._ends = {
            id_ if id_ != former else end.id: self._moved_along(other) if id_ != former else end
            for id_, other in self._ends.items()
        }
        self._sorted = sorted(self._ends)
        self._leaves = {}

    def _moved_along(self, end: TurnEnd) -> TurnEnd:
        """A turn end that refers to present ends."""
        previous = None if end.previous is None else self._now(end.previous)
        chances = self._present(end.chances)
        if previous == end.previous and chances is end.chances:
            return end
        return end._replace(previous=previous, chances=chances)

    def _present(self, chances: Chances) -> Chances:
        """Candidates as present ends."""
        if not self._moved or self._moved.keys().isdisjoint(map(_CANDIDATE, chances)):
            return chances
        return tuple((None if id_ is None else self._now(id_), chance) for id_, chance in chances)
