"""Layout of a conversation for drawing: order, forks and threads of its nodes, and labels of messages.

A message is drawn below its parent. Only forks are indented: the branch with more than half of the messages
below a fork is not indented; the other branches, each with at most half of the messages, are indented and
drawn before that branch. The indentation of `n` messages is thus at most log2(n) levels deep.

A `Layout` is computed in linear time and without recursion, so that long threads do not reach Python's
recursion limit.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from langchain_threadmem.catalogue.titles import title_of_thread
from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.messages.display import content_of, label_of
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode, is_said


@dataclass(frozen=True, slots=True)
class Strand:
    """The part of a thread that no older thread shares.

    Attributes:
        first: First node after the fork from the older thread, or the root.
        tip: Last node.
        length: Number of messages of the thread, from the root, as `tree.node.is_said` counts them.
        last: The message of the thread that was said last; the last node if there is none.
    """

    first: ConversationNode
    tip: ConversationNode
    length: int
    last: ConversationNode


class Layout:
    """The nodes of one conversation with the order, forks and threads for drawing.

    Args:
        nodes: Nodes of one conversation, in any order; a node whose parent is missing becomes a root.
        active: Id of the tip of the active thread, if it is to be marked.

    Attributes:
        nodes: The nodes, in the order of their ids.
        by_id: The nodes by id.
        children: The children of each node, by its id; of `None` the roots.
        order: The nodes with each parent before its children.
        roots: The nodes without a parent.
        size: Number of nodes of the subtree below and including a node, by node id.
        said: Number of messages of that subtree, as `tree.node.is_said` counts them.
        strands: The strands of live threads, then those of superseded ends and asides.
        strand_of: Index of the strand of a node, by node id.
        threads: Number of live threads; they are the first of `strands`. A system message alone is no
            thread.
        current: Ids of the active node and its ancestors.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        NodeNotFoundError: `active` is not among the nodes.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> hello = ConversationNode(1, HumanMessage("Hello"))
        >>> layout = Layout([hello, ConversationNode(2, HumanMessage("Are you there?"), 1)])
        >>> [(strand.first.id, strand.tip.id, strand.length) for strand in layout.strands]
        [(1, 2, 2)]
    """

    def __init__(self, nodes: Sequence[ConversationNode], active: int | None = None) -> None:
        ids = {node.id for node in nodes}
        forest = [
            n if n.parent_id is None or n.parent_id in ids else replace(n, parent_id=None) for n in nodes
        ]
        graph.validate(forest)
        self.nodes = sorted(forest, key=lambda node: node.id)
        self.by_id = {node.id: node for node in self.nodes}
        parents = {node.id: node.parent_id for node in self.nodes}
        self.order = [self.by_id[node_id] for node_id in graph.orderly(parents)]
        self.children: dict[int | None, list[ConversationNode]] = defaultdict(list)
        for node in self.nodes:
            self.children[node.parent_id].append(node)
        self.roots = self.children[None]
        self.size: dict[int, int] = {}
        self.said: dict[int, int] = {}
        for node in reversed(self.order):
            below = [child.id for child in self.children[node.id]]
            self.size[node.id] = 1 + sum(map(self.size.__getitem__, below))
            self.said[node.id] = is_said(node) + sum(map(self.said.__getitem__, below))
        if active is not None and active not in self.by_id:
            raise NodeNotFoundError(
                f"there is no node {active!r} to mark as active; use the id of a drawn node"
            )
        self.current = set() if active is None else {node.id for node in graph.path(self.by_id, active)}
        self._find_strands()

    @property
    def counts(self) -> str:
        """The number of messages and of live threads, as text."""
        messages = sum(self.said[root.id] for root in self.roots)
        return f"{plural(messages, 'message')} in {plural(self.threads, 'thread')}"

    def fork(self, node: ConversationNode) -> tuple[list[ConversationNode], ConversationNode | None]:
        """The children of a node that are indented, and the child that is not, if any."""
        children = self.children[node.id]
        descendants = self.size[node.id] - 1
        main = next((child for child in children if 2 * self.size[child.id] > descendants), None)
        return [child for child in children if child is not main], main

    def straight(self, first: ConversationNode) -> list[ConversationNode]:
        """The nodes that are drawn without further indentation, from a node on."""
        nodes = [first]
        while (following := self.fork(nodes[-1])[1]) is not None:
            nodes.append(following)
        return nodes

    def recent(self) -> list[Strand]:
        """The strands of the live threads, the most recently used first."""
        use = attrgetter("last.timestamp", "tip.timestamp", "tip.id")
        return sorted(self.strands[: self.threads], key=use, reverse=True)

    def title(self, node: ConversationNode) -> str:
        """The title of the messages from a node on: by a model, of a summary, or the first informative words.

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> hello = ConversationNode(1, HumanMessage("How do I feed a sourdough starter?"))
            >>> Layout([hello]).title(hello)
            'Feed sourdough starter'
        """
        # The first node may be a system message.
        opening = [node, *self.children[node.id][:1]]
        model_title = next(
            (item.placement.title for item in opening if item.placement and item.placement.title), None
        )
        about = node.summary.title if node.summary else title_of_thread(item.message for item in opening)
        title = model_title or about or content_of(node.message)
        return one_line(title, 70) or label_of(node.message)

    def lanes(self, rows: Mapping[int, int] | None = None) -> list[int]:
        """The lane of each strand in a drawing with a row for each node.

        A strand occupies its lane from the row of the node that it continues to the row of its last node, and
        the next strand that begins takes the first free lane.

        Args:
            rows: The row of each node, by node id; by default the id.

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> tree = enumerate([None, None, 1, 2, None], 1)
            >>> layout = Layout([ConversationNode(n, HumanMessage("Hello"), parent) for n, parent in tree])
            >>> [layout.lanes()[layout.strand_of[n]] for n in range(1, 6)]
            [0, 1, 0, 1, 0]
        """
        # A moved node may have a higher number than its children.
        first_rows: dict[int, int] = {}
        last_rows = [0] * len(self.strands)
        for node in self.nodes:
            strand, parent = self.strand_of[node.id], node.parent_id or node.id
            row, parent_row = (node.id, parent) if rows is None else (rows[node.id], rows[parent])
            first_rows[strand] = min(first_rows.get(strand, row), row, parent_row + (parent_row < row))
            last_rows[strand] = max(last_rows[strand], row, parent_row)
        lanes = [0] * len(self.strands)
        free: list[int] = []
        occupied: list[tuple[int, int]] = []
        for strand in sorted(first_rows, key=first_rows.__getitem__):
            while occupied and occupied[0][0] < first_rows[strand]:
                heapq.heappush(free, heapq.heappop(occupied)[1])
            lanes[strand] = heapq.heappop(free) if free else len(occupied)
            heapq.heappush(occupied, (last_rows[strand], lanes[strand]))
        return lanes

    def parent(self, node: ConversationNode) -> ConversationNode | None:
        """The parent of a node; `None` for a root."""
        return None if node.parent_id is None else self.by_id[node.parent_id]

    def _find_strands(self) -> None:
        length: dict[int | None, int] = {None: 0}
        last: dict[int | None, ConversationNode | None] = {None: None}
        for node in self.order:
            said, above = is_said(node), last[node.parent_id]
            length[node.id] = length[node.parent_id] + said
            is_last = above is None or (node.timestamp, node.id) > (above.timestamp, above.id)
            last[node.id] = node if said and is_last else above
        live = [leaf for leaf in graph.leaves(self.nodes) if leaf.parent_id or leaf.message.type != "system"]
        tips = {node.id: node for node in live}
        tips |= {node.id: node for node in self.nodes if not self.children[node.id]}
        self.threads = len(live)
        self.strands: list[Strand] = []
        self.strand_of: dict[int, int] = {}
        for tip in tips.values():
            first = tip
            ancestor: ConversationNode | None = tip
            while ancestor is not None and ancestor.id not in self.strand_of:
                self.strand_of[ancestor.id] = len(self.strands)
                first, ancestor = ancestor, self.parent(ancestor)
            self.strands.append(Strand(first, tip, length[tip.id], last[tip.id] or tip))


def line_of(node: ConversationNode, width: int) -> str:
    r"""A node on one line: id, role and the first `width` characters of the content.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> line_of(ConversationNode(7, HumanMessage("Hello\nthere")), 60)
        '7 User: Hello there'
    """
    return f"{node.id} {label_of(node.message)}: {one_line(content_of(node.message), width)}"
