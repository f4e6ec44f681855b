"""Values of channels as references to stored messages and a rest.

A checkpoint, a pending write or a graph's input holds lists of messages, most of which the tree has already.
Such a value becomes a *mixture*: its lists as runs of stored messages (two keys each, however long), messages
that are not stored yet as bodies, and everything else through the saver's serializer. Only messages of the
codec's own classes are taken out of a value, only lists and dictionaries of exactly those types are looked
into, and what comes back is equal to what went in.

A list is found again by its full contents, since messages are mutable and the identity of an object says
nothing: in chunks of 32, each a digest of what the messages hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages import typed_json
from langchain_threadmem.messages.codec import MESSAGE_CLASSES, Parsed, Stored, decode_stored, encode
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.messages.typed_json import Reader, Writer

CHUNK = 32
KIND = "#"
"""How a mixture is marked, where other values carry the name of their serializer's format."""

_CLASSES = frozenset(MESSAGE_CLASSES.values())
# What msgpack would write like something else is refused instead: a list with such a value gets no digest.
_EXACTLY = (
    ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class Said(NamedTuple):
    """A message ready to be looked up or stored: its id, its body, and who says it."""

    id: str
    body: str
    role: str


class Run(NamedTuple):
    """Stored messages from one key down the tree to another."""

    first: int
    last: int


class Inline(NamedTuple):
    """A message that was not stored yet; `message` is the object itself, if it is at hand."""

    id: str | None
    body: str
    message: BaseMessage | None = None


class Other(NamedTuple):
    """Values that are no messages of the codec; the serializer keeps them."""

    number: int


Item = Run | Inline | Other
Items = tuple[Item, ...]
Closing = Callable[[str | None, str], str]
"""From a message's id and body to the body encrypted, or back."""


def is_message_list(value: Any) -> bool:
    """Whether a value is a list that can be stored as messages alone: not empty, each with an id of its own.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> is_message_list([HumanMessage("Hello", id="h1")]), is_message_list([]), is_message_list([1])
        (True, False, False)
    """
    if type(value) is not list or not value or not _CLASSES.issuperset(map(type, value)):
        return False
    ids = {message.id for message in value}
    return len(ids) == len(value) and not (None in ids or "" in ids)


def digests(messages: Sequence[BaseMessage], other: Writer | None = None) -> list[bytes]:
    """Digests of a list's whole chunks, over all that the messages hold; shorter where one cannot be taken.

    Costs about 0.3 µs a message.

    Args:
        messages: The list.
        other: Writes the parts that msgpack does not know; without it their chunk has no digest.
    """

    def written(value: Any) -> ormsgpack.Ext:
        return ormsgpack.Ext(0, typed_json.dumps(value, other=other).encode())

    found = []
    for start in range(0, len(messages) - CHUNK + 1, CHUNK):
        chunk = messages[start : start + CHUNK]
        try:
            packed = ormsgpack.packb(
                [[message.__dict__, message.__pydantic_extra__ or 0] for message in chunk],
                default=other and written,
                option=_EXACTLY,
            )
        except (TypeError, ValueError):  # such as an object: encoded and compared one by one instead
            break
        found.append(hashlib.blake2b(packed, digest_size=16).digest())
    return found


def said(messages: Iterable[BaseMessage], other: Writer | None = None) -> list[Said] | None:
    """Messages as they are stored; `None` if one of them cannot be stored exactly."""
    try:
        found = [Said(message.id or "", encode(message, other), message.type) for message in messages]
        for message in found:
            check_name("a message id", message.id)
    except InputError:
        return None
    return found


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value taken apart.

    Attributes:
        lists: Its lists of messages: by key, or under `None` if the value is a list itself.
        whole: Whether the value is a list.
        rest: What the serializer made of everything else: the name of its format, and bytes.
    """

    lists: Mapping[str | None, Items]
    whole: bool
    rest: tuple[str, bytes] | None = None

    def pack(self, close: Closing | None = None) -> bytes:
        """The value as it is stored: a line of JSON, then the rest as the serializer wrote it.

        Args:
            close: Encrypts the bodies in it, given the ids of their messages.

        Example:
            >>> StoredValue({None: (Run(5, 9), Inline("a1", "{}"))}, True).pack()
            b'[[5,9],["a1","{}"]]'
        """
        sealed = self if close is None else self._with_bodies(close)
        lists = {key: [_written(item) for item in items] for key, items in sealed.lists.items()}
        head = json.dumps(lists[None] if self.whole else lists, separators=(",", ":")).encode()
        return head if self.rest is None else b"\n".join((head, self.rest[0].encode(), self.rest[1]))

    def runs(self) -> Iterator[Run]:
        """Every run in it."""
        return (item for items in self.lists.values() for item in items if isinstance(item, Run))

    def inline(self) -> bool:
        """Whether it holds messages that were not stored yet."""
        return any(isinstance(item, Inline) for items in self.lists.values() for item in items)

    def opened(self, open_: Closing) -> StoredValue:
        """The mixture that `pack` was given, once it is unpacked: its bodies decrypted."""
        return self._with_bodies(open_)

    def _with_bodies(self, change: Closing) -> StoredValue:
        def changed(_: str | None, item: Item) -> Item:
            return item._replace(body=change(item.id, item.body)) if isinstance(item, Inline) else item

        return self.mapped(changed)

    def mapped(self, change: Callable[[str | None, Item], Item]) -> StoredValue:
        """The same mixture with items changed, given the key of their list."""
        return replace(
            self,
            lists={key: tuple(change(key, item) for item in items) for key, items in self.lists.items()},
        )


def take_apart(
    value: Any, dumps: Callable[[Any], tuple[str, bytes]], other: Writer | None = None
) -> StoredValue | None:
    """Take the messages out of a value; `None` if it holds none that could be stored.

    Args:
        value: Anything; a list, or a dictionary with lists under some keys, may hold messages.
        dumps: The serializer.
        other: As for `messages.codec.encode`.
    """
    if type(value) is list:
        items, others = _items(value, other)
        if items is None:
            return None
        return StoredValue({None: items}, True, dumps([None, others]) if others else None)
    if type(value) is not dict:
        return None
    lists: dict[str | None, Items] = {}
    rest, all_others = dict(value), []
    for key, inner in value.items():
        if type(key) is str and type(inner) is list:
            items, others = _items(inner, other)
            if items is not None:
                lists[key], rest[key] = items, None
                all_others += others
    if not lists:
        return None
    plain = len(lists) == len(value) and not all_others
    return StoredValue(lists, False, None if plain else dumps([rest, all_others]))


def unpack(data: bytes) -> StoredValue:
    """Read a mixture as `Mixture.pack` wrote it.

    Raises:
        InputError: It is none.
    """
    head, _, rest = data.partition(b"\n")
    kind, mark, payload = rest.partition(b"\n")
    try:
        lists = json.loads(head)
        whole = type(lists) is list
        read = {None: lists} if whole else lists
        return StoredValue(
            {key: tuple(_read(item) for item in items) for key, items in read.items()},
            whole,
            (kind.decode(), payload) if mark else None,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"a stored list of messages cannot be read: {error}") from error


def put_together(
    mixture: StoredValue,
    rows: Callable[[Run], Sequence[Stored]],
    loads: Callable[[str, bytes], Any],
    parsed: Parsed | None = None,
    other: Reader | None = None,
) -> Any:
    """Make the value again.

    Args:
        mixture: The value taken apart.
        rows: Message ids and bodies of a run.
        loads: The serializer.
        parsed: As for `messages.codec.decode`.
        other: As for `messages.codec.decode`.

    Returns:
        A new value, with messages that nothing else holds.
    """
    rest, others = loads(*mixture.rest) if mixture.rest else ({}, [])
    following = iter(others)
    lists = {key: _list(items, rows, following, parsed, other) for key, items in mixture.lists.items()}
    return lists[None] if mixture.whole else {**rest, **lists}


def _items(value: list[Any], other: Writer | None) -> tuple[Items | None, list[Any]]:
    """A list's messages and others in their order; `None` if there is no message to be taken out."""
    if _CLASSES.isdisjoint(map(type, value)):
        return None, []
    items: list[Item] = []
    others: list[Any] = []
    for element in value:
        body = _body(element, other) if type(element) in _CLASSES else None
        if body is not None:
            items.append(Inline(element.id, body, element))
            continue
        others.append(element)
        if items and isinstance(last := items[-1], Other):
            items[-1] = Other(last.number + 1)
        else:
            items.append(Other(1))
    return (tuple(items) if len(others) < len(value) else None), others


def _body(message: BaseMessage, other: Writer | None) -> str | None:
    try:
        return encode(message, other)
    except InputError:
        return None


def _list(
    items: Items,
    rows: Callable[[Run], Sequence[Stored]],
    others: Iterator[Any],
    parsed: Parsed | None,
    other: Reader | None,
) -> list[Any]:
    pairs: list[Stored] = []
    made: list[tuple[int, Any]] = []
    for item in items:
        if isinstance(item, Run):
            pairs += rows(item)
        elif isinstance(item, Inline):
            pairs.append((item.id, item.body))
        else:
            made += [(len(pairs) + len(made) + n, next(others)) for n in range(item.number)]
    value: list[Any] = decode_stored(pairs, parsed, other)
    for position, element in made:
        value.insert(position, element)
    return value


def _written(item: Item) -> list[Any] | int:
    if isinstance(item, Other):
        return item.number
    return list(item[:2])


def _read(item: Any) -> Item:
    if type(item) is int:
        return Other(item)
    first, second = item
    return Run(first, second) if type(first) is int else Inline(first, second)
