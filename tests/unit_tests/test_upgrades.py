"""Files of earlier schemas, which `tests/data/schemas/make.py` has written, are read whole."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem, MessageWindowChatMemory, ThreadMemSaver, ThreadMemStore
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.migrations import MIGRATIONS
from langchain_threadmem.storage.row_security import secure

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
VERSIONS = sorted(path.name for path in SCHEMAS.iterdir() if path.name.isdigit())


class Old(NamedTuple):
    """A database of an earlier version, and the folder of its vectors."""

    url: str
    vectors: Path | None


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "folder", pytest.param("postgresql", marks=pytest.mark.postgres)])
def old(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> Iterator[Old]:
    if request.param == "sqlite":
        with zipfile.ZipFile(SCHEMAS / version / "sqlite.zip") as archive:
            archive.extractall(tmp_path)
        yield Old(f"sqlite:///{tmp_path / 'memory.db'}", tmp_path / "vectors")
        return
    if request.param == "folder":
        with zipfile.ZipFile(SCHEMAS / version / "folder.zip") as archive:
            archive.extractall(tmp_path / "folder")
        convert(tmp_path / "folder", tmp_path / "memory.db", owner=None)
        yield Old(f"sqlite:///{tmp_path / 'memory.db'}", None)
        return
    with loaded(request.getfixturevalue("server_url"), version) as url:
        yield Old(url, None)


@contextmanager
def loaded(server: str, version: str) -> Iterator[str]:
    """A database on a server with the PostgreSQL file of a schema."""
    psycopg = pytest.importorskip("psycopg")
    name = f"upgrade_{uuid4().hex}"
    url = make_url(server).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(url) as loading:
            loading.execute((SCHEMAS / version / "postgresql.sql").read_text())
        yield url
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def ada(old: Old) -> Iterator[MemorySystem]:
    place = None if old.vectors is None else str(old.vectors)
    with MemorySystem(old.url, owner="ada", embeddings=WordEmbeddings(), vectors=place) as system:
        yield system


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def test_there_is_a_file_of_the_present_schema() -> None:
    assert VERSIONS[-1] == str(MIGRATIONS[-1].number), "run tests/data/schemas/make.py"


def test_all_conversations_are_read_as_they_were_written(ada: MemorySystem) -> None:
    assert sorted(ada.conversations()) == ["birds", "graph", "tools"]
    birds = ada.conversation("birds")
    history = [
        (node.id, node.parent_id, node.message.id, node.message.text, node.superseded_by)
        for node in birds.history
    ]
    assert history == [
        (1, None, "q1", "How does a heron fish?", None),
        (2, 1, "a1", "It waits.", None),
        (3, 2, "q2", "And a kingfisher?", 8),
        (4, 3, "a2", "It dives.", 8),
        (5, 4, "q3", "What does bread need?", 7),
        (6, 7, "a3", "Salt and time.", None),
        (7, None, "q3", "What does bread need?", None),
        (8, 2, "q4", "And an osprey?", None),
    ]
    assert [message.text for message in birds.messages] == ["What does bread need?"]
    listed = {item.id: item for item in ada.list_conversations()}["birds"]
    assert (listed.title, listed.metadata) == ("Birds and bread", {"stars": 3})
    summarised = [node.id for node in birds.history if node.summary is not None]
    assert summarised
    session = ada.unit("birds")
    assert session.rank == 1
    assert "heron" in session.content


def test_calls_of_tools_are_read_as_they_were_written(ada: MemorySystem) -> None:
    question, call, result, answer = ada.conversation("tools").messages
    assert (question.id, question.text) == ("h1", "How heavy is a wren?")
    assert isinstance(call, AIMessage)
    assert call.tool_calls == [
        {"name": "weigh", "args": {"bird": "wren"}, "id": "call-1", "type": "tool_call"}
    ]
    assert (result.type, result.text, answer.text) == ("tool", "9 g", "Nine grams.")


def test_checkpoints_are_read_as_they_were_written(ada: MemorySystem) -> None:
    saver = ThreadMemSaver(ada)
    found = [saved.checkpoint["channel_values"] for saved in saver.list(config("graph"))]
    said = [[message.text for message in values.get("messages", [])] for values in found]
    swan, crane = ["a swan", "about a swan"], ["a crane", "about a crane"]
    assert said == [[*swan, *crane], [*swan, "a crane"], swan, swan, ["a swan"], []]
    assert [values.get("seen") for values in found] == [2, 1, 2, 2, 1, None]


def test_the_store_and_windows_are_read_as_they_were_written(ada: MemorySystem) -> None:
    store = ThreadMemStore(ada, index={"embed": WordEmbeddings(), "dims": 64})
    assert store.list_namespaces() == [("birds", "air"), ("birds", "water")]
    item = store.get(("birds", "water"), "heron")
    assert item is not None
    assert item.value == {"legs": 2, "text": "grey heron"}
    hits = store.search(("birds",), query="a black swift")
    assert [hit.key for hit in hits] == ["swift", "heron"]
    window = MessageWindowChatMemory(9, id="window", store=ada).messages
    assert [(type(message), message.text) for message in window] == [
        (SystemMessage, "Be kind."),
        (HumanMessage, "Hello"),
    ]


def test_recall_finds_old_messages_by_words_and_vectors(ada: MemorySystem) -> None:
    hit = ada.conversation("birds").recall("What needs salt?", n_results=1)[0]
    assert (hit.node.id, hit.why.terms) == (6, ("salt",))
    hits = ada.conversation("new").recall("How does a heron fish?", scope="owner", n_results=5)
    assert "How does a heron fish?" not in [hit.node.message.text for hit in hits]  # It is forgotten.
    hit = ada.conversation("new").recall("How heavy is a wren?", scope="owner", n_results=1)[0]
    assert hit.node.message.text == "How heavy is a wren?"
    assert hit.why.similarity == pytest.approx(1, abs=0.01)


def test_vectors_in_chroma_need_no_filling(old: Old, version: str) -> None:
    if old.vectors is None:
        pytest.skip("the memory on PostgreSQL has no folder")
    with MemorySystem(old.url, owner="ada", embeddings=WordEmbeddings(), vectors=str(old.vectors)) as system:
        index: Any = system.runtime.get(Indexes).index()
        assert index.count() > 10
        assert system.verify().problems == ()


def test_an_encrypted_memory_is_read_with_its_key(old: Old) -> None:
    with MemorySystem(old.url, owner="eve", embeddings=WordEmbeddings(), cipher=StreamCipher()) as system:
        assert [message.text for message in system.conversation("secret").messages] == [
            "My number is 555.",
            "Noted.",
        ]
        state = ThreadMemSaver(system).get_tuple(config("graph"))
        assert state is not None
        assert state.checkpoint["channel_values"]["seen"] == 8
        assert system.conversation("secret").recall("number", n_results=1)[0].node.id == 1
        assert system.verify().problems == ()


def test_an_old_memory_is_sound_and_goes_on(ada: MemorySystem) -> None:
    assert ada.verify().problems == ()
    birds = ada.conversation("birds")
    assert birds.append("And rye?", "Sourdough.")[0].parent_id == 7
    assert birds.edit(1, "How does an egret fish?").id == 11
    assert birds.recall("sourdough", n_results=1)[0].node.id == 10
    assert ada.erase(conversation="graph").ok
    assert sorted(ada.conversations()) == ["birds", "tools"]
    assert ada.verify().problems == ()


DEFINITIONS = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default "
    "FROM information_schema.columns WHERE table_name ^@ 'threadmem' ORDER BY table_name, ordinal_position",
    "SELECT indexdef FROM pg_indexes WHERE tablename ^@ 'threadmem' ORDER BY 1",
    "SELECT conrelid::regclass::text, conname, contype FROM pg_constraint "
    "WHERE conname ^@ 'threadmem' ORDER BY 2",
)


@pytest.mark.parametrize("old", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True)
def test_an_old_database_gets_the_tables_of_a_new_one(old: Old, server_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    found = []
    with loaded(server_url, VERSIONS[-1]) as new:
        for url in (old.url, new):
            MemorySystem(url, owner="ada", embeddings=False).close()
            with psycopg.connect(url) as connection:
                found.append([connection.execute(sql).fetchall() for sql in DEFINITIONS])
    assert found[0] == found[1]


@pytest.mark.parametrize("old", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True)
def test_views_for_row_level_security_are_dropped_and_made_again(old: Old) -> None:
    psycopg = pytest.importorskip("psycopg")
    role = f"app_{uuid4().hex}"
    views = "SELECT viewname FROM pg_views WHERE schemaname = %s ORDER BY 1"
    with psycopg.connect(old.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}")
        connection.execute(f"CREATE SCHEMA {role}")
        names = (
            "SELECT tablename FROM pg_tables WHERE tablename ^@ 'threadmem' "
            f"AND tablename <> '{schema.migration.name}' ORDER BY 1"
        )
        for (name,) in connection.execute(names).fetchall():
            connection.execute(f"CREATE VIEW {role}.{name} AS SELECT * FROM public.{name}")
        MemorySystem(old.url, owner="ada", embeddings=False).close()
        tables = connection.execute(names).fetchall()
        assert set(connection.execute(views, (role,)).fetchall()) <= set(tables)
        secure(old.url, role)
        assert connection.execute(views, (role,)).fetchall() == tables
