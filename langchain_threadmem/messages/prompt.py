"""The messages of a prompt: the active thread through its window, and the whole current turn.

A window may cut a list anywhere. The current turn is always complete, because the model is answering it. Tool
calls and results form whole exchanges, because providers refuse others.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.messages.windows import Window


def newest_human(messages: Sequence[BaseMessage]) -> int | None:
    """The position of the newest human message that was not made for a prompt, if any.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> newest_human([HumanMessage("Hello"), AIMessage("Hi!")])
        0
    """
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage) and not is_made_up(messages[index]):
            return index
    return None


def shown(
    thread: Sequence[BaseMessage],
    turn: Sequence[BaseMessage],
    window: Window | None = None,
) -> list[BaseMessage]:
    """The messages of a thread that a model is shown.

    Args:
        thread: The messages before the turn, oldest first.
        turn: The human message that is being answered, and the calls and results after it.
        window: A function from messages to the messages that are shown; `None` for all messages. The window
            also gets the turn, to count it, but cannot remove its messages.

    Returns:
        The messages of the thread within the window, in complete tool exchanges, then the turn.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> thread, turn = [HumanMessage("one"), AIMessage("two")], [HumanMessage("three")]
        >>> [message.content for message in shown(thread, turn, lambda messages: messages[-2:])]
        ['two', 'three']
    """
    messages = whole_exchanges([*thread, *turn])
    if window is None:
        return messages
    turn_ids = {message.id for message in turn if message.id is not None}
    turn_objects = {id(message) for message in turn}
    earlier = [
        message
        for message in window(messages)
        if message.id not in turn_ids and id(message) not in turn_objects
    ]
    return whole_exchanges([*earlier, *turn])
