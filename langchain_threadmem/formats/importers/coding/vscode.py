"""VS Code: a session of chat, as one JSON document or as a log of its changes (`chatSessions/<id>.jsonl`).

An edited request cuts the requests after it, so a log has the final chain only. Text edits and other steps
of an answer are kept beside its text. The fields follow microsoft/vscode (chatModel.ts and the log of
mutations).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats
from langchain_threadmem.formats.importers.content_parts import Other, Part, Reasoning, called
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_SILENT = (
    *("progressMessage", "progressTask", "progressTaskSerialized", "undoStop", "codeblockUri"),
    "mcpServersStarting",
)
_INITIAL, _SET_VALUE, _PUSH, _DELETE = range(4)


def _is_log(values: Sequence[Any]) -> bool:
    """Whether a document is a session, or the lines of a file are a session and its changes."""
    if all(map(_is_session, values)):
        return True
    first, *others = values
    is_start = first.get("kind") == _INITIAL and _is_session(first.get("v"))
    return is_start and all(value.get("kind") in range(4) and "k" in value for value in others)


def _is_session(value: Any) -> bool:
    return fields.has(value, requests=list) and ("sessionId" in value or "requesterUsername" in value)


def _chats(source: Source) -> Chats:
    state: fields.Record | None = None

    def read(value: fields.Record, position: str) -> Chats:
        nonlocal state
        if _is_session(value):
            yield _chat(value, source.name, position)
        elif value.get("kind") == _INITIAL and "k" not in value:
            state = as_object(value.get("v"), f"'v' of {position}")
        elif state is None:
            yield Bad(f"{position} is a change before the first state")
        else:
            _change(state, value, position)

    yield from source.each(read)
    if state is not None:
        yield from checked("the session", _chat, state, source.name, "the session")


def _change(state: fields.Record, change: fields.Record, position: str) -> None:
    """Apply a change: set, cut an array and push, or delete."""
    path = as_list(change.get("k"), f"'k' of {position}")
    if not path:
        return
    holder: Any = state
    for key, following in pairwise(path):
        if isinstance(holder, dict) and key not in holder:
            holder[key] = [] if isinstance(following, int) else {}
        holder = holder[key]
    last = path[-1]
    kind, value = change.get("kind"), change.get("v")
    if kind == _DELETE:
        if isinstance(holder, dict):
            holder.pop(last, None)
        elif isinstance(last, int) and last < len(holder):
            del holder[last]
    elif kind == _PUSH:
        target = holder.setdefault(last, []) if isinstance(holder, dict) else holder[last]
        if isinstance(change.get("i"), int):
            del target[change["i"] :]
        target.extend(as_list(value or [], f"'v' of {position}"))
    elif isinstance(holder, list) and isinstance(last, int) and last == len(holder):
        holder.append(value)
    else:
        holder[last] = value


def _chat(record: fields.Record, name: str, position: str) -> Chat:
    said: list[Said] = []
    for number, request in enumerate(fields.records(record, "requests", position), 1):
        said += _said(request, said[-1].key if said else None, f"{position}, request {number}")
    metadata = fields.kept(agent=fields.text(record, "responderUsername"))
    return chat_of(position, fields.text(record, "sessionId") or name, said, record, metadata=metadata)


def _said(request: fields.Record, previous: str | None, position: str) -> Iterator[Said]:
    message = request.get("message")
    key = fields.text(request, "requestId") or chained_id("import-", previous, message)
    text = message.get("text") if isinstance(message, dict) else message
    if text is not None and not isinstance(text, str):
        raise InputError(f"{position} has the text {text!r:.80}")
    time, is_hidden = fields.time(request, position, "timestamp"), bool(request.get("isHidden"))
    files = [
        file_of({"name": one.get("name"), "path": fields.at(one, "value", "path"), "kind": one.get("kind")})
        for one in fields.values(request, "variableData", "variables")
        if isinstance(one, dict)
    ]
    files = [file._replace(is_beside=True) for file in files]
    yield Said(key, previous, USER, [text or "", *files], time, is_aside=is_hidden)
    response, error = request.get("response"), fields.at(request, "result", "errorDetails")
    parts = [*_parts(response if isinstance(response, list) else [response] if response else [])]
    if parts or error:
        id, model = fields.text(request, "responseId"), fields.text(request, "modelId")
        extra = fields.kept(error=error, canceled=request.get("isCanceled"))
        yield Said(id or f"{key}-response", key, ASSISTANT, parts, time, model, None, is_hidden, extra)


def _parts(response: list[Any]) -> Iterator[Part]:
    """The parts of an answer; its text is divided by references, of which the name is text too."""
    text = ""
    for item in response:
        part = as_object(item, "a part of a response") if not isinstance(item, str) else {"value": item}
        kind = part.get("kind")
        if kind in (None, "markdownContent", "markdownVuln"):
            content = part.get("content")
            text += _written(part.get("value") if content is None else content)
            continue
        if kind == "inlineReference":
            text += _name(part)
            continue
        if kind in _SILENT:
            continue
        if text.strip():
            yield text.strip()
        text = ""
        if kind == "thinking":
            value = part.get("value")
            yield Reasoning("".join(value) if isinstance(value, list) else str(value or ""))
        elif kind in ("toolInvocationSerialized", "toolInvocation"):
            yield from _tool(part)
        else:
            yield Other(part)
    if text.strip():
        yield text.strip()


def _written(value: Any) -> str:
    """A piece of a text, which may be a space; the text of a Markdown string is its `value`."""
    value = fields.at(value, "value") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def _name(part: fields.Record) -> str:
    reference = part.get("inlineReference")
    location = fields.record(reference, "location") or reference
    path = fields.text(fields.record(location, "uri") or location, "path")
    name = fields.text(part, "name") or fields.text(reference, "name") or (path and path.rpartition("/")[2])
    return f"`{name}`" if name else ""


def _tool(part: fields.Record) -> Iterator[Part]:
    """A call with its result, if the session has the result; most sessions have a message for people only."""
    details = fields.record(part, "resultDetails")
    output = details.get("output")
    if output is None:
        yield Other(part)
        return
    output = [_written(one) for one in output] if isinstance(output, list) else output
    id, name = fields.text(part, "toolCallId"), fields.text(part, "toolId")
    yield from called(name, details.get("input"), id, output, bool(details.get("isError")))


FORMAT = Format("vscode", "a chat session of VS Code", _chats, is_log=_is_log)
