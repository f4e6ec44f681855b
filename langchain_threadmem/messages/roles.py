"""Roles of messages: the names in LangChain, in exports and in memory units."""

from __future__ import annotations

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

TYPES = {
    "user": "human",
    "human": "human",
    "assistant": "ai",
    "ai": "ai",
    "system": "system",
    "tool": "tool",
    "function": "function",
    "chat": "chat",
}
"""The names of roles in exports and in LangChain, and the LangChain message type of each."""
_SOURCES = {name: "user" if kind == "human" else kind for name, kind in TYPES.items()}
SPOKEN = ("human", "ai", "chat")
"""The types of messages that recall may return."""
ANSWERING = ("ai", "tool", "function")
"""The types of messages that answer a human message."""
OPENING = ("human", "system")
"""The types of messages that begin a turn."""
_ROLES = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (SystemMessage, "system"),
    (ToolMessage, "tool"),
    (FunctionMessage, "function"),
)


def role_of(message: BaseMessage) -> str:
    """The role of a message in exports.

    Example:
        >>> role_of(HumanMessage("Hello")), role_of(AIMessage("Hi"))
        ('user', 'assistant')
    """
    if isinstance(message, ChatMessage):
        return message.role
    return next((role for cls, role in _ROLES if isinstance(message, cls)), message.type)


def source_named(name: str) -> str:
    """The source of a memory unit, from any name of the role.

    Example:
        >>> source_named("human"), source_named("assistant"), source_named("critic")
        ('user', 'ai', 'critic')
    """
    return _SOURCES.get(name, name)


def source_of(message: BaseMessage) -> str:
    """The source of the memory unit of a message.

    Example:
        >>> source_of(HumanMessage("Hello")), source_of(ChatMessage("Psst", role="critic"))
        ('user', 'critic')
    """
    return message.role if isinstance(message, ChatMessage) else _SOURCES.get(message.type, message.type)


def is_answer(message: BaseMessage) -> bool:
    """Whether a message is an answer without open tool calls.

    Example:
        >>> is_answer(AIMessage("Hi")), is_answer(HumanMessage("Hello"))
        (True, False)
    """
    return message.type == "ai" and not getattr(message, "tool_calls", None)
