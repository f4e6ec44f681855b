"""Lists that were stored before, and messages whose ids come late.

A list that grew by two messages is not encoded again: its whole chunks are recognised by digests of their
full contents, and only what follows is looked at. What is remembered of a list holds for one version of its
tree, and is learnt after a commit only.

A message may be given its id by a reducer, after the write that carries it was stored. Such a write is a
*latecomer*: it is written again once the id is known, now by reference to the message in the tree, so that a
replay adds no second copy.
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
from langchain_threadmem.checkpoints.placing import runs
from langchain_threadmem.checkpoints.queries import WriteRow
from langchain_threadmem.checkpoints.values import (
    CHUNK,
    Inline,
    Item,
    Items,
    Run,
    Said,
    StoredValue,
    digests,
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
"""The channel of the root namespace that is the conversation itself."""
START, ROOT = "__start__", "__root__"
REMEMBERED_THREADS = 256
LISTS_PER_TREE = 6
LATECOMERS = 256
MOST_SCOPES = 64
PLACED = 256
"""Of so many messages of a thread that were placed last the ids are remembered."""

Find = Callable[[str, Sequence[Said]], Sequence[Located | None]]
"""Where messages live in the tree of a scope."""


def scope_of(ns: str, channel: str) -> str:
    """The scope of the tree that a channel's messages live in; reversible, so no two channels share one.

    Example:
        >>> scope_of("", "messages"), scope_of("child:1", "notes")
        ('', '["child:1","notes"]')
    """
    if not ns and channel == CONVERSATION:
        return ""
    return json.dumps([ns, channel], separators=(",", ":"))


def scope_within(ns: str, channel: str, key: str | None) -> str:
    """The scope for a list inside a value: the channel named by its key, else the one that is written to."""
    return scope_of(ns, key if key is not None else ROOT if channel == START else channel)


class Remembered(NamedTuple):
    """A list as it was stored, at one version of its tree.

    Attributes:
        tree: The tree.
        epoch: How often it had been emptied.
        version: How often its nodes had changed their state.
        chunks: Digests of the list's whole chunks.
        located: Where each message lives.
        tail: The messages after the last whole chunk.
        runs: The runs that it is.
        shared: Index of the first of the messages at its end that it, a former version, shares with the
            present one; such a list is looked at as a whole when it is continued. `None` for any other.
        former: Whether a message of it was superseded; of such a list no end is shared with another.
    """

    tree: int
    epoch: int
    version: int
    chunks: Sequence[bytes]
    located: Sequence[Located]
    tail: Sequence[Said]
    runs: Sequence[tuple[int, int]]
    shared: int | None = None
    former: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A list on its way into the tree.

    Attributes:
        messages: The list.
        chunks: Digests of its whole chunks.
        known: A remembered list that begins like it, if there is one.
        matched: How many messages they share.
        rest: The messages after those; if they end alike too, up to the first message of that end.
        ending: Where the messages of that end live, if they do.
    """

    messages: Sequence[BaseMessage]
    chunks: Sequence[bytes]
    known: Remembered | None
    matched: int
    rest: Sequence[Said]
    ending: Sequence[Located] = ()

    @classmethod
    def of(
        cls, value: Any, remembered: Sequence[Remembered] = (), other: Writer | None = None
    ) -> Listed | None:
        """Make a channel's value ready; `None` if it cannot be stored as messages alone.

        Args:
            value: The value.
            remembered: Lists that were stored before.
            other: Writes parts that JSON does not know.
        """
        if not is_message_list(value):
            return None
        messages, chunks = list(value), digests(value, other)
        if (replaced := cls._replaced(messages, chunks, remembered, other)) is not None:
            return replaced
        counts = [(_shared(one.chunks, chunks), one) for one in remembered]
        whole = max((count for count, _ in counts), default=0)
        rest = said(messages[whole * CHUNK :], other)
        if rest is None:
            return None
        ends = [
            (whole * CHUNK + (_shared(one.tail, rest) if len(one.chunks) == whole else 0), one)
            for count, one in counts
            if count == whole
        ]
        matched, known = max(ends, key=lambda end: end[0], default=(0, None))
        if known is not None and known.shared is not None and matched > known.shared:
            return cls.of(messages, other=other)
        return cls(messages, chunks, known if matched else None, matched, rest[matched - whole * CHUNK :])

    @classmethod
    def _replaced(
        cls,
        messages: Sequence[BaseMessage],
        chunks: Sequence[bytes],
        remembered: Sequence[Remembered],
        other: Writer | None,
    ) -> Listed | None:
        """A list in which something was replaced far from its end; `None` for any other."""
        for one in remembered:
            front = _shared(one.chunks, chunks)
            back = _shared(one.chunks[::-1], chunks[::-1])
            if not front < len(chunks) or not back or one.shared is not None or one.former:
                continue
            if len(one.chunks) != len(chunks) or one.tail != said(messages[len(chunks) * CHUNK :], other):
                continue
            end = (len(chunks) - back) * CHUNK
            end = next((n for n in range(end, len(messages)) if not one.located[n].aside), len(messages))
            if end < len(messages) and (rest := said(messages[front * CHUNK : end + 1], other)) is not None:
                return cls(messages, chunks, one, front * CHUNK, rest, one.located[end:])
        return None

    def anew(self, other: Writer | None = None) -> Listed:
        """The same list with nothing known of it."""
        made = Listed.of(self.messages, other=other)
        assert made is not None
        return made

    @property
    def after(self) -> int | None:
        """Key of the last known message that is part of the conversation."""
        known = self.known.located[: self.matched] if self.known else ()
        return next((where.key for where in reversed(known) if not where.aside), None)

    def is_current(self, tree: int, head: Head) -> bool:
        """Whether what is known of it still holds."""
        known = self.known
        return known is None or (known.tree, known.epoch, known.version) == (tree, head.epoch, head.version)

    def learnt(self, tree: int, head: Head, stored: Stored) -> Remembered:
        """What to remember once the rest of it is stored."""
        located = stored.located
        before = list(self.known.located[: self.matched]) if self.known else []
        start = len(self.chunks) * CHUNK
        tail: Sequence[Said]
        if self.ending and self.known is not None:
            tail = self.known.tail
        elif start >= self.matched:
            tail = self.rest[start - self.matched :]
        else:
            assert self.known is not None
            kept = start - len(self.known.chunks) * CHUNK
            tail = [*self.known.tail[kept : self.matched - len(self.known.chunks) * CHUNK], *self.rest]
        places = [*before, *located]
        if self.known is not None and len(before) == len(self.known.located):
            found = runs(((where.key, where.follows) for where in located), self.known.runs)
        else:
            found = runs((where.key, where.follows) for where in places)
        shared = None if stored.shared is None else len(before) + stored.shared
        former = stored.former or (self.known is not None and self.known.former)
        return Remembered(tree, head.epoch, head.version, self.chunks, places, tail, found, shared, former)


class Latecomer(NamedTuple):
    """A stored value with messages that were not in the tree when it was written.

    Attributes:
        ns: Its namespace.
        channel: Its channel.
        mixture: The value; its inline messages are at hand.
        row: Where it is stored: a pending write, or tree and number of a blob.
        data: As it is stored.
        inline: The messages of it that were not in the tree.
        patience: How many more checkpoints it waits for.
    """

    ns: str
    channel: str
    mixture: StoredValue
    row: WriteRow | tuple[int, int]
    data: bytes
    inline: Sequence[Inline]
    patience: int = 4

    @classmethod
    def of(
        cls, ns: str, channel: str, mixture: StoredValue, row: WriteRow | tuple[int, int], data: bytes
    ) -> Latecomer:
        """A value that was stored."""
        return cls(ns, channel, mixture, row, data, _inline(mixture))

    def meet(self, conn: Conn, find: Find) -> Latecomer | None:
        """Write it again, if its messages have ids or places by now; `None` if there is nothing left to wait
        for.
        """
        mixture, data = bound(self._named(), self.ns, self.channel, find), self.data
        if mixture != self.mixture:
            data = packed(conn, mixture)
            if isinstance(self.row, WriteRow):
                checkpoint_queries.patch_write(conn, self.row._replace(data=self.data), data)
            else:
                checkpoint_queries.patch_blob(conn, *self.row, self.data, data)
        if self.patience == 0 or not mixture.inline():
            return None
        return self._replace(mixture=mixture, data=data, inline=_inline(mixture), patience=self.patience - 1)

    def _named(self) -> StoredValue:
        def name(key: str | None, item: Item) -> Item:
            if isinstance(item, Inline) and item.id is None and item.message is not None:
                return item._replace(id=item.message.id)
            return item

        return self.mixture.mapped(name)


def _inline(mixture: StoredValue) -> list[Inline]:
    return [item for items in mixture.lists.values() for item in items if isinstance(item, Inline)]


def awaiting(latecomers: Sequence[Latecomer], ids: AbstractSet[str]) -> list[Latecomer]:
    """Those that wait for one of some messages, by the ids that their own have by now."""
    found = []
    for one in latecomers:
        for message, _, at_hand in one.inline:
            if (at_hand.id if message is None and at_hand is not None else message) in ids:
                found.append(one)
                break
    return found


def bound(mixture: StoredValue, ns: str, channel: str, find: Find) -> StoredValue:
    """A mixture whose messages refer to stored ones, where there are such."""
    found: dict[str | None, list[Located | None]] = {
        key: [None] * len(items) for key, items in mixture.lists.items()
    }
    for key, scope, asked in sought(mixture, ns, channel):
        for n, where in zip(asked, find(scope, list(asked.values())), strict=True):
            found[key][n] = where
    return with_places(mixture, found)


def sought(mixture: StoredValue, ns: str, channel: str) -> Iterator[tuple[str | None, str, dict[int, Said]]]:
    """The messages of a mixture that may be stored: the key of their list, their scope, and each by its
    position.
    """
    for key, items in mixture.lists.items():
        asked = {
            n: Said(item.id, item.body, "")
            for n, item in enumerate(items)
            if isinstance(item, Inline) and item.id
        }
        if asked:
            yield key, scope_within(ns, channel, key), asked


def packed(conn: Conn, mixture: StoredValue) -> bytes:
    """A mixture as it is stored here: what is said in it encrypted, if all is."""
    return mixture.pack(None if conn.seal is None else conn.seal.text)


def with_places(mixture: StoredValue, found: Mapping[str | None, Sequence[Located | None]]) -> StoredValue:
    """A mixture with messages replaced by where they live; those that follow each other become one run."""
    lists_: dict[str | None, Items] = {}
    for key, items in mixture.lists.items():
        joined: list[Item] = []
        for item, where in zip(items, found[key], strict=True):
            if where is None:
                joined.append(item)
            elif joined and isinstance(last := joined[-1], Run) and last.last == where.follows:
                joined[-1] = Run(last.first, where.key)
            else:
                joined.append(Run(where.key, where.key))
        lists_[key] = tuple(joined)
    return StoredValue(lists_, mixture.whole, mixture.rest)


class ListMemory(Component):
    """Lists that were stored last and values that wait for their messages, by conversation."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.close()
        self._lock = forking.lock()

    def close(self) -> None:
        self._lists = LruCache[tuple[str, str], tuple[Remembered, ...]](REMEMBERED_THREADS)
        self._late = LruCache[str, tuple[Latecomer, ...]](REMEMBERED_THREADS)
        self._placed = LruCache[str, tuple[str, ...]](REMEMBERED_THREADS)
        self._trees = LruCache[str, dict[str, int]](REMEMBERED_THREADS)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        gone = {
            thread for thread in self._trees if not removed.keys().isdisjoint(self.trees(thread).values())
        }
        gone |= {key[0] for key in self._lists if any(one.tree in removed for one in self.lists(*key))}
        for thread in gone:
            self._late.drop(thread)
            self._placed.drop(thread)
            self._trees.drop(thread)
        for key in self._lists:
            if key[0] in gone:
                self._lists.drop(key)

    def lists(self, thread: str, scope: str) -> tuple[Remembered, ...]:
        """The lists of a tree that were stored last."""
        return self._lists.get((thread, scope)) or ()

    def learn(self, thread: str, scope: str, listed: Remembered) -> None:
        """Remember a list; what an earlier version of the tree had is forgotten."""
        version = listed[:3]
        with self._lock:
            others = [
                one for one in self.lists(thread, scope) if one[:3] == version and not _extends(listed, one)
            ]
            self._lists.put((thread, scope), (listed, *others[: LISTS_PER_TREE - 1]))

    def trees(self, thread: str) -> Mapping[str, int]:
        """The trees of a conversation by their scopes, as they were found last: to be compared."""
        return self._trees.get(thread) or {}

    def know_trees(self, thread: str, found: Mapping[str, int]) -> None:
        """Remember the trees of a conversation."""
        known = self.trees(thread)
        if not known.items() >= found.items():
            self._trees.put(thread, {**known, **found} if len(known) < MOST_SCOPES else dict(found))

    def placed(self, thread: str) -> set[str]:
        """Ids of messages that were placed last."""
        return set(self._placed.get(thread) or ())

    def place(self, thread: str, ids: Iterable[str]) -> None:
        """Remember that messages have places now."""
        with self._lock:
            self._placed.put(thread, (*(self._placed.get(thread) or ()), *ids)[-PLACED:])

    def latecomers(self, thread: str) -> tuple[Latecomer, ...]:
        """Values of a conversation that wait for their messages."""
        return self._late.get(thread) or ()

    def replace(self, thread: str, old: Sequence[Latecomer], new: Sequence[Latecomer | None]) -> None:
        """Put what became of latecomers in their place; those in `new` that are `None` wait no more."""
        if not old and not new:
            return
        gone = set(map(id, old))
        with self._lock:
            others = [one for one in self.latecomers(thread) if id(one) not in gone]
            waiting = [*others, *(one for one in new if one is not None)]
            self._late.put(thread, tuple(waiting[-LATECOMERS:]))


def _extends(listed: Remembered, other: Remembered) -> bool:
    """Whether a list is another one with messages added at its end."""
    return listed.located[: len(other.located)] == other.located


def _shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many elements two sequences begin with in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
