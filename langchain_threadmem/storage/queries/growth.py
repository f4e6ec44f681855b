"""Growing a tree: appending messages, and superseding what was replaced or moved.

Every function here runs in a write transaction and is safe to run again. Appending to the tip, which is
what nearly every call does, costs one SELECT, one UPDATE and one INSERT for all its messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, bindparam, desc, exists, literal_column, select, union_all, update

from langchain_threadmem.core.nodes import MessageSummary, State
from langchain_threadmem.errors import MessageIdConflictError, NodeNotFoundError
from langchain_threadmem.storage.queries import summaries, trees
from langchain_threadmem.storage.queries.nodes import NodeRow
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    POSITION_BITS,
    embedding,
    node,
    segment,
    summary,
    tree,
)
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within


class _Tip(Enum):
    TIP = 0


TIP: Final = _Tip.TIP
"""As a parent: wherever the active thread ends when the write happens."""

Parent = int | None | _Tip


class Draft(NamedTuple):
    """A message on its way into the tree.

    Attributes:
        message: Its id.
        role: LangChain's type: human, ai, system, tool ...
        body: JSON text, see `core.bodies`.
        created: Seconds since 1970, UTC.
        given: Whether the id came with the message; one made for it cannot be taken already.
    """

    message: str
    role: str
    body: str
    created: float
    given: bool


class Saved(NamedTuple):
    """A node as it was saved elsewhere, to be put back under its own number."""

    seq: int
    parent: int | None
    message: str
    role: str
    body: str
    created: float
    state: int
    superseded_by: int | None
    summary: MessageSummary | None


class Placed(NamedTuple):
    """Where a draft lives now, or has lived all along; `message` is set if that is under another id."""

    key: int
    seq: int
    parent: int | None
    created: float
    state: int = State.LIVE
    superseded_by: int | None = None
    message: str | None = None


class _Anchor(NamedTuple):
    """The node that the next message goes under, and whether its next key is in use."""

    key: int | None
    seq: int | None
    taken: bool


_next = node.alias("following")
_taken = exists().where(_next.c.key == node.c.key + literal_column("1"))
_START = Statement(
    select(tree.c.tip, tree.c.system, trees.newest.c.key, trees.newest.c.seq)
    .select_from(tree)
    .outerjoin(trees.newest, trees.is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_TIP = Statement(select(node.c.key, node.c.seq, _taken).where(node.c.key == bindparam("key")), "key")
_ANCHOR = Statement(
    select(node.c.key, node.c.seq, _taken).where(
        node.c.tree == bindparam("tree"), node.c.seq == bindparam("seq")
    ),
    "tree",
    "seq",
)
_PLACED = node.c["key", "seq", "parent", "created", "state", "superseded_by"]
_of_message = select(node.c.body, *_PLACED).where(
    node.c.tree == bindparam("tree"), node.c.message == bindparam("message")
)
_KNOWN = Statement(
    # Asked by state, as the indexes over message ids are; the live place first, else the newest.
    union_all(
        _of_message.where(node.c.state == literal_column("0")),
        _of_message.where(node.c.state > literal_column("0")),
    ).order_by("state", desc("seq")),
    "tree",
    "message",
)
_STORED = Statement(
    select(node.c.body, *_PLACED, node.c.message).where(node.c.key == bindparam("key")),
    "key",
)
_NEW_SEGMENT = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    "tree",
    "parent",
)
_INSERT = insert_of(node)
_SUPERSEDE = Statement(
    update(node)
    .where(within(node.c.key, "keys"))
    .values(state=int(State.SUPERSEDED), superseded_by=bindparam("by", type_=BigInteger())),
    "keys",
    "by",
)
_newest_system = (
    select(node.c.key)
    .where(node.c.tree == bindparam("tree"), node.c.role == "system", node.c.state == int(State.LIVE))
    .order_by(node.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
_RENEW_SYSTEM = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"), within(tree.c.system, "keys"))
    .values(system=_newest_system),
    "tree",
    "keys",
)
_MOVED = Statement(
    update(node)
    .where(node.c.key == bindparam("old"))
    .values(state=int(State.SUPERSEDED), superseded_by=bindparam("by")),
    "by",
    "old",
)
COPIES = tuple(
    Statement(
        table.insert().from_select(
            [column.name for column in table.columns],
            select(
                bindparam("new", type_=BigInteger()),
                *(column for column in table.columns if column.name != "key"),
            ).where(table.c.key == bindparam("old")),
        ),
        "new",
        "old",
    )
    for table in (summary, embedding)
)
"""Give a node under a new key what was derived from it: parameters `new` and `old`."""


def append(conn: Conn, tree_id: int, drafts: Sequence[Draft], parent: Parent = TIP) -> list[Placed]:
    """Write messages as a chain below a node, and make the last one the tip.

    A message whose id is stored already, with the same content, stays where it is, and what follows it in
    `drafts` goes below it: the same append twice is once. A system message equal to the newest one is
    ignored.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: Messages in order.
        parent: Number of the node to go below; `None` for a new root; `TIP` for the active tip.

    Returns:
        The place of each draft, in order.

    Raises:
        MessageIdConflictError: An id is stored with other content.
        NodeNotFoundError: `parent` is no node of this tree.
    """
    # Locked by a statement of its own: a row that PostgreSQL waited for comes with stale joined columns.
    trees.lock(conn, tree_id)
    start = conn.one(_START, tree_id)
    assert start is not None, f"tree {tree_id} is gone"
    tip, old_system, newest_key, last_seq = start
    next_seq, system = (last_seq or 0) + 1, old_system
    if parent is not TIP:
        anchor = _anchor(conn, tree_id, parent)
    elif tip is None:
        anchor = _Anchor(newest_key, last_seq, taken=False)
    else:
        anchor = _Anchor(*conn.all(_TIP, tip)[0])
    known = _known(conn, tree_id, drafts)
    newest = None if system is None else _system_in_force(conn, system, drafts)
    rows: list[tuple[object, ...]] = []
    places: list[Placed] = []
    for draft in drafts:
        if draft.role == "system" and newest is not None and newest[0] == draft.body:
            places.append(newest[1])
            continue
        if draft.message in known:
            place = _same(draft, *known[draft.message])
            pending = rows and place.seq >= rows[0][2]  # type: ignore[operator]
            if pending:
                anchor = _Anchor(place.key, place.seq, taken=place.key != rows[-1][0])
            else:
                anchor = _anchor(conn, tree_id, place.seq)
                # A draft of this call may be about to take the next key.
                anchor = anchor._replace(taken=anchor.taken or any(row[0] == place.key + 1 for row in rows))
            places.append(place)
            continue
        key = _next_key(conn, tree_id, anchor)
        place = Placed(key, next_seq, anchor.seq, draft.created)
        rows.append((key, tree_id, *place[1:3], *draft[:4], int(State.LIVE), None))
        places.append(place)
        anchor = _Anchor(key, next_seq, taken=False)
        next_seq += 1
        if draft.given:
            known[draft.message] = (draft.body, place)
        if draft.role == "system":
            system, newest = key, (draft.body, place._replace(message=draft.message))
    if rows:
        conn.many(_INSERT, rows)
        if tip is not None or system != old_system:
            trees.settle(conn, tree_id, rows[-1][0], system)  # type: ignore[arg-type]
    return places


def replace(
    conn: Conn, tree_id: int, drafts: Sequence[Draft], parent: int | None, replaced: Sequence[tuple[int, int]]
) -> list[Placed]:
    """Supersede nodes and write messages below `parent` in their stead.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        drafts: The new version.
        parent: Number of the node it goes below; `None` for a root.
        replaced: Key and number of each node that it replaces, the replaced message first.

    Returns:
        The place of each draft.
    """
    keys = [key for key, _ in replaced]
    # Superseded first, since a new version may keep the message id and only one place may be live.
    supersede(conn, tree_id, keys, None)
    for message, (_, place) in _known(conn, tree_id, drafts).items():
        if place.state == State.LIVE:
            raise _conflict(message, place)
    places = append(conn, tree_id, [draft._replace(given=False) for draft in drafts], parent)
    supersede(conn, tree_id, keys, places[0].seq)
    return places


def supersede(conn: Conn, tree_id: int, keys: Iterable[int], by: int | None) -> None:
    """Mark nodes as replaced by the node numbered `by`; they stay in history."""
    listed = json.dumps(list(keys))
    conn.run(_SUPERSEDE, listed, by)
    conn.run(_RENEW_SYSTEM, tree_id, listed)
    trees.changed(conn, tree_id)


def move(conn: Conn, tree_id: int, moved: Sequence[NodeRow], parent: int | None) -> list[Placed]:
    """Give nodes new places below another parent; their old rows point at the new ones.

    Args:
        conn: A write transaction.
        tree_id: The tree.
        moved: A node and live nodes below it, in the order of their numbers; the first is the root of the
            move.
        parent: Number of the node that it goes below; `None` for a new root.

    Returns:
        The new places, in the order of `moved`.
    """
    head = trees.head(conn, tree_id)
    next_seq = head.next_seq
    anchors = {moved[0].seq: _anchor(conn, tree_id, parent)}  # under which each old node is to live
    ends: dict[int, _Anchor] = {}  # new places by the number of the old node
    places: list[Placed] = []
    for old in moved:
        under = anchors.get(old.seq) or ends[old.parent]  # type: ignore[index]
        key = _next_key(conn, tree_id, under)
        if old.parent in ends:
            ends[old.parent] = under._replace(taken=True)
        ends[old.seq] = _Anchor(key, next_seq, taken=False)
        places.append(Placed(key, next_seq, under.seq, old.created))
        next_seq += 1
    conn.many(_MOVED, [(place.seq, old.key) for old, place in zip(moved, places, strict=True)])
    conn.many(
        _INSERT,
        [
            (place.key, tree_id, place.seq, place.parent, *old[3:7], int(State.LIVE), None)
            for old, place in zip(moved, places, strict=True)
        ],
    )
    pairs = [(place.key, old.key) for old, place in zip(moved, places, strict=True)]
    for copy in COPIES:
        conn.many(copy, pairs)
    trees.settle(conn, tree_id, {old: new for new, old in pairs}.get(head.tip, head.tip), head.system)  # type: ignore[arg-type]
    conn.run(_RENEW_SYSTEM, tree_id, json.dumps([old for _, old in pairs]))
    trees.changed(conn, tree_id)
    return places


def restore(conn: Conn, tree_id: int, saved: Sequence[Saved], tip: int | None) -> None:
    """Fill an empty tree with nodes under the numbers they had.

    Args:
        conn: A write transaction.
        tree_id: A tree without nodes.
        saved: Nodes in the order of their numbers, parents before children.
        tip: Number of the node in which the active thread ends.
    """
    ends: dict[int | None, _Anchor] = {None: _Anchor(None, None, taken=False)}
    system = None
    for row in saved:
        key = _next_key(conn, tree_id, ends[row.parent])
        ends[row.parent] = ends[row.parent]._replace(taken=True)
        ends[row.seq] = _Anchor(key, row.seq, taken=False)
        if row.role == "system" and row.state == State.LIVE:
            system = key
    conn.many(_INSERT, [(ends[row.seq].key, tree_id, *row[:-1]) for row in saved])
    for row in saved:
        if row.summary is not None:
            summaries.put(conn, tree_id, ends[row.seq].key or 0, row.summary)
    trees.settle(conn, tree_id, ends[tip].key, system)


def _same(draft: Draft, body: str, place: Placed) -> Placed:
    if body != draft.body:
        raise _conflict(draft.message, place)
    return place


def _conflict(message: str, place: Placed) -> MessageIdConflictError:
    return MessageIdConflictError(
        f"message id {message!r} is taken by node {place.seq}, which is another message; "
        "nothing was written: use edit() to replace that one, or give this one another id"
    )


def _system_in_force(conn: Conn, key: int, drafts: Sequence[Draft]) -> tuple[str, Placed] | None:
    """The newest system message, if any draft is to be compared with it."""
    if all(draft.role != "system" for draft in drafts):
        return None
    row = conn.one(_STORED, key)
    return (row[0], Placed(*row[1:])) if row else None


def _known(conn: Conn, tree_id: int, drafts: Sequence[Draft]) -> dict[str, tuple[str, Placed]]:
    known = {}
    for draft in drafts:
        if draft.given and (row := conn.one(_KNOWN, tree_id, draft.message)):
            known[draft.message] = (row[0], Placed(*row[1:]))
    return known


def _anchor(conn: Conn, tree_id: int, parent: int | None) -> _Anchor:
    if parent is None:
        return _Anchor(None, None, taken=False)
    row = conn.one(_ANCHOR, tree_id, parent)
    if row is None:
        raise NodeNotFoundError(f"there is no node {parent!r} in this conversation to continue")
    return _Anchor(*row)


def _next_key(conn: Conn, tree_id: int, anchor: _Anchor) -> int:
    """The key below a node: the next position of its segment, or the first of a new one."""
    key = anchor.key
    if key is not None and not anchor.taken and key & LAST_POSITION != LAST_POSITION:
        return key + 1
    row = conn.one(_NEW_SEGMENT, tree_id, key)
    assert row is not None
    return int(row[0]) << POSITION_BITS
