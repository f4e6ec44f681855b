"""The option `ask`: a chat asks its own model about messages whose thread is uncertain."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langchain_threadmem import (
    LLMNodeSelector,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemMiddleware,
    create_threaded_chat,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.selection import llm_selector

BREAD, CSV = "My sourdough bread comes out flat. Why?", "How do I read a CSV file?"
ANSWER = {"selected_node_id": None, "reasoning": "files are no bread", "title": "CSV files"}


class Chat(BaseChatModel):
    """A model that answers people in prose and questions about threads in JSON."""

    asked: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "chat"

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        about_threads = any("New message:" in message.text for message in messages)
        if about_threads:
            self.asked.append(messages[1].text)
        text = json.dumps(ANSWER) if about_threads else "With care."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class ChatWithTools(Chat):
    """A model with tools, which can be held to a schema."""

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        return self


class FailingChat(ChatWithTools):
    """A model that raises at each question about threads."""

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        result = super()._generate(messages, *arguments, **options)
        if result.generations[0].text != "With care.":
            raise TimeoutError("overloaded")
        return result


class UnusableChat(Chat):
    """A model that answers questions about threads in prose."""

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        super()._generate(messages, *arguments, **options)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("With care."))])


def chat_of(system: MemorySystem, model: Chat, **options: Any) -> Any:
    return create_threaded_chat(model, system, conversation_id="talk", recall=0, **options)


def agent_of(system: MemorySystem, model: Chat, **options: Any) -> Any:
    memory = ThreadMemMiddleware(system, model=model, conversation_id="talk", recall=0, **options)
    return create_agent(model, middleware=[memory])


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a chat ask by default about nearly each message, whatever its odds."""
    monkeypatch.setattr(llm_selector, "ASK", 0.9)


@pytest.fixture
def tell(invoke: Callable[..., Any]) -> Any:
    return lambda graph, text: invoke(graph, {"messages": [("user", text)]})


@pytest.mark.parametrize("made", [chat_of, agent_of])
def test_the_chats_own_model_is_asked_where_the_thread_is_uncertain(
    system: MemorySystem, tell: Any, made: Any
) -> None:
    model = Chat()
    graph = made(system, model, ask=0.9)
    tell(graph, BREAD)
    thread = tell(graph, CSV)["active_thread"]
    assert (thread["parent_id"], thread["reason"]) == (None, "files are no bread")
    assert f"New message: <text>{CSV}</text>" in model.asked[0]
    assert system.conversation("talk").list_threads()[0].title == "CSV files"
    assert len(model.asked) == system.usage.of("selection").calls == 1


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("made", [chat_of, agent_of])
def test_a_model_with_tools_is_asked_by_default_about_doubtful_messages(
    system: MemorySystem, tell: Any, made: Any
) -> None:
    model = ChatWithTools()
    graph = made(system, model)
    tell(graph, BREAD)
    tell(graph, CSV)
    assert len(model.asked) == system.usage.of("selection").calls == 1
    assert system.conversation("talk").list_threads()[0].title == "CSV files"


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("made", [chat_of, agent_of])
@pytest.mark.parametrize(
    ("model", "options"),
    [(Chat, {}), (ChatWithTools, {"ask": 0}), (ChatWithTools, {"selector": lambda tree, message: None})],
    ids=["a model without tools", "ask=0", "another selector"],
)
def test_no_model_is_asked_by_default(
    system: MemorySystem, tell: Any, made: Any, model: type[Chat], options: Any
) -> None:
    chat = model()
    graph = made(system, chat, **options)
    tell(graph, BREAD)
    tell(graph, CSV)
    assert chat.asked == []


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("made", [chat_of, agent_of])
def test_a_turn_goes_on_if_the_question_about_its_thread_fails(
    system: MemorySystem, tell: Any, made: Any
) -> None:
    model = FailingChat()
    graph = made(system, model)
    tell(graph, BREAD)
    assert tell(graph, CSV)["messages"][-1].text == "With care."
    assert len(model.asked) == 1
    assert len(system.conversation("talk").history) == 4


@pytest.mark.parametrize("made", [chat_of, agent_of])
def test_the_answer_about_the_thread_is_not_streamed(system: MemorySystem, made: Any) -> None:
    model = Chat()
    graph = made(system, model, ask=0.9)
    streamed = [
        message.text
        for text in (BREAD, CSV)
        for message, _ in graph.stream({"messages": [("user", text)]}, stream_mode="messages")
    ]
    assert len(model.asked) == 1
    assert set(streamed) == {"With care."}


def test_an_unusable_answer_is_asked_for_once_more(system: MemorySystem, tell: Any) -> None:
    model = UnusableChat()
    graph = chat_of(system, model, ask=0.9)
    tell(graph, BREAD)
    assert tell(graph, CSV)["messages"][-1].text == "With care."
    assert len(model.asked) == 2


def test_a_semantic_selector_with_its_own_embeddings_is_completed(system: MemorySystem, tell: Any) -> None:
    model = Chat()
    graph = chat_of(system, model, ask=0.9, selector=SemanticNodeSelector())
    tell(graph, BREAD)
    tell(graph, CSV)
    assert len(model.asked) == 1


def test_a_share_needs_a_model_and_the_semantic_selector(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="needs a chat model"):
        ThreadMemMiddleware(system, ask=0.1)
    with pytest.raises(InputError, match="not LLMNodeSelector"):
        chat_of(system, Chat(), ask=0.1, selector=LLMNodeSelector(Chat()))
    with pytest.raises(InputError, match="from 0 to 1"):
        chat_of(system, Chat(), ask=2.0)
