"""Titles without a model: the first words of the question that opens a conversation, a thread or a branch."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem
from langchain_threadmem.selection.titles import LONGEST_TITLE, title_of

PLAN = "I want to run 10k in autumn, and at the moment I can only run 3k without a break"


@pytest.mark.parametrize(
    ("opening", "title"),
    [
        ("How do I read a CSV file?", "How do I read a CSV file?"),
        ("Hi! How do I read a CSV file?", "How do I read a CSV file?"),
        ("hola Ada, ¿abre el museo?", "¿abre el museo?"),
        ("Hi", "Hi"),
        (PLAN, "I want to run 10k in autumn, and at the"),
        ("why\nis\tmy bread flat", "Why is my bread flat"),
        ("[2026-11-27 12:07] Is rye sour?", "Is rye sour?"),
        ("<user_query>\nIs rye sour?\n</user_query>", "Is rye sour?"),
        ("Context: you bake bread.\n\nQuestion: Is rye sour?\n\nAnswer:", "Is rye sour?"),
        ("Sort these numbers.\nInput: 3, 1, 2", "Sort these numbers. Input: 3, 1, 2"),
        ("12:30 works for me", "12:30 works for me"),
        ("二" * 90, "二" * LONGEST_TITLE),
        ("?!", "?!"),
        ("", ""),
    ],
)
def test_a_title_is_the_first_words_of_a_question(opening: str, title: str) -> None:
    assert title_of(opening) == title


@pytest.mark.parametrize("opening", [PLAN, "Word " * 40, "x" * 90, "A, b; c: d - " * 9])
def test_a_title_has_at_most_forty_characters_and_ends_with_a_word(opening: str) -> None:
    title = title_of(opening)
    assert 20 <= len(title) <= LONGEST_TITLE
    assert title[-1].isalnum()
    assert opening.lower().startswith(title.lower())


def test_conversations_and_threads_are_named_by_their_questions(system: MemorySystem, verbs: Any) -> None:
    memory = system.conversation("chat")
    memory.append("Hello!", "Hi, how can I help?")
    memory.append(PLAN, "Start with three runs a week.")
    [listed] = verbs(system).list_conversations()
    [thread] = verbs(memory).list_threads()
    assert listed.title == thread.title == "I want to run 10k in autumn, and at the"


def test_constant_text_is_no_part_of_a_title(system: MemorySystem, verbs: Any) -> None:
    memory = system.conversation("template")
    template = "You are a patient coach who answers in one line.\nThe runner says: {}"
    for asked in ("Which shoes do I need?", "How often do I run?", "Is pain normal?"):
        memory.append(template.format(asked), "It depends.")
    [listed] = verbs(system).list_conversations()
    assert listed.title == "Which shoes do I need?"


def test_a_branch_is_named_by_its_own_first_question(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("trip"))
    asked = memory.append("Where do I go in May?", "To Lisbon.")
    memory.append("What do I see there?", "The river.")
    memory.checkout(asked[-1].id)
    memory.append("Hi!", "Hello.")
    memory.append("And in June, where do I go?", "To Oslo.")
    assert sorted(thread.title for thread in memory.list_threads()) == [
        "And in June, where do I go?",
        "Where do I go in May?",
    ]


def test_an_edited_question_gives_its_thread_a_title(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("edited"))
    memory.append("Where do figs grow?", "In the south.")
    second = memory.append("And olives?", "There too.")
    memory.edit(second[0].id, "And dates?")
    assert [thread.title for thread in memory.list_threads()] == ["Where do figs grow?"]


def test_a_branch_below_a_tool_call_is_named_by_its_first_question(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("answers"))
    asked = memory.append(HumanMessage("Where do figs grow?"), AIMessage("In the south."))
    memory.append("In which country?", "In Greece.")
    memory.checkout(asked[0].id)
    memory.append(AIMessage("Where it is warm."))
    # A second answer without a question has the name of the first one.
    assert {thread.title for thread in memory.list_threads()} == {"Where do figs grow?"}
    memory.append("Also in Spain?", "Yes.")
    assert sorted(thread.title for thread in memory.list_threads()) == [
        "Also in Spain?",
        "Where do figs grow?",
    ]
