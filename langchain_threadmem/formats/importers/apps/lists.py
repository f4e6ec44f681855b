"""Apps whose exports are lists of chats with lists of messages, see `program`.

The fields follow ChatGPTNextWeb/NextChat (app/store/chat.ts), enricoros/big-AGI
(src/modules/trade/trade.types.ts), janhq/jan and CherryHQ/cherry-studio. Those of TypingMind and Mistral are
not confirmed by a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.chats import text_or_none
from langchain_threadmem.formats.importers.json_items import Record, object_in
from langchain_threadmem.formats.importers.program import (
    ChatRecord,
    Program,
    ReadParts,
    itself,
    said_of,
    standard_parts,
)
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    Other,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
)


def _is_nextchat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("chat-next-web-store"), dict)


def _of_nextchat(value: Record) -> Iterator[ChatRecord]:
    for session in value["chat-next-web-store"].get("sessions") or ():
        mask = object_in(session, "mask")
        config = mask.get("modelConfig")
        model = config.get("model") if isinstance(config, dict) else None
        record = {**session, "model": model, "created": None}
        yield ChatRecord(record, session.get("messages") or [])


def _parts_of_nextchat(message: Record) -> Iterator[Part]:
    for tool in message.get("tools") or ():
        if isinstance(tool, dict):
            yield from parts_of(
                {"type": "tool_call", "function": tool.get("function") or {}, "id": tool.get("id")}
            )
            if tool.get("content") is not None or tool.get("errorMsg"):
                output = tool.get("content") or tool.get("errorMsg")
                yield ToolResult(output, text_or_none(tool.get("id")), None, bool(tool.get("isError")))
    yield from standard_parts(message)
    if message.get("audio_url"):
        yield file_of({"type": "audio", "url": message["audio_url"]}, is_beside=True)


NEXTCHAT = Program("nextchat", "NextChat's backup", _is_nextchat, _of_nextchat, _parts_of_nextchat)


_NAMES = ("systemPurposeId", "userTitle", "autoTitle")
"""Fields that only conversations of big-AGI have."""


def _is_big_agi(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    return any(name in value for name in _NAMES) or any(
        isinstance(one, dict) and isinstance(one.get("fragments"), list) for one in messages
    )


def _parts_of_big_agi(message: Record) -> Iterator[Part]:
    fragments = message.get("fragments")
    if not isinstance(fragments, list):
        yield from parts_of(message.get("text"))
        return
    for fragment in fragments:
        part = object_in(fragment, "part")
        kind = part.get("pt")
        if kind == "text":
            yield from parts_of(part.get("text"))
        elif kind == "ma":
            yield Reasoning(str(part.get("aText") or ""))
        elif kind == "error":
            yield from parts_of(part.get("error"))
        elif kind == "tool_invocation":
            call = part.get("invocation") or {}
            name = text_or_none(call.get("name")) or str(call.get("type"))
            yield ToolUse(name, call.get("args") or call.get("code"), text_or_none(part.get("id")))
        elif kind == "tool_response":
            response = part.get("response") or {}
            yield ToolResult(
                response.get("result"),
                text_or_none(part.get("id")),
                text_or_none(response.get("name")),
                bool(part.get("error")),
            )
        elif fragment.get("ft") == "attachment" or kind in ("reference", "image_ref", "doc"):
            value = {**fragment, "type": "image" if kind == "image_ref" else "file"}
            yield file_of(value, is_beside=fragment.get("ft") == "attachment")
        elif kind not in ("_pt_sentinel", "ph", None):
            yield Other(fragment)


BIG_AGI = Program("big_agi", "big-AGI's backup", _is_big_agi, itself, _parts_of_big_agi)


def _is_jan(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.get("object") == "thread.message" or ("role" in value and _has_values(value.get("content")))


def _has_values(content: Any) -> bool:
    """Whether the text of a block is the value of an object."""
    blocks = content if isinstance(content, list) else []
    return any(
        isinstance(block, dict) and isinstance(block.get("text"), dict) and "value" in block["text"]
        for block in blocks
    )


def _parts_of_jan(message: Record) -> Iterator[Part]:
    yield from parts_of(message.get("content"))
    metadata = message.get("metadata")
    calls = metadata.get("tool_calls") if isinstance(metadata, dict) else None
    for call in calls if isinstance(calls, list) else ():
        inner = call.get("tool") if isinstance(call.get("tool"), dict) else call
        yield from parts_of({**inner, "type": "tool_call"})
        if isinstance(call.get("response"), dict):
            yield ToolResult(call["response"].get("content"), text_or_none(inner.get("id")))


JAN = Program("jan", "messages.jsonl of a thread of Jan", _is_jan, itself, _parts_of_jan, _is_jan)


def _is_typingmind(value: Any) -> bool:
    return _is_chat_of_typingmind(value) or (
        isinstance(value, dict)
        and isinstance(value.get("data"), dict)
        and isinstance(value["data"].get("chats"), list)
    )


def _is_chat_of_typingmind(value: Any) -> bool:
    return isinstance(value, dict) and "chatID" in value and isinstance(value.get("messages"), list)


def _of_typingmind(value: Record) -> Iterator[ChatRecord]:
    chats = [value] if _is_chat_of_typingmind(value) else value["data"]["chats"]
    return (ChatRecord(chat, chat.get("messages") or []) for chat in chats)


TYPINGMIND = Program("typingmind", "TypingMind's export", _is_typingmind, _of_typingmind, standard_parts)


def _is_cherry(value: Any) -> bool:
    database = value.get("indexedDB") if isinstance(value, dict) else None
    return isinstance(database, dict) and isinstance(database.get("topics"), list)


def _of_cherry(value: Record) -> Iterator[ChatRecord]:
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


def _ids(message: Record, of_message: Mapping[Any, Sequence[Any]]) -> Sequence[Any]:
    """The ids of the blocks of a message, which the message or the blocks name."""
    return message.get("blocks") or of_message.get(message.get("id"), ())


def _topics_of_cherry(value: Record) -> dict[Any, Record]:
    """The titles of topics, which are in the state of the assistants."""
    state = value.get("localStorage")
    text = state.get("persist:cherry-studio") if isinstance(state, dict) else None
    try:
        outer = _json(text)
        assistants = _json(outer.get("assistants")).get("assistants") or ()
        topics = [topic for one in assistants for topic in one.get("topics") or ()]
    except (AttributeError, TypeError):
        return {}
    return {topic.get("id"): {"name": topic.get("name"), "pinned": topic.get("pinned")} for topic in topics}


def _json(value: Any) -> Any:
    from langchain_threadmem.messages.records import loads

    try:
        return loads(value, "a state") if isinstance(value, str) else value or {}
    except InputError:
        return {}


def _parts_of_cherry(message: Record) -> Iterator[Part]:
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
            id = text_or_none(block.get("toolId"))
            yield ToolUse(text_or_none(block.get("toolName")) or "tool", block.get("arguments"), id)
            if content is not None:
                yield ToolResult(content, id, text_or_none(block.get("toolName")))
        elif kind in ("file", "image", "video"):
            yield file_of(block, is_beside=kind == "file")
        else:
            yield Other(block)


def _said_of_cherry(conversation: ChatRecord, read: ReadParts, position: str) -> list[Said]:
    """The messages of a topic: several answers to one question are siblings, and one of them is continued."""
    said: list[Said] = []
    previous: str | None = None
    asked: str | None = None
    is_chosen = False
    for item in conversation.messages:
        one = said_of(item, previous, read, position)
        model = item.get("model")
        one.model = (
            text_or_none(model.get("id") or model.get("name")) if isinstance(model, dict) else one.model
        )
        question = text_or_none(item.get("askId"))
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
    "cherry", "Cherry Studio's backup", _is_cherry, _of_cherry, _parts_of_cherry, said=_said_of_cherry
)


def _is_mistral(value: Any) -> bool:
    return _is_mistral_message(value) or (
        isinstance(value, list) and bool(value) and all(map(_is_mistral_message, value))
    )


def _is_mistral_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and "parentId" in value
        and "version" in value
    )


def _parts_of_mistral(message: Record) -> Iterator[Part]:
    chunks = message.get("contentChunks")
    parts = parts_of(chunks)
    yield from (
        parts if any(isinstance(part, str) for part in parts) else [*parts_of(message.get("content")), *parts]
    )
    yield from files_of(message.get("files"))


def _said_of_mistral(conversation: ChatRecord, read: ReadParts, position: str) -> list[Said]:
    """The messages of a chat with their parents; another version of a message is a sibling."""
    said: list[Said] = []
    for item in conversation.messages:
        one = said_of(item, said[-1].key if said else None, read, position)
        if item.get("parentId") is not None or not said:
            one.parent = text_or_none(item.get("parentId"))
        said.append(one)
    return said


MISTRAL = Program(
    "mistral",
    "chats of Mistral's export",
    _is_mistral,
    itself,
    _parts_of_mistral,
    _is_mistral_message,
    _said_of_mistral,
)


PROGRAMS = (NEXTCHAT, BIG_AGI, JAN, TYPINGMIND, CHERRY, MISTRAL)
