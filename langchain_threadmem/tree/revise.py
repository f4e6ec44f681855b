"""Verbs that change a tree: edit, regenerate, place, checkout and restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError, InvalidGraphStateError
from langchain_threadmem.messages.codec import MessageInput, encode, messages_of
from langchain_threadmem.messages.roles import OPENING
from langchain_threadmem.messages.tool_pairs import RESULT, calls_tools
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import copying, graph, nodes, superseding, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.append import Draft, Written, drafts_of
from langchain_threadmem.tree.conversation import Conversation, created_tree_of, node_in, tree_of
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import (
    BY_HAND,
    KEPT_BY_HAND,
    ConversationNode,
    Placement,
    known_chances,
    nodes_of,
)
from langchain_threadmem.tree.nodes import NodeRow, Outline

HIGHEST_ID = 2**62
FIRST = 1
"""The number of the first node, which may be a system message above the roots of threads."""


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.written)
def edit(conversation: Conversation, node_id: int, new: MessageInput) -> Flow[ConversationNode]:
    """Write a new version of a message; the old version and its answers are superseded."""
    tree = yield from tree_of(conversation)
    old_role = (yield from Sql(lambda conn: node_in(conn, tree, node_id))).role
    versions = messages_of(new, role=old_role)
    if len(versions) != 1:
        raise InputError(
            f"edit() replaces node {node_id!r} by one message, not by {len(versions)}; pass one message"
        )
    message = versions[0]
    drafts = drafts_of(versions, other=conversation.runtime.parts.write)

    def write(conn: Conn) -> list[ConversationNode]:
        trees.lock(conn, tree)
        old, older = _current(conn, tree, node_in(conn, tree, node_id))
        if old.role != message.type:
            raise InputError(
                f"node {node_id!r} has the role {old.role!r}, and the new version the role {message.type!r}; "
                "pass a message of the same role, or text"
            )
        if old.role != "system":
            answers = nodes.answers(conn, tree, old.key, old.seq)
            written = _replace(conn, tree, drafts, old.parent, [old, *answers])
            if old.parent in (None, FIRST):
                _keep_title(conn, old, written)
            if older:
                # Otherwise the path from an old version to the current version would grow with each edit.
                superseding.supersede(conn, tree, older, written.nodes[0].id)
            return written.nodes
        # A system message has no answers, and the active thread does not change.
        tip = trees.head(conn, tree).tip
        written = _replace(conn, tree, drafts, old.parent, [old])
        if tip != old.key:
            trees.move_tip(conn, tree, tip)
        return written.nodes

    return (yield from Sql(write, write=True))[0]


@telemetry.observed("update_memory", telemetry.of_conversation, telemetry.nodes)
def regenerate(conversation: Conversation, node_id: int, new: MessageInput) -> Flow[list[ConversationNode]]:
    """Write a new answer of a turn; the old AI and tool messages are superseded, later turns stay."""
    tree = yield from tree_of(conversation)
    messages = messages_of(new, role="ai")
    drafts = drafts_of(messages, other=conversation.runtime.parts.write)
    if not messages:
        raise InputError("regenerate() needs at least one message; pass the new answer")
    for message in messages:
        if message.type in OPENING:
            raise InputError(
                f"an answer consists of AI and tool messages; leave out the {message.type} message"
            )

    def write(conn: Conn) -> list[ConversationNode]:
        trees.lock(conn, tree)
        question = _moved_to(conn, tree, node_in(conn, tree, node_id))
        visited = Visited()
        while question.role != "human":
            visited.add(question.key)
            if question.parent is None:
                raise InputError(f"node {node_id!r} does not answer a human message; call edit() instead")
            question = _moved_to(conn, tree, node_in(conn, tree, question.parent))
        answers = nodes.answers(conn, tree, question.key, question.seq)
        return _replace(conn, tree, drafts, question.seq, answers).nodes

    return (yield from Sql(write, write=True))


def place_turn(
    conn: Conn, tree: int, node_id: int, parent_id: int | None, why: Placement | None
) -> tuple[NodeRow, Placement | None]:
    """Move a turn below a parent; returns the new node of its first message and the placement.

    Args:
        conn: A write transaction.
        tree: The tree of the conversation.
        node_id: Number of the first node of the turn.
        parent_id: Number of the new parent; `None` for a new root.
        why: The placement to store; `None` for no placement.

    Raises:
        InputError: The node is not live, or its new parent calls tools.
        InvalidGraphStateError: The new parent is the node or descends from it.
    """
    trees.lock(conn, tree)
    node = node_in(conn, tree, node_id)
    if node.state != State.LIVE:
        successor = f"; pass node {node.superseded_by}, which replaced it" if node.superseded_by else ""
        raise InputError(f"node {node_id!r} is {State(node.state).label} and cannot be moved{successor}")
    below = nodes.children(conn, tree, [(node.key, node.seq)])
    following = [row for row in below if row.state == State.LIVE or _is_version(conn, tree, row)]
    if parent_id is not None:
        moved = {node.key, *(row.key for row in following)}
        _check_parent(conn, node_in(conn, tree, parent_id), moved, node_id)
    if node.parent == parent_id:
        stored = stored_placements.by_key(conn, node.key)
        if why is not BY_HAND or stored is None or not stored.chances:
            return node, stored
        confirmed = replace(KEPT_BY_HAND, title=stored.title)
        stored_placements.put(conn, [(node.key, node.message, confirmed)])
        trees.changed(conn, tree)
        return node, confirmed
    moved_node = superseding.move(conn, tree, node, following, parent_id)
    if why is not None:
        stored_placements.put(conn, [(moved_node.key, node.message, why)])
    return moved_node, why


def checkout(conversation: Conversation, node_id: int) -> Flow[ConversationNode]:
    """Make a node the tip of the active thread; for a tool call, or a result, the last result of the call."""
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> NodeRow:
        trees.lock(conn, tree)
        row = node_in(conn, tree, node_id)
        visited = Visited()
        while results := _results_below(conn, tree, row):
            visited.add(row.key)
            row = results[-1]
        trees.move_tip(conn, tree, row.key)
        return row

    return nodes_of([(yield from Sql(write, write=True))], conversation.runtime.parts.read)[0]


def _results_below(conn: Conn, tree: int, row: NodeRow) -> list[NodeRow]:
    """The tool results directly below a node, the newest last, after results that were superseded."""
    below = nodes.children(conn, tree, [(row.key, row.seq)])
    results = [child for child in below if child.role == RESULT]
    results.sort(key=lambda child: (child.state == State.LIVE, child.seq))
    return nodes.by_keys(conn, [child.key for child in results[-1:]])


def _current(conn: Conn, tree: int, row: NodeRow) -> tuple[NodeRow, list[int]]:
    """The current version of a message, and the keys of the older versions from `row` to it."""
    older: list[int] = []
    visited = Visited()
    while row.superseded_by is not None:
        visited.add(row.key)
        newer = node_in(conn, tree, row.superseded_by)
        if newer.role != row.role:
            break  # It was superseded together with its turn and has no newer version.
        older.append(row.key)
        row = newer
    return row, older


def _is_version(conn: Conn, tree: int, child: Outline) -> bool:
    """Whether a node is an older version of a message, and not the former place of a moved message."""
    row = nodes.by_key(conn, child.key)
    return row is not None and row.superseded_by is not None and _moved_to(conn, tree, row) is row


def _moved_to(conn: Conn, tree: int, row: NodeRow) -> NodeRow:
    """The newest place of a moved message; the node itself if its message was not moved."""
    visited = Visited()
    while row.superseded_by is not None:
        visited.add(row.key)
        newer = nodes.by_seq(conn, tree, row.superseded_by)
        if newer is None or (newer.message, newer.created) != (row.message, row.created):
            break
        row = newer
    return row


def _replace(
    conn: Conn, tree: int, drafts: Sequence[Draft], parent: int | None, old: Sequence[NodeRow | Outline]
) -> Written:
    """Write a new version, or return the stored version if it is the same."""
    first = nodes.by_message(conn, tree, drafts[0].id) if drafts[0].given else None
    if first and (first.state, first.body, first.parent) == (State.LIVE, drafts[0].body, parent):
        return writer.append(conn, tree, drafts)
    live = [row.key for row in old if row.state == State.LIVE]
    return superseding.replace(conn, tree, drafts, parent, live)


def _keep_title(conn: Conn, old: NodeRow, written: Written) -> None:
    """Give the new version of a message the title of the thread that the old version began."""
    placement = stored_placements.by_key(conn, old.key)
    if placement is not None and placement.title:
        key, message = written.keys[0], str(written.nodes[0].message.id)
        stored_placements.put(conn, [(key, message, Placement("", title=placement.title))])


def _check_parent(conn: Conn, parent: NodeRow, moved: set[int], node_id: int) -> None:
    above = nodes.spans(conn, parent.key)
    if any(nodes.contain(above, key) for key in moved):
        raise InvalidGraphStateError(
            f"node {node_id!r} cannot be placed below node {parent.seq}, which is the same node or descends "
            "from it; choose a parent outside the turn"
        )
    message = nodes_of([parent])[0].message
    if calls_tools(message):
        raise InputError(
            f"node {parent.seq} calls tools, so only their results can follow it; "
            "place the turn below the last answer of that turn"
        )


def restore(conversation: Conversation, saved: Sequence[ConversationNode], tip: int | None) -> Flow[None]:
    """Write saved nodes with their ids to an empty conversation.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        InputError: The conversation is not empty, or more than one live node has the same message id.
    """
    graph.validate(saved)
    nodes_by_id = {node.id: node for node in sorted(saved, key=lambda node: node.id)}
    ordered = list(nodes_by_id.values())
    for node in ordered:
        if node.superseded_by is not None and node.superseded_by not in nodes_by_id:
            raise InputError(
                f"node {node.id} is superseded by node {node.superseded_by}, which does not exist; "
                "add that node, or set superseded_by to None"
            )
    if ordered and ordered[-1].id > HIGHEST_ID:
        raise InputError(f"the node id {ordered[-1].id} is too high; use ids up to {HIGHEST_ID}")
    rows = [
        copying.SavedNode(
            node.id,
            node.parent_id,
            node.message.id or f"node-{node.id}",
            node.message.type,
            encode(node.message, conversation.runtime.parts.write),
            node.timestamp.timestamp(),
            int(node.state),
            node.superseded_by,
            node.summary,
            node.placement and known_chances(node.placement, nodes_by_id),
        )
        for node in map(nodes_by_id.__getitem__, parents_first({n.id: n.parent_id for n in ordered}))
    ]
    live = Counter(row.message for row in rows if row.state == State.LIVE)
    if repeated := [message for message, count in live.items() if count > 1]:
        raise InputError(
            f"message ids of more than one live node: {repeated!r}; give each message its own id, or no id"
        )
    if tip is None and ordered:
        tip = next((node.id for node in reversed(ordered) if node.state == State.LIVE), ordered[-1].id)
    tree = yield from created_tree_of(conversation)

    def fill(conn: Conn) -> None:
        trees.lock(conn, tree)
        if trees.head(conn, tree).next_seq > 1:
            raise InputError(
                f"conversation {conversation.name!r} is not empty; load into another conversation, or call "
                "reset() first"
            )
        copying.restore(conn, tree, rows, tip)

    yield from Sql(fill, write=True)
