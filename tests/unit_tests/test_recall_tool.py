"""The recall tool returns what the model does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import by_first_word
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageWindow,
    ThreadMemMiddleware,
    ThreadMemSaver,
    select_thread_node,
)
from langchain_threadmem.langchain.tools import forget_tool, recall_tool
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.recall.quoting import fenced

Invoke = Callable[..., Any]
NOTHING = "Nothing was said about it."


class Searcher(BaseChatModel):
    """A model that recalls "figs" when it is asked, and answers with the number of the turn."""

    @property
    def _llm_type(self) -> str:
        return "searcher"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        searches = messages[-1].type == "human" and "?" in messages[-1].text
        calls = [{"name": "recall", "args": {"query": "figs"}, "id": "c1"}] if searches else []
        answer = AIMessage("" if searches else "Figs: noted.", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def found(state: Any) -> str:
    """The result of the last call of a tool."""
    return next(m.text for m in reversed(state["messages"]) if isinstance(m, ToolMessage))


CONFIG = {"configurable": {"thread_id": "talk"}}


@pytest.fixture
def elsewhere(system: MemorySystem) -> MemorySystem:
    system.conversation("garden").append("The figs are behind the house.", "Noted.")
    return system


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_an_agent_does_not_find_its_thread_and_finds_the_others(
    elsewhere: MemorySystem, invoke: Invoke, scope: Any
) -> None:
    tool = recall_tool(elsewhere, k=20, conversation_id="talk", scope=scope)
    memory = ThreadMemMiddleware(elsewhere, selector=by_first_word, recall=0)
    agent = create_agent(Searcher(), [tool], middleware=[memory], checkpointer=ThreadMemSaver(elsewhere))
    for text in ("#a Figs are sweet.", "#b Figs are blue.", "#a Which figs?"):
        state = invoke(agent, {"messages": [("user", text)]}, CONFIG)
    assert "Figs are blue" in found(state)
    assert "Which figs" not in found(state)
    assert "Figs are sweet" not in found(state)
    assert ("behind the house" in found(state)) is (scope == "owner")


def test_an_agent_finds_what_its_window_does_not_show(system: MemorySystem, invoke: Invoke) -> None:
    tool = recall_tool(system, k=20)
    memory = ThreadMemMiddleware(system, selector=by_first_word, recall=0, window=MessageWindow(3))
    agent = create_agent(Searcher(), [tool], middleware=[memory], checkpointer=ThreadMemSaver(system))
    for text in ("#a Figs are sweet.", "#a Figs are blue.", "#a Which figs?"):
        state = invoke(agent, {"messages": [("user", text)]}, CONFIG)
    assert "Figs are sweet" in found(state)
    assert "Figs are blue" not in found(state)


def test_an_agent_without_middleware_does_not_find_its_state(elsewhere: MemorySystem, invoke: Invoke) -> None:
    agent = create_agent(Searcher(), [recall_tool(elsewhere, k=20)], checkpointer=ThreadMemSaver(elsewhere))
    for text in ("Figs are sweet.", "Which figs?"):
        state = invoke(agent, {"messages": [("user", text)]}, CONFIG)
    assert "behind the house" in found(state)
    assert "sweet" not in found(state)
    assert "Which figs" not in found(state)


def test_a_node_that_shows_a_thread_leaves_the_others_to_the_tool(
    elsewhere: MemorySystem, invoke: Invoke
) -> None:
    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(elsewhere, by_first_word))
    model = Searcher()
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([recall_tool(elsewhere, k=20)]))
    builder.add_edge(START, "select").add_edge("select", "model")
    builder.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__"
    )
    graph = builder.compile(checkpointer=ThreadMemSaver(elsewhere))
    for text in ("#a Figs are sweet.", "#b Figs are blue.", "#a Which figs?"):
        state = invoke(graph, {"messages": [("user", text)]}, CONFIG)
    assert "Figs are blue" in found(state)
    assert "Figs are sweet" not in found(state)
    assert "Which figs" not in found(state)


def test_equal_ids_of_another_conversation_hide_nothing(system: MemorySystem, invoke: Invoke) -> None:
    system.conversation("other").append(HumanMessage("Figs are sweet.", id="1"), AIMessage("Yes.", id="2"))
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([recall_tool(system, k=20)]))
    calls = [{"id": "c1", "name": "recall", "args": {"query": "figs"}}]
    asked = [HumanMessage("And now?", id="1"), AIMessage("", id="2", tool_calls=calls)]
    graph = builder.add_edge(START, "tools").compile()
    assert "Figs are sweet" in found(invoke(graph, {"messages": asked}))


def test_outside_of_a_graph_the_unanswered_message_is_not_found(system: MemorySystem, invoke: Invoke) -> None:
    memory = system.conversation("talk")
    tool = recall_tool(memory)
    memory.append("Which figs are ripe?")
    assert invoke(tool, {"query": "figs"}) == NOTHING
    memory.append(AIMessage("The blue figs."))
    assert "Which figs" in invoke(tool, {"query": "figs"})


@pytest.mark.parametrize("query", ["Which figs are ripe?", "which figs are  ripe?"])
def test_the_query_itself_is_not_found(system: MemorySystem, invoke: Invoke, query: str) -> None:
    memory = system.conversation("talk")
    memory.append("Which figs are ripe?", "The blue figs are ripe.")
    text = invoke(recall_tool(system), {"query": query})
    assert "The blue figs are ripe." in text
    assert "Which figs" not in text


def test_recall_of_other_threads_does_not_quote_the_question(system: MemorySystem, invoke: Invoke) -> None:
    system.conversation("monday").append("Which figs are ripe?", "The blue figs are ripe.")
    memory = ThreadMemMiddleware(system, selector=by_first_word, scope="owner", min_similarity=-1)
    agent = create_agent(Searcher(), [], middleware=[memory])
    config = {"configurable": {"thread_id": "tuesday"}}
    state = invoke(agent, {"messages": [("user", "Which figs are ripe?")]}, config)
    assert [hit["text"] for hit in state["recalled"]] == ["The blue figs are ripe."]


def test_a_conversation_without_messages_is_searched(system: MemorySystem) -> None:
    assert recall_tool(system.conversation("new")).invoke({"query": "figs"}) == NOTHING
    assert recall_tool(ChatMemory(embeddings=False)).invoke({"query": "figs"}) == NOTHING
    assert system.conversations() == []


def test_a_question_is_quoted_with_its_answer(system: MemorySystem, invoke: Invoke) -> None:
    system.conversation("monday").append(
        "Where do we keep the ladder?",
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}]),
        ToolMessage("shed", tool_call_id="c1"),
        "In the shed.",
    )
    memory = ThreadMemMiddleware(system, selector=by_first_word, scope="owner", recall=1, min_similarity=-1)
    agent = create_agent(Searcher(), [], middleware=[memory])
    state = invoke(agent, {"messages": [("user", "Take the ladder")]}, CONFIG)
    [hit] = state["recalled"]
    assert (hit["text"], hit["answer"]["text"]) == ("Where do we keep the ladder?", "In the shed.")
    block = fenced([hit]).splitlines()
    assert [line for line in block if line.startswith("<message")][1].startswith(
        '<message conversation="monday" node="4" role="ai" time="'
    )
    assert block.index("In the shed.") > block.index("Where do we keep the ladder?")
    tool = recall_tool(system, conversation_id="monday", k=1)
    assert "In the shed." in invoke(tool, {"query": "ladder"})


def test_an_answer_that_is_a_hit_is_quoted_once(system: MemorySystem, invoke: Invoke) -> None:
    system.conversation("monday").append("Where is the ladder?", "The ladder is in the shed.")
    text = invoke(recall_tool(system, k=4), {"query": "ladder"})
    assert text.count("in the shed") == 1


def test_a_new_answer_is_quoted_and_no_old_or_forgotten_one(system: MemorySystem, invoke: Invoke) -> None:
    memory = system.conversation("monday")
    nodes = memory.append("Where is the ladder?", "In the shed.")
    memory.regenerate(nodes[1].id, "At the neighbour's.")
    text = invoke(recall_tool(system, k=1), {"query": "ladder"})
    assert ("In the shed." in text, "At the neighbour's." in text) == (False, True)
    forget_tool(system, confirm=False).invoke({"conversation": "monday", "message": 3})
    assert "neighbour" not in invoke(recall_tool(system, k=1), {"query": "ladder"})


def test_an_answer_in_the_prompt_is_not_quoted(system: MemorySystem, invoke: Invoke) -> None:
    memory = system.conversation("talk")
    memory.append(HumanMessage("Where is the ladder?", id="q"), AIMessage("In the shed.", id="a"))
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([recall_tool(system, k=20)]))
    calls = [{"id": "c1", "name": "recall", "args": {"query": "ladder"}}]
    shown = [AIMessage("In the shed.", id="a"), HumanMessage("And now?"), AIMessage("", tool_calls=calls)]
    text = found(invoke(builder.add_edge(START, "tools").compile(), {"messages": shown}))
    assert ("Where is the ladder?" in text, "In the shed." in text) == (True, False)
