"""`forget`: the least important units leave memory, stay in history, and leave no dangling link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import networkx as nx
import pytest
from conftest import StreamCipher, WordEmbeddings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.maintenance.removal import forgettable
from langchain_threadmem.maintenance.removal.forgettable import ForgettableUnit
from langchain_threadmem.maintenance.removal.scores import centrality, decay, least_important
from langchain_threadmem.storage.statements import Statement

Wrap = Callable[[Any], Any]
ANY = (None, None)
START = datetime(2026, 1, 1, tzinfo=UTC)


def fill(system: MemorySystem, count: int, session: str = "s", **options: Any) -> list[str]:
    """Adds facts, the oldest first, and returns their ids."""
    system.start_session(session)
    return [
        system.add_memory(f"fact number{n}", creation_time=START + timedelta(minutes=n), **options).id
        for n in range(count)
    ]


def remembered(system: Any, text: str = "fact") -> set[str]:
    """The ids of the messages that a query finds."""
    found = system.query(
        text, filters={"rank": 0}, k_limit=1000, search_range=ANY, recall_context=False, long_term_only=True
    )
    return {chain[0].id for chain in found}


@pytest.mark.parametrize(("count", "share", "gone"), [(25, 0.1, 2), (3, 0.1, 1), (25, 0, 0), (4, 1, 4)])
def test_case_57_a_share_of_the_units_is_forgotten_the_oldest_first(
    system: MemorySystem, verbs: Wrap, count: int, share: float, gone: int
) -> None:
    ids = fill(system, count)
    done = verbs(system).forget(share)
    assert (done.units, done.left, done.purged) == (gone, count - gone, False)
    assert remembered(system) == set(ids[gone:])


@pytest.mark.parametrize("share", [1.5, -0.1, float("nan"), "0.1", None.__class__, True])
def test_case_57_a_share_is_from_0_to_1(system: MemorySystem, verbs: Wrap, share: Any) -> None:
    fill(system, 1)
    with pytest.raises(ValueError, match="0 to 1"):
        verbs(system).forget(share)


@pytest.mark.parametrize("most", [-1, "10", 2.5])
def test_a_number_of_units_to_keep_is_a_number_and_nothing_is_forgotten(
    system: MemorySystem, verbs: Wrap, most: Any
) -> None:
    fill(system, 3)
    with pytest.raises(InputError, match="max_units"):
        verbs(system).forget(0.5, max_units=most, until_below=True)
    assert len(remembered(system)) == 3


def test_case_57_r23_the_order_is_last_visit_then_visits_then_age(system: MemorySystem, verbs: Wrap) -> None:
    ids = fill(system, 6)

    def visit(number: int) -> None:
        system.query("fact", filters={"id": ids[number]}, search_range=ANY)

    visit(0)
    visit(1)
    visit(0)
    visit(2)
    order = [3, 4, 5, 1, 0, 2]
    for number in order:
        assert verbs(system).forget(0.0001).units == 1
        left = {unit.id for unit in system.get_context()}
        assert left == {ids[n] for n in order[order.index(number) + 1 :]}


def test_equal_visits_go_by_their_number(system: MemorySystem) -> None:
    ids = fill(system, 3)
    both = {"id": {"$in": ids[:2]}}
    system.query("fact", filters={"id": ids[0]}, search_range=ANY)
    system.query("fact", filters=both, search_range=ANY)
    system.forget(0.01)
    system.forget(0.01)
    assert remembered(system) == {ids[0]}


def test_case_57_what_is_never_to_be_deleted_survives(system: MemorySystem, verbs: Wrap) -> None:
    system.start_session("s")
    kept = system.add_memory("fact of stone", never_delete=True).id
    fill(system, 3)
    assert verbs(system).forget(1).units == 3
    assert remembered(system) == {kept}


def test_case_57_the_lists_of_parents_and_sessions_are_updated(system: MemorySystem, verbs: Wrap) -> None:
    ids = fill(system, 5)
    system.summarize_session("s")
    system.forget(0.4)
    assert verbs(system).unit("s").children_ids == tuple(ids[2:])
    assert [unit.id for unit in verbs(system).get_context()] == ids[2:]
    assert [unit.id for unit in verbs(system).unfold("s")] == ids[2:]


def test_neighbours_are_linked_past_what_was_forgotten(system: MemorySystem, verbs: Wrap) -> None:
    ids = fill(system, 4)
    for kept in (0, 3):
        system.query("fact", filters={"id": ids[kept]}, search_range=ANY)
    system.forget(0.5)
    first, last = verbs(system).get_context()
    assert (first.id, first.pre_id, first.next_id) == (ids[0], None, ids[3])
    assert (last.id, last.pre_id, last.next_id) == (ids[3], ids[0], None)
    [chain] = verbs(system).query("fact", filters={"id": ids[0]}, search_range=ANY)
    assert [unit.id for unit in chain] == [ids[0], ids[3]]


def test_what_is_forgotten_stays_in_history(system: MemorySystem, verbs: Wrap) -> None:
    fill(system, 4)
    before = system.conversation("s").history
    verbs(system).forget(1)
    conversation = system.conversation("s")
    assert conversation.history == before
    assert len(conversation.messages) == 4
    assert system.verify().ok


@pytest.mark.usefixtures("chroma")
def test_what_is_forgotten_is_in_no_index(system: MemorySystem, verbs: Wrap) -> None:
    fill(system, 4)
    conversation = system.conversation("s")
    assert remembered(system)
    assert conversation.recall("number0")
    verbs(system).forget(0.5)
    again = verbs(conversation)
    for scope in ("conversation", "owner"):
        assert {hit.node.id for hit in again.recall("fact number0", scope=scope)} == {3, 4}
    runtime = system.runtime
    held, words, mark = runtime.database.read(
        lambda conn: (
            embeddings.of_owner(conn, system.owner, "words"),
            lexicon.holding(conn, ["fact"], lexicon.LexiconScope(system.owner))[0],
            watermarks.total(conn, system.owner, runtime.get(Indexes).lexicon),
        )
    )
    assert len(held.keys) == len(words) == mark.documents == 2
    assert mark.words == 4
    index = runtime.get(Indexes).index()
    assert index is None or set(index.keys()) == set(held.keys.tolist())


@pytest.mark.parametrize("kind", ["encrypted", "read-only"])
def test_a_forgotten_message_takes_the_place_of_no_hit(url: str, owner: str, verbs: Wrap, kind: str) -> None:
    cipher = StreamCipher() if kind == "encrypted" else None
    with MemorySystem(url, owner=owner, embeddings=False, cipher=cipher) as system:
        conversation = system.conversation("s")
        conversation.append("rye bread", "warm")
        conversation.append("more bread", "cold")
        assert system.forget(0.1).units == 1
    read_only = kind == "read-only"
    with MemorySystem(url, owner=owner, embeddings=False, cipher=cipher, read_only=read_only) as system:
        verb = verbs(system.conversation("s"))
        hits = verb.recall("rye bread", n_results=1, include_superseded=True)
        assert [hit.node.id for hit in hits] == [3]


def test_what_is_forgotten_before_it_was_indexed_is_never_indexed(system: MemorySystem) -> None:
    ids = fill(system, 4)
    system.forget(0.5)
    assert remembered(system) == set(ids[2:])
    assert {hit.node.id for hit in system.conversation("s").recall("fact")} == {3, 4}


def test_an_emptied_conversation_can_be_erased_after_forgetting(system: MemorySystem) -> None:
    fill(system, 4)
    assert remembered(system)
    system.forget(0.5)
    system.conversation("s").reset()
    fill(system, 2)
    assert len(remembered(system)) == 2
    assert system.verify().ok


def test_r26_summaries_go_once_they_are_empty_and_the_topmost_never(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, settings={"max_group_size": 2}) as system:
        fill(system, 4)
        root = system.summarize_session("s")
        assert root is not None
        assert len(root.children_ids) == 2
        system.summarize_long_term_memory()
        assert verbs(system).forget(1).units == 4
        assert len(system.unit("s").children_ids) == 2
        assert verbs(system).forget(1).units == 2
        assert system.unit("s").children_ids == ()
        assert verbs(system).forget(1).units == 0
        assert system.unit(owner).rank == 2


def test_r24_a_visit_keeps_the_summary_above(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, settings={"max_group_size": 2}) as system:
        ids = fill(system, 4)
        root = system.summarize_session("s")
        assert root is not None
        system.query("number3", filters={"id": ids[3]})
        first, second = (system.unit(child) for child in root.children_ids)
        assert (first.last_visit, second.last_visit) == (0, 1)
        system.forget(1)
        system.forget(0.5)
        assert system.unit("s").children_ids == (second.id,)


def test_r27_one_pass_at_a_time_or_until_there_is_room(system: MemorySystem, verbs: Wrap) -> None:
    fill(system, 10)
    assert verbs(system).forget(0.1, max_units=10).units == 0
    assert verbs(system).forget(0.1, max_units=5).units == 1
    done = verbs(system).forget(0.1, max_units=5, until_below=True)
    assert (done.units, done.left) == (4, 5)


def test_r27_until_below_ends_when_nothing_may_go(system: MemorySystem, verbs: Wrap) -> None:
    fill(system, 3, never_delete=True)
    assert verbs(system).forget(0.5, max_units=1, until_below=True).units == 0


def test_adding_forgets_when_there_are_too_many(url: str, owner: str, verbs: Wrap) -> None:
    limits = {"max_units": 10, "saving_interval": 4, "forget_percentage": 0.25}
    with MemorySystem(url, owner=owner, embeddings=False, settings=limits) as system:
        adding = verbs(system)
        sizes = []
        for number in range(20):
            adding.add_memory(f"fact number{number}")
            sizes.append(system.runtime.database.read(lambda conn: forgettable.size(conn, owner)))
        assert sizes[:11] == list(range(1, 12))
        assert sizes[11:] == [9, 10, 11, 12, 10, 11, 12, 13, 11][: len(sizes[11:])]


def test_no_limit_forgets_nothing(url: str, owner: str) -> None:
    limits = {"max_units": 0, "saving_interval": 1}
    with MemorySystem(url, owner=owner, embeddings=False, settings=limits) as system:
        fill(system, 5)
        assert len(remembered(system)) == 5


def test_other_owners_forget_nothing(system: MemorySystem, url: str, owner: str, verbs: Wrap) -> None:
    ids = fill(system, 3)
    with MemorySystem(url, owner=f"{owner}x", embeddings=WordEmbeddings()) as other:
        fill(other, 3)
        assert verbs(other).forget(1).units == 3
    assert remembered(system) == set(ids)


def test_a_scorer_says_what_is_important(system: MemorySystem, verbs: Wrap) -> None:
    ids = fill(system, 4)

    def newest_first(units: Sequence[ForgettableUnit]) -> list[float]:
        return [-unit.created for unit in units]

    assert verbs(system).forget(0.5, scorer=newest_first).units == 2
    assert remembered(system) == set(ids[:2])
    with pytest.raises(InputError, match="scores"):
        verbs(system).forget(0.5, scorer=lambda units: [])


def test_decay_weighs_visits_against_their_age(system: MemorySystem) -> None:
    ids = fill(system, 3)
    for number in (0, 0, 0, 0, 1):
        system.query("fact", filters={"id": ids[number]}, search_range=ANY)
    system.forget(0.4, scorer=decay(half_life=100))
    assert remembered(system) == {ids[0], ids[1]}
    system.forget(0.5, scorer=decay(half_life=100))
    assert remembered(system) == {ids[0]}


def test_centrality_keeps_what_others_hang_on(system: MemorySystem) -> None:
    conversation = system.conversation("s")
    root = conversation.append("fact of the matter", "fact one")
    for number in range(3):
        conversation.checkout(root[1].id)
        conversation.append(f"fact branch{number}", f"fact leaf{number}")
    system.forget(0.5, scorer=centrality())
    assert 2 in {hit.node.id for hit in conversation.recall("fact", n_results=9)}
    left = {hit.node.message.content for hit in conversation.recall("fact", n_results=9)}
    assert not any("leaf" in text for text in left)
    system.forget(0.4, scorer=centrality(nx.closeness_centrality))


def test_equal_scores_keep_the_usual_order() -> None:
    units = [ForgettableUnit(key, None, None, 0, 0, 0, 0.0, 0) for key in (5, 3, 9)]
    assert least_important(units, lambda found: [0.0] * len(found), 2) == [5, 3]


def test_forgetting_ten_percent_is_one_statement(system: MemorySystem) -> None:
    fill(system, 30)
    ran: list[str] = []
    every = Statement.of(sqlite="SELECT 1", postgresql="SELECT 1")

    def write(conn: Any) -> None:
        run = conn.all
        conn.run(every)

        class Counted:
            dialect = conn.dialect

            def all(self, statement: Statement, *values: Any) -> Any:
                ran.append(statement.sql(conn.dialect))
                return run(statement, *values)

        assert len(forgettable.forget(Counted(), system.owner, 3, 1.0)) == 3  # type: ignore[arg-type]
        raise KeyError

    with pytest.raises(KeyError):
        system.runtime.database.write(write)
    assert len(ran) == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_forgetting_never_leaves_a_dangling_link(data: st.DataObject) -> None:
    limits = {"max_group_size": 3, "max_context_length": 1000}
    with MemorySystem(embeddings=False, settings=limits) as system:
        for session in data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3)):
            system.start_session(session)
            for number in range(data.draw(st.integers(1, 7))):
                system.add_memory(f"fact {number}", never_delete=data.draw(st.booleans()))
            if data.draw(st.booleans()):
                system.summarize_session(session)
        if data.draw(st.booleans()):
            system.summarize_long_term_memory()
        for _ in range(data.draw(st.integers(1, 4))):
            if data.draw(st.booleans()):
                system.query(f"fact {data.draw(st.integers(0, 6))}", k_limit=2)
            system.forget(data.draw(st.floats(0, 1)), purge=data.draw(st.booleans()))
            assert_whole(system)
            if data.draw(st.booleans()):
                system.summarize_long_term_memory()
                assert_whole(system)


def assert_whole(system: MemorySystem) -> None:
    """Every link of every unit leads to a unit, and back."""
    found = {}
    for session in system.conversations():
        system.switch_session(session)
        units = system.get_context(1000)
        found.update({(unit.group_id, unit.id): unit for unit in units})
        for before, after in zip([None, *units], [*units, None], strict=True):
            if before is not None:
                assert before.next_id == (after.id if after is not None else None)
            if after is not None:
                assert after.pre_id == (before.id if before is not None else None)
        for unit in units:
            if unit.parent_id is not None:
                assert unit.id in system.unit(unit.parent_id).children_ids
    assert system.verify().ok
    for unit in system.query("fact", k_limit=99, recall_context=False):
        for child in unit[0].children_ids:
            assert system.unit(child).parent_id == unit[0].id
    everything = [chain[0] for chain in system.query("fact", k_limit=99, recall_context=False)]
    assert {unit.id for unit in everything if unit.rank == 0} <= {name for _, name in found}
