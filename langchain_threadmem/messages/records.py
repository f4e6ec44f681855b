"""Messages as JSON records, in the common formats of chat exports.

`{"role": "user", "content": ...}` (OpenAI), `{"type": "human", "data": {...}}` and `{"lc": 1, ...}`
(LangChain) and mixtures of them become LangChain messages, which are built from a fixed list of classes and
validated. Errors name the position of the record.
"""

from __future__ import annotations

import json
import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import MESSAGE_CLASSES
from langchain_threadmem.messages.roles import TYPES

_OF_OPENAI = ("refusal", "audio", "function_call", "reasoning_content")
"""The fields of an answer of OpenAI, and of others, that LangChain has in `additional_kwargs`."""
_CALLS = ("tool_calls", "invalid_tool_calls")
_INVALID = "invalid_tool_call"
"""The type of a call whose arguments are no JSON object: models write such calls, too."""
# Line ends of `str.splitlines` and lone surrogates: JSON allows them without escapes, other readers do not.
_UNSAFE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def message_from(value: object, position: str) -> BaseMessage:
    """Build a message from a record of a chat export.

    Args:
        value: `{"role" or "type", "content" or "text", ...}`, `{"type", "data": {...}}`, or an object of
            LangChain's serializer, see `unwrapped`. Unknown fields are ignored; an id is used if it is a
            string.
        position: The position of the record, for the error.

    Raises:
        InputError: The record is not a message; the error names the position and the problem.

    Example:
        >>> message_from({"role": "assistant", "content": "Hi"}, "line 1").type
        'ai'
    """
    record = as_object(unwrapped(value), position)
    kind, role = record.get("type"), record.get("role")
    kind = _type_of(kind) if isinstance(kind, str) else kind
    name = kind if isinstance(kind, str) and kind in TYPES else role if role is not None else kind
    if not isinstance(name, str) or name not in TYPES:
        raise InputError(f"{position} has the role {name!r}; use one of {', '.join(TYPES)}")
    data = record["data"] if isinstance(record.get("data"), dict) else record
    cls = MESSAGE_CLASSES[TYPES[name]]
    fields = {key: item for key, item in data.items() if key in cls.model_fields and item is not None}
    fields.pop("type", None)
    if not isinstance(fields.get("id"), str):
        fields.pop("id", None)
    if fields.get("tool_calls"):
        calls = [
            _tool_call(c, position) for c in as_list(fields["tool_calls"], f"'tool_calls' of {position}")
        ]
        fields["tool_calls"] = [call for call in calls if call.get("type") != _INVALID]
        if len(fields["tool_calls"]) < len(calls):
            fields["invalid_tool_calls"] = [call for call in calls if call.get("type") == _INVALID]
    others = {key: data[key] for key in _OF_OPENAI if data.get(key)} if cls is AIMessage else {}
    if others:
        given = as_object(fields.get("additional_kwargs", {}), f"'additional_kwargs' of {position}")
        fields["additional_kwargs"] = {**given, **others}
    if cls is AIMessage and isinstance(data.get("model"), str):
        fields.setdefault("response_metadata", {"model_name": data["model"]})
    content = data.get("content", data.get("text"))
    if content is None and not any(fields.get(name) for name in _CALLS) and not others:
        raise InputError(f"{position} has no content; add 'content'")
    fields["content"] = "" if content is None else content
    if TYPES[name] in ("tool", "function"):
        if isinstance(content, dict):
            fields["content"] = dumps(content, f"the content of {position}")
        # Plain exports contain role and content only, but these classes need a call id or a name.
        fields.setdefault("tool_call_id" if TYPES[name] == "tool" else "name", "")
    elif not isinstance(fields["content"], str | list):
        raise InputError(f"{position} has the content {content!r:.80}; use text or a list of blocks")
    try:
        return cls.model_validate(fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{position} is not a valid {name} message: {reason(error)}") from error


def unwrapped(value: object) -> object:
    """A message of LangChain's serializer as a record of `messages_to_dict`; another value as it is.

    `langchain_core.load.dumps` and `JSON.stringify` of LangChain.js write a message as
    `{"lc": 1, "type": "constructor", "id": [..., class], "kwargs": {...}}`.

    Example:
        >>> unwrapped({"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": "Hi"}})
        {'type': 'human', 'data': {'content': 'Hi'}}
    """
    if not isinstance(value, dict) or value.get("lc") != 1:
        return value
    names, data = value.get("id"), value.get("kwargs")
    name = names[-1] if isinstance(names, list) and names else None
    if not isinstance(name, str) or not isinstance(data, dict) or _type_of(name) == name:
        return value
    return {"type": _type_of(name), "data": data}


def _type_of(name: str) -> str:
    """The type of a message whose class, or whose type as a chunk, has a name: `"ai"` of `AIMessageChunk`."""
    stem, message, _ = name.partition("Message")
    return stem.lower() if message else name


def _tool_call(value: object, position: str) -> dict[str, Any]:
    call = as_object(value, f"a tool call of {position}")
    if "function" not in call:
        return call
    function = as_object(call["function"], f"a tool call of {position}")
    text = arguments = function.get("arguments") or "{}"
    about = {"name": function.get("name"), "id": call.get("id")}
    if isinstance(text, str):
        try:
            arguments = loads(text, f"the arguments of a tool call of {position}")
        except InputError as error:
            if not isinstance(about["name"], str):
                raise
            return {**about, "args": text, "error": str(error), "type": _INVALID}
    if not isinstance(arguments, dict):
        return {**about, "args": str(text), "error": "the arguments are no JSON object", "type": _INVALID}
    return {**about, "args": arguments, "type": "tool_call"}


def loads(text: str | bytes, position: str) -> Any:
    """Parse JSON, or raise an `InputError` that names the position."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{position} is not JSON: {error}") from error


def dumps(value: object, subject: str, indent: int | None = None) -> str:
    """Write JSON that stays on one line in every reader and can be encoded as UTF-8."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{subject} cannot be written as JSON: {error}; use JSON values") from error
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_object(value: object, subject: str) -> dict[str, Any]:
    """Narrow a parsed value to an object, or raise an `InputError` that shows it."""
    if not isinstance(value, dict):
        raise InputError(f"{subject} is {value!r:.80}, not a JSON object; write it as {{...}}")
    return value


def as_list(value: object, subject: str) -> list[Any]:
    """Narrow a parsed value to a list, or raise an `InputError` that shows it."""
    if not isinstance(value, list):
        raise InputError(f"{subject} is {value!r:.80}, not a JSON list; write it as [...]")
    return value


def reason(error: Exception) -> str:
    """The first problems of a validation error on one line, or the text of another error."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
    return str(error.__cause__ or error)
