"""Messages that a program removed from a thread between two runs.

`RemoveMessage` has two uses. A program deletes a message: it removes the message by `update_state`, or by the
input of a run. A node of a run shortens its list: it trims the list, or replaces a part of it by a summary. A
deleted message leaves the conversation; a message that a node has removed from its list stays.
`REMOVE_ALL_MESSAGES` rewrites a list, wherever it is used, and deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.base import CheckpointTuple

CheckpointWrites = tuple[str | None, Iterable[tuple[str, Any]]]
"""The source of a checkpoint, and the channels and values of the writes that follow it."""


def removed_by(value: Any) -> set[str]:
    """The ids of the messages that a write deletes.

    Args:
        value: The value of a write to a list of messages.

    Example:
        >>> from langgraph.graph.message import REMOVE_ALL_MESSAGES
        >>> removed_by([RemoveMessage("h1"), RemoveMessage("a1")]) == {"h1", "a1"}
        True
        >>> removed_by([RemoveMessage(REMOVE_ALL_MESSAGES), RemoveMessage("h1")])
        set()
    """
    items = value if isinstance(value, list) else [value]
    ids = {str(item.id) for item in items if isinstance(item, RemoveMessage)}
    if not ids:
        return ids
    # The graph that removed a message has imported this module, which takes as long as the saver's own.
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    return set() if REMOVE_ALL_MESSAGES in ids else ids


def removed_in_input(value: Any, channel: str) -> set[str]:
    """The ids of the messages that the input of a run deletes, from its channel or the whole input."""
    return removed_by(value.get(channel) if isinstance(value, Mapping) else value)


def removed_between_runs(newest_first: Iterable[CheckpointWrites], channel: str) -> set[str]:
    """The ids of the messages that were deleted since the last run.

    Args:
        newest_first: The checkpoints of a thread; only those back to the end of the last run are read.
        channel: The channel of the list.

    Example:
        >>> update = [("messages", [RemoveMessage("h1")])]
        >>> removed_between_runs([("update", []), ("loop", update), ("loop", [])], "messages")
        {'h1'}
        >>> removed_between_runs([("loop", []), ("loop", update), ("input", [])], "messages")
        set()
    """
    ids: set[str] = set()
    following: str | None = None
    for source, writes in newest_first:
        if source == "input" or following == "update":
            for name, value in writes:
                if name == channel:
                    ids |= removed_by(value)
        if source == "loop" and following in ("input", "update"):
            break
        following = source
    return ids


def written(checkpoint: CheckpointTuple) -> CheckpointWrites:
    """The source of a stored checkpoint, and the writes that follow it."""
    writes = [(channel, value) for _, channel, value in checkpoint.pending_writes or ()]
    return checkpoint.metadata.get("source"), writes
