"""Announcement of selections: LangGraph's custom stream and LangChain's callback handlers."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.threads.events import SELECTION, SelectionEvent


def announce(event: SelectionEvent | None) -> Flow[None]:
    """Write an event to the custom stream of the graph, and pass it to the handlers of the run."""
    if event is None:
        return
    runtime: Any = get_runtime()
    if runtime is not None:  # It is `None` outside of a graph.
        runtime.stream_writer(event)
    config = get_config()
    if getattr(config.get("callbacks"), "handlers", ()):
        yield from Call(
            lambda: dispatch_custom_event(SELECTION, event, config=config),
            lambda: adispatch_custom_event(SELECTION, event, config=config),
        )
