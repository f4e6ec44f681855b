"""`flush`: embedding ahead of recall, recall without it, and another model later on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_index import Counting

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.flows import index as module

Wrap = Callable[[ChatMemory], Any]


def test_flush_embeds_once_what_is_not_embedded(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert (memory.flush(), memory.flush()) == (2, 0)
        assert memory.recall("stars", 1)[0].why.similarity > 0.9
        assert sorted(model.texts) == ["helium", "stars"]


def test_a_recall_that_does_not_wait_goes_by_words_for_the_rest(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert memory.recall("helium", 1, wait=False)[0].node.id == 2
        memory.flush()
        memory.append("bread", "flour")
        assert [hit.node.id for hit in memory.recall("flour", 1, wait=False)] == [4]
        assert memory.recall("flour", 1, wait=False, scope="owner")[0].node.id == 4
        assert sorted(model.texts) == ["helium", "stars"]


def test_a_system_flushes_every_conversation_and_says_how_far_it_is(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=Counting()) as system:
        for name in ("a", "b", "c"):
            system.conversation(name).append(f"stars {name}", "helium")
        steps: list[tuple[int, int]] = []
        assert system.flush(lambda done, of: steps.append((done, of))) == 6
        assert steps == [(1, 3), (2, 3), (3, 3)]


def test_another_model_goes_on_where_its_flush_was_interrupted(
    url: str, owner: str, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VECTORS_AT_ONCE", 4)
    with MemorySystem(url, owner=owner, embeddings=Counting("one")) as system:
        memory = system.conversation("c")
        memory.extend(f"word{n}" for n in range(10))
        assert memory.flush() == 10

    class Tired(Counting):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.broken = len(self.texts) >= 4
            return super().embed_documents(texts)

    tired = Tired("two")
    with (
        MemorySystem(url, owner=owner, embeddings=tired) as system,
        pytest.raises(Exception, match="no network"),
    ):
        verbs(system.conversation("c")).flush()
    rested = Counting("two")
    with MemorySystem(url, owner=owner, embeddings=rested) as system:
        assert verbs(system.conversation("c")).flush() == 6
    assert (len(tired.texts), len(rested.texts)) == (4, 6)


def test_without_a_model_there_is_nothing_to_flush(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert (memory.flush(), system.flush()) == (0, 0)
