"""Exports: fine-tuning, Markdown, GraphML, the schema of JSON, and round trips."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from markdown_it import MarkdownIt
from test_import import FIGS, chatgpt, said
from test_json import forests

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.exporters import formats
from langchain_threadmem.formats.exporters.fine_tuning import to_fine_tuning
from langchain_threadmem.formats.exporters.graphml import to_graphml
from langchain_threadmem.formats.exporters.json import from_json, json_schema, parse_conversation, to_json
from langchain_threadmem.formats.exporters.markdown import to_markdown
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode

CALL = {"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}
ASK = AIMessage("", tool_calls=[CALL])
SUNNY = ToolMessage("Sunny", tool_call_id="c1")


def thread(*messages: BaseMessage, first: int = 1, above: int | None = None) -> list[ConversationNode]:
    return [
        ConversationNode(n, message, above if n == first else n - 1)
        for n, message in enumerate(messages, first)
    ]


def examples(nodes: list[ConversationNode]) -> list[list[dict[str, Any]]]:
    return [json.loads(line)["messages"] for line in to_fine_tuning(nodes).splitlines()]


def roles(nodes: list[ConversationNode]) -> list[list[str]]:
    return [[message["role"] for message in example] for example in examples(nodes)]


# Fine-tuning


def test_a_line_is_an_answered_thread_and_reads_back() -> None:
    nodes = thread(HumanMessage("Hello"), AIMessage("Hi"), HumanMessage("Csv?"), AIMessage("Use pandas."))
    nodes += thread(HumanMessage("Tea?"), AIMessage("Green."), first=5, above=2)
    nodes += thread(HumanMessage("Unanswered?"), first=7)
    lines = to_fine_tuning(nodes).splitlines()
    assert [[m.text for m in parse_conversation(line)] for line in lines] == [
        ["Hello", "Hi", "Csv?", "Use pandas."],
        ["Hello", "Hi", "Tea?", "Green."],
    ]


def test_every_thread_has_the_system_message_and_ends_with_an_answer() -> None:
    nodes = thread(SystemMessage("Be kind."), HumanMessage("Hello"), AIMessage("Hi"), HumanMessage("And?"))
    nodes += thread(HumanMessage("Tea?"), AIMessage("Green."), first=5)
    assert roles(nodes) == [["system", "user", "assistant"]] * 2
    nodes[0] = replace(nodes[0], state=State.SUPERSEDED, superseded_by=7)
    nodes += thread(SystemMessage("Be brief."), first=7)
    assert [example[0]["content"] for example in examples(nodes)] == ["Be brief."] * 2


def test_calls_of_tools_have_their_results_or_are_left_out() -> None:
    whole = thread(HumanMessage("Rome?"), ASK, SUNNY, AIMessage("It is sunny."))
    assert roles(whole) == [["user", "assistant", "tool", "assistant"]]
    [[_, call, result, _]] = examples(whole)
    assert call == {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
            }
        ],
    }
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "Sunny"}
    assert roles(thread(HumanMessage("Rome?"), ASK, AIMessage("It is sunny."))) == [["user", "assistant"]]
    assert roles(thread(HumanMessage("Rome?"), SUNNY, AIMessage("Sunny."))) == [["user", "assistant"]]
    assert roles(thread(HumanMessage("Rome?"), ASK, SUNNY)) == []


def test_names_of_tools_are_those_that_a_provider_accepts() -> None:
    call = AIMessage("", tool_calls=[CALL | {"name": "dalle.text2im"}])
    [[_, record, *_]] = examples(thread(HumanMessage("Draw."), call, SUNNY, AIMessage("Done.")))
    assert record["tool_calls"][0]["function"]["name"] == "dalle_text2im"


def test_a_call_that_could_not_be_parsed_leaves_no_result_behind() -> None:
    bad = {"name": "add", "args": "{", "id": "c1", "error": "no JSON", "type": "invalid_tool_call"}
    nodes = thread(HumanMessage("?"), AIMessage("Wait.", invalid_tool_calls=[bad]), SUNNY, AIMessage("4"))
    assert roles(nodes) == [["user", "assistant", "assistant"]]


def test_images_are_kept_and_other_files_reasoning_and_messages_aside_are_not() -> None:
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "url": "https://example.org/fig.png"},
        {"type": "image", "base64": "AAAA", "mime_type": "image/jpeg"},
        {"type": "image", "file_id": "file-1"},
    ]
    thought = {"type": "reasoning", "reasoning": "A fruit."}
    nodes = thread(HumanMessage(content), AIMessage([thought, {"type": "text", "text": "A fig."}]))
    aside = ConversationNode(3, HumanMessage("hidden"), 2, state=State.ASIDE)
    [[question, answer, last]] = examples([*nodes, aside, *thread(AIMessage("Ripe."), first=4, above=3)])
    assert [block["type"] for block in question["content"]] == ["text", "image_url", "image_url"]
    assert question["content"][2]["image_url"]["url"] == "data:image/jpeg;base64,AAAA"
    assert [answer["content"], last["content"]] == ["A fig.", "Ripe."]


def test_speakers_keep_their_names() -> None:
    given: list[BaseMessage] = [HumanMessage("Hello", name="ada"), ChatMessage("Hm", role="critic")]
    given += [ChatMessage("Be kind.", role="system"), ChatMessage("Hi", role="assistant")]
    assert [(message["role"], message.get("name")) for message in examples(thread(*given))[0]] == [
        ("user", "ada"),
        ("user", "critic"),
        ("assistant", None),
    ]


@settings(max_examples=12)
@given(forests())
def test_every_line_is_a_list_that_a_provider_accepts(nodes: list[ConversationNode]) -> None:
    for example in examples(nodes):
        assert example[-1]["role"] == "assistant"
        assert "tool_calls" not in example[-1]
        open_calls: list[str] = []
        for message in example:
            assert message["role"] in ("system", "user", "assistant", "tool")
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
            else:
                assert not open_calls
                open_calls = [call["id"] for call in message.get("tool_calls", ())]


# Markdown


def test_markdown_has_a_heading_for_each_thread_and_each_message_once() -> None:
    nodes = thread(HumanMessage("Where do figs grow?"), AIMessage("In the south."))
    nodes += thread(HumanMessage("And quinces?"), AIMessage("In gardens."), first=3, above=2)
    nodes += thread(HumanMessage("Or medlars?"), first=5, above=2)
    text = to_markdown(nodes, title="My *fruit*")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [r"# My \*fruit\*", "## Where do figs grow?", "## Or medlars?"]
    assert text.count("In the south.") == 1
    assert "*Continues message 2.*" in text
    assert "**5 User**\n\n> Or medlars?" in text


CODE = 'Compare:\n\n```html\n<b>"bold" & co</b>\n```\n\nand `<i>` and\n\n1. item\n   ```\n   <u>\n   ```'


def test_code_in_markdown_is_kept_as_code() -> None:
    nodes = thread(AIMessage(CODE), ASK, ToolMessage("```\n# no heading", tool_call_id="c1"))
    tokens = MarkdownIt().parse(to_markdown(nodes))
    fences = [token.content for token in tokens if token.type == "fence"]
    assert fences[:2] == ['<b>"bold" & co</b>\n', "<u>\n"]
    assert json.loads(fences[2]) == {"city": "Rome"}
    assert fences[3] == "```\n# no heading\n"
    assert "`<i>`" in to_markdown(nodes)


HOSTILE = st.lists(
    st.sampled_from(
        ["# Title", "**9 User**", "> ", "```", "~~~", "- a", "1. b", "    ", "<script>", "</script>", "<b>",
         "<!--", "-->", "`", "``", "\n", "\n\n", "<a href='x'>", "text", "![x](y)", "---", "\t", "</div>"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@settings(max_examples=60)
@given(HOSTILE)
def test_no_message_can_write_html_or_pose_as_a_heading(text: str) -> None:
    document = to_markdown(thread(HumanMessage(text), AIMessage("safe")))
    tokens = MarkdownIt("commonmark").parse(document)
    kinds = [t.type for token in tokens for t in (token, *(token.children or ()))]
    assert not {"html_block", "html_inline"} & {*kinds}
    assert [token.level for token in tokens if token.type == "heading_open" and token.level == 0] == [0, 0]
    assert document.endswith("**2 Assistant**\n\n> safe\n")


# GraphML


@settings(max_examples=12)
@given(forests())
def test_graphml_reads_back_to_the_same_tree(nodes: list[ConversationNode]) -> None:
    read: Any = nx.parse_graphml(to_graphml(nodes), node_type=int)
    assert {(n, values.get("parent")) for n, values in read.nodes(data=True)} == {
        (node.id, node.parent_id) for node in nodes
    }
    assert {*read.edges} == {(node.parent_id, node.id) for node in nodes if node.parent_id}
    assert {n: values["state"] for n, values in read.nodes(data=True)} == {
        node.id: node.state.label for node in nodes
    }


def test_graphml_has_role_text_and_time_of_every_message() -> None:
    odd = "a\u2028b\x85c & <d>\x00\ufffe\ud83d"
    read: Any = nx.parse_graphml(to_graphml(thread(HumanMessage(odd), AIMessage("Hi"))), node_type=int)
    assert read.nodes[1]["text"] == "a\u2028b\\x85c & <d>\\x00\\ufffe\\ud83d"
    assert (read.nodes[2]["role"], read.nodes[2]["time"]) == ("assistant", "1970-01-01T00:00:00+00:00")


# The schema of JSON


@pytest.fixture(scope="module")
def validator() -> Any:
    return pytest.importorskip("jsonschema").Draft202012Validator(json_schema())


@settings(max_examples=10)
@given(nodes=forests())
def test_json_has_its_published_schema(nodes: list[ConversationNode], validator: Any) -> None:
    stored = [replace(node, state=State.LIVE) if node.state == State.PURGED else node for node in nodes]
    validator.validate(json.loads(to_json(stored)))


def test_the_schema_is_one_and_refuses_other_documents(validator: Any) -> None:
    validator.check_schema(json_schema())
    document = json.loads(to_json(thread(HumanMessage("Hello"))))
    broken = [{**document, "version": "2.0"}, {**document, "nodes": [{"id": 0}]}, {}]
    assert not any(map(validator.is_valid, broken))


# Round trips


@pytest.fixture
def copy(system: MemorySystem) -> MemorySystem:
    """The memory of another owner in the same database."""
    return system.for_owner(f"{system.owner}-copy")


def test_json_that_is_exported_and_imported_is_exported_the_same(
    system: MemorySystem, copy: MemorySystem, verbs: Any, tmp_path: Path, validator: Any
) -> None:
    memory = system.conversation("mine")
    first, _, _ = memory.append("Helo", ASK, SUNNY)
    memory.append(HumanMessage("And tea?"), AIMessage([{"type": "text", "text": "Green."}]))
    memory.edit(first.id, "Hello")
    memory.append("Again?", "Yes.")
    memory.checkout(2)
    system.update_conversation("mine", title="Weather & tea")
    path = tmp_path / "saved.json"
    path.write_text(verbs(memory).export("json"), encoding="utf-8")
    verbs(copy).import_file(path)
    exported = verbs(copy.conversation("mine")).export("json")
    assert json.loads(exported) == json.loads(path.read_text(encoding="utf-8"))
    validator.validate(json.loads(exported))


def reasons(memory: ChatMemory) -> dict[int, Any]:
    return {node.id: node.placement for node in memory.history if node.placement}


def test_reasons_of_places_are_kept_by_json_and_by_a_saved_file(
    system: MemorySystem, copy: MemorySystem, verbs: Any, tmp_path: Path
) -> None:
    memory = system.conversation("mine", node_selector=SemanticNodeSelector())
    for text in ("Where do figs grow?", "Which wine goes with salmon?", "Do figs grow in gardens?"):
        memory.append(text, f"About {text}")
    moved = memory.place(3, None if memory.history[2].parent_id else 2)
    path = tmp_path / "saved.json"
    memory.save(path)
    verbs(copy).import_file(path)
    assert moved.id in reasons(memory)
    assert copy.conversation("mine").history == memory.history
    assert reasons(copy.conversation("mine")) == reasons(memory)
    loaded = ChatMemory.load(path, system=copy, conversation_id="loaded")
    assert reasons(loaded) == reasons(memory)
    assert copy.verify().ok


def test_a_bad_placement_of_a_document_is_refused() -> None:
    document = json.loads(to_json(thread(HumanMessage("Hello"))))
    for placement in (
        {"reason": 1},
        {"reason": "", "chances": [[1]]},
        {"reason": "", "chances": [[True, 1]]},
    ):
        document["nodes"][0]["placement"] = placement
        with pytest.raises(InputError, match="node 1 has a bad placement"):
            from_json(json.dumps(document))


def test_an_export_of_chatgpt_goes_through_json_unchanged(
    system: MemorySystem, copy: MemorySystem, tmp_path: Path
) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://fig"}
    hidden = said("m7", "system", "", after="m6", metadata={"is_visually_hidden_from_conversation": True})
    source, saved = tmp_path / "conversations.json", tmp_path / "saved.json"
    source.write_text(json.dumps([chatgpt(*FIGS, hidden, said("m8", "user", image, after="m7"))]))
    system.import_file(source)
    memory = system.conversation("figs")
    saved.write_text(memory.export("json"), encoding="utf-8")
    copy.import_file(saved)
    assert copy.conversation("figs").history == memory.history
    assert copy.conversation("figs").messages == memory.messages
    assert [info.title for info in copy.list_conversations()] == ["About figs"]


@pytest.mark.parametrize("format", formats.SUFFIXES)
def test_every_format_has_a_title_or_a_text(format: str, system: MemorySystem, verbs: Any) -> None:
    memory = system.conversation("mine")
    memory.append("Where do figs grow?", "In the south.")
    system.update_conversation("mine", title="Fruit of gardens")
    text = verbs(memory).export(format)
    assert "figs" in text
    assert ("Fruit of gardens" in text) == (format in ("json", "markdown", "html"))


@pytest.mark.parametrize("format", formats.SUFFIXES)
def test_every_format_is_written_after_a_switch_to_an_old_version(
    format: str, system: MemorySystem, verbs: Any
) -> None:
    memory = system.conversation("mine")
    old = memory.append("Where do figs grow?", "In the south.")[1]
    memory.regenerate(old.id, "Figs grow in the south.")
    memory.switch(old.message.id)
    assert "figs" in verbs(memory).export(format)
    assert "figs" in memory._repr_mimebundle_()["text/html"]


def test_nothing_is_exported_as_nothing() -> None:
    memory = ChatMemory(embeddings=False)
    assert memory.export("fine_tuning") == ""
    assert nx.parse_graphml(memory.export("graphml")).nodes == {}
    assert "0 messages" in memory.export("markdown")


def test_an_unknown_format_names_the_others() -> None:
    with pytest.raises(InputError, match=r"fine_tuning, graphml, .*markdown"):
        ChatMemory(embeddings=False).export("docx")


# The command


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A database with two conversations."""
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as system:
        for name in ("Figs/1", "figs_1"):
            system.conversation(name).append("Where do figs grow?", "In the south.")
    return str(tmp_path / "memory.db")


Output = pytest.CaptureFixture[str]


def test_the_command_prints_a_conversation(database: str, capsys: Output) -> None:
    assert main(["export", "Figs/1", "--db", database, "--format", "text"]) == 0
    assert capsys.readouterr().out == "User: Where do figs grow?\nAssistant: In the south.\n"


def test_the_command_writes_a_file_in_the_format_of_its_suffix(
    database: str, tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "figs.md"
    assert main(["export", "Figs/1", "--db", database, "--out", str(path), "--json"]) == 0
    assert path.read_text().startswith("# Where do figs grow?\n")
    assert json.loads(capsys.readouterr().out) == {
        "format": "markdown",
        "conversations": 1,
        "files": [str(path)],
    }


def test_the_command_writes_all_conversations_to_a_folder(
    database: str, tmp_path: Path, capsys: Output
) -> None:
    out = tmp_path / "pages"
    assert main(["export", "--db", database, "--format", "html", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["Figs_1.html", "figs_1-2.html"]
    assert "2 conversations as html: 2 files" in capsys.readouterr().out


def test_no_exported_file_has_a_name_that_windows_reserves(database: str, tmp_path: Path) -> None:
    with MemorySystem(database, embeddings=False) as system:
        for name in ("nul", "Com1.txt", "console"):
            system.conversation(name).append("Where do figs grow?", "In the south.")
    out = tmp_path / "pages"
    assert main(["export", "--db", database, "--format", "text", "--out", str(out)]) == 0
    written = {path.name for path in out.iterdir()} - {"Figs_1.txt", "figs_1-2.txt"}
    assert written == {"_nul.txt", "_Com1.txt.txt", "console.txt"}


def test_lines_of_all_conversations_are_one_text(database: str, tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "train.jsonl"
    command = ["export", "--db", database, "--format", "fine-tuning"]
    assert main(command) == 0
    lines = capsys.readouterr().out
    assert main([*command, "--out", str(path)]) == 0
    assert lines == path.read_text()
    assert [len(parse_conversation(line)) for line in lines.splitlines()] == [2, 2]


def test_the_command_prints_the_schema(capsys: Output) -> None:
    assert main(["export", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--format", "docx"], "use one of"),
        (["--format", "html"], "--out"),
        (["--json", "--format", "jsonl"], "--out"),
        (["monday"], "no conversation 'monday'"),
        (["--format", "html", "--out", __file__], "make the folder"),
    ],
)
def test_the_command_refuses_wrong_use(
    arguments: list[str], found: str, database: str, capsys: Output
) -> None:
    assert main(["export", "--db", database, *arguments]) == 2
    assert found in capsys.readouterr().err
