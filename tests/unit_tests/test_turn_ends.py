"""Turn ends: the turns that can be continued, updated node by node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_threadmem import MemorySystem
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InvalidGraphStateError
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.selection.tree_view import turns
from langchain_threadmem.selection.turn_ends import TurnIndex
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode, Placement

CALL = {"name": "f", "args": {}, "id": "c1", "type": "tool_call"}


def chain(*messages: BaseMessage) -> list[ConversationNode]:
    return [ConversationNode(n + 1, message, n or None) for n, message in enumerate(messages)]


def ends(nodes: list[ConversationNode]) -> list[int]:
    index = TurnIndex()
    index.add(nodes)
    return [end.id for end in index.ends()]


def test_the_answer_ends_the_turn() -> None:
    index = TurnIndex()
    index.add(chain(HumanMessage("q1"), AIMessage("a1"), HumanMessage("q2"), AIMessage("a2")))
    assert [(end.id, end.previous, end.human, end.answer, end.human_id) for end in index.ends()] == [
        (2, None, "q1", "a1", 1),
        (4, 2, "q2", "a2", 3),
    ]


def test_a_turn_without_an_answer_ends_in_its_question_or_in_the_last_result() -> None:
    tool = [HumanMessage("q"), AIMessage("", tool_calls=[CALL]), ToolMessage("r", tool_call_id="c1")]
    assert [ends(chain(*tool[:size])) for size in (1, 2, 3)] == [[1], [1], [3]]
    assert ends(chain(*tool, AIMessage("done"))) == [4]


def test_an_open_turn_knows_its_calls_and_has_no_answer() -> None:
    call = AIMessage("Let me see", tool_calls=[{"name": "fly", "args": {"to": "Oslo"}, "id": "c1"}])
    nodes = chain(HumanMessage("q"), call, ToolMessage("full", tool_call_id="c1"))
    index = TurnIndex()
    described = []
    for node in nodes:
        index.add([node])
        described += [(end.id, end.is_open, end.answer, end.calls, end.answer_id) for end in index.ends()]
    assert described == [(1, True, "", "", 0), (1, True, "", "Oslo", 0), (3, True, "", "Oslo\nfull", 0)]


def test_a_turn_of_two_answers_ends_in_the_last() -> None:
    assert ends(chain(HumanMessage("q"), AIMessage("a"), AIMessage("b"))) == [3]


def test_a_superseded_answer_is_no_end() -> None:
    nodes = chain(HumanMessage("q"), AIMessage("a"))
    nodes[1] = replace(nodes[1], state=State.SUPERSEDED, superseded_by=3)
    nodes.append(ConversationNode(3, AIMessage("b"), 1))
    assert ends(nodes) == [3]


def test_a_question_without_an_answer_is_continued_by_the_next() -> None:
    nodes = chain(
        HumanMessage("q1"), AIMessage("a1"), HumanMessage("q2"), HumanMessage("q3"), AIMessage("a3")
    )
    index = TurnIndex()
    index.add(nodes)
    assert [(end.id, end.previous, end.is_open) for end in index.ends()] == [
        (2, None, False),
        (3, 2, True),
        (5, 3, False),
    ]


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_that_comes_late_ends_the_turn_that_another_turn_continues(at_once: bool) -> None:
    before = [
        *chain(HumanMessage("q"), AIMessage("", tool_calls=[CALL])),
        ConversationNode(3, HumanMessage("r"), 1),
        ConversationNode(4, AIMessage("b"), 3),
    ]
    chances = ((1, 0.9), (None, 0.1))
    late = [
        ConversationNode(5, ToolMessage("r", tool_call_id="c1"), 2),
        ConversationNode(6, AIMessage("a"), 5),
    ]
    index = TurnIndex()
    placed = {3: Placement("continues", chances)}
    index.add([*before, *late] if at_once else before, placed)
    if not at_once:
        assert [(end.id, end.previous, end.chances) for end in index.ends()] == [
            (1, None, ()),
            (4, 1, chances),
        ]
        index.add(late)
    assert [(end.id, end.previous, end.human, end.chances) for end in index.ends()] == [
        (4, 6, "r", ((6, 0.9), (None, 0.1))),
        (6, None, "q", ()),
    ]
    assert [end.id for end in index.upwards(4)] == [4, 6]
    assert (index.leaf(6), index.leaf(1), index.end_above(3)) == (4, 4, 6)
    assert index.opening(4) == index.end(6)
    assert [end.id for end in index.without([(1, 2)]).ends()] == []


def test_a_message_with_open_tool_calls_is_no_answer() -> None:
    assert is_answer(AIMessage("a"))
    assert not is_answer(AIMessage("a", tool_calls=[CALL]))
    assert not is_answer(HumanMessage("a"))


def test_a_thread_is_followed_up_to_its_opening_and_down_to_where_it_went_on_last() -> None:
    index = TurnIndex()
    for human, above in ((1, None), (3, 2), (5, 2), (7, 4), (9, None)):
        index.add([ConversationNode(human, HumanMessage("q"), above)])
        index.add([ConversationNode(human + 1, AIMessage("a"), human)])
    assert [end.id for end in index.upwards(8)] == [8, 4, 2]
    assert [index.leaf(id_) for id_ in (2, 4, 8, 10)] == [6, 8, 8, 10]
    openings = [index.opening(id_) for id_ in (8, 6, 10)]
    assert [end and end.id for end in openings] == [2, 2, 10]


def test_the_nearest_of_some_turns_is_found_upwards() -> None:
    index = TurnIndex()
    index.add(chain(*[kind("m") for _ in range(4) for kind in (HumanMessage, AIMessage)]))
    assert [index.nearest_among(8, ids) for ids in ({8, 4}, {6, 2}, {2}, {1, 3}, ())] == [8, 6, 2, None, None]
    assert index.nearest_among(None, {2}) is index.nearest_among(99, {2}) is None


@pytest.mark.parametrize("links", [{4: 4}, {4: 8}, {2: 6}], ids=["itself", "a later turn", "the opening"])
def test_a_circle_of_turns_has_no_end_but_an_error(links: dict[int, int]) -> None:
    index = TurnIndex()
    index.add(chain(*[kind("m") for _ in range(4) for kind in (HumanMessage, AIMessage)]))
    for id_, previous in links.items():
        end = index.end(id_)
        assert end is not None
        index._ends[id_] = end._replace(previous=previous)
    assert index.nearest_among(8, {6}) == 6
    with pytest.raises(InvalidGraphStateError, match="circle"):
        index.nearest_among(8, {1})


def test_a_turn_that_goes_on_is_followed_to_where_it_ends_now() -> None:
    index = TurnIndex()
    index.add(chain(HumanMessage("q"), AIMessage("a"), HumanMessage("r"), AIMessage("b"), AIMessage("c")))
    assert index.leaf(2) == 5
    assert [end.id for end in index.upwards(5)] == [5, 2]


@given(st.lists(st.sampled_from("hat"), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_adding_in_pieces_that_overlap_is_adding_once(roles: list[str], cuts: list[int]) -> None:
    make: dict[str, Callable[[], BaseMessage]] = {
        "h": lambda: HumanMessage("q"),
        "a": lambda: AIMessage("a"),
        "t": lambda: ToolMessage("r", tool_call_id="c1"),
    }
    nodes = chain(*(make[role]() for role in roles))
    index = TurnIndex()
    for cut in sorted(cuts):
        index.add(nodes[max(0, cut - 3) : cut] if cut - 3 <= index.last else nodes[:cut])
    index.add(nodes)
    assert [end.id for end in index.ends()] == ends(nodes)


def test_a_stored_conversation_keeps_its_turns_up_to_date(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    raw = system.conversation("c")
    memory = verbs(raw)

    def now() -> list[int]:
        memory.history()  # looks the tree up
        return [end.id for end in run(turns(system.runtime, raw._conversation.tree), system.runtime).ends()]

    memory.append("q1", "a1")
    assert now() == [2]
    memory.append("q2", "a2")
    assert now() == [2, 4]
    memory.regenerate(2, "better")
    assert now() == [4, 5]
    memory.reset()
    assert now() == []
    memory.append("q", "a")
    assert now() == [2]
