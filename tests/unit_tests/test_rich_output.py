"""Terminal output of the demo: trees, threads, recalls, tokens."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from rich.console import Console

from langchain_threadmem import ChatMemory
from langchain_threadmem.apps.cli import rich_output
from langchain_threadmem.apps.cli.demo import play, questions_for, turns_of

CHAT = [
    ("Where is Lisbon?", "In Portugal."),
    ("How do I bake bread?", "With flour and time."),
    ("How long?", "Hours."),
]


def drawn(what: Any, width: int = 100) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_a_long_thread_is_drawn_as_a_column() -> None:
    memory = ChatMemory()
    memory.extend([("user" if n % 2 else "ai", f"message {n}") for n in range(1, 201)])
    lines = drawn(rich_output.draw_tree(memory.history)).splitlines()
    assert len(lines) == 201
    indents = [len(line) - len(line.lstrip("│├└─ ")) for line in lines[2:]]
    assert set(indents) == {8}


def test_each_message_takes_one_line_however_long_it_is() -> None:
    memory = ChatMemory()
    memory.append("many words " * 100, "line\nbreaks\n" * 100)
    lines = drawn(rich_output.draw_tree(memory.history), width=60).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 60


def test_markup_and_escape_codes_in_a_message_do_nothing() -> None:
    memory = ChatMemory(embeddings=False)
    memory.append("[red]alarm[/red] \x1b[31m", "[/]")
    hits = memory.recall("alarm")
    for picture in (
        rich_output.draw_tree(memory.history),
        rich_output.list_threads(memory.history),
        rich_output.list_conversations([("[bold]", memory.history)]),
        rich_output.show_recall("[red]alarm[/red]", hits),
    ):
        out = drawn(picture)
        assert "[red]alarm[/red]" in out
        assert "\x1b" not in out


def test_a_recall_that_finds_nothing_says_so() -> None:
    assert "nothing" in drawn(rich_output.show_recall("anything?", []))


def test_a_thread_that_leaves_another_says_where() -> None:
    memory = ChatMemory(node_selector=lambda tree, message: 2 if tree.turn_ends() else None)
    for human, answer in CHAT:
        memory.append(human, answer)
    rows = [line.split() for line in drawn(rich_output.list_threads(memory.history)).splitlines()]
    assert rows == [
        ["thread", "from", "messages", "ends", "at"],
        ["Where", "is", "Lisbon?", "4", "4"],
        ["How", "long?", "2", "4", "6"],
    ]


def test_a_linear_conversation_saves_no_tokens() -> None:
    turns = turns_of([HumanMessage("a"), AIMessage("b"), HumanMessage("c"), AIMessage("d")])
    shown, whole, *_ = play(ChatMemory(), turns, lambda done, total: None)
    assert shown == whole


def test_threads_save_the_tokens_of_the_others() -> None:
    turns = [[HumanMessage(human), AIMessage(answer)] for human, answer in CHAT]
    alone = sum(play(ChatMemory(), [turn], lambda done, total: None)[0] for turn in turns)
    shown, whole, *_ = play(
        ChatMemory(node_selector=lambda tree, message: None), turns, lambda done, total: None
    )
    assert alone == shown < whole


def test_a_conversation_that_begins_with_an_answer_is_played() -> None:
    memory = ChatMemory()
    play(
        memory,
        turns_of([AIMessage("How can I help?"), HumanMessage("Not at all.")]),
        lambda done, total: None,
    )
    assert [node.message.content for node in memory.history] == ["How can I help?", "Not at all."]


def test_questions_are_the_words_that_set_a_thread_apart() -> None:
    memory = ChatMemory(node_selector=lambda tree, message: None)
    memory.append("Bake bread today?", "Bread needs flour, bread needs time today.")
    memory.append("Travel today?", "Lisbon. Lisbon is sunny today.")
    first, second = questions_for(memory.history)
    assert first.split()[0] == "bread"
    assert second.split()[0] == "lisbon"


def test_a_narrow_terminal_cuts_openings_and_keeps_numbers() -> None:
    memory = ChatMemory()
    memory.append("many words " * 100, "none")
    for table in (
        rich_output.list_threads(memory.history),
        rich_output.list_conversations([("long", memory.history)]),
    ):
        heading, row = drawn(table, width=50).splitlines()
        assert "messages" in heading
        assert "2" in row.split()
        assert "…" in row
