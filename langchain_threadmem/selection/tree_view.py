"""The read-only view of a conversation that a selector receives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import dropwhile, takewhile
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.ranges import ENDLESS, Range
from langchain_threadmem.engine.bare_texts import BareTexts, BareTextsOfTrees
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Component, Runtime, TreeCache
from langchain_threadmem.errors import InputError, SelectionError
from langchain_threadmem.index.latest_vectors import NewVectors
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.selection.turn_ends import NEWEST_NODES, TurnEnd, TurnIndex
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import Bias, Chances, ConversationNode, Placement, nodes_of

if TYPE_CHECKING:
    import networkx as nx

LAST_NODES, NODES_AROUND = 24, 8
"""The number of nodes at the end of an older thread, and around a node, that are read."""
TextOf = Callable[[BaseMessage], str]
_HUMAN = attrgetter("human")
OnFailure = Literal["latest", "root", "raise"]
"""The place of a message whose selector failed: below the latest answer, a new root, or an error."""


class TreeView:
    """The tree of a conversation, for selectors.

    `turn_ends()` is in memory; the first use of `thread()` or `graph` reads the database.
    """

    def __init__(
        self,
        runtime: Runtime | None,
        tree: int,
        turns: TurnIndex,
        on_failure: OnFailure = "latest",
        conversation: str = "",
        hidden: Sequence[Range] = (),
        before: int | None = None,
        open_until: int | None = None,
    ) -> None:
        self.runtime = runtime
        self.conversation = conversation
        self.on_failure = on_failure
        self.tree = tree
        self.failed = False
        """Whether the selector failed and `on_selection_failure` determined the choice."""
        self.turns = turns.without(hidden) if hidden else turns
        """The index of the turn ends; it grows with the conversation, unless `hidden` is given."""
        self.before = ENDLESS if before is None else before
        """Number of the first node that is not before the message; the index may contain newer nodes."""
        self._all_turns, self._hidden = turns, hidden
        self._last_open = ENDLESS if open_until is None else open_until
        self.reason = ""
        """The selector's reason, in a few words, if it gives one."""
        self.chances: Chances = ()
        """The candidates and their probabilities, if the selector has computed them."""
        self.revised: Mapping[int, Chances] = {}
        """New probabilities of answered turns, the likeliest place first, by the `id` of the turn end."""
        self.title = ""
        """A title for the new thread, if the selector gives one."""
        self.vectors: NewVectors | None = None
        """Vectors of earlier messages that the selector has computed, which are stored with the message."""

    def turn_ends(self) -> Sequence[TurnEnd]:
        """The ends of turns that a new message can continue, oldest first.

        The end of a turn is its answer; the end of a turn that nothing answers yet is its last message.
        """
        return self.newest_ends(None)

    def newest_ends(self, most: int | None) -> Sequence[TurnEnd]:
        """The newest of `turn_ends()`, oldest first; all with `None`."""
        more = most
        while True:
            ends = self.turns.ends(self.before, more)
            shown = ends if self._last_open == ENDLESS else [end for end in ends if self._is_shown(end)]
            if more is None or most is None or len(shown) >= most or len(ends) < more:
                return shown[-most:] if most else shown
            more *= 2

    def end(self, id_: int) -> TurnEnd | None:
        """The turn end with an id."""
        end = self.turns.end(id_)
        return end if end is not None and end.id < self.before and self._is_shown(end) else None

    def _is_shown(self, end: TurnEnd) -> bool:
        """Whether the turn is no open turn that began too late."""
        return not end.is_open or self.turns.first_version(end.human_id or 0) <= self._last_open

    def thread(self, node_id: int) -> list[ConversationNode]:
        """The nodes from the root to a node, oldest first.

        Raises:
            NodeNotFoundError: There is no such node.
        """
        return graph.path(self._by_id, node_id)

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The tree as a NetworkX graph; node data `{"node": ConversationNode}`."""
        return graph.to_graph(list(self._by_id.values()))

    @cached_property
    def _by_id(self) -> dict[int, ConversationNode]:
        by_id = {node.id: node for node in self._load()}
        if self._hidden or self.before < ENDLESS:
            for id_ in parents_first({id_: node.parent_id for id_, node in by_id.items()}):
                parent = by_id[id_].parent_id
                is_cut_off = parent is not None and parent not in by_id
                if is_cut_off or id_ >= self.before or self._all_turns.belongs(id_, self._hidden):
                    del by_id[id_]
        return by_id

    def _load(self) -> Iterable[ConversationNode]:
        assert self.runtime is not None
        rows = self.runtime.database.read(lambda conn: nodes.since(conn, self.tree))
        return nodes_of(rows, self.runtime.parts.read)


class GraphView(TreeView):
    """A tree view of a NetworkX graph, without a database."""

    def __init__(self, graph: Any) -> None:
        attributes = dict(graph.nodes(data=True)).values() if graph else ()
        self._nodes = sorted((data["node"] for data in attributes), key=lambda node: node.id)
        turns = TurnIndex()
        turns.add(self._nodes)
        super().__init__(None, 0, turns)

    def _load(self) -> Iterable[ConversationNode]:
        return self._nodes


def as_view(tree: Any) -> TreeView:
    """The tree view itself, or a view of a graph such as `ChatMemory.graph`.

    Raises:
        InputError: The argument is neither a view nor a graph.
    """
    if isinstance(tree, TreeView):
        return tree
    if not tree or hasattr(tree, "nodes"):
        return GraphView(tree)
    raise InputError(f"a selector takes a tree view or a networkx graph, not {type(tree).__name__!r}")


class TurnIndexes(TreeCache[TurnIndex]):
    """The turn ends of conversations, by tree."""


def turns(
    runtime: Runtime, tree: int, newest: int | None = None, head: trees.Head | None = None
) -> Flow[TurnIndex]:
    """The turn ends of a conversation, cached and brought up to date.

    Args:
        runtime: The owner's memory.
        tree: The conversation.
        newest: The number of newest turn ends that are needed; `None` for all.
        head: The head of the tree, if it was just read.

    Cost: one statement, and 25 µs for each node that is read.
    """
    cache = runtime.get(TurnIndexes).values
    index = cache.get((tree,))
    if index is not None and head is not None and _is_current(index, head) and _suffices(index, newest):
        return index
    nodes_read = NEWEST_NODES
    while True:
        step = _Reading(tree, index, newest, nodes_read)
        current, rows, placements = yield from Sql(step.read)
        if current is not index:
            index = current
            cache.put((tree,), index)
            runtime.get(Biases).value = None
        if rows:
            index.add(nodes_of(rows), placements)
        if _suffices(index, newest):
            return index
        nodes_read *= 4


def add_written(runtime: Runtime, tree: int, written: Sequence[ConversationNode]) -> None:
    """Add nodes that were just written to the cached index of a conversation, if they are the next ones."""
    index = runtime.get(TurnIndexes).values.get((tree,))
    if index is not None and written and written[0].id == index.last + 1:
        index.add(written, {node.id: node.placement for node in written if node.placement is not None})


class Biases(Component):
    """The bias of an owner, which is read again after a correction and for each new index."""

    value: Bias | None = None


def bias_of(runtime: Runtime) -> Flow[Bias]:
    """The bias of the owner, cached."""
    cache = runtime.get(Biases)
    if cache.value is None:
        cache.value = yield from Sql(lambda conn: stored_placements.bias_of(conn, runtime.owner))
    return cache.value


def bare_texts(runtime: Runtime | None, tree: int, of_message: TextOf = text_of) -> BareTexts:
    """The bare texts of a conversation; new ones without a memory, and for another function of a message."""
    if runtime is None:
        return BareTexts(of_message)
    known = runtime.get(BareTextsOfTrees).values
    bare = known.get((tree,))
    if bare is None or bare.text_of is not of_message:
        known.put((tree,), bare := BareTexts(of_message))
    return bare


def text_by(of_message: TextOf, message: BaseMessage) -> str:
    """The text of a message by a function of the caller.

    Raises:
        SelectionError: The function returns no string.
    """
    text: object = of_message(message)
    if not isinstance(text, str):
        raise SelectionError(f"text_of returned {text!r:.200}; return the text of the message as a string")
    return text


def read_texts(tree: TreeView, turn_ends: Sequence[TurnEnd], bare: BareTexts) -> Flow[None]:
    """Read the human messages of turns whose texts a function of the caller has not returned yet."""
    if bare.text_of is text_of:
        return
    missing = [end.human_id for end in turn_ends if end.human_id and end.human_id not in bare.by_node]
    if tree.runtime is None:
        read = [tree.thread(id_)[-1] for id_ in missing]
    elif missing:

        def by_number(conn: Conn) -> list[nodes.NodeRow]:
            return list(nodes.by_seqs(conn, tree.tree, missing).values())

        read = nodes_of((yield from Sql(by_number)), tree.runtime.parts.read)
    else:
        read = []
    for node in read:
        bare.by_node[node.id] = text_by(bare.text_of, node.message)


def given_texts(turn_ends: Iterable[TurnEnd], bare: BareTexts) -> list[str]:
    """The texts of the human messages of turns, with constant text."""
    if not (texts := bare.by_node):
        return list(map(_HUMAN, turn_ends))
    return [texts.get(end.human_id or 0, end.human) for end in turn_ends]


def bare_turns(turn_ends: Iterable[TurnEnd], bare: BareTexts) -> list[TurnEnd]:
    """The turn ends with bare texts of their human messages."""
    ends = list(turn_ends)
    if bare.constant is None and not bare.by_node:
        return ends
    texts = bare.of_all(given_texts(ends, bare))
    known = bare.derived
    for n, (end, text) in enumerate(zip(ends, texts, strict=True)):
        if text != end.human:
            given, made = known.get(end.id, (None, None))
            if given is not end or made.human != text:
                known[end.id] = end, (made := end._replace(human=text))
            ends[n] = made
    return ends


class _News(NamedTuple):
    """An index, and the nodes and placements that it does not contain yet."""

    turns: TurnIndex
    rows: Sequence[nodes.NodeRow] = ()
    placements: Mapping[int, Placement] = MappingProxyType({})


class _Reading(NamedTuple):
    """The read of the news of an index; the attributes are those of `turns`, and the size of a new index."""

    tree: int
    turns: TurnIndex | None
    newest: int | None
    nodes: int

    def read(self, conn: Conn) -> _News:
        """The index, or a new index after a change of stored nodes, and the nodes that it lacks."""
        head, index = trees.head(conn, self.tree), self.turns
        if index is None or index.version != head.version or not _suffices(index, self.newest):
            since = 0 if self.newest is None else max(head.next_seq - 1 - self.nodes, 0)
            index = TurnIndex(head.version, head.epoch, since)
        last = index.last
        if last == head.next_seq - 1:
            return _News(index)
        # The index of an unchanged tree contains its removed nodes already.
        read = nodes.since if index is self.turns else nodes.with_removed_humans
        return _News(index, read(conn, self.tree, last), stored_placements.since(conn, self.tree, last))


def _is_current(index: TurnIndex, head: trees.Head) -> bool:
    """Whether an index contains all nodes of a tree with this head."""
    return index.version == head.version and index.last == head.next_seq - 1


def _suffices(index: TurnIndex, newest: int | None) -> bool:
    """Whether an index contains a number of newest turn ends, or all."""
    return not index.since or (newest is not None and len(index.ends(most=newest)) == newest)


def read_threads(runtime: Runtime, tree: int, index: TurnIndex, near: Sequence[int]) -> Flow[None]:
    """Add to an index the threads of nodes that are older than its nodes: some turns of each.

    Args:
        runtime: The owner's memory.
        tree: The conversation.
        index: The index.
        near: Numbers of nodes.

    Cost: about eight statements, if the index lacks a thread.
    """
    unread = [number for number in near if number <= index.since and number not in index.read]
    if not unread:
        return
    threads, placements = yield from Sql(lambda conn: _threads(conn, tree, unread))
    for rows in threads:
        # Rows of one thread follow each other, though some between them are not read.
        above = [None, *[row.seq for row in rows[:-1]]]
        linked = [row._replace(parent=parent) for row, parent in zip(rows, above, strict=True)]
        thread = TurnIndex()
        thread.add(nodes_of(linked), placements)
        older = [turn for turn in thread.ends() if turn.id <= index.since]
        # The thread may go on in the index.
        last = index.end_from(rows[-1].seq) if rows[-1].seq > index.since else None
        top = None if last is None else [*index.upwards(last.id)][-1].human_id
        index.insert(older, [top] if top in index.severed else [])
    index.read.update(unread)


def _threads(
    conn: Conn, tree: int, numbers: Sequence[int]
) -> tuple[list[list[nodes.NodeRow]], dict[int, Placement]]:
    """Some nodes of the threads of nodes, in their order: the turns of the nodes and the last turns.

    Returns:
        The nodes of each thread, and the placements of all their human messages.
    """
    found = [row.key for row in nodes.by_seqs(conn, tree, numbers).values()]
    through: dict[int, list[int]] = defaultdict(list)
    for key, end in nodes.thread_ends(conn, found).items():
        through[end].append(key)
    tails = nodes.threads(conn, through.keys(), LAST_NODES)
    around = nodes.threads(conn, found, NODES_AROUND)
    below = {key: range(key + 1, min(key + NODES_AROUND, node_keys.last_in(key)) + 1) for key in found}
    row_of = {row.key: row for row in nodes.by_keys(conn, {key for keys in below.values() for key in keys})}
    threads = []
    for end, keys in through.items():
        rows = {row.seq: row for row in _turns_of(tails[end], is_end=True)}
        for key in keys:
            following = [row_of[lower] for lower in below[key] if lower in row_of]
            rest_of_turn = takewhile(lambda row: row.role != "human", following)
            rows |= {row.seq: row for row in _turns_of([*around[key], *rest_of_turn], is_end=False)}
        if rows:
            threads.append([rows[number] for number in sorted(rows)])
    asked = [row.key for rows in threads for row in rows if row.role == "human"]
    return threads, stored_placements.by_keys(conn, asked) if asked else {}


def _turns_of(rows: Sequence[nodes.NodeRow], *, is_end: bool) -> list[nodes.NodeRow]:
    """Nodes from the first question on, each below the node before it.

    Unless they are the end of the thread, they end with an answer.
    """
    # A node that was moved may have the key after another.
    moved = next((n for n in range(1, len(rows)) if rows[n].parent != rows[n - 1].seq), len(rows))
    turns = [*dropwhile(lambda row: row.role != "human", rows[:moved])]
    while turns and not is_end and turns[-1].role != "ai":
        turns.pop()
    return turns
