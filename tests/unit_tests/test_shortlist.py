"""The shortlist of turns: all of a few, the newest of many, and similar older threads."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import LocalEmbeddings, MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.features.structure import NEWEST, OLD_PATH, compared_turns, detached
from langchain_threadmem.selection.selectors import OWN_TURNS
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex
from langchain_threadmem.tree.node import ConversationNode


def grown(above: Sequence[int | None]) -> TurnIndex:
    """Turns by the positions of the turns that they continue; turn `n` ends with node `2 * n + 2`."""
    index = TurnIndex()
    for place, before in enumerate(above):
        human, answer = 2 * place + 1, 2 * place + 2
        parent = None if before is None else 2 * before + 2
        index.add([ConversationNode(human, HumanMessage(f"question {place}"), parent)])
        index.add([ConversationNode(answer, AIMessage(f"answer {place}"), human)])
    return index


def places(turns: list[TurnEnd]) -> list[int]:
    return [(end.id - 2) // 2 for end in turns]


def test_a_short_conversation_is_looked_at_whole() -> None:
    index = grown([n - 1 if n % 7 else None for n in range(NEWEST)])
    assert compared_turns(index.ends(), index, []) == compared_turns(index.ends(), index, [2]) == index.ends()


def test_of_a_long_one_the_newest_are_looked_at() -> None:
    index = grown([None] * 1000)
    assert compared_turns(index.ends(), index, []) == index.ends()[-NEWEST:]


def test_a_thread_that_rested_for_long_is_found_by_any_of_its_turns() -> None:
    index = grown([n - 1 if 0 < n < 20 else None for n in range(1000)])
    seen = places(compared_turns(index.ends(), index, [18]))
    assert {0, 8, *range(20 - OLD_PATH, 20)} <= set(seen), "its opening, what was near, and its last turns"
    assert seen[-NEWEST:] == list(range(1000 - NEWEST, 1000))
    assert seen == sorted(seen)


def test_of_a_thread_that_branched_the_end_is_where_it_went_on_last() -> None:
    index = grown([None, 0, 0, 1, *[None] * 100])
    assert places(compared_turns(index.ends(), index, [2]))[:3] == [0, 2, 104 - NEWEST]


def test_what_is_said_meanwhile_is_not_looked_at() -> None:
    index = grown([None] * 100)
    ends = index.ends()
    index.add([ConversationNode(201, HumanMessage("q"), 2), ConversationNode(202, AIMessage("a"), 201)])
    assert places(compared_turns(ends, index, [1])) == [0, *range(100 - NEWEST, 100)]


def test_what_lies_between_is_left_out_of_the_thread() -> None:
    index = grown([n - 1 if n else None for n in range(600)])
    seen = compared_turns(index.ends(), index, [201])
    above = dict(zip(places(seen), (end.previous for end in seen), strict=True))
    assert above[100] == 2, "what was near goes on with the opening"
    assert above[600 - NEWEST] == 202, "and the newest with what was near"


def test_a_turn_that_continues_one_that_is_not_there_is_a_root() -> None:
    turns = grown([None, 0, 1, 2]).ends()
    assert [end.previous for end in detached(turns[1:])] == [None, turns[1].id, turns[2].id]


@given(st.data())
def test_what_is_looked_at_is_a_small_tree_of_its_own(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, NEWEST, NEWEST + 1, 200, 700]))
    random = data.draw(st.randoms(use_true_random=False))
    index = grown([random.choice([n - 1, random.randrange(n), None]) if n else None for n in range(count)])
    turns = index.ends()
    older = [number for end in turns[:-NEWEST] for number in (end.id - 1, end.id)]
    seen = compared_turns(turns, index, random.sample(older, min(len(older), 24)))
    by_id, known = {end.id: end for end in turns}, set[int]()
    assert len(seen) <= 4 * NEWEST
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
        (role, f"{text} {n}") for n in range(NEWEST + 50) for role, text in (("user", "Add"), ("ai", "Sum"))
    ]
    assert elsewhere.extend(others)[0].parent_id == tip
    memory = system.conversation("c", node_selector=SemanticNodeSelector())
    again = memory.append(
        "How much lime went into the mortar of the garden wall?", "One part to three of sand."
    )
    assert again[0].parent_id == 2


def test_without_vectors_an_old_matter_is_found_by_its_words(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        opened = system.conversation("c", node_selector=lambda tree, message: None)
        opened.append("Which mortar did grandfather use for the garden wall?", "Lime mortar, with sand.")
        opened.append("Hello", "Good morning!")
        opened.extend([(role, f"Sum {n}") for n in range(300) for role in ("user", "ai")])
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        again = memory.append("How much lime was in the mortar of grandfather's garden wall?", "One part.")
        assert again[0].parent_id == 2


def test_a_selector_with_a_model_of_its_own_finds_what_rested(system: MemorySystem) -> None:
    opened = system.conversation("c", node_selector=lambda tree, message: None)
    opened.append("Which mortar did grandfather use for the garden wall?", "Lime mortar, with sand.")
    opened.append("Hello", "Good morning!")
    opened.extend([(role, f"Sum {n}") for n in range(OWN_TURNS // 2) for role in ("user", "ai")])
    own = SemanticNodeSelector(LocalEmbeddings())
    memory = system.conversation("c", node_selector=own)
    again = memory.append("How much lime was in the mortar of grandfather's garden wall?", "One part.")
    assert again[0].parent_id == 2
