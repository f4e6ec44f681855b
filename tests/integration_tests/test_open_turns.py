"""Turns without an answer: stopped, failed, or left while they waited for an approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import Field

from langchain_threadmem import (
    ChatMemory,
    LLMNodeSelector,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import store_turn_node
from langchain_threadmem.selection.tree_view import TreeView

Wrap = Callable[[ChatMemory], Any]
CONFIG: Any = {"configurable": {"thread_id": "talk"}}
BREAD = ("My sourdough bread is flat, why?", "Let it rise longer; a warm place helps the yeast.")
CSV = ("How do I read a CSV file in pandas?", "Use pandas.read_csv.")
LISBON = ("Which museums should I see in Lisbon?", "The Gulbenkian and the tile museum.")
POEM, MIMI = "Write a poem about my cat", "Her name is Mimi, make it short"
FOLLOW_UPS = [
    (POEM, MIMI),
    (POEM, POEM),
    (POEM, "continue"),
    ("Plan a birthday party for ten children", "They are six years old and it's outdoors"),
    ("Translate this letter into French: Dear Sir, I hereby cancel my contract.", "actually make it Spanish"),
    ("Draft an email to my landlord about the broken heating", "Oh and mention that it has been three weeks"),
    ("Summarize the plot of Hamlet", "in two sentences"),
    ("Book a table for Friday", "Make it eight o'clock, for two"),
    ("Find me a flight to Oslo on Monday", "wait, Tuesday"),
    ("My car makes a strange noise when braking", "It is a 2015 Golf"),
    ("Delete all files in the temp folder", "no, only those older than a week"),
    ("How tall is Mont Blanc?", "hello?"),
    ("Schreibe ein Gedicht über meine Katze", "Sie heißt Mimi, mach es kurz"),
]
"""Questions whose answer was stopped, and what people say next."""
ELSEWHERE = [
    ("What is the capital of Australia?", "Can you help me write a cover letter for a nursing job?", None),
    ("Compare the iPhone and the Pixel camera", "I need a recipe for vegan lasagna.", None),
    ("Explain monads", "Back to the sourdough: how warm should the bread dough be?", 2),
    ("Plan a birthday party", "Is the tile museum in Lisbon open on Monday?", 6),
]
"""The same with a message that opens a topic or goes back, and the node that it continues."""


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


class Stops(BaseChatModel):
    """Repeats the question; fails at a message in `stops`, and calls the tool for a message in `calls`."""

    shown: list[list[BaseMessage]] = Field(default_factory=list)
    stops: list[str] = Field(default_factory=list)
    calls: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "stops"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Stops:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.shown.append(list(messages))
        asked = messages[-1].text
        if asked in self.stops:
            raise ConnectionError(asked)
        call = {"name": "weather", "args": {"city": "Rome"}, "id": f"c{len(self.shown)}"}
        answer = AIMessage(f"re {asked}", tool_calls=[call] if asked in self.calls else [])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@pytest.fixture
def model() -> Stops:
    return Stops()


@pytest.fixture
def words() -> Iterator[MemorySystem]:
    with MemorySystem(embeddings=False) as system:
        yield system


def last(tree: TreeView, message: BaseMessage) -> int | None:
    ends = tree.turn_ends()
    return ends[-1].id if ends else None


def asking(path: str, system: MemorySystem, model: Stops, keeping: Any, selector: Any = None) -> Any:
    """A graph on one of the paths to the memory."""
    if path == "chat":
        return create_threaded_chat(model, system, selector=selector, checkpointer=keeping)
    if path == "agent":
        memory = ThreadMemMiddleware(system, selector=selector)
        return create_agent(model, [weather], middleware=[memory], checkpointer=keeping)
    builder = StateGraph(MessagesState)
    builder.add_node("select", select_thread_node(system, selector))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("store", store_turn_node(system))
    builder.add_edge(START, "select")
    builder.add_edge("select", "model")
    builder.add_edge("model", "store")
    return builder.compile(checkpointer=keeping)


def saver(name: str, system: MemorySystem) -> BaseCheckpointSaver[Any] | None:
    return {"none": None, "memory": InMemorySaver(), "threadmem": ThreadMemSaver(system)}[name]


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.parametrize(("stopped", "then"), FOLLOW_UPS, ids=[then for _, then in FOLLOW_UPS])
def test_a_memory_shows_the_stopped_question_to_its_follow_up(
    words: MemorySystem, stopped: str, then: str
) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector(), cover=None)
    for turn in (BREAD, CSV, LISBON):
        memory.append(*turn)
    [question] = memory.append(stopped)
    assert memory.append(then)[0].parent_id == question.id
    assert texts(memory.messages)[-2:] == [stopped, then]


@pytest.mark.parametrize(("stopped", "then", "parent"), ELSEWHERE, ids=[then for _, then, _ in ELSEWHERE])
def test_a_message_that_is_plainly_about_something_else_goes_there(
    words: MemorySystem, stopped: str, then: str, parent: int | None
) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector())
    for turn in (BREAD, CSV, LISBON):
        memory.append(*turn)
    memory.place(memory.append(stopped)[0].id, None)
    assert memory.append(then)[0].parent_id == parent


def test_two_stops_in_a_row_are_both_shown(words: MemorySystem) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector())
    for turn in (BREAD, (POEM,), (MIMI,), ("and funny", "Mimi, Mimi.")):
        memory.append(*turn)
    assert texts(memory.messages)[-4:] == [POEM, MIMI, "and funny", "Mimi, Mimi."]
    assert memory.append("Thank you!")[0].parent_id == memory.history[-2].id


@pytest.mark.parametrize(("stopped", "then"), FOLLOW_UPS, ids=[then for _, then in FOLLOW_UPS])
@pytest.mark.parametrize("path", ["chat", "node", "agent"])
def test_a_graph_whose_model_failed_shows_the_question_to_its_follow_up(
    words: MemorySystem, model: Stops, path: str, stopped: str, then: str
) -> None:
    graph = asking(path, words, model, InMemorySaver())
    for text in (BREAD[0], LISBON[0]):
        graph.invoke({"messages": [("user", text)]}, CONFIG)
    model.stops = [stopped]
    with pytest.raises(ConnectionError):
        graph.invoke({"messages": [("user", stopped)]}, CONFIG)
    model.stops = []
    graph.invoke({"messages": [("user", then)]}, CONFIG)
    assert texts(model.shown[-1])[-2:] == [stopped, then]


@pytest.mark.parametrize("path", ["chat", "node", "agent"])
@pytest.mark.parametrize("keeping", ["none", "memory", "threadmem"])
def test_a_question_whose_answer_failed_stays_in_its_thread(
    system: MemorySystem, model: Stops, invoke: Callable[..., Any], path: str, keeping: str
) -> None:
    graph = asking(path, system, model, saver(keeping, system), last)
    invoke(graph, {"messages": [("user", BREAD[0])]}, CONFIG)
    model.stops = [POEM]
    with pytest.raises(ConnectionError):
        invoke(graph, {"messages": [("user", POEM)]}, CONFIG)
    model.stops = []
    for text in (POEM, MIMI):
        invoke(graph, {"messages": [("user", text)]}, CONFIG)
    memory = system.conversation("talk")
    assert texts(memory.messages)[-5:] == [POEM, POEM, f"re {POEM}", MIMI, f"re {MIMI}"]
    assert memory.verify().ok


def test_a_history_shows_the_stopped_question(words: MemorySystem) -> None:
    def history() -> ThreadMemChatMessageHistory:
        return ThreadMemChatMessageHistory("talk", words, node_selector=SemanticNodeSelector())

    history().add_messages([HumanMessage(BREAD[0]), AIMessage(BREAD[1])])
    history().add_messages([HumanMessage(POEM)])
    history().add_messages([HumanMessage(MIMI), AIMessage("Mimi, Mimi.")])
    assert texts(history().messages)[-3:] == [POEM, MIMI, "Mimi, Mimi."]


def test_every_selector_may_choose_an_open_turn(system: MemorySystem, verbs: Wrap) -> None:
    answer = '{"selected_node_id": 3, "reasoning": "It completes the question.", "title": null}'
    asked = LLMNodeSelector(
        FakeListChatModel(responses=['{"selected_node_id": null, "reasoning": "", "title": "Cat"}', answer])
    )
    for name, selector in {"function": last, "model": asked, "linear": None}.items():
        memory = verbs(system.conversation(name, node_selector=selector))
        memory.append(*BREAD)
        memory.append(POEM)
        assert memory.append(MIMI)[0].parent_id == 3
        assert texts(memory.messages())[-2:] == [POEM, MIMI]


def test_a_failed_selection_continues_the_open_turn(words: MemorySystem) -> None:
    def broken(tree: TreeView, message: BaseMessage) -> int | None:
        raise RuntimeError("broken")

    memory = words.conversation("talk", node_selector=broken)
    memory.append(*BREAD)
    assert [memory.append(text)[0].parent_id for text in (POEM, MIMI)] == [2, 3]


def test_an_open_turn_is_recalled_and_listed(words: MemorySystem) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector())
    memory.append(*BREAD)
    memory.place(memory.append(POEM)[0].id, None)
    assert [POEM] in [texts([node.message for node in thread]) for thread in memory.threads()]
    assert memory.recall("poem about my cat")[0].node.message.text == POEM


def approving(system: MemorySystem, model: Stops, keeping: Any) -> Any:
    middleware = [
        ThreadMemMiddleware(system, recall=0),
        HumanInTheLoopMiddleware(interrupt_on={"weather": True}),
    ]
    return create_agent(model, [weather], middleware=middleware, checkpointer=keeping)


@pytest.mark.parametrize("keeping", ["memory", "threadmem"])
def test_a_call_that_waits_for_an_approval_is_left_or_resumed(
    system: MemorySystem, model: Stops, invoke: Callable[..., Any], keeping: str
) -> None:
    agent = approving(system, model, saver(keeping, system))
    memory = system.conversation("talk")
    model.calls = [POEM]
    invoke(agent, {"messages": [("user", POEM)]}, CONFIG)
    invoke(agent, {"messages": [("user", MIMI)]}, CONFIG)
    assert texts(model.shown[-1])[-2:] == [POEM, MIMI]
    assert not any(isinstance(message, AIMessage) and message.tool_calls for message in model.shown[-1])
    model.calls = ["And in Rome?"]
    assert "__interrupt__" in invoke(agent, {"messages": [("user", "And in Rome?")]}, CONFIG)
    invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)
    said = [POEM, MIMI, f"re {MIMI}", "And in Rome?", "re And in Rome?", "sunny in Rome", "re sunny in Rome"]
    assert texts(memory.messages) == said
    assert [texts([node.message for node in thread]) for thread in memory.threads()] == [
        [POEM, f"re {POEM}"],
        said,
    ]
    assert memory.verify().ok


def test_results_of_a_failed_turn_are_shown(words: MemorySystem, model: Stops) -> None:
    agent = asking("agent", words, model, InMemorySaver())
    model.calls, model.stops = ["Weather in Rome?"], ["sunny in Rome"]
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [("user", "Weather in Rome?")]}, CONFIG)
    model.stops = []
    agent.invoke({"messages": [("user", "And?")]}, CONFIG)
    assert texts(model.shown[-1]) == ["Weather in Rome?", "re Weather in Rome?", "sunny in Rome", "And?"]


def test_an_open_turn_has_no_second_look_and_keeps_its_place(words: MemorySystem) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector())
    for turn in (BREAD, CSV, LISBON, (POEM,)):
        memory.append(*turn)
    before = memory.history[-1]
    memory.append(MIMI, "Mimi, Mimi.")
    assert [node for node in memory.history if node.id == before.id] == [before]


def test_a_sort_puts_messages_below_an_open_turn(words: MemorySystem) -> None:
    def guess(tree: TreeView, message: BaseMessage) -> int | None:
        tree.reason = "a guess"
        return 2 if message.text == MIMI else None

    memory = words.conversation("talk", node_selector=guess)
    for turn in (BREAD, (POEM,), (MIMI, "Mimi, Mimi.")):
        memory.append(*turn)
    assert [(move.node_id, move.parent_id) for move in memory.sort()] == [(4, 3)]


def test_a_result_of_an_open_turn_is_its_end(words: MemorySystem) -> None:
    memory = words.conversation("talk", node_selector=SemanticNodeSelector())
    call = AIMessage("", tool_calls=[{"name": "book", "args": {}, "id": "c1"}])
    memory.append("Book a table for Friday", call, ToolMessage("booked", tool_call_id="c1"))
    assert memory.append("Make it eight o'clock, for two")[0].parent_id == 3
