"""Verbs that read checkpoints: one, a list, the history of a delta channel.

One transaction reads all rows that a call needs, each message row once, however many checkpoints refer to it;
decoding follows outside of it, and makes new objects for every state, so that no two share a message that a
caller may change.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.queries import Address, CheckpointRow, WriteRow, pack_id, unpack_id
from langchain_threadmem.checkpoints.save import Archive, expand
from langchain_threadmem.checkpoints.spans import Hot, Reader
from langchain_threadmem.checkpoints.values import KIND, StoredValue, put_together, unpack
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Resources, SharedComponent
from langchain_threadmem.errors import ClosedError, DriverError, EncryptionError, InputError, PersistenceError
from langchain_threadmem.messages.codec import Parsed
from langchain_threadmem.messages.parts import Stored
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.rows import DecodedMessages

log = logging.getLogger(__package__)
CACHED_SEGMENTS = 32


class Snapshot(NamedTuple):
    """A stored checkpoint.

    Attributes:
        thread: Name of its conversation.
        ns: Its namespace.
        parent: Id of the checkpoint it continues.
        checkpoint: As LangGraph gave it.
        metadata: As LangGraph gave it.
        writes: Pending writes: task id, channel, value.
    """

    thread: str
    ns: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[tuple[str, str, Any]]


@telemetry.observed("get_checkpoint", telemetry.of_name)
def get(archive: Archive, thread: str, ns: str, checkpoint: str | None) -> Flow[Snapshot | None]:
    """A checkpoint; the latest of its namespace if no id is given."""
    wanted = None if checkpoint is None else pack_id(checkpoint)

    def read(conn: Conn) -> _Shelf | None:
        _, row = _latest(archive, conn, thread, ns, wanted)
        return None if row is None else _gather(archive, conn, [row])

    shelf = yield from Sql(read)
    return None if shelf is None else _snapshot(archive, thread, shelf, shelf.rows[0])


@contextmanager
def _reading(thread: str, ns: str, id: bytes) -> Iterator[None]:
    """Errors of what reads a checkpoint name it.

    Raises:
        PersistenceError: Something of it is damaged, or gone, or encrypted with another key.
    """
    try:
        yield
    except (ClosedError, DriverError):
        raise
    except Exception as error:  # Damage has any form.
        kind = EncryptionError if isinstance(error, EncryptionError) else PersistenceError
        raise kind(
            f"checkpoint {unpack_id(id)!r} of thread {thread!r}, namespace {ns!r}, cannot be read: {error}; "
            "run verify(). Others can be read: name one in the configuration"
        ) from error


def _latest(
    archive: Archive, conn: Conn, thread: str, ns: str, wanted: bytes | None
) -> tuple[int | None, CheckpointRow | None]:
    """The tree of a thread and a checkpoint of it, in one round trip if the tree is known."""
    known = archive.lists.trees(thread).get("")
    asked = [] if known is None else [checkpoint_queries.getting(known, ns, wanted)]
    rows = conn.each(trees.finding(archive.runtime.owner, thread), *asked)
    tree = trees.found(conn, rows[0])
    if tree is None:
        return None, None
    return tree, checkpoint_queries.got(rows[1]) if tree == known else checkpoint_queries.get(
        conn, tree, ns, wanted
    )


def addresses(
    archive: Archive, thread: str | None, ns: str | None, checkpoint: str | None, before: str | None
) -> Flow[list[tuple[str, Address]]]:
    """Where checkpoints lie, with the name of their conversation; the newest first."""

    def read(conn: Conn) -> list[tuple[str, Address]]:
        named = checkpoint_queries.threads(conn, archive.runtime.owner)
        if thread is not None:
            tree = trees.find(conn, archive.runtime.owner, thread)
            named = [] if tree is None else [(tree, thread)]
        return [
            (name, where) for tree, name in named for where in checkpoint_queries.addresses(conn, tree, ns)
        ]

    found = yield from Sql(read)
    first = None if checkpoint is None else pack_id(checkpoint)
    limit = None if before is None else pack_id(before)
    chosen = [
        (name, where)
        for name, where in found
        if (first is None or where.id == first) and (limit is None or where.id < limit)
    ]
    return sorted(chosen, key=lambda one: one[1].id, reverse=True)


def page(
    archive: Archive, where: Sequence[tuple[str, Address]], wanted: Mapping[str, Any] | None, most: int | None
) -> Flow[_Page]:
    """Some checkpoints, read together: those whose metadata holds all that is wanted.

    Args:
        archive: Where they are.
        where: Where they lie, with the names of their conversations.
        wanted: Metadata, compared by `==`.
        most: How many at most.
    """
    names = {address: name for name, address in where}

    def read(conn: Conn) -> _Shelf:
        rows: list[CheckpointRow] = []
        for name, address in where:
            try:
                row = checkpoint_queries.get(conn, *address)
                with _reading(name, address.ns, address.id):
                    if row and (not wanted or _matches(_state(archive, row)[1], wanted)):
                        rows.append(row)
            except PersistenceError as error:
                log.warning("left out of a list: %s", error)
        return _gather(archive, conn, rows[:most])

    shelf = yield from Sql(read)
    return _Page(archive, names, shelf)


@dataclass(frozen=True)
class _Page:
    """Checkpoints that were read, decoded as they are asked for."""

    archive: Archive
    names: Mapping[Address, str]
    shelf: _Shelf

    def __len__(self) -> int:
        return len(self.shelf.rows)

    def readable(self) -> Iterator[Snapshot]:
        """Those that can be read, in their order; of the others a warning is logged."""
        for row in self.shelf.rows:
            try:
                yield _snapshot(self.archive, self.names[Address(row.tree, row.ns, row.id)], self.shelf, row)
            except PersistenceError as error:
                log.warning("left out of a list: %s", error)


class History(NamedTuple):
    """What was written to a channel since its last stored value.

    Attributes:
        writes: Task id, channel and value, oldest first.
        seed: That value, in a list; an empty list if there was none.
    """

    writes: list[tuple[str, str, Any]]
    seed: list[Any]


def delta_history(
    archive: Archive, thread: str, ns: str, checkpoint: str | None, channels: Sequence[str]
) -> Flow[dict[str, History]]:
    """Walk up from a checkpoint, for each channel as far as its nearest stored value."""
    wanted = None if checkpoint is None else pack_id(checkpoint)

    def read(conn: Conn) -> tuple[_Shelf, dict[str, list[WriteRow]], dict[str, tuple[int, int]]]:
        tree, row = _latest(archive, conn, thread, ns, wanted)
        found: dict[str, list[WriteRow]] = {channel: [] for channel in channels}
        seeds: dict[str, tuple[int, int]] = {}
        seen: set[bytes] = set()
        shelf = _Shelf.of(archive, [])
        while (
            row is not None and row.parent is not None and row.parent not in seen and len(seeds) < len(found)
        ):
            seen.add(row.parent)
            row = checkpoint_queries.get(conn, row.tree, ns, row.parent)
            if row is None:
                break
            for write in reversed(checkpoint_queries.writes(conn, Address(row.tree, ns, row.id))):
                if write.channel in found and write.channel not in seeds:
                    found[write.channel].append(write)
            with _reading(thread, ns, row.id):
                refs = dict(zip(_state(archive, row)[0].get("channel_versions", {}), row.refs, strict=True))
            seeds |= {name: (row.tree, refs[name]) for name in found if name not in seeds and refs.get(name)}
        if tree is not None:
            asked = checkpoint_queries.asking_blobs(tree, [number for _, number in seeds.values()])
            shelf.add_blobs(tree, conn.each(asked)[0])
        shelf.add_writes(write for writes in found.values() for write in writes)
        shelf.reader.load(conn, shelf.runs())
        return shelf, found, seeds

    shelf, found, seeds = yield from Sql(read)
    return {
        channel: History(
            [shelf.write(archive, write) for write in reversed(found[channel])],
            [shelf.blob(archive, *seeds[channel])] if channel in seeds else [],
        )
        for channel in channels
    }


class HotSegments(SharedComponent):
    """Rows of segments that checkpoints led through lately."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self.segments = LruCache[int, Hot](CACHED_SEGMENTS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self.segments = LruCache(CACHED_SEGMENTS)


@dataclass(frozen=True)
class _Shelf:
    """Rows that were read together.

    Attributes:
        rows: Checkpoints.
        blobs: Values of channels, by tree and number.
        writes: Pending writes by checkpoint.
        mixtures: Those of both that hold messages of the tree, by the bytes they were read from.
        reader: The messages.
        parsed: Bodies of messages that were parsed before.
    """

    rows: list[CheckpointRow]
    blobs: dict[tuple[int, int], Stored]
    writes: dict[Address, list[WriteRow]]
    mixtures: dict[bytes, StoredValue]
    reader: Reader
    parsed: Parsed

    @classmethod
    def of(cls, archive: Archive, rows: Sequence[CheckpointRow]) -> _Shelf:
        runtime = archive.runtime
        return cls(
            list(rows),
            {},
            {},
            {},
            Reader(runtime.get(HotSegments).segments),
            runtime.get(DecodedMessages).bodies(),
        )

    def add_blobs(self, tree: int, rows: Sequence[tuple[Any, ...]]) -> None:
        """Note values of channels, which were read."""
        for number, value in checkpoint_queries.as_blobs(rows).items():
            self.blobs[tree, number] = value
            self._look_into(*value)

    def add_writes(self, writes: Any) -> None:
        """Note which messages pending writes refer to."""
        for write in writes:
            self._look_into(write.kind, write.data)

    def runs(self) -> list[Any]:
        """All runs of messages."""
        return [run for mixture in self.mixtures.values() for run in mixture.runs()]

    def blob(self, archive: Archive, tree: int, number: int) -> Any:
        """The value of a channel, new."""
        if (tree, number) not in self.blobs:
            raise PersistenceError(f"a checkpoint refers to the value {number}, which is gone; run verify()")
        return self._value(archive, *self.blobs[tree, number])

    def write(self, archive: Archive, row: WriteRow) -> tuple[str, str, Any]:
        """A pending write, its value new."""
        return unpack_id(row.task), row.channel, self._value(archive, row.kind, row.data)

    def _value(self, archive: Archive, kind: str, data: bytes) -> Any:
        if kind != KIND:
            return archive.load(kind, data)
        mixture = self.mixtures.get(data) or unpack(data)
        seal = archive.runtime.seal
        opened = mixture if seal is None else mixture.opened(seal.open_text)
        return put_together(opened, self.reader.rows, archive.load, self.parsed, archive.parts.read)

    def _look_into(self, kind: str, data: bytes) -> None:
        if kind == KIND and data not in self.mixtures:
            with suppress(InputError):  # Whoever asks for this value is told.
                self.mixtures[data] = unpack(data)


def _gather(archive: Archive, conn: Conn, rows: Sequence[CheckpointRow]) -> _Shelf:
    shelf = _Shelf.of(archive, rows)
    of_trees = {row.tree: [ref for one in rows if one.tree == row.tree for ref in one.refs] for row in rows}
    places = [Address(row.tree, row.ns, row.id) for row in rows]
    answers = conn.each(
        *(checkpoint_queries.asking_blobs(tree, refs) for tree, refs in of_trees.items()),
        *(checkpoint_queries.asking_writes(where) for where in places),
    )
    for tree, found in zip(of_trees, answers, strict=False):
        shelf.add_blobs(tree, found)
    for where, found in zip(places, answers[len(of_trees) :], strict=True):
        shelf.writes[where] = checkpoint_queries.as_writes(found)
        shelf.add_writes(shelf.writes[where])
    shelf.reader.load(conn, shelf.runs())
    return shelf


def _snapshot(archive: Archive, thread: str, shelf: _Shelf, row: CheckpointRow) -> Snapshot:
    with _reading(thread, row.ns, row.id):
        state, metadata = _state(archive, row)
        named = zip(state.get("channel_versions", {}), row.refs, strict=True)
        values = {channel: shelf.blob(archive, row.tree, number) for channel, number in named if number}
        return Snapshot(
            thread,
            row.ns,
            None if row.parent is None else unpack_id(row.parent),
            {**state, "id": unpack_id(row.id), "channel_values": values},
            metadata,
            [shelf.write(archive, write) for write in shelf.writes[Address(row.tree, row.ns, row.id)]],
        )


def _state(archive: Archive, row: CheckpointRow) -> tuple[dict[str, Any], dict[str, Any]]:
    return expand(archive.load(row.kind, row.data))


def _matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in wanted.items())
