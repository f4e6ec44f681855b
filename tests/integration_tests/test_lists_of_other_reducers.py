"""Lists that LangGraph's reducers leave in a state: removals among the messages, and messages without ids."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Annotated, Any

import pytest
from conftest import by_first_word
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, merge_message_runs
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from typing_extensions import TypedDict

from langchain_threadmem import (
    MemorySystem,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import recall_node, store_turn_node

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


class Recorder(FakeListChatModel):
    """Records the types of the messages that it is shown."""

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        TYPES.append([message.type for message in messages])
        return super()._call(messages, *args, **kwargs)


TYPES: list[list[str]] = []


def _node(system: MemorySystem, model: Recorder, saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_sequence(
        [
            ("select", select_thread_node(system, by_first_word)),
            ("model", lambda state: {"messages": [model.invoke(state["messages"])]}),
            ("store", store_turn_node(system)),
        ]
    )
    return builder.add_edge(START, "select").compile(checkpointer=saver)


def _agent(rewrite: bool) -> Callable[..., Any]:
    def make(system: MemorySystem, model: Recorder, saver: Any) -> Any:
        memory = ThreadMemMiddleware(system, selector=by_first_word, rewrite=rewrite)
        return create_agent(model, middleware=[memory], checkpointer=saver)

    return make


PATHS: dict[str, Callable[..., Any]] = {
    "select_thread_node": _node,
    "create_threaded_chat": lambda system, model, saver: create_threaded_chat(
        model, system, selector=by_first_word, checkpointer=saver
    ),
    "ThreadMemMiddleware": _agent(rewrite=False),
    "ThreadMemMiddleware(rewrite=True)": _agent(rewrite=True),
}


@pytest.fixture(params=["ThreadMemSaver", "InMemorySaver"])
def saver(request: pytest.FixtureRequest, system: MemorySystem) -> BaseCheckpointSaver[Any]:
    return ThreadMemSaver(system) if request.param == "ThreadMemSaver" else InMemorySaver()


@pytest.mark.parametrize("path", PATHS)
def test_a_removal_that_langgraph_keeps_in_the_list_does_not_stop_the_next_turns(
    system: MemorySystem, saver: BaseCheckpointSaver[Any], invoke: Callable[..., Any], path: str
) -> None:
    TYPES.clear()
    graph = PATHS[path](system, Recorder(responses=["one", "two", "three"]), saver)
    invoke(graph, {"messages": [HumanMessage("tea black", id="h1")]}, CONFIG)
    # `add_messages` keeps what follows REMOVE_ALL_MESSAGES as it is (langgraph/graph/message.py).
    new = [HumanMessage("tea black", id="h1"), RemoveMessage("a0"), AIMessage("one", id="a1")]
    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *new, RemoveMessage("h1")]})
    types = [message.type for message in graph.get_state(CONFIG).values["messages"]]
    assert types == ["human", "remove", "ai", "remove"]
    for text in ("tea green", "tea white"):
        state = invoke(graph, {"messages": [("user", text)]}, CONFIG)
    assert state["messages"][-1].text == "three"
    assert TYPES == [["human"], ["human", "ai", "human"], ["human", "ai", "human", "ai", "human"]]
    threads = system.conversation("talk").threads()
    said = ["tea black", "one", "tea green", "two", "tea white", "three"]
    assert [[node.message.text for node in thread] for thread in threads] == [said]


@pytest.mark.parametrize("path", PATHS)
def test_messages_that_are_merged_into_the_message_before_them_are_no_branch(
    system: MemorySystem, saver: BaseCheckpointSaver[Any], invoke: Callable[..., Any], path: str
) -> None:
    graph = PATHS[path](system, Recorder(responses=["one", "two", "three"]), saver)
    asked = [HumanMessage(text, id=f"h{n}") for n, text in enumerate(["tea", "tea black", "tea green"])]
    invoke(graph, {"messages": asked}, CONFIG)
    graph.update_state(CONFIG, {"messages": [AIMessage("tea, really", id="a1")]})
    invoke(graph, {"messages": [("user", "tea white")]}, CONFIG)
    merged = merge_message_runs(graph.get_state(CONFIG).values["messages"])
    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *merged]})
    state = invoke(graph, {"messages": [("user", "tea red")]}, CONFIG)
    said = ["tea\ntea black\ntea green", "one\ntea, really", "tea white", "two", "tea red", "three"]
    assert [message.text for message in state["messages"]] == said
    memory = system.conversation("talk")
    assert [[node.message.text for node in thread] for thread in memory.threads()] == [said]
    assert [message.text for message in memory.messages] == said
    assert "tea green" in [node.message.text for node in memory.history]  # An earlier version.
    assert system.verify().ok


class Appended(TypedDict):
    messages: Annotated[list[Any], add]


def test_messages_without_ids_are_found_again_in_later_runs(
    system: MemorySystem, saver: BaseCheckpointSaver[Any], invoke: Callable[..., Any]
) -> None:
    builder = StateGraph(Appended)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"re {state['messages'][-1].text}")]})
    builder.add_node("store", store_turn_node(system))
    builder.add_node("recall", recall_node(system))
    builder.add_edge(START, "answer").add_edge("answer", "store").add_edge("store", "recall")
    graph = builder.compile(checkpointer=saver)
    for text in ("tea", "tea", "cat"):
        invoke(graph, {"messages": [HumanMessage(text)]}, CONFIG)
    threads = system.conversation("talk").threads()
    said = ["tea", "re tea", "tea", "re tea", "cat", "re cat"]
    assert [[node.message.text for node in thread] for thread in threads] == [said]
