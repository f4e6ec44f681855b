"""Answers with the message id of an answer to another question, as a cache of answers returns them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import MessageIdConflictError
from langchain_threadmem.langgraph.node import store_turn_node
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.storage.schema import State

Wrap = Callable[[ChatMemory], Any]
CONFIG: Any = {"configurable": {"thread_id": "talk"}}


def new_thread(tree: TreeView, message: BaseMessage) -> int | None:
    return None


def hello() -> AIMessage:
    return AIMessage("Hello!", id="run-1")


def places(nodes: list[Any]) -> list[tuple[int, int | None]]:
    return [(node.id, node.parent_id) for node in nodes]


@pytest.fixture
def cache() -> Iterator[None]:
    before = get_llm_cache()
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(before)


@pytest.mark.parametrize("selector", [None, new_thread])
def test_an_answer_with_a_known_id_answers_its_own_question(
    system: MemorySystem, verbs: Wrap, caplog: pytest.LogCaptureFixture, selector: Any
) -> None:
    memory = verbs(system.conversation("talk", node_selector=selector))
    for _ in range(2):
        memory.append("Hi")
        [answer] = memory.append(hello())
    assert (answer.id, answer.parent_id, answer.message.content) == (4, 3, "Hello!")
    assert answer.message.id != "run-1"
    assert [node.state for node in memory.history()] == [State.LIVE] * 4
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'run-1'" in caplog.text
    assert memory.verify().ok


def test_whole_turns_and_lists_with_a_known_answer_are_stored(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append("Hi", hello())
    memory.append("Hi", hello())
    memory.extend(["Hi", hello(), "Hi", hello()])
    assert places(memory.history()) == [(n, n - 1 or None) for n in range(1, 9)]
    assert len({node.message.id for node in memory.history()}) == 8


def test_a_repeated_append_is_stored_once(
    system: MemorySystem, verbs: Wrap, caplog: pytest.LogCaptureFixture
) -> None:
    memory = verbs(system.conversation("talk"))
    first, second = HumanMessage("Hi", id="h1"), HumanMessage("Hi", id="h2")
    with caplog.at_level(logging.ERROR, "langchain_threadmem"):
        for _ in range(2):
            assert [node.id for node in memory.append(first, hello())] == [1, 2]
        assert memory.append(hello())[0].id == 2
        for _ in range(2):
            assert [node.id for node in memory.append(second, hello())] == [3, 4]
        assert memory.append(hello())[0].id == 4
        memory.append("And?", "So.")
        assert memory.append(hello())[0].id == 2
    assert len(memory.history()) == 6


def test_a_call_and_the_answer_after_its_result_may_both_come_from_a_cache(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = verbs(system.conversation("talk", node_selector=new_thread))
    for _ in range(2):
        memory.append("Weather?")
        memory.append(AIMessage("", id="run-0", tool_calls=[{"name": "look", "args": {}, "id": "c1"}]))
        memory.append(ToolMessage("sunny", tool_call_id="c1"))
        memory.append(hello())
    assert [[node.message.text for node in thread] for thread in memory.threads()] == [
        ["Weather?", "", "sunny", "Hello!"]
    ] * 2


def test_other_content_with_a_known_id_is_refused(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append("Hi", hello())
    memory.append("Bye")
    with pytest.raises(MessageIdConflictError):
        memory.append(AIMessage("Goodbye!", id="run-1"))


def test_a_cached_answer_of_another_question_may_replace_an_answer(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append("Hi", hello())
    memory.append("Hi", "What?")
    [answer] = memory.regenerate(4, hello())
    assert (answer.parent_id, answer.message.content) == (3, "Hello!")
    assert [(node.id, node.state) for node in memory.history()][1] == (2, State.LIVE)


@pytest.mark.usefixtures("cache")
def test_the_answers_of_langchains_cache_are_all_stored(system: MemorySystem, verbs: Wrap) -> None:
    model = FakeListChatModel(responses=["Hello!", "not from the cache"])
    memory = verbs(system.conversation("talk", node_selector=new_thread))
    for _ in range(3):
        memory.append("Hi")
        memory.append(model.invoke(memory.messages()))
    assert places(memory.history()) == [(1, None), (2, 1), (3, None), (4, 3), (5, None), (6, 5)]
    assert [node.message.text for node in memory.history()][1::2] == ["Hello!"] * 3


@pytest.mark.usefixtures("cache")
def test_a_history_stores_the_answers_of_a_cache() -> None:
    model = FakeListChatModel(responses=["Hello!"])
    with MemorySystem(embeddings=False) as system:
        for _ in range(2):
            question = HumanMessage("Hi")
            ThreadMemChatMessageHistory("talk", system).add_messages([question, model.invoke([question])])
        assert places(system.conversation("talk").history) == [(1, None), (2, 1), (3, 2), (4, 3)]


def graph(path: str, system: MemorySystem, model: Any, keeping: Any) -> Any:
    if path == "chat":
        return create_threaded_chat(model, system, selector=new_thread, recall=0, checkpointer=keeping)
    if path == "agent":
        memory = ThreadMemMiddleware(system, selector=new_thread, recall=0)
        return create_agent(model, middleware=[memory], checkpointer=keeping)
    builder = StateGraph(MessagesState)
    builder.add_node("select", select_thread_node(system, new_thread))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("store", store_turn_node(system))
    builder.add_edge(START, "select")
    builder.add_edge("select", "model")
    builder.add_edge("model", "store")
    return builder.compile(checkpointer=keeping)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("path", ["chat", "agent", "node"])
@pytest.mark.parametrize("kept", [InMemorySaver, ThreadMemSaver, None])
def test_a_graph_stores_the_answers_of_a_cache(
    system: MemorySystem, invoke: Callable[..., Any], path: str, kept: Any
) -> None:
    model = FakeListChatModel(responses=["Hello!", "And how are you?"])
    keeping = kept and kept(*[system] * (kept is ThreadMemSaver))
    compiled = graph(path, system, model, keeping)
    for _ in range(3):
        state = invoke(compiled, {"messages": [("user", "Hi")]}, CONFIG)
        assert [message.text for message in state["messages"]][-2:] == ["Hi", "Hello!"]
    memory = system.conversation("talk")
    assert [[node.message.text for node in thread] for thread in memory.threads()] == [["Hi", "Hello!"]] * 3
    live = [node for node in memory.history if node.state is State.LIVE]
    assert len(live) == len({node.message.id for node in live}) == 6
    assert memory.verify().ok


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_goes_on_after_the_answer_of_a_cache(system: MemorySystem, durability: Any) -> None:
    def by_word(tree: TreeView, message: BaseMessage) -> int | None:
        return None if message.text == "Hi" else tree.turn_ends()[-1].id

    prompts: list[list[str]] = []

    def answer(state: MessagesState) -> Any:
        prompts.append([message.text for message in state["messages"]])
        return {"messages": [model.invoke(state["messages"])]}

    model = FakeListChatModel(responses=["Hello!", "Fine."])
    builder = StateGraph(MessagesState)
    builder.add_node("select", select_thread_node(system, by_word)).add_node("model", answer)
    builder.add_edge(START, "select").add_edge("select", "model")
    compiled = builder.compile(checkpointer=ThreadMemSaver(system))
    for text in ("Hi", "Hi", "How are you?"):
        state = compiled.invoke({"messages": [("user", text)]}, CONFIG, durability=durability)
    assert prompts == [["Hi"], ["Hi"], ["Hi", "Hello!", "How are you?"]]
    assert compiled.get_state(CONFIG).values == state
    assert [[node.message.text for node in thread] for thread in system.conversation("talk").threads()] == [
        ["Hi", "Hello!"],
        ["Hi", "Hello!", "How are you?", "Fine."],
    ]


def test_a_history_that_is_sent_again_is_stored_once(
    system: MemorySystem, invoke: Callable[..., Any]
) -> None:
    node, store = select_thread_node(system, new_thread), store_turn_node(system)
    first = [HumanMessage("Hi", id="h1"), hello()]
    invoke(node, {"messages": first[:1]}, CONFIG)
    invoke(store, {"messages": first}, CONFIG)
    invoke(store, {"messages": [HumanMessage("Hi", id="h1-again"), hello()]}, CONFIG)
    assert len(system.conversation("talk").history) == 2
