"""Conversations for LibreChat: the file that its settings import, with all branches.

The fields follow danny-avila/LibreChat (useExportConversation.ts and importers.js).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_threadmem.formats.exporters.answers import (
    About,
    AnswerStep,
    ExportedMessage,
    model_of,
    records,
    steps,
)
from langchain_threadmem.messages.records import dumps
from langchain_threadmem.tree.node import ConversationNode

_NO_PARENT = "00000000-0000-0000-0000-000000000000"


def to_librechat(nodes: Sequence[ConversationNode], about: About) -> str:
    """Write a conversation as LibreChat exports it.

    Args:
        nodes: The nodes of the conversation; asides and superseded messages are omitted.
        about: Its name and title.

    Returns:
        JSON. LibreChat shows the newest thread.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello", id="m1"))]
        >>> document = json.loads(to_librechat(nodes, About("c1", "Greeting", 0.0)))
        >>> document["title"], document["messages"][0]["text"]
        ('Greeting', 'Hello')
    """
    found = [*records(nodes)]
    model = next(
        (name for record in found for node in record.nodes if (name := model_of(node.message))), None
    )
    document = {
        "conversationId": about.name,
        "endpoint": "openAI",
        "title": about.title,
        "exportAt": _iso(max((record.time for record in found), default=about.created)),
        "branches": True,
        "recursive": False,
        "options": {"model": model} if model else {},
        # LibreChat ignores this field, and an import here reads it.
        "activeMessageId": next(
            (one.id for one in found if any(n.id == about.active for n in one.nodes)), None
        ),
        "messages": [_message(record, about.name) for record in found],
    }
    return dumps(document, "the conversation", indent=2)


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: ExportedMessage, conversation: str) -> dict[str, Any]:
    is_user = isinstance(record.first, HumanMessage)
    model = next((name for node in record.nodes if (name := model_of(node.message))), None)
    parts = steps(record)
    is_plain = all(step.kind == "text" for step in parts)
    message = {
        "messageId": record.id,
        "conversationId": conversation,
        "parentMessageId": record.parent.id if record.parent is not None else _NO_PARENT,
        "sender": record.first.name or "User" if is_user else model or "Assistant",
        "text": "\n\n".join(step.text for step in parts) if is_plain else "",
        "isCreatedByUser": is_user,
        "createdAt": _iso(record.time),
        "endpoint": "openAI",
        "model": None if is_user else model,
        "unfinished": False,
        "error": False,
    }
    if not is_plain:
        message["content"] = [_part(step) for step in parts if step.kind != "call"]
    return message


def _part(step: AnswerStep) -> dict[str, Any]:
    if step.kind == "reasoning":
        return {"type": "think", "think": step.text}
    if step.kind == "result":
        call = {
            "id": step.call["id"],
            "name": step.call["name"],
            "args": json.dumps(step.call["args"], ensure_ascii=False),
            "type": "tool_call",
            "output": step.text,
            "progress": 1,
        }
        return {"type": "tool_call", "tool_call": call}
    return {"type": "text", "text": step.text}
