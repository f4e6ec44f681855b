"""SQL: summaries of rank 1 and 2, and the units that they cover."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, bindparam, func, literal_column, select, update
from sqlalchemy import delete as sql_delete

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.index import removal, watermarks
from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.index.removal import Removed, take_out
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.watermarks import SUMMARIES_OF, Watermark
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import (
    SUMMARIES,
    State,
    node,
    summary,
    summary_draft,
    tree,
    unit,
    watermark,
)
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree import nodes, stale_marks, trees
from langchain_threadmem.tree.node import MessageSummary


class SummaryRow(NamedTuple):
    """A row of `schema.summary`: a summary and the messages that it covers."""

    key: int
    tree: int
    id: str
    rank: int
    level: int
    thread: int
    place: int
    messages: int
    started: float
    ended: float
    stale: int = 0


class StoredSummary(NamedTuple):
    """A summary, the key of the summary above it, and whether it covers several units."""

    row: SummaryRow
    parent: int | None
    several: bool


_child, _sibling = unit.alias("child"), unit.alias("sibling")
_several = (
    select(_child.c.key)
    .join(_sibling, (_sibling.c.parent == _child.c.parent) & (_sibling.c.key > _child.c.key))
    .where(_child.c.parent == summary.c.key)
    .exists()
)
_STORED = Statement(
    select(*summary.c, unit.c.parent, _several)
    .outerjoin(unit, unit.c.key == summary.c.key)
    .where(summary.c.tree == bindparam("tree"))
    .order_by(summary.c.place, summary.c.key),
    "tree",
)
_INSERT = insert_of(summary)
_RENAME = Statement(
    update(summary).where(summary.c.key == bindparam("key")).values(id=bindparam("id")), "id", "key"
)
_PUT_PARENT = insert_of(unit, "key", "parent", replace=True)
_ABOVE = Statement(select(unit.c.parent).where(unit.c.key == bindparam("key")), "key")
_INHERIT = Statement(
    # A summary that replaces another inherits its parent, its visits and its protection.
    unit.insert().from_select(
        [column.name for column in unit.columns],
        select(bindparam("new", type_=BigInteger()), *unit.c["parent", "visits", "last_visit"])
        .add_columns(*unit.c["never_delete", "forgotten"])
        .where(unit.c.key == bindparam("old")),
    ),
    *("new", "old"),
)
_DETACH = Statement(update(unit).where(within(unit.c.parent, "keys")).values(parent=None), "keys")
_DELETES = tuple(
    Statement(sql_delete(table).where(within(table.c.key, "keys")), "keys") for table in (summary, unit, node)
)
_LIVE = Statement(
    select(func.count()).where(within(node.c.key, "keys"), node.c.state == int(State.LIVE)), "keys"
)
_COVERED_OR_FORGOTTEN = Statement(
    select(unit.c.key, unit.c.parent, unit.c.forgotten).where(within(unit.c.key, "keys")), "keys"
)
_EXTENTS = (
    select(*summary.c["key", "rank", "started", "ended", "messages"])
    .join(node, node.c.key == summary.c.key)
    .outerjoin(unit, unit.c.key == summary.c.key)
    .where(node.c.state == int(State.LIVE), unit.c.forgotten.is_(None))
)
_EXTENTS_OF_TREE = Statement(_EXTENTS.where(summary.c.tree == bindparam("tree")), "tree")
_EXTENTS_OF_KEYS = Statement(_EXTENTS.where(within(summary.c.key, "keys")), "keys")
_OF_OWNER = Statement(
    select(summary.c.key)
    .join(tree, tree.c.id == summary.c.tree)
    .where(tree.c.owner == bindparam("owner"), within(summary.c.rank, "ranks")),
    *("owner", "ranks"),
)
_FIRSTS = Statement(
    select(summary.c.key, node.c.key)
    .select_from(summary.join(node, node_keys.is_at(node, bindparam("source"), summary.c.thread)))
    .where(summary.c.tree == bindparam("at"), summary.c.thread != literal_column("0")),
    *("source", "at"),
)
# Without the check of `trees.find`: data can be deleted without its key.
_FIND = Statement(
    select(tree.c.id).where(
        tree.c.owner == bindparam("owner"),
        tree.c.conversation == bindparam("conversation"),
        tree.c.scope == bindparam("scope"),
    ),
    *("owner", "conversation", "scope"),
)
_OF_SESSIONS = Statement(
    select(tree.c.id).where(tree.c.owner == bindparam("owner"), tree.c.scope == SUMMARIES), "owner"
)
_PUT_DRAFT = insert_of(summary_draft, replace=True)
_GET_DRAFT = Statement(
    select(summary_draft.c.summary).where(
        summary_draft.c.tree == bindparam("tree"), summary_draft.c.hash == bindparam("hash")
    ),
    *("tree", "hash"),
)
_NO_DRAFTS = Statement(sql_delete(summary_draft).where(summary_draft.c.tree == bindparam("tree")), "tree")
_last = node_keys.newest(tree.c.id, "seq")
_covered = (
    select(func.max(watermark.c.seq))
    .where(watermark.c.tree == tree.c.id, watermark.c.name.startswith(SUMMARIES_OF))
    .correlate(tree)
    .scalar_subquery()
)
_BEHIND = Statement(
    select(tree.c.conversation)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        func.coalesce(_covered, literal_column("0")) < _last,
    )
    .order_by(tree.c.id),
    "owner",
)
_OF_STALE = Statement(
    select(tree.c.conversation)
    .join(summary, summary.c.tree == tree.c.id)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == SUMMARIES,
        tree.c.conversation != "",
        summary.c.stale == literal_column("1"),
    )
    .distinct(),
    "owner",
)
_SUMMARIES_OF_TREE = (watermark.c.tree == bindparam("tree"), watermark.c.name.startswith(SUMMARIES_OF))
_MARKED = Statement(select(watermark.c.name, watermark.c.seq).where(*_SUMMARIES_OF_TREE), "tree")
_UNMARK = Statement(sql_delete(watermark).where(*_SUMMARIES_OF_TREE), "tree")
_first = select(func.min(node.c.seq)).where(within(node.c.key, "keys")).scalar_subquery()
_REOPEN = Statement(
    update(watermark)
    .where(
        watermark.c.tree == bindparam("at"),
        watermark.c.name.startswith(SUMMARIES_OF),
        watermark.c.seq >= _first,
    )
    .values(seq=_first - literal_column("1")),
    *("keys", "at"),
)
_ROOTS = Statement(
    select(summary.c.key)
    .join(tree, tree.c.id == summary.c.tree)
    .outerjoin(unit, unit.c.key == summary.c.key)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == SUMMARIES,
        summary.c.rank == literal_column("1"),
        summary.c.id == tree.c.conversation,
        unit.c.parent.is_(None),
        unit.c.forgotten.is_(None),
    )
    .order_by(summary.c.started, summary.c.tree),
    "owner",
)


def stored(conn: Conn, tree_id: int) -> list[StoredSummary]:
    """The summaries in a tree of summaries, in order."""
    columns = len(SummaryRow._fields)
    return [StoredSummary(SummaryRow(*row[:columns]), *row[columns:]) for row in conn.all(_STORED, tree_id)]


def put(conn: Conn, rows: Iterable[SummaryRow]) -> None:
    """Store the rows of new summaries."""
    conn.many(_INSERT, rows)


def extents(conn: Conn, tree_id: int) -> list[Extent]:
    """The extents of the summaries in a tree of summaries, without forgotten summaries."""
    return [Extent(*row) for row in conn.all(_EXTENTS_OF_TREE, tree_id)]


def extents_of(conn: Conn, keys: Sequence[int]) -> list[Extent]:
    """The extents of nodes, if they are summaries and not forgotten."""
    return [Extent(*row) for row in conn.all(_EXTENTS_OF_KEYS, json.dumps(keys))]


def of_owner(conn: Conn, owner: str, ranks: Iterable[int]) -> list[int]:
    """The keys of the summaries of an owner with one of the ranks."""
    return [row[0] for row in conn.all(_OF_OWNER, owner, json.dumps(sorted(ranks)))]


def firsts(conn: Conn, source: int, tree_id: int) -> dict[int, int]:
    """For each summary of a single thread of a conversation, the key of the first message of the thread."""
    return dict(conn.all(_FIRSTS, source, tree_id))


def rename(conn: Conn, key: int, name: str) -> None:
    """Change the id of a summary."""
    conn.run(_RENAME, name, key)


def set_parents(conn: Conn, pairs: Iterable[tuple[int, int | None]]) -> None:
    """Set the summaries above units: pairs of the keys of a unit and of its summary."""
    conn.many(_PUT_PARENT, pairs)


def above(conn: Conn, key: int) -> int | None:
    """The key of the summary that covers a unit, if any."""
    row = conn.one(_ABOVE, key)
    return row[0] if row else None


def inherit(conn: Conn, pairs: Iterable[tuple[int, int]]) -> None:
    """Copy parent, visits and protection of old summaries to new summaries: pairs of new and old key."""
    conn.many(_INHERIT, pairs)


def delete(conn: Conn, keys: Sequence[int]) -> None:
    """Delete summaries; the units below them are no longer below a summary."""
    keys_json = json.dumps(keys)
    conn.run(_DETACH, keys_json)
    for statement in _DELETES:
        conn.run(statement, keys_json)


def uncover(conn: Conn, tree_id: int) -> None:
    """Record that no message of a conversation is summarised."""
    conn.run(_UNMARK, tree_id)


def live(conn: Conn, keys: Sequence[int]) -> int:
    """The number of nodes that exist and are live."""
    row = conn.one(_LIVE, json.dumps(keys))
    return int(row[0]) if row else 0


def covered_or_forgotten(conn: Conn, keys: Sequence[int], *, anew: bool) -> set[int]:
    """The units that were forgotten or, unless `anew`, are covered by a summary."""
    return {
        key
        for key, parent, forgotten in conn.all(_COVERED_OR_FORGOTTEN, json.dumps(keys))
        if forgotten is not None or (parent is not None and not anew)
    }


def put_draft(conn: Conn, tree_id: int, version: int, hash_: str, summary: MessageSummary) -> None:
    """Store a summary as a draft until its run is stored, unless the tree has another version by now.

    Raises:
        SessionNotFoundError: The tree was erased while the summarizer read the texts.
    """
    trees.lock(conn, tree_id)
    if trees.head(conn, tree_id).version != version:
        return  # The summaries were emptied, since a message was deleted that the draft may quote.
    draft_text = json.dumps([summary.title, summary.summary])
    conn.run(
        _PUT_DRAFT, tree_id, hash_, draft_text if conn.seal is None else conn.seal.text(hash_, draft_text)
    )


def get_draft(conn: Conn, tree_id: int, hash_: str) -> MessageSummary | None:
    """The draft of a summary of the same texts by an earlier run, if any."""
    row = conn.one(_GET_DRAFT, tree_id, hash_)
    if row is None:
        return None
    try:
        title, text = json.loads(row[0] if conn.seal is None else conn.seal.open_text(hash_, row[0]))
    except (ValueError, EncryptionError):
        return None  # A damaged draft is written again.
    return MessageSummary(title=title, summary=text)


def clear_drafts(conn: Conn, tree_id: int) -> None:
    """Delete all drafts of a tree of summaries."""
    conn.run(_NO_DRAFTS, tree_id)


def unfinished(conn: Conn, owner: str) -> list[str]:
    """The sessions of an owner with a message without a summary, or with a stale summary."""
    behind = [row[0] for row in conn.all(_BEHIND, owner)]
    return list(dict.fromkeys([*behind, *(row[0] for row in conn.all(_OF_STALE, owner))]))


def covered(conn: Conn, tree_id: int) -> tuple[str, int]:
    """The grouping of a conversation ("" without summaries), and the number of the last covered message."""
    row = conn.one(_MARKED, tree_id)
    return (row[0].removeprefix(SUMMARIES_OF), row[1]) if row else ("", 0)


def cover(conn: Conn, tree_id: int, by: str, seq: int) -> None:
    """Record the grouping of a conversation, and the number of the last covered message."""
    conn.run(_UNMARK, tree_id)
    watermarks.put(conn, SUMMARIES_OF + by, {tree_id: Watermark(seq)})


def reopen(conn: Conn, tree_id: int, keys: Sequence[int]) -> None:
    """Record that messages are live again, so that the next run summarises them."""
    if keys:
        conn.run(_REOPEN, json.dumps(keys), tree_id)
        stale_marks.mark_stale(conn, stale_marks.ancestors(conn, keys))


def new_roots(conn: Conn, owner: str) -> list[int]:
    """The keys of the roots of sessions that no summary of the long-term memory covers."""
    return [row[0] for row in conn.all(_ROOTS, owner)]


def tree_of(conn: Conn, owner: str, session: str) -> int | None:
    """The tree of the summaries of a session; of the long-term memory for an empty session."""
    return trees.find(conn, owner, session, SUMMARIES)


def quoting(conn: Conn, owner: str, conversations: Iterable[str]) -> list[int]:
    """The trees of the summaries that may quote messages of conversations, including the long-term memory.

    A summarizer reads the summary of the group before too, so every summary of a tree may quote every
    message below the tree.
    """
    names = dict.fromkeys((*conversations, ""))
    return [row[0] for name in names for row in conn.all(_FIND, owner, name, SUMMARIES)]


def lock_quoting(
    conn: Conn, owner: str, conversations: Collection[str], others: Iterable[int] = ()
) -> list[int]:
    """Lock conversations, the trees of `quoting`, and other trees; returns the trees of `quoting`.

    `make_tree` locks what the summaries of a new tree will quote, so no such tree is made afterwards.
    """
    if conn.dialect == "sqlite":
        return quoting(conn, owner, conversations)
    locked = set[int]()
    sources = [row[0] for name in conversations for row in conn.all(_FIND, owner, name, "")]
    while missing := {*others, *sources, *(found := quoting(conn, owner, conversations))} - locked:
        trees.lock_all(conn, missing)
        locked |= missing
    return found


def make_tree(conn: Conn, owner: str, session: str, now: float) -> int:
    """The tree of the summaries of a session, or of the long-term memory, which is created if needed."""
    if tree_of(conn, owner, session) is None and conn.dialect == "postgresql":
        below = (
            [trees.find(conn, owner, session)]
            if session
            else [row[0] for row in conn.all(_OF_SESSIONS, owner)]
        )
        trees.lock_all(conn, [tree_id for tree_id in below if tree_id is not None])
    return trees.find_or_create(conn, owner, session, now, SUMMARIES)


def empty_quoting(conn: Conn, owner: str, conversations: Collection[str]) -> Removed:
    """Empty the trees of the summaries that may quote messages of conversations.

    The next run summarises these conversations and the long-term memory again.

    Args:
        conn: A write transaction after `lock_quoting`.
    """
    found = quoting(conn, owner, conversations) if conversations else []
    removed = Removed({}, any(watermarks.indexed(conn, tree_id) for tree_id in found))
    for tree_id in found:
        removed.keys[tree_id] = [row.key for row in nodes.outline(conn, tree_id)]
        empty_tree(conn, tree_id, owner)
    for source in (row[0] for name in conversations for row in conn.all(_FIND, owner, name, "")):
        uncover(conn, source)
    return removed


def take_out_removed(conn: Conn, owner: str, conversation: str, keys: Collection[int]) -> Removed:
    """Remove nodes of a conversation from the indexes; if a summary covers one, empty all that may quote it.

    After the transaction, call `index.removal.drop`.
    """
    removed = removal.take_out_removed(conn, owner, keys)
    if not keys or not stale_marks.ancestors(conn, keys):
        return removed
    lock_quoting(conn, owner, [conversation])
    emptied = empty_quoting(conn, owner, [conversation])
    return Removed(removed.keys | emptied.keys, removed.indexed or emptied.indexed)


class Extent(NamedTuple):
    """The messages that a summary covers.

    Attributes:
        key: The key of the summary.
        rank: 1 within a conversation, 2 in the long-term memory.
        started: The time of the first covered message, in seconds since 1970.
        ended: The time of the last covered message, in seconds since 1970.
        messages: The number of covered messages.
    """

    key: int
    rank: int
    started: float
    ended: float
    messages: int


def delete_summaries(conn: Conn, owner: str, tree: int, keys: Sequence[int]) -> None:
    """Delete summaries from a tree of summaries, and from the indexes.

    The numbers of the newest summaries are used again after their deletion, so watermarks are lowered.
    """
    take_out(conn, owner, tree, memory.places(conn, keys))
    before = trees.head(conn, tree).next_seq
    delete(conn, keys)
    newest = trees.head(conn, tree).next_seq - 1
    if newest + 1 < before:
        trees.begin_epoch(conn, tree)
        for name, watermark in watermarks.of_tree(conn, tree):
            watermarks.put(conn, name, {tree: watermark._replace(seq=min(watermark.seq, newest))})
