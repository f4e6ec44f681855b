"""Claude's export: `conversations.json`, in which each conversation has a list of `chat_messages`.

A message with tool calls and results becomes a message for each call and each result, followed by its text.
Attachments are imported as references, with the text that the export contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.importers.chats import Chat, Chats, Entry, chat_of, joined, seconds, text_or_none
from langchain_threadmem.importers.source import Source, chats_of_items
from langchain_threadmem.messages.records import as_list, as_object
from langchain_threadmem.storage.schema import State

_PARENT = "parent_message_uuid"
Record = dict[str, Any]


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a conversation of Claude."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def chats(source: Source) -> Chats:
    """The conversations of an export."""
    return chats_of_items(source, _chat)


def _chat(record: dict[str, Any], position: str) -> Chat:
    name = text_or_none(record.get("uuid"))
    if name is None:
        raise InputError(f"{position} has no 'uuid'; it is not a conversation of Claude")
    entries: list[Entry] = []
    for number, item in enumerate(as_list(record.get("chat_messages"), f"'chat_messages' of {position}"), 1):
        message_position = f"{position}, message {number}"
        message = as_object(item, message_position)
        previous = entries[-1].key if entries else None
        entries += _entries(
            message, message_position, message.get(_PARENT) if _PARENT in message else previous
        )
    return chat_of(
        position,
        name,
        entries,
        title=text_or_none(record.get("name")),
        tip=text_or_none(record.get("current_leaf_message_uuid")),
        created=seconds(record.get("created_at"), position),
    )


def _entries(message: Record, position: str, parent: str | None) -> list[Entry]:
    """The entries of a message; the last entry has the id of the message, to which others refer."""
    key = text_or_none(message.get("uuid"))
    if key is None:
        raise InputError(f"{position} has no 'uuid'")
    if message.get("sender") not in ("human", "assistant"):
        raise InputError(f"{position} has the sender {message.get('sender')!r}; use human or assistant")
    time = seconds(message.get("created_at"), position)
    files = {name: message[name] for name in ("attachments", "files") if message.get(name)}
    parts = _parts(message, key, position)
    entries: list[Entry] = []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        is_empty = part == _Part() and not files
        entries.append(
            Entry(
                key if is_last else f"{key}-{number}",
                entries[-1].key if entries else parent,
                partial(_message, message["sender"], part, files if is_last else {}),
                time,
                state=State.ASIDE if is_empty else State.LIVE,
            )
        )
    return entries


class _Part(NamedTuple):
    """A part of a message that becomes one message: content with calls after it, or a result.

    Attributes:
        blocks: The content.
        calls: The calls by their ids.
        result: The id of the call, and the result.
    """

    blocks: Sequence[Record] = ()
    calls: Mapping[str, Record] = {}
    result: tuple[str, Record] | None = None


def _parts(message: Record, key: str, position: str) -> list[_Part]:
    """The parts of a message. The export has no call ids, so results are matched to calls in order."""
    subject = f"'content' of {position}"
    blocks = [as_object(block, subject) for block in as_list(message.get("content") or [], subject)]
    text = message.get("text")
    if not blocks and isinstance(text, str):
        blocks = [{"type": "text", "text": text}]
    answered = sum(block.get("type") == "tool_result" for block in blocks)
    parts: list[_Part] = []
    content: list[Record] = []
    calls = results = 0
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_use" and calls < answered:
            calls += 1
            earlier_calls = {} if content or not parts else parts[-1].calls
            part = _Part(content, {f"{key}-call-{calls}": block})
            if earlier_calls:
                part = parts.pop()._replace(calls={**earlier_calls, **part.calls})
            parts.append(part)
            content = []
        elif kind == "tool_result" and results < calls:
            results += 1
            parts += [_Part(content)] if content else []
            parts.append(_Part(result=(f"{key}-call-{results}", block)))
            content = []
        elif kind != "text" or str(block.get("text") or "").strip():
            content.append(block)
    return [*parts, _Part(content)] if content or not parts else parts


def _message(sender: str, part: _Part, files: Record) -> BaseMessage:
    if part.result is not None:
        call, result = part.result
        output = result.get("content") or ""
        return ToolMessage(
            joined([_block(block) for block in output]) if isinstance(output, list) else str(output),
            tool_call_id=call,
            name=text_or_none(result.get("name")),
            status="error" if result.get("is_error") else "success",
            additional_kwargs=files,
        )
    content = joined([_block(block) for block in part.blocks])
    if sender == "human":
        return HumanMessage(content, additional_kwargs=files)
    calls = [
        {"name": str(block.get("name")), "args": _arguments(block.get("input")), "id": id}
        for id, block in part.calls.items()
    ]
    return AIMessage(content, tool_calls=calls, additional_kwargs=files)


def _arguments(arguments: Any) -> Record:
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def _block(block: Any) -> Record:
    """A content block as LangChain defines it; a block of another type keeps its value."""
    if isinstance(block, dict) and block.get("type") == "text":
        return {"type": "text", "text": str(block.get("text") or "")}
    if isinstance(block, dict) and block.get("type") == "thinking":
        return {"type": "reasoning", "reasoning": str(block.get("thinking") or "")}
    return {"type": "non_standard", "value": block}
