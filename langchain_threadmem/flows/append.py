"""Appending: messages become nodes below the message they answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_threadmem.core.nodes import ConversationNode
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.rows import Given, drafts_of, messages_of, placed_nodes
from langchain_threadmem.flows.select import select
from langchain_threadmem.flows.selectors import LinearNodeSelector
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import growth
from langchain_threadmem.storage.queries.growth import TIP, Draft, Parent


def append(conversation: Conversation, human: Given, *answers: Given) -> Flow[list[ConversationNode]]:
    """Store one turn: its human message where the selector says, answers below what they answer."""
    messages = messages_of(human)
    for answer in answers:
        messages += messages_of(answer, "ai")
    check_turn(messages)
    parent: Parent = TIP
    if messages[0].type == "human":
        parent = yield from select(conversation, messages[0])
    return (yield from _write(conversation, messages, drafts_of(messages), parent))


def extend(
    conversation: Conversation, given: Iterable[Given], timestamps: Iterable[datetime] | None = None
) -> Flow[list[ConversationNode]]:
    """Store messages as one chain below the tip, without asking the selector."""
    messages = [message for item in given for message in messages_of(item)]
    times = None if timestamps is None else list(timestamps)
    if times is not None and len(times) != len(messages):
        raise InputError(
            f"{len(messages)} messages and {len(times)} timestamps; pass one timestamp for each message"
        )
    return (yield from _write(conversation, messages, drafts_of(messages, times), TIP))


def remember(
    conversation: Conversation, given: Sequence[BaseMessage], seen: Parent
) -> Flow[list[ConversationNode]]:
    """Store what a finished call said, in one write: below the tip that the call saw, or where the selector
    says.
    """
    messages = [message for item in given for message in messages_of(item)]
    parent = seen
    first = next((message for message in messages if message.type == "human"), None)
    if first is not None and not isinstance(conversation.selector, LinearNodeSelector):
        parent = yield from select(conversation, first)
    return (yield from _write(conversation, messages, drafts_of(messages), parent))


def _write(
    conversation: Conversation, messages: Sequence[BaseMessage], drafts: Sequence[Draft], parent: Parent
) -> Flow[list[ConversationNode]]:
    if not drafts:
        return []
    tree = conversation.tree or (yield from tree_of(conversation))
    places = yield from Sql(lambda conn: growth.append(conn, tree, drafts, parent), write=True)
    return placed_nodes(messages, drafts, places)


def check_turn(messages: Sequence[BaseMessage]) -> None:
    """Refuse what is not one turn: a human message and the AI and tool messages that answer it.

    Raises:
        InputError: Naming the message that does not belong, by its position.
    """
    if not messages:
        raise InputError("append() was given no message; pass a human message and what answered it")
    calls: set[str | None] = set()
    for position, message in enumerate(messages):
        if position and message.type in ("human", "system"):
            raise InputError(
                f"append() takes one turn, but message {position} is another {message.type} message "
                f"({message.content!r:.60}); use extend() for several turns, append() for each in turn"
            )
        if isinstance(message, AIMessage):
            calls.update(call["id"] for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and calls and message.tool_call_id not in calls:
            raise InputError(
                f"message {position} is the result of tool call {message.tool_call_id!r}, "
                f"which no earlier message of the turn makes; the calls are {sorted(map(str, calls))}"
            )
