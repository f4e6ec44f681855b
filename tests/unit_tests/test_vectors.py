"""Vector indexes: exact search with threads, repair of Chroma from SQL, one process per directory."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from chromadb.errors import ChromaError, InternalError, RateLimitError
from conftest import WordEmbeddings
from numpy.typing import NDArray

from langchain_threadmem import MemorySystem
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.index import owner_index
from langchain_threadmem.index.chroma import CHROMA_FILE, Claim, open_chroma
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.vector_index import ExactIndex, ExactOwnerIndex, Found
from langchain_threadmem.index.vectors import Vectors

OTHER = """
import sys, logging
logging.basicConfig(level=logging.WARNING)
sys.path.insert(0, sys.argv[2])
from conftest import WordEmbeddings
from langchain_threadmem import MemorySystem
from langchain_threadmem.index import owner_index as index
index.EXACT_BELOW = 0
with MemorySystem(sys.argv[1], embeddings=WordEmbeddings()) as system:
    memory = system.conversation("c")
    for _ in range(3):
        hits = memory.recall("stars", scope="owner", n_results=1)
    print(hits[0].node.message.content, hits[0].why.similarity > 0.3)
"""


class ListIndex:
    """A minimal index that counts its calls."""

    name = "list"

    def __init__(self) -> None:
        self.held: dict[int, NDArray[np.float32]] = {}

    def add(self, keys: Any, matrix: NDArray[np.float32]) -> None:
        self.held.update(zip(keys, matrix, strict=True))

    def remove(self, keys: Any) -> None:
        for key in keys:
            self.held.pop(key, None)

    def search(self, vector: NDArray[np.float32], most: int) -> Found:
        best = sorted(self.held, key=lambda key: -float(self.held[key] @ vector))[:most]
        return Found(
            np.array(best, np.int64), np.array([self.held[key] @ vector for key in best], np.float32)
        )

    def count(self) -> int:
        return len(self.held)

    def keys(self) -> list[int]:
        return list(self.held)


def vectors(first: int, count: int) -> Vectors:
    seqs = np.arange(first, first + count)
    matrix = np.random.default_rng(first).standard_normal((count, 8)).astype(np.float32)
    return Vectors(seqs * 10, seqs, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def stars(system: MemorySystem) -> str:
    hits = system.conversation("c").recall("stars", scope="owner", n_results=1)
    return str(hits[0].node.message.content)


def fill(system: MemorySystem) -> None:
    system.conversation("c").append("How do stars burn?", "Hydrogen becomes helium.")
    system.conversation("d").append("How is bread baked?", "With flour and patience.")


def test_the_exact_index_finds_each_vector_by_itself() -> None:
    index, held = ExactIndex(), vectors(1, 200)
    index.extend(held)
    for row in (0, 63, 64, 199):
        assert index.search(held.matrix[row], 1).keys.tolist() == [held.keys[row]]
    assert index.search(held.matrix[0], 500).keys.size == 200


def test_the_vectors_of_an_owner_are_copied_once() -> None:
    count = 5_000
    vectors = Vectors(np.arange(count), np.arange(count), np.ones((count, 384), np.float32))
    tracemalloc.start()
    ExactOwnerIndex().add([vectors], {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * vectors.matrix.nbytes


def test_vectors_that_are_known_are_not_added_twice() -> None:
    index, held = ExactIndex(), vectors(1, 10)
    index.extend(held)
    index.extend(held)
    assert len(index.vectors.keys) == 10


def test_the_exact_index_is_searched_while_another_thread_adds() -> None:
    index, parts = ExactIndex(), [vectors(1 + 50 * n, 50) for n in range(60)]
    index.extend(parts[0])
    errors: list[str] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            found = index.search(parts[0].matrix[7], 1)
            if found.keys.tolist() != [parts[0].keys[7]] or abs(found.similarity[0] - 1) > 1e-5:
                errors.append(repr(found))

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for part in parts[1:]:
        index.extend(part)
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert index.last == 3000
    assert index.of([10, 5])[10].tolist() == parts[0].matrix[0].tolist()


@pytest.mark.usefixtures("chroma")
def test_a_second_process_is_served_from_sql_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=WordEmbeddings()) as system:
        fill(system)
        assert "stars" in stars(system)
        root = str(Path(__file__).parents[1])
        found = subprocess.run(
            [sys.executable, "-c", OTHER, str(path), root],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    assert found.stdout == "How do stars burn? True\n"
    assert found.stderr.count("another process has the vector directory") == 1


@pytest.mark.usefixtures("chroma")
@pytest.mark.parametrize(
    "error",
    [
        InternalError("Nothing found on disk"),
        ChromaError("Missing field: [Missing metadata segment]"),
        RateLimitError("Rate limit exceeded"),
        Exception("502 Bad Gateway"),  # Raised for the answers of other servers.
    ],
)
def test_a_damaged_index_raises_a_typed_error_and_is_filled_again(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `kill -9` of `chroma run`, or behind a proxy (chromadb 1.5.9)."""
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        assert "stars" in stars(system)
        index: Any = system.runtime.get(Indexes).index()
        name = index._collection.id

        def damaged(verb: str) -> Any:
            real = getattr(type(index._collection), verb)

            def call(collection: Any, *arguments: Any, **options: Any) -> Any:
                if collection.id == name:
                    raise error
                return real(collection, *arguments, **options)

            return call

        for verb in ("count", "get", "query"):
            monkeypatch.setattr(type(index._collection), verb, damaged(verb))
        with pytest.raises(PersistenceError, match=rf"{re.escape(str(error))}\).* reindex\(\) fills it"):
            stars(system)
        assert str(error) in str(system.verify())
        assert system.reindex() == 4
        assert "stars" in stars(system)
        assert system.verify().ok


SECOND = """
import sys
sys.path.insert(0, sys.argv[3])
from conftest import WordEmbeddings
from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import IndexInUseError
place = sys.argv[2]
if sys.argv[4] == "client":
    import chromadb
    place = chromadb.PersistentClient(place)
with MemorySystem(sys.argv[1], embeddings=WordEmbeddings(), vectors=place) as system:
    try:
        system.conversation("c").recall("stars", scope="owner")
    except IndexInUseError as error:
        print(error)
    print(system.erase(conversation="d").unscrubbed)
"""


@pytest.mark.parametrize("first", ["directory", "client"])
@pytest.mark.parametrize("second", ["directory", "client"])
def test_a_second_process_is_refused_the_directory_that_it_passes(
    tmp_path: Path, first: str, second: str
) -> None:
    place = tmp_path / "vectors"
    client = chromadb.PersistentClient(place, Settings(anonymized_telemetry=False))
    vectors: Any = client if first == "client" else place
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings(), vectors=vectors) as system:
        fill(system)
        assert "stars" in stars(system)
        root = str(Path(__file__).parents[1])
        found = subprocess.run(
            [sys.executable, "-c", SECOND, str(tmp_path / "memory.db"), str(place), root, second],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        refusal, unscrubbed = found.stdout.splitlines()
        assert refusal.startswith(f"another process has the vector directory {str(place)!r} open")
        assert "chroma run" in refusal
        assert "another process has the vector directory" in unscrubbed
        assert "stars" in stars(system)
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings(), vectors=place) as system:
        assert "stars" in stars(system)  # The directory is free again.
    client.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("chroma")
def test_the_directory_is_free_again_after_closing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
            fill(system)
            stars(system)
            assert system.runtime.get(Indexes).index() is not None
    assert caplog.text == ""


@pytest.mark.usefixtures("chroma")
def test_a_deleted_chroma_directory_is_filled_again_from_sql(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=WordEmbeddings()) as system:
        fill(system)
        stars(system)
    shutil.rmtree(tmp_path / "memory.db.chroma")
    model = WordEmbeddings()
    model.embed_documents = Mock(side_effect=AssertionError)  # type: ignore[method-assign] # nothing again
    with MemorySystem(path, embeddings=model) as system:
        assert "stars" in stars(system)
        assert system.reindex() == 4


def test_a_damaged_chroma_directory_is_named_and_is_filled_again_after_its_removal(tmp_path: Path) -> None:
    directory = tmp_path / "vectors"
    directory.mkdir()
    (directory / CHROMA_FILE).write_bytes(b"no database" * 1000)
    model = WordEmbeddings()
    with MemorySystem(tmp_path / "memory.db", owner="ada", embeddings=model, vectors=directory) as system:
        system.conversation("c").append("stars", "helium")
        for _ in range(2):
            with pytest.raises(PersistenceError, match=r"not a database.*delete it"):
                system.query("stars")
        receipt = system.erase(conversation="c")
        assert receipt.ok
        assert "not a database" in receipt.unscrubbed[0]
        assert "not a database" in system.scrub().unscrubbed[0]
        system.conversation("d").append("stars", "helium")
        shutil.rmtree(directory)
        assert system.query("stars", recall_context=False)[0][0].content == "stars"
        assert system.scrub().ok


def test_an_index_that_lost_vectors_is_repaired_when_it_is_opened(url: str, owner: str) -> None:
    index = ListIndex()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        fill(system)
        stars(system)
    index.remove(index.keys()[:1])
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        stars(system)
        assert index.count() == 4


def test_reindex_drops_what_sql_does_not_know(url: str, owner: str) -> None:
    index = ListIndex()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        fill(system)
        stars(system)
        index.add([999_999], np.ones((1, 64), np.float32))
        assert system.reindex() == 4
        assert 999_999 not in index.held


def test_reset_removes_the_vectors_of_a_conversation_even_in_a_new_process(url: str, owner: str) -> None:
    index = ListIndex()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        fill(system)
        stars(system)
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        system.conversation("c").reset()
        assert index.count() == 2


def test_a_claim_is_shared_within_a_process_and_let_go_with_the_last(tmp_path: Path) -> None:
    first, second = Claim(tmp_path), Claim(tmp_path)
    assert first.take()
    assert second.take()
    first.release()
    first.release()
    assert tmp_path.resolve() in Claim._locks
    second.release()
    assert tmp_path.resolve() not in Claim._locks


def test_chroma_opened_with_other_settings_in_this_process_leaves_the_search_to_sql(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = chromadb.PersistentClient(str(tmp_path), Settings(anonymized_telemetry=False, allow_reset=True))
    assert open_chroma(tmp_path) is None
    assert "different settings" in caplog.text
    claim = Claim(tmp_path)
    assert claim.take()
    claim.release()
    other.close()  # type: ignore[attr-defined]


def test_few_vectors_of_an_owner_are_searched_without_chroma(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        assert "stars" in stars(system)
        system.conversation("e").append("How do stars die?", "In a supernova.")
        hits = system.conversation("c").recall("stars", scope="owner", n_results=2)
        assert all("stars" in str(hit.node.message.content) for hit in hits)
        system.erase(conversation="c")
        assert stars(system) == "How do stars die?"


def test_many_vectors_move_to_chroma_and_stay_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        stars(system)
        index: Any = system.runtime.get(Indexes).index()
        assert index.count() == 0
        monkeypatch.setattr(owner_index, "EXACT_BELOW", 5)
        system.conversation("e").append("How do stars die?", "In a supernova.")
        assert "stars" in stars(system)
        assert index.count() == 6
        monkeypatch.setattr(owner_index, "EXACT_BELOW", 100)
        system.conversation("e").append("And the sun?", "It will swell.")
        assert system.conversation("c").recall("sun", scope="owner")[0].why.similarity is not None
        assert index.count() == 8


@pytest.mark.usefixtures("chroma")
def test_many_vectors_enter_chroma_in_the_background_and_are_searched_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_index, "FEW_TO_ADD", 2)
    goes_on = threading.Event()
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        system.conversation("e").append("How do stars die?", "In a supernova.")
        index: Any = system.runtime.get(Indexes).index()
        add = index.add
        monkeypatch.setattr(index, "add", lambda *given: goes_on.wait(60) and add(*given))
        assert "stars" in stars(system)
        assert index.count() == 0
        goes_on.set()
        while system.runtime.ahead.busy(system.runtime.get(owner_index.OwnerVectors).filling):
            time.sleep(0.01)
        assert index.count() == 6
        assert "stars" in stars(system)
        assert system.verify().ok


@pytest.mark.usefixtures("chroma")
def test_an_index_that_was_half_filled_is_filled_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        system.flush()
        index: Any = system.runtime.get(Indexes).index()
        monkeypatch.setattr(owner_index, "ADDED_AT_ONCE", 1)
        assert run(owner_index._add_some(system.runtime, index, {}), system.runtime)
        assert index.count() == 1
        monkeypatch.undo()
        monkeypatch.setattr(owner_index, "EXACT_BELOW", 0)
        assert "stars" in stars(system)
        assert index.count() == 4
        assert system.verify().ok


@pytest.mark.usefixtures("chroma")
def test_what_is_purged_while_it_enters_chroma_does_not_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        system.flush()
        index: Any = system.runtime.get(Indexes).index()
        add = index.add

        def purged_first(keys: Any, matrix: Any) -> None:
            monkeypatch.setattr(index, "add", add)
            system.forget(max_units=3, purge=True)
            add(keys, matrix)

        monkeypatch.setattr(index, "add", purged_first)
        stars(system)
        assert index.count() == 3
        assert system.verify().ok


def test_reindexing_few_vectors_leaves_them_to_exact_search(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        stars(system)
        assert system.reindex() == 0
        assert "stars" in stars(system)


@pytest.mark.usefixtures("chroma")
def test_reindexing_many_vectors_waits_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_index, "FEW_TO_ADD", 1)
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        assert system.reindex() == 4
        assert system.verify().ok


def test_what_another_process_forgot_is_searched_no_more(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        fill(system)
        stars(system)
        with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as other:
            other.conversation("c").reset()
        stars(system)
        assert len(system.runtime.get(owner_index.OwnerVectors).whole.index.vectors.keys) == 2


@pytest.fixture
def shared(url: str, owner: str) -> Iterator[tuple[MemorySystem, MemorySystem]]:
    """Two systems with one database and one Chroma server, as two processes have them."""
    client = chromadb.EphemeralClient()
    options: dict[str, Any] = {"owner": owner, "embeddings": WordEmbeddings(), "vectors": client}
    with MemorySystem(url, **options) as first, MemorySystem(url, **options) as second:
        fill(first)
        yield first, second


def once(
    index: Any, call: str, work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """Run work of another process once, before or after a call of an index."""
    real = getattr(index, call)

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(index, call, real)
        if not after:
            work()
        result = real(*arguments)
        if after:
            work()
        return result

    monkeypatch.setattr(index, call, interrupted)


def index_of(system: MemorySystem) -> Any:
    return system.runtime.get(Indexes).index()


def test_vectors_that_another_process_adds_while_an_index_is_emptied_are_added_again(
    shared: tuple[MemorySystem, MemorySystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = shared
    stars(second)
    index_of(second).remove(index_of(second).keys()[:1])  # The first search of another process empties it.

    def meanwhile() -> None:
        stars(second)
        second.conversation("e").append("How does rain fall?", "In drops.")

    once(index_of(first), "clear", meanwhile, monkeypatch, after=False)
    assert "stars" in stars(first)
    assert first.verify().ok
    assert index_of(first).count() == 6


def test_an_index_that_is_emptied_before_an_addition_is_recorded_is_filled_again(
    shared: tuple[MemorySystem, MemorySystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = shared
    second.conversation("e").append("How does rain fall?", "In drops.")
    monkeypatch.setattr(owner_index, "ADDED_AT_ONCE", 2)
    once(index_of(second), "add", lambda: first.erase(conversation="e"), monkeypatch, after=True)
    assert "stars" in stars(second)
    assert second.verify().ok
    assert index_of(second).count() == 4


def test_vectors_that_another_process_adds_are_no_difference_of_the_index(
    shared: tuple[MemorySystem, MemorySystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = shared
    stars(second)
    index = index_of(first)
    monkeypatch.setattr(index, "clear", Mock(side_effect=AssertionError("the index was emptied")))

    def meanwhile() -> None:
        second.conversation("e").append("How does rain fall?", "In drops.")
        stars(second)

    once(index, "count", meanwhile, monkeypatch, after=True)
    assert "stars" in stars(first)
    assert index.count() == 6
