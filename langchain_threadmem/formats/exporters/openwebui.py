"""Conversations for Open WebUI: the file that its settings import ("Import chats"), with all branches.

The fields follow open-webui/open-webui. Reasoning and tool calls stand in the text as `<details>`, as Open
WebUI writes them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

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

_MODEL = "unknown"


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
        "params": {},
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
    is_user = isinstance(record.first, HumanMessage)
    role = "user" if is_user else "system" if isinstance(record.first, SystemMessage) else "assistant"
    message: dict[str, Any] = {
        "id": record.id,
        "parentId": record.parent.id if record.parent is not None else None,
        "childrenIds": [],
        "role": role,
        "content": "\n".join(map(_text, steps(record))),
        "timestamp": int(record.time),
    }
    if role == "assistant":
        model = next((name for node in record.nodes if (name := model_of(node.message))), _MODEL)
        message |= {"model": model, "modelName": model, "modelIdx": 0, "done": True}
    return message


def _text(step: AnswerStep) -> str:
    if step.kind == "reasoning":
        lines = "\n".join(f"> {line}" for line in html.escape(step.text, quote=False).split("\n"))
        return _details('type="reasoning" done="true"', "Thought", lines)
    if step.kind == "result":
        values = {
            "id": step.call["id"] or "",
            "name": step.call["name"],
            "arguments": json.dumps(step.call["args"], ensure_ascii=False),
            "result": json.dumps(step.text, ensure_ascii=False),
        }
        attributes = " ".join(f'{name}="{html.escape(value)}"' for name, value in values.items())
        return _details(f'type="tool_calls" done="true" {attributes}', "Tool Executed", "")
    return step.text  # A call is written with its result.


def _details(attributes: str, summary: str, body: str) -> str:
    return f"<details {attributes}>\n<summary>{summary}</summary>\n{body}\n</details>"
