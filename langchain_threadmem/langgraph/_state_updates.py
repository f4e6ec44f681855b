"""Updates of a graph's state by nodes and middleware: the route of a message, with its events."""

from __future__ import annotations

from typing import Any, get_args

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import get_runtime

from langchain_threadmem.common.inputs import check_one_of, is_number, is_whole
from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.routing.events import MoveEvent, SelectionEvent
from langchain_threadmem.langgraph.routing.route import ActiveThread, Routed
from langchain_threadmem.recall.options import Scope


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
        routed: The route.
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
