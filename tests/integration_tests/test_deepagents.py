"""Agents of the package deepagents, whose list of messages is a `DeltaChannel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from conftest import by_first_word
from deepagents import create_deep_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from langchain_threadmem import MemorySystem, ThreadMemMiddleware, ThreadMemSaver

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


class Recorder(FakeMessagesListChatModel):
    """Answers in the order of `responses`, and records what it is shown."""

    shown: list[list[str]] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Recorder:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.shown.append([message.text for message in messages if message.type != "system"])
        return super()._generate(messages, *args, **kwargs)


def model_of(*responses: str | AIMessage) -> Recorder:
    return Recorder(responses=[AIMessage(text) if isinstance(text, str) else text for text in responses])


@pytest.fixture(params=["ThreadMemSaver", "InMemorySaver"])
def saver(request: pytest.FixtureRequest, system: MemorySystem) -> BaseCheckpointSaver[Any]:
    return ThreadMemSaver(system) if request.param == "ThreadMemSaver" else InMemorySaver()


def threads(system: MemorySystem) -> list[list[str]]:
    return [[node.message.text for node in thread] for thread in system.conversation("talk").threads()]


FORMS: dict[str, Callable[[str], Any]] = {
    "a pair": lambda text: [("user", text)],
    "a text": lambda text: text,
    "a list of texts": lambda text: [text],
    "a dictionary": lambda text: [{"role": "user", "content": text}],
    "a message": lambda text: [HumanMessage(text)],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_deep_agent_follows_threads_whatever_the_form_of_its_input(
    system: MemorySystem, saver: BaseCheckpointSaver[Any], invoke: Callable[..., Any], form: str
) -> None:
    model = model_of("one", "two", "three", "four")
    middleware = [ThreadMemMiddleware(system, selector=by_first_word, recall=0)]
    agent = create_deep_agent(model, middleware=middleware, checkpointer=saver)
    for text in ("tea black", "cat grey", "tea green", "tea green"):
        state = invoke(agent, {"messages": FORMS[form](text)}, CONFIG)
    assert model.shown == [
        ["tea black"],
        ["cat grey"],
        ["tea black", "one", "tea green"],
        ["tea black", "one", "tea green", "three", "tea green"],
    ]
    assert threads(system) == [
        ["cat grey", "two"],
        ["tea black", "one", "tea green", "three", "tea green", "four"],
    ]
    said = [message.text for message in state["messages"]]
    assert said == ["tea black", "one", "cat grey", "two", "tea green", "three", "tea green", "four"]


def test_a_tool_loop_of_a_deep_agent_is_stored_in_the_turn_of_its_question(
    system: MemorySystem, saver: BaseCheckpointSaver[Any], invoke: Callable[..., Any]
) -> None:
    file = {"file_path": "/tea.txt", "content": "green"}
    call = {"name": "write_file", "args": file, "id": "call-1", "type": "tool_call"}
    model = model_of(AIMessage("", tool_calls=[call]), "noted", "two")
    middleware = [ThreadMemMiddleware(system, selector=by_first_word, recall=0)]
    agent = create_deep_agent(model, middleware=middleware, checkpointer=saver)
    invoke(agent, {"messages": "tea is to be bought"}, CONFIG)
    state = invoke(agent, {"messages": "tea and what else?"}, CONFIG)
    assert [[len(thread), thread[0], thread[-1]] for thread in threads(system)] == [
        [6, "tea is to be bought", "two"]
    ]
    assert state["files"]["/tea.txt"]["content"] == "green"


@pytest.mark.parametrize("rewrite", [False, True])
def test_the_question_of_another_thread_is_shown_after_the_list_was_summarised(
    system: MemorySystem, invoke: Callable[..., Any], rewrite: bool
) -> None:
    # deepagents keeps its summary beside the list, with the position up to which it covers the list.
    model = model_of("one", "the summary of tea", "two", "three", "four", "five", "six")
    model.profile = {"max_input_tokens": 8_000}
    middleware = [ThreadMemMiddleware(system, selector=by_first_word, recall=0, rewrite=rewrite)]
    agent = create_deep_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    long = "leaf " * 2000
    for text in (f"tea {long}", f"tea {long}", "cat one", "cat two", "tea three"):
        invoke(agent, {"messages": text}, CONFIG)
    shown = [[text.partition(" leaf")[0] for text in call] for call in model.shown]
    assert "the summary of tea" in shown[2][0]
    assert shown[2][1:] == ["tea"]
    assert shown[3][-1:] == ["cat one"]
    assert shown[4][-3:] == ["cat one", "three", "cat two"]
    if rewrite:
        assert [len(call) for call in shown[3:5]] == [1, 3]
