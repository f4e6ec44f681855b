"""Statistics: counts of one owner, sizes of the whole database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    LinearNodeSelector,
    LLMSummarizer,
    MemorySystem,
    ThreadMemMiddleware,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.common.usage import Used
from langchain_threadmem.engine.prompt_words import PromptWords
from langchain_threadmem.maintenance import sizes
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.statements import Statement

Wrap = Callable[[Any], Any]


def test_an_empty_memory_has_no_data(system: MemorySystem, verbs: Wrap) -> None:
    found = verbs(system).stats()
    assert (found.owner, found.conversations, found.messages, found.checkpoints) == (system.owner, 0, 0, 0)
    assert (found.summaries, found.vectors, found.items, found.usage) == (0, 0, 0, {})


def test_messages_are_counted_without_those_that_were_superseded(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("first")
    memory.append("one", "two")
    memory.edit(1, "One")
    system.conversation("second").append("three", "four")
    found = verbs(system).stats()
    # The answer to the old version is superseded too.
    assert (found.conversations, found.messages, system.verify().nodes) == (2, 3, 5)


def test_purged_messages_are_not_counted(system: MemorySystem, verbs: Wrap) -> None:
    system.conversation("first").extend(["one", "two", "three", "four"])
    removed = system.forget(0.5, purge=True).units
    assert verbs(system).stats().messages == 4 - removed < 4


def test_vectors_summaries_checkpoints_and_items_are_counted(system: MemorySystem, verbs: Wrap) -> None:
    system.conversation("first").append("Where do figs grow?", "In the south.")
    system.flush()
    vectors = verbs(system).stats().vectors
    system.summarize_session("first")
    ThreadMemStore(system).put(("a",), "b", {"c": 1})
    saver = ThreadMemSaver(system)
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
    found = verbs(system).stats()
    assert (vectors, found.summaries, found.checkpoints, found.items) == (2, 1, 1, 1)


def test_other_owners_are_counted_in_the_database_alone(url: str, owner: str, verbs: Wrap) -> None:
    with (
        MemorySystem(url, owner=owner, embeddings=False) as mine,
        MemorySystem(url, owner=f"{owner}-2", embeddings=False) as theirs,
    ):
        before = verbs(mine).stats()
        theirs.conversation("first").append("Hello", "Hi!")
        after = verbs(mine).stats()
    assert (after.conversations, after.messages) == (0, 0)
    assert after.database.owners == before.database.owners + 1


def test_the_bytes_of_every_table_are_measured(system: MemorySystem, verbs: Wrap) -> None:
    system.conversation("first").append("A long text. " * 10_000, "Hi!")
    system.conversation("first").recall("text")
    found = verbs(system).stats().database
    names = {name.removeprefix("threadmem_") for name in (*schema.metadata.tables, schema.LEXICON)}
    assert found.table_bytes.keys() == names
    assert list(found.table_bytes.values()) == sorted(found.table_bytes.values(), reverse=True)
    assert 1000 < found.table_bytes["node"] <= sum(found.table_bytes.values()) <= found.bytes
    assert not found.estimated


def test_without_dbstat_the_bytes_of_tables_are_estimated(
    monkeypatch: pytest.MonkeyPatch, verbs: Wrap
) -> None:
    monkeypatch.setattr(sizes, "_MEASURABLE", Statement.of(sqlite="SELECT 0", postgresql=""))
    with MemorySystem(embeddings=False) as system:
        system.conversation("first").append("x" * 10_000, "Hi!")
        found = verbs(system).stats().database
    assert found.estimated
    assert 10_000 < found.table_bytes["node"] < 11_000


def test_the_directory_of_chroma_is_measured(
    chroma: None, url: str, owner: str, tmp_path: Path, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=tmp_path / "index") as system:
        assert verbs(system).stats().database.index_bytes == 0
        system.conversation("first").append("Where do figs grow?", "In the south.")
        system.conversation("second").recall("figs", scope="owner")
        assert verbs(system).stats().database.index_bytes > 1000


def test_model_calls_are_part_of_the_statistics(system: MemorySystem, verbs: Wrap) -> None:
    model = FakeListChatModel(responses=['{"title": "T", "summary": "S."}'])
    memory = system.conversation("first", summarizer=LLMSummarizer(model))
    memory.append("one", "two")
    memory.summarize(2)
    assert verbs(system).stats().usage == {"summary": Used(1, 0, 0)}


ASKED = ("How do figs grow?", "And plums?", "And pears?")
COUNTED = PromptWords(3, 4 + 8 + 12, 4 + 8)
"""Each answer has two words; the second prompt begins with the first question, the third with three messages
more."""


def test_words_of_prompts_are_counted_with_those_that_began_an_earlier_prompt(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = system.conversation("talk")
    for number, question in enumerate(ASKED):
        memory.append(HumanMessage(question, id=f"h{number}"))
        assert verbs(memory).messages()[-1].text == question
        memory.append(AIMessage("In sun.", id=f"a{number}"))
    assert len(verbs(memory).messages()) == 6  # The thread is answered, so this is no prompt.
    assert verbs(system).stats().prompts == COUNTED


def graph(system: MemorySystem, model: Any) -> Any:
    builder = StateGraph(MessagesState).add_node("select", select_thread_node(system, LinearNodeSelector()))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    return builder.add_edge(START, "select").add_edge("select", "model").compile(checkpointer=InMemorySaver())


def chat(system: MemorySystem, model: Any) -> Any:
    return create_threaded_chat(model, system, selector=LinearNodeSelector(), checkpointer=InMemorySaver())


def agent(system: MemorySystem, model: Any) -> Any:
    memory = ThreadMemMiddleware(system, selector=LinearNodeSelector())
    return create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver())


@pytest.mark.parametrize("build", [graph, chat, agent])
def test_words_of_the_prompts_of_graphs_are_counted(
    system: MemorySystem, invoke: Callable[..., Any], build: Callable[[MemorySystem, Any], Any]
) -> None:
    built = build(system, FakeListChatModel(responses=["In sun."]))
    for question in ASKED:
        invoke(built, {"messages": [("user", question)]}, {"configurable": {"thread_id": "talk"}})
    assert system.stats().prompts == COUNTED


def test_a_memory_that_is_only_read_is_counted(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.conversation("first").append("Hello", "Hi!")
        expected = system.stats()
    with MemorySystem(url, owner=owner, embeddings=False, read_only=True) as system:
        found = verbs(system).stats()
    assert (found.messages, found.database.owners) == (2, expected.database.owners)
