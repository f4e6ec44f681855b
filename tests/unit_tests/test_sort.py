"""`sort` moves a whole conversation to its threads, `unsort` moves it back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import PersistenceError, ThreadMemError
from langchain_threadmem.selection.moves import sort
from langchain_threadmem.selection.moves.sort_plan import Sorter
from langchain_threadmem.storage.schema import State

Wrap = Callable[[ChatMemory], Any]
CSV, NO_HEADER = "How do I read a CSV file in pandas?", "And if the CSV file has no header?"
WINE, RED = "Which wine goes with grilled salmon?", "Is there a red wine that goes with salmon?"
IMPORTED = [
    ("user", CSV),
    ("ai", "Use pandas.read_csv with the path of the CSV file."),
    ("user", WINE),
    ("ai", "With grilled salmon a dry Riesling wine is good."),
    ("user", NO_HEADER),
    ("ai", "Then call pandas.read_csv with header=None for the CSV file."),
    ("user", RED),
    ("ai", "A light red wine, such as a Pinot Noir, goes with salmon."),
]


@pytest.fixture
def memory(url: str, owner: str) -> Any:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("imported")
        memory.extend(IMPORTED)
        yield memory


def threads(memory: ChatMemory) -> list[list[str]]:
    return [
        [str(node.message.content) for node in each if node.message.type == "human"]
        for each in memory.threads()
    ]


SORTED = [[CSV, NO_HEADER], [WINE, RED]]


def test_a_linear_conversation_is_sorted_into_its_threads(memory: ChatMemory, verbs: Wrap) -> None:
    moves = verbs(memory).sort()
    assert threads(memory) == SORTED
    assert [(move.node_id, move.old_parent_id, move.parent_id) for move in moves] == [
        (3, 2, None),
        (5, 4, 2),
        (7, 6, 4),
    ]
    assert moves[1].reason == f"returns to {CSV!r}"
    assert 0.5 < moves[1].probability <= 1.0
    assert memory.verify().ok


def test_a_second_sort_moves_nothing(memory: ChatMemory, verbs: Wrap) -> None:
    verbs(memory).sort()
    before = memory.history
    assert verbs(memory).sort() == []
    assert memory.history == before


def test_no_message_is_moved_in_a_conversation_that_is_emptied_while_it_is_sorted(
    memory: ChatMemory, verbs: Wrap
) -> None:
    def replace_all(done: int, total: int) -> None:
        memory.reset()
        memory.extend([(role, f"message {n}") for n, (role, _) in enumerate(IMPORTED)])

    assert verbs(memory).sort(progress=replace_all) == []
    assert [node.parent_id for node in memory.history] == [None, *range(1, len(IMPORTED))]


def test_turns_below_an_older_answer_move_with_its_turn(memory: ChatMemory, verbs: Wrap) -> None:
    memory.checkout(4)
    chilled = memory.append("How cold should the Riesling be?", "About ten degrees.")[0]
    memory.regenerate(3, "A Chablis.")
    verbs(memory).sort()
    thread = [str(node.message.content) for node in memory.thread(chilled.id)]
    assert thread == [WINE, IMPORTED[3][1], chilled.message.content]
    assert verbs(memory).sort() == []


def test_no_turn_is_moved_below_an_answer_that_was_superseded_meanwhile(
    memory: ChatMemory, verbs: Wrap
) -> None:
    moves = verbs(memory).sort(progress=lambda done, total: memory.regenerate(2, "Another answer."))
    assert [move.node_id for move in moves] == [3, 7]
    (move,) = verbs(memory).sort()
    assert memory.thread(move.parent_id)[-1].message.content == "Another answer."


def test_a_dry_run_returns_the_same_moves_and_changes_nothing(memory: ChatMemory, verbs: Wrap) -> None:
    before = memory.history
    planned = verbs(memory).sort(dry_run=True)
    assert memory.history == before
    assert verbs(memory).sort() == planned


def test_unsort_restores_the_threads_and_a_new_sort_sorts_again(memory: ChatMemory, verbs: Wrap) -> None:
    verb, before = verbs(memory), [message.content for message in memory.messages]
    verb.sort()
    assert len(verb.unsort()) == 3
    assert [message.content for message in memory.messages] == before
    assert verb.unsort() == []
    verb.sort()
    assert threads(memory) == SORTED


def test_unsort_leaves_a_message_that_a_later_sort_has_moved_back(
    memory: ChatMemory, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (None, 1):
        monkeypatch.setattr(
            Sorter, "_weighed", lambda self, turn, step=step: ((step and turn.end.id - step, 1.0),)
        )
        assert len(memory.sort()) == 3
    assert verbs(memory).unsort() == []


def test_the_older_places_stay_in_history_and_the_reasons_say_sorted(memory: ChatMemory) -> None:
    memory.sort()
    old = [node.id for node in memory.history if node.state is State.SUPERSEDED]
    reasons = [node.placement.reason for node in memory.history if node.placement]
    assert old == [3, 5, 7]
    assert len(reasons) == 3
    assert all(reason.startswith("sorted: ") for reason in reasons)


def test_a_message_that_a_person_placed_stays(memory: ChatMemory, verbs: Wrap) -> None:
    moved = memory.place(5, 4)
    memory.place(moved.id, None)
    verbs(memory).sort()
    assert [CSV] in threads(memory)
    assert NO_HEADER in [str(root.message.content) for root in memory.roots()]
    assert verbs(memory).unsort()
    assert NO_HEADER in [str(root.message.content) for root in memory.roots()]


def test_a_message_below_a_checked_out_node_stays(memory: ChatMemory, verbs: Wrap) -> None:
    memory.checkout(2)
    asked = memory.append("What is the capital of Portugal?", "Lisbon.")[0]
    assert asked.id not in [move.node_id for move in verbs(memory).sort()]


def test_a_turn_that_was_placed_below_a_later_turn_makes_no_circle(memory: ChatMemory, verbs: Wrap) -> None:
    memory.place(5, None)  # so that turn 2 can go below turn 4
    wine = next(node for node in memory.history if node.message.content == WINE)
    memory.place(7, 2)
    memory.place(wine.id, 8)
    verbs(memory).sort()
    assert memory.verify().ok
    assert [CSV, RED, WINE] in threads(memory)


def test_the_messages_of_a_turn_stay_together(memory: ChatMemory, verbs: Wrap) -> None:
    memory.reset()
    call = {"name": "look", "args": {}, "id": "1"}
    memory.extend(
        [
            SystemMessage("You help."),
            AIMessage("Welcome!"),
            HumanMessage(CSV),
            AIMessage("", tool_calls=[call]),
            ToolMessage("read_csv", tool_call_id="1"),
            AIMessage("Use pandas.read_csv for the CSV file."),
            HumanMessage(WINE),
            HumanMessage("I mean a white one."),
            AIMessage("A dry Riesling."),
            HumanMessage("Not answered yet"),
        ]
    )
    verbs(memory).sort()
    assert memory.verify().ok
    followed = {node.parent_id: node.message.content for node in memory.history if node.state is State.LIVE}
    wine = next(node for node in memory.history if node.message.content == WINE and node.state is State.LIVE)
    assert followed[wine.id] == "I mean a white one."
    assert wine.parent_id is None


def test_the_progress_counts_the_turns(memory: ChatMemory, verbs: Wrap) -> None:
    seen: list[tuple[int, int]] = []
    verbs(memory).sort(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_an_interrupted_sort_leaves_a_valid_tree_and_the_next_call_goes_on(
    memory: ChatMemory, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sort, "MOVED_AT_ONCE", 1)
    moved, calls = sort._moved, []

    def failing(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise PersistenceError("the power went off")
        return moved(*arguments)

    monkeypatch.setattr(sort, "_moved", failing)
    with pytest.raises(PersistenceError):
        verbs(memory).sort()
    assert memory.verify().ok
    assert len(verbs(memory).sort()) == 2
    assert threads(memory) == SORTED


def test_an_empty_conversation_has_nothing_to_sort(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("empty")
    assert (verbs(memory).sort(), verbs(memory).unsort()) == ([], [])


def test_messages_with_vectors_are_sorted(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("imported")
    memory.extend(IMPORTED)
    verbs(memory).sort()
    assert memory.verify().ok
    assert verbs(memory).sort() == []


def test_extend_selects_each_turn_like_append(system: MemorySystem, verbs: Wrap) -> None:
    chosen: list[str] = []

    def root(tree: Any, message: Any) -> None:
        chosen.append(message.content)

    memory = system.conversation("selected", node_selector=root)
    times = [datetime(2020, 1, day, tzinfo=UTC) for day in range(1, 9)]
    nodes = verbs(memory).extend(IMPORTED, times, select=True)
    assert chosen == [CSV, WINE, NO_HEADER, RED]
    assert [node.parent_id for node in nodes] == [None, 1, None, 3, None, 5, None, 7]
    assert [node.timestamp for node in nodes] == times


def test_extend_with_select_stores_messages_with_ids_once(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("selected", node_selector=lambda tree, message: None)
    messages = [HumanMessage(CSV, id="a"), AIMessage("Use pandas.", id="b"), HumanMessage(WINE, id="c")]
    for _ in range(2):
        verbs(memory).extend(messages, select=True)
    assert [(node.id, node.parent_id) for node in memory.history] == [(1, None), (2, 1), (3, None)]


def parents(memory: ChatMemory) -> dict[str | None, str | None]:
    """The message that each live message continues, by ids."""
    known = {node.id: node for node in memory.history}
    return {
        node.message.id: None if node.parent_id is None else known[node.parent_id].message.id
        for node in known.values()
        if node.state is State.LIVE
    }


VERBS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "edit", "regenerate", "place", "checkout"]),
        st.integers(1, 40),
        st.none() | st.integers(1, 40),
    ),
    min_size=4,
    max_size=16,
)


def call(memory: ChatMemory, verb: str, first: int, second: int | None) -> None:
    question, answer = (text for _, text in IMPORTED[first % 4 * 2 :][:2])
    match verb:
        case "append":
            memory.append(question, answer)
        case "edit":
            memory.edit(first, question)
        case "regenerate":
            memory.regenerate(first, AIMessage(answer))
        case "place":
            memory.place(first, second)
        case "checkout":
            memory.checkout(first)


@settings(max_examples=15, deadline=None)
@given(VERBS)
def test_sort_loses_no_message_and_unsort_restores_every_place(calls: list[tuple[str, int, Any]]) -> None:
    memory = ChatMemory(embeddings=False)
    for verb, first, second in calls:
        with suppress(ThreadMemError):  # There is no such node, or the verb does not apply to it.
            call(memory, verb, first, second)
    before = parents(memory)
    memory.sort()
    assert parents(memory).keys() == before.keys()
    memory.unsort()
    assert parents(memory) == before
    assert memory.verify().ok
    memory.close()
