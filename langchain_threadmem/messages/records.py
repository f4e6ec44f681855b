"""One message as a JSON record, in any of the shapes in which chats are exported.

`{"role": "user", "content": ...}` (OpenAI), `{"type": "human", "data": {...}}` (LangChain) and mixtures of
both become LangChain messages, built from a fixed list of classes and validated. Errors name the place of the
record.
"""

from __future__ import annotations

import json
import re
from typing import Any

from langchain_core.messages import (
    BaseMessage,
)
from pydantic import ValidationError

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import MESSAGE_CLASSES
from langchain_threadmem.messages.roles import TYPES

# Line ends to `str.splitlines` and halves of characters: JSON allows them bare, other readers do not.
_UNSAFE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def message_from(value: object, where: str) -> BaseMessage:
    """Build a message from a record of any of the outside shapes.

    Args:
        value: `{"role" or "type", "content" or "text", ...}`, or `{"type", "data": {...}}`. Fields that
            the message class does not know are left out; an id is kept if it is text.
        where: Where the record stands, for the error.

    Raises:
        InputError: It is no such record; says where and what is wrong.

    Example:
        >>> message_from({"role": "assistant", "content": "Hi"}, "line 1").type
        'ai'
    """
    record = as_object(value, where)
    kind, role = record.get("type"), record.get("role")
    name = kind if isinstance(kind, str) and kind in TYPES else role if role is not None else kind
    if not isinstance(name, str) or name not in TYPES:
        raise InputError(f"{where} has the role {name!r}; use one of {', '.join(TYPES)}")
    data = record["data"] if isinstance(record.get("data"), dict) else record
    cls = MESSAGE_CLASSES[TYPES[name]]
    fields = {key: item for key, item in data.items() if key in cls.model_fields and item is not None}
    fields.pop("type", None)
    if not isinstance(fields.get("id"), str):
        fields.pop("id", None)
    if fields.get("tool_calls"):
        fields["tool_calls"] = [
            _tool_call(c, where) for c in as_list(fields["tool_calls"], f"'tool_calls' of {where}")
        ]
    content = data.get("content", data.get("text"))
    if content is None and not fields.get("tool_calls"):
        raise InputError(f"{where} has no content; give it 'content'")
    fields["content"] = "" if content is None else content
    if TYPES[name] in ("tool", "function"):
        # Plain exports keep role and content only; these classes want to know what they answer.
        fields.setdefault("tool_call_id" if TYPES[name] == "tool" else "name", "")
    try:
        return cls.model_validate(fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{where} is no {name} message: {reason(error)}") from error


def _tool_call(value: object, where: str) -> dict[str, Any]:
    call = as_object(value, f"a tool call of {where}")
    if "function" not in call:
        return call
    function = as_object(call["function"], f"a tool call of {where}")
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        arguments = loads(arguments, f"the arguments of a tool call of {where}")
    return {"name": function.get("name"), "args": arguments, "id": call.get("id"), "type": "tool_call"}


def loads(text: str, where: str) -> Any:
    """Parse JSON, or raise an `InputError` that says where it stands."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no JSON: {error}") from error


def dumps(value: object, what: str, indent: int | None = None) -> str:
    """Write JSON that stays on one line in every reader and can be encoded as UTF-8."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot be written as JSON: {error}; use JSON values there") from error
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_object(value: object, what: str) -> dict[str, Any]:
    """Narrow a parsed value to an object, or raise an `InputError` that shows it."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {value!r:.80}, not a JSON object; write it as {{...}}")
    return value


def as_list(value: object, what: str) -> list[Any]:
    """Narrow a parsed value to a list, or raise an `InputError` that shows it."""
    if not isinstance(value, list):
        raise InputError(f"{what} is {value!r:.80}, not a JSON list; write it as [...]")
    return value


def reason(error: Exception) -> str:
    """Say what a validator found, without the pages it prints around it."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
    return str(error.__cause__ or error)
