"""Running summaries beside the list of messages: langmem's nodes after the node that selects threads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NotRequired

import pytest
from conftest import by_first_word
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langmem.short_term import RunningSummary, SummarizationNode, summarize_messages
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_threadmem import MemorySystem, ThreadMemSaver, select_thread_node
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.selection.tree_view import TreeView

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}
LIMITS: dict[str, Any] = {"max_tokens": 60, "max_tokens_before_summary": 40, "max_summary_tokens": 20}


class Summarizer(FakeListChatModel):
    """Answers with the words of the summary so far, and with a word of each human message."""

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        *given, request = messages
        former = request.text.partition("so far: ")[2].partition("\n")[0].split()
        return " ".join([*former, *(m.text.split()[1] for m in given if m.type == "human")])


class State(MessagesState):
    context: dict[str, Any]


class Input(TypedDict):
    summarized_messages: list[AnyMessage]


class ModelState(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []
    context: dict[str, Any] = {}


class BareState(ThreadedState):
    summary: NotRequired[RunningSummary | None]


class Shown:
    """The messages of each model call, to the word `and`; its answers are long."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def answer(self, messages: list[AnyMessage]) -> dict[str, Any]:
        self.calls.append([message.text.strip().partition(" and ")[0] for message in messages])
        return {"messages": [AIMessage(f"re {messages[-1].text} and {'so on ' * 8}")]}


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture(params=["ThreadMemSaver", "InMemorySaver"])
def saver(request: pytest.FixtureRequest, system: MemorySystem) -> Iterator[BaseCheckpointSaver[Any]]:
    allowed = [("langmem.short_term.summarization", "RunningSummary")]
    serde = JsonPlusSerializer(allowed_msgpack_modules=allowed)
    if request.param == "ThreadMemSaver":
        yield ThreadMemSaver(system, serde=serde)
    else:
        yield InMemorySaver(serde=serde)


def with_node(
    system: MemorySystem | None, saver: Any, shown: Shown, selector: Any = by_first_word, **options: Any
) -> Any:
    """A graph with `SummarizationNode`, as langmem's documentation builds it; without a system one thread."""
    builder = StateGraph(options.pop("state", State))
    select = (lambda state: {}) if system is None else select_thread_node(system, selector)
    builder.add_node("select", select)
    builder.add_node("summarize", SummarizationNode(model=Summarizer(responses=[]), **LIMITS | options))
    builder.add_node("answer", lambda state: shown.answer(state["summarized_messages"]), input_schema=Input)
    builder.add_edge(START, "select").add_edge("select", "summarize").add_edge("summarize", "answer")
    return builder.compile(checkpointer=saver)


def with_model_state(system: MemorySystem | None, saver: Any, shown: Shown) -> Any:
    return with_node(system, saver, shown, state=ModelState)


def with_one_list(system: MemorySystem | None, saver: Any, shown: Shown) -> Any:
    """A graph whose node writes the summary into the list itself, as a system message."""
    builder = StateGraph(State)
    select = (lambda state: {}) if system is None else select_thread_node(system, by_first_word)
    node = SummarizationNode(model=Summarizer(responses=[]), output_messages_key="messages", **LIMITS)
    builder.add_node("select", select).add_node("summarize", node)
    builder.add_node("answer", lambda state: shown.answer(state["messages"]))
    builder.add_edge(START, "select").add_edge("select", "summarize").add_edge("summarize", "answer")
    return builder.compile(checkpointer=saver)


def with_function(system: MemorySystem | None, saver: Any, shown: Shown) -> Any:
    """A graph that calls `summarize_messages`, with the summary as a key of the state."""

    def answer(state: BareState) -> dict[str, Any]:
        summary = state.get("summary")
        result = summarize_messages(
            state["messages"], running_summary=summary, model=Summarizer(responses=[]), **LIMITS
        )
        return {**shown.answer(result.messages), "summary": result.running_summary}

    builder = StateGraph(BareState)
    select = (lambda state: {}) if system is None else select_thread_node(system, by_first_word)
    builder.add_node("select", select)
    builder.add_node("answer", answer)
    builder.add_edge(START, "select").add_edge("select", "answer")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("graph_of", [with_node, with_model_state, with_one_list, with_function])
def test_a_thread_is_summarised_like_a_conversation_of_its_own(
    system: MemorySystem, saver: Any, shown: Shown, invoke: Callable[..., Any], graph_of: Callable[..., Any]
) -> None:
    graph, alone, expected = graph_of(system, saver, shown), Shown(), list[list[str]]()
    single = graph_of(None, InMemorySaver(), alone)
    for topic, number in zip("tttcttccdtcctdd", range(15), strict=True):
        text = f"{topic} {number}"
        invoke(graph, {"messages": [("user", text)]}, CONFIG)
        single.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": topic}})
        expected.append(alone.calls[-1])
    assert shown.calls == expected
    assert [call[0].startswith("Summary") for call in shown.calls].count(True) > 5


class AnyTurn:
    """Continues any turn; with `covers` the model is shown other turns, too."""

    def __init__(self, seed: int, covers: bool) -> None:
        self.random, self.covers = random.Random(seed), covers

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        ends = [end.id for end in tree.turn_ends()]
        if not ends:
            return None
        chosen = self.random.choice([*ends, ends[-1], ends[-1], ends[-1]])
        if self.covers:
            others = [end for end in ends if end != chosen][-3:]
            tree.chances = [(chosen, 0.4), *((end, 0.2) for end in others)]
            tree.reason = "at random"
        return chosen


@pytest.mark.parametrize("covers", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_each_message_of_a_branch_is_shown_or_summarised_once(
    system: MemorySystem, shown: Shown, seed: int, covers: bool
) -> None:
    graph = with_node(system, ThreadMemSaver(system), shown, AnyTurn(seed, covers), max_tokens=4000)
    memory = system.conversation("talk")
    for number in range(24):
        graph.invoke({"messages": [("user", f"turn {number}")]}, CONFIG)
        tip = memory.tip
        assert tip is not None
        thread = [node.message.text for node in memory.thread(tip.id) if node.message.type == "human"]
        summary = [text for text in shown.calls[-1] if text.startswith("Summary")]
        words = [word for text in summary for word in text.partition("so far: ")[2].split()]
        words += [text.split()[1] for text in shown.calls[-1] if text.startswith("turn")]
        own = [text.split()[1] for text in thread]
        assert set(own) <= set(words) if covers else sorted(own) == sorted(words)
    assert any("Summary" in call[0] for call in shown.calls)
