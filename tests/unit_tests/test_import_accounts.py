"""Imports of whole accounts: several files, later exports, branches in other files, files without chats."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_threadmem import LinearNodeSelector, MemorySystem
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.schema import State
from tests.providers import refusals

DATA = Path(__file__).parents[1] / "data" / "imports"
NOON = 1_780_000_000


def claude(*texts: str, uuid: str = "k1", **fields: Any) -> dict[str, Any]:
    """A conversation of Claude whose messages are one chain; their ids are their texts."""
    messages = [
        {
            "uuid": f"{uuid}-{text}",
            "text": text,
            "content": [{"type": "text", "text": text}],
            "sender": "assistant" if number % 2 else "human",
            "created_at": f"2026-05-28T10:{number:02}:00Z",
        }
        for number, text in enumerate(texts)
    ]
    return {
        "uuid": uuid,
        "name": "Tea",
        "created_at": "2026-05-28T10:00:00Z",
        "chat_messages": messages,
    } | fields


def chatgpt(*nodes: tuple[str, str | None, str, str], id: str = "g1", **fields: Any) -> dict[str, Any]:
    """A conversation of ChatGPT of nodes: id, parent, role and text; `id=...` gives a node its metadata."""
    metadata = {name: fields.pop(name) for name, *_ in nodes if name in fields}
    mapping = {
        key: {
            "id": key,
            "parent": parent,
            "children": [],
            "message": {
                "id": key,
                "author": {"role": role},
                "create_time": NOON + number,
                "content": {"content_type": "text", "parts": [text]},
                "recipient": "all",
                "metadata": metadata.get(key, {}),
            },
        }
        for number, (key, parent, role, text) in enumerate(nodes)
    }
    last = {"current_node": nodes[-1][0]} if nodes else {}
    return {"id": id, "title": "Tea", "create_time": NOON, "mapping": mapping, **last, **fields}


TEA = (("a", None, "user", "Which tea?"), ("b", "a", "assistant", "Assam."))


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a JSON document to a file."""

    def write(value: Any, name: str = "conversations.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
        return path

    return write


def archive(path: Path, **files: Any) -> Path:
    """A ZIP archive of files by name; `__` stands for a slash and `_dot_` for a dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in files.items():
            text = data if isinstance(data, bytes) else json.dumps(data)
            zipped.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return path


def texts(system: MemorySystem, name: str) -> list[tuple[str, int | None]]:
    """The texts of the live messages of a conversation, and their parents."""
    history = system.conversation(name).history
    return [(node.message.text, node.parent_id) for node in history if node.state is State.LIVE]


# Several files


def test_files_folders_and_archives_are_one_import(
    system: MemorySystem, verbs: Any, tmp_path: Path, file: Any
) -> None:
    first = archive(tmp_path / "batch-0000.zip", conversations_dot_json=[claude("Hi", "Hello")])
    second = archive(tmp_path / "batch-0001.zip", x__conversations_dot_json=[claude("Hi", uuid="k2")])
    outer = archive(
        tmp_path / "outer.zip", a_dot_zip=second.read_bytes(), chat_dot_html=b"<html>", notes_dot_txt=b"Notes"
    )
    file([chatgpt(*TEA)], "folder/conversations-000.json")
    file([chatgpt(*TEA, id="g2")], "folder/conversations-001.json")
    report = verbs(system).import_file([first, outer, tmp_path / "folder"])
    assert (report.format, report.files, report.conversations) == ("claude, chatgpt", 4, 4)
    assert report.ignored == (f"{outer}/notes.txt",)
    assert sorted(system.conversations()) == ["g1", "g2", "k1", "k2"]


def test_the_command_takes_several_files_and_lists_those_without_chats(
    tmp_path: Path, file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("Buy tea.")
    (tmp_path / "folder" / "picture").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "folder" / "damaged.zip").write_bytes(b"PK\x03\x04 damaged")
    file([chatgpt(*TEA)], "folder/conversations.json")
    other = file([claude("Hi")], "claude.json")
    command = ["import", str(other), str(tmp_path / "folder"), "--into", str(tmp_path / "memory.db")]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "claude, chatgpt: 2 conversations, 2 of them new; 3 messages, 3 of them new" in out
    assert "2 files without chats" in out
    assert "notes.txt" in out
    assert "damaged.zip" in out


def test_an_archive_that_was_split_into_pieces_is_joined(system: MemorySystem, tmp_path: Path) -> None:
    data = archive(tmp_path / "whole.zip", conversations_dot_json=[claude("Hi", "Hello")]).read_bytes()
    for number in range(3):
        piece = data[number * 100 : (number + 1) * 100 if number < 2 else None]
        (tmp_path / f"export.zip.{number + 1:03}").write_bytes(piece)
    assert system.import_file(tmp_path / "export.zip.001").new_messages == 2


def test_a_compressed_file_is_read(system: MemorySystem, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "trees.jsonl.gz", "wb") as stream:
        stream.write((DATA / "oasst" / "trees.jsonl").read_bytes())
    assert system.import_file(tmp_path / "trees.jsonl.gz").format == "oasst"


def test_a_list_of_conversations_in_a_document_is_read(system: MemorySystem, file: Any) -> None:
    report = system.import_file(
        file({"exported": 1, "conversations": [claude("Hi"), claude("Hi", uuid="k2")]})
    )
    assert (report.format, report.new_conversations) == ("claude", 2)


def test_a_database_in_an_archive_is_read(system: MemorySystem, tmp_path: Path) -> None:
    data = (DATA / "llm" / "logs-032.db").read_bytes()
    path = archive(tmp_path / "backup.zip", llm__logs_dot_db=data)
    assert system.import_file(path).format == "llm"


def test_an_archive_writes_no_file_by_the_names_in_it(system: MemorySystem, tmp_path: Path) -> None:
    path = tmp_path / "inner" / "export.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as written:
        written.writestr("../outside/conversations.json", json.dumps([claude("Hi")]))
    assert system.import_file(path).new_conversations == 1
    names = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*")}
    assert {name for name in names if not name.startswith("memory.db")} == {"inner", "inner/export.zip"}


DAMAGED = {
    "is encrypted": (6, 8, 1),
    "compression method is not supported": (8, 10, 99),
}


@pytest.mark.parametrize("problem", DAMAGED)
def test_an_archive_that_cannot_be_read_is_one_line(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "export.zip", conversations_dot_json=[claude("Hi")])
    data, (local, central, value) = bytearray(path.read_bytes()), DAMAGED[problem]
    data[data.index(b"PK\x03\x04") + local] = data[data.index(b"PK\x01\x02") + central] = value
    path.write_bytes(data)
    assert main(["import", str(path), "--into", str(tmp_path / "memory.db")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "export.zip" in line
    assert problem in line
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.parametrize("time", ["1e300", "1e999", "9" * 5000, "NaN"])
def test_a_number_that_is_no_time_is_one_line(
    time: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chatgpt(*TEA, create_time="TIME")]).replace('"TIME"', time))
    assert main(["import", str(path), "--into", str(tmp_path / "memory.db")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# Files of another kind

OTHERS = {
    "claude/projects.json": "projects of Claude.*conversations.json",
    "claude/memories.json": "memories of Claude.*conversations.json",
    "chatgpt/message_feedback.json": "ratings.*conversations.json",
    "slack/users.json": "Slack.*the folder",
    "slack/channels.json": "Slack.*the folder",
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_without_chats_names_the_file_to_import(name: str, system: MemorySystem) -> None:
    with pytest.raises(InputError, match=OTHERS[name]):
        system.import_file(DATA / name)


def test_a_page_of_an_export_names_the_file_to_import(system: MemorySystem, tmp_path: Path) -> None:
    (tmp_path / "chat.html").write_text("<html><head><title>ChatGPT Data Export</title></head></html>")
    with pytest.raises(InputError, match=r"a page for people; import conversations\.json"):
        system.import_file(tmp_path / "chat.html")


def test_an_export_without_conversations_is_named(system: MemorySystem, file: Any) -> None:
    with pytest.raises(InputError, match="has no conversations"):
        system.import_file(file([]))


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_file_of_another_kind_is_refused_and_becomes_no_message(
    skip_bad: bool, system: MemorySystem
) -> None:
    path = DATA / "claude_code" / "cc-1.jsonl"
    with pytest.raises(InputError, match="most items of the file") as refused:
        system.import_file(path, "messages", skip_bad=skip_bad)
    assert "skip-bad" not in str(refused.value)
    assert system.conversations() == []


@pytest.mark.parametrize("number", [1, 2, 9])
def test_bad_items_are_no_advice_to_skip_them_where_most_are_bad(
    number: int, system: MemorySystem, verbs: Any, file: Any
) -> None:
    good = [{"messages": [{"role": "user", "content": "Hi"}]}] if number == 9 else []
    path = file([*good, *({"messages": [{"role": "user"}]} for _ in range(number))], "chat.json")
    with pytest.raises(InputError, match="most items of the file have such problems") as refused:
        verbs(system).import_file(path)
    assert "skip-bad" not in str(refused.value)
    if number == 9:
        with pytest.raises(InputError, match="most items of the file cannot be imported"):
            verbs(system).import_file(path, skip_bad=True)


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_an_import_that_skips_everything_fails(
    as_json: list[str], tmp_path: Path, file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(file([{"messages": [{"role": "user"}]}], "chat.json"))
    assert main(["import", path, "--skip-bad", "--db", str(tmp_path / "memory.db"), *as_json]) == 1
    assert "has no content" in capsys.readouterr().out


def test_a_file_fits_a_format_only_if_all_items_do(system: MemorySystem, tmp_path: Path) -> None:
    lines = [claude("Hi"), *({"level": "info", "event": number} for number in range(9))]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="none of the formats"):
        system.import_file(path)


# Later exports


def test_a_later_export_changes_title_archive_mark_and_active_thread(
    system: MemorySystem, verbs: Any, file: Any
) -> None:
    fork = (*TEA, ("c", "a", "assistant", "Darjeeling."))
    verbs(system).import_file(file([chatgpt(*fork)]))
    assert system.conversation("g1").messages[-1].text == "Darjeeling."
    later = chatgpt(*fork, title="Teas", is_archived=True, update_time=NOON + 60, current_node="b")
    report = verbs(system).import_file(file([later]))
    assert (report.new_conversations, report.new_messages) == (0, 0)
    [info] = system.list_conversations(archived=True)
    assert (info.title, info.archived is not None) == ("Teas", True)
    assert system.conversation("g1").messages[-1].text == "Assam."
    verbs(system).import_file(file([chatgpt(*fork, title="Teas", current_node="b")]))
    assert [info.title for info in system.list_conversations()] == ["Teas"]


def test_what_was_changed_here_stays_after_a_later_export(system: MemorySystem, file: Any) -> None:
    fork = (*TEA, ("c", "a", "assistant", "Darjeeling."))
    system.import_file(file([chatgpt(*fork)]))
    memory = system.conversation("g1")
    memory.checkout(memory.history[1].id)
    system.update_conversation("g1", title="My teas", archived=True)
    system.import_file(file([chatgpt(*fork, title="Teas")]))
    [info] = system.list_conversations(archived=True)
    assert info.title == "My teas"
    assert memory.messages[-1].text == "Assam."


def test_a_conversation_that_occurs_twice_is_one(system: MemorySystem, file: Any) -> None:
    twice = [claude("Hi", "Hello"), claude("Hi", "Hello", "Well?")]
    report = system.import_file(file(twice))
    assert (report.new_conversations, report.new_messages) == (1, 3)


def test_two_conversations_of_one_name_are_two(system: MemorySystem, verbs: Any, file: Any) -> None:
    path = file([claude("Hi")])
    other = file([chatgpt(*TEA, id="k1")], "other.json")
    for _ in range(2):
        verbs(system).import_file([path, other])
    assert sorted(system.conversations()) == ["k1", "k1-2"]
    assert texts(system, "k1-2") == [("Which tea?", None), ("Assam.", 1)]


# Branches in other conversations

NEW = (("x", "b", "user", "And coffee?"), ("y", "x", "assistant", "Java."))
MARK = {"branching_from_conversation_id": "g1", "branching_from_message_id": "b"}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_chat_that_branches_from_a_conversation_is_a_branch_of_its_tree(
    is_first: bool, system: MemorySystem, verbs: Any, file: Any
) -> None:
    original = chatgpt(*TEA, ("c", "b", "user", "Why?"))
    branch = chatgpt(*TEA, *NEW, id="g2", title="Branch", x=MARK)
    path = file([branch, original] if is_first else [original, branch])
    for number in range(2):
        report = verbs(system).import_file(path)
        assert report.new_messages == (0 if number else 5)
    assert system.conversations() == ["g1"]
    assert texts(system, "g1")[-3:] == [("Why?", 2), ("And coffee?", 2), ("Java.", 4)]
    assert system.list_conversations()[0].title == "Tea"


def test_messages_that_a_branch_has_copied_under_new_ids_are_not_repeated(
    system: MemorySystem, verbs: Any, file: Any
) -> None:
    copied = (
        ("a2", None, "user", "Which tea?"),
        ("b2", "a2", "assistant", "Assam."),
        ("x", "b2", "user", "Why?"),
    )
    path = file([chatgpt(*TEA), chatgpt(*copied, id="g2", x=MARK)])
    assert [verbs(system).import_file(path).new_messages for _ in range(2)] == [3, 0]
    assert texts(system, "g1") == [("Which tea?", None), ("Assam.", 1), ("Why?", 2)]


def test_a_branch_whose_conversation_was_deleted_is_a_conversation(system: MemorySystem, file: Any) -> None:
    system.import_file(file([chatgpt(*TEA, *NEW, id="g2", x=MARK)]))
    assert system.conversations() == ["g2"]


def test_a_session_of_claude_code_that_resumes_another_has_no_copies(
    system: MemorySystem, tmp_path: Path
) -> None:
    lines = (DATA / "claude_code" / "cc-1.jsonl").read_text().splitlines()
    shutil.copy(DATA / "claude_code" / "cc-1.jsonl", tmp_path)
    last = json.loads(lines[-1])
    message = {**last["message"], "id": "msg_10", "content": [{"type": "text", "text": "More."}]}
    resumed = last | {"uuid": "b1", "parentUuid": "a9", "sessionId": "cc-2", "message": message}
    (tmp_path / "cc-2.jsonl").write_text("\n".join([*lines, json.dumps(resumed)]))
    report = system.import_file(tmp_path)
    assert (report.files, report.new_conversations, report.new_messages) == (2, 1, 15)
    assert system.conversation("cc-1").messages[-1].text == "More."


# What is kept


def test_projects_stars_and_models_can_be_filtered_by(system: MemorySystem, file: Any) -> None:
    fields = {"gizmo_id": "g-p-7", "is_starred": True, "default_model_slug": "gpt-5"}
    system.import_file(file([chatgpt(*TEA, **fields), chatgpt(*TEA, id="g2")]))
    for condition in ({"project": "g-p-7"}, {"starred": True}, {"model": "gpt-5"}, {"is_starred": True}):
        assert [info.id for info in system.list_conversations(metadata=condition)] == ["g1"]


def test_hidden_messages_are_in_no_prompt_title_or_search(system: MemorySystem, file: Any) -> None:
    hidden = ("h", None, "user", "Answer in one line about bees.")
    said = (("a", "h", "user", "When do I feed them?"), ("b", "a", "assistant", "In autumn."))
    path = file([chatgpt(hidden, *said, title=None, h={"is_visually_hidden_from_conversation": True})])
    system.import_file(path)
    memory = system.conversation("g1")
    assert [message.text for message in memory.messages] == ["When do I feed them?", "In autumn."]
    assert "bees" not in system.list_conversations()[0].title
    assert all("bees" not in str(hit) for hit in memory.recall("Answer in one line about bees."))
    assert [[node.message.text for node in thread] for thread in memory.threads()] == [
        ["When do I feed them?", "In autumn."]
    ]


def test_references_become_links_and_marks_leave_the_text(system: MemorySystem, file: Any) -> None:
    mark = "\ue200cite\ue202turn0search1\ue201"
    answer = f'It opens {mark} today. \ue200entity\ue202["city","Graz"]\ue201 waits.'
    references = [
        {
            "matched_text": mark,
            "start_idx": 9,
            "end_idx": 9 + len(mark),
            "alt": "([Tram](https://x.example))",
        },
        {
            "matched_text": " ",
            "type": "sources_footnote",
            "start_idx": 3,
            "end_idx": 4,
            "sources": [{"url": "y"}],
        },
    ]
    nodes = (TEA[0], ("b", "a", "assistant", answer))
    system.import_file(file([chatgpt(*nodes, b={"content_references": references})]))
    assert (
        system.conversation("g1").messages[-1].text
        == "It opens ([Tram](https://x.example)) today. Graz waits."
    )


def test_speakers_of_a_group_chat_have_their_names(system: MemorySystem, file: Any) -> None:
    chat = chatgpt(*TEA)
    chat["mapping"]["a"]["message"]["author"]["name"] = "Ada"
    system.import_file(file([chat]))
    assert [message.name for message in system.conversation("g1").messages] == ["Ada", None]


def test_a_log_of_claude_code_whose_results_form_a_circle_is_refused(
    system: MemorySystem, tmp_path: Path
) -> None:
    def result(uuid: str, parent: str) -> dict[str, Any]:
        content = [{"type": "tool_result", "tool_use_id": f"call-{uuid}", "content": "ok"}]
        message = {"role": "user", "content": content}
        return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}

    log = tmp_path / "log.jsonl"
    lines = [result("r1", "r2"), result("r2", "r1"), result("r3", "r2")]
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="descend from themselves"):
        system.import_file(log)


def test_results_of_claude_belong_to_the_calls_with_their_ids(system: MemorySystem, file: Any) -> None:
    content = [
        {"type": "tool_use", "id": "t1", "name": "find", "input": {"n": 1}},
        {"type": "tool_use", "id": "t2", "name": "find", "input": {"n": 2}},
        {"type": "tool_result", "tool_use_id": "t2", "content": "two"},
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "t3", "name": "find", "input": {"n": 3}},
    ]
    chat = claude("Hi", "Hello")
    chat["chat_messages"][1]["content"] = content
    system.import_file(file([chat]))
    _, calls, *results, answer = system.conversation("k1").messages
    assert [call["id"] for call in calls.tool_calls] == ["t1", "t2"]
    assert [(result.tool_call_id, result.text) for result in results] == [("t2", "two"), ("t1", "one")]
    assert answer.text == "Both."
    assert answer.additional_kwargs["open_calls"] == [{"name": "find", "args": {"n": 3}}]


@pytest.mark.parametrize("scale", [1, 1_000, 1_000_000])
def test_times_in_milliseconds_and_microseconds_are_recognised(
    scale: int, system: MemorySystem, file: Any
) -> None:
    messages = [{"role": "user", "content": "Hi", "timestamp": NOON * scale}]
    system.import_file(file(messages, "chat.json"))
    assert system.conversation("chat").history[0].timestamp.timestamp() == NOON


def test_the_reasoning_of_a_message_of_openai_is_kept(system: MemorySystem, file: Any) -> None:
    answer = {"role": "assistant", "content": "No.", "reasoning_content": "91 = 7 * 13", "model": "r1"}
    system.import_file(file([{"role": "user", "content": "91?"}, answer], "chat.json"))
    message = system.conversation("chat").messages[-1]
    assert message.content_blocks[0] == {"type": "reasoning", "reasoning": "91 = 7 * 13"}
    assert message.response_metadata["model_name"] == "r1"


@pytest.mark.parametrize("arguments", ["find figs", '["figs"]', '{"q": "figs"'])
def test_a_call_whose_arguments_are_no_object_is_kept_with_its_result(
    arguments: str, system: MemorySystem, file: Any
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Where do figs grow?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": {"found": 2}},
    ]
    system.import_file(file(messages, "chat.json"))
    memory = system.conversation("chat", node_selector=LinearNodeSelector())
    _, asking, result = (node.message for node in memory.history)
    assert isinstance(asking, AIMessage)
    assert [(one["args"], one["id"]) for one in asking.invalid_tool_calls] == [(arguments, "c1")]
    assert result.text == '{"found": 2}'
    memory.append("Really?")
    assert refusals(memory.messages) == {}
    assert [message.type for message in memory.messages] == ["human", "ai", "tool", "human"]


def test_blocks_that_only_some_providers_know_become_text_and_pictures(
    system: MemorySystem, file: Any
) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    document = {"type": "document", "title": "figs.pdf", "source": {"type": "base64", "data": "aGk="}}
    asked = [{"type": "text", "text": "Look"}, picture, document]
    called = [
        {"type": "thinking", "thinking": "I look.", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "t", "name": "find", "input": {}},
    ]
    found = [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "Figs"}, picture]}
    ]
    answered = [{"type": "text", "text": "Yes."}, {"type": "new_kind", "z": 1}]
    texts = (("user", asked), ("assistant", called), ("user", found), ("assistant", answered))
    system.import_file(file([{"role": role, "content": content} for role, content in texts], "chat.json"))
    memory = system.conversation("chat", node_selector=LinearNodeSelector())
    memory.append("Really?")
    assert refusals(memory.messages) == {}
    kinds = {
        block["type"] if isinstance(block, dict) else "text"
        for message in memory.messages
        for block in (message.content if isinstance(message.content, list) else [""])
    }
    assert kinds == {"text", "image_url"}
    question, asking, _, answer, _ = (node.message for node in memory.history)
    assert "[file: figs.pdf]" in question.text
    assert asking.additional_kwargs["reasoning_content"] == "I look."
    assert answer.additional_kwargs["blocks"] == [{"type": "new_kind", "z": 1}]


@pytest.mark.parametrize(
    "picture",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
        {"type": "image", "url": "data:image/png;base64,aGk="},
    ],
)
def test_a_picture_of_any_provider_is_one_block(picture: Any, system: MemorySystem, file: Any) -> None:
    system.import_file(file([{"role": "user", "content": [picture]}], "chat.json"))
    [node] = system.conversation("chat").history
    assert node.message.content == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]


def test_a_message_of_langchain_keeps_its_content(system: MemorySystem, file: Any) -> None:
    content = [{"type": "reasoning", "reasoning": "I look."}, {"type": "text", "text": "Yes."}]
    system.import_file(file([{"type": "ai", "content": content}], "chat.json"))
    [node] = system.conversation("chat").history
    assert node.message.content == content
