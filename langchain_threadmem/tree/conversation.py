"""A conversation: its name, its options and the id of its tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import NodeNotFoundError, SessionNotFoundError
from langchain_threadmem.messages.ids import is_key
from langchain_threadmem.messages.windows import Window
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.trees import NO_TREE


@dataclass
class Conversation:
    """A conversation and its options, as in `ChatMemory`."""

    runtime: Runtime
    name: str
    context_depth: int = 5
    window: Window | None = None
    _tree: int = field(default=NO_TREE, init=False)

    @property
    def tree(self) -> int:
        """Id of the conversation's tree; `NO_TREE` before the first read, or if the tree was erased."""
        return NO_TREE if self._tree in self.runtime.erased_trees else self._tree


def tree_of(conversation: Conversation) -> Flow[int]:
    """The id of the conversation's tree; `NO_TREE` if the tree does not exist, as before its first message.

    Raises:
        SessionNotFoundError: The tree does not exist, and the memory is read-only.
    """
    tree = conversation.tree
    if not tree:
        tree = yield from found_tree_of(conversation)
        _check_found(conversation, tree)
    return tree


def _check_found(conversation: Conversation, tree: int) -> None:
    if not tree and conversation.runtime.read_only:
        raise SessionNotFoundError(
            f"there is no conversation {conversation.name!r}, and a read-only memory creates none; "
            "MemorySystem.conversations() lists all"
        )


def read_in_tree(conversation: Conversation, read: Callable[[Conn, int], T]) -> Flow[T]:
    """The result of a read that gets the id of the conversation's tree, which its transaction finds.

    Raises:
        SessionNotFoundError: As for `tree_of`.
    """
    owner, name = conversation.runtime.owner, conversation.name

    def find_and_read(conn: Conn) -> tuple[int, T]:
        tree = conversation.tree or trees.find(conn, owner, name) or NO_TREE
        return tree, read(conn, tree)

    conversation._tree, result = yield from Sql(find_and_read)
    _check_found(conversation, conversation._tree)
    return result


def found_tree_of(conversation: Conversation) -> Flow[int]:
    """The id of the conversation's tree, or `NO_TREE`, in a read-only memory too."""
    tree = conversation.tree
    if not tree:
        owner, name = conversation.runtime.owner, conversation.name
        found = yield from Sql(lambda conn: trees.find(conn, owner, name))
        tree = conversation._tree = found or NO_TREE
    return tree


def created_tree_of(conversation: Conversation) -> Flow[int]:
    """The id of the conversation's tree, which is created if it does not exist.

    If the tree is erased after the step, this is still its id, and a write to it raises SessionNotFoundError.
    """
    tree = conversation.tree
    if not tree:
        owner, name, now = conversation.runtime.owner, conversation.name, time.time()
        tree = yield from Sql(lambda conn: trees.find_or_create(conn, owner, name, now), write=True)
        conversation._tree = tree
    return tree


def node_in(conn: Conn, tree: int, node_id: int) -> NodeRow:
    """A node by its id.

    Raises:
        NodeNotFoundError: The conversation has no such node.
    """
    row = nodes.by_seq(conn, tree, node_id) if is_key(node_id) else None
    if row is None:
        last = trees.head(conn, tree).next_seq - 1
        raise NodeNotFoundError(
            f"there is no node {node_id!r} in this conversation; its nodes are numbered 1 to {last}"
            if last
            else f"there is no node {node_id!r}: this conversation is empty"
        )
    return row
