"""A cache of stored lists, and stored values whose messages have no id yet.

When a list grows by two messages, only these two are encoded: fingerprints of full chunks identify the stored
part. A cached list is valid for one version of its tree and is cached after the commit only.

A reducer may assign a message its id after the write with that message was stored. Such a write is an
*unbound value*: it is stored again with a reference to the message in the tree as soon as the id is known, so
that a replay adds no second copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.lists import Located, Stored
from langchain_threadmem.checkpoints.placing import spans
from langchain_threadmem.checkpoints.queries import WriteRow
from langchain_threadmem.checkpoints.values import (
    CHUNK,
    EncodedMessage,
    Inline,
    Item,
    Items,
    Span,
    StoredValue,
    fingerprints,
    is_message_list,
    said,
)
from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.messages.typed_json import Writer
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree.trees import Head

CONVERSATION = "messages"
"""The channel of the root namespace whose messages are the conversation."""
START, ROOT = "__start__", "__root__"
CACHED_THREADS = 256
LISTS_PER_TREE = 6
MOST_UNBOUND = 256
MOST_SCOPES = 64
PLACED = 256
"""The number of ids kept for each conversation: the ids of the messages that were placed last."""

Find = Callable[[str, Sequence[EncodedMessage]], Sequence[Located | None]]
"""Finds the places of messages in the tree of a scope."""


def scope_of(ns: str, channel: str) -> str:
    """The scope of the tree that stores the messages of a channel; no two channels share a scope.

    Example:
        >>> scope_of("", "messages"), scope_of("child:1", "notes")
        ('', '["child:1","notes"]')
    """
    if not ns and channel == CONVERSATION:
        return ""
    return json.dumps([ns, channel], separators=(",", ":"))


def scope_within(ns: str, channel: str, key: str | None) -> str:
    """The scope for a list inside a value: the channel that its key names, else the channel of the value."""
    return scope_of(ns, key if key is not None else ROOT if channel == START else channel)


class RememberedList(NamedTuple):
    """A stored list at one version of its tree.

    Attributes:
        tree: Id of the tree.
        epoch: The epoch of the tree at that time: a counter that rises when the tree is emptied.
        version: The version of the tree at that time: a counter that rises when a node changes its state.
        chunks: Fingerprints of the list's full chunks.
        located: The place of each message.
        tail: The messages after the last full chunk.
        spans: First and last key of each span of the list.
        shared: Only for a list that is a former version of the conversation: index of the first message of
            the end that the list shares with the current version. The whole list is then placed again when
            messages follow it.
        former: Whether a message of the list is superseded; such a list shares no end with another list.
    """

    tree: int
    epoch: int
    version: int
    chunks: Sequence[bytes]
    located: Sequence[Located]
    tail: Sequence[EncodedMessage]
    spans: Sequence[tuple[int, int]]
    shared: int | None = None
    former: bool = False


@dataclass(frozen=True, slots=True)
class PreparedList:
    """A list that is prepared for storing.

    Attributes:
        messages: The list.
        chunks: Fingerprints of its full chunks.
        base: A remembered list with the same beginning.
        matched: The number of messages in that beginning.
        rest: The messages to place: all after the beginning; if both lists also share their end, those up to
            and including the first message of the end.
        ending: The places of the shared end.
    """

    messages: Sequence[BaseMessage]
    chunks: Sequence[bytes]
    base: RememberedList | None
    matched: int
    rest: Sequence[EncodedMessage]
    ending: Sequence[Located] = ()

    @classmethod
    def of(
        cls, value: Any, remembered: Sequence[RememberedList] = (), other: Writer | None = None
    ) -> PreparedList | None:
        """Prepare the value of a channel; `None` if the value is not a list of messages alone.

        Args:
            value: The value.
            remembered: Lists that were stored before.
            other: Writes parts of types that JSON does not have.
        """
        if not is_message_list(value):
            return None
        messages, chunks = list(value), fingerprints(value, other)
        if (replaced := cls._replaced(messages, chunks, remembered, other)) is not None:
            return replaced
        counts = [(_shared(candidate.chunks, chunks), candidate) for candidate in remembered]
        whole = max((count for count, _ in counts), default=0)
        rest = said(messages[whole * CHUNK :], other)
        if rest is None:
            return None
        ends = [
            (
                whole * CHUNK + (_shared(candidate.tail, rest) if len(candidate.chunks) == whole else 0),
                candidate,
            )
            for count, candidate in counts
            if count == whole
        ]
        matched, base = max(ends, key=lambda end: end[0], default=(0, None))
        if base is not None and base.shared is not None and matched > base.shared:
            return cls.of(messages, other=other)
        return cls(messages, chunks, base if matched else None, matched, rest[matched - whole * CHUNK :])

    @classmethod
    def _replaced(
        cls,
        messages: Sequence[BaseMessage],
        chunks: Sequence[bytes],
        remembered: Sequence[RememberedList],
        other: Writer | None,
    ) -> PreparedList | None:
        """Prepare a list in which messages far from its end were replaced; `None` for any other list."""
        for candidate in remembered:
            front = _shared(candidate.chunks, chunks)
            back = _shared(candidate.chunks[::-1], chunks[::-1])
            if not front < len(chunks) or not back or candidate.shared is not None or candidate.former:
                continue
            if len(candidate.chunks) != len(chunks) or candidate.tail != said(
                messages[len(chunks) * CHUNK :], other
            ):
                continue
            end = (len(chunks) - back) * CHUNK
            end = next(
                (n for n in range(end, len(messages)) if not candidate.located[n].aside), len(messages)
            )
            if end < len(messages) and (rest := said(messages[front * CHUNK : end + 1], other)) is not None:
                return cls(messages, chunks, candidate, front * CHUNK, rest, candidate.located[end:])
        return None

    def without_base(self, other: Writer | None = None) -> PreparedList:
        """The same list, prepared without a remembered list."""
        made = PreparedList.of(self.messages, other=other)
        assert made is not None
        return made

    @property
    def after(self) -> int | None:
        """Key of the last message of the shared beginning that is not an aside."""
        located = self.base.located[: self.matched] if self.base else ()
        return next((where.key for where in reversed(located) if not where.aside), None)

    def is_current(self, tree: int, head: Head) -> bool:
        """Whether the tree has not changed since the remembered list was stored."""
        base = self.base
        return base is None or (base.tree, base.epoch, base.version) == (tree, head.epoch, head.version)

    def remembered(self, tree: int, head: Head, stored: Stored) -> RememberedList:
        """The list to remember after `rest` was placed."""
        located = stored.located
        before = list(self.base.located[: self.matched]) if self.base else []
        start = len(self.chunks) * CHUNK
        tail: Sequence[EncodedMessage]
        if self.ending and self.base is not None:
            tail = self.base.tail
        elif start >= self.matched:
            tail = self.rest[start - self.matched :]
        else:
            assert self.base is not None
            chunked = len(self.base.chunks) * CHUNK
            tail = [*self.base.tail[start - chunked : self.matched - chunked], *self.rest]
        places = [*before, *located]
        if self.base is not None and len(before) == len(self.base.located):
            ends = spans(located, self.base.spans)
        else:
            ends = spans(places)
        shared = None if stored.shared is None else len(before) + stored.shared
        former = stored.former or (self.base is not None and self.base.former)
        return RememberedList(tree, head.epoch, head.version, self.chunks, places, tail, ends, shared, former)


class UnboundValue(NamedTuple):
    """A stored value with messages that were not in the tree when it was written.

    Attributes:
        ns: Its namespace.
        channel: Its channel.
        stored_value: The value, with the message objects of its inline messages.
        row: The row that stores the value: a pending write, or tree and number of a blob.
        data: The stored bytes.
        inline: The messages that were not in the tree.
        retries: The number of further attempts to bind the value.
    """

    ns: str
    channel: str
    stored_value: StoredValue
    row: WriteRow | tuple[int, int]
    data: bytes
    inline: Sequence[Inline]
    retries: int = 4

    @classmethod
    def of(
        cls, ns: str, channel: str, stored_value: StoredValue, row: WriteRow | tuple[int, int], data: bytes
    ) -> UnboundValue:
        return cls(ns, channel, stored_value, row, data, stored_value.inline())

    def rewrite(self, conn: Conn, find: Find) -> UnboundValue | None:
        """Store the value again if its messages have ids or places; `None` if no further try is needed."""
        stored_value, data = bound(self._named(), self.ns, self.channel, find), self.data
        if stored_value != self.stored_value:
            data = packed(conn, stored_value)
            if isinstance(self.row, WriteRow):
                checkpoint_queries.patch_write(conn, self.row._replace(data=self.data), data)
            else:
                checkpoint_queries.patch_blob(conn, *self.row, self.data, data)
        inline = stored_value.inline()
        if self.retries == 0 or not inline:
            return None
        return self._replace(stored_value=stored_value, data=data, inline=inline, retries=self.retries - 1)

    def _named(self) -> StoredValue:
        def name(key: str | None, item: Item) -> Item:
            if isinstance(item, Inline) and item.id is None and item.message is not None:
                return item._replace(id=item.message.id)
            return item

        return self.stored_value.mapped(name)


def waiting_for(unbound: Sequence[UnboundValue], ids: AbstractSet[str]) -> list[UnboundValue]:
    """The values with an inline message whose current id is among `ids`."""
    waiting = []
    for value in unbound:
        for id_, _, message in value.inline:
            if (message.id if id_ is None and message is not None else id_) in ids:
                waiting.append(value)
                break
    return waiting


def bound(stored_value: StoredValue, ns: str, channel: str, find: Find) -> StoredValue:
    """The value with references in place of the messages that the tree holds."""
    places: dict[str | None, list[Located | None]] = {
        key: [None] * len(items) for key, items in stored_value.lists.items()
    }
    for key, scope, asked in sought(stored_value, ns, channel):
        for n, where in zip(asked, find(scope, list(asked.values())), strict=True):
            places[key][n] = where
    return with_places(stored_value, places)


def sought(
    stored_value: StoredValue, ns: str, channel: str
) -> Iterator[tuple[str | None, str, dict[int, EncodedMessage]]]:
    """Messages of a value that may be stored: key and scope of their list, and messages by position."""
    for key, items in stored_value.lists.items():
        asked = {
            n: EncodedMessage(item.id, item.body, "")
            for n, item in enumerate(items)
            if isinstance(item, Inline) and item.id
        }
        if asked:
            yield key, scope_within(ns, channel, key), asked


def packed(conn: Conn, stored_value: StoredValue) -> bytes:
    """The bytes to store for a value; its messages are encrypted if the database is."""
    return stored_value.pack(None if conn.seal is None else conn.seal.text)


def with_places(
    stored_value: StoredValue, places: Mapping[str | None, Sequence[Located | None]]
) -> StoredValue:
    """A value with spans in place of messages; messages that follow each other become one span."""
    lists_: dict[str | None, Items] = {}
    for key, items in stored_value.lists.items():
        joined: list[Item] = []
        for item, where in zip(items, places[key], strict=True):
            if where is None:
                joined.append(item)
            elif joined and isinstance(last := joined[-1], Span) and last.last == where.follows:
                joined[-1] = Span(last.first, where.key)
            else:
                joined.append(Span(where.key, where.key))
        lists_[key] = tuple(joined)
    return StoredValue(lists_, stored_value.whole, stored_value.rest)


class ListMemory(Component):
    """The most recently stored lists and the unbound values, by conversation."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.close()
        self._lock = forking.lock()

    def close(self) -> None:
        self._lists = LruCache[tuple[str, str], tuple[RememberedList, ...]](CACHED_THREADS)
        self._unbound = LruCache[str, tuple[UnboundValue, ...]](CACHED_THREADS)
        self._placed = LruCache[str, tuple[str, ...]](CACHED_THREADS)
        self._trees = LruCache[str, dict[str, int]](CACHED_THREADS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        gone = {
            thread for thread in self._trees if not removed.keys().isdisjoint(self.trees(thread).values())
        }
        gone |= {key[0] for key in self._lists if any(listed.tree in removed for listed in self.lists(*key))}
        for thread in gone:
            self._unbound.drop(thread)
            self._placed.drop(thread)
            self._trees.drop(thread)
        for key in self._lists:
            if key[0] in gone:
                self._lists.drop(key)

    def lists(self, thread: str, scope: str) -> tuple[RememberedList, ...]:
        """The most recently stored lists of a tree."""
        return self._lists.get((thread, scope)) or ()

    def remember(self, thread: str, scope: str, stored: RememberedList) -> None:
        """Remember a list and drop the lists of earlier versions of the tree."""
        version = stored[:3]
        with self._lock:
            others = [
                listed
                for listed in self.lists(thread, scope)
                if listed[:3] == version and not _extends(stored, listed)
            ]
            self._lists.put((thread, scope), (stored, *others[: LISTS_PER_TREE - 1]))

    def trees(self, thread: str) -> Mapping[str, int]:
        """The trees of a conversation by scope; a caller checks them, since they may be out of date."""
        return self._trees.get(thread) or {}

    def know_trees(self, thread: str, trees: Mapping[str, int]) -> None:
        """Remember the trees of a conversation."""
        cached = self.trees(thread)
        if not cached.items() >= trees.items():
            self._trees.put(thread, {**cached, **trees} if len(cached) < MOST_SCOPES else dict(trees))

    def placed(self, thread: str) -> set[str]:
        """Ids of the most recently placed messages."""
        return set(self._placed.get(thread) or ())

    def place(self, thread: str, ids: Iterable[str]) -> None:
        """Remember ids of messages that were placed."""
        with self._lock:
            self._placed.put(thread, (*(self._placed.get(thread) or ()), *ids)[-PLACED:])

    def unbound(self, thread: str) -> tuple[UnboundValue, ...]:
        """The unbound values of a conversation."""
        return self._unbound.get(thread) or ()

    def replace(self, thread: str, old: Sequence[UnboundValue], new: Sequence[UnboundValue | None]) -> None:
        """Replace unbound values; a `None` in `new` stands for a value that needs no further try."""
        if not old and not new:
            return
        replaced = set(map(id, old))
        with self._lock:
            others = [value for value in self.unbound(thread) if id(value) not in replaced]
            waiting = [*others, *(value for value in new if value is not None)]
            self._unbound.put(thread, tuple(waiting[-MOST_UNBOUND:]))


def _extends(listed: RememberedList, other: RememberedList) -> bool:
    """Whether a list begins with all messages of another list."""
    return listed.located[: len(other.located)] == other.located


def _shared(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The length of the common beginning of two sequences."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
