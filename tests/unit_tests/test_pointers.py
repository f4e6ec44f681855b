"""Messages without a subject of their own continue the last answer, and requests continue a greeting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.choice import prior_of
from langchain_threadmem.selection.features.cues import leaning
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.model import reader
from langchain_threadmem.selection.turn_ends import TurnEnd

Wrap = Callable[[ChatMemory], Any]
APHIDS = [
    ("How do I get rid of aphids on my tomato plants?", "Spray the aphids with water and mild soap."),
    ("And do aphids spread to basil?", "Aphids can spread to basil. Check its young shoots."),
    ("Which soap kills aphids on tomatoes?", "Any mild liquid soap kills aphids."),
]
MORTGAGE = [
    ("Explain how a mortgage with a variable rate works", "Its interest follows a reference rate."),
    ("Can I switch the mortgage to a fixed rate?", "Most lenders let you switch the rate for a fee."),
]
PLACES = {
    "one topic": APHIDS[:2],
    "a new topic": [*APHIDS[:2], MORTGAGE[0]],
    "a return": [*APHIDS[:2], *MORTGAGE, APHIDS[2]],
}
POINTERS = {
    "en": [
        *("Put that into bullet points", "Explain that more simply", "Rephrase your last answer", "Why?"),
        *("Translate that into French", "Can you make it shorter?", "Say it again in one sentence", "Go on"),
        *("Turn your answer into an email", "Give me an example", "Are you sure?", "Sounds good, thanks"),
        *("i dont get it", "whats that mean", "sum it up", "can you cite a source for that", "im not sure"),
        *("give me 3 examples", "can u make this shorter", "show me step by step", "thx, in 2 sentences pls"),
        "turn that into a checklist i can print",
    ],
    "es": ["Ponlo en viñetas", "Reformula tu última respuesta", "¿Por qué?", "Dame un ejemplo"],
    "it": ["Mettilo in un elenco puntato", "Riformula la tua ultima risposta", "Sei sicuro?"],
    "pt": ["Coloca isso em tópicos", "Reformula a tua última resposta", "Tens a certeza?"],
    "fr": ["Mets ça sous forme de liste", "Reformule ta dernière réponse", "Tu es sûr ?"],
    "de": ["Fass das in Stichpunkten zusammen", "Formuliere deine letzte Antwort um", "Warum?"],
    "nl": ["Zet dat in een lijst", "Herformuleer je laatste antwoord", "Waarom?"],
    "pl": ["Wypunktuj to", "Przeformułuj ostatnią odpowiedź", "Dlaczego?"],
    "ru": ["Объясни это проще", "Перефразируй последний ответ", "Почему?"],
    "id": ["Jelaskan lebih sederhana", "Ringkas jawabanmu tadi", "Kenapa?"],
    "ar": ["لخص ذلك في نقاط", "أعد صياغة إجابتك الأخيرة", "لماذا؟"],
    "ko": ["더 간단하게 설명해줘", "방금 답변 다시 써줘", "왜?"],
    "ja": ["それを箇条書きにして", "さっきの答えを言い換えて", "本当ですか"],
    "zh": ["用要点列出来", "把你刚才的回答改短一点", "为什么？"],
}
SUBJECTS = {
    "en": [
        *("Write a poem about my cat", "How long does rye bread keep?", "Hi!", "Let's go back to that"),
        *("A table for 4", "Show me trains to Delft", "2 tickets for the lion king please"),
    ],
    "es": ["Escribe un poema sobre mi gato", "¿Cuánto dura el pan de centeno?", "¡Hola!"],
    "it": ["Scrivi una poesia sul mio gatto", "Quanto dura il pane di segale?", "Ciao!"],
    "pt": ["Escreve um poema sobre o meu gato", "Quanto tempo dura o pão de centeio?", "Olá!"],
    "fr": ["Écris un poème sur mon chat", "Combien de temps se garde le pain de seigle ?", "Bonjour"],
    "de": ["Schreib ein Gedicht über meine Katze", "Wie lange hält sich Roggenbrot?", "Hallo!"],
    "ja": ["猫についての詩を書いて", "ライ麦パンの賞味期限は？", "こんにちは"],
    "zh": ["写一首关于我的猫的诗", "黑麦面包能放多久？", "你好"],
}


@pytest.mark.parametrize("language", POINTERS)
def test_a_message_that_points_at_the_last_answer_names_no_subject(language: str) -> None:
    phrases = phrases_in(language)
    assert {message: leaning(message, phrases) > 0.5 for message in POINTERS[language]} == dict.fromkeys(
        POINTERS[language], True
    )


@pytest.mark.parametrize("language", SUBJECTS)
def test_a_request_a_greeting_and_a_return_do_not_lean_on_the_last_answer(language: str) -> None:
    phrases = phrases_in(language)
    assert {message: leaning(message, phrases) for message in SUBJECTS[language]} == dict.fromkeys(
        SUBJECTS[language], 0.0
    )


@pytest.mark.parametrize("place", PLACES)
def test_a_message_that_points_at_the_last_answer_continues_it(place: str) -> None:
    with MemorySystem(embeddings=False) as system:
        for message in POINTERS["en"]:
            memory = system.conversation(message, node_selector=SemanticNodeSelector())
            for human, ai in PLACES[place]:
                last = memory.append(human, ai)[-1]
            assert (message, memory.append(message)[0].parent_id) == (message, last.id)


def test_a_pointer_in_another_language_continues_the_last_answer(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    for human, ai in PLACES["a return"]:
        last = memory.append(human, ai)[-1]
    for messages in POINTERS.values():
        human, last_ai = memory.append(messages[0], "As you wish.")
        assert (human.message.text, human.parent_id) == (messages[0], last.id)
        last = last_ai


@pytest.mark.parametrize("greeting", ["Good morning!", "hey, how are you?", "Hola", "Guten Tag!"])
def test_the_request_after_a_greeting_in_the_middle_continues_it(
    system: MemorySystem, verbs: Wrap, greeting: str
) -> None:
    memory = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    for human, ai in APHIDS[:2]:
        memory.append(human, ai)
    opening, welcome = memory.append(greeting, "Hello! How can I help?")
    request = memory.append(*MORTGAGE[0])[0]
    assert (opening.parent_id, request.parent_id) == (None, welcome.id)


def test_a_return_after_a_greeting_goes_back(system: MemorySystem, verbs: Wrap) -> None:
    memory = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
    for human, ai in APHIDS[:2]:
        last = memory.append(human, ai)[-1]
    memory.append("Good morning!", "Hello! How can I help?")
    assert memory.append("Do the aphids on my tomato plants come back?")[0].parent_id == last.id


def test_a_message_without_a_subject_leans_less_on_the_last_turn_of_an_agent() -> None:
    turns = [TurnEnd(2, None, "Who has paid?", "Acme has."), TurnEnd(4, None, "Book a room", "Which one?")]
    calls = [TurnEnd(2, None, "Who has paid?", "Acme has.", calls="ledger: Acme paid"), turns[1]]
    people, agent = (prior_of(ends, "Yes, do that", reader(), "local") for ends in (turns, calls))
    assert people.last > agent.last > 1
