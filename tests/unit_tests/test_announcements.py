"""A message that announces another subject leaves the last thread."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.selection.features.cues import announces
from langchain_threadmem.selection.features.phrases import phrases_in

ANNOUNCED = [
    ("en", "New topic: how long do I bake rye bread?"),
    ("en", "Ok, something completely different: is rye sour?"),
    ("en", "On another note, how do I clean a grill?"),
    ("en", "Unrelated - why do cats purr?"),
    ("en", "Let's change the subject. What is inflation?"),
    ("de", "Themenwechsel: Wie backe ich Brot?"),
    ("de", "Mal was ganz anderes: Warum schnurren Katzen?"),
    ("es", "Cambiando de tema: ¿cómo se hace el pan?"),
    ("es", "Otra cosa: ¿cómo se hace el pan?"),
    ("fr", "Rien à voir : comment fait-on le pain ?"),
    ("it", "Cambiando argomento: come si fa il pane?"),
    ("pt", "Mudando de assunto: como se faz o pão?"),
    ("nl", "Iets heel anders: hoe bak ik brood?"),
    ("pl", "Zmieniając temat: jak upiec chleb?"),
    ("ru", "Сменим тему: как испечь хлеб?"),
    ("ja", "話は変わりますが、パンの作り方を教えて"),
    ("zh", "换个话题，怎么做面包？"),
    ("ko", "다른 얘기인데, 빵은 어떻게 만들어?"),
    ("ar", "موضوع آخر: كيف أخبز الخبز؟"),
    ("id", "Ganti topik: bagaimana cara membuat roti?"),
]
OTHERS = [
    "Something else, please",
    "Do you have something else?",
    "New topic",
    "Is there a different topic I should read about?",
    "The unrelated files: where are they?",
    "Something else: no",
]


@pytest.mark.parametrize(("language", "said"), ANNOUNCED)
def test_an_announcement_is_recognised(language: str, said: str) -> None:
    assert announces(said, phrases_in(language))


@pytest.mark.parametrize("said", OTHERS)
def test_a_message_that_names_no_other_subject_announces_none(said: str) -> None:
    assert not announces(said, phrases_in("en"))


def chat(system: MemorySystem, verbs: Any) -> Any:
    memory = verbs(system.conversation("chat", node_selector=SemanticNodeSelector()))
    memory.append("How long do I bake rye bread?", "About an hour at 200 degrees.")
    memory.append("And how do I know that the bread is done?", "It sounds hollow.")
    return memory


def test_an_announced_subject_opens_a_thread_even_if_it_is_near(system: MemorySystem, verbs: Any) -> None:
    memory = chat(system, verbs)
    [near] = memory.append("What flour do I need for bread that is baked with rye?")
    assert near.parent_id == 4
    [opened] = memory.append("New topic: which rye bread is baked in Finland?")
    assert opened.parent_id is None
    assert opened.placement.reason == "new topic: announced as one"


def test_an_announced_return_goes_to_the_earlier_thread(system: MemorySystem, verbs: Any) -> None:
    memory = chat(system, verbs)
    memory.append("New topic: how do I read a CSV file in Python?", "Use the csv module.")
    memory.append("How do I skip the header row of the CSV file?", "Call next on the reader.")
    [back] = memory.append("Different topic: back to the rye bread, how long do I let the rye dough rise?")
    assert back.parent_id == 4
