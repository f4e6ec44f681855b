"""Colours and names of threads in drawings: a move, a version or a new thread changes none of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.formats.exporters.layout import Layout, colors
from langchain_threadmem.tree.node import ConversationNode

Wrap = Callable[[ChatMemory], Any]
PLACES = {
    "How do I feed rye starter?": None,
    "Where is Lisbon?": None,
    "And how much water?": 2,
    "When is it warm there?": 4,
    "Or whole wheat instead?": 2,
}


def talk(system: MemorySystem) -> ChatMemory:
    """Two threads, the first with a branch: rye 1 2 5 6, wheat 1 2 9 10, Lisbon 3 4 7 8."""
    memory = system.conversation("talk", node_selector=lambda tree, message: PLACES[str(message.content)])
    for question in PLACES:
        memory.append(question, "Yes.")
    return memory


def colors_of(memory: ChatMemory) -> dict[int, int]:
    return colors(memory.history)


def test_a_thread_keeps_its_colour_after_a_move(system: MemorySystem, verbs: Wrap) -> None:
    memory = talk(system)
    before = colors_of(memory)
    rye, lisbon, wheat = before[1], before[3], before[9]
    assert [before[n] for n in range(1, 11)] == [
        rye,
        rye,
        lisbon,
        lisbon,
        rye,
        rye,
        lisbon,
        lisbon,
        wheat,
        wheat,
    ]
    assert len({rye, lisbon, wheat}) == 3

    moved = verbs(memory).place(9, None)
    after = colors_of(memory)
    assert {node_id: after[node_id] for node_id in before} == before
    assert (after[moved.id], after[10]) == (wheat, wheat)

    moved = verbs(memory).place(3, 6)
    after = colors_of(memory)
    assert [after[n] for n in (1, 2, 5, 6, 9, 10)] == [rye, rye, rye, rye, wheat, wheat]
    assert {after[moved.id], after[4], after[7], after[8]} == {rye}


def test_a_new_thread_and_a_later_message_change_no_colour(system: MemorySystem, verbs: Wrap) -> None:
    memory = talk(system)
    before = colors_of(memory)
    other = system.conversation("talk", node_selector=lambda tree, message: None)
    new = verbs(other).append("What is a fig?", "A fruit.")
    after = colors_of(memory)
    assert {node_id: after[node_id] for node_id in before} == before
    assert after[new[0].id] == after[new[1].id] not in before.values()


def test_a_new_version_has_the_colour_of_the_old_one_until_the_old_one_is_continued(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = talk(system)
    before = colors_of(memory)
    edited = verbs(memory).edit(9, "Or spelt?")
    answers = verbs(memory).regenerate(8, "No.")
    after = colors_of(memory)
    assert (after[edited.id], after[answers[-1].id]) == (before[9], before[8])
    verbs(memory).switch(9, revive=True)
    assert {node_id: colors_of(memory)[node_id] for node_id in before} == before
    new = verbs(memory).edit(1, "How do I feed a wheat starter?")
    assert colors_of(memory)[new.id] not in before.values(), "both versions are in threads"
    assert {node_id: colors_of(memory)[node_id] for node_id in before} == before


def test_branches_of_a_root_have_names_of_their_own() -> None:
    said = [
        "Bake rye bread",
        "Use rye.",
        "And then?",
        "Rest it.",
        "And then?",
        "Eat it.",
        "What about the crust?",
    ]
    parents = [None, 1, 2, 3, 2, 5, 6]
    nodes = [
        ConversationNode(n, (AIMessage if n in (2, 4, 6) else HumanMessage)(text), parent)
        for n, (text, parent) in enumerate(zip(said, parents, strict=True), 1)
    ]
    nodes += [
        ConversationNode(8, HumanMessage("And then?"), 2),
        ConversationNode(9, HumanMessage("And then?"), 2),
    ]
    nodes.append(ConversationNode(10, HumanMessage("And then?")))
    layout = Layout(nodes)
    assert [layout.root_of(strand).id for strand in layout.strands] == [1, 1, 1, 1, 10]
    names = layout.names
    assert len(set(names[:4])) == 4
    assert names[0] == "Bake rye bread"
    assert names[4] == names[1]
