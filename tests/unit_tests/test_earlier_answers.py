"""A message that goes back to an earlier answer continues that answer."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.choice import DIGRESSES, GOES_ON, prior_of
from langchain_threadmem.selection.features.cues import recalled, restores
from langchain_threadmem.selection.features.phrases import phrases_in
from langchain_threadmem.selection.model import reader
from langchain_threadmem.selection.turn_ends import TurnEnd

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


DESCRIBED = [
    ("en", "Hm, can we go back to your three dinner ideas? How long do I cook the third?", "dinner"),
    ("de", "Zurück zu den drei Gerichten, wie lange kocht das dritte?", "gericht"),
    ("es", "Volvamos a las tres cenas. ¿La tercera?", "cena"),
    ("fr", "Revenons à tes trois dîners, le dernier ?", "din"),
    ("it", "Torniamo alle cene, la terza?", "cene"),
    ("pt", "Voltando ao jantar: e o terceiro?", "jant"),
    ("nl", "Terug naar de drie gerechten, en het derde?", "gerecht"),
    ("ja", "夕食の案に戻って、三つ目は?", "夕食"),
    ("zh", "回到晚餐的主意，第三个呢？", "晚餐"),
]
DIGRESSIONS = [
    ("en", "By the way, what eats my hostas?"),
    ("de", "Übrigens, was frisst meine Hosta?"),
    ("es", "Por cierto, ¿qué se come mis plantas?"),
    ("fr", "Au fait, qui mange mes hostas ?"),
    ("it", "A proposito, chi mangia le mie piante?"),
    ("pt", "Aliás, o que come as minhas plantas?"),
    ("ru", "Кстати, кто ест мои цветы?"),
    ("ja", "ところで、何が葉を食べますか"),
    ("zh", "对了，什么虫吃叶子？"),
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


@pytest.mark.parametrize(("language", "said", "term"), DESCRIBED)
def test_a_message_describes_the_answer_to_which_it_goes_back(language: str, said: str, term: str) -> None:
    described = recalled(said, phrases_in(language))
    assert described is not None
    assert any(found.startswith(term) for found in described.terms), described


def test_a_state_is_no_description_of_an_answer() -> None:
    assert recalled("back to three hours again, what now", phrases_in("en")) is None


def test_a_message_continues_the_answer_that_it_describes(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat", node_selector=SemanticNodeSelector()))
    memory.append(
        "What can I cook with spinach and cream?", "Three dinner ideas: pasta, a curry, stuffed rolls."
    )
    memory.append("The pasta, please", "Boil 200 g of penne and stir in the spinach.")
    memory.append("No parmesan at home", "Any hard cheese will do.")
    [back] = memory.append("Can we go back to your three dinner ideas? How long do the rolls take?")
    assert back.parent_id == 2


def test_a_first_draft_is_no_question(system: MemorySystem, verbs: Any) -> None:
    memory = verbs(system.conversation("chat", node_selector=SemanticNodeSelector()))
    memory.append("Help me to appeal against the insurer's refusal", "Gladly. Has she fallen?")
    memory.append("Twice, and the stairs are steep", "Dear Sir or Madam, I appeal against your refusal.")
    memory.append("Make the letter stronger, I am furious", "Dear Sir or Madam, your refusal is absurd.")
    [back] = memory.append("No, back to your first draft of the letter, but mention the bedroom")
    assert back.parent_id == 4


@pytest.mark.parametrize(("language", "said"), DIGRESSIONS)
def test_a_digression_continues_the_last_turn_less_often(language: str, said: str) -> None:
    reads, turns = reader(language), [TurnEnd(2, None, "Is rye sour?", "A little.")]
    assert prior_of(turns, said, reads, "words").last == DIGRESSES


def test_a_done_task_of_an_agent_is_continued_less_often_than_a_question() -> None:
    def of(answer: str) -> float:
        turns = [TurnEnd(2, None, "Book the court", answer, calls="book(court)")]
        return prior_of(turns, "grinder two screams when it starts", reader(), "words").last

    assert of("Booked for seven.") == GOES_ON * of("Which court shall I book?")


def test_a_return_that_names_the_subject_of_a_thread_continues_its_end(
    system: MemorySystem, verbs: Any
) -> None:
    memory = verbs(system.conversation("chat", node_selector=SemanticNodeSelector()))
    memory.append("How long do I bake rye bread?", "About an hour at 200 degrees.")
    memory.append("And how do I know that the bread is done?", "It sounds hollow.")
    memory.append("Which wine goes with salmon?", "A dry Riesling.")
    [back] = memory.append("Back to the bread: can I freeze half of it?")
    assert back.parent_id == 4
