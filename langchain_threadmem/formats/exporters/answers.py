"""Messages as other programs store them: an answer with its tool calls and their results is one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode


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
