"""Catch-up: nothing is embedded early, twice or in vain; a failure loses no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import WordEmbeddings
from langchain_core.embeddings import Embeddings

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import EmbeddingError
from langchain_threadmem.index import catch_up_words, embed
from langchain_threadmem.storage.statements import Statement

VECTORS = """SELECT count(*) FROM threadmem_embedding e WHERE e.model = {}
AND e.key NOT IN (SELECT key FROM threadmem_node)"""
ORPHANS = Statement.of(sqlite=VECTORS.format("?"), postgresql=VECTORS.format("%s"))


class Never(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError(f"embedded {texts!r}")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError(f"embedded {text!r}")


class Counting(WordEmbeddings):
    def __init__(self, name: str = "words") -> None:
        self.model_name = name
        self.texts: list[str] = []
        self.broken = False
        self.before: Callable[[], None] = lambda: None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.before()
        if self.broken:
            raise ConnectionError("no network")
        self.texts += texts
        return super().embed_documents(texts)


def test_a_linear_memory_embeds_nothing(url: str, owner: str, verbs: Callable[..., Any]) -> None:
    with MemorySystem(url, owner=owner, embeddings=Never()) as system:
        memory = verbs(system.conversation("c"))
        memory.append("q1", "a1")
        memory.extend(["q2", ("ai", "a2")])
        memory.edit(3, "q2 again")
        memory.checkout(2)
        assert [message.content for message in memory.messages()] == ["q1", "a1"]
        memory.reset()


def test_what_was_embedded_is_not_embedded_again(url: str, owner: str, verbs: Callable[..., Any]) -> None:
    for _ in range(2):
        model = Counting()  # the second time it is a new one, which remembers nothing
        with MemorySystem(url, owner=owner, embeddings=model) as system:
            memory = verbs(system.conversation("c"))
            if not system.conversations():
                memory.extend(["stars", ("ai", "helium")])
            assert memory.recall("stars")[0].node.id == 1
            assert memory.recall("helium")[0].node.id == 2
    assert model.texts == []


def test_a_failing_model_loses_no_turn_and_the_next_recall_goes_on(
    url: str, owner: str, verbs: Callable[..., Any]
) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        model.broken = True
        with pytest.raises(EmbeddingError, match="the messages are stored"):
            memory.recall("stars")
        memory.append("bread", "flour")
        model.broken = False
        assert memory.recall("flour")[0].node.id == 4
        assert sorted(model.texts) == ["bread", "flour", "helium", "stars"]


def test_another_model_embeds_anew_and_the_first_finds_its_own(
    url: str, owner: str, verbs: Callable[..., Any]
) -> None:
    counts = []
    for name in ("one", "two", "one"):
        model = Counting(name)
        with MemorySystem(url, owner=owner, embeddings=model) as system:
            memory = verbs(system.conversation("c"))
            if not system.conversations():
                memory.append("stars", "helium")
            hit = memory.recall("stars")[0]
            counts.append(len(model.texts))
            assert hit.why.similarity > 0.9
    assert counts == [2, 2, 0]


def test_a_long_conversation_is_caught_up_in_batches(
    system: MemorySystem, verbs: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "VECTORS_AT_ONCE", 4)
    monkeypatch.setattr(catch_up_words, "WORDS_AT_ONCE", 4)
    memory = verbs(system.conversation("c"))
    memory.extend(f"word{n}" for n in range(12))
    for n in (0, 4, 11):
        hit = memory.recall(f"word{n}", n_results=1)[0]
        assert (hit.node.id, hit.why.terms) == (n + 1, (f"word{n}",))


def test_a_reset_while_the_model_works_leaves_no_vector_and_hides_nothing_later(url: str, owner: str) -> None:
    model = Counting(f"model-of-{owner}")
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory: ChatMemory = system.conversation("c")
        memory.append("stars", "helium")
        model.before = memory.reset
        assert memory.recall("stars") == []
        model.before = lambda: None
        database = system.runtime.database
        assert database.read(lambda conn: conn.all(ORPHANS, model.model_name)) == [(0,)]
        memory.append("bread", "flour")
        assert memory.recall("flour")[0].why.similarity > 0.9


def test_a_reset_while_the_index_is_filled_leaves_no_vector(url: str, owner: str) -> None:
    from test_vectors import ListIndex

    class Slow(ListIndex):
        def add(self, keys: Any, matrix: Any) -> None:
            super().add(keys, matrix)
            memory.reset()

    index = Slow()
    with MemorySystem(url, owner=owner, embeddings=Counting(), vectors=index) as system:
        memory: ChatMemory = system.conversation("c")
        memory.append("stars", "helium")
        assert memory.recall("stars", scope="owner") == []
        assert index.held == {}


def test_words_of_any_length_and_number_are_found(system: MemorySystem) -> None:
    memory = system.conversation("c")
    many = " ".join(f"w{n:06}" for n in range(60_000))
    memory.extend(["x" * 50_000 + " amber", f"beryl {many}", "ö" * 3000])
    found = [
        [hit.node.id for hit in memory.recall(query, n_results=1) if hit.why.terms]
        for query in ("amber", "beryl", "x" * 50_000, "ö" * 3000)
    ]
    assert found == [[1], [2], [1], [3]]


def test_moved_messages_do_not_hide_those_they_overtook(system: MemorySystem) -> None:
    memory = system.conversation("c")
    memory.extend(["stars", ("ai", "helium"), "bread", ("ai", "flour")])
    memory.recall("stars")
    memory.append("opals", "silica")
    memory.place(3, None)
    for word in ("opals", "silica", "flour"):
        hit = memory.recall(word, n_results=1)[0]
        assert hit.node.message.content == word
        assert hit.why.similarity is not None
        assert hit.why.similarity > 0.9
