"""A message that goes back to an earlier answer continues that answer."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.features.cues import restores
from langchain_threadmem.selection.features.phrases import phrases_in

FIRST = [
    ("en", "No, go back to your first suggestion and make the ending warmer"),
    ("en", "Could you put the original version back?"),
    ("de", "Können wir zu deiner ersten Idee zurück?"),
    ("es", "volvamos a tu primera propuesta"),
    ("fr", "Finalement, reviens à ta premiere idée"),
    ("it", "torniamo alla tua prima idea, come la alleggerisco?"),
    ("pt", "volta pra primeira lista e me dá mais cinco"),
    ("nl", "Ga terug naar je eerste antwoord"),
    ("pl", "Wróć do pierwszej wersji"),
    ("ru", "Вернёмся к твоему первому ответу"),
    ("id", "kembali ke jawaban pertama"),
    ("ar", "ارجع إلى إجابتك الأولى"),
    ("ko", "첫 번째 답변으로 돌아가서"),
    ("ja", "最初の回答に戻ってください"),
    ("zh", "回到你的第一个回答"),
]
BEFORE = [
    ("en", "Let's go back to before that"),
    ("de", "Zurück zur vorletzten Fassung"),
    ("es", "vuelve a la versión anterior"),
    ("fr", "Reviens à la version d'avant"),
    ("it", "torna alla versione di prima"),
    ("pt", "volte para a versão anterior"),
    ("ja", "一つ前の案に戻して"),
]
OTHERS = [
    "Tell me more about the first one",
    "Back to the list, and first tell me who comes",
    "Back to my first question, please",
    "Can we return to the previous topic?",
    "I leaned back before it fell",
]


@pytest.mark.parametrize(
    ("language", "said", "which"), [(*one, "firsts") for one in FIRST] + [(*one, "befores") for one in BEFORE]
)
def test_a_message_that_goes_back_to_an_answer_is_recognised(language: str, said: str, which: str) -> None:
    assert restores(said, phrases_in(language)) == which


@pytest.mark.parametrize("said", OTHERS)
def test_a_message_that_names_an_item_or_a_subject_goes_back_to_no_answer(said: str) -> None:
    assert restores(said, phrases_in("en")) == ""


def chat(system: MemorySystem, verbs: Any) -> Any:
    memory = verbs(system.conversation("chat", node_selector=SemanticNodeSelector()))
    memory.append("Write a toast for the wedding of my brother", "Good evening! Tom is a man of few words.")
    memory.append("Make the toast funnier", "Good evening! Tom once married the dog.")
    memory.append("Not the dog, make the toast about football", "Good evening! Tom's club never wins.")
    return memory


def test_a_message_continues_the_first_answer_to_which_it_goes_back(system: MemorySystem, verbs: Any) -> None:
    memory = chat(system, verbs)
    [back] = memory.append("No, go back to your first suggestion and make the end of the toast warmer")
    assert back.parent_id == 2
    assert back.placement.reason.startswith("branches off after")


def test_a_message_goes_back_to_the_answer_before_the_last(system: MemorySystem, verbs: Any) -> None:
    memory = chat(system, verbs)
    [back] = memory.append("Go back to the version before that and shorten the toast")
    assert back.parent_id == 4


def test_a_first_answer_is_that_of_the_thread(system: MemorySystem, verbs: Any) -> None:
    memory = chat(system, verbs)
    memory.append("New topic: how long do I bake rye bread?", "About an hour at 200 degrees.")
    memory.append("And how do I know that the bread is done?", "It sounds hollow.")
    [back] = memory.append("Back to your first answer about the bread: is that with a fan?")
    assert back.parent_id == 8
