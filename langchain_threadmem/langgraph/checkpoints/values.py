"""Channel values with references in place of stored messages.

A checkpoint, a pending write or the input of a graph contains lists of messages, most of which the tree
already stores. A `StoredValue` contains spans of stored messages (two keys each, whatever their length), the
bodies of new messages, and bytes of the saver's serializer for everything else. Only messages of the codec's
classes are taken out of a value, and only from the exact types `list` and `dict`. The value that is read
equals the value that was written. A *scope* names the tree that stores the messages of a channel.

The messages of the conversation are in the channel `messages` of the root namespace, or in the whole state:
LangGraph stores a state that is a list or a plain dictionary in the channel `__root__`, and what a function
with `@entrypoint` saves for its next call in `__previous__`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import MESSAGE_CLASSES, Parsed, StoredMessage, decode_stored, encode
from langchain_threadmem.messages.typed_json import ReadOpaque, WriteOpaque

MESSAGES = "messages"
"""The name of the list of messages: a channel, or a key of a state that is one dictionary."""
START, ROOT, RETURNED, PREVIOUS = "__start__", "__root__", "__end__", "__previous__"
CONVERSATION_CHANNELS = (MESSAGES, ROOT, PREVIOUS)
"""The channels of the root namespace that contain the messages of the conversation; a graph has one."""
KIND = "#"
"""The format name of a `StoredValue`; other values have the name of their serializer's format."""

_CLASSES = frozenset(MESSAGE_CLASSES.values())
to_json = json.JSONEncoder(separators=(",", ":")).encode
"""Writes a value as JSON; `json.dumps` makes such an encoder at each call."""


def scope_of(ns: str, channel: str) -> str:
    """The scope of the tree that stores the messages of a channel; each channel has a different scope.

    Example:
        >>> scope_of("", "messages"), scope_of("child:1", "notes")
        ('', '["child:1","notes"]')
    """
    if not ns and channel in CONVERSATION_CHANNELS:
        return ""
    return to_json([ns, channel])


def scope_within(ns: str, channel: str, key: str | None) -> str:
    """The scope for a list inside a value: of the channel that its key names, else of the value's channel."""
    return scope_of(ns, key if key is not None else ROOT if channel in (START, RETURNED) else channel)


def list_key(channel: str, value: Any) -> str | None:
    """The key of the messages of a channel: `None` if its value is the list.

    Example:
        >>> list_key("__previous__", {"messages": [], "count": 1}), list_key("messages", [])
        ('messages', None)
    """
    return MESSAGES if channel in (ROOT, PREVIOUS) and type(value) is dict else None


def conversation_in(values: Mapping[str, Any]) -> Any:
    """The messages of the conversation among the values of a checkpoint's channels; `None` without them."""
    for channel in CONVERSATION_CHANNELS:
        if channel in values:
            value = values[channel]
            return value if (key := list_key(channel, value)) is None else value.get(key)
    return None


class Span(NamedTuple):
    """The stored messages on the path from one key down to another."""

    first: int
    last: int


class Inline(NamedTuple):
    """A message that the tree does not store; `message` is `None` if the value was read from bytes."""

    id: str | None
    body: str
    message: BaseMessage | None = None


class Serialized(NamedTuple):
    """Consecutive list elements that the serializer stores."""

    number: int


ListPart = Span | Inline | Serialized
ListParts = tuple[ListPart, ...]
BodyCipher = Callable[[str | None, str], str]
"""Encrypts or decrypts a body, given the id of its message."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value whose messages are stored apart from the rest of the value.

    Attributes:
        lists: The lists of messages, by their keys in the value; by `None` if the value is a list.
        is_list: Whether the value is a list.
        rest: Format name and bytes of the rest of the value, as the serializer wrote it.
    """

    lists: Mapping[str | None, ListParts]
    is_list: bool
    rest: tuple[str, bytes] | None = None

    def pack(self, encrypt: BodyCipher | None = None) -> bytes:
        """The bytes to store: a line of JSON, then `rest`.

        Example:
            >>> StoredValue({None: (Span(5, 9), Inline("a1", "{}"))}, True).pack()
            b'[[5,9],["a1","{}"]]'
        """
        encrypted = self if encrypt is None else self.with_bodies(encrypt)
        lists = {key: [_pack_item(item) for item in items] for key, items in encrypted.lists.items()}
        head = to_json(lists[None] if self.is_list else lists).encode()
        return head if self.rest is None else b"\n".join((head, self.rest[0].encode(), self.rest[1]))

    @staticmethod
    def packed_spans(spans: Sequence[tuple[int, int]]) -> bytes:
        """The bytes of a list of stored messages alone, by the first and the last key of its spans.

        Example:
            >>> StoredValue.packed_spans([(5, 9)]) == StoredValue({None: (Span(5, 9),)}, True).pack()
            True
        """
        return to_json(spans).encode()

    def with_list(self, spans: Sequence[tuple[int, int]]) -> StoredValue:
        """The value with spans, by their first and last keys, as its only list."""
        lists = dict.fromkeys(self.lists, tuple(Span(*ends) for ends in spans))
        return StoredValue(lists, self.is_list, self.rest)

    def spans(self) -> Iterator[Span]:
        return (item for items in self.lists.values() for item in items if isinstance(item, Span))

    def inline(self) -> list[Inline]:
        """The messages that the tree does not store."""
        return [item for items in self.lists.values() for item in items if isinstance(item, Inline)]

    def with_bodies(self, change: BodyCipher) -> StoredValue:
        """The value with its bodies encrypted or decrypted."""

        def changed(item: ListPart) -> ListPart:
            return item._replace(body=change(item.id, item.body)) if isinstance(item, Inline) else item

        return self.mapped(changed)

    def mapped(self, change: Callable[[ListPart], ListPart]) -> StoredValue:
        """The value with `change` applied to each item."""
        lists = {key: tuple(map(change, items)) for key, items in self.lists.items()}
        return StoredValue(lists, self.is_list, self.rest)


def take_apart(
    value: Any, dumps: Callable[[Any], tuple[str, bytes]], other: WriteOpaque | None = None
) -> StoredValue | None:
    """Take the messages out of a value; `None` if it contains no message of the codec.

    Args:
        value: Any value; messages are taken out of a list, or of the lists in a dictionary.
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
    lists: dict[str | None, ListParts] = {}
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
    """Read the bytes that `StoredValue.pack` wrote.

    Raises:
        InputError: The bytes cannot be read.
    """
    head, _, rest = data.partition(b"\n")
    kind, separator, payload = rest.partition(b"\n")
    try:
        lists = json.loads(head)
        is_list = type(lists) is list
        read = {None: lists} if is_list else lists
        return StoredValue(
            {key: tuple(_unpack_item(item) for item in items) for key, items in read.items()},
            is_list,
            (kind.decode(), payload) if separator else None,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"a stored list of messages cannot be read: {error}") from error


def spans_of_all(values: Collection[bytes]) -> set[Span]:
    """The spans of many values that `StoredValue.pack` wrote, parsed together.

    Raises:
        InputError: The bytes of a value cannot be read.

    Example:
        >>> spans_of_all([b"[[5,9]]", b'{"messages":[[5,9],["a1","{}"],0]}'])
        {Span(first=5, last=9)}
    """
    try:
        parsed = json.loads(b"[%b]" % b",".join(data.partition(b"\n")[0] for data in values))
        lists = [items for one in parsed for items in ([one] if type(one) is list else one.values())]
        spans = {
            Span(*item) for items in lists for item in items if type(item) is not int and type(item[0]) is int
        }
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise InputError(f"a stored list of messages cannot be read: {error}") from error
    if len(parsed) != len(values):
        raise InputError("a stored list of messages cannot be read")
    return spans


def spans_of(kind: str, data: bytes) -> Iterator[Span]:
    """The spans of a stored value; no span if the serializer wrote it.

    Raises:
        InputError: The bytes cannot be read.
    """
    return unpack(data).spans() if kind == KIND else iter(())


def put_together(
    stored_value: StoredValue,
    rows: Callable[[Span], Sequence[StoredMessage]],
    loads: Callable[[str, bytes], Any],
    parsed: Parsed | None = None,
    other: ReadOpaque | None = None,
) -> Any:
    """Restore a value, with new message objects.

    Args:
        stored_value: The stored value.
        rows: Reads message ids and bodies of a span.
        loads: The serializer.
        parsed: As for `messages.codec.decode`.
        other: As for `messages.codec.decode`.
    """
    rest, others = loads(*stored_value.rest) if stored_value.rest else ({}, [])
    following = iter(others)
    lists = {key: _list(items, rows, following, parsed, other) for key, items in stored_value.lists.items()}
    return lists[None] if stored_value.is_list else {**rest, **lists}


def _items(value: list[Any], other: WriteOpaque | None) -> tuple[ListParts | None, list[Any]]:
    """The items of a list and its elements for the serializer; `None` if no message can be taken out."""
    if _CLASSES.isdisjoint(map(type, value)):
        return None, []
    items: list[ListPart] = []
    others: list[Any] = []
    for element in value:
        body = _body(element, other) if type(element) in _CLASSES else None
        if body is not None:
            items.append(Inline(element.id, body, element))
            continue
        others.append(element)
        if items and isinstance(last := items[-1], Serialized):
            items[-1] = Serialized(last.number + 1)
        else:
            items.append(Serialized(1))
    return (tuple(items) if len(others) < len(value) else None), others


def _body(message: BaseMessage, other: WriteOpaque | None) -> str | None:
    try:
        return encode(message, other)
    except InputError:
        return None


def _list(
    items: ListParts,
    rows: Callable[[Span], Sequence[StoredMessage]],
    others: Iterator[Any],
    parsed: Parsed | None,
    other: ReadOpaque | None,
) -> list[Any]:
    pairs: list[StoredMessage] = []
    inserted: list[tuple[int, Any]] = []
    for item in items:
        if isinstance(item, Span):
            pairs += rows(item)
        elif isinstance(item, Inline):
            pairs.append((item.id, item.body))
        else:
            inserted += [(len(pairs) + len(inserted) + n, next(others)) for n in range(item.number)]
    value: list[Any] = decode_stored(pairs, parsed, other)
    for position, element in inserted:
        value.insert(position, element)
    return value


def _pack_item(item: ListPart) -> list[Any] | int:
    if isinstance(item, Serialized):
        return item.number
    return list(item[:2])


def _unpack_item(item: Any) -> ListPart:
    if type(item) is int:
        return Serialized(item)
    first, second = item
    return Span(first, second) if type(first) is int else Inline(first, second)
