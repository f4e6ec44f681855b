"""Messages as other programs store them: an answer with its tool calls and their results is one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

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
    def time(self) -> float:
        """The time of the first message, in seconds since 1970."""
        return self.nodes[0].timestamp.timestamp()


def id_of(node: ConversationNode) -> str:
    """The id of a message; a number for a message without an id."""
    return node.message.id or f"node-{node.id}"


def records(nodes: Sequence[ConversationNode]) -> Iterator[ExportedMessage]:
    """The live messages of a conversation as records, parents first.

    A message that several messages continue ends a record, so that every branch continues a whole record.

    Args:
        nodes: The nodes of the conversation.
    """
    live = {node.id: node for node in nodes if node.state is State.LIVE}
    children: dict[int | None, list[ConversationNode]] = {}
    for node in live.values():
        children.setdefault(node.parent_id if node.parent_id in live else None, []).append(node)
    waiting: list[tuple[ConversationNode, ExportedMessage | None]] = [
        (node, None) for node in reversed(children.get(None, []))
    ]
    while waiting:
        node, parent = waiting.pop()
        group = [node]
        while _goes_on(group) and len(following := children.get(group[-1].id, [])) == 1:
            if not isinstance(following[0].message, AIMessage | ToolMessage):
                break
            group.append(following[0])
        record = ExportedMessage(group, parent)
        yield record
        waiting += [(child, record) for child in reversed(children.get(group[-1].id, []))]


def _goes_on(group: Sequence[ConversationNode]) -> bool:
    """Whether an answer is not complete: its last message calls tools, or is a result."""
    last = group[-1].message
    return isinstance(last, ToolMessage) or (isinstance(last, AIMessage) and bool(last.tool_calls))


class AnswerStep(NamedTuple):
    """A part of an answer.

    Attributes:
        kind: "reasoning", "text", "call" or "result".
        text: The text; the result of a call.
        call: The call, with its name, arguments and id.
    """

    kind: str
    text: str = ""
    call: Mapping[str, Any] = {}


def steps(record: ExportedMessage) -> list[AnswerStep]:
    """The parts of a record in their order; a result follows its call.

    Args:
        record: The record.
    """
    results = {
        node.message.tool_call_id: text_of(node.message)
        for node in record.nodes
        if isinstance(node.message, ToolMessage)
    }
    found: list[AnswerStep] = []
    for node in record.nodes:
        message = node.message
        if isinstance(message, ToolMessage):
            continue
        if thought := message.additional_kwargs.get("reasoning_content"):
            found.append(AnswerStep("reasoning", str(thought)))
        if text := text_of(message):
            found.append(AnswerStep("text", text))
        for call in getattr(message, "tool_calls", ()):
            found.append(AnswerStep("call", call=call))
            if call["id"] in results:
                found.append(AnswerStep("result", results[call["id"]], call))
    if not found and isinstance(record.first, ToolMessage):
        found.append(AnswerStep("text", text_of(record.first)))
    return found


def model_of(message: BaseMessage) -> str | None:
    """The name of the model that wrote a message, if it is known."""
    metadata = getattr(message, "response_metadata", {})
    name = metadata.get("model_name") or metadata.get("model")
    return name if isinstance(name, str) else None
