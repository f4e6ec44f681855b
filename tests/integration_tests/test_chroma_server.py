"""A Chroma server as the index of vectors: URLs and credentials."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from conftest import WordEmbeddings

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.index.chroma import chroma_server
from langchain_threadmem.index.indexes import Indexes
from torture.chroma import ChromaServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if ChromaServer.program() is None:
        pytest.skip("the command `chroma` of chromadb is not installed")
    chroma = ChromaServer(tmp_path_factory.mktemp("chroma"))
    chroma.start()
    yield chroma.url
    chroma.stop()


def test_a_url_is_a_server_and_no_folder(
    url: str, owner: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    for again in (False, True):
        with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=server) as system:
            if not again:
                system.conversation("c").append("How do stars burn?", "Hydrogen becomes helium.")
                system.conversation("d").append("How is bread baked?", "With flour and patience.")
            hits = system.conversation("c").recall("stars", scope="owner", n_results=1)
            assert "stars" in hits[0].node.message.text
            index = system.runtime.get(Indexes).index()
            assert index is not None
            assert index.count() == 4
            assert system.verify().ok
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=server) as system:
        assert system.erase(conversation="c").vectors == 2
        assert system.conversation("d").recall("bread", scope="owner")
        index = system.runtime.get(Indexes).index()
        assert index is not None
        assert index.count() == 2
    assert not [path for path in set(tmp_path.iterdir()) - before if path.is_dir()]


@pytest.mark.skipif(ChromaServer.program() is None, reason="the command `chroma` is not installed")
def test_a_server_that_is_stopped_and_started_again_loses_nothing(owner: str, tmp_path: Path) -> None:
    chroma = ChromaServer(tmp_path / "server")
    stopped, wanted = threading.Event(), threading.Event()
    stored: list[str] = []
    errors: list[tuple[bool, str]] = []

    def talk(system: MemorySystem, n: int) -> None:
        """Append and search in a conversation until the end."""
        memory, number = system.conversation(f"c{n}"), 0
        while not wanted.is_set():
            text = f"person{n} speaks of subject{n}{number}"
            memory.append(text, "Noted.")
            stored.append(text)
            number += 1
            try:
                memory.recall(text, scope="owner")
            except PersistenceError as error:
                errors.append((stopped.is_set(), str(error)))
            time.sleep(0.05)

    with (
        MemorySystem(
            tmp_path / "memory.db", owner=owner, embeddings=WordEmbeddings(), vectors=chroma.url
        ) as system,
        ThreadPoolExecutor(3) as pool,
    ):
        chroma.start()
        talks = [pool.submit(talk, system, n) for n in range(3)]
        wait(talks, 2)
        stopped.set()
        chroma.stop()
        wait(talks, 1)
        chroma.start()
        wanted.set()
        for done in talks:
            done.result(60)
        found = {node.message.text for n in range(3) for node in system.conversation(f"c{n}").history}
        assert found >= set(stored)
        assert errors
        assert all(after and "check that it is running" in error for after, error in errors)
        for text in (stored[0], stored[-1]):
            hits = system.conversation("c0").recall(text, scope="owner", n_results=1)
            assert hits[0].node.message.text == text
        system.flush()
        assert system.verify().ok
    chroma.stop()


class Refusing(http.server.BaseHTTPRequestHandler):
    """Refuses all requests and records them."""

    asked: list[str | None]

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Authorization"))
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("login", "sent"),
    [("to%40ken@", "Bearer to@ken"), ("ada:secret@", "Basic YWRhOnNlY3JldA=="), ("", None)],
)
def test_what_stands_before_the_host_lets_one_in(login: str, sent: str | None) -> None:
    handler = type("Handler", (Refusing,), {"asked": []})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as refusing:
        thread = threading.Thread(target=refusing.serve_forever, args=(0.05,))
        thread.start()
        address = f"127.0.0.1:{refusing.server_port}"
        with pytest.raises(
            PersistenceError, match=f"cannot use the Chroma server 'http://{address}'"
        ) as caught:
            chroma_server(f"http://{login}{address}")()
        refusing.shutdown()
        thread.join()
    assert set(handler.asked) == {sent}
    assert "secret" not in str(caught.value)
    assert "to@ken" not in str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "http://",
        "localhost:8000",
        "ftp://host",
        "http://host:port",
        "http://host/path",
        "http://host?token=x",
    ],
)
def test_what_is_no_server_is_refused_at_once(place: str) -> None:
    with pytest.raises(InputError, match=r"write http://host:8000"):
        MemorySystem(embeddings=WordEmbeddings(), vectors=place)


def test_a_server_that_is_not_there_is_named(owner: str) -> None:
    with MemorySystem(owner=owner, embeddings=WordEmbeddings(), vectors="http://127.0.0.1:9") as system:
        memory = system.conversation("c")
        memory.append("How do stars burn?", "Hydrogen becomes helium.")
        with pytest.raises(PersistenceError, match=r"'http://127.0.0.1:9'.*check that it is running"):
            memory.recall("stars", scope="owner")
        assert memory.recall("stars")
