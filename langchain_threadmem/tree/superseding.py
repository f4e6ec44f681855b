"""SQL: superseding, replacing, reviving and moving nodes; each function requires a write transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import BigInteger, Column, and_, bindparam, exists, or_, select, update

from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.messages.codec import UNREADABLE, decode_stored, give_ids, is_same_answer
from langchain_threadmem.messages.ids import own_id
from langchain_threadmem.messages.roles import ANSWERING
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import (
    State,
    embedding,
    message_summary,
    node,
    placement,
    segment,
    tree,
    unit,
)
from langchain_threadmem.storage.statements import Conn, Statement, within, within_rows
from langchain_threadmem.tree import grafts, nodes, placements, stale_marks, trees
from langchain_threadmem.tree.append import Draft, NodeWriter, Written, append, conflict, human_above
from langchain_threadmem.tree.graph import nearest_remaining, spliced
from langchain_threadmem.tree.nodes import NodeRow, Outline

_SUPERSEDE = Statement(
    update(node)
    .where(within(node.c.key, "keys"))
    .values(state=int(State.SUPERSEDED), superseded_by=bindparam("by", type_=BigInteger())),
    *("keys", "by"),
)
_newest_system = (
    node_keys.keys_of(bindparam("tree"))
    .where(node.c.role == "system", node.c.state == int(State.LIVE))
    .order_by(node.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
_RENEW_SYSTEM = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"), within(tree.c.system, "keys"))
    .values(system=_newest_system),
    *("tree", "keys"),
)
# The newest system message is searched in the whole tree, so only if a system message is revived.
_RENEW_SYSTEM_OF = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"))
    .where(exists().where(within(node.c.key, "keys"), node.c.role == "system"))
    .values(system=_newest_system),
    *("tree", "keys"),
)
_newer = node.alias("newer")
_REPLACED_BY = Statement(
    select(
        *node.c["key", "seq", "message"],
        and_(_newer.c.message == node.c.message, _newer.c.created == node.c.created),
    )
    .select_from(
        segment.join(node, node_keys.inside(node.c.key)).join(_newer, _newer.c.seq == node.c.superseded_by)
    )
    .where(
        segment.c.tree == bindparam("tree"),
        or_(node.c.state == int(State.SUPERSEDED), node.c.state == int(State.REMOVED)),
        within(_newer.c.key, "keys"),
    )
    .order_by(node.c.seq.desc()),
    *("tree", "keys"),
)
_REMOVE = Statement(
    update(node)
    .where(within(node.c.key, "keys"))
    .values(state=int(State.REMOVED), superseded_by=bindparam("by", type_=BigInteger())),
    *("keys", "by"),
)
_SET_BODY = Statement(
    update(node).where(node.c.key == bindparam("at")).values(body=bindparam("body")), "body", "at"
)
_REPLACE_SUCCESSOR = Statement(
    update(node)
    .where(
        within_rows(
            node.c.key, node_keys.keys_of(bindparam("in")).where(within(node.c.superseded_by, "seqs"))
        )
    )
    .values(superseded_by=bindparam("by", type_=BigInteger())),
    *("in", "seqs", "by"),
)
_REVIVE = Statement(
    update(node).where(within(node.c.key, "keys")).values(state=int(State.LIVE), superseded_by=None), "keys"
)
_COPIED = (
    [*message_summary.c["key", "title", "summary"]],
    [*embedding.c["key", "model", "vector"]],
    # Without the parent: a summary covers the messages of the old place.
    [*unit.c["key", "visits", "last_visit", "never_delete", "forgotten"]],
)


def _copy_of(columns: Sequence[Column[Any]]) -> Statement:
    key, *rest = columns
    return Statement(
        key.table.insert().from_select(
            [column.name for column in columns],
            select(bindparam("new", type_=BigInteger()), *rest).where(key == bindparam("old")),
        ),
        *("new", "old"),
    )


COPIES = tuple(map(_copy_of, _COPIED))
"""Copies of the rows of a node in other tables: parameters `new` and `old`, the keys of the nodes."""
_COPY_UNIT = COPIES[2]
COPY_CHOICE = _copy_of([*placement.c["key", "reason", "chances", "title"]])
"""The copy of the placement of a node; not for a moved node, whose placement is no longer valid."""


def replace(
    conn: Conn, tree_id: int, drafts: Sequence[Draft], parent: int | None, replaced: Sequence[int]
) -> Written:
    """Supersede nodes, and write the messages that replace them.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: The new messages.
        parent: Number of their parent; `None` for a root.
        replaced: Keys of the replaced nodes.

    Returns:
        The new nodes.
    """
    # A new version may have the same message id, and a message has at most one live node.
    supersede(conn, tree_id, replaced, None)
    question = None if parent is None else human_above(conn, tree_id, nodes.by_seq(conn, tree_id, parent))
    new = []
    for draft in drafts:
        stored = nodes.by_message(conn, tree_id, draft.id) if draft.given else None
        if stored is not None and stored.state == State.LIVE:
            if question is None or draft.role not in ANSWERING or not is_same_answer(stored.body, draft.body):
                raise conflict(stored)
            draft = draft._replace(id=own_id(draft.id, question.message))
            give_ids([(draft.message, draft.id)])
        new.append(draft)
    written = append(conn, tree_id, new, parent, fresh=True)
    conn.run(_SUPERSEDE, json.dumps(list(replaced)), written.nodes[0].id)
    return written


def supersede(conn: Conn, tree_id: int, keys: Iterable[int], by: int | None) -> None:
    """Mark nodes as superseded by the node with the number `by`."""
    replaced = list(keys)
    conn.run(_SUPERSEDE, json.dumps(replaced), by)
    _renew_derived(conn, tree_id, replaced)


def _renew_derived(conn: Conn, tree_id: int, keys: Sequence[int]) -> None:
    """Renew the newest system message, mark summaries as stale and invalidate caches after `keys` changed."""
    conn.run(_RENEW_SYSTEM, tree_id, json.dumps(keys))
    stale_marks.mark_stale(conn, stale_marks.ancestors(conn, keys))
    trees.changed(conn, tree_id)


EMPTY = "removed"
"""The key of the digest of a body, which is all that is left of a removed message without a checkpoint."""


def empty_body(message: str, body: str) -> str:
    """The body of a removed message that no checkpoint contains.

    Its digest identifies the message if a checkpoint with the message is stored later.

    Example:
        >>> empty_body("h1", "{}")
        '{"removed":"6a114d24b5bd873f81382662c0b9d1a4"}'
    """
    digest = hashlib.blake2b(f"{message} {body}".encode(), digest_size=16).hexdigest()
    return json.dumps({EMPTY: digest}, separators=(",", ":"))


def redact(
    conn: Conn, tree_id: int, keys: Sequence[int], version: int, seq: int, *, empties: bool = False
) -> None:
    """Remove all earlier versions of a message; a new version takes their place in each branch.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        keys: Keys of the earlier versions, the replaced version first.
        version: Key of the new version.
        seq: Number of the new version.
        empties: As for `remove`.
    """
    below = _remove(conn, tree_id, keys, seq, empties=empties)
    above = nodes.spans(conn, version)
    for child in below:
        if not nodes.contain(above, child.key):
            grafts.move(conn, tree_id, child.key, version, seq)
        elif child.key != version:  # The list has put the message below its own answer.
            conn.run(grafts.SET_PARENT, nodes.remaining(conn, tree_id, child.parent), child.key)
    for copy in (COPY_CHOICE, _COPY_UNIT):
        conn.run(copy, version, keys[0])


def remove(conn: Conn, tree_id: int, keys: Collection[int], *, empties: bool = False) -> None:
    """Remove nodes from the conversation; their children become children of the nodes above them.

    As after `purge`, the keys and numbers remain in use. Checkpoints that contain the nodes return them.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        keys: Keys of the nodes.
        empties: Whether the nodes are emptied if the conversation has no checkpoints.
    """
    rows = nodes.outline(conn, tree_id)
    removed = {row.seq for row in rows if row.key in keys}
    parents = {row.seq: row.parent for row in rows}
    key_of = {row.seq: row.key for row in rows}
    head = trees.head(conn, tree_id)
    tip = next((row.seq for row in rows if row.key == head.tip), None)
    tip = nearest_remaining(tip, parents, removed)
    if tip is None:
        live = (row.seq for row in rows if row.state == State.LIVE and row.seq not in removed)
        tip = max(live, default=None)
    _remove(conn, tree_id, list(keys), None, empties=empties)
    above = spliced(parents, removed)
    conn.many(grafts.SET_PARENT, [(under, key_of[seq]) for seq, under in above.items()])
    system = trees.head(conn, tree_id).system
    trees.set_head(conn, tree_id, None if tip is None else key_of[tip], system)


def remove_messages(conn: Conn, tree_id: int, ids: Iterable[str], *, empties: bool = False) -> list[int]:
    """`remove` messages with all their versions, by their ids; returns the keys of the removed nodes."""
    places = [place for id_ in ids for place in nodes.places(conn, tree_id, id_)]
    keys = [place.key for place in places if place.state not in nodes.HIDDEN]
    if keys:
        remove(conn, tree_id, keys, empties=empties)
    return keys


def _remove(conn: Conn, tree_id: int, keys: Sequence[int], by: int | None, *, empties: bool) -> list[Outline]:
    """Mark nodes as removed, and delete the reasons that may quote them; returns their children."""
    removed = nodes.by_keys(conn, keys)
    seqs = {row.seq for row in removed}
    below = nodes.children(conn, tree_id, [(row.key, row.seq) for row in removed])
    conn.run(_REMOVE, json.dumps(list(keys)), by)
    if empties and not trees.has_checkpoints(conn, tree_id):
        fill(conn, [(row.key, row.message, empty_body(row.message, row.body)) for row in removed])
    conn.run(_REPLACE_SUCCESSOR, tree_id, json.dumps(sorted(seqs)), by)
    placements.drop_reasons(conn, tree_id, min(seqs))
    _renew_derived(conn, tree_id, keys)
    return [row for row in below if row.key not in keys]


def fill(conn: Conn, bodies: Iterable[tuple[int, str, str]]) -> None:
    """Store the bodies of removed nodes, by key and message id."""
    seal = conn.seal
    conn.many(
        _SET_BODY,
        [(body if seal is None else seal.text(message, body), key) for key, message, body in bodies],
    )


def revive(conn: Conn, tree_id: int, keys: Iterable[int], kept: Collection[int]) -> list[int]:
    """Revive the nodes that removed nodes had superseded.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        keys: Keys of the removed nodes, which are superseded; none of them is revived.
        kept: Keys of the nodes that checkpoints refer to. The former place of a moved message is revived only
            if it is among them; otherwise the message was there only until a selector moved it.

    Returns:
        The keys of the revived nodes.
    """
    removed = set(keys)
    latest: dict[str, int] = {}
    seq_of: dict[int, int] = {}
    for key, seq, message, is_moved in conn.all(_REPLACED_BY, tree_id, json.dumps(list(removed))):
        if key not in removed and (key in kept or not is_moved) and not is_live(conn, tree_id, message):
            seq_of[key] = seq
            latest.setdefault(message, key)
    for graft, _, message in grafts.below(conn, tree_id, removed):
        if message in latest:
            grafts.move(conn, tree_id, graft, latest[message], seq_of[latest[message]])
    revived = list(latest.values())
    make_live(conn, tree_id, revived)
    return revived


def make_live(conn: Conn, tree_id: int, keys: Sequence[int]) -> None:
    """Mark superseded nodes of messages without a live node as live."""
    listed = json.dumps(keys)
    conn.run(_REVIVE, listed)
    conn.run(_RENEW_SYSTEM_OF, tree_id, listed)
    trees.changed(conn, tree_id)


def is_live(conn: Conn, tree_id: int, message: str) -> bool:
    """Whether a message has a live node."""
    row = nodes.by_message(conn, tree_id, message)
    return row is not None and row.state == State.LIVE


def move(conn: Conn, tree_id: int, old: NodeRow, following: Iterable[Outline], parent: int | None) -> NodeRow:
    """Write a node again under another parent; the new node supersedes the old node.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        old: The node.
        following: The children of the node that move with it.
        parent: Number of the new parent; `None` for a new root.

    Returns:
        The new node.

    Raises:
        PersistenceError: The message cannot be read.
    """
    (message,) = decode_stored([(old.message, old.body, old.role)])
    if UNREADABLE in message.response_metadata:
        raise PersistenceError(
            f"node {old.seq} cannot be read, so it cannot be moved; run verify() to see the reason"
        )
    head = trees.head(conn, tree_id)
    conn.run(_SUPERSEDE, json.dumps([old.key]), head.next_seq)
    trees.keep_use(conn, tree_id, head.used)
    writer = NodeWriter(conn, tree_id, head._replace(used=None))  # A move is no use of the conversation.
    under, parent = writer.under(parent)
    key, seq = writer.add(under, parent, *old[3:7]), head.next_seq
    writer.flush()
    for copy in COPIES:
        conn.run(copy, key, old.key)
    for row in following:
        grafts.move(conn, tree_id, row.key, key, seq)
    trees.set_head(conn, tree_id, key if head.tip == old.key else head.tip, head.system)
    _renew_derived(conn, tree_id, [old.key])
    return old._replace(key=key, seq=seq, parent=parent)
