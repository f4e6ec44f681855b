"""Random sequences of verbs: the tree equals dictionaries of parents, texts and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import MessageIdConflictError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree.node import MessageSummary
from torture.model import VERBS, Model

SEGMENTS = "SELECT count(*) FROM threadmem_segment s JOIN threadmem_tree t ON t.id = s.tree WHERE t.owner = "
COUNT = Statement.of(sqlite=f"{SEGMENTS} ?", postgresql=f"{SEGMENTS} %s")


def segments(system: MemorySystem) -> int:
    rows = system.runtime.database.read(lambda conn: conn.all(COUNT, system.owner))
    return int(rows[0][0])


def contents(memory: Any, node_id: int) -> list[Any]:
    return [node.message.content for node in memory.thread(node_id)]


def test_nodes_are_numbered_from_one_below_each_other(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    nodes = memory.append("a", "b") + memory.append("c", "d")
    assert [(node.id, node.parent_id) for node in nodes] == [(1, None), (2, 1), (3, 2), (4, 3)]


def test_appending_to_the_tip_makes_no_new_segment(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    for n in range(5):
        memory.append(f"q{n}", f"a{n}")
    assert segments(system) == 1


def test_an_append_goes_below_what_another_process_wrote(
    system: MemorySystem, url: str, verbs: Callable[..., Any]
) -> None:
    here = verbs(system.conversation("c"))
    with MemorySystem(url, owner=system.owner, embeddings=False) as other:
        there = verbs(other.conversation("c"))
        parents = []
        for n in range(3):
            parents += [node.parent_id for node in here.append(f"q{n}") + there.append(f"p{n}")]
        there.checkout(2)
        parents += [node.parent_id for node in here.append("q") + there.append("p")]
    assert parents == [None, 1, 2, 3, 4, 5, 2, 7]


def test_an_append_after_a_refused_one_finds_the_tip(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    memory.append(HumanMessage("q1", id="x"), "a1")
    with pytest.raises(MessageIdConflictError):
        memory.append("q2", AIMessage("other", id="x"))
    assert [(node.id, node.parent_id) for node in memory.append("q2", "a2")] == [(3, 2), (4, 3)]


def test_an_append_after_a_checkout_or_an_edit_goes_below_it(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    memory.append("q1", "a1")
    memory.append("q2", "a2")
    memory.checkout(2)
    assert memory.append("q3", "a3")[0].parent_id == 2
    assert memory.append("q4", "a4")[0].parent_id == 6
    edited = memory.edit(7, "q5")
    assert memory.append("q6", "a6")[0].parent_id == edited.id


def test_a_fork_is_one_segment(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    memory.extend(["q1", ("ai", "a1"), "q2", ("ai", "a2")])
    memory.checkout(2)
    nodes = memory.append("q3", "a3")
    assert nodes[0].parent_id == 2
    assert segments(system) == 2
    assert contents(memory, 6) == ["q1", "a1", "q3", "a3"]
    assert contents(memory, 4) == ["q1", "a1", "q2", "a2"]


def test_a_full_segment_goes_on_in_a_new_one(
    system: MemorySystem, verbs: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LAST_POSITION", 3)
    memory = verbs(system.conversation("c"))
    memory.extend(f"m{n}" for n in range(6))
    for n in range(6, 10):
        memory.append(f"m{n}")
    assert segments(system) == 3
    assert contents(memory, 10) == [f"m{n}" for n in range(10)]
    assert memory.verify().ok


def test_a_message_that_is_stored_already_does_not_take_the_key_of_a_new_one(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    memory.extend([HumanMessage("q", id="q"), AIMessage("a", id="a")])
    nodes = memory.extend([("user", "new"), HumanMessage("q", id="q"), ("user", "sibling")])
    assert [(node.id, node.parent_id) for node in nodes] == [(3, 2), (1, None), (4, 1)]
    assert memory.verify().ok


def test_the_same_append_twice_is_once(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    turn = [HumanMessage("q", id="q"), AIMessage("a", id="a")]
    assert memory.append(*turn) == memory.append(*turn)
    assert len(system.conversation("c").history) == 2


def test_a_retry_completes_a_turn_that_was_stored_in_part(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    memory.append(HumanMessage("q", id="q"))
    memory.extend([HumanMessage("other", id="o")])
    nodes = memory.append(HumanMessage("q", id="q"), AIMessage("a", id="a"))
    assert [(node.id, node.parent_id) for node in nodes] == [(1, None), (3, 1)]


def test_an_id_with_other_content_is_a_conflict_and_writes_nothing(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    raw = system.conversation("c")
    memory = verbs(raw)
    memory.append(HumanMessage("q", id="q"), "a")
    before = raw.history
    with pytest.raises(MessageIdConflictError, match="'q' is taken by node 1"):
        memory.append(HumanMessage("new", id="new"), AIMessage("other", id="q"))
    assert raw.history == before


def test_an_id_twice_in_one_call_with_other_content_is_a_conflict(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    with pytest.raises(MessageIdConflictError):
        memory.extend([HumanMessage("one", id="m"), HumanMessage("two", id="m")])


def test_the_same_system_message_again_is_ignored(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    for _ in range(2):
        memory.extend([SystemMessage("be brief"), "q"])
    assert [node.message.content for node in system.conversation("c").history] == ["be brief", "q", "q"]


def test_editing_supersedes_the_turn(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    memory.extend(["q1", ("ai", "a1"), "q2"])
    new = memory.edit(1, "q1 again")
    states = {node.id: (node.state, node.superseded_by) for node in system.conversation("c").history}
    assert new.parent_id is None
    assert states[1] == states[2] == (State.SUPERSEDED, new.id)
    assert states[3] == (State.LIVE, None)


def test_moving_keeps_summary_embedding_and_tip(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    class Titles:
        def summarize(self, message: Any) -> MessageSummary:
            return MessageSummary(title=message.content, summary="short")

    raw = system.conversation("c", summarizer=Titles())
    memory = verbs(raw)
    memory.extend(["bread", ("ai", "flour and water"), "stars", ("ai", "the pole star")])
    memory.summarize()
    memory.recall("star")
    moved = memory.place(4, 2)
    assert (moved.id, moved.parent_id) == (5, 2)
    after = {node.id: node for node in raw.history}
    assert after[5].summary == MessageSummary(title="the pole star", summary="short")
    assert (after[4].state, after[4].superseded_by) == (State.SUPERSEDED, 5)
    assert raw.tip == after[5]
    known = Statement.of(
        sqlite="SELECT count(*) FROM threadmem_embedding e JOIN threadmem_node n ON n.key = e.key "
        "JOIN threadmem_tree t ON t.id = n.tree WHERE t.owner = ?",
        postgresql="SELECT count(*) FROM threadmem_embedding e JOIN threadmem_node n ON n.key = e.key "
        "JOIN threadmem_tree t ON t.id = n.tree WHERE t.owner = %s",
    )
    assert system.runtime.database.read(lambda conn: conn.all(known, system.owner)) == [(5,)]


class Growing(RuleBasedStateMachine):
    """Random verbs on a memory and on dictionaries."""

    url: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(self.url)

    def teardown(self) -> None:
        self.model.close()

    @rule(verb=st.sampled_from(VERBS), first=st.integers(0, 1000), second=st.none() | st.integers(0, 1000))
    def step(self, verb: str, first: int, second: int | None) -> None:
        self.model.step(verb, first, second)


def test_random_growth_is_what_dictionaries_say() -> None:
    run_state_machine_as_test(Growing, settings=settings(max_examples=60, stateful_step_count=25))


@pytest.mark.postgres
def test_random_growth_on_postgresql(postgres_url: str) -> None:
    machine = type("OnPostgres", (Growing,), {"url": postgres_url})
    few = settings(
        max_examples=6,
        stateful_step_count=20,
        phases=[Phase.generate],  # a failure here is made small on SQLite, where it takes seconds
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(machine, settings=few)
