"""SQL: stored values whose messages get their ids later, and references in place of their messages.

A reducer may assign an id to a message after a write with this message was stored. The write is then an
*unbound value*: as soon as the message has an id, the write is stored again with a reference to the message
in the tree, so that a replay adds no second copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.langgraph.checkpoints.queries import WriteRow
from langchain_threadmem.langgraph.checkpoints.values import (
    Inline,
    ListPart,
    ListParts,
    Span,
    StoredValue,
    scope_within,
)
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.list_cache import CACHED_CONVERSATIONS
from langchain_threadmem.tree.lists.stored_lists import Location
from langchain_threadmem.tree.trees import TreeVersion

MOST_UNBOUND = 256
MOST_SCOPES = 64
PLACED_IDS = 256
"""The number of places that stay cached for each conversation when there are twice as many."""
FindPlaces = Callable[[str, Sequence[EncodedMessage]], Sequence[Location | None]]
"""Finds the places of messages in the tree of a scope."""


class KnownPlace(NamedTuple):
    """The place of a message that this process has stored.

    Attributes:
        tree: The tree.
        version: The version of the tree; in a later version, the message may have been removed.
        body: The hash of the body.
        location: The place.
    """

    tree: int
    version: TreeVersion
    body: int
    location: Location


class UnboundValue(NamedTuple):
    """A stored value with messages that were not in the tree when it was written.

    Attributes:
        ns: The namespace of the checkpoint.
        channel: The channel.
        stored_value: The value, with the message objects of its inline messages.
        row: The row that stores the value: a pending write, or tree and number of a blob.
        data: The stored bytes.
        retries: The number of further attempts to bind the value.
    """

    ns: str
    channel: str
    stored_value: StoredValue
    row: WriteRow | tuple[int, int]
    data: bytes
    retries: int = 4

    def rewrite(
        self, conn: Conn, find: FindPlaces, version: TreeVersion | None = None
    ) -> UnboundValue | None:
        """Store the value again if its messages have ids or places; `None` if no more attempts are needed.

        Args:
            conn: A write transaction.
            find: Finds the places of messages.
            version: The version of the tree in which a pending write may be stored again; `None` for any.
        """
        stored_value, data = bind(self.with_ids(), self.ns, self.channel, find), self.data
        if stored_value != self.stored_value:
            data = packed(conn, stored_value)
            if isinstance(self.row, WriteRow):
                checkpoint_queries.patch_write(conn, self.row._replace(data=self.data), data, version)
            else:
                checkpoint_queries.patch_blob(conn, *self.row, self.data, data)
        if self.retries == 0 or not stored_value.inline():
            return None
        return self._replace(stored_value=stored_value, data=data, retries=self.retries - 1)

    def with_ids(self) -> StoredValue:
        """The value with the ids that its inline messages have got."""

        def with_id(item: ListPart) -> ListPart:
            if isinstance(item, Inline) and item.id is None and item.message is not None:
                return item._replace(id=item.message.id)
            return item

        stored_value = self.stored_value
        has_ids = all(item.id is not None for item in stored_value.inline())
        return stored_value if has_ids else stored_value.mapped(with_id)


def waiting_for(unbound: Sequence[UnboundValue], ids: AbstractSet[str]) -> list[UnboundValue]:
    """The values with an inline message whose current id is among `ids`."""
    return [value for value in unbound if any(item.id in ids for item in value.with_ids().inline())]


def bind(stored_value: StoredValue, ns: str, channel: str, find: FindPlaces) -> StoredValue:
    """The value with references in place of the messages that the tree stores."""
    locations: dict[str | None, list[Location | None]] = {
        key: [None] * len(items) for key, items in stored_value.lists.items()
    }
    for key, scope, messages in unbound_messages(stored_value, ns, channel):
        for n, location in zip(messages, find(scope, list(messages.values())), strict=True):
            locations[key][n] = location
    return _with_spans(stored_value, locations)


def unbound_messages(
    stored_value: StoredValue, ns: str, channel: str
) -> Iterator[tuple[str | None, str, dict[int, EncodedMessage]]]:
    """The inline messages with an id: key and scope of their list, and the messages by position."""
    for key, items in stored_value.lists.items():
        messages = {
            n: EncodedMessage(item.id, item.body, "")
            for n, item in enumerate(items)
            if isinstance(item, Inline) and item.id
        }
        if messages:
            yield key, scope_within(ns, channel, key), messages


def packed(conn: Conn, stored_value: StoredValue) -> bytes:
    """The bytes to store for a value; its messages are encrypted if the database is."""
    return stored_value.pack(None if conn.seal is None else conn.seal.text)


def _with_spans(
    stored_value: StoredValue, locations: Mapping[str | None, Sequence[Location | None]]
) -> StoredValue:
    """A value with spans in place of messages; successive messages of a thread become one span."""
    lists_: dict[str | None, ListParts] = {}
    for key, items in stored_value.lists.items():
        joined: list[ListPart] = []
        for item, location in zip(items, locations[key], strict=True):
            if location is None:
                joined.append(item)
            elif joined and isinstance(last := joined[-1], Span) and last.last == location.follows:
                joined[-1] = Span(last.first, location.key)
            else:
                joined.append(Span(location.key, location.key))
        lists_[key] = tuple(joined)
    return StoredValue(lists_, stored_value.is_list, stored_value.rest)


class UnboundValues(Component):
    """The unbound values of each conversation, the ids that they wait for, and the trees of its scopes."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.close()
        self._lock = forking.lock()

    def close(self) -> None:
        self._unbound = LruCache[str, tuple[UnboundValue, ...]](CACHED_CONVERSATIONS)
        self._placed = LruCache[str, dict[tuple[str, str], KnownPlace]](CACHED_CONVERSATIONS)
        self._trees = LruCache[str, dict[str, int]](CACHED_CONVERSATIONS)
        self._deleted = LruCache[tuple[str, bytes], set[str]](CACHED_CONVERSATIONS)
        self._versions = LruCache[str, tuple[bytes, Mapping[str, Any]]](CACHED_CONVERSATIONS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        for name in self._trees:
            if not removed.keys().isdisjoint(self.trees(name).values()):
                self._unbound.drop(name)
                self._placed.drop(name)
                self._versions.drop(name)
                self._trees.drop(name)

    def trees(self, conversation: str) -> Mapping[str, int]:
        """The trees of a conversation by scope, which may be out of date; the caller checks them."""
        return self._trees.get(conversation) or {}

    def add_trees(self, conversation: str, trees: Mapping[str, int]) -> None:
        """Cache the trees of a conversation."""
        cached = self.trees(conversation)
        if not cached.items() >= trees.items():
            self._trees.put(conversation, {**cached, **trees} if len(cached) < MOST_SCOPES else dict(trees))

    def placed(self, conversation: str) -> dict[tuple[str, str], KnownPlace]:
        """The most recently placed messages, by scope and id; other processes may have removed them."""
        return self._placed.get(conversation) or {}

    def add_placed(self, conversation: str, places: Mapping[tuple[str, str], KnownPlace]) -> None:
        """Cache the places of messages."""
        with self._lock:
            known = {**self.placed(conversation), **places}
            if len(known) > 2 * PLACED_IDS:  # Not at each call, since the copies take 15 µs.
                known = dict(list(known.items())[-PLACED_IDS:])
            self._placed.put(conversation, known)

    def versions(self, conversation: str, data: bytes) -> Mapping[str, Any] | None:
        """The channel versions of a checkpoint by its stored bytes, if it is the last stored one."""
        cached = self._versions.get(conversation)
        return cached[1] if cached is not None and cached[0] == data else None

    def add_versions(self, conversation: str, data: bytes, versions: Mapping[str, Any]) -> None:
        """Cache the stored bytes and the channel versions of the last checkpoint of a conversation."""
        self._versions.put(conversation, (data, versions))

    def deleted(self, conversation: str, checkpoint: bytes | None) -> set[str]:
        """Ids of the messages that the writes after a checkpoint delete."""
        return set() if checkpoint is None else self._deleted.get((conversation, checkpoint)) or set()

    def add_deleted(self, conversation: str, checkpoint: bytes, ids: set[str]) -> None:
        """Cache the ids of messages that a write after a checkpoint deletes."""
        self._deleted.put((conversation, checkpoint), self.deleted(conversation, checkpoint) | ids)

    def unbound(self, conversation: str) -> tuple[UnboundValue, ...]:
        """The unbound values of a conversation."""
        return self._unbound.get(conversation) or ()

    def still_unbound(self, conversation: str, values: Sequence[UnboundValue]) -> list[UnboundValue]:
        """Those of some unbound values that no other call has bound meanwhile."""
        unbound = set(map(id, self.unbound(conversation)))
        return [value for value in values if id(value) in unbound]

    def replace_unbound(
        self, conversation: str, old: Sequence[UnboundValue], new: Sequence[UnboundValue | None]
    ) -> None:
        """Replace unbound values; `None` in `new` stands for a value that needs no further attempt."""
        if not old and not new:
            return
        replaced = set(map(id, old))
        with self._lock:
            others = [value for value in self.unbound(conversation) if id(value) not in replaced]
            waiting = [*others, *(value for value in new if value is not None)]
            self._unbound.put(conversation, tuple(waiting[-MOST_UNBOUND:]))
