"""Lists for a model contain whole tool exchanges, in every view of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageWindow,
    ThreadMemChatMessageHistory,
    select_thread_node,
)
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.node import store_turn_node
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.selection.tree_view import TreeView

Wrap = Callable[[ChatMemory], Any]
BAD = {"type": "invalid_tool_call", "name": "book", "args": '{"to', "id": "c9", "error": "no JSON"}


def calling(*ids: str, text: str = "", invalid: Sequence[dict[str, Any]] = ()) -> AIMessage:
    calls = [{"name": "book", "args": {}, "id": id_} for id_ in ids]
    return AIMessage(text, tool_calls=calls, invalid_tool_calls=list(invalid))


def result(id_: str, text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id_)


def refused(messages: Sequence[BaseMessage]) -> str:
    """Why a provider refuses a list, or an empty text: each call has one result, which directly follows."""
    waiting: list[str | None] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return f"the result {message.tool_call_id} does not follow its call"
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            return f"no results of {waiting}"
        if isinstance(message, AIMessage):
            waiting = [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
    return ""


ROUGH = {
    "cancelled": ["Book", calling("c1"), "Never mind"],
    "cancelled with a text": ["Book", calling("c1", text="I book it."), "Never mind"],
    "cannot be parsed": ["Book", calling(text="I book it.", invalid=[BAD]), "Never mind"],
    "half a batch": ["Book", calling("c1", "c2"), result("c1"), "Never mind"],
    "half a batch cannot be parsed": ["Book", calling("c1", invalid=[BAD]), result("c1"), "Never mind"],
    "late": ["Book", calling("c1"), "Never mind", result("c1"), AIMessage("Too late."), "Oh"],
    "late half": ["Book", calling("c1", "c2"), result("c2"), "Wait", result("c1"), AIMessage("Booked.")],
    "answered without the result": ["Weather?", calling("c1"), AIMessage("It is sunny."), "And tomorrow?"],
    "called again": ["Book", calling("c1"), calling("c2"), result("c2"), AIMessage("Booked."), "Thanks"],
}
"""Conversations with calls that providers refuse as they are."""


def told(case: str) -> list[Any]:
    """Fresh messages, since a memory gives them ids."""
    return [HumanMessage(item) if isinstance(item, str) else item.model_copy() for item in ROUGH[case]]


def texts(messages: Sequence[BaseMessage], kind: str = "human") -> list[str]:
    return [message.text for message in messages if message.type == kind]


@pytest.mark.parametrize("case", ROUGH)
def test_a_memory_shows_whole_exchanges_and_stores_what_was_said(
    system: MemorySystem, verbs: Wrap, case: str
) -> None:
    memory = verbs(system.conversation("rough"))
    for message in told(case):
        memory.append(message)
    shown = memory.messages()
    assert refused(shown) == ""
    assert texts(shown) == texts(told(case))
    assert set(texts(told(case), "ai")) == set(texts(shown, "ai"))
    stored = [node.message for node in memory.history()]
    assert [(message.type, message.content) for message in stored] == [
        (message.type, message.content) for message in told(case)
    ]


@pytest.mark.parametrize("case", ROUGH)
def test_a_history_shows_whole_exchanges(case: str) -> None:
    history = ThreadMemChatMessageHistory("rough", MemorySystem(embeddings=False))
    for message in told(case):
        history.add_messages([message])
    assert refused(history.messages) == ""
    assert texts(history.messages) == texts(told(case))


@pytest.mark.parametrize("case", ROUGH)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 9])
def test_a_window_shows_whole_exchanges_and_counts_them(case: str, size: int) -> None:
    memory = ChatMemory(window=MessageWindow(size), embeddings=False)
    for message in told(case):
        memory.append(message)
    assert refused(memory.messages) == ""
    assert len(memory.messages) <= size
    cut = ChatMemory(window=lambda messages: messages[-size:], embeddings=False)
    for message in told(case):
        cut.append(message)
    assert refused(cut.messages) == ""


@pytest.mark.parametrize(
    "case", ["cancelled", "cannot be parsed", "half a batch", "answered without the result"]
)
def test_covered_turns_are_whole_exchanges(system: MemorySystem, verbs: Wrap, case: str) -> None:
    def select(tree: TreeView, message: BaseMessage) -> int | None:
        ends = [end.id for end in tree.turn_ends()]
        if message.text != "and then?":
            return None
        tree.reason, tree.chances = "either", [(ends[-1], 0.5), (ends[0], 0.5)]
        return ends[-1]

    memory = verbs(system.conversation("covered", node_selector=select))
    for message in told(case)[:-1]:
        memory.append(message)
    memory.append("new bread", "rise")
    memory.append("and then?")
    shown = memory.messages()
    [bread, block, question] = [message.text for message in shown if message.type == "human"]
    assert (bread, question) == ("new bread", "and then?")
    assert f">{told(case)[0].content}</human>" in block
    assert refused(shown) == ""


@pytest.mark.parametrize("case", ROUGH)
def test_a_graph_gets_a_list_of_whole_exchanges(
    system: MemorySystem, invoke: Callable[..., Any], case: str
) -> None:
    messages = [message.model_copy(update={"id": f"m{n}"}) for n, message in enumerate(told(case))]
    config = {"configurable": {"thread_id": "graph"}}
    while messages[-1].type != "human":
        messages.pop()
    for node in (select_thread_node(system), select_thread_node(system)):
        state = invoke(node, {"messages": messages}, config)
        messages = [message for message in state.get("messages", messages) if message.type != "remove"]
        assert refused(messages) == ""
    invoke(store_turn_node(system), {"messages": messages}, config)
    stored = [node.message for node in system.conversation("graph").history]
    assert not any(is_made_up(message) for message in stored)
    assert refused(system.conversation("graph").messages) == ""


def test_a_running_call_waits_for_its_result() -> None:
    running = [HumanMessage("Book"), calling("c1", "c2"), result("c1")]
    for size in (2, 3):
        assert whole_exchanges(running[:size]) == running[:size]
    unparsed = [HumanMessage("Book"), calling("c1", invalid=[BAD]), result("c1")]
    assert [message.type for message in whole_exchanges(unparsed)] == ["human", "ai", "tool", "tool"]
    assert whole_exchanges(unparsed[:2]) == unparsed[:2]


def test_a_missing_result_says_that_there_is_none() -> None:
    shown = whole_exchanges([calling("c1", invalid=[BAD]), HumanMessage("Never mind")])
    assert [message.content for message in shown[1:3]] == [
        "This call did not complete: it has no result.",
        "This call was not made: its arguments could not be read.",
    ]
    assert all(is_made_up(message) and message.status == "error" for message in shown[1:3])  # type: ignore[attr-defined]


def test_a_later_result_replaces_an_earlier_one_and_a_missing_one() -> None:
    once = whole_exchanges([calling("c1"), HumanMessage("Never mind")])
    late = whole_exchanges([*once, result("c1", "pending"), result("c1", "booked")])
    assert [message.content for message in late] == ["", "booked", "Never mind"]


PARTS = st.sampled_from(["human", "call", "calls", "bad", "result 1", "result 2", "answer"])


@given(st.lists(PARTS, max_size=12))
def test_any_list_becomes_whole_and_stays_so(parts: list[str]) -> None:
    make: dict[str, Callable[[int], BaseMessage]] = {
        "human": lambda n: HumanMessage(f"h{n}"),
        "call": lambda n: calling(f"c{n}"),
        "calls": lambda n: calling(f"c{n}", f"d{n}", text="both"),
        "bad": lambda n: calling(invalid=[BAD | {"id": f"c{n}"}]),
        "result 1": lambda n: result(f"c{n - 1}"),
        "result 2": lambda n: result(f"d{n - 2}"),
        "answer": lambda n: AIMessage(f"a{n}"),
    }
    messages = [make[part](n) for n, part in enumerate(parts)]
    whole = whole_exchanges([*messages, HumanMessage("last")])
    assert refused(whole) == ""
    assert whole_exchanges(whole) == whole
    kept = [message for message in whole if message.type in ("human", "ai")]
    assert kept == [
        *(message for message in messages if message.type in ("human", "ai")),
        HumanMessage("last"),
    ]


def new_thread(tree: TreeView, message: BaseMessage) -> int | None:
    return None


def test_a_late_result_and_the_answer_after_it_belong_to_their_question(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = verbs(system.conversation("late", node_selector=new_thread))
    memory.append("Book both")
    memory.append(calling("c1", "c2"))
    memory.append("How is the weather?", "Sunny.")
    assert [memory.append(result(id_))[0].parent_id for id_ in ("c2", "c1")] == [2, 5]
    memory.append(AIMessage("Booked."))
    assert texts(memory.messages(), "tool") == ["done", "done"]
    assert [[node.id for node in thread] for thread in memory.threads()] == [[3, 4], [1, 2, 5, 6, 7]]
    with pytest.raises(InputError, match="no earlier message of the turn makes this call"):
        memory.append(result("c1"), result("c3"))


def test_a_late_result_in_another_process_belongs_to_its_question(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as first:
        memory = first.conversation("late", node_selector=new_thread)
        memory.append("Book", calling("c1"))
        memory.append("How is the weather?", "Sunny.")
    with MemorySystem(url, owner=owner, embeddings=False) as second:
        memory = second.conversation("late", node_selector=new_thread)
        assert memory.append(result("c1"), "Booked.")[0].parent_id == 2


def test_a_late_result_in_a_linear_memory_is_shown_behind_its_call(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("late"))
    for message in ("Book", calling("c1"), "Never mind", AIMessage("Fine."), result("c1")):
        memory.append(message)
    assert [node.parent_id for node in memory.history()] == [None, 1, 2, 3, 4]
    assert [message.type for message in memory.messages()] == ["human", "ai", "tool", "human", "ai"]


def test_a_call_or_a_result_that_is_checked_out_stands_for_its_exchange(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = verbs(system.conversation("back"))
    memory.append("Book both", calling("c1", "c2"), result("c1"), result("c2"), "Booked.")
    memory.append("Thanks", "You are welcome.")
    for node_id in (2, 3, 4):
        assert memory.checkout(node_id).id == 4
        assert refused(memory.messages()) == ""
        assert [message.type for message in memory.messages()] == ["human", "ai", "tool", "tool"]
    assert memory.checkout(5).id == 5
    assert memory.append("And then?")[0].parent_id == 5


def test_a_running_call_can_be_checked_out(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("back"))
    memory.append("Book", calling("c1"))
    memory.append("Weather?", "Sunny.")
    assert memory.checkout(2).id == 2
    assert memory.append(result("c1"))[0].parent_id == 2
