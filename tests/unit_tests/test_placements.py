"""Placements: reasons of choices, stored with the node, used by later choices, shown to people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from conftest import StreamCipher
from langchain_core.messages import HumanMessage
from rich.console import Console

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector, select_thread_node
from langchain_threadmem.apps.cli.rich_output import draw_tree
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.tree.node import Placement

Wrap = Callable[[ChatMemory], Any]


class Weighing:
    """A selector that always continues the first answer and states a reason."""

    def __init__(self) -> None:
        self.seen: list[TurnEnd] = []

    def select_parent(self, tree: Any, message: Any) -> int | None:
        self.seen = list(tree.turn_ends())
        if not self.seen:
            return None
        tree.reason, tree.chances = "because <of> it", ((2, 0.75), (None, 0.25))
        return 2


@pytest.fixture
def selector() -> Weighing:
    return Weighing()


def placements(verb: Any) -> list[Placement | None]:
    return [node.placement for node in verb.history()]


def test_a_choice_is_kept_with_the_human_message(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    verb.append("one", "first")
    verb.append("two", "second")
    why = Placement("because <of> it", ((2, 0.75), (None, 0.25)))
    assert placements(verb) == [None, None, why, None]


def test_what_was_appended_says_why_it_is_where_it_is(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    assert [node.placement for node in verb.append("one", "first")] == [None, None]
    question, answer = verb.append("two", "second")
    assert (question.placement, answer.placement) == (verb.history()[2].placement, None)
    assert question.placement == Placement("because <of> it", ((2, 0.75), (None, 0.25)))


def test_a_message_that_is_there_already_does_not_say_why_another_one_would_be(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    verb.append(HumanMessage("one", id="h1"), "first")
    verb.append("two", "second")
    assert [node.placement for node in verb.append(HumanMessage("one", id="h1"))] == [None]


@pytest.mark.parametrize("parent", [None, 2])
def test_a_turn_that_a_person_placed_says_so(
    system: MemorySystem, verbs: Wrap, selector: Weighing, parent: int | None
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    for text in ("one", "two", "three"):
        verb.append(text, text.upper())
    verb.place(5, 4 if parent else None)
    moved = verb.place(verb.history()[-1].id, parent)
    assert moved.placement == Placement("moved by hand")
    assert (verb.history()[5].placement, verb.history()[-1].placement) == (None, moved.placement)
    assert verb.place(moved.id, parent).placement == moved.placement


def test_a_reason_is_encrypted_like_a_message(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        verb = verbs(system.conversation("talk"))
        verb.append("one", "first")
        verb.append("two", "second")
        verb.place(3, None)
        assert placements(verb) == [None, None, None, None, Placement("moved by hand")]


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_message_that_a_graph_stored_first_gets_the_reason_of_the_selector(
    system: MemorySystem, selector: Weighing, turns: int, mode: str
) -> None:
    memory = system.conversation("talk")
    memory.extend([*("one", ("ai", "ONE"), "two", ("ai", "TWO"))[: 2 * turns], HumanMessage("new", id="h")])
    node = select_thread_node(system, selector, conversation_id="talk")
    state = {"messages": [node.message for node in memory.history]}
    found = node.invoke(state) if mode == "sync" else asyncio.run(node.ainvoke(state))
    assert found["active_thread"]["parent_id"] == 2
    placed = memory.history[found["active_thread"]["node_id"] - 1]
    assert placed.placement == Placement("because <of> it", ((2, 0.75), (None, 0.25)))


def test_later_choices_see_how_sure_earlier_ones_were(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    for text in ("one", "two", "three"):
        verb.append(text, text.upper())
    assert [end.chances for end in selector.seen] == [(), ((2, 0.75), (None, 0.25))]


def test_choices_outlive_the_process(url: str, owner: str, selector: Weighing) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("talk", node_selector=selector)
        memory.append("one", "first")
        memory.append("two", "second")
    again = Weighing()
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.conversation("talk", node_selector=again).append("three", "third")
    assert [end.chances for end in again.seen] == [(), ((2, 0.75), (None, 0.25))]


def test_a_turn_that_was_moved_is_where_it_is_for_certain(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    verb.append("one", "first")
    verb.append("two", "second")
    verb.place(3, None)
    verb.append("three", "third")
    assert [(end.human, end.chances) for end in selector.seen] == [("one", ()), ("two", ())]


def test_erasing_a_conversation_erases_its_choices(
    system: MemorySystem, verbs: Wrap, selector: Weighing
) -> None:
    verb = verbs(system.conversation("talk", node_selector=selector))
    verb.append("one", "first")
    verb.append("two", "second")
    verb.reset()
    verb.append("one", "first")
    verb.append("two", "second")
    assert len([found for found in placements(verb) if found]) == 1


def test_the_semantic_selector_weighs_its_candidates(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    verb.append("How do I read a CSV file in Python?", "Use the csv module.")
    verb.append("And how do I skip the header row of the CSV file?", "Call next(reader) once.")
    kept = verb.history()[2].placement
    assert kept.reason == "continues the last thread"
    assert {candidate for candidate, _ in kept.chances} == {2, None}
    assert sum(chance for _, chance in kept.chances) == pytest.approx(1.0)


def test_a_message_that_continues_the_tip_by_default_has_no_reason(system: MemorySystem) -> None:
    memory = system.conversation("talk")
    memory.append("one", "first")
    assert [node.placement for node in memory.history] == [None, None]


def test_reasons_are_shown_in_the_terminal(selector: Weighing) -> None:
    memory = ChatMemory(node_selector=selector, embeddings=False)
    memory.append("one", "first")
    memory.append("two", "second")
    console = Console(width=100, file=StringIO())
    console.print(draw_tree(memory.history, reasons=True))
    assert "because <of> it; node 2: 75 %, new thread: 25 %" in console.file.getvalue()  # type: ignore[attr-defined]


def test_reasons_are_shown_on_the_page_as_plain_text(selector: Weighing) -> None:
    memory = ChatMemory(node_selector=selector, embeddings=False)
    memory.append(HumanMessage("one"), "first")
    memory.append("two", "second")
    page = memory.export("html")
    assert 'because &lt;of&gt; it; <a href="#n2">One</a> (2) 75 %, new thread 25 %' in page
