"""Verbs that read checkpoints: a checkpoint, a list of checkpoints, the history of a delta channel.

A call reads its rows in one transaction, and each message row once even if several checkpoints refer to it.
Rows are decoded after the transaction into new objects for each state, so that states share no mutable
message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from langgraph.checkpoint.base import DeltaChannelHistory

from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import ClosedError, DriverError, EncryptionError, InputError, PersistenceError
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.langgraph.checkpoints.queries import (
    Address,
    CheckpointRow,
    WholeCheckpoint,
    WriteRow,
    pack_id,
    unpack_id,
)
from langchain_threadmem.langgraph.checkpoints.save import Archive, blobs_of
from langchain_threadmem.langgraph.checkpoints.spans import SegmentCache, SpanReader
from langchain_threadmem.langgraph.checkpoints.values import KIND, StoredValue, put_together, unpack
from langchain_threadmem.messages.codec import Parsed
from langchain_threadmem.messages.parts import TypedBytes
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.node import DecodedMessages
from langchain_threadmem.tree.nodes import EVERYTHING
from langchain_threadmem.tree.trees import TreeVersion

log = logging.getLogger(__package__)


class LoadedCheckpoint(NamedTuple):
    """A stored checkpoint.

    Attributes:
        conversation: Name of the conversation.
        ns: Namespace of the checkpoint.
        parent: Id of the parent checkpoint.
        checkpoint: LangGraph's checkpoint.
        metadata: LangGraph's metadata.
        writes: Task id, channel and value of each pending write.
    """

    conversation: str
    ns: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    writes: list[tuple[str, str, Any]]


@telemetry.observed("get_checkpoint", telemetry.of_name)
def get(
    archive: Archive, conversation: str, ns: str, checkpoint: str | None
) -> Flow[LoadedCheckpoint | None]:
    """A checkpoint; without an id, the latest of the namespace."""
    id_ = None if checkpoint is None else pack_id(checkpoint)

    def read(conn: Conn) -> _CheckpointRows | None:
        stored = checkpoint_queries.get_whole(conn, archive.runtime.owner, conversation, ns, id_)
        return None if stored is None else _whole_batch(archive, conn, stored)

    batch = yield from Sql(read)
    return None if batch is None else _snapshot(conversation, batch, batch.rows[0])


@contextmanager
def _reading(conversation: str, ns: str, id: bytes) -> Iterator[None]:
    """Add the address of a checkpoint to the errors that its reading raises.

    Raises:
        PersistenceError: A part of the checkpoint is damaged or missing.
        EncryptionError: A part of the checkpoint is encrypted with another key.
    """
    try:
        yield
    except (ClosedError, DriverError):
        raise
    except Exception as error:  # damaged data can raise any error
        kind = EncryptionError if isinstance(error, EncryptionError) else PersistenceError
        raise kind(
            f"checkpoint {unpack_id(id)!r} of thread {conversation!r}, namespace {ns!r}, cannot be read: "
            f"{error}; run verify(), or pass the id of another checkpoint in the configuration"
        ) from error


def addresses(
    archive: Archive,
    conversation: str | None,
    ns: str | None,
    checkpoint: str | None,
    before: str | None,
    limit: int | None,
) -> Flow[list[tuple[str, Address]]]:
    """Addresses of checkpoints, each with the name of its conversation, the newest first."""
    id_ = None if checkpoint is None else pack_id(checkpoint)
    end = None if before is None else pack_id(before)
    most = EVERYTHING if limit is None or id_ is not None else max(limit, 0)

    def read(conn: Conn) -> list[tuple[str, Address]]:
        return [
            (name, address)
            for tree, name in checkpoint_queries.conversations(conn, archive.runtime.owner, conversation)
            for address in checkpoint_queries.addresses(conn, tree, ns, end, most)
            if id_ is None or address.id == id_
        ]

    return sorted((yield from Sql(read)), key=lambda named: named[1].id, reverse=True)


def page(
    archive: Archive,
    named: Sequence[tuple[str, Address]],
    filter_: Mapping[str, Any] | None,
    most: int | None,
) -> Flow[_CheckpointPage]:
    """Read checkpoints whose metadata matches a filter in one transaction.

    Args:
        archive: The checkpoints.
        named: The addresses of the checkpoints, with the names of their conversations.
        filter_: Keys and values that the metadata must contain.
        most: The maximum number of checkpoints.
    """
    names = {address: name for name, address in named}

    def read(conn: Conn) -> _CheckpointRows:
        rows: list[CheckpointRow] = []
        for name, address in named:
            try:
                row = checkpoint_queries.get(conn, *address)
                with _reading(name, address.ns, address.id):
                    if row and (not filter_ or _matches(archive.state(row)[1], filter_)):
                        rows.append(row)
            except PersistenceError as error:
                log.warning("omitted from a list of checkpoints: %s", error)
        return _read_batch(archive, conn, rows[:most])

    batch = yield from Sql(read)
    return _CheckpointPage(names, batch)


@dataclass(frozen=True)
class _CheckpointPage:
    """A page of checkpoints, decoded one by one."""

    names: Mapping[Address, str]
    batch: _CheckpointRows

    def __len__(self) -> int:
        return len(self.batch.rows)

    def readable(self) -> Iterator[LoadedCheckpoint]:
        """The readable checkpoints in order; a warning is logged for each unreadable checkpoint."""
        for row in self.batch.rows:
            try:
                yield _snapshot(self.names[Address(row.tree, row.ns, row.id)], self.batch, row)
            except PersistenceError as error:
                log.warning("omitted from a list of checkpoints: %s", error)


def delta_history(
    archive: Archive, conversation: str, ns: str, checkpoint: str | None, channels: Sequence[str]
) -> Flow[dict[str, DeltaChannelHistory]]:
    """The last stored value of each channel before a checkpoint, and the writes since, oldest first."""
    id_ = None if checkpoint is None else pack_id(checkpoint)

    def read(conn: Conn) -> tuple[_CheckpointRows, dict[str, list[WriteRow]], dict[str, tuple[int, int]]]:
        tree = trees.find(conn, archive.runtime.owner, conversation)
        row = None if tree is None else checkpoint_queries.get(conn, tree, ns, id_)
        writes: dict[str, list[WriteRow]] = {channel: [] for channel in channels}
        seeds: dict[str, tuple[int, int]] = {}
        seen: set[bytes] = set()
        batch = _CheckpointRows(archive)
        while (
            row is not None and row.parent is not None and row.parent not in seen and len(seeds) < len(writes)
        ):
            seen.add(row.parent)
            row = checkpoint_queries.get(conn, row.tree, ns, row.parent)
            if row is None:
                break
            for write in reversed(checkpoint_queries.writes(conn, Address(row.tree, ns, row.id))):
                if write.channel in writes and write.channel not in seeds:
                    writes[write.channel].append(write)
            with _reading(conversation, ns, row.id):
                refs = blobs_of(archive.state(row)[0], row)
            seeds |= {name: (row.tree, refs[name]) for name in writes if name not in seeds and refs.get(name)}
        if tree is not None:
            query = checkpoint_queries.blobs_query(tree, [number for _, number in seeds.values()])
            batch.add_blobs(tree, conn.each(query)[0])
        batch.add_writes(write for rows in writes.values() for write in rows)
        batch.load(conn)
        return batch, writes, seeds

    batch, writes, seeds = yield from Sql(read)
    histories: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        histories[channel] = {"writes": [batch.write(row) for row in reversed(writes[channel])]}
        if channel in seeds:
            histories[channel]["seed"] = batch.blob(*seeds[channel])
    return histories


@dataclass(frozen=True)
class _CheckpointRows:
    """The rows of one read.

    Attributes:
        archive: The checkpoints of the owner.
        rows: Checkpoints.
        blobs: Values of channels, by tree and number.
        writes: Pending writes, by checkpoint.
        stored_values: The values and writes that refer to messages of the tree, by their bytes.
        reader: The messages.
    """

    archive: Archive
    rows: Sequence[CheckpointRow] = ()
    blobs: dict[tuple[int, int], TypedBytes] = field(default_factory=dict)
    writes: dict[Address, list[WriteRow]] = field(default_factory=dict)
    stored_values: dict[bytes, StoredValue] = field(default_factory=dict)
    reader: SpanReader = field(default_factory=SpanReader)

    @cached_property
    def parsed(self) -> Parsed:
        """A cache of parsed message bodies."""
        return self.archive.runtime.get(DecodedMessages).bodies()

    def add_blobs(self, tree: int, rows: Sequence[tuple[Any, ...]]) -> None:
        for number, value in checkpoint_queries.as_blobs(rows).items():
            self.blobs[tree, number] = value
            self._unpack(*value)

    def add_writes(self, writes: Iterable[WriteRow]) -> None:
        for write in writes:
            self._unpack(write.kind, write.data)

    def load(self, conn: Conn, read: tuple[int, TreeVersion] | None = None) -> None:
        """Read the messages of the values and writes; `read` is a tree whose version was read."""
        spans = [span for stored_value in self.stored_values.values() for span in stored_value.spans()]
        self.reader.load(conn, spans, self.archive.runtime.get(SegmentCache).segments, read)

    def blob(self, tree: int, number: int) -> Any:
        """A new object with the value of a channel."""
        if (tree, number) not in self.blobs:
            raise PersistenceError(f"a checkpoint refers to the missing value {number}; run verify()")
        return self._value(*self.blobs[tree, number])

    def write(self, row: WriteRow) -> tuple[str, str, Any]:
        """Task id, channel and a new object with the value of a pending write."""
        return unpack_id(row.task), row.channel, self._value(row.kind, row.data)

    def _value(self, kind: str, data: bytes) -> Any:
        archive = self.archive
        if kind != KIND:
            return archive.load(kind, data)
        stored_value = self.stored_values.get(data) or unpack(data)
        seal = archive.runtime.seal
        opened = stored_value if seal is None else stored_value.with_bodies(seal.open_text)
        return put_together(opened, self.reader.rows, archive.load, self.parsed, archive.parts.read)

    def _unpack(self, kind: str, data: bytes) -> None:
        if kind == KIND and data not in self.stored_values:
            with suppress(InputError):  # `_value` will raise the error
                self.stored_values[data] = unpack(data)


def _read_batch(archive: Archive, conn: Conn, rows: Sequence[CheckpointRow]) -> _CheckpointRows:
    batch = _CheckpointRows(archive, rows)
    refs_by_tree: dict[int, list[int]] = {}
    for row in rows:
        refs_by_tree.setdefault(row.tree, []).extend(row.refs)
    addresses = [Address(row.tree, row.ns, row.id) for row in rows]
    answers = conn.each(
        *(checkpoint_queries.blobs_query(tree, refs) for tree, refs in refs_by_tree.items()),
        *(checkpoint_queries.writes_query(address) for address in addresses),
    )
    for tree, blobs in zip(refs_by_tree, answers, strict=False):
        batch.add_blobs(tree, blobs)
    for address, writes in zip(addresses, answers[len(refs_by_tree) :], strict=True):
        batch.writes[address] = checkpoint_queries.as_writes(writes)
        batch.add_writes(batch.writes[address])
    batch.load(conn)
    return batch


def _whole_batch(archive: Archive, conn: Conn, stored: WholeCheckpoint) -> _CheckpointRows:
    row = stored.row
    batch = _CheckpointRows(archive, [row])
    batch.add_blobs(row.tree, stored.blobs)
    batch.writes[Address(row.tree, row.ns, row.id)] = stored.writes
    batch.add_writes(stored.writes)
    batch.load(conn, (row.tree, stored.version))
    return batch


def _snapshot(conversation: str, batch: _CheckpointRows, row: CheckpointRow) -> LoadedCheckpoint:
    with _reading(conversation, row.ns, row.id):
        state, metadata = batch.archive.state(row)
        values = {
            channel: batch.blob(row.tree, number)
            for channel, number in blobs_of(state, row).items()
            if number
        }
        return LoadedCheckpoint(
            conversation,
            row.ns,
            None if row.parent is None else unpack_id(row.parent),
            {**state, "id": unpack_id(row.id), "channel_values": values},
            metadata,
            [batch.write(write) for write in batch.writes[Address(row.tree, row.ns, row.id)]],
        )


def _matches(metadata: Mapping[str, Any], filter_: Mapping[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in filter_.items())
