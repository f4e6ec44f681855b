"""Crashes between SQL and Chroma, at each step: no data is lost, and no removed data stays.

Each index has a watermark in SQL, which is moved after the index was written. When an index is opened, it is
compared with its watermark, and incomplete work is repeated.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import WordEmbeddings

from langchain_threadmem import MemorySystem
from langchain_threadmem.index import owner_index
from langchain_threadmem.index.indexes import Indexes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chroma")]

DIE = """
import os, sys
sys.path.insert(0, sys.argv[4])
from conftest import WordEmbeddings
from langchain_threadmem import MemorySystem
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index.chroma import ChromaIndex
from langchain_threadmem.common.workers import Gradual
from langchain_threadmem.index import owner_index as index
Gradual.start = lambda *_: None  # Nothing is done before the verb is.
index.EXACT_BELOW = 0
path, (where, name, when), verb = sys.argv[1], sys.argv[2].split(), sys.argv[3]
system = MemorySystem(path, embeddings=WordEmbeddings())
memory = system.conversation("c")
memory.append("stars", "helium")
memory.recall("stars", scope="owner")
memory.append("bread", "flour")
target = {"model": WordEmbeddings, "sql": embeddings, "chroma": ChromaIndex}[where]
real = getattr(target, name)
def dying(*arguments, **options):
    if when == "after":
        real(*arguments, **options)
    os._exit(9)
setattr(target, name, dying)
{
    "recall": lambda: memory.recall("bread", scope="owner"),
    "flush": memory.flush,
    "reset": memory.reset,
    "reindex": system.reindex,
}[verb]()
"""


class Counting(WordEmbeddings):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return super().embed_documents(texts)


def die(path: Path, where: str, verb: str) -> None:
    tests = str(Path(__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", DIE, str(path), where, verb, tests],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert found.returncode == 9, found.stderr


def vectors(system: MemorySystem) -> int:
    index: Any = system.runtime.get(Indexes).index()
    return int(index.count())


@pytest.mark.parametrize(
    ("where", "verb", "embedded"),
    [
        ("model embed_documents before", "recall", 2),
        ("model embed_documents after", "flush", 2),
        ("sql put before", "recall", 2),
        ("chroma add before", "recall", 0),
        ("chroma add after", "recall", 0),
        ("chroma clear before", "reindex", 2),
        ("chroma clear after", "reindex", 2),
        ("chroma add before", "reindex", 0),
        ("chroma add after", "reindex", 0),
    ],
)
def test_what_was_said_is_found_whenever_the_process_dies(
    tmp_path: Path, where: str, verb: str, embedded: int
) -> None:
    path = tmp_path / "memory.db"
    die(path, where, verb)
    model = Counting()
    with MemorySystem(path, embeddings=model) as system:
        for text in ("stars", "helium", "bread", "flour"):
            hit = system.conversation("new").recall(text, 1, scope="owner")[0]
            assert hit.node.message.content == text
            assert hit.why.similarity is not None
            assert hit.why.similarity > 0.9
        assert vectors(system) == 4
        assert len(model.texts) == embedded  # What was embedded and stored is not embedded again.
        assert system.verify().ok


@pytest.mark.parametrize("where", ["chroma remove before", "chroma remove after"])
def test_what_was_erased_stays_erased_whenever_the_process_dies(tmp_path: Path, where: str) -> None:
    path = tmp_path / "memory.db"
    die(path, where, "reset")
    with MemorySystem(path, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c")
        assert memory.recall("stars", scope="owner") == []
        assert vectors(system) == 0
        memory.append("silk", "worms")
        assert memory.recall("silk", 1, scope="owner")[0].node.message.content == "silk"
        assert vectors(system) == 2
        assert system.verify().ok


def test_erasing_again_takes_out_what_a_process_that_died_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    die(path, "chroma remove before", "reset")
    monkeypatch.setattr(owner_index, "EXACT_BELOW", 1000)  # So recall would not look into the index.
    with MemorySystem(path, embeddings=WordEmbeddings()) as system:
        assert system.conversation("c").recall("stars", scope="owner") == []
        assert vectors(system) == 2
        assert system.erase(conversation="c").ok
        assert vectors(system) == 0


def test_verify_tells_what_the_index_lacks_and_reindex_mends_it(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c")
        memory.append("stars", "helium")
        memory.recall("stars", scope="owner")
        index: Any = system.runtime.get(Indexes).index()
        keys = index.keys()
        index.remove(keys[:1])
        index.add([12345], np.ones((1, 64), np.float32))
        assert system.verify().problems == (
            "the vector index lacks 1 vectors and has 1 too many; call reindex()",
        )
        assert system.reindex() == 2
        assert system.verify().ok
