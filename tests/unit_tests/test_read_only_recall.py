"""A memory that is only read finds what is stored, indexed or not, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.messages import HumanMessage

from langchain_threadmem import MemorySystem, Recollection, ThreadMemRetriever
from langchain_threadmem.apps.cli import main
from langchain_threadmem.langchain.tools import recall_tool

Wrap = Callable[[Any], Any]
DENTIST, VISA = "My dentist is in Elm Street.", "The visa for Japan takes two weeks."


def texts(hits: list[Recollection]) -> list[Any]:
    return [hit.node.message.content for hit in hits]


@pytest.fixture(params=[False, True], ids=["words", "embedded"])
def options(request: pytest.FixtureRequest, owner: str) -> dict[str, Any]:
    return {"owner": owner, "embeddings": WordEmbeddings() if request.param else False}


@pytest.fixture
def writer(url: str, options: dict[str, Any]) -> Iterator[MemorySystem]:
    """A memory that has never searched."""
    with MemorySystem(url, **options) as system:
        system.conversation("health").append(DENTIST, "Noted.")
        system.conversation("travel").append(VISA, "I see.")
        system.for_owner("another").conversation("health").append("A secret dentist", "Noted.")
        yield system


@pytest.fixture
def reader(writer: MemorySystem, url: str, options: dict[str, Any]) -> Iterator[MemorySystem]:
    with MemorySystem(url, **options, read_only=True) as system:
        yield system


def test_all_conversations_are_searched(reader: MemorySystem, verbs: Wrap) -> None:
    for name in ("health", "travel", "a new one"):
        hits = verbs(reader.conversation(name)).recall("Where is my dentist?", 1, scope="owner")
        assert [(hit.conversation_id, hit.why.terms) for hit in hits] == [("health", ("dentist",))]
    assert texts(verbs(reader.conversation("travel")).recall("dentist", scope="owner", role="ai")) in (
        [],
        ["Noted."],
    )
    [[unit]] = verbs(reader).query("dentist", k_limit=1, recall_context=False)
    assert unit.content == DENTIST
    filtered = verbs(reader).query("dentist visa", filters={"group_id": "travel"}, recall_context=False)
    assert VISA in [unit.content for chain in filtered for unit in chain]


def test_retriever_tool_and_lists_find_what_is_stored(reader: MemorySystem) -> None:
    assert ThreadMemRetriever(memory=reader, k=1).invoke("dentist")[0].page_content == DENTIST
    assert DENTIST in recall_tool(reader).invoke({"query": "dentist"})
    assert [info.id for info in reader.list_conversations(query="dentist")] == ["health"]


def test_what_another_process_changes_is_read_again(
    writer: MemorySystem, reader: MemorySystem, verbs: Wrap
) -> None:
    def found(query: str) -> list[Any]:
        return texts(verbs(reader.conversation("other")).recall(query, 4, scope="owner", role="user"))

    assert found("dentist")[0] == DENTIST
    writer.conversation("health").append("The dentist retired.", "I see.")
    assert set(found("dentist")) >= {DENTIST, "The dentist retired."}
    writer.conversation("health").edit(1, "My dentist is in Oak Street.")
    assert "My dentist is in Oak Street." in found("dentist")
    assert DENTIST not in found("dentist")
    writer.conversation("other").recall("dentist", scope="owner")  # Indexes the messages.
    assert set(found("dentist")) >= {"The dentist retired.", "My dentist is in Oak Street."}
    writer.conversation("travel").append("Is the visa stamped?", "Yes.")
    assert set(found("visa")) >= {VISA, "Is the visa stamped?"}
    writer.erase(conversation="health")
    assert not any("dentist" in text for text in found("dentist"))


def test_what_was_forgotten_is_not_found(writer: MemorySystem, reader: MemorySystem, verbs: Wrap) -> None:
    recall = verbs(reader.conversation("other")).recall
    assert texts(recall("dentist", 1, scope="owner")) == [DENTIST]
    writer.forget(1.0)
    assert DENTIST not in texts(recall("dentist", 4, scope="owner"))


def test_summaries_and_speakers_are_found(writer: MemorySystem, reader: MemorySystem, verbs: Wrap) -> None:
    writer.conversation("family").extend(
        [HumanMessage("I water figs", name="Ada"), HumanMessage("I water tea", name="Ben")]
    )
    writer.summarize_session("travel")
    recall = verbs(reader.conversation("other")).recall
    assert recall("What does Ada water?", 1, scope="owner")[0].why.person == "ada"
    [hit] = recall("visa Japan", 1, scope="owner", rank=1)
    assert "Japan" in hit.node.message.text


def test_searching_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "memory.db"
    with MemorySystem(file, owner="ada", embeddings=False) as system:
        system.conversation("health").append(DENTIST, "Noted.")
    before = file.read_bytes()
    options = ["--db", str(file), "--owner", "ada", "--words"]
    assert main.main(["search", "dentist", *options, "--read-only"]) == 0
    assert DENTIST in capsys.readouterr().out
    with MemorySystem(file, owner="ada", embeddings=False, read_only=True) as system:
        assert system.query("dentist")
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_an_encrypted_memory_is_searched_by_conversation(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        system.conversation("health").append(DENTIST, "Noted.")
    options: dict[str, Any] = {"embeddings": False, "cipher": StreamCipher(), "read_only": True}
    with MemorySystem(url, owner=owner, **options) as system:
        assert texts(verbs(system.conversation("health")).recall("dentist", 1)) == [DENTIST]
