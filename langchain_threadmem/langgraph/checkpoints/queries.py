"""SQL: checkpoints, channel values and pending writes.

Each row contains the id of its conversation's tree. The row of a checkpoint contains, for each channel, the
number of the blob that stores its value. An unchanged value has the same number as in the parent checkpoint.
Values of different forks have different numbers, even if their channel versions are equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import and_, bindparam, delete, func, literal_column, select, update

from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.langgraph.checkpoints.values import to_json
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.schema import blob, checkpoint, tree, write
from langchain_threadmem.storage.statements import BoundStatement, Conn, Statement, insert_of, within
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.nodes import EVERYTHING
from langchain_threadmem.tree.trees import TreeVersion

_AFTER_ALL = b"\xff" * 17
"""Higher than the stored form of every id; see `pack_id`."""
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_EPOCH = 0x01B21DD213814000  # 100 ns from 1582, where the times in UUIDs begin, to 1970


class CheckpointRow(NamedTuple):
    """A checkpoint without channel values."""

    tree: int
    ns: str
    id: bytes
    parent: bytes | None
    run: str | None
    refs: Sequence[int]
    kind: str
    data: bytes


class WriteRow(NamedTuple):
    """A pending write."""

    tree: int
    ns: str
    checkpoint: bytes
    task: bytes
    idx: int
    path: str
    channel: str
    kind: str
    data: bytes


class Address(NamedTuple):
    """The primary key of a checkpoint."""

    tree: int
    ns: str
    id: bytes


def pack_id(text: str) -> bytes:
    """The stored form of an id, in the order of ids: 16 bytes for a UUID, else a marker byte and the text.

    Example:
        >>> pack_id("1ef4f797-8335-6428-8001-8a1503f9b875").hex()
        '1ef4f7978335642880018a1503f9b875'
    """
    if _UUID.fullmatch(text):
        return bytes.fromhex(text.replace("-", ""))
    marked = b"\xff" + text.encode("utf-8", "surrogatepass")
    return marked + b"\xff" if len(marked) == 16 else marked


def time_of_id(packed: bytes) -> float:
    """The time in a checkpoint's id, in seconds since 1970; 0.0 if the id is not a UUID of version 6.

    Example:
        >>> time_of_id(pack_id("1ef4f797-8335-6428-8001-8a1503f9b875")) > 1.7e9
        True
    """
    if len(packed) != 16 or packed[6] >> 4 != 6:
        return 0.0
    number = int.from_bytes(packed)
    ticks = number >> 80 << 12 | number >> 64 & 0xFFF
    return (ticks - _UUID_EPOCH) / 1e7


def unpack_id(packed: bytes) -> str:
    """The id from the result of `pack_id`."""
    if len(packed) == 16:
        return str(UUID(bytes=packed))
    return packed[1:].removesuffix(b"\xff").decode("utf-8", "surrogatepass")


def _whole(of_id: str, refs: str, marker: str) -> str:
    """The text of `get_whole`: rows of the tree with the checkpoint (0), of values (1), of writes (2)."""
    return f"""
WITH found AS (
  SELECT id, sealed, epoch, version FROM {tree.name}
  WHERE owner = {marker} AND conversation = {marker} AND scope = ''
), taken AS (
  SELECT * FROM {checkpoint.name} WHERE tree = (SELECT id FROM found) AND ns = {marker} {of_id}
)
SELECT 0, found.id, found.sealed, epoch, version, taken.id, parent, run, refs, kind, data
  FROM found LEFT JOIN taken ON 1 = 1
UNION ALL
SELECT 1, b.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, b.kind, b.data
  FROM taken CROSS JOIN {refs} AS ref CROSS JOIN {blob.name} AS b
  WHERE b.tree = taken.tree AND b.id = ref.value
UNION ALL
SELECT 2, w.idx, NULL, NULL, NULL, w.task, NULL, w.path, w.channel, w.kind, w.data
  FROM taken CROSS JOIN {write.name} AS w
  WHERE w.tree = taken.tree AND w.ns = taken.ns AND w.checkpoint = taken.id
"""


# The references of a damaged checkpoint are read as none; the caller finds the damage.
_REFS_OF = {
    "sqlite": "json_each(CASE WHEN json_valid(taken.refs) THEN taken.refs ELSE '[]' END)",
    "postgresql": r"(SELECT DISTINCT number[1]::bigint AS value FROM "
    r"regexp_matches(taken.refs, '[0-9]{1,18}', 'g') AS number)",
}
_WHOLE, _WHOLE_LATEST = (
    Statement.of(
        sqlite=_whole(condition.format("?"), _REFS_OF["sqlite"], "?"),
        postgresql=_whole(condition.format("%s"), "LATERAL " + _REFS_OF["postgresql"], "%s"),
    )
    for condition in ("AND id = {}", "ORDER BY id DESC LIMIT 1")
)
_OF_NS = (checkpoint.c.tree == bindparam("tree"), checkpoint.c.ns == bindparam("ns"))
_GET = Statement(select(checkpoint).where(*_OF_NS, checkpoint.c.id == bindparam("id")), "tree", "ns", "id")
_LATEST = Statement(select(checkpoint).where(*_OF_NS).order_by(checkpoint.c.id.desc()).limit(1), "tree", "ns")
_FROM = Statement(
    select(checkpoint)
    .where(*_OF_NS, checkpoint.c.id >= bindparam("id"))
    .order_by(checkpoint.c.id)
    .limit(bindparam("most")),
    *("tree", "ns", "id", "most"),
)
_BEFORE = Statement(
    select(checkpoint)
    .where(*_OF_NS, checkpoint.c.id < bindparam("id"))
    .order_by(checkpoint.c.id.desc())
    .limit(bindparam("most")),
    *("tree", "ns", "id", "most"),
)
_PUT = insert_of(checkpoint, replace=True)
_OF_TREE = Statement(select(checkpoint).where(checkpoint.c.tree == bindparam("tree")), "tree")
_addresses = (
    select(*checkpoint.c["tree", "ns", "id"])
    .where(checkpoint.c.tree == bindparam("tree"), checkpoint.c.id < bindparam("before"))
    .order_by(checkpoint.c.id.desc())
    .limit(bindparam("most"))
)
_ADDRESSES = Statement(_addresses, "tree", "before", "most")
_ADDRESSES_OF_NS = Statement(
    _addresses.where(checkpoint.c.ns == bindparam("ns")), *("tree", "ns", "before", "most")
)
_CONVERSATIONS = Statement(
    select(tree.c.id, tree.c.conversation)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        select(checkpoint.c.tree).where(checkpoint.c.tree == tree.c.id).exists(),
    )
    .order_by(tree.c.id),
    "owner",
)
_OF_RUN = Statement(
    select(checkpoint)
    .join(tree, tree.c.id == checkpoint.c.tree)
    .where(checkpoint.c.run == bindparam("run"), tree.c.owner == bindparam("owner")),
    *("run", "owner"),
)
_OWNERS_OF_RUN = Statement(
    select(tree.c.owner)
    .distinct()
    .join(checkpoint, tree.c.id == checkpoint.c.tree)
    .where(checkpoint.c.run == bindparam("run"))
    .order_by(tree.c.owner),
    "run",
)
_OWNERS_OF_THREAD = Statement(
    select(tree.c.owner).where(tree.c.conversation == bindparam("thread"), tree.c.scope == ""), "thread"
)
_REFS = Statement(select(checkpoint.c.refs).where(checkpoint.c.tree == bindparam("tree")), "tree")
_DELETE = Statement(delete(checkpoint).where(*_OF_NS, checkpoint.c.id == bindparam("id")), "tree", "ns", "id")
_parent = checkpoint.alias("p")
_CLEAR_PARENTS = Statement(
    update(checkpoint)
    .where(
        checkpoint.c.tree == bindparam("of"),
        checkpoint.c.parent.is_not(None),
        ~select(_parent.c.id)
        .where(
            _parent.c.tree == checkpoint.c.tree,
            _parent.c.ns == checkpoint.c.ns,
            _parent.c.id == checkpoint.c.parent,
        )
        .exists(),
    )
    .values(parent=None),
    "of",
)

_LAST_BLOB = Statement(select(func.max(blob.c.id)).where(blob.c.tree == bindparam("tree")), "tree")
_last_blob = select(func.max(blob.c.id).label("id")).where(blob.c.tree == bindparam("tree")).subquery()
_PUT_ROWS = Statement(
    select(
        _last_blob.c.id,
        select(checkpoint.c.tree).where(*_OF_NS, checkpoint.c.id == bindparam("id")).exists(),
        *_parent.c,
    ).select_from(
        _last_blob.outerjoin(
            _parent,
            and_(
                _parent.c.tree == bindparam("tree"),
                _parent.c.ns == bindparam("ns"),
                _parent.c.id == bindparam("parent"),
            ),
        )
    ),
    *("tree", "ns", "id", "parent"),
)
PUT_COLUMNS = 2 + len(checkpoint.c)
"""The number of columns of `put_query`."""
_PUT_BLOB = insert_of(blob)
_blobs_of_tree = select(*blob.c["id", "kind", "data"]).where(blob.c.tree == bindparam("tree"))
_BLOBS = Statement(_blobs_of_tree.where(within(blob.c.id, "ids")), "tree", "ids")
_BLOBS_OF_TREE = Statement(_blobs_of_tree, "tree")
_PATCH_BLOB = Statement(
    update(blob)
    .where(blob.c.tree == bindparam("of"), blob.c.id == bindparam("at"), blob.c.data == bindparam("old"))
    .values(data=bindparam("new")),
    *("new", "of", "at", "old"),
)
_DELETE_BLOBS = Statement(
    delete(blob).where(blob.c.tree == bindparam("tree"), within(blob.c.id, "ids")), "tree", "ids"
)
_DATA_OF_KIND = tuple(
    Statement(
        select(table.c.data).where(table.c.tree == bindparam("tree"), table.c.kind == bindparam("kind")),
        *("tree", "kind"),
    )
    for table in (blob, write)
)
_BLOB_IDS = Statement(select(blob.c.id).where(blob.c.tree == bindparam("tree")), "tree")

_KEY_OF_WRITE = ("tree", "ns", "checkpoint", "task", "idx")
_PUT_WRITE = insert_of(write, replace=True, only=write.c.idx < literal_column("0"))
_OF_CHECKPOINT = tuple(write.c[name] == bindparam(name) for name in ("tree", "ns", "checkpoint"))
_WRITES = Statement(select(write).where(*_OF_CHECKPOINT), "tree", "ns", "checkpoint")
_WRITES_OF_TREE = Statement(select(write).where(write.c.tree == bindparam("tree")), "tree")
_PATCH_WRITE = Statement(
    update(write)
    .where(
        *(write.c[name] == bindparam(f"at_{name}") for name in _KEY_OF_WRITE),
        write.c.data == bindparam("old"),
        select(tree.c.id)
        .where(
            tree.c.id == bindparam("at_tree"),
            *trees.is_at_version("epoch", "version"),
        )
        .exists(),
    )
    .values(data=bindparam("new")),
    "new",
    *(f"at_{name}" for name in _KEY_OF_WRITE),
    *("old", "epoch", "version"),
)
_DELETE_WRITES = Statement(delete(write).where(*_OF_CHECKPOINT), "tree", "ns", "checkpoint")


def get(conn: Conn, tree_id: int, ns: str, checkpoint_id: bytes | None) -> CheckpointRow | None:
    """A checkpoint; without an id, the latest of the namespace."""
    return as_checkpoint(conn.each(checkpoint_query(tree_id, ns, checkpoint_id))[0])


class WholeCheckpoint(NamedTuple):
    """A checkpoint with its values and pending writes.

    Attributes:
        version: Epoch and version of the tree.
        row: The checkpoint.
        blobs: The rows of its values, as of `blobs_query`.
        writes: Its pending writes, in LangGraph's order.
    """

    version: TreeVersion
    row: CheckpointRow
    blobs: list[tuple[Any, ...]]
    writes: list[WriteRow]


def get_whole(
    conn: Conn, owner: str, conversation: str, ns: str, checkpoint_id: bytes | None
) -> WholeCheckpoint | None:
    """A checkpoint of a conversation with its values and writes, in one statement.

    Without an id, it is the latest of the namespace. `None` if there is no such conversation or checkpoint.
    """
    values = owner, conversation, ns, *(() if checkpoint_id is None else (checkpoint_id,))
    rows = conn.all(_WHOLE_LATEST if checkpoint_id is None else _WHOLE, *values)
    heads = [row for row in rows if row[0] == 0]
    if trees.id_of_tree(conn, [(row[1], row[2]) for row in heads]) is None:
        return None
    _, tree_id, _, epoch, version, id_, parent, run, refs, kind, data = heads[0]
    if id_ is None:
        return None
    row = _checkpoint((tree_id, ns, id_, parent, run, refs, kind, data))
    blobs = [(row[1], row[9], row[10]) for row in rows if row[0] == 1]
    writes = [(tree_id, ns, id_, row[5], row[1], *row[7:]) for row in rows if row[0] == 2]
    return WholeCheckpoint((epoch, version), row, blobs, as_writes(writes))


def checkpoint_query(tree_id: int, ns: str, checkpoint_id: bytes | None) -> BoundStatement:
    """The query for a checkpoint."""
    return (_LATEST, (tree_id, ns)) if checkpoint_id is None else (_GET, (tree_id, ns, checkpoint_id))


def as_checkpoint(rows: Sequence[tuple[object, ...]]) -> CheckpointRow | None:
    """The checkpoint from the rows of `checkpoint_query`."""
    return _checkpoint(rows[0]) if rows else None


def around(conn: Conn, tree_id: int, ns: str, time: float, most: int) -> Iterator[CheckpointRow]:
    """The checkpoints after a time, earliest first, then the checkpoints before the time, latest first.

    Args:
        conn: A transaction.
        tree_id: The tree.
        ns: The namespace.
        time: Seconds since 1970, compared with the time in a checkpoint's id.
        most: The maximum number of checkpoints after, and before, the time.
    """
    ticks = max(int(time * 1e7), 0) + _UUID_EPOCH
    id_ = (ticks >> 12 << 80 | 6 << 76 | (ticks & 0xFFF) << 64).to_bytes(16)
    for statement in (_FROM, _BEFORE):
        yield from map(_checkpoint, conn.all(statement, tree_id, ns, id_, most))


def put(conn: Conn, row: CheckpointRow) -> None:
    """Store a checkpoint, or replace the checkpoint with its id."""
    encryption_keys.claim(conn)
    conn.later(_PUT, [(*row[:5], to_json(row.refs), *row[6:])])


def of_tree(conn: Conn, tree_id: int) -> list[CheckpointRow]:
    """All checkpoints of a conversation."""
    return [_checkpoint(row) for row in conn.all(_OF_TREE, tree_id)]


def of_run(conn: Conn, owner: str, run: str) -> list[CheckpointRow]:
    """The checkpoints that a run wrote, in all conversations of an owner."""
    return [_checkpoint(row) for row in conn.all(_OF_RUN, run, owner)]


def owners_of_run(conn: Conn, run: str) -> list[str]:
    """The owners of the checkpoints of a run: one, or none if the run wrote no checkpoint.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    check_sees_all_owners(conn)
    return [owner for (owner,) in conn.all(_OWNERS_OF_RUN, run)]


def owners_of_thread(conn: Conn, thread: str) -> list[str]:
    """The owners of the conversations with a name; the cost is linear in the number of conversations.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    check_sees_all_owners(conn)
    return [owner for (owner,) in conn.all(_OWNERS_OF_THREAD, thread)]


def addresses(
    conn: Conn, tree_id: int, ns: str | None, before: bytes | None = None, most: int = EVERYTHING
) -> list[Address]:
    """The addresses of the checkpoints of a conversation, in one namespace or in all, the newest first.

    Args:
        conn: A transaction.
        tree_id: The tree of the conversation.
        ns: The namespace; `None` for all.
        before: Only checkpoints with lower ids.
        most: The maximum number of addresses.
    """
    end = _AFTER_ALL if before is None else before
    if ns is None:
        return [Address(*row) for row in conn.all(_ADDRESSES, tree_id, end, most)]
    return [Address(*row) for row in conn.all(_ADDRESSES_OF_NS, tree_id, ns, end, most)]


def conversations(conn: Conn, owner: str, conversation: str | None = None) -> list[tuple[int, str]]:
    """Trees and names of an owner's conversations with checkpoints, oldest first, or of one conversation."""
    if conversation is not None:
        tree_id = trees.find(conn, owner, conversation)
        return [] if tree_id is None else [(tree_id, conversation)]
    return [(row[0], row[1]) for row in conn.all(_CONVERSATIONS, owner)]


def remove(conn: Conn, removed: Iterable[Address]) -> None:
    """Delete checkpoints and their pending writes; `delete_unused_blobs` deletes their values.

    The remaining children of the checkpoints have no parent: a run from a missing checkpoint would start with
    an empty state.
    """
    keys = [tuple(address) for address in removed]
    conn.many(_DELETE, keys)
    conn.many(_DELETE_WRITES, keys)
    conn.many(_CLEAR_PARENTS, {(tree_id,) for tree_id, _, _ in keys})


def delete_unused_blobs(conn: Conn, tree_id: int) -> None:
    """Delete the blobs of a conversation that no checkpoint refers to."""
    try:
        used = {ref for (refs,) in conn.all(_REFS, tree_id) for ref in json.loads(refs)}
    except ValueError:
        return  # a damaged checkpoint may refer to any blob
    unused = [row[0] for row in conn.all(_BLOB_IDS, tree_id) if row[0] not in used]
    if unused:
        conn.run(_DELETE_BLOBS, tree_id, json.dumps(unused))


class PutRows(NamedTuple):
    """The rows that the verb `put` reads.

    Attributes:
        last_blob: The highest number of a blob, or 0.
        exists: Whether the checkpoint is already stored.
        parent: The parent checkpoint.
    """

    last_blob: int
    exists: bool
    parent: CheckpointRow | None


def put_query(tree_id: int, ns: str, checkpoint_id: bytes, parent: bytes | None) -> BoundStatement:
    """The query for the rows that the verb `put` reads."""
    return _PUT_ROWS, (tree_id, ns, checkpoint_id, parent)


def as_put_rows(row: tuple[Any, ...]) -> PutRows:
    """The rows that the verb `put` reads, from the only row of `put_query`."""
    last, exists, *parent = row
    return PutRows(int(last or 0), bool(exists), None if parent[0] is None else _checkpoint(tuple(parent)))


def put_blobs(
    conn: Conn, tree_id: int, values: Sequence[tuple[str, bytes]], last: int | None = None
) -> list[int]:
    """Store values and return the numbers of their blobs.

    Args:
        conn: A write transaction.
        tree_id: The tree, which is locked.
        values: Format name and bytes of each value.
        last: The highest number of a blob; `None` to read the number here.
    """
    if not values:
        return []
    if last is None:
        last = conn.all(_LAST_BLOB, tree_id)[0][0] or 0
    first = last + 1
    conn.later(_PUT_BLOB, [(tree_id, first + n, *value) for n, value in enumerate(values)])
    return list(range(first, first + len(values)))


def blobs(conn: Conn, tree_id: int) -> dict[int, tuple[str, bytes]]:
    """Format name and bytes of all blobs of a conversation, by number."""
    return as_blobs(conn.all(_BLOBS_OF_TREE, tree_id))


def blobs_query(tree_id: int, ids: Iterable[int]) -> BoundStatement:
    """The query for blobs by number."""
    return _BLOBS, (tree_id, json.dumps(sorted({ref for ref in ids if ref})))


def as_blobs(rows: Iterable[tuple[Any, ...]]) -> dict[int, tuple[str, bytes]]:
    """Format name and bytes by number, from the rows of `blobs_query`."""
    return {row[0]: (row[1], bytes(row[2])) for row in rows}


def missing_blobs(conn: Conn, tree_id: int) -> set[int]:
    """Numbers of missing blobs that checkpoints of a conversation refer to."""
    used = {ref for (refs,) in conn.all(_REFS, tree_id) for ref in json.loads(refs) if ref}
    return used.difference(row[0] for row in conn.all(_BLOB_IDS, tree_id))


def of_kind(conn: Conn, tree_id: int, kind: str) -> set[bytes]:
    """The bytes of the blobs and pending writes of a conversation with a format name."""
    return {bytes(row[0]) for statement in _DATA_OF_KIND for row in conn.all(statement, tree_id, kind)}


def patch_blob(conn: Conn, tree_id: int, number: int, old: bytes, new: bytes) -> None:
    """Replace the bytes of a blob if they equal `old`."""
    conn.later(_PATCH_BLOB, [(new, tree_id, number, old)])


def put_writes(conn: Conn, rows: Iterable[WriteRow]) -> None:
    """Store pending writes; a stored write is replaced only if its index is negative."""
    encryption_keys.claim(conn)
    conn.later(_PUT_WRITE, [*{row[:5]: row for row in rows}.values()])


def put_writes_if(conn: Conn, condition: BoundStatement, rows: Iterable[WriteRow]) -> bool:
    """Store pending writes if a query of the tree returns a row; returns whether it does."""
    encryption_keys.claim(conn)
    return bool(conn.if_any(condition, _PUT_WRITE, [*{row[:5]: row for row in rows}.values()]))


def writes(conn: Conn, address: Address) -> list[WriteRow]:
    """The pending writes of a checkpoint in LangGraph's order."""
    return as_writes(conn.all(_WRITES, *address))


def writes_query(address: Address) -> BoundStatement:
    """The query for the pending writes of a checkpoint."""
    return _WRITES, address


def as_writes(rows: Iterable[tuple[object, ...]]) -> list[WriteRow]:
    """The pending writes from the rows of `writes_query`, in LangGraph's order."""
    writes = [_write(row) for row in rows]
    return sorted(writes, key=lambda row: (row.path, unpack_id(row.task), row.idx))


def writes_of_tree(conn: Conn, tree_id: int) -> list[WriteRow]:
    """All pending writes of a conversation."""
    return [_write(row) for row in conn.all(_WRITES_OF_TREE, tree_id)]


def patch_write(conn: Conn, row: WriteRow, new: bytes, version: TreeVersion | None = None) -> None:
    """Replace the bytes of a pending write if they equal `row.data`, and its tree has a version."""
    conn.later(_PATCH_WRITE, [(new, *row[:5], row.data, *((None, None) if version is None else version))])


def _checkpoint(row: tuple[object, ...]) -> CheckpointRow:
    tree_id, ns, checkpoint_id, parent, run, refs, kind, data = row
    try:
        numbers = json.loads(refs)  # type: ignore[arg-type]
    except ValueError as error:
        raise PersistenceError(
            f"checkpoint {unpack_id(checkpoint_id)!r} is damaged: its references are {refs!r}; run verify()"  # type: ignore[arg-type]
        ) from error
    return CheckpointRow(tree_id, ns, checkpoint_id, parent, run, numbers, kind, data)  # type: ignore[arg-type]


def _write(row: tuple[object, ...]) -> WriteRow:
    return WriteRow(*row)  # type: ignore[arg-type]
