"""Telemetry: OpenTelemetry spans and durations of flows, if the program has configured a provider.

Names follow the draft conventions for generative AI (`gen_ai.memory.*`); names without a convention begin
with `threadmem.`. Owners and texts of errors are not exported. Texts of messages and queries are exported
only if the environment variable `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`,
`1`, `span_only` or `span_and_event`.

Without a provider each flow only checks the imported modules, in 0.3 µs, or 0.5 µs if OpenTelemetry is
imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.type_variables import P, T
from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.messages.codec import text_of

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

AttributeValue = str | int | float | bool | Callable[[], str]
"""The value of an attribute; message content is a function, which is called only if content is captured."""
Attributes = Mapping[str, AttributeValue]
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONVERSATION, ERROR, OPERATION = "gen_ai.conversation.id", "error.type", "gen_ai.operation.name"
QUERY, RECORDS, COUNT = "gen_ai.memory.query.text", "gen_ai.memory.records", "gen_ai.memory.record.count"
_NAME = "langchain_threadmem"


def of_conversation(conversation: Any, *_: object, **__: object) -> Attributes:
    """The attributes of a flow whose first argument is a conversation."""
    return {CONVERSATION: conversation.name}


def of_name(_: object, name: str | None, *__: object, **___: object) -> Attributes:
    """The attributes of a flow whose second argument is the name of a conversation, or `None` for all."""
    return {} if name is None else {CONVERSATION: name}


def of_query(conversation: Any, query: str, *_: object, **__: object) -> Attributes:
    """The attributes of a search in a conversation."""
    return {CONVERSATION: conversation.name, QUERY: lambda: str(query)}


def no_attributes(*_: object) -> Attributes:
    """No attributes."""
    return {}


def written(node: object) -> Attributes:
    """The number of records in a result that is one record or `None`."""
    return {COUNT: int(node is not None)}


def records(messages: Iterable[BaseMessage]) -> Attributes:
    """The number of messages in a result, and their texts."""
    listed = list(messages)
    return {
        COUNT: len(listed),
        RECORDS: lambda: json.dumps([{"id": message.id, "content": text_of(message)} for message in listed]),
    }


def nodes(result: Iterable[Any]) -> Attributes:
    """The `records` of a result of nodes, or of other values with a message."""
    return records(node.message for node in result)


def observed(
    operation: str | Callable[..., str],
    start: Callable[..., Attributes],
    end: Callable[[Any], Attributes] = no_attributes,
) -> Callable[[Callable[P, Flow[T]]], Callable[P, Flow[T]]]:
    """Decorate a function that returns a flow with a span and a measured duration.

    Args:
        operation: The name of the span and of the operation, or the name by the arguments of the flow.
        start: The attributes by the arguments of the flow.
        end: The attributes by its result.
    """

    def decorate(flow: Callable[P, Flow[T]]) -> Callable[P, Flow[T]]:
        @wraps(flow)
        def opened(*args: P.args, **kwargs: P.kwargs) -> Flow[T]:
            if not is_configured():
                return flow(*args, **kwargs)
            name = operation(*args, **kwargs) if callable(operation) else operation
            return _observed(name, start(*args, **kwargs), partial(flow, *args, **kwargs), end)

        return opened

    return decorate


def is_configured() -> bool:
    """Whether the program has set a provider, for which it has to import OpenTelemetry."""
    trace, metrics = (
        sys.modules.get("opentelemetry.trace"),
        sys.modules.get("opentelemetry.metrics._internal"),
    )
    # Without a provider the public function reads the environment, in 3 of the 25 µs of an append.
    return (
        getattr(trace, "_TRACER_PROVIDER", trace) is not None and _is_set(trace, "get_tracer_provider")
    ) or (getattr(metrics, "_METER_PROVIDER", metrics) is not None and _is_set(metrics, "get_meter_provider"))


def _is_set(module: ModuleType | None, getter: str) -> bool:
    """Whether the current provider of a module is not one of the API package, which do nothing."""
    current = getattr(module, getter, None)
    if current is None:
        return False  # Another thread is importing the module.
    return not type(current()).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


def _observed(
    operation: str, start: Attributes, flow: Callable[[], Flow[T]], end: Callable[[Any], Attributes]
) -> Flow[T]:
    from opentelemetry import metrics, trace

    common = {OPERATION: operation, "gen_ai.provider.name": "threadmem"}
    labels = dict(common)
    began = time.perf_counter()
    span = _tracer(trace.get_tracer_provider()).start_as_current_span(
        operation,
        attributes={**common, **_exported(start)},
        record_exception=False,  # The text of an error may quote a message.
        set_status_on_exception=False,
    )
    with span as current:
        try:
            result = yield from flow()
            if current.is_recording():
                current.set_attributes(_exported(end(result)))
            return result
        except Exception as error:
            labels[ERROR] = type(error).__qualname__
            current.set_attribute(ERROR, labels[ERROR])
            current.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            _durations(metrics.get_meter_provider()).record(time.perf_counter() - began, labels)


def _exported(attributes: Attributes) -> dict[str, str | int | float | bool]:
    """The values of attributes; message content only if it is captured."""
    captured = os.environ.get(CAPTURE, "").lower() in ("true", "1", "span_only", "span_and_event")
    return {
        name: value() if callable(value) else value
        for name, value in attributes.items()
        if captured or not callable(value)
    }


@lru_cache(maxsize=4)
def _tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer(_NAME)


@lru_cache(maxsize=4)
def _durations(provider: MeterProvider) -> Histogram:
    return provider.get_meter(_NAME).create_histogram(
        "gen_ai.client.operation.duration", "s", "Duration of memory operations."
    )
