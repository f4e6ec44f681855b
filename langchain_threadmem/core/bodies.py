"""A LangChain message as JSON text, and back, exactly.

A *body* is what the database keeps of a message: `{"type": ..., "data": {...}}`, the shape
of `langchain_core.messages.message_to_dict`, without the fields that hold their default and
without the message's id, which has a column of its own. Any SQL tool can read it.

It is read back by a fixed list of message classes. Nothing stored can name a class, call a
constructor or reach an import, so `{"lc": 1, "type": "constructor", ...}` inside a message
is what it looks like: a dictionary (CVE-2025-68664, CVE-2025-64439 were about the opposite).

Plain JSON turns tuples into lists and integer keys into strings. A message that holds such
values is marked `"typed": true` and its values are written with tags (`{"#": "tuple", ...}`),
so that what comes back equals what went in. The usual message pays nothing for it. A value
of a class that is not listed here is refused with the path to it.

The law, held by a property test: `decode([(id, encode(message))]) == [message]`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_threadmem.errors import InputError, UnsupportedMessageError

MESSAGE_CLASSES: dict[str, type[BaseMessage]] = {
    cls.model_fields["type"].default: cls
    for cls in (
        HumanMessage,
        AIMessage,
        SystemMessage,
        ToolMessage,
        FunctionMessage,
        ChatMessage,
        HumanMessageChunk,
        AIMessageChunk,
        SystemMessageChunk,
        ToolMessageChunk,
        FunctionMessageChunk,
        ChatMessageChunk,
    )
}
"""Every class that a stored body can become, by the `type` it is stored under."""

TAG = "#"

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _blank(cls: type[BaseMessage]) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]:
    """The fields of a message class: fixed defaults, and factories for mutable ones."""
    fixed: dict[str, Any] = {}
    made: list[tuple[str, Callable[[], Any]]] = []
    for name, info in cls.model_fields.items():
        if info.is_required():
            fixed[name] = None
            continue
        default = info.get_default(call_default_factory=True, validated_data={})
        fixed[name] = default
        if isinstance(default, list | dict):
            made.append((name, type(default)))
    return fixed, made


_BLANKS = {cls: _blank(cls) for cls in MESSAGE_CLASSES.values()}


def encode(message: BaseMessage) -> str:
    """Write a message as JSON text, without its id.

    Args:
        message: A message of one of `MESSAGE_CLASSES`, exactly.

    Returns:
        JSON text. About 3 µs for a short message.

    Raises:
        UnsupportedMessageError: The message, or a value in it, cannot be kept exactly.

    Example:
        >>> encode(HumanMessage("Hello", id="h1"))
        '{"type":"human","data":{"content":"Hello"}}'
    """
    cls = type(message)
    blank = _BLANKS.get(cls)
    if blank is None:
        raise UnsupportedMessageError(
            f"cannot store a message of class {cls.__name__!r}; "
            f"use one of {', '.join(sorted(known.__name__ for known in _BLANKS))}"
        )
    defaults = blank[0]
    data = {
        name: value
        for name, value in message.__dict__.items()
        if name != "id" and name != "type" and (name not in defaults or value != defaults[name])
    }
    if message.__pydantic_extra__:
        data |= message.__pydantic_extra__
    kind = defaults["type"]
    if all(map(_is_plain, data.values())):
        try:
            text = _dumps({"type": kind, "data": data})
            text.encode()
        except (ValueError, RecursionError):
            pass  # A lone surrogate, or nesting too deep to check: the tagged form settles it.
        else:
            return text
    tagged = {name: _tag(value, name) for name, value in data.items()}
    return json.dumps({"type": kind, "typed": True, "data": tagged}, separators=(",", ":"))


def decode(rows: Sequence[tuple[str, str]]) -> list[BaseMessage]:
    """Read messages back from their ids and bodies.

    All bodies are parsed as one JSON text, which costs a third of parsing them one by one.

    Args:
        rows: Pairs of message id and body.

    Returns:
        New message objects, in the order of `rows`; about 1.5 µs each.

    Raises:
        InputError: A body is no JSON, or names a message type that is not known.

    Example:
        >>> decode([("h1", '{"type":"human","data":{"content":"Hello"}}')])
        [HumanMessage(content='Hello', additional_kwargs={}, response_metadata={}, id='h1')]
    """
    try:
        bodies = json.loads("[" + ",".join([row[1] for row in rows]) + "]")
        return [_build(body, row[0]) for body, row in zip(bodies, rows, strict=True)]
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"a stored message body cannot be read: {error}; run verify()") from error


def text_of(message: BaseMessage) -> str:
    """The readable text of a message: its content, or the text blocks of its content.

    Example:
        >>> text_of(HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "x"}]))
        'a'
    """
    content = message.content
    return content if isinstance(content, str) else str(message.text)


def clone(message: BaseMessage, **changes: Any) -> BaseMessage:
    """A shallow copy of a message with some fields changed, without validating it again.

    Example:
        >>> clone(HumanMessage("Hello"), id="h1").id
        'h1'
    """
    return _fill(
        type(message),
        {**message.__dict__, **changes},
        dict(message.__pydantic_extra__ or {}),
        message.__pydantic_fields_set__ | changes.keys(),
    )


def _build(body: dict[str, Any], message_id: str) -> BaseMessage:
    cls = MESSAGE_CLASSES[body["type"]]
    data = body["data"]
    if "typed" in body:
        data = {name: _untag(value) for name, value in data.items()}
    fixed, made = _BLANKS[cls]
    values = fixed.copy()
    for name, make in made:
        values[name] = make()
    extra: dict[str, Any] = {}
    if data.keys() <= values.keys():
        values |= data
    else:
        for name, value in data.items():
            (values if name in fixed else extra)[name] = value
    values["id"] = message_id
    return _fill(cls, values, extra, {"id", *data})


def _fill(
    cls: type[BaseMessage], values: dict[str, Any], extra: dict[str, Any], fields_set: set[str]
) -> BaseMessage:
    # What model_construct does, without its walk over the fields: the values were valid when stored.
    message = cls.__new__(cls)
    put = object.__setattr__
    put(message, "__dict__", values)
    put(message, "__pydantic_fields_set__", fields_set)
    put(message, "__pydantic_extra__", extra)
    put(message, "__pydantic_private__", None)
    return message


_SCALARS = frozenset({str, int, bool, type(None)})


def _is_plain(value: Any) -> bool:
    """Whether JSON gives the value back as it is, type for type."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return False


_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", repr),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "tuple": lambda items: tuple(map(_untag, items)),
    "set": lambda items: set(map(_untag, items)),
    "frozenset": lambda items: frozenset(map(_untag, items)),
    "dict": lambda items: {_untag(key): _untag(value) for key, value in items},
}


def _tag(value: Any, path: str) -> Any:
    kind = type(value)
    if kind in _SCALARS or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_tag(item, f"{path}[{n}]") for n, item in enumerate(value)]
    if kind is dict:
        if TAG not in value and all(type(key) is str for key in value):
            return {key: _tag(item, f"{path}.{key}") for key, item in value.items()}
        return {TAG: "dict", "v": _tag_all(value.items(), path)}
    if kind in (tuple, set, frozenset):
        return {TAG: kind.__name__, "v": [_tag(item, f"{path}[{n}]") for n, item in enumerate(value)]}
    if kind in _WRITERS:
        name, write = _WRITERS[kind]
        return {TAG: name, "v": write(value)}
    raise UnsupportedMessageError(
        f"cannot store {value!r} ({kind.__name__}) at {path!r} exactly; "
        "put text, numbers, lists or dictionaries there before it is remembered"
    )


def _tag_all(pairs: Iterable[tuple[Any, Any]], path: str) -> list[list[Any]]:
    return [[_tag(key, path), _tag(item, f"{path}.{key}")] for key, item in pairs]


def _untag(value: Any) -> Any:
    if type(value) is list:
        return [_untag(item) for item in value]
    if type(value) is dict:
        if TAG in value:
            return _READERS[value[TAG]](value["v"])
        return {key: _untag(item) for key, item in value.items()}
    return value
