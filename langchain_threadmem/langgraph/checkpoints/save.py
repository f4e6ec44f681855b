"""Verbs that store checkpoints and pending writes.

A channel with a list of messages is stored as spans of the conversation's tree, by the rule of
`tree.lists.placing`. Pending writes and the input of a graph refer to the messages that the tree stores. The
saver's serializer writes everything else. The cost of a turn thus does not depend on the number of earlier
turns.

Values are encoded before the transaction and decoded after it, in the caller's thread or event loop, so that
no other thread reads an object of the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from typing_extensions import TypeIs

from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Resources, Runtime
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.index.removal import NOTHING_REMOVED, Removed, drop
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.langgraph.checkpoints.queries import CheckpointRow, WriteRow, pack_id
from langchain_threadmem.langgraph.checkpoints.removals import removed_by, removed_in_input
from langchain_threadmem.langgraph.checkpoints.spans import SegmentCache
from langchain_threadmem.langgraph.checkpoints.unbound_values import (
    KnownPlace,
    UnboundValue,
    UnboundValues,
    bind,
    packed,
    unbound_messages,
    waiting_for,
)
from langchain_threadmem.langgraph.checkpoints.values import (
    CONVERSATION_CHANNELS,
    KIND,
    MESSAGES,
    PREVIOUS,
    RETURNED,
    START,
    StoredValue,
    list_key,
    scope_of,
    take_apart,
)
from langchain_threadmem.messages.parts import (
    Parts,
    Serializer,
    TypedBytes,
    is_written_by,
    warn_of_foreign_messages,
    warn_of_missing_ids,
)
from langchain_threadmem.messages.quoting import without_blocks
from langchain_threadmem.storage.statements import MOST_TOGETHER, BoundStatement, Conn, beside
from langchain_threadmem.storage.transaction import LastWrite
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import superseding, trees
from langchain_threadmem.tree.lists import stored_lists
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.list_cache import CachedList, ListCache, PreparedList
from langchain_threadmem.tree.lists.stored_lists import Location
from langchain_threadmem.tree.nodes import MessageRow
from langchain_threadmem.tree.trees import BEFORE_ALL, TreeVersion

FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
"""Fields that are stored without their names if the checkpoint has all these fields."""
_FIELD_NAMES = frozenset(FIELDS)
MOST_BESIDE = 32
"""The maximum number of messages whose places are read in one query with the parent checkpoint."""


@cache
def _encrypts(serializer: type) -> bool:
    return issubclass(serializer, EncryptedSerializer)


def _is_encrypting(serde: object) -> TypeIs[EncryptedSerializer]:
    """Whether a serializer encrypts; `isinstance` takes long for a class of a protocol."""
    kind: type = type(serde)
    return _encrypts(kind)


def check_serializer(resources: Resources, serde: object) -> None:
    """Use the key of an encrypting serializer in all runtimes that are created later.

    Raises:
        InputError: The system is encrypted, and the serializer is not or has another key.
    """
    if _is_encrypting(serde):
        resources.encrypt(serde.cipher)
    elif resources.seal is not None:
        raise InputError(
            f"the system is encrypted, and the serializer {type(serde).__name__} is not; pass "
            "serde=EncryptedSerializer(cipher, serde) to the saver, or no serde"
        )


@dataclass(frozen=True)
class Archive:
    """The database and the serializer of checkpoints."""

    runtime: Runtime
    serde: Serializer

    def __post_init__(self) -> None:
        """Encrypt the tree with the key of the serializer.

        Raises:
            InputError: The system is encrypted, and the serializer is not or has another key.
        """
        check_serializer(self.runtime.resources, self.serde)
        if _is_encrypting(self.serde):
            self.runtime.encrypt(self.serde.cipher)
            assert self.runtime.seal is not None, "the memory is encrypted"
            # The owner's own seal decrypts with the previous key too while the key changes.
            object.__setattr__(self, "serde", EncryptedSerializer(self.runtime.seal, self.serde.serde))

    @property
    def lists(self) -> ListCache:
        return self.runtime.get(ListCache)

    @property
    def unbound(self) -> UnboundValues:
        return self.runtime.get(UnboundValues)

    @property
    def segments(self) -> SegmentCache:
        return self.runtime.get(SegmentCache)

    @property
    def parts(self) -> Parts:
        """The writer and reader of message parts that JSON cannot represent."""
        return Parts(self.serde)

    def dump(self, value: Any) -> TypedBytes:
        """Format name and bytes of a value, as the serializer writes it."""
        kind, data = self.serde.dumps_typed(value)
        return (KIND + kind if kind.startswith(KIND) else kind), data

    def load(self, kind: str, data: bytes) -> Any:
        """Read the result of `dump`.

        Raises:
            PersistenceError: The value is damaged, or has a format that the serializer does not write.
            EncryptionError: The value cannot be decrypted, or is not encrypted, but the serializer requires
                encryption.
        """
        kind = kind.removeprefix(KIND)
        serde, inner_kind = self.serde, kind
        if _is_encrypting(serde):
            inner_kind, separator, _ = kind.partition("+")
            if not separator:
                raise EncryptionError(
                    f"a stored value of format {kind!r} is not encrypted, but the saver's serializer "
                    "requires encryption; read it with the serializer that wrote it"
                )
            serde = serde.serde
        if not is_written_by(serde, inner_kind):
            raise PersistenceError(
                f"a stored value has the format {inner_kind!r}, which the saver's serializer does not write, "
                "so it is not read; use the serializer that wrote it"
            )
        try:
            return self.serde.loads_typed((kind, data))
        except Exception as error:  # serializers and ciphers raise errors of any class
            error_class = EncryptionError if _is_encrypting(self.serde) else PersistenceError
            raise error_class(f"a stored value of format {kind!r} cannot be read: {error!r}") from error

    def state(self, row: CheckpointRow) -> tuple[dict[str, Any], dict[str, Any]]:
        """A checkpoint without its values, and its metadata."""
        fields, rest, metadata = self.load(row.kind, row.data)
        return (rest if fields is None else {**dict(zip(FIELDS, fields, strict=True)), **rest}), metadata

    def prepare_channel(
        self, conversation: str, ns: str, channel: str, value: Any
    ) -> TypedBytes | PreparedList | StoredValue:
        """Prepare the value of a channel for storing, in the tree or as bytes of the serializer.

        Blocks are not stored, since what they quote may be deleted later. The next
        selection makes them again.
        """
        value = without_blocks(value)
        if channel in (START, RETURNED):
            return self.prepare_write(value)
        scope, key = scope_of(ns, channel), list_key(channel, value)
        messages = value if key is None else value.get(key)
        prepared = PreparedList.of(messages, self.lists.lists(conversation, scope), self.parts.write)
        if prepared is not None:
            return prepared
        if isinstance(messages, list):
            warn_of_foreign_messages(messages)
            if not scope:
                warn_of_missing_ids(messages)
        return self.dump(value)

    def around_list(self, value: Mapping[str, Any]) -> StoredValue:
        """The stored value of a dictionary without the spans of its list of messages."""
        rest = None if len(value) == 1 else self.dump([{**value, MESSAGES: None}, []])
        return StoredValue({MESSAGES: ()}, False, rest)

    def prepare_write(self, value: Any) -> TypedBytes | StoredValue:
        """Prepare the value of a pending write for storing."""
        value = without_blocks(value)
        return take_apart(value, self.dump, self.parts.write) or self.dump(value)


def compact(state: dict[str, Any], metadata: Mapping[str, Any]) -> list[Any]:
    """The form in which a checkpoint without its values, and its metadata, are stored; see `FIELDS`."""
    if not state.keys() >= _FIELD_NAMES:
        return [None, state, dict(metadata)]
    rest = dict(state)
    return [[*map(rest.pop, FIELDS)], rest, dict(metadata)]


def blobs_of(state: Mapping[str, Any], row: CheckpointRow) -> dict[str, int]:
    """The number of the value of each channel of a checkpoint; 0 for a channel without a value."""
    return dict(zip(state.get("channel_versions", {}), row.refs, strict=True))


class _StoredCheckpoint(NamedTuple):
    """The trees, lists and unbound values of a stored checkpoint, which are cached after the commit.

    `removed` are the nodes that leave the caches and the vector index, `added` the new messages.
    """

    trees: Mapping[str, int]
    lists: dict[str, CachedList]
    added: dict[str, Sequence[MessageRow]]
    placed: Mapping[tuple[str, str], KnownPlace]
    unbound: Sequence[UnboundValue]
    waiting: list[UnboundValue | None]
    removed: Removed


class _OwnVersions(NamedTuple):
    """The versions of channels whose values the parent of a checkpoint does not have.

    LangGraph passes no new versions when it copies a checkpoint, and the parent may have other values.
    """

    versions: dict[str, Any]


@telemetry.observed("put_checkpoint", telemetry.of_name)
def put(
    archive: Archive,
    conversation: str,
    ns: str,
    parent: str | None,
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
    new_versions: Mapping[str, Any],
) -> Flow[None]:
    """Store a checkpoint, or replace the checkpoint with its id."""
    state = dict(checkpoint)
    values, checkpoint_id = state.pop("channel_values"), pack_id(state.pop("id"))
    versions: dict[str, Any] = dict(state.get("channel_versions", {}))
    kind, data = archive.dump(compact(state, metadata))
    parent_id = None if parent is None else pack_id(parent)
    run = str(metadata.get("run_id") or "").replace("\0", "") or None
    row = CheckpointRow(0, ns, checkpoint_id, parent_id, run, (), kind, data)
    now, owner = time.time(), archive.runtime.owner
    outgoing = {
        channel: archive.prepare_channel(conversation, ns, channel, values[channel])
        for channel in versions
        if channel in new_versions and channel in values
    }
    # A function that returns what it saves has one list, which would be searched for again.
    is_saved = {RETURNED, PREVIOUS} <= outgoing.keys() and values[RETURNED] is values[PREVIOUS]
    if is_saved:
        del outgoing[RETURNED]
    dictionaries = {
        channel: archive.around_list(values[channel])
        for channel, value in outgoing.items()
        if isinstance(value, PreparedList) and type(values[channel]) is dict
    }
    stored_values = [
        (channel, value) for channel, value in outgoing.items() if isinstance(value, StoredValue)
    ]
    unchanged = {name: version for name, version in versions.items() if name not in new_versions}
    inherited = parent_id if unchanged else None
    lists, unbound_values = archive.lists, archive.unbound
    cached_trees = unbound_values.trees(conversation)
    made = _time_of(checkpoint, now)
    deleted = set() if ns else _deleted(archive, conversation, metadata, values, parent_id)

    def write(conn: Conn, prepared: Mapping[str, PreparedList]) -> _StoredCheckpoint | _OwnVersions | None:
        scopes = {channel: scope_of(ns, channel) for channel in prepared}
        # The query of the first list is beside that of the checkpoint if the list is short.
        is_short = bool(prepared) and len(next(iter(prepared.values())).rest) <= MOST_BESIDE

        def queries(tree_ids: Mapping[str, int]) -> list[BoundStatement]:
            of_put = checkpoint_queries.put_query(tree_ids[""], ns, checkpoint_id, inherited)
            of_lists = [
                stored_lists.placement_query(tree_ids[scopes[channel]], new.rest, new.after)
                for channel, new in prepared.items()
            ]
            if is_short:
                of_put = beside(of_put, of_lists.pop(0))
            return [of_put, *of_lists, *finder.queries(stored_values, ns, tree_ids)]

        finder = _Finder(conn, owner, conversation)
        tree_ids, rows = trees.find_or_create_all(
            conn, owner, conversation, {"", *scopes.values()}, now, cached_trees, queries
        )
        tree, size = tree_ids[""], checkpoint_queries.PUT_COLUMNS
        put_rows = checkpoint_queries.as_put_rows(rows[0][0][:size])
        read = [*([[row[size:] for row in rows[0]]] if is_short else []), *rows[1:]]
        unchanged_refs = _refs(archive, conversation, put_rows.parent, unchanged)
        own = {
            name: version
            for name, version in unchanged.items()
            if name in values and name not in unchanged_refs
        }
        if own:
            return _OwnVersions(own)
        placements = {}
        for (channel, new), list_rows in zip(prepared.items(), read, strict=False):
            placements[channel] = stored_lists.placement_rows(list_rows)
            if not new.is_current(tree_ids[scopes[channel]], placements[channel].head):
                return None
        finder.use_rows(tree_ids, read[len(prepared) :])
        # A node of the run may have stored a later list until the tree was locked.
        later = lists.stored_after(conversation, made)
        cached, added, removed = {}, {}, list[int]()
        for channel, new in prepared.items():
            tree_id = tree_ids[scopes[channel]]
            stored_list, head = stored_lists.place_list(
                *(conn, tree_id, new.rest, now),
                after=new.after,
                beginning=new.beginning,
                ending=new.ending,
                later=later if scopes[channel] == "" else {},
                rows_read=placements[channel],
            )
            cached[channel] = new.cached(tree_id, head, stored_list)
            removed += stored_list.removed
            added[channel] = stored_list.added
            finder.add_placed(
                scopes[channel], new.rest, stored_list.locations, tree_id, (head.epoch, head.version)
            )
        bound_values = {channel: bind(value, ns, channel, finder) for channel, value in stored_values}
        stored: dict[str, TypedBytes] = {}
        for channel, value in outgoing.items():
            if isinstance(value, PreparedList):
                spans, around = cached[channel].spans, dictionaries.get(channel)
                whole = None if around is None else around.with_list(spans).pack()
                stored[channel] = (KIND, whole or StoredValue.packed_spans(spans))
            elif isinstance(value, StoredValue):
                stored[channel] = (KIND, packed(conn, bound_values[channel]))
            else:
                stored[channel] = value
        if is_saved:
            stored[RETURNED] = stored[PREVIOUS]
        numbers = dict(
            zip(
                stored,
                checkpoint_queries.put_blobs(conn, tree, list(stored.values()), put_rows.last_blob),
                strict=True,
            )
        )
        refs = {**unchanged_refs, **numbers}
        checkpoint_queries.put(
            conn, row._replace(tree=tree, refs=[refs.get(channel, 0) for channel in versions])
        )
        if put_rows.exists:
            checkpoint_queries.delete_unused_blobs(conn, tree)
        # The write of a task may have stored a value until the tree was locked.
        ids = {message.id for new in prepared.values() for message in new.rest}
        unbound = waiting_for(unbound_values.unbound(conversation), ids)
        waiting: list[UnboundValue | None] = [value.rewrite(conn, finder) for value in unbound]
        waiting += [
            UnboundValue(ns, channel, stored_value, (tree, numbers[channel]), stored[channel][1])
            for channel, stored_value in bound_values.items()
            if stored_value.inline()
        ]
        if deleted:
            removed += superseding.remove_messages(conn, tree, deleted)
        left = NOTHING_REMOVED
        if removed:
            left = summary_queries.take_out_removed(conn, owner, conversation, removed)
        return _StoredCheckpoint(tree_ids, cached, added, finder.placed, unbound, waiting, left)

    stored_checkpoint = None
    for is_retry in (False, True):
        # Another writer may have changed a tree; the second attempt uses no cached list.
        prepared = {
            channel: value.without_base(archive.parts.write) if is_retry else value
            for channel, value in outgoing.items()
            if isinstance(value, PreparedList)
        }
        stored_checkpoint = yield from Sql(partial(write, prepared=prepared), write=True)
        if stored_checkpoint is not None:
            break
    assert stored_checkpoint is not None, "without cached lists, no list can be out of date"
    if isinstance(stored_checkpoint, _OwnVersions):
        new = {**new_versions, **stored_checkpoint.versions}
        yield from put(archive, conversation, ns, parent, checkpoint, metadata, new)
        return
    unbound_values.add_trees(conversation, stored_checkpoint.trees)
    unbound_values.add_versions(conversation, data, versions)
    if stored_checkpoint.removed.keys:
        yield from drop(archive.runtime, stored_checkpoint.removed)
    for channel, cached in stored_checkpoint.lists.items():
        lists.add_list(conversation, scope_of(ns, channel), cached)
        archive.segments.add(cached.tree, (cached.epoch, cached.version), stored_checkpoint.added[channel])
    unbound_values.add_placed(conversation, stored_checkpoint.placed)
    unbound_values.replace_unbound(conversation, stored_checkpoint.unbound, stored_checkpoint.waiting)
    ids = {message.id for value in prepared.values() for message in value.rest}
    if due := waiting_for(unbound_values.unbound(conversation), ids):
        yield from _rewrite_unbound(archive, conversation, due)


def _time_of(checkpoint: Mapping[str, Any], now: float) -> float:
    """The time at which a checkpoint was made, in seconds since 1970; `now` if it has none."""
    try:
        return datetime.fromisoformat(checkpoint["ts"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return now


def _deleted(
    archive: Archive,
    conversation: str,
    metadata: Mapping[str, Any],
    values: Mapping[str, Any],
    parent: bytes | None,
) -> set[str]:
    """The ids of the messages that a checkpoint deletes from the conversation (`removals.removed_by`)."""
    source = metadata.get("source")
    if source == "input":
        return removed_in_input(values.get(START), MESSAGES)
    return archive.unbound.deleted(conversation, parent) if source == "update" else set()


@telemetry.observed("put_writes", telemetry.of_name)
def put_writes(
    archive: Archive,
    conversation: str,
    ns: str,
    checkpoint: str,
    writes: Sequence[tuple[str, Any]],
    task: str,
    path: str,
) -> Flow[None]:
    """Store the pending writes of a task; only LangGraph's special channels replace stored writes."""
    now, owner = time.time(), archive.runtime.owner
    checkpoint_id, task_id = pack_id(checkpoint), pack_id(task)
    prepared = [
        (WRITES_IDX_MAP.get(channel, n), channel, archive.prepare_write(value))
        for n, (channel, value) in enumerate(writes)
    ]

    stored_values = [(channel, value) for _, channel, value in prepared if isinstance(value, StoredValue)]
    cached_trees = archive.unbound.trees(conversation)
    known = archive.unbound.placed(conversation)

    def rows_of(conn: Conn, tree: int, finder: _Finder) -> tuple[list[WriteRow], list[UnboundValue]]:
        """The rows of the writes, and the values with messages that have no place."""
        rows, waiting = [], []
        for idx, channel, value in prepared:
            row = WriteRow(tree, ns, checkpoint_id, task_id, idx, path, channel, "", b"")
            if isinstance(value, StoredValue):
                stored_value = bind(value, ns, channel, finder)
                row = row._replace(kind=KIND, data=packed(conn, stored_value))
                if stored_value.inline():
                    waiting.append(UnboundValue(ns, channel, stored_value, row, row.data))
            else:
                row = row._replace(kind=value[0], data=value[1])
            rows.append(row)
        return rows, waiting

    def write_to(conn: Conn, tree: int) -> tuple[list[UnboundValue] | None, bool]:
        """The values with messages that have no place, if the tree is current, and if its version counts."""
        finder = _Finder(conn, owner, conversation, known, tree)
        rows, waiting = rows_of(conn, tree, finder)
        condition = trees.unchanged_query(conn, owner, conversation, tree, finder.version)
        is_written = checkpoint_queries.put_writes_if(conn, condition, rows)
        return waiting if is_written else None, finder.version is not None

    def write(conn: Conn) -> tuple[Mapping[str, int], list[UnboundValue]]:
        """The trees, and the values with messages that have no place."""

        def queries(tree_ids: Mapping[str, int]) -> list[BoundStatement]:
            return finder.queries(stored_values, ns, tree_ids)

        finder = _Finder(conn, owner, conversation)
        tree_ids, answers = trees.find_or_create_all(
            conn, owner, conversation, [""], now, cached_trees, queries
        )
        finder.use_rows(tree_ids, answers)
        rows, waiting = rows_of(conn, tree_ids[""], finder)
        checkpoint_queries.put_writes(conn, rows)
        return tree_ids, waiting

    tree, unbound, has_changed = cached_trees.get(""), None, False
    if tree is not None and not _requests(stored_values, ns, cached_trees):
        step = partial(write_to, tree=tree)
        is_one = len(prepared) <= MOST_TOGETHER
        unbound, has_changed = yield from Sql(LastWrite(step) if is_one else step, write=True)
    if unbound is not None:
        tree_ids, waiting, has_changed = cached_trees, unbound, False
    else:
        tree_ids, waiting = yield from Sql(write, write=True)
    for channel, value in () if ns else writes:
        if channel in CONVERSATION_CHANNELS and (ids := removed_by(value)):
            archive.unbound.add_deleted(conversation, checkpoint_id, ids)
    archive.unbound.add_trees(conversation, tree_ids)
    archive.unbound.replace_unbound(conversation, (), waiting)
    placed_ids = {id_ for _, id_ in archive.unbound.placed(conversation)} if waiting else set()
    # Messages that were placed before this write are bound here, all others by `put`.
    yield from _rewrite_unbound(
        archive,
        conversation,
        waiting_for(archive.unbound.still_unbound(conversation, waiting), placed_ids) if waiting else (),
        searches=has_changed,
    )


def _rewrite_unbound(
    archive: Archive, conversation: str, due: Sequence[UnboundValue], *, searches: bool = False
) -> Flow[None]:
    """Bind values whose messages were placed after the values were stored.

    Args:
        archive: The checkpoints.
        conversation: Name of the conversation.
        due: The values.
        searches: Whether the messages are searched for, since the known places may be out of date.
    """
    if not due:
        return
    now, owner = time.time(), archive.runtime.owner
    tree = archive.unbound.trees(conversation).get("")
    known = {} if searches else archive.unbound.placed(conversation)

    def write(conn: Conn) -> list[UnboundValue | None]:
        finder = _Finder(conn, owner, conversation, known, tree)
        if all(isinstance(value.row, WriteRow) and finder.knows(value) for value in due):
            return [value.rewrite(conn, finder, finder.version) for value in due]
        tree_ids, _ = trees.find_or_create_all(conn, owner, conversation, [""], now, {}, lambda tree_ids: ())
        finder = _Finder(conn, owner, conversation, thorough=True)
        finder.use_rows(tree_ids)
        return [value.rewrite(conn, finder) for value in due]

    archive.unbound.replace_unbound(conversation, due, ())
    archive.unbound.replace_unbound(conversation, (), (yield from Sql(write, write=True)))


def _requests(
    stored_values: Sequence[tuple[str, StoredValue]], ns: str, tree_ids: Mapping[str, int]
) -> list[tuple[str, list[EncodedMessage]]]:
    """The scopes and messages of values that are searched for; each value is paired with its channel."""
    return [
        (scope, list(messages.values()))
        for channel, stored_value in stored_values
        for _, scope, messages in unbound_messages(stored_value, ns, channel)
        if scope in tree_ids and len(messages) > 1
    ]


class _Finder:
    """Finds the places of messages: those that this transaction placed, known places, and then with queries.

    A message that is alone in its list is not searched for, since the checkpoint that adds it to the list of
    the channel stores the value again.

    Args:
        conn: A write transaction.
        owner: The owner of the conversation.
        conversation: Name of the conversation.
        known: Places of messages, by scope and id, of which those in `tree` are used.
        tree: The tree of the conversation.
        thorough: Whether to search for a message that is alone in its list, too.
    """

    def __init__(
        self,
        conn: Conn,
        owner: str,
        conversation: str,
        known: dict[tuple[str, str], KnownPlace] | None = None,
        tree: int | None = None,
        *,
        thorough: bool = False,
    ) -> None:
        self._conn = conn
        self._thorough = thorough
        self._conversation = owner, conversation
        self._tree_ids: Mapping[str, int] = {}
        self._requested: list[tuple[str, list[EncodedMessage]]] = []
        self._rows: list[Sequence[tuple[Any, ...]]] = []
        self.version: TreeVersion | None = None
        """The version of the tree in which the known places were read."""
        self.placed: dict[tuple[str, str], KnownPlace] = {}
        """The places of messages that this transaction wrote, by scope and id."""
        self._cached, self._cached_in = known or {}, (tree, BEFORE_ALL)
        for (scope, _), place in reversed(self._cached.items()):
            if scope == "" and place.tree == tree:  # It was placed last, so its version is the newest.
                self.version = place.version
                self._cached_in = tree, place.version
                break

    def queries(
        self, stored_values: Sequence[tuple[str, StoredValue]], ns: str, tree_ids: Mapping[str, int]
    ) -> list[BoundStatement]:
        """The queries for the messages of values; each value is paired with its channel."""
        self._requested = _requests(stored_values, ns, tree_ids)
        return [stored_lists.places_query(tree_ids[scope], messages) for scope, messages in self._requested]

    def use_rows(
        self, tree_ids: Mapping[str, int], answers: Iterable[Sequence[tuple[Any, ...]]] = ()
    ) -> None:
        """Use the rows of `queries`."""
        self._tree_ids, self._rows = tree_ids, list(answers)

    def add_placed(
        self,
        scope: str,
        messages: Sequence[EncodedMessage],
        locations: Sequence[Location],
        tree: int,
        version: TreeVersion,
    ) -> None:
        """Use the places of messages that this transaction wrote."""
        # After the locations of the messages, `locations` may contain the locations of a shared end.
        for message, location in zip(messages, locations, strict=False):
            self.placed[scope, message.id] = KnownPlace(tree, version, hash(message.body), location)

    def _place(self, scope: str, message_id: str) -> KnownPlace | None:
        """The place of a message that this transaction wrote, or that is known at the version of the tree."""
        place = self.placed.get((scope, message_id))
        if place is None and self.version is not None and scope == "":
            place = self._cached.get((scope, message_id))
            if place is not None and (place.tree, place.version) != self._cached_in:
                return None
        return place

    def knows(self, value: UnboundValue) -> bool:
        """Whether the places of all messages of a value are known."""
        found = unbound_messages(value.with_ids(), value.ns, value.channel)
        return all(None not in self._known(scope, messages.values()) for _, scope, messages in found)

    def _known(self, scope: str, messages: Iterable[EncodedMessage]) -> list[Location | None]:
        found: list[Location | None] = []
        for message in messages:
            place = self._place(scope, message.id)
            is_same = place is not None and place.body == hash(message.body)
            found.append(place.location if place is not None and is_same else None)
        return found

    def __call__(self, scope: str, messages: Sequence[EncodedMessage]) -> Sequence[Location | None]:
        locations = self._known(scope, messages)
        if None not in locations or (len(messages) == 1 and not self._thorough):
            return locations
        request = (scope, list(messages))
        are_new = all(self._place(scope, message.id) is None for message in messages)
        if are_new and request in self._requested:
            return stored_lists.places_from(self._conn, messages, self._rows[self._requested.index(request)])
        tree = self._tree_ids.get(scope) or trees.find(self._conn, *self._conversation, scope)
        return [None] * len(messages) if tree is None else stored_lists.find(self._conn, tree, messages)


def _refs(
    archive: Archive, conversation: str, row: CheckpointRow | None, versions: Mapping[str, Any]
) -> dict[str, int]:
    """The blobs of a checkpoint whose channels have the given versions."""
    if row is None or not versions:
        return {}
    stored = archive.unbound.versions(conversation, row.data)
    if stored is None:
        stored = archive.state(row)[0].get("channel_versions", {})
    return {
        name: ref
        for (name, version), ref in zip(stored.items(), row.refs, strict=True)
        if name in versions and versions[name] == version
    }
