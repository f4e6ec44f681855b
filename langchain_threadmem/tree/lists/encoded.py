"""Lists of messages as values: encoded messages, and fingerprints that identify a known part of a list.

Messages are mutable, so the identity of a list does not prove its contents. Fingerprints do: each is a hash
of the full contents of a chunk of 32 messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage

from langchain_threadmem.common.cache import cache_of_texts
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages import typed_json
from langchain_threadmem.messages.codec import MESSAGE_CLASSES, encode_each
from langchain_threadmem.messages.ids import LONGEST_ID, name_of
from langchain_threadmem.messages.typed_json import WriteOpaque

CHUNK = 32

_CLASSES = frozenset(MESSAGE_CLASSES.values())
# Without these options msgpack writes values of different types alike; with them it refuses such values.
_STRICT = (
    ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

_FIELDS, _EXTRA = attrgetter("__dict__"), attrgetter("__pydantic_extra__")


class EncodedMessage(NamedTuple):
    """A message encoded for storage.

    Attributes:
        id: Id of the message.
        body: The message as JSON text, see `messages.codec`.
        role: LangChain's message type.
    """

    id: str
    body: str
    role: str


def is_message_list(value: Any) -> bool:
    """Whether a value is a non-empty list of messages of the codec's classes, each with a different id.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> is_message_list([HumanMessage("Hello", id="h1")]), is_message_list([]), is_message_list([1])
        (True, False, False)
    """
    if type(value) is not list or not value or not _CLASSES.issuperset(map(type, value)):
        return False
    ids = {message.id for message in value}
    return len(ids) == len(value) and not (None in ids or "" in ids)


def fingerprints(
    messages: Sequence[BaseMessage], other: WriteOpaque | None = None, known: Sequence[bytes] = ()
) -> list[bytes]:
    """Fingerprints of the full chunks of a list, up to the first chunk without a fingerprint.

    The cost is about 0.3 µs per message.

    Args:
        messages: The list.
        other: Writes parts of types that msgpack does not support; without it, a chunk with such a part has
            no fingerprint.
        known: The fingerprints of the first chunks, if they are known.
    """

    def as_extension(value: Any) -> ormsgpack.Ext:
        return ormsgpack.Ext(0, typed_json.dumps(value, other=other).encode())

    hashes = [*known]
    for start in range(len(known) * CHUNK, len(messages) - CHUNK + 1, CHUNK):
        chunk = messages[start : start + CHUNK]
        try:
            packed = ormsgpack.packb(
                [*map(_FIELDS, chunk), *map(_EXTRA, chunk)], default=other and as_extension, option=_STRICT
            )
        except (TypeError, ValueError):  # the messages from here on are encoded and compared one by one
            break
        hashes.append(hashlib.blake2b(packed, digest_size=16).digest())
    return hashes


@cache_of_texts(8192)
def _id(message_id: str) -> str:
    return name_of("a message id", message_id, most=LONGEST_ID)


def encode_messages(
    messages: Sequence[BaseMessage], other: WriteOpaque | None = None
) -> list[EncodedMessage] | None:
    """Encode messages; `None` if the codec cannot store one of them exactly."""
    try:
        return [
            EncodedMessage(
                _id(message.id)
                if type(message.id) is str
                else name_of("a message id", message.id, most=LONGEST_ID),
                body,
                message.type,
            )
            for message, body in zip(messages, encode_each(messages, other), strict=True)
        ]
    except InputError:
        return None
