"""Updates of a graph's state by nodes and middleware.

The route of a message is announced by events. Before it, messages that a program has deleted from the list of
the state are removed.

A node that summarises a list, such as that of langmem, keeps the summary (`RunningSummary`), and the ids of
the messages that it covers, beside the list. After another thread is selected, the summary covers other
messages than the list. So the summaries of all threads are kept, beside the one that covers the messages of
the list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import get_runtime

from langchain_threadmem.common.inputs import check_one_of, is_number, is_whole
from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph._system import Lineage
from langchain_threadmem.langgraph.checkpoints.removals import removed_between_runs, written
from langchain_threadmem.langgraph.routing.events import MoveEvent, SelectionEvent
from langchain_threadmem.langgraph.routing.route import ActiveThread, Routed, thread_to
from langchain_threadmem.langgraph.routing.store_messages import may_lack_messages, remove_messages, spoken_of
from langchain_threadmem.recall.options import Scope
from langchain_threadmem.selection.run_selector import ThreadedConversation

_CHECKPOINTER = "__pregel_checkpointer"
"""The field of `configurable` in which LangGraph passes the checkpointer of a run to nodes and subgraphs."""
_MOST = 64
"""The maximum number of checkpoints that are searched."""
OF_OTHER_THREADS = "summaries_of_other_threads"
"""The key, beside a running summary, of the running summaries of other threads."""
_COVERED, _LAST = "summarized_message_ids", "last_summarized_message_id"
_OF_POSITIONS = "_summarization_event"
"""The state key of deepagents for a summary that covers messages by their positions in the list."""


def routed_in(active: ActiveThread | None) -> str | None:
    """Id of the human message that was routed last, by the `active_thread` of a state."""
    return active.get("message_id") if active else None


def announced(routed: Routed) -> Flow[None]:
    """Write the events of a route to the custom stream of the graph, and pass them to the callback handlers.

    The events of moved turns come before the event of the selection.
    """
    for event in (*routed.moves, routed.event):
        if event is not None:
            yield from _announce(event)


def state_update(routed: Routed, suggests: bool, messages_key: str | None) -> dict[str, Any]:
    """The update of a state; LangGraph ignores keys that the state does not have.

    Args:
        suggests: Whether places are only suggested.
        messages_key: The key of the list to rewrite; `None` for none.
    """
    update: dict[str, Any] = {"active_thread": routed.thread}
    if suggests and routed.event is not None:
        update["suggestion"] = routed.event["suggestion"]
    if messages_key is not None and routed.messages is not None:
        update[messages_key] = [RemoveMessage(REMOVE_ALL_MESSAGES), *routed.messages]
    return update


def shown_before(update: dict[str, Any], messages_key: str | None) -> Flow[dict[str, Any]]:
    """An update of a state, whose messages `stream_mode="messages"` does not stream.

    LangGraph streams each message that a node returns and that no input of the node has contained. A run with
    the name of the node whose input is the update makes the earlier messages of a thread known.
    """
    config = get_config()
    name = (config.get("metadata") or {}).get("langgraph_node")
    if name and messages_key in update and getattr(config.get("callbacks"), "handlers", ()):
        known: RunnableLambda[Any, None] = RunnableLambda(lambda _: None, name=name)
        given = {"messages": update[messages_key]}
        yield from Call(lambda: known.invoke(given, config), lambda: known.ainvoke(given, config))
    return update


def check_recall(recall: int, scope: Scope, min_similarity: float, name: str = "recall") -> None:
    """Refuse options of a recall that have the wrong type or are out of their range.

    Raises:
        InputError: `recall`, which the caller names `name`, is not an integer of at least 0, `scope` is
            unknown, or `min_similarity` is not a number.
    """
    if not is_whole(recall, 0):
        raise InputError(
            f"{name}={recall!r} is not an integer of at least 0; pass the number of messages, 0 for none"
        )
    check_one_of("scope", scope, get_args(Scope))
    if not is_number(min_similarity):
        raise InputError(f"min_similarity={min_similarity!r} is not a number; pass a cosine such as 0.3")


def _announce(event: MoveEvent | SelectionEvent) -> Flow[None]:
    runtime: Any = get_runtime()
    if runtime is not None:  # Outside of a graph there is no runtime.
        runtime.stream_writer(event)
    config, name = get_config(), event["type"]
    if getattr(config.get("callbacks"), "handlers", ()):
        yield from Call(
            lambda: dispatch_custom_event(name, event, config=config),
            lambda: adispatch_custom_event(name, event, config=config),
        )


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
        lineage: The branch of the run; a run from an older checkpoint deletes nothing.
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


def with_own_summaries(
    conversation: ThreadedConversation,
    state: Any,
    given: Sequence[BaseMessage],
    routed: Routed,
    update: dict[str, Any],
    messages_key: str,
) -> Flow[dict[str, Any]]:
    """An update of a state, in which the running summaries are those of the thread that was selected.

    Args:
        routed: The route of its newest human message; the list is stored.
        messages_key: The state key of the list. A system message with a summary of another thread is removed
            from a list that is rewritten.
    """
    values = state if isinstance(state, Mapping) else vars(state)
    if values.get(_OF_POSITIONS) is not None and messages_key in update:
        update[_OF_POSITIONS] = None
    containers = {None: values} | {key: value for key, value in values.items() if isinstance(value, Mapping)}
    holding = {key: value for key, value in containers.items() if any(_names(value))}
    if not holding:
        return update
    spoken = spoken_of(given)
    newest = [message.id for message in spoken].index(routed.thread["message_id"])
    former = yield from _ids_to(conversation, spoken[newest - 1].id if newest else None)
    path = routed.path.ids
    for key, container in holding.items():
        changed = _exchanged(container, former, path)
        if changed:
            update |= changed if key is None else {key: {**container, **changed}}
        if messages_key in update:
            own, foreign = _texts({**container, **changed})
            update[messages_key] = [
                message
                for message in update[messages_key]
                if not isinstance(message, SystemMessage)
                or any(text in message.text for text in own)
                or not any(text in message.text for text in foreign)
            ]
    return update


def _texts(container: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The texts of the running summaries of the thread, and of those of other threads."""
    others = (container.get(OF_OTHER_THREADS) or {}).values()
    own = [container[name] for name in _names(container) if container.get(name) is not None]
    foreign = [summary for summaries in others for summary in summaries]
    texts = [[str(getattr(summary, "summary", "")) for summary in summaries] for summaries in (own, foreign)]
    return [text for text in texts[0] if text], [text for text in texts[1] if text]


def _names(container: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a container that hold running summaries."""
    for name, value in container.items():
        if dataclasses.is_dataclass(value) and hasattr(value, _COVERED) and hasattr(value, _LAST):
            yield name
    yield from container.get(OF_OTHER_THREADS) or {}


def _ids_to(conversation: ThreadedConversation, message_id: str | None) -> Flow[list[str | None]]:
    if message_id is None:
        return []
    return [message.id for message in (yield from thread_to(conversation, message_id))]


def _exchanged(
    container: Mapping[str, Any], former: Sequence[str | None], path: Sequence[str | None]
) -> dict[str, Any]:
    """The values of a container that change if `path` is selected after `former`."""
    others: dict[str, list[Any]] = dict(container.get(OF_OTHER_THREADS) or {})
    changed: dict[str, Any] = {}
    for name in dict.fromkeys(_names(container)):
        now = container.get(name)
        own = None if now is None else _of_path(now, former)
        known = [*others.get(name, ()), *([own] if own is not None else [])]
        fitting = [summary for summary in known if getattr(summary, _LAST) in path]
        chosen = max(fitting, key=lambda summary: path.index(getattr(summary, _LAST)), default=None)
        others[name] = [summary for summary in known if summary is not chosen]
        if chosen is not now:
            changed[name] = chosen
    others = {name: summaries for name, summaries in others.items() if summaries}
    if others != (container.get(OF_OTHER_THREADS) or {}):
        changed[OF_OTHER_THREADS] = others
    return changed


def _of_path(summary: Any, path: Sequence[str | None]) -> Any:
    """A running summary that covers messages of a path alone; `None` if it covers none of them.

    The list that was summarised may have contained turns of other threads (`selection.coverage`). The model
    may be shown such a turn again, and the summary must not cover it then.
    """
    covered = [message_id for message_id in path if message_id in getattr(summary, _COVERED)]
    if not covered:
        return None
    new = {_COVERED: set(covered), _LAST: covered[-1]}
    return summary if vars(summary).items() >= new.items() else dataclasses.replace(summary, **new)
