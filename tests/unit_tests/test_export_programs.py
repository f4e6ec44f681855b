"""Exports to other programs: an import of the exported file gives the same tree."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import MemorySystem
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.memory_system import ChatMemory
from langchain_threadmem.storage.schema import State

DATA = Path(__file__).parents[1] / "data" / "imports"
PROGRAMS = ("openwebui", "librechat", "llm")
FILES = {
    "branches and an edited question": "chatgpt/one-c-tree.json",
    "calls and a link": "chatgpt/one-c-browse.json",
    "a thought": "chatgpt/one-c-thoughts.json",
    "two roots": "claude/one-k-tree.json",
    "a summary, a subagent and a rewind": "claude_code",
    "an answer with a thought, a call and its result": "librechat",
}


def tree(memory: ChatMemory) -> tuple[list[Any], str]:
    """The live messages with the places of their parents, and the text at the end of the active thread."""
    live = [node for node in memory.history if node.state is State.LIVE]
    place = {node.id: number for number, node in enumerate(live)}
    return [(_said(node.message), place.get(node.parent_id or 0)) for node in live], memory.messages[-1].text


def _said(message: BaseMessage) -> tuple[Any, ...]:
    thought = message.additional_kwargs.get("reasoning_content")
    calls = [(call["name"], call["args"], call["id"]) for call in getattr(message, "tool_calls", ())]
    return message.type, message.text, thought, calls, getattr(message, "tool_call_id", None)


def written(text: str, program: str, path: Path) -> Path:
    """A file of an export, or the database of `llm` with it."""
    if program != "llm":
        (path / "chat.json").write_text(text)
        return path / "chat.json"
    with closing(sqlite3.connect(path / "logs.db")) as database:
        database.executescript(text)
    return path / "logs.db"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("file", FILES)
def test_an_export_to_a_program_is_imported_as_the_same_tree(file: str, program: str, tmp_path: Path) -> None:
    with MemorySystem(embeddings=False) as system:
        system.import_file(DATA / FILES[file])
        [name] = system.conversations()
        before = tree(system.conversation(name))
        path = written(system.conversation(name).export(program), program, tmp_path)
        title = system.list_conversations()[0].title
    with MemorySystem(embeddings=False) as copy:
        assert copy.import_file(path).format == program
        assert tree(copy.conversation(name)) == before
        assert copy.list_conversations()[0].title == title


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_conversation_of_this_package_is_exported_with_its_branches(
    program: str, system: MemorySystem, verbs: Any, tmp_path: Path
) -> None:
    memory = system.conversation("tea")
    question, _ = memory.append("Which tea?", AIMessage("Assam <strong> & 'black'.", id="b"))
    call = {"name": "look", "args": {"q": 'a "b"'}, "id": "c1"}
    memory.append(HumanMessage("Why?"))
    memory.append(AIMessage("I look.", tool_calls=[call]))
    memory.append(ToolMessage('{"n": 1}', tool_call_id="c1"))
    memory.append(AIMessage("Because."))
    memory.checkout(question.id)
    memory.append(AIMessage("Darjeeling."))
    path = written(verbs(memory).export(program), program, tmp_path)
    copy = system.for_owner(f"{system.owner}-2")
    assert copy.import_file(path).new_messages == len(memory.history)
    assert tree(copy.conversation("tea")) == tree(memory)


@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_at_once_and_the_names_of_speakers_are_exported(
    program: str, system: MemorySystem, verbs: Any, tmp_path: Path
) -> None:
    """Two calls of one message stay two calls of one message, and calls one after the other stay apart."""
    calls = [{"name": f"look_{n}", "args": {"n": n}, "id": f"c{n}"} for n in range(1, 5)]
    memory = system.conversation("team")
    memory.extend(
        [
            HumanMessage("Weather?", name="ada"),
            AIMessage("I look.", tool_calls=calls[:2], name="planner"),
            ToolMessage("rain", tool_call_id="c1", name="look_1"),
            ToolMessage("no", tool_call_id="c2", name="look_2", status="error"),
            AIMessage("", tool_calls=calls[2:3], name="planner"),
            ToolMessage("3", tool_call_id="c3", name="look_3"),
            AIMessage("", tool_calls=calls[3:], name="planner"),
            ToolMessage("4", tool_call_id="c4", name="look_4"),
            AIMessage("Rain.", name="planner"),
            HumanMessage("And me?", name="bob"),
        ]
    )
    copy = system.for_owner(f"{system.owner}-2")
    copy.import_file(written(verbs(memory).export(program), program, tmp_path))
    assert tree(copy.conversation("team"))[0] == tree(memory)[0]
    before, after = ([node.message for node in one.history] for one in (memory, copy.conversation("team")))
    if program != "llm":  # Its tables have no names of speakers, and no errors of tools.
        assert [one.name for one in after] == [one.name for one in before]
        assert [getattr(one, "status", None) for one in after] == [
            getattr(one, "status", None) for one in before
        ]


@pytest.mark.parametrize("program", ["openwebui", "librechat"])
def test_system_messages_are_exported_as_the_instructions_of_the_chat(
    program: str, system: MemorySystem, tmp_path: Path
) -> None:
    memory = system.conversation("tea")
    memory.extend([SystemMessage("Be brief."), HumanMessage("Which tea?"), AIMessage("Assam.")])
    text = memory.export(program)
    [chat] = json.loads(text) if program == "openwebui" else [{"chat": json.loads(text)}]
    place = {"openwebui": ("params", "system"), "librechat": ("options", "promptPrefix")}[program]
    assert chat["chat"][place[0]][place[1]] == "Be brief."
    copy = system.for_owner(f"{system.owner}-2")
    copy.import_file(written(text, program, tmp_path))
    assert [one.text for one in copy.conversation("tea").messages] == ["Which tea?", "Assam."]
    assert [node.message.text for node in copy.conversation("tea").history if node.state is State.ASIDE] == [
        "Be brief."
    ]


def test_open_webui_gets_the_active_thread_and_the_children_of_each_message(system: MemorySystem) -> None:
    system.import_file(DATA / "chatgpt" / "one-c-tree.json")
    [chat] = json.loads(system.conversation("c-tree").export("openwebui"))
    history = chat["chat"]["history"]
    assert history["currentId"] == "t-a3"
    assert [message["id"] for message in chat["chat"]["messages"]] == ["t-u1", "t-a1", "t-u2", "t-a3"]
    assert history["messages"]["t-a1"]["childrenIds"] == ["t-u2", "t-u2b"]


def test_asides_and_old_versions_are_not_exported(system: MemorySystem) -> None:
    memory = system.conversation("tea")
    first, _ = memory.append("Wich tea?", "Assam.")
    memory.edit(first.id, "Which tea?")
    memory.append("Darjeeling.")
    system.update_conversation("tea", title="Tea")
    for program in PROGRAMS:
        assert "Wich" not in memory.export(program)


def test_the_hash_of_a_message_is_that_of_llm(system: MemorySystem) -> None:
    memory = system.conversation("tea")
    memory.append("Name a river.")
    script = memory.export("llm")  # The hash is what `llm.logs.message_hash` of 0.36 returns.
    assert "b2:537c7f6e79fd3c3cc15f5d3566ef638c" in script


def test_the_command_adds_all_conversations_to_a_database_of_llm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory, logs = str(tmp_path / "memory.db"), tmp_path / "logs.db"
    assert main(["import", str(DATA / "deepseek"), "--into", memory]) == 0
    for _ in range(2):
        assert main(["export", "--db", memory, "--format", "llm", "--out", str(logs)]) == 0
    assert main(["import", str(logs), "--into", str(tmp_path / "copy.db")]) == 0
    assert "llm: 2 conversations, 2 of them new; 7 messages" in capsys.readouterr().out
