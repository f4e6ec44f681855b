"""Catch-up of many conversations runs in full batches, and an erasure waits for one batch only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings
from test_index import Counting

from langchain_threadmem import MemorySystem
from langchain_threadmem.engine.flow import run
from langchain_threadmem.index import embed, owner_index, vectors
from langchain_threadmem.index.indexes import Indexes, IndexSettings
from langchain_threadmem.maintenance.removal.forget import forget_message
from langchain_threadmem.recall.postings import PostingsCache
from langchain_threadmem.storage.statements import Conn

Wrap = Callable[[Any], Any]
SOON = 120.0


class Calls(Counting):
    """Counts its calls."""

    calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        return super().embed_documents(texts)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that a database ran."""
    found: list[str] = []
    for name in ("run", "all", "many"):
        method = getattr(Conn, name)

        def noted(conn: Conn, statement: Any, *values: Any, method: Any = method) -> Any:
            found.append(statement.sql(conn.dialect))
            return method(conn, statement, *values)

        monkeypatch.setattr(Conn, name, noted)
    return found


def fill(system: MemorySystem, conversations: int) -> None:
    for number in range(conversations):
        system.conversation(f"c{number}").append(f"How do stars burn? {number}", "Hydrogen.")


@pytest.mark.usefixtures("chroma")
def test_what_it_takes_to_catch_up_does_not_grow_with_conversations(
    url: str, owner: str, verbs: Wrap, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    for conversations in (10, 40):
        model, place = Calls(), tmp_path / f"vectors{conversations}"
        with MemorySystem(url, owner=f"{owner}{conversations}", embeddings=model, vectors=place) as system:
            monkeypatch.setattr(system.runtime.ahead, "start", lambda *job, **how: None)
            for number in range(conversations):
                system.conversation(f"c{number}").append(f"star{number}", f"planet{number}")
            asked.clear()
            # One message alone fits, so that the number of hits that are read is the same, too.
            verbs(system).query("star7", k_limit=1, recall_context=False, search_range=(None, None))
            taken.append((len(asked), model.calls))
    assert taken[0] == taken[1]


def test_what_waits_in_the_background_is_embedded_in_full_batches(
    url: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Calls()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        system.conversation("c").recall("stars")
        monkeypatch.setattr(system.runtime.ahead, "start", lambda *job, **how: None)
        fill(system, 40)
        monkeypatch.undo()
        system.conversation("c").append("last", "words")
        queue = system.runtime.get(embed.EmbeddingQueue)
        while queue.waiting or queue.current:
            system.runtime.ahead.wait(system.runtime.get(embed.EmbeddingQueue).job)
        assert model.calls == 3  # 16 conversations of two messages each in a batch of 32.
        assert system.flush() == 0


class Slow:
    """Delays the entry of vectors into an index."""

    def __init__(self, index: Any) -> None:
        self.go_on, self.begun, self.calls = threading.Event(), threading.Event(), 0
        self._add, index.add = index.add, self.add

    def add(self, *given: Any) -> None:
        self.calls += 1
        self._add(*given)
        self.begun.set()
        assert self.go_on.wait(SOON)


@pytest.fixture
def filling(
    url: str, owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chroma: None
) -> Iterator[tuple[MemorySystem, Slow]]:
    """A memory whose index is filled in batches of two conversations."""
    monkeypatch.setattr(owner_index, "FEW_TO_ADD", 4)
    monkeypatch.setattr(owner_index, "ADDED_AT_ONCE", 4)
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=tmp_path / "vectors") as system:
        system.runtime.get(IndexSettings).chooses_index = True
        fill(system, 12)
        slow = Slow(system.runtime.get(Indexes).index())
        system.query("stars")
        assert slow.begun.wait(SOON)
        yield system, slow
        slow.go_on.set()


def test_an_erasure_waits_for_one_piece_of_the_index_and_leaves_nothing_of_it(
    filling: tuple[MemorySystem, Slow], verbs: Wrap
) -> None:
    system, slow = filling
    threading.Timer(0.1, slow.go_on.set).start()
    receipt = verbs(system).erase(conversation="c0")
    assert slow.calls == 1
    assert (receipt.ok, receipt.vectors) == (True, 2)
    assert system.verify().ok
    assert system.reindex() == 22
    assert system.verify().ok


def test_an_index_that_is_being_filled_is_no_damage(filling: tuple[MemorySystem, Slow], verbs: Wrap) -> None:
    system, slow = filling
    assert verbs(system).verify().ok
    slow.go_on.set()
    while system.runtime.ahead.busy(system.runtime.get(owner_index.OwnerVectors).filling):
        system.runtime.ahead.wait(system.runtime.get(owner_index.OwnerVectors).filling)
    assert verbs(system).verify().ok
    index = system.runtime.get(Indexes).index()
    assert index is not None
    assert index.count() == 24


class Interrupted(WordEmbeddings):
    """Calls a function during its first call."""

    meanwhile: Callable[[], object] | None = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().embed_documents(texts)


@pytest.mark.parametrize("purge", [True, False])
def test_a_message_that_is_removed_while_it_is_embedded_gets_no_vector(
    url: str, owner: str, verbs: Wrap, purge: bool
) -> None:
    model = Interrupted()
    with MemorySystem(url, owner=owner, embeddings=model) as system, MemorySystem(url, owner=owner) as other:
        memory = verbs(system.conversation("talk"))
        memory.append("Where does the badger sleep?", "In the kettle.")
        model.meanwhile = lambda: other.forget(1.0, purge=purge)
        memory.append("Good night.", "Good night.")
        verbs(system).flush()
        assert model.meanwhile is None
        name = system.runtime.get(Indexes).model
        assert system.runtime.database.read(lambda conn: vectors.count(conn, owner, name)) == 0
        assert list(system.runtime.embedder._recent) == []


def test_the_vector_of_a_message_that_another_process_forgot_is_not_that_of_the_next_message(
    url: str, owner: str
) -> None:
    model = Counting()
    with (
        MemorySystem(url, owner=owner, embeddings=model) as system,
        MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as other,
    ):
        memory = system.conversation("c")
        memory.append("stars", "helium")
        memory.append("bread", "granite")
        assert memory.recall("granite")[0].node.id == 4
        run(forget_message(other.conversation("c")._conversation, 4, purge=False), other.runtime)
        system.runtime.get(PostingsCache).values.clear()
        model.broken = True  # So the new messages get no vectors.
        memory.append("tea", "warm")
        similarity_of = {hit.node.id: hit.why.similarity for hit in memory.recall("granite", wait=False)}
        assert 4 not in similarity_of
        assert similarity_of[5] is None


def test_a_recall_whose_indexes_lack_nothing_is_one_transaction(
    url: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c")
        memory.append("stars", "helium")
        memory.recall("stars")
        database, reads = system.runtime.database, []
        plain = database.read
        monkeypatch.setattr(database, "read", lambda transaction: reads.append(0) or plain(transaction))
        assert memory.recall("helium")[0].node.id == 2
        assert len(reads) == 1


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_messages_that_were_purged_before_they_were_indexed_are_not_looked_for_again(
    url: str, owner: str, monkeypatch: pytest.MonkeyPatch, scope: Any
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c")
        memory.append("stars", "helium")
        memory.append("bread", "granite")
        run(forget_message(memory._conversation, 4, purge=True), system.runtime)
        run(forget_message(memory._conversation, 3, purge=True), system.runtime)
        for _ in range(2):
            memory.recall("stars", scope=scope)
        database, writes = system.runtime.database, []
        plain = database.write
        monkeypatch.setattr(database, "write", lambda transaction: writes.append(0) or plain(transaction))
        assert memory.recall("stars", scope=scope)[0].node.id == 1
        assert writes == []
        assert system.flush() == 0
