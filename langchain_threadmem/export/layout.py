"""The order, forks and threads that every drawing of a conversation uses.

A `Layout` links the nodes both ways, measures them and hands each node to one thread, all in
linear time and without recursion, so that a thread of 100,000 messages is laid out like one of ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import cut, one_line, visible
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode


@dataclass(frozen=True, slots=True)
class Strand:
    """The part of a thread that no older thread shares.

    Attributes:
        first: Where it leaves the older thread, or its root.
        tip: Where it ends.
        length: How many messages the whole thread has, from the root.
    """

    first: ConversationNode
    tip: ConversationNode
    length: int


class Layout:
    """The nodes of one conversation, ready to be drawn.

    Args:
        nodes: Nodes of one conversation, in any order; one whose parent is missing is a root.
        active: Id of the node that the conversation stands at, if that is to be shown.

    Attributes:
        nodes: The nodes by id.
        order: The nodes with each parent before its children.
        roots: The nodes that have no parent.
        strands: Threads of live nodes first, then what hangs beside them (superseded ends, asides).
        strand_of: Index of the strand that a node belongs to, by node id.
        threads: How many of the strands end a live thread.
        current: Ids of the active node and its ancestors.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among them.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> hello = ConversationNode(1, HumanMessage("Hello"))
        >>> layout = Layout([hello, ConversationNode(2, HumanMessage("Are you there?"), 1)])
        >>> [(strand.first.id, strand.tip.id, strand.length) for strand in layout.strands]
        [(1, 2, 2)]
    """

    def __init__(self, nodes: Sequence[ConversationNode], active: int | None = None) -> None:
        ids = {node.id for node in nodes}
        whole = [
            n if n.parent_id is None or n.parent_id in ids else replace(n, parent_id=None) for n in nodes
        ]
        graph.validate(whole)
        self.nodes = sorted(whole, key=lambda node: node.id)
        self._by_id = {node.id: node for node in self.nodes}
        self.order = [self._by_id[node_id] for node_id in graph.orderly(self._by_id, self._by_id)]
        self._children: dict[int | None, list[ConversationNode]] = defaultdict(list)
        for node in self.nodes:
            self._children[node.parent_id].append(node)
        self.roots = self._children[None]
        self.size: dict[int, int] = {}
        for node in reversed(self.order):
            self.size[node.id] = 1 + sum(self.size[child.id] for child in self._children[node.id])
        if active is not None and active not in self._by_id:
            raise NodeNotFoundError(f"no node {active!r} to mark as active; choose one of those to be drawn")
        self.current = set() if active is None else {node.id for node in graph.path(self._by_id, active)}
        self._lay_strands()

    def fork(self, node: ConversationNode) -> tuple[list[ConversationNode], ConversationNode | None]:
        """Split a node's children into those to set in and the one that goes straight on, if any."""
        children = self._children[node.id]
        following = self.size[node.id] - 1
        main = next((child for child in children if 2 * self.size[child.id] > following), None)
        return [child for child in children if child is not main], main

    def parent(self, node: ConversationNode) -> ConversationNode | None:
        """Give the parent, if the node has one here."""
        return None if node.parent_id is None else self._by_id[node.parent_id]

    def _lay_strands(self) -> None:
        depth: dict[int | None, int] = {None: 0}
        for node in self.order:
            depth[node.id] = depth[node.parent_id] + 1
        live = graph.leaves(self.nodes)
        ends = {node.id: node for node in live}
        ends |= {node.id: node for node in self.nodes if not self._children[node.id]}
        self.threads = len(live)
        self.strands: list[Strand] = []
        self.strand_of: dict[int, int] = {}
        for tip in ends.values():
            first = tip
            above: ConversationNode | None = tip
            while above is not None and above.id not in self.strand_of:
                self.strand_of[above.id] = len(self.strands)
                first, above = above, self.parent(above)
            self.strands.append(Strand(first, tip, depth[tip.id]))


def said(message: BaseMessage) -> str:
    """Give what a message says, `visible`, and in brackets what it holds that is no text.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> said(AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "1"}]))
        "[calls weather(city='Rome')]"
    """
    parts = [text_of(message)]
    if isinstance(message.content, list):
        kinds = [block.get("type", "block") for block in message.content if isinstance(block, dict)]
        parts += [f"[{kind}]" for kind in kinds if kind not in ("text", "tool_use", "tool_call")]
    for call in getattr(message, "tool_calls", ()):
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        parts.append(f"[calls {call['name']}({cut(arguments, 80)})]")
    return visible(" ".join(part for part in parts if part))


def label_of(message: BaseMessage) -> str:
    """Name the speaker of a message.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> label_of(AIMessage("Hi"))
        'Assistant'
    """
    return one_line(role_of(message)).capitalize()
