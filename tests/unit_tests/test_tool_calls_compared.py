"""Tool calls as part of the text by which the answer of a turn is compared with messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from test_index import Counting

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.messages.tool_pairs import LONGEST_TEXT, text_of_calls
from langchain_threadmem.selection.model import networks
from langchain_threadmem.selection.turn_ends import TurnEnd, TurnIndex, is_of_agent
from langchain_threadmem.tree.node import ConversationNode

Wrap = Callable[[ChatMemory], Any]


def calls(id_: str, result: str, **arguments: Any) -> list[BaseMessage]:
    made = {"name": "search", "args": arguments, "id": id_}
    return [AIMessage("", tool_calls=[made]), ToolMessage(result, tool_call_id=id_)]


BOOKED: list[BaseMessage] = [
    HumanMessage("find a slot for him"),
    *calls("c1", "Thursday is free", patient="Milo", practice={"name": "dentist", "rooms": [3, None]}),
    AIMessage("Thursday then."),
]


def test_an_answer_is_embedded_with_the_tool_calls_of_its_turn(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append(*BOOKED)
        memory.append("thanks", "You are welcome.")
        memory.flush()
    assert model.texts == [
        "find a slot for him",
        "Milo dentist 3\nThursday is free\nThursday then.",
        "thanks",
        "You are welcome.",
    ]


def test_an_answer_that_is_embedded_after_its_turn_has_the_calls_too(
    url: str, owner: str, verbs: Wrap
) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        for message in BOOKED:
            memory.append(message)
            memory.flush()
    assert model.texts[-1] == "Milo dentist 3\nThursday is free\nThursday then."


def test_answers_of_several_conversations_are_embedded_with_their_calls(
    url: str, owner: str, verbs: Wrap
) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        for name in ("a", "b"):
            verbs(system.conversation(name)).append(*BOOKED[:-1])
        system.flush()
        for name in ("a", "b"):
            verbs(system.conversation(name)).append(AIMessage(f"Thursday for {name}."))
        system.flush()
    assert sorted(model.texts)[:2] == [
        "Milo dentist 3\nThursday is free\nThursday for a.",
        "Milo dentist 3\nThursday is free\nThursday for b.",
    ]


def test_a_turn_end_has_the_calls_of_its_own_turn() -> None:
    index = TurnIndex()
    messages = [*BOOKED, HumanMessage("thanks"), AIMessage("You are welcome.")]
    index.add(ConversationNode(n, message, n - 1 or None) for n, message in enumerate(messages, 1))
    assert [end.calls for end in index.ends()] == ["Milo dentist 3\nThursday is free", ""]


def test_a_conversation_with_tool_calls_in_a_quarter_of_its_turns_has_the_networks_of_agents() -> None:
    plain, calling = TurnEnd(2, None, "Is rye sour?", "Yes."), TurnEnd(4, 2, "Book it", "Done.", calls="rye")
    assert [is_of_agent([calling] + [plain] * count) for count in (0, 3, 4)] == [True, True, False]
    assert not is_of_agent([])
    assert networks("local", agent=True).outer.tolist() != networks("local").outer.tolist()
    assert networks("words", agent=True).outer.tolist() == networks("words").outer.tolist()


def test_a_long_result_does_not_outweigh_the_answer() -> None:
    text = ""
    for n in range(20):
        for message in calls(f"c{n}", "row " * 5_000, query=f"part {n}"):
            text = text_of_calls(message, text)
    assert text.startswith("part 0\nrow row")
    assert len(text) == LONGEST_TEXT


APPOINTMENT: list[BaseMessage] = [
    HumanMessage("can you find a slot next week?"),
    *calls("c1", "Thursday 16:20 is free", patient="Milo", practice="Brightmoor Dental", bring="retainer"),
    AIMessage("Thursday at 16:20 is free. Shall I take it?"),
]
EGG = "How long do I boil an egg?", "Seven minutes for a firm yolk."
QUESTION = "What does Brightmoor Dental charge for Milo's retainer?"


def test_a_message_continues_the_turn_whose_tool_call_names_its_subject(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = verbs(system.conversation("c", node_selector=SemanticNodeSelector()))
        *_, answer = memory.append(*APPOINTMENT)
        memory.append(*EGG)
        (asked,) = memory.append(HumanMessage(QUESTION))
        assert asked.parent_id == answer.id


def test_sort_continues_the_turn_whose_tool_call_names_the_subject(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = verbs(system.conversation("c"))
        *_, answer = memory.append(*APPOINTMENT)
        memory.append(*EGG)
        memory.append(QUESTION, "A new one is 80 pounds.")
        parents = {move.message.content: move.parent_id for move in memory.sort(dry_run=True)}
        assert parents[QUESTION] == answer.id
