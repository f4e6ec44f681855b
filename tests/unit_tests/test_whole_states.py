"""States that are one list or one dictionary: of functions with `@entrypoint`, and of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph, add_messages

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.messages import parts

CONFIG: Any = {"configurable": {"thread_id": "talk"}}


@task
def answered(messages: Any) -> Any:
    question = messages[-1]
    return add_messages(messages, AIMessage(f"re {question.text}", id=f"a {question.id}"))


def saved_list(saver: Any) -> Any:
    @entrypoint(checkpointer=saver)
    def chat(given: Any, *, previous: Any = None) -> Any:
        messages = answered(add_messages(previous or [], given)).result()
        return entrypoint.final(value=messages[-1], save=messages)

    return chat


def returned_list(saver: Any) -> Any:
    @entrypoint(checkpointer=saver)
    def chat(given: Any, *, previous: Any = None) -> Any:
        return answered(add_messages(previous or [], given)).result()

    return chat


def dictionary(saver: Any) -> Any:
    @entrypoint(checkpointer=saver)
    def chat(given: Any, *, previous: Any = None) -> Any:
        earlier = previous or {"messages": [], "turns": 0}
        messages = answered(add_messages(earlier["messages"], given)).result()
        return {"messages": messages, "turns": earlier["turns"] + 1}

    return chat


def root_list(saver: Any) -> Any:
    builder: Any = StateGraph(Annotated[list[AnyMessage], add_messages])  # type: ignore[arg-type]
    builder.add_node("chat", lambda messages: AIMessage(f"re {messages[-1].text}", id=f"a {messages[-1].id}"))
    return builder.add_edge(START, "chat").compile(checkpointer=saver)


SHAPES = [saved_list, returned_list, dictionary, root_list]


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


def history(graph: Any) -> list[Any]:
    return [(state.values, state.next) for state in graph.get_state_history(CONFIG)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_messages_of_a_whole_state_are_the_conversation(
    system: MemorySystem, shape: Callable[[Any], Any], invoke: Callable[..., Any]
) -> None:
    graph, other = shape(ThreadMemSaver(system)), shape(InMemorySaver())
    for number, text in enumerate(("My cat is Mimi.", "Water the figs.", "Thanks.")):
        for one in (graph, other):
            invoke(one, [HumanMessage(text, id=str(number))], CONFIG)
    memory = system.conversation("talk")
    assert texts(memory.messages) == [
        *("My cat is Mimi.", "re My cat is Mimi.", "Water the figs.", "re Water the figs."),
        *("Thanks.", "re Thanks."),
    ]
    assert memory.recall("figs", n_results=1)[0].node.message.text.endswith("Water the figs.")
    assert history(graph) == history(other)
    assert not system.verify().problems


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_of_a_whole_state_is_edited_and_deleted(
    system: MemorySystem, shape: Callable[[Any], Any]
) -> None:
    saver = ThreadMemSaver(system)
    graph, memory = shape(saver), system.conversation("talk")
    for number, text in enumerate(("one", "two")):
        graph.invoke([HumanMessage(text, id=str(number))], CONFIG)
    graph.invoke([HumanMessage("second", id="2")], saver.fork(CONFIG, "1"))
    assert texts(memory.messages) == ["one", "re one", "second", "re second"]
    assert [node.message.text for node in memory.siblings("1")] == ["two", "second"]
    graph.invoke([RemoveMessage("0"), RemoveMessage("a 0"), HumanMessage("three", id="3")], CONFIG)
    assert texts(memory.messages) == ["second", "re second", "three", "re three"]
    assert "one" not in texts(hit.node.message for hit in memory.recall("one"))


def test_the_log_tells_once_that_messages_have_no_ids(caplog: pytest.LogCaptureFixture) -> None:
    parts._warn_once.cache_clear()

    @entrypoint(checkpointer=ThreadMemSaver(MemorySystem()))
    def chat(given: list[Any], *, previous: Any = None) -> Any:
        return [*(previous or ()), *given]

    assert len([chat.invoke([HumanMessage(text)], CONFIG) for text in ("one", "two")][-1]) == 2
    assert [record.message.count("add_messages") for record in caplog.records] == [1]
