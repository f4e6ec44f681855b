"""`edit`, `regenerate`, `place`: replaced messages stay in history and leave recall."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import InputError, InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.storage.schema import State

Wrap = Callable[[ChatMemory], Any]


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    memory = system.conversation("talk")
    memory.append("zebras eat grass", "they do indeed")
    memory.append("volcano eruptions", "lava everywhere")
    return memory


def states(verb: Any) -> dict[int, str]:
    return {node.id: node.state.label for node in verb.history()}


def found(verb: Any, query: str, **options: Any) -> list[str]:
    return [hit.node.message.content for hit in verb.recall(query, 10, **options) if hit.why.terms]


def test_an_edit_is_a_sibling_and_supersedes_the_message_with_its_answer(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    new = verb.edit(3, "glacier melting")
    assert (new.id, new.parent_id, new.message.content) == (5, 2, "glacier melting")
    assert states(verb) == {1: "live", 2: "live", 3: "superseded", 4: "superseded", 5: "live"}
    assert [node.superseded_by for node in verb.history()] == [None, None, 5, 5, None]
    assert verb.tip().id == 5


def test_after_an_edit_recall_finds_the_new_text_and_not_the_old(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert sorted(found(verb, "volcano lava")) == ["lava everywhere", "volcano eruptions"]
    verb.edit(3, "glacier melting")
    assert found(verb, "volcano lava") == []
    assert found(verb, "glacier") == ["glacier melting"]
    assert sorted(found(verb, "volcano lava", include_superseded=True)) == [
        "lava everywhere",
        "volcano eruptions",
    ]
    assert found(verb, "volcano", scope="owner") == []


def test_a_later_turn_stays_in_the_thread_it_was_said_in(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.edit(1, "horses eat hay")
    assert [[node.id for node in thread] for thread in verb.threads()] == [[1, 2, 3, 4], [5]]
    assert [message.content for message in verb.messages()] == ["horses eat hay"]


def test_an_edited_answer_leaves_its_question(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    new = verb.edit(4, "ash everywhere")
    assert (new.message.type, new.parent_id, states(verb)[3], states(verb)[4]) == (
        "ai",
        3,
        "live",
        "superseded",
    )


def test_an_edit_takes_plain_text_or_a_message_of_the_same_role(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert verb.edit(1, HumanMessage("other")).message.content == "other"
    with pytest.raises(InputError, match="has the role 'human', and the new version the role 'ai'"):
        verb.edit(3, AIMessage("answer"))


@pytest.mark.parametrize("given", [[], ["one", "two"], "", None])
def test_an_edit_takes_exactly_one_message(memory: ChatMemory, verbs: Wrap, given: Any) -> None:
    verb = verbs(memory)
    with pytest.raises(InputError):
        verb.edit(1, given)
    assert len(verb.history()) == 4


def test_the_same_edit_twice_is_once(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    version = HumanMessage("glacier", id="v2")
    assert verb.edit(3, version) == verb.edit(3, version)
    assert len(verb.history()) == 5


def test_an_edited_system_message_is_the_one_that_counts(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("sys"))
    verb.extend([SystemMessage("Be brief."), "Hello"])
    verb.edit(1, "Be kind.")
    verb.checkout(2)
    assert [message.content for message in verb.messages()] == ["Be kind.", "Hello"]


def test_after_the_edit_of_a_system_message_the_thread_goes_on(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("goes-on"))
    verb.extend([SystemMessage("be kind"), AIMessage("Welcome!"), HumanMessage("hi"), AIMessage("hello")])
    verb.edit(1, "be short")
    assert [message.content for message in verb.messages()] == ["be short", "Welcome!", "hi", "hello"]
    assert verb.tip().id == 4
    verb.append("bye", "see you")
    assert [[node.id for node in thread] for thread in verb.threads()] == [[1, 2, 3, 4, 6, 7]]


def test_a_regenerated_answer_stands_beside_the_old_one(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    new = verb.regenerate(4, "magma flows")
    assert [(node.id, node.parent_id, node.message.type) for node in new] == [(5, 3, "ai")]
    assert states(verb)[4] == "superseded"
    assert (found(verb, "lava"), found(verb, "magma")) == ([], ["magma flows"])
    assert verb.tip().id == 5


@pytest.mark.parametrize("node_id", [1, 2, 3, 4])
def test_any_message_of_a_turn_names_it_and_its_tool_messages_go_too(
    system: MemorySystem, verbs: Wrap, node_id: int
) -> None:
    verb = verbs(system.conversation("tools"))
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    verb.append("Q", call, ToolMessage("R", tool_call_id="c"), "A")
    again = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "d"}])
    new = verb.regenerate(node_id, [again, ToolMessage("R2", tool_call_id="d"), AIMessage("A2")])
    assert [node.parent_id for node in new] == [1, 5, 6]
    assert states(verb) == {1: "live", 2: "superseded", 3: "superseded", 4: "superseded"} | dict.fromkeys(
        (5, 6, 7), "live"
    )
    assert verb.verify().ok


def test_a_later_turn_survives_a_regenerated_answer(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.regenerate(2, "not always")
    assert [[node.id for node in thread] for thread in verb.threads()] == [[1, 2, 3, 4], [1, 5]]
    assert found(verb, "volcano") == ["volcano eruptions"]


def test_an_answer_is_regenerated_at_the_present_place_of_its_question(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    verb.place(3, None)
    [answer] = verb.regenerate(3, "ash")
    assert [node.message.content for node in verb.thread(answer.id)] == ["volcano eruptions", "ash"]
    assert sorted(found(verb, "volcano lava ash")) == ["ash", "volcano eruptions"]


@pytest.mark.parametrize("given", [[], HumanMessage("Q?"), [AIMessage("a"), SystemMessage("s")]])
def test_an_answer_is_made_of_answers(memory: ChatMemory, verbs: Wrap, given: Any) -> None:
    verb = verbs(memory)
    with pytest.raises(InputError):
        verb.regenerate(2, given)
    assert len(verb.history()) == 4


def test_what_answers_nobody_cannot_be_regenerated(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("greeting"))
    verb.extend([("ai", "Welcome!")])
    with pytest.raises(InputError, match="does not answer a human message"):
        verb.regenerate(1, "Hi!")


def test_a_placed_turn_moves_with_what_follows_it(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    new = verb.place(3, None)
    assert (new.id, new.parent_id, new.message.content) == (5, None, "volcano eruptions")
    assert [[node.id for node in thread] for thread in verb.threads()] == [[1, 2], [5, 4]]
    assert verb.thread(3)[-1].superseded_by == 5
    assert verb.tip().id == 4
    assert verb.verify().ok


def test_what_follows_a_placed_message_is_recalled_with_it(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.recall("volcano")
    verb.place(3, None)
    (hit,) = [hit for hit in verb.recall("lava", context_depth=5) if hit.why.terms]
    assert [node.id for node in hit.thread] == [5, 4]


def test_a_conversation_is_saved_and_loaded_as_it_was_moved(
    memory: ChatMemory, system: MemorySystem, verbs: Wrap, tmp_path: Path
) -> None:
    memory.place(3, None)
    memory.append("late", "turn")
    memory.save(tmp_path / "talk.json")
    copy = ChatMemory.load(tmp_path / "talk.json")
    assert [node.parent_id for node in copy.history] == [None, 1, 2, 5, None, 4, 6]
    assert copy.history == memory.history
    assert copy.verify().problems == ()


def test_a_placed_turn_is_recalled_once_and_from_its_new_place(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.recall("volcano")
    verb.place(3, None)
    hits = [hit for hit in verb.recall("volcano eruptions") if hit.why.terms]
    assert [(hit.node.id, [node.id for node in hit.thread]) for hit in hits] == [(5, [5])]


def test_older_versions_of_an_answer_move_with_its_question(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    later = verb.append("late", "turn")[0]
    regenerated = verb.regenerate(3, "lava")[0]
    placed = verb.place(3, None)
    assert [node.id for node in verb.thread(later.id)] == [placed.id, 4, later.id]
    assert [node.id for node in verb.siblings(regenerated.id)] == [4, regenerated.id]
    assert memory.verify().ok


def test_placing_where_it_is_already_changes_nothing(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert verb.place(3, 2).id == 3
    assert len(verb.history()) == 4


@pytest.mark.parametrize("parent", [1, 2, 3, 4])
def test_a_node_cannot_be_placed_below_itself(memory: ChatMemory, verbs: Wrap, parent: int) -> None:
    with pytest.raises(InvalidGraphStateError):
        verbs(memory).place(1, parent)


def test_a_turn_cannot_be_placed_between_a_tool_call_and_its_result(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.append("Q", AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}]))
    verb.checkout(4)
    late = verb.append("late", "turn")[0]
    with pytest.raises(InputError, match="calls tools"):
        verb.place(late.id, 6)


def test_what_was_replaced_cannot_be_placed(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.edit(3, "glacier")
    with pytest.raises(InputError, match="superseded and cannot be moved; pass node 5"):
        verb.place(3, None)


@pytest.mark.parametrize("change", ["edit", "regenerate", "place"])
def test_a_node_that_does_not_exist_cannot_be_revised(memory: ChatMemory, verbs: Wrap, change: str) -> None:
    with pytest.raises(NodeNotFoundError, match="no node 99"):
        getattr(verbs(memory), change)(99, None if change == "place" else "text")


def test_editing_an_old_version_again_supersedes_the_newer_one(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("c"))
    memory.append("Meet at noon", "Noon it is")
    memory.edit(1, "Meet at one")
    newest = memory.edit(1, "Meet at two")
    live = [node.message.content for node in memory.history() if node.state == State.LIVE]
    assert live == ["Meet at two"]
    assert newest.parent_id is None


def test_old_versions_name_the_one_that_is_in_their_place_now(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    for text in ("glacier", "desert", "river"):
        newest = verb.edit(3, text)
    assert [node.superseded_by for node in verb.history()[2:]] == [newest.id, 5, 6, newest.id, None]
