"""Conversion of everything that LangChain accepts as a message to copies of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    message_chunk_to_message,
)
from langchain_core.messages.utils import MessageLikeRepresentation, convert_to_messages

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import clone

MessageInput = MessageLikeRepresentation | Sequence[MessageLikeRepresentation]
"""A message as LangChain accepts it (message, text, `(role, text)`, dict), or several."""
_TEXTS: dict[str, type[HumanMessage | AIMessage]] = {"human": HumanMessage, "ai": AIMessage}
"""The classes of messages that are passed as plain text."""


def messages_of(messages: MessageInput, role: str = "human", *, copies: bool = True) -> list[BaseMessage]:
    """Convert messages from any form that LangChain accepts; plain text has the role `role`.

    Args:
        messages: One message in any form that LangChain accepts, or a list of messages.
        role: The role of plain text: "human" or "ai".
        copies: Whether messages are copied; without copies the caller must not change them.

    Raises:
        InputError: A value is not a message, or a message is empty.

    Example:
        >>> messages_of("Hello")[0].type, messages_of(("assistant", "Hi"))[0].type
        ('human', 'ai')
    """
    if not isinstance(messages, list):
        return [_message(messages, role, copies)]
    return [_message(item, role, copies) for item in messages]


def _message(item: Any, role: str, copies: bool) -> BaseMessage:
    message: BaseMessage
    if isinstance(item, BaseMessage):
        original = message_chunk_to_message(item) if isinstance(item, BaseMessageChunk) else item
        message = clone(original) if copies else original  # The caller may change the original.
    elif isinstance(item, str) and role in _TEXTS:
        message = _TEXTS[role](item)  # convert_to_messages() takes twice as long, a tenth of an append.
    else:
        try:
            message = convert_to_messages([(role, item) if isinstance(item, str) else item])[0]
        # `convert_to_messages` raises any of these, NotImplementedError for an unknown type.
        except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError) as error:
            raise InputError(
                f"{item!r:.200} is not a message; pass a LangChain message, text, "
                "or a pair like ('user', 'Hello')"
            ) from error
    kind = message.type
    if kind == "remove":
        raise InputError(f"{message!r:.200} removes a message; pass a message with content")
    if kind in ("human", "system") and not message.content:
        raise InputError(f"a {kind} message is empty: {item!r:.200}; pass a message with content")
    return message
