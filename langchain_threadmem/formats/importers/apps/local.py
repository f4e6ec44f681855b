"""Apps on the own computer: LM Studio, Chatbox and SillyTavern, with versions of messages.

One version of a message is shown, and the following messages continue the version that is shown. The messages
of LM Studio and SillyTavern have no ids. Chatbox's export of all data has an object for each session, its
earlier topics and its forks.

A log of SillyTavern that branches from another one begins with its messages: these have the same ids, and it
becomes a branch of that conversation. Times have no zone. In a group chat every character has a name.

The fields follow YorkieDev/lmstudio-chat-converter, byteowlz/hstry, chatboxai/chatbox and
SillyTavern/SillyTavern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.blocks import files_of, parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    SYSTEM,
    USER,
    Other,
    Part,
    Reasoning,
    Said,
    ToolResult,
    ToolUse,
    at_once,
    chat_of,
    system_prompt,
)
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def _is_lm_studio(value: object) -> bool:
    """Whether a JSON document is a conversation of LM Studio."""
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    if not messages:
        return isinstance(value, dict) and "systemPrompt" in value and "createdAt" in value
    return all(isinstance(one, dict) and isinstance(one.get("versions"), list) for one in messages)


def _chats_of_lm_studio(source: Source) -> Chats:
    """The conversation of a file."""
    name = source.name.removesuffix(".conversation")
    return source.each(lambda record, position: _chat_of_lm_studio(record, position, name))


def _chat_of_lm_studio(record: fields.Record, position: str, name: str) -> Chat:
    said = system_prompt(record.get("systemPrompt"))
    previous: str | None = None
    for number, item in enumerate(record["messages"], 1):
        where = f"{position}, message {number}"
        message = as_object(item, where)
        versions = [
            as_object(one, where) for one in as_list(message.get("versions"), f"'versions' of {where}")
        ]
        if not versions:
            continue
        shown = message.get("currentlySelected")
        shown = shown if isinstance(shown, int) and 0 <= shown < len(versions) else len(versions) - 1
        keys: list[str] = []
        for version in versions:
            one = _said_of_lm_studio(version, previous, where)
            if one.key in keys:
                one.key = chained_id("import-", one.key, len(keys))
            keys.append(one.key)
            said.append(one)
        previous = keys[shown]
    return chat_of(
        position,
        name,
        said,
        title=fields.text(record, "name"),
        tip=previous,
        created=fields.seconds(record.get("createdAt"), position),
        metadata=fields.kept(
            pinned=bool(record.get("pinned")),
            model=next((one.model for one in reversed(said) if one.model), None),
        ),
    )


def _said_of_lm_studio(version: fields.Record, previous: str | None, position: str) -> Said:
    parts = [*_parts(version, position)]
    role = _ROLES.get(str(version.get("role")), str(version.get("role")))
    sender = version.get("senderInfo")
    steps = version.get("steps")
    infos = (
        [step.get("genInfo") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    )
    model = next((fields.text(info, "identifier") for info in infos if isinstance(info, dict)), None)
    if model is None and isinstance(sender, dict):
        model = fields.text(sender, "senderName")
    key = chained_id("import-", previous, [role, version.get("content"), version.get("steps")])
    return Said(key, previous, role, parts, model=model if role == ASSISTANT else None)


def _parts(version: fields.Record, position: str) -> Iterator[Part]:
    yield from _content(version.get("content"))
    for step in version.get("steps") or ():
        step = as_object(step, f"a step of {position}")
        kind = step.get("type")
        style = step.get("style")
        if kind == "contentBlock":
            is_thought = isinstance(style, dict) and style.get("type") == "thinking"
            for part in _content(step.get("content")):
                yield Reasoning(part) if is_thought and isinstance(part, str) else part
        elif kind not in ("debugInfoBlock", "toolStatus"):
            yield Other(step)


def _content(blocks: Any) -> Iterator[Part]:
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("toolCallRequest", "tool_call_request"):
            id = fields.text(block, "toolCallRequestId", "callId")
            arguments = block.get("parameters", block.get("arguments"))
            yield ToolUse(
                str(block.get("name")), arguments, id or fields.text_or_none(str(block.get("callId") or ""))
            )
        elif kind in ("toolCallResult", "tool_call_result"):
            id = block.get("toolCallRequestId") or block.get("toolCallId") or block.get("callId")
            yield from parts_of({**block, "type": "tool_result", "id": None if id is None else str(id)})
        else:
            yield from parts_of(block)


LM_STUDIO = Format("lm_studio", "a conversation of LM Studio", _chats_of_lm_studio, _is_lm_studio)


_SESSION = "session:"
_LIST = "chat-sessions-list"


def _is_chatbox(value: object) -> bool:
    """Whether a JSON document is an export of Chatbox."""
    return isinstance(value, dict) and (
        _LIST in value or any(name.startswith(_SESSION) for name in value) or _is_old(value)
    )


def _is_old(value: fields.Record) -> bool:
    """Whether an export has its sessions in a list, as the first versions wrote it."""
    sessions = value.get("chat-sessions")
    return isinstance(sessions, list) and all(isinstance(one, dict) and "messages" in one for one in sessions)


def _chats_of_chatbox(source: Source) -> Chats:
    """The conversations of an export: a session, and each of its earlier topics."""

    def read(document: fields.Record, position: str) -> Chats:
        about = {one.get("id"): one for one in document.get(_LIST) or () if isinstance(one, dict)}
        sessions = [value for name, value in document.items() if name.startswith(_SESSION)]
        sessions += document.get("chat-sessions") or []
        for number, session in enumerate(sessions, 1):
            where = f"session {number} of {position}"
            yield from checked(where, _chats_of, session, about, where)

    return source.each(read)


def _chats_of(value: Any, about: dict[Any, fields.Record], position: str) -> Iterator[Chat]:
    session = as_object(value, position)
    name = fields.text(session, "id")
    if name is None:
        raise InputError(f"{position} has no 'id'")
    forks = fields.record(session, "messageForksHash")
    starred = session.get("starred") or about.get(name, {}).get("starred")
    for topic in session.get("threads") or ():
        if isinstance(topic, dict) and topic.get("messages"):
            topic_name = f"{name}-{fields.text_or_none(topic.get('id')) or 'topic'}"
            metadata = fields.kept(topic_of=name)
            yield _chat_of_chatbox(topic_name, topic, topic["messages"], forks, metadata, position)
    yield _chat_of_chatbox(
        name, session, session.get("messages"), forks, fields.kept(starred=bool(starred)), position
    )


def _chat_of_chatbox(
    name: str,
    about: fields.Record,
    messages: Any,
    forks: fields.Record,
    metadata: fields.Record,
    position: str,
) -> Chat:
    said: dict[str, Said] = {}
    end = _add(said, as_list(messages or [], f"'messages' of {position}"), None, forks, position)
    return chat_of(
        position,
        name,
        said.values(),
        title=fields.text(about, "threadName", "name"),
        tip=end,
        created=fields.seconds(about.get("createdAt"), position),
        metadata=metadata | fields.kept(model=next((one.model for one in said.values() if one.model), None)),
    )


def _add(
    said: dict[str, Said], messages: list[Any], previous: str | None, forks: fields.Record, position: str
) -> str | None:
    """Add a list of messages and the forks after them; returns the end of the list."""
    for item in messages:
        message = as_object(item, f"a message of {position}")
        one = _said_of_chatbox(message, previous, position)
        if one.key in said:
            previous = one.key
            continue
        said[one.key] = one
        previous = one.key
        fork = forks.get(one.key)
        for other in (fork.get("lists") if isinstance(fork, dict) else None) or ():
            _add(said, other.get("messages") or [], one.key, forks, position)
    return previous


def _said_of_chatbox(message: fields.Record, previous: str | None, position: str) -> Said:
    key = fields.text(message, "id")
    if key is None:
        raise InputError(f"{position} has a message without 'id'")
    parts = message.get("contentParts")
    read = (
        [*_parts_of_chatbox(parts)] if isinstance(parts, list) and parts else parts_of(message.get("content"))
    )
    role = str(message.get("role") or "user")
    if message.get("reasoningContent") and not isinstance(parts, list):
        read = [*parts_of({"type": "reasoning", "text": message["reasoningContent"]}), *read]
    files = [
        *files_of(message.get("files")),
        *files_of(message.get("pictures")),
        *files_of(message.get("links")),
    ]
    return Said(
        key,
        previous,
        role,
        [*read, *files],
        fields.seconds(message.get("timestamp"), f"message {key!r} of {position}"),
        fields.text(message, "model") if role == ASSISTANT else None,
        is_aside=bool(message.get("isSummary")),
        extra=fields.kept(error=message.get("error"), provider=message.get("aiProvider")),
    )


def _parts_of_chatbox(parts: list[Any]) -> Iterator[Part]:
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool-call":
            id, name = fields.text(part, "toolCallId"), str(part.get("toolName"))
            yield ToolUse(name, part.get("args"), id)
            if part.get("result") is not None:
                yield ToolResult(part["result"], id, name, part.get("state") == "error")
        elif kind == "info":
            continue
        else:
            yield from parts_of(part)


CHATBOX = Format("chatbox", "Chatbox's export", _chats_of_chatbox, _is_chatbox)


_HEADER = ("user_name", "character_name", "chat_metadata")


def _is_log_of_sillytavern(values: Sequence[Any]) -> bool:
    """Whether the lines of a file are those of a chat."""
    if not values or not all(isinstance(value, dict) for value in values):
        return False
    has_header = any(name in values[0] for name in _HEADER) and "mes" not in values[0]
    messages = values[1:] if has_header else values
    return (has_header or bool(messages)) and all("mes" in value and "is_user" in value for value in messages)


def _chats_of_sillytavern(source: Source) -> Chats:
    """The conversation of a file."""
    header: fields.Record = {}
    said: list[Said] = []
    previous: str | None = None
    has_names: set[str] = set()

    def read(value: fields.Record, position: str) -> None:
        nonlocal header, previous
        if "mes" not in value:
            header = value
            return
        texts = _texts(value)
        shown = _shown(value, texts)
        texts[shown] = str(value.get("mes") or texts[shown])
        swipes = _swipes(value, texts, shown, previous, position)
        has_names.update(one.name for one in swipes if one.name and one.role == ASSISTANT)
        said.extend(swipes)
        previous = swipes[shown].key

    yield from source.each(read)
    if len(has_names) < 2:  # A name says who speaks in a group only.
        for one in said:
            one.name = None
    metadata = header.get("chat_metadata")
    source_of = fields.text(metadata, "main_chat")
    yield chat_of(
        "the chat",
        source.name,
        said,
        tip=previous,
        created=_time(header.get("create_date"), "the header"),
        metadata=fields.kept(
            character=fields.text(header, "character_name"),
            user=fields.text(header, "user_name"),
            model=next((one.model for one in reversed(said) if one.model), None),
        ),
        branch_of=[source_of] if source_of and source_of != source.name else [],
    )


def _texts(value: fields.Record) -> list[str]:
    """The texts of a message and of its alternatives."""
    texts = value.get("swipes")
    return (
        [str(text) for text in texts] if isinstance(texts, list) and texts else [str(value.get("mes") or "")]
    )


def _shown(value: fields.Record, texts: Sequence[str]) -> int:
    """The number of the alternative that is shown: that of the file, else the one with the text of `mes`."""
    number = value.get("swipe_id")
    if isinstance(number, int) and 0 <= number < len(texts):
        return number
    return texts.index(value["mes"]) if value["mes"] in texts else len(texts) - 1


def _swipes(
    value: fields.Record, texts: Sequence[str], shown: int, previous: str | None, position: str
) -> list[Said]:
    """The message and its alternatives."""
    infos = fields.values(value, "swipe_info")
    swipes: list[Said] = []
    for number, text in enumerate(texts):
        info = infos[number] if number < len(infos) and isinstance(infos[number], dict) else {}
        is_shown = number == shown
        extra = value.get("extra") if is_shown else info.get("extra")
        extra = extra if isinstance(extra, dict) else {}
        parts: list[Part] = [Reasoning(extra["reasoning"])] if isinstance(extra.get("reasoning"), str) else []
        files = [extra[name] for name in ("file", "image") if extra.get(name)]
        listed = (extra[name] for name in ("files", "media") if isinstance(extra.get(name), list))
        parts += [text, *files_of([*files, *chain.from_iterable(listed)])]
        role = USER if value.get("is_user") else ASSISTANT
        key = chained_id("import-", previous, [role, value.get("name"), text])
        if any(one.key == key for one in swipes):
            key = chained_id("import-", previous, [role, value.get("name"), text, number])
        calls = at_once(_calls(extra))
        is_hidden = bool(value.get("is_system")) and not calls
        swipes.append(
            Said(
                key,
                previous,
                role,
                calls or parts,
                _time((value if is_shown else info).get("send_date") or value.get("send_date"), position),
                fields.text(extra, "model") if role == ASSISTANT else None,
                None if calls else fields.text(value, "name"),
                is_hidden,
                {"hidden": True} if is_hidden else {},
            )
        )
    return swipes


def _calls(extra: fields.Record) -> Iterator[Part]:
    """The calls of a message that the program has written about them; such a message is for the model."""
    for call in fields.values(extra, "tool_invocations"):
        id, name = fields.text(call, "id"), str(call.get("name"))
        yield ToolUse(name, call.get("parameters"), id)
        failed = call.get("error") is not None
        yield ToolResult(call.get("error") if failed else call.get("result"), id, name, failed)


def _time(value: Any, position: str) -> float | None:
    time = fields.seconds(value, position)
    return fields.local_time(value) if time is None and isinstance(value, str) else time


SILLYTAVERN = Format(
    "sillytavern", "a chat of SillyTavern", _chats_of_sillytavern, is_log=_is_log_of_sillytavern
)
