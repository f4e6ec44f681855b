"""Conversations for LibreChat: the file that its settings import, with all branches.

The fields follow danny-avila/LibreChat (useExportConversation.ts and importers.js).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_threadmem.formats.exporters.answers import (
    About,
    AnswerStep,
    ExportedMessage,
    instructions,
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
    model = next((record.model for record in found if record.model), None)
    document = {
        "conversationId": about.name,
        "endpoint": "openAI",
        "title": about.title,
        "exportAt": _iso(max((record.time for record in found), default=about.created)),
        "branches": True,
        "recursive": False,
        "options": {
            name: value
            for name, value in (("model", model), ("promptPrefix", instructions(nodes)))
            if value is not None
        },
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
    parts = steps(record)
    is_plain = all(step.kind == "text" for step in parts)
    name, model = record.name, record.model
    message = {
        "messageId": record.id,
        "conversationId": conversation,
        "parentMessageId": record.parent.id if record.parent is not None else _NO_PARENT,
        "sender": name or ("User" if is_user else model or "Assistant"),
        "text": "\n\n".join(step.text for step in parts) if is_plain else "",
        "isCreatedByUser": is_user,
        "createdAt": _iso(record.time),
        "endpoint": "openAI",
        "model": None if is_user else model,
        "unfinished": False,
        "error": False,
    }
    if name:
        message["name"] = name  # LibreChat ignores this field, and an import here reads it.
    if not is_plain:
        message["content"] = [*_content(parts)]
    return message


def _content(parts: Sequence[AnswerStep]) -> Iterator[dict[str, Any]]:
    """The parts of an answer, in which a call has its result.

    `tool_call_ids` names the calls that were made at once, at the text before them. LibreChat adds all other
    calls to the message before them. It writes no empty texts, which providers refuse: calls without a text
    have the field themselves.
    """
    results = {step.call["id"]: step for step in parts if step.kind == "result"}
    known: Sequence[str] = ()
    for step in parts:
        group = {"tool_call_ids": list(step.calls)} if step.calls and step.calls != known else {}
        known = step.calls or known
        if step.kind == "reasoning":
            yield {"type": "think", "think": step.text}
        elif step.kind == "text":
            yield {"type": "text", "text": step.text, **group}
        elif step.kind == "call":
            call = {
                "id": step.call["id"],
                "name": step.call["name"],
                "args": json.dumps(step.call["args"], ensure_ascii=False),
                "type": "tool_call",
            }
            if (result := results.get(step.call["id"])) is not None:
                status = "failed" if result.is_error else "completed"
                call |= {"output": result.text, "progress": 1, "runStepStatus": status}
            yield {"type": "tool_call", "tool_call": call, **group}
