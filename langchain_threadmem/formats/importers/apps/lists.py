"""Apps whose exports are lists of chats with lists of messages, see `program`.

The fields follow ChatGPTNextWeb/NextChat (app/store/chat.ts), enricoros/big-AGI
(src/modules/trade/trade.types.ts), janhq/jan, CherryHQ/cherry-studio, lobehub/lobe-chat (dataExporter and the
schema of messages) and Mintplex-Labs/anything-llm (convertTo.js). Those of TypingMind and Mistral are
not confirmed by a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import file_of, files_of, parts_of
from langchain_threadmem.formats.importers.content_parts import (
    Other,
    Part,
    Reasoning,
    ToolResult,
    ToolUse,
    called,
)
from langchain_threadmem.formats.importers.program import ChatRecord, Program, all_are, standard_parts
from langchain_threadmem.formats.importers.said import ASSISTANT, USER
from langchain_threadmem.formats.importers.source import FAULTS
from langchain_threadmem.messages.records import loads


def _of_nextchat(value: fields.Record) -> Iterator[ChatRecord]:
    for session in value["chat-next-web-store"].get("sessions") or ():
        record = {**session, "model": fields.at(session, "mask", "modelConfig", "model")}
        yield ChatRecord(record, session.get("messages") or [])


def _parts_of_nextchat(message: fields.Record) -> Iterator[Part]:
    for tool in filter(lambda tool: isinstance(tool, dict), fields.values(message, "tools")):
        error = tool.get("errorMsg") if tool.get("isError") else None
        yield from parts_of({**tool, "type": "tool_call", "output": tool.get("content"), "error": error})
    yield from standard_parts(message)
    if message.get("audio_url"):
        yield file_of({"type": "audio", "url": message["audio_url"]}, is_beside=True)


NEXTCHAT = Program(
    "nextchat",
    "NextChat's backup",
    lambda value: isinstance(fields.at(value, "chat-next-web-store"), dict),
    _parts_of_nextchat,
    _of_nextchat,
)


def _is_big_agi(value: Any) -> bool:
    if not fields.has(value, messages=list):
        return False
    names = ("systemPurposeId", "userTitle", "autoTitle")
    return any(one in value for one in names) or any(
        fields.has(one, fragments=list) for one in value["messages"]
    )


def _parts_of_big_agi(message: fields.Record) -> Iterator[Part]:
    fragments = message.get("fragments")
    for fragment in fragments if isinstance(fragments, list) else [{"part": {**message, "pt": "text"}}]:
        part = fields.record(fragment, "part")
        kind, id = part.get("pt"), fields.text(part, "id")
        if kind in ("text", "error"):
            yield from parts_of(part.get(kind))
        elif kind == "ma":
            yield Reasoning(str(part.get("aText") or ""))
        elif kind == "tool_invocation":
            call = part.get("invocation") or {}
            name = fields.text(call, "name") or str(call.get("type"))
            yield ToolUse(name, call.get("args") or call.get("code"), id)
        elif kind == "tool_response":
            response = part.get("response") or {}
            yield ToolResult(
                response.get("result"), id, fields.text(response, "name"), bool(part.get("error"))
            )
        elif fragment.get("ft") == "attachment" or kind in ("reference", "image_ref", "doc"):
            value = {**fragment, "type": "image" if kind == "image_ref" else "file"}
            yield file_of(value, is_beside=fragment.get("ft") == "attachment")
        elif kind not in ("_pt_sentinel", "ph", None):
            yield Other(fragment)


BIG_AGI = Program("big_agi", "big-AGI's backup", _is_big_agi, _parts_of_big_agi)


def _is_jan(value: Any) -> bool:
    """Whether a value is a message, in which the text of a block is the value of an object."""
    has_values = any("value" in fields.record(block, "text") for block in fields.values(value, "content"))
    return fields.at(value, "object") == "thread.message" or (has_values and "role" in value)


def _parts_of_jan(message: fields.Record) -> Iterator[Part]:
    yield from parts_of(message.get("content"))
    for call in fields.values(message, "metadata", "tool_calls"):
        output = fields.at(call, "response", "content")
        yield from parts_of({**(fields.record(call, "tool") or call), "type": "tool_call", "output": output})


JAN = Program("jan", "messages.jsonl of a thread of Jan", _is_jan, _parts_of_jan, is_message=_is_jan)


def _is_chat_of_typingmind(value: Any) -> bool:
    return fields.has(value, messages=list) and "chatID" in value


def _of_typingmind(value: fields.Record) -> Iterator[ChatRecord]:
    chats = [value] if _is_chat_of_typingmind(value) else value["data"]["chats"]
    return (ChatRecord(chat, chat.get("messages") or []) for chat in chats)


TYPINGMIND = Program(
    "typingmind",
    "TypingMind's export",
    lambda value: _is_chat_of_typingmind(value) or fields.has(fields.at(value, "data"), chats=list),
    conversations=_of_typingmind,
)


def _of_cherry(value: fields.Record) -> Iterator[ChatRecord]:
    database = value["indexedDB"]
    blocks = [one for one in database.get("message_blocks") or () if isinstance(one, dict)]
    by_id = {one.get("id"): one for one in blocks}
    of_message: dict[Any, list[Any]] = {}
    for one in blocks:
        of_message.setdefault(one.get("messageId"), []).append(one.get("id"))
    names = _topics_of_cherry(value)
    for topic in database["topics"]:
        messages = []
        for one in fields.records({"messages": [], **topic}, "messages", "a topic"):
            ids = one.get("blocks") or of_message.get(one.get("id")) or []
            model = fields.text(one.get("model"), "id", "name") or fields.text(one, "model")
            messages.append({**one, "_blocks": [by_id[id] for id in ids if id in by_id], "model": model})
        yield ChatRecord({**topic, **names.get(topic.get("id"), {})}, _with_siblings(messages))


def _topics_of_cherry(value: fields.Record) -> dict[Any, fields.Record]:
    """The titles of topics, which are in the state of the assistants."""
    try:
        outer = loads(value["localStorage"]["persist:cherry-studio"], "a state")
        assistants = loads(outer["assistants"], "a state")["assistants"]
        topics = [topic for one in assistants for topic in one.get("topics") or ()]
        return {one.get("id"): {"name": one.get("name"), "pinned": one.get("pinned")} for one in topics}
    except FAULTS:
        return {}


def _parts_of_cherry(message: fields.Record) -> Iterator[Part]:
    for block in message["_blocks"]:
        kind, content = block.get("type"), block.get("content")
        if kind in ("main_text", "code", "translation"):
            yield from parts_of(content)
        elif kind == "thinking":
            yield Reasoning(str(content or ""))
        elif kind == "tool":
            id, name = fields.text(block, "toolId"), fields.text(block, "toolName")
            yield from called(name, block.get("arguments"), id, content)
        elif kind in ("file", "image", "video"):
            yield file_of(block, is_beside=kind == "file")
        else:
            yield Other(block)
    if not message["_blocks"]:
        yield from standard_parts(message)


def _with_siblings(messages: Sequence[fields.Record]) -> Iterator[fields.Record]:
    """The messages with parents: several answers to one question are siblings, and one is continued."""
    previous: str | None = None
    asked: str | None = None
    is_chosen = False
    keys: set[str | None] = set()
    for one in messages:
        key, question = fields.id_in(one, "id"), fields.text(one, "askId")
        parent = previous
        if one.get("role") == ASSISTANT and question in keys:
            parent, is_first = question, asked != question
            chosen = bool(one.get("foldSelected") or one.get("useful"))
            if is_first or chosen or not is_chosen:
                previous, is_chosen = key, chosen or (is_chosen and not is_first)
            asked = question
        else:
            previous = key
        keys.add(key)
        yield {**one, "parent": parent}


CHERRY = Program(
    "cherry",
    "Cherry Studio's backup",
    lambda value: fields.has(fields.at(value, "indexedDB"), topics=list),
    _parts_of_cherry,
    _of_cherry,
    parents=("parent",),
)


def _is_mistral(value: Any) -> bool:
    return fields.has(value, role=str) and "parentId" in value and "version" in value


def _parts_of_mistral(message: fields.Record) -> Iterator[Part]:
    parts = parts_of(message.get("contentChunks"))
    has_text = any(isinstance(part, str) for part in parts)
    yield from (parts if has_text else [*parts_of(message.get("content")), *parts])
    yield from files_of(message.get("files"))


def _of_mistral(value: fields.Record) -> Iterator[ChatRecord]:
    """The chat of a file; another version of a message is a sibling, and only the first message is a root."""
    first, *others = value["messages"]
    for one in others:
        if one.get("parentId") is None:
            one.pop("parentId", None)
    yield ChatRecord(value, [first, *others])


MISTRAL = Program(
    "mistral",
    "chats of Mistral's export",
    lambda value: all_are(value, _is_mistral),
    _parts_of_mistral,
    _of_mistral,
    _is_mistral,
    parents=("parentId",),
)


def _of_lobechat(value: fields.Record) -> Iterator[ChatRecord]:
    """The messages of each topic, and of each session without one; a subtopic is a branch of its topic."""
    data = value["data"]
    plugins = {one.get("id"): one for one in fields.values(data, "messagePlugins")}
    tables = ("sessions", "topics", "threads")
    abouts = {fields.text(one, "id"): one for name in tables for one in fields.values(data, name)}
    chats: dict[str, list[fields.Record]] = {}
    ends: dict[tuple[str, str | None], str | None] = {}
    listed = fields.records(data, "messages", "'data'")
    for one in sorted(listed, key=lambda one: str(one.get("createdAt") or "")):
        name, thread = fields.text(one, "topicId", "sessionId") or "inbox", fields.text(one, "threadId")
        before = ends.get((name, thread)) or fields.text(abouts.get(thread), "sourceMessageId")
        plugin = fields.record(plugins, str(one.get("id")))
        about = {
            "parent": one.get("parentId") or before,
            "reasoning": fields.at(one, "reasoning", "content"),
            "tool_call_id": plugin.get("toolCallId"),
            "name": plugin.get("apiName"),
            "tool_calls": [{**call, "name": call.get("apiName")} for call in one.get("tools") or ()],
            "starred": one.get("favorite"),
        }
        ends[name, thread] = fields.text(one, "id")
        chats.setdefault(name, []).append(one | about)
    for name, messages in chats.items():
        about = abouts.get(name, {})
        yield ChatRecord({**about, "starred": about.get("favorite")}, messages, name)


LOBECHAT = Program(
    "lobechat",
    "LobeChat's export",
    lambda value: fields.has(fields.at(value, "data"), messages=list, topics=list, sessions=list),
    conversations=_of_lobechat,
    parents=("parent",),
)


def _is_anything_llm(value: Any) -> bool:
    return fields.has(value, prompt=str, workspace=str) and {"response", "sent_at"} <= value.keys()


def _of_anything_llm(value: fields.Record) -> Iterator[ChatRecord]:
    """The chats of each workspace, of which the export has neither the threads nor the tools."""
    workspaces: dict[str, list[fields.Record]] = {}
    for one in fields.records(value, "messages", "the export"):
        messages = workspaces.setdefault(f"{one['workspace']}-{fields.text(one, 'username') or 'user'}", [])
        key, about = f"anythingllm-{one.get('id')}", {"created": one["sent_at"], "rating": one.get("rating")}
        files = fields.values(one, "attachments")
        messages.append(
            {"id": f"{key}-prompt", "role": USER, "content": one["prompt"], "files": files} | about
        )
        messages.append({"id": key, "role": ASSISTANT, "content": one["response"]} | about)
    for name, messages in workspaces.items():
        yield ChatRecord({"title": name.rpartition("-")[0]}, messages, f"anythingllm-{name}")


ANYTHING_LLM = Program(
    "anything_llm",
    "AnythingLLM's export as JSON",
    _is_anything_llm,
    conversations=_of_anything_llm,
    is_message=_is_anything_llm,
    kept=("rating",),
)
PROGRAMS = (NEXTCHAT, BIG_AGI, JAN, TYPINGMIND, CHERRY, MISTRAL, LOBECHAT, ANYTHING_LLM)
