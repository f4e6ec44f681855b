"""LangGraph graphs on `ThreadMemSaver`: turns, forks, interrupts, thread selection, concurrent writers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import by_first_word, size_of
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_threadmem import MemorySystem, ThreadMemSaver, select_thread_node
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.storage.schema import State

DURABILITIES = ["sync", "async", "exit"]


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"answer to {state['messages'][-1].content}")]}


def chat(saver: ThreadMemSaver, node: Callable[..., Any] = answer) -> Any:
    return (
        StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile(checkpointer=saver)
    )


def config_of(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def said(messages: list[AnyMessage]) -> list[str]:
    return [str(message.content) for message in messages]


def ask(graph: Any, text: str, config: Any = None, **options: Any) -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config or config_of(), **options)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_chat_is_one_thread_of_its_conversation(system: MemorySystem, durability: str) -> None:
    graph = chat(ThreadMemSaver(system))
    for n in range(5):
        state = ask(graph, f"q{n}", durability=durability)
    threads = system.conversation("t").threads()
    assert [said([node.message for node in thread]) for thread in threads] == [said(state["messages"])]
    assert system.verify().problems == ()


def test_sync_and_async_turns_of_a_chat_follow_each_other(url: str, owner: str) -> None:
    async def turn(text: str) -> Any:
        async with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
            return await chat(saver).ainvoke({"messages": [HumanMessage(text)]}, config_of())

    asyncio.run(turn("one"))
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        ask(chat(saver), "two")
    state = asyncio.run(turn("three"))
    assert said(state["messages"])[::2] == ["one", "two", "three"]


def test_the_state_after_reopening_is_the_state_before(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        graph = chat(ThreadMemSaver(system))
        for n in range(3):
            ask(graph, f"q{n}")
        before = list(graph.get_state_history(config_of()))
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert list(chat(ThreadMemSaver(system)).get_state_history(config_of())) == before


def test_another_question_to_an_old_checkpoint_is_a_sibling(system: MemorySystem) -> None:
    graph = chat(ThreadMemSaver(system))
    ask(graph, "one")
    old = graph.get_state(config_of()).config
    ask(graph, "two")
    ask(graph, "three", old)
    threads = [said([node.message for node in thread]) for thread in system.conversation("t").threads()]
    assert threads == [
        ["one", "answer to one", "two", "answer to two"],
        ["one", "answer to one", "three", "answer to three"],
    ]


def test_running_a_turn_again_supersedes_its_answer_and_adds_no_second_question(system: MemorySystem) -> None:
    count = iter(range(9))

    def counting(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {next(count)}")]}

    graph = chat(ThreadMemSaver(system), counting)
    ask(graph, "one")
    start = next(state for state in graph.get_state_history(config_of()) if state.next == ("model",))
    graph.invoke(None, start.config)
    history = system.conversation("t").history
    assert [(str(node.message.content), node.state) for node in history] == [
        ("one", State.LIVE),
        ("answer 0", State.SUPERSEDED),
        ("answer 1", State.LIVE),
    ]


def test_replaying_from_the_input_adds_no_second_question(system: MemorySystem) -> None:
    graph = chat(ThreadMemSaver(system))
    ask(graph, "one")
    first = list(graph.get_state_history(config_of()))[-1]
    graph.invoke(None, first.config)
    humans = [node for node in system.conversation("t").history if node.message.type == "human"]
    assert len(humans) == 1


def test_a_copied_checkpoint_has_its_own_values_and_not_those_of_a_fork(system: MemorySystem) -> None:
    graph = chat(ThreadMemSaver(system))
    ask(graph, "one")
    end = graph.get_state(config_of()).config
    ask(graph, "two")
    inputs = graph.get_state_history(config_of(), filter={"source": "input"})
    original = next(state for state in inputs if state.metadata["step"] > 0)
    ask(graph, "three", end)
    copy = graph.update_state(original.config, None, as_node="__copy__")
    assert said(graph.invoke(None, copy)["messages"])[2:] == ["two", "answer to two"]


def test_an_interrupt_is_resumed_from_a_reopened_database(url: str, owner: str) -> None:
    def asking(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"you said {interrupt('which?')}")]}

    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert ask(chat(ThreadMemSaver(system), asking), "hello")["__interrupt__"][0].value == "which?"
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        state = chat(ThreadMemSaver(system), asking).invoke(Command(resume="that"), config_of())
        assert said(state["messages"]) == ["hello", "you said that"]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_thirty_turns_over_three_topics_are_three_pure_threads(system: MemorySystem, durability: str) -> None:
    builder = StateGraph(ThreadedState).add_node("select", select_thread_node(system, by_first_word))
    builder.add_node("model", answer).add_edge(START, "select").add_edge("select", "model")
    graph = builder.compile(checkpointer=ThreadMemSaver(system))
    topics = ["red", "green", "blue", "green", "red", "blue", "blue", "red", "green", "green"] * 3
    for n, topic in enumerate(topics):
        state = ask(graph, f"{topic} {n}", durability=durability)
        assert {text.removeprefix("answer to ").split()[0] for text in said(state["messages"])} == {topic}
        assert len(state["messages"]) == 2 * topics[: n + 1].count(topic)
    threads = system.conversation("t").threads()
    assert sorted(len(thread) for thread in threads) == [18, 18, 24]
    assert system.verify().problems == ()


def test_two_writers_on_one_thread_both_survive_as_siblings(url: str, owner: str) -> None:
    with (
        MemorySystem(url, owner=owner, embeddings=False) as one,
        MemorySystem(url, owner=owner, embeddings=False) as other,
    ):
        ask(chat(ThreadMemSaver(one)), "hello")
        start = chat(ThreadMemSaver(one)).get_state(config_of()).config
        with ThreadPoolExecutor(2) as pool:
            jobs = [
                pool.submit(ask, chat(ThreadMemSaver(system)), text, start)
                for system, text in ((one, "left"), (other, "right"))
            ]
            states = [job.result() for job in jobs]
        threads = {tuple(said([node.message for node in t])) for t in one.conversation("t").threads()}
        assert threads == {tuple(said(state["messages"])) for state in states}
        assert one.verify().problems == ()


def test_a_subgraph_keeps_its_messages_to_itself(system: MemorySystem) -> None:
    inner = chat(ThreadMemSaver(system)).builder.compile(checkpointer=True)

    def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": inner.invoke({"messages": [HumanMessage("inner")]})["messages"][-1:]}

    graph = chat(ThreadMemSaver(system), call)
    ask(graph, "outer")
    ask(graph, "again")
    told = said([node.message for node in system.conversation("t").history])
    assert told == ["outer", "answer to inner", "again", "answer to inner"]
    assert system.conversations() == ["t"]


def test_a_turn_costs_the_same_at_the_end_of_a_long_chat(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    text = "How do I read a CSV file with a header, and what if some of the columns hold dates? " * 2
    with MemorySystem(path, embeddings=False) as system:
        graph = chat(ThreadMemSaver(system))
        sizes = [size_of(path)]
        for _ in range(4):
            for n in range(50):
                ask(graph, f"{text} {n}")
            sizes.append(size_of(path))
    costs = [(after - before) / 50 for before, after in pairwise(sizes)]
    assert max(costs) <= 3 * 1024
    assert costs[-1] <= 1.15 * costs[1]
