"""Apps whose exports are lists of chats with lists of messages, see `program`.

The fields follow ChatGPTNextWeb/NextChat (app/store/chat.ts), enricoros/big-AGI
(src/modules/trade/trade.types.ts), janhq/jan and CherryHQ/cherry-studio. Those of TypingMind and Mistral are
not confirmed by a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.parts import Other, Part, Reasoning, ToolResult, ToolUse
from langchain_threadmem.formats.importers.program import (
    ChatRecord,
    Program,
    ReadMessage,
    standard_parts,
)
from langchain_threadmem.formats.importers.said import ASSISTANT, Said
from langchain_threadmem.messages.records import loads


def _is_nextchat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat-next-web-store"), dict)


def _of_nextchat(value: fields.Record) -> Iterator[ChatRecord]:
    for session in value["chat-next-web-store"].get("sessions") or ():
        record = {**session, "model": fields.at(session, "mask", "modelConfig", "model")}
        yield ChatRecord(record, session.get("messages") or [])


def _parts_of_nextchat(message: fields.Record) -> Iterator[Part]:
    for tool in message.get("tools") or ():
        if isinstance(tool, dict):
            yield from parts_of(
                {"type": "tool_call", "function": tool.get("function") or {}, "id": tool.get("id")}
            )
            if tool.get("content") is not None or tool.get("errorMsg"):
                output = tool.get("content") or tool.get("errorMsg")
                yield ToolResult(output, fields.text(tool, "id"), None, bool(tool.get("isError")))
    yield from standard_parts(message)
    if message.get("audio_url"):
        yield file_of({"type": "audio", "url": message["audio_url"]}, is_beside=True)


NEXTCHAT = Program("nextchat", "NextChat's backup", _is_nextchat, _parts_of_nextchat, _of_nextchat)


_NAMES = ("systemPurposeId", "userTitle", "autoTitle")
"""Fields that only conversations of big-AGI have."""


def _is_big_agi(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    return any(name in value for name in _NAMES) or any(
        isinstance(one, dict) and isinstance(one.get("fragments"), list) for one in messages
    )


def _parts_of_big_agi(message: fields.Record) -> Iterator[Part]:
    fragments = message.get("fragments")
    if not isinstance(fragments, list):
        yield from parts_of(message.get("text"))
        return
    for fragment in fragments:
        part = fields.record(fragment, "part")
        kind = part.get("pt")
        if kind == "text":
            yield from parts_of(part.get("text"))
        elif kind == "ma":
            yield Reasoning(str(part.get("aText") or ""))
        elif kind == "error":
            yield from parts_of(part.get("error"))
        elif kind == "tool_invocation":
            call = part.get("invocation") or {}
            name = fields.text(call, "name") or str(call.get("type"))
            yield ToolUse(name, call.get("args") or call.get("code"), fields.text(part, "id"))
        elif kind == "tool_response":
            response = part.get("response") or {}
            yield ToolResult(
                response.get("result"),
                fields.text(part, "id"),
                fields.text(response, "name"),
                bool(part.get("error")),
            )
        elif fragment.get("ft") == "attachment" or kind in ("reference", "image_ref", "doc"):
            value = {**fragment, "type": "image" if kind == "image_ref" else "file"}
            yield file_of(value, is_beside=fragment.get("ft") == "attachment")
        elif kind not in ("_pt_sentinel", "ph", None):
            yield Other(fragment)


BIG_AGI = Program("big_agi", "big-AGI's backup", _is_big_agi, _parts_of_big_agi)


def _is_jan(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.get("object") == "thread.message" or ("role" in value and _has_values(value.get("content")))


def _has_values(content: Any) -> bool:
    """Whether the text of a block is the value of an object."""
    blocks = content if isinstance(content, list) else []
    return any("value" in fields.record(block, "text") for block in blocks)


def _parts_of_jan(message: fields.Record) -> Iterator[Part]:
    yield from parts_of(message.get("content"))
    for call in fields.values(message, "metadata", "tool_calls"):
        inner = call.get("tool") if isinstance(call.get("tool"), dict) else call
        yield from parts_of({**inner, "type": "tool_call"})
        if isinstance(call.get("response"), dict):
            yield ToolResult(call["response"].get("content"), fields.text(inner, "id"))


JAN = Program("jan", "messages.jsonl of a thread of Jan", _is_jan, _parts_of_jan, is_message=_is_jan)


def _is_typingmind(value: Any) -> bool:
    return _is_chat_of_typingmind(value) or isinstance(fields.at(value, "data", "chats"), list)


def _is_chat_of_typingmind(value: Any) -> bool:
    return isinstance(fields.at(value, "messages"), list) and "chatID" in value


def _of_typingmind(value: fields.Record) -> Iterator[ChatRecord]:
    chats = [value] if _is_chat_of_typingmind(value) else value["data"]["chats"]
    return (ChatRecord(chat, chat.get("messages") or []) for chat in chats)


TYPINGMIND = Program("typingmind", "TypingMind's export", _is_typingmind, standard_parts, _of_typingmind)


def _is_cherry(value: Any) -> bool:
    return isinstance(fields.at(value, "indexedDB", "topics"), list)


def _of_cherry(value: fields.Record) -> Iterator[ChatRecord]:
    database = value["indexedDB"]
    listed = [one for one in database.get("message_blocks") or () if isinstance(one, dict)]
    blocks = {one.get("id"): one for one in listed}
    of_message: dict[Any, list[Any]] = {}
    for one in listed:
        of_message.setdefault(one.get("messageId"), []).append(one.get("id"))
    names = _topics_of_cherry(value)
    for topic in database["topics"]:
        messages = [
            {**message, "_blocks": [blocks[id] for id in _ids(message, of_message) if id in blocks]}
            if isinstance(message, dict)
            else message
            for message in topic.get("messages") or ()
        ]
        yield ChatRecord({**topic, **names.get(topic.get("id"), {})}, messages)


def _ids(message: fields.Record, of_message: Mapping[Any, Sequence[Any]]) -> Sequence[Any]:
    """The ids of the blocks of a message, which the message or the blocks name."""
    return message.get("blocks") or of_message.get(message.get("id"), ())


def _topics_of_cherry(value: fields.Record) -> dict[Any, fields.Record]:
    """The titles of topics, which are in the state of the assistants."""
    try:
        outer = _json(fields.at(value, "localStorage", "persist:cherry-studio"))
        assistants = _json(outer.get("assistants")).get("assistants") or ()
        topics = [topic for one in assistants for topic in one.get("topics") or ()]
    except (AttributeError, TypeError):
        return {}
    return {topic.get("id"): {"name": topic.get("name"), "pinned": topic.get("pinned")} for topic in topics}


def _json(value: Any) -> Any:
    try:
        return loads(value, "a state") if isinstance(value, str) else value or {}
    except InputError:
        return {}


def _parts_of_cherry(message: fields.Record) -> Iterator[Part]:
    blocks = message.get("_blocks") or []
    if not blocks:
        yield from standard_parts(message)
        return
    for block in blocks:
        kind, content = block.get("type"), block.get("content")
        if kind in ("main_text", "code", "translation"):
            yield from parts_of(content)
        elif kind == "thinking":
            yield Reasoning(str(content or ""))
        elif kind == "tool":
            id = fields.text(block, "toolId")
            yield ToolUse(fields.text(block, "toolName") or "tool", block.get("arguments"), id)
            if content is not None:
                yield ToolResult(content, id, fields.text(block, "toolName"))
        elif kind in ("file", "image", "video"):
            yield file_of(block, is_beside=kind == "file")
        else:
            yield Other(block)


def _said_of_cherry(conversation: ChatRecord, read: ReadMessage, position: str) -> list[Said]:
    """The messages of a topic: several answers to one question are siblings, and one of them is continued."""
    said: list[Said] = []
    previous: str | None = None
    asked: str | None = None
    is_chosen = False
    for item in conversation.messages:
        one = read(item, previous, position)
        model = item.get("model")
        one.model = (
            fields.text_or_none(model.get("id") or model.get("name"))
            if isinstance(model, dict)
            else one.model
        )
        question = fields.text(item, "askId")
        if one.role == ASSISTANT and question is not None and any(before.key == question for before in said):
            one.parent = question
            is_first = asked != question
            chosen = bool(item.get("foldSelected") or item.get("useful"))
            if is_first or chosen or not is_chosen:
                previous, is_chosen = one.key, chosen or (is_chosen and not is_first)
            asked = question
        else:
            previous = one.key
        said.append(one)
    return said


CHERRY = Program(
    "cherry", "Cherry Studio's backup", _is_cherry, _parts_of_cherry, _of_cherry, said=_said_of_cherry
)


def _is_mistral(value: Any) -> bool:
    return _is_mistral_message(value) or (
        isinstance(value, list) and all(map(_is_mistral_message, value or [0]))
    )


def _is_mistral_message(value: Any) -> bool:
    return isinstance(fields.at(value, "role"), str) and "parentId" in value and "version" in value


def _parts_of_mistral(message: fields.Record) -> Iterator[Part]:
    chunks = message.get("contentChunks")
    parts = parts_of(chunks)
    yield from (
        parts if any(isinstance(part, str) for part in parts) else [*parts_of(message.get("content")), *parts]
    )
    yield from files_of(message.get("files"))


def _of_mistral(value: fields.Record) -> Iterator[ChatRecord]:
    """The chat of a file; another version of a message is a sibling, and only the first message is a root."""
    first, *others = value["messages"]
    linked = (one if one.get("parentId") is not None else _unlinked(one) for one in others)
    yield ChatRecord(value, [first, *linked])


def _unlinked(message: fields.Record) -> fields.Record:
    return {name: value for name, value in message.items() if name != "parentId"}


MISTRAL = Program(
    "mistral",
    "chats of Mistral's export",
    _is_mistral,
    _parts_of_mistral,
    _of_mistral,
    _is_mistral_message,
    parents=("parentId",),
)


PROGRAMS = (NEXTCHAT, BIG_AGI, JAN, TYPINGMIND, CHERRY, MISTRAL)
