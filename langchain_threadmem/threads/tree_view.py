"""The read-only view of a conversation that a selector receives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.threads.turn_ends import TurnEnd, TurnIndex
from langchain_threadmem.tree import graph, nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.lineage import Span
from langchain_threadmem.tree.node import ConversationNode, Placement
from langchain_threadmem.tree.rows import nodes_of

if TYPE_CHECKING:
    import networkx as nx

OnFailure = Literal["latest", "root", "raise"]
"""Where a message goes whose selector failed."""


def check_on_failure(choice: str) -> None:
    """Refuse an unknown `on_selection_failure`.

    Raises:
        InputError: It is none of the three.
    """
    if choice not in get_args(OnFailure):
        raise InputError(f"on_selection_failure={choice!r} is not one of 'latest', 'root', 'raise'")


class TreeView:
    """A conversation's tree, for selectors.

    `turn_ends()` is in memory; `thread()` and `graph` read the database at their first use.
    """

    def __init__(
        self,
        runtime: Runtime,
        tree: int,
        turns: TurnIndex,
        on_failure: OnFailure = "latest",
        conversation: str = "",
        hidden: Sequence[Span] = (),
    ) -> None:
        self.runtime: Runtime | None = runtime
        self.conversation = conversation
        self.on_failure = on_failure
        self.tree = tree
        self.turns = turns.without(hidden) if hidden else turns
        """The index of the turn ends; it grows with the conversation, unless a part is hidden."""
        self._all_turns, self._hidden = turns, hidden
        self._ends = self.turns.ends()
        self.reason = ""
        """The selector's reason, in a few words, if it gives one."""
        self.chances: Sequence[tuple[int | None, float]] = ()
        """The candidates and their probabilities, if the selector has computed them."""

    def turn_ends(self) -> Sequence[TurnEnd]:
        """The answers that a new message can continue, oldest first."""
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
        found = {node.id: node for node in self._load()}
        if self._hidden:
            for id_ in parents_first({id_: node.parent_id for id_, node in found.items()}):
                parent = found[id_].parent_id
                is_cut_off = parent is not None and parent not in found
                if is_cut_off or self._all_turns.belongs(id_, self._hidden):
                    del found[id_]
        return found

    def _load(self) -> Iterable[ConversationNode]:
        assert self.runtime is not None
        rows = self.runtime.database.read(lambda conn: nodes.since(conn, self.tree))
        return nodes_of(rows, self.runtime.parts.read)


class GraphView(TreeView):
    """The same view of a NetworkX graph of a caller."""

    def __init__(self, graph: Any) -> None:
        found = [data["node"] for _, data in graph.nodes(data=True)] if graph else []
        self._nodes = sorted(found, key=lambda node: node.id)
        self.turns = self._all_turns = TurnIndex()
        self._hidden = ()
        self.turns.add(self._nodes)
        self._ends = self.turns.ends()
        self.runtime = None
        self.conversation = ""
        self.on_failure: OnFailure = "latest"
        self.tree = 0
        self.reason = ""
        self.chances = ()

    def _load(self) -> Iterable[ConversationNode]:
        return self._nodes


def as_view(tree: Any) -> TreeView:
    """The view that a selector was called with, or a view of a graph such as `ChatMemory.graph`.

    Raises:
        InputError: It is neither.
    """
    if isinstance(tree, TreeView):
        return tree
    if not tree or hasattr(tree, "nodes"):
        return GraphView(tree)
    raise InputError(f"a selector looks at a tree view or a networkx graph, not at {type(tree).__name__!r}")


class KnownTurns(TreeCache[TurnIndex]):
    """The turn ends of conversations, by tree."""


def turns(runtime: Runtime, tree: int) -> Flow[TurnIndex]:
    """The turn ends of a conversation, cached and brought up to date."""
    cache = runtime.get(KnownTurns).values
    index = cache.setdefault((tree,), TurnIndex)
    last, version = index.last, index.version

    def news(conn: Conn) -> tuple[int, list[nodes.NodeRow], dict[int, Placement]]:
        current = trees.head(conn, tree).version
        start = last if current == version else 0
        return current, nodes.since(conn, tree, start), stored_placements.since(conn, tree, start)

    current, rows, placements = yield from Sql(news)
    if current != version:
        index = TurnIndex(current)
        cache.put((tree,), index)
    index.add(nodes_of(rows), placements)
    return index
