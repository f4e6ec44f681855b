"""`threadmem import-checkpoints`: threads of LangGraph's own checkpointers are copied completely and once."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.transfer.import_checkpoints import import_checkpoints
from langchain_threadmem.errors import InputError, PersistenceError


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def answer(state: MessagesState) -> dict[str, Any]:
    text = str(state["messages"][-1].content)
    return {"messages": [AIMessage(f"to {text}: {interrupt('sure?')}" if "ask" in text else f"to {text}")]}


def note(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("noted", id=str(uuid4()))]}


def graph_on(saver: BaseCheckpointSaver[Any]) -> Any:
    """A chat whose turns run a subgraph in parallel to the model, so an interrupt leaves pending writes."""
    inner = StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model").compile()
    outer = StateGraph(MessagesState).add_node("inner", inner).add_node("note", note)
    return outer.add_edge(START, "inner").add_edge(START, "note").compile(checkpointer=saver)


def fill(saver: BaseCheckpointSaver[Any]) -> None:
    """Two threads: one with a fork, one at an interrupt."""
    graph = graph_on(saver)

    def ask(text: str, config: Any) -> None:
        graph.invoke({"messages": [HumanMessage(text)]}, config)

    ask("one", config_of("forked"))
    old = graph.get_state(config_of("forked")).config
    ask("two", config_of("forked"))
    ask("three", old)
    ask("hello", config_of("waiting"))
    ask("ask me", config_of("waiting"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "their checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        fill(saver)
    return path


Opener = Callable[[], AbstractContextManager[BaseCheckpointSaver[Any]]]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def source(request: pytest.FixtureRequest) -> Iterator[tuple[str, Opener]]:
    """The source, and the way to open it with the library that wrote it."""
    if request.param == "sqlite":
        path = str(request.getfixturevalue("file"))
        yield path, lambda: SqliteSaver.from_conn_string(path)
        return
    server = request.getfixturevalue("server_url")  # LangGraph's saver prepares statements.
    schema = f"source_{uuid4().hex}"
    url = f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE SCHEMA {schema}")  # type: ignore[arg-type]
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            fill(saver)
        yield url, lambda: PostgresSaver.from_conn_string(url)
        conn.execute(f"DROP SCHEMA {schema} CASCADE")  # type: ignore[arg-type]


def listed(saver: BaseCheckpointSaver[Any], thread: str) -> list[Any]:
    return list(saver.list(config_of(thread)))


def said(system: MemorySystem, thread: str) -> list[list[str]]:
    return [[str(node.message.content) for node in line] for line in system.conversation(thread).threads()]


def test_an_imported_thread_lists_the_same_on_both_sides(
    source: tuple[str, Opener], url: str, owner: str
) -> None:
    where, theirs = source
    done = import_checkpoints(where, url, owner=owner)
    assert done.differences == ()
    with theirs() as source_saver, ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        everything = [one for thread in ("forked", "waiting") for one in listed(source_saver, thread)]
        assert [one for thread in ("forked", "waiting") for one in listed(saver, thread)] == everything
        assert any(one.config["configurable"]["checkpoint_ns"] for one in everything)
        assert any(write[1] == "__interrupt__" for one in everything for write in one.pending_writes)
        assert saver.system.verify().ok
    assert (done.threads, done.copied) == (2, len(everything))


def by_task(checkpoints: list[Any]) -> list[Any]:
    """The checkpoints by id and their pending writes by task, since the order of lists is a saver's own."""
    return [
        saved._replace(pending_writes=sorted(saved.pending_writes, key=lambda write: write[:2]))
        for saved in sorted(checkpoints, key=lambda saved: str(saved.config["configurable"]["checkpoint_id"]))
    ]


def test_a_checkpointer_of_another_library_is_copied_by_its_own_methods(url: str, owner: str) -> None:
    theirs = InMemorySaver()
    fill(theirs)
    done = import_checkpoints(theirs, url, owner=owner)
    assert (done.threads, done.ok) == (2, True)
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        for thread in ("forked", "waiting"):
            assert by_task(listed(saver, thread)) == by_task(listed(theirs, thread))
        resumed = graph_on(saver).invoke(Command(resume="yes"), config_of("waiting"))
        assert resumed["messages"][-2].content == "to ask me: yes"
    again = import_checkpoints(theirs, url, owner=owner)
    assert (again.copied, again.writes, again.ok) == (0, 0, True)


def test_an_unknown_thread_of_another_checkpointer_is_named(tmp_path: Path) -> None:
    theirs = InMemorySaver()
    fill(theirs)
    with pytest.raises(InputError, match="no thread 'none'; it has 'forked'"):
        import_checkpoints(theirs, tmp_path / "memory.db", threads=["none"])
    assert import_checkpoints(theirs, tmp_path / "memory.db", threads=["forked"]).threads == 1


def test_a_checkpointer_that_cannot_be_read_is_an_error_with_its_class(tmp_path: Path) -> None:
    class Mute(InMemorySaver):
        def list(self, *args: Any, **options: Any) -> Any:
            raise ConnectionError("no server")

    with pytest.raises(PersistenceError, match="the Mute cannot list its checkpoints"):
        import_checkpoints(Mute(), tmp_path / "memory.db")


def test_a_fork_is_two_threads_of_the_conversation(file: Path, url: str, owner: str) -> None:
    import_checkpoints(file, url, owner=owner)
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert said(system, "forked") == [
            ["one", "to one", "noted", "two", "to two", "noted"],
            ["one", "to one", "noted", "three", "to three", "noted"],
        ]


def test_indices_and_paths_of_pending_writes_are_kept(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "memory.db"
    import_checkpoints(file, target)
    with sqlite3.connect(file) as conn:
        theirs = conn.execute("SELECT task_path, idx, channel FROM writes ORDER BY 1, 2, 3").fetchall()
    conn.close()
    with sqlite3.connect(target) as conn:
        ours = conn.execute("SELECT path, idx, channel FROM threadmem_write ORDER BY 1, 2, 3").fetchall()
    conn.close()
    assert ours == theirs
    assert min(idx for _, idx, _ in theirs) < 0 < max(idx for _, idx, _ in theirs)


def test_importing_again_copies_nothing(source: tuple[str, Opener], url: str, owner: str) -> None:
    import_checkpoints(source[0], url, owner=owner)
    again = import_checkpoints(source[0], url, owner=owner)
    assert (again.copied, again.writes, again.differences) == (0, 0, ())


@pytest.mark.parametrize("verb", ["put", "put_writes"])
def test_an_interrupted_import_goes_on_where_it_stopped(
    source: tuple[str, Opener], url: str, owner: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    real, calls = getattr(ThreadMemSaver, verb), iter(range(1000))

    def failing(self: ThreadMemSaver, *arguments: Any) -> Any:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ThreadMemSaver, verb, failing)
        with pytest.raises(KeyboardInterrupt):
            import_checkpoints(source[0], url, owner=owner)
    rest = import_checkpoints(source[0], url, owner=owner)
    assert 0 < rest.copied < rest.checkpoints
    assert rest.differences == ()


def test_an_imported_interrupt_is_resumed(source: tuple[str, Opener], url: str, owner: str) -> None:
    import_checkpoints(source[0], url, owner=owner)
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        state = graph_on(saver).invoke(Command(resume="yes"), config_of("waiting"))
    assert [message.content for message in state["messages"]][-3:] == ["ask me", "to ask me: yes", "noted"]


def test_a_thread_that_went_on_here_keeps_what_came_later(file: Path, url: str, owner: str) -> None:
    import_checkpoints(file, url, owner=owner)
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        graph_on(saver).invoke(Command(resume="yes"), config_of("waiting"))
        before = listed(saver, "waiting")
    assert import_checkpoints(file, url, owner=owner).ok
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        assert listed(saver, "waiting") == before


def test_a_thread_that_went_on_there_is_brought_up_to_date(file: Path, url: str, owner: str) -> None:
    import_checkpoints(file, url, owner=owner)
    with SqliteSaver.from_conn_string(str(file)) as theirs:
        graph_on(theirs).invoke(Command(resume="yes"), config_of("waiting"))
    again = import_checkpoints(file, url, owner=owner)
    assert again.copied > 0
    assert again.differences == ()


def test_the_source_is_not_written(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    import_checkpoints(file, tmp_path / "memory.db")
    assert file.read_bytes() == before


def test_progress_reaches_the_end(file: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    done = import_checkpoints(file, tmp_path / "memory.db", progress=lambda *step: steps.append(step))
    assert steps == [(n + 1, 2 * done.checkpoints) for n in range(2 * done.checkpoints)]


def test_the_command_copies_chosen_threads_and_says_what_it_did(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "memory.db")
    assert (
        main(["import-checkpoints", f"sqlite:///{file}", target, "--owner", "ada", "--thread", "forked"]) == 0
    )
    assert capsys.readouterr().out.startswith("1 threads, ")
    with MemorySystem(target, owner="ada", embeddings=False) as system:
        assert system.conversations() == ["forked"]


def test_a_difference_is_reported_with_exit_code_1(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "memory.db"
    import_checkpoints(file, target)
    with sqlite3.connect(file) as conn:
        conn.execute("""UPDATE checkpoints SET metadata = '{"step": 99}' WHERE thread_id = 'waiting'""")
    conn.close()
    assert main(["import-checkpoints", str(file), str(target)]) == 1
    assert "thread 'waiting', namespace '': metadata 'step' differs" in capsys.readouterr().out


def test_a_thread_of_the_same_name_is_not_mixed_with_the_imported_one(file: Path, tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as system:
        system.conversation("forked").append("mine")
    with pytest.raises(InputError, match="already has another thread 'forked'"):
        import_checkpoints(file, tmp_path / "memory.db")


@dataclass
class Mood:
    name: str


@pytest.fixture
def moody(tmp_path: Path) -> Path:
    """A source whose state contains an object of a custom class."""
    path = tmp_path / "moody.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"x": Mood("calm")},
            "channel_versions": {"x": 1},
        }
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        saver.put(config, cast("Any", checkpoint), {}, {"x": 1})
    return path


def test_a_state_with_an_unknown_class_is_refused_rather_than_flattened(moody: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{Mood.__module__}:Mood; .*--allow"):
        import_checkpoints(moody, tmp_path / "memory.db")


def test_an_allowed_class_comes_back_as_it_was(moody: Path, tmp_path: Path) -> None:
    target = tmp_path / "memory.db"
    assert main(["import-checkpoints", str(moody), str(target), "--allow", f"{Mood.__module__}:Mood"]) == 0
    with ThreadMemSaver.from_conn_string(target) as opened:
        saver = opened.with_allowlist([(Mood.__module__, "Mood")])
        (found,) = listed(saver, "t")
    assert found.checkpoint["channel_values"] == {"x": Mood("calm")}


def test_a_value_left_out_without_a_new_version_stays_left_out(tmp_path: Path) -> None:
    source = tmp_path / "theirs.sqlite"
    with SqliteSaver.from_conn_string(str(source)) as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for values in ({"x": [1], "y": [2]}, {"y": [2]}, {"x": [3], "y": [2]}):
            checkpoint = {
                **empty_checkpoint(), "channel_values": values, "channel_versions": {"x": 1, "y": 1},
            }  # fmt: skip
            config = saver.put(config, cast("Any", checkpoint), {}, {"x": 1, "y": 1})
    assert import_checkpoints(source, tmp_path / "memory.db").differences == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.sqlite", "new.db"], "no database file 'nowhere.sqlite'"),
        (["text.txt", "new.db"], "cannot be read as a database"),
        (["empty.db", "new.db"], "no such table"),
        (["their checkpoints.sqlite", "new.db", "--thread", "none"], "no thread 'none'; it has 'forked'"),
        (["their checkpoints.sqlite", "their checkpoints.sqlite"], "into itself"),
        (["their checkpoints.sqlite", "new.db", "--allow", "nothing"], "no class 'nothing'"),
        (["mysql://host/name", "new.db"], "'mysql' databases are not supported (in 'mysql://host/name')"),
        (["postgresql://ada:secret@host:x/name", "new.db"], "'postgresql://ada:***@host:x/name' is not a"),
        (["postgresql://127.0.0.1:1/none", "new.db"], "cannot be read as a database"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2_and_makes_no_database(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(file.parent)
    Path("text.txt").write_text("no database " * 100, encoding="utf-8")
    Path("empty.db").touch()
    assert main(["import-checkpoints", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("threadmem: ")
    assert said.count("\n") == 1
    assert not Path("new.db").exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_missing_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, f"langgraph.checkpoint.{kind}", None)
    source = str(file) if kind == "sqlite" else "postgresql://host/name"
    with pytest.raises(InputError, match=f"pip install langgraph-checkpoint-{kind}"):
        import_checkpoints(source, file.parent / "new.db")
