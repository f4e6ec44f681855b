"""Runs from an older checkpoint: the model receives the branch that the run continues, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import pytest
from conftest import by_first_word
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

from langchain_threadmem import (
    LinearNodeSelector,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.engine.flow import Flow
from langchain_threadmem.langgraph.node import store_turn_node
from langchain_threadmem.langgraph.routing import route
from langchain_threadmem.selection.selectors import AnySelector
from langchain_threadmem.selection.tree_view import TreeView

Durability = Literal["sync", "async", "exit"]
CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


class Recorder(BaseChatModel):
    """Answers "re ..." and records the received messages."""

    shown: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.shown.append([str(message.content) for message in messages])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"re {messages[-1].content}"))])


def by_graph(tree: TreeView, message: BaseMessage) -> int | None:
    """Continues the newest leaf of the graph."""
    return max((node for node, degree in tree.graph.out_degree() if not degree), default=None)


def chat(model: Any, system: MemorySystem, selector: AnySelector, **options: Any) -> Any:
    return create_threaded_chat(model, system, selector=selector, recall=options.pop("recall", 0), **options)


def agent(model: Any, system: MemorySystem, selector: AnySelector, **options: Any) -> Any:
    given = {"conversation_id": options.pop("conversation_id", None), "recall": options.pop("recall", 0)}
    return create_agent(
        model, [], middleware=[ThreadMemMiddleware(system, selector=selector, **given)], **options
    )


def plain(model: Any, system: MemorySystem, selector: AnySelector, **options: Any) -> Any:
    """A state with the single key `messages`."""
    options.pop("recall", None)
    given = {"conversation_id": options.pop("conversation_id", None)}
    builder = StateGraph(MessagesState)
    builder.add_node("select_thread", select_thread_node(system, selector, **given))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("store_turn", store_turn_node(system, **given))
    builder.add_edge(START, "select_thread").add_edge("select_thread", "model")
    return builder.add_edge("model", "store_turn").compile(**options)


def nested(model: Any, system: MemorySystem, selector: AnySelector, **options: Any) -> Any:
    """A chat within a graph that has the list of messages."""
    checkpointer = options.pop("checkpointer")
    builder = StateGraph(MessagesState)
    builder.add_node("chat", plain(model, system, selector, **options))
    return builder.add_edge(START, "chat").compile(checkpointer=checkpointer)


Build = Callable[..., Any]
BUILDS = (chat, agent, plain, nested)


@pytest.fixture(params=BUILDS, ids=lambda build: build.__name__)
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = request.param
    return found


class Keeping(NamedTuple):
    """A checkpointer and its durability."""

    saver: BaseCheckpointSaver[Any]
    durability: Durability

    def say(self, graph: Any, *texts: str, config: RunnableConfig = CONFIG) -> dict[str, Any]:
        return say(graph, *texts, config=config, durability=self.durability)


KEPT = [("memory", "async"), ("memory", "exit"), *(("threadmem", one) for one in ("sync", "async", "exit"))]


@pytest.fixture(params=KEPT, ids="-".join)
def keeping(request: pytest.FixtureRequest, system: MemorySystem) -> Keeping:
    kind, durability = request.param
    return Keeping(InMemorySaver() if kind == "memory" else ThreadMemSaver(system), durability)


@pytest.fixture
def model() -> Recorder:
    return Recorder()


def say(
    graph: Any, *texts: str, config: RunnableConfig = CONFIG, durability: Durability = "async"
) -> dict[str, Any]:
    """Invokes a graph with several texts, the first from `config`, the others at the tip."""
    state: dict[str, Any] = {}
    for text in texts:
        state = graph.invoke({"messages": [("user", text)]}, config, durability=durability)
        config = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
    return state


def after(graph: Any, text: str, config: RunnableConfig = CONFIG) -> RunnableConfig:
    """The checkpoint after the turn of a text."""
    found: RunnableConfig = next(
        state.config
        for state in graph.get_state_history(config)
        if not state.next and state.values["messages"][-1].content == f"re {text}"
    )
    return found


@pytest.mark.parametrize("selector", [LinearNodeSelector(), SemanticNodeSelector(), by_first_word, by_graph])
def test_the_model_sees_the_branch_that_the_run_continues(
    system: MemorySystem, model: Recorder, build: Build, selector: AnySelector, keeping: Keeping
) -> None:
    graph = build(model, system, selector, checkpointer=keeping.saver)
    keeping.say(graph, "tea one", "tea two", "tea three")
    keeping.say(graph, "tea other", config=after(graph, "tea one"))
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]


@pytest.mark.parametrize("selector", [LinearNodeSelector(), by_first_word])
def test_each_branch_goes_on_by_itself(
    system: MemorySystem, model: Recorder, build: Build, selector: AnySelector, keeping: Keeping
) -> None:
    graph = build(model, system, selector, checkpointer=keeping.saver)
    keeping.say(graph, "tea one", "tea two")
    keeping.say(graph, "tea other", "tea more", config=after(graph, "tea one"))
    assert model.shown[-1] == ["tea one", "re tea one", "tea other", "re tea other", "tea more"]
    keeping.say(graph, "tea three", config=after(graph, "tea two"))
    assert model.shown[-1] == ["tea one", "re tea one", "tea two", "re tea two", "tea three"]


def test_other_threads_that_the_run_has_seen_can_be_continued(
    system: MemorySystem, model: Recorder, build: Build, keeping: Keeping
) -> None:
    graph = build(model, system, by_first_word, checkpointer=keeping.saver)
    keeping.say(graph, "tea one", "cat one", "tea two", "cat two")
    keeping.say(graph, "tea other", config=after(graph, "cat one"))
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]
    keeping.say(graph, "cat other")
    assert model.shown[-1] == ["cat one", "re cat one", "cat other"]


def check_both_go_on(graph: Any, model: Recorder, replaced: str) -> None:
    """The thread of cats and the thread of the replaced turn can be continued after a fork."""
    say(graph, "cat three")
    assert model.shown[-1] == ["cat one", "re cat one", "cat two", "re cat two", "cat three"]
    say(graph, "tea more")
    assert model.shown[-1] == [replaced, f"re {replaced}", "tea more"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_after_an_edit_the_other_threads_go_on(
    system: MemorySystem, model: Recorder, build: Build, mode: str
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver)
    old = str(say(graph, "tea one")["messages"][0].id)
    say(graph, "cat one", "tea two", "cat two")
    fork = saver.fork(CONFIG, old) if mode == "sync" else asyncio.run(saver.afork(CONFIG, old))
    say(graph, "tea other", config=fork)
    assert model.shown[-1] == ["tea other"]
    check_both_go_on(graph, model, "tea other")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("replaced", ["question", "answer"])
def test_after_a_new_answer_the_other_threads_go_on(
    system: MemorySystem, model: Recorder, build: Build, replaced: str, durability: Durability
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver)
    question, answer = say(graph, "tea one")["messages"]
    say(graph, "cat one", "tea two", "cat two")
    fork = saver.fork(CONFIG, str((question if replaced == "question" else answer).id))
    graph.invoke(None, fork, durability=durability)
    assert model.shown[-1] == ["tea one"]
    check_both_go_on(graph, model, "tea one")
    say(graph, "cat four", config=after(graph, "tea two"))
    assert model.shown[-1] == ["cat one", "re cat one", "cat four"]


class Numbered(Recorder):
    """Answers with the number of the call."""

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        result = super()._generate(messages, stop, run_manager, **kwargs)
        result.generations[0].message.content = f"re {messages[-1].content}, {len(self.shown)}"
        return result


@pytest.mark.parametrize("selector", [LinearNodeSelector(), by_first_word])
@pytest.mark.parametrize("saver", [InMemorySaver, ThreadMemSaver])
def test_each_answer_to_a_question_can_be_continued(
    system: MemorySystem, build: Build, selector: AnySelector, saver: Any
) -> None:
    model = Numbered()
    saver = ThreadMemSaver(system) if saver is ThreadMemSaver else InMemorySaver()
    graph = build(model, system, selector, checkpointer=saver)
    say(graph, "tea one", "tea two")
    before = next(
        state.config
        for state in graph.get_state_history(CONFIG)
        if state.next and state.values["messages"] and state.values["messages"][-1].content == "tea one"
    )
    graph.invoke(None, before)
    say(graph, "tea more")
    for _ in range(2):
        say(graph, "tea three", config=after(graph, "tea two, 2"))
        assert model.shown[-1] == ["tea one", "re tea one, 1", "tea two", "re tea two, 2", "tea three"]
        say(graph, "tea three", config=after(graph, "tea more, 4"))
        assert model.shown[-1] == ["tea one", "re tea one, 3", "tea more", "re tea more, 4", "tea three"]
    say(graph, "tea four")
    assert model.shown[-1][:2] == ["tea one", "re tea one, 3"]
    assert model.shown[-1][-3:] == ["tea three", "re tea three, 8", "tea four"]


def test_after_a_new_answer_the_other_threads_of_a_shared_conversation_go_on(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver, conversation_id="shared")
    answer = say(graph, "tea one")["messages"][-1]
    say(graph, "cat one", "tea two", "cat two")
    graph.invoke(None, saver.fork(CONFIG, str(answer.id)))
    check_both_go_on(graph, model, "tea one")


def test_after_an_edit_that_keeps_the_id_the_other_threads_go_on(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver)
    old = str(say(graph, "tea one")["messages"][0].id)
    say(graph, "cat one", "tea two", "cat two")
    graph.invoke({"messages": [HumanMessage("tea other", id=old)]}, saver.fork(CONFIG, old))
    assert model.shown[-1] == ["tea other"]
    check_both_go_on(graph, model, "tea other")


def test_after_a_second_edit_no_earlier_version_is_continued(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    def oldest(tree: TreeView, message: BaseMessage) -> int | None:
        return next((end.id for end in tree.turn_ends()), None)

    saver = ThreadMemSaver(system)
    graph = build(model, system, oldest, checkpointer=saver)
    state = say(graph, "tea one")
    for text in ("tea two", "tea three"):
        state = say(graph, text, config=saver.fork(CONFIG, str(state["messages"][0].id)))
    say(graph, "tea four")
    assert model.shown[-1] == ["tea three", "re tea three", "tea four"]


def test_after_an_edit_of_the_state_the_other_threads_go_on(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    saver = ThreadMemSaver(system)
    graph = build(model, system, by_first_word, checkpointer=saver)
    old = str(say(graph, "tea one")["messages"][0].id)
    say(graph, "cat one", "tea two", "cat two")
    edited = {"messages": [HumanMessage("tea other")]}
    graph.invoke(None, graph.update_state(saver.fork(CONFIG, old), edited, as_node=START))
    assert model.shown[-1] == ["tea other"]
    check_both_go_on(graph, model, "tea other")


@pytest.mark.parametrize("selector", [LinearNodeSelector(), by_first_word])
def test_the_first_question_can_be_asked_anew(
    system: MemorySystem, model: Recorder, build: Build, selector: AnySelector
) -> None:
    graph = build(model, system, selector, checkpointer=InMemorySaver())
    say(graph, "tea one", "tea two")
    first = list(graph.get_state_history(CONFIG))[-1].config
    say(graph, "tea other", "tea more", config=first)
    assert model.shown[-1] == ["tea other", "re tea other", "tea more"]


@pytest.mark.parametrize("selector", [LinearNodeSelector(), by_first_word])
def test_what_is_appended_between_two_runs_can_be_continued(
    system: MemorySystem, model: Recorder, build: Build, selector: AnySelector, keeping: Keeping
) -> None:
    graph = build(model, system, selector, checkpointer=keeping.saver)
    keeping.say(graph, "tea one")
    system.conversation("talk").append("tea by phone", "Noted.")
    keeping.say(graph, "tea two")
    assert model.shown[-1] == ["tea one", "re tea one", "tea by phone", "Noted.", "tea two"]


def test_what_a_question_could_continue_it_can_continue_when_it_is_edited(
    system: MemorySystem, model: Recorder, keeping: Keeping
) -> None:
    graph = chat(model, system, by_first_word, checkpointer=keeping.saver)
    keeping.say(graph, "tea one")
    system.conversation("talk").append("cat by phone", "Noted.")
    keeping.say(graph, "cat two", "tea two")
    keeping.say(graph, "cat other", config=after(graph, "tea one"))
    assert model.shown[-1] == ["tea one", "re tea one", "cat by phone", "Noted.", "cat other"]


def test_what_is_appended_on_one_branch_is_not_seen_on_the_other(
    system: MemorySystem, model: Recorder
) -> None:
    graph = chat(model, system, by_first_word, checkpointer=InMemorySaver())
    say(graph, "tea one", "tea two")
    system.conversation("talk").append("tea by phone", "Noted.")
    say(graph, "tea other", config=after(graph, "tea one"))
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]
    system.conversation("talk").append("tea by mail", "Noted.")
    say(graph, "tea more")
    assert model.shown[-1][-3:] == ["tea by mail", "Noted.", "tea more"]


def test_nothing_of_another_branch_is_recalled(system: MemorySystem, model: Recorder) -> None:
    for build in (chat, agent):
        graph = build(model, system, by_first_word, recall=4, checkpointer=InMemorySaver())
        config: RunnableConfig = {"configurable": {"thread_id": build.__name__}}
        say(graph, "cat eats fish", "tea from Uji", "tea from Assam", config=config)
        say(graph, "dog eats fish, drinks tea from Uji", config=after(graph, "cat eats fish", config))
        recalled = model.shown[-1][0]
        assert "cat eats fish" in recalled
        assert "Uji" not in recalled


def test_of_two_runs_at_once_neither_sees_the_other(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    graph = build(model, system, by_first_word, checkpointer=ThreadMemSaver(system))
    say(graph, "tea one")
    start = after(graph, "tea one")

    async def both() -> None:
        asked = [{"messages": [("user", text)]} for text in ("tea left", "tea right")]
        await asyncio.gather(*(graph.ainvoke(one, start) for one in asked))

    asyncio.run(both())
    for side in ("tea left", "tea right"):
        say(graph, "tea next", config=after(graph, side))
        assert model.shown[-1] == ["tea one", "re tea one", side, f"re {side}", "tea next"]


def test_a_run_that_ends_during_a_selection_is_not_continued(
    system: MemorySystem, model: Recorder, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = build(model, system, by_first_word, checkpointer=ThreadMemSaver(system))
    say(graph, "tea one")
    start = after(graph, "tea one")
    select = route.select

    def during_another_run(*args: Any, **kwargs: Any) -> Flow[Any]:
        monkeypatch.setattr(route, "select", select)
        say(graph, "tea right", config=start)
        return (yield from select(*args, **kwargs))

    monkeypatch.setattr(route, "select", during_another_run)
    say(graph, "tea left", config=start)
    for side in ("tea left", "tea right"):
        say(graph, "tea next", config=after(graph, side))
        assert model.shown[-1] == ["tea one", "re tea one", side, f"re {side}", "tea next"]


def test_a_branch_that_a_caller_has_made_of_the_state_is_a_branch(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    graph = build(model, system, by_first_word, checkpointer=InMemorySaver())
    state = say(graph, "tea one", "tea two")
    graph.update_state(CONFIG, {"messages": [RemoveMessage(str(one.id)) for one in state["messages"][2:]]})
    say(graph, "tea other")
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]


def test_threads_that_share_a_conversation_see_each_other(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    graph = build(model, system, by_first_word, checkpointer=InMemorySaver(), conversation_id="shared")
    desk, phone = ({"configurable": {"thread_id": name}} for name in ("desk", "phone"))
    say(graph, "tea one", config=desk)
    say(graph, "cat one", config=phone)
    say(graph, "cat two", config=desk)
    assert model.shown[-1] == ["cat one", "re cat one", "cat two"]
    say(graph, "cat other", config=after(graph, "tea one", desk))
    assert model.shown[-1] == ["cat one", "re cat one", "cat other"]


@pytest.mark.parametrize("build", [chat, agent, plain])
def test_a_conversation_goes_on_when_its_checkpoints_are_lost(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    for texts in (["tea one", "tea two"], ["tea three", "tea four"]):
        say(build(model, system, by_first_word, checkpointer=InMemorySaver()), *texts)
    assert model.shown[-1][0] == "tea one"
    assert model.shown[-1][-3:] == ["tea three", "re tea three", "tea four"]


def test_a_list_that_its_caller_has_cut_is_continued_where_it_ends(
    system: MemorySystem, model: Recorder, build: Build
) -> None:
    graph = build(model, system, by_first_word, checkpointer=None)
    said: list[BaseMessage] = []
    for text in ("tea one", "tea two", "tea other"):
        kept = said[:2] if text == "tea other" else said
        said = graph.invoke({"messages": [*kept, HumanMessage(text)]}, CONFIG)["messages"]
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]


def test_a_copied_conversation_knows_its_branches(system: MemorySystem, model: Recorder) -> None:
    saver = ThreadMemSaver(system)
    graph = chat(model, system, by_first_word, checkpointer=saver)
    say(graph, "tea one", "tea two")
    saver.copy_thread("talk", "copy")
    copy: RunnableConfig = {"configurable": {"thread_id": "copy"}}
    say(graph, "tea other", config=after(graph, "tea one", copy))
    assert model.shown[-1] == ["tea one", "re tea one", "tea other"]
