"""The checkpoint of a message: by which a chat edits a message, regenerates an answer and shows versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import InputError, NodeNotFoundError

CONFIG: Any = {"configurable": {"thread_id": "talk"}}


@pytest.fixture
def saver(system: MemorySystem) -> ThreadMemSaver:
    return ThreadMemSaver(system)


@pytest.fixture
def graph(saver: ThreadMemSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": AIMessage(f"re {state['messages'][-1].content}")}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


@pytest.fixture
def finder(saver: ThreadMemSaver, verbs: Callable[[Any], Any]) -> Any:
    saver.aclose = saver.system.aclose  # type: ignore[attr-defined] # the fixture closes what it wraps
    return verbs(saver)  # type: ignore[arg-type]


def say(graph: Any, text: str | None, config: Any = CONFIG) -> list[AnyMessage]:
    given = None if text is None else {"messages": [HumanMessage(text)]}
    messages: list[AnyMessage] = graph.invoke(given, config)["messages"]
    return messages


def texts(messages: list[AnyMessage]) -> list[str]:
    return [str(message.content) for message in messages]


def test_each_message_is_found_where_the_history_shows_it_first(graph: Any, finder: Any) -> None:
    for text in ("one", "two", "three"):
        messages = say(graph, text)
    say(graph, "four", finder.fork(CONFIG, messages[2].id))
    history = list(graph.get_state_history(CONFIG))
    seen = {message.id for state in history for message in state.values.get("messages", ())}
    for message in seen:
        holding = [
            state for state in history if message in {one.id for one in state.values.get("messages", ())}
        ]
        first = holding[-1].config["configurable"]["checkpoint_id"]
        assert finder.config_of(message, CONFIG)["configurable"]["checkpoint_id"] == first
        assert finder.config_of(message)["configurable"]["thread_id"] == "talk"


def test_an_edit_becomes_a_sibling_of_the_message(graph: Any, finder: Any, system: MemorySystem) -> None:
    say(graph, "one")
    old = say(graph, "two")[2]
    edited = say(graph, "second", finder.fork(CONFIG, old.id))
    assert texts(edited) == ["one", "re one", "second", "re second"]
    siblings = system.conversation("talk").siblings(str(old.id))
    assert [node.message.content for node in siblings] == ["two", "second"]


def test_an_answer_is_regenerated(graph: Any, finder: Any, system: MemorySystem) -> None:
    answer = say(graph, "one")[1]
    again = say(graph, None, finder.fork(CONFIG, answer.id))
    assert texts(again) == ["one", "re one"]
    assert len(system.conversation("talk").siblings(str(answer.id))) == 2


def test_the_first_message_can_be_edited(graph: Any, finder: Any) -> None:
    first = say(graph, "one")[0]
    assert texts(say(graph, "uno", finder.fork(CONFIG, first.id))) == ["uno", "re uno"]


def test_a_message_that_was_appended_is_found_once_a_graph_has_it(
    graph: Any, finder: Any, system: MemorySystem
) -> None:
    [appended, _] = system.conversation("talk").append("before", "the graph")
    with pytest.raises(NodeNotFoundError, match="no checkpoint of thread 'talk'"):
        finder.config_of(appended.message.id, CONFIG)
    graph.invoke({"messages": [appended.message, HumanMessage("now")]}, CONFIG)
    assert finder.config_of(appended.message.id, CONFIG)["configurable"]["thread_id"] == "talk"


@pytest.mark.parametrize("config", [None, CONFIG])
def test_an_unknown_message_is_named(graph: Any, finder: Any, config: Any) -> None:
    say(graph, "one")
    with pytest.raises(NodeNotFoundError, match="'nowhere'"):
        finder.config_of("nowhere", config)


def test_a_message_of_another_owner_is_not_found(graph: Any, url: str) -> None:
    message = say(graph, "one")[0]
    other = MemorySystem(url, owner="somebody else", embeddings=False)
    with other, pytest.raises(NodeNotFoundError):
        ThreadMemSaver(other).config_of(str(message.id))


def test_a_message_is_named_by_text(finder: Any) -> None:
    with pytest.raises(InputError, match="message_id=7"):
        finder.config_of(7)
