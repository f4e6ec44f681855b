"""What was deleted is in no row, in no read and, after `scrub`, in no byte of the file.

The deleted word is also in everything that is written from messages: summaries of every rank, drafts,
summaries of single messages, reasons of places, titles, short-term memory, and what another thread recalled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.base import empty_checkpoint

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemSaver,
    create_threaded_chat,
)
from langchain_threadmem.errors import SessionNotFoundError
from langchain_threadmem.formats.exporters.formats import SUFFIXES
from langchain_threadmem.langchain.tools import forget_tool
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.summarizers import CONTEXT
from langchain_threadmem.tree.node import MessageSummary

ANY = (None, None)
PRIVATE, LATER, GRAPH = "private", "later", "graph"


@pytest.fixture
def secret(owner: str) -> str:
    """A word of this test alone, since all tests share one PostgreSQL server."""
    return f"heron{owner.removeprefix('owner-').replace('-', '')}7"


class Quoting:
    """Quotes what it summarises, and the summary before."""

    left = 1000

    def summarize(self, message: BaseMessage) -> MessageSummary | None:
        self.left -= 1
        if self.left < 0:
            return None
        text = f"{message.text} {message.additional_kwargs.get(CONTEXT, '')}"
        return MessageSummary(title=text[:200], summary=text)


def quoting_selector(tree: Any, message: BaseMessage) -> int | None:
    """Continues the last turn, with a reason and a title that quote all turns."""
    ends = tree.turn_ends()
    tree.reason = " ".join(end.human for end in ends)
    tree.chances = [(ends[-1].id, 0.9), (None, 0.1)] if ends else []
    return ends[-1].id if ends else None


@pytest.fixture
def system(url: str, owner: str, secret: str) -> Iterator[MemorySystem]:
    """A memory whose conversation "private" contains the secret, as does all that was written from it."""
    summarizer = Quoting()
    with MemorySystem(
        url,
        owner=owner,
        embeddings=WordEmbeddings(),
        summarizer=summarizer,
        settings={"max_group_size": 2},
    ) as opened:
        opened.enable_stm()
        private = opened.conversation(PRIVATE, node_selector=quoting_selector, summarizer=summarizer)
        private.append(f"My code is {secret}.", f"I keep {secret} to myself.")
        private.append("Thank you.", "Any time.")
        private.edit(1, f"My new code is {secret}.")
        moved, _ = private.append(f"And {secret} once more.", f"Yes, {secret}.")
        private.place(moved.id, None)
        private.append("What is flour?", "Ground grain.")
        private.summarize()
        opened.conversation(LATER).append("How do I bake bread?", "With flour and time.")
        model = FakeListChatModel(responses=["Yes.", "No."])
        chat = create_threaded_chat(
            model, opened, recall=4, scope="owner", min_similarity=-1.0, checkpointer=ThreadMemSaver(opened)
        )
        state = chat.invoke(
            {"messages": [("user", f"What was my code? {secret[:5]}")]},
            {"configurable": {"thread_id": GRAPH}},
        )
        assert secret in str(state["recalled"])
        opened.summarize_long_term_memory()
        opened.conversation(LATER).append("How long?", "An hour.")
        summarizer.left = 3  # The summaries of the session, and one of the two above it: a draft.
        opened.summarize_long_term_memory()
        summarizer.left = 1000
        assert opened.query(f"code {secret}", search_range=ANY)
        assert set(holding(opened, secret)) >= {
            f"threadmem_{name}"
            for name in ("node", "message_summary", "placement", "summary_draft", "document")
        }
        yield opened


TABLES = Statement.of(
    # The table of FTS5 returns no rows, and its segments contain the words of removed entries until `scrub`.
    sqlite="SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'threadmem_lexicon%'",
    postgresql="SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
)


def holding(system: MemorySystem, secret: str) -> list[str]:
    """The tables with a row that contains the secret in a text or in a binary value."""

    def rows(table: str) -> list[Any]:
        hexed = secret.encode().hex()
        statement = Statement.of(
            sqlite=f'SELECT * FROM "{table}"',
            # A binary value is shown in hexadecimal digits.
            postgresql=f"SELECT t::text FROM \"{table}\" t WHERE t::text ~ '{secret}|{hexed}'",
        )
        return system.runtime.database.read(lambda conn: conn.all(statement))

    tables = [row[0] for row in system.runtime.database.read(lambda conn: conn.all(TABLES))]
    if system.runtime.database.dialect == "postgresql":
        return [table for table in tables if rows(table)]
    return [table for table in tables if secret in repr(rows(table))]


def said(system: MemorySystem, secret: str) -> str:
    """What all reading methods return for a question about the secret."""
    found: list[Any] = [
        system.conversations(),
        system.list_conversations(archived="both"),
        system.get_context(99),
    ]
    for text in (secret, "code", "bread"):
        for options in ({}, {"long_term_only": True}, {"short_term_only": True}):
            found += system.query(text, search_range=ANY, k_limit=99, **options)
    for name in (PRIVATE, LATER, GRAPH):
        memory = ChatMemory(system=system, conversation_id=name)
        found += [memory.messages, memory.history, memory.threads(), memory.list_threads()]
        found += memory.recall(f"code {secret}", n_results=99, include_superseded=True)
        found += memory.recall(f"code {secret}", n_results=99, scope="owner")
        found += [memory.export(format) for format in SUFFIXES if format != "html" and memory.history]
        found += system.unfold(name) if memory.history and name in summarised(system) else []
        found += list(ThreadMemSaver(system).list({"configurable": {"thread_id": name}}))
    return repr(found)


def summarised(system: MemorySystem) -> set[str]:
    return {info.id for info in system.list_conversations() if info.summary}


def purge_messages(system: MemorySystem, secret: str) -> None:
    tool = forget_tool(system, confirm=False, purge=True, conversation_id=PRIVATE)
    for node in ChatMemory(system=system, conversation_id=PRIVATE).history:
        if secret in node.message.text and node.state.label == "live":
            assert "orgotten" in str(tool.invoke({"message": node.id}))


Call = Callable[..., Any]
DELETING: dict[str, Callable[[MemorySystem, Call, str], Any]] = {
    "delete_thread": lambda system, call, _: call(ThreadMemSaver(system), "delete_thread", PRIVATE),
    "prune": lambda system, call, _: call(ThreadMemSaver(system), "prune", [PRIVATE], strategy="delete"),
    "reset": lambda system, call, _: call(system.conversation(PRIVATE), "reset"),
    "clear": lambda system, call, _: call(ThreadMemChatMessageHistory(PRIVATE, system), "clear"),
    "remove_session": lambda system, call, _: call(system, "remove_session", PRIVATE),
    "erase": lambda system, call, _: call(system, "erase", conversation=PRIVATE),
    "erase before": lambda system, call, _: call(
        system, "erase", before=datetime.now(UTC) + timedelta(days=1), conversation=PRIVATE
    ),
    "purge all": lambda system, call, _: call(system, "forget", 1, purge=True),
    "purge messages": lambda system, _, secret: purge_messages(system, secret),
}


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    """Calls the sync or the async method of an object."""
    if request.param == "sync":
        yield lambda holder, verb, *given, **options: getattr(holder, verb)(*given, **options)
        return
    with asyncio.Runner() as runner:
        yield lambda holder, verb, *given, **options: runner.run(
            getattr(holder, f"a{verb}")(*given, **options)
        )


@pytest.mark.parametrize("deleting", DELETING)
def test_deleted_text_is_in_no_row_in_no_read_and_in_no_byte(
    system: MemorySystem, call: Call, secret: str, deleting: str, tmp_path: Path
) -> None:
    DELETING[deleting](system, call, secret)
    assert holding(system, secret) == []
    assert secret not in said(system, secret).replace(f"code {secret}", "")
    assert system.verify().ok
    system.summarize_long_term_memory()
    assert holding(system, secret) == []
    call(system, "scrub")
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.parametrize("way", ["purge", "erase before"])
def test_a_deleted_message_leaves_the_checkpoints_of_its_conversation(
    url: str, owner: str, secret: str, call: Call, way: str
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        model = FakeListChatModel(responses=[f"I keep {secret}.", "Good.", "And now?"])
        saver = ThreadMemSaver(system)
        system.enable_stm()
        chat = create_threaded_chat(model, system, selector=quoting_selector, recall=4, checkpointer=saver)
        config: Any = {"configurable": {"thread_id": PRIVATE}}
        chat.invoke({"messages": [("user", f"My code is {secret}.")]}, config)
        between = datetime.now(UTC)
        chat.invoke({"messages": [("user", "Thank you.")]}, config)
        assert {"threadmem_blob", "threadmem_write"} <= set(holding(system, secret))
        if way == "purge":
            purge_messages(system, secret)
        else:
            assert call(system, "erase", before=between).ok
        assert holding(system, secret) == []
        assert secret not in said(system, secret).replace(f"code {secret}", "")
        state = chat.get_state(config).values
        assert [message.text for message in state["messages"]] == ["Thank you.", "Good."]
        assert state["active_thread"]["reason"] == ""
        chat.invoke({"messages": [("user", "Hello again.")]}, config)
        assert [len(thread) for thread in system.conversation(PRIVATE).threads()] == [4]
        assert system.verify().ok


@pytest.mark.parametrize("cipher", [None, StreamCipher()], ids=["plain", "encrypted"])
def test_a_deleted_message_leaves_a_write_that_no_checkpoint_has_bound_to_it(
    url: str, owner: str, secret: str, call: Call, cipher: Any
) -> None:
    with MemorySystem(url, owner=owner, cipher=cipher) as system:
        memory, saver = system.conversation(PRIVATE), ThreadMemSaver(system)
        memory.append(f"My code is {secret}.", "Good.")
        config: Any = {"configurable": {"thread_id": PRIVATE, "checkpoint_ns": ""}}
        at = saver.put(config, empty_checkpoint(), {}, {})
        kept = {"note": f"about {secret}"}
        said_again = AIMessage([{"type": "text", "text": f"My code is {secret}."}], id="twin")
        saver.put_writes(at, [("notes", [said_again, kept]), ("last", {"messages": [said_again]})], "t")
        call(memory, "forget", 1)
        found = saver.get_tuple(at)
        assert found is not None
        writes = {channel: value for _, channel, value in found.pending_writes or ()}
        assert writes["last"]["messages"][0].text == ""
        assert [writes["notes"][0].text, writes["notes"][1]] == ["", kept]
        assert system.verify().ok


def test_a_conversation_goes_on_after_all_of_its_messages_were_purged(
    system: MemorySystem, call: Call
) -> None:
    chat = create_threaded_chat(
        FakeListChatModel(responses=["Yes.", "No."]), system, checkpointer=ThreadMemSaver(system)
    )
    config: Any = {"configurable": {"thread_id": GRAPH}}
    assert call(system, "forget", 1, purge=True).units
    assert chat.get_state(config).values == {}
    state = chat.invoke({"messages": [("user", "Hello again.")]}, config)
    assert [message.text for message in state["messages"]] == ["Hello again.", "Yes."]
    assert system.verify().ok


def test_a_message_deleted_while_it_is_summarised_leaves_no_draft(
    url: str, owner: str, secret: str, call: Call
) -> None:
    class Deleting(Quoting):
        def summarize(self, message: BaseMessage) -> MessageSummary | None:
            if self.left == 1000 - 2:  # The two conversations are summarised.
                system.remove_session(PRIVATE)
                self.left = 1
            return super().summarize(message)

    with MemorySystem(url, owner=owner, embeddings=False, summarizer=Deleting()) as system:
        system.conversation(PRIVATE).append(f"My code is {secret}.", "I know.")
        system.conversation(LATER).append("How do I bake bread?", "With flour and time.")
        assert call(system, "summarize_long_term_memory") is None
        assert holding(system, secret) == []


REMOVING: dict[str, Callable[[MemorySystem], object]] = {
    "erase": lambda system: system.erase(conversation=PRIVATE),
    "erase before": lambda system: system.erase(before=datetime.now(UTC) + timedelta(days=1)),
    "reset": lambda system: system.conversation(PRIVATE).reset(),
    "forget": lambda system: system.conversation(PRIVATE).forget(1),
    "purge": lambda system: system.forget(1.0, purge=True),
    "delete_thread": lambda system: ThreadMemSaver(system).delete_thread(PRIVATE),
}


@pytest.mark.parametrize(
    ("removing", "summarised", "at"), [(name, at == 2, at) for name in REMOVING for at in (1, 2)]
)
def test_a_process_that_summarises_while_another_deletes_leaves_no_summary_of_the_deleted(
    url: str,
    owner: str,
    secret: str,
    monkeypatch: pytest.MonkeyPatch,
    removing: str,
    summarised: bool,
    at: int,
) -> None:
    """The other process begins when the deletion has read, once or twice, which summaries may quote."""
    options: dict[str, Any] = {"owner": owner, "embeddings": False, "summarizer": Quoting()}
    with MemorySystem(url, **options) as system, MemorySystem(url, **options) as other:
        system.conversation(PRIVATE).append(f"My code is {secret}.", "I know.")
        system.conversation(LATER).append("How do I bake bread?", "With flour and time.")
        if summarised:
            system.summarize_session(PRIVATE)
        summarising = Thread(target=lambda: suppressed(other.summarize_long_term_memory))
        reads, quoting = count(1), summary_queries.quoting

        def read(*args: Any) -> list[int]:
            found = quoting(*args)
            if next(reads) == at:
                summarising.start()
                summarising.join(0.5)  # Longer, if it waits for a lock.
            return found

        monkeypatch.setattr(summary_queries, "quoting", read)
        REMOVING[removing](system)
        if summarising.ident is None:
            summarising.start()
        summarising.join()
        assert holding(system, secret) == []
        assert system.verify().problems == ()


def suppressed(call: Callable[[], object]) -> None:
    with suppress(SessionNotFoundError):  # It is erased meanwhile.
        call()


def test_a_run_that_goes_on_from_a_checkpoint_recalls_again(
    system: MemorySystem, secret: str, invoke: Callable[..., Any]
) -> None:
    class Recording(FakeListChatModel):
        def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
            prompts.append(repr(messages))
            return super()._call(messages, *args, **kwargs)

    prompts: list[str] = []
    model = Recording(responses=["Yes."])
    chat = create_threaded_chat(
        model, system, scope="owner", min_similarity=-1.0, checkpointer=ThreadMemSaver(system)
    )
    config: Any = {"configurable": {"thread_id": "new"}}
    question = {"messages": [("user", "What was my code?")]}
    invoke(chat, question, config, interrupt_before=["model"])
    assert invoke(chat, None, config, interrupt_before=["store_turn"]) is not None
    assert secret in prompts[-1]
    config = {"configurable": {"thread_id": "newer"}}
    invoke(chat, question, config, interrupt_before=["model"])
    system.remove_session(PRIVATE)
    invoke(chat, None, config)
    assert secret not in prompts[-1]


def test_what_a_deleted_run_said_is_quoted_by_no_summary(
    url: str, owner: str, secret: str, call: Call
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), summarizer=Quoting()) as system:
        saver = ThreadMemSaver(system)
        chat = create_threaded_chat(FakeListChatModel(responses=["Yes."]), system, checkpointer=saver)
        for run, text in (("first", "What is flour?"), ("second", f"My code is {secret}.")):
            config: Any = {"configurable": {"thread_id": PRIVATE}, "metadata": {"run_id": run}}
            chat.invoke({"messages": [("user", text)]}, config)
        system.conversation(LATER).append("How do I bake bread?", "With flour and time.")
        system.summarize_long_term_memory()
        assert secret in repr(system.query("code", search_range=ANY, k_limit=99))
        call(saver, "delete_for_runs", ["second"])
        assert secret not in repr(system.query("code", search_range=ANY, k_limit=99))
        assert secret not in repr(system.conversation(LATER).recall("code", n_results=99, scope="owner"))
        system.summarize_long_term_memory()
        assert secret not in repr(system.unfold(owner, levels=1))
        assert system.verify().ok


def test_a_message_that_an_agent_forgets_is_quoted_by_no_summary(system: MemorySystem, secret: str) -> None:
    tool = forget_tool(system, confirm=False, purge=False, conversation_id=PRIVATE)
    for node in system.conversation(PRIVATE).history:
        if secret in node.message.text and node.state.label == "live":
            tool.invoke({"message": node.id})
    assert secret not in repr(system.query("code", search_range=ANY, k_limit=99))
    system.summarize_long_term_memory()
    assert secret not in repr(system.query("code", search_range=ANY, k_limit=99))
    assert secret in repr(system.conversation(PRIVATE).history)
