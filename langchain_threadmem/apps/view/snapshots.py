"""A cache of conversations, which are read again only after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import NodeNotFoundError, SessionNotFoundError
from langchain_threadmem.formats.exporters.layout import Layout
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes, placements, trees
from langchain_threadmem.tree.node import ConversationNode, nodes_of

CACHED = 4
"""The number of cached conversations."""


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

    def __init__(self, nodes: Sequence[ConversationNode], history: Sequence[ConversationNode]) -> None:
        self.layout = Layout(nodes, history=history)
        self.rows = rows_of(self.layout)
        self.lanes = self.layout.lanes({node.id: row for row, node in enumerate(self.rows)})


class ConversationSnapshot:
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
        node = self.by_id.get(node_id)
        if node is None:
            raise NodeNotFoundError(f"there is no node {node_id} in this conversation; reload the page")
        return node

    @cached_property
    def whole(self) -> Drawing:
        """All nodes."""
        return Drawing(self.history, self.history)

    @cached_property
    def living(self) -> Drawing:
        """The live nodes and their ancestors."""
        return Drawing(graph.living(self.history), self.history)


class Snapshots:
    """The conversations of an owner that the page has shown last.

    If a conversation has only new messages since its snapshot, only these messages are read.
    """

    def __init__(self, system: MemorySystem) -> None:
        self._system = system
        self._cache = LruCache[str, ConversationSnapshot](CACHED)
        self._lock = Lock()

    def version(self, conversation: str) -> Version | None:
        """The current version of a conversation; `None` if the conversation does not exist."""
        owner = self._system.owner

        def read(conn: Conn) -> Version | None:
            tree = trees.find(conn, owner, conversation)
            return None if tree is None else _version(conn, tree)

        version = self._system.runtime.database.read(read)
        if version is None:
            self._cache.drop(conversation)  # The conversation was erased.
        return version

    def check(self, conversation: str) -> Version:
        """Check that a conversation exists, and return its current version.

        Raises:
            SessionNotFoundError: There is no such conversation.
        """
        version = self.version(conversation)
        if version is None:
            raise SessionNotFoundError(f"there is no conversation {conversation!r}")
        return version

    def get(self, conversation: str) -> ConversationSnapshot:
        """A conversation in its current version.

        Raises:
            SessionNotFoundError: There is no such conversation.
        """
        version = self.check(conversation)
        # The lock lets concurrent requests for a conversation read it once.
        with self._lock:
            snapshot = self._cache.get(conversation)
            if snapshot is None or snapshot.version != version:
                snapshot = self._read(version.tree, snapshot)
            self._cache.put(conversation, snapshot)
            return snapshot

    def _read(self, tree: int, old: ConversationSnapshot | None) -> ConversationSnapshot:
        def read(conn: Conn) -> ConversationSnapshot:
            version = _version(conn, tree)
            base = old if old is not None and old.version[:3] == version[:3] else None
            history, last = ((), 0) if base is None else (base.history, base.version.newest)
            rows, stored_placements = nodes.since(conn, tree, last), placements.since(conn, tree, last)
            new = nodes_of(rows, self._system.runtime.parts.read, stored_placements)
            tip = None if version.tip is None else nodes.by_key(conn, version.tip)
            return ConversationSnapshot(version, [*history, *new], None if tip is None else tip.seq)

        return self._system.runtime.database.read(read)


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
    waiting = [(node.timestamp, node.id) for node in layout.roots]
    heapify(waiting)
    rows = []
    while waiting:
        _, node_id = heappop(waiting)
        rows.append(layout.by_id[node_id])
        for child in layout.children[node_id]:
            heappush(waiting, (child.timestamp, child.id))
    return rows
