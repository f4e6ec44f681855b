"""The upkeep of checkpoints and their pending writes.

A list of messages is stored as references to the tree, so a deleted message leaves every list. Other values
are stored as they are: the input of a run, as pairs or as dictionaries, and the keys of a state. In these the
text of a deleted message is replaced by an empty text; encrypted values are left as they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import ormsgpack

from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.langgraph.checkpoints import queries
from langchain_threadmem.langgraph.checkpoints.queries import Address
from langchain_threadmem.langgraph.checkpoints.spans import SpanReader
from langchain_threadmem.langgraph.checkpoints.values import KIND, Span, spans_of_all, unpack
from langchain_threadmem.maintenance.upkeep import RenewedText, RenewedValue, Upkeep
from langchain_threadmem.messages.typed_json import compact
from langchain_threadmem.storage.statements import Conn

LONG = 16
"""The number of characters from which a text is removed wherever it occurs; a shorter text is removed only as
the text of a message, since any other value may equal it.
"""
_TEXTS = ("content", "text", "messages")
"""The keys of the text of a message: in a message, in a part of its content, and in an input."""
_QUOTES = (("node_id", "reason"), ("node_id", "title", "text"))
"""The keys of the states `active_thread` and `suggestion`: their first key, and those that quote messages."""
_OPTIONS = ormsgpack.OPT_NON_STR_KEYS


class _Object:
    """An object that the serializer has stored: a code of its own, and bytes of msgpack."""

    def __init__(self, code: int, data: bytes) -> None:
        self.code, self.data = code, data


def redact(conn: Conn, tree_id: int, texts: Collection[str]) -> None:
    """Remove the texts of deleted messages from the checkpoints of a conversation.

    Args:
        conn: A write transaction that has locked the tree.
        tree_id: The tree of the conversation.
        texts: The texts.
    """
    for number, (kind, data) in queries.blobs(conn, tree_id).items():
        if (new := _redacted(conn, kind, data, texts)) != data:
            queries.patch_blob(conn, tree_id, number, data, new)
    for row in queries.writes_of_tree(conn, tree_id):
        if (new := _redacted(conn, row.kind, bytes(row.data), texts)) != bytes(row.data):
            queries.patch_write(conn, row, new)


def _redacted(conn: Conn, kind: str, data: bytes, texts: Collection[str]) -> bytes:
    """The bytes of a stored value without texts; the same bytes if they cannot be read."""
    if kind == "msgpack":
        return redacted(data, texts)
    if kind != KIND:
        return data
    try:
        # Messages that the tree did not store when the value was written are in the value.
        stored = unpack(data)
        opened = stored if conn.seal is None else stored.with_bodies(conn.seal.open_text)
        new = opened.with_bodies(lambda _, body: _without_in_body(body, texts))
    except (InputError, EncryptionError, ValueError):
        return data  # `verify` reports damaged values.
    if stored.rest is not None and stored.rest[0] == "msgpack":
        new = replace(new, rest=("msgpack", redacted(stored.rest[1], texts)))
    if new == opened:
        return data
    return new.pack(None if conn.seal is None else conn.seal.text)


def _without_in_body(body: str, texts: Collection[str]) -> str:
    value = json.loads(body)
    new = _without(value, texts)
    return body if new == value else compact(new)


def redacted(data: bytes, texts: Collection[str]) -> bytes:
    """The bytes of a value without texts.

    Example:
        >>> value = {"messages": [["user", "My code is 7."]], "seen": "My code is ..."}
        >>> ormsgpack.unpackb(redacted(ormsgpack.packb(value), ["My code is 7."]))
        {'messages': [['user', '']], 'seen': 'My code is ...'}
    """
    try:
        value = ormsgpack.unpackb(data, ext_hook=_Object, option=_OPTIONS)
    except ValueError:
        return data  # `verify` reports damaged values.
    new = _without(value, texts)
    if new == value:
        return data
    return ormsgpack.packb(new, default=lambda found: ormsgpack.Ext(found.code, found.data), option=_OPTIONS)


def _without(value: Any, texts: Collection[str], *, is_text: bool = False) -> Any:
    """A value without texts; the same objects if they contain none."""
    if isinstance(value, str):
        for text in texts:
            if is_text and value == text:
                return ""
            if len(text) >= LONG:
                value = value.replace(text, "")
        return value
    if isinstance(value, dict):
        quoting = next((keys for first, *keys in _QUOTES if value.keys() >= {first, *keys}), ())
        return {
            key: "" if key in quoting else _without(item, texts, is_text=key in _TEXTS)
            for key, item in value.items()
        }
    if isinstance(value, list):
        is_pair = len(value) == 2 and all(isinstance(item, str) for item in value)  # A role and a text.
        return [_without(item, texts, is_text=is_pair and n == 1) for n, item in enumerate(value)]
    if isinstance(value, _Object):
        data = redacted(value.data, texts)
        return value if data == value.data else _Object(value.code, data)
    return value


class _Checkpoints(Upkeep):
    subject, noun = "the checkpoints", "checkpoint"

    def redact(self, conn: Conn, tree: int, texts: Collection[str]) -> None:
        """Remove the texts of deleted messages from the values of checkpoints."""
        redact(conn, tree, texts)

    def delete_before(self, conn: Conn, tree: int, before: float) -> None:
        """Delete the checkpoints before a time, with the values that only they refer to."""
        old = [
            address
            for address in queries.addresses(conn, tree, None)
            if queries.time_of_id(address.id) < before
        ]
        queries.remove(conn, old)
        queries.delete_unused_blobs(conn, tree)

    def subjects(self, conn: Conn, owner: str) -> list[tuple[int, str]]:
        """The conversations with checkpoints."""
        return [
            (tree, f"checkpoints of thread {name!r}") for tree, name in queries.conversations(conn, owner)
        ]

    def problems(self, conn: Conn, tree: int) -> list[str]:
        """The problems of references from checkpoints and pending writes."""
        problems = [f"value {number} is missing" for number in sorted(queries.missing_blobs(conn, tree))]
        values, reader = queries.of_kind(conn, tree, KIND), SpanReader()
        try:
            gaps = reader.gaps(conn, spans_of_all(values))
        except (InputError, PersistenceError):
            spans = set[Span]()
            for data in values:
                try:
                    value_spans = set(unpack(data).spans())
                    reader.ranges(conn, value_spans)
                except (InputError, PersistenceError) as error:
                    problems.append(str(error))
                else:
                    spans |= value_spans
            gaps = reader.gaps(conn, spans)
        return problems + [f"messages between {first} and {last} are missing" for first, last in gaps]

    def unreadable(self, conn: Conn, owner: str, *, remove: bool) -> int:
        """The number of checkpoints of which a value, a pending write or a message is missing or damaged."""
        count = 0
        for tree, _ in queries.conversations(conn, owner):
            lost = _unreadable(conn, tree)
            count += len(lost)
            if remove and lost:
                queries.remove(conn, lost)
                queries.delete_unused_blobs(conn, tree)
        return count

    def renewed(self, kind: str, data: bytes, text: RenewedText, value: RenewedValue) -> bytes | None:
        """A value with lists of messages: the bodies, and the rest as the serializer wrote it."""
        if kind != KIND:
            return None
        try:
            stored = unpack(data)
        except InputError:
            return data  # It is damaged, which `verify` reports.
        new = stored.with_bodies(lambda _, body: text(body))
        if new.rest is not None:
            new = replace(new, rest=value(*new.rest))
        return data if new == stored else new.pack()


def _unreadable(conn: Conn, tree: int) -> list[Address]:
    reader, lost = SpanReader(), list[Address]()
    read = {
        number: _is_readable(conn, reader, kind, data)
        for number, (kind, data) in queries.blobs(conn, tree).items()
    }
    for address in queries.addresses(conn, tree, None):
        row = queries.get(conn, *address)
        if row is None:
            continue
        parts = [(row.kind, row.data), *((one.kind, one.data) for one in queries.writes(conn, address))]
        if not all(read.get(number, False) for number in row.refs if number) or not all(
            _is_readable(conn, reader, *part) for part in parts
        ):
            lost.append(address)
    return lost


def _is_readable(conn: Conn, reader: SpanReader, kind: str, data: bytes) -> bool:
    """Whether bytes of a format can be read by the serializer that has written them.

    Bytes of a format that other serializers define, and encrypted bytes in a memory without a cipher, count
    as readable.
    """
    try:
        if kind == KIND:
            stored = unpack(data)
            if conn.seal is not None:
                stored.with_bodies(conn.seal.open_text)
            is_whole = not reader.gaps(conn, set(stored.spans()))
            return is_whole and (stored.rest is None or _is_readable(conn, reader, *stored.rest))
        format, encrypted, cipher = kind.removeprefix(KIND).partition("+")
        if encrypted and conn.seal is not None:
            data = conn.seal.decrypt(cipher, data)
        elif encrypted:
            return True
        if format == "msgpack":
            ormsgpack.unpackb(data, ext_hook=lambda code, data: None, option=ormsgpack.OPT_NON_STR_KEYS)
        elif format == "json":
            json.loads(data)
    except Exception:  # damaged data and ciphers can raise any error
        return False
    return True


UPKEEP = _Checkpoints()
