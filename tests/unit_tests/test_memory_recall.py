"""`recall`: the best hit first, with its thread and its reason, within one owner."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from conftest import WordEmbeddings
from langchain_core.messages import AIMessage, ToolMessage

from langchain_threadmem import ChatMemory, LocalEmbeddings, MemorySystem, Recollection
from langchain_threadmem.errors import EmbeddingError, InputError, SessionNotFoundError

Wrap = Callable[[ChatMemory], Any]

TURNS = [
    ("How do I read CSV files?", "Call pandas read_csv."),
    ("And spreadsheets?", "Those need openpyxl."),
    ("Which tea calms?", "Camomile tea calms."),
]


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    memory = system.conversation("talk")
    for human, answer in TURNS:
        memory.append(human, answer)
    return memory


def texts(hits: list[Recollection]) -> list[Any]:
    return [hit.node.message.content for hit in hits]


def test_the_best_hit_comes_first_with_its_score_and_reason(memory: ChatMemory, verbs: Wrap) -> None:
    hits = verbs(memory).recall("openpyxl spreadsheets", n_results=3)
    assert set(texts(hits)[:2]) == {"And spreadsheets?", "Those need openpyxl."}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert set(hits[0].why.terms) <= {"openpyxl", "spreadsheets"}
    assert hits[0].why.lexical > 0
    assert hits[0].why.similarity is not None
    assert hits[0].conversation_id == "talk"
    assert "shares " in str(hits[0].why)


def test_each_node_is_found_once(memory: ChatMemory, verbs: Wrap) -> None:
    ids = [hit.node.id for hit in verbs(memory).recall("tea csv spreadsheets", n_results=50)]
    assert sorted(ids) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("depth", "thread"), [(None, [1, 2, 3, 4]), (0, [4]), (1, [3, 4]), (99, [1, 2, 3, 4])]
)
def test_context_depth_counts_ancestors(
    memory: ChatMemory, verbs: Wrap, depth: int | None, thread: list[int]
) -> None:
    hit = verbs(memory).recall("openpyxl", n_results=1, context_depth=depth)[0]
    assert [node.id for node in hit.thread] == thread


@pytest.mark.parametrize(
    "options",
    [{"n_results": -1}, {"context_depth": -1}, {"scope": "world"}],
    ids=lambda options: next(iter(options)),
)
def test_bad_options_are_refused(memory: ChatMemory, verbs: Wrap, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        verbs(memory).recall("tea", **options)


@pytest.mark.parametrize(("query", "n_results"), [("", 10), ("  \n", 10), ("tea", 0)])
def test_nothing_asked_for_finds_nothing(memory: ChatMemory, verbs: Wrap, query: str, n_results: int) -> None:
    assert verbs(memory).recall(query, n_results) == []


@pytest.mark.parametrize("scope", ["conversation", "owner"])
@pytest.mark.parametrize(
    "query", ["what about it", "tea", "?!", "x' OR '1'='1", '"csv" AND NOT *', "größe 東京"]
)
def test_any_query_finds_nothing_in_an_empty_memory(
    system: MemorySystem, verbs: Wrap, query: str, scope: str
) -> None:
    assert verbs(system.conversation("empty")).recall(query, scope=scope) == []


@pytest.mark.parametrize("query", ["?!", "x' OR '1'='1", '"tea" AND NOT *', "NEAR(tea", "tea:*", "\x00tea"])
def test_a_query_is_words_and_no_query_language(query: str) -> None:
    memory = ChatMemory(embeddings=False)
    memory.append("Which tea?", "Camomile.")
    memory.append("1 or 2?", "Neither.")
    expected = {"Which tea?"} if "tea" in query else {"1 or 2?"} if "1" in query else set()
    assert set(texts(memory.recall(query))) == expected


def test_a_query_of_common_words_alone_still_counts() -> None:
    memory = ChatMemory(embeddings=False)
    memory.append("What is it about?", "Nothing.")
    assert texts(memory.recall("what about it")) == ["What is it about?"]


def test_words_alone_find_nothing_that_shares_none() -> None:
    memory = ChatMemory(embeddings=False)
    memory.append(*TURNS[0])
    assert memory.recall("submarine") == []
    hit = memory.recall("submarine csv")[0]
    assert (hit.why.terms, hit.why.similarity) == (("csv",), None)


def test_equal_texts_are_found_once_and_their_answers_each(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("twice"))
    verb.extend(["ginger tea", ("ai", "yes"), "ginger tea", ("ai", "no")])
    assert sorted(hit.node.id for hit in verb.recall("ginger tea", 4)) == [2, 3, 4]


def test_what_was_just_said_is_found_at_once(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.recall("tea")
    verb.append("My cat is called Mina.", "Lovely.")
    assert texts(verb.recall("cat mina", 1)) == ["My cat is called Mina."]


def test_tool_calls_and_results_are_no_hits_and_come_whole_as_context(
    system: MemorySystem, verbs: Wrap
) -> None:
    verb = verbs(system.conversation("tools"))
    calls = [{"name": "weather", "args": {"city": "Oslo"}, "id": i} for i in ("a", "b")]
    results = [ToolMessage("Oslo rain", tool_call_id=i) for i in ("a", "b")]
    verb.append("Weather?", AIMessage("Asking Oslo", tool_calls=calls), *results, "Umbrella, Oslo drowns")
    hits = verb.recall("oslo", 10, context_depth=1)
    assert {hit.node.message.type for hit in hits} <= {"human", "ai"}
    umbrella = next(hit for hit in hits if hit.node.id == 5)
    assert [node.message.type for node in umbrella.thread] == ["ai", "tool", "tool", "ai"]


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_superseded_text_is_found_on_request_only(memory: ChatMemory, verbs: Wrap, scope: str) -> None:
    verb = verbs(memory)
    assert "Camomile tea calms." in texts(verb.recall("camomile", scope=scope))
    verb.regenerate(6, "Mint does.")
    assert "Camomile tea calms." not in texts(verb.recall("camomile", scope=scope))
    assert "Camomile tea calms." in texts(verb.recall("camomile", scope=scope, include_superseded=True))
    assert texts(verb.recall("mint", 1, scope=scope)) == ["Mint does."]


def test_an_owner_scope_reaches_every_conversation_and_no_other_owner(
    memory: ChatMemory, system: MemorySystem, url: str, owner: str, verbs: Wrap
) -> None:
    system.conversation("other").append("Is nettle tea good?", "Nettle tea stings.")
    with MemorySystem(url, owner=f"not {owner}", embeddings=False) as strange:
        strange.conversation("talk").append("My secret nettle tea", "hidden")
        hits = verbs(memory).recall("nettle", 2, scope="owner")
        assert {(hit.conversation_id, hit.node.message.content) for hit in hits} == {
            ("other", "Is nettle tea good?"),
            ("other", "Nettle tea stings."),
        }
        assert "secret" not in str(verbs(memory).recall("secret nettle", 50, scope="owner"))
        assert texts(strange.conversation("new").recall("tea", scope="owner")) == ["My secret nettle tea"]
    assert all("nettle" not in text.lower() for text in texts(verbs(memory).recall("nettle")))


def test_a_reset_conversation_is_found_no_more(memory: ChatMemory, system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(memory)
    verb.recall("tea", scope="owner")
    verb.reset()
    assert verb.recall("tea") == verb.recall("tea", scope="owner") == []
    verb.append("Green coffee?", "No.")
    assert texts(verb.recall("coffee", 1)) == ["Green coffee?"]


def test_without_files_the_default_is_words_alone_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalEmbeddings, "available", lambda *arguments, **options: False)
    memory = ChatMemory()
    memory.append(*TURNS[0])
    with pytest.warns(UserWarning, match="words") as seen:
        assert memory.recall("csv")[0].why.similarity is None
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory.recall("submarine") == []


def test_words_alone_on_purpose_say_nothing(recwarn: pytest.WarningsRecorder) -> None:
    memory = ChatMemory(embeddings=False)
    memory.append(*TURNS[0])
    memory.recall("csv")
    assert not recwarn.list


class Failing:
    """An embedding model that fails until it is repaired."""

    model_name = "failing"
    down = True

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.down:
            raise ConnectionError("no route")
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_a_failing_embedding_model_is_an_error_that_loses_nothing() -> None:
    model: Any = Failing()
    memory = ChatMemory(embeddings=model)
    memory.append(*TURNS[0])
    with pytest.raises(EmbeddingError, match="no route"):
        memory.recall("csv")
    model.down = False
    assert memory.recall("csv")[0].why.similarity is not None
    assert len(memory.history) == 2


@pytest.mark.parametrize("query", [None, 7, ["tea"]])
def test_a_query_is_text(memory: ChatMemory, verbs: Wrap, query: Any) -> None:
    with pytest.raises(InputError, match="a query is text"):
        verbs(memory).recall(query)


def test_a_read_only_memory_recalls_every_message_of_a_conversation(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("travel")
        memory.append("The visa for Japan", "takes two weeks")
        memory.recall("visa")
        memory.append("The visa for China", "takes a month")
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), read_only=True) as system:
        found = verbs(system.conversation("travel")).recall("visa")
        assert {hit.node.id for hit in found} >= {1, 3}


def test_a_read_only_memory_recalls_every_message_of_all_conversations(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        system.conversation("japan").append("The visa for Japan", "takes two weeks")
        system.conversation("new").recall("visa", scope="owner")
        system.conversation("china").append("The visa for China", "takes a month")
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), read_only=True) as system:
        found = verbs(system.conversation("new")).recall("visa", 2, scope="owner")
        assert {hit.conversation_id for hit in found} == {"japan", "china"}
        assert [info.id for info in system.list_conversations(query="visa")] == ["china", "japan"]


def test_a_read_only_memory_names_a_conversation_that_does_not_exist(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.conversation("travel").append("The visa for Japan", "takes two weeks")
    with MemorySystem(url, owner=owner, embeddings=False, read_only=True) as system:
        for verb in ("messages", "history", "threads", "tip"):
            with pytest.raises(SessionNotFoundError, match="no conversation 'travels'"):
                getattr(verbs(system.conversation("travels")), verb)()
        assert len(verbs(system.conversation("travel")).messages()) == 2
