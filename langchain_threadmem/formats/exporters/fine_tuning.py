"""Threads as JSON Lines for fine-tuning, in the chat format of OpenAI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.records import dumps
from langchain_threadmem.messages.roles import TYPES
from langchain_threadmem.messages.tool_pairs import end_of_results, whole_exchanges
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import graph
from langchain_threadmem.tree.node import ConversationNode

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names of speakers that OpenAI accepts."""
_NOT_IN_TOOL = re.compile(r"[^a-zA-Z0-9_-]")
"""The characters that OpenAI does not accept in the name of a tool."""


def to_fine_tuning(nodes: Sequence[ConversationNode]) -> str:
    """Write each live thread as one line `{"messages": [...]}` that OpenAI accepts for training.

    A line begins with the newest system message of its thread, or else of the conversation, and ends with an
    answer: messages after the last answer are omitted. A tool call is omitted with its results if a result is
    missing. In the name of a tool, characters other than letters, digits, "_" and "-" become "_". Contents
    are text, and images of users by URL or as data; reasoning, other files and asides are omitted. The
    definitions of tools (`"tools"`) are not part of a conversation and have to be added.

    Args:
        nodes: All nodes of one conversation, in any order.

    Returns:
        One line per thread with a question and an answer, in the order of the ends of threads. Messages that
        several threads share are repeated in each thread.

    Raises:
        InvalidGraphStateError: The nodes do not form a forest.
        InputError: The arguments of a tool call have a value that JSON cannot represent.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello")), ConversationNode(2, AIMessage("Hi"), 1)]
        >>> to_fine_tuning([*nodes, ConversationNode(3, HumanMessage("Are you there?"), 2)])
        '{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}'
    """
    graph.validate(nodes)
    systems = {
        node.id: text_of(node.message)
        for node in sorted(nodes, key=lambda node: node.id)
        if node.state == State.LIVE and node.message.type == "system"
    }
    lines: dict[str, None] = {}
    for thread in graph.threads(nodes):
        shown = [node for node in thread if node.state != State.ASIDE]
        records = _answered(_records(node.message for node in shown if node.message.type != "system"))
        own = [systems[node.id] for node in shown if node.id in systems]
        if text := (own or [*systems.values()] or [""])[-1]:
            records[:0] = [{"role": "system", "content": text}]
        if {"user", "assistant"} <= {record["role"] for record in records}:
            # Threads that differ only after their last answer give the same line.
            lines[dumps({"messages": records}, f"the thread of node {thread[-1].id}")] = None
    return "\n".join(lines)


def _answered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records up to the last answer."""
    while records and (records[-1]["role"] != "assistant" or "tool_calls" in records[-1]):
        records.pop()
    return records


def _records(messages: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    records = []
    open_calls: set[str | None] = set()
    whole = whole_exchanges(list(messages))
    for n, message in enumerate(whole):
        if isinstance(message, ToolMessage):
            # The line contains no call for the result of a call that could not be parsed.
            if message.tool_call_id in open_calls:
                open_calls.discard(message.tool_call_id)
                result = {"role": "tool", "tool_call_id": message.tool_call_id, "content": text_of(message)}
                records.append(result)
        elif isinstance(message, AIMessage):
            open_calls = {call["id"] for call in message.tool_calls}
            results = whole[n + 1 : end_of_results(whole, n + 1)]
            if open_calls <= {
                item.tool_call_id
                for item in results
                if isinstance(item, ToolMessage) and not is_made_up(item)
            }:
                records += _answer(message)
            else:
                open_calls = set()
        else:
            records += _question(message)
    return records


def _answer(message: AIMessage) -> list[dict[str, Any]]:
    text = text_of(message)
    record: dict[str, Any] = {"role": "assistant"} | ({"content": text} if text else {})
    if message.tool_calls:
        record["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": _NOT_IN_TOOL.sub("_", call["name"])[:64] or "tool",
                    "arguments": dumps(call["args"], f"the arguments of a call of {call['name']!r}"),
                },
            }
            for call in message.tool_calls
        ]
    return [record] if len(record) > 1 else []


def _question(message: BaseMessage) -> list[dict[str, Any]]:
    """A message of a user, or of a speaker with another role; other messages are omitted."""
    name = message.name
    if isinstance(message, ChatMessage):
        kind = TYPES.get(message.role, "chat")
        if kind == "ai":
            return _answer(AIMessage(message.content))
        if kind not in ("human", "chat"):
            return []
        name = name if kind == "human" else message.role
    elif message.type != "human":
        return []
    content: Any = text_of(message)
    if isinstance(message.content, list):
        blocks = [block for item in message.content for block in _block(item)]
        content = blocks if any(block["type"] != "text" for block in blocks) else content
    if not content:
        return []
    record = {"role": "user", "content": content}
    return [record | {"name": name} if name and _NAME.fullmatch(name) else record]


def _block(block: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    """A content block in OpenAI's format; an empty list for blocks that are not text or images."""
    if isinstance(block, str):
        return [{"type": "text", "text": block}]
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return [{"type": "text", "text": block["text"]}]
    url = block.get("url")
    if block.get("type") == "image_url":
        image = block.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
    elif block.get("type") != "image":
        return []
    elif isinstance(block.get("base64"), str):
        url = f"data:{block.get('mime_type') or 'image/png'};base64,{block['base64']}"
    return [{"type": "image_url", "image_url": {"url": url}}] if isinstance(url, str) else []
