"""Group chats: several people in one conversation, who answer each other more often than the bot does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.choice import Choice
from langchain_threadmem.selection.group_chat import GroupChat, choose_in_group
from langchain_threadmem.selection.model import reader
from langchain_threadmem.selection.turn_ends import Speech, TurnIndex
from langchain_threadmem.tree.node import ConversationNode

Wrap = Callable[[ChatMemory], Any]
DISK, CAR = "How do I mount a disk?", "My car makes a strange noise since Monday."


def says(name: str, text: str) -> HumanMessage:
    return HumanMessage(text, name=name)


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return system.conversation("room", node_selector=SemanticNodeSelector())


def room(*messages: BaseMessage) -> TurnIndex:
    """An index of messages without a place, numbered from 1."""
    index = TurnIndex()
    index.add([ConversationNode(n, message) for n, message in enumerate(messages, 1)])
    return index


def chosen(index: TurnIndex, speaker: str, text: str) -> Choice:
    return choose_in_group(index, index.ends(), speaker, text, reader())


def addressed(text: str, *people: str) -> str:
    """The person whom a message addresses, among those who have spoken."""
    chat = GroupChat()
    chat.add([Speech(n, n, None, name, "hi") for n, name in enumerate(people, 1)], reader())
    candidates, _ = chat.describe(Speech(0, 0, None, "eve", text), reader())
    named = chat._read(Speech(0, 0, None, "eve", text), reader()).addressed
    return next((people[one.place] for one in candidates if one.speaker == named), "")


@pytest.mark.parametrize("text", ["ada: try mount", "@ada try mount", "Ada, try mount", "@Ada: try mount"])
def test_a_message_that_begins_with_a_name_addresses_that_person(text: str) -> None:
    assert addressed(text, "ada", "bob") == "ada"


@pytest.mark.parametrize("text", ["adda: try mount", "@adda try mount", "note: ada is out", "try mount"])
def test_a_misspelt_or_later_name_addresses_nobody(text: str) -> None:
    assert addressed(text, "ada", "bob") == ""


def test_a_person_is_addressed_by_a_part_of_the_name_that_nobody_else_has() -> None:
    people = ("Ada Lovelace", "Ada Yonath", "grace_hopper")
    assert addressed("Lovelace: try mount", *people) == "Ada Lovelace"
    assert addressed("Ada: try mount", *people) == ""
    assert addressed("@grace try mount", *people) == "grace_hopper"


def test_a_common_word_is_a_name_behind_a_sign_only() -> None:
    assert addressed("will that work", "will", "bob") == ""
    assert addressed("@will that works", "will", "bob") == "will"


def test_a_message_continues_the_unanswered_message_of_the_person_whom_it_names(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    [disk] = verb.append(says("ada", DISK))
    [car] = verb.append(says("bob", CAR))
    [answer] = verb.append(says("eve", "ada: with the command mount"))
    assert (disk.parent_id, car.parent_id, answer.parent_id) == (None, None, disk.id)
    assert answer.placement is not None
    assert answer.placement.reason == f"answers ada: '{DISK}'"


def test_the_placements_of_a_group_chat_are_the_same_after_it_is_opened_again(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner) as first:
        before = first.conversation("room", node_selector=SemanticNodeSelector())
        before.append(says("ada", DISK))
        before.append(says("bob", CAR))
    with MemorySystem(url, owner=owner) as second:
        verb = verbs(second.conversation("room", node_selector=SemanticNodeSelector()))
        [answer] = verb.append(says("eve", "bob: is it the brakes?"))
        assert answer.parent_id == 2


def test_the_bots_answer_stays_with_its_message_and_is_continued_in_its_place(
    memory: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(memory)
    question, answer = verb.append(says("ada", DISK), "With the command mount.")
    verb.append(says("bob", CAR))
    [thanks] = verb.append(says("ada", "Thanks, and how do I mount the disk at each start?"))
    assert (answer.parent_id, thanks.parent_id) == (question.id, answer.id)


def test_system_messages_are_no_candidates(memory: ChatMemory) -> None:
    memory.append(says("ada", DISK))
    memory.extend([SystemMessage("cat has joined")])
    memory.append(says("bob", CAR))
    [answer] = memory.append(says("ada", "bob: which car is it?"))
    assert answer.placement is not None
    assert {id_ for id_, _ in answer.placement.chances} <= {1, 3, None}


def test_a_graph_is_read_as_a_group_chat_too(memory: ChatMemory) -> None:
    memory.append(says("ada", DISK))
    selector = SemanticNodeSelector()
    assert selector.select_parent(memory.graph, says("bob", "ada: with the command mount")) == 1
    assert selector.select_parent(memory.graph, says("ada", "With the command mount?")) == 1


def test_messages_without_an_answer_are_candidates() -> None:
    call = {"name": "f", "args": {}, "id": "c1", "type": "tool_call"}
    index = room(says("ada", DISK), says("bob", CAR))
    index.add([ConversationNode(3, AIMessage("", tool_calls=[call]), 1)])
    assert [(end.id, end.is_open) for end in index.ends()] == [(1, True), (2, True)]


def test_a_turn_below_an_unanswered_message_continues_it() -> None:
    index = room(says("ada", DISK), says("bob", CAR))
    index.add([ConversationNode(3, says("eve", "ada: mount"), 1), ConversationNode(4, AIMessage("ok"), 3)])
    assert [(end.id, end.previous) for end in index.ends()] == [(1, None), (2, None), (4, 1)]
    assert [end.id for end in index.upwards(4)] == [4, 1]
    assert index.end_above(1) == 1
    opening = index.opening(4)
    assert opening is not None
    assert opening.human == DISK


def test_turns_out_of_sight_are_left_out_with_the_messages_that_continue_them() -> None:
    index = room(says("ada", DISK), says("bob", CAR))
    index.add([ConversationNode(3, says("eve", "bob: brakes?"), 2), ConversationNode(4, says("ada", "Hm"))])
    kept = index.without([(2, 2)])
    assert [end.id for end in kept.ends()] == [1, 4]
    assert chosen(kept, "eve", "ada: with mount").parent_id in (1, 4, None)


def test_the_probabilities_of_a_choice_sum_to_one() -> None:
    index = room(says("ada", DISK), says("bob", CAR))
    index.add([ConversationNode(3, AIMessage("With the command mount."), 1)])
    choice = chosen(index, "ada", "And at each start?")
    assert set(choice.probabilities) == {2, 3, None}
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert choice.probabilities[choice.parent_id] == max(choice.probabilities.values())


@given(st.lists(st.tuples(st.sampled_from(["", "ada", "Ada L.", "@", "will"]), st.text()), max_size=8))
def test_any_names_and_texts_have_a_place(messages: list[tuple[str, str]]) -> None:
    index = room(says("bob", "hi"), *(says(name, text) for name, text in messages), says("eve", "ho"))
    assert chosen(index, "bob", "@ada hi").parent_id in {None, *(end.id for end in index.ends())}


@pytest.mark.parametrize("name", [None, "ada"])
def test_a_single_name_changes_no_choice(system: MemorySystem, name: str | None) -> None:
    texts = [
        ("How do I read a CSV file?", "With pandas."),
        ("My bread is flat.", "Let it rise."),
        (CAR, "Hm."),
    ]
    memory = system.conversation("alone", node_selector=SemanticNodeSelector())
    plain = system.conversation("plain", node_selector=SemanticNodeSelector())
    for human, answer in texts:
        memory.append(HumanMessage(human, name=name), answer)
        plain.append(human, answer)
    placed, expected = ([node.placement for node in each.history] for each in (memory, plain))
    assert placed == expected
