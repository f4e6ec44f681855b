"""Telemetry: spans and durations of memory operations for OpenTelemetry."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langchain_threadmem import MemorySystem, ThreadMemSaver, ThreadMemStore, select_thread_node
from langchain_threadmem.engine import telemetry
from langchain_threadmem.selection.tree_view import TreeView

Wrap = Callable[[Any], Any]


class Spans:
    """The finished spans, in the order of their ends."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def attributes(self, name: str) -> dict[str, Any]:
        """The attributes of the last span of a name."""
        return dict([span for span in self.all if span.name == name][-1].attributes or {})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    found = Spans()
    # A process can set its provider only once.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", found.provider)
    return found


def newest(tree: TreeView, message: BaseMessage) -> int | None:
    ends = tree.turn_ends()
    return ends[-1].id if ends else None


def test_an_append_is_a_span_with_the_selection_in_it(
    system: MemorySystem, verbs: Wrap, spans: Spans
) -> None:
    memory = verbs(system.conversation("talk", node_selector=newest))
    memory.append("Hello", "Hi!")
    memory.append("And?", "Well.")
    selection, append = spans.all[-2:]
    assert (selection.name, append.name) == ("select_thread", "create_memory")
    assert selection.parent is not None
    assert append.context is not None
    assert selection.parent.span_id == append.context.span_id
    assert append.attributes == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.provider.name": "threadmem",
        "gen_ai.conversation.id": "talk",
        "gen_ai.memory.record.count": 2,
    }
    found = spans.attributes("select_thread")
    assert (found["threadmem.selection.candidates"], found["threadmem.selection.new_thread"]) == (1, False)


def test_a_weighed_selection_has_its_probability(system: MemorySystem, verbs: Wrap, spans: Spans) -> None:
    from langchain_threadmem import SemanticNodeSelector

    memory = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    memory.append("Where do figs grow?", "In the south.")
    memory.append("And where do figs grow best?", "In Turkey.")
    assert 0 < spans.attributes("select_thread")["threadmem.selection.probability"] <= 1


def test_searches_and_summaries_are_spans(url: str, owner: str, verbs: Wrap, spans: Spans) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("talk")
        memory.extend(["Where do figs grow?", ("ai", "Figs grow in the south.")])
        verbs(memory).recall("figs")
        assert spans.attributes("search_memory")["gen_ai.memory.record.count"] == 2
        verbs(memory).retrieve("figs", n_results=1)
        verbs(system).query("figs")
        verbs(system).summarize_session("talk")
    assert spans.names == ["create_memory", *["search_memory"] * 2, "search_memory", "summarize_memory"]
    assert spans.attributes("summarize_memory")["gen_ai.conversation.id"] == "talk"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_checkpoints_of_a_graph_are_spans(system: MemorySystem, spans: Spans, asynchronous: bool) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("select", select_thread_node(system, newest)).add_edge(START, "select")
    graph = builder.compile(checkpointer=ThreadMemSaver(system))
    config: RunnableConfig = {"configurable": {"thread_id": "talk"}}
    if asynchronous:
        asyncio.run(graph.ainvoke({"messages": [("user", "Hello")]}, config))
    else:
        graph.invoke({"messages": [("user", "Hello")]}, config)
    assert {"get_checkpoint", "put_checkpoint", "put_writes", "select_thread"} <= {*spans.names}
    assert spans.attributes("put_checkpoint")["gen_ai.conversation.id"] == "talk"


def test_changes_and_removals_are_spans(system: MemorySystem, verbs: Wrap, spans: Spans) -> None:
    talk = system.conversation("talk")
    _, figs = talk.append("Where do figs grow?", "In the south.")
    question, answer = talk.append("And dates?", "In the desert.")
    memory = verbs(talk)
    memory.place(question.id, None)
    memory.edit(figs.id - 1, "Where do figs grow best?")
    memory.regenerate(answer.id, "In oases.")
    assert spans.names[-3:] == ["update_memory"] * 3
    assert spans.attributes("update_memory")["gen_ai.conversation.id"] == "talk"
    memory.reset()
    assert spans.attributes("delete_memory")["gen_ai.conversation.id"] == "talk"
    talk.append("Hello", "Hi!")
    verbs(system).erase(conversation="talk")
    assert spans.attributes("delete_memory")["gen_ai.memory.record.count"] == 2
    verbs(system).erase()
    assert "gen_ai.conversation.id" not in spans.attributes("delete_memory")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_operations_of_the_store_are_spans(
    system: MemorySystem, spans: Spans, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    store = ThreadMemStore(system)

    def batch(*ops: Any) -> None:
        if asynchronous:
            asyncio.run(store.abatch(ops))
        else:
            store.batch(iter(ops))

    place: Any = (("people",), "ada")
    put, get = PutOp(*place, {"likes": "a secret"}), GetOp(*place)
    search, names = SearchOp(("people",), query="secret"), ListNamespacesOp()
    for ops in ([put], [get], [search], [names], [put, get], [PutOp(*place, None)], [get]):
        batch(*ops)
    counts = [(span.name, (span.attributes or {})["gen_ai.memory.record.count"]) for span in spans.all]
    assert counts == [
        ("put_item", 0),
        ("get_item", 1),
        ("search_items", 1),
        ("list_namespaces", 1),
        ("batch_items", 1),
        ("delete_item", 0),
        ("get_item", 0),
    ]
    assert "secret" not in str([span.to_json() for span in spans.all])
    monkeypatch.setenv(telemetry.CAPTURE, "true")
    batch(search)
    assert spans.attributes("search_items")["gen_ai.memory.query.text"] == "secret"


def test_spans_have_no_text_unless_it_is_captured(
    system: MemorySystem, verbs: Wrap, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = verbs(system.conversation("talk", node_selector=newest))
    memory.append("a secret", "hidden")
    memory.recall("secret")
    assert "secret" not in str([span.to_json() for span in spans.all])
    monkeypatch.setenv(telemetry.CAPTURE, "true")
    memory.recall("secret", n_results=1)
    found = spans.attributes("search_memory")
    assert found["gen_ai.memory.query.text"] == "secret"
    assert [record["content"] for record in json.loads(found["gen_ai.memory.records"])] == ["a secret"]


def test_an_error_is_named_without_its_text(system: MemorySystem, verbs: Wrap, spans: Spans) -> None:
    with pytest.raises(ValueError, match="a secret"):
        verbs(system.conversation("talk")).append({"role": "nobody", "content": "a secret"})
    [span] = spans.all
    assert (span.status.status_code, span.attributes["error.type"]) == (trace.StatusCode.ERROR, "InputError")  # type: ignore[index]
    assert "secret" not in span.to_json()


def test_durations_are_measured_by_operation(
    system: MemorySystem, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", provider)
    verbs(system.conversation("talk")).append("Hello", "Hi!")
    data = reader.get_metrics_data()
    assert data is not None
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    [point] = metric.data.data_points
    assert (metric.name, metric.unit) == ("gen_ai.client.operation.duration", "s")
    assert point.attributes["gen_ai.operation.name"] == "create_memory"  # type: ignore[index]
    assert point.count == 1  # type: ignore[union-attr]


def test_a_model_call_in_a_selector_is_below_its_span(
    system: MemorySystem, verbs: Wrap, spans: Spans
) -> None:
    seen: list[int] = []
    model = FakeListChatModel(responses=["x"])

    def selector(tree: TreeView, message: BaseMessage) -> int | None:
        seen.append(trace.get_current_span().get_span_context().span_id)
        model.invoke([message])
        return None

    verbs(system.conversation("talk", node_selector=selector)).append("Hello", "Hi!")
    assert seen == [
        span.context.span_id for span in spans.all if span.name == "select_thread" and span.context
    ]


def test_without_a_provider_nothing_is_measured(system: MemorySystem) -> None:
    system.conversation("talk").append("Hello", "Hi!")
    assert not telemetry.is_configured()


def test_without_a_provider_opentelemetry_is_not_imported() -> None:
    code = (
        "import sys, langsmith.client; before = set(sys.modules);"  # Some versions import it.
        "from langchain_threadmem import ChatMemory; ChatMemory().append('a', 'b');"
        "print([name for name in set(sys.modules) - before if name.startswith('opentelemetry')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert run.stdout.strip() == "[]"


def test_the_words_of_a_prompt_are_attributes(system: MemorySystem, spans: Spans) -> None:
    memory = system.conversation("talk")
    memory.append("How do figs grow?")
    assert len(memory.messages) == 1
    found = spans.attributes("build_prompt")
    assert found["gen_ai.conversation.id"] == "talk"
    assert (found["threadmem.prompt.words"], found["threadmem.prompt.repeated_words"]) == (4, 0)
    assert len(memory.messages) == 1
    assert spans.attributes("build_prompt")["threadmem.prompt.repeated_words"] == 4
