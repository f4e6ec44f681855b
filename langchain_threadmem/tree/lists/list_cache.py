"""A cache of stored lists.

When a list grows by two messages, only these two messages are encoded: the fingerprints of full chunks
identify the stored part. A cached list is valid for one version of its tree. A list is cached after the
commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.tree.lists.encoded import (
    CHUNK,
    EncodedMessage,
    encode_messages,
    fingerprints,
    is_message_list,
)
from langchain_threadmem.tree.lists.placing import spans
from langchain_threadmem.tree.lists.stored_lists import Location, StoredList
from langchain_threadmem.tree.trees import Head

CACHED_CONVERSATIONS = 256
LISTS_PER_TREE = 6
STORED_IDS = 256
"""The number of messages of a conversation whose times are cached."""


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
        outdated: As in `tree.lists.stored_lists.StoredList`.
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
    outdated: bool = False


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
        beginning: The locations of the messages of the shared beginning.
        after: Key of the last message of the shared beginning that is not an aside.
    """

    messages: Sequence[BaseMessage]
    chunks: Sequence[bytes]
    base: CachedList | None
    matched: int
    rest: Sequence[EncodedMessage]
    ending: Sequence[Location] = ()
    beginning: Sequence[Location] = ()
    after: int | None = None

    @classmethod
    def of(
        cls,
        value: Any,
        cached: Sequence[CachedList] = (),
        other: WriteOpaque | None = None,
        known: Sequence[bytes] = (),
    ) -> PreparedList | None:
        """Prepare the value of a channel; `None` if the value is not a list of messages alone.

        Args:
            value: The value.
            cached: The cached lists of the channel.
            other: Writes parts of types that JSON does not have.
            known: As for `fingerprints`.
        """
        if not is_message_list(value):
            return None
        messages, chunks = list(value), fingerprints(value, other, known)
        if (replaced := cls._of_replaced(messages, chunks, cached, other)) is not None:
            return replaced
        shared = 0  # the number of chunks with which a cached list begins
        for candidate in cached:
            count = len(candidate.chunks)
            if candidate.chunks != chunks[:count]:
                count = _common_length(candidate.chunks, chunks)
            shared = max(shared, count)
        rest = encode_messages(messages[shared * CHUNK :], other)
        if rest is None:
            return None
        base, in_rest = None, 0
        for candidate in cached:
            if candidate.chunks[:shared] != chunks[:shared]:
                continue
            same = 0
            if len(candidate.chunks) == shared:
                for old, new in zip(candidate.tail, rest, strict=False):
                    if old != new:
                        break
                    same += 1
            if base is None or same > in_rest:
                base, in_rest = candidate, same
        matched = shared * CHUNK + in_rest
        if base is None or not matched:
            return cls(messages, chunks, None, 0, rest)
        if base.shared is not None and matched > base.shared:
            return cls.of(messages, other=other)
        if base.outdated and matched < len(messages):
            return cls.of(messages, other=other)  # The home of a deleted message is known to its list alone.
        return cls._on(base, messages, chunks, matched, rest[in_rest:])

    @classmethod
    def _on(
        cls,
        base: CachedList,
        messages: Sequence[BaseMessage],
        chunks: Sequence[bytes],
        matched: int,
        rest: Sequence[EncodedMessage],
        ending: Sequence[Location] = (),
    ) -> PreparedList:
        """A list with the same beginning as a cached list."""
        beginning, after = base.locations[:matched], None
        for location in reversed(beginning):
            if not location.aside:
                after = location.key
                break
        return cls(messages, chunks, base, matched, rest, ending, beginning, after)

    @classmethod
    def _of_replaced(
        cls,
        messages: Sequence[BaseMessage],
        chunks: Sequence[bytes],
        cached: Sequence[CachedList],
        other: WriteOpaque | None,
    ) -> PreparedList | None:
        """Prepare a list in which messages far from its end were replaced; `None` for any other list."""
        for candidate in cached:
            if len(candidate.chunks) != len(chunks) or list(candidate.chunks) == list(chunks):
                continue
            front = _common_length(candidate.chunks, chunks)
            back = _common_length(candidate.chunks[::-1], chunks[::-1])
            if not back or candidate.shared is not None or candidate.former:
                continue
            if candidate.tail != encode_messages(messages[len(chunks) * CHUNK :], other):
                continue
            end = (len(chunks) - back) * CHUNK
            end = next(
                (n for n in range(end, len(messages)) if not candidate.locations[n].aside), len(messages)
            )
            if (
                end < len(messages)
                and (rest := encode_messages(messages[front * CHUNK : end + 1], other)) is not None
            ):
                return cls._on(candidate, messages, chunks, front * CHUNK, rest, candidate.locations[end:])
        return None

    @classmethod
    def of_encoded(cls, messages: Sequence[EncodedMessage]) -> PreparedList:
        """Messages that no cached list contains, and that are not cached."""
        return cls((), (), None, 0, messages)

    def without_base(self, other: WriteOpaque | None = None) -> PreparedList:
        """The same list, prepared without a cached list."""
        prepared = PreparedList.of(self.messages, other=other)
        assert prepared is not None
        return prepared

    @property
    def is_cached(self) -> bool:
        """Whether a cached list contains all messages of the list."""
        return self.base is not None and not self.rest

    def is_current(self, tree: int, head: Head) -> bool:
        """Whether the tree has not changed since the cached list was stored."""
        base = self.base
        return base is None or (base.tree, base.epoch, base.version) == (tree, head.epoch, head.version)

    def cached(self, tree: int, head: Head, stored: StoredList) -> CachedList:
        """The list to cache after `rest` was placed."""
        locations = stored.locations
        before = self.beginning
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
        if self.base is not None and self.matched == len(self.base.locations):
            ends = spans(locations, self.base.spans)
        else:
            ends = spans(all_locations)
        shared = None if stored.shared is None else len(before) + stored.shared
        base = self.base
        former = stored.former or (base is not None and base.former)
        outdated = stored.outdated or (base is not None and base.outdated)
        return CachedList(
            tree, head.epoch, head.version, self.chunks, all_locations, tail, ends, shared, former, outdated
        )


class ListCache(Component):
    """The most recently stored lists of each conversation."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.close()
        self._lock = forking.lock()

    def close(self) -> None:
        self._lists = LruCache[tuple[str, str], tuple[CachedList, ...]](CACHED_CONVERSATIONS)
        self._stored = LruCache[str, dict[str, tuple[float, int]]](CACHED_CONVERSATIONS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        for key in self._lists:
            if any(cached.tree in removed for cached in self.lists(*key)):
                self._lists.drop(key)

    def add_stored(self, conversation: str, messages: Iterable[EncodedMessage], now: float) -> None:
        """Note when messages are stored by a node of a run, and the hashes of their bodies."""
        with self._lock:
            known = self._stored.get(conversation) or {}
            known = {**known, **{message.id: (now, hash(message.body)) for message in messages}}
            self._stored.put(conversation, dict(list(known.items())[-STORED_IDS:]))

    def stored_after(self, conversation: str, time: float) -> dict[str, int]:
        """The messages that nodes of runs have stored after a time: the hashes of their bodies, by id.

        Args:
            conversation: The conversation.
            time: The time, in seconds since 1970.
        """
        known = self._stored.get(conversation) or {}
        return {id_: body for id_, (stored, body) in known.items() if stored > time}

    def lists(self, conversation: str, scope: str = "") -> tuple[CachedList, ...]:
        """The most recently stored lists of a tree, the last first."""
        return self._lists.get((conversation, scope)) or ()

    def add_list(self, conversation: str, scope: str, stored: CachedList) -> None:
        """Cache a list, and drop its beginnings and the lists of earlier versions of the tree."""
        version = stored[:3]
        with self._lock:
            others = [
                cached
                for cached in self.lists(conversation, scope)
                # The list does not begin with all messages of the other.
                if cached[:3] == version and stored.locations[: len(cached.locations)] != cached.locations
            ]
            self._lists.put((conversation, scope), (stored, *others[: LISTS_PER_TREE - 1]))


def _common_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The length of the common beginning of two sequences."""
    return sum(takewhile(bool, map(eq, first, second)))
