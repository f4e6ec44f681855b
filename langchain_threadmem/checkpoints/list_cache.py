"""A cache of stored lists, and of the unbound values that wait for ids.

When a list grows by two messages, only these two messages are encoded: the fingerprints of full chunks
identify the stored part. A cached list is valid for one version of its tree. A list is cached after the
commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.checkpoints.lists import Location, StoredList
from langchain_threadmem.checkpoints.placing import spans
from langchain_threadmem.checkpoints.unbound_values import UnboundValue
from langchain_threadmem.checkpoints.values import (
    CHUNK,
    EncodedMessage,
    encode_messages,
    fingerprints,
    is_message_list,
)
from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.messages.typed_json import Writer
from langchain_threadmem.tree.trees import Head

CACHED_CONVERSATIONS = 256
LISTS_PER_TREE = 6
MOST_UNBOUND = 256
MOST_SCOPES = 64
PLACED_IDS = 256
"""The number of ids that are cached for each conversation: the ids of the messages that were placed last."""


class CachedList(NamedTuple):
    """A stored list at one version of its tree.

    Attributes:
        tree: Id of the tree.
        epoch: The epoch of the tree, a counter that rises when the tree is emptied.
        version: The version of the tree, a counter that rises when a node changes its state.
        chunks: Fingerprints of the full chunks of the list.
        locations: The place of each message.
        tail: The messages after the last full chunk.
        spans: First and last key of each span of the list.
        shared: Index of the first message of the end that the list, a former version of the conversation,
            shares with the current version; `None` if they share no end. If messages are added to a list
            with a shared end, the whole list is placed again.
        former: Whether a message of the list is superseded; such a list shares no end with another list.
    """

    tree: int
    epoch: int
    version: int
    chunks: Sequence[bytes]
    locations: Sequence[Location]
    tail: Sequence[EncodedMessage]
    spans: Sequence[tuple[int, int]]
    shared: int | None = None
    former: bool = False


@dataclass(frozen=True, slots=True)
class PreparedList:
    """A list that is prepared for storing.

    Attributes:
        messages: The list.
        chunks: Fingerprints of the full chunks.
        base: A cached list with the same beginning.
        matched: The number of messages in the shared beginning.
        rest: The messages to place: all messages after the shared beginning, or, if the lists also share an
            end, the messages up to and including the first message of the end.
        ending: The locations of the messages of the shared end.
    """

    messages: Sequence[BaseMessage]
    chunks: Sequence[bytes]
    base: CachedList | None
    matched: int
    rest: Sequence[EncodedMessage]
    ending: Sequence[Location] = ()

    @classmethod
    def of(
        cls, value: Any, cached: Sequence[CachedList] = (), other: Writer | None = None
    ) -> PreparedList | None:
        """Prepare the value of a channel; `None` if the value is not a list of messages alone.

        Args:
            value: The value.
            cached: The cached lists of the channel.
            other: Writes parts of types that JSON does not have.
        """
        if not is_message_list(value):
            return None
        messages, chunks = list(value), fingerprints(value, other)
        if (replaced := cls._of_replaced(messages, chunks, cached, other)) is not None:
            return replaced
        counts = [(_common_length(candidate.chunks, chunks), candidate) for candidate in cached]
        shared_chunks = max((count for count, _ in counts), default=0)
        rest = encode_messages(messages[shared_chunks * CHUNK :], other)
        if rest is None:
            return None
        matches = [
            (
                shared_chunks * CHUNK
                + (_common_length(candidate.tail, rest) if len(candidate.chunks) == shared_chunks else 0),
                candidate,
            )
            for count, candidate in counts
            if count == shared_chunks
        ]
        matched, base = max(matches, key=lambda match: match[0], default=(0, None))
        if base is not None and base.shared is not None and matched > base.shared:
            return cls.of(messages, other=other)
        return cls(
            messages, chunks, base if matched else None, matched, rest[matched - shared_chunks * CHUNK :]
        )

    @classmethod
    def _of_replaced(
        cls,
        messages: Sequence[BaseMessage],
        chunks: Sequence[bytes],
        cached: Sequence[CachedList],
        other: Writer | None,
    ) -> PreparedList | None:
        """Prepare a list in which messages far from its end were replaced; `None` for any other list."""
        for candidate in cached:
            front = _common_length(candidate.chunks, chunks)
            back = _common_length(candidate.chunks[::-1], chunks[::-1])
            if not front < len(chunks) or not back or candidate.shared is not None or candidate.former:
                continue
            if len(candidate.chunks) != len(chunks) or candidate.tail != encode_messages(
                messages[len(chunks) * CHUNK :], other
            ):
                continue
            end = (len(chunks) - back) * CHUNK
            end = next(
                (n for n in range(end, len(messages)) if not candidate.locations[n].aside), len(messages)
            )
            if (
                end < len(messages)
                and (rest := encode_messages(messages[front * CHUNK : end + 1], other)) is not None
            ):
                return cls(messages, chunks, candidate, front * CHUNK, rest, candidate.locations[end:])
        return None

    def without_base(self, other: Writer | None = None) -> PreparedList:
        """The same list, prepared without a cached list."""
        prepared = PreparedList.of(self.messages, other=other)
        assert prepared is not None
        return prepared

    @property
    def beginning(self) -> Sequence[Location]:
        """The locations of the messages of the shared beginning."""
        return self.base.locations[: self.matched] if self.base else ()

    @property
    def after(self) -> int | None:
        """Key of the last message of the shared beginning that is not an aside."""
        return next((location.key for location in reversed(self.beginning) if not location.aside), None)

    def is_current(self, tree: int, head: Head) -> bool:
        """Whether the tree has not changed since the cached list was stored."""
        base = self.base
        return base is None or (base.tree, base.epoch, base.version) == (tree, head.epoch, head.version)

    def cached(self, tree: int, head: Head, stored: StoredList) -> CachedList:
        """The list to cache after `rest` was placed."""
        locations = stored.locations
        before = list(self.base.locations[: self.matched]) if self.base else []
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
        all_locations = [*before, *locations]
        if self.base is not None and len(before) == len(self.base.locations):
            ends = spans(locations, self.base.spans)
        else:
            ends = spans(all_locations)
        shared = None if stored.shared is None else len(before) + stored.shared
        former = stored.former or (self.base is not None and self.base.former)
        return CachedList(
            tree, head.epoch, head.version, self.chunks, all_locations, tail, ends, shared, former
        )


class ListCache(Component):
    """The most recently stored lists and the unbound values, by conversation."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.close()
        self._lock = forking.lock()

    def close(self) -> None:
        self._lists = LruCache[tuple[str, str], tuple[CachedList, ...]](CACHED_CONVERSATIONS)
        self._unbound = LruCache[str, tuple[UnboundValue, ...]](CACHED_CONVERSATIONS)
        self._placed = LruCache[str, tuple[str, ...]](CACHED_CONVERSATIONS)
        self._trees = LruCache[str, dict[str, int]](CACHED_CONVERSATIONS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        dropped = {name for name in self._trees if not removed.keys().isdisjoint(self.trees(name).values())}
        dropped |= {
            key[0] for key in self._lists if any(cached.tree in removed for cached in self.lists(*key))
        }
        for name in dropped:
            self._unbound.drop(name)
            self._placed.drop(name)
            self._trees.drop(name)
        for key in self._lists:
            if key[0] in dropped:
                self._lists.drop(key)

    def lists(self, conversation: str, scope: str) -> tuple[CachedList, ...]:
        """The most recently stored lists of a tree."""
        return self._lists.get((conversation, scope)) or ()

    def add_list(self, conversation: str, scope: str, stored: CachedList) -> None:
        """Cache a list, and drop its beginnings and the lists of earlier versions of the tree."""
        version = stored[:3]
        with self._lock:
            others = [
                cached
                for cached in self.lists(conversation, scope)
                if cached[:3] == version and not _extends(stored, cached)
            ]
            self._lists.put((conversation, scope), (stored, *others[: LISTS_PER_TREE - 1]))

    def trees(self, conversation: str) -> Mapping[str, int]:
        """The trees of a conversation by scope, which may be out of date; the caller checks them."""
        return self._trees.get(conversation) or {}

    def add_trees(self, conversation: str, trees: Mapping[str, int]) -> None:
        """Cache the trees of a conversation."""
        cached = self.trees(conversation)
        if not cached.items() >= trees.items():
            self._trees.put(conversation, {**cached, **trees} if len(cached) < MOST_SCOPES else dict(trees))

    def placed_ids(self, conversation: str) -> set[str]:
        """Ids of the most recently placed messages."""
        return set(self._placed.get(conversation) or ())

    def add_placed(self, conversation: str, ids: Iterable[str]) -> None:
        """Cache the ids of messages that were placed."""
        with self._lock:
            self._placed.put(conversation, (*(self._placed.get(conversation) or ()), *ids)[-PLACED_IDS:])

    def unbound(self, conversation: str) -> tuple[UnboundValue, ...]:
        """The unbound values of a conversation."""
        return self._unbound.get(conversation) or ()

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


def _extends(cached: CachedList, other: CachedList) -> bool:
    """Whether a list begins with all messages of another list."""
    return cached.locations[: len(other.locations)] == other.locations


def _common_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The length of the common beginning of two sequences."""
    count = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        count += 1
    return count
