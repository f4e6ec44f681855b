"""Import of chats of other programs."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import StreamCipher
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    messages_to_dict,
)
from sqlalchemy import bindparam, select

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.formats.importers import json_items
from langchain_threadmem.formats.importers import verbs as importing
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, node, segment, tree
from langchain_threadmem.storage.statements import Statement

BODIES = Statement(
    select(node.c.body)
    .select_from(tree.join(segment, segment.c.tree == tree.c.id).join(node, node_keys.inside(node.c.key)))
    .where(tree.c.owner == bindparam("owner")),
    "owner",
)
NOON = 1_700_000_000.0


def said(id: str, role: str, *parts: Any, after: str | None = None, **fields: Any) -> dict[str, Any]:
    """A node of ChatGPT's `mapping`; the time of a message is that of the digits of its id."""
    message = {
        "id": id,
        "author": {"role": role, "name": fields.pop("name", None)},
        "create_time": NOON + int("".join(filter(str.isdigit, id)) or 0),
        "content": {"content_type": "text", "parts": list(parts)},
        "recipient": "all",
        "metadata": {},
    }
    return {"id": id, "parent": after, "children": [], "message": message | fields}


def chatgpt(*nodes: dict[str, Any], id: str = "figs", **fields: Any) -> dict[str, Any]:
    mapping = {"top": {"id": "top", "parent": None, "children": [], "message": None}}
    mapping |= {node["id"]: node for node in nodes}
    return {
        "conversation_id": id,
        "title": "About figs",
        "create_time": NOON,
        "current_node": nodes[-1]["id"],
        "mapping": mapping,
    } | fields


FIGS = (
    said("m1", "user", "Where do figs grow?", after="top"),
    said("m2", "assistant", "In the south.", after="m1"),
    said("m3", "user", "And quinces?", after="m2"),
    said("m4", "assistant", "In gardens.", after="m3"),
    said("m5", "user", "And medlars?", after="m2"),
    said("m6", "assistant", "In old gardens.", after="m5"),
)
"""Two branches below the first answer; the second is the active thread."""

CLAUDE = {
    "uuid": "bread",
    "name": "Bread",
    "created_at": "2024-01-15T10:30:00Z",
    "chat_messages": [
        {
            "uuid": "c1",
            "sender": "human",
            "text": "How warm is dough?",
            "created_at": "2024-01-15T10:30:00Z",
            "attachments": [{"file_name": "dough.txt", "extracted_content": "25 degrees"}],
        },
        {
            "uuid": "c2",
            "sender": "assistant",
            "created_at": "2024-01-15T10:30:05Z",
            "content": [
                {"type": "thinking", "thinking": "I look it up."},
                {"type": "tool_use", "name": "search", "input": {"query": "dough"}},
                {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "25"}]},
                {"type": "text", "text": "About 25 degrees."},
            ],
        },
    ],
}
TURN = [HumanMessage("Hello", id="h1"), AIMessage("Hi!", id="a1")]
LLAMABOT = {
    "version": "1.0",
    "metadata": {"mode": "graph"},
    "nodes": [
        {"id": 1, "role": "user", "content": "Hello", "timestamp": "2024-01-15T10:30:00Z", "parent_id": None},
        {"id": 2, "role": "assistant", "content": "Hi!", "parent_id": 1},
        {"id": 3, "role": "assistant", "content": "Good day!", "parent_id": 1},
    ],
    "edges": [{"from": 1, "to": 2}, {"from": 1, "to": 3}],
}
UNITS = {
    name: {
        "id": name,
        "content": text,
        "source": source,
        "creation_time": f"2024-01-15T10:30:0{n}",
        "rank": rank,
        "group_id": "monday",
        "pre_id": None,
        "metadata": {"action": "speak"},
    }
    for n, (name, source, text, rank) in enumerate(
        [("u1", "user", "Hello", 0), ("u2", "ai", "Hi!", 0), ("s1", "ai", "A greeting.", 1)]
    )
}


def histories(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        database.executemany(
            "INSERT INTO message_store (session_id, message) VALUES ('monday', ?)",
            [(json.dumps(message),) for message in messages_to_dict(TURN)],
        )


def memforest(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE memory_units (id TEXT PRIMARY KEY, content TEXT, creation_time TEXT, source TEXT, "
            "metadata TEXT, rank INTEGER);"
            "CREATE TABLE session_unit_membership (session_id TEXT, unit_id TEXT);"
            "CREATE TABLE mu_sequence_edges (unit_id TEXT, pre_unit_id TEXT);"
        )
        for unit in UNITS.values():
            row = [unit[name] for name in ("id", "content", "creation_time", "source")]
            database.execute(
                "INSERT INTO memory_units VALUES (?, ?, ?, ?, ?, ?)",
                [*row, json.dumps(unit["metadata"]), unit["rank"]],
            )
            database.execute("INSERT INTO session_unit_membership VALUES ('monday', ?)", [unit["id"]])


def lines(*records: Any) -> str:
    return "\n".join(map(json.dumps, records))


CHUNKS = [HumanMessageChunk("Hello"), AIMessageChunk("Hi!")]
JAVASCRIPT = [
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", name],
        "kwargs": {"content": text, "id": f"m{text}", "additional_kwargs": {}, "response_metadata": {}},
    }
    for name, text in (("HumanMessage", "Hello"), ("AIMessageChunk", "Hi!"))
]
"""What `JSON.stringify` of LangChain.js 1.4 writes of two messages."""
CONFIG = {"configurable": {"thread_id": "monday", "checkpoint_ns": "", "checkpoint_id": "c2"}}
SNAPSHOT = {"values": {"messages": TURN}, "next": (), "config": CONFIG, "created_at": "2026-11-28T10:00:00Z"}
"""`StateSnapshot._asdict()` of LangGraph."""
JAVASCRIPT_SNAPSHOT = {
    "values": {"messages": JAVASCRIPT},
    "next": [],
    "tasks": [],
    "metadata": {"source": "loop", "step": 1, "parents": {}},
    "config": CONFIG,
    "createdAt": "2026-11-28T10:00:00Z",
}
USER, ANSWER = {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}
ONE = [("human", "Hello"), ("ai", "Hi!")]
FILES: dict[str, tuple[str, str | Callable[[Path], None], str, list[tuple[str, str]]]] = {
    "a message on a line": ("messages", lines(USER, ANSWER), "file", ONE),
    "a conversation on a line": ("messages", lines({"messages": [USER, ANSWER]}), "file-1", ONE),
    "a list of messages": ("messages", json.dumps([USER, ANSWER], indent=2), "file", ONE),
    "conversations with ids": ("messages", json.dumps([{"id": "x", "messages": [USER, ANSWER]}]), "x", ONE),
    "messages of Anthropic": (
        "messages",
        lines(
            {
                "system": "Be kind.",
                "messages": [USER, {**ANSWER, "content": [{"type": "text", "text": "Hi!"}]}],
            }
        ),
        "file-1",
        [("system", "Be kind."), *ONE],
    ),
    "messages_to_dict": ("langchain", json.dumps(messages_to_dict(TURN)), "file", ONE),
    "messages_to_dict on lines": ("langchain", lines(*messages_to_dict(TURN)), "file", ONE),
    "messages_to_dict of chunks": ("langchain", json.dumps(messages_to_dict(CHUNKS)), "file", ONE),
    "dumps": ("langchain", dumps(TURN), "file", ONE),
    "dumps of chunks": ("langchain", dumps(CHUNKS), "file", ONE),
    "dumps of a state": ("langchain", dumps({"messages": TURN}), "file-1", ONE),
    "LangChain.js": ("langchain", json.dumps(JAVASCRIPT), "file", ONE),
    "get_state_history": ("langgraph", dumps([SNAPSHOT]), "monday", ONE),
    "get_state": ("langgraph", dumps(SNAPSHOT), "monday", ONE),
    "LangGraph.js": ("langgraph", json.dumps([JAVASCRIPT_SNAPSHOT]), "monday", ONE),
    "SQLChatMessageHistory": ("sql_history", histories, "monday", ONE),
    "llamabot": ("llamabot", json.dumps(LLAMABOT, indent=2), "file", [*ONE, ("ai", "Good day!")]),
    "MemForest's database": ("memforest", memforest, "monday", ONE),
    "MemForest's JSON": ("memforest", json.dumps(UNITS, indent=4), "monday", ONE),
    "ChatGPT": (
        "chatgpt",
        json.dumps([chatgpt(*FIGS[:2])]),
        "figs",
        [("human", "Where do figs grow?"), ("ai", "In the south.")],
    ),
    "Claude": (
        "claude",
        json.dumps([CLAUDE]),
        "bread",
        [
            ("human", "How warm is dough?\n\n[file: dough.txt]\n25 degrees"),
            ("ai", ""),
            ("tool", "25"),
            ("ai", "About 25 degrees."),
        ],
    ),
}
"""For each format: its name, a file, and the conversation and the messages of the file."""


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes conversations of ChatGPT, or text, to a file."""

    def write(*contents: Any, name: str = "file.json") -> Path:
        path = tmp_path / name
        text = contents[0] if isinstance(contents[0], str) else json.dumps(contents)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def parents(system: MemorySystem, name: str = "figs") -> list[tuple[Any, int | None]]:
    return [(node.message.id, node.parent_id) for node in system.conversation(name).history]


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_each_format_is_recognised_and_imported_once(
    kind: str, system: MemorySystem, verbs: Any, tmp_path: Path
) -> None:
    format, contents, name, messages = FILES[kind]
    path = tmp_path / "file.json"
    path.write_text(contents, encoding="utf-8") if isinstance(contents, str) else contents(path)
    first, second = (verbs(system).import_file(path) for _ in range(2))
    assert (first.format, first.new_conversations, first.new_messages) == (format, 1, len(messages))
    assert (second.new_conversations, second.new_messages) == (0, 0)
    assert (second.conversations, second.messages) == (1, len(messages))
    history = system.conversation(name).history
    assert [(node.message.type, node.message.text) for node in history] == messages
    assert system.verify().ok


def test_messages_of_no_session_are_bad_and_no_conversation(system: MemorySystem, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    histories(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE message_store SET session_id = NULL")
    report = system.import_file(path, skip_bad=True)
    assert report.problems == ("table 'message_store' has messages without a session_id",)
    assert system.conversations() == []


def test_branches_times_and_title_of_chatgpt_are_kept(system: MemorySystem, verbs: Any, file: Any) -> None:
    verbs(system).import_file(file(chatgpt(*FIGS)))
    assert parents(system) == [("m1", None), ("m2", 1), ("m3", 2), ("m4", 3), ("m5", 2), ("m6", 5)]
    memory = system.conversation("figs")
    assert [len(thread) for thread in memory.threads()] == [4, 4]
    assert memory.history[3].timestamp == datetime.fromtimestamp(NOON + 4, UTC)
    [info] = system.list_conversations(metadata={"source": "chatgpt"})
    assert (info.title, info.started) == ("About figs", datetime.fromtimestamp(NOON, UTC))


def test_the_current_node_is_the_end_of_the_active_thread(system: MemorySystem, file: Any) -> None:
    system.import_file(file(chatgpt(*FIGS, current_node="m4")))
    assert system.conversation("figs").messages[-1].text == "In gardens."


def test_a_later_export_adds_its_new_messages_and_branches(
    system: MemorySystem, verbs: Any, file: Any
) -> None:
    verbs(system).import_file(file(chatgpt(*FIGS[:4])))
    report = verbs(system).import_file(file(chatgpt(*FIGS), chatgpt(FIGS[0], id="other")))
    assert (report.new_conversations, report.new_messages) == (1, 3)
    assert parents(system)[4:] == [("m5", 2), ("m6", 5)]
    assert system.conversation("figs").messages[-1].text == "In old gardens."
    assert system.verify().ok


def test_a_message_that_was_edited_since_the_first_import_names_its_new_version(
    system: MemorySystem, verbs: Any, tmp_path: Path
) -> None:
    mine, path = ChatMemory(embeddings=False, conversation_id="figs"), tmp_path / "figs.json"
    mine.append("Hello", "Hi!")
    mine.save(path)
    verbs(system).import_file(path)
    question, _ = mine.append("Where do fogs grow?", "Where do what grow?")
    mine.edit(question.id, "Where do figs grow?")
    mine.append("In gardens.")
    mine.save(path)
    assert verbs(system).import_file(path).new_messages == len(mine.history) - 2
    assert system.conversation("figs").history == mine.history
    assert system.verify().ok


def test_a_conversation_that_was_continued_here_keeps_its_active_thread_and_its_title(
    system: MemorySystem, file: Any
) -> None:
    system.import_file(file(chatgpt(*FIGS[:4])))
    memory = system.conversation("figs")
    memory.append("And dates?", "In oases.")
    system.update_conversation("figs", title="Fruit")
    system.import_file(file(chatgpt(*FIGS)))
    assert [message.text for message in memory.messages[-2:]] == ["And dates?", "In oases."]
    assert system.list_conversations()[0].title == "Fruit"


def test_hidden_and_empty_messages_are_nodes_aside_of_the_conversation(
    system: MemorySystem, file: Any
) -> None:
    hidden = said("m0", "system", "", after="top", metadata={"is_visually_hidden_from_conversation": True})
    system.import_file(file(chatgpt(hidden, FIGS[0] | {"parent": "m0"}, FIGS[1])))
    memory = system.conversation("figs")
    assert [node.state for node in memory.history] == [State.ASIDE, State.LIVE, State.LIVE]
    assert [message.type for message in memory.messages] == ["human", "ai"]


def test_calls_of_tools_and_images_of_chatgpt_are_kept_by_reference(system: MemorySystem, file: Any) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://fig", "width": 8}
    nodes = [
        said("m1", "user", image, "What is it?", after="top"),
        said(
            "m2", "assistant", after="m1", recipient="python", content={"content_type": "code", "text": "1+1"}
        ),
        said(
            "m3", "tool", after="m2", name="python", content={"content_type": "execution_output", "text": "2"}
        ),
        said("m4", "assistant", "A fig.", after="m3", metadata={"model_slug": "small"}),
    ]
    system.import_file(file(chatgpt(*nodes)))
    question, call, result, answer = system.conversation("figs").messages
    assert question.text == "[image: fig]\n\nWhat is it?"
    assert question.additional_kwargs["files"][0]["file_id"] == "file-service://fig"
    assert call.tool_calls[0]["args"] == {"input": "1+1"}
    assert (result.tool_call_id, result.text) == (call.tool_calls[0]["id"], "2")
    assert answer.response_metadata["model_name"] == "small"


def test_reasoning_attachments_and_tools_of_claude_are_kept(system: MemorySystem, file: Any) -> None:
    system.import_file(file(CLAUDE))
    question, call, result, answer = system.conversation("bread").messages
    assert question.text == "How warm is dough?\n\n[file: dough.txt]\n25 degrees"
    assert call.content_blocks[0] == {"type": "reasoning", "reasoning": "I look it up."}
    assert call.tool_calls[0]["name"] == "search"
    assert result.tool_call_id == call.tool_calls[0]["id"]
    assert answer.id == "c2"


def test_results_of_tools_in_messages_of_anthropic_become_messages(system: MemorySystem, file: Any) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "2"}
    record = {
        "messages": [USER, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    }
    system.import_file(file(lines(record)))
    messages = system.conversation("file-1").messages
    assert [message.type for message in messages] == ["human", "ai", "tool"]
    assert messages[1].tool_calls[0]["args"] == {"a": 1}
    assert messages[2].tool_call_id == "t1"


def test_a_refusal_is_imported(system: MemorySystem, file: Any) -> None:
    refusal = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    system.import_file(file([USER, refusal]))
    [_, answer] = system.conversation("file-1").messages
    assert (answer.content, answer.additional_kwargs) == ("", {"refusal": "I cannot help with that."})


def test_a_longer_list_of_messages_adds_the_new_messages(system: MemorySystem, file: Any) -> None:
    system.import_file(file(lines(USER, ANSWER, USER)))
    assert system.import_file(file(lines(USER, ANSWER, USER, ANSWER))).new_messages == 1
    assert [node.parent_id for node in system.conversation("file").history] == [None, 1, 2, 3]


def test_a_saved_conversation_is_imported_with_its_versions(
    system: MemorySystem, file: Any, tmp_path: Path
) -> None:
    memory = system.conversation("mine")
    first, _ = memory.append("Helo", "Hi!")
    memory.edit(first.id, "Hello")
    memory.save(tmp_path / "mine.json")
    copy = system.for_owner(f"{system.owner}-2")
    copy.import_file(tmp_path / "mine.json")
    assert copy.conversation("mine").history == memory.history
    assert copy.import_file(tmp_path / "mine.json").new_messages == 0


def test_an_archive_of_an_export_is_imported(system: MemorySystem, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("export/conversations.json", json.dumps([chatgpt(*FIGS)]))
        archive.writestr("export/user.json", "{}")
    assert system.import_file(tmp_path / "export.zip").new_messages == 6


def test_an_interrupted_import_is_resumed(
    system: MemorySystem, verbs: Any, file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MESSAGES_AT_ONCE", 1)
    path = file(*(chatgpt(*FIGS, id=f"figs-{n}") for n in range(3)))
    seen = []

    def interrupt(done: int, size: int) -> None:
        seen.append((done, size))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verbs(system).import_file(path, on_progress=interrupt)
    assert seen == [(path.stat().st_size,) * 2]
    assert system.conversations() == ["figs-0"]
    report = verbs(system).import_file(path)
    assert (report.conversations, report.new_conversations, report.new_messages) == (3, 2, 12)


BAD = {
    "line 2": lines(USER, {"role": "wizard", "content": "Abracadabra"}, ANSWER),
    "line 3": f"{lines(USER, ANSWER)}\n{{broken\n",
    "item 2": json.dumps([chatgpt(*FIGS), {"mapping": {}}]),
    "item 1": json.dumps([chatgpt({**FIGS[0], "parent": "m2"}, FIGS[1]), chatgpt(*FIGS, id="good")]),
    "item 2:": json.dumps([chatgpt(*FIGS), chatgpt(said("m1", "user", content={"parts": 5}), id="odd")]),
    "line 1": "{broken\n" + lines(CLAUDE),
    "line 2, message 1": lines({"messages": [USER]}, {"messages": [{"role": "user"}]}),
}


@pytest.mark.parametrize("where", BAD)
def test_a_bad_item_is_named_and_can_be_skipped(where: str, system: MemorySystem, file: Any) -> None:
    path = file(BAD[where])
    with pytest.raises(InputError, match=rf"file\.json: {where} .*skip_bad"):
        system.import_file(path)
    report = system.import_file(path, skip_bad=True)
    assert (report.skipped, len(report.problems)) == (1, 1)
    assert report.problems[0].startswith(where)


def test_what_precedes_the_damage_of_a_file_is_imported(system: MemorySystem, file: Any) -> None:
    path = file(json.dumps([chatgpt(*FIGS), chatgpt(*FIGS, id="other")])[:-40])
    with pytest.raises(InputError, match="the file ends in item 2"):
        system.import_file(path, skip_bad=True)
    assert system.conversations() == ["figs"]


def test_an_array_longer_than_what_is_read_at_once_is_read(
    file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_items, "CHUNK", 7)
    values = [{"text": "ä" * n, "n": n / 3} for n in range(40)]
    with file(json.dumps(values, ensure_ascii=False, indent=1)).open("rb") as stream:
        assert [item.value for item in json_items.items_of(stream)] == values


@pytest.mark.parametrize(
    "value", ['[{"a": 1} {"a": 2}]', '[{"a": 1}', '[{"a": }]', '{"a": 1,\n"b": 2} 3', ""]
)
def test_a_damaged_array_is_refused(value: str, file: Any) -> None:
    with file(value).open("rb") as stream, pytest.raises(InputError):
        list(json_items.items_of(stream))


def test_another_conversation_of_the_same_name_is_left_alone(system: MemorySystem, file: Any) -> None:
    system.conversation("figs").append("Hello", "Hi!")
    with pytest.raises(InputError, match="another conversation"):
        system.import_file(file(chatgpt(*FIGS)))
    assert len(system.conversation("figs").history) == 2


@pytest.mark.parametrize("format", ["whatsapp", None])
def test_an_unknown_format_names_the_known_formats(
    format: str | None, system: MemorySystem, file: Any
) -> None:
    with pytest.raises(InputError, match=r"chatgpt.*claude.*sql_history"):
        system.import_file(file(lines({"a": 1})), format)


def test_a_file_of_another_kind_than_the_named_format_is_refused(
    system: MemorySystem, tmp_path: Path
) -> None:
    histories(tmp_path / "file.db")
    with pytest.raises(InputError, match=r"is not conversations\.json"):
        system.import_file(tmp_path / "file.db", "chatgpt")
    with pytest.raises(PersistenceError, match="missing"):
        system.import_file(tmp_path / "missing.json")


def test_the_command_imports_a_file_and_prints_counts(
    file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = str(tmp_path / "memory.db")
    assert main(["import", str(file(chatgpt(*FIGS))), "--into", into, "--owner", "ada"]) == 0
    assert "1 conversations, 1 of them new; 6 messages, 6 of them new" in capsys.readouterr().out
    assert main(["import", str(file(chatgpt(*FIGS))), "--into", into, "--owner", "ada", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_messages"] == 0


@pytest.mark.parametrize("contents", [None, b"", b"\xff\xfe", b"{", b"[" * 10_000, b"{}"])
def test_the_command_names_a_file_that_it_cannot_import_and_makes_no_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], contents: bytes | None
) -> None:
    if contents is not None:
        (tmp_path / "chats.json").write_bytes(contents)
    assert main(["import", str(tmp_path / "chats.json"), "--into", str(tmp_path / "memory.db")]) == 2
    assert "chats.json" in capsys.readouterr().err
    assert not (tmp_path / "memory.db").exists()


def test_the_newest_system_message_of_an_import_is_in_force(system: MemorySystem, file: Any) -> None:
    system.import_file(file(json.dumps(messages_to_dict([SystemMessage("Be kind."), *TURN]))))
    assert system.conversation("file").messages[0] == SystemMessage(
        "Be kind.", id=parents(system, "file")[0][0]
    )


def test_an_encrypted_memory_imports_and_keeps_no_text_readable(
    url: str, owner: str, file: Any, tmp_path: Path
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        system.import_file(file(chatgpt(*FIGS[:2])))
        system.import_file(file(chatgpt(*FIGS)))
        assert system.conversation("figs").messages[-1].text == "In old gardens."
        assert system.list_conversations()[0].title == "About figs"
        bodies = system.runtime.database.read(lambda conn: conn.all(BODIES, owner))
    assert len(bodies) == 6
    assert not any("gardens" in body for (body,) in bodies)


# Sorting after an import

TOPICS = [
    said("m1", "user", "How do I read a CSV file in pandas?", after="top"),
    said("m2", "assistant", "Use pandas.read_csv with the path of the CSV file.", after="m1"),
    said("m3", "user", "Which wine goes with grilled salmon?", after="m2"),
    said("m4", "assistant", "With grilled salmon a dry Riesling wine is good.", after="m3"),
    said("m5", "user", "And if the CSV file has no header?", after="m4"),
    said("m6", "assistant", "Then call pandas.read_csv with header=None for the CSV file.", after="m5"),
]
MORE = [
    said("m7", "user", "Is there a red wine that goes with salmon?", after="m6"),
    said("m8", "assistant", "A light red wine, such as a Pinot Noir, goes with salmon.", after="m7"),
]


@pytest.fixture
def words(url: str, owner: str) -> Any:
    """A memory that compares texts by their words."""
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        yield system


def asked(system: MemorySystem, name: str = "figs") -> list[list[Any]]:
    """The ids of the human messages of each thread."""
    threads = system.conversation(name).threads()
    return sorted([node.message.id for node in each if node.message.type == "human"] for each in threads)


def test_linear_conversations_are_sorted_once_and_branches_stay(
    words: MemorySystem, verbs: Any, file: Any
) -> None:
    path = file(chatgpt(*TOPICS), chatgpt(*FIGS, id="branched"))
    seen: list[tuple[int, int]] = []
    report = verbs(words).import_file(path, sort=True, on_sort=lambda *at: seen.append(at))
    assert asked(words) == [["m1", "m5"], ["m3"]]
    assert asked(words, "branched") == [["m1", "m3"], ["m1", "m5"]]
    assert (report.sorted, report.moved, report.opened) == (1, 2, 1)
    assert seen[-1] == (6, 6)
    history = words.conversation("figs").history
    second = verbs(words).import_file(path, sort=True)
    assert (second.new_messages, second.sorted, second.moved) == (0, 0, 0)
    assert words.conversation("figs").history == history
    assert words.verify().ok


def test_a_sort_that_was_interrupted_goes_on(words: MemorySystem, verbs: Any, file: Any) -> None:
    path = file(*(chatgpt(*TOPICS, id=f"chat-{n}") for n in range(3)))

    def interrupt(done: int, total: int) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verbs(words).import_file(path, sort=True, on_sort=interrupt)
    assert [len(asked(words, f"chat-{n}")) for n in range(3)] == [2, 1, 1]
    assert verbs(words).import_file(path, sort=True).sorted == 2
    assert [len(asked(words, f"chat-{n}")) for n in range(3)] == [2, 2, 2]


def test_an_import_can_be_sorted_later(words: MemorySystem, file: Any) -> None:
    path = file(chatgpt(*TOPICS))
    words.import_file(path)
    assert len(asked(words)) == 1
    assert words.list_conversations(metadata={"sorted": False})[0].id == "figs"
    report = words.import_file(path, sort=True)
    assert (report.new_messages, report.sorted, len(asked(words))) == (0, 1, 2)


def test_new_messages_of_a_later_export_are_sorted_and_what_a_person_placed_stays(
    words: MemorySystem, verbs: Any, file: Any
) -> None:
    verbs(words).import_file(file(chatgpt(*TOPICS)), sort=True)
    memory = words.conversation("figs")
    later = next(node for node in memory.history if node.message.id == "m5" and node.state == State.LIVE)
    memory.place(later.id, None)
    report = verbs(words).import_file(file(chatgpt(*TOPICS, *MORE)), sort=True)
    assert (report.new_messages, report.sorted) == (2, 1)
    assert asked(words) == [["m1"], ["m3", "m7"], ["m5"]]
    assert verbs(words).import_file(file(chatgpt(*TOPICS, *MORE)), sort=True).sorted == 0


def test_the_command_sorts_and_prints_the_moves(
    file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", str(file(chatgpt(*TOPICS))), "--into", str(tmp_path / "memory.db"), "--sort"]
    assert main(command) == 0
    assert "1 conversation sorted: 2 messages moved, 1 to a new thread" in capsys.readouterr().out
    assert main(command) == 0
    assert "0 conversations sorted: 0 messages moved" in capsys.readouterr().out
