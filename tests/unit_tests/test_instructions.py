"""Standing instructions and preferences: noticed when they are said, listed, taken back, part of a recall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import InputError
from langchain_threadmem.recall.instructions.directives import directives_in

INSTRUCTIONS = [
    "Always answer in French.",
    "From now on, call me Ada.",
    "Whenever I ask about code, use TypeScript.",
    "Can you always name your sources?",
    "Ok, please never use emojis",
    "Call me Ada",
    "Your answers should be at most two sentences long.",
    "Make sure to always add a summary.",
    "I prefer short answers",
    "Keep your answers short from now on",
    "Stop apologizing.",
    "Antworte ab jetzt immer auf Deutsch",
    "Siempre respóndeme en español",
    "Réponds toujours en français",
    "Rispondi sempre in italiano",
    "Responde sempre em português",
    "Antwoord altijd in het Nederlands",
    "Odpowiadaj zawsze po polsku",
    "Всегда отвечай по-русски",
    "いつも日本語で答えてください",
    "以后请用中文回答",
    "항상 한국어로 답해 주세요",
    "أجب دائما بالعربية",
    "Selalu jawab dalam bahasa Indonesia",
]
OTHERS = [
    "Do you always answer so fast?",
    "I always forget my keys.",
    "Never mind",
    "Never saw this coming.",
    "Always here to help.",
    "In the future I want to travel.",
    "What should I never eat before a run?",
    "Call me back later",
    "Ich habe immer Hunger",
    "Siempre llueve en Galicia",
    "How do I keep bread fresh?",
    "",
]


@pytest.mark.parametrize("said", INSTRUCTIONS)
def test_a_standing_instruction_is_noticed(said: str) -> None:
    [found] = directives_in(said)
    assert (found.text, found.kind) == (said, "instruction")


@pytest.mark.parametrize("said", OTHERS)
def test_other_messages_are_no_instructions(said: str) -> None:
    assert directives_in(said) == []


def test_the_sentence_of_a_long_message_is_the_instruction() -> None:
    story = "We walked along the river and counted the herons. " * 30
    found = directives_in(f"Always use metric units. {story}I prefer window seats.")
    assert [(one.text, one.kind) for one in found] == [
        ("Always use metric units.", "instruction"),
        ("I prefer window seats.", "preference"),
    ]


def texts(memory: Any, **options: Any) -> list[str]:
    return [one.text for one in memory.instructions(**options)]


def test_instructions_are_listed_with_their_messages(system: MemorySystem, verbs: Any) -> None:
    memory = system.conversation("chat")
    memory.append("Hello! Always answer in French.", "D'accord. Always happy to.")
    memory.append("I prefer window seats.", "Noted.")
    listed = verbs(memory).instructions()
    assert [(one.text, one.kind, one.node.id, one.conversation_id) for one in listed] == [
        ("Always answer in French.", "instruction", 1, "chat"),
        ("I prefer window seats.", "preference", 3, "chat"),
    ]


def test_a_later_message_takes_an_instruction_back(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat"))
    memory.append("Always name your sources.", "Yes.")
    memory.append("Please never use emojis.", "Yes.")
    memory.append("You don't have to name sources anymore.", "Fine.")
    assert texts(memory) == ["Please never use emojis."]
    memory.append("Stop using tables.", "Fine.")
    assert texts(memory) == ["Please never use emojis.", "Stop using tables."]
    memory.append("Forget all my instructions.", "Done.")
    assert texts(memory) == []


def test_an_instruction_is_revoked_by_its_message(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat"))
    nodes = memory.append("Always answer in French.", "D'accord.")
    memory.append("Which bread is dark?", "Pumpernickel.")
    assert any(hit.why.standing for hit in memory.recall("dark bread", n_results=4))
    memory.revoke_instruction(nodes[0].message.id)
    assert texts(memory) == []
    assert not any(hit.why.standing for hit in memory.recall("dark bread", n_results=4))
    assert nodes[0].id in [node.id for node in memory.history()]


def test_an_edited_instruction_is_the_new_one(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat"))
    nodes = memory.append("Always answer in French.", "D'accord.")
    memory.edit(nodes[0].id, "Always answer in Spanish.")
    assert texts(memory) == ["Always answer in Spanish."]


def many_questions(memory: Any) -> None:
    for number in range(12):
        memory.append(f"Tell me about rye bread number {number}.", f"Rye bread number {number} is dark.")


def test_each_recall_of_four_or_more_has_an_instruction(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat"))
    memory.append("Always answer in French.", "D'accord.")
    many_questions(memory)
    for wanted in (4, 10, 20):
        hits = memory.recall("rye bread", n_results=wanted)
        assert len(hits) == wanted
        [place] = [n for n, hit in enumerate(hits) if hit.why.standing]
        turns = {(hit.node.id + 1) // 2 for hit in hits[:place]}
        assert place == wanted - 1 or len(turns) == 9
        assert (hits[place].node.id, str(hits[place].why).split(";")[0]) == (1, "a standing instruction")
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert not any(hit.why.standing for hit in memory.recall("rye bread", n_results=3))
    assert not any(hit.why.standing for hit in memory.recall("rye bread", role="ai"))


def test_an_instruction_that_fits_the_query_keeps_its_place(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat"))
    memory.append("Always name the flour when I ask about rye bread.", "Yes.")
    many_questions(memory)
    hits = memory.recall("Which flour is in rye bread?", n_results=10)
    assert [n for n, hit in enumerate(hits) if hit.node.id == 1] == [0]


def test_a_request_is_shown_two_instructions_and_a_question_about_the_past_those_that_always_hold(
    system: MemorySystem, verbs: Any
) -> None:
    memory = verbs(system.conversation("chat"))
    memory.append("Always name the source when I ask about history.", "Yes.")
    memory.append("Always show the units when I ask about physics.", "Yes.")
    many_questions(memory)

    def shown(query: str, wanted: int = 10) -> list[int]:
        hits = memory.recall(query, n_results=wanted)
        assert len(hits) == wanted
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        return sorted(hit.node.id for hit in hits if hit.why.standing)

    assert shown("Which rye bread is dark?") == [1, 3]
    assert len(shown("Which rye bread is dark?", 5)) == 1
    assert shown("Did I ask about dark rye bread?") == []
    always = memory.append("Always answer in French.", "D'accord.")
    assert shown("Did I ask about dark rye bread?") == [always[0].id]


def test_instructions_of_other_conversations_are_those_of_the_owner(system: MemorySystem, verbs: Any) -> None:
    first, second = system.conversation("first"), system.conversation("second")
    first.append("Always answer in French.", "D'accord.")
    many_questions(second)
    assert texts(verbs(second)) == []
    assert texts(verbs(second), scope="owner") == ["Always answer in French."]
    hits = verbs(second).recall("rye bread", scope="owner")
    assert [hit.conversation_id for hit in hits if hit.why.standing] == ["first"]
    first.append("Forget my instructions.", "Done.")
    assert texts(verbs(second), scope="owner") == []


def test_an_instruction_of_another_owner_is_never_listed(system: MemorySystem, verbs: Any) -> None:
    system.for_owner("bob").conversation("chat").append("Always answer in French.", "D'accord.")
    assert texts(verbs(system.conversation("chat")), scope="owner") == []


class Reversing:
    """A cipher that is none."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


def test_an_encrypted_memory_lists_the_instructions_of_a_conversation(tmp_path: Path) -> None:
    with MemorySystem(f"sqlite:///{tmp_path}/m.db", embeddings=False) as system:
        ThreadMemSaver(system, serde=EncryptedSerializer(Reversing()))
        memory = system.conversation("chat")
        memory.append("Always answer in French.", "D'accord.")
        many_questions(memory)
        assert texts(memory) == ["Always answer in French."]
        assert any(hit.why.standing for hit in memory.recall("rye bread"))
        with pytest.raises(InputError, match="encrypted"):
            memory.instructions(scope="owner")


def test_the_scope_of_instructions_is_checked() -> None:
    with pytest.raises(InputError, match="scope='thread'"):
        ChatMemory(embeddings=False).instructions(scope="thread")  # type: ignore[arg-type]
