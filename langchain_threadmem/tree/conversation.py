"""A conversation: its name, its options and the id of its tree."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, NodeNotFoundError
from langchain_threadmem.messages.ids import is_key
from langchain_threadmem.messages.windows import Window
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.nodes import NodeRow

if TYPE_CHECKING:
    from langchain_threadmem.summaries.summarizers import Summarizer
    from langchain_threadmem.threads.selectors import AnySelector


OnFailure = Literal["latest", "root", "raise"]
"""Where a message goes whose selector failed."""


@dataclass
class Conversation:
    """A conversation and its options; see `ChatMemory` for what they mean."""

    runtime: Runtime
    name: str
    selector: AnySelector
    summarizer: Summarizer | None = None
    context_depth: int = 5
    window: Window | None = None
    single_tree: bool = False
    on_selection_failure: OnFailure = "latest"
    _tree: int = field(default=0, init=False)

    @property
    def tree(self) -> int:
        """Id of its tree; 0 until it was looked up, and once it was erased."""
        return 0 if self._tree in self.runtime.gone else self._tree


def check_on_failure(choice: str) -> None:
    """Refuse an unknown `on_selection_failure`.

    Raises:
        InputError: It is none of the three.
    """
    if choice not in get_args(OnFailure):
        raise InputError(f"on_selection_failure={choice!r} is not one of 'latest', 'root', 'raise'")


def tree_of(conversation: Conversation) -> Flow[int]:
    """The id of the conversation's tree, made at the first use of the conversation."""
    if not conversation.tree:
        owner, name, now = conversation.runtime.owner, conversation.name, time.time()
        conversation._tree = yield from Sql(
            lambda conn: trees.find_or_create(conn, owner, name, now), write=True
        )
    return conversation.tree


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
