"""Events of selection: custom stream, callback handlers, suggested places and their acceptance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from conftest import by_first_word
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langchain_threadmem import (
    LinearNodeSelector,
    LLMNodeSelector,
    MemorySystem,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.messages.quoting import is_block
from langchain_threadmem.selection.selectors import FlowSelector
from langchain_threadmem.selection.tree_view import TreeView

Build = Callable[..., Any]
Ask = Callable[..., list[dict[str, Any]]]


class Sure(FlowSelector):
    """Chooses by the first word, with a probability of 0.9."""

    def choose(self, tree: TreeView, message: BaseMessage) -> Any:
        yield from ()
        parent = by_first_word(tree, message)
        tree.reason, tree.chances = "the same word", ((parent, 0.9), (-1, 0.1))
        return parent


class Events(BaseCallbackHandler):
    """Records custom events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        self.seen.append((name, data))


class Failing(BaseCallbackHandler):
    def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        raise RuntimeError("no")


def graph_of_nodes(system: MemorySystem, saver: Any, **options: Any) -> Any:
    builder = StateGraph(ThreadedState)
    builder.add_node("select_thread", select_thread_node(system, options.pop("selector"), **options))
    builder.add_node("answer", lambda state: {"messages": [AIMessage("ok")]})
    return builder.add_edge(START, "select_thread").add_edge("select_thread", "answer").compile(saver)


def threaded_chat(system: MemorySystem, saver: Any, **options: Any) -> Any:
    return create_threaded_chat(FakeListChatModel(responses=["ok"]), system, checkpointer=saver, **options)


def agent(system: MemorySystem, saver: Any, **options: Any) -> Any:
    middleware = ThreadMemMiddleware(system, **options)
    return create_agent(FakeListChatModel(responses=["ok"]), middleware=[middleware], checkpointer=saver)


@pytest.fixture(params=[graph_of_nodes, threaded_chat, agent])
def build(request: pytest.FixtureRequest) -> Build:
    """Builds a graph that answers "ok" in the thread of each message."""
    found: Build = request.param
    return found


def config_of(*handlers: BaseCallbackHandler) -> RunnableConfig:
    return {"configurable": {"thread_id": "talk"}, "callbacks": list(handlers)}


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Streams the answers to some texts; what the custom stream has shown."""
    runner = asyncio.Runner() if request.param == "async" else None

    def stream(graph: Any, *texts: str, handlers: tuple[BaseCallbackHandler, ...] = ()) -> list[Any]:
        shown: list[Any] = []

        async def collect(values: Any) -> list[Any]:
            return [one async for one in graph.astream(values, config_of(*handlers), stream_mode="custom")]

        for text in texts:
            values = {"messages": [HumanMessage(text, id=f"h:{text}")]}
            if runner is None:
                shown += graph.stream(values, config_of(*handlers), stream_mode="custom")
            else:
                shown += runner.run(collect(values))
        return shown

    yield stream
    if runner is not None:
        runner.close()


def threads(system: MemorySystem) -> list[list[str]]:
    found = system.conversation("talk").threads()
    return [
        [str(node.message.content) for node in thread if node.message.type == "human"] for thread in found
    ]


def test_each_selection_is_on_the_custom_stream(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = build(system, InMemorySaver(), selector=by_first_word)
    shown = ask(graph, "tea one", "tea two", "bread one", "tea three")
    assert [(one["kind"], one["message_id"], one["parent_id"], one["title"]) for one in shown] == [
        ("new_thread", "h:tea one", None, "Tea one"),
        ("continues", "h:tea two", 2, "Tea one"),
        ("new_thread", "h:bread one", None, "Bread one"),
        ("returns", "h:tea three", 4, "Tea one"),
    ]


def test_the_first_message_after_an_import_is_selected(system: MemorySystem, build: Build, ask: Ask) -> None:
    system.conversation("talk").extend(["tea one", ("ai", "ok"), "bread one", ("ai", "ok")])
    graph = build(system, ThreadMemSaver(system), selector=by_first_word)
    shown = ask(graph, "tea two", "figs one")
    assert [(one["kind"], one["parent_id"]) for one in shown] == [("returns", 2), ("new_thread", None)]


@pytest.mark.parametrize("edited", [1, 3])
def test_a_message_that_was_edited_after_an_import_keeps_its_place(
    system: MemorySystem, build: Build, ask: Ask, edited: int
) -> None:
    memory = system.conversation("talk")
    memory.extend(["tea one", ("ai", "ok"), "bread one", ("ai", "ok")])
    graph = build(system, ThreadMemSaver(system), selector=by_first_word)
    version = memory.edit(edited, HumanMessage("figs one", id="h:figs one"))
    assert ask(graph, "figs one") == []
    assert memory.tip.parent_id == version.id


def test_an_event_has_the_probabilities_of_the_selector(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = build(system, InMemorySaver(), selector=Sure())
    _, shown = ask(graph, "tea one", "tea two")
    assert shown == {
        "type": "threadmem.selection",
        "conversation_id": "talk",
        "message_id": "h:tea two",
        "node_id": 3,
        "parent_id": 2,
        "kind": "continues",
        "probability": 0.9,
        "candidates": [{"parent_id": 2, "probability": 0.9}, {"parent_id": -1, "probability": 0.1}],
        "reason": "the same word",
        "title": "Tea one",
        "suggestion": None,
    }


def test_callback_handlers_get_the_event_of_the_stream(system: MemorySystem, build: Build, ask: Ask) -> None:
    handler = Events()
    graph = build(system, InMemorySaver(), selector=by_first_word)
    shown = ask(graph, "tea one", "bread one", handlers=(handler,))
    assert handler.seen == [("threadmem.selection", one) for one in shown]
    assert len(shown) == 2


def test_astream_events_shows_selections(system: MemorySystem, build: Build) -> None:
    graph = build(system, InMemorySaver(), selector=by_first_word)

    async def names() -> list[str]:
        values = {"messages": [("user", "tea one")]}
        found = graph.astream_events(values, config_of(), version="v2")
        return [one["name"] async for one in found if one["event"] == "on_custom_event"]

    assert asyncio.run(names()) == ["threadmem.selection"]


def test_a_selection_is_shown_once(system: MemorySystem, ask: Ask) -> None:
    node = select_thread_node(system, by_first_word)
    handler = Events()
    given = {"messages": [HumanMessage("tea one", id="h1")]}
    update = node.invoke(given, config_of(handler))
    node.invoke({**given, **update}, config_of(handler))
    assert len(handler.seen) == 1


def test_a_linear_selector_has_events_too(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = build(system, InMemorySaver(), selector=LinearNodeSelector())
    assert [one["kind"] for one in ask(graph, "tea one", "bread one")] == ["new_thread", "continues"]


def test_a_handler_that_fails_does_not_end_the_run(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = build(system, InMemorySaver(), selector=by_first_word)
    ask(graph, "tea one", handlers=(Failing(),))
    assert threads(system) == [["tea one"]]


def suggesting(build: Build, system: MemorySystem, **options: Any) -> Any:
    options = {"selector": Sure(), "on_select": "suggest", **options}
    return build(system, options.pop("saver", InMemorySaver()), **options)


def state_of(graph: Any) -> dict[str, Any]:
    found: dict[str, Any] = graph.get_state(config_of()).values
    return found


def test_a_suggested_place_moves_no_message(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = suggesting(build, system)
    shown = ask(graph, "tea one", "bread one", "tea two")
    assert threads(system) == [["tea one", "bread one", "tea two"]]
    assert [one["kind"] for one in shown] == ["new_thread", "continues", "continues"]
    assert [one["suggestion"] and one["suggestion"]["text"] for one in shown] == [
        None,
        "this looks like another topic: 'Bread one' (0.90)",
        "this looks like a return to an earlier topic: 'Tea one' (0.90)",
    ]


def test_the_state_has_the_suggestion_for_the_newest_message(
    system: MemorySystem, build: Build, ask: Ask
) -> None:
    graph = suggesting(build, system)
    shown = ask(graph, "tea one", "bread one")
    assert state_of(graph)["suggestion"] == shown[-1]["suggestion"]
    assert state_of(graph)["suggestion"] == {
        "message_id": "h:bread one",
        "node_id": 3,
        "parent_id": None,
        "probability": 0.9,
        "title": "Bread one",
        "text": "this looks like another topic: 'Bread one' (0.90)",
    }
    ask(graph, "bread two")
    ask(graph, "bread three")
    assert state_of(graph)["suggestion"] is None


@pytest.mark.parametrize("saver_of", [ThreadMemSaver, lambda _: InMemorySaver()], ids=["own", "other"])
def test_an_accepted_suggestion_moves_the_message_and_the_next_run_shows_it(
    system: MemorySystem, build: Build, ask: Ask, saver_of: Callable[[MemorySystem], Any]
) -> None:
    graph = suggesting(build, system, saver=saver_of(system), **({"rewrite": True} if build is agent else {}))
    ask(graph, "tea one", "bread one")
    suggestion = state_of(graph)["suggestion"]
    system.conversation("talk").place(suggestion["node_id"], suggestion["parent_id"])
    [shown] = ask(graph, "bread two")
    assert (shown["kind"], shown["title"], shown["suggestion"]) == ("continues", "Bread one", None)
    assert threads(system) == [["tea one"], ["bread one", "bread two"]]
    messages = state_of(graph)["messages"]
    said = [m.content for m in messages if m.type == "human" and not is_block(m)]
    assert said == ["bread one", "bread two"]


def test_a_place_below_the_threshold_is_not_suggested(system: MemorySystem, build: Build, ask: Ask) -> None:
    graph = suggesting(build, system, suggest_at=0.95)
    assert [one["suggestion"] for one in ask(graph, "tea one", "bread one")] == [None, None]


def test_a_selector_without_probabilities_suggests_each_other_place(
    system: MemorySystem, build: Build, ask: Ask
) -> None:
    graph = suggesting(build, system, selector=by_first_word)
    _, shown = ask(graph, "tea one", "bread one")
    assert shown["suggestion"]["probability"] is None
    assert shown["suggestion"]["text"] == "this looks like another topic: 'Bread one'"


def fails(tree: TreeView, message: BaseMessage) -> int | None:
    raise RuntimeError("no")


@pytest.mark.parametrize("selector", [fails, LLMNodeSelector(FakeListChatModel(responses=["?"]), attempts=1)])
def test_a_selector_that_fails_suggests_no_place(system: MemorySystem, ask: Ask, selector: Any) -> None:
    graph = suggesting(graph_of_nodes, system, selector=selector, on_selection_failure="root")
    shown = ask(graph, "tea one", "bread one")
    assert [one["suggestion"] for one in shown] == [None, None]
    assert threads(system) == [["tea one", "bread one"]]


def test_a_conversation_of_one_tree_has_no_suggestion_of_a_new_thread(system: MemorySystem, ask: Ask) -> None:
    graph = suggesting(graph_of_nodes, system, single_tree=True)
    assert [one["suggestion"] for one in ask(graph, "tea one", "bread one")] == [None, None]


def test_a_message_after_an_unanswered_one_has_no_suggestion_of_the_same_place(system: MemorySystem) -> None:
    node = select_thread_node(system, Sure(), on_select="suggest")
    spoken = [HumanMessage("tea one", id="h1"), AIMessage("ok", id="a1"), HumanMessage("tea two", id="h2")]
    node.invoke({"messages": spoken}, config_of())
    update = node.invoke({"messages": [*spoken, HumanMessage("tea three", id="h3")]}, config_of())
    assert update["suggestion"] is None


def test_a_place_that_is_applied_sets_no_suggestion(system: MemorySystem) -> None:
    update = select_thread_node(system, Sure()).invoke({"messages": [HumanMessage("a", id="h")]}, config_of())
    assert "suggestion" not in update


@pytest.mark.parametrize("options", [{"on_select": "ask"}, {"suggest_at": 1.5}, {"suggest_at": "much"}])
def test_an_option_out_of_its_range_is_refused(
    system: MemorySystem, build: Build, options: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        build(system, None, selector=Sure(), **options)
