"""Coverage: the turns of other threads that a model is shown because the message may continue them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from pydantic import Field

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageWindow,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.integrations.graph import ThreadedState
from langchain_threadmem.threads.coverage import Turn, merged
from langchain_threadmem.threads.tree_view import TreeView

Wrap = Callable[[ChatMemory], Any]
CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


class Odds:
    """Reads its choice from the message: "what? tea=.6" continues the newest turn that begins with "tea"."""

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        chances = []
        for word in str(message.content).split():
            topic, _, chance = word.partition("=")
            if chance:
                found = [end.id for end in tree.turn_ends() if end.human.split()[0] == topic]
                chances.append((found[-1] if found else None, float(chance)))
        tree.reason, tree.chances = "by the odds", tuple(chances)
        return chances[0][0] if chances else None


def weighed(chances: Sequence[tuple[int | None, float]]) -> Callable[[TreeView, BaseMessage], int | None]:
    """A selector with fixed probabilities, the choice first."""

    def select(tree: TreeView, message: BaseMessage) -> int | None:
        tree.reason, tree.chances = "by the odds", chances if tree.turn_ends() else ()
        return chances[0][0] if tree.turn_ends() else None

    return select


def shown(messages: Sequence[BaseMessage]) -> list[str]:
    """The first word of each message."""
    return [str(message.content).split()[0] if message.content else message.type for message in messages]


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return with_turns(system.conversation("talk", node_selector=Odds()))


def with_turns(memory: ChatMemory) -> ChatMemory:
    memory.append("tea", "green")
    memory.append("car", "red")
    memory.append("cat", "black")
    return memory


def test_turns_that_a_message_may_continue_are_shown_in_the_order_of_time(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    verb.append("what? cat=.5 tea=.4 car=.1")
    assert shown(verb.messages()) == ["tea", "green", "car", "red", "cat", "black", "what?"]
    verb.append(AIMessage("an answer"))
    assert shown(verb.messages()) == ["cat", "black", "what?", "an"]


def test_older_runners_up_stand_before_newer_turns_of_the_thread(memory: ChatMemory) -> None:
    memory.append("tea again tea=1", "more")
    memory.append("what? tea=.7 cat=.3")
    assert shown(memory.messages) == ["tea", "green", "cat", "black", "tea", "more", "what?"]


@pytest.mark.parametrize(
    ("cover", "expected"),
    [
        (None, ["tea", "green", "what?"]),
        (0.0, ["tea", "green", "what?"]),
        (0.5, ["tea", "green", "what?"]),
        (0.8, ["tea", "green", "car", "red", "what?"]),
        (1.0, ["tea", "green", "car", "red", "cat", "black", "what?"]),
    ],
)
def test_runners_up_are_added_until_the_share_is_reached(
    system: MemorySystem, cover: float | None, expected: list[str]
) -> None:
    memory = with_turns(system.conversation("talk", node_selector=Odds(), cover=cover))
    memory.append("what? tea=.5 car=.3 cat=.2")
    assert shown(memory.messages) == expected


def test_a_new_thread_needs_no_turn(memory: ChatMemory) -> None:
    memory.append("what? other=.99 car=.01")
    assert shown(memory.messages) == ["what?"]


def test_turns_beyond_the_token_budget_are_left_out(system: MemorySystem) -> None:
    memory = system.conversation("talk", node_selector=Odds(), cover_tokens=100)
    memory.append("tea", "green")
    memory.append("car", "red " * 200)
    memory.append("cat", "black")
    memory.append("what? tea=.5 cat=.3 car=.2")
    assert shown(memory.messages) == ["tea", "green", "cat", "black", "what?"]


def test_a_turn_with_a_file_is_within_the_token_budget(system: MemorySystem) -> None:
    memory = system.conversation("talk", node_selector=Odds(), cover_tokens=300)
    memory.append("tea", "green")
    file = {"type": "file", "base64": "JVBERi0x" * 50_000, "mime_type": "application/pdf"}
    memory.append("car", AIMessage([{"type": "text", "text": "red"}, file]))
    memory.append("what? tea=.5 car=.5")
    assert [m.text for m in memory.messages] == ["tea", "green", "car", "red", "what? tea=.5 car=.5"]


def test_a_turn_is_shown_with_its_tool_calls(system: MemorySystem) -> None:
    memory = system.conversation("talk", node_selector=Odds())
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    memory.append("tea", call, ToolMessage("result", tool_call_id="c"), "green")
    memory.append("car", "red")
    memory.append("what? car=.5 tea=.5")
    assert shown(memory.messages) == ["tea", "ai", "result", "green", "car", "red", "what?"]


@pytest.mark.parametrize(
    ("chances", "expected"),
    [
        ([(3, 0.6), (2, 0.4)], ["tea", "black", "what?"]),
        ([(None, 0.4), (2, 0.35), (3, 0.25)], ["tea", "green", "what?"]),
    ],
)
def test_a_question_is_shown_once(
    system: MemorySystem, verbs: Wrap, chances: list[tuple[int | None, float]], expected: list[str]
) -> None:
    memory = system.conversation("talk", node_selector=weighed(chances))
    memory.append("tea", "green")
    memory.checkout(1)
    memory.append(AIMessage("black"))
    memory.append("what?")
    assert shown(verbs(memory).messages()) == expected


def test_a_turn_is_shown_without_a_system_message(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("talk", node_selector=weighed([(None, 0.6), (2, 0.4)]))
    memory.extend([SystemMessage("Be brief."), AIMessage("Welcome!")])
    memory.append("what?")
    assert shown(verbs(memory).messages()) == ["Be", "Welcome!", "what?"]


def test_a_window_limits_the_thread_and_not_the_runners_up(system: MemorySystem) -> None:
    memory = with_turns(system.conversation("talk", node_selector=Odds(), window=MessageWindow(1)))
    memory.append("what? car=.5 tea=.5")
    assert shown(memory.messages) == ["tea", "green", "car", "red", "what?"]


def test_a_message_that_a_person_has_placed_shows_its_thread_alone(memory: ChatMemory) -> None:
    memory.append("what? car=.5 tea=.5")
    memory.place(memory.tip.id, 2)  # type: ignore[union-attr]
    assert shown(memory.messages) == ["tea", "green", "what?"]


def test_values_out_of_range_are_refused(system: MemorySystem) -> None:
    with pytest.raises(InputError, match=r"cover=1\.5 is not a share"):
        system.conversation("talk", cover=1.5)
    with pytest.raises(InputError, match="cover_tokens=-1 is not a number"):
        system.conversation("talk", cover_tokens=-1)


class Recorder(BaseChatModel):
    """Records the prompts."""

    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Recorder:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.prompts.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("re"))])


def chat(model: Recorder, system: MemorySystem) -> Runnable[Any, Any]:
    return create_threaded_chat(
        model, system, selector=Odds(), recall=0, checkpointer=ThreadMemSaver(system), conversation_id="tree"
    )


def agent(model: Recorder, system: MemorySystem) -> Runnable[Any, Any]:
    middleware = ThreadMemMiddleware(system, selector=Odds(), recall=0, conversation_id="tree")
    return create_agent(model, middleware=[middleware], checkpointer=ThreadMemSaver(system))


def graph(model: Recorder, system: MemorySystem) -> Runnable[Any, Any]:
    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(system, Odds(), conversation_id="talk"))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "select")
    builder.add_edge("select", "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=ThreadMemSaver(system))


@pytest.fixture
def ask(invoke: Callable[..., Any]) -> Callable[[Runnable[Any, Any], str], Any]:
    return lambda runnable, text: invoke(runnable, {"messages": [("user", text)]}, CONFIG)


@pytest.mark.parametrize("make", [chat, agent, graph])
def test_a_graph_shows_its_model_the_runners_up_and_stores_them_once(
    system: MemorySystem,
    make: Callable[[Recorder, MemorySystem], Runnable[Any, Any]],
    ask: Callable[[Runnable[Any, Any], str], Any],
) -> None:
    model = Recorder()
    runnable = make(model, system)
    for text in ("tea", "car", "what? car=.6 tea=.4", "so? car=1"):
        state = ask(runnable, text)
    assert shown(model.prompts[2]) == ["tea", "re", "car", "re", "what?"]
    name = "talk" if make is graph else "tree"
    threads = [shown([node.message for node in thread]) for thread in system.conversation(name).threads()]
    assert sorted(threads) == [["car", "re", "so?", "re"], ["car", "re", "what?", "re"], ["tea", "re"]]
    assert shown(state["messages"])[-2:] == ["so?", "re"]


def test_the_state_of_a_chat_is_the_thread_alone(system: MemorySystem) -> None:
    model = Recorder()
    runnable = chat(model, system)
    for text in ("tea", "car", "what? car=.6 tea=.4"):
        state = runnable.invoke({"messages": [("user", text)]}, CONFIG)
    assert shown(state["messages"]) == ["car", "re", "what?", "re"]


def test_the_rewritten_state_of_an_agent_is_the_thread_alone(
    system: MemorySystem, ask: Callable[[Runnable[Any, Any], str], Any]
) -> None:
    model = Recorder()
    middleware = ThreadMemMiddleware(system, selector=Odds(), recall=0, rewrite=True)
    runnable = create_agent(model, middleware=[middleware], checkpointer=ThreadMemSaver(system))
    for text in ("tea", "car", "what? car=.6 tea=.4"):
        state = ask(runnable, text)
    assert shown(model.prompts[2]) == ["tea", "re", "car", "re", "what?"]
    assert shown(state["messages"]) == ["car", "re", "what?", "re"]


@given(st.lists(st.integers(1, 60), min_size=1, unique=True), st.data())
def test_a_merged_list_keeps_the_thread_and_each_turn_whole(starts: list[int], data: st.DataObject) -> None:
    own = data.draw(st.sets(st.sampled_from(starts), min_size=1))
    thread: list[BaseMessage] = []
    numbers = {}
    for start in sorted(own):
        thread += [HumanMessage("", id=f"h{start}"), AIMessage("", id=f"a{start}")]
        numbers |= {f"h{start}": 10 * start, f"a{start}": 10 * start + 1}
    thread.append(HumanMessage("", id="h61"))
    numbers["h61"] = 610
    turns = [
        Turn(10 * start, [HumanMessage("", id=f"h{start}"), AIMessage("", id=f"a{start}")])
        for start in set(starts) - own
    ]
    every = [f"{kind}{start}" for start in sorted(starts) for kind in "ha"]
    assert [message.id for message in merged(thread, numbers, turns)] == [*every, "h61"]
