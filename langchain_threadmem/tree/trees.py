"""SQL: trees by conversation, their tips and segments."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.schema import SUMMARIES, checkpoint, node, segment, tree, write
from langchain_threadmem.storage.statements import Asked, Conn, Statement, within


class Head(NamedTuple):
    """The changing part of a tree.

    Attributes:
        next_seq: The number that the next node gets.
        tip: Key of the node in which the active thread ends; the newest node, unless another was made it.
        system: Key of the newest live system message.
        version: Rises whenever a stored node changes its state.
        epoch: Rises whenever the tree is emptied.
        pinned: Whether the tree's row names its tip.
        sealed: Whether its texts are encrypted.
    """

    next_seq: int
    tip: int | None
    system: int | None
    version: int
    epoch: int
    pinned: bool
    sealed: bool


_NAMED = (
    (tree.c.owner == bindparam("owner")),
    (tree.c.conversation == bindparam("conversation")),
    (tree.c.scope == bindparam("scope")),
)
_FIND = Statement(select(tree.c.id, tree.c.sealed).where(*_NAMED), "owner", "conversation", "scope")
_TAKE = Statement(
    select(tree.c.id, tree.c.sealed).where(*_NAMED).with_for_update(), "owner", "conversation", "scope"
)
_CREATE = Statement(
    insert(tree)
    .values(
        owner=bindparam("owner"),
        conversation=bindparam("conversation"),
        scope=bindparam("scope"),
        version=0,
        epoch=0,
        created=bindparam("created"),
        sealed=bindparam("sealed"),
    )
    .on_conflict_do_nothing()
    .returning(tree.c.id),
    "owner",
    "conversation",
    "scope",
    "created",
    "sealed",
)
_opener = node.c.opens == literal_column("1")
_HELD = tuple(
    Statement(select(table.c.tree).where(table.c.tree == bindparam("tree"), *only).limit(1), "tree")
    for table, only in ((node, [_opener]), (checkpoint, []), (write, []))
)
_RESEAL = Statement(
    update(tree).where(tree.c.id == bindparam("at")).values(sealed=bindparam("sealed")), "sealed", "at"
)
newest = node.alias("newest")
"""The node of a tree that was written last; join it with `is_newest`."""
_newest_key = node_keys.newest(tree.c.id)
is_newest = newest.c.key == _newest_key

_HEAD = Statement(
    select(
        func.coalesce(newest.c.seq, literal_column("0")) + literal_column("1"),
        func.coalesce(tree.c.tip, newest.c.key),
        *tree.c["system", "version", "epoch"],
        tree.c.tip.is_not(None),
        tree.c.sealed,
    )
    .select_from(tree)
    .outerjoin(newest, is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_summaries = tree.alias("summaries")
_EXTENT = Statement(
    select(
        func.coalesce(newest.c.seq, literal_column("0")),
        select(_summaries.c.id)
        .where(
            _summaries.c.owner == tree.c.owner,
            _summaries.c.conversation == tree.c.conversation,
            _summaries.c.scope == literal_column(f"'{SUMMARIES}'"),
        )
        .correlate(tree)
        .scalar_subquery(),
    )
    .select_from(tree)
    .outerjoin(newest, is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_SETTLE = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"))
    .values(tip=func.nullif(bindparam("tip", type_=BigInteger()), _newest_key), system=bindparam("system")),
    "tip",
    "system",
    "tree",
)
_CHANGED = Statement(
    update(tree).where(tree.c.id == bindparam("tree")).values(version=tree.c.version + 1), "tree"
)
_BEGIN_EPOCH = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"))
    .values(version=tree.c.version + 1, epoch=tree.c.epoch + 1),
    "tree",
)
_LOCK = Statement(select(tree.c.id).where(tree.c.id == bindparam("tree")).with_for_update(), "tree")
_LOCK_ALL = Statement(
    select(tree.c.id).where(within(tree.c.id, "trees")).order_by(tree.c.id).with_for_update(), "trees"
)
_LIST = Statement(
    select(tree.c.conversation, tree.c.id)
    .where(tree.c.owner == bindparam("owner"), tree.c.scope == "", _newest_key.is_not(None))
    .order_by(tree.c.id),
    "owner",
)
_LATEST = Statement(
    select(tree.c.conversation)
    .join(newest, is_newest)
    .where(tree.c.owner == bindparam("owner"), tree.c.scope == "")
    .order_by(newest.c.created.desc(), tree.c.id.desc())
    .limit(1),
    "owner",
)


def find(conn: Conn, owner: str, conversation: str, scope: str = "") -> int | None:
    """The id of a conversation's tree, if it has one."""
    return found(conn, conn.all(_FIND, owner, conversation, scope))


def finding(owner: str, conversation: str, scope: str = "") -> Asked:
    """The question for a conversation's tree."""
    return _FIND, (owner, conversation, scope)


def found(conn: Conn, rows: Sequence[tuple[Any, ...]]) -> int | None:
    """The answer to `finding`: the id, if there is such a tree."""
    if not rows:
        return None
    encryption_keys.check(conn)
    check(conn, *rows[0])
    return int(rows[0][0])


def check(conn: Conn, tree_id: int, sealed: bool) -> None:
    """Refuse a tree that holds something and is encrypted where it should not be, or the other way round.

    Raises:
        EncryptionError: It does.
    """
    if bool(sealed) == (conn.seal is not None) or not any(conn.all(held, tree_id) for held in _HELD):
        return
    if sealed:
        raise EncryptionError(
            "the conversation is encrypted; pass MemorySystem(..., cipher=...) the cipher it was written with"
        )
    raise EncryptionError(
        "the conversation is not encrypted, as this memory demands; open it with a memory that has no cipher"
    )


def claim(conn: Conn, tree_id: int, sealed: bool) -> None:
    """`check`, before writing: an empty tree becomes what it is to be."""
    if bool(sealed) != (conn.seal is not None):
        check(conn, tree_id, sealed)
        conn.run(_RESEAL, conn.seal is not None, tree_id)


def find_or_create(conn: Conn, owner: str, conversation: str, now: float, scope: str = "") -> int:
    """The id of a conversation's tree, made if there is none. Needs a write transaction."""
    encryption_keys.check(conn)
    sealed = conn.seal is not None
    row = conn.one(_FIND, owner, conversation, scope)
    if row is None:
        made = conn.one(_CREATE, owner, conversation, scope, now, sealed)
        if made is not None:
            return int(made[0])
        # Another transaction made it since we looked, and it is committed now.
        row = conn.one(_FIND, owner, conversation, scope)
        assert row is not None
    claim(conn, *row)
    return int(row[0])


def take(
    conn: Conn,
    owner: str,
    conversation: str,
    scopes: Iterable[str],
    now: float,
    known: Mapping[str, int],
    ask: Callable[[Mapping[str, int]], Iterable[Asked]],
) -> tuple[dict[str, int], list[list[tuple[Any, ...]]]]:
    """Find or make trees of a conversation, keep other writers off them, and ask something about them.

    Args:
        conn: A write transaction.
        owner: Whose conversation it is.
        conversation: Its name.
        scopes: The trees.
        now: Seconds since 1970, for those that are made.
        known: The ids that they had before. If they still have them, this is one round trip.
        ask: Makes the questions from the ids.

    Returns:
        The ids by scope, and the rows that answer each question.
    """
    encryption_keys.check(conn)
    wanted = sorted(set(scopes))
    asked = list(ask(known)) if known.keys() >= set(wanted) else None
    rows = conn.each(*((_TAKE, (owner, conversation, scope)) for scope in wanted), *(asked or ()))
    ids = {}
    for scope, row in zip(wanted, rows, strict=False):
        if row:
            claim(conn, *row[0])
            ids[scope] = int(row[0][0])
        else:
            ids[scope] = find_or_create(conn, owner, conversation, now, scope)
            lock(conn, ids[scope])
    if asked is not None and all(known[scope] == tree_id for scope, tree_id in ids.items()):
        return ids, rows[len(wanted) :]
    return ids, conn.each(*ask(ids))


def lock(conn: Conn, tree_id: int) -> None:
    """Keep other writers off a tree until this transaction ends; SQLite has locked already."""
    if conn.dialect == "postgresql":
        conn.run(_LOCK, tree_id)


def lock_all(conn: Conn, trees: Collection[int]) -> None:
    """`lock` for several trees, in the order of their ids, so that no two transactions wait in a circle."""
    if conn.dialect == "postgresql":
        conn.run(_LOCK_ALL, json.dumps(sorted(trees)))


def head(conn: Conn, tree_id: int) -> Head:
    """The changing part of a tree."""
    return head_of(conn.all(_HEAD, tree_id))


def asking_head(tree_id: int) -> Asked:
    """The question for the changing part of a tree."""
    return _HEAD, (tree_id,)


def head_of(rows: Sequence[tuple[Any, ...]]) -> Head:
    """The answer to `asking_head`."""
    assert rows, "the tree is gone"
    return Head(*rows[0])


def extent(conn: Conn, tree_id: int) -> tuple[int, int | None]:
    """How many nodes a conversation has had, and the tree of its summaries, if there is one."""
    row = conn.one(_EXTENT, tree_id)
    assert row is not None, f"tree {tree_id} is gone"
    return row[0], row[1]


def settle(conn: Conn, tree_id: int, tip: int | None, system: int | None) -> None:
    """Say where the active thread ends now, and which is the newest system message, by their keys."""
    conn.run(_SETTLE, tip, system, tree_id)


def move_tip(conn: Conn, tree_id: int, key: int | None) -> None:
    """Make another node the end of the active thread."""
    settle(conn, tree_id, key, head(conn, tree_id).system)


def changed(conn: Conn, tree_id: int) -> None:
    """Tell caches that something stored in a tree is no longer what it was."""
    conn.run(_CHANGED, tree_id)


def begin_epoch(conn: Conn, tree_id: int) -> None:
    """Tell caches that numbers of a tree that were given may be given again."""
    conn.run(_BEGIN_EPOCH, tree_id)


def conversations(conn: Conn, owner: str) -> list[tuple[str, int]]:
    """Names and trees of an owner's conversations that hold anything, the oldest first."""
    return [(row[0], row[1]) for row in conn.all(_LIST, owner)]


def latest(conn: Conn, owner: str) -> str | None:
    """The conversation of an owner whose newest message is the latest of all, if there is any."""
    row = conn.one(_LATEST, owner)
    return row[0] if row else None


_SEGMENTS = Statement(
    select(segment.c.id, segment.c.parent).where(segment.c.tree == bindparam("tree")), "tree"
)


def segments(conn: Conn, tree_id: int) -> dict[int, int | None]:
    """The segments of a tree and the key of the node each forks from."""
    return {row[0]: row[1] for row in conn.all(_SEGMENTS, tree_id)}
