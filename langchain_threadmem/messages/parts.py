"""Message parts that JSON cannot represent, stored as opaque data by a LangGraph serializer.

A tool's artifact may be a `Document`, a NumPy array or an object of a caller's class. Only this part is
written by the serializer of the saver, or by LangGraph's default serializer without a saver; the other parts
of the message are JSON. The serializer's rules apply at reading: a part whose class is not in the allow-list
or cannot be imported, or whose format the serializer never writes (such as pickle), becomes an `Opaque`,
which is written again unchanged. From imported files only LangGraph's safe types are read.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_threadmem.messages.codec import MESSAGE_CLASSES
from langchain_threadmem.messages.typed_json import UNTRUSTED, Opaque

log = logging.getLogger(__package__)
PLAIN = frozenset({"null", "bytes", "bytearray", "msgpack"})
"""The formats that LangGraph's serializer writes; it also reads formats that build objects by name."""
_CLASSES = frozenset({*MESSAGE_CLASSES.values(), RemoveMessage})
REPR = "repr"
"""The format of a value that no serializer can write: its `repr`, for people."""

TypedBytes = tuple[str, bytes]
"""A stored value: the name of its format, and its bytes."""


class Serializer(Protocol):
    """A LangGraph serializer."""

    def dumps_typed(self, obj: Any) -> TypedBytes: ...
    def loads_typed(self, data: TypedBytes) -> Any: ...


def is_written_by(serde: Serializer, kind: str) -> bool:
    """Whether a serializer writes a format; for other than LangGraph's serializer always true."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    if not isinstance(serde, JsonPlusSerializer):
        return True
    return kind in PLAIN or (kind == "pickle" and serde.pickle_fallback)


class Parts:
    """Writes and reads parts of messages.

    Args:
        serde: The serializer; `None` for LangGraph's default, which obeys `LANGGRAPH_STRICT_MSGPACK`. The
            cipher of an encrypting serializer is not used, since message bodies are encrypted as a whole.

    Example:
        >>> from langchain_core.documents import Document
        >>> parts = Parts()
        >>> parts.read(parts.write(Document("text")))
        Document(metadata={}, page_content='text')
    """

    def __init__(self, serde: Serializer | None = None) -> None:
        self._given = serde

    @cached_property
    def serde(self) -> Serializer:
        """The serializer, without its cipher; imported at the first part that needs it."""
        from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        if self._given is None:
            return JsonPlusSerializer()
        return self._given.serde if isinstance(self._given, EncryptedSerializer) else self._given

    @cached_property
    def _strict(self) -> Serializer:
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        return JsonPlusSerializer(allowed_msgpack_modules=None)

    def write(self, value: Any) -> Opaque | None:
        """The opaque form of a value; `None` if the serializer cannot write the value."""
        name = _name(value)
        try:
            kind, data = self.serde.dumps_typed(value)
        except Exception:  # Classes raise errors of any type; the caller reports that the value is refused.
            return None
        _warn_once(
            "a message contains a %s, which JSON cannot represent; LangGraph's serializer writes this part, "
            "which is read only where the class may be imported",
            name,
        )
        return Opaque(name, kind, base64.b64encode(data).decode())

    def keep(self, value: Any) -> Opaque:
        """`write` for callers that must not fail: a value that cannot be written is stored as its `repr`."""
        opaque = self.write(value)
        if opaque is not None:
            return opaque
        name = _name(value)
        _warn_once(
            "a message contains a %s, which no serializer can write; only its repr() is stored. Use text, "
            "numbers, lists, dictionaries or a dataclass instead",
            name,
        )
        return Opaque(name, REPR, base64.b64encode(repr(value).encode("utf-8", "replace")).decode())

    def read(self, opaque: Opaque) -> Any:
        """The value of a part, or the part itself if the serializer does not read the value."""
        kind = opaque.format.removeprefix(UNTRUSTED)
        serde = self.serde if kind == opaque.format else self._strict
        if kind == REPR or not is_written_by(serde, kind):
            return opaque
        try:
            value = serde.loads_typed((kind, base64.b64decode(opaque.data)))
        except Exception as error:  # Serializers raise errors of any type.
            value = error
        if _name(value) == opaque.name:
            return value
        _warn_once(
            "a stored part of a message, a %s, is shown as opaque data: the serializer does not allow its "
            "class, or the class does not exist; allow it with saver.with_allowlist([(module, class)])",
            opaque.name,
        )
        return opaque


def warn_of_foreign_messages(values: Sequence[Any]) -> None:
    """Warn once for each class of messages that LangChain does not have: their lists are not in the tree."""
    for value in values:
        if isinstance(value, BaseMessage) and type(value) not in _CLASSES:
            _warn_once(
                "a list of messages contains a %s, which is not a class of LangChain: the serializer stores "
                "the whole list outside of the conversation's tree",
                _name(value),
            )


def warn_of_missing_ids(values: Sequence[Any]) -> None:
    """Warn once that a list of messages has a message without an id, and is not in the tree."""
    first = next((value for value in values if isinstance(value, BaseMessage) and not value.id), None)
    if first is not None:
        _warn_once(
            "a list of messages contains a %s without an id: the serializer stores the whole list outside of "
            "the conversation's tree; LangGraph's add_messages gives ids",
            _name(first),
        )


def _name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


@lru_cache(maxsize=1024)
def _warn_once(text: str, name: str) -> None:
    log.warning(text, name)
