"""Equal texts are one hit, and a corrected fact comes first."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from conftest import WordEmbeddings
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem, Recollection, ThreadMemRetriever
from langchain_threadmem.apps.cli import main
from langchain_threadmem.langchain.tools import recall_tool
from langchain_threadmem.recall.versions import Utterance, sought_in

Wrap = Callable[[Any], Any]
FIGS, TWICE = "Remind me to water the figs", "The figs need water twice a week."
SCOPES = ["conversation", "owner"]


def texts(hits: list[Recollection]) -> list[Any]:
    return [hit.node.message.content for hit in hits]


@pytest.fixture
def figs(system: MemorySystem) -> ChatMemory:
    """Ten equal turns, then another."""
    memory = system.conversation("garden")
    for _ in range(10):
        memory.append(FIGS, "I will.")
    memory.append(TWICE, "Noted.")
    return memory


@pytest.mark.parametrize("scope", SCOPES)
def test_equal_texts_are_one_hit_the_newest(figs: ChatMemory, verbs: Wrap, way: str, scope: str) -> None:
    hits = verbs(figs).recall("water the figs", 4, scope=scope)
    assert sorted(texts(hits)) == sorted([FIGS, TWICE, "I will.", "Noted."])
    assert {hit.node.message.content: hit.node.id for hit in hits}[FIGS] == 19
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize("scope", SCOPES)
def test_equal_texts_leave_room_for_others(system: MemorySystem, verbs: Wrap, way: str, scope: str) -> None:
    memory = system.conversation("garden")
    memory.extend([TWICE, *[FIGS] * 60])
    assert set(texts(verbs(memory).recall("water the figs", 2, scope=scope))) == {FIGS, TWICE}


def test_equal_texts_of_two_conversations_are_one_hit(system: MemorySystem, verbs: Wrap) -> None:
    for name in ("monday", "tuesday"):
        system.conversation(name).append(FIGS, "I will.")
    [hit] = verbs(system.conversation("other")).recall("water figs", 1, scope="owner")
    assert hit.conversation_id == "tuesday"
    assert texts(verbs(system.conversation("other")).recall("figs", scope="owner")).count(FIGS) == 1


@pytest.mark.parametrize(
    ("one", "other", "hits"),
    [
        ("Buy figs.", "buy  figs", 1),
        ("Buy figs!", "Buy figs", 1),
        ("Buy figs.", "Buy figs?", 2),
        ("Sort figs in C", "Sort figs in C++", 2),
        ("Figs " * 200, "Figs  " * 200, 2),
        (HumanMessage("I like figs", name="Ada"), HumanMessage("I like figs", name="Ben"), 2),
        (HumanMessage("I like figs"), AIMessage("I like figs"), 2),
    ],
    ids=lambda value: str(getattr(value, "name", None) or value)[:20],
)
def test_texts_are_equal_but_for_case_spaces_and_full_stops(
    system: MemorySystem, verbs: Wrap, one: Any, other: Any, hits: int
) -> None:
    memory = system.conversation("garden")
    memory.extend([one, other])
    assert len(verbs(memory).recall("figs")) == hits


def test_a_condition_holds_for_the_newest_of_equal_texts(system: MemorySystem, verbs: Wrap) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    memory = system.conversation("garden")
    marked = [HumanMessage(FIGS, additional_kwargs={"day": day}) for day in (1, 2, 3)]
    memory.extend(marked, [start + timedelta(days=day) for day in (1, 2, 3)])
    verb = verbs(memory)
    assert [hit.node.id for hit in verb.recall("figs")] == [3]
    assert [hit.node.id for hit in verb.recall("figs", until=start + timedelta(days=3))] == [2]
    assert [hit.node.id for hit in verb.recall("figs", filters={"metadata.day": 1})] == [1]


def test_retrieved_messages_repeat_nothing(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("garden", node_selector=lambda tree, message: None)
    for _ in range(4):
        memory.append(FIGS, "I will.")
    memory.append(TWICE, "Noted.")
    retrieved = verbs(memory).retrieve("water the figs", 2, 0)
    assert [message.content for message in retrieved] == [FIGS, TWICE]


def test_the_retriever_the_tool_and_the_command_repeat_nothing(
    figs: ChatMemory, system: MemorySystem, url: str, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ThreadMemRetriever(memory=system, k=10).invoke("water the figs")
    assert [document.page_content for document in found].count(FIGS) == 1
    assert recall_tool(system, k=10).invoke({"query": "the figs"}).count(FIGS) == 1
    assert main.main(["search", "the figs", "--db", url, "--owner", owner, "--words", "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)
    assert [hit["message"]["text"] for hit in hits] == [FIGS, TWICE]


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("by", ["text", "vector"])
def test_a_query_repeats_nothing(
    figs: ChatMemory, system: MemorySystem, verbs: Wrap, short: bool, by: str
) -> None:
    if short:
        system.enable_stm(restore_session_id="garden")
    vector = WordEmbeddings().embed_query("water the figs")
    asked: dict[str, Any] = {"text": "water the figs"} if by == "text" else {"query_vector": vector}
    found = verbs(system).query(**asked, k_limit=4, recall_context=False)
    assert sorted(unit.content for [unit] in found) == sorted([FIGS, TWICE, "I will.", "Noted."])


CORRECTED = [
    ("My office is in Rome.", "I moved: my office is in Oslo now.", "Where is my office?"),
    ("My phone number is 555-0101.", "I have a new phone number: 555-0199.", "What is my phone number?"),
    ("The meeting is on Monday at 10.", "The meeting was moved to Friday at 2.", "When is the meeting?"),
    ("My gym opens at 7.", "My gym opens at 6 from this week on.", "When does my gym open?"),
    ("We use PostgreSQL 14.", "We upgraded to PostgreSQL 16.", "Which PostgreSQL do we use?"),
    ("My mother lives in Porto.", "My mother moved to Lisbon.", "Where does my mother live?"),
    ("The invoice number is 4711.", "Sorry, the invoice number is 4712.", "What is the invoice number?"),
    ("My desk is on the second floor.", "My desk is on the fifth floor now.", "On which floor is my desk?"),
]
OTHERS = ["How do I read a CSV file?", "My bike has a flat tyre.", "Translate good morning into Greek."]


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_corrected_fact_comes_before_the_old_one(url: str, owner: str, scope: str, embedded: bool) -> None:
    embeddings: Any = WordEmbeddings() if embedded else False
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        memory = system.conversation("facts")
        for old, _, _ in CORRECTED:
            memory.append(old, "ok")
        for text in (*OTHERS, *(new for _, new, _ in CORRECTED)):
            memory.append(text, "ok")
        for old, new, question in CORRECTED:
            assert texts(memory.recall(question, 1, scope=scope)) == [new]
            found = texts(memory.recall(question, 8, scope=scope))
            assert [text for text in found if text in (old, new)] == [new, old]
            [[unit]] = system.query(question, k_limit=1, recall_context=False)
            assert unit.content == new


def test_the_newest_of_three_versions_comes_first(system: MemorySystem, verbs: Wrap, way: str) -> None:
    memory = system.conversation("facts")
    said = [f"My office is in {city}." for city in ("Rome", "Oslo", "Bern")]
    for text in said:
        memory.append(text, "ok")
    hits = verbs(memory).recall("Where is my office?", 3)
    assert texts(hits) == said[::-1]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_time_that_a_message_brings_decides_which_is_newer(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("facts")
    for text, year in (("My office is in Oslo.", 2024), ("My office is in Rome.", 2021)):
        memory.append(HumanMessage(text, additional_kwargs={"time": f"{year}-05-06"}), "ok")
    assert texts(verbs(memory).recall("Where is my office?", 1)) == ["My office is in Oslo."]


@pytest.mark.parametrize(
    ("first", "later", "question"),
    [
        ("My office is in Rome.", "My wife's office is in Turin.", "Where is my office?"),
        ("My first car was a Golf.", "My second car was a Polo.", "What was my first car?"),
        ("The visa for Japan takes a day.", "The visa for China takes a week.", "How long for Japan?"),
        ("My office is in Rome.", "Is my office in Rome still open?", "Where is my office in Rome?"),
    ],
)
def test_a_statement_about_another_thing_stays_behind(
    url: str, owner: str, first: str, later: str, question: str
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("facts")
        for text in (first, *OTHERS, later):
            memory.append(text, "ok")
        assert texts(memory.recall(question, 1)) == [first]


def test_what_another_person_states_corrects_nobody(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("facts")
    memory.extend(
        [
            HumanMessage("My office is in Rome.", name="Ada"),
            HumanMessage("I moved: my office is in Oslo now.", name="Ben"),
        ]
    )
    assert texts(verbs(memory).recall("my office in Rome", 1)) == ["My office is in Rome."]


def test_a_reranked_correction_comes_first(system: MemorySystem, verbs: Wrap) -> None:
    class Shortest:
        def rerank(self, query: str, texts: list[str]) -> list[float]:
            return [-len(text) for text in texts]

    memory = system.conversation("facts")
    for text in CORRECTED[0][:2]:
        memory.append(text, "A long answer without any of the words that are asked for, which comes last.")
    hits = verbs(memory).recall(CORRECTED[0][2], 2, reranker=Shortest())
    assert texts(hits) == [CORRECTED[0][1], CORRECTED[0][0]]


def test_long_texts_and_other_languages_are_compared_too() -> None:
    from langchain_threadmem.index.language import PLAIN

    sought = sought_in("Wo ist mein Büro?", PLAIN)
    said = [
        sought.statement(Utterance(text, "human", "", time))
        for time, text in enumerate(["Mein Büro ist in Rom.", "Mein Büro ist jetzt in Oslo."])
    ]
    assert said[0] is not None
    assert said[1] is not None
    assert sought.updates(said[1], said[0])
    assert sought.statement(Utterance("Mein Büro ist in Rom. " * 20, "human", "", 0.0)) is None


class Directions(WordEmbeddings):
    """Embeddings whose cosines with a query without shared words are known."""

    model_name = "directions"
    weak_below = 0.25

    def embed_query(self, text: str) -> list[float]:
        return [0.2, float(np.sqrt(1 - 0.2**2))] if "zxqv" in text else [1.0, 0.0]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_hit_by_meaning_alone_below_the_threshold_of_the_model_is_weak(
    url: str, owner: str, verbs: Wrap, way: str, scope: str
) -> None:
    with MemorySystem(url, owner=owner, embeddings=Directions()) as system:
        memory = system.conversation("garden")
        memory.append(FIGS, "Noted.")
        hits = verbs(memory).recall("zxqv gnarp", scope=scope)
        assert [(hit.weak, hit.why.weak) for hit in hits] == [(True, True)] * 2
        assert str(hits[0].why) == "similarity 0.20; weak"
        documents = ThreadMemRetriever(memory=memory, scope=scope).invoke("zxqv gnarp")
        assert [document.metadata["weak"] for document in documents] == [True, True]
        assert (
            recall_tool(memory, scope=scope).invoke({"query": "zxqv gnarp"}) == "Nothing was said about it."
        )
        assert not any(hit.weak for hit in verbs(memory).recall("zxqv figs", scope=scope))
        assert not any(hit.weak for hit in verbs(memory).recall("gnarp", scope=scope))


def test_without_a_threshold_no_hit_with_a_similarity_is_weak(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("garden")
    memory.append(FIGS, "Noted.")
    assert [hit.weak for hit in verbs(memory).recall("gnarp")] == [False, False]


@pytest.mark.parametrize("model", ["LocalEmbeddings", "MultilingualEmbeddings"])
def test_a_query_without_sense_finds_weak_hits_alone(model: str) -> None:
    import langchain_threadmem

    embeddings = getattr(langchain_threadmem, model)
    if not embeddings.available():
        pytest.skip(f"{model} is not installed")
    memory = ChatMemory(embeddings=embeddings())
    for text in (FIGS, "My office is in Rome.", "How do I read a CSV file?", "The meeting is on Monday."):
        memory.append(text, "Noted.")
    assert all(hit.weak for hit in memory.recall("qwertyuiop"))
    assert not memory.recall("appointment on Monday", 1)[0].weak
