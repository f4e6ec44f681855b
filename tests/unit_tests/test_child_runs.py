"""Child runs: callback handlers see the model calls of memory below the run that caused them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    LLMNodeSelector,
    LLMSummarizer,
    MemorySystem,
    ThreadMemMiddleware,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.selection.tree_view import TreeView

ANSWER = '{"selected_node_id": null, "reasoning": "r", "title": "T", "summary": "S."}'


class Runs(BaseCallbackHandler):
    """Records each run with its parent."""

    def __init__(self) -> None:
        self.started: dict[UUID, tuple[str | None, UUID | None]] = {}
        self.metadata: dict[str | None, dict[str, Any]] = {}
        self.models: list[UUID] = []

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        self.started[run_id] = more.get("name"), parent_run_id
        self.metadata[more.get("name")] = more["metadata"]

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        self.on_chain_start(serialized, messages, run_id=run_id, parent_run_id=parent_run_id, **more)
        self.models.append(run_id)

    def above(self, run: UUID | None) -> list[str | None]:
        """The names of a run and of the runs above it, up to the root."""
        names: list[str | None] = []
        while run is not None:
            name, run = self.started[run]
            names.append(name)
        return names

    @property
    def calls(self) -> list[list[str | None]]:
        """The names of each model call and of the runs above it."""
        return [self.above(run) for run in self.models]

    def path(self, name: str) -> list[str | None]:
        """The names of the runs above the one run of a name."""
        [run] = [run for run, (found, _) in self.started.items() if found == name]
        return self.above(run)[1:]


Invoke = Callable[..., Runs]


@pytest.fixture
def invoke(invoke: Callable[..., Any]) -> Invoke:
    """Invokes a runnable with each text, and returns the runs of the last call."""

    def call(runnable: Runnable[Any, Any], *texts: str) -> Runs:
        for text in texts or ("tea", "cat"):
            runs = Runs()
            config: RunnableConfig = {"configurable": {"thread_id": "talk"}, "callbacks": [runs]}
            invoke(runnable, {"messages": [("user", text)]}, config)
        return runs

    return call


@pytest.fixture
def model() -> FakeListChatModel:
    return FakeListChatModel(responses=[ANSWER])


def graph_of(node: Runnable[Any, Any], *, name: str = "node") -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node(name, node)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("ok")]})
    return builder.add_edge(START, name).add_edge(name, "answer").compile()


def step(function: Callable[[], Any], afunction: Callable[[], Any]) -> Runnable[Any, Any]:
    """A node that calls a function of the program."""

    def work(state: Any) -> dict[str, Any]:
        function()
        return {}

    async def awork(state: Any) -> dict[str, Any]:
        await afunction()
        return {}

    return RunnableLambda(work, awork, name="step")


def test_the_question_of_a_selector_is_below_its_node(
    system: MemorySystem, model: FakeListChatModel, invoke: Invoke
) -> None:
    system.conversation("talk").append("Hello", "Hi!")
    runs = invoke(graph_of(select_thread_node(system, LLMNodeSelector(model))), "tea")
    [call] = runs.calls
    assert (call[0], call[-2:]) == ("threadmem.select_thread", ["node", "LangGraph"])
    assert runs.metadata["threadmem.select_thread"]["threadmem_conversation"] == "talk"


def test_the_question_of_a_selector_is_below_the_agent(
    system: MemorySystem, model: FakeListChatModel, invoke: Invoke
) -> None:
    memory = ThreadMemMiddleware(system, selector=LLMNodeSelector(model))
    runs = invoke(create_agent(FakeListChatModel(responses=["ok"]), middleware=[memory]))
    asked = [call for call in runs.calls if call[0] == "threadmem.select_thread"]
    assert [call[-2:] for call in asked] == [["ThreadMemMiddleware.before_agent", "LangGraph"]]


def test_the_question_of_a_selector_is_below_the_ready_made_chat(
    system: MemorySystem, model: FakeListChatModel, invoke: Invoke
) -> None:
    runs = invoke(create_threaded_chat(model, system, selector=LLMNodeSelector(model)))
    assert [call[-2:] for call in runs.calls] == [
        ["select_thread", "threaded_chat"],
        ["model", "threaded_chat"],
    ]


def test_a_selector_of_the_program_is_a_run_with_its_model_calls(
    system: MemorySystem, model: FakeListChatModel, invoke: Invoke
) -> None:
    def selector(tree: TreeView, message: BaseMessage) -> int | None:
        model.invoke([message])
        return None

    runs = invoke(graph_of(select_thread_node(system, selector)), "tea")
    assert runs.path("threadmem.select_thread")[-2:] == ["node", "LangGraph"]
    assert [call[1] for call in runs.calls] == ["threadmem.select_thread"]


def test_a_reranker_is_a_run(system: MemorySystem, invoke: Invoke) -> None:
    class Longest:
        def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            return [float(len(text)) for text in texts]

    memory = system.conversation("talk")
    memory.append("Where do figs grow?", "Figs grow in the south.")
    node = step(
        lambda: memory.recall("figs", reranker=Longest()), lambda: memory.arecall("figs", reranker=Longest())
    )
    runs = invoke(graph_of(node), "tea")
    assert runs.path("threadmem.rerank")[-2:] == ["node", "LangGraph"]


@pytest.mark.parametrize("where", ["talk", ""])
def test_summaries_are_below_the_run_that_asks_for_them(
    url: str, owner: str, model: FakeListChatModel, invoke: Invoke, where: str
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, model=model) as system:
        for name in ("talk", "other"):
            system.conversation(name).append("Where do figs grow?", "In the south.")
            system.summarize_session(name)
        system.conversation("talk").append("And where does tea grow?", "In the east.")
        node = step(
            lambda: system.summarize_session("talk") if where else system.summarize_long_term_memory(),
            lambda: system.asummarize_session("talk") if where else system.asummarize_long_term_memory(),
        )
        runs = invoke(graph_of(node), "tea")
    names = {"talk": ["threadmem.summarize_session"]}
    expected = names.get(where, ["threadmem.summarize_session", "threadmem.summarize_long_term_memory"])
    assert [call[0] for call in runs.calls] == expected
    assert {tuple(call[-2:]) for call in runs.calls} == {("node", "LangGraph")}


def test_a_message_summary_outside_of_a_run_is_a_root(
    system: MemorySystem, verbs: Callable[[Any], Any]
) -> None:
    runs = Runs()
    model = FakeListChatModel(responses=[ANSWER], callbacks=[runs])
    memory = system.conversation(
        "talk", node_selector=LLMNodeSelector(model), summarizer=LLMSummarizer(model)
    )
    verb = verbs(memory)
    verb.append("tea", "green")
    verb.append("cat", "black")
    verb.summarize(2)
    assert runs.calls == [["threadmem.select_thread"], ["threadmem.summarize_message"]]


def test_the_stream_of_messages_has_no_tokens_of_the_selector(
    system: MemorySystem, model: FakeListChatModel
) -> None:
    system.conversation("talk").append("Hello", "Hi!")
    config: RunnableConfig = {"configurable": {"thread_id": "talk"}}
    for name in ("node", "select_thread"):
        graph = graph_of(select_thread_node(system, LLMNodeSelector(model)), name=name)
        streamed = graph.stream({"messages": [("user", f"tea {name}")]}, config, stream_mode="messages")
        assert "".join(message.text for message, _ in streamed) == "ok"
