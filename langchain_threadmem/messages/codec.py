"""LangChain messages as copies of what is given, and as JSON text, which is read back exactly.

A *body* is the stored form of a message: `{"type": ..., "data": {...}}`, as of
`langchain_core.messages.message_to_dict`, without fields that have their default value and without the id of
the message, which has its own column. Any SQL tool can read a body.

Bodies are read by a fixed list of message classes: stored text cannot name a class. A message with values
that plain JSON changes, such as tuples, is marked with `"typed": true`, and its values have the tags of
`messages.typed_json`, which also describes the argument `other`. Values of subclasses of `str`, `int`,
`float`, `list` and `dict` are written as values of the base class.

A property test checks that `decode([(id, encode(message))]) == [message]`.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
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
    message_chunk_to_message,
)
from langchain_core.messages.utils import MessageLikeRepresentation, convert_to_messages

from langchain_threadmem.errors import InputError, UnsupportedMessageError
from langchain_threadmem.messages.typed_json import (
    ReadOpaque,
    WriteOpaque,
    based,
    compact,
    is_plain,
    is_unicode,
    tag,
    untag,
)

MessageInput = MessageLikeRepresentation | Sequence[MessageLikeRepresentation]
"""A message as LangChain accepts it (message, text, `(role, text)`, dict), or several."""
_TEXTS: dict[str, type[HumanMessage | AIMessage]] = {"human": HumanMessage, "ai": AIMessage}
"""The classes of messages that are passed as plain text."""
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
"""The classes of stored messages, by the `type` in the body."""

_SEPARATE = frozenset({"id", "type"})
_CONTENT_ONLY = frozenset({"id", "content"})


class _MessageFields(NamedTuple):
    """The fields of a message class.

    Attributes:
        cls: The class.
        defaults: The default of each field; `None` for a required field.
        dicts: The fields whose default is a new dictionary.
        lists: The fields whose default is a new list.
    """

    cls: type[BaseMessage]
    defaults: dict[str, Any]
    dicts: list[str]
    lists: list[str]


def _fields_of(cls: type[BaseMessage]) -> _MessageFields:
    defaults = {
        name: None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
        for name, info in cls.model_fields.items()
    }
    dicts, lists = (
        [name for name, default in defaults.items() if type(default) is kind] for kind in (dict, list)
    )
    return _MessageFields(cls, defaults, dicts, lists)


_FIELDS_BY_TYPE = {kind: _fields_of(cls) for kind, cls in MESSAGE_CLASSES.items()}
_FIELDS = {fields.cls: fields for fields in _FIELDS_BY_TYPE.values()}


class _PlainForm(NamedTuple):
    """The form of a message of a class with a text and defaults only, as most messages are."""

    opening: str
    fields: int
    rest: Callable[[dict[str, Any]], tuple[Any, ...]]
    types: list[type]


def _plain_form(defaults: dict[str, Any]) -> _PlainForm:
    others = [name for name in defaults if name not in _SEPARATE and name != "content"]
    opening = f'{{"type":"{defaults["type"]}","data":{{"content":'
    return _PlainForm(opening, len(defaults), itemgetter(*others), [type(defaults[name]) for name in others])


_PLAIN_FORMS = {cls: _plain_form(fields.defaults) for cls, fields in _FIELDS.items()}


def encode(message: BaseMessage, other: WriteOpaque | None = None) -> str:
    """Write a message as JSON text, without its id.

    Args:
        message: A message of one of `MESSAGE_CLASSES`, exactly.
        other: Writes values that JSON cannot represent.

    Returns:
        JSON text. About 1 µs for a short text, 3 µs for other short messages.

    Raises:
        UnsupportedMessageError: The message, or a value in it, cannot be stored exactly.

    Example:
        >>> encode(HumanMessage("Hello", id="h1"))
        '{"type":"human","data":{"content":"Hello"}}'
    """
    return encode_each((message,), other)[0]


def encode_each(messages: Iterable[BaseMessage], other: WriteOpaque | None = None) -> list[str]:
    """`encode` several messages."""
    bodies = []
    for message in messages:
        form = _PLAIN_FORMS.get(type(message))
        if (
            form is not None
            and len(values := message.__dict__) == form.fields
            and not message.__pydantic_extra__
        ):
            content, others = values["content"], form.rest(values)
            # Defaults are falsy, but a field that was set may have another falsy value: 0 for False.
            if (
                type(content) is str
                and not any(others)
                and (message.__pydantic_fields_set__ <= _CONTENT_ONLY or [*map(type, others)] == form.types)
            ):
                text = f"{form.opening}{compact(content)}}}}}"
                if text.isascii() or is_unicode(text):
                    bodies.append(text)
                    continue
        bodies.append(_encode_fields(message, other))
    return bodies


def _encode_fields(message: BaseMessage, other: WriteOpaque | None) -> str:
    """`encode` a message with more fields than a text."""
    cls = type(message)
    if cls not in _FIELDS:
        raise UnsupportedMessageError(
            f"cannot store a message of class {cls.__name__!r}; "
            f"use one of {', '.join(sorted(supported.__name__ for supported in _FIELDS))}"
        )
    values, defaults = message.__dict__, _FIELDS[cls].defaults
    data = {
        name: value
        for name, value in values.items()
        if name not in _SEPARATE
        and not (
            name in defaults
            and type(value) is type(default := defaults[name])
            and (value is default or value == default)
        )
    }
    if message.__pydantic_extra__:
        data |= message.__pydantic_extra__
    kind = defaults["type"]
    try:
        if is_plain(data) or is_plain(data := based(data, containers=True)):
            text = compact({"type": kind, "data": data})
            if text.isascii() or is_unicode(text):
                return text
        tagged = {name: tag(value, name, other) for name, value in data.items()}
        return json.dumps({"type": kind, "typed": True, "data": tagged}, separators=(",", ":"))
    except RecursionError as error:
        raise UnsupportedMessageError(
            f"cannot store a {kind} message that is nested too deeply or contains itself; flatten it first"
        ) from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise UnsupportedMessageError(str(error)) from None
        raise UnsupportedMessageError(f"cannot store a {kind} message as JSON: {error}") from error


USAGE = '"usage_metadata":'
"""Part of each body with a usage."""


def without_usage(body: str) -> str:
    """A body without its usage, to compare answers: a cache of answers changes the usage.

    Example:
        >>> answer = AIMessage("Hi!")
        >>> cached = answer.model_copy(update={"usage_metadata": {"total_cost": 0}})
        >>> without_usage(encode(cached)) == encode(answer)
        True
    """
    if USAGE not in body:
        return body
    value = _without_usage(body)
    return body if value is None else compact(value)


def is_same_answer(body: str, other: str) -> bool:
    """Whether two bodies are the same answer, apart from its usage.

    LangChain's cache of answers adds the cost 0 to `usage_metadata`.

    Example:
        >>> once, other = AIMessage("Hi!"), AIMessage("Ho!")
        >>> cached = once.model_copy(update={"usage_metadata": {"total_cost": 0}})
        >>> is_same_answer(encode(once), encode(cached)), is_same_answer(encode(once), encode(other))
        (True, False)
    """
    return body == other or _without_usage(body) == _without_usage(other) is not None


def _without_usage(body: str) -> Any:
    """A parsed body without its usage; `None` if it is not JSON."""
    try:
        value = json.loads(body)
        value["data"].pop("usage_metadata", None)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return value


StoredMessage = tuple[str | None, str] | tuple[str | None, str, str] | tuple[str, str, str, int]
"""The id of a message, if any, its body, its role, if known, and the number of its node, if known."""
Parsed = dict[str, dict[str, Any]]
"""Parsed bodies without mutable values, by their text."""


def decode(
    rows: Sequence[StoredMessage], parsed: Parsed | None = None, other: ReadOpaque | None = None
) -> list[BaseMessage]:
    """Read messages from their ids and bodies.

    All bodies are parsed as one JSON text, which costs a third of parsing them one by one.

    Args:
        rows: The stored messages; the role and the number are not needed.
        parsed: The bodies that earlier calls have parsed, to which this call adds, for lists with common
            messages. The returned messages are new objects in any case.
        other: Reads `Opaque` values; without it they are returned unchanged.

    Returns:
        New message objects, in the order of `rows`; about 1.5 µs each.

    Raises:
        InputError: A body is not JSON, or has an unknown message type.

    Example:
        >>> decode([("h1", '{"type":"human","data":{"content":"Hello"}}')])
        [HumanMessage(content='Hello', additional_kwargs={}, response_metadata={}, id='h1')]
    """
    try:
        return _build(_parse([*map(_BODY, rows)], parsed), map(_ID, rows), other)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"a stored message body cannot be read: {error}; run verify()") from error


_ID, _BODY = itemgetter(0), itemgetter(1)
UNREADABLE = "threadmem_unreadable"
"""The key in `response_metadata` that marks the placeholder of a message that cannot be read."""


def decode_stored(
    rows: Sequence[StoredMessage], parsed: Parsed | None = None, other: ReadOpaque | None = None
) -> list[BaseMessage]:
    """`decode` with a placeholder message for each message that cannot be read.

    Args:
        rows: The stored messages; if the role is known, a placeholder has the class of the role.
        parsed, other: As for `decode`.

    Example:
        >>> (message,) = decode_stored([("h1", '{"type":"hum', "human")])
        >>> message.type, message.id, UNREADABLE in message.response_metadata
        ('human', 'h1', True)
    """
    try:
        return decode(rows, parsed, other)
    except InputError:
        messages = []
        for row in rows:
            try:
                messages += decode([row], other=other)
            except InputError:
                role = row[2] if len(row) > 2 else _type_of(row[1])
                messages += decode([(row[0], unreadable(role))])
        return messages


TEXT_ALONE = re.compile(
    r'\{"type":"(?:human|ai|system)","data":\{"content":'
    r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"\}\}'
)
"""The body of a message with a text and nothing else, which is always readable."""


def unreadable_among(rows: Sequence[StoredMessage]) -> list[int]:
    """The positions of the messages that `decode_stored` returns as placeholders.

    Args:
        rows: As for `decode_stored`.

    Example:
        >>> hello = '{"type":"human","data":{"content":"Hello"}}'
        >>> unreadable_among([("h1", hello), ("h2", '{"type":"hum'), ("h3", hello)])
        [1]
    """
    messages = decode_stored(rows)
    return [n for n, message in enumerate(messages) if UNREADABLE in message.response_metadata]


def unreadable(role: str) -> str:
    """The body of a placeholder for a message of a role that cannot be read."""
    cls = MESSAGE_CLASSES.get(role, HumanMessage)
    required: dict[str, Any] = {name: "" for name, field in cls.model_fields.items() if field.is_required()}
    text = "[This message cannot be read: it is damaged, or encrypted with another key.]"
    return encode(cls(**{**required, "content": text}, response_metadata={UNREADABLE: True}))


def is_unreadable(body: str) -> bool:
    """Whether a body is the body of a placeholder."""
    return f'"response_metadata":{{"{UNREADABLE}":true}}' in body


def _type_of(body: str) -> str:
    match = re.match(r'\{"type":"(\w+)"', body)
    return match[1] if match else ""


def _parse(bodies: list[str], parsed: Parsed | None) -> list[dict[str, Any]]:
    if parsed is None:
        return json.loads("[" + ",".join(bodies) + "]")  # type: ignore[no-any-return]
    unparsed = [body for body in bodies if body not in parsed]
    new = dict(zip(unparsed, json.loads("[" + ",".join(unparsed) + "]"), strict=True))
    parsed.update(
        (text, body)
        for text, body in new.items()
        if "typed" not in body and all(type(value) is str for value in body["data"].values())
    )
    # Bodies with mutable values are parsed again at each use.
    return [parsed.get(body) or new.pop(body, None) or json.loads(body) for body in bodies]


def text_of(message: BaseMessage) -> str:
    """The readable text of a message: its content, or the text blocks of its content.

    If there is none, the text is the transcript of audio, or the refusal of a model, where OpenAI's models
    return them.

    Example:
        >>> text_of(HumanMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": "x"}]))
        'a'
        >>> text_of(AIMessage("", additional_kwargs={"audio": {"id": "a1", "transcript": "Good morning."}}))
        'Good morning.'
    """
    content = message.content
    text = content if isinstance(content, str) else str(message.text)
    return text or _transcript_or_refusal(message)


def texts_of(messages: Iterable[BaseMessage]) -> list[str]:
    """The result of `text_of` for each message.

    Example:
        >>> texts_of([HumanMessage("a"), AIMessage("b")])
        ['a', 'b']
    """
    return [
        message.content if type(message.content) is str and message.content else text_of(message)
        for message in messages
    ]


def _transcript_or_refusal(message: BaseMessage) -> str:
    audio = message.additional_kwargs.get("audio")
    texts = [audio.get("transcript") if isinstance(audio, dict) else None]
    texts.append(message.additional_kwargs.get("refusal"))
    texts += [block.get("refusal") for block in message.content if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def messages_of(
    messages: MessageInput, *answers: MessageInput, role: str = "human", copies: bool = True
) -> list[BaseMessage]:
    """Convert messages from any form that LangChain accepts; plain text has the role `role`.

    Args:
        messages: One message in any form that LangChain accepts, or a list of messages.
        *answers: Further messages in the same forms; plain text has the role "ai" here.
        role: The role of plain text: "human" or "ai".
        copies: Whether messages are copied; without copies the caller must not change them.

    Raises:
        InputError: A value is not a message, or a message is empty.

    Example:
        >>> messages_of("Hello")[0].type, messages_of(("assistant", "Hi"))[0].type
        ('human', 'ai')
    """
    converted: list[BaseMessage] = []
    for given in (messages, *answers):
        for item in given if isinstance(given, list) else (given,):
            if isinstance(item, BaseMessage):
                message = message_chunk_to_message(item) if isinstance(item, BaseMessageChunk) else item
                if copies:
                    message = clone(message)  # The caller may change the original.
            elif isinstance(item, str) and role in _TEXTS:
                # `convert_to_messages` takes twice as long, a tenth of an append.
                message = _TEXTS[role](item)
            else:
                message = _converted(item, role)
            kind = message.type
            if kind == "remove":
                raise InputError(f"{message!r:.200} removes a message; pass a message with content")
            if kind in ("human", "system") and not message.content:
                raise InputError(f"a {kind} message is empty: {item!r:.200}; pass a message with content")
            converted.append(message)
        role = "ai"
    return converted


def _converted(item: Any, role: str) -> BaseMessage:
    try:
        return convert_to_messages([(role, item) if isinstance(item, str) else item])[0]
    # `convert_to_messages` raises any of these, NotImplementedError for an unknown type.
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError) as error:
        raise InputError(
            f"{item!r:.200} is not a message; pass a LangChain message, text, or a pair like "
            "('user', 'Hello')"
        ) from error


_ATTRIBUTES = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def clone(message: BaseMessage, **changes: Any) -> BaseMessage:
    """A shallow copy of a message with changed fields, without validation.

    Example:
        >>> clone(HumanMessage("Hello"), id="h1").id
        'h1'
    """
    extra = message.__pydantic_extra__
    values, fields_set = {**message.__dict__, **changes}, message.__pydantic_fields_set__ | changes.keys()
    copy = object.__new__(type(message))
    for name, value in zip(
        _ATTRIBUTES, (values, fields_set, dict(extra) if extra else {}, None), strict=True
    ):
        object.__setattr__(copy, name, value)
    return copy


def give_ids(messages: Iterable[tuple[BaseMessage, str]]) -> None:
    """Set the ids of messages without validation; no other code may refer to the messages."""
    for message, id_ in messages:
        message.__dict__["id"] = id_
        message.__pydantic_fields_set__.add("id")


def _constructed(
    classes: Iterable[type[BaseMessage]],
    values: Iterable[dict[str, Any]],
    fields_set: Iterable[set[str]],
    extras: Iterable[dict[str, Any]],
) -> list[BaseMessage]:
    """Messages of classes, valid values, names of set fields and extra values, as of `model_construct`.

    `model_construct` copies its arguments field by field: 1,000 messages would take 6.5 ms instead of 1 ms.
    Each attribute is set for all messages in one loop of C code, 0.15 ms less than message by message.
    """
    messages: list[BaseMessage] = [*map(object.__new__, classes)]
    for name, column in zip(_ATTRIBUTES, (values, fields_set, extras, repeat(None)), strict=True):
        deque(map(object.__setattr__, messages, repeat(name), column), maxlen=0)
    return messages


def _build(
    bodies: Iterable[dict[str, Any]], ids: Iterable[str | None], other: ReadOpaque | None
) -> list[BaseMessage]:
    classes, all_values, fields_set, extras = [], [], [], []
    for body, message_id in zip(bodies, ids, strict=True):
        cls, defaults, dicts, lists = _FIELDS_BY_TYPE[body["type"]]
        data = body["data"]
        if "typed" in body:
            data = {name: untag(value, other) for name, value in data.items()}
        values = defaults.copy()
        for name in dicts:
            values[name] = {}
        for name in lists:
            values[name] = []
        values.update(data)
        values["id"] = message_id
        extra = {}
        if len(values) > len(defaults):
            extra = {name: values.pop(name) for name in data if name not in defaults}
        classes.append(cls)
        all_values.append(values)
        fields_set.append({"id", *data.keys()})
        extras.append(extra)
    return _constructed(classes, all_values, fields_set, extras)
