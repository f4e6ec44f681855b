"""The `threadmem` command: output, files and refusals."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import weakref
import zipfile
from contextlib import closing
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.engine import make_url

from langchain_threadmem import ChatMemory, ConversationNode, MemorySystem
from langchain_threadmem.apps.cli import demo
from langchain_threadmem.apps.cli.demo import turns_of
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.formats.exporters.json import parse_conversation

ROOT = Path(__file__).parents[2]
CHAT = [
    ("Where is Lisbon?", "In Portugal."),
    ("How do I bake bread?", "With flour and time."),
    ("How long?", "Hours."),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


LOOKING = [[name, ""] for name in ("show", "list", "stats", "verify", "reindex")] + [["convert", "", "copy"]]
"""Commands that read a database; an empty argument stands for the database."""


def put(command: list[str], database: str) -> list[str]:
    return [argument or database for argument in command]


def write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return path


def records(chat: list[tuple[str, str]] = CHAT) -> list[dict[str, str]]:
    return [
        {"role": role, "content": text}
        for turn in chat
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line that a refused command prints."""
    before = sorted(Path.cwd().rglob("*"))
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("threadmem: ")
    assert sorted(Path.cwd().rglob("*")) == before
    return said.err


# demo


def test_the_demo_of_the_sample_shows_tree_threads_recalls_and_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "60 messages in " in out
    assert all(question in out for question in demo.QUESTIONS)
    assert "dough; similarity" in out
    assert "a model reads" in out
    good, legend, tree = (out.index(text) for text in ("follow-ups see", "question mark:", "60 messages in "))
    assert good < legend < tree
    with MemorySystem("demo-output/memory.db") as system:
        assert system.conversations() == ["everyday"]
        memory = system.conversation("everyday")
        assert len(memory) == 60
        assert Path("demo-output/tree.mmd").read_text(encoding="utf-8") == memory.to_mermaid() + "\n"
        assert Path("demo-output/tree.html").read_text(encoding="utf-8") == memory.export("html")
        assert memory.verify().ok


def test_the_demo_finds_more_of_the_sample_s_topics_than_following_the_last_message_would() -> None:
    topics = [json.loads(line)["topic"] for line in demo.everyday().splitlines()][::2]
    memory = ChatMemory.semantic()
    last_of: dict[str, int] = {}
    right = 0
    for topic, turn in zip(topics, turns_of(parse_conversation(demo.everyday())), strict=True):
        human, answer = memory.append(turn)
        right += human.parent_id == last_of.get(topic)
        last_of[topic] = answer.id
    assert right > 1 + sum(before == after for before, after in pairwise(topics))


def test_the_demo_plays_a_conversation_of_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("chat.jsonl"), *records())
    assert main(["demo", "chat.jsonl", "--out", "there/and/then"]) == 0
    assert "6 messages in " in capsys.readouterr().out
    assert sorted(path.name for path in Path("there/and/then").glob("tree.*")) == ["tree.html", "tree.mmd"]


def test_the_demo_plays_langchain_messages(capsys: pytest.CaptureFixture[str]) -> None:
    messages = [{"type": "human", "data": {"content": "Hello"}}, {"type": "ai", "data": {"content": "Hi!"}}]
    write(Path("chat.json"), messages)
    assert main(["demo", "chat.json"]) == 0
    assert "2 messages in 1 thread" in capsys.readouterr().out


def test_index_chooses_one_of_several_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("many.jsonl"), {"messages": records(CHAT[:1])}, {"messages": records(CHAT[1:])})
    assert main(["demo", "many.jsonl", "--index", "1"]) == 0
    assert "How do I bake bread?" in capsys.readouterr().out


def test_a_second_demo_leaves_the_first_conversation_alone() -> None:
    write(Path("chat.jsonl"), *records())
    assert [main(["demo", "chat.jsonl"]), main(["demo", "chat.jsonl"])] == [0, 0]
    with MemorySystem("demo-output/memory.db") as system:
        assert system.conversations() == ["chat", "chat-2"]
        assert [len(system.conversation(name)) for name in system.conversations()] == [6, 6]


def test_the_demo_stores_where_it_is_told() -> None:
    write(Path("chat.jsonl"), *records())
    assert main(["demo", "chat.jsonl", "--database", "sqlite:///mine.db", "--owner", "ada"]) == 0
    assert not Path("demo-output/memory.db").exists()
    with MemorySystem("mine.db", owner="ada") as system:
        assert system.conversations() == ["chat"]


def test_the_demo_keeps_system_messages_and_tool_calls(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    write(
        Path("chat.jsonl"),
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Will it rain?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "dry", "tool_call_id": "1"},
        {"role": "assistant", "content": "No."},
    )
    assert main(["demo", "chat.jsonl"]) == 0
    assert "[calls weather()]" in capsys.readouterr().out


def test_an_interrupted_demo_leaves_no_half_conversation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(memory: ChatMemory, *_: object) -> tuple[int, int]:
        memory.append("Hello")
        raise KeyboardInterrupt

    monkeypatch.setattr("langchain_threadmem.apps.cli.demo.play", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "threadmem: interrupted\n"
    with MemorySystem("demo-output/memory.db") as system:
        assert system.conversations() == []


@pytest.mark.filterwarnings("default")
def test_without_an_embedding_model_the_demo_goes_by_words_and_says_so_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langchain_threadmem.LocalEmbeddings.available", lambda: False)
    write(Path("chat.jsonl"), *records())
    assert main(["demo", "chat.jsonl"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("threadmem: no embedding model is installed")
    assert said.err.count("\n") == 1
    assert "similarity" not in said.out


# demo, refused


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "no messages"),
        ('{"role": "user", "content": "Hello"}\n{"role": "user", "cont', "line 2 is not JSON"),
        (
            '{"role": "user", "content": "Hello"}\n{"role": "robot", "content": "Hi"}',
            "line 2 has the role 'robot'",
        ),
        (
            '{"role": "user", "content": "Hello"}\n{"role": "assistant", "content": " "}',
            "line 2 has empty content",
        ),
        (
            '{"role": "user", "content": "a"}\n{"role": "tool", "content": "b", "tool_call_id": "x"}',
            "tool call 'x'",
        ),
        ('{"role": "user", "content": "a", "id": "1"}\n{"role": "user", "content": "b", "id": "1"}', "'1'"),
        ("[1, 2]", "element 1"),
    ],
    ids=["empty", "malformed", "role", "content", "tool result", "id twice", "no message"],
)
def test_a_bad_file_is_refused_in_one_line_that_names_it(
    capsys: pytest.CaptureFixture[str], lines: str, said: str
) -> None:
    Path("chat.jsonl").write_text(lines, encoding="utf-8")
    line = refusal(capsys, "demo", "chat.jsonl")
    assert "chat.jsonl" in line
    assert said in line


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'nowhere.json'" in refusal(capsys, "demo", "nowhere.json")


def test_a_directory_is_refused_as_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("chats").mkdir()
    assert "'chats'" in refusal(capsys, "demo", "chats")


def test_a_binary_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("chat.json").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusal(capsys, "demo", "chat.json")


def test_an_index_out_of_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("chat.jsonl"), *records())
    assert "there is no conversation 7" in refusal(capsys, "demo", "chat.jsonl", "--index", "7")


def test_an_output_directory_below_a_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("")
    assert "not a directory" in refusal(capsys, "demo", "--out", "taken/here")


def test_an_output_directory_without_permission_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root, as which tests run in containers, may write everywhere, so the system's answer is given here.
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "permissions" in refusal(capsys, "demo", "--out", "locked/here")


@pytest.mark.parametrize("url", ["mysql://host/name", "sqlite:///nowhere/memory.db", "://"])
def test_a_database_that_cannot_be_opened_is_refused(capsys: pytest.CaptureFixture[str], url: str) -> None:
    refusal(capsys, "demo", "--database", url)


def test_what_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["demo", "--index", "one"])
    assert refused.value.code == 2
    assert "--index" in capsys.readouterr().err


# show and verify


@pytest.fixture
def database() -> str:
    with MemorySystem("kept.db") as system:
        for human, answer in CHAT:
            system.conversation("first").append(human, answer)
        system.conversation("second").append("Hello", "Hi!")
    return "kept.db"


def test_show_lists_the_conversations_of_a_database(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", database]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["conversation", "messages", "threads", "begins"]
    assert first.split()[:3] == ["first", "6", "1"]
    assert second.split() == ["second", "2", "1", "Hello"]


class History(list[ConversationNode]):
    """A list with weak references."""


class Exported(str):
    """A text with weak references."""


LONGER = "\n" * 10_000
"""Makes a text longer than the buffer of a file."""


@pytest.mark.parametrize(
    "command",
    [["show", "many.db"], ["show", "many.db", "--json"], ["export", "--db", "many.db", "--out", "all.jsonl"]],
    ids=["show", "json", "export"],
)
def test_a_command_on_all_conversations_keeps_few_of_them_in_memory(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    references: list[weakref.ref[Any]] = []
    counts: list[int] = []

    def noted(result: Any) -> Any:
        references.append(weakref.ref(result))
        counts.append(sum(reference() is not None for reference in references))
        return result

    with MemorySystem("many.db", embeddings=False) as system:
        for number in range(5):
            system.conversation(f"c{number}").append("Hello", "Hi!")
    read, export = ChatMemory.history.fget, ChatMemory.export
    assert read is not None
    monkeypatch.setattr(ChatMemory, "history", property(lambda memory: noted(History(read(memory)))))
    monkeypatch.setattr(
        ChatMemory, "export", lambda memory, format: noted(Exported(export(memory, format) + LONGER))
    )
    assert main(command) == 0
    assert len(counts) == 5
    assert max(counts) <= 2


def test_show_draws_a_conversation_and_its_threads(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"sqlite:///{database}", "first"]) == 0
    out = capsys.readouterr().out
    assert "6 messages in 1 thread" in out
    assert "4 Assistant: With flour and time." in out


def test_show_of_a_memory_without_conversations_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    MemorySystem("new.db").close()
    assert main(["show", "new.db"]) == 0
    assert capsys.readouterr().out == "no conversations\n"


def test_list_shows_the_conversation_that_was_used_last_first(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemorySystem(database) as system:
        system.update_conversation("first", title="All about bread")
    assert main(["list", database]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["id", "last", "used", "messages", "title"]
    assert (first.split()[0], second.split()[0]) == ("second", "first")
    assert second.rstrip().endswith("6  All about bread")


def test_list_leaves_archived_conversations_out(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with MemorySystem(database) as system:
        system.update_conversation("first", archived=True)
    assert main(["list", database]) == 0
    assert "first" not in capsys.readouterr().out
    assert main(["list", database, "--archived"]) == 0
    assert "first" in capsys.readouterr().out


def test_list_shows_the_threads_of_a_conversation(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", database, "first"]) == 0
    _, thread = capsys.readouterr().out.splitlines()
    assert thread.split()[0] == "6"


def test_sort_lists_moves_makes_them_and_takes_them_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemorySystem("sqlite:///chat.db", embeddings=False) as system:
        memory = system.conversation("chat")
        memory.extend(
            [(role, text) for turn in CHAT for role, text in zip(("user", "ai"), turn, strict=True)]
        )

    def told(*arguments: str) -> str:
        assert main(["sort", "chat.db", "chat", *arguments]) == 0
        return capsys.readouterr().out

    planned = told("--dry-run")
    assert "How do I bake bread?" in planned
    assert "to move; 1 thread now" in planned
    assert "moved; 2 threads now" in told()
    assert told() == "0 messages moved; 2 threads now\n"
    assert "moved; 1 thread now" in told("--undo")


def test_stats_shows_the_counts_of_the_owner_and_the_size_of_the_database(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stats", database]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["data", "of", "'user'", "number"]
    assert lines[1:3] == [["conversations", "2"], ["messages", "8"]]
    assert ["data", "of", "1", "owner", "size"] in lines
    assert ["table", "node"] in [line[:2] for line in lines]


def test_stats_prints_json(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", database, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    with MemorySystem(database, read_only=True) as system:
        assert printed == asdict(system.stats())


@pytest.mark.parametrize("command", LOOKING)
def test_a_wrong_owner_is_told_the_owners_there_are(
    database: str, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert "no memory of 'ada'; there is 'user'" in refusal(capsys, *put(command, database), "--owner", "ada")


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("tables", [["notes"], []])
def test_a_database_of_others_is_refused_and_left_as_it_is(
    capsys: pytest.CaptureFixture[str], command: list[str], tables: list[str]
) -> None:
    with closing(sqlite3.connect("theirs.db")) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (text)")
    Path("theirs.db").touch()
    before = Path("theirs.db").read_bytes()
    line = refusal(capsys, *put(command, "theirs.db"))
    assert "'theirs.db' is a database without a memory" in line
    assert ("'notes'" if tables else "none at all") in line
    assert Path("theirs.db").read_bytes() == before


@pytest.mark.parametrize("command", [one for one in LOOKING if one[0] != "reindex"])
def test_looking_at_a_memory_does_not_change_its_file(database: str, command: list[str]) -> None:
    before = Path(database).read_bytes()
    assert main(put(command, database)) == 0
    assert Path(database).read_bytes() == before
    assert not list(Path.cwd().glob(f"{database}-*"))


def test_a_command_that_writes_migrates_an_older_database_and_others_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oldest = min(path for path in (Path(__file__).parents[1] / "data" / "schemas").iterdir() if path.is_dir())
    with zipfile.ZipFile(oldest / "sqlite.zip") as archive:
        database = archive.extract("memory.db", tmp_path)
    assert "run `threadmem reindex`" in refusal(capsys, "list", database, "--owner", "ada")
    assert main(["reindex", database, "--owner", "ada"]) == 0
    assert main(["list", database, "--owner", "ada"]) == 0


@pytest.mark.postgres
def test_looking_at_a_server_makes_no_tables(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    empty = f"threadmem_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {empty}")
    url = make_url(postgres_url).update_query_dict({"options": f"-c search_path={empty}"})
    for command in ("show", "verify", "reindex"):
        line = refusal(capsys, command, url.render_as_string(hide_password=False))
        assert "none at all" in line


def test_a_memory_that_is_only_read_refuses_to_be_written(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner) as system:
        system.conversation("c").append("Hello", "Hi!")
    with MemorySystem(url, owner=owner, read_only=True) as system:
        with pytest.raises(PersistenceError, match=r"read.?only"):
            system.conversation("c").append("More", "No.")
        assert len(system.conversation("c")) == 2
        assert system.verify().ok


def test_nothing_to_index_is_no_failure(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reindex", database]) == 0
    assert "so few vectors are searched without an index" in capsys.readouterr().out


def test_show_refuses_an_unknown_conversation_and_names_those_there_are(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'first', 'second'" in refusal(capsys, "show", database, "third")


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize("database", ["missing.db", "sqlite:///missing.db"])
def test_a_missing_database_is_refused_and_not_made(
    capsys: pytest.CaptureFixture[str], command: str, database: str
) -> None:
    assert "there is no database file 'missing.db'" in refusal(capsys, command, database)


def test_a_file_that_is_no_database_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.txt").write_text("no database " * 100, encoding="utf-8")
    assert "notes.txt" in refusal(capsys, "verify", "notes.txt")


def test_verify_counts_what_is_whole(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", database]) == 0
    assert capsys.readouterr().out == "2 conversations, 8 nodes: no problems\n"


def test_verify_lists_problems_and_exits_with_1(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE threadmem_node SET state = 9 WHERE key = (SELECT max(key) FROM threadmem_node)"
        )
    connection.close()
    assert main(["verify", database]) == 1
    heading, *problems = capsys.readouterr().out.splitlines()
    assert heading == f"2 conversations, 8 nodes: {len(problems)} problems"
    assert any("'second'" in problem for problem in problems)


# the command itself


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_the_package_can_be_run_as_a_module() -> None:
    done = run("-m", "langchain_threadmem", "show", "missing.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_help_imports_nothing_heavy() -> None:
    done = run("-X", "importtime", "-m", "langchain_threadmem", "--help")
    assert "demo" in done.stdout
    heavy = ("langchain_core", "sqlalchemy", "numpy", "rich", "langgraph", "chromadb")
    assert [name for name in heavy if f" {name}\n" in done.stderr] == []
