"""Summaries in `recall`: found like messages, ranked below the answer, and unfolded.

Each test runs for both sources of `recall.search`: the whole conversation, and candidates from the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import StreamCipher, WordEmbeddings
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem import (
    ChatMemory,
    ExtractiveSummarizer,
    MemorySystem,
    MessageSummary,
    Recollection,
    ThreadMemRetriever,
)
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError
from langchain_threadmem.langchain.tools import recall_tool
from langchain_threadmem.langgraph.routing.recall_elsewhere import recall_elsewhere
from langchain_threadmem.recall.quoting import fenced, recalled
from langchain_threadmem.storage.statements import Conn

Wrap = Callable[[Any], Any]
START = datetime(2026, 3, 1, tzinfo=UTC)
SAID = (
    "Where do we keep the kite?",
    "The kite is in the attic, beside the skis.",
    "And the tent for the lake?",
    "The tent is in the cellar.",
    "Which boat do we take to the lake?",
    "The red boat, it was repaired in May.",
    "Who feeds the cat in August?",
    "Our neighbour Vera feeds the cat.",
)
SUMMARY = "A holiday at the lake: kite, tent, boat and cat were arranged."


class Says:
    """Writes the same summary for all groups, or a different one for each."""

    def __init__(self, text: str = SUMMARY) -> None:
        self.text = text

    def summarize(self, message: Any) -> MessageSummary:
        return MessageSummary(title="Holiday", summary=self.text)


@pytest.fixture
def system(url: str, owner: str) -> Iterator[MemorySystem]:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), summarizer=Says()) as found:
        yield found


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    """A conversation over eight days, without summaries."""
    return filled(system, "lake")


def filled(system: MemorySystem, name: str, **options: Any) -> ChatMemory:
    memory = system.conversation(name, **options)
    said = [("human" if n % 2 == 0 else "ai", text) for n, text in enumerate(SAID)]
    memory.extend(said, [START + timedelta(days=n) for n in range(len(SAID))])
    return memory


def texts(hits: list[Recollection]) -> list[Any]:
    return [hit.node.message.content for hit in hits]


def test_a_summary_is_found_says_what_it_covers_and_unfolds(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str
) -> None:
    root = system.summarize_session("lake")
    [hit] = [hit for hit in verbs(memory).recall("holiday arranged") if hit.rank]
    assert root is not None
    assert (hit.rank, hit.node.message.id, hit.conversation_id) == (1, root.id, "lake")
    assert hit.node.message.content == SUMMARY
    assert hit.thread == (hit.node,)
    covers = hit.why.covers
    assert covers is not None
    assert (covers.messages, covers.started, covers.ended) == (8, START, START + timedelta(days=7))
    assert str(hit.why).startswith("summary of 8 messages from 2026-03-01 to 2026-03-08; shares ")
    assert [unit.content for unit in verbs(system).unfold(hit)] == list(SAID)
    [message] = [unit.content for unit in verbs(system).unfold(memory.recall("attic skis", 1)[0])]
    assert message == SAID[1]


def test_ranks_are_chosen(system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str) -> None:
    system.summarize_long_term_memory()
    verb = verbs(memory)

    def ranks(**options: Any) -> set[int]:
        return {hit.rank for hit in verb.recall("kite tent boat cat holiday", 50, **options)}

    assert ranks() == ranks(rank=(0, 1)) == ranks(rank=[0, 1, 2]) == {0, 1}
    assert ranks(rank=0) == ranks(rank={0}) == ranks(rank=iter([0])) == {0}
    assert ranks(rank=1) == {1}
    assert ranks(rank=2) == set()
    assert ranks(scope="owner") == {0, 1, 2}
    assert ranks(scope="owner", rank=(1, 2)) == {1, 2}
    assert ranks(scope="owner", rank=2) == {2}
    assert ranks(filters={"rank": {"$gte": 1}}) == {1}
    assert ranks(role="ai") == ranks(speaker="ai") | {0} == {0}


@pytest.mark.parametrize("rank", [3, -1, "1", 1.5, True, (), (0, 5), [None]])
def test_a_rank_that_is_none_is_refused_by_value(memory: ChatMemory, verbs: Wrap, rank: Any) -> None:
    with pytest.raises(InputError) as caught:
        verbs(memory).recall("kite", rank=rank)
    assert f"rank={rank!r}" in str(caught.value)


def test_the_long_term_memory_belongs_to_no_conversation(system: MemorySystem, verbs: Wrap) -> None:
    for name in ("lake", "sea"):
        filled(system, name)
    system.summarize_long_term_memory()
    [hit] = verbs(system.conversation("elsewhere")).recall("holiday", scope="owner", rank=2)
    assert (hit.conversation_id, hit.node.message.id) == ("", system.owner)
    assert hit.why.covers is not None
    assert hit.why.covers.messages == 16
    assert [unit.id for unit in verbs(system).unfold(hit, levels=1)] == ["lake", "sea"]
    assert system.conversations() == ["lake", "sea"]


def test_no_other_owner_sees_them(
    system: MemorySystem, memory: ChatMemory, url: str, owner: str, verbs: Wrap, way: str
) -> None:
    system.summarize_long_term_memory()
    with MemorySystem(url, owner=f"{owner}x", embeddings=WordEmbeddings()) as other:
        stranger = verbs(other.conversation("lake"))
        for scope in ("thread", "conversation", "owner"):
            assert stranger.recall("holiday", scope=scope) == []
            assert stranger.recall("holiday", scope=scope, rank=(1, 2)) == []


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where is the kite?", 1),
        ("Where is the tent?", 3),
        ("When was the boat repaired?", 5),
        ("Who feeds the cat?", 7),
    ],
)
def test_a_summary_that_quotes_the_answer_stays_below_the_message(
    question: str, answer: int, embedded: bool, way: str
) -> None:
    embeddings: Any = WordEmbeddings() if embedded else False
    with MemorySystem(embeddings=embeddings, summarizer=ExtractiveSummarizer(sentences=8)) as system:
        memory = filled(system, "lake")
        memory.extend([f"Rain{n}, snow{n}." for n in range(50)])
        system.summarize_session("lake")
        hits = memory.recall(question, 50)
        answers = [n for n, hit in enumerate(hits) if hit.node.message.content == SAID[answer]]
        quotes = [n for n, hit in enumerate(hits) if hit.rank and SAID[answer] in texts([hit])[0]]
        assert quotes
        assert answers[0] < min(quotes)
        assert hits[0].rank == 0


def test_a_summary_that_brings_together_what_no_message_says_comes_first(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str
) -> None:
    system.summarize_session("lake")
    assert verbs(memory).recall("What was arranged for the holiday at the lake?", 1)[0].rank == 1


def test_a_summary_of_one_message_is_left_to_the_message(system: MemorySystem, verbs: Wrap, way: str) -> None:
    memory = system.conversation("short")
    memory.extend(["The holiday was arranged."])
    system.summarize_session("short")
    verb = verbs(memory)
    for scope in ("conversation", "owner"):
        assert texts(verb.recall("holiday", scope=scope)) == ["The holiday was arranged."]
        assert texts(verb.recall("holiday", scope=scope, rank=1)) == [SUMMARY]


def test_without_summaries_nothing_more_is_asked_of_the_database(
    memory: ChatMemory, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    plain = Conn.all
    monkeypatch.setattr(Conn, "all", lambda self, *given: asked.append(given[0]) or plain(self, *given))
    memory.recall("kite")
    counts = []
    for rank in (0, None):
        asked.clear()
        memory.recall("kite", rank=rank)
        counts.append(len(asked))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"since": START}, True),
        ({"since": START + timedelta(days=1)}, False),
        ({"until": START + timedelta(days=8)}, True),
        ({"until": START + timedelta(days=7)}, False),
    ],
)
def test_all_that_a_summary_covers_lies_in_the_time(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str, options: Any, found: bool
) -> None:
    system.summarize_session("lake")
    for scope in ("conversation", "owner"):
        hits = verbs(memory).recall("holiday", 50, rank=1, scope=scope, **options)
        assert bool(hits) == found


def test_a_time_that_is_named_is_found_within_what_a_summary_covers(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap
) -> None:
    system.summarize_session("lake")
    [hit] = verbs(memory).recall("What was arranged on 4 March 2026?", rank=1)
    assert hit.why.date == 1.0


def test_the_scope_of_a_thread(system: MemorySystem, verbs: Wrap, way: str) -> None:
    memory = system.conversation("forked")
    memory.append("Is the kite red?", "The kite is red.")
    memory.append("Is the boat blue?", "The boat is blue.")
    memory.place(3, None)
    system.summarize_session("forked", by="thread")
    verb = verbs(memory)
    assert len(verb.recall("holiday", rank=1)) == 3
    for thread in memory.threads():
        memory.checkout(thread[-1].id)
        [hit] = verb.recall("holiday", rank=1, scope="thread")
        assert [unit.content for unit in system.unfold(hit)] == [node.message.content for node in thread]


def test_a_change_below_is_told_and_a_renewed_summary_takes_the_place(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str
) -> None:
    verb = verbs(memory)
    system.summarize_session("lake")
    assert "written before" not in str(verb.recall("holiday", rank=1)[0].why)
    memory.edit(8, "Nobody feeds the cat.")
    [hit] = verb.recall("holiday", rank=1)
    assert hit.why.covers is not None
    assert hit.why.covers.stale
    assert "written before a message changed" in str(hit.why)
    system.summarizer = Says("A cruise.")
    system.summarize_session("lake")
    for scope in ("conversation", "owner"):
        assert texts(verb.recall("holiday cruise", rank=1, scope=scope)) == ["A cruise."]


def test_what_another_memory_summarised_is_found(
    system: MemorySystem, memory: ChatMemory, url: str, owner: str, verbs: Wrap, way: str
) -> None:
    assert verbs(memory).recall("holiday", rank=1) == []
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), summarizer=Says()) as other:
        other.summarize_session("lake")
        assert texts(verbs(memory).recall("holiday", rank=1)) == [SUMMARY]
        other.conversation("lake").extend(["One more day."])
        other.summarizer = Says("A cruise.")
        other.summarize_session("lake")
        assert texts(verbs(memory).recall("cruise", rank=1)) == ["A cruise."]


def test_summaries_that_are_gone_are_not_found(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap, way: str
) -> None:
    verb = verbs(memory)
    system.summarize_session("lake")
    assert verb.recall("holiday", rank=1)
    memory.reset()
    for scope in ("conversation", "owner"):
        assert verb.recall("holiday", rank=1, scope=scope) == []


def test_what_was_forgotten_is_not_found(url: str, owner: str, verbs: Wrap, way: str) -> None:
    options: dict[str, Any] = {"settings": {"max_group_size": 2}, "summarizer": Says(), "embeddings": False}
    with MemorySystem(url, owner=owner, **options) as system:
        memory = filled(system, "lake")
        system.summarize_session("lake")
        verb = verbs(memory)
        assert len(verb.recall("holiday", 20, rank=1)) == 7
        for _ in range(3):  # The messages, the summaries that are left with nothing below them, those above.
            system.forget(1.0)
        for scope in ("conversation", "owner"):
            assert [hit.node.message.id for hit in verb.recall("holiday", 20, scope=scope)] == ["lake"]


def test_what_is_encrypted_is_found_in_its_conversation(url: str, owner: str, verbs: Wrap) -> None:
    options: dict[str, Any] = {"embeddings": WordEmbeddings(), "cipher": StreamCipher()}
    with MemorySystem(url, owner=owner, summarizer=Says(), **options) as system:
        memory = filled(system, "lake")
        system.summarize_session("lake")
        [hit] = verbs(memory).recall("holiday", rank=1)
        assert [unit.content for unit in verbs(system).unfold(hit)] == list(SAID)


def test_what_is_retrieved_are_messages(system: MemorySystem, verbs: Wrap) -> None:
    memory = filled(system, "lake", node_selector=lambda tree, message: None)
    system.summarize_session("lake")
    found = [message.content for message in verbs(memory).retrieve("holiday lake kite", 20)]
    assert found
    assert set(found) <= set(SAID)


def test_a_reranker_judges_summaries_too(system: MemorySystem, memory: ChatMemory, verbs: Wrap) -> None:
    class Longest:
        def rerank(self, query: str, texts: list[str]) -> list[float]:
            return [float(len(text)) for text in texts]

    system.summarize_session("lake")
    assert verbs(memory).recall("kite lake", 1, reranker=Longest())[0].rank == 1


def test_a_packed_summary_counts_and_adds_something(system: MemorySystem, verbs: Wrap, way: str) -> None:
    hidden = filled(system, "lake", window=lambda messages: [])
    system.summarize_session("lake")
    hits = verbs(hidden).recall("holiday kite", 20, max_tokens=1000)
    assert 1 in {hit.rank for hit in hits}
    shown = system.conversation("lake", window=lambda messages: messages)
    assert verbs(shown).recall("holiday kite", 20, max_tokens=1000) == []
    part = system.conversation("lake", window=lambda messages: messages[2:])
    assert [hit.rank for hit in verbs(part).recall("holiday", 20, rank=1, max_tokens=1000)] == [1]


def test_a_summary_of_what_was_forgotten_adds_something(system: MemorySystem, verbs: Wrap) -> None:
    memory = filled(system, "lake", window=lambda messages: messages)
    system.summarize_session("lake")
    assert verbs(memory).recall("holiday", 20, rank=1, max_tokens=1000) == []
    system.forget(1.0)
    assert texts(verbs(memory).recall("holiday", 20, rank=1, max_tokens=1000)) == [SUMMARY]


@settings(max_examples=20)
@given(st.integers(1, 200), st.integers(1, 12))
def test_no_budget_is_exceeded_by_summaries(room: int, n_results: int) -> None:
    with MemorySystem(embeddings=False, summarizer=Says(), settings={"max_group_size": 2}) as system:
        memory = filled(system, "lake", window=lambda messages: [])
        system.summarize_session("lake")
        hits = memory.recall("holiday kite boat", n_results, max_tokens=room)
        assert sum(count_tokens_approximately([n.message]) for hit in hits for n in hit.thread) <= room
        shown = [node.message.id for hit in hits for node in hit.thread]
        assert len(shown) == len(set(shown))


def test_what_covers_the_active_thread_alone_is_not_recalled_beside_it(
    system: MemorySystem, memory: ChatMemory
) -> None:
    system.summarize_session("lake")
    conversation = memory._conversation

    def elsewhere(path: Any) -> list[str]:
        found = run(
            recall_elsewhere(conversation, "holiday kite", path, 9, min_similarity=-1.0), system.runtime
        )
        return [one["role"] for one in found]

    assert elsewhere(memory.messages) == []
    assert "ai-summary" in elsewhere(memory.messages[2:])


def test_a_fence_says_what_a_summary_covers(system: MemorySystem, memory: ChatMemory) -> None:
    system.summarize_session("lake")
    [hit] = memory.recall("holiday", rank=1)
    line = fenced([recalled(hit)]).splitlines()[2]
    assert line == (
        '<message conversation="lake" role="ai-summary" covers="summary of 8 messages from 2026-03-01 to '
        '2026-03-08" time="2026-03-08T00:00:00+00:00">'
    )


def test_the_retriever_and_the_tool_find_them(system: MemorySystem, memory: ChatMemory) -> None:
    system.summarize_long_term_memory()
    found = ThreadMemRetriever(memory=system, k=20).invoke("holiday")
    ranks = {document.metadata["rank"]: document for document in found}
    assert set(ranks) == {0, 1, 2}
    assert (ranks[1].page_content, ranks[1].id) == (SUMMARY, "lake")
    assert "summary of 8 messages" in ranks[2].metadata["covers"]
    assert SUMMARY in recall_tool(memory).invoke({"query": "holiday"})


def test_flush_embeds_the_summaries_of_a_conversation(
    system: MemorySystem, memory: ChatMemory, verbs: Wrap
) -> None:
    system.summarize_session("lake")
    assert verbs(memory).flush() == len(SAID) + 1
    [hit] = verbs(memory).recall("holiday", rank=1, wait=False)
    assert hit.why.similarity is not None
