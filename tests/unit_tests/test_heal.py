"""Moves of turns whose answers make another place clearly likelier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemMiddleware,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.langgraph.node import ThreadedState
from langchain_threadmem.selection.second_look import doubtful
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

Wrap = Callable[[ChatMemory], Any]
CONFIG: RunnableConfig = {"configurable": {"thread_id": "talk"}}


class Odds:
    """Reads probabilities from texts: "what? tea=.6" continues the newest turn that begins with "tea", and an
    answer "red car=.8" changes the probabilities of its turn; "new" is a new thread.
    """

    ends: Sequence[TurnEnd] = ()

    def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
        self.ends = tree.turn_ends()
        tree.revised = {
            end.id: chances
            for place, end in enumerate(self.ends)
            if doubtful(end) and (chances := odds(end.answer, self.ends[:place]))
        }
        tree.reason, tree.chances = "by the odds", odds(str(message.content), self.ends)
        return tree.chances[0][0] if tree.chances else None


def odds(text: str, ends: Sequence[TurnEnd]) -> tuple[tuple[int | None, float], ...]:
    named = [word.split("=") for word in text.split() if "=" in word]
    newest = {end.human.split()[0]: end.id for end in ends}
    return tuple((newest.get(topic), float(chance)) for topic, chance in named)


def words(messages: Sequence[BaseMessage]) -> list[str]:
    """The first word of each message."""
    return [str(message.content).split()[0] for message in messages]


def threads(memory: ChatMemory) -> list[list[str]]:
    return sorted(words([node.message for node in thread]) for thread in memory.threads())


def moved(memory: ChatMemory) -> list[ConversationNode]:
    return [node for node in memory.history if node.placement and node.placement.is_move]


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return with_doubt(system.conversation("talk", node_selector=Odds()))


def with_doubt(memory: ChatMemory, answer: str = "drive tea=.9 car=.1") -> ChatMemory:
    """The last turn, number 5, is below the car and about the tea."""
    memory.append("tea", "green")
    memory.append("car", "red")
    memory.append("what? car=.6 tea=.4", answer)
    return memory


def test_a_turn_is_moved_with_the_next_message(memory: ChatMemory, verbs: Wrap) -> None:
    assert threads(memory) == [["car", "red", "what?", "drive"], ["tea", "green"]]
    verbs(memory).append("so? what?=1", "yes")
    assert threads(memory) == [["car", "red"], ["tea", "green", "what?", "drive", "so?", "yes"]]
    old, new = memory.history[4], memory.history[6]
    assert (old.state, old.superseded_by, new.parent_id) == (State.SUPERSEDED, new.id, 2)
    assert str(new.placement) == "moved: the answer is about 'Tea'; node 2: 90 %, node 4: 10 %"


def test_an_import_that_selects_threads_moves_turns_as_appends_do(memory: ChatMemory, verbs: Wrap) -> None:
    verbs(memory).extend(["so? what?=1", ("ai", "yes")], select=True)
    assert threads(memory) == [["car", "red"], ["tea", "green", "what?", "drive", "so?", "yes"]]


def test_a_turn_of_another_matter_becomes_a_thread(system: MemorySystem) -> None:
    memory = with_doubt(system.conversation("talk", node_selector=Odds()), "drive new=.9 car=.1")
    memory.append("so? car=1", "yes")
    assert threads(memory) == [["car", "red", "so?", "yes"], ["tea", "green"], ["what?", "drive"]]
    assert [node.placement and node.placement.reason for node in moved(memory)] == [
        "moved: the answer is about another topic"
    ]


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        pytest.param("drive tea=.8 car=.2", {}, id="not clearly likelier"),
        pytest.param("drive tea=.9 car=.1", {"heal": False}, id="off"),
        pytest.param("drive new=.9 car=.1", {"single_tree": True}, id="no second root"),
    ],
)
def test_a_turn_stays(system: MemorySystem, answer: str, options: dict[str, Any]) -> None:
    memory = with_doubt(system.conversation("talk", node_selector=Odds(), **options), answer)
    memory.append("so? car=1", "yes")
    assert not moved(memory)


@pytest.mark.parametrize(("now", "is_moved"), [("tea=.7 car=.2", True), ("tea=.5 car=.3", False)])
def test_a_turn_of_an_agent_moves_at_a_lower_ratio(system: MemorySystem, now: str, is_moved: bool) -> None:
    memory = system.conversation("talk", node_selector=Odds())
    memory.append("tea", "green")
    memory.append("car", "red")
    call = {"name": "find", "args": {"for": "tea"}, "id": "1"}
    called = [AIMessage("", tool_calls=[call]), ToolMessage("two shops", tool_call_id="1")]
    memory.append("what? car=.6 tea=.4", *called, AIMessage(f"drive {now}"))
    memory.append("so? what?=1", "yes")
    assert bool(moved(memory)) == is_moved


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda memory: memory.place(5, 4), id="kept"),
        pytest.param(lambda memory: memory.place(5, None), id="placed"),
        pytest.param(lambda memory: memory.edit(5, "which?"), id="edited"),
        pytest.param(lambda memory: memory.regenerate(5, "ride tea=.8"), id="answered again"),
        pytest.param(lambda memory: memory.edit(6, "ride tea=.8"), id="answer edited"),
        pytest.param(lambda memory: memory.checkout(5), id="checked out"),
    ],
)
def test_what_a_person_has_done_with_a_turn_is_respected(
    memory: ChatMemory, act: Callable[[ChatMemory], Any]
) -> None:
    act(memory)
    before = threads(memory)
    memory.append("so? new=1", "yes")
    assert threads(memory) == sorted([*before, ["so?", "yes"]])


def test_a_turn_that_was_moved_back_stays_there(memory: ChatMemory) -> None:
    memory.append("so? tea=1", "yes")
    [new] = moved(memory)
    memory.place(new.id, 4)
    memory.append("and? tea=1", "no")
    assert threads(memory)[0] == ["car", "red", "what?", "drive"]


def test_an_answer_counts_once(memory: ChatMemory) -> None:
    memory.append("so? tea=1", "yes")
    memory.append("and? tea=1", "no")
    assert len(moved(memory)) == 1


def test_a_turn_is_not_moved_below_itself(memory: ChatMemory) -> None:
    memory.place(1, 6)
    memory.append("so? what?=1", "yes")
    assert threads(memory) == [
        ["car", "red", "what?", "drive", "so?", "yes"],
        ["car", "red", "what?", "drive", "tea", "green"],
    ]


def test_what_another_writer_does_meanwhile_is_respected(system: MemorySystem) -> None:
    class Meanwhile(Odds):
        def select_parent(self, tree: TreeView, message: BaseMessage) -> int | None:
            parent = super().select_parent(tree, message)
            if tree.revised:
                system.conversation("talk").place(5, None)
            return parent

    memory = with_doubt(system.conversation("talk", node_selector=Meanwhile()))
    memory.append("so? tea=1", "yes")
    assert threads(memory) == [["car", "red"], ["tea", "green", "so?", "yes"], ["what?", "drive"]]


def test_a_healed_tree_is_sound(memory: ChatMemory, system: MemorySystem) -> None:
    memory.append("so? what?=1", "yes")
    assert system.verify().ok


# In graphs


def chat(model: Any, system: MemorySystem, **options: Any) -> Runnable[Any, Any]:
    saver = ThreadMemSaver(system)
    return create_threaded_chat(
        model, system, selector=Odds(), recall=0, checkpointer=saver, conversation_id="tree", **options
    )


def agent(model: Any, system: MemorySystem, **options: Any) -> Runnable[Any, Any]:
    middleware = ThreadMemMiddleware(system, selector=Odds(), recall=0, conversation_id="tree", **options)
    return create_agent(model, middleware=[middleware], checkpointer=ThreadMemSaver(system))


def graph(model: Any, system: MemorySystem, **options: Any) -> Any:
    builder = StateGraph(ThreadedState)
    builder.add_node("select", select_thread_node(system, Odds(), **options))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "select")
    builder.add_edge("select", "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=ThreadMemSaver(system))


def replies(*texts: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Asks in order; the events."""

    def call(runnable: Any, *texts: str, config: RunnableConfig = CONFIG) -> list[Any]:
        async def collect(given: Any) -> list[Any]:
            return [event async for event in runnable.astream(given, config, stream_mode="custom")]

        events: list[Any] = []
        for text in texts:
            given = {"messages": [HumanMessage(text, id=text.split()[0])]}
            if request.param == "sync":
                events += runnable.stream(given, config, stream_mode="custom")
            else:
                events += asyncio.run(collect(given))
        return events

    return call


ASKED = ("tea", "car", "what? car=.6 tea=.4", "so? what?=1")
REPLIES = ("green", "red", "drive tea=.9 car=.1", "yes")


@pytest.mark.parametrize("make", [chat, agent, graph])
def test_a_move_is_an_event(
    system: MemorySystem, make: Callable[..., Any], ask: Callable[..., list[Any]]
) -> None:
    events = ask(make(replies(*REPLIES), system), *ASKED)
    kinds = [event["type"].removeprefix("threadmem.") for event in events]
    assert kinds == ["selection", "selection", "selection", "move", "selection"]
    name = "talk" if make is graph else "tree"
    old, new = (node for node in system.conversation(name).history if node.message.id == "what?")
    assert events[3] == {
        "type": "threadmem.move",
        "conversation_id": name,
        "message_id": "what?",
        "node_id": new.id,
        "former_node_id": old.id,
        "parent_id": new.parent_id,
        "former_parent_id": old.parent_id,
        "probability": 0.9,
        "candidates": [
            {"parent_id": new.parent_id, "probability": 0.9},
            {"parent_id": old.parent_id, "probability": 0.1},
        ],
        "reason": "moved: the answer is about 'Tea'",
        "title": "Tea",
    }


@pytest.mark.parametrize("make", [chat, agent, graph])
def test_nothing_is_moved_where_places_are_only_suggested(
    system: MemorySystem, make: Callable[..., Any], ask: Callable[..., list[Any]]
) -> None:
    events = ask(make(replies(*REPLIES), system, on_select="suggest"), *ASKED)
    assert {event["type"] for event in events} == {"threadmem.selection"}


def test_the_list_of_a_graph_shows_the_thread_of_a_moved_turn(
    system: MemorySystem, ask: Callable[..., list[Any]]
) -> None:
    runnable = graph(replies(*REPLIES, "no"), system)
    ask(runnable, *ASKED)
    assert words(runnable.get_state(CONFIG).values["messages"]) == [
        "tea",
        "green",
        "what?",
        "drive",
        "so?",
        "yes",
    ]
    ask(runnable, "red? car=1")
    assert words(runnable.get_state(CONFIG).values["messages"]) == ["car", "red", "red?", "no"]
    assert system.verify().ok


def test_a_list_that_began_with_a_moved_turn_shows_what_is_above_it(
    system: MemorySystem, ask: Callable[..., list[Any]]
) -> None:
    runnable = graph(replies("green", "drive tea=.8", "yes"), system)
    ask(runnable, "tea", "what? new=.6 tea=.4", "so? what?=1")
    assert words(runnable.get_state(CONFIG).values["messages"]) == [
        "tea",
        "green",
        "what?",
        "drive",
        "so?",
        "yes",
    ]


def test_earlier_checkpoints_show_what_they_showed(
    system: MemorySystem, ask: Callable[..., list[Any]]
) -> None:
    runnable = graph(replies(*REPLIES, "no"), system)
    ask(runnable, *ASKED[:-1])
    before = runnable.get_state(CONFIG)
    ask(runnable, ASKED[-1])
    assert runnable.get_state(before.config).values == before.values
    # A run from there sees the moved turn in its new place, and nothing of what came later.
    ask(runnable, "or? what?=1", config=before.config)
    shown = words(runnable.get_state(CONFIG).values["messages"])
    assert shown == ["tea", "green", "what?", "drive", "or?", "no"]
    assert system.verify().ok


def test_other_branches_follow_a_moved_turn(system: MemorySystem, ask: Callable[..., list[Any]]) -> None:
    model = replies(*REPLIES[:3], "one", "two", "three")
    runnable = graph(model, system, conversation_id="tree")
    ask(runnable, *ASKED[:3])
    before = runnable.get_state(CONFIG)
    ask(runnable, "left what?=1", config=before.config)
    left = runnable.get_state(CONFIG)
    ask(runnable, "right what?=1", config=before.config)
    ask(runnable, "more left=1", config=left.config)
    shown = words(runnable.get_state(CONFIG).values["messages"])
    assert shown == ["tea", "green", "what?", "drive", "left", "one", "more", "three"]
    assert system.verify().ok
