"""Layout of a conversation for drawing: order, forks and threads of its nodes, and labels of messages.

A message is drawn below its parent. Only forks are indented: the branch with more than half of the messages
below a fork is not indented; the other branches, each with at most half of the messages, are indented and
drawn before that branch. The indentation of `n` messages is thus at most log2(n) levels deep.

A thread keeps its colour: the colour belongs to the message that began the thread, and a move, a new version
or another thread changes no other colour.

A `Layout` is computed in linear time and without recursion, so that long threads do not reach Python's
recursion limit.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, islice
from operator import attrgetter

from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.messages.display import content_of, label_of, preview_of
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.selection.titles import title_of_thread
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode, is_said

_LATER = 5
"""The number of later questions whose titles may name a branch."""
LOOKED_AT = 4
"""The number of first messages in which a title is searched."""


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
        history: All nodes of the conversation, for the colours; by default `nodes`.

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
        color_of: Number of the colour of a node, by node id; see `colors`.
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

    def __init__(
        self,
        nodes: Sequence[ConversationNode],
        active: int | None = None,
        history: Sequence[ConversationNode] | None = None,
    ) -> None:
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
        self.color_of = colors(self.nodes if history is None else history)
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
        """The title of the messages from a node on: by a model, of a summary, or the first words.

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> hello = ConversationNode(1, HumanMessage("How do I feed a sourdough starter?"))
            >>> Layout([hello]).title(hello)
            'How do I feed a sourdough starter?'
        """
        # The first node may be a system message, and the first human message a greeting.
        opening = [node]
        while len(opening) < LOOKED_AT and self.children[opening[-1].id]:
            opening.append(self.children[opening[-1].id][0])
        model_title = next(
            (item.placement.title for item in opening[:2] if item.placement and item.placement.title), None
        )
        about = node.summary.title if node.summary else title_of_thread(item.message for item in opening)
        title = model_title or about or preview_of(node.message, 70)
        return one_line(title, 70) or label_of(node.message)

    def root_of(self, strand: Strand) -> ConversationNode:
        """The root above a strand."""
        return graph.path(self.by_id, strand.first.id)[0]

    @cached_property
    def names(self) -> list[str]:
        """The names of the strands, which differ among the strands of one root.

        A strand has the title of its first messages, or else of the first later question whose title no other
        strand of the root has, or a number.

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> said = ["Bake rye bread", "And the crust?", "And the salt?", "The salt!"]
            >>> said = [ConversationNode(n, HumanMessage(text), 1) for n, text in enumerate(said, 1)]
            >>> Layout([replace(said[0], parent_id=None), *said[1:]]).names
            ['Bake rye bread', 'And the salt?', 'The salt!']
        """
        members: dict[int, list[ConversationNode]] = defaultdict(list)
        roots: dict[int | None, int] = {}
        for node in self.order:
            members[self.strand_of[node.id]].append(node)
            roots[node.id] = roots.get(node.parent_id, node.id)
        used: dict[int, set[str]] = defaultdict(set)
        names = []
        for number, strand in enumerate(self.strands):
            taken = used[roots[strand.first.id]]
            later = (node for node in members[number][1:] if node.message.type == "human")
            options = [self.title(node) for node in (strand.first, *islice(later, _LATER))]
            numbered = (f"{options[0]} ({n})" for n in count(2))
            name = next(option for option in chain(options, numbered) if option not in taken)
            taken.add(name)
            names.append(name)
        return names

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
        heirs = self._heirs(live)
        self.threads = len(live)
        self.strands: list[Strand] = []
        self.strand_of: dict[int, int] = {}
        for tip in tips.values():
            first = tip
            self.strand_of[tip.id] = len(self.strands)
            while first.parent_id is not None and heirs.get(first.parent_id) == first.id:
                first = self.by_id[first.parent_id]
                self.strand_of[first.id] = len(self.strands)
            self.strands.append(Strand(first, tip, length[tip.id], last[tip.id] or tip))

    def _heirs(self, live: Sequence[ConversationNode]) -> dict[int, int]:
        """For each node the child in the same strand: with a live leaf, if possible of the same colour."""
        leading = {node.id for node in live}
        for node in reversed(self.order):
            if node.id in leading and node.parent_id is not None:
                leading.add(node.parent_id)
        ends = {node.id for node in live}
        return {
            node.id: min(
                self.children[node.id],
                key=lambda child: (
                    child.id not in leading,
                    self.color_of.get(child.id) != self.color_of.get(child.parent_id or 0),
                    child.id,
                ),
            ).id
            for node in self.nodes
            if self.children[node.id] and node.id not in ends
        }


def colors(history: Sequence[ConversationNode]) -> dict[int, int]:
    """The number of the colour of each node, by node id.

    A root begins a colour, and so does a node that was written when its parent was already continued; other
    nodes have the colour of their parents. A new version of a message has the colour of the old version if no
    thread continues the old version. A message that is moved keeps the colour that it began.

    Args:
        history: All nodes of one conversation, in any order. Colours are numbered in the order of their first
            nodes, so that later messages, moves and versions change no number.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> tree = [(1, None), (2, 1), (3, None), (4, 2), (5, 1)]
        >>> colors([ConversationNode(n, HumanMessage("Hello"), parent) for n, parent in tree])
        {1: 0, 2: 0, 3: 1, 4: 0, 5: 2}
    """
    nodes = sorted(history, key=lambda node: node.id)
    by_id = {node.id: node for node in nodes}
    alive = {node.id for node in graph.living(nodes)}
    children: dict[int | None, list[ConversationNode]] = defaultdict(list)
    earlier: dict[int, tuple[ConversationNode, bool]] = {}
    """The earlier version or former place of a node, and whether a thread continues both."""
    for node in nodes:
        children[node.parent_id].append(node)
        newer = None if node.superseded_by is None else by_id.get(node.superseded_by)
        if newer is not None and _is_same(node, newer):
            # A version that was restored replaces a version with a higher id.
            first, second = (node, newer) if node.id < newer.id else (newer, node)
            earlier.setdefault(second.id, (first, node.id in alive))
    begun: dict[int, int] = {}
    """The node with which the colour of a node began, or -1 for the colour of its parent, by id."""
    for node in nodes:
        old, continued = earlier.get(node.id, (None, True))
        if old is not None and old.parent_id == node.parent_id and not continued:
            begun[node.id] = begun.get(old.id, -1)
        elif node.parent_id is None or any(_was_there(other, node) for other in children[node.parent_id]):
            is_moved = old is not None and old.parent_id != node.parent_id
            former = begun.get(old.id, -1) if old is not None and is_moved else -1
            begun[node.id] = former if former > 0 else node.id
    numbers = {first: number for number, first in enumerate(sorted({n for n in begun.values() if n > 0}))}
    found: dict[int | None, int] = {None: 0}
    for node_id in graph.orderly({node.id: node.parent_id for node in nodes}):
        first_id = begun.get(node_id, -1)
        found[node_id] = numbers[first_id] if first_id > 0 else found[by_id[node_id].parent_id]
    return {node.id: found[node.id] for node in nodes}


def _is_same(node: ConversationNode, newer: ConversationNode) -> bool:
    """Whether a node is the older version, or the former place, of the node that replaced it."""
    is_moved = node.message.id is not None and node.message.id == newer.message.id
    return node.parent_id == newer.parent_id or is_moved


def _was_there(other: ConversationNode, node: ConversationNode) -> bool:
    """Whether another child of its parent was in a thread as a node was written."""
    if other.id >= node.id or other.state is State.ASIDE:
        return False
    return other.superseded_by is None or other.superseded_by > node.id


def line_of(node: ConversationNode, width: int) -> str:
    r"""A node on one line: id, role and the first `width` characters of the content.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> line_of(ConversationNode(7, HumanMessage("Hello\nthere")), 60)
        '7 User: Hello there'
    """
    return f"{node.id} {label_of(node.message)}: {one_line(content_of(node.message), width)}"
