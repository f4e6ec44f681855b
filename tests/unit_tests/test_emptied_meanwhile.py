"""Conversations that are emptied at each point of a write, and messages that are purged meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    create_threaded_chat,
)
from langchain_threadmem.engine.flow import Flow, Sql, Step, _driven, run
from langchain_threadmem.errors import SessionNotFoundError
from langchain_threadmem.langgraph.node import select_thread_node
from langchain_threadmem.langgraph.routing.route import route
from langchain_threadmem.langgraph.routing.store_messages import store
from langchain_threadmem.maintenance.removal.forget import forget_message
from langchain_threadmem.selection.append import append, extend
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.tree import trees

Invoke = Callable[..., Any]

LIST: list[BaseMessage] = [
    HumanMessage("How do I bake rye bread?", id="h1"),
    AIMessage("With sourdough and patience.", id="a1"),
    HumanMessage("Which wine goes with salmon?", id="h2"),
    AIMessage("A dry Riesling.", id="a2"),
    HumanMessage("And rye bread with seeds?", id="h3"),
]
WRITES: dict[str, Callable[[ThreadedConversation], Flow[Any]]] = {
    "append": lambda conversation: append(conversation, LIST[-1], "Yes."),
    "extend": lambda conversation: extend(conversation, ["And wine with trout?", LIST[-1]], selects=True),
    "graph": lambda conversation: route(conversation, LIST, None),
    "first turn": lambda conversation: route(conversation, LIST[-1:], None),
    "under way": lambda conversation: route(conversation, [*LIST, AIMessage("Yes.", id="a3")], "h3"),
    "store": lambda conversation: store(conversation, LIST),
}
EMPTYING: dict[str, Callable[[MemorySystem, MemorySystem], object]] = {
    "reset": lambda system, other: system.conversation("c").reset(),
    "erased": lambda system, other: system.erase(conversation="c"),
    "erased by another process": lambda system, other: other.erase(conversation="c"),
}


@pytest.fixture
def other(url: str, owner: str) -> Iterator[MemorySystem]:
    with MemorySystem(url, owner=owner, embeddings=False) as found:
        yield found


@pytest.mark.parametrize("linear", [False, True], ids=["semantic", "linear"])
@pytest.mark.parametrize("emptying", EMPTYING)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_conversation_that_is_emptied_at_any_point_is_complete_or_refused(
    system: MemorySystem, other: MemorySystem, write: str, emptying: str, linear: bool
) -> None:
    options: dict[str, Any] = {} if linear else {"node_selector": SemanticNodeSelector()}
    for point in count():
        system.conversation("c").reset()
        system.conversation("c").extend(LIST[:-1])
        conversation = system.conversation("c", **options)._conversation
        points, last_write = count(), -1

        def do(step: Step[Any], points: Iterator[int] = points, point: int = point) -> object:
            nonlocal last_write
            if (before := next(points)) == point:
                EMPTYING[emptying](system, other)
            result = step.run(system.runtime)
            if getattr(step, "write", False):
                last_write = before
            if next(points) == point:
                EMPTYING[emptying](system, other)
            return result

        try:
            _driven(WRITES[write](conversation), do)
        except SessionNotFoundError:
            assert emptying != "reset"
        else:
            stored = [node.message.content for node in other.conversation("c").history]
            assert LIST[-1].content in stored or last_write < point
        assert other.conversation("unknown").history == []
        assert system.verify().ok
        if next(points) <= point:
            break


def test_a_message_whose_chosen_parent_is_purged_meanwhile_continues_the_message_above_it(
    system: MemorySystem, invoke: Invoke
) -> None:
    def selector(tree: Any, message: Any) -> int | None:
        if not tree.turn_ends():
            return None
        run(forget_message(system.conversation("c")._conversation, 2, purge=True), system.runtime)
        return 2

    model = FakeListChatModel(responses=["b", "d"])
    chat = create_threaded_chat(model, system, selector=selector, conversation_id="c", recall=0)
    invoke(chat, {"messages": [HumanMessage("a", id="h1")]})
    invoke(chat, {"messages": [HumanMessage("c", id="h2")]})
    history = system.conversation("c").history
    assert [(node.message.content, node.parent_id) for node in history] == [("a", None), ("c", 1), ("d", 3)]


REMOVALS: dict[str, Callable[[MemorySystem], object]] = {
    "forget": lambda system: [system.conversation("c").forget(number) for number in (1, 2)],
    "erase": lambda system: system.erase(before=datetime(2021, 1, 1, tzinfo=UTC)),
}
MESSAGE = HumanMessage("And rye bread with seeds?", id="h3")


def chats(system: MemorySystem, selector: Any) -> dict[str, Callable[[], object]]:
    """The ways in which a message gets a place and a reason."""
    node = StateGraph(MessagesState).add_node("select", select_thread_node(system, selector=selector))
    graph, config = node.add_edge(START, "select").compile(), {"configurable": {"thread_id": "c"}}
    history = ThreadMemChatMessageHistory("c", system, node_selector=selector)
    return {
        "append": lambda: system.conversation("c", node_selector=selector).append(MESSAGE),
        "graph": lambda: graph.invoke({"messages": [MESSAGE]}, config),
        "history": lambda: history.add_messages([MESSAGE]),
    }


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("chat", ["append", "graph", "history"])
def test_a_reason_quotes_no_message_that_was_removed_while_it_was_written(
    system: MemorySystem, chat: str, removal: str
) -> None:
    system.conversation("c").extend(LIST[:-1], [datetime(2020 + n // 2, 1, 1, tzinfo=UTC) for n in range(4)])

    def selector(tree: Any, message: Any) -> int:
        tree.reason, tree.chances = " ".join(end.human for end in tree.turn_ends()), [(4, 0.9), (None, 0.1)]
        REMOVALS[removal](system)
        return 4

    chats(system, selector)[chat]()
    placed = system.conversation("c").history[-1]
    assert (placed.message.id, placed.parent_id) == ("h3", 4)
    assert placed.placement is not None
    assert placed.placement.reason == "continues node 4"
    assert dict(placed.placement.chances)[4] == 0.9


@pytest.mark.parametrize("chat", ["append", "graph", "history"])
def test_a_reason_stays_if_messages_are_added_while_it_is_written(system: MemorySystem, chat: str) -> None:
    system.conversation("c").extend(LIST[:-1])

    def selector(tree: Any, message: Any) -> int:
        tree.reason = "of seeds"
        system.conversation("c").append("Meanwhile.", "Yes.")
        return 4

    chats(system, selector)[chat]()
    placed = system.conversation("c").history[-1]
    assert placed.placement is not None
    assert placed.placement.reason == "of seeds"


@pytest.fixture
def refilling(system: MemorySystem) -> Callable[[Any, Any], int | None]:
    """A selector that chooses node 2 after the conversation was emptied and filled with other turns."""

    def select(tree: Any, message: Any) -> int | None:
        if not tree.turn_ends():
            return None
        system.conversation("c").reset()
        system.conversation("c").extend([("user", "question"), ("ai", "answer")])
        tree.chances, tree.reason = [(2, 0.9), (None, 0.1)], "continues node 2: 'a'"
        return 2

    return select


@pytest.mark.parametrize("kind", ["append", "graph"])
def test_a_single_tree_has_one_root_after_its_conversation_is_emptied_meanwhile(
    system: MemorySystem, refilling: Any, kind: str
) -> None:
    memory = system.conversation("c", node_selector=refilling, single_tree=True)
    memory.append("a", "b")
    if kind == "append":
        memory.append("c", "d")
    else:
        node = select_thread_node(system, refilling, conversation_id="c", single_tree=True)
        node.invoke({"messages": [HumanMessage("c", id="h2")]})
    assert [(node.message.content, node.parent_id) for node in memory.history][:3] == [
        ("question", None),
        ("answer", 1),
        ("c", 2),
    ]


@pytest.mark.parametrize("on_select", ["apply", "suggest"])
def test_the_result_of_a_node_names_no_message_that_was_removed_meanwhile(
    system: MemorySystem, refilling: Any, on_select: Any
) -> None:
    system.conversation("c").append("a", "b")
    node = select_thread_node(system, refilling, conversation_id="c", on_select=on_select, suggest_at=0.1)
    state = node.invoke({"messages": [HumanMessage("c", id="h2")]})
    assert state.get("suggestion") is None
    assert state["active_thread"]["reason"] == "starts a new thread"
    assert system.conversation("c").history[-1].placement is None


def test_a_message_that_is_not_stored_creates_no_conversation(system: MemorySystem) -> None:
    def failing(tree: Any, message: Any) -> int:
        raise RuntimeError("offline")

    node = select_thread_node(system, failing, conversation_id="new", on_selection_failure="raise")
    with pytest.raises(Exception, match="offline"):
        node.invoke({"messages": [HumanMessage("c", id="h1")]})
    assert run(Sql(lambda conn: trees.find(conn, system.owner, "new")), system.runtime) is None


@pytest.mark.parametrize("kind", ["nodes", "middleware"])
def test_a_turn_whose_conversation_is_emptied_during_the_call_of_the_model_does_not_continue_new_turns(
    system: MemorySystem, invoke: Invoke, kind: str
) -> None:
    class Model(FakeListChatModel):
        def _call(self, messages: list[BaseMessage], *given: Any, **options: Any) -> str:
            if messages[-1].content == "c":
                system.conversation("c").reset()
                system.conversation("c").append("question", "answer")
            return super()._call(messages, *given, **options)

    model = Model(responses=["b", "d"])
    chat = (
        create_threaded_chat(model, system, conversation_id="c", recall=0, checkpointer=InMemorySaver())
        if kind == "nodes"
        else create_agent(
            model, middleware=[ThreadMemMiddleware(system, conversation_id="c")], checkpointer=InMemorySaver()
        )
    )
    for text in ("a", "c"):
        invoke(chat, {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "1"}})
    history = system.conversation("c").history
    assert [(node.message.content, node.parent_id) for node in history][:3] == [
        ("question", None),
        ("answer", 1),
        ("a", None),
    ]
    assert system.verify().ok
