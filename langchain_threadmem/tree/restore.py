"""Verb: restoring a saved conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import encode
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import copying, graph, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import ConversationNode

HIGHEST_ID = 2**62


def restore(conversation: Conversation, saved: Sequence[ConversationNode], tip: int | None) -> Flow[None]:
    """Fill an empty conversation with nodes that were saved, under the ids they had.

    Raises:
        InvalidGraphStateError: The nodes do not form a tree.
        InputError: The conversation is not empty, or a message id is used by more than one live node.
    """
    graph.validate(saved)
    nodes_by_id = {node.id: node for node in sorted(saved, key=lambda node: node.id)}
    known = nodes_by_id.keys()
    ordered = list(nodes_by_id.values())
    for node in ordered:
        if node.superseded_by is not None and node.superseded_by not in known:
            raise InputError(
                f"node {node.id} is superseded by node {node.superseded_by}, which there is not; "
                "add that node, or leave superseded_by out"
            )
    if ordered and ordered[-1].id > HIGHEST_ID:
        raise InputError(f"node {ordered[-1].id} has too high a number; the highest is {HIGHEST_ID}")
    rows = [
        copying.Saved(
            node.id,
            node.parent_id,
            node.message.id or f"node-{node.id}",
            node.message.type,
            encode(node.message, conversation.runtime.parts.write),
            node.timestamp.timestamp(),
            int(node.state),
            node.superseded_by,
            node.summary,
        )
        for node in map(nodes_by_id.__getitem__, parents_first({n.id: n.parent_id for n in ordered}))
    ]
    live = Counter(row.message for row in rows if row.state == State.LIVE)
    if twice := [message for message, count in live.items() if count > 1]:
        raise InputError(
            f"message ids used by more than one live node: {twice!r}; give each its own, or none"
        )
    if tip is None and ordered:
        tip = next((node.id for node in reversed(ordered) if node.state == State.LIVE), ordered[-1].id)
    tree = yield from tree_of(conversation)

    def fill(conn: Conn) -> None:
        trees.lock(conn, tree)
        if trees.head(conn, tree).next_seq > 1:
            raise InputError(
                f"conversation {conversation.name!r} holds messages already; "
                "load into another, or reset() it first"
            )
        copying.restore(conn, tree, rows, tip)

    yield from Sql(fill, write=True)
