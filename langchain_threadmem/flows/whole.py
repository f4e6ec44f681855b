"""The whole conversation at once: emptying it, and putting back what was saved."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.bodies import encode
from langchain_threadmem.core.nodes import ConversationNode, State
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.index import entries_of
from langchain_threadmem.flows.steps import Flow, Search, Sql
from langchain_threadmem.storage.queries import growth, marks, nodes, removal, trees
from langchain_threadmem.storage.statements import Conn


def reset(conversation: Conversation) -> Flow[None]:
    """Remove every message of the conversation, with its words and vectors; nothing else changes."""
    tree = yield from tree_of(conversation)
    runtime = conversation.runtime
    indexed = marks.index_of(runtime.embedder.model) if runtime.embedder.looked else ""

    def clear(conn: Conn) -> list[int]:
        trees.lock(conn, tree)
        entered = marks.get(conn, tree, marks.LEXICON).seq
        rows = nodes.since(conn, tree)
        known = [row.key for row in rows] if indexed and marks.get(conn, tree, indexed).documents else []
        removal.clear(conn, tree, runtime.owner, entries_of([row for row in rows if row.seq <= entered]))
        return known

    keys = yield from Sql(clear, write=True)
    if keys:
        index = yield from Search(runtime.index)
        if index is not None:
            yield from Search(lambda: index.remove(keys))


def restore(conversation: Conversation, saved: Sequence[ConversationNode], tip: int | None) -> Flow[None]:
    """Fill an empty conversation with nodes that were saved, under the ids they had.

    Raises:
        InvalidGraphStateError: The nodes do not form a tree.
        InputError: The conversation is not empty, or a node is older than its parent.
    """
    tree_core.validate(saved)
    ordered = sorted(saved, key=lambda node: node.id)
    for node in ordered:
        if node.parent_id is not None and node.parent_id > node.id:
            raise InputError(
                f"node {node.id} continues node {node.parent_id}, which was written after it; "
                "number the nodes in the order in which they were said"
            )
    rows = [
        growth.Saved(
            node.id,
            node.parent_id,
            node.message.id or f"node-{node.id}",
            node.message.type,
            encode(node.message),
            node.timestamp.timestamp(),
            int(node.state),
            node.superseded_by,
            node.summary,
        )
        for node in ordered
    ]
    if tip is None:
        tip = max((node.id for node in ordered if node.state == State.LIVE), default=None)
    tree = yield from tree_of(conversation)

    def fill(conn: Conn) -> None:
        trees.lock(conn, tree)
        if trees.head(conn, tree).next_seq > 1:
            raise InputError(
                f"conversation {conversation.name!r} holds messages already; "
                "load into another, or reset() it first"
            )
        growth.restore(conn, tree, rows, tip)

    yield from Sql(fill, write=True)
