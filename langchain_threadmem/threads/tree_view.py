"""The read-only view of a conversation that a selector receives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.threads.turn_ends import TurnEnd, TurnIndex
from langchain_threadmem.tree import graph, nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import Chances, ConversationNode, Placement
from langchain_threadmem.tree.rows import nodes_of
from langchain_threadmem.tree.run_lineage import ENDLESS, Span

if TYPE_CHECKING:
    import networkx as nx

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
        hidden: Sequence[Span] = (),
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
        last_open = ENDLESS if open_until is None else open_until
        self._ends = [
            end
            for end in self.turns.ends()
            if end.id < self.before
            and not (end.is_open and self.turns.first_version(end.human_id or 0) > last_open)
        ]
        self.reason = ""
        """The selector's reason, in a few words, if it gives one."""
        self.chances: Chances = ()
        """The candidates and their probabilities, if the selector has computed them."""
        self.revised: Mapping[int, Chances] = {}
        """New probabilities of answered turns, the likeliest place first, by the `id` of the turn end."""
        self.title = ""
        """A title for the new thread, if the selector gives one."""

    def turn_ends(self) -> Sequence[TurnEnd]:
        """The ends of turns that a new message can continue, oldest first.

        The end of a turn is its answer; the end of a turn that nothing answers yet is its last message.
        """
        return self._ends

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


def turns(runtime: Runtime, tree: int) -> Flow[TurnIndex]:
    """The turn ends of a conversation, cached and brought up to date."""
    cache = runtime.get(TurnIndexes).values
    index = cache.setdefault((tree,), TurnIndex)
    last, version = index.last, index.version

    def read(conn: Conn) -> tuple[trees.Head, list[nodes.NodeRow], dict[int, Placement]]:
        head = trees.head(conn, tree)
        start = last if head.version == version else 0
        return head, nodes.since(conn, tree, start), stored_placements.since(conn, tree, start)

    head, rows, placements = yield from Sql(read)
    if head.version != version:
        index = TurnIndex(head.version, head.epoch)
        cache.put((tree,), index)
    index.add(nodes_of(rows), placements)
    return index
