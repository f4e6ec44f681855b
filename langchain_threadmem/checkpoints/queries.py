"""SQL: checkpoints, channel values and pending writes.

Every row carries the tree of its conversation. A checkpoint's own row holds, for each of its channels, the
number of the blob with the channel's value: values that did not change are shared with the checkpoint before,
and two forks of a thread never share a value by accident, whatever versions they give it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Delete, Table, bindparam, delete, func, select, update

from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.schema import blob, checkpoint, tree, write
from langchain_threadmem.storage.statements import Asked, Conn, Statement, insert_of, within

_UUID_EPOCH = 0x01B21DD213814000  # 100 ns from 1582, where the times in UUIDs begin, to 1970


class CheckpointRow(NamedTuple):
    """A checkpoint without the values of its channels."""

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
    """Where a checkpoint lies."""

    tree: int
    ns: str
    id: bytes


def pack_id(text: str) -> bytes:
    """An id as it is stored: a UUID in 16 bytes, anything else as it is behind a mark; both keep their order.

    Example:
        >>> pack_id("1ef4f797-8335-6428-8001-8a1503f9b875").hex()
        '1ef4f7978335642880018a1503f9b875'
    """
    if len(text) == 36 and text.isascii():
        digits = text.replace("-", "")
        try:
            packed = bytes.fromhex(digits)
        except ValueError:
            packed = b""
        if unpack_id(packed) == text:
            return packed
    other = b"\xff" + text.encode("utf-8", "surrogatepass")
    return other + b"\xff" if len(other) == 16 else other


def made_at(packed: bytes) -> float:
    """When a checkpoint was made, in seconds since 1970, as its id says; 0.0 if it is no UUID with a time.

    LangGraph's ids are UUIDs of version 6, which begin with the time.

    Example:
        >>> made_at(pack_id("1ef4f797-8335-6428-8001-8a1503f9b875")) > 1.7e9
        True
    """
    if len(packed) != 16 or packed[6] >> 4 != 6:
        return 0.0
    number = int.from_bytes(packed)
    ticks = number >> 80 << 12 | number >> 64 & 0xFFF
    return (ticks - _UUID_EPOCH) / 1e7


def unpack_id(packed: bytes) -> str:
    """The id that `pack_id` packed."""
    if len(packed) == 16:
        digits = packed.hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return packed[1:].removesuffix(b"\xff").decode("utf-8", "surrogatepass")


_AT = (
    (checkpoint.c.tree == bindparam("tree")),
    (checkpoint.c.ns == bindparam("ns")),
)
_GET = Statement(select(checkpoint).where(*_AT, checkpoint.c.id == bindparam("id")), "tree", "ns", "id")
_LATEST = Statement(select(checkpoint).where(*_AT).order_by(checkpoint.c.id.desc()).limit(1), "tree", "ns")
_FROM = Statement(
    select(checkpoint)
    .where(*_AT, checkpoint.c.id >= bindparam("id"))
    .order_by(checkpoint.c.id)
    .limit(bindparam("most")),
    *("tree", "ns", "id", "most"),
)
_BEFORE = Statement(
    select(checkpoint)
    .where(*_AT, checkpoint.c.id < bindparam("id"))
    .order_by(checkpoint.c.id.desc())
    .limit(bindparam("most")),
    *("tree", "ns", "id", "most"),
)
_PUT = insert_of(checkpoint, replace=True)
_OF_TREE = Statement(select(checkpoint).where(checkpoint.c.tree == bindparam("tree")), "tree")
_ADDRESSES = Statement(
    select(*checkpoint.c["tree", "ns", "id"]).where(checkpoint.c.tree == bindparam("tree")), "tree"
)
_ADDRESSES_OF_NS = Statement(select(*checkpoint.c["tree", "ns", "id"]).where(*_AT), "tree", "ns")
_THREADS = Statement(
    select(tree.c.id, tree.c.conversation)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        select(checkpoint.c.tree).where(checkpoint.c.tree == tree.c.id).exists(),
    )
    .order_by(tree.c.id),
    "owner",
)
_SCOPES = Statement(
    select(tree.c.scope, tree.c.id)
    .where(tree.c.owner == bindparam("owner"), tree.c.conversation == bindparam("conversation"))
    .order_by(tree.c.id),
    "owner",
    "conversation",
)
_OF_RUN = Statement(
    select(checkpoint)
    .join(tree, tree.c.id == checkpoint.c.tree)
    .where(checkpoint.c.run == bindparam("run"), tree.c.owner == bindparam("owner")),
    "run",
    "owner",
)
_REFS = Statement(select(checkpoint.c.refs).where(checkpoint.c.tree == bindparam("tree")), "tree")
_DELETE = Statement(delete(checkpoint).where(*_AT, checkpoint.c.id == bindparam("id")), "tree", "ns", "id")

_LAST_BLOB = Statement(select(func.max(blob.c.id)).where(blob.c.tree == bindparam("tree")), "tree")
_PUT_BLOB = insert_of(blob)
_BLOBS = Statement(
    select(blob.c.id, blob.c.kind, blob.c.data).where(
        blob.c.tree == bindparam("tree"), within(blob.c.id, "ids")
    ),
    "tree",
    "ids",
)
_BLOBS_OF_TREE = Statement(
    select(blob.c.id, blob.c.kind, blob.c.data).where(blob.c.tree == bindparam("tree")), "tree"
)
_PATCH_BLOB = Statement(
    update(blob)
    .where(blob.c.tree == bindparam("of"), blob.c.id == bindparam("at"), blob.c.data == bindparam("old"))
    .values(data=bindparam("new")),
    "new",
    "of",
    "at",
    "old",
)
_DELETE_BLOBS = Statement(
    delete(blob).where(blob.c.tree == bindparam("tree"), within(blob.c.id, "ids")), "tree", "ids"
)
_MIXTURES = tuple(
    Statement(
        select(table.c.data).where(table.c.tree == bindparam("tree"), table.c.kind == bindparam("kind")),
        "tree",
        "kind",
    )
    for table in (blob, write)
)
_BLOB_IDS = Statement(select(blob.c.id).where(blob.c.tree == bindparam("tree")), "tree")

_KEY_OF_WRITE = ("tree", "ns", "checkpoint", "task", "idx")
_INDEXES = Statement(
    select(write.c.idx).where(*(write.c[name] == bindparam(name) for name in _KEY_OF_WRITE[:4])),
    *_KEY_OF_WRITE[:4],
)
_PUT_WRITE = insert_of(write, replace=True)
_WRITES = Statement(
    select(write).where(
        write.c.tree == bindparam("tree"),
        write.c.ns == bindparam("ns"),
        write.c.checkpoint == bindparam("checkpoint"),
    ),
    "tree",
    "ns",
    "checkpoint",
)
_WRITES_OF_TREE = Statement(select(write).where(write.c.tree == bindparam("tree")), "tree")
_PATCH_WRITE = Statement(
    update(write)
    .where(
        *(write.c[name] == bindparam(f"at_{name}") for name in _KEY_OF_WRITE),
        write.c.data == bindparam("old"),
    )
    .values(data=bindparam("new")),
    "new",
    *(f"at_{name}" for name in _KEY_OF_WRITE),
    "old",
)
_DELETE_WRITES = Statement(
    delete(write).where(
        write.c.tree == bindparam("tree"),
        write.c.ns == bindparam("ns"),
        write.c.checkpoint == bindparam("checkpoint"),
    ),
    "tree",
    "ns",
    "checkpoint",
)


def _all_of(table: Table) -> Delete:
    return delete(table).where(table.c.tree == bindparam("tree"))


_CLEAR = tuple(Statement(_all_of(table), "tree") for table in (checkpoint, blob, write))


def get(conn: Conn, tree_id: int, ns: str, checkpoint_id: bytes | None) -> CheckpointRow | None:
    """A checkpoint; the latest of its namespace if no id is given."""
    return got(conn.each(getting(tree_id, ns, checkpoint_id))[0])


def getting(tree_id: int, ns: str, checkpoint_id: bytes | None) -> Asked:
    """The question for a checkpoint."""
    return (_LATEST, (tree_id, ns)) if checkpoint_id is None else (_GET, (tree_id, ns, checkpoint_id))


def got(rows: Sequence[tuple[object, ...]]) -> CheckpointRow | None:
    """The answer to `getting`."""
    return _row(rows[0]) if rows else None


def around(conn: Conn, tree_id: int, ns: str, time: float, most: int) -> Iterator[CheckpointRow]:
    """The checkpoints from a time on, the earliest first, then those before it, the latest first.

    Args:
        conn: A transaction.
        tree_id: The tree.
        ns: The namespace.
        time: Seconds since 1970, compared with the time in a checkpoint's id.
        most: How many checkpoints on either side.
    """
    ticks = max(int(time * 1e7), 0) + _UUID_EPOCH
    id_ = (ticks >> 12 << 80 | 6 << 76 | (ticks & 0xFFF) << 64).to_bytes(16)
    for statement in (_FROM, _BEFORE):
        yield from map(_row, conn.all(statement, tree_id, ns, id_, most))


def put(conn: Conn, row: CheckpointRow) -> None:
    """Store a checkpoint; one with the same id is replaced."""
    encryption_keys.claim(conn)
    conn.run(_PUT, *row[:5], json.dumps(row.refs, separators=(",", ":")), *row[6:])


def of_tree(conn: Conn, tree_id: int) -> list[CheckpointRow]:
    """Every checkpoint of a conversation."""
    return [_row(row) for row in conn.all(_OF_TREE, tree_id)]


def of_run(conn: Conn, owner: str, run: str) -> list[CheckpointRow]:
    """The checkpoints that a run wrote in any conversation of an owner."""
    return [_row(row) for row in conn.all(_OF_RUN, run, owner)]


def addresses(conn: Conn, tree_id: int, ns: str | None) -> list[Address]:
    """Where the checkpoints of a conversation lie, in one namespace or in all."""
    rows = conn.all(_ADDRESSES, tree_id) if ns is None else conn.all(_ADDRESSES_OF_NS, tree_id, ns)
    return [Address(*row) for row in rows]


def threads(conn: Conn, owner: str) -> list[tuple[int, str]]:
    """Trees and names of an owner's conversations that have checkpoints, the oldest first."""
    return [(row[0], row[1]) for row in conn.all(_THREADS, owner)]


def scopes(conn: Conn, owner: str, conversation: str) -> list[tuple[str, int]]:
    """The scopes of a conversation and their trees, the conversation's own first."""
    return [(row[0], row[1]) for row in conn.all(_SCOPES, owner, conversation)]


def remove(conn: Conn, where: Iterable[Address]) -> None:
    """Delete checkpoints and their pending writes; `collect` takes the blobs that nothing refers to."""
    listed = [tuple(address) for address in where]
    conn.many(_DELETE, listed)
    conn.many(_DELETE_WRITES, listed)


def collect(conn: Conn, tree_id: int) -> None:
    """Delete the blobs of a conversation that no checkpoint of it refers to."""
    try:
        used = {ref for (refs,) in conn.all(_REFS, tree_id) for ref in json.loads(refs)}
    except ValueError:
        return  # What a damaged checkpoint refers to is not known, so all of it is kept.
    unused = [row[0] for row in conn.all(_BLOB_IDS, tree_id) if row[0] not in used]
    if unused:
        conn.run(_DELETE_BLOBS, tree_id, json.dumps(unused))


def clear(conn: Conn, tree_id: int) -> None:
    """Delete all checkpoints, blobs and pending writes of a conversation."""
    for statement in _CLEAR:
        conn.run(statement, tree_id)


def asking_last_blob(tree_id: int) -> Asked:
    """The question for the last number that a value has."""
    return _LAST_BLOB, (tree_id,)


def put_blobs(
    conn: Conn,
    tree_id: int,
    values: Sequence[tuple[str, bytes]],
    last: Sequence[tuple[Any, ...]] | None = None,
) -> list[int]:
    """Store values, each its format's name and bytes; returns their numbers.

    Args:
        conn: A write transaction.
        tree_id: The tree, which is locked.
        values: The values.
        last: The answer to `asking_last_blob`, if it was asked before.
    """
    if not values:
        return []
    if last is None:
        last = conn.all(_LAST_BLOB, tree_id)
    first = int(last[0][0] or 0) + 1
    conn.many(_PUT_BLOB, [(tree_id, first + n, *value) for n, value in enumerate(values)])
    return list(range(first, first + len(values)))


def blobs(conn: Conn, tree_id: int) -> dict[int, tuple[str, bytes]]:
    """All values of a conversation by their numbers."""
    return as_blobs(conn.all(_BLOBS_OF_TREE, tree_id))


def asking_blobs(tree_id: int, ids: Iterable[int]) -> Asked:
    """The question for values by their numbers."""
    return _BLOBS, (tree_id, json.dumps(sorted({ref for ref in ids if ref})))


def as_blobs(rows: Iterable[tuple[Any, ...]]) -> dict[int, tuple[str, bytes]]:
    """The answer to `asking_blobs`: format and bytes by number."""
    return {row[0]: (row[1], bytes(row[2])) for row in rows}


def missing_blobs(conn: Conn, tree_id: int) -> set[int]:
    """Numbers of values that a conversation's checkpoints refer to and that are not there."""
    used = {ref for (refs,) in conn.all(_REFS, tree_id) for ref in json.loads(refs) if ref}
    return used.difference(row[0] for row in conn.all(_BLOB_IDS, tree_id))


def of_kind(conn: Conn, tree_id: int, kind: str) -> set[bytes]:
    """The values and pending writes of a conversation that are of one format."""
    return {bytes(row[0]) for statement in _MIXTURES for row in conn.all(statement, tree_id, kind)}


def patch_blob(conn: Conn, tree_id: int, number: int, old: bytes, new: bytes) -> None:
    """Write a value in another form, unless it is another value by now."""
    conn.run(_PATCH_BLOB, new, tree_id, number, old)


def asking_indexes(tree_id: int, ns: str, checkpoint_id: bytes, task: bytes) -> Asked:
    """The question for the indexes of a task's writes that are stored."""
    return _INDEXES, (tree_id, ns, checkpoint_id, task)


def put_writes(conn: Conn, rows: Iterable[WriteRow]) -> None:
    """Store pending writes; those with the same task and index are replaced."""
    encryption_keys.claim(conn)
    conn.many(_PUT_WRITE, rows)


def writes(conn: Conn, where: Address) -> list[WriteRow]:
    """The pending writes of a checkpoint, in the order in which LangGraph applies them."""
    return as_writes(conn.all(_WRITES, *where))


def asking_writes(where: Address) -> Asked:
    """The question for the pending writes of a checkpoint."""
    return _WRITES, where


def as_writes(found: Iterable[tuple[object, ...]]) -> list[WriteRow]:
    """The answer to `asking_writes`, in the order in which LangGraph applies them."""
    rows = [_write(row) for row in found]
    return sorted(rows, key=lambda row: (row.path, unpack_id(row.task), row.idx))


def writes_of_tree(conn: Conn, tree_id: int) -> list[WriteRow]:
    """Every pending write of a conversation."""
    return [_write(row) for row in conn.all(_WRITES_OF_TREE, tree_id)]


def patch_write(conn: Conn, row: WriteRow, new: bytes) -> None:
    """Write a pending write in another form, unless it is another one by now."""
    conn.run(_PATCH_WRITE, new, *row[:5], row.data)


def _row(row: tuple[object, ...]) -> CheckpointRow:
    tree_id, ns, checkpoint_id, parent, run, refs, kind, data = row
    try:
        numbers = json.loads(refs)  # type: ignore[arg-type]
    except ValueError as error:
        raise PersistenceError(
            f"checkpoint {unpack_id(checkpoint_id)!r} is damaged: what it refers to is {refs!r}; run verify()"  # type: ignore[arg-type]
        ) from error
    return CheckpointRow(tree_id, ns, checkpoint_id, parent, run, numbers, kind, data)  # type: ignore[arg-type]


def _write(row: tuple[object, ...]) -> WriteRow:
    return WriteRow(*row)  # type: ignore[arg-type]
