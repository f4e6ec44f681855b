"""Search of a store by meaning: embedded fields, and the order of results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Word
from store_calls import NS, Calls, Clock, Make, keys, made

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import EmbeddingError


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, system: MemorySystem, clock: Clock) -> Iterator[Make]:
    yield from made(request.param, system, clock)


@pytest.fixture
def store(make: Make) -> Calls:
    return make()


def test_search_by_meaning_gives_the_most_similar_first(make: Make) -> None:
    store = make(index={"dims": 64, "fields": ["text"]})
    store.put(NS, "car", {"text": "a red car"})
    store.put(NS, "fruit", {"text": "green apples and pears"})
    store.put(NS, "silent", {"text": "apples"}, index=False)
    found = store.search(NS, query="pears and apples")
    assert keys(found) == ["fruit", "car", "silent"]
    assert 1 >= found[0].score > found[1].score
    assert found[2].score is None
    assert [keys(store.search(NS, query="pears", limit=1, offset=n)) for n in range(4)] == [
        ["fruit"],
        ["car"],
        ["silent"],
        [],
    ]
    assert keys(store.search(NS, query="red car", filter={"text": {"$ne": "a red car"}}))[0] != "car"


def test_a_text_of_a_subclass_is_embedded(make: Make) -> None:
    store = make(index={"dims": 64, "fields": ["text"]})
    store.put(NS, "fruit", {"text": Word("green apples")})
    assert store.search(NS, query="apples")[0].score > 0.5


def test_an_item_is_as_similar_as_its_most_similar_field(make: Make) -> None:
    store = make(index=True)
    store.put(
        NS, "list", {"notes": [{"text": "a red car"}, {"text": "green apples"}]}, index=["notes[*].text"]
    )
    store.put(NS, "one", {"text": "apples that are green and many other things"}, index=["text"])
    assert keys(store.search(NS, query="green apples")) == ["list", "one"]
    assert store.search(NS, query="green apples")[0].score == pytest.approx(1, abs=1e-3)


def test_a_new_value_is_found_by_its_new_meaning_only(make: Make) -> None:
    store = make(index=True)
    store.put(NS, "k", {"text": "a red car"})
    store.put(NS, "other", {"text": "a red car"})
    store.put(NS, "k", {"text": "green apples"})
    assert keys(store.search(NS, query="a red car")) == ["other", "k"]
    store.put(NS, "k", {"text": "a red car"}, index=False)
    assert store.search(NS, query="a red car")[1].score is None


def test_vectors_at_hand_follow_every_change(make: Make) -> None:
    stores = [make(index={"fields": ["text"]}) for _ in range(2)]

    def best(query: str) -> list[str]:
        return [
            f"{found.key} {found.score:.2f}" for one in stores for found in one.search(NS, query=query)[:1]
        ]

    stores[0].put(NS, "car", {"text": "red car"})
    stores[0].put(NS, "fruit", {"text": "green apples"})
    assert best("red car") == ["car 1.00"] * 2
    stores[1].put(NS, "car", {"text": "blue boats"})
    stores[1].put(NS, "van", {"text": "red car"})
    assert best("red car") == ["van 1.00"] * 2
    stores[0].delete(NS, "van")
    stores[0].put(NS, "van", {"text": "old trains"})
    assert best("red car") != ["van 1.00"] * 2
    assert best("old trains") == ["van 1.00"] * 2
    assert best("blue boats") == ["car 1.00"] * 2


def test_a_query_without_an_index_is_passed_over(store: Calls) -> None:
    store.put(NS, "k", {"text": "a red car"}, index=["text"])
    assert [item.score for item in store.search(NS, query="car")] == [None]


def test_functions_embed_too(make: Make) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]

    store = make(index={"dims": 2, "embed": embed, "fields": ["text"]})
    store.put(NS, "a", {"text": "aaa"})
    store.put(NS, "b", {"text": "bbb"})
    assert [(item.key, item.score) for item in store.search(NS, query="b")] == [("b", 1.0), ("a", 0.0)]


def test_values_that_are_no_json_are_embedded(make: Make) -> None:
    store = make(index=True)
    store.put(NS, "k", {"text": "car \ud800", "t": (1, b"x")})
    assert store.search(NS, query="car")[0].score is not None


def test_dims_that_the_model_does_not_have_are_refused(make: Make) -> None:
    store = make(index={"dims": 3})
    with pytest.raises(EmbeddingError, match="64 dimensions"):
        store.put(NS, "k", {"text": "a"})
    assert store.get(NS, "k") is None


def test_an_index_without_a_model_is_refused_when_it_is_needed(url: str, owner: str, make: Make) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        store = make(system, index=True)
        with pytest.raises(EmbeddingError, match="no embedding model"):
            store.put(NS, "k", {"text": "a"})
