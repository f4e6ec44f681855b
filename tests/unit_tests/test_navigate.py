"""Verbs by message: siblings, versions, the fork point, the thread of a message, switching to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, ConversationNode, MemorySystem
from langchain_threadmem.errors import InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes
from langchain_threadmem.tree.node import State

Wrap = Callable[[ChatMemory], Any]
SHOWN = (State.LIVE, State.SUPERSEDED)


@pytest.fixture
def memory(system: MemorySystem, verbs: Wrap) -> Any:
    return verbs(system.conversation("talk"))


def texts(nodes: Sequence[ConversationNode]) -> list[str]:
    return [str(node.message.content) for node in nodes]


def test_edits_and_forks_of_a_question_are_siblings(memory: Any) -> None:
    _, answer = memory.append("Hello", "Hi!")
    bread, _ = memory.append("And bread?", "Bread.")
    memory.edit(bread.id, "And rye bread?")
    memory.checkout(answer.id)
    memory.append("And tea?", "Tea.")
    assert texts(memory.siblings(bread.id)) == ["And bread?", "And rye bread?", "And tea?"]
    assert texts(memory.versions(bread.id)) == ["And bread?", "And rye bread?"]


def test_siblings_of_a_root_are_the_other_roots(memory: Any) -> None:
    first, _ = memory.append("Hello", "Hi!")
    second, _ = memory.append("Tea", "Green.")
    memory.place(second.id, None)
    assert texts(memory.siblings(first.id)) == ["Hello", "Tea"]


def test_regenerated_answers_are_versions(memory: Any) -> None:
    human, answer = memory.append("Hello", "Hi!")
    memory.regenerate(human.id, "Good day!")
    memory.regenerate(human.id, "Good morning!")
    assert texts(memory.versions(answer.id)) == ["Hi!", "Good day!", "Good morning!"]


def test_a_message_is_found_by_its_own_id(memory: Any) -> None:
    memory.append(HumanMessage("Hello", id="h1"), AIMessage("Hi!", id="a1"))
    assert texts(memory.thread_of("h1")) == ["Hello", "Hi!"]
    assert texts(memory.siblings("a1")) == ["Hi!"]


def test_an_unknown_message_is_named(memory: Any) -> None:
    memory.append("Hello", "Hi!")
    for verb in (memory.siblings, memory.versions, memory.fork_point, memory.thread_of, memory.switch):
        with pytest.raises(NodeNotFoundError, match="'nowhere'"):
            verb("nowhere")
        with pytest.raises(NodeNotFoundError, match="7"):
            verb(7)


def test_switching_makes_a_thread_active_and_the_next_message_continues_it(memory: Any) -> None:
    _, answer = memory.append("Hello", "Hi!")
    bread, _ = memory.append("And bread?", "Bread.")
    memory.checkout(answer.id)
    memory.append("And tea?", "Tea.")
    assert memory.switch(bread.message.id).message.content == "Bread."
    memory.append("More?", "Yes.")
    shown = [message.content for message in memory.messages()]
    assert shown == ["Hello", "Hi!", "And bread?", "Bread.", "More?", "Yes."]


def test_an_old_version_can_be_looked_at_again(memory: Any) -> None:
    human, answer = memory.append("Hello", "Hi!")
    memory.regenerate(human.id, "Good morning!")
    assert texts(memory.thread_of(answer.id)) == ["Hello", "Hi!"]
    assert texts(memory.thread_of(human.id)) == ["Hello", "Good morning!"]


def test_the_thread_of_a_moved_message_contains_its_answer(memory: Any) -> None:
    memory.append("Hello", "Hi!")
    bread, _ = memory.append("And bread?", "Bread.")
    moved = memory.place(bread.id, None)
    assert texts(memory.thread_of(moved.id)) == ["And bread?", "Bread."]
    assert memory.switch(moved.id).message.content == "Bread."


def test_a_revived_version_replaces_the_version_that_replaced_it(memory: Any) -> None:
    human, answer = memory.append("Hello", "Hi!")
    memory.regenerate(human.id, "Good day!")
    newest = memory.regenerate(human.id, "Good morning!")[0]
    assert memory.switch(answer.id, revive=True) == answer
    assert texts(memory.threads()[0]) == ["Hello", "Hi!"]
    assert [node.state for node in memory.versions(answer.id)] == [State.LIVE, *[State.SUPERSEDED] * 2]
    assert memory.switch(newest.id, revive=True).state is State.LIVE
    assert texts(memory.threads()[0]) == ["Hello", "Good morning!"]
    assert texts(memory.versions(answer.id)) == ["Hi!", "Good day!", "Good morning!"]


def test_a_selector_continues_a_revived_version(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk", node_selector=lambda tree, _: tree.turn_ends()[-1].id))
    human, answer = memory.append("Hello", "Hi!")
    memory.regenerate(human.id, "Good day!")
    memory.switch(answer.id, revive=True)
    memory.append("Tea?", "Green.")
    assert [message.content for message in memory.messages()] == ["Hello", "Hi!", "Tea?", "Green."]


def test_a_revived_question_comes_with_its_answers_and_later_turns(memory: Any) -> None:
    human, _ = memory.append("Hello", "Hi!", ("ai", "How are you?"))[:2]
    tea, _ = memory.append("Tea?", "Green.")
    edited = memory.edit(human.id, "Good day")
    memory.append(("ai", "Good day!"))
    memory.switch(human.id, revive=True)
    shown = ["Hello", "Hi!", "How are you?", "Tea?", "Green."]
    assert [texts(thread) for thread in memory.threads()] == [shown]
    assert texts(memory.thread_of(tea.id)) == shown
    memory.switch(edited.id, revive=True)
    assert texts(memory.threads()[-1]) == ["Good day", "Good day!"]


def test_reviving_a_version_leaves_a_moved_message_in_its_place(memory: Any) -> None:
    human, answer = memory.append("Hello", "Hi!")
    bread, _ = memory.append("And bread?", "Bread.")
    memory.place(bread.id, None)
    memory.regenerate(human.id, "Good day!")
    assert memory.switch(answer.id, revive=True) == answer
    assert sorted(map(texts, memory.threads())) == [["And bread?", "Bread."], ["Hello", "Hi!"]]
    memory.switch(bread.id, revive=True)
    assert sorted(map(texts, memory.threads())) == [["And bread?", "Bread."], ["Hello", "Hi!"]]


def test_the_roots_are_read_without_the_messages_below_them(
    system: MemorySystem, verbs: Wrap, counted_rows: Callable[[], list[int]]
) -> None:
    memory = verbs(system.conversation("talk", node_selector=lambda tree, _: None))
    first, _ = memory.append("Hello", "Hi!")
    memory.extend(f"message {number}" for number in range(20))
    memory.append("And bread?", "Bread.")
    edited = memory.edit(first.id, "Good day")
    counts = counted_rows()
    assert texts(memory.roots()) == ["Hello", "And bread?", edited.message.content]
    assert max(counts) == 3


def test_the_cost_of_reviving_a_version_does_not_depend_on_other_threads(tmp_path: Path) -> None:
    steps: list[int] = []
    for size in (10, 1000):
        with MemorySystem(tmp_path / f"{size}.db", embeddings=False) as system:
            memory = system.conversation("talk", node_selector=lambda tree, _: None)
            memory.extend(f"message {number}" for number in range(size))
            human, answer = memory.append("Hello", "Hi!")
            memory.regenerate(human.id, "Good day!")
            steps.append(0)

            def count() -> None:
                steps[-1] += 1

            database = system.resources.database
            assert isinstance(database, SqliteDatabase)
            assert database._writer is not None
            database._writer.set_progress_handler(count, 1)
            memory.switch(answer.id, revive=True)
    few, many = steps
    assert many < few + 500, "one step is an instruction of SQLite"


def grown(memory: ChatMemory, rng: random.Random, steps: int) -> None:
    """A conversation of turns, forks, edits, regenerated answers and moved turns."""
    memory.append("q", "a")
    for number in range(steps):
        live = [node for node in memory.history if node.state is State.LIVE]
        humans, answers = ([node for node in live if node.message.type == role] for role in ("human", "ai"))
        if not answers:
            memory.append(f"turn {number}", f"answer {number}")
            continue
        human, answer = rng.choice(humans), rng.choice(answers)
        match rng.randrange(8):
            case 0:
                memory.edit(human.id, f"edit {number}")
            case 1:
                memory.regenerate(human.id, f"anew {number}")
            case 2:
                try:
                    memory.place(human.id, answer.id)
                except InvalidGraphStateError:
                    continue  # It would have hung below itself.
            case 3 | 4:
                memory.checkout(answer.id)
                memory.append(f"fork {number}", f"answer {number}")
            case _:
                memory.append(f"turn {number}", f"answer {number}")


@pytest.mark.parametrize("seed", range(4))
def test_each_verb_agrees_with_the_history(system: MemorySystem, seed: int) -> None:
    memory = system.conversation("talk")
    grown(memory, random.Random(seed), 40)
    history = memory.history
    assert memory.roots() == [node for node in graph.living(history) if node.parent_id is None]
    by_id = {node.id: node for node in history}
    below: dict[int | None, list[ConversationNode]] = {}
    for node in history:
        below.setdefault(node.parent_id, []).append(node)
    for node in history:
        beside = [one for one in below[node.parent_id] if one.message.type == node.message.type]
        assert memory.siblings(node.id) == [one for one in beside if one.state in SHOWN]
        above = by_id.get(node.parent_id or 0)
        while above is not None and sum(one.state in SHOWN for one in below[above.id]) < 2:
            above = by_id.get(above.parent_id or 0)
        assert memory.fork_point(node.id) == above
        end, inside = node.id, [node.id]
        while inside:  # A node that was moved has a higher number than the nodes below it.
            end, inside, waiting = max(inside), [], list(below.get(max(inside), ()))
            while waiting:
                one = waiting.pop()
                inside += [one.id] if one.state <= max(node.state, State.LIVE) else []
                waiting += below.get(one.id, ())
        assert memory.thread_of(node.id)[-1].id == end


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_ancestor_of_a_node_is_found_among_any_others(system: MemorySystem, seed: int) -> None:
    memory, rng = system.conversation("talk"), random.Random(seed)
    grown(memory, rng, 40)
    by_id = {node.id: node for node in memory.history}
    chosen = set(rng.sample(sorted(by_id), len(by_id) // 3))

    def read(conn: Conn) -> dict[int, int | None]:
        rows = nodes.since(conn, memory._conversation.tree)
        return nodes.nearest_above(conn, [row for row in rows if row.seq in chosen])

    above = {n: [node.id for node in graph.path(by_id, n)[:-1] if node.id in chosen] for n in chosen}
    assert system.runtime.database.read(read) == {n: (found or [None])[-1] for n, found in above.items()}
