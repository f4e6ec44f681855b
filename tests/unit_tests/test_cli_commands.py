"""The commands that search, correct, delete, copy and repair, and the rules that all commands share."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from sqlalchemy.engine import make_url

from langchain_threadmem import ExtractiveSummarizer, MemorySystem, ThreadMemSaver, ThreadMemStore
from langchain_threadmem.apps.cli.main import PROGRAM, main
from langchain_threadmem.engine.flow import arun
from langchain_threadmem.engine.flow import run as run_flow
from langchain_threadmem.index.vector_index import Found
from langchain_threadmem.maintenance.repair import count_unreadable, remove_unreadable, repair
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.schema import embedding
from langchain_threadmem.storage.statements import Statement

CHAT = [
    ("How do I read a CSV file in pandas?", "Use pandas.read_csv."),
    ("Which wine goes with salmon?", "A dry Riesling."),
    ("And if the CSV file has no header?", "Call it with header=None."),
]
SERVING = ("demo", "mcp", "completion", "secure", "view", "chat")
"""Commands without `--json`."""


COMMANDS = PROGRAM.commands
ROOT = Path(__file__).parents[2]


def chat(url: str, owner: str = "user") -> str:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        for human, answer in CHAT:
            system.conversation("monday").append(human, answer)
        system.conversation("tuesday").append("Where is Lisbon?", "In Portugal.")
    return url


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def database() -> str:
    return chat("memory.db")


Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], url: str, owner: str) -> Run:
    """Runs a command on both kinds of databases, and returns its output."""
    chat(url, owner)

    def call(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, "--db", url, "--owner", owner]) == code
        said = capsys.readouterr()
        assert said.err.count("\n") == (code == 2)
        return said.err if code == 2 else said.out

    return call


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Answers the question of a command in a terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    return lambda text: monkeypatch.setattr("sys.stdin", Terminal(text))


# search


def test_search_prints_hits_with_their_conversation_and_the_reason(run: Run) -> None:
    out = run("search", "salmon wine", "--words", "--limit", "1")
    assert "→ 3 User: Which wine goes with salmon?" in out
    assert re.search(r"monday, score \d+\.\d\d: shares .*salmon", out)


def test_search_prints_json(run: Run) -> None:
    [hit] = json.loads(run("search", "Lisbon", "--words", "--json", "--limit", "1", "--context", "0"))
    assert (hit["conversation"], hit["message"]["text"], hit["context"]) == (
        "tuesday",
        "Where is Lisbon?",
        [],
    )
    assert hit["why"] == "shares lisbon"


def test_search_can_be_limited_to_a_conversation(run: Run) -> None:
    assert json.loads(run("search", "Lisbon", "--words", "--json", "--conversation", "monday")) == []
    assert "'monday', 'tuesday'" in run("search", "Lisbon", "--conversation", "sunday", code=2)


# place


def test_place_moves_a_message_to_a_new_thread_to_a_message_and_to_a_thread(
    run: Run, url: str, owner: str
) -> None:
    assert "message 3 is now message 7: it begins a thread; 2 threads now" in run(
        "place", "monday", "3", "--new"
    )
    moved = json.loads(run("place", "monday", "5", "--parent", "2", "--json"))
    assert moved == {"conversation": "monday", "message": 5, "id": 8, "parent": 2, "threads": 2}
    assert json.loads(run("place", "monday", "8", "--thread", "4", "--json"))["parent"] == 4
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert [len(thread) for thread in system.conversation("monday").threads()] == [2, 4]


def test_place_confirms_a_place(run: Run) -> None:
    assert run("place", "monday", "3", "--parent", "2") == "message 3 stays: it continues message 2\n"


def test_place_refuses_what_there_is_not(run: Run) -> None:
    assert "no thread 5 in 'monday'; there is 6" in run("place", "monday", "3", "--thread", "5", code=2)
    assert "99" in run("place", "monday", "3", "--parent", "99", code=2)


# summarize


def test_summarize_prints_the_summary_of_a_conversation_a_thread_or_all(run: Run) -> None:
    assert "How do I read a CSV file in pandas?" in run("summarize", "monday")
    assert json.loads(run("summarize", "tuesday", "--thread", "2", "--json"))["conversation"] == "tuesday"
    whole = json.loads(run("summarize", "--json"))
    assert (whole["rank"], sorted(whole["covers"])) == (2, ["monday", "tuesday"])


def test_a_printed_summary_does_not_act_on_the_terminal(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        system.conversation("odd").append("What is red?", "A red \x1b[31mword is red.")
    assert main(["summarize", "odd"]) == 0
    assert "\\x1b[31mword" in capsys.readouterr().out


def test_summarize_asks_the_chat_model_that_is_named(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = '{"title": "CSV and wine", "summary": "Both were asked about."}'
    models = {
        "fake:good": FakeListChatModel(responses=[said]),
        "fake:bad": FakeListChatModel(responses=["?"]),
    }
    monkeypatch.setattr(
        "langchain.chat_models.init_chat_model",
        lambda name, model_provider: models[f"{model_provider}:{name}"],
    )
    assert main(["summarize", "monday", "--model", "fake:bad"]) == 1
    assert all(line.startswith("threadmem: ") for line in capsys.readouterr().err.splitlines())
    assert main(["summarize", "monday", "--model", "fake:good"]) == 0
    assert capsys.readouterr().out == "CSV and wine\nBoth were asked about.\n"
    assert main(["summarize", "monday", "--model", "fake:none"]) == 2
    assert "the model 'fake:none' cannot be used" in capsys.readouterr().err


# forget and erase


def test_forget_removes_the_least_important_units_and_keeps_history(run: Run, url: str, owner: str) -> None:
    assert run("forget", "--share", "0.5") == "4 units forgotten, 4 left\n"
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert len(system.conversation("monday")) == 6


def test_forget_with_purge_removes_a_message_from_history(run: Run, url: str, owner: str) -> None:
    forgotten = json.loads(
        run("forget", "--conversation", "monday", "--message", "5", "--purge", "--yes", "--json")
    )
    assert (forgotten["units"], forgotten["left"], forgotten["purged"]) == (1, 7, True)
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert "And if the CSV file" not in system.conversation("monday").export("json")


def test_forget_without_a_share_asks_first(
    database: str, capsys: pytest.CaptureFixture[str], answer: Callable[[str], None]
) -> None:
    assert main(["forget"]) == 2
    error = capsys.readouterr().err
    assert "Forget 10 % of the memory of 'user'?" in error
    assert "--share, --max-units or --message" in error
    answer("n\n")
    assert main(["forget"]) == 1
    assert "[y/N]" in capsys.readouterr().err
    assert main(["show", "monday", "--json"]) == 0
    assert [one["forgotten"] for one in json.loads(capsys.readouterr().out)] == [None] * 6
    answer("y\n")
    assert main(["forget"]) == 0
    assert capsys.readouterr().out == "1 unit forgotten, 7 left\n"
    assert main(["forget", "--max-units", "100"]) == 0


def test_show_marks_what_is_forgotten(run: Run) -> None:
    run("forget", "--conversation", "monday", "--message", "3")
    assert "(forgotten) 3 User: Which wine goes with salmon?" in run("show", "monday")
    shown = json.loads(run("show", "monday", "--json"))
    assert [one["id"] for one in shown if one["forgotten"]] == [3]


def test_erase_prints_a_receipt_that_names_the_owner(run: Run, url: str, owner: str) -> None:
    out = run("erase", "monday", "--yes")
    assert out.startswith(f"erased conversation 'monday' of {owner!r} from ")
    assert "6 node" in out
    assert out.endswith("checked: nothing is left\n")
    receipt = json.loads(run("erase", "--everything", "--yes", "--json"))
    assert (receipt["owner"], receipt["tables"]["node"], receipt["ok"]) == (owner, 2, True)
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert system.conversations() == []


def test_erase_before_a_time_keeps_later_messages(run: Run) -> None:
    assert "checked" in run("erase", "--before", "2020-01-01", "--yes")
    assert "'yesterday' is not a time" in run("erase", "--before", "yesterday", "--yes", code=2)
    assert json.loads(run("verify", "--json"))["nodes"] == 8


def test_erase_asks_first(
    database: str, capsys: pytest.CaptureFixture[str], answer: Callable[[str], None]
) -> None:
    answer("n\n")
    assert main(["erase", "monday"]) == 1
    said = capsys.readouterr()
    assert "Erase conversation 'monday' of 'user' from 'memory.db', for good? [y/N]" in said.err
    assert said.out == ""
    answer("y\n")
    assert main(["erase", "monday", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conversations"] == ["monday"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["erase"], "name the data to erase"),
        (["erase", "monday", "--everything"], "--everything alone"),
        (["erase", "sunday", "--yes"], "there is no conversation 'sunday'"),
        (["erase", "monday"], "pass --yes"),
        (["forget", "--purge"], "pass --yes"),
        (["forget", "--message", "3"], "pass both or neither"),
        (["forget", "--message", "3", "--conversation", "monday", "--share", "0.5"], "--share"),
        (["forget", "--share", "7"], "7"),
        (["forget", "--max-units", "-1"], "max_units=-1"),
    ],
)
def test_a_removal_that_is_not_clear_is_refused_and_removes_nothing(
    database: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    with MemorySystem(database, read_only=True) as system:
        assert system.stats().messages == 8


# backup


def test_a_backup_of_a_database_in_use_is_one_consistent_state(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = threading.Event()

    def write() -> None:
        with MemorySystem(database, embeddings=False) as system:
            while not stop.is_set():
                system.conversation("monday").append("More?", "Yes.")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            assert main(["backup", f"copy-{number}.db"]) == 0
    finally:
        stop.set()
        writer.join()
    for number in range(3):
        with MemorySystem(f"copy-{number}.db", read_only=True) as copy:
            assert copy.verify().ok
            assert len(copy.conversation("monday")) % 2 == 0
    assert not list(Path.cwd().glob("*copy-*.db-*"))
    capsys.readouterr()


@pytest.mark.postgres
@pytest.mark.parametrize("target", ["copy", "copy.db"])
def test_a_backup_is_a_folder_or_a_file(
    owner: str, target: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    for source in ("memory.db", request.getfixturevalue("owned_url")):
        place = target if source == "memory.db" else f"server-{target}"
        chat(source, owner)
        assert main(["backup", place, "--db", source, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["ok"]
        if target == "copy":
            assert main(["convert", place, f"{place}.db", "--owner", owner]) == 0
        with MemorySystem(f"{place}.db".replace(".db.db", ".db"), owner=owner, read_only=True) as copy:
            assert copy.conversations() == ["monday", "tuesday"]
        capsys.readouterr()


@pytest.fixture
def owned_url(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A PostgreSQL schema with the memories of one test, since a backup copies all owners."""
    server, schema = request.getfixturevalue("postgres_url"), f"backup_{tmp_path.name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        url = make_url(server).update_query_dict({"options": f"-csearch_path={schema}"})
        yield url.render_as_string(hide_password=False)
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def test_the_document_of_a_backup_has_the_target_as_given(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", r"mon\day.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == r"mon\day.db"


def test_a_backup_never_replaces_a_file(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("copy.db").write_text("mine")
    assert main(["backup", "copy.db"]) == 2
    assert "the file 'copy.db' exists already" in capsys.readouterr().err
    assert Path("copy.db").read_text() == "mine"


def test_a_backup_that_fails_leaves_nothing(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path.cwd().iterdir())
    assert main(["backup", "nowhere/copy.db"]) == 2
    assert "nowhere/copy.db" in capsys.readouterr().err
    assert sorted(Path.cwd().iterdir()) == before


# repair


def damage(database: str, statement: str) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(statement)


def texts(database: str) -> list[str]:
    with MemorySystem(database, read_only=True) as system:
        return [str(message.content) for message in system.conversation("monday").messages]


def test_repair_of_a_whole_database_changes_nothing(run: Run) -> None:
    assert "nothing to repair" in run("repair")
    assert list(Path.cwd().glob("*.bak")) == []


@pytest.mark.parametrize(
    "change",
    ["threadmem_document SET terms = 'nonsense' WHERE terms LIKE '%csv%'", "threadmem_watermark SET seq = 0"],
    ids=["words", "progress"],
)
def test_repair_makes_damaged_words_anew_after_a_backup(
    database: str, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    assert main(["search", "csv", "--words"]) == 0
    damage(database, f"UPDATE {change}")
    before = texts(database)
    capsys.readouterr()
    assert main(["repair", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["repairs"] == ["the index of words was rebuilt"]
    assert (done["ok"], done["problems"]) == (True, [])
    assert texts(database) == before
    assert main(["search", "csv", "--words", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["verify", "--db", done["backup"]]) == 1  # The state before the repair.


def test_repair_builds_database_indexes_anew(capsys: pytest.CaptureFixture[str]) -> None:
    database = chat("memory.db")
    with closing(sqlite3.connect(database)) as connection:
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'threadmem_segment_parent'"
        ).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute("PRAGMA journal_mode=DELETE")
    with Path(database).open("r+b") as file:  # An empty index.
        file.seek((page - 1) * size)
        file.write(b"\x0a\x00\x00\x00\x00" + size.to_bytes(2, "big") + b"\x00")
    assert main(["verify"]) == 1
    assert main(["repair", "--no-backup"]) == 0
    assert "the indexes of the database file were rebuilt" in capsys.readouterr().out
    assert len(texts(database)) == 6


def test_repair_removes_damaged_vectors_and_keeps_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with MemorySystem("memory.db", embeddings=WordEmbeddings()) as system:
        for name in ("monday", "tuesday"):
            system.conversation(name).append("Where is Lisbon?", "In Portugal.")
        system.flush()
    damage("memory.db", "UPDATE threadmem_embedding SET vector = x'00' WHERE key = 1 << 24")
    assert main(["verify"]) == 1
    assert main(["repair"]) == 0
    assert "1 damaged vector removed" in capsys.readouterr().out
    with MemorySystem("memory.db", embeddings=WordEmbeddings()) as system:
        count = system.runtime.database.read(lambda conn: len(checksums.damaged_keys(conn, embedding)))
        assert (count, system.flush(), system.verify().ok) == (0, 2, True)


def test_repair_says_what_it_cannot_mend_and_keeps_it(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(database, "UPDATE threadmem_node SET body = body || ' ' WHERE seq = 2")
    rows = Path(database).read_bytes()
    assert main(["repair", "--backup", "before.db"]) == 1
    out = capsys.readouterr().out
    assert "the database before the repair is in 'before.db'" in out
    assert "cannot be repaired from the messages" in out
    assert Path(database).read_bytes() == rows


def test_repair_removes_what_cannot_be_read_if_asked_to(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        name = system.conversations()[0]
        before = system.conversation(name).history
    where = f"seq = 2 AND tree IN (SELECT id FROM threadmem_tree WHERE conversation = '{name}')"
    damage(database, f"UPDATE threadmem_node SET body = substr(body, 1, 20) WHERE {where}")
    assert main(["repair", "--no-backup"]) == 1
    assert "--remove-unreadable` removes the messages that cannot be read" in capsys.readouterr().out
    assert main(["repair", "--no-backup", "--remove-unreadable"]) != 0
    assert "pass --yes to agree" in capsys.readouterr().err
    assert main(["repair", "--no-backup", "--remove-unreadable", "--yes"]) == 0
    assert "1 message removed that could not be read" in capsys.readouterr().out
    with MemorySystem(database, embeddings=False) as system:
        left = system.conversation(name).history
        assert [node.message.content for node in left] == [
            node.message.content for node in before if node.id != 2
        ]
        assert all(node.parent_id != 2 for node in left)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_messages_of_a_lost_key_are_removed_and_the_others_stay(url: str, owner: str, mode: str) -> None:
    cipher = StreamCipher()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=cipher) as system:
        memory = system.conversation("c", summarizer=ExtractiveSummarizer())
        for text in ("heron", "swan", "crane"):
            memory.append(f"a {text}", "noted")
        system.summarize_session("c")
        memory.edit(5, "a stork")
        where = f"seq IN (2, 3) AND tree IN (SELECT id FROM threadmem_tree WHERE owner = '{owner}')"
        update = f"UPDATE threadmem_node SET body = replace(body, 'data', 'bata') WHERE {where}"
        system.runtime.database.write(lambda conn: conn.run(Statement.of(sqlite=update, postgresql=update)))
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=cipher) as system:
        flow = remove_unreadable(system.runtime)
        count = run_flow(flow, system.runtime) if mode == "sync" else asyncio.run(arun(flow, system.runtime))
        assert count >= 2
        history = system.conversation("c").history
        assert [(node.id, node.parent_id) for node in history] == [(1, None), (4, 1), (5, 4), (6, 5), (7, 4)]
        assert system.verify().problems == ()
        assert system.conversation("c").recall("stork", n_results=1)[0].node.id == 7


@pytest.mark.parametrize("encrypted", [False, True])
def test_items_and_checkpoints_that_cannot_be_read_are_removed_and_the_others_stay(
    url: str, owner: str, encrypted: bool
) -> None:
    def change(sql: str, values: Any) -> None:
        texts = Statement.of(sqlite=sql, postgresql=sql.replace("?", "%s"))
        system.runtime.database.write(lambda conn: conn.run(texts, *values))

    def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("noted")]}

    cipher = StreamCipher() if encrypted else None
    with MemorySystem(url, owner=owner, embeddings=False, cipher=cipher) as system:
        store, saver = ThreadMemStore(system), ThreadMemSaver(system)
        graph = StateGraph(MessagesState).add_node("chat", chat).add_edge(START, "chat").compile(saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        for text in ("a heron", "a swan"):
            graph.invoke({"messages": [("user", text)]}, config)
        for name in ("a", "b", "c"):
            store.put(("birds",), name, {"name": name})
        (before, [_, *others]) = system.verify(), list(saver.list(config))
        assert before.ok
        space = "namespace IN (SELECT id FROM threadmem_namespace WHERE owner = ?)"
        change(
            f"UPDATE threadmem_item SET value = substr(value, 1, 9) WHERE key = ? AND {space}", (b"b", owner)
        )
        tree = "tree = (SELECT id FROM threadmem_tree WHERE owner = ? AND conversation = 't')"
        last = f"id = (SELECT max(id) FROM threadmem_checkpoint WHERE {tree})"
        change(f"UPDATE threadmem_checkpoint SET data = ? WHERE {tree} AND {last}", (b"\xc1", owner, owner))
        counts = run_flow(count_unreadable(system.runtime), system.runtime)
        assert counts == {"store item": 1, "checkpoint": 1}
        assert run_flow(remove_unreadable(system.runtime), system.runtime) == 2
        assert [item.key for item in store.search(("birds",))] == ["a", "c"]
        assert [one.config for one in saver.list(config)] == [one.config for one in others]
        assert (system.verify().problems, run_flow(count_unreadable(system.runtime), system.runtime)) == (
            (),
            {},
        )
        assert graph.invoke({"messages": [("user", "a crane")]}, config)["messages"][-1].content == "noted"


class KeptKeys:
    """An index of vectors that keeps their keys alone."""

    def __init__(self) -> None:
        self.name, self.kept = "own", set[int]()

    def add(self, keys: list[int], matrix: Any) -> None:
        self.kept.update(keys)

    def remove(self, keys: list[int]) -> None:
        self.kept.difference_update(keys)

    def keys(self) -> list[int]:
        return sorted(self.kept)

    def count(self) -> int:
        return len(self.kept)

    def search(self, vector: Any, most: int) -> Found:
        return Found(np.empty(0, np.int64), np.empty(0, np.float32))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_index_of_vectors_that_lacks_some_is_filled_anew(url: str, owner: str, mode: str) -> None:
    index = KeptKeys()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=index) as system:
        system.conversation("monday").append("Where is Lisbon?", "In Portugal.")
        system.query("Lisbon")
        assert len(index.kept) == 2
        index.kept.pop()
        assert not system.verify().ok
        flow = repair(system.runtime)
        done = run_flow(flow, system.runtime) if mode == "sync" else asyncio.run(arun(flow, system.runtime))
        assert done == ["the vector index was rebuilt with 2 vectors"]
        assert system.verify().ok


@pytest.mark.postgres
def test_repair_copies_a_server_into_a_folder_first(
    owned_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat(owned_url)
    with psycopg.connect(owned_url) as connection:
        connection.execute("UPDATE threadmem_node SET state = 9 WHERE seq = 2")
    assert main(["repair", "--db", owned_url, "--json"]) == 1
    done = json.loads(capsys.readouterr().out)
    assert (done["ok"], done["repairs"], len(done["problems"])) == (False, [], 3)
    assert (Path(done["backup"]) / "manifest.json").is_file()


# completion


def test_the_completion_of_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    Path("threadmem.bash").write_text(capsys.readouterr().out)

    program = Path("threadmem")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m langchain_threadmem "$@"\n')
    program.chmod(0o755)

    def completed(*typed: str) -> list[str]:
        script = (
            f"source ./threadmem.bash; COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; "
            "_threadmem_completion ./threadmem; echo ${COMPREPLY[@]}"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("threadmem", "sea") == ["search"]
    assert completed("threadmem", "place", "--th") == ["--thread"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_completion_of_other_shells_names_each_command(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["completion", shell]) == 0
    assert f"_THREADMEM_COMPLETE={shell}_complete" in capsys.readouterr().out
    monkeypatch.setenv("_THREADMEM_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "threadmem ")
    monkeypatch.setenv("COMP_CWORD", "" if shell == "fish" else "1")
    assert main([]) == 0
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in said] == []


# owners and conversations


def test_a_command_takes_the_only_owner(capsys: pytest.CaptureFixture[str]) -> None:
    chat("memory.db", "ada")
    for command in (["stats"], ["verify"], ["repair"], ["reindex"], ["list"], ["show", "monday"]):
        assert main(command) == 0
    assert "data of 'ada'" in capsys.readouterr().out
    assert main(["erase", "tuesday", "--yes"]) == 0
    assert "of 'ada'" in capsys.readouterr().out


def test_of_several_owners_one_is_chosen_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    for owner in ("ada", "user"):
        chat("memory.db", owner)
    for command in ("stats", "verify", "repair", "reindex"):
        assert main([command]) == 2
        error = capsys.readouterr().err
        assert "'ada', 'user'" in error
        assert "--everybody" in error
        assert main([command, "--everybody"]) == 0
        out = capsys.readouterr().out
        assert "ada" in out
        assert "user" in out
        assert main([command, "--everybody", "--json"]) == 0
        assert [each["owner"] for each in json.loads(capsys.readouterr().out)] == ["ada", "user"]
        assert main([command, "--owner", "ada", "--json"]) == 0
        assert "everybody" not in capsys.readouterr().out
        assert main([command, "--owner", "ada", "--everybody"]) == 2
        assert "'ada'" in capsys.readouterr().err
    assert main(["list"]) == 0  # Of the owner "user".


def test_repair_of_everybody_copies_the_database_once(capsys: pytest.CaptureFixture[str]) -> None:
    for owner in ("ada", "user"):
        chat("memory.db", owner)
        assert main(["search", "csv", "--words", "--owner", owner]) == 0
    damage("memory.db", "UPDATE threadmem_document SET terms = 'nonsense' WHERE terms LIKE '%csv%'")
    capsys.readouterr()
    assert main(["repair", "--everybody", "--json"]) == 0
    repaired = json.loads(capsys.readouterr().out)
    # The first repair rebuilds the words of all owners.
    assert [each["repairs"] for each in repaired] == [["the index of words was rebuilt"], []]
    assert [each["ok"] for each in repaired] == [True, True]
    assert len(list(Path.cwd().glob("*.bak"))) == 1


def test_the_owners_of_a_database_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for owner in ("ada", "user"):
        chat("memory.db", owner)
    assert main(["owners"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [["owner", "conversations", "messages"], ["ada", "2", "8"], ["user", "2", "8"]]
    assert main(["owners", "memory.db", "--json"]) == 0
    [ada, _] = json.loads(capsys.readouterr().out)
    assert ada == {"owner": "ada", "conversations": 2, "messages": 8}


@pytest.mark.parametrize("name", ["mon", "My Week", "my week"])
def test_a_unique_beginning_or_a_title_names_a_conversation(
    database: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        system.update_conversation("monday", title="My week")
    assert main(["show", name, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 6
    assert main(["export", name]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["conversation_id"] == "monday"
    assert main(["place", name, "3", "--parent", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conversation"] == "monday"
    for command in (["erase", name], ["forget", "--message", "3", "--purge", "--conversation", name]):
        assert main([*command, "--yes"]) == 2
        assert f"no conversation {name!r}" in capsys.readouterr().err


def test_a_name_of_several_conversations_is_refused(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        system.conversation("monday evening").append("Hello", "Hi!")
    assert main(["show", "mon"]) == 2
    assert "'mon' names 'monday', 'monday evening'; write more of the id" in capsys.readouterr().err
    assert main(["show", "monday", "--json"]) == 0


def test_a_narrow_terminal_cuts_no_id(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    name = "0b7e0f5c-6a53-4c1e-9f9e-0d7a52b1c3aa"
    with MemorySystem(database, embeddings=False) as system:
        system.conversation(name).append("Hello", "Hi!")
    for command in (["list"], ["show"]):
        assert main(command) == 0
        assert name in capsys.readouterr().out


@pytest.mark.parametrize("conversation", [["monday"], []])
def test_a_suffix_of_no_format_is_refused(
    database: str, capsys: pytest.CaptureFixture[str], conversation: list[str]
) -> None:
    assert main(["export", *conversation, "--out", "chat.pdf"]) == 2
    error = capsys.readouterr().err
    assert "'chat.pdf'" in error
    assert ".json, .jsonl, .md, .txt, .mmd, .graphml, .html, .svg" in error
    assert not Path("chat.pdf").exists()
    assert main(["export", "monday", "--out", "chat.text", "--format", "text"]) == 0


# rules of all commands


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_examples_that_it_understands(name: str) -> None:
    lines = str(COMMANDS[name].epilog).splitlines()[2:]
    assert lines
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])
        assert words[:2] == ["threadmem", name]
        COMMANDS[name].make_context(name, words[2:])


def test_commands_name_database_and_owner_in_the_same_way() -> None:
    without = {
        name: {"--db", "--owner", "--json"} - {word for option in command.params for word in option.opts}
        for name, command in COMMANDS.items()
    }
    assert {name for name, missing in without.items() if "--json" in missing} <= {*SERVING, "export"}
    assert {name for name, missing in without.items() if "--owner" in missing} == {
        *("backup", "completion", "owners", "partition", "secure")
    }
    assert {name for name, missing in without.items() if "--db" in missing} == {
        *("completion", "convert", "import-checkpoints")
    }


@pytest.mark.filterwarnings("default:no embedding model is installed")
@pytest.mark.parametrize(
    "arguments",
    [
        *(["list"], ["list", "monday"], ["show"], ["show", "monday"], ["show", "monday", "--doubtful"]),
        *(["stats"], ["verify"], ["repair"], ["sort", "monday", "--dry-run"], ["reindex"]),
        *(["convert", "memory.db", "copy"], ["backup", "copy.db"]),
    ],
    ids=" ".join,
)
def test_json_is_all_that_a_command_prints(
    database: str, capsys: pytest.CaptureFixture[str], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langchain_threadmem.LocalEmbeddings.available", lambda: False)
    assert main([*arguments, "--json"]) == 0
    said = capsys.readouterr()
    assert isinstance(json.loads(said.out), dict | list)


def test_show_prints_messages_with_their_places_as_json(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "monday", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)[1]
    assert (second["id"], second["parent"], second["role"]) == (2, 1, "ai")
    assert (second["text"], second["state"]) == ("Use pandas.read_csv.", "live")


def test_a_single_argument_is_a_conversation_unless_it_looks_like_a_database(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["monday"], ["--db", database, "monday"], [database, "monday"]):
        assert main(["list", *arguments]) == 0
        assert "How do I read a CSV file in pandas?" in capsys.readouterr().out
    assert main(["list", "other.db"]) == 2
    assert "no database file 'other.db'" in capsys.readouterr().err
    assert main(["list", "other.db", "monday", "--db", database]) == 2
    assert "both name a database" in capsys.readouterr().err
    assert main(["list", "other.db", "monday", "--db", ":memory:"]) == 2
    assert "--db ':memory:' and 'other.db' both name a database" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serach"], "'serach'"),
        (["list", "--limt", "3"], "--limt"),
        (["place", "monday", "three", "--new"], "'three'"),
        (["place", "monday", "3"], "--parent --thread --new"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    error = capsys.readouterr().err
    assert refused.value.code == 2
    assert said in error
    assert error.count("\n") == 1
    assert "--help`" in error


def test_options_may_stand_between_arguments(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", database, "--doubtful", "monday"]) == 0
    assert capsys.readouterr().out == "no place is doubtful\n"


@pytest.mark.parametrize("options", [[], ["--owner", "user"]], ids=["alone", "after an option"])
def test_an_argument_after_two_dashes_may_begin_with_a_dash(
    database: str, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        system.conversation("-x").append("Where do figs grow?", "In the south.")
    assert main(["show", *options, "--", "-x"]) == 0
    assert "figs" in capsys.readouterr().out
    assert main(["search", "--words", *options, "--", "-figs"]) == 0
    assert "shares figs" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "export"])
def test_an_output_that_cannot_show_a_character_is_one_line(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with MemorySystem(database, embeddings=False) as system:
        system.conversation("odd").append("Where do figs grow? \N{GRAPES}")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    assert main([command, "odd"]) == 2
    assert "PYTHONUTF8=1" in capsys.readouterr().err


def test_a_conversation_with_a_long_name_in_any_script_gets_a_file(database: str, folder: Path) -> None:
    with MemorySystem(database, embeddings=False) as system:
        for name in ("面" * 170, "面" * 169 + "包", "é" * 200):
            system.conversation(name).append("Where do figs grow?")
    assert main(["export", "--out", "files"]) == 0
    assert len(list((folder / "files").iterdir())) == 5


def test_a_file_name_that_is_not_unicode_is_shown_with_escapes(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "monday", "--out", "\udcff.md"]) == 0
    assert main(["view", "--static", "\udcff.html"]) == 0
    assert capsys.readouterr().out.count("\\udcff") == 2


def test_a_warning_of_the_log_is_one_line(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(_: object) -> Any:
        logging.getLogger("langchain_threadmem.index").warning("two\nlines")
        raise KeyboardInterrupt

    monkeypatch.setattr(MemorySystem, "verify", verify)
    assert main(["verify"]) == 130
    assert capsys.readouterr().err == "threadmem: two lines\nthreadmem: interrupted\n"


def test_a_name_that_the_system_refuses_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "n" * 5000]) == 2
    error = capsys.readouterr().err
    assert "too long" in error
    assert error.count("\n") == 1


def test_a_pipe_that_is_closed_is_no_error() -> None:
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"set -o pipefail; {sys.executable} -m langchain_threadmem completion bash | true",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_help_explains_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert [code for code in ("  0 ", "  1 ", "  2 ", "  130 ") if f"\n{code}" not in out] == []


def test_the_page_of_the_command_line_shows_each_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`threadmem {name}`" not in page] == []
    assert [name for name in COMMANDS if f"\nthreadmem {name}" not in page] == []
