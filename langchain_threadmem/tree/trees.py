"""SQL: the trees of conversations, with their heads, locks, segments and times of last use.

The column `tree.used` stores the time of the newest message, or a bound: that time, rounded up to a second.
Thus appends write the column, whose index takes a sixth of the time of an append, at most twice in a second.
Conversations with a bound are ordered by the times of their newest messages, which are read from the nodes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, case, cast, func, literal_column, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql import ColumnElement

from langchain_threadmem.errors import EncryptionError, SessionNotFoundError
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.schema import SUMMARIES, State, checkpoint, node, segment, tree, write
from langchain_threadmem.storage.statements import (
    ONE,
    ZERO,
    BoundStatement,
    Conn,
    Statement,
    with_partitions,
    within,
)


class Head(NamedTuple):
    """The changing part of a tree.

    Attributes:
        next_seq: Number of the next node.
        tip: Key of the node at the end of the active thread; by default the newest node.
        system: Key of the newest live system message.
        version: A counter that rises when a stored node changes its state.
        epoch: A counter that rises when the tree is emptied.
        pinned: Whether the tip is stored, since it is not the newest node.
        sealed: Whether the texts of the tree are encrypted.
        used: The value of `tree.used`; `None` for a tree that is not listed.
    """

    next_seq: int
    tip: int | None
    system: int | None
    version: int
    epoch: int
    pinned: bool
    sealed: bool
    used: float | None

    @property
    def tree_version(self) -> TreeVersion:
        """Epoch and version of the tree."""
        return self.epoch, self.version


NO_TREE = 0
"""The id of the tree of a conversation that does not exist; its head is that of an empty tree."""
TreeEpoch = tuple[int, int]
"""A tree and its epoch: in a later epoch, a number may name another node."""
TreeVersion = tuple[int, int]
"""Epoch and version of a tree: in a later version, nodes may have other states or other texts."""
BEFORE_ALL: TreeEpoch = NO_TREE, 0
"""The epoch of a conversation that does not exist, in which no node has a number."""
_NO_HEAD = Head(next_seq=1, tip=None, system=None, version=0, epoch=0, pinned=False, sealed=False, used=None)

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
        used=bindparam("used"),
    )
    .on_conflict_do_nothing()
    .returning(tree.c.id),
    *("owner", "conversation", "scope", "created", "sealed", "used"),
)


def is_at_version(epoch: str, version: str) -> tuple[ColumnElement[bool], ...]:
    """The conditions that a tree has the epoch and the version of two parameters; nulls stand for any."""
    return tuple(
        column == func.coalesce(bindparam(name, type_=BigInteger()), column)
        for column, name in ((tree.c.epoch, epoch), (tree.c.version, version))
    )


_UNCHANGED = Statement(
    select(tree.c.id).where(
        *_NAMED,
        tree.c.id == bindparam("tree"),
        tree.c.sealed == bindparam("sealed"),
        *is_at_version("epoch", "version"),
    ),
    *("owner", "conversation", "scope", "tree", "sealed", "epoch", "version"),
)
_CONTENTS = _NODES, *_CHECKPOINTS = tuple(
    Statement(select(table.c.tree).where(table.c.tree == bindparam("tree")).limit(1), "tree")
    for table in (node, checkpoint, write)
)
_SEALINGS = Statement(select(*tree.c["id", "sealed"]).where(within(tree.c.id, "trees")), "trees")
_SEALED = Statement(select(tree.c.id).where(tree.c.owner == bindparam("owner"), tree.c.sealed), "owner")
_RESEAL = Statement(
    update(tree).where(tree.c.id == bindparam("at")).values(sealed=bindparam("sealed")), "sealed", "at"
)
newest = node.alias("newest")
"""The newest node of a tree; join it with `is_newest`."""
_newest_key = node_keys.newest(tree.c.id)
is_newest = with_partitions(
    newest.c.key == _newest_key, node_keys.is_at(newest, tree.c.id, node_keys.newest(tree.c.id, "seq"))
)

_HEAD = Statement(
    select(
        func.coalesce(newest.c.seq, ZERO) + ONE,
        func.coalesce(
            tree.c.tip, case((newest.c.state < literal_column(str(int(State.PURGED))), newest.c.key))
        ),
        *tree.c["system", "version", "epoch"],
        tree.c.tip.is_not(None),
        *tree.c["sealed", "used"],
    )
    .select_from(tree)
    .outerjoin(newest, is_newest)
    .where(tree.c.id == bindparam("tree")),
    "tree",
)
_summaries = tree.alias("summaries")
_EXTENT = Statement(
    select(
        func.coalesce(newest.c.seq, ZERO),
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
_SET_HEAD = Statement(
    update(tree)
    .where(tree.c.id == bindparam("tree"))
    .values(tip=func.nullif(bindparam("tip", type_=BigInteger()), _newest_key), system=bindparam("system")),
    *("tip", "system", "tree"),
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
_NAME = Statement(select(tree.c.conversation).where(tree.c.id == bindparam("tree")), "tree")
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
_SCOPES = Statement(
    select(tree.c.scope, tree.c.id)
    .where(tree.c.owner == bindparam("owner"), tree.c.conversation == bindparam("conversation"))
    .order_by(tree.c.id),
    *("owner", "conversation"),
)


def find(conn: Conn, owner: str, conversation: str, scope: str = "") -> int | None:
    """The id of a conversation's tree, or `None`."""
    return id_of_tree(conn, conn.all(_FIND, owner, conversation, scope))


def conversation_of(conn: Conn, tree_id: int) -> str:
    """The name of a tree's conversation."""
    return str(conn.all(_NAME, tree_id)[0][0])


def unchanged_query(
    conn: Conn, owner: str, conversation: str, tree_id: int, version: TreeVersion | None = None
) -> BoundStatement:
    """The query that returns a row if a tree is still that of a conversation, with the same encryption.

    Args:
        conn: A transaction.
        owner: The owner of the conversation.
        conversation: Name of the conversation.
        tree_id: The tree.
        version: The version that it must have; `None` for any.
    """
    epoch_and_version = (None, None) if version is None else version
    return _UNCHANGED, (owner, conversation, "", tree_id, conn.seal is not None, *epoch_and_version)


def id_of_tree(conn: Conn, rows: Sequence[tuple[Any, ...]]) -> int | None:
    """The id of the tree, or `None`, from the rows of its query."""
    if not rows:
        return None
    encryption_keys.check(conn)
    check(conn, *rows[0])
    return int(rows[0][0])


def check(conn: Conn, tree_id: int, sealed: bool) -> None:
    """Check that a tree is encrypted if and only if the memory is.

    Raises:
        EncryptionError: The tree is not empty, and is encrypted while the memory is not, or vice versa.
    """
    if bool(sealed) == (conn.seal is not None) or not any(conn.all(rows, tree_id) for rows in _CONTENTS):
        return
    if sealed:
        raise EncryptionError(
            "the conversation is encrypted; pass its cipher to MemorySystem(..., cipher=...)"
        )
    raise EncryptionError(
        "the conversation is not encrypted, but this memory is; open the conversation with a memory without "
        "a cipher"
    )


def has_checkpoints(conn: Conn, tree_id: int) -> bool:
    """Whether checkpoints or pending writes of the conversation of a tree are stored."""
    return any(conn.all(rows, tree_id) for rows in _CHECKPOINTS)


def check_all(conn: Conn, tree_ids: Iterable[int]) -> None:
    """`check` several trees."""
    for tree_id, sealed in conn.all(_SEALINGS, json.dumps(list(tree_ids))):
        check(conn, tree_id, sealed)


def check_unsealed(conn: Conn, owner: str) -> None:
    """Check that a memory without a cipher does not leave out conversations that are encrypted.

    Raises:
        EncryptionError: A conversation of the owner is encrypted.
    """
    if conn.seal is not None:
        return
    for (tree_id,) in conn.all(_SEALED, owner):
        if any(conn.all(rows, tree_id) for rows in _CONTENTS):
            raise EncryptionError(
                f"nothing was found; conversations of {owner!r} are encrypted: pass their cipher to "
                "MemorySystem(..., cipher=...), and search one conversation at a time"
            )


def claim(conn: Conn, tree_id: int, sealed: bool) -> None:
    """`check` before a write; an empty tree is marked as encrypted or not."""
    if bool(sealed) != (conn.seal is not None):
        check(conn, tree_id, sealed)
        conn.run(_RESEAL, conn.seal is not None, tree_id)


def find_or_create(conn: Conn, owner: str, conversation: str, now: float, scope: str = "") -> int:
    """The id of a conversation's tree, which is created if it does not exist; needs a write transaction."""
    encryption_keys.check(conn)
    row = conn.one(_FIND, owner, conversation, scope)
    if row is None:
        created = _create(conn, owner, conversation, now, scope)
        if created is not None:
            return created
        # Another transaction has created and committed the tree in the meantime.
        row = conn.one(_FIND, owner, conversation, scope)
        assert row is not None
    claim(conn, *row)
    return int(row[0])


def _create(conn: Conn, owner: str, conversation: str, now: float, scope: str) -> int | None:
    """The id of a new tree, or `None` if the tree exists."""
    encryption_keys.require(conn)
    used = 0.0 if scope == "" else None
    row = conn.one(_CREATE, owner, conversation, scope, now, conn.seal is not None, used)
    return None if row is None else int(row[0])


def find_or_create_all(
    conn: Conn,
    owner: str,
    conversation: str,
    scopes: Iterable[str],
    now: float,
    cached: Mapping[str, int],
    ask: Callable[[Mapping[str, int]], Sequence[BoundStatement]],
) -> tuple[dict[str, int], list[list[tuple[Any, ...]]]]:
    """Find or create trees of a conversation, lock them, and run queries about them.

    Args:
        conn: A write transaction.
        owner: The owner of the conversation.
        conversation: Name of the conversation.
        scopes: The scopes of the trees.
        now: Creation time of new trees, in seconds since 1970.
        cached: Ids by scope from an earlier call; if they are valid, the call is one round trip.
        ask: Returns the queries for the ids.

    Returns:
        The ids by scope, and the rows of each query.
    """
    sealed = conn.seal is not None
    if sealed:
        encryption_keys.check(conn)
    ordered = sorted(set(scopes))
    asked = ask(cached) if cached.keys() >= set(ordered) else None
    rows = conn.each(*[(_TAKE, (owner, conversation, scope)) for scope in ordered], *(asked or ()))
    ids: dict[str, int] = {}
    for scope, row in zip(ordered, rows, strict=False):
        if row:
            if bool(row[0][1]) != sealed:
                claim(conn, *row[0])
            ids[scope] = int(row[0][0])
        elif (created := _create(conn, owner, conversation, now, scope)) is not None:
            ids[scope] = created
        else:
            ids[scope] = find_or_create(conn, owner, conversation, now, scope)
            lock(conn, ids[scope])
    if asked is not None and ids.items() <= cached.items():
        return ids, rows[len(ordered) :]
    return ids, conn.each(*ask(ids))


def lock(conn: Conn, tree_id: int) -> None:
    """Lock a tree against other writers until the transaction ends; SQLite has one writer at a time."""
    if conn.dialect == "postgresql":
        conn.run(_LOCK, tree_id)


def lock_all(conn: Conn, trees: Collection[int]) -> None:
    """Lock several trees in the order of their ids, which prevents deadlocks."""
    if conn.dialect == "postgresql":
        conn.run(_LOCK_ALL, json.dumps(sorted(trees)))


def head(conn: Conn, tree_id: int) -> Head:
    """The head of a tree."""
    if tree_id == NO_TREE:
        return _NO_HEAD
    rows = conn.all(_HEAD, tree_id)
    if not rows:
        raise erased()
    return Head(*rows[0])


def keeps_numbers(current: TreeEpoch, chosen_in: TreeEpoch | None) -> bool:
    """Whether numbers that were chosen in an epoch name the same nodes in the current epoch of a tree."""
    return chosen_in in (None, BEFORE_ALL, current)


def is_current(conn: Conn, epoch: TreeEpoch) -> bool:
    """Whether a tree exists and was not emptied since an epoch."""
    rows = conn.all(_HEAD, epoch[0])
    return bool(rows) and Head(*rows[0]).epoch == epoch[1]


def head_query(tree_id: int) -> BoundStatement:
    """The query for the head of a tree."""
    return _HEAD, (tree_id,)


def head_of(rows: Sequence[tuple[Any, ...]]) -> Head:
    """The head from the rows of `head_query`, or of a query `beside` it.

    Raises:
        SessionNotFoundError: The tree was erased.
    """
    if not rows:
        raise erased()
    return Head(*rows[0][: len(Head._fields)])


def extent(conn: Conn, tree_id: int) -> tuple[int, int | None]:
    """The highest node number of a conversation, and the tree of its summaries if there is one."""
    if tree_id == NO_TREE:
        return 0, None
    row = conn.one(_EXTENT, tree_id)
    if row is None:
        raise erased()
    return row[0], row[1]


def erased() -> SessionNotFoundError:
    """The error for a tree that does not exist any more."""
    return SessionNotFoundError(
        "this conversation was erased or removed meanwhile; get it again by MemorySystem.conversation()"
    )


def set_head(conn: Conn, tree_id: int, tip: int | None, system: int | None) -> None:
    """Store the keys of the tip and of the newest live system message."""
    conn.run(_SET_HEAD, tip, system, tree_id)


def move_tip(conn: Conn, tree_id: int, key: int | None) -> None:
    """Make a node the tip: the end of the active thread."""
    set_head(conn, tree_id, key, head(conn, tree_id).system)


def changed(conn: Conn, tree_id: int) -> None:
    """Invalidate caches of a tree after a change of stored rows."""
    conn.run(_CHANGED, tree_id)


def begin_epoch(conn: Conn, tree_id: int) -> None:
    """Invalidate caches of a tree whose node numbers may be used again."""
    conn.run(_BEGIN_EPOCH, tree_id)


def conversations(conn: Conn, owner: str) -> list[tuple[str, int]]:
    """The names and trees of an owner's non-empty conversations, oldest first."""
    return [(row[0], row[1]) for row in conn.all(_LIST, owner)]


_SEGMENTS = Statement(
    select(segment.c.id, segment.c.parent).where(segment.c.tree == bindparam("tree")), "tree"
)


def segments(conn: Conn, tree_id: int) -> dict[int, int | None]:
    """The segments of a tree, each with the key of the node that it forks from."""
    return {row[0]: row[1] for row in conn.all(_SEGMENTS, tree_id)}


STEP = 1.0
"""The distance of bounds, in seconds."""
LATEST = (math.inf, 0)
"""The position before the first conversation."""
_LAST_TREE = 1 << 62
_OF_OWNER = (tree.c.owner == bindparam("owner"), tree.c.used <= bindparam("top"))
_steps = tree.c.used / literal_column(f"{STEP}")
_is_bound_in_sql = _steps == cast(_steps, BigInteger)
_NTH = Statement(
    select(tree.c.used).where(*_OF_OWNER).order_by(tree.c.used.desc()).limit(1).offset(bindparam("before")),
    *("owner", "top", "before"),
)
_EXACT = Statement(
    select(tree.c.used, tree.c.id)
    .where(*_OF_OWNER, ~_is_bound_in_sql, tree.c.used >= bindparam("since"))
    .where(tuple_(tree.c.used, tree.c.id) < tuple_(bindparam("used"), bindparam("tree")))
    .order_by(tree.c.used.desc(), tree.c.id.desc())
    .limit(bindparam("most")),
    *("owner", "top", "since", "used", "tree", "most"),
)
_BOUNDS = Statement(
    select(node_keys.newest(tree.c.id, "created"), *tree.c["id", "used"]).where(
        *_OF_OWNER, _is_bound_in_sql, tree.c.used > bindparam("floor")
    ),
    *("owner", "top", "floor"),
)
_NEWEST_TIME = Statement(
    select(node_keys.newest(tree.c.id, "created")).where(tree.c.id == bindparam("tree")), "tree"
)
_USE = Statement(
    update(tree).where(tree.c.id == bindparam("at")).values(used=bindparam("used")), *("used", "at")
)


def _is_bound(used: float) -> bool:
    return used % STEP == 0


def _bound(time: float) -> float:
    """The lowest bound of a time."""
    return time if _is_bound(time) or math.isinf(time) else time - time % STEP + STEP


def used_after(used: float, created: float) -> float:
    """The value of `tree.used` after a new message.

    Args:
        used: The value before.
        created: The time of the message, in seconds since 1970.

    Example:
        >>> used_after(0.0, 34.5), used_after(34.5, 34.7), used_after(35.0, 34.9)
        (34.5, 35.0, 35.0)
    """
    if used % STEP == 0 and used - STEP < created <= used:
        return used
    return _bound(created) if abs(created - used) < STEP else created


def time_of_use(used: float, created: float) -> float:
    """The time of the newest message, in seconds since 1970.

    Args:
        used: The value of `tree.used`.
        created: The time of the newest node, which is earlier if the node is a moved message.
    """
    return created if _is_bound(used) and used - STEP < created <= used else used


def keep_use(conn: Conn, tree_id: int, used: float | None) -> None:
    """Replace a bound in `tree.used` by the time of the newest message, before a message is moved."""
    if used is not None and _is_bound(used):
        use(conn, tree_id, time_of_use(used, conn.all(_NEWEST_TIME, tree_id)[0][0]))


def use(conn: Conn, tree_id: int, used: float) -> None:
    """Store the value of `tree.used`."""
    conn.later(_USE, [(used, tree_id)])


def latest_first(
    conn: Conn, owner: str, before: tuple[float, int] = LATEST, since: float = -math.inf, most: int = 100
) -> Iterator[list[int]]:
    """The trees of an owner's non-empty conversations in lists, those with the latest message first.

    The cost of a list is three statements. They also read the conversations with a bound within a second of
    the last conversation of the list, at 2 µs each.

    Args:
        conn: A transaction.
        owner: The owner.
        before: Only conversations after this position: the time of the newest message, and the tree.
        since: Only conversations with a message at this time or later, in seconds since 1970.
        most: The length of the first list; each list may be twice as long as the list before it.
    """
    while True:
        top = _bound(before[0])
        last = conn.one(_NTH, owner, top, most - 1)
        # At least `most` conversations have a message after the floor, so only such conversations are read.
        floor = -math.inf if last is None else last[0] - STEP
        rows = conn.all(_EXACT, owner, top, max(since, floor), *before, most)
        for created, tree_id, used in conn.all(_BOUNDS, owner, top, floor):
            time = -math.inf if created is None else time_of_use(used, created)
            if time > floor and time >= since and (time, tree_id) < before:
                rows.append((time, tree_id))
        rows = sorted(rows, reverse=True)[:most]
        yield [tree_id for _, tree_id in rows]
        if len(rows) == most:
            before = rows[-1][0], rows[-1][1]
        elif last is None or floor < since:
            return
        else:
            before = floor, _LAST_TREE
        most *= 2


def latest(conn: Conn, owner: str) -> str | None:
    """The conversation of an owner with the latest message, or `None`."""
    first = next(filter(None, latest_first(conn, owner, most=1)), None)
    return None if first is None else conversation_of(conn, first[0])


def scopes(conn: Conn, owner: str, conversation: str) -> list[tuple[str, int]]:
    """The scopes and trees of a conversation; the tree of the conversation itself is the first."""
    return [(row[0], row[1]) for row in conn.all(_SCOPES, owner, conversation)]
