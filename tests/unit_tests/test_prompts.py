"""Prompts: lists that every provider accepts, begin as earlier prompts did, and continue their own chains."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, wrap_model_call
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import Field, SecretStr

from langchain_threadmem import (
    ChatMemory,
    LinearNodeSelector,
    MemorySystem,
    MessageWindow,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    TokenWindow,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.messages.prompt import as_prompt, for_model
from langchain_threadmem.messages.quoting import is_block
from langchain_threadmem.messages.tokens import count_tokens
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.storage.schema import State
from tests.providers import refusals

Wrap = Callable[[ChatMemory], Any]
WINDOWS: dict[str, Any] = {
    "none": None,
    "messages": MessageWindow(4),
    "one message": MessageWindow(1),
    "tokens": TokenWindow(60),
    "function": lambda messages: messages[-3:],
}
NAMES = (None, None, "Ada", "Bo")


class AnyTurn:
    """Chooses a random turn, with random probabilities of a few others."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        ids = [*(end.id for end in tree.turn_ends()), None]
        chosen = self._chance.sample(ids, min(len(ids), 4))
        odds = sorted((self._chance.random() for _ in chosen), reverse=True)
        tree.reason, tree.chances = (
            "at random",
            [(id_, odd / sum(odds)) for id_, odd in zip(chosen, odds, strict=True)],
        )
        return chosen[0]


def spoken(chance: random.Random) -> str:
    return " ".join(f"w{chance.randrange(99)}" for _ in range(chance.choice((1, 3, 9, 40))))


def answer(chance: random.Random, calls: int = 0) -> AIMessage:
    text = "" if calls or chance.random() < 0.1 else spoken(chance)
    content: Any = text
    if chance.random() < 0.3:
        content = [{"type": "text", "text": text}, {"type": "text", "text": ""}]
        if chance.random() < 0.5:
            signed = {"signature": "c2ln"} if chance.random() < 0.5 else {}
            content.insert(0, {"type": "thinking", "thinking": "Let me see.", **signed})
    made = [{"name": "look", "args": {"n": n}, "id": f"call_{n}"} for n in range(calls)]
    if chance.random() < 0.1 and made:
        invalid = {**made.pop(), "args": "{", "error": None, "type": "invalid_tool_call"}
        return AIMessage(content, tool_calls=made, invalid_tool_calls=[invalid])  # type: ignore[list-item]
    return AIMessage(content, tool_calls=made)


def turn(chance: random.Random) -> Iterator[BaseMessage]:
    """A rough turn: calls may be cancelled, half answered, or answered late; an answer may be missing."""
    yield HumanMessage(spoken(chance), name=chance.choice(NAMES))
    late = []
    while chance.random() < 0.5:
        calls = answer(chance, chance.choice((1, 2, 6)))
        yield calls
        for call in calls.tool_calls:
            result = ToolMessage(spoken(chance), tool_call_id=call["id"])
            fate = chance.random()
            if fate < 0.8:
                yield result
            elif fate < 0.9:
                late.append(result)
    if chance.random() < 0.85:
        yield answer(chance)
        yield from late


def prompts(memory: ChatMemory, chance: random.Random, turns: int) -> Iterator[list[BaseMessage]]:
    """What a model would be shown in a rough conversation, with checkouts, edits and regenerated answers."""
    if chance.random() < 0.2:
        memory.extend([AIMessage("Welcome!")])
    for _ in range(turns):
        if chance.random() < 0.1:
            memory.append(SystemMessage(spoken(chance)))
        for message in turn(chance):
            memory.append(message)
            if message.type == "human" or (message.type == "tool" and is_answered(memory.messages)):
                yield memory.messages
        ids = [node.id for node in memory.history if node.message.type in ("human", "ai")]
        fate = chance.random()
        if fate < 0.1:
            memory.checkout(chance.choice(ids))
        elif fate < 0.2:
            human = [node.id for node in memory.history if node.message.type == "human"]
            memory.edit(chance.choice(human), spoken(chance))
            yield memory.messages
        elif fate < 0.3 and memory.tip is not None and memory.tip.message.type == "ai":
            memory.regenerate(memory.tip.id, AIMessage(spoken(chance)))


def is_answered(messages: Sequence[BaseMessage]) -> bool:
    """Whether all calls of the last exchange have results, so that the model is called again."""
    calls = [message for message in messages if isinstance(message, AIMessage) and message.tool_calls]
    after = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return bool(calls) and {call["id"] for call in calls[-1].tool_calls} <= after


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("seed", range(5))
def test_all_providers_accept_what_a_memory_shows(seed: int, window: str) -> None:
    chance = random.Random(f"{seed} {window}")
    with MemorySystem(embeddings=False) as system:
        memory = system.conversation("rough", node_selector=AnyTurn(chance), window=WINDOWS[window])
        for shown in prompts(memory, chance, 8):
            assert refusals(shown) == {}, shown


@pytest.mark.parametrize("window", WINDOWS)
def test_all_providers_accept_a_history_and_a_question(window: str) -> None:
    chance = random.Random(window)
    with MemorySystem(embeddings=False) as system:
        for number in range(6):
            history = ThreadMemChatMessageHistory(f"talk {number}", system, window=WINDOWS[window])
            for _ in range(4):
                history.add_messages(list(turn(chance)))
                shown = as_prompt([*history.messages, HumanMessage("And now?")])
                assert refusals(shown) == {}, shown


def test_as_prompt_makes_a_prompt_of_what_retrieve_returns(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append("Which one?", "Green tea from Uji.")
    memory.append("And bread?", "Rye bread.")
    found = memory.retrieve("green tea from Uji", 1, context_depth=0)
    assert [message.type for message in found] == ["ai"]
    shown = as_prompt([*found, HumanMessage("How long?")])
    assert [message.type for message in shown] == ["human", "ai", "human"]
    assert refusals(shown) == {}


class Model(BaseChatModel):
    """Records its prompts; answers at random, with calls if it has tools."""

    rough: bool = True

    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    chance: random.Random = Field(default_factory=lambda: random.Random(3))
    tools: bool = False

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Model:
        return self.model_copy(update={"tools": True})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.prompts.append(messages)
        calls = self.chance.choice((0, 0, 1, 2, 6)) if self.tools else 0
        message = answer(self.chance, calls) if self.rough else AIMessage(spoken(self.chance))
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def look(n: int) -> str:
    """Look something up."""
    return f"result {n}"


def chat(model: Model, system: MemorySystem, saver: Any, window: Any) -> Any:
    selector = AnyTurn(model.chance)
    return create_threaded_chat(
        model, system, selector=selector, checkpointer=saver, window=window, system_prompt="Be brief."
    )


def agent(model: Model, system: MemorySystem, saver: Any, window: Any) -> Any:
    middleware = ThreadMemMiddleware(system, selector=AnyTurn(model.chance), window=window)
    return create_agent(model, [look], middleware=[middleware], checkpointer=saver, system_prompt="Be brief.")


def graph(model: Model, system: MemorySystem, saver: Any, window: Any) -> Any:
    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(system, AnyTurn(model.chance), window=window))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "select")
    builder.add_edge("select", "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("window", ["none", "messages", "tokens"])
@pytest.mark.parametrize("saver_of", [ThreadMemSaver, lambda _: InMemorySaver()], ids=["own", "other"])
@pytest.mark.parametrize("make", [chat, agent, graph])
def test_all_providers_accept_what_graphs_and_agents_send(
    make: Callable[..., Any], saver_of: Callable[[MemorySystem], Any], window: str
) -> None:
    with MemorySystem(embeddings=False) as system:
        for seed in range(1):
            model = Model(chance=random.Random(f"{seed} {window}"), rough=make is not graph)
            runnable = make(model, system, saver_of(system), WINDOWS[window])
            config = {"configurable": {"thread_id": f"talk {seed}"}}
            for _ in range(8):
                message = HumanMessage(spoken(model.chance), name=model.chance.choice(NAMES))
                runnable.invoke({"messages": [message]}, config)
            assert len(model.prompts) >= 8
            for shown in model.prompts:
                assert refusals(shown) == {}, shown


class OfOpenAI(ChatOpenAI):
    """Records what it would send."""

    sent: list[Any] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.sent.append(self._get_request_payload(messages)["messages"])
        answer = AIMessage("From OpenAI.", response_metadata={"model_provider": "openai"})
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


class OfAnthropic(ChatAnthropic):
    """Records what it would send."""

    sent: list[Any] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.sent.append(self._get_request_payload(messages)["messages"])
        search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        thought = {"type": "redacted_thinking", "data": "c2VjcmV0"}
        content: list[Any] = [thought, search, found, {"type": "text", "text": "From Anthropic."}]
        answer = AIMessage(content, response_metadata={"model_provider": "anthropic"})
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def test_models_with_fallbacks_are_sent_what_each_of_them_accepts() -> None:
    openai = ChatOpenAI(api_key=SecretStr("none"))
    anthropic = ChatAnthropic(model_name="claude-sonnet-4-5", api_key=SecretStr("none"))  # type: ignore[call-arg]
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Yes."}]
    answer = AIMessage(content, response_metadata={"model_provider": "anthropic"})  # type: ignore[arg-type]
    bound = openai.bind(stop=["x"])
    for model, sent in (
        (openai.with_fallbacks([openai]), "Yes."),
        (anthropic.with_fallbacks([openai]), "Yes."),
        (openai.with_fallbacks([anthropic]), "Yes."),
        (bound.with_fallbacks([bound]), "Yes."),
        (anthropic.with_fallbacks([anthropic]), content),
        (anthropic.with_fallbacks([anthropic]).with_config(tags=["x"]), content),
    ):
        assert for_model([answer], model)[0].content == sent


def test_a_conversation_may_change_its_provider(system: MemorySystem, invoke: Callable[..., Any]) -> None:
    claude = OfAnthropic(model_name="claude-sonnet-4-5", api_key=SecretStr("none"), timeout=None, stop=None)
    gpt = OfOpenAI(model="gpt-5", api_key=SecretStr("none"))
    linear = {"selector": LinearNodeSelector(), "recall": 0}
    config = {"configurable": {"thread_id": "talk"}}
    for name in ("chat", "agent"):
        config = {"configurable": {"thread_id": name}}
        for model in (claude, gpt.bind(stop=["."]) if name == "chat" else gpt, claude):
            if name == "chat":
                runnable: Any = create_threaded_chat(model, system, **linear)  # type: ignore[arg-type]
            else:
                runnable = create_agent(model, middleware=[ThreadMemMiddleware(system, **linear)])  # type: ignore
            invoke(runnable, {"messages": [HumanMessage("Next?")]}, config)
        assert gpt.sent[-1][1] == {"role": "assistant", "content": "From Anthropic."}
        first, second = (message["content"] for message in claude.sent[-1] if message["role"] == "assistant")
        assert [block["type"] for block in first] == [
            *("redacted_thinking", "server_tool_use", "web_search_tool_result", "text")
        ]
        assert second == "From OpenAI."
        assert len(system.conversation(name).messages[1].content) == 4


@pytest.mark.parametrize("saver_of", [ThreadMemSaver, lambda _: InMemorySaver()], ids=["own", "other"])
def test_an_empty_answer_leaves_the_list_of_a_graph_and_stays_in_the_tree(
    system: MemorySystem, invoke: Callable[..., Any], saver_of: Callable[[MemorySystem], Any]
) -> None:
    answers = iter(["Hi.", "", "Fine.", "Bye."])
    shown: list[list[str]] = []

    def answer(state: Any) -> dict[str, Any]:
        shown.append([message.text for message in state["messages"]])
        assert refusals(state["messages"]) == {}
        return {"messages": [AIMessage(next(answers))]}

    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(system, LinearNodeSelector()))
    builder.add_node("model", answer)
    builder.add_edge(START, "select").add_edge("select", "model")
    built = builder.compile(checkpointer=saver_of(system))
    for text in ("one", "two", "three", "four"):
        invoke(built, {"messages": [("user", text)]}, {"configurable": {"thread_id": "talk"}})
    assert shown[2:] == [
        ["one", "Hi.", "two", "three"],
        ["one", "Hi.", "two", "three", "Fine.", "four"],
    ]
    memory = system.conversation("talk")
    stored = ["one", "Hi.", "two", "", "three", "Fine.", "four"]
    assert [node.message.text for node in memory.thread(memory.history[6].id)] == stored
    assert len(memory.threads()) == 1
    assert memory.verify().ok


def test_a_question_without_text_says_so_and_consecutive_answers_are_one() -> None:
    said = [
        HumanMessage("Tea?"),
        AIMessage("Yes."),
        AIMessage([{"type": "text", "text": "Green."}]),
        HumanMessage(""),
    ]
    shown = as_prompt(said)
    assert [message.text for message in shown] == ["Tea?", "Yes.Green.", "(no text)"]
    assert refusals(shown) == {}
    assert set(refusals(said)) >= {"Anthropic", "Mistral"}


def test_a_spoken_answer_is_its_transcript_after_the_provider_has_deleted_it(memory: ChatMemory) -> None:
    for end in (1_700_000_000, 4_000_000_000):
        audio = {"id": f"audio_{end}", "data": "UklGRg==", "transcript": f"Until {end}.", "expires_at": end}
        memory.append("Say something.", AIMessage("", additional_kwargs={"audio": audio}))
    memory.append("And now?")
    payload = ChatOpenAI(model="gpt-audio", api_key=SecretStr("none"))._get_request_payload(memory.messages)
    deleted, kept = (message for message in payload["messages"] if message["role"] == "assistant")
    assert deleted == {"role": "assistant", "content": "Until 1700000000."}
    assert kept["audio"] == {"id": "audio_4000000000"}
    assert "audio" in memory.history[1].message.additional_kwargs


def test_the_calls_of_several_answers_with_the_same_ids_are_told_apart(memory: ChatMemory) -> None:
    def call(text: str, *ids: str) -> AIMessage:
        return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": id_} for id_ in ids])

    memory.append("one", call("", "call_0"), ToolMessage("first", tool_call_id="call_0"), "done")
    memory.append("two", call("", "call_0"), ToolMessage("second", tool_call_id="call_0"))
    shown = memory.messages
    assert [m.tool_call_id for m in shown if isinstance(m, ToolMessage)] == ["call_0", "call_0_2"]
    assert [c["id"] for m in shown if isinstance(m, AIMessage) for c in m.tool_calls] == [
        "call_0",
        "call_0_2",
    ]
    stored = [node.message for node in memory.history]
    assert [m.tool_call_id for m in stored if isinstance(m, ToolMessage)] == ["call_0", "call_0"]


def test_a_turn_that_is_being_answered_is_shown_whole_through_any_window(system: MemorySystem) -> None:
    calls = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": f"c{n}"} for n in range(6)])
    results = [ToolMessage("r", tool_call_id=f"c{n}") for n in range(6)]
    for number, window in enumerate((MessageWindow(4), TokenWindow(3))):
        memory = system.conversation(str(number), window=window)
        memory.append("before", "yes")
        memory.append("question", calls, *results)
        assert [message.type for message in memory.messages] == ["human", "ai", *["tool"] * 6]


def test_speakers_of_a_group_chat_are_named_in_the_texts(system: MemorySystem) -> None:
    memory = system.conversation("group")
    memory.append(HumanMessage("Tea?", name="Ada"), "Yes.")
    assert memory.messages[0].content == "Tea?"
    memory.append(HumanMessage([{"type": "text", "text": "Coffee!"}], name="Bo"))
    assert [message.text for message in memory.messages] == ["Ada: Tea?", "Yes.", "Bo: Coffee!"]
    assert memory.history[0].message.content == "Tea?"


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return system.conversation("talk")


@pytest.mark.parametrize("make", [chat, agent, graph])
def test_only_the_new_answer_is_streamed(make: Callable[..., Any]) -> None:
    with MemorySystem(embeddings=False) as system:
        model = Model(chance=random.Random(5), rough=False)
        runnable = make(model, system, ThreadMemSaver(system), None)
        config = {"configurable": {"thread_id": "talk"}}
        for number in range(12):
            said = [HumanMessage(f"question {number}", id=f"h{number}")]
            stream = runnable.stream({"messages": said}, config, stream_mode="messages")
            texts = [message.text for message, _ in stream]
            last = runnable.get_state(config).values["messages"][-1]
            assert texts == [last.text]


@pytest.mark.anyio
async def test_only_the_new_answer_is_streamed_on_an_event_loop() -> None:
    with MemorySystem(embeddings=False) as system:
        model = Model(chance=random.Random(5), rough=False)
        runnable = graph(model, system, InMemorySaver(), None)
        config = {"configurable": {"thread_id": "talk"}}
        for number in range(8):
            said = [HumanMessage(f"question {number}", id=f"h{number}")]
            stream = runnable.astream({"messages": said}, config, stream_mode="messages")
            assert len([message.text async for message, _ in stream]) == 1


class Responses:
    """A server of OpenAI's Responses API, which knows the chain of each response."""

    def __init__(self) -> None:
        self.chains: dict[str, list[str]] = {}
        self.known: list[list[str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        sent = json.loads(request.content)
        chain = [
            *self.chains.get(sent.get("previous_response_id") or "", ()),
            *map(self._text, sent["input"]),
        ]
        self.known.append(chain)
        number = len(self.known)
        self.chains[f"resp_{number}"] = [*chain, f"answer {number}"]
        part = {"type": "output_text", "text": f"answer {number}", "annotations": []}
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        body = {
            **{"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt", "error": None},
            **{"status": "completed", "output": [{**message, "content": [part]}], "tools": []},
            **{"incomplete_details": None, "instructions": None, "metadata": {}, "tool_choice": "auto"},
            **{"parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0},
        }
        return httpx.Response(200, json=body)

    @staticmethod
    def _text(item: dict[str, Any]) -> str:
        content = item["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_a_response_chain_is_that_of_the_thread_and_the_block_reaches_the_model() -> None:
    server = Responses()
    client = httpx.Client(transport=httpx.MockTransport(server))
    model = ChatOpenAI(
        model="gpt", api_key=SecretStr("none"), http_client=client, use_previous_response_id=True
    )
    chance = random.Random(11)
    with MemorySystem(embeddings=False) as system:
        memory = system.conversation("talk", node_selector=AnyTurn(chance))
        blocks = 0
        for number in range(30):
            memory.append(f"question {number}")
            shown = memory.messages
            memory.append(model.invoke(shown))
            assert server.known[-1] == [message.text for message in shown]
            blocks += any(map(is_block, shown))
            if chance.random() < 0.3:
                ids = [node.id for node in memory.history if node.state is State.LIVE]
                human = [node.id for node in memory.history if node.message.text == f"question {number}"]
                above = [id_ for id_ in ids if id_ < human[-1] and id_ % 2 == 0]
                memory.place(human[-1], chance.choice([None, *above]))
        assert blocks > 5


def test_the_chain_of_a_response_that_was_deleted_is_not_continued(memory: ChatMemory) -> None:
    for days in (40, 31, 1):
        metadata = {"id": f"resp_{days}", "created_at": time.time() - days * 24 * 3600}
        memory.append(f"question {days}", AIMessage(f"answer {days}", response_metadata=metadata))
        memory.append("And now?")
        model = ChatOpenAI(model="gpt", api_key=SecretStr("none"), use_previous_response_id=True)
        payload = model._get_request_payload(memory.messages)
        assert payload.get("previous_response_id") == ("resp_1" if days == 1 else None)
        assert len(payload["input"]) == (1 if days == 1 else len(memory.messages))
        memory.append(AIMessage("Still the same."))


class Echo(Model):
    """Answers every question with "Fine." and records its prompts."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.prompts.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Fine."))])


@pytest.fixture
def recalling(system: MemorySystem) -> tuple[Any, Echo]:
    """A linear chat beside another conversation of its owner."""
    other = system.conversation("garden")
    other.append("The rose tree is in the north corner.", "Noted: the rose tree.")
    other.append("The fig tree needs water.", "Noted: the fig tree.")
    model = Echo()
    selector = LinearNodeSelector()
    chat = create_threaded_chat(model, system, selector=selector, scope="owner", conversation_id="talk")
    return chat, model


def test_recalled_text_stays_where_it_was_and_is_not_repeated(
    recalling: tuple[Any, Echo], invoke: Callable[..., Any]
) -> None:
    chat, model = recalling
    for text in ("Where is the rose tree?", "Is the rose tree tall?", "Thanks."):
        invoke(chat, {"messages": [("user", text)]}, {"configurable": {"thread_id": "talk"}})
    first, second, third = model.prompts
    assert [is_block(message) for message in first] == [True, False]
    assert 'conversation="garden"' in first[0].text
    assert second[:2] == first
    assert third[:2] == first
    texts = "\n".join(message.text for message in third)
    assert texts.count("The rose tree is in the north corner.") == 1


def test_recalled_text_leaves_when_it_is_erased(system: MemorySystem, recalling: tuple[Any, Echo]) -> None:
    chat, model = recalling
    chat.invoke({"messages": [("user", "Where is the rose tree?")]})
    system.erase(conversation="garden")
    chat.invoke({"messages": [("user", "Thanks.")]})
    assert "north corner" in model.prompts[0][0].text
    assert model.prompts[1][0].text == "Where is the rose tree?"


def test_recalled_text_is_bounded_by_the_size_of_the_thread(
    system: MemorySystem, recalling: tuple[Any, Echo]
) -> None:
    chat, model = recalling
    for number in range(12):
        system.conversation(f"trees {number}").append(f"Tree {number}: {'tall rose tree ' * 30}", "Yes.")
    for number in range(6):
        chat.invoke({"messages": [("user", f"Which tall rose tree is number {number}?")]})
    blocks = [message for message in model.prompts[-1] if is_block(message)]
    assert blocks
    assert count_tokens(blocks) <= 150 + 25 * len(blocks)


def test_cache_marks_of_other_middleware_survive_selection(system: MemorySystem) -> None:
    mark = {"type": "ephemeral"}

    @wrap_model_call
    def marks(request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        *before, last = request.messages
        content = [{"type": "text", "text": last.text, "cache_control": mark}]
        return handler(request.override(messages=[*before, last.model_copy(update={"content": content})]))

    for order in (0, 1):
        model = Echo()
        memory = ThreadMemMiddleware(system, selector=LinearNodeSelector(), conversation_id=f"talk {order}")
        both = [memory, marks] if order else [marks, memory]
        runnable = create_agent(model, middleware=both, checkpointer=InMemorySaver())
        for text in ("one", "two"):
            runnable.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": str(order)}})
        shown = model.prompts[-1]
        assert [message.text for message in shown] == ["one", "Fine.", "two"]
        assert shown[-1].content[0]["cache_control"] == mark  # type: ignore[index]


@pytest.mark.parametrize("seed", range(4))
def test_the_blocks_of_a_prompt_are_those_of_a_memory_without_a_cache(seed: int, tmp_path: Path) -> None:
    chance, path = random.Random(seed), tmp_path / "memory.db"
    blocks = 0
    with MemorySystem(path, embeddings=False) as system:
        memory = system.conversation("rough", node_selector=AnyTurn(chance))
        for shown in prompts(memory, chance, 12):
            with MemorySystem(path, embeddings=False) as fresh:
                assert [m.text for m in fresh.conversation("rough").messages] == [m.text for m in shown]
            blocks += sum(map(is_block, shown))
    assert blocks > 20


def test_a_block_is_made_again_when_another_system_forgets_what_it_quotes(url: str, owner: str) -> None:
    def selector(tree: TreeView, message: BaseMessage) -> int | None:
        ends = tree.turn_ends()
        tree.chances = [(end.id, 1 / len(ends)) for end in ends]
        return ends[-1].id if len(ends) > 1 else None

    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("talk", node_selector=selector)
        memory.append("Where do figs grow?", "In the south.")
        for question in ("And plums?", "And pears?", "And quinces?"):
            memory.append(question, "In the north.")
        memory.append("Which is best?")
        assert any(is_block(message) and "figs" in message.text for message in memory.messages)
        with MemorySystem(url, owner=owner, embeddings=False) as other:
            for message in ("Where do figs grow?", "In the south."):
                found = [node.id for node in memory.history if node.message.text == message]
                other.conversation("talk").forget(found[0], purge=False)
        assert "figs" not in str([message.text for message in memory.messages])
