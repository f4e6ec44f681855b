"""Events of selections and moves in LangGraph's custom stream and for LangChain's callback handlers."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.threads.events import MoveEvent, SelectionEvent
from langchain_threadmem.threads.route import Routed


def announce(routed: Routed) -> Flow[None]:
    """Write events to the custom stream of the graph, and pass them to the callback handlers of the run.

    The events of moved turns come before the event of the selection.
    """
    for event in routed.moves:
        yield from _announce(event)
    if routed.event is not None:
        yield from _announce(routed.event)


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
