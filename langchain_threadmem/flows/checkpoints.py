"""Storing what LangGraph saves of a graph's state: checkpoints and pending writes.

A channel that holds a list of messages is stored as runs of the conversation's tree, placed by
`core.placing`; pending writes and a graph's input refer to stored messages where they can, and keep the rest
as it is. So a turn costs the same however long the thread is. Everything else goes through the saver's
serializer.

Encoding happens before a transaction and decoding after it, in the caller's thread or on its event loop: what
a caller passed in is never looked at by another thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langchain_threadmem.core.interning import KIND, Mixture, Run, take_apart
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.flows.lists import (
    START,
    Latecomer,
    Listed,
    ListMemory,
    Remembered,
    TreeOf,
    bound,
    packed,
    scope_of,
)
from langchain_threadmem.flows.parts import Parts, Serializer, Stored, is_written_by, say_what_stays_outside
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import checkpoints, lists, trees
from langchain_threadmem.storage.queries.checkpoints import CheckpointRow, WriteRow, pack_id
from langchain_threadmem.storage.statements import Conn

FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
"""What nearly every checkpoint has, and is therefore stored without its name."""


@dataclass(frozen=True)
class Archive:
    """Where checkpoints go, and how.

    Attributes:
        runtime: Database and owner.
        serde: The serializer.
        lists: What is known of lists that were stored before.
    """

    runtime: Runtime
    serde: Serializer
    lists: ListMemory

    def __post_init__(self) -> None:
        """Let the tree be encrypted as the serializer is.

        Raises:
            InputError: The system is encrypted already, and the serializer is not, or with another key.
        """
        if isinstance(self.serde, EncryptedSerializer):
            self.runtime.encrypt(self.serde.cipher)
        elif self.runtime.encrypted:
            raise InputError(
                f"the system is encrypted, and {type(self.serde).__name__} is not; pass the saver "
                "serde=EncryptedSerializer(cipher, serde), or none"
            )

    @property
    def parts(self) -> Parts:
        """What writes and reads parts of messages that JSON does not know."""
        return Parts(self.serde)

    def verbatim(self, value: Any) -> Stored:
        """A value as the serializer writes it."""
        kind, data = self.serde.dumps_typed(value)
        return (KIND + kind if kind.startswith(KIND) else kind), data

    def load(self, kind: str, data: bytes) -> Any:
        """Read what `verbatim` wrote.

        Raises:
            PersistenceError: It has a format that the serializer never writes, or should be encrypted and is
                not: it is not read, whoever put it there. Or it is damaged.
        """
        kind = kind.removeprefix(KIND)
        serde, plain = self.serde, kind
        if isinstance(serde, EncryptedSerializer):
            plain, mark, _ = kind.partition("+")
            if not mark:
                raise EncryptionError(
                    f"a stored value of format {kind!r} is not encrypted, as this saver's serializer "
                    "demands; it was written without encryption, or by somebody else"
                )
            serde = serde.serde
        if not is_written_by(serde, plain):
            raise PersistenceError(
                f"a stored value has the format {plain!r}, which this saver never writes; it is not read"
            )
        try:
            return self.serde.loads_typed((kind, data))
        except Exception as error:  # each serializer and cipher has errors of its own
            kind_of = EncryptionError if isinstance(self.serde, EncryptedSerializer) else PersistenceError
            raise kind_of(f"a stored value of format {kind!r} cannot be read: {error!r}") from error

    def channel(self, thread: str, ns: str, channel: str, value: Any) -> Stored | Listed | Mixture:
        """A channel's value made ready: its messages for the tree, or the whole as it is."""
        if channel == START:
            return self.written(value)
        known = self.lists.lists(thread, scope_of(ns, channel))
        listed = Listed.of(value, known, self.parts.write)
        if listed is not None:
            return listed
        if isinstance(value, list):
            say_what_stays_outside(value)
        return self.verbatim(value)

    def written(self, value: Any) -> Stored | Mixture:
        """The value of a pending write made ready."""
        return take_apart(value, self.verbatim, self.parts.write) or self.verbatim(value)


def compact(state: dict[str, Any], metadata: Mapping[str, Any]) -> list[Any]:
    """A checkpoint without its values and its metadata, with few names."""
    if all(field in state for field in FIELDS):
        rest = {name: value for name, value in state.items() if name not in FIELDS}
        return [[state[field] for field in FIELDS], rest, dict(metadata)]
    return [None, state, dict(metadata)]


def expand(compacted: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checkpoint and the metadata that `compact` put together."""
    fields, rest, metadata = compacted
    return (rest if fields is None else {**dict(zip(FIELDS, fields, strict=True)), **rest}), metadata


class _Stored(NamedTuple):
    """What is learnt from storing a checkpoint, once it is committed."""

    lists: dict[str, Remembered]
    waiting: list[Latecomer | None]


def put(
    archive: Archive,
    thread: str,
    ns: str,
    parent: str | None,
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
    new_versions: Mapping[str, Any],
) -> Flow[None]:
    """Store a checkpoint; one with the same id is replaced."""
    state = dict(checkpoint)
    values, checkpoint_id = state.pop("channel_values"), pack_id(state.pop("id"))
    versions: dict[str, Any] = state.get("channel_versions", {})
    kind, data = archive.verbatim(compact(state, metadata))
    above = None if parent is None else pack_id(parent)
    run = _run_of(metadata)
    row = CheckpointRow(0, ns, checkpoint_id, above, run, (), kind, data)
    now, owner = time.time(), archive.runtime.owner
    outgoing = {
        channel: archive.channel(thread, ns, channel, values[channel])
        for channel in versions
        if channel in new_versions and channel in values
    }
    late = archive.lists.latecomers(thread)

    def write(conn: Conn) -> _Stored | None:
        tree = trees.find_or_create(conn, owner, thread, now)
        trees.lock(conn, tree)
        listed = {channel: value for channel, value in outgoing.items() if isinstance(value, Listed)}
        homes = {
            channel: trees.find_or_create(conn, owner, thread, now, scope_of(ns, channel))
            for channel in listed
        }
        if not all(
            value.is_current(homes[name], trees.head(conn, homes[name])) for name, value in listed.items()
        ):
            return None
        learnt = _place_all(conn, listed, homes, now)
        stored: dict[str, Stored] = {}
        taken_apart: dict[str, Mixture] = {}
        for channel, value in outgoing.items():
            if isinstance(value, Listed):
                stored[channel] = (
                    KIND,
                    Mixture({None: tuple(Run(*ends) for ends in learnt[channel].runs)}, True).pack(),
                )
            elif isinstance(value, Mixture):
                taken_apart[channel] = bound(conn, value, ns, channel, _trees(conn, owner, thread))
                stored[channel] = (KIND, packed(conn, taken_apart[channel]))
            else:
                stored[channel] = value
        replaced = checkpoints.get(conn, tree, ns, checkpoint_id) is not None
        numbers = dict(zip(stored, checkpoints.put_blobs(conn, tree, list(stored.values())), strict=True))
        kept = {name: version for name, version in versions.items() if name not in new_versions}
        refs = {**_inherited(archive, conn, tree, ns, above, kept), **numbers}
        checkpoints.put(conn, row._replace(tree=tree, refs=[refs.get(channel, 0) for channel in versions]))
        if replaced:
            checkpoints.collect(conn, tree)
        waiting: list[Latecomer | None] = [one.meet(conn, _trees(conn, owner, thread)) for one in late]
        waiting += [
            Latecomer(ns, channel, mixture, (tree, numbers[channel]), stored[channel][1])
            for channel, mixture in taken_apart.items()
            if mixture.inline()
        ]
        return _Stored(learnt, waiting)

    done = yield from Sql(write, write=True)
    if done is None:  # Somebody else changed a tree: what was known of it is out of date.
        outgoing = {
            channel: value.anew(archive.parts.write) if isinstance(value, Listed) else value
            for channel, value in outgoing.items()
        }
        done = yield from Sql(write, write=True)
        assert done is not None, "a list of which nothing is known cannot be out of date"
    for channel, learnt in done.lists.items():
        archive.lists.learn(thread, scope_of(ns, channel), learnt)
    yield from _wait(archive, thread, late, done.waiting)


def put_writes(
    archive: Archive,
    thread: str,
    ns: str,
    checkpoint: str,
    writes: Sequence[tuple[str, Any]],
    task: str,
    path: str,
) -> Flow[None]:
    """Store pending writes of a task; those that are stored already stay, but for errors, interrupts and
    their like.
    """
    now, owner = time.time(), archive.runtime.owner
    at, by = pack_id(checkpoint), pack_id(task)
    prepared = [
        (WRITES_IDX_MAP.get(channel, n), channel, archive.written(value))
        for n, (channel, value) in enumerate(writes)
    ]

    def write(conn: Conn) -> list[Latecomer]:
        tree = trees.find_or_create(conn, owner, thread, now)
        trees.lock(conn, tree)
        waiting = []
        for idx, channel, value in prepared:
            row = WriteRow(tree, ns, at, by, idx, path, channel, "", b"")
            if not isinstance(value, Mixture):
                checkpoints.add_write(conn, row._replace(kind=value[0], data=value[1]), replace=idx < 0)
                continue
            mixture = bound(conn, value, ns, channel, _trees(conn, owner, thread))
            row = row._replace(kind=KIND, data=packed(conn, mixture))
            if checkpoints.add_write(conn, row, replace=idx < 0) and mixture.inline():
                waiting.append(Latecomer(ns, channel, mixture, row, row.data))
        return waiting

    yield from _wait(archive, thread, (), (yield from Sql(write, write=True)))


def _wait(
    archive: Archive, thread: str, old: Sequence[Latecomer], new: Sequence[Latecomer | None]
) -> Flow[None]:
    """Remember what still waits for its messages; write again what was given an id in the meantime."""
    if not old and not new:
        return
    archive.lists.replace(thread, old, new)
    named = [one for one in new if one is not None and one.is_named]
    if named:
        owner = archive.runtime.owner

        def write(conn: Conn) -> list[Latecomer | None]:
            tree = trees.find(conn, owner, thread)
            if tree is None:
                return []
            trees.lock(conn, tree)
            return [one.meet(conn, _trees(conn, owner, thread)) for one in named]

        archive.lists.replace(thread, named, (yield from Sql(write, write=True)))


def _run_of(metadata: Mapping[str, Any]) -> str | None:
    run = str(metadata.get("run_id") or "").replace("\0", "")
    return run or None


def _place_all(
    conn: Conn, listed: Mapping[str, Listed], homes: Mapping[str, int], now: float
) -> dict[str, Remembered]:
    learnt = {}
    for channel, value in listed.items():
        home = homes[channel]
        placed = lists.place(conn, home, value.rest, value.after, now, value.ending)
        learnt[channel] = value.learnt(home, trees.head(conn, home), placed)
    return learnt


def _trees(conn: Conn, owner: str, thread: str) -> TreeOf:
    return lambda scope: trees.find(conn, owner, thread, scope)


def _inherited(
    archive: Archive, conn: Conn, tree: int, ns: str, parent: bytes | None, versions: Mapping[str, Any]
) -> dict[str, int]:
    """Blobs of channels that did not change: those of the checkpoint before, else of the newest that had this
    version.
    """
    found: dict[str, int] = {}
    missing = dict(versions)
    if missing and parent is not None and (row := checkpoints.get(conn, tree, ns, parent)):
        found = _refs(archive, row, missing)
    missing = {name: version for name, version in missing.items() if name not in found}
    if missing:
        rows = [row for row in checkpoints.of_tree(conn, tree) if row.ns == ns]
        for row in sorted(rows, key=lambda row: row.id, reverse=True):
            found = {**_refs(archive, row, missing), **found}
    return found


def _refs(archive: Archive, row: CheckpointRow, versions: Mapping[str, Any]) -> dict[str, int]:
    """Those blobs of a checkpoint whose channels have the versions that are asked for."""
    state, _ = expand(archive.load(row.kind, row.data))
    pairs = zip(state.get("channel_versions", {}).items(), row.refs, strict=True)
    return {name: ref for (name, version), ref in pairs if name in versions and versions[name] == version}
