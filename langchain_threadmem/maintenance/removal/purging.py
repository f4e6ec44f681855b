"""SQL: removing single messages from the history of a conversation.

The number and the key of a node are never reused, since vectors, checkpoints and other readers refer to them.
A purged node therefore remains as an empty row that no reader returns, and its children become children of
its parent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from sqlalchemy import bindparam, delete, func, or_, select, update

from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, message_summary, node, placement, tree, unit
from langchain_threadmem.storage.statements import Conn, Statement, within, within_rows
from langchain_threadmem.tree import grafts, nodes, placements, trees
from langchain_threadmem.tree.graph import circular, nearest_remaining, spliced
from langchain_threadmem.tree.nodes import NodeRow

EMPTY_BODY = "{}"
"""The body of a purged node."""


_PURGE = Statement(
    update(node)
    .where(within(node.c.key, "keys"))
    .values(state=int(State.PURGED), body=EMPTY_BODY, message="", superseded_by=None),
    "keys",
)
_REMOVED_BEFORE = Statement(
    node_keys.keys_of(bindparam("tree")).where(
        node.c.state == int(State.REMOVED), node.c.created < bindparam("before")
    ),
    *("tree", "before"),
)
_WITH_PURGED = Statement(
    node_keys.keys_of(bindparam("tree")).with_only_columns(*node.c["key", "seq", "parent", "state"]), "tree"
)
_CLEAR_SUPERSEDED = Statement(
    update(node)
    .where(
        within_rows(
            node.c.key, node_keys.keys_of(bindparam("in")).where(within(node.c.superseded_by, "seqs"))
        )
    )
    .values(superseded_by=None),
    *("in", "seqs"),
)
_DELETE_DEPENDENT = tuple(
    Statement(delete(table).where(within(table.c.key, "keys")), "keys")
    for table in (message_summary, placement, unit)
)
_SYSTEM = Statement(
    node_keys.keys_of(bindparam("tree"))
    .with_only_columns(func.max(node.c.key))
    .where(node.c.role == "system", node.c.state == int(State.LIVE)),
    "tree",
)
_REPLACED = Statement(
    node_keys.keys_of(bindparam("tree"))
    .with_only_columns(*node.c["key", "message", "superseded_by"])
    .where(or_(node.c.state == int(State.SUPERSEDED), node.c.state == int(State.REMOVED))),
    "tree",
)
_MESSAGES = Statement(
    node_keys.keys_of(bindparam("tree")).with_only_columns(*node.c["key", "message"]), "tree"
)
_TREES_WITH_OLDER = Statement(
    select(tree.c.id, tree.c.conversation)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        node_keys.keys_of(tree.c.id)
        .where(node.c.created < bindparam("before"), node.c.state != int(State.PURGED))
        .exists(),
    )
    .order_by(tree.c.id),
    *("owner", "before"),
)


def with_older(conn: Conn, owner: str, before: float) -> list[tuple[int, str]]:
    """The trees and names of an owner's conversations with messages before a time."""
    return [(row[0], row[1]) for row in conn.all(_TREES_WITH_OLDER, owner, before)]


def with_versions(conn: Conn, tree_id: int, keys: Collection[int]) -> list[NodeRow]:
    """Nodes of a tree with all nodes that they have replaced: earlier versions, former places."""
    found = nodes.with_removed(conn, keys)
    replaced = {row[0]: row[1:] for row in conn.all(_REPLACED, tree_id)}
    while replaced:
        messages, seqs = {row.message for row in found}, {row.seq for row in found}
        more = [key for key, (message, by) in replaced.items() if message in messages or by in seqs]
        if not more:
            break
        for key in more:
            del replaced[key]
        found += nodes.with_removed(conn, set(more) - {row.key for row in found})
    return found


def copies(conn: Conn, tree_id: int, rows: Iterable[NodeRow]) -> list[NodeRow]:
    """The nodes of a tree with the messages of nodes of another tree."""
    messages = {row.message for row in rows}
    return nodes.with_removed(
        conn, [key for key, message in conn.all(_MESSAGES, tree_id) if message in messages]
    )


def purge(conn: Conn, owner: str, tree_id: int, keys: Collection[int], *, channel: bool = False) -> None:
    """Empty nodes of a tree permanently; they must have been removed from the indexes.

    The reasons for the places of later messages leave too, since they may quote the nodes. A conversation of
    which no message is left loses its checkpoints.

    Args:
        conn: A write transaction that has locked the tree.
        channel: Whether the tree belongs to another channel of a conversation: then its nodes keep their
            rows, since checkpoints refer to them.
    """
    rows = nodes.outline(conn, tree_id)
    if not channel and all(row.key in keys for row in rows):
        empty_tree(conn, tree_id, owner)
        return
    head = trees.head(conn, tree_id)
    parents = {row.seq: row.parent for row in rows}
    key_of = {row.seq: row.key for row in rows}
    purged = {row.seq for row in rows if row.key in keys}
    conn.many(grafts.SET_PARENT, [(under, key_of[seq]) for seq, under in spliced(parents, purged).items()])
    conn.run(_CLEAR_SUPERSEDED, tree_id, json.dumps(sorted(purged)))
    key_list = json.dumps(sorted(keys))
    conn.run(_PURGE, key_list)
    for statement in _DELETE_DEPENDENT:
        conn.run(statement, key_list)
    placements.drop_reasons(conn, tree_id, min(purged, default=head.next_seq))
    seq_of = {row.key: row.seq for row in rows}
    tip = None if head.tip is None else nearest_remaining(seq_of.get(head.tip), parents, purged)
    if tip is None:
        remaining = [row.seq for row in rows if row.seq not in purged]
        live = [row.seq for row in rows if row.seq not in purged and row.state == State.LIVE]
        tip = max(live or remaining, default=None)
    ((system,),) = conn.all(_SYSTEM, tree_id)
    trees.set_head(conn, tree_id, None if tip is None else key_of[tip], system)
    trees.changed(conn, tree_id)


def removed_before(conn: Conn, tree_id: int, before: float) -> list[int]:
    """The nodes that were stored before a time and removed from the conversation (`State.REMOVED`)."""
    return [key for (key,) in conn.all(_REMOVED_BEFORE, tree_id, before)]


def reattach(conn: Conn, tree_id: int) -> int:
    """Attach the nodes below purged nodes to their nearest remaining ancestors, as `purge` does.

    An append that raced with a purge could leave such nodes in databases of earlier versions.

    Returns:
        The number of these nodes.
    """
    trees.lock(conn, tree_id)
    rows = conn.all(_WITH_PURGED, tree_id)
    key_of = {seq: key for key, seq, _, _ in rows}
    parents = {seq: parent for _, seq, parent, _ in rows}
    purged = {seq for _, seq, _, state in rows if state == State.PURGED}
    if circular(parents):
        return 0  # The tree is damaged; `verify` reports it.
    moved = spliced(parents, purged)
    if moved:
        conn.many(grafts.SET_PARENT, [(under, key_of[seq]) for seq, under in moved.items()])
        trees.changed(conn, tree_id)
    return len(moved)
