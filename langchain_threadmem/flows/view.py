"""What a selector sees of a conversation: read-only, and loaded only as far as it looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_threadmem.core import tree as trees_core
from langchain_threadmem.core.nodes import ConversationNode, TurnEnd
from langchain_threadmem.core.turns import TurnIndex
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import OnFailure
from langchain_threadmem.flows.rows import nodes_of
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.storage.queries import nodes

if TYPE_CHECKING:
    import networkx as nx


class TreeView:
    """A conversation's tree, for selectors.

    `turn_ends()` is at hand; `thread()` and `graph` read the database when they are first used.
    """

    def __init__(
        self,
        runtime: Runtime,
        tree: int,
        turns: TurnIndex,
        on_failure: OnFailure = "latest",
        conversation: str = "",
    ) -> None:
        self.runtime: Runtime | None = runtime
        self.conversation = conversation
        self.on_failure = on_failure
        self.tree = tree
        self.turns = turns
        """How the turn ends hang together; it grows with the conversation."""
        self._ends = turns.ends()
        self.reason = ""
        """Why the selector chose as it did, in a few words, if it says so."""
        self.chances: Sequence[tuple[int | None, float]] = ()
        """The candidates and their probabilities, if it weighed them."""

    def turn_ends(self) -> Sequence[TurnEnd]:
        """The answers that a new message can continue, oldest first."""
        return self._ends

    def thread(self, node_id: int) -> list[ConversationNode]:
        """The nodes from the root to a node, oldest first.

        Raises:
            NodeNotFoundError: There is no such node.
        """
        return trees_core.path(self._by_id, node_id)

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The tree as a NetworkX graph; node data `{"node": ConversationNode}`."""
        return trees_core.to_graph(list(self._by_id.values()))

    @cached_property
    def _by_id(self) -> dict[int, ConversationNode]:
        return {node.id: node for node in self._load()}

    def _load(self) -> Iterable[ConversationNode]:
        assert self.runtime is not None
        rows = self.runtime.database.read(lambda conn: nodes.since(conn, self.tree))
        return nodes_of(rows, self.runtime.parts.read)


class GraphView(TreeView):
    """The same view of a NetworkX graph that a caller holds."""

    def __init__(self, graph: Any) -> None:
        held = [data["node"] for _, data in graph.nodes(data=True)] if graph else []
        self._held = sorted(held, key=lambda node: node.id)
        self.turns = TurnIndex()
        self.turns.add(self._held)
        self._ends = self.turns.ends()
        self.runtime = None
        self.conversation = ""
        self.on_failure: OnFailure = "latest"
        self.tree = 0
        self.reason = ""
        self.chances = ()

    def _load(self) -> Iterable[ConversationNode]:
        return self._held


def as_view(tree: Any) -> TreeView:
    """A view of what a selector was called with: a view, or a graph such as `ChatMemory.graph`.

    Raises:
        InputError: It is neither.
    """
    if isinstance(tree, TreeView):
        return tree
    if not tree or hasattr(tree, "nodes"):
        return GraphView(tree)
    raise InputError(f"a selector looks at a tree view or a networkx graph, not at {type(tree).__name__!r}")
