"""LM Studio: a conversation (`*.conversation.json`), whose messages have versions of which one is shown.

The following messages continue the version that is shown. Messages have no ids.

The fields follow YorkieDev/lmstudio-chat-converter and byteowlz/hstry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers.blocks import parts_of
from langchain_threadmem.formats.importers.chats import Chat, Chats, chat_of, kept, seconds, text_or_none
from langchain_threadmem.formats.importers.json_items import Record
from langchain_threadmem.formats.importers.said import (
    ASSISTANT,
    SYSTEM,
    USER,
    Other,
    Part,
    Reasoning,
    Said,
    ToolUse,
    entries_of,
    system_prompt,
)
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id
from langchain_threadmem.messages.records import as_list, as_object

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


def is_item(value: object) -> bool:
    """Whether a JSON document is a conversation of LM Studio."""
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    if not messages:
        return isinstance(value, dict) and "systemPrompt" in value and "createdAt" in value
    return all(isinstance(one, dict) and isinstance(one.get("versions"), list) for one in messages)


def chats(source: Source) -> Chats:
    """The conversation of a file."""
    name = source.name.removesuffix(".conversation")
    return source.each(lambda record, position: _chat(record, position, name))


def _chat(record: Record, position: str, name: str) -> Chat:
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
            one = _said(version, previous, where)
            if one.key in keys:
                one.key = chained_id("import-", one.key, len(keys))
            keys.append(one.key)
            said.append(one)
        previous = keys[shown]
    return chat_of(
        position,
        name,
        entries_of(said),
        title=text_or_none(record.get("name")),
        tip=previous,
        created=seconds(record.get("createdAt"), position),
        metadata=kept(
            pinned=bool(record.get("pinned")),
            model=next((one.model for one in reversed(said) if one.model), None),
        ),
    )


def _said(version: Record, previous: str | None, position: str) -> Said:
    parts = [*_parts(version, position)]
    role = _ROLES.get(str(version.get("role")), str(version.get("role")))
    sender = version.get("senderInfo")
    steps = version.get("steps")
    infos = (
        [step.get("genInfo") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    )
    model = next((text_or_none(info.get("identifier")) for info in infos if isinstance(info, dict)), None)
    if model is None and isinstance(sender, dict):
        model = text_or_none(sender.get("senderName"))
    key = chained_id("import-", previous, [role, version.get("content"), version.get("steps")])
    return Said(key, previous, role, parts, model=model if role == ASSISTANT else None)


def _parts(version: Record, position: str) -> Iterator[Part]:
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
            id = text_or_none(block.get("toolCallRequestId")) or text_or_none(block.get("callId"))
            arguments = block.get("parameters", block.get("arguments"))
            yield ToolUse(
                str(block.get("name")), arguments, id or text_or_none(str(block.get("callId") or ""))
            )
        elif kind in ("toolCallResult", "tool_call_result"):
            id = block.get("toolCallRequestId") or block.get("toolCallId") or block.get("callId")
            yield from parts_of({**block, "type": "tool_result", "id": None if id is None else str(id)})
        else:
            yield from parts_of(block)


FORMAT = Format("lm_studio", "a conversation of LM Studio", chats, is_item)
