"""Messages that leave a list: redacted under their ids, deleted by a program, forgotten by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import by_first_word
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware, SummarizationMiddleware, before_model
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import Field
from sqlalchemy import bindparam, select

from langchain_threadmem import (
    ChatMemory,
    LinearNodeSelector,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import InputError, NodeNotFoundError
from langchain_threadmem.langgraph.node import ThreadedState, recall_node, store_turn_node
from langchain_threadmem.recall.quoting import recall_message
from langchain_threadmem.selection.selectors import AnySelector
from langchain_threadmem.storage.schema import node, tree
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.tree.node import MessageSummary

CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}
Invoke = Callable[..., dict[str, Any]]
Build = Callable[..., Any]


class Recorder(BaseChatModel):
    """Records the texts that it is shown; repeats the question, or says what `script` says."""

    shown: list[list[str]] = Field(default_factory=list)
    script: dict[str, str] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Any, **options: Any) -> Recorder:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.shown.append([message.text for message in messages])
        asked = messages[-1].text
        answer = AIMessage(self.script.get(asked, f"Noted {len(self.shown)}."))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @property
    def prompt(self) -> str:
        return "\n".join(self.shown[-1])


def chat(model: Any, system: MemorySystem, saver: Any, selector: AnySelector, recall: int) -> Any:
    return create_threaded_chat(
        model, system, selector=selector, recall=recall, checkpointer=saver, min_similarity=0.0
    )


def agent(
    model: Any, system: MemorySystem, saver: Any, selector: AnySelector, recall: int, *others: Any
) -> Any:
    memory = ThreadMemMiddleware(system, selector=selector, recall=recall, min_similarity=0.0)
    return create_agent(model, [], middleware=[memory, *others], checkpointer=saver)


def nodes(model: Any, system: MemorySystem, saver: Any, selector: AnySelector, recall: int) -> Any:
    """A graph of the program's own, with the nodes that select, recall and store."""

    def answer(state: Any) -> dict[str, Any]:
        quoted = recall_message(state.get("recalled") or [])
        return {"messages": [model.invoke([*quoted, *state["messages"]])]}

    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(system, selector))
    builder.add_node("recall", recall_node(system, recall, min_similarity=0.0))
    builder.add_node("model", answer)
    builder.add_node("store", store_turn_node(system))
    builder.add_edge(START, "select").add_edge("select", "recall").add_edge("recall", "model")
    return builder.add_edge("model", "store").compile(checkpointer=saver)


@pytest.fixture(params=[chat, agent, nodes], ids=lambda build: build.__name__)
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = request.param
    return found


@pytest.fixture(params=["memory", "threadmem"])
def saver(request: pytest.FixtureRequest, system: MemorySystem) -> Any:
    return ThreadMemSaver(system) if request.param == "threadmem" else InMemorySaver()


@pytest.fixture
def model() -> Recorder:
    return Recorder()


def say(invoke: Invoke, graph: Any, *texts: str) -> list[BaseMessage]:
    """Invokes a graph with several texts; returns its list."""
    messages: list[BaseMessage] = []
    for text in texts:
        messages = invoke(graph, {"messages": [("user", text)]}, CONFIG)["messages"]
    return messages


def named(graph: Any, text: str) -> str:
    """The id of a message in the state of a graph."""
    return next(str(one.id) for one in graph.get_state(CONFIG).values["messages"] if text in one.text)


def everything_shown(memory: ChatMemory) -> str:
    """All that a person or a program can see of a conversation."""
    history = memory.history
    parts: list[Any] = [[node.message.text for node in history], [str(node.placement) for node in history]]
    parts += [[node.message.text for node in memory.versions(node.id)] for node in history]
    parts += [memory.export(kind) for kind in ("json", "markdown", "html")]
    parts += [memory.to_mermaid(), [message.text for message in memory.messages]]
    parts += [[hit.node.message.text for hit in memory.recall(word)] for word in ("pin", "quince", "mail")]
    return json.dumps(parts)


def stored(system: MemorySystem) -> str:
    """The bodies of all stored messages."""
    bodies = Statement(
        select(node.c.body).join(tree, tree.c.id == node.c.tree).where(tree.c.owner == bindparam("owner")),
        "owner",
    )
    return str(system.runtime.database.read(lambda conn: conn.all(bodies, system.owner)))


# --- redacted under the id ---------------------------------------------------------------------


def test_a_message_that_is_replaced_under_its_id_is_neither_shown_nor_recalled(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    say(invoke, graph, "my pin is quince", "and what now?")
    redacted = HumanMessage("my pin is ****", id=named(graph, "quince"))
    graph.update_state(CONFIG, {"messages": [redacted]})
    say(invoke, graph, "which pin?")
    assert model.shown[-1] == ["my pin is ****", "Noted 1.", "and what now?", "Noted 2.", "which pin?"]
    memory = system.conversation("talk")
    assert "quince" not in everything_shown(memory)
    assert next(hit.node.message.text for hit in memory.recall("my pin")) == "my pin is ****"
    assert memory.verify().ok


def test_no_reason_quotes_a_message_that_was_redacted(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    def selector(tree: Any, message: BaseMessage) -> int | None:
        ends = tree.turn_ends()
        tree.reason = f"continues {ends[-1].human!r}" if ends else "is new"
        return ends[-1].id if ends else None

    graph = build(model, system, saver, selector, 0)
    say(invoke, graph, "my pin is quince", "and what now?")
    memory = system.conversation("talk")
    assert "my pin is quince" in memory.history[2].placement.reason
    graph.update_state(CONFIG, {"messages": [HumanMessage("my pin is ****", id=named(graph, "quince"))]})
    say(invoke, graph, "which pin?")
    assert "quince" not in everything_shown(memory)


def test_a_redaction_holds_in_each_thread(
    system: MemorySystem, model: Recorder, saver: Any, invoke: Invoke
) -> None:
    model.script = {"pin one": "It is quince."}

    def selector(tree: Any, message: BaseMessage) -> int | None:
        return next((end.id for end in tree.turn_ends() if end.previous is None), None)

    graph = agent(model, system, saver, selector, 0)
    say(invoke, graph, "pin one", "pin two", "pin three")
    redacted = AIMessage("It is ****.", id=named(graph, "quince"))
    graph.update_state(CONFIG, {"messages": [redacted]})
    memory = system.conversation("talk")
    say(invoke, graph, "pin four")
    assert model.shown[-1] == ["pin one", "It is ****.", "pin four"]
    for thread in memory.threads():
        assert [node.message.text for node in thread][:2] == ["pin one", "It is ****."]
    assert "quince" not in everything_shown(memory)


def test_a_checkpoint_from_before_a_redaction_is_as_it_was_and_shown_redacted(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    say(invoke, graph, "my pin is quince")
    before = graph.get_state(CONFIG).config
    say(invoke, graph, "and what now?")
    graph.update_state(CONFIG, {"messages": [HumanMessage("my pin is ****", id=named(graph, "quince"))]})
    say(invoke, graph, "which pin?")
    assert graph.get_state(before).values["messages"][0].text == "my pin is quince"
    invoke(graph, {"messages": [("user", "go back")]}, before)
    assert model.shown[-1] == ["my pin is ****", "Noted 1.", "go back"]
    assert "quince" not in everything_shown(system.conversation("talk"))


@pytest.mark.parametrize("memory_first", [True, False])
@pytest.mark.parametrize("strategy", ["redact", "mask", "hash"])
def test_what_other_middleware_redacts_is_redacted_everywhere(
    system: MemorySystem,
    model: Recorder,
    saver: Any,
    invoke: Invoke,
    memory_first: bool,
    strategy: Any,
) -> None:
    memory = ThreadMemMiddleware(system, selector=LinearNodeSelector(), min_similarity=0.0)
    redaction = PIIMiddleware("email", strategy=strategy, apply_to_output=True)
    order = [memory, redaction] if memory_first else [redaction, memory]
    graph = create_agent(model, [], middleware=order, checkpointer=saver)
    model.script = {"which mail?": "It is ada@example.org."}
    say(invoke, graph, "my mail is ada@example.org", "which mail?", "and now?")
    assert not any("ada@example" in text for shown in model.shown for text in shown)
    assert "ada@example" not in everything_shown(system.conversation("talk"))
    if not isinstance(saver, ThreadMemSaver):  # A checkpoint contains the input of its run.
        assert "ada@example" not in stored(system)


def test_a_redaction_is_the_same_whatever_the_order_of_writes(system: MemorySystem) -> None:
    saver, raw = ThreadMemSaver(system), HumanMessage("my pin is quince", id="h1")
    redacted = HumanMessage("my pin is ****", id="h1")
    node = select_thread_node(system, LinearNodeSelector())
    node.invoke({"messages": [raw]}, CONFIG)
    store_turn_node(system).invoke({"messages": [redacted]}, CONFIG)
    assert "quince" not in stored(system)
    # A saver that writes in the background stores the input of the run after the node has run.
    builder = StateGraph(ThreadedState).add_node("end", lambda state: {})
    graph = builder.add_edge(START, "end").compile(checkpointer=saver)
    first = graph.update_state(CONFIG, {"messages": [raw]})
    graph.update_state(CONFIG, {"messages": [redacted]})
    assert graph.get_state(first).values["messages"] == [raw]
    assert [node.message.text for node in system.conversation("talk").history] == ["my pin is ****"]
    assert system.conversation("talk").verify().ok


def test_a_saver_that_writes_late_does_not_bring_back_what_a_run_has_redacted(system: MemorySystem) -> None:
    saver = ThreadMemSaver(system)
    checkpoint = empty_checkpoint() | {
        "channel_versions": {"messages": 1},
        "channel_values": {"messages": [HumanMessage("my pin is quince", id="h1")]},
    }
    redacted = HumanMessage("my pin is ****", id="h1")
    store_turn_node(system).invoke({"messages": [redacted]}, CONFIG)
    at = saver.put(
        {"configurable": {"thread_id": "talk", "checkpoint_ns": ""}}, checkpoint, {}, {"messages": 1}
    )
    memory = system.conversation("talk")
    assert "quince" not in everything_shown(memory)
    assert [message.text for message in memory.messages] == ["my pin is ****"]
    found = saver.get_tuple(at)
    assert found is not None
    assert found.checkpoint["channel_values"] == checkpoint["channel_values"]
    store_turn_node(system).invoke({"messages": [redacted, AIMessage("Noted.", id="a1")]}, CONFIG)
    assert [message.text for message in memory.messages] == ["my pin is ****", "Noted."]
    assert memory.verify().ok


def test_a_redaction_between_the_call_of_a_saver_and_its_transaction_holds(
    system: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    redacted = HumanMessage("my pin is ****", id="h1")
    checkpoint = empty_checkpoint() | {
        "channel_versions": {"messages": 1},
        "channel_values": {"messages": [HumanMessage("my pin is quince", id="h1")]},
    }
    saver, write = ThreadMemSaver(system), system.runtime.database.write

    def late(transaction: Any) -> Any:
        monkeypatch.undo()
        store_turn_node(system).invoke({"messages": [redacted]}, CONFIG)
        return write(transaction)

    monkeypatch.setattr(system.runtime.database, "write", late)
    saver.put({"configurable": {"thread_id": "talk", "checkpoint_ns": ""}}, checkpoint, {}, {"messages": 1})
    memory = system.conversation("talk")
    assert "quince" not in everything_shown(memory)
    assert [message.text for message in memory.messages] == ["my pin is ****"]


def test_a_history_takes_a_redaction(system: MemorySystem) -> None:
    said = [HumanMessage("my pin is quince", id="h1"), AIMessage("Noted.", id="a1")]
    ThreadMemChatMessageHistory("talk", system).add_messages(said)
    said[0] = HumanMessage("my pin is ****", id="h1")
    ThreadMemChatMessageHistory("talk", system).add_messages([*said, HumanMessage("which pin?", id="h2")])
    memory = system.conversation("talk")
    assert [message.text for message in memory.messages] == ["my pin is ****", "Noted.", "which pin?"]
    assert "quince" not in everything_shown(memory)


def test_a_question_that_is_asked_again_in_other_words_keeps_its_first_version(
    system: MemorySystem, model: Recorder, build: Build, invoke: Invoke
) -> None:
    graph = build(model, system, InMemorySaver(), LinearNodeSelector(), 0)
    question, _answer = say(invoke, graph, "tea one")
    asked = HumanMessage("tea two", id=question.id)
    invoke(graph, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), asked]}, CONFIG)
    memory = system.conversation("talk")
    assert [node.message.text for node in memory.versions(str(question.id))] == ["tea one", "tea two"]
    assert [node.state.label for node in memory.history] == ["superseded", "superseded", "live", "live"]


def test_a_question_that_was_redacted_is_asked_again_in_its_place(
    system: MemorySystem, model: Recorder, build: Build, invoke: Invoke
) -> None:
    graph = build(model, system, InMemorySaver(), LinearNodeSelector(), 0)
    question, answer = say(invoke, graph, "tea one")
    invoke(graph, {"messages": [RemoveMessage(str(answer.id)), HumanMessage("tea two")]}, CONFIG)
    graph.update_state(CONFIG, {"messages": [HumanMessage("tea ***", id=question.id)]})
    say(invoke, graph, "tea three")
    asked = HumanMessage("tea four", id=question.id)
    invoke(graph, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), asked]}, CONFIG)
    assert model.shown[-1] == ["tea four"]
    assert system.conversation("talk").verify().ok


# --- deleted by a program ------------------------------------------------------------------------


def test_a_deleted_answer_is_not_quoted_to_the_model_that_answers_again(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    model.script = {"how much salt?": "Use 700 grams of salt."}
    graph = build(model, system, saver, LinearNodeSelector(), 4)
    say(invoke, graph, "how much salt?")
    model.script = {}
    graph.update_state(CONFIG, {"messages": [RemoveMessage(named(graph, "700"))]}, as_node=START)
    invoke(graph, None, CONFIG)
    assert model.shown[-1] == ["how much salt?"]
    memory = system.conversation("talk")
    assert [message.text for message in memory.messages] == ["how much salt?", "Noted 2."]
    assert not any("700" in hit.node.message.text for hit in memory.recall("grams of salt"))


@pytest.mark.parametrize("by_input", [True, False])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_deleted_turn_is_not_recalled_and_not_shown(
    system: MemorySystem,
    model: Recorder,
    build: Build,
    saver: Any,
    invoke: Invoke,
    position: int,
    by_input: bool,
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 4)
    said = ["salt in bread is 2 percent", "salt in soup is 1 percent", "salt in pasta is 3 percent"]
    messages = say(invoke, graph, *said)
    removed = [RemoveMessage(str(one.id)) for one in messages[2 * position : 2 * position + 2]]
    if by_input:
        invoke(graph, {"messages": [*removed, HumanMessage("and how much salt now?")]}, CONFIG)
    else:
        graph.update_state(CONFIG, {"messages": removed})
        say(invoke, graph, "and how much salt now?")
    left = [text for text in said if text != said[position]]
    assert [text for text in said if text in model.prompt] == left
    memory = system.conversation("talk")
    assert [text for text in said if any(text == one.text for one in memory.messages)] == left
    hits = {hit.node.message.text for hit in memory.recall("salt percent", n_results=20)}
    assert hits & set(said) == set(left)
    assert memory.verify().ok


def test_a_deleted_turn_of_another_thread_is_not_recalled(
    system: MemorySystem, model: Recorder, saver: Any, invoke: Invoke
) -> None:
    graph = agent(model, system, saver, by_first_word, 4)
    messages = say(invoke, graph, "wifi password is swordfish", "tea one")
    say(invoke, graph, "tea password is what?")
    assert "swordfish" in model.prompt
    graph.update_state(CONFIG, {"messages": [RemoveMessage(str(one.id)) for one in messages[:2]]})
    say(invoke, graph, "tea and which password is it?")
    assert "swordfish" not in model.prompt


def test_a_saver_alone_takes_a_deleted_message_out_of_recall(system: MemorySystem, invoke: Invoke) -> None:
    builder = StateGraph(ThreadedState).add_node("model", lambda state: {"messages": [AIMessage("Noted.")]})
    graph = builder.add_edge(START, "model").compile(checkpointer=ThreadMemSaver(system))
    messages = say(invoke, graph, "the code is swordfish", "and now?")
    before = graph.get_state(CONFIG).config
    graph.update_state(CONFIG, {"messages": [RemoveMessage(str(one.id)) for one in messages[:2]]})
    memory = system.conversation("talk")
    assert not any("swordfish" in hit.node.message.text for hit in memory.recall("swordfish"))
    assert [message.text for message in memory.messages] == ["and now?", "Noted."]
    assert next(one.text for one in graph.get_state(before).values["messages"]) == "the code is swordfish"
    assert memory.verify().ok


@before_model
def trimmed(state: Any, runtime: Any) -> dict[str, Any] | None:
    """Keeps the first and the last messages, as LangChain's guide on short-term memory does."""
    messages = state["messages"]
    if len(messages) <= 3:
        return None
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), messages[0], *messages[-3:]]}


@before_model
def shortened(state: Any, runtime: Any) -> dict[str, Any]:
    """Removes the earliest messages by their ids."""
    return {"messages": [RemoveMessage(message.id) for message in state["messages"][:-1]]}


def summarized() -> SummarizationMiddleware:
    model = FakeListChatModel(responses=["They spoke of salt."])
    return SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 1))


@pytest.mark.parametrize("apart", [True, False])
def test_an_answer_follows_its_question_when_a_subgraph_returns_deleted_messages(
    system: MemorySystem, apart: bool
) -> None:
    """A subgraph with `checkpointer=True` returns its own list, with deleted messages."""

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": AIMessage(f"re {state['messages'][-1].text}")}

    inner = StateGraph(MessagesState).add_node("answer", answer if not apart else lambda state: {})
    child = inner.add_edge(START, "answer").compile(checkpointer=True)
    builder = StateGraph(MessagesState).add_node("child", child).add_edge(START, "child")
    if apart:
        builder.add_node("answer", lambda state: {"messages": AIMessage("re Hello")}).add_edge(
            "child", "answer"
        )
    graph = builder.compile(checkpointer=ThreadMemSaver(system))
    first = graph.invoke({"messages": [HumanMessage("My pin is 4815.", id="h1")]}, CONFIG)["messages"]
    graph.update_state(CONFIG, {"messages": [RemoveMessage(m.id) for m in first]}, as_node="__start__")
    state = graph.invoke({"messages": [HumanMessage("Hello", id="h2")]}, CONFIG)
    assert [message.text for message in state["messages"]][:2] == ["Hello", "My pin is 4815."]
    memory = system.conversation("talk")
    assert [message.text for message in memory.messages] == ["Hello", "re Hello"]
    assert not any("4815" in hit.node.message.text for hit in memory.recall("pin 4815"))


@pytest.mark.parametrize("shorten", [trimmed, shortened, summarized()], ids=["first", "ids", "summary"])
def test_a_message_that_a_run_removes_from_its_list_stays_in_memory(
    system: MemorySystem, model: Recorder, saver: Any, invoke: Invoke, shorten: Any
) -> None:
    graph = agent(model, system, saver, by_first_word, 4, shorten)
    said = ["salt in bread is 2 percent", "salt in soup is 1 percent", "salt in pasta is 3 percent"]
    say(invoke, graph, *said, "and now?")
    hits = {hit.node.message.text for hit in system.conversation("talk").recall("salt", n_results=20)}
    assert hits >= set(said)


def test_a_node_that_shortens_the_list_before_the_selection_deletes_nothing(
    system: MemorySystem, model: Recorder, saver: Any, invoke: Invoke
) -> None:
    def shorten(state: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(message.id) for message in state["messages"][:-2]]}

    builder = StateGraph(ThreadedState)
    builder.add_node("shorten", shorten)
    builder.add_node("select", select_thread_node(system, LinearNodeSelector()))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("store", store_turn_node(system))
    builder.add_edge(START, "shorten").add_edge("shorten", "select").add_edge("select", "model")
    graph = builder.add_edge("model", "store").compile(checkpointer=saver)
    said = ["salt in bread is 2 percent", "salt in soup is 1 percent", "salt in pasta is 3 percent"]
    say(invoke, graph, *said, "and now?")
    hits = {hit.node.message.text for hit in system.conversation("talk").recall("salt", n_results=20)}
    assert hits >= set(said)


def test_a_list_that_is_rewritten_between_runs_deletes_nothing(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    messages = say(invoke, graph, "salt in bread is 2 percent", "salt in soup is 1 percent")
    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages[2:]]})
    say(invoke, graph, "and now?")
    hits = {hit.node.message.text for hit in system.conversation("talk").recall("salt", n_results=20)}
    assert "salt in bread is 2 percent" in hits


def test_a_run_from_an_older_checkpoint_deletes_nothing(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    say(invoke, graph, "salt in bread is 2 percent")
    before = graph.get_state(CONFIG).config
    say(invoke, graph, "salt in soup is 1 percent")
    invoke(graph, {"messages": [("user", "go back")]}, before)
    hits = {hit.node.message.text for hit in system.conversation("talk").recall("salt", n_results=20)}
    assert hits >= {"salt in bread is 2 percent", "salt in soup is 1 percent"}


def test_a_deleted_question_may_be_said_again(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    question, answer = say(invoke, graph, "tea one")
    graph.update_state(CONFIG, {"messages": [RemoveMessage(str(one.id)) for one in (question, answer)]})
    invoke(graph, {"messages": [HumanMessage("tea one", id=question.id)]}, CONFIG)
    assert model.shown[-1] == ["tea one"]
    memory = system.conversation("talk")
    assert [node.message.text for node in memory.history] == ["tea one", "Noted 2."]
    assert memory.verify().ok


def test_an_empty_conversation_goes_on_after_all_its_messages_were_deleted(
    system: MemorySystem, model: Recorder, build: Build, saver: Any, invoke: Invoke
) -> None:
    graph = build(model, system, saver, LinearNodeSelector(), 0)
    messages = say(invoke, graph, "tea one", "tea two")
    graph.update_state(CONFIG, {"messages": [RemoveMessage(str(one.id)) for one in messages]})
    say(invoke, graph, "tea three")
    assert model.shown[-1] == ["tea three"]
    memory = system.conversation("talk")
    assert [message.text for message in memory.messages] == ["tea three", "Noted 3."]
    assert memory.verify().ok


# --- forgotten by name ----------------------------------------------------------------------------


class Quoting:
    """A summarizer that quotes what it summarises."""

    def summarize(self, message: BaseMessage) -> MessageSummary | None:
        return MessageSummary(title="Said", summary=message.text)


@pytest.mark.parametrize("own_saver", [True, False])
@pytest.mark.parametrize("deletes", [True, False])
def test_no_summary_quotes_what_a_list_removes(
    url: str, owner: str, model: Recorder, invoke: Invoke, deletes: bool, own_saver: bool
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, summarizer=Quoting()) as system:
        saver: Any = ThreadMemSaver(system) if own_saver else InMemorySaver()
        graph = agent(model, system, saver, LinearNodeSelector(), 0)
        say(invoke, graph, "my pin is quince", "and what now?")
        system.summarize_long_term_memory()
        assert "quince" in str(system.query("pin quince"))
        id_ = named(graph, "quince")
        changed = RemoveMessage(id_) if deletes else HumanMessage("my pin is ****", id=id_)
        graph.update_state(CONFIG, {"messages": [changed]})
        say(invoke, graph, "which number?")
        assert "quince" not in str(system.query("pin"))
        assert system.verify().ok


def test_a_message_is_forgotten_by_its_id(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append(HumanMessage("my pin is quince", id="h1"), "Noted.")
    memory.append("and now?", "Fine.")
    memory.forget("h1")
    assert [message.text for message in memory.messages()] == ["Noted.", "and now?", "Fine."]
    assert "quince" not in [node.message.text for node in memory.history()]
    assert not any("quince" in hit.node.message.text for hit in memory.recall("pin quince"))
    with pytest.raises(NodeNotFoundError):
        memory.forget("h1")


def test_a_forgotten_message_may_stay_in_the_history(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("talk"))
    memory.append(HumanMessage("my pin is quince", id="h1"), "Noted.")
    memory.forget(1, purge=False)
    assert [message.text for message in memory.messages()] == ["my pin is quince", "Noted."]
    assert not any("quince" in hit.node.message.text for hit in memory.recall("pin quince"))
    with pytest.raises(InputError, match="forgotten before"):
        memory.forget(1, purge=False)


def test_the_versions_before_a_redaction_leave_with_the_message(system: MemorySystem) -> None:
    saver = ThreadMemSaver(system)
    builder = StateGraph(ThreadedState).add_node("model", lambda state: {"messages": [AIMessage("Noted.")]})
    graph = builder.add_edge(START, "model").compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("my pin is quince", id="h1")]}, CONFIG)
    graph.update_state(CONFIG, {"messages": [HumanMessage("my pin is ****", id="h1")]})
    assert "quince" in stored(system)
    system.conversation("talk").forget("h1")
    assert "quince" not in stored(system)
    assert "pin" not in stored(system)
