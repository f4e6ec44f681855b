"""`erase` and `forget(purge=True)`: all traces of a text are removed, and nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from conftest import StreamCipher, WordEmbeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
)
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import (
    InputError,
    InvalidGraphStateError,
    PersistenceError,
    SessionNotFoundError,
    UnitNotFoundError,
)
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.langgraph.checkpoints.load import SegmentCache
from langchain_threadmem.maintenance.removal.tables import TABLES as MEMORY_TABLES
from langchain_threadmem.maintenance.repair import repair
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.tree.graph import nearest_remaining, spliced
from langchain_threadmem.tree.node import DecodedMessages

Wrap = Callable[[Any], Any]
ANY = (None, None)
DAY = datetime(2026, 5, 1, tzinfo=UTC)
TABLES = [entry.table.name for entry in MEMORY_TABLES]


def secret_of(owner: str) -> str:
    """A new word, since all tests share one PostgreSQL server."""
    return f"heron{owner.removesuffix('x').replace('-', '')[-20:]}7"  # No stem ends in a number.


@pytest.fixture
def secret(owner: str) -> str:
    return secret_of(owner)


def rows(system: MemorySystem, table: str) -> list[Any]:
    """Every row of a table, with its bytes as text."""
    every = Statement.of(**dict.fromkeys(("sqlite", "postgresql"), f"SELECT * FROM {table}"))
    found = system.runtime.database.read(lambda conn: conn.all(every))
    return sorted(repr([bytes(v) if isinstance(v, memoryview) else v for v in row]) for row in found)


def dump(system: MemorySystem) -> dict[str, list[Any]]:
    return {table: rows(system, table) for table in TABLES}


def holding(system: MemorySystem) -> list[str]:
    """The tables that contain the secret, including the lexicon."""
    text = secret_of(system.owner)
    found = [table for table, lines in dump(system).items() if any(text in line for line in lines)]
    words = Statement.of(
        sqlite="SELECT count(*) FROM threadmem_lexicon WHERE threadmem_lexicon MATCH ?",
        postgresql="SELECT count(*) FROM threadmem_lexicon WHERE words @@ %s::tsquery",
    )
    held = system.runtime.database.read(lambda conn: conn.all(words, text))
    return found + (["lexicon"] if held[0][0] else [])


def raw(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


@pytest.fixture
def filled(system: MemorySystem, secret: str) -> MemorySystem:
    """Two conversations with summaries of all ranks, words and vectors; the first contains the secret."""
    private = system.conversation("private")
    private.append(f"My code is {secret}.", f"I keep {secret} to myself.")
    private.append("Thank you.", "Any time.")
    system.conversation("public").append("How do I bake bread?", "With flour and time.")
    system.summarize_long_term_memory()
    system.query(secret, search_range=ANY)
    return system


def test_every_table_is_a_part_of_somebodys_memory() -> None:
    named = {entry.table.name for entry in MEMORY_TABLES}
    assert named == set(schema.metadata.tables) - {schema.migration.name}


@pytest.mark.usefixtures("chroma")
def test_a_conversation_is_erased_and_the_receipt_says_what(
    filled: MemorySystem, verbs: Wrap, secret: str
) -> None:
    assert set(holding(filled)) >= {"threadmem_node", "lexicon"}
    receipt = verbs(filled).erase(conversation="private")
    assert receipt.ok
    assert receipt.left == ()
    assert receipt.conversations == ("private",)
    assert receipt.rows["node"] == receipt.messages == 6  # With its own summary and the topmost.
    assert receipt.rows["embedding"] == receipt.messages
    assert receipt.rows["summary"] == 2
    assert receipt.rows["tree"] == 2
    assert holding(filled) == []
    assert filled.conversations() == ["public"]
    assert verbs(filled).check_erased(receipt) == receipt
    assert (
        verbs(filled).query(secret, search_range=ANY, k_limit=99, filters={"content": {"$contains": secret}})
        == []
    )
    index = filled.runtime.get(Indexes).index()
    assert index is None or (receipt.vectors == 6 and index.count() == 3)
    assert filled.verify().ok


def test_what_is_not_erased_stays_row_for_row(
    filled: MemorySystem, url: str, owner: str, verbs: Wrap, secret: str
) -> None:
    with MemorySystem(url, owner=f"{owner}x", embeddings=WordEmbeddings()) as other:
        other.conversation("private").append(f"Mine is {secret} too.", "Noted.")
        other.summarize_long_term_memory()
        other.query("mine", search_range=ANY)
        before = {
            table: [line for line in lines if f"{owner}x" in line] for table, lines in dump(other).items()
        }
        bodies = {line for line in rows(other, "threadmem_node") if "too" in line or "bread" in line}
        public = filled.conversation("public").history
        verbs(filled).erase(conversation="private")
        assert filled.conversation("public").history == public
        after = {
            table: [line for line in lines if f"{owner}x" in line] for table, lines in dump(other).items()
        }
        assert after == before
        assert bodies <= set(rows(other, "threadmem_node"))
        assert len(other.query("mine", search_range=ANY, k_limit=1)) == 1
        verbs(filled).erase()
        assert other.conversation("private").messages[0].content == f"Mine is {secret} too."
        assert other.verify().ok


def test_new_summaries_are_made_of_what_is_left(filled: MemorySystem, verbs: Wrap) -> None:
    verbs(filled).erase(conversation="private")
    root = filled.summarize_long_term_memory()
    assert root is not None
    assert root.children_ids == ("public",)
    assert [unit.content for unit in filled.unfold(root)] == ["How do I bake bread?", "With flour and time."]


def test_an_owner_is_erased_with_the_store(
    filled: MemorySystem, owner: str, verbs: Wrap, secret: str
) -> None:
    store = ThreadMemStore(filled, index=True)
    store.put(("facts",), "code", {"text": secret})
    receipt = verbs(filled).erase()
    assert receipt.ok
    assert (receipt.rows["item"], receipt.rows["item_vector"], receipt.rows["namespace"]) == (1, 1, 1)
    assert receipt.rows["visit_round"] == 1
    assert sorted(receipt.conversations) == ["private", "public"]
    assert holding(filled) == []
    assert not any(f"'{owner}'" in line for lines in dump(filled).values() for line in lines)
    assert store.search(("facts",)) == []
    filled.conversation("new").append("Hello again.", "Hello!")
    assert len(filled.query("hello", search_range=ANY)) == 1


def test_a_memory_object_goes_on_after_its_conversation_was_erased(filled: MemorySystem, verbs: Wrap) -> None:
    memory = filled.conversation("private")
    assert memory.messages
    verbs(filled).erase(conversation="private")
    assert verbs(memory).messages() == []
    verbs(memory).append("A new beginning.", "Yes.")
    assert [node.id for node in memory.history] == [1, 2]
    assert filled.conversations() == ["public", "private"]


def test_a_conversation_that_is_old_as_a_whole_goes_on(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("c")
    memory.append("old", "older")
    assert verbs(system).erase(before=datetime.now(UTC) + timedelta(days=1)).ok
    assert memory.history == []
    assert [node.id for node in verbs(memory).append("new", "newer")] == [1, 2]


def test_nothing_is_in_the_file_either(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "deep" / "memory.db"
    path.parent.mkdir()
    with MemorySystem(path, owner="ada", embeddings=WordEmbeddings()) as system:
        for number in range(60):
            name = f"talk{number % 3}"
            system.conversation(name).append(f"Round {number}: {secret} and more.", "Noted. " * 30)
        system.conversation("talk0").edit(1, f"No, {secret} it was.")
        system.conversation("kept").append("The weather is fine.", "It is.")
        system.summarize_long_term_memory()
        system.query(secret, search_range=ANY)
        system.forget(0.3)
        assert secret.encode() in raw(path)
        for name in ("talk0", "talk1", "talk2"):
            receipt = system.erase(conversation=name)
        assert receipt.ok
        assert receipt.scrubbed
        assert secret.encode() not in raw(path)
        assert b"weather" in raw(path)
    assert secret.encode() not in raw(path)


def test_a_receipt_says_that_somebody_still_reads_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, owner="ada", embeddings=False) as system:
        system.conversation("c").append("heron", "noted")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN").execute("SELECT count(*) FROM threadmem_node").fetchone()
        receipt = system.erase(conversation="c")
        assert receipt.ok
        assert not receipt.scrubbed
        reader.close()
        assert system.erase(conversation="c").scrubbed
        assert b"heron" not in raw(path)


def test_the_file_holds_nothing_older_either(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "deep" / "memory.db"
    path.parent.mkdir()
    with MemorySystem(path, owner="ada", embeddings=WordEmbeddings()) as system:
        texts = [f"{secret} {number}" if number < 8 else f"later {number}" for number in range(12)]
        times = [DAY + timedelta(hours=number) for number in range(12)]
        system.conversation("talk").extend(texts, times)
        system.summarize_long_term_memory()
        system.query(secret, search_range=ANY)
        receipt = system.erase(before=DAY + timedelta(hours=8))
        assert receipt.ok
        assert receipt.scrubbed
        assert secret.encode() not in raw(path)


def test_what_was_said_before_a_time_is_erased(filled: MemorySystem, verbs: Wrap, secret: str) -> None:
    conversation = filled.conversation("private")
    conversation.reset()
    times = [DAY + timedelta(days=number) for number in range(5)]
    conversation.extend([f"{secret} one", f"{secret} two", "three", "four", "five"], times)
    filled.summarize_long_term_memory()
    filled.query("three", search_range=ANY)
    receipt = verbs(filled).erase(before=DAY + timedelta(days=2))
    assert receipt.ok
    assert receipt.messages == 2 + 2  # With the summaries of the conversation and of all.
    assert receipt.before == DAY + timedelta(days=2)
    assert receipt.conversations == ("private",)
    assert holding(filled) == []
    history = verbs(conversation).history()
    assert [(node.id, node.parent_id, node.message.content) for node in history] == [
        (3, None, "three"),
        (4, 3, "four"),
        (5, 4, "five"),
    ]
    assert [message.content for message in verbs(conversation).messages()] == ["three", "four", "five"]
    assert {hit.node.id for hit in verbs(conversation).recall("three four five")} == {3, 4, 5}
    assert filled.verify().ok
    [added, _] = verbs(conversation).append("six", "seven")
    assert (added.id, added.parent_id) == (6, 5)
    root = filled.summarize_session("private")
    assert root is not None
    assert [unit.content for unit in filled.unfold(root)] == ["three", "four", "five", "six", "seven"]
    assert ChatMemory(system=filled, conversation_id="private").export("json").count('"role"') == 5
    assert verbs(filled).erase(before=DAY + timedelta(days=2)).conversations == ()


def test_other_conversations_keep_what_is_older(filled: MemorySystem, verbs: Wrap) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    receipt = verbs(filled).erase(conversation="private", before=later)
    assert receipt.ok
    assert receipt.conversations == ("private",)
    assert holding(filled) == []
    assert len(filled.conversation("public").history) == 2


def test_branches_and_versions_are_spliced(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("tree")
    memory.extend([("user", "a"), ("ai", "b")], [DAY, DAY])
    memory.append("c", "d")
    memory.checkout(2)
    memory.append("e", "f")
    memory.edit(3, "c again")
    memory.checkout(6)
    assert verbs(system).erase(before=DAY + timedelta(days=1)).ok
    nodes = {node.id: node for node in memory.history}
    assert sorted(nodes) == [3, 4, 5, 6, 7]
    assert {node.id: node.parent_id for node in nodes.values()} == {3: None, 4: 3, 5: None, 6: 5, 7: None}
    assert memory.tip.id == 6
    assert [message.content for message in memory.messages] == ["e", "f"]
    assert system.verify().ok
    assert [node.id for node in verbs(memory).append("g", "h")] == [8, 9]
    assert memory.thread(9)[0].id == 5


def test_a_calls_results_go_with_it(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("tools")
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    messages = [HumanMessage("look"), call, ToolMessage("seen", tool_call_id="c1"), AIMessage("I saw it.")]
    memory.extend(messages, [DAY, DAY, DAY + timedelta(days=2), DAY + timedelta(days=2)])
    verbs(system).erase(before=DAY + timedelta(days=1))
    assert [node.message.content for node in memory.history] == ["I saw it."]


def test_numbers_are_never_given_again(system: MemorySystem) -> None:
    memory = system.conversation("c")
    memory.extend(["later", "older", "oldest"], [DAY + timedelta(days=2), DAY, DAY])
    assert system.erase(before=DAY + timedelta(days=1)).ok
    assert [node.id for node in memory.history] == [1]
    [added] = memory.extend(["new"])
    assert (added.id, added.parent_id) == (4, 1)
    assert system.verify().ok


@pytest.mark.parametrize(
    "options", [{"before": "yesterday"}, {"before": 5}, {"conversation": 7}, {"conversation": ""}]
)
def test_what_means_nothing_erases_nothing(filled: MemorySystem, verbs: Wrap, options: Any) -> None:
    before = dump(filled)
    with pytest.raises(InputError):
        verbs(filled).erase(**options)
    assert dump(filled) == before


def test_an_unknown_conversation_erases_nothing(filled: MemorySystem, verbs: Wrap) -> None:
    filled.get_context()  # Writes down the visits that are not yet.
    before = dump(filled)
    receipt = verbs(filled).erase(conversation="priv%")
    assert (receipt.messages, receipt.conversations, receipt.ok) == (0, (), True)
    assert dump(filled) == before


@pytest.mark.parametrize(
    ("verb", "arguments"), [("history", []), ("messages", []), ("append", ["Hello"]), ("recall", ["Hello"])]
)
def test_a_conversation_that_another_system_has_erased_is_named_and_can_begin_again(
    system: MemorySystem, url: str, owner: str, verbs: Wrap, verb: str, arguments: list[str]
) -> None:
    memory = system.conversation("talk")
    memory.append("Hello", "Hi!")
    with MemorySystem(url, owner=owner, embeddings=False) as other:
        other.erase(conversation="talk")
    with pytest.raises(SessionNotFoundError, match="get it again"):
        getattr(verbs(memory), verb)(*arguments)
    again = system.conversation("talk")
    again.append("Hello again")
    assert len(again.history) == 1


def test_a_receipt_of_another_owner_is_refused(filled: MemorySystem, url: str, owner: str) -> None:
    receipt = filled.erase(conversation="private")
    with (
        MemorySystem(url, owner=f"{owner}x", embeddings=False) as other,
        pytest.raises(InputError, match=owner),
    ):
        other.check_erased(receipt)


def test_a_receipt_tells_what_came_back(filled: MemorySystem, verbs: Wrap, secret: str) -> None:
    receipt = verbs(filled).erase(conversation="private")
    filled.conversation("private").append(secret, "again")
    assert not verbs(filled).check_erased(receipt).ok


def chroma_bytes(system: MemorySystem, seen: list[bytes]) -> int:
    """The number of vectors found in Chroma's files."""
    place = system.runtime.database.path
    assert place is not None
    files = [
        file.read_bytes() for file in place.with_name(f"{place.name}.chroma").rglob("*") if file.is_file()
    ]
    return sum(any(vector in data for data in files) for vector in seen)


def vectors_of(system: MemorySystem) -> list[bytes]:
    """Some bytes of each vector in the index, as Chroma stores them."""
    index: Any = system.runtime.get(Indexes).index()
    held = index._collection.get(include=["embeddings"])["embeddings"]
    return [np.asarray(vector, np.float32)[:16].tobytes() for vector in held]


@pytest.fixture
def indexed(tmp_path: Path, chroma: None) -> Iterator[MemorySystem]:
    """Enough vectors that Chroma writes them to its files."""
    (tmp_path / "deep").mkdir()
    with MemorySystem(tmp_path / "deep" / "memory.db", owner="ada", embeddings=WordEmbeddings()) as system:
        system.conversation("kept").append("The weather is fine.", "It is.")
        system.conversation("doomed").extend(f"word{n} and {n}" for n in range(1_500))
        system.flush()
        system.reindex()
        yield system


def test_no_byte_of_an_erased_vector_is_in_the_files_of_chroma(indexed: MemorySystem, verbs: Wrap) -> None:
    seen = vectors_of(indexed)
    assert chroma_bytes(indexed, seen) > 100
    receipt = verbs(indexed).erase(conversation="doomed")
    assert (receipt.ok, receipt.scrubbed, receipt.vectors) == (True, True, 1_500)
    assert chroma_bytes(indexed, seen) == 0
    assert indexed.query("weather", search_range=ANY, k_limit=1)
    assert indexed.reindex() == 2
    assert indexed.verify().ok


def test_scrubbing_clears_what_a_reset_leaves(indexed: MemorySystem, verbs: Wrap) -> None:
    seen = vectors_of(indexed)
    indexed.conversation("doomed").reset()
    path = indexed.runtime.database.path
    assert path is not None
    assert chroma_bytes(indexed, seen) > 100
    assert b"word77" in raw(path)
    assert verbs(indexed).scrub().ok
    assert chroma_bytes(indexed, seen) == 0
    assert b"word77" not in raw(path)
    assert b"weather" in raw(path)


def test_vectors_of_another_model_are_erased_too(indexed: MemorySystem) -> None:
    seen = vectors_of(indexed)
    path = indexed.runtime.database.path
    indexed.close()
    with MemorySystem(path, owner="ada", embeddings=False) as system:
        receipt = system.erase(conversation="doomed")
        assert (receipt.scrubbed, receipt.vectors) == (True, 1_500)
        assert chroma_bytes(system, seen) == 0


def test_a_server_of_chroma_keeps_its_files_to_itself_and_the_receipt_says_so(
    url: str, owner: str, verbs: Wrap, chroma: None, tmp_path: Path
) -> None:
    client = chromadb.PersistentClient(str(tmp_path / "vectors"))
    client.get_settings = lambda: Settings(chroma_server_host="far.example")  # type: ignore[method-assign]
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), vectors=client) as system:
        system.conversation("c").append("heron", "noted")
        system.query("heron", search_range=ANY)
        receipt = verbs(system).erase(conversation="c")
        assert (receipt.ok, receipt.vectors, receipt.scrubbed) == (True, 2, False)
        assert any("'far.example'" in why for why in receipt.unscrubbed)


def test_a_server_of_databases_keeps_its_files_to_itself_and_says_so(
    filled: MemorySystem, verbs: Wrap
) -> None:
    server = filled.runtime.database.dialect == "postgresql"
    assert [("server" in why) for why in verbs(filled).scrub().unscrubbed] == [True] * server


def test_a_full_disk_leaves_the_receipt_and_a_later_call_finishes(
    tmp_path: Path, secret: str, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "memory.db"
    path.parent.mkdir()
    with MemorySystem(path, owner="ada", embeddings=False) as system:
        system.conversation("c").append(secret, "noted")

        def full() -> str:
            raise PersistenceError("no space to write it: database or disk is full")

        monkeypatch.setattr(system.runtime.database, "scrub", full)
        receipt = verbs(system).erase(conversation="c")
        assert (receipt.ok, receipt.messages, receipt.scrubbed) == (True, 2, False)
        assert "disk is full" in receipt.unscrubbed[0]
        monkeypatch.undo()
        assert verbs(system).scrub().ok
        assert secret.encode() not in raw(path)


def test_the_names_of_emptied_namespaces_are_erased(system: MemorySystem, verbs: Wrap, secret: str) -> None:
    store = ThreadMemStore(system)
    store.put((secret,), "code", {"text": "x"})
    store.put(("kept",), "code", {"text": "x"})
    between = datetime.now(UTC)
    store.put(("kept",), "later", {"text": "y"})
    receipt = verbs(system).erase(before=between)
    assert (receipt.rows["item"], receipt.rows["namespace"]) == (2, 1)
    assert holding(system) == []
    assert store.list_namespaces() == [("kept",)]


def graph(system: MemorySystem) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node(
        "answer", lambda state: {"messages": [AIMessage(f"echo {state['messages'][-1].content}")]}
    )
    builder.add_edge(START, "answer").add_edge("answer", END)
    return builder.compile(checkpointer=ThreadMemSaver(system))


def test_checkpoints_of_an_erased_conversation_go_with_it(
    system: MemorySystem, verbs: Wrap, secret: str
) -> None:
    app, config = graph(system), {"configurable": {"thread_id": "private"}}
    app.invoke({"messages": [("user", secret)]}, config)
    receipt = verbs(system).erase(conversation="private")
    assert receipt.ok
    assert receipt.rows["checkpoint"] > 0
    assert holding(system) == []
    assert list(app.get_state_history(config)) == []
    assert not system.runtime.get(DecodedMessages).bodies()
    assert not len(system.runtime.get(SegmentCache).segments)
    state = app.invoke({"messages": [("user", "hello")]}, config)
    assert [message.content for message in state["messages"]] == ["hello", "echo hello"]


def test_checkpoints_made_later_show_what_is_left(system: MemorySystem, verbs: Wrap, secret: str) -> None:
    app, config = graph(system), {"configurable": {"thread_id": "talk"}}
    app.invoke({"messages": [("user", secret)]}, config)
    between = datetime.now(UTC)
    app.invoke({"messages": [("user", "hello")]}, config)
    receipt = verbs(system).erase(before=between)
    assert receipt.ok
    assert receipt.rows["checkpoint"] > 0
    assert holding(system) == []
    shown = [message.content for message in app.get_state(config).values["messages"]]
    assert shown == ["hello", "echo hello"]
    state = app.invoke({"messages": [("user", "bye")]}, config)
    assert [message.content for message in state["messages"]] == ["hello", "echo hello", "bye", "echo bye"]
    assert system.verify().ok


def test_purged_units_leave_history_too(filled: MemorySystem, verbs: Wrap) -> None:
    kept = [
        filled.conversation("private").history[3].message.id,
        *(unit.id for unit in filled.unfold("public")),
    ]
    filled.query("time", filters={"id": {"$in": kept}}, search_range=ANY)
    done = verbs(filled).forget(0.5, purge=True)
    assert (done.units, done.purged) == (3, True)
    assert holding(filled) == []
    with pytest.raises(UnitNotFoundError):
        filled.unit("private")
    filled.summarize_long_term_memory()
    assert filled.unit("private").children_ids == (kept[0],)
    assert holding(filled) == []
    [left] = filled.conversation("private").history
    assert (left.id, left.parent_id, left.state, left.message.content) == (4, None, State.LIVE, "Any time.")
    assert filled.verify().ok


def test_purging_everything_leaves_an_empty_conversation(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("c")
    memory.append("one", "two")
    assert verbs(system).forget(1, purge=True).units == 2
    assert memory.history == []
    assert [node.id for node in memory.append("three", "four")] == [1, 2]
    assert system.verify().ok


def test_splicing_a_chain() -> None:
    parents = {1: None, 2: 1, 3: 2, 4: 3, 5: 2}
    assert spliced(parents, {1, 2, 3}) == {4: None, 5: None}
    assert nearest_remaining(4, parents, {4, 3}) == 2
    assert nearest_remaining(None, parents, {4}) is None


def test_many_may_write_while_something_is_erased(url: str, owner: str, secret: str) -> None:
    async def play() -> None:
        async with MemorySystem(url, owner=owner, embeddings=False) as system:
            doomed = system.conversation("doomed")
            await doomed.aappend(secret, "noted")
            others = [system.conversation(f"c{number}") for number in range(4)]
            turns = [other.aappend(f"turn {n}", "ok") for other in others for n in range(5)]
            *_, receipt = await asyncio.gather(*turns, system.aerase(conversation="doomed"))
            assert receipt.ok
            assert [len(await other.ahistory()) for other in others] == [10] * 4

    asyncio.run(play())


def test_an_encrypted_memory_is_erased_in_part_and_in_whole(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=StreamCipher()) as system:
        memory = system.conversation("c")
        memory.extend(["one", "two", "three"], [DAY, DAY, DAY + timedelta(days=2)])
        assert memory.recall("two")
        assert verbs(system).erase(before=DAY + timedelta(days=1)).ok
        assert [node.message.content for node in verbs(memory).history()] == ["three"]
        assert {hit.node.id for hit in memory.recall("one two three")} == {3}
        assert verbs(system).forget(1).units == 1
        assert memory.recall("three") == []
        assert verbs(system).erase(conversation="c").ok
        assert memory.history == []


@pytest.mark.parametrize(("chosen", "parent"), [(6, 2), (4, 2), (2, 2)])
def test_a_turn_continues_the_nearest_message_left_if_its_parent_is_erased_meanwhile(
    system: MemorySystem, verbs: Wrap, chosen: int, parent: int
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def selector(tree: Any, message: Any) -> int:
        system.erase(before=start)
        return chosen

    memory = system.conversation("c", node_selector=selector)
    times = [start, start, *[start - timedelta(days=1)] * 4]
    memory.extend([("user", "a"), ("ai", "b"), ("user", "c"), ("ai", "d"), ("user", "e"), ("ai", "f")], times)
    verbs(memory).append("g", "h")
    assert [(node.message.content, node.parent_id) for node in memory.history] == [
        ("a", None),
        ("b", 1),
        ("g", parent),
        ("h", 7),
    ]
    assert system.verify()


EMPTYING: dict[str, Callable[[MemorySystem], Any]] = {
    "time": lambda system: system.erase(before=datetime.now(UTC) + timedelta(days=1)),
    "conversation": lambda system: system.erase(conversation="c"),
    "reset": lambda system: system.conversation("c").reset(),
}


@pytest.fixture(params=EMPTYING)
def emptied_by(request: pytest.FixtureRequest, system: MemorySystem) -> Callable[[int], Any]:
    """A selector of node 2, which first empties the conversation "c" and stores a number of new turns."""

    def selector_of(turns: int) -> Any:
        def select(tree: Any, message: Any) -> int | None:
            if not tree.turn_ends():
                return None
            EMPTYING[request.param](system)
            for n in range(turns):
                system.conversation("c").append(f"question {n}", f"answer {n}")
            return 2

        return select

    return selector_of


@pytest.mark.parametrize("turns", [0, 2])
def test_a_turn_begins_a_thread_if_its_conversation_is_emptied_while_its_parent_is_chosen(
    system: MemorySystem, verbs: Wrap, emptied_by: Callable[[int], Any], turns: int
) -> None:
    memory = system.conversation("c", node_selector=emptied_by(turns))
    memory.append("a", "b")
    verbs(memory).append("c", "d")
    *_, question, answer = memory.history
    assert (question.message.content, question.parent_id, question.id) == ("c", None, 2 * turns + 1)
    assert (answer.message.content, answer.parent_id) == ("d", question.id)
    assert system.verify().ok


@pytest.mark.parametrize("turns", [0, 2])
def test_a_message_of_a_graph_begins_a_thread_if_its_conversation_is_emptied_meanwhile(
    system: MemorySystem, invoke: Callable[..., Any], emptied_by: Callable[[int], Any], turns: int
) -> None:
    model = FakeListChatModel(responses=["b", "d"])
    chat = create_threaded_chat(model, system, selector=emptied_by(turns), conversation_id="c")
    invoke(chat, {"messages": [HumanMessage("a", id="h1")]})
    invoke(chat, {"messages": [HumanMessage("c", id="h2")]})
    *_, question, answer = system.conversation("c").history
    assert (question.message.content, question.parent_id, question.id) == ("c", None, 2 * turns + 1)
    assert (answer.message.content, answer.parent_id) == ("d", question.id)
    assert system.verify().ok


@pytest.mark.parametrize("turns", [0, 2])
def test_a_turn_of_a_chat_history_begins_a_thread_if_its_conversation_is_emptied_meanwhile(
    system: MemorySystem, turns: int
) -> None:
    history = ThreadMemChatMessageHistory("c", system)
    history.add_messages([HumanMessage("a"), AIMessage("b")])
    assert len(history.messages) == 2
    system.conversation("c").reset()
    for n in range(turns):
        system.conversation("c").append(f"question {n}", f"answer {n}")
    history.add_messages([HumanMessage("c"), AIMessage("d")])
    assert [node.parent_id for node in system.conversation("c").history][-2:] == [None, 2 * turns + 1]


@pytest.mark.parametrize(("purged", "expected"), [([3, 4], 2), ([1, 2, 3, 4], None)])
def test_repair_moves_what_hangs_below_a_purged_message_to_the_nearest_message_left(
    system: MemorySystem, purged: list[int], expected: int | None
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    memory = system.conversation("c")
    times = [start - timedelta(days=1) if number in purged else start for number in range(1, 7)]
    memory.extend([("user", "a"), ("ai", "b"), ("user", "c"), ("ai", "d"), ("user", "e"), ("ai", "f")], times)
    system.erase(before=start)
    # An append that raced with the purge of its parent stored this link in earlier versions.
    hang = "UPDATE threadmem_node SET parent = 4 WHERE seq = 5 AND tree IN (SELECT id FROM threadmem_tree"
    statement = Statement.of(sqlite=f"{hang} WHERE owner = ?)", postgresql=f"{hang} WHERE owner = %s)")
    system.runtime.database.write(lambda conn: conn.run(statement, system.owner))
    assert system.verify().problems == ("conversation 'c': node 5 continues node 4, which does not exist",)
    with pytest.raises(InvalidGraphStateError):
        memory.threads()
    assert run(repair(system.runtime), system.runtime) == [
        "1 message below a purged message attached to the nearest one left"
    ]
    assert system.verify().ok
    assert [node.parent_id for node in memory.history][-2:] == [expected, 5]
    assert [node.id for node in memory.threads()[0]][-2:] == [5, 6]
    assert run(repair(system.runtime), system.runtime) == []
