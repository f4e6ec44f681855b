"""Conversations for chat apps: the files that Open WebUI and LibreChat import, with all branches.

An answer with its tool calls and their results is one record there. Open WebUI has the steps of an answer
with reasoning or calls in `output`, as items of OpenAI's Responses, from which it shows the answer and makes
the messages for the model: calls that follow each other belong to one message. LibreChat has them in
`content`.

The fields follow open-webui 0.12 and danny-avila/LibreChat (useExportConversation.ts and importers.js).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.records import dumps
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

_MODEL, _ANSWER = "unknown", "assistant"
_NO_PARENT = "00000000-0000-0000-0000-000000000000"


class About(NamedTuple):
    """A conversation that is exported.

    Attributes:
        name: Its name.
        title: Its title.
        created: The time of its creation, in seconds since 1970.
        active: The number of the node at the end of the active thread.
        archived: Whether it is archived.
        metadata: Its metadata.
    """

    name: str
    title: str
    created: float
    active: int | None = None
    archived: bool = False
    metadata: Mapping[str, Any] = {}


class ExportedMessage(NamedTuple):
    """A message of another program.

    Attributes:
        nodes: The messages of the record, oldest first: one, or an answer with calls and results.
        parent: The record before it.
    """

    nodes: Sequence[ConversationNode]
    parent: ExportedMessage | None

    @property
    def id(self) -> str:
        """The id of the last message, which an import of the record gives it again."""
        return id_of(self.nodes[-1])

    @property
    def first(self) -> BaseMessage:
        """The first message."""
        return self.nodes[0].message

    @property
    def name(self) -> str | None:
        """The name of the person or of the agent that speaks."""
        named = (node.message.name for node in self.nodes if not isinstance(node.message, ToolMessage))
        return next(filter(None, named), None)

    @property
    def model(self) -> str | None:
        """The name of the first model that wrote one of the messages, if it is known."""
        return next((name for node in self.nodes if (name := model_of(node.message))), None)

    @property
    def time(self) -> float:
        """The time of the first message, in seconds since 1970."""
        return self.nodes[0].timestamp.timestamp()


def id_of(node: ConversationNode) -> str:
    """The id of a message; a number for a message without an id."""
    return node.message.id or f"node-{node.id}"


def records(nodes: Sequence[ConversationNode]) -> Iterator[ExportedMessage]:
    """The live messages of a conversation as records, parents first; see `instructions` for system messages.

    A message that several messages continue ends a record, so that every branch continues a whole record.

    Args:
        nodes: The nodes of the conversation.
    """
    live = {node.id: node for node in nodes if node.state is State.LIVE}
    children: dict[int | None, list[ConversationNode]] = {}
    for node in live.values():
        parent = live.get(node.parent_id or 0)
        while parent is not None and isinstance(parent.message, SystemMessage):
            parent = live.get(parent.parent_id or 0)
        if not isinstance(node.message, SystemMessage):
            children.setdefault(parent.id if parent is not None else None, []).append(node)
    waiting: list[tuple[ConversationNode, ExportedMessage | None]] = [
        (node, None) for node in reversed(children.get(None, []))
    ]
    while waiting:
        node, before = waiting.pop()
        group = [node]
        while _goes_on(group) and len(following := children.get(group[-1].id, [])) == 1:
            if not isinstance(following[0].message, AIMessage | ToolMessage):
                break
            group.append(following[0])
        record = ExportedMessage(group, before)
        yield record
        waiting += [(child, record) for child in reversed(children.get(group[-1].id, []))]


def _goes_on(group: Sequence[ConversationNode]) -> bool:
    """Whether an answer is not complete: its last message calls tools, or is a result."""
    last = group[-1].message
    return isinstance(last, ToolMessage) or (isinstance(last, AIMessage) and bool(last.tool_calls))


def instructions(nodes: Sequence[ConversationNode]) -> str | None:
    """The text of the live system messages, which other programs keep beside the messages."""
    texts = {
        text_of(node.message): None
        for node in nodes
        if node.state is State.LIVE and isinstance(node.message, SystemMessage)
    }
    return "\n\n".join(texts) or None


class AnswerStep(NamedTuple):
    """A part of an answer.

    Attributes:
        kind: "reasoning", "text", "call" or "result".
        text: The text; the result of a call.
        call: The call, with its name, arguments and id.
        calls: The ids of all calls of the message, which were made at once.
        is_error: Whether the call has failed.
    """

    kind: str
    text: str = ""
    call: Mapping[str, Any] = {}
    calls: Sequence[str] = ()
    is_error: bool = False


def steps(record: ExportedMessage) -> list[AnswerStep]:
    """The parts of a record in their order: all calls of a message, and then their results.

    Args:
        record: The record.
    """
    found: list[AnswerStep] = []
    calls: dict[str, Mapping[str, Any]] = {}
    for node in record.nodes:
        message = node.message
        if isinstance(message, ToolMessage):
            id, text = message.tool_call_id, text_of(message)
            if id in calls:
                found.append(AnswerStep("result", text, calls[id], is_error=message.status == "error"))
            continue
        made = [call for call in getattr(message, "tool_calls", ()) if call["id"]]
        ids = [call["id"] for call in made]
        calls |= dict(zip(ids, made, strict=True))
        if thought := message.additional_kwargs.get("reasoning_content"):
            found.append(AnswerStep("reasoning", str(thought)))
        if text := text_of(message):
            found.append(AnswerStep("text", text, calls=ids))
        found += [AnswerStep("call", call=call, calls=ids) for call in made]
    if not found and isinstance(record.first, ToolMessage):
        found.append(AnswerStep("text", text_of(record.first)))
    return found


def model_of(message: BaseMessage) -> str | None:
    """The name of the model that wrote a message, if it is known."""
    metadata = getattr(message, "response_metadata", {})
    name = metadata.get("model_name") or metadata.get("model")
    return name if isinstance(name, str) else None


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
    messages = {record.id: _openwebui_message(record) for record in found}
    for record in found:
        if record.parent is not None:
            messages[record.parent.id]["childrenIds"].append(record.id)
    current = _end(found, about.active) or (found[-1].id if found else None)
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


def _end(found: Sequence[ExportedMessage], active: int | None) -> str | None:
    """The id of the record with the end of the active thread."""
    return next((one.id for one in found if any(node.id == active for node in one.nodes)), None)


def _active(messages: dict[str, dict[str, Any]], current: str | None) -> list[dict[str, Any]]:
    """The messages of the active thread, which Open WebUI stores twice."""
    path: list[dict[str, Any]] = []
    while current is not None:
        path.append(messages[current])
        current = messages[current]["parentId"]
    return path[::-1]


def _openwebui_message(record: ExportedMessage) -> dict[str, Any]:
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
        "activeMessageId": _end(found, about.active),
        "messages": [_librechat_message(record, about.name) for record in found],
    }
    return dumps(document, "the conversation", indent=2)


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _librechat_message(record: ExportedMessage, conversation: str) -> dict[str, Any]:
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
