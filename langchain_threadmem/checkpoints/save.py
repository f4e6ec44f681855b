"""Verbs that store checkpoints and pending writes.

A channel with a list of messages is stored as spans of the conversation's tree, by the rule of
`checkpoints.placing`. Pending writes and the input of a graph refer to the messages that the tree stores. The
saver's serializer writes everything else. So the cost of a turn does not depend on the length of the thread.

Values are encoded before a transaction and decoded after it, in the caller's thread or event loop: no other
thread reads an object of the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langchain_threadmem.checkpoints import lists
from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.known_lists import (
    START,
    ListMemory,
    PreparedList,
    RememberedList,
    UnboundValue,
    bound,
    packed,
    scope_of,
    sought,
    waiting_for,
)
from langchain_threadmem.checkpoints.lists import Located
from langchain_threadmem.checkpoints.queries import CheckpointRow, WriteRow, pack_id
from langchain_threadmem.checkpoints.values import KIND, EncodedMessage, Span, StoredValue, take_apart
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Resources, Runtime
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.messages.parts import (
    Parts,
    Serializer,
    Stored,
    is_written_by,
    warn_of_foreign_messages,
)
from langchain_threadmem.storage.statements import Conn, Query
from langchain_threadmem.tree import trees

FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
"""Fields that are stored without their names if a checkpoint has all of them."""


def check_serializer(resources: Resources, serde: object) -> None:
    """Use the key of an encrypting serializer in all runtimes that are made later.

    Raises:
        InputError: The system is encrypted, and the serializer is not or has another key.
    """
    if isinstance(serde, EncryptedSerializer):
        resources.encrypt(serde.cipher)
    elif resources.seal is not None:
        raise InputError(
            f"the system is encrypted, and the serializer {type(serde).__name__} is not; pass "
            "serde=EncryptedSerializer(cipher, serde) to the saver, or no serde"
        )


@dataclass(frozen=True)
class Archive:
    """Database and serializer of checkpoints."""

    runtime: Runtime
    serde: Serializer

    def __post_init__(self) -> None:
        """Encrypt the tree with the key of the serializer.

        Raises:
            InputError: The system is encrypted, and the serializer is not or has another key.
        """
        check_serializer(self.runtime.resources, self.serde)
        if isinstance(self.serde, EncryptedSerializer):
            self.runtime.encrypt(self.serde.cipher)

    @property
    def lists(self) -> ListMemory:
        return self.runtime.get(ListMemory)

    @property
    def parts(self) -> Parts:
        """Writes and reads parts of messages of types that JSON does not have."""
        return Parts(self.serde)

    def verbatim(self, value: Any) -> Stored:
        """Format name and bytes of a value from the serializer."""
        kind, data = self.serde.dumps_typed(value)
        return (KIND + kind if kind.startswith(KIND) else kind), data

    def load(self, kind: str, data: bytes) -> Any:
        """Read the result of `verbatim`.

        Raises:
            PersistenceError: The value is damaged, or has a format that the serializer does not write.
            EncryptionError: The value cannot be decrypted, or is not encrypted although the serializer
                encrypts.
        """
        kind = kind.removeprefix(KIND)
        serde, plain = self.serde, kind
        if isinstance(serde, EncryptedSerializer):
            plain, mark, _ = kind.partition("+")
            if not mark:
                raise EncryptionError(
                    f"a stored value of format {kind!r} is not encrypted, but the saver's serializer "
                    "requires encryption; read it with the serializer that wrote it"
                )
            serde = serde.serde
        if not is_written_by(serde, plain):
            raise PersistenceError(
                f"a stored value has the format {plain!r}, which the saver's serializer does not write, so "
                "it is not read; use the serializer that wrote it"
            )
        try:
            return self.serde.loads_typed((kind, data))
        except Exception as error:  # each serializer and cipher has errors of its own
            kind_of = EncryptionError if isinstance(self.serde, EncryptedSerializer) else PersistenceError
            raise kind_of(f"a stored value of format {kind!r} cannot be read: {error!r}") from error

    def state(self, row: CheckpointRow) -> tuple[dict[str, Any], dict[str, Any]]:
        """A checkpoint without its values, and its metadata."""
        fields, rest, metadata = self.load(row.kind, row.data)
        return (rest if fields is None else {**dict(zip(FIELDS, fields, strict=True)), **rest}), metadata

    def channel(self, thread: str, ns: str, channel: str, value: Any) -> Stored | PreparedList | StoredValue:
        """Prepare the value of a channel for storing: as a list for the tree, or with the serializer."""
        if channel == START:
            return self.written(value)
        remembered = self.lists.lists(thread, scope_of(ns, channel))
        prepared = PreparedList.of(value, remembered, self.parts.write)
        if prepared is not None:
            return prepared
        if isinstance(value, list):
            warn_of_foreign_messages(value)
        return self.verbatim(value)

    def written(self, value: Any) -> Stored | StoredValue:
        """Prepare the value of a pending write for storing."""
        return take_apart(value, self.verbatim, self.parts.write) or self.verbatim(value)


def compact(state: dict[str, Any], metadata: Mapping[str, Any]) -> list[Any]:
    """A checkpoint without its values, and its metadata, with few field names."""
    if all(field in state for field in FIELDS):
        rest = {name: value for name, value in state.items() if name not in FIELDS}
        return [[state[field] for field in FIELDS], rest, dict(metadata)]
    return [None, state, dict(metadata)]


def blobs_of(state: Mapping[str, Any], row: CheckpointRow) -> dict[str, int]:
    """The number of the value of each channel of a checkpoint; 0 for a channel without a value."""
    return dict(zip(state.get("channel_versions", {}), row.refs, strict=True))


class _Stored(NamedTuple):
    """The trees, lists and unbound values of a stored checkpoint, to be cached after the commit."""

    trees: Mapping[str, int]
    lists: dict[str, RememberedList]
    waiting: list[UnboundValue | None]


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
    """Store a checkpoint, or replace the checkpoint with its id."""
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
    stored_values = [
        (channel, value) for channel, value in outgoing.items() if isinstance(value, StoredValue)
    ]
    unchanged = {name: version for name, version in versions.items() if name not in new_versions}
    inherited = above if unchanged else None
    cached_trees = archive.lists.trees(thread)

    def write(
        conn: Conn, prepared: Mapping[str, PreparedList], unbound: Sequence[UnboundValue]
    ) -> _Stored | None:
        scopes = {channel: scope_of(ns, channel) for channel in prepared}

        def ask(tree_ids: Mapping[str, int]) -> Iterator[Query]:
            tree = tree_ids[""]
            yield checkpoint_queries.asking_beside(tree, ns, checkpoint_id, inherited)
            for channel, value in prepared.items():
                yield from lists.asking_placement(tree_ids[scopes[channel]], value.rest, value.after)
            yield from finder.ask(stored_values, ns, tree_ids)

        finder = _Finder(conn, owner, thread)
        tree_ids, rows = trees.take(conn, owner, thread, {"", *scopes.values()}, now, cached_trees, ask)
        tree, answers = tree_ids[""], iter(rows)
        beside = checkpoint_queries.beside(next(answers), checkpoint_id, inherited)
        placements = {channel: lists.placement_rows(answers) for channel in prepared}
        if not all(
            value.is_current(tree_ids[scopes[name]], placements[name].head)
            for name, value in prepared.items()
        ):
            return None
        finder.answered(tree_ids, answers)
        remembered = {}
        for channel, new in prepared.items():
            tree_id = tree_ids[scopes[channel]]
            placed, head = lists.place(
                conn, tree_id, new.rest, new.after, now, placements[channel], new.ending
            )
            remembered[channel] = new.remembered(tree_id, head, placed)
            finder.placed(scopes[channel], new.rest, placed.located)
        bound_values = {channel: bound(value, ns, channel, finder) for channel, value in stored_values}
        stored: dict[str, Stored] = {}
        for channel, value in outgoing.items():
            if isinstance(value, PreparedList):
                spans = tuple(Span(*ends) for ends in remembered[channel].spans)
                stored[channel] = (KIND, StoredValue({None: spans}, True).pack())
            elif isinstance(value, StoredValue):
                stored[channel] = (KIND, packed(conn, bound_values[channel]))
            else:
                stored[channel] = value
        numbers = dict(
            zip(
                stored,
                checkpoint_queries.put_blobs(conn, tree, list(stored.values()), beside.last_blob),
                strict=True,
            )
        )
        refs = {**_inherited(archive, conn, tree, ns, beside.parent, unchanged), **numbers}
        checkpoint_queries.put(
            conn, row._replace(tree=tree, refs=[refs.get(channel, 0) for channel in versions])
        )
        if beside.exists:
            checkpoint_queries.collect(conn, tree)
        waiting: list[UnboundValue | None] = [value.rewrite(conn, finder) for value in unbound]
        waiting += [
            UnboundValue.of(ns, channel, stored_value, (tree, numbers[channel]), stored[channel][1])
            for channel, stored_value in bound_values.items()
            if stored_value.inline()
        ]
        return _Stored(tree_ids, remembered, waiting)

    done = None
    for again in (False, True):
        # Another writer may have changed a tree: the second attempt uses no remembered list.
        prepared = {
            channel: value.without_base(archive.parts.write) if again else value
            for channel, value in outgoing.items()
            if isinstance(value, PreparedList)
        }
        ids = {message.id for value in prepared.values() for message in value.rest}
        unbound = waiting_for(archive.lists.unbound(thread), ids)
        done = yield from Sql(partial(write, prepared=prepared, unbound=unbound), write=True)
        if done is not None:
            break
    assert done is not None, "without a remembered list no tree is out of date"
    archive.lists.know_trees(thread, done.trees)
    for channel, remembered in done.lists.items():
        archive.lists.remember(thread, scope_of(ns, channel), remembered)
    archive.lists.place(thread, ids)
    archive.lists.replace(thread, unbound, done.waiting)
    yield from _rewrite_unbound(archive, thread, waiting_for(archive.lists.unbound(thread), ids))


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
    """Store the pending writes of a task; only LangGraph's special channels replace stored writes."""
    now, owner = time.time(), archive.runtime.owner
    at, by = pack_id(checkpoint), pack_id(task)
    prepared = [
        (WRITES_IDX_MAP.get(channel, n), channel, archive.written(value))
        for n, (channel, value) in enumerate(writes)
    ]

    stored_values = [(channel, value) for _, channel, value in prepared if isinstance(value, StoredValue)]
    cached_trees = archive.lists.trees(thread)

    def write(conn: Conn) -> tuple[Mapping[str, int], list[UnboundValue]]:
        def ask(tree_ids: Mapping[str, int]) -> Iterator[Query]:
            return finder.ask(stored_values, ns, tree_ids)

        finder = _Finder(conn, owner, thread)
        tree_ids, rows = trees.take(conn, owner, thread, [""], now, cached_trees, ask)
        finder.answered(tree_ids, rows)
        waiting, added = [], []
        for idx, channel, value in prepared:
            row = WriteRow(tree_ids[""], ns, at, by, idx, path, channel, "", b"")
            if isinstance(value, StoredValue):
                stored_value = bound(value, ns, channel, finder)
                row = row._replace(kind=KIND, data=packed(conn, stored_value))
                if stored_value.inline():
                    waiting.append(UnboundValue.of(ns, channel, stored_value, row, row.data))
            else:
                row = row._replace(kind=value[0], data=value[1])
            added.append(row)
        checkpoint_queries.put_writes(conn, added)
        return tree_ids, waiting

    tree_ids, waiting = yield from Sql(write, write=True)
    archive.lists.know_trees(thread, tree_ids)
    archive.lists.replace(thread, (), waiting)
    # The messages may have been placed before this write; `put` binds the value otherwise.
    yield from _rewrite_unbound(
        archive, thread, waiting_for(waiting, archive.lists.placed(thread)) if waiting else ()
    )


def _rewrite_unbound(archive: Archive, thread: str, due: Sequence[UnboundValue]) -> Flow[None]:
    """Bind values whose messages were placed after the values were stored."""
    if not due:
        return
    now, owner = time.time(), archive.runtime.owner

    def write(conn: Conn) -> list[UnboundValue | None]:
        tree_ids, _ = trees.take(conn, owner, thread, [""], now, {}, lambda tree_ids: ())
        finder = _Finder(conn, owner, thread)
        finder.answered(tree_ids)
        return [value.rewrite(conn, finder) for value in due]

    archive.lists.replace(thread, due, ())
    archive.lists.replace(thread, (), (yield from Sql(write, write=True)))


class _Finder:
    """Finds the places of messages: first among those this transaction placed, then with queries."""

    def __init__(self, conn: Conn, owner: str, thread: str) -> None:
        self._conn = conn
        self._named = owner, thread
        self._tree_ids: Mapping[str, int] = {}
        self._asked: list[tuple[str, list[EncodedMessage]]] = []
        self._answers: list[Sequence[tuple[Any, ...]]] = []
        self._placed: dict[tuple[str, str], tuple[str, Located]] = {}

    def ask(
        self, stored_values: Sequence[tuple[str, StoredValue]], ns: str, tree_ids: Mapping[str, int]
    ) -> Iterator[Query]:
        """The queries for the messages of values, given with their channels."""
        self._asked = [
            (scope, list(asked.values()))
            for channel, stored_value in stored_values
            for _, scope, asked in sought(stored_value, ns, channel)
            if scope in tree_ids
        ]
        for scope, messages in self._asked:
            yield lists.finding(tree_ids[scope], messages)

    def answered(
        self, tree_ids: Mapping[str, int], answers: Iterable[Sequence[tuple[Any, ...]]] = ()
    ) -> None:
        """Use the rows of the queries `ask`."""
        self._tree_ids, self._answers = tree_ids, list(answers)

    def placed(self, scope: str, messages: Sequence[EncodedMessage], located: Sequence[Located]) -> None:
        """Use the places of messages that this transaction wrote."""
        for message, where in zip(messages, located, strict=False):  # `located` may have a shared end more
            self._placed[scope, message.id] = message.body, where

    def __call__(self, scope: str, messages: Sequence[EncodedMessage]) -> Sequence[Located | None]:
        placed = [self._placed.get((scope, message.id)) for message in messages]
        located = [
            place[1]
            for message, place in zip(messages, placed, strict=True)
            if place is not None and place[0] == message.body
        ]
        if len(located) == len(messages):
            return located
        asked = (scope, list(messages))
        if not any(placed) and asked in self._asked:
            return lists.places_from(self._conn, messages, self._answers[self._asked.index(asked)])
        tree = self._tree_ids.get(scope) or trees.find(self._conn, *self._named, scope)
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
    """Blobs of unchanged channels: those of the parent, else of the newest checkpoint with the version."""
    refs = _refs(archive, parent, versions) if versions and parent is not None else {}
    missing = {name: version for name, version in versions.items() if name not in refs}
    if missing:
        rows = [row for row in checkpoint_queries.of_tree(conn, tree) if row.ns == ns]
        for row in sorted(rows, key=lambda row: row.id, reverse=True):
            refs = {**_refs(archive, row, missing), **refs}
    return refs


def _refs(archive: Archive, row: CheckpointRow, versions: Mapping[str, Any]) -> dict[str, int]:
    """The blobs of a checkpoint whose channels have the given versions."""
    state, _ = archive.state(row)
    stored = state.get("channel_versions", {})
    return {
        name: ref
        for name, ref in blobs_of(state, row).items()
        if name in versions and versions[name] == stored[name]
    }
