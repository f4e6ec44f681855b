"""Conversions: the copy equals the memory, or no copy is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import StreamCipher, WordEmbeddings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem, ThreadMemSaver, ThreadMemStore
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.transfer.convert import Converted, backup, convert
from langchain_threadmem.errors import InputError, PersistenceError
from torture.children import Child, Report

ANY = (None, None)
Place = Callable[[], str]


@pytest.fixture(params=["sqlite", "folder", pytest.param("postgresql", marks=pytest.mark.postgres)])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Targets of conversions: files, folders, or new databases on a server."""
    made: list[str] = []

    def place() -> str:
        name = f"m{uuid4().hex}"
        if request.param == "sqlite":
            return str(tmp_path / f"{name}.db")
        if request.param == "folder":
            return str(tmp_path / name)
        server = request.getfixturevalue("postgres_url")
        _administer(server, f'CREATE DATABASE "{name}"')
        made.append(name)
        return make_url(server).set(database=name).render_as_string(hide_password=False)

    yield place
    for name in made:
        _administer(request.getfixturevalue("postgres_url"), f'DROP DATABASE "{name}" WITH (FORCE)')


def _administer(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"echo {state['messages'][-1].content}")]}


def graph(system: MemorySystem) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer").add_edge("answer", END)
    return builder.compile(checkpointer=ThreadMemSaver(system))


CONFIG: Any = {"configurable": {"thread_id": "graph"}}
ODD = 'a\0b \u2028 "quoted" \\ 🧵'


@pytest.fixture
def source(original: Path, tmp_path: Path) -> str:
    """A memory with every kind of data, and the memory of another owner."""
    return str(shutil.copy(original, tmp_path / "source.db"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "source.db"
    with MemorySystem(path, owner="bob", embeddings=WordEmbeddings()) as other:
        other.conversation("talk").append("not yours", "never")
    with MemorySystem(path, owner="ada", embeddings=WordEmbeddings()) as system:
        talk = system.conversation("talk")
        talk.append("How do I bake rye bread?", "With sourdough.")
        talk.append("Tea?", "Camomile.")
        talk.checkout(2)
        call = AIMessage("", tool_calls=[{"name": "look", "args": {"q": (1, 2)}, "id": "c1"}])
        talk.append(ODD, [call, ToolMessage("seen", tool_call_id="c1"), AIMessage("I saw it.")])
        talk.edit(3, HumanMessage("Green tea?"))
        talk.place(5, 4)
        system.start_session("session")
        for number in range(7):
            system.add_memory(f"fact {number}", metadata={"number": number}, never_delete=number == 3)
        app = graph(system)
        app.invoke({"messages": [("user", "hello")]}, CONFIG)
        app.invoke({"messages": [("user", "again")]}, CONFIG)
        store = ThreadMemStore(system, index=True)
        store.put(("users", "ada"), "likes", {"food": "figs", "since": datetime(2020, 1, 1, tzinfo=UTC)})
        system.summarize_long_term_memory()
        system.query("fact bread", search_range=ANY)
        system.forget(0.1)
        system.erase(conversation="talk", before=datetime(1990, 1, 1, tzinfo=UTC))
    return path


def told(place: str, owner: str = "ada") -> dict[str, Any]:
    """All data of a memory, read through public methods."""
    with MemorySystem(place, owner=owner, embeddings=WordEmbeddings()) as system:
        names = system.conversations()
        found: dict[str, Any] = {"conversations": names}
        for name in names:
            memory = system.conversation(name)
            found[f"history {name}"] = memory.history
            found[f"threads {name}"] = [[node.id for node in thread] for thread in memory.threads()]
            found[f"messages {name}"] = memory.messages
            found[f"tip {name}"] = memory.tip
            system.switch_session(name)
            found[f"units {name}"] = system.get_context()
            found[f"recall {name}"] = [hit.node for hit in memory.recall("fact bread tea", n_results=3)]
        found["summaries"] = [system.unit("session"), system.unit(owner), system.unfold(owner)]
        found["query"] = system.query("fact bread", search_range=ANY, k_limit=3, long_term_only=True)
        found["checkpoints"] = [
            (state.config, state.values, state.metadata, state.parent_config)
            for state in graph(system).get_state_history(CONFIG)
        ]
        store = ThreadMemStore(system, index=True)
        found["items"] = [
            (item.namespace, item.key, item.value, item.created_at, item.score)
            for item in store.search((), query="figs")
        ]
        found["problems"] = system.verify().problems  # Last: the index was filled by the query.
        return found


def test_a_memory_that_goes_there_and_back_is_the_same(source: str, places: Place, tmp_path: Path) -> None:
    there, back = places(), str(tmp_path / "back.db")
    done = convert(source, there, owner="ada")
    assert convert(there, back, owner="ada") == done
    assert (done.owners, done.items) == (("ada",), 1)
    assert done.messages > 20
    before = told(source)
    assert before["problems"] == ()
    assert told(back) == before


def test_a_database_is_used_as_it_was(source: str, places: Place) -> None:
    target = places()
    convert(source, target, owner="ada")
    if Path(target).is_dir():
        return
    assert told(target) == told(source)
    with MemorySystem(target, owner="ada", embeddings=WordEmbeddings()) as system:
        state = graph(system).invoke({"messages": [("user", "more")]}, CONFIG)
        assert len(state["messages"]) == 6
        nodes = system.conversation("talk").append("Bye.", "Good bye.")
        assert nodes[0].id == max(node.id for node in system.conversation("talk").history) - 1
        assert system.verify().ok


@pytest.mark.postgres
@pytest.mark.parametrize("places", ["postgresql"], indirect=True)
def test_an_error_does_not_show_the_password_of_the_target(source: str, places: Place) -> None:
    target = make_url(places()).set(password="secret").render_as_string(hide_password=False)
    convert(source, target, owner="ada")
    with pytest.raises(InputError, match="already contains a memory of 'ada'") as caught:
        convert(source, target, owner="ada")
    assert "secret" not in str(caught.value)


def test_one_owner_goes_and_the_others_stay(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "target.db")
    convert(source, target, owner="ada")
    with MemorySystem(target, owner="bob", embeddings=False) as system:
        assert system.conversations() == []
    convert(source, target, owner="bob")
    with MemorySystem(target, owner="bob", embeddings=False) as system:
        assert system.conversation("talk").messages[0].content == "not yours"
    assert told(target) == told(source)


def test_everybody_goes_at_once(source: str, places: Place, tmp_path: Path) -> None:
    there, back = places(), str(tmp_path / "back.db")
    assert convert(source, there, owner=None).owners == ("ada", "bob")
    assert convert(there, back, owner=None).owners == ("ada", "bob")
    assert told(back) == told(source)


def test_two_folders_of_one_memory_are_equal_byte_for_byte(source: str, tmp_path: Path) -> None:
    convert(source, tmp_path / "one", owner="ada")
    convert(tmp_path / "one", tmp_path / "copy.db", owner="ada")
    convert(tmp_path / "copy.db", tmp_path / "two", owner="ada")
    one = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert one == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    node = json.loads(one["node.jsonl"].splitlines()[0])
    assert node["body"]["data"]["content"] == "How do I bake rye bread?"


def test_progress_is_told(source: str, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    convert(source, tmp_path / "copy.db", owner="ada", progress=lambda *step: steps.append(step))
    assert list(dict.fromkeys(what for what, _, _ in steps)) == ["write", "read", "compare"]
    for what in ("write", "read"):
        counts = [(done, total) for name, done, total in steps if name == what]
        assert counts[-1][0] == counts[-1][1]
        assert counts == sorted(counts)


def refused(source: Any, target: Any, owner: str | None = "ada", kind: Any = InputError) -> str:
    """The error of a conversion that leaves nothing behind."""
    folder = Path(str(source)).parent
    before = sorted(folder.rglob("*"))
    with pytest.raises(kind) as caught:
        convert(source, target, owner=owner)
    assert sorted(folder.rglob("*")) == before
    return str(caught.value)


def test_what_cannot_be_converted_is_refused(source: str, tmp_path: Path) -> None:
    assert "'nowhere.db'" in refused(tmp_path / "nowhere.db", tmp_path / "x.db").replace(
        str(tmp_path) + "/", ""
    )
    assert "'eve'" in refused(source, tmp_path / "x", owner="eve")
    assert "'eve'" in refused(source, tmp_path / "x.db", owner="eve")
    assert "not ''" in refused(source, tmp_path / "x.db", owner="")
    (tmp_path / "empty").mkdir()
    assert "manifest" in refused(tmp_path / "empty", tmp_path / "x.db")
    assert "already" in refused(source, tmp_path / "empty")
    assert "both folders" in refused(tmp_path / "empty", tmp_path / "other")
    convert(source, tmp_path / "full.db", owner="ada")
    assert "already" in refused(source, tmp_path / "full.db")
    convert(source, tmp_path / "copy", owner="ada")
    assert "'bob'" in refused(tmp_path / "copy", tmp_path / "x.db", owner="bob")


FAULTS: dict[str, Callable[[Path], None]] = {
    "a line is missing": lambda path: path.write_text("".join(path.read_text().splitlines(True)[1:])),
    "a line is doubled": lambda path: path.write_text(
        path.read_text() + path.read_text().splitlines(True)[-1]
    ),
    "a text was changed": lambda path: path.write_text(path.read_text().replace("rye", "oat")),
    "no JSON": lambda path: path.write_text(path.read_text() + "{"),
    "no row": lambda path: path.write_text(path.read_text() + "[]\n"),
    "another column": lambda path: path.write_text(path.read_text().replace('"role"', '"rolle"')),
    "another type": lambda path: path.write_text(path.read_text().replace('"state":0', '"state":"live"')),
    "a number too large": lambda path: path.write_text(
        path.read_text().replace('"state":0', f'"state":{1 << 64}')
    ),
    "no number": lambda path: path.write_text(path.read_text().replace('"state":0', '"state":true')),
    "another tree": lambda path: path.write_text(path.read_text().replace('"tree":1,', '"tree":99,', 1)),
    "a cycle": lambda path: path.write_text(path.read_text().replace('"parent":2', '"parent":4', 1)),
    "it is gone": lambda path: path.unlink(),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("last", ["write", "read", "compare"])
def test_a_killed_conversion_leaves_nothing_under_the_name_of_the_copy(
    source: str, tmp_path: Path, last: str
) -> None:
    def kill(activity: str, done: int, total: int) -> None:
        if activity == last:
            os.kill(os.getpid(), signal.SIGKILL)

    target = tmp_path / "copy.db"
    assert Child(lambda report: convert(source, target, owner="ada", progress=kill) and None).end() == []
    assert not target.exists()
    assert convert(source, target, owner="ada").messages


@pytest.mark.parametrize("restore", [convert, backup])
def test_the_log_of_a_file_that_was_removed_does_not_change_its_copy(
    restore: Callable[[Path, Path], object], tmp_path: Path
) -> None:
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"

    def write(report: Report) -> None:
        system = MemorySystem(path, embeddings=False)
        system.conversation("c").append("first", "yes")
        backup(path, copy)
        system.conversation("c").append("second", "yes")
        os.kill(os.getpid(), signal.SIGKILL)

    assert Child(write).end() == []
    path.unlink()
    assert path.with_name("memory.db-wal").exists()
    restore(copy, path)
    with MemorySystem(path, embeddings=False) as system:
        assert [node.message.text for node in system.conversation("c").history] == ["first", "yes"]
        assert system.verify().problems == ()


@pytest.mark.parametrize("copy", [partial(convert, owner="ada"), backup])
def test_a_copy_may_have_a_long_name_or_that_of_a_link(
    copy: Callable[[str, Path], object], source: str, tmp_path: Path
) -> None:
    long, link, linked = (tmp_path / f"{name}.db" for name in ("x" * 230, "link", "linked"))
    link.symlink_to(linked)
    for target in (long, link):
        copy(source, target)
    assert link.is_symlink()
    assert all(path.stat().st_size for path in (long, linked))
    with pytest.raises(PersistenceError, match="cannot write"):
        copy(source, tmp_path / ("y" * 250 + ".db"))


def test_a_file_that_is_made_during_a_conversion_is_not_overwritten(source: str, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    def make(activity: str, done: int, total: int) -> None:
        if activity == "read":
            target.write_text("mine")

    with pytest.raises(PersistenceError, match=r"another process has made .*copy\.db' meanwhile"):
        convert(source, target, owner="ada", progress=make)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "source.db"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("trusting", [False, True])
def test_a_folder_that_is_not_whole_is_refused(
    source: str, tmp_path: Path, fault: str, trusting: bool
) -> None:
    copy = tmp_path / "copy"
    convert(source, copy, owner="ada")
    FAULTS[fault](copy / "node.jsonl")
    if trusting:
        manifest = json.loads((copy / "manifest.json").read_text())
        del manifest["tables"]
        (copy / "manifest.json").write_text(json.dumps(manifest))
        if fault == "a text was changed":
            convert(copy, tmp_path / "changed.db", owner="ada")
            with MemorySystem(tmp_path / "changed.db", owner="ada", embeddings=False) as system:
                assert "oat" in str(system.conversation("talk").history[0].message.content)
            return
    said = refused(copy, tmp_path / "x.db", kind=(InputError, PersistenceError))
    assert said
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"format": "other", "version": 1}', '{"format": "threadmem-folder", "version": 99}'],
)
def test_a_manifest_that_means_nothing_is_refused(source: str, tmp_path: Path, manifest: str) -> None:
    convert(source, tmp_path / "copy", owner="ada")
    (tmp_path / "copy" / "manifest.json").write_text(manifest)
    assert "manifest.json" in refused(tmp_path / "copy", tmp_path / "x.db")


@pytest.mark.parametrize("version", [0, 99])
def test_a_folder_of_an_unknown_version_is_refused(source: str, tmp_path: Path, version: int) -> None:
    convert(source, tmp_path / "copy", owner="ada")
    path = tmp_path / "copy" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version}))
    said = refused(tmp_path / "copy", tmp_path / "x.db")
    assert (str(version) in said, "upgrade the package" in said) == (True, True)


def test_rows_of_a_folder_name_no_class(source: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    convert(source, copy, owner="ada")
    path = copy / "node.jsonl"
    evil = '{"lc":2,"type":"constructor","id":["os","system"],"kwargs":{}}'
    lines = path.read_text().splitlines(True)
    row = json.loads(lines[0])
    row["body"] = json.loads(evil)
    path.write_text(json.dumps(row) + "\n" + "".join(lines[1:]))
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["tables"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert "node 1" in refused(copy, tmp_path / "x.db")


def test_a_target_that_fails_keeps_what_it_had(source: str, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    with MemorySystem(target, owner="bob", embeddings=False) as system:
        system.conversation("mine").append("kept", "yes")
    convert(source, tmp_path / "copy", owner="ada")
    FAULTS["a cycle"](tmp_path / "copy" / "node.jsonl")
    refused(tmp_path / "copy", target, kind=(InputError, PersistenceError))
    with MemorySystem(target, owner="bob", embeddings=False) as system:
        assert len(system.conversation("mine").history) == 2
    with sqlite3.connect(target) as connection:
        assert connection.execute("SELECT DISTINCT owner FROM threadmem_tree").fetchall() == [("bob",)]


def test_the_command_converts_and_says_what_came_along(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", source, str(tmp_path / "copy"), "--owner", "ada"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ada: ")
    assert said.endswith("1 items; the copy is the same\n")
    assert main(["convert", str(tmp_path / "copy"), str(tmp_path / "x.db"), "--everybody"]) == 0
    assert main(["convert", str(tmp_path / "nowhere.db"), str(tmp_path / "y.db")]) == 2
    assert "nowhere.db" in capsys.readouterr().err
    assert not (tmp_path / "y.db").exists()


def test_the_command_fills_the_index_from_the_database(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reindex", source, "--owner", "ada", "--vectors", str(tmp_path / "vectors")]) == 0
    held, expected = [int(word) for word in capsys.readouterr().out.split() if word.isdigit()]
    assert held == expected > 10


ROUNDS = st.lists(
    st.tuples(
        st.sampled_from(["append", "branch", "edit", "place", "summarise", "forget", "purge", "erase"]),
        st.integers(1, 9),
        st.text(min_size=1, max_size=9),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROUNDS)
def test_save_convert_and_load_give_back_the_same_memory(
    tmp_path: Path, rounds: list[tuple[str, int, str]]
) -> None:
    base = tmp_path / uuid4().hex
    base.mkdir()
    with MemorySystem(base / "a.db", owner="ada", embeddings=False) as system:
        memory = system.conversation("talk")
        memory.append("first", "second")
        for step, number, text in rounds:
            ids = [node.id for node in memory.history if node.state == 0]
            chosen = ids[number % len(ids)] if ids else None
            if step == "append":
                memory.append(f"human {text}", f"answer {text}")
            elif step == "branch" and chosen is not None:
                memory.checkout(chosen)
                memory.extend([f"other {text}"])
            elif step == "edit" and chosen is not None:
                memory.edit(chosen, f"edited {text}")
            elif step == "place" and chosen is not None and memory.history[-1].id != chosen:
                memory.place(chosen, None)
            elif step == "summarise":
                system.summarize_long_term_memory()
            elif step in ("forget", "purge"):
                system.forget(number / 20, purge=step == "purge")
            elif step == "erase" and number == 1:
                system.erase(before=datetime.now(UTC))
        system.get_context()
    done: list[Converted] = [convert(base / "a.db", base / "folder", owner="ada")]
    done.append(convert(base / "folder", base / "b.db", owner="ada"))
    done.append(convert(base / "b.db", base / "c.db", owner="ada"))
    assert done[0] == done[1] == done[2]
    found = []
    for name in "abc":
        with MemorySystem(base / f"{name}.db", owner="ada", embeddings=False) as system:
            memory = system.conversation("talk")
            system.start_session("talk")
            hits = [(hit.node, hit.score) for hit in memory.recall("human answer other edited")]
            found.append([memory.history, memory.messages, memory.tip, system.get_context(), hits])
            assert system.verify().ok
    assert found[0] == found[1] == found[2]


def test_an_encrypted_memory_is_copied_as_it_is(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "a.db", owner="ada", embeddings=False, cipher=StreamCipher()) as system:
        system.conversation("talk").append("heron in the reeds", "noted")
        system.conversation("talk").append("another", "one")
        before = system.conversation("talk").history
    convert(tmp_path / "a.db", tmp_path / "copy", owner="ada")
    assert not any(b"heron" in path.read_bytes() for path in (tmp_path / "copy").iterdir())
    convert(tmp_path / "copy", tmp_path / "b.db", owner="ada")
    with MemorySystem(tmp_path / "b.db", owner="ada", embeddings=False, cipher=StreamCipher()) as system:
        assert system.conversation("talk").history == before
        assert system.verify().ok
