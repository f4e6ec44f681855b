"""Invalid input: a typed error names the value and the right form, and no data is lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import (
    ChatMemory,
    ExtractiveSummarizer,
    LLMNodeSelector,
    LLMSummarizer,
    MemorySettings,
    MemorySystem,
    MessageSummary,
    ThreadMemChatMessageHistory,
)
from langchain_threadmem.apps.transfer import folder
from langchain_threadmem.errors import (
    EmbeddingError,
    EncryptionError,
    InputError,
    NodeNotFoundError,
    PersistenceError,
    ThreadMemError,
)
from langchain_threadmem.langgraph.node import recall_node
from langchain_threadmem.maintenance.removal.tables import COPIED_TABLES

Wrap = Callable[[Any], Any]
HALF = "\ud800"


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    found = system.conversation("talk", summarizer=ExtractiveSummarizer())
    found.append("How warm is dough?", "About 25 degrees. It depends on the flour.")
    return found


@pytest.mark.parametrize(
    "messages",
    ["hello", {"role": "user", "content": "hi"}, ("user", "hi"), HumanMessage("hi"), None, 3],
    ids=lambda messages: type(messages).__name__,
)
def test_extend_refuses_one_message_and_says_how_to_pass_it(
    memory: ChatMemory, verbs: Wrap, messages: Any
) -> None:
    with pytest.raises(InputError, match=r"pass \[message\]"):
        verbs(memory).extend(messages)
    assert len(memory.history) == 2


@pytest.mark.parametrize("messages", ["hello", {"role": "user", "content": "hi"}, HumanMessage("hi"), None])
def test_a_history_refuses_one_message_in_the_place_of_several(
    memory: ChatMemory, system: MemorySystem, messages: Any
) -> None:
    with pytest.raises(InputError, match=r"pass \[message\]"):
        ThreadMemChatMessageHistory("talk", system).add_messages(messages)
    assert len(memory.history) == 2


PICTURE = {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo" * 100_000}}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "parts": [PICTURE]},
        HumanMessage("", additional_kwargs=PICTURE),
        HumanMessage("Hello", additional_kwargs={"picture": SimpleNamespace(**PICTURE)}),
    ],
    ids=["unknown form", "empty", "unsupported"],
)
def test_an_error_shows_the_beginning_of_a_long_value(memory: ChatMemory, verbs: Wrap, message: Any) -> None:
    with pytest.raises(InputError) as caught:
        verbs(memory).append(message)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("messages", [("one", "two"), [("user", "one"), "two"], ["one", "two"]])
def test_extend_takes_any_series_of_messages(memory: ChatMemory, messages: Any) -> None:
    assert [node.message.content for node in memory.extend(messages)] == ["one", "two"]


@pytest.mark.parametrize("times", [["2020"], "2", 5, [5]])
def test_timestamps_are_datetimes(memory: ChatMemory, verbs: Wrap, times: Any) -> None:
    with pytest.raises(InputError, match="datetime"):
        verbs(memory).extend(["x"], timestamps=times)
    assert len(memory.history) == 2


# In seconds since 1970, the latest time is rounded up.
OUTSIDE = ["9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+01:00"]


@pytest.mark.parametrize("time", OUTSIDE)
def test_a_time_that_could_not_be_read_back_is_refused(
    memory: ChatMemory, system: MemorySystem, verbs: Wrap, time: str
) -> None:
    with pytest.raises(InputError, match="years 1 to 9999"):
        verbs(memory).extend(["x"], timestamps=[datetime.fromisoformat(time)])
    with pytest.raises(InputError, match="years 1 to 9999"):
        verbs(system).add_memory("x", creation_time=datetime.fromisoformat(time))
    assert len(memory.history) == 2


@pytest.mark.parametrize("time", OUTSIDE)
def test_a_file_with_a_time_that_could_not_be_read_back_is_refused(
    memory: ChatMemory, system: MemorySystem, tmp_path: Path, time: str
) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hello", "timestamp": time}]))
    with pytest.raises(InputError, match="years 1 to 9999"):
        system.import_file(path)
    saved = json.loads(memory.export("json"))
    saved["nodes"][0]["timestamp"] = time
    path.write_text(json.dumps(saved))
    with pytest.raises(InputError, match=r"node 1 .*year 1?0"):
        ChatMemory.load(path, embeddings=False)
    assert [info.id for info in system.list_conversations()] == ["talk"]


def test_a_time_of_an_added_memory_is_a_datetime(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="'2020' is not a time"):
        system.add_memory("x", creation_time="2020")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70), 0, True])
@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        *(("edit", ["x"]), ("regenerate", ["x"]), ("place", [None])),
        *(("checkout", []), ("thread", []), ("summarize", [])),
    ],
)
def test_a_number_that_no_node_can_have_names_no_node(
    memory: ChatMemory, verbs: Wrap, verb: str, rest: list[Any], number: int
) -> None:
    with pytest.raises(NodeNotFoundError, match=f"no node {number}"):
        getattr(verbs(memory), verb)(number, *rest)


def test_a_parent_or_a_thread_of_no_possible_number_is_not_found(memory: ChatMemory, verbs: Wrap) -> None:
    with pytest.raises(NodeNotFoundError, match="no node 9223372036854775808"):
        verbs(memory).place(1, 2**63)


def test_a_thread_to_summarise_of_no_possible_number_is_not_found(
    memory: ChatMemory, system: MemorySystem, verbs: Wrap
) -> None:
    with pytest.raises(NodeNotFoundError, match="no node 9223372036854775808"):
        verbs(system).summarize_thread(2**63, session="talk")


@pytest.mark.parametrize("text", [HALF, "\0", "", 3])
@pytest.mark.parametrize("verb", ["unit", "unfold", "summarize_session", "switch_session", "start_session"])
def test_an_id_that_cannot_be_stored_is_refused(
    system: MemorySystem, verbs: Wrap, verb: str, text: Any
) -> None:
    with pytest.raises(InputError):
        getattr(verbs(system), verb)(text)


def test_a_session_that_cannot_be_stored_is_refused_beside_a_unit(system: MemorySystem, verbs: Wrap) -> None:
    with pytest.raises(InputError, match="session id"):
        verbs(system).unit("x", session=HALF)


def test_half_a_character_in_a_name_takes_nothing_out_of_recall(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap
) -> None:
    memory.append(HumanMessage(f"flour {HALF}", name=f"Ada{HALF}\0"), AIMessage("rye"))
    system.add_memory("flour", source=HALF, metadata={HALF: HALF})
    found = {hit.node.message.content for hit in verbs(memory).recall("flour", scope="owner")}
    assert {f"flour {HALF}", "flour"} <= found
    assert verbs(system).query("flour", search_range=(None, None))


def test_half_a_character_is_summarised_as_a_sign_of_its_own(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("odd", summarizer=ExtractiveSummarizer())
    memory.append("q", f"An answer{HALF}\0 about bread.")
    assert verbs(memory).summarize()[0].summary.summary == "An answer\ufffd\ufffd about bread."
    assert system.summarize_session("odd") is not None


class Returning:
    """A summarizer, a reranker or a cipher that always returns the same."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def summarize(self, message: Any) -> Any:
        return self.value

    def rerank(self, query: str, texts: list[str]) -> Any:
        return self.value

    def encrypt(self, plaintext: bytes) -> Any:
        return self.value

    def decrypt(self, ciphername: str, ciphertext: bytes) -> Any:
        return self.value


@pytest.mark.parametrize(
    "value",
    [
        *(3, "text", {"title": "a", "summary": "b"}),
        *(MessageSummary(title=HALF, summary="b"), MessageSummary(title="a", summary="\0")),
        MessageSummary.model_construct(title=3, summary=None),
    ],
    ids=ascii,
)
def test_a_summarizer_that_returns_no_summary_is_named(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, value: Any
) -> None:
    with pytest.raises(InputError):
        verbs(system.conversation("talk", summarizer=Returning(value))).summarize()
    assert [node.summary for node in memory.history] == [None, None]


@pytest.mark.parametrize("value", [None, b"bytes", ("name", "text"), (b"name", b"data"), ("name",)])
def test_a_cipher_that_returns_no_pair_is_named(url: str, owner: str, value: Any) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=Returning(value)) as system:
        with pytest.raises(EncryptionError, match=r"encrypt\(\) returned"):
            system.conversation("talk").append("Hello", "Hi!")
        assert system.conversation("talk").history == []


class Forgetful(StreamCipher):
    def decrypt(self, ciphername: str, ciphertext: bytes) -> Any:
        return None


def test_a_cipher_that_opens_nothing_is_named(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        system.conversation("talk").append("Hello", "Hi!")
    with pytest.raises(EncryptionError, match=r"decrypt\(\) returned NoneType"):
        MemorySystem(url, owner=owner, embeddings=False, cipher=Forgetful())


class Changing(WordEmbeddings):
    """Vectors with a variable number of dimensions."""

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[: self.dimensions]


def test_an_embedding_model_keeps_to_one_dimension(url: str, owner: str, verbs: Wrap) -> None:
    model = Changing()
    with MemorySystem(url, owner=owner, embeddings=model) as system:
        memory = system.conversation("talk")
        memory.append("bread", "rye")
        memory.recall("bread")
        model.dimensions = 32
        with pytest.raises(EmbeddingError, match=r"'words' returned vectors of 32 .* 64 before"):
            verbs(memory).recall("oats")


def test_a_stored_vector_of_another_dimension_is_noticed_before_it_is_compared(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=Changing()) as system:
        system.conversation("talk").append("bread", "rye")
        system.flush()
    with MemorySystem(url, owner=owner, embeddings=Changing(32)) as system:
        memory = system.conversation("talk")
        memory.append("oats", "porridge")
        for scope in ("conversation", "owner"):
            with pytest.raises(EmbeddingError, match=r"vectors of 32 .* 64 before"):
                verbs(memory).recall("oats", scope=scope)
        with pytest.raises(EmbeddingError):
            system.query("oats")
    with MemorySystem(url, owner=owner, embeddings=Changing()) as system:
        assert len(system.conversation("talk").recall("oats bread")) >= 2


@pytest.mark.parametrize("model", ["openai", True, 3, WordEmbeddings])
def test_what_is_no_embedding_model_is_refused_when_it_is_passed(model: Any) -> None:
    with pytest.raises(InputError, match=r"not an embedding model; pass a LangChain Embeddings object"):
        ChatMemory(embeddings=model)
    with pytest.raises(InputError, match="not an embedding model"):
        MemorySystem(embeddings=model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"window": 3}, r"3 is not a window; pass MessageWindow"),
        ({"summarizer": 3}, "3 is not a summarizer"),
        ({"system": 3}, "system is a MemorySystem, not 3"),
        ({"context_depth": "5"}, "context_depth must be an integer, not '5'"),
    ],
    ids=str,
)
def test_an_option_of_another_kind_is_refused(options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ChatMemory(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": 5}, "5 is not a database"),
        ({"model": 3}, "3 is not a chat model"),
        ({"summarizer": 3}, "3 is not a summarizer"),
        ({"token_counter": 3}, "token_counter=3 cannot count"),
        ({"vectors": 3}, "vectors=3 is not a vector index"),
        ({"language": 3}, "language=3 is not a Language"),
        ({"language": "english"}, "language='english' is not a Language"),
    ],
    ids=str,
)
def test_an_option_of_a_system_of_another_kind_is_refused(options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        MemorySystem(**options)


@pytest.mark.parametrize("make", [ChatMemory.threaded, LLMNodeSelector, LLMSummarizer])
def test_what_is_no_chat_model_is_refused_at_once(make: Callable[[Any], object]) -> None:
    with pytest.raises(InputError, match="3 is not a chat model"):
        make(3)


@pytest.mark.parametrize("options", [{"metadata": 3}, {"source": 3}], ids=str)
def test_a_memory_of_another_kind_is_refused(system: MemorySystem, verbs: Wrap, options: Any) -> None:
    with pytest.raises(InputError, match="=3 is no"):
        verbs(system).add_memory("The dough rests.", **options)
    assert system.conversations() == []


@pytest.mark.parametrize("shown", [None, 3, "text", ["text"]], ids=str)
def test_a_window_returns_messages(system: MemorySystem, verbs: Wrap, shown: Any) -> None:
    memory = system.conversation("talk", window=lambda messages: shown)
    memory.append("Hello")
    with pytest.raises(InputError, match="return a list of messages"):
        verbs(memory).messages()


@pytest.mark.parametrize(
    "options",
    [{"n_results": "3"}, {"n_results": True}, {"context_depth": "3"}, {"max_tokens": "3"}, {"rank": [["3"]]}],
    ids=str,
)
def test_a_number_of_a_recall_is_a_number(memory: ChatMemory, verbs: Wrap, options: Any) -> None:
    with pytest.raises(InputError, match=r"'3'|True"):
        verbs(memory).recall("flour", **options)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("unfold", {"unit": "talk", "levels": "3"}),
        ("check_erased", {"receipt": "3"}),
        ("forget", {"scorer": "3"}),
        ("for_owner", {"owner": ["3"]}),
    ],
)
def test_an_argument_of_another_kind_is_refused(
    system: MemorySystem, memory: ChatMemory, verb: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="3"):
        getattr(system, verb)(**arguments)
    assert len(memory.history) == 2


@pytest.mark.parametrize("speaker", [3, ["ada"]], ids=str)
def test_a_speaker_is_a_name(memory: ChatMemory, verbs: Wrap, speaker: Any) -> None:
    with pytest.raises(InputError, match="speaker="):
        verbs(memory).recall("flour", speaker=speaker)


@pytest.mark.parametrize("scores", [None, 3, ["a", "b"], [[1], [2]]], ids=str)
def test_a_reranker_returns_numbers(memory: ChatMemory, verbs: Wrap, scores: Any) -> None:
    reranker = Returning(scores)
    with pytest.raises(InputError, match="return one score for each text"):
        verbs(memory).recall("dough flour", reranker=reranker)


def test_the_length_of_a_context_is_a_number(system: MemorySystem, verbs: Wrap) -> None:
    with pytest.raises(InputError, match="length='x'"):
        verbs(system).get_context("x")


@pytest.mark.parametrize("name", [None, "", 5, HALF])
def test_a_conversation_has_a_name(system: MemorySystem, name: Any) -> None:
    with pytest.raises(InputError):
        system.conversation(name)
    with pytest.raises(InputError):
        ThreadMemChatMessageHistory(name, system)


def test_a_missing_driver_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "langchain_threadmem.storage.postgres", raising=False)
    with pytest.raises(PersistenceError, match=r"langchain-threadmem\[postgres\]") as caught:
        MemorySystem("postgresql://ada:secret@localhost/memory")
    assert "secret" not in str(caught.value)


def test_aliases_in_settings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    path.write_text("\n".join([*lines, "k_limit: *a39"]))
    with pytest.raises(InputError, match="alias") as caught:
        MemorySettings.from_file(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("path", [None, 3, b"chat.json"])
def test_a_path_of_another_kind_is_named(
    memory: ChatMemory, system: MemorySystem, verbs: Wrap, path: Any
) -> None:
    for call in (memory.save, ChatMemory.load, verbs(system).import_file):
        with pytest.raises(InputError, match="not the path of a file"):
            call(path)


@pytest.mark.parametrize(
    ("format", "options"),
    [(["json"], {}), ("mermaid", {"max_edges": "9"}), ("mermaid", {"role": ["user"]})],
    ids=str,
)
def test_an_option_of_an_export_is_of_its_kind(
    memory: ChatMemory, verbs: Wrap, format: Any, options: Any
) -> None:
    with pytest.raises(InputError):
        verbs(memory).to_mermaid(**options) if options else verbs(memory).export(format)


@pytest.mark.parametrize("path", [f"{HALF}.json", "a\0b.json"])
def test_a_path_that_no_file_can_have_is_named(memory: ChatMemory, path: str) -> None:
    with pytest.raises(PersistenceError):
        memory.save(path)
    with pytest.raises(PersistenceError):
        ChatMemory.load(path)


@pytest.mark.parametrize("path", [f"{HALF}.db", "a\0b.db"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_name_that_no_database_file_can_have_is_refused(path: str, read_only: bool) -> None:
    with pytest.raises(ThreadMemError, match="database file"):
        MemorySystem(path, embeddings=False, read_only=read_only)


@pytest.mark.parametrize("kept", [entry.table.name for entry in COPIED_TABLES])
def test_no_column_of_a_folder_takes_another_type(kept: str) -> None:
    [entry] = [entry for entry in COPIED_TABLES if entry.table.name == kept]
    for column in entry.table.c:
        for value in (HALF, 10**400, -1e11, 2**63, [1], 1 if "BYTE" in str(column.type).upper() else 2**64):
            with pytest.raises(InputError, match="line 1"):
                folder._value(column, value, "line 1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_results": "4"}, "n_results='4' is not an integer"),
        ({"n_results": None}, "n_results=None is not an integer"),
        ({"scope": "all"}, "scope"),
        ({"min_similarity": "high"}, "min_similarity='high' is not a number"),
    ],
)
def test_options_of_a_recall_node_are_checked_at_once(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recall_node(MemorySystem(embeddings=False), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 3}, "3 is not a window"),
        ({"cover": 5}, "cover"),
        ({"node_selector": 5}, "5 is not a node selector"),
        ({"bogus": 1}, "no option 'bogus'"),
    ],
)
@pytest.mark.parametrize("owner", [None, "user_id"])
def test_options_of_a_history_are_checked_at_once(options: Any, message: str, owner: str | None) -> None:
    with pytest.raises((InputError, TypeError), match=message):
        ThreadMemChatMessageHistory("c", MemorySystem(embeddings=False), owner=owner, **options)


def test_any_number_of_doubtful_messages_can_be_asked_for(travel: ChatMemory) -> None:
    assert travel.doubtful(limit=1 << 70) == []
