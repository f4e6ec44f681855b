"""Verbs that store checkpoints and pending writes.

A channel that holds a list of messages is stored as runs of the conversation's tree, placed by
`checkpoints.placing`; pending writes and a graph's input refer to stored messages where they can, and keep
the rest as it is. So a turn costs the same however long the thread is. Everything else goes through the
saver's serializer.

Encoding happens before a transaction and decoding after it, in the caller's thread or on its event loop: what
a caller passed in is never looked at by another thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langchain_threadmem.checkpoints import lists
from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.known_lists import (
    START,
    Latecomer,
    Listed,
    ListMemory,
    Remembered,
    awaiting,
    bound,
    packed,
    scope_of,
    sought,
)
from langchain_threadmem.checkpoints.lists import Located
from langchain_threadmem.checkpoints.queries import CheckpointRow, WriteRow, pack_id
from langchain_threadmem.checkpoints.values import KIND, Run, Said, StoredValue, take_apart
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Resources, Runtime
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.messages.parts import (
    Parts,
    Serializer,
    Stored,
    is_written_by,
    say_what_stays_outside,
)
from langchain_threadmem.storage.statements import Asked, Conn
from langchain_threadmem.tree import trees

FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
"""What nearly every checkpoint has, and is therefore stored without its name."""


def check_serializer(resources: Resources, serde: object) -> None:
    """Encrypt as a serializer encrypts, for owners whose runtime is made from now on.

    Raises:
        InputError: The system is encrypted, and the serializer is not, or with another key.
    """
    if isinstance(serde, EncryptedSerializer):
        resources.encrypt(serde.cipher)
    elif resources.seal is not None:
        raise InputError(
            f"the system is encrypted, and {type(serde).__name__} is not; pass the saver "
            "serde=EncryptedSerializer(cipher, serde), or none"
        )


@dataclass(frozen=True)
class Archive:
    """Where checkpoints go, and how.

    Attributes:
        runtime: Database and owner.
        serde: The serializer.
    """

    runtime: Runtime
    serde: Serializer

    def __post_init__(self) -> None:
        """Let the tree be encrypted as the serializer is.

        Raises:
            InputError: The system is encrypted already, and the serializer is not, or with another key.
        """
        check_serializer(self.runtime.resources, self.serde)
        if isinstance(self.serde, EncryptedSerializer):
            self.runtime.encrypt(self.serde.cipher)

    @property
    def lists(self) -> ListMemory:
        """The lists that were stored before."""
        return self.runtime.get(ListMemory)

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

    def channel(self, thread: str, ns: str, channel: str, value: Any) -> Stored | Listed | StoredValue:
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

    def written(self, value: Any) -> Stored | StoredValue:
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

    trees: Mapping[str, int]
    lists: dict[str, Remembered]
    waiting: list[Latecomer | None]


@telemetry.observed("put_checkpoint", telemetry.of_name)
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
    mixtures = [(channel, value) for channel, value in outgoing.items() if isinstance(value, StoredValue)]
    kept = {name: version for name, version in versions.items() if name not in new_versions}
    inherits = bool(kept) and above is not None
    known = archive.lists.trees(thread)

    def write(conn: Conn, listed: Mapping[str, Listed], late: Sequence[Latecomer]) -> _Stored | None:
        scopes = {channel: scope_of(ns, channel) for channel in listed}

        def ask(homes: Mapping[str, int]) -> Iterator[Asked]:
            tree = homes[""]
            yield checkpoint_queries.getting(tree, ns, checkpoint_id)
            yield checkpoint_queries.asking_last_blob(tree)
            if inherits:
                yield checkpoint_queries.getting(tree, ns, above)
            for channel, value in listed.items():
                yield from lists.surveying(homes[scopes[channel]], value.rest, value.after)
            yield from finder.ask(mixtures, ns, homes)

        finder = _Finder(conn, owner, thread)
        homes, rows = trees.take(conn, owner, thread, {"", *scopes.values()}, now, known, ask)
        tree, answers = homes[""], iter(rows)
        same, last_blob = next(answers), next(answers)
        before = checkpoint_queries.got(next(answers)) if inherits else None
        grounds = {channel: lists.ground(answers) for channel in listed}
        if not all(
            value.is_current(homes[scopes[name]], grounds[name].head) for name, value in listed.items()
        ):
            return None
        finder.answered(homes, answers)
        learnt = {}
        for channel, new in listed.items():
            home = homes[scopes[channel]]
            placed, head = lists.place(conn, home, new.rest, new.after, now, grounds[channel], new.ending)
            learnt[channel] = new.learnt(home, head, placed)
            finder.placed(scopes[channel], new.rest, placed.located)
        taken_apart = {channel: bound(value, ns, channel, finder) for channel, value in mixtures}
        stored: dict[str, Stored] = {}
        for channel, value in outgoing.items():
            if isinstance(value, Listed):
                runs = tuple(Run(*ends) for ends in learnt[channel].runs)
                stored[channel] = (KIND, StoredValue({None: runs}, True).pack())
            elif isinstance(value, StoredValue):
                stored[channel] = (KIND, packed(conn, taken_apart[channel]))
            else:
                stored[channel] = value
        numbers = dict(
            zip(
                stored,
                checkpoint_queries.put_blobs(conn, tree, list(stored.values()), last_blob),
                strict=True,
            )
        )
        refs = {**_inherited(archive, conn, tree, ns, before, kept), **numbers}
        checkpoint_queries.put(
            conn, row._replace(tree=tree, refs=[refs.get(channel, 0) for channel in versions])
        )
        if same:
            checkpoint_queries.collect(conn, tree)
        waiting: list[Latecomer | None] = [one.meet(conn, finder) for one in late]
        waiting += [
            Latecomer.of(ns, channel, mixture, (tree, numbers[channel]), stored[channel][1])
            for channel, mixture in taken_apart.items()
            if mixture.inline()
        ]
        return _Stored(homes, learnt, waiting)

    done = None
    for anew in (False, True):
        # The second time somebody else has changed a tree: what was known of it is out of date.
        listed = {
            channel: value.anew(archive.parts.write) if anew else value
            for channel, value in outgoing.items()
            if isinstance(value, Listed)
        }
        ids = {message.id for value in listed.values() for message in value.rest}
        late = awaiting(archive.lists.latecomers(thread), ids)
        done = yield from Sql(partial(write, listed=listed, late=late), write=True)
        if done is not None:
            break
    assert done is not None, "a list of which nothing is known cannot be out of date"
    archive.lists.know_trees(thread, done.trees)
    for channel, learnt in done.lists.items():
        archive.lists.learn(thread, scope_of(ns, channel), learnt)
    archive.lists.place(thread, ids)
    archive.lists.replace(thread, late, done.waiting)
    yield from _meet(archive, thread, awaiting(archive.lists.latecomers(thread), ids))


@telemetry.observed("put_writes", telemetry.of_name)
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

    mixtures = [(channel, value) for _, channel, value in prepared if isinstance(value, StoredValue)]
    known = archive.lists.trees(thread)

    def write(conn: Conn) -> tuple[Mapping[str, int], list[Latecomer]]:
        def ask(homes: Mapping[str, int]) -> Iterator[Asked]:
            yield checkpoint_queries.asking_indexes(homes[""], ns, at, by)
            yield from finder.ask(mixtures, ns, homes)

        finder = _Finder(conn, owner, thread)
        homes, rows = trees.take(conn, owner, thread, [""], now, known, ask)
        answers = iter(rows)
        stored = {idx for (idx,) in next(answers)}
        finder.answered(homes, answers)
        waiting, added = [], []
        for idx, channel, value in prepared:
            row = WriteRow(homes[""], ns, at, by, idx, path, channel, "", b"")
            if idx in stored and idx >= 0:
                continue
            if isinstance(value, StoredValue):
                mixture = bound(value, ns, channel, finder)
                row = row._replace(kind=KIND, data=packed(conn, mixture))
                if mixture.inline():
                    waiting.append(Latecomer.of(ns, channel, mixture, row, row.data))
            else:
                row = row._replace(kind=value[0], data=value[1])
            added.append(row)
        checkpoint_queries.put_writes(conn, added)
        return homes, waiting

    homes, waiting = yield from Sql(write, write=True)
    archive.lists.know_trees(thread, homes)
    archive.lists.replace(thread, (), waiting)
    # Whichever comes last, the call that waits for a message or the one that has placed it, lets them meet.
    yield from _meet(archive, thread, awaiting(waiting, archive.lists.placed(thread)) if waiting else ())


def _meet(archive: Archive, thread: str, due: Sequence[Latecomer]) -> Flow[None]:
    """Write values again whose messages were placed in the meantime."""
    if not due:
        return
    now, owner = time.time(), archive.runtime.owner

    def write(conn: Conn) -> list[Latecomer | None]:
        homes, _ = trees.take(conn, owner, thread, [""], now, {}, lambda homes: ())
        finder = _Finder(conn, owner, thread)
        finder.answered(homes, iter(()))
        return [one.meet(conn, finder) for one in due]

    archive.lists.replace(thread, due, ())
    archive.lists.replace(thread, (), (yield from Sql(write, write=True)))


class _Finder:
    """Where messages live, by scope: those that this transaction has placed, those that it has asked for
    beforehand, and any others.
    """

    def __init__(self, conn: Conn, owner: str, thread: str) -> None:
        self._conn = conn
        self._named = owner, thread
        self._homes: Mapping[str, int] = {}
        self._asked: list[tuple[str, list[Said]]] = []
        self._answers: list[Sequence[tuple[Any, ...]]] = []
        self._placed: dict[tuple[str, str], tuple[str, Located]] = {}

    def ask(
        self, mixtures: Sequence[tuple[str, StoredValue]], ns: str, homes: Mapping[str, int]
    ) -> Iterator[Asked]:
        """The questions for the messages of mixtures, each with its channel."""
        self._asked = [
            (scope, list(asked.values()))
            for channel, mixture in mixtures
            for _, scope, asked in sought(mixture, ns, channel)
            if scope in homes
        ]
        for scope, messages in self._asked:
            yield lists.finding(homes[scope], messages)

    def answered(self, homes: Mapping[str, int], answers: Iterator[Sequence[tuple[Any, ...]]]) -> None:
        """Take the answers to these questions, which are last."""
        self._homes, self._answers = homes, list(answers)

    def placed(self, scope: str, messages: Sequence[Said], located: Sequence[Located]) -> None:
        """Note where messages were placed."""
        for message, where in zip(messages, located, strict=False):  # what follows it is not looked for
            self._placed[scope, message.id] = message.body, where

    def __call__(self, scope: str, messages: Sequence[Said]) -> Sequence[Located | None]:
        known = [self._placed.get((scope, message.id)) for message in messages]
        here = [
            found[1]
            for message, found in zip(messages, known, strict=True)
            if found is not None and found[0] == message.body
        ]
        if len(here) == len(messages):
            return here
        asked = (scope, list(messages))
        if not any(known) and asked in self._asked:
            return lists.found(self._conn, messages, self._answers[self._asked.index(asked)])
        tree = self._homes.get(scope) or trees.find(self._conn, *self._named, scope)
        return [None] * len(messages) if tree is None else lists.find(self._conn, tree, messages)


def _run_of(metadata: Mapping[str, Any]) -> str | None:
    run = str(metadata.get("run_id") or "").replace("\0", "")
    return run or None


def _inherited(
    archive: Archive,
    conn: Conn,
    tree: int,
    ns: str,
    parent: CheckpointRow | None,
    versions: Mapping[str, Any],
) -> dict[str, int]:
    """Blobs of channels that did not change: those of the checkpoint before, else of the newest that had this
    version.
    """
    found: dict[str, int] = {}
    missing = dict(versions)
    if missing and parent is not None:
        found = _refs(archive, parent, missing)
    missing = {name: version for name, version in missing.items() if name not in found}
    if missing:
        rows = [row for row in checkpoint_queries.of_tree(conn, tree) if row.ns == ns]
        for row in sorted(rows, key=lambda row: row.id, reverse=True):
            found = {**_refs(archive, row, missing), **found}
    return found


def _refs(archive: Archive, row: CheckpointRow, versions: Mapping[str, Any]) -> dict[str, int]:
    """Those blobs of a checkpoint whose channels have the versions that are asked for."""
    state, _ = expand(archive.load(row.kind, row.data))
    pairs = zip(state.get("channel_versions", {}).items(), row.refs, strict=True)
    return {name: ref for (name, version), ref in pairs if name in versions and versions[name] == version}
