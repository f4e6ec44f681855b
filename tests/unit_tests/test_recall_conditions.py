"""Conditions of `recall`: speaker, time and scope; age, reranking; reasons.

Each test runs for both sources of `recall.search`: the whole conversation, and candidates from the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_threadmem import ChatMemory, Language, MemorySystem, Recollection
from langchain_threadmem.errors import InputError
from langchain_threadmem.recall import candidates, search, sources
from langchain_threadmem.recall.options import Conditions, RecallOptions

Wrap = Callable[[ChatMemory], Any]
FILLER = ("The weather is mild.", "Supper was good.", "Trains were late.", "Music helps.")


def said(speaker: str, text: str, time: str | None = None) -> BaseMessage:
    kind = HumanMessage if speaker == "Ada" else AIMessage
    return kind(text, name=speaker, additional_kwargs={"time": time} if time else {})


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    """Two people, three meetings, a kite at each."""
    memory = system.conversation("kites")
    for day in ("1 May, 2023", "1 June, 2023", "1 July, 2023"):
        memory.extend([said("Ada", f"I flew the kite. {day}", day), said("Ben", "My kite tore.", day)])
        memory.extend([said(("Ada", "Ben")[n % 2], text, day) for n, text in enumerate(FILLER)])
    return memory


def texts(hits: Sequence[Recollection]) -> list[Any]:
    return [hit.node.message.content for hit in hits]


@pytest.mark.parametrize(("speaker", "found"), [("Ada", {"Ada"}), ("ben", {"Ben"}), ("Cleo", set())])
def test_a_speaker(memory: ChatMemory, verbs: Wrap, way: str, speaker: str, found: set[str]) -> None:
    hits = verbs(memory).recall("kite", 50, speaker=speaker)
    assert {hit.node.message.name for hit in hits} == found


@pytest.mark.parametrize(("role", "found"), [("human", "human"), ("user", "human"), ("ai", "ai")])
def test_a_role(memory: ChatMemory, verbs: Wrap, way: str, role: str, found: str) -> None:
    assert {hit.node.message.type for hit in verbs(memory).recall("kite", 50, role=role)} == {found}


def test_since_and_until(memory: ChatMemory, verbs: Wrap, way: str) -> None:
    june, july = datetime(2023, 6, 1, tzinfo=UTC), datetime(2023, 7, 1, tzinfo=UTC)
    hits = verbs(memory).recall("kite", 50, since=june, until=july)
    assert {hit.node.message.additional_kwargs["time"] for hit in hits} == {"1 June, 2023"}
    assert {
        hit.node.message.additional_kwargs["time"] for hit in verbs(memory).recall("kite", 50, since=july)
    } == {"1 July, 2023"}


def test_a_half_life_brings_the_newest_forward(memory: ChatMemory, verbs: Wrap, way: str) -> None:
    hit = verbs(memory).recall("kite tore", 1, half_life=timedelta(days=2))[0]
    assert hit.node.message.additional_kwargs["time"] == "1 July, 2023"


def test_the_scope_of_a_thread(system: MemorySystem, verbs: Wrap, way: str) -> None:
    memory = system.conversation("forked")
    memory.append("Is the kite red?", "The kite is red.")
    memory.append("And blue?", "A blue kite.")
    memory.place(3, None)
    memory.checkout(2)
    everywhere, here = (verbs(memory).recall("kite", 50, scope=scope) for scope in ("conversation", "thread"))
    assert "A blue kite." in texts(everywhere)
    assert {hit.node.id for hit in here} == {1, 2}


def test_a_person_who_is_named_and_a_time_that_is_named_are_told(
    memory: ChatMemory, verbs: Wrap, way: str
) -> None:
    hit = verbs(memory).recall("What did Ada do with the kite on 1 June 2023?", 1)[0]
    assert hit.node.message.content == "I flew the kite. 1 June, 2023"
    assert (hit.why.person, hit.why.date) == ("ada", 1.0)
    assert "kite" in hit.why.terms
    assert "said by ada; said at the named time" in str(hit.why)


def test_a_neighbour_is_told(url: str, owner: str, verbs: Wrap, way: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("long")
        memory.extend([text for _ in range(15) for text in FILLER])
        memory.extend(["Where is the kite?", ("ai", "In the attic.")])
        hits = verbs(memory).recall("kite", 5)
        assert texts(hits[:2]) == ["Where is the kite?", "In the attic."]
        assert (hits[1].why.terms, hits[1].why.neighbours > 0) == ((), True)
        assert str(hits[1].why) == "next to messages that match"


def test_forms_of_a_word_find_each_other(url: str, owner: str, verbs: Wrap, way: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        memory.extend([*FILLER, "I was flying my kites."])
        assert texts(verbs(memory).recall("kite fly", 1)) == ["I was flying my kites."]


class Backwards:
    def __init__(self) -> None:
        self.texts: Sequence[str] = []

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.texts = texts
        return [float(len(text)) for text in texts]


class AsyncOnly(Backwards):
    async def arerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self.rerank(query, texts)


@pytest.mark.parametrize("kind", [Backwards, AsyncOnly])
def test_a_reranker_has_the_last_word(
    memory: ChatMemory, verbs: Wrap, way: str, kind: type[Backwards]
) -> None:
    reranker = kind()
    hits = verbs(memory).recall("kite", 2, reranker=reranker)
    longest = max(len(text) for text in reranker.texts)
    assert (len(hits), hits[0].score) == (2, float(longest))
    assert len(str(hits[0].node.message.content)) == longest


def test_a_reranker_that_forgets_a_text_is_an_error(memory: ChatMemory, verbs: Wrap) -> None:
    class Short:
        def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
            return [1.0]

    with pytest.raises(InputError, match="one score for each"):
        verbs(memory).recall("kite", reranker=Short())


@pytest.mark.parametrize(
    "options",
    [
        {"role": "robot"},
        {"scope": "world"},
        {"since": "yesterday"},
        {"until": 5},
        {"half_life": timedelta(0)},
        {"half_life": 3600},
        {"half_life": "30 days"},
        {"max_tokens": 0},
        {"reranker": 5},
    ],
    ids=lambda options: next(iter(options)),
)
def test_bad_conditions_are_refused_by_value(
    memory: ChatMemory, verbs: Wrap, options: dict[str, Any]
) -> None:
    with pytest.raises(InputError) as caught:
        verbs(memory).recall("kite", **options)
    assert next(iter(options.values())).__repr__() in str(caught.value)


def test_the_conditions_are_those_of_wanted() -> None:
    assert set(get_type_hints(Conditions)) == set(RecallOptions.__slots__) - {"n_results"}


def test_hostile_speakers_find_nothing(memory: ChatMemory, verbs: Wrap, way: str) -> None:
    for name in ("x' OR '1'='1", '"', "%", "_", "", "§n"):
        assert verbs(memory).recall("kite", 50, speaker=name) == []


@pytest.mark.parametrize("language", [Language("plain"), Language("shouting", str.upper)])
def test_another_language_is_another_index(
    url: str, owner: str, verbs: Wrap, way: str, language: Language
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("Three kites.", "Nice.")
        assert texts(memory.recall("kite", 1)) == ["Three kites."]
    with MemorySystem(url, owner=owner, embeddings=False, language=language) as other:
        verb = verbs(other.conversation("c"))
        assert verb.recall("kite", 1) == []
        assert texts(verb.recall("kites", 1)) == ["Three kites."]
        verb.reset()
        verb.append("Two kites.", "Fine.")
        assert texts(verb.recall("kites", 1)) == ["Two kites."]
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert texts(system.conversation("c").recall("kite", 5)) == ["Two kites."]


def test_vowel_signs_of_indian_scripts_do_not_divide_words(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("शाम को दाल बनेगी", "ठीक")
        assert memory.recall("शादी") == []
        memory.append("रविवार को शादी में जाना है", "ठीक")
        [found] = memory.recall("शादी")
        assert found.node.message.text == "रविवार को शादी में जाना है"


def test_both_ways_find_the_same_first(memory: ChatMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = ["kite", "Ada flew", "What tore in June?", "supper", "music helps trains"]
    whole = [memory.recall(query, 1)[0].node.message.content for query in queries]
    monkeypatch.setattr(candidates, "READ_WHOLE", 0)
    assert [memory.recall(query, 1)[0].node.message.content for query in queries] == whole


def test_a_very_common_word_does_not_hide_a_rare_one(system: MemorySystem, way: str) -> None:
    memory = system.conversation("long")
    memory.extend([f"tea number {n}" for n in range(sources.FEWEST_CANDIDATES * 12)])
    memory.extend(["tea with cardamom", *(f"tea again {n}" for n in range(500))])
    assert texts(memory.recall("tea cardamom", 1)) == ["tea with cardamom"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"metadata.time": "1 June, 2023", "speaker": "Ada"}, ["I flew the kite. 1 June, 2023"]),
        ([("content", "contains", "tore"), ("metadata['time']", "==", "1 May, 2023")], ["My kite tore."]),
        ({"$and": [{"role": "ai"}, {"$not": {"content": {"$like": "%kite%"}}}]}, []),
        ({"metadata.time": {"$in": []}}, []),
        ({"metadata.mood": "good"}, []),
    ],
)
def test_filters(memory: ChatMemory, verbs: Wrap, way: str, filters: Any, found: list[str]) -> None:
    hits = verbs(memory).recall("kite", 50, filters=filters)
    assert [text for text in texts(hits) if "kite" in text] == found


def test_a_filter_finds_what_is_far_down_the_ranking(
    memory: ChatMemory, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "READ_AT_ONCE", 2)
    memory.extend([HumanMessage("kite kite kite")] * 20)
    last = HumanMessage("Is it a kite, that thing far away up there?", additional_kwargs={"topic": "sky"})
    memory.extend([last])
    hits = verbs(memory).recall("kite", 1, filters={"metadata.topic": "sky"})
    assert texts(hits) == [last.content]


@pytest.mark.parametrize(
    "filters",
    [
        {"colour": "red"},
        {"role": {"$regex": "."}},
        {"metadata": {"x') OR '1'='1": 1}},
        "role",
        [("role", "=")],
    ],
)
def test_a_filter_that_means_nothing_is_refused(memory: ChatMemory, verbs: Wrap, filters: Any) -> None:
    with pytest.raises(InputError):
        verbs(memory).recall("kite", filters=filters)
