"""Running summaries beside a state's list of messages, such as langmem's `RunningSummary`.

A node that summarises a list keeps the summary, and the ids of the messages that it covers, beside the list.
After another thread is selected, the summary covers other messages than the list. So the summaries of all
threads are kept, beside the one that covers the messages of the list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.langgraph.routing.route import Routed, thread_to
from langchain_threadmem.langgraph.routing.store_messages import spoken_of
from langchain_threadmem.selection.run_selector import ThreadedConversation

OF_OTHER_THREADS = "summaries_of_other_threads"
"""The key, beside a running summary, of the running summaries of other threads."""
_COVERED, _LAST = "summarized_message_ids", "last_summarized_message_id"
_OF_POSITIONS = "_summarization_event"
"""The state key of deepagents for a summary that covers messages by their positions in the list."""


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
        conversation: The conversation.
        state: The state before the update.
        given: The list of the state.
        routed: The route of its newest human message; the list is stored.
        update: The update without summaries.
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
    path = [message.id for message in routed.path]
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
