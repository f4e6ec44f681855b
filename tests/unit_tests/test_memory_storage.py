"""Storage and display: `save`, `load`, `export`, `to_mermaid`, Jupyter."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import (
    ChatMemory,
    LinearNodeSelector,
    MemorySystem,
    MessageSummary,
    SemanticNodeSelector,
)
from langchain_threadmem.errors import InputError, InvalidGraphStateError, PersistenceError, ThreadMemError

Wrap = Callable[[ChatMemory], Any]


class Titles:
    """A summarizer without a model."""

    def summarize(self, message: Any) -> MessageSummary:
        return MessageSummary(title=message.content.upper(), summary="It is said.")


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    """Tool calls, a system message, a fork, a superseded turn, a summary; the tip is not the newest node."""
    memory = system.conversation("talk", summarizer=Titles(), context_depth=3)
    memory.append(SystemMessage("Be brief."))
    call = AIMessage("", tool_calls=[{"name": "f", "args": {"x": [1, None]}, "id": "c"}])
    memory.append(
        HumanMessage("Q", id="q"), call, ToolMessage("R", tool_call_id="c", artifact={"r": (1, 2)}), "A"
    )
    memory.append('say "x"\ny', "B")
    memory.summarize()
    memory.edit(6, "said again")
    memory.checkout(5)
    return memory


def loaded(path: Path, document: Any, **options: Any) -> ChatMemory:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return ChatMemory.load(path, **{"embeddings": False, **options})


def node(number: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    return {"id": number, "role": "user", "content": f"said {number}", "parent_id": parent, **more}


def test_what_was_saved_is_loaded_exactly(memory: ChatMemory, verbs: Wrap, tmp_path: Path) -> None:
    verb = verbs(memory)
    verb.save(tmp_path / "talk.json")
    again = ChatMemory.load(tmp_path / "talk.json", embeddings=False)
    assert again.history == verb.history()
    assert again.tip == verb.tip()
    assert again.messages == verb.messages()
    assert (again.context_depth, type(again.node_selector)) == (3, LinearNodeSelector)
    assert again.verify().ok
    assert again.export("json").count("superseded_by") == 2


async def _aload(path: Path, **options: Any) -> ChatMemory:
    return await ChatMemory.aload(path, **options)


def test_a_conversation_is_loaded_into_a_system_and_stays_there(
    memory: ChatMemory, system: MemorySystem, tmp_path: Path
) -> None:
    memory.save(tmp_path / "talk.json")
    copy = ChatMemory.load(tmp_path / "talk.json", system=system, conversation_id="copy")
    assert copy.history == system.conversation("copy").history == memory.history
    copy.append("New", "turn")
    assert (copy.history[-1].id, len(memory.history)) == (10, 8)
    with pytest.raises(InputError, match="'copy' is not empty"):
        ChatMemory.load(tmp_path / "talk.json", system=system, conversation_id="copy")
    assert len(copy.history) == 10


def test_loading_works_on_the_event_loop(memory: ChatMemory, tmp_path: Path) -> None:
    import asyncio

    memory.save(tmp_path / "talk.json")
    again = asyncio.run(_aload(tmp_path / "talk.json", embeddings=False))
    assert again.history == memory.history


def test_a_threaded_conversation_comes_back_without_a_language_model(tmp_path: Path) -> None:
    memory = ChatMemory.threaded(model="no-such-model", embeddings=False)
    memory.save(tmp_path / "talk.json")
    assert json.loads((tmp_path / "talk.json").read_text())["metadata"]["mode"] == "graph"
    again = ChatMemory.load(tmp_path / "talk.json", embeddings=False)
    assert isinstance(again.node_selector, SemanticNodeSelector)
    assert again.summarizer is None
    mine = LinearNodeSelector()
    assert ChatMemory.load(tmp_path / "talk.json", embeddings=False, node_selector=mine).node_selector is mine


def test_a_conversation_with_threads_comes_back_with_a_selector(memory: ChatMemory, tmp_path: Path) -> None:
    memory.extend([HumanMessage("first"), AIMessage("one"), HumanMessage("second"), AIMessage("two")])
    memory.save(tmp_path / "chain.json")
    assert isinstance(
        ChatMemory.load(tmp_path / "chain.json", embeddings=False).node_selector, LinearNodeSelector
    )
    memory.place(memory.history[-2].id, None)
    memory.save(tmp_path / "threads.json")
    assert isinstance(
        ChatMemory.load(tmp_path / "threads.json", embeddings=False).node_selector, SemanticNodeSelector
    )


def test_a_file_of_other_programs_in_the_same_shape_is_read(tmp_path: Path) -> None:
    summary = {"title": "Start", "summary": "It begins."}
    document = {
        "version": "1.0",
        "metadata": {"created_at": "2024-01-15T10:30:00Z", "mode": "threaded", "total_messages": 3},
        "nodes": [
            node(1, timestamp="2024-01-15T10:30:00Z", summary=summary),
            node(2, 1, role="assistant", timestamp="2024-01-15T10:31:00Z", summary=None),
            node(3, 2, role="system"),
        ],
        "edges": [{"from": 1, "to": 2}, {"from": 2, "to": 3}],
    }
    memory = loaded(tmp_path / "seed.json", document, context_depth=2)
    assert [n.message.type for n in memory.history] == ["human", "ai", "system"]
    assert memory.history[0].summary == MessageSummary(**summary)
    assert memory.history[0].timestamp.isoformat() == "2024-01-15T10:30:00+00:00"
    assert (memory.context_depth, memory.tip and memory.tip.id) == (2, 3)
    assert memory.append("next", "one")[0].id == 4


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    memory = loaded(tmp_path / "bom.json", "\ufeff" + json.dumps({"nodes": [node(1)]}))
    assert len(memory.history) == 1


BROKEN: dict[str, tuple[Any, type[ThreadMemError]]] = {
    "nothing": ("", InputError),
    "no JSON": ("{", InputError),
    "a list": ([], InputError),
    "no nodes": ({}, InputError),
    "newer": ({"version": "2.0", "nodes": []}, InputError),
    "unknown mode": ({"nodes": [], "metadata": {"mode": ["graph"]}}, InputError),
    "unknown tip": ({"nodes": [node(1)], "metadata": {"tip": 2}}, InputError),
    "tip that is no number": ({"nodes": [node(1)], "metadata": {"tip": [1]}}, InputError),
    "depth": ({"nodes": [], "metadata": {"context_depth": -1}}, InputError),
    "role": ({"nodes": [node(1, role="emperor")]}, InputError),
    "time": ({"nodes": [node(1, timestamp="yesterday")]}, InputError),
    "same message twice": ({"nodes": [node(1, message_id="m"), node(2, 1, message_id="m")]}, InputError),
    "missing successor": ({"nodes": [node(1, state="superseded", superseded_by=9)]}, InputError),
    "enormous number": ({"nodes": [node(10**30)]}, InputError),
    "circle": ({"nodes": [node(1, 2), node(2, 1)]}, InvalidGraphStateError),
    "missing parent": ({"nodes": [node(1, 7)]}, InvalidGraphStateError),
    "same number twice": ({"nodes": [node(1), node(1)]}, InvalidGraphStateError),
    "other edges": ({"nodes": [node(1)], "edges": [{"from": 1, "to": 2}]}, InvalidGraphStateError),
    "zero": ({"nodes": [node(0)]}, InvalidGraphStateError),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_and_nothing_of_it_is_stored(
    name: str, tmp_path: Path, url: str, owner: str
) -> None:
    document, error = BROKEN[name]
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        with pytest.raises(error) as raised:
            loaded(tmp_path / "broken.json", document, system=system, embeddings=None, conversation_id="x")
        assert system.conversation("x").history == []
    if error is InvalidGraphStateError:
        assert str(raised.value).startswith("Conversation graph has become corrupted. This can happen if")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00bad"])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    if content:
        (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(PersistenceError, match=r"Cannot read '.*x\.json'"):
        ChatMemory.load(tmp_path / "x.json")


def test_saving_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match=r"Cannot save to '.*talk\.json'"):
        ChatMemory(embeddings=False).save(tmp_path / "missing" / "talk.json")


def test_a_failed_save_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "talk.json"
    target.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PersistenceError):
        ChatMemory(embeddings=False).save(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    target = tmp_path / "talk.json"
    target.touch(mode=0o600)
    ChatMemory(embeddings=False).save(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "format", ["json", "jsonl", "jsonl_messages", "text", "plain_text", "mermaid", "html", "svg"]
)
def test_every_format_shows_what_is_live(memory: ChatMemory, verbs: Wrap, format: str) -> None:
    text = verbs(memory).export(format)
    assert "said again" in text
    assert ("say" in text) == (format in ("json", "html"))  # superseded: only where it can be told apart


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="Unsupported export format: pdf"):
        ChatMemory(embeddings=False).export("pdf")


def test_every_line_of_jsonl_is_a_thread_of_openai_messages(memory: ChatMemory) -> None:
    lines = [json.loads(line)["messages"] for line in memory.export("jsonl").splitlines()]
    assert [[message["role"] for message in line] for line in lines] == [
        ["system", "user", "assistant", "tool", "assistant", "user"]
    ]


def test_mermaid_takes_its_options(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert '2["H2: Q"]' in verb.to_mermaid()
    assert verb.to_mermaid(role="user", max_content_length=4).splitlines()[1:3] == [
        '    2["H2: Q"]',
        '    8["H8: said"]',
    ]


def test_the_page_is_named_by_the_title_of_the_conversation(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("c-17"))
    assert "<h1>c-17</h1>" in verb.export("html")
    verb.append("How do I feed rye?", "With water.")
    assert "<h1>How do I feed rye?</h1>" in verb.export("html")
    system.update_conversation("c-17", title="Bread & tea")
    assert "<h1>Bread &amp; tea</h1>" in verb.export("html")


def test_jupyter_shows_a_picture_and_an_outline(memory: ChatMemory) -> None:
    shown = memory._repr_mimebundle_()
    assert "<svg" in shown["text/html"]
    assert "User: said again" in shown["text/plain"]
    assert "say" not in shown["text/plain"]
    assert ChatMemory(embeddings=False)._repr_mimebundle_()["text/plain"] == "(empty memory)"


def test_a_hostile_message_stays_text_in_every_picture() -> None:
    memory = ChatMemory(embeddings=False)
    memory.append('<script>alert(1)</script>"] --> x', "ok")
    for text in (memory.export("html"), memory.export("svg"), memory._repr_mimebundle_()["text/html"]):
        assert "<script>alert" not in text
    assert "<script" not in memory.to_mermaid()
