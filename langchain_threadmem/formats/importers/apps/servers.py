"""Chat apps on servers: Open WebUI (exports and `webui.db`), and LibreChat (flat or nested).

In Open WebUI, `history.messages` is the tree, and `history.currentId` the end of the active thread;
`messages` repeats the active thread only, and is read in chats without a history. Reasoning and tool calls
stand in the text as `<details>`, or in `output` as items of OpenAI.

The fields follow open-webui/open-webui, yetanotherchris/openwebui-importer, byteowlz/hstry and
danny-avila/LibreChat (api/server/utils/import/importers.js and
client/src/hooks/Conversations/useExportConversation.ts).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of, text_in
from langchain_threadmem.formats.importers.content_parts import (
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    called,
)
from langchain_threadmem.formats.importers.libraries.openai_items import parts_of_items
from langchain_threadmem.formats.importers.program import ChatRecord, Program, ready
from langchain_threadmem.formats.importers.said import ASSISTANT, USER
from langchain_threadmem.messages.records import as_object, loads

_DETAILS = re.compile(
    r"^(?:(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)"
    r'|<details type="(?P<type>reasoning|tool_calls|code_interpreter)"(?P<attributes>[^>]*)>\n?'
    r"(?P<body>.*?)</details>\n?)",
    re.DOTALL | re.MULTILINE,
)
"""A fenced block of code, in which marks are text, or the details of a step."""
_SUMMARY = re.compile(r"<summary>.*?</summary>\n?", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_COLUMNS = (
    *("id", "title", "chat", "created_at", "updated_at", "archived", "pinned", "meta", "folder_id"),
    "current_message_id",
)
_KEPT = (
    *("sources", "citations", "error", "usage", "statusHistory", "annotation", "favorite", "modelIdx"),
    *("contextSummary", "embeds"),
)


def _is_openwebui(value: Any) -> bool:
    chat = fields.at(value, "chat")
    if isinstance(chat, dict) and "mapping" not in chat:
        return not chat or fields.has(chat, history=dict) or fields.has(chat, messages=list)
    history = fields.record(value, "history")
    return fields.has(history, messages=dict) and "currentId" in history


def _of_openwebui(value: fields.Record) -> Iterator[ChatRecord]:
    record = value | {
        name: loads(text, name) for name in ("chat", "meta") if isinstance(text := value.get(name), str)
    }
    chat = record if record.get("chat") is None else as_object(record["chat"], "'chat'")
    history, meta = fields.record(chat, "history"), fields.record(record, "meta")
    tree = fields.record(history, "messages")
    listed = [*(tree.values() or chat.get("messages") or ())]
    messages = [_message(as_object(one, "a message"), is_tree=bool(tree)) for one in listed]
    if len({name for one in messages if (name := _person(one))}) > 1:
        # In a chat that several people share, the messages have the names of the people.
        messages = [{**one, "name": fields.text(one, "name") or _person(one)} for one in messages]
    name = fields.text(record, "id") or fields.text(chat, "id")
    if name is None and not messages:
        raise InputError("there is no 'id' and no message; it is not a chat of Open WebUI")
    source = fields.text(meta, "forked_from") or fields.text(chat, "originalChatId")
    created = fields.time(record, "the chat", "created_at") or fields.time(chat, "the chat", "timestamp")
    others = {
        "model": next((one for one in fields.values(chat, "models") if one), None),
        "tip": fields.text(record, "current_message_id")
        or fields.text(history if tree else None, "currentId"),
        "title": fields.text(record, "title") or fields.text(chat, "title"),
        "created": created,
        "archived": fields.time(record, "the chat", "updated_at") or created
        if record.get("archived")
        else None,
        "branch_of": [source] if source is not None else [],
        # A chat of the program, such as that of a subagent, is internal.
        "metadata": fields.kept(internal=meta.get("internal"), tags=meta.get("tags") or chat.get("tags")),
    }
    name = name or f"openwebui-{fields.text(messages[0], 'id') or 'chat'}"
    yield ChatRecord(record, messages, name, others, fields.at(chat, "params", "system"))


def _message(message: fields.Record, *, is_tree: bool) -> fields.Record:
    parent = {"parentId": message.get("parentId")} if is_tree else {}
    return {**message, "role": message.get("role") or USER, **parent}


def _person(message: fields.Record) -> str | None:
    return fields.text(message.get("user"), "name") if message.get("role") == USER else None


def _parts(message: fields.Record) -> Iterator[Part]:
    output, content = message.get("output"), message.get("content")
    if message["role"] == ASSISTANT and isinstance(output, list) and output:
        yield from parts_of_items(output)
    elif message["role"] == ASSISTANT and isinstance(content, str):
        yield from _without_details(content)
    else:
        yield from parts_of(content)
    yield from files_of(message.get("files"))


def _without_details(content: str) -> Iterator[Part]:
    """The text of an answer, with its reasoning and its tool calls as parts."""
    start = 0
    for found in _DETAILS.finditer(content):
        if found["type"] is None:
            continue
        if text := content[start : found.start()].strip():
            yield text
        start = found.end()
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found["attributes"])}
        yield from _step(found["type"], attributes, _SUMMARY.sub("", found["body"]).strip())
    if text := content[start:].strip():
        yield text


def _step(kind: str, attributes: Mapping[str, str], body: str) -> Iterator[Part]:
    id, fenced = attributes.get("id"), _FENCE.search(body)
    if kind == "reasoning":
        lines = html.unescape(body).split("\n")
        yield Reasoning("\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip())
    elif kind == "code_interpreter":
        output = _output(attributes["output"]) if "output" in attributes else None
        yield from called(kind, {"code": fenced[1] if fenced else html.unescape(body)}, id, output)
    elif "content" in attributes:  # Versions before 0.6 wrote all calls of an answer into one block.
        for field, block in (("content", "tool_call"), ("results", "tool_result")):
            listed = _value(attributes.get(field, "[]"))
            yield from parts_of([{**one, "type": block} for one in listed if isinstance(one, dict)])
    else:
        result = attributes.get("result") or html.unescape(body)
        fenced = _FENCE.fullmatch(result)
        output = _output(fenced[1] if fenced else result)
        is_done = bool(result) or attributes.get("done") == "true"
        arguments = _value(attributes.get("arguments", ""))
        yield from called(attributes.get("name"), arguments, id, output if is_done else None)


def _output(text: str) -> Any:
    """The result of a call: the text that a tool has returned, or a list of blocks."""
    value = _value(text)
    if isinstance(value, list):
        return value
    try:
        once = loads(text, "an attribute")
    except InputError:
        return text
    return once if isinstance(once, str) else text


def _value(text: str) -> Any:
    """JSON in an attribute, which may be JSON in a text; another text as it is."""
    value: Any = text
    for _ in range(2):
        try:
            value = loads(value, "an attribute") if isinstance(value, str) else value
        except InputError:
            return value
    return value


OPENWEBUI = Program(
    "openwebui",
    "Open WebUI's export, or its database",
    _is_openwebui,
    _parts,
    _of_openwebui,
    parents=("parentId",),
    kept=_KEPT,
    is_database=lambda source: source.has(chat={"id", "user_id", "title", "chat"}),
    rows=lambda source: source.records("chat", _COLUMNS, "ORDER BY created_at, id"),
)


_LISTS = ("messagesTree", "messages")
_KEPT_OF_LIBRECHAT = ("error", "unfinished", "feedback", "finish_reason", "plugin", "endpoint", "iconURL")


def _is_librechat(value: Any) -> bool:
    return fields.has(value, conversationId=str) and any(isinstance(value.get(one), list) for one in _LISTS)


def _of_librechat(record: fields.Record) -> Iterator[ChatRecord]:
    listed = next(record[name] for name in _LISTS if isinstance(record.get(name), list))
    options = fields.record(record, "options")
    messages = [piece for parent, message in _flat(listed) for piece in _pieces(message, parent)]
    others = {"model": fields.text(options, "model"), "metadata": fields.filled(record, ("endpoint",))}
    system = options.get("promptPrefix") or options.get("system")
    yield ChatRecord(record, messages, record["conversationId"], others, system)


def _flat(messages: list[Any]) -> Iterator[tuple[str | None, fields.Record]]:
    """Each message with the key of its parent: of the message around it, else of its field."""
    waiting: list[tuple[str | None, bool, Any]] = [(None, False, one) for one in reversed(messages)]
    while waiting:
        parent, is_nested, item = waiting.pop()
        message = as_object(item, "a message")
        yield parent if is_nested else fields.text(message, "parentMessageId"), message
        key = fields.text(message, "messageId")
        waiting += [(key, True, one) for one in reversed(fields.values(message, "children"))]


def _pieces(message: fields.Record, parent: str | None) -> Iterator[fields.Record]:
    """A message, and what its person has said while it was written (`steer`)."""
    key = fields.text(message, "messageId")
    if key is None:
        raise InputError("a message has no 'messageId'")
    sender = fields.text(message, "sender") or ""
    is_user = message.get("isCreatedByUser")
    role = USER if is_user or (is_user is None and sender.lower() == "user") else ASSISTANT
    content, text = message.get("content"), text_in(message.get("text"))
    blocks = content if isinstance(content, list) and content else [text or text_in(content)]
    is_agent = message.get("endpoint") == "agents" and sender != message.get("model")
    pieces = [[*of_one] for _, of_one in groupby(blocks, lambda block: fields.at(block, "type") == "steer")]
    for number, piece in enumerate(pieces, 1):
        is_last = number == len(pieces)
        parts = [part for block in piece for part in _steered(block)]
        speaker = USER if parts else role
        parts = parts or [*_rounds(piece)]
        if not parts and is_last and text:
            parts = [text]
        if number == 1 and role == USER:
            parts = [*_quotes(message), *parts]
        if is_last:
            parts += [*files_of(message.get("files")), *files_of(message.get("attachments"))]
        name = fields.text(message, "name") or (sender if is_agent and speaker == ASSISTANT else None)
        id = key if is_last else f"{key}-s{number}"
        one = {"id": id, "parent": parent, "role": speaker, "parts": parts, "name": name}
        kept = fields.filled(message, _KEPT_OF_LIBRECHAT) if is_last else {}
        yield one | fields.filled(message, ("createdAt", "model")) | kept
        parent = id


def _steered(block: Any) -> list[Part]:
    """The parts of what a person has said in the middle of an answer."""
    if fields.at(block, "type") != "steer":
        return []
    return [*_quotes(block), text_in(block.get("steer")), *files_of(block.get("files"))]


def _quotes(record: fields.Record) -> Iterator[str]:
    """The passages to which a person has referred, which LibreChat puts before the text for the model."""
    for quote in record.get("quotes") or ():
        if text := text_in(quote):
            yield "\n".join(f"> {line}" for line in text.split("\n"))


def _rounds(blocks: Sequence[Any]) -> Iterator[Part]:
    """The parts of an answer; calls that `tool_call_ids` names were made at once, before their results."""
    together: set[str] = set()
    results: list[Part] = []
    for block in blocks:
        parts = parts_of(block)
        named = fields.values(block, "tool_call_ids")
        call = next((part for part in parts if isinstance(part, ToolUse)), None)
        if parts and all(isinstance(part, Other) for part in parts):  # A note of the program about the calls.
            yield from parts
            continue
        if named or call is None or call.id not in together:
            yield from results
            results = []
        together = {*named} or together
        if call is None or call.id not in together:
            yield from parts
        else:
            yield call
            results += [part for part in parts if isinstance(part, ToolResult)]
    yield from results


LIBRECHAT = Program(
    "librechat",
    "a conversation of LibreChat",
    _is_librechat,
    ready,
    _of_librechat,
    parents=("parent",),
    kept=_KEPT_OF_LIBRECHAT,
)
