"""`flush`: embedding before recall, recall without it, and a change of the model."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_index import Counting

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.common import workers
from langchain_threadmem.errors import EmbeddingError
from langchain_threadmem.index import embed

Wrap = Callable[[ChatMemory], Any]
SOON = 120.0


class Held(Counting):
    """Embeds messages after a signal."""

    def __init__(self, name: str = "words") -> None:
        super().__init__(name)
        self.go_on = threading.Event()
        self.asked = threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.set()
        assert self.go_on.wait(SOON)
        return super().embed_documents(texts)


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + SOON
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "FEW", 20)


def test_flush_embeds_once_what_is_not_embedded(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert (memory.flush(), memory.flush()) == (2, 0)
        assert memory.recall("stars", 1)[0].why.similarity > 0.9
        assert sorted(model.texts) == ["helium", "stars"]


def test_a_recall_that_does_not_wait_goes_by_words_for_the_rest(url: str, owner: str, verbs: Wrap) -> None:
    model = Held()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert memory.recall("helium", 1, wait=False)[0].node.id == 2
        model.go_on.set()
        memory.flush()
        model.go_on.clear()
        memory.append("bread", "flour")
        for scope in ("conversation", "owner"):
            hit = memory.recall("flour", 1, wait=False, scope=scope)[0]
            assert (hit.node.id, hit.why.terms) == (4, ("flour",))
        assert sorted(model.texts) == ["helium", "stars"]
        model.go_on.set()


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
    monkeypatch.setattr(embed, "VECTORS_AT_ONCE", 4)
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


def test_what_is_appended_after_a_recall_is_embedded_in_the_background(
    url: str, owner: str, verbs: Wrap
) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        assert not system.runtime.embedder.is_resolved
        memory.recall("stars")
        memory.append("bread", "flour")
        assert eventually(lambda: len(model.texts) == 4)
        assert (memory.flush(), sorted(model.texts)) == (0, ["bread", "flour", "helium", "stars"])


def test_an_import_is_found_by_its_words_until_it_is_embedded(url: str, owner: str, verbs: Wrap) -> None:
    model = Held()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.extend(f"word{n}" for n in range(embed.FEW + 1))
        for scope in ("conversation", "owner"):
            hit = memory.recall("word7", 1, scope=scope)[0]
            assert (hit.node.id, hit.why.similarity) == (8, None)
        assert model.asked.wait(SOON)  # It is under way, and has not kept the recall waiting.
        model.go_on.set()
        memory.flush()
        assert memory.recall("word7", 1)[0].why.similarity > 0.9
        assert len(model.texts) == len(set(model.texts)) == embed.FEW + 1


def test_a_recall_can_wait_for_an_import(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=Counting()) as system:
        memory = verbs(system.conversation("c"))
        memory.extend(f"word{n}" for n in range(embed.FEW + 1))
        for scope in ("conversation", "owner"):
            assert memory.recall("word7", 1, wait=True, scope=scope)[0].why.similarity > 0.9


def test_a_turn_of_a_moment_ago_is_found_by_its_meaning(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=Counting()) as system:
        memory = verbs(system.conversation("c"))
        for n in range(20):
            memory.append(f"word{n}", f"answer{n}")
            assert memory.recall(f"word{n}", 1)[0].why.similarity > 0.9


def test_a_failure_in_the_background_is_logged_and_raised_by_the_next_recall(
    url: str, owner: str, verbs: Wrap, caplog: pytest.LogCaptureFixture
) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.append("stars", "helium")
        memory.recall("stars")
        model.broken = True
        with caplog.at_level(logging.WARNING):
            memory.extend(f"word{n}" for n in range(embed.FEW + 1))
            assert eventually(lambda: "no network" in caplog.text)
        with pytest.raises(EmbeddingError, match="no network"):
            memory.recall("word7")
        with pytest.raises(EmbeddingError, match="no network"):
            memory.flush()
        model.broken = False
        assert memory.flush() == embed.FEW + 1


def test_an_append_is_not_troubled_by_a_model_that_fails(url: str, owner: str, verbs: Wrap) -> None:
    model = Counting()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.recall("stars")
        model.broken = True
        for n in range(5):
            memory.append(f"word{n}", "yes")
        model.broken = False
        assert memory.recall("word3", 1)[0].why.similarity > 0.9


def test_closing_does_not_wait_for_a_model_that_hangs(
    url: str, owner: str, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.1)
    model = Held()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = verbs(system.conversation("c"))
        memory.recall("stars")
        memory.append("stars", "helium")
        assert model.asked.wait(SOON)
    model.go_on.set()
    with MemorySystem(url, owner=owner, embeddings=Counting()) as system:
        assert verbs(system.conversation("c")).flush() == 2


def test_a_process_ends_while_a_model_hangs(tmp_path: Path) -> None:
    program = f"""
import sys, time
from langchain_core.embeddings import Embeddings
from langchain_threadmem import MemorySystem
from langchain_threadmem.common import workers

workers.GRACE = 0.1

class Hangs(Embeddings):
    def embed_documents(self, texts):
        time.sleep(600)

    def embed_query(self, text):
        return [1.0]

memory = MemorySystem({str(tmp_path / "memory.db")!r}, embeddings=Hangs()).conversation("c")
memory.recall("stars")
memory.append("stars", "helium")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


def test_erasing_does_not_wait_for_what_is_being_embedded(url: str, owner: str, verbs: Wrap) -> None:
    model = Held()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = system.conversation("c")
        memory.recall("stars")
        memory.append("stars", "helium")
        assert model.asked.wait(SOON)
        receipt = verbs(system).erase(conversation="c")
        model.go_on.set()
        assert system.flush() == 0
        assert verbs(system).check_erased(receipt).ok
        assert system.verify().ok
