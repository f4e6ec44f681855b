"""Which turns a choice looks at: all of a few, the newest of many, and old threads that are near."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.core.candidates import PATH
from langchain_threadmem.core.considering import CONSIDERED, NEWEST, considered
from langchain_threadmem.core.nodes import TurnEnd


def turn(place: int, before: int | None) -> TurnEnd:
    """The turn at a place, from 0, that continues the one at another."""
    return TurnEnd(
        2 * place + 2, None if before is None else 2 * before + 2, f"question {place}", f"answer {place}"
    )


def places(turns: list[TurnEnd]) -> list[int]:
    return [(end.id - 2) // 2 for end in turns]


def test_a_short_conversation_is_looked_at_whole() -> None:
    turns = [turn(n, n - 1 if n % 7 else None) for n in range(CONSIDERED)]
    assert considered(turns) == considered(turns, [2]) == turns


def test_of_a_long_one_the_newest_are_looked_at() -> None:
    turns = [turn(n, None) for n in range(1000)]
    assert considered(turns) == turns[-NEWEST:]


def test_a_thread_that_rested_for_long_is_found_by_any_of_its_turns() -> None:
    thread = [turn(n, n - 1 if n else None) for n in range(20)]
    turns = thread + [turn(n, None) for n in range(20, 1000)]
    seen = places(considered(turns, [turns[8].id]))
    assert {0, 8, *range(20 - PATH, 20)} <= set(seen), "its opening, what was near, and its last turns"
    assert seen[-NEWEST:] == list(range(1000 - NEWEST, 1000))
    assert seen == sorted(seen)


def test_what_lies_between_is_left_out_of_the_thread() -> None:
    turns = [turn(n, n - 1 if n else None) for n in range(600)]
    seen = considered(turns, [turns[100].id - 1])
    above = {end.id: end.previous for end in seen}
    assert above[turns[100].id] == turns[0].id, "what was near goes on with the opening"
    assert above[turns[-NEWEST].id] == turns[100].id, "and the newest with what was near"


def test_a_turn_that_is_gone_leaves_a_root() -> None:
    turns = [turn(0, None), turn(2, 1), turn(3, 2)]
    assert [end.previous for end in considered(turns)] == [None, None, turns[1].id]


@given(st.data())
def test_what_is_looked_at_is_a_small_tree_of_its_own(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, 200, CONSIDERED, CONSIDERED + 1, 700]))
    random = data.draw(st.randoms(use_true_random=False))
    turns = [turn(n, random.choice([n - 1, random.randrange(n), None]) if n else None) for n in range(count)]
    older = [number for end in turns[:-NEWEST] for number in (end.id - 1, end.id)]
    seen = considered(turns, random.sample(older, min(len(older), 24)))
    by_id, known = {end.id: end for end in turns}, set[int]()
    assert len(seen) <= 2 * CONSIDERED
    for end in seen:
        above = by_id[end.id].previous
        while above is not None and above not in known:
            above = by_id[above].previous
        assert end.previous == above, "the nearest one above it that is looked at too"
        known.add(end.id)
    assert known.issuperset(end.id for end in turns[-NEWEST:])


def test_a_matter_is_taken_up_again_after_hundreds_of_turns(system: MemorySystem) -> None:
    system.conversation("c", node_selector=lambda tree, message: None).append(
        HumanMessage("Which mortar did grandfather use for the garden wall?"),
        AIMessage("Lime mortar, one part lime to three parts sand."),
    )
    elsewhere = system.conversation("c", node_selector=lambda tree, message: None)
    tip = elsewhere.append("Hello", "Good morning!")[-1].id
    others = [
        (role, f"{text} {n}")
        for n in range(CONSIDERED + 50)
        for role, text in (("user", "Add"), ("ai", "Sum"))
    ]
    assert elsewhere.extend(others)[0].parent_id == tip
    memory = system.conversation("c", node_selector=SemanticNodeSelector())
    again = memory.append(
        "How much lime went into the mortar of the garden wall?", "One part to three of sand."
    )
    assert again[0].parent_id == 2


@pytest.mark.parametrize("ago", [CONSIDERED - 20, CONSIDERED + 20])
def test_without_vectors_the_newest_turns_are_searched_by_their_words(url: str, owner: str, ago: int) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        opened = system.conversation("c", node_selector=lambda tree, message: None)
        opened.append("Which mortar did grandfather use for the garden wall?", "Lime mortar, with sand.")
        opened.append("Hello", "Good morning!")
        opened.extend([(role, f"Sum {n}") for n in range(ago) for role in ("user", "ai")])
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        again = memory.append("How much lime was in the mortar of grandfather's garden wall?", "One part.")
        assert (again[0].parent_id == 2) == (ago < CONSIDERED)
