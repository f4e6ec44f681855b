"""Sessions: case 58, R28, R33; starting, resuming, switching and removing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from conftest import DERIVED
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, ToolMessage

from langchain_threadmem import MemorySystem, MemoryUnit
from langchain_threadmem.errors import InputError, SessionNotFoundError

Wrap = Callable[[Any], Any]


@pytest.fixture
def reopened(url: str, owner: str) -> Iterator[Callable[..., MemorySystem]]:
    """Opens the same memory again."""
    systems: list[MemorySystem] = []

    def reopen(**settings: Any) -> MemorySystem:
        systems.append(MemorySystem(url, owner=owner, embeddings=False, settings=settings))
        return systems[-1]

    yield reopen
    for system in systems:
        system.close()


def contents(units: list[MemoryUnit]) -> list[str]:
    return [unit.content for unit in units]


def links(units: list[MemoryUnit]) -> list[tuple[str | None, str | None]]:
    return [(unit.pre_id, unit.next_id) for unit in units]


def test_case_58_the_context_is_the_end_of_the_session(reopened: Any, verbs: Wrap) -> None:
    verb = verbs(reopened(max_context_length=3))
    units = [verb.add_memory(f"m{n}") for n in range(8)]
    assert contents(verb.get_context()) == ["m5", "m6", "m7"]
    assert contents(verb.get_context(2)) == ["m6", "m7"]
    assert contents(verb.get_context(99)) == ["m5", "m6", "m7"]
    assert verb.get_context(0) == []
    with pytest.raises(InputError, match="length=-1"):
        verb.get_context(-1)
    ids = [None, *(unit.id for unit in units), None]
    whole = [verb.unit(unit.id) for unit in units]
    assert links(whole) == list(zip(ids, ids[2:], strict=False))


def test_r28_what_is_added_is_stored_at_once(reopened: Any, verbs: Wrap) -> None:
    verb = verbs(reopened())
    added = verb.add_memory("I live in Lisbon.", source="user", metadata={"mood": "calm"})
    other = reopened()  # while the first is still open
    assert other.start_session("LATEST") == added.group_id
    assert other.get_context() == [added]
    assert other.conversation(added.group_id).messages[0].content == "I live in Lisbon."


@pytest.mark.parametrize(
    ("content", "source", "expected", "kind"),
    [
        ("text", None, "ai", AIMessage),
        ("text", "ai", "ai", AIMessage),
        ("text", "user", "user", HumanMessage),
        ("text", "human", "user", HumanMessage),
        ("text", "system", "system", None),
        ("text", "narrator", "narrator", ChatMessage),
        (HumanMessage("text"), None, "user", HumanMessage),
        (AIMessage("text"), None, "ai", AIMessage),
        (ChatMessage("text", role="critic"), None, "critic", ChatMessage),
        (HumanMessage("text"), "user", "user", HumanMessage),
    ],
)
def test_r33_text_is_the_ais_and_a_message_knows_its_source(
    system: MemorySystem, content: Any, source: str | None, expected: str, kind: type | None
) -> None:
    unit = system.add_memory(content, source)
    assert (unit.source, unit.content, unit.rank) == (expected, "text", 0)
    stored = system.conversation(unit.group_id or "").history[0].message
    assert kind is None or type(stored) is kind
    assert type(unit.to_message()) is type(stored)


def test_a_source_that_is_not_the_messages_is_refused(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="source='ai' does not go with a HumanMessage"):
        system.add_memory(HumanMessage("text"), "ai")
    for nothing in ("", "  ", None, 7):
        with pytest.raises(InputError, match="text that is not empty"):
            system.add_memory(nothing)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", DERIVED)
def test_metadata_of_a_subclass_of_text_or_numbers_is_kept_and_filtered_by_its_base(
    system: MemorySystem, verbs: Wrap, value: Any
) -> None:
    memory = verbs(system)
    unit = memory.add_memory("a green pear", source="user", metadata={"v": value, "all": [value]})
    assert unit.metadata == {"v": value, "all": [value]}
    found = memory.query("a green pear", filters={"metadata.v": value})
    assert [unit.content for chain in found for unit in chain] == ["a green pear"]


def test_time_and_metadata_are_kept(system: MemorySystem, verbs: Wrap) -> None:
    verb, said = verbs(system), datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    message = HumanMessage("Hello", additional_kwargs={"lang": "en"}, id="h1")
    unit = verb.add_memory(message, creation_time=said, metadata={"action": "speak"})
    assert (unit.id, unit.creation_time, unit.end_time) == ("h1", said, said)
    assert unit.metadata == {"lang": "en", "action": "speak"}
    assert message.additional_kwargs == {"lang": "en"}
    assert unit.node_id == 1


def test_a_message_with_an_id_is_added_once(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    first = verb.add_memory(HumanMessage("Hello", id="h1"))
    assert verb.add_memory(HumanMessage("Hello", id="h1")) == first
    assert len(verb.get_context()) == 1


def test_units_can_be_kept_from_being_forgotten(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    assert verb.add_memory("a", never_delete=True).never_delete
    assert not verb.add_memory("b").never_delete
    assert [unit.never_delete for unit in verb.get_context()] == [True, False]


def test_messages_of_a_conversation_are_units_of_its_session(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("talk", node_selector=lambda tree, message: None)
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    memory.append("q1", call, ToolMessage("r", tool_call_id="c"), "a1")
    memory.append("q2", "a2")
    verb = verbs(system)
    verb.start_session("talk")
    units = verb.get_context()
    assert [(unit.source, unit.content) for unit in units] == [
        *[("user", "q1"), ("ai", ""), ("tool", "r"), ("ai", "a1")],
        *[("user", "q2"), ("ai", "a2")],
    ]
    # The sequence of the session, also from thread to thread.
    assert [unit.pre_id for unit in units] == [None, *(unit.id for unit in units[:-1])]
    memory.edit(5, "q3")
    assert contents(verb.get_context()) == ["q1", "", "r", "a1", "q3"]
    assert verb.get_context()[-1].pre_id == units[3].id


def test_without_a_session_the_first_memory_starts_one(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    assert (system.session_id, verb.sessions(), verb.get_context()) == (None, [], [])
    unit = verb.add_memory("Hello")
    assert system.session_id == unit.group_id
    assert verb.sessions() == [unit.group_id]


def test_sessions_are_started_resumed_and_switched(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    first = verb.start_session()
    verb.add_memory("one")
    assert verb.start_session("second") == "second"
    assert verb.sessions() == [first, "second"]
    verb.add_memory("two")
    assert verb.switch_session(first) == first
    verb.add_memory("three")
    assert contents(verb.get_context()) == ["one", "three"]
    assert verb.start_session("second") == verb.switch_session("second") == "second"
    assert contents(verb.get_context()) == ["two"]
    assert verb.start_session("LATEST") == verb.switch_session("LATEST") == first


def test_latest_begins_a_session_where_there_is_none(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    with pytest.raises(SessionNotFoundError, match="'LATEST'"):
        verb.switch_session("LATEST")
    assert verb.start_session("LATEST") == system.session_id != "LATEST"


def test_a_session_that_is_not_there_cannot_be_switched_to_nor_removed(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = verbs(system)
    verb.start_session("here")
    for call in (verb.switch_session, verb.remove_session):
        with pytest.raises(SessionNotFoundError, match="'nowhere'"):
            call("nowhere")
        with pytest.raises(InputError, match="a session id"):
            call("")
    assert system.session_id == "here"
    with pytest.raises(InputError, match="cascade='all'"):
        verb.remove_session("here", cascade="all")


def test_a_removed_session_is_not_the_one_at_hand_any_more(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    verb.start_session("kept")
    verb.add_memory("stays")
    verb.start_session("gone")
    verb.add_memory("goes")
    verb.remove_session("gone")
    assert system.session_id is None
    assert verb.sessions() == ["kept"]
    assert verb.add_memory("new").group_id not in ("kept", "gone")
    assert contents(verb.get_context()) == ["new"]


def test_the_placeholder_of_the_latest_session_removes_no_session(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system)
    verb.start_session("monday")
    verb.add_memory("stays")
    with pytest.raises(SessionNotFoundError, match="'LATEST'"):
        verb.remove_session("LATEST")
    assert verb.sessions() == ["monday"]


def test_no_owner_sees_the_sessions_of_another(system: MemorySystem, url: str, owner: str) -> None:
    system.start_session("mine")
    system.add_memory("secret")
    with MemorySystem(url, owner=f"{owner}x", embeddings=False) as other:
        assert other.sessions() == []
        with pytest.raises(SessionNotFoundError):
            other.switch_session("mine")
        other.start_session("mine")
        assert other.get_context() == []
        other.add_memory("theirs")
        other.remove_session("mine")
    assert contents(system.get_context()) == ["secret"]
