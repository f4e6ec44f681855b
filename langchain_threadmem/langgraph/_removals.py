"""Messages that a program has deleted from the state of a run before the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.langgraph.checkpoints.removals import removed_between_runs, written
from langchain_threadmem.langgraph.routing.lineage import Lineage
from langchain_threadmem.langgraph.routing.store_messages import may_lack_messages, remove_messages
from langchain_threadmem.selection.run_selector import ThreadedConversation

_CHECKPOINTER = "__pregel_checkpointer"
"""The field of `configurable` in which LangGraph passes the checkpointer of a run to nodes and subgraphs."""
_MOST = 64
"""The maximum number of checkpoints that are searched."""


def forget_removed(
    conversation: ThreadedConversation,
    messages: Sequence[BaseMessage],
    lineage: Lineage,
    config: Mapping[str, Any],
    channel: str,
) -> Flow[None]:
    """Remove the messages from a conversation that a program has deleted from the list since the last run.

    The checkpoints of a thread are searched only if the list lacks messages of the list before it. Without a
    checkpointer, nothing tells a deleted message from one that a client no longer sends.

    Args:
        conversation: The conversation.
        messages: The list.
        lineage: The branch of the run; a run from an older checkpoint deletes nothing.
        config: The configuration of the run.
        channel: The channel of the list.
    """
    saver = config.get("configurable", {}).get(_CHECKPOINTER)
    if lineage.rewound or not isinstance(saver, BaseCheckpointSaver):
        return
    if not (yield from may_lack_messages(conversation, messages)):
        return
    ids: set[str] = set()
    for thread in _threads(config):
        ids |= yield from Call(
            lambda thread=thread: _taken(saver.list(thread, limit=_MOST), channel),  # type: ignore[misc]
            lambda thread=thread: _ataken(saver.alist(thread, limit=_MOST), channel),  # type: ignore[misc]
        )
    ids -= {str(message.id) for message in messages}
    if ids:
        yield from remove_messages(conversation, ids)


def _threads(config: Mapping[str, Any]) -> list[RunnableConfig]:
    """The configurations of the run's graph and of the outermost graph, which may pass its list on."""
    configurable = config["configurable"]
    own = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]
    thread_id = configurable.get("thread_id")
    return [
        cast("RunnableConfig", {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}})
        for ns in dict.fromkeys((own, ""))
    ]


def _taken(checkpoints: Iterator[CheckpointTuple], channel: str) -> set[str]:
    try:
        return removed_between_runs(map(written, checkpoints), channel)
    except NotImplementedError:  # A checkpointer need not list its checkpoints.
        return set()


async def _ataken(checkpoints: AsyncIterator[CheckpointTuple], channel: str) -> set[str]:
    try:
        found = [written(checkpoint) async for checkpoint in checkpoints]
    except NotImplementedError:
        return set()
    return removed_between_runs(found, channel)
