"""Conversations as last read, which are read again only after a change."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

from langchain_threadmem.errors import NodeNotFoundError, SessionNotFoundError
from langchain_threadmem.export.layout import Layout
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes, placements, trees
from langchain_threadmem.tree.node import ConversationNode, Placement
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of

KEPT = 4
"""The number of conversations that stay in the memory of the process."""


class Version(NamedTuple):
    """A state of a conversation; another state has another version.

    Attributes:
        tree: The tree of the conversation.
        epoch: A counter that rises when the tree is emptied.
        changes: A counter that rises when a stored node changes.
        newest: The number of the newest node.
        tip: The key of the node at the end of the active thread.
    """

    tree: int
    epoch: int
    changes: int
    newest: int
    tip: int | None

    def __str__(self) -> str:
        return ".".join(map(str, self))


class Drawing:
    """The rows and lanes of a conversation, with or without superseded nodes."""

    def __init__(self, history: Sequence[ConversationNode]) -> None:
        self.layout = Layout(history)
        self.rows = rows_of(self.layout)
        self.row_of = {node.id: row for row, node in enumerate(self.rows)}
        self.lanes = self.layout.lanes(self.row_of)

    @cached_property
    def topics(self) -> list[str]:
        """The title of each strand."""
        return [self.layout.title(strand.first) for strand in self.layout.strands]


class Snapshot:
    """A conversation in one version.

    Attributes:
        version: The version.
        history: All nodes with their placements, in the order of their numbers.
        by_id: The nodes by id.
        tip: The id of the node at the end of the active thread.
    """

    def __init__(self, version: Version, history: Sequence[ConversationNode], tip: int | None) -> None:
        self.version = version
        self.history = history
        self.by_id: Mapping[int, ConversationNode] = {node.id: node for node in history}
        self.tip = tip

    def node(self, node_id: int) -> ConversationNode:
        """A node by its id.

        Raises:
            NodeNotFoundError: The conversation has no such node.
        """
        found = self.by_id.get(node_id)
        if found is None:
            raise NodeNotFoundError(
                f"there is no node {node_id} in this conversation any more; reload the page"
            )
        return found

    @cached_property
    def whole(self) -> Drawing:
        """All nodes."""
        return Drawing(self.history)

    @cached_property
    def living(self) -> Drawing:
        """The live nodes and their ancestors."""
        return Drawing(graph.living(self.history))


class Snapshots:
    """The conversations of an owner that the page has shown last.

    Nothing is written. A conversation to which only messages were added is read from its newest node on.
    """

    def __init__(self, system: MemorySystem) -> None:
        self._system = system
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = Lock()

    def version(self, conversation: str) -> Version | None:
        """The present version; `None` if there is no such conversation."""
        owner = self._system.owner

        def read(conn: Conn) -> Version | None:
            tree = trees.find(conn, owner, conversation)
            return None if tree is None else _version(conn, tree)

        version = self._system.runtime.database.read(read)
        if version is None:
            self._kept.pop(conversation, None)  # It was erased.
        return version

    def get(self, conversation: str) -> Snapshot:
        """The conversation in its present version.

        Raises:
            SessionNotFoundError: There is no such conversation.
        """
        version = self.version(conversation)
        if version is None:
            raise SessionNotFoundError(f"there is no conversation {conversation!r}")
        # One thread reads, and the requests that wait for it find the result.
        with self._lock:
            kept = self._kept.get(conversation)
            if kept is None or kept.version != version:
                kept = self._read(version, kept)
            self._kept[conversation] = kept
            self._kept.move_to_end(conversation)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return kept

    def _read(self, version: Version, old: Snapshot | None) -> Snapshot:
        grown = old is not None and old.version[:3] == version[:3]
        known = old.version.newest if old is not None and grown else 0

        def read(conn: Conn) -> tuple[Version, list[NodeRow], dict[int, Placement], int | None]:
            now = _version(conn, version.tree)
            after = known if now[:3] == version[:3] else 0
            tip = None if now.tip is None else nodes.by_key(conn, now.tip)
            return (
                now,
                nodes.since(conn, version.tree, after),
                placements.since(conn, version.tree, after),
                None if tip is None else tip.seq,
            )

        now, rows, placed, tip = self._system.runtime.database.read(read)
        fresh = [
            replace(node, placement=placed[node.id]) if node.id in placed else node
            for node in nodes_of(rows, self._system.runtime.parts.read)
        ]
        before = old.history if old is not None and grown and now[:3] == version[:3] else ()
        return Snapshot(now, [*before, *fresh], tip)


def _version(conn: Conn, tree: int) -> Version:
    head = trees.head(conn, tree)
    return Version(tree, head.epoch, head.version, head.next_seq - 1, head.tip)


def rows_of(layout: Layout) -> list[ConversationNode]:
    """The nodes in the order of their times, each parent before its children.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> hello = HumanMessage("Hello")
        >>> nodes = [ConversationNode(3, hello), ConversationNode(2, hello, 3), ConversationNode(1, hello)]
        >>> [node.id for node in rows_of(Layout(nodes))]
        [1, 3, 2]
    """
    by_id = {node.id: node for node in layout.nodes}
    below: dict[int | None, list[ConversationNode]] = defaultdict(list)
    for node in layout.nodes:
        below[node.parent_id].append(node)
    waiting = [(node.timestamp, node.id) for node in below[None]]
    heapify(waiting)
    rows = []
    while waiting:
        _, node_id = heappop(waiting)
        rows.append(by_id[node_id])
        for child in below[node_id]:
            heappush(waiting, (child.timestamp, child.id))
    return rows
