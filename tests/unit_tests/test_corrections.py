"""Mending by hand: doubtful places are listed and marked, and corrections move the thresholds of an owner."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from conftest import StreamCipher
from rich.console import Console

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.cli.rich_output import draw_tree
from langchain_threadmem.errors import InputError, InvalidGraphStateError
from langchain_threadmem.selection.moves.corrections import LARGEST, corrected
from langchain_threadmem.tree.node import Bias, Chances

Wrap = Callable[[ChatMemory], Any]


class Scripted:
    """A selector that continues the first of the candidates it was given for the message."""

    def __init__(self, **chances: Chances) -> None:
        self._chances = chances

    def select_parent(self, tree: Any, message: Any) -> int | None:
        if message.content not in self._chances:
            return None
        tree.reason, tree.chances = f"because of {message.content}", self._chances[message.content]
        return tree.chances[0][0]


def talk(system: MemorySystem, verbs: Wrap, **chances: Chances) -> Any:
    verb = verbs(system.conversation("talk", node_selector=Scripted(**chances)))
    for text in ("bread", "tea", *chances):
        verb.append(text, text.upper())
    return verb


def listed(doubts: Any) -> list[tuple[int, float]]:
    return [(doubt.node.id, doubt.probability) for doubt in doubts]


def test_the_least_probable_place_comes_first(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, half=((2, 0.5), (4, 0.4)), sure=((4, 0.9), (2, 0.1)), no=((4, 0.4), (2, 0.3)))
    assert listed(verb.doubtful()) == [(9, 0.4), (5, 0.5)]
    assert listed(verb.doubtful(limit=1)) == [(9, 0.4)]


def test_a_doubt_names_the_place_the_reason_and_the_likeliest_other_place(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.4), (None, 0.1)))
    [doubt] = verb.doubtful()
    assert (doubt.node.message.content, doubt.node.placement.reason) == ("rye", "because of rye")
    assert (doubt.parent_id, doubt.probability, doubt.reason) == (2, 0.5, "because of rye")
    assert (doubt.runner_up.parent_id, doubt.runner_up.probability, doubt.runner_up.title) == (4, 0.4, "Tea")


def test_the_other_place_may_be_a_new_thread(system: MemorySystem, verbs: Wrap) -> None:
    other = talk(system, verbs, honey=((2, 0.5), (None, 0.5))).doubtful()[0].runner_up
    assert (other.parent_id, other.title) == (None, "Honey")


def test_another_place_deep_in_a_thread_has_the_title_of_the_thread(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = talk(system, verbs, rye=((2, 1.0),), oats=((6, 1.0),), milk=((4, 0.5), (8, 0.5)))
    assert verb.doubtful()[0].runner_up.title == "Bread"


def test_another_place_has_a_title_after_the_first_messages_of_its_thread_are_erased(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = talk(system, verbs, rye=((2, 1.0),), oats=((6, 1.0),), milk=((None, 0.5), (8, 0.5)))
    [oats] = [node for node in verb.history() if node.message.content == "oats"]
    system.erase(before=oats.timestamp - timedelta(microseconds=1))
    assert verb.doubtful()[0].runner_up.title == "Oats"


def test_a_superseded_turn_is_no_other_place(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.3), (None, 0.2)))
    verb.edit(3, "coffee")
    assert verb.doubtful()[0].runner_up.parent_id is None


def test_a_turn_that_follows_the_message_is_no_other_place(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.3), (None, 0.2)))
    verb.place(3, 6)
    assert verb.doubtful()[0].runner_up.parent_id is None


@pytest.mark.parametrize("parent", [2, 4, None])
def test_a_message_that_a_person_placed_is_not_doubtful(
    system: MemorySystem, verbs: Wrap, parent: int | None
) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.5)))
    verb.place(5, parent)
    assert verb.doubtful() == []


def test_a_superseded_message_is_not_doubtful(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.5)))
    verb.edit(5, "spelt")
    assert verb.doubtful() == []


def test_a_conversation_without_probabilities_has_no_doubtful_place(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = verbs(system.conversation("talk"))
    assert verb.doubtful() == []
    verb.append("one", "first")
    verb.append("two", "second")
    assert verb.doubtful() == []


def test_the_reason_of_an_encrypted_memory_can_be_read(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        [doubt] = talk(system, verbs, rye=((2, 0.5), (4, 0.5))).doubtful()
        assert (doubt.reason, doubt.runner_up.title) == ("because of rye", "Tea")


@pytest.mark.parametrize("limit", [0, -1, True, "3"])
def test_a_limit_that_is_no_positive_number_is_refused(system: MemorySystem, limit: Any) -> None:
    with pytest.raises(InputError, match="limit="):
        system.conversation("talk").doubtful(limit)


def drawn(history: Any) -> str:
    console = Console(width=100, file=(out := StringIO()))
    console.print(draw_tree(history))
    return out.getvalue()


@pytest.mark.parametrize(("chance", "marks"), [(0.5, 1), (0.9, 0)])
def test_doubtful_places_are_marked_on_the_page_in_the_picture_and_in_the_terminal(
    chance: float, marks: int
) -> None:
    memory = ChatMemory(node_selector=Scripted(rye=((2, chance), (None, 1 - chance))), embeddings=False)
    for text in ("bread", "rye"):
        memory.append(text, text)
    assert memory.export("html").count("doubtful:</mark>") == marks
    assert memory.export("svg").count(">? </tspan>rye") == marks
    assert memory.export("svg").count("stroke-dasharray") == marks
    assert drawn(memory.history).count("? 3 User: rye") == marks


def test_show_lists_the_doubtful_places_of_a_conversation(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "memory.db")
    with MemorySystem(database, embeddings=False) as system:
        memory = system.conversation("talk", node_selector=Scripted(rye=((2, 0.5), (None, 0.4))))
        for text in ("bread", "rye"):
            memory.append(text, text)
    assert main(["show", database, "talk", "--doubtful"]) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("3 User: rye", "50 % because of rye", "40 % or a new thread 'Rye'"))
    assert main(["show", database, "--doubtful"]) == 2


def bias(system: MemorySystem) -> tuple[float, float, int]:
    found = system.stats().bias
    return round(found.new_thread, 3), round(found.going_back, 3), found.corrections


@pytest.mark.parametrize(
    ("parent", "learned"),
    [
        (None, (0.1, -0.067, 1)),
        (2, (-0.233, 0.267, 1)),
        (4, (-0.233, -0.067, 1)),
    ],
)
def test_a_correction_moves_the_thresholds_towards_the_right_place(
    system: MemorySystem, verbs: Wrap, parent: int | None, learned: tuple[float, float, int]
) -> None:
    verb = talk(system, verbs, rye=((None, 0.7), (2, 0.2), (4, 0.1)))
    verb.place(5, parent)
    assert bias(system) == learned


def test_the_bias_is_bounded(system: MemorySystem) -> None:
    learned = Bias()
    for _ in range(50):
        learned = corrected(learned, ((None, 0.99), (4, 0.01)), 4, 4)
    assert learned == Bias(-LARGEST, 0.0, 50)


def test_a_message_without_probabilities_teaches_nothing(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.5)))
    moved = verb.place(3, 2)
    verb.place(moved.id, None)
    assert bias(system) == (0.0, 0.0, 0)


def test_a_place_that_is_refused_teaches_nothing(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.5), (4, 0.5)))
    with pytest.raises(InvalidGraphStateError):
        verb.place(5, 6)
    assert bias(system) == (0.0, 0.0, 0)


def chance_of_a_new_thread(system: MemorySystem, verbs: Wrap, name: str) -> float:
    verb = verbs(system.conversation(name, node_selector=SemanticNodeSelector()))
    verb.append("How do I bake bread?", "With patience.")
    question, _ = verb.append("How do I bake a cake?", "With eggs.")
    return dict(question.placement.chances)[None]


def test_corrections_change_later_choices_in_all_conversations_of_the_owner_alone(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        before = chance_of_a_new_thread(system, verbs, "before")
        talk(system, verbs, rye=((None, 0.9), (4, 0.1))).place(5, 4)
        after = chance_of_a_new_thread(system, verbs, "after")
        assert chance_of_a_new_thread(system.for_owner(f"{owner}-2"), verbs, "other") == before > after
        system.reset_corrections()
        assert chance_of_a_new_thread(system, verbs, "reset") == before


def test_erasing_an_owner_erases_what_corrections_taught(system: MemorySystem, verbs: Wrap) -> None:
    talk(system, verbs, rye=((None, 0.9), (4, 0.1))).place(5, 4)
    assert bias(system)[2] == 1
    receipt = system.erase()
    assert (receipt.ok, receipt.rows["selector_bias"], bias(system)) == (True, 1, (0.0, 0.0, 0))


def test_a_confirmed_place_counts_like_a_correction(system: MemorySystem, verbs: Wrap) -> None:
    verb = talk(system, verbs, rye=((2, 0.4), (4, 0.3), (None, 0.3)))
    confirmed = verb.place(5, 2)
    assert (confirmed.id, confirmed.placement.reason) == (5, "kept by hand")
    assert bias(system) == (-0.1, 0.2, 1)
