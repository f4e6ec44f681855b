"""Imports of files whose messages have changed under their ids since the import before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemSaver
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.storage.schema import State

NOON = 1_780_000_000
Texts = dict[str, str]
"""The texts of a question, its answer and a further question, by id."""
GROWING = {"m1": "Which tea?", "m2": "Assam", "m3": "Why?"}
GROWN = {**GROWING, "m2": "Assam, with milk."}


def openwebui(texts: Texts) -> Any:
    ids = [*texts]
    messages = {
        id: {
            "id": id,
            "parentId": ids[n - 1] if n else None,
            "childrenIds": ids[n + 1 : n + 2],
            "role": "assistant" if n % 2 else "user",
            "content": text,
            "timestamp": NOON + n,
        }
        for n, (id, text) in enumerate(texts.items())
    }
    chat = {"title": "Tea", "history": {"messages": messages, "currentId": ids[-1]}}
    return [{"id": "tea", "title": "Tea", "chat": chat, "created_at": NOON}]


def chatgpt(texts: Texts) -> Any:
    ids = [*texts]
    mapping = {
        id: {
            "id": id,
            "parent": ids[n - 1] if n else None,
            "children": ids[n + 1 : n + 2],
            "message": {
                "id": id,
                "author": {"role": "assistant" if n % 2 else "user"},
                "create_time": NOON + n,
                "content": {"content_type": "text", "parts": [text]},
            },
        }
        for n, (id, text) in enumerate(texts.items())
    }
    return [{"id": "tea", "title": "Tea", "create_time": NOON, "mapping": mapping, "current_node": ids[-1]}]


def librechat(texts: Texts) -> Any:
    ids = [None, *texts]
    messages = [
        {"messageId": id, "parentMessageId": ids[n], "isCreatedByUser": n % 2 == 0, "text": text}
        for n, (id, text) in enumerate(texts.items())
    ]
    return {"conversationId": "tea", "title": "Tea", "messages": messages}


def typingmind(texts: Texts) -> Any:
    messages = [
        {"uuid": id, "role": "assistant" if n % 2 else "user", "content": text}
        for n, (id, text) in enumerate(texts.items())
    ]
    return {"data": {"chats": [{"chatID": "tea", "chatTitle": "Tea", "messages": messages}]}}


def langchain(texts: Texts) -> Any:
    messages = [
        {"type": "ai" if n % 2 else "human", "data": {"content": text, "id": id}}
        for n, (id, text) in enumerate(texts.items())
    ]
    return {"conversation_id": "tea", "messages": messages}


def telegram(texts: Texts) -> Any:
    messages = [
        {"id": n, "type": "message", "date": "2026-05-28T20:00:00", "from": "Ada", "text": text}
        | ({"reply_to_message_id": n - 1} if n > 1 else {})
        for n, text in enumerate(texts.values(), 1)
    ]
    return {"name": "Tea", "type": "personal_chat", "id": 7, "messages": messages}


PROGRAMS = {
    "openwebui": openwebui,
    "chatgpt": chatgpt,
    "librechat": librechat,
    "typingmind": typingmind,
    "langchain": langchain,
    "telegram": telegram,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


def exported(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def only(system: MemorySystem) -> ChatMemory:
    [name] = system.conversations()
    return system.conversation(name)


def states(memory: ChatMemory) -> list[tuple[str, str]]:
    return [(node.message.text, State(node.state).name) for node in memory.history]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_text_that_has_changed_under_its_id_is_a_new_version(
    program: str, system: MemorySystem, verbs: Any, path: Path
) -> None:
    write = PROGRAMS[program]
    verbs(system).import_file(exported(path, write(GROWING)))
    for document, updated in ((write(GROWN), 1), (write(GROWN), 0), (write(GROWING), 0)):
        report = verbs(system).import_file(exported(path, document))
        assert (report.new_messages, report.updated_messages) == (0, updated)
    memory = only(system)
    assert [message.text.partition(": ")[2] or message.text for message in memory.messages] == [
        *GROWN.values()
    ]
    assert states(memory) == [
        ("Which tea?", "LIVE"),
        ("Assam", "SUPERSEDED"),
        ("Why?", "LIVE"),
        ("Assam, with milk.", "LIVE"),
    ]
    old = memory.history[1]
    assert (old.superseded_by, memory.history[2].parent_id) == (4, 4)
    found = [one.node.message.text for one in memory.recall("Assam milk")]
    assert "Assam, with milk." in found
    assert "Assam" not in found
    assert system.verify().ok


def test_an_answer_that_was_empty_and_grows_by_calls_is_completed(
    system: MemorySystem, verbs: Any, path: Path
) -> None:
    """At first the answer has no text, then a call, at last the result and a text."""
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "look",
        "arguments": "{}",
        "status": "completed",
    }
    result = {"type": "function_call_output", "call_id": "c1", "output": "rain", "status": "completed"}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]}
    for output in ([], [call], [call, result], [call, result, text]):
        document = openwebui({"m1": "Weather?", "m2": ""})
        document[0]["chat"]["history"]["messages"]["m2"]["output"] = output
        verbs(system).import_file(exported(path, document))
    memory = only(system)
    assert [(one.type, one.text) for one in memory.messages] == [
        ("human", "Weather?"),
        ("ai", ""),
        ("tool", "rain"),
        ("ai", "It rains."),
    ]
    assert len(memory.threads()) == 1
    assert system.verify().ok


def test_what_was_changed_here_stays_although_the_program_has_changed_it_too(
    system: MemorySystem, verbs: Any, path: Path
) -> None:
    system.import_file(exported(path, openwebui(GROWING)))
    memory = only(system)
    memory.edit(memory.history[0].id, "Which green tea?")
    memory.append("Sencha.")
    before = [message.text for message in memory.messages]
    later = {**GROWN, "m1": "Which black tea?"}
    report = verbs(system).import_file(exported(path, openwebui(later)))
    assert report.updated_messages == 2
    assert [message.text for message in only(system).messages] == before
    assert ("Which black tea?", "SUPERSEDED") in states(only(system))
    assert system.verify().ok


def test_a_thread_that_was_continued_here_follows_the_new_version(system: MemorySystem, path: Path) -> None:
    system.import_file(exported(path, openwebui(GROWING)))
    memory = only(system)
    memory.append("Because it is strong.", "Thanks.")
    edited = {**GROWN, "m1": "Which black tea?"}
    assert system.import_file(exported(path, openwebui(edited))).updated_messages == 2
    assert [message.text for message in only(system).messages] == [
        "Which black tea?",
        "Assam, with milk.",
        "Why?",
        "Because it is strong.",
        "Thanks.",
    ]
    assert system.verify().ok


def test_a_message_that_was_redacted_here_does_not_return(system: MemorySystem, path: Path) -> None:
    system.import_file(exported(path, openwebui(GROWING)))
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": []})
    graph.add_edge(START, "answer")
    app = graph.compile(checkpointer=ThreadMemSaver(system))
    state = MessagesState(
        messages=[
            HumanMessage("Which tea?", id="m1"),
            AIMessage("[removed]", id="m2"),
            HumanMessage("Why?", id="m3"),
        ]
    )
    app.invoke(state, {"configurable": {"thread_id": "tea"}})
    assert [one.text for one in only(system).messages] == ["Which tea?", "[removed]", "Why?"]
    assert system.import_file(exported(path, openwebui(GROWN))).updated_messages == 0
    assert [one.text for one in only(system).messages] == ["Which tea?", "[removed]", "Why?"]


def test_a_fork_with_an_older_text_changes_nothing(system: MemorySystem, path: Path) -> None:
    fork = openwebui({"m1": "Which tea?", "m2": "Assam?!", "f3": "And coffee?"})[0]
    fork |= {"id": "fork", "meta": {"forked_from": "tea"}}
    for _ in range(2):
        system.import_file(exported(path, [*openwebui(GROWN), fork]))
    assert ("Assam?!", "LIVE") not in states(only(system))
    assert len(only(system).threads()) == 2


def test_the_command_counts_changed_messages(
    tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = ["--db", f"sqlite:///{tmp_path / 'memory.db'}"]
    for texts in (GROWING, GROWN):
        main(["import", *database, str(exported(path, openwebui(texts)))])
    assert "3 messages, 0 of them new, 1 changed; " in capsys.readouterr().out
