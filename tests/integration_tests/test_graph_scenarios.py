"""Graphs of chat applications: the model receives the whole thread and no other message."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware, before_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from test_time_travel import BUILDS, CONFIG, Build, Durability, Recorder, by_first_word, plain, say

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemMiddleware, ThreadMemSaver
from langchain_threadmem.storage.schema import State

Send = Callable[..., None]


@pytest.fixture
def model() -> Recorder:
    return Recorder()


@pytest.fixture(params=[InMemorySaver, ThreadMemSaver])
def saver(request: pytest.FixtureRequest, system: MemorySystem) -> Any:
    return ThreadMemSaver(system) if request.param is ThreadMemSaver else InMemorySaver()


@pytest.fixture(params=BUILDS, ids=lambda build: build.__name__)
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = request.param
    return found


@pytest.fixture
def send(invoke: Callable[..., Any]) -> Send:
    """Sends messages to a graph in one run, with options of the run's configuration."""

    def call(
        graph: Any, *messages: BaseMessage | str, durability: Durability | None = None, **options: Any
    ) -> None:
        invoke(graph, {"messages": list(messages)}, {**CONFIG, **options}, durability=durability)

    return call


def places(memory: ChatMemory) -> dict[str, str | None]:
    """The text of the parent of each live human message and answer."""
    nodes = {id_: data["node"] for id_, data in memory.graph.nodes(data=True)}
    return {
        node.message.text: None if node.parent_id is None else nodes[node.parent_id].message.text
        for node in nodes.values()
        if node.message.type != "system"
    }


def test_a_message_after_a_new_system_message_is_routed(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, send: Send
) -> None:
    graph = build(model, system, by_first_word, checkpointer=saver)
    for text in ("tea one", "cat one", "tea two"):
        send(graph, text)
    send(graph, SystemMessage("be brief"), "cat two")
    send(graph, "tea three")
    assert model.shown[-2:] == [
        ["be brief", "cat one", "re cat one", "cat two"],
        ["be brief", "tea one", "re tea one", "tea two", "re tea two", "tea three"],
    ]


def test_an_answer_before_a_system_message_can_be_continued(system: MemorySystem) -> None:
    memory = system.conversation("talk", node_selector=by_first_word)
    said = [HumanMessage("tea one"), AIMessage("re tea one"), SystemMessage("be brief")]
    memory.extend([*said, HumanMessage("cat one"), AIMessage("re cat one")])
    memory.append("tea two")
    assert places(memory)["tea two"] == "re tea one"


@pytest.mark.parametrize("is_last", [True, False])
def test_a_question_that_other_middleware_redacts_stays_in_its_thread(
    system: MemorySystem, model: Recorder, saver: Any, send: Send, is_last: bool
) -> None:
    redaction = PIIMiddleware("email", strategy="redact", apply_to_input=True)
    memory = ThreadMemMiddleware(system, selector=by_first_word, recall=0)
    middleware = [memory, redaction] if is_last else [redaction, memory]
    graph = create_agent(model, [], middleware=middleware, checkpointer=saver)
    for text in ("tea one", "cat a@b.org", "tea a@b.org", "cat c@d.org"):
        send(graph, text)
    cat = ["cat [REDACTED_EMAIL]", "re cat [REDACTED_EMAIL]"]
    assert model.shown == [
        ["tea one"],
        cat[:1],
        ["tea one", "re tea one", "tea [REDACTED_EMAIL]"],
        [*cat, cat[0]],
    ]


def test_an_edit_of_an_earlier_message_moves_no_message_of_another_thread(
    system: MemorySystem, model: Recorder, build: Build, send: Send
) -> None:
    graph = build(model, system, by_first_word, checkpointer=ThreadMemSaver(system))
    for text in ("tea one", "cat one", "tea two", "cat two"):
        send(graph, text)
    edited = next(m for m in graph.get_state(CONFIG).values["messages"] if m.content == "cat one")
    graph.update_state(CONFIG, {"messages": [HumanMessage("cat new", id=edited.id)]})
    send(graph, "tea three")
    send(graph, "cat three")
    assert model.shown[-2:] == [
        ["tea one", "re tea one", "tea two", "re tea two", "tea three"],
        ["cat new", "re cat one", "cat two", "re cat two", "cat three"],
    ]


@before_agent
def cleaned(state: Any, runtime: Any) -> dict[str, Any]:
    """Replaces "@" in the newest message."""
    newest = state["messages"][-1]
    return {"messages": [HumanMessage(newest.text.replace("@", "#"), id=newest.id)]}


def test_a_message_that_changes_before_its_selection_is_routed(
    system: MemorySystem, model: Recorder, saver: Any, send: Send
) -> None:
    memory = ThreadMemMiddleware(system, selector=by_first_word, recall=0)
    graph = create_agent(model, [], middleware=[cleaned, memory], checkpointer=saver)
    for text in ("tea @", "cat @", "tea two", "cat two @"):
        send(graph, text)
    assert model.shown == [
        ["tea #"],
        ["cat #"],
        ["tea #", "re tea #", "tea two"],
        ["cat #", "re cat #", "cat two #"],
    ]


@pytest.mark.parametrize("has_ids", [False, True])
def test_a_history_that_a_client_sends_with_each_message_is_stored_once(
    system: MemorySystem, model: Recorder, build: Build, send: Send, has_ids: bool
) -> None:
    graph = build(model, system, by_first_word, checkpointer=None)
    history: list[BaseMessage] = []
    for text in ("tea one", "cat one", "tea two", "cat two"):
        history.append(HumanMessage(text, id=text if has_ids else None))
        send(graph, *deepcopy(history))
        history.append(AIMessage(f"re {text}", id=f"client {text}" if has_ids else None))
    assert model.shown[-2:] == [
        ["tea one", "re tea one", "tea two"],
        ["cat one", "re cat one", "cat two"],
    ]
    assert len(system.conversation("talk").history) == len(history)


def test_a_message_in_a_nested_chat_with_a_state_of_its_own_is_routed(
    system: MemorySystem, model: Recorder, saver: Any, send: Send
) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("chat", plain(model, system, by_first_word, checkpointer=True))
    graph = builder.add_edge(START, "chat").compile(checkpointer=saver)
    for text in ("tea one", "cat one", "tea two", "cat two"):
        send(graph, text)
    assert model.shown[-2:] == [
        ["tea one", "re tea one", "tea two"],
        ["cat one", "re cat one", "cat two"],
    ]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_the_messages_of_a_deleted_run_are_no_part_of_the_conversation(
    system: MemorySystem, model: Recorder, build: Build, durability: Durability
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver)
    say(graph, "tea one", "cat one", durability=durability)
    say(graph, "tea two", config={**CONFIG, "metadata": {"run_id": "last"}}, durability=durability)
    saver.delete_for_runs(["last"])
    assert [
        node.message.text for node in system.conversation("talk").history if node.state == State.LIVE
    ] == [
        "tea one",
        "re tea one",
        "cat one",
        "re cat one",
    ]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_can_begin_after_a_new_system_message(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, send: Send, durability: Durability
) -> None:
    graph = build(model, system, by_first_word, checkpointer=saver)
    send(graph, "tea one", durability=durability)
    send(graph, SystemMessage("be brief"), "cat one", durability=durability)
    assert model.shown[-1] == ["be brief", "cat one"]


def test_two_messages_without_the_earlier_list_continue_their_thread(
    system: MemorySystem, model: Recorder, build: Build, send: Send
) -> None:
    graph = build(model, system, by_first_word, checkpointer=None)
    send(graph, "tea one")
    send(graph, "tea two", "tea three")
    assert model.shown[-1] == ["tea one", "re tea one", "tea two", "tea three"]


def test_the_deletion_of_a_run_keeps_earlier_messages_without_checkpoints(
    system: MemorySystem, model: Recorder, build: Build, send: Send
) -> None:
    saver, memory = ThreadMemSaver(system), system.conversation("talk", node_selector=by_first_word)
    memory.append("tea one", "re tea one")
    memory.append("cat one", "re cat one")
    graph = build(model, system, by_first_word, checkpointer=saver)
    send(graph, "tea two", metadata={"run_id": "last"})
    saver.delete_for_runs(["last"])
    send(graph, "tea three")
    assert model.shown[-1] == ["tea one", "re tea one", "tea three"]
