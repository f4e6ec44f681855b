"""Group chats in LangGraph graphs, with an agent that may leave messages unanswered."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from test_time_travel import Durability, Recorder, by_first_word

from langchain_threadmem import (
    ChatMemory,
    LinearNodeSelector,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemSaver,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import ThreadedState, store_turn_node
from langchain_threadmem.selection.selectors import AnySelector
from langchain_threadmem.selection.tree_view import TreeView

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


def newest(tree: TreeView, message: BaseMessage) -> int | None:
    """Continues the newest candidate."""
    ends = tree.turn_ends()
    return ends[-1].id if ends else None


class Room:
    """A graph whose model answers messages that contain "bot"."""

    def __init__(
        self,
        system: MemorySystem,
        selector: AnySelector,
        state: type[Any],
        saver: Any,
        durability: Durability,
    ) -> None:
        self.model, self.durability = Recorder(), durability
        self.memory = system.conversation("talk")
        builder = StateGraph(state)
        builder.add_node("select_thread", select_thread_node(system, selector))
        builder.add_node("model", lambda state: {"messages": [self.model.invoke(state["messages"])]})
        builder.add_node("store_turn", store_turn_node(system))
        builder.add_edge(START, "select_thread").add_edge("model", "store_turn")
        builder.add_conditional_edges("select_thread", _next)
        self.graph = builder.compile(checkpointer=saver)

    def say(self, name: str, text: str) -> None:
        asked = {"messages": [HumanMessage(text, name=name)]}
        self.graph.invoke(asked, CONFIG, durability=self.durability)


def places(memory: ChatMemory) -> dict[str, str | None]:
    """The text of the parent of each live human message."""
    nodes = [data["node"] for _, data in memory.graph.nodes(data=True)]
    texts = {node.id: str(node.message.content) for node in nodes}
    return {
        texts[node.id]: None if node.parent_id is None else texts[node.parent_id]
        for node in nodes
        if node.message.type == "human"
    }


def _next(state: Any) -> Literal["model", "store_turn"]:
    return "model" if "bot" in state["messages"][-1].content else "store_turn"


@pytest.fixture(params=[ThreadedState, MessagesState], ids=["threaded-state", "messages-state"])
def state(request: pytest.FixtureRequest) -> type[Any]:
    found: type[Any] = request.param
    return found


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Durability:
    found: Durability = request.param
    return found


def test_a_message_continues_an_earlier_message_and_never_itself(
    system: MemorySystem, state: type[Any], durability: Durability
) -> None:
    room = Room(system, newest, state, ThreadMemSaver(system), durability)
    for name, text in (("ann", "hi bot"), ("bob", "hello bot"), ("ann", "bye bot")):
        room.say(name, text)
    assert places(room.memory) == {"hi bot": None, "hello bot": "re hi bot", "bye bot": "re hello bot"}


@pytest.mark.parametrize("keeps", [InMemorySaver, ThreadMemSaver])
def test_messages_that_the_agent_leaves_unanswered_keep_their_places(
    system: MemorySystem, state: type[Any], durability: Durability, keeps: Any
) -> None:
    saver = ThreadMemSaver(system) if keeps is ThreadMemSaver else InMemorySaver()
    room = Room(system, by_first_word, state, saver, durability)
    texts = ["tea hi", "cat hi", "tea two", "cat two", "cat three", "tea bot", "cat bot", "tea four"]
    for name, text in zip(["ann", "bob", "eve"] * 3, texts, strict=False):
        room.say(name, text)
    assert places(room.memory) == {
        "tea hi": None,
        "cat hi": None,
        "tea two": "tea hi",
        "cat two": "cat hi",
        "cat three": "cat two",
        "tea bot": "tea two",
        "cat bot": "cat three",
        "tea four": "re tea bot",
    }
    assert room.model.shown == [
        ["tea hi", "tea two", "tea bot"],
        ["cat hi", "cat two", "cat three", "cat bot"],
    ]


def test_a_linear_selector_continues_the_last_message(
    system: MemorySystem, state: type[Any], durability: Durability
) -> None:
    room = Room(system, LinearNodeSelector(), state, ThreadMemSaver(system), durability)
    for name, text in (("ann", "one"), ("bob", "two"), ("eve", "three"), ("ann", "four bot")):
        room.say(name, text)
    assert places(room.memory) == {"one": None, "two": "one", "three": "two", "four bot": "three"}


def test_the_choice_in_a_graph_is_the_choice_of_a_memory(
    system: MemorySystem, state: type[Any], durability: Durability
) -> None:
    said = [
        ("ada", "How do I mount a disk in Linux?"),
        ("bob", "Has anybody seen my blue umbrella?"),
        ("eve", "ada: with the command mount"),
        ("cid", "bob: there is an umbrella in the kitchen"),
        ("ada", "eve: and which options does mount take?"),
    ]
    room = Room(system, SemanticNodeSelector(), state, ThreadMemSaver(system), durability)
    memory = system.conversation("plain", node_selector=SemanticNodeSelector())
    for name, text in said:
        room.say(name, text)
        memory.append(HumanMessage(text, name=name))
    assert places(room.memory) == places(memory)
