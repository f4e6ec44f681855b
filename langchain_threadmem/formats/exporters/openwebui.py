"""Conversations for Open WebUI: the file that its settings import ("Import chats"), with all branches.

The fields follow open-webui 0.12. An answer with reasoning or tool calls has its steps in `output`, as items
of OpenAI's Responses, from which Open WebUI shows the answer and makes the messages for the model: calls that
follow each other belong to one message.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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

_MODEL = "unknown"
_ANSWER = "assistant"


def to_openwebui(nodes: Sequence[ConversationNode], about: About) -> str:
    """Write a conversation as a chat of Open WebUI.

    Args:
        nodes: The nodes of the conversation; asides and superseded messages are omitted.
        about: Its name and title.

    Returns:
        JSON: a list with one chat.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> nodes = [ConversationNode(1, HumanMessage("Hello", id="m1"))]
        >>> [chat] = json.loads(to_openwebui(nodes, About("c1", "Greeting", 0.0)))
        >>> chat["title"], chat["chat"]["history"]["currentId"]
        ('Greeting', 'm1')
    """
    found = [*records(nodes)]
    messages = {record.id: _message(record) for record in found}
    for record in found:
        if record.parent is not None:
            messages[record.parent.id]["childrenIds"].append(record.id)
    current = _current(found, about.active)
    models = [*dict.fromkeys(message["model"] for message in messages.values() if "model" in message)]
    title = about.title
    chat = {
        "id": about.name,
        "title": title,
        "models": models or [_MODEL],
        "params": {"system": system} if (system := instructions(nodes)) else {},
        "history": {"messages": messages, "currentId": current},
        "messages": _active(messages, current),
        "tags": [],
        "timestamp": int(about.created * 1000),
        "files": [],
    }
    tags = about.metadata.get("tags")
    item = {
        "id": about.name,
        "title": title,
        "chat": chat,
        "created_at": int(about.created),
        "updated_at": int(max((record.time for record in found), default=about.created)),
        "share_id": None,
        "archived": about.archived,
        "pinned": bool(about.metadata.get("pinned")),
        "meta": {"tags": tags} if isinstance(tags, list) else {},
        "folder_id": None,
    }
    return dumps([item], "the conversation", indent=2)


def _current(found: Sequence[ExportedMessage], active: int | None) -> str | None:
    """The id of the record with the end of the active thread; of the last record without one."""
    ends = [record.id for record in found if any(node.id == active for node in record.nodes)]
    return ends[0] if ends else found[-1].id if found else None


def _active(messages: dict[str, dict[str, Any]], current: str | None) -> list[dict[str, Any]]:
    """The messages of the active thread, which Open WebUI stores twice."""
    path: list[dict[str, Any]] = []
    while current is not None:
        path.append(messages[current])
        current = messages[current]["parentId"]
    return path[::-1]


def _message(record: ExportedMessage) -> dict[str, Any]:
    role = "user" if isinstance(record.first, HumanMessage) else _ANSWER
    parts = steps(record)
    message: dict[str, Any] = {
        "id": record.id,
        "parentId": record.parent.id if record.parent is not None else None,
        "childrenIds": [],
        "role": role,
        "content": "\n".join(step.text for step in parts if step.kind == "text"),
        "timestamp": int(record.time),
    }
    if name := record.name:
        message["name"] = name  # Open WebUI ignores this field, and an import here reads it.
    if role == "user" and name:
        message["user"] = {"id": name, "name": name}
    elif role == _ANSWER:
        model = record.model or _MODEL
        message |= {"model": model, "modelName": name or model, "modelIdx": 0, "done": True}
        if any(step.kind != "text" for step in parts):
            message["output"] = [_item(step, f"{record.id}-{n}", parts) for n, step in enumerate(parts, 1)]
    return message


def _item(step: AnswerStep, id: str, parts: Sequence[AnswerStep]) -> dict[str, Any]:
    """An item of the output; a call is completed if it has a result."""
    item: dict[str, Any] = {"type": step.kind, "id": id, "status": "completed"}
    if step.kind == "call":
        results = [one for one in parts if one.kind == "result" and one.call["id"] == step.call["id"]]
        status = "incomplete" if not results else "failed" if results[0].is_error else "completed"
        item |= {
            "type": "function_call",
            "call_id": step.call["id"],
            "name": step.call["name"],
            "status": status,
        }
        return item | {"arguments": json.dumps(step.call["args"], ensure_ascii=False)}
    if step.kind == "result":
        item |= {"type": "function_call_output", "call_id": step.call["id"]}
        item |= {"status": "failed" if step.is_error else "completed"}
        return item | {"output": [{"type": "input_text", "text": step.text}]}
    content = [{"type": "output_text", "text": step.text}]
    if step.kind == "reasoning":
        return item | {"content": content, "summary": None}
    return item | {"type": "message", "role": _ANSWER, "content": content}
