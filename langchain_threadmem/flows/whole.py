"""The whole conversation at once: emptying it, and putting back what was saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.bodies import encode
from langchain_threadmem.core.nodes import ConversationNode, State
from langchain_threadmem.core.splicing import parents_first
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.flows.unindex import Removed, delete_summaries, drop
from langchain_threadmem.storage.queries import (
    checkpoints,
    digests,
    marks,
    nodes,
    removal,
    restoring,
    trees,
    units,
)
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn

HIGHEST_ID = 2**62
Cascade = Literal["stale", "delete"]
"""What becomes of the summaries above a conversation that is emptied."""


def reset(conversation: Conversation) -> Flow[None]:
    """Remove every message of the conversation, with its words, its vectors and its checkpoints."""
    yield from erase(conversation.runtime, conversation.name)


def erase(runtime: Runtime, name: str, cascade: Cascade = "stale") -> Flow[None]:
    """Empty a conversation in every scope, its summaries among them, and delete its checkpoints.

    Summaries of the long-term memory that cover it are stale from then on, or are deleted; nothing else
    changes.
    """
    owner = runtime.owner

    def clear(conn: Conn) -> Removed:
        scopes = checkpoints.scopes(conn, owner, name)
        removed = Removed({}, any(marks.indexed(conn, tree) for _, tree in scopes))
        above = digests.tree_of(conn, owner, "")
        if above is not None:
            trees.lock(conn, above)
            digests.clear_drafts(conn, above)
        for scope, tree in scopes:
            trees.lock(conn, tree)
            if scope == SUMMARIES and above is not None:
                covering = sorted(units.above_tree(conn, tree))
                if cascade == "delete":
                    delete_summaries(conn, owner, above, covering)
                    removed.keys[above] = covering
                else:
                    units.mark_stale(conn, covering)
            removed.keys[tree] = [row.key for row in nodes.since(conn, tree)]
            removal.clear(conn, tree, owner)
            checkpoints.clear(conn, tree)
        return removed

    yield from drop(runtime, (yield from Sql(clear, write=True)))


def restore(conversation: Conversation, saved: Sequence[ConversationNode], tip: int | None) -> Flow[None]:
    """Fill an empty conversation with nodes that were saved, under the ids they had.

    Raises:
        InvalidGraphStateError: The nodes do not form a tree.
        InputError: The conversation is not empty, or a message id is used by more than one live node.
    """
    tree_core.validate(saved)
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
        restoring.Saved(
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
        restoring.restore(conn, tree, rows, tip)

    yield from Sql(fill, write=True)
