"""`append` and `extend`: accepted input, places of messages, and refused input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import DERIVED, Word
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import InputError, MessageIdConflictError, UnsupportedMessageError

Wrap = Callable[[ChatMemory], Any]


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return system.conversation("talk")


def bare() -> ChatMemory:
    return ChatMemory(embeddings=False)


def calling(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {"at": id}, "id": id} for id in ids])


def said(nodes: list[Any]) -> list[tuple[str, Any]]:
    return [(node.message.type, node.message.content) for node in nodes]


FORMS: list[Any] = [
    ("Hello", "Hi!"),
    (HumanMessage("Hello"), AIMessage("Hi!")),
    (("user", "Hello"), ("assistant", "Hi!")),
    (("human", "Hello"), ("ai", "Hi!")),
    ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}),
    ([HumanMessage("Hello"), AIMessage("Hi!")],),
    (["Hello"], ["Hi!"]),
    ([("user", "Hello"), {"role": "assistant", "content": "Hi!"}],),
    (HumanMessage("Hello"), AIMessageChunk(content="Hi!")),
    (HumanMessage("Hello"), AIMessageChunk(content="H") + AIMessageChunk(content="i!")),
]


@pytest.mark.parametrize("given", FORMS)
def test_a_turn_may_be_given_in_any_form_that_langchain_takes(given: Any) -> None:
    memory = bare()
    nodes = memory.append(*given)
    assert said(nodes) == [("human", "Hello"), ("ai", "Hi!")]
    assert [type(message) for message in memory.messages] == [HumanMessage, AIMessage]


def test_a_turn_is_stored_as_a_chain_and_returned_as_it_is_read(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    nodes = verb.append("Hello", "Hi!") + verb.append("How are you?", "Well.")
    assert [(node.id, node.parent_id) for node in nodes] == [(1, None), (2, 1), (3, 2), (4, 3)]
    assert verb.history() == nodes
    assert verb.tip() == nodes[-1]


def test_several_answers_of_one_turn_hang_below_one_another(memory: ChatMemory, verbs: Wrap) -> None:
    nodes = verbs(memory).append("Hello", "One.", "Two.", AIMessage("Three."))
    assert said(nodes) == [("human", "Hello"), ("ai", "One."), ("ai", "Two."), ("ai", "Three.")]
    assert [node.parent_id for node in nodes] == [None, 1, 2, 3]


def test_tool_calls_and_their_results_belong_to_the_turn(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    turn = [
        calling("a", "b"),
        ToolMessage("A", tool_call_id="a"),
        ToolMessage("B", tool_call_id="b"),
        "Done.",
    ]
    verb.append("Look!", *turn)
    stored = verb.messages()
    assert [message.type for message in stored] == ["human", "ai", "tool", "tool", "ai"]
    assert [call["id"] for call in stored[1].tool_calls] == ["a", "b"]
    assert [stored[2].tool_call_id, stored[3].tool_call_id] == ["a", "b"]


def test_answers_that_come_later_go_below_the_tip(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.append("Look!")
    verb.append(calling("a"))
    verb.append(ToolMessage("A", tool_call_id="a"))
    last = verb.append(AIMessage("Done."))[0]
    assert (last.id, last.parent_id) == (4, 3)


@pytest.mark.parametrize(
    "turn", [["Q", ToolMessage("r", tool_call_id="x")], [ToolMessage("r", tool_call_id="x")]]
)
def test_a_tool_result_without_its_call_is_refused(memory: ChatMemory, verbs: Wrap, turn: list[Any]) -> None:
    verb = verbs(memory)
    verb.extend(["before", calling("other")])
    with pytest.raises(InputError, match="tool call 'x'"):
        verb.append(*turn)
    assert len(verb.history()) == 2


def test_a_result_of_another_call_of_the_turn_is_refused_by_position() -> None:
    with pytest.raises(InputError, match=r"message 2 .*'b'.*\['a'\]"):
        bare().append("Q", calling("a"), ToolMessage("r", tool_call_id="b"))


@pytest.mark.parametrize("second", [HumanMessage("again"), SystemMessage("be brief")])
def test_a_second_message_that_opens_a_turn_is_refused_by_position(second: BaseMessage) -> None:
    memory = bare()
    with pytest.raises(InputError, match=f"message 2 is another {second.type} message"):
        memory.append("Hello", "Hi!", second)
    assert memory.history == []


@pytest.mark.parametrize(
    "given",
    ["", HumanMessage(""), HumanMessage([]), ("user", ""), SystemMessage(""), [], None, 7, {"content": "x"},
     ("bogus", "x"), [["nested"]], RemoveMessage(id="x")],
)  # fmt: skip
def test_what_is_no_message_or_empty_is_refused_and_nothing_is_stored(given: Any) -> None:
    memory = bare()
    with pytest.raises(InputError):
        memory.append(given)
    assert memory.history == []


@pytest.mark.parametrize("value", DERIVED)
def test_text_and_numbers_of_a_subclass_are_kept_as_their_base(
    memory: ChatMemory, verbs: Wrap, value: Any
) -> None:
    call = {"name": "look", "args": {"at": value, "all": [value]}, "id": "c"}
    said = [
        HumanMessage("x", additional_kwargs={"v": value}),
        AIMessage("", tool_calls=[call], response_metadata={"v": value}),
        ToolMessage("y", tool_call_id="c", artifact=value),
    ]
    verb = verbs(memory)
    verb.append(*said)
    back = verb.messages()
    assert [message.model_copy(update={"id": None}) for message in back] == said
    assert type(back[1].tool_calls[0]["args"]["at"]) in (str, int, float, bool)


def test_the_same_message_with_a_derived_value_is_the_same_message(memory: ChatMemory) -> None:
    human = HumanMessage("x", id="h", additional_kwargs={"v": Word("pear")})
    memory.append(human, "y")
    memory.append(memory.messages[0])
    assert len(memory.history) == 2


@pytest.mark.parametrize("text", [text for text in DERIVED if isinstance(text, str)])
def test_text_of_a_subclass_is_said_like_any_other(memory: ChatMemory, verbs: Wrap, text: str) -> None:
    nodes = verbs(memory).append(text, text)
    assert said(nodes) == [("human", "pear"), ("ai", "pear")]


def test_a_value_that_cannot_be_kept_exactly_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedMessageError, match="additional_kwargs"):
        bare().append(HumanMessage("x", additional_kwargs={"lock": object()}))


def test_the_callers_messages_get_no_id_and_may_change_afterwards(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    human, answer = HumanMessage("Hello"), AIMessage("Hi!", id="given", additional_kwargs={"k": [1]})
    nodes = verb.append(human, answer)
    assert (human.id, answer.id) == (None, "given")
    assert nodes[0].message.id
    human.content = "changed"
    answer.content = "changed"
    answer.additional_kwargs["k"].append(2)
    assert [message.content for message in verb.messages()] == ["Hello", "Hi!"]
    assert verb.messages()[1].additional_kwargs == {"k": [1]}


def test_a_message_that_was_read_may_be_changed_without_changing_the_memory(memory: ChatMemory) -> None:
    memory.append("Hello", AIMessage("Hi!", additional_kwargs={"k": [1]}))
    memory.messages[1].additional_kwargs["k"].append(2)
    memory.messages.clear()
    assert memory.messages[1].additional_kwargs == {"k": [1]}


def test_the_same_append_twice_is_once_and_gives_the_same_nodes(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    turn = HumanMessage("Hello", id="h"), AIMessage("Hi!", id="a")
    first, again = verb.append(*turn), verb.append(*turn)
    assert first == again
    assert len(verb.history()) == 2


def test_an_id_taken_by_other_content_is_refused_and_nothing_is_stored(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    verb.append(HumanMessage("Hello", id="h"))
    with pytest.raises(MessageIdConflictError, match="'h' is taken by node 1"):
        verb.append("new", AIMessage("other", id="h"))
    assert len(verb.history()) == 1


def test_the_newest_system_message_counts_and_stands_first(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.append("Hello", "Hi!")
    verb.append(SystemMessage("Be brief."))
    verb.append("More", "No.")
    verb.append(SystemMessage("Be kind."))
    assert [message.content for message in verb.messages()] == ["Be kind.", "Hello", "Hi!", "More", "No."]


def test_the_same_system_message_again_is_ignored(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    first = verb.append(SystemMessage("Be brief."))[0]
    verb.append("Hello", "Hi!")
    assert verb.append(SystemMessage("Be brief."))[0] == first
    assert len(verb.history()) == 3
    assert verb.tip().id == 3


def test_extend_stores_any_roles_as_one_chain_with_their_times(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=n) for n in range(4)]
    given = [SystemMessage("s"), "one", ("ai", "two"), HumanMessage("three")]
    nodes = verb.extend(given, [times[0], times[1].replace(tzinfo=None), *times[2:]])
    assert [node.timestamp for node in nodes] == times
    assert [(node.message.type, node.parent_id) for node in nodes] == [
        ("system", None), ("human", 1), ("ai", 2), ("human", 3),
    ]  # fmt: skip
    assert verb.history() == nodes
    assert verb.extend([]) == []


def test_extend_wants_one_timestamp_for_each_message() -> None:
    with pytest.raises(InputError, match="2 messages and 1 timestamps"):
        bare().extend(["a", ("ai", "b")], [datetime.now(UTC)])


def test_reset_empties_this_conversation_and_no_other(system: MemorySystem, verbs: Wrap) -> None:
    verb, other = verbs(system.conversation("talk")), system.conversation("other")
    other.append("stays", "here")
    verb.append("Hello", "Hi!")
    verb.reset()
    assert verb.history() == []
    assert verb.append("Again")[0].id == 1
    assert [message.content for message in other.messages] == ["stays", "here"]


def test_the_window_limits_what_is_shown_and_not_what_is_kept(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("talk", window=lambda messages: messages[-2:]))
    verb.extend([f"m{n}" for n in range(5)])
    assert [message.content for message in verb.messages()] == ["m3", "m4"]
    assert len(verb.history()) == 5


def test_a_returned_node_does_not_follow_changes_of_the_callers_message() -> None:
    message = HumanMessage("Hello", id="h")
    node = bare().append(message)[0]
    message.content = "changed"
    assert node.message.content == "Hello"


@pytest.mark.parametrize("given_id", [None, "h1"])
def test_what_a_caller_changes_while_it_waits_is_kept_as_it_was(
    system: MemorySystem, given_id: str | None
) -> None:
    async def main() -> None:
        memory = system.conversation("c")
        await memory.aappend("first")
        message = HumanMessage("as it was said", id=given_id)
        waiting = asyncio.create_task(memory.aappend(message, "noted"))
        await asyncio.sleep(0)
        message.content = "changed"
        nodes = await waiting
        assert (await memory.ahistory())[1:] == nodes
        assert nodes[0].message.content == "as it was said"
        assert message.id == given_id

    asyncio.run(main())
