"""Names of owners, conversations, threads, messages and items: what is one name, and how long it may be."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import PutOp

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    MessageWindowChatMemory,
    ThreadMemChatMessageHistory,
    ThreadMemSaver,
    ThreadMemStore,
    select_thread_node,
)
from langchain_threadmem.engine.owners import Run, owner_of_run
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.saver import LONGEST_NS
from langchain_threadmem.messages.ids import LONGEST_ID, LONGEST_NAME


class Text(str):
    """A subclass of text with another form for people."""

    def __str__(self) -> str:
        return f"<{self!r}>"


class Member(str, Enum):  # noqa: UP042 - `str` of a member is "Member.ADA", of a StrEnum's "ada"
    ADA = "ada"


class Strict(StrEnum):
    ADA = "ada"


class Plain(Enum):
    ADA = "ada"


class Number(IntEnum):
    SEVEN = 7


IDENTITY = UUID("00000000-0000-0000-0000-000000000007")
TEXTS = [
    (Text("ada"), "ada"),
    (Member.ADA, "ada"),
    (Strict.ADA, "ada"),
    (Plain.ADA, "ada"),
    (IDENTITY, str(IDENTITY)),
]
NUMBERS = [(7, "7"), (Number.SEVEN, "7")]


@pytest.mark.parametrize(("value", "name"), [*TEXTS, *NUMBERS])
def test_a_run_with_a_value_and_a_run_with_its_text_have_one_owner(value: object, name: str) -> None:
    run = Run({"configurable": {"user_id": value}})
    assert owner_of_run("user_id", run) == owner_of_run(lambda run: run["user_id"], run) == name
    assert type(owner_of_run("user_id", run)) is str


@pytest.mark.parametrize("value", [None, "", "a\0b", "\ud800"])
def test_a_thread_without_a_name_is_refused(system: MemorySystem, value: object) -> None:
    saver, config = ThreadMemSaver(system), {"configurable": {"thread_id": value, "checkpoint_ns": ""}}
    with pytest.raises(InputError, match=r"thread_id"):
        saver.get_tuple(config)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"thread_id"):
        select_thread_node(system).invoke({"messages": []}, config)  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "name"), TEXTS)
def test_an_owner_and_a_conversation_are_their_texts(
    system: MemorySystem, owner: str, verbs: Callable[..., Any], value: Any, name: str
) -> None:
    # The owner is new in each test: all of them share a PostgreSQL server.
    class Owner(str, Enum):  # noqa: UP042
        ONE = owner

    mine = system.for_owner(Owner.ONE)
    verbs(mine.conversation(value)).append(HumanMessage("Hello", id="h1"), "Hi!")
    assert (mine.owner, type(mine.owner)) == (owner, str)
    assert system.conversations() == [name]
    assert [message.content for message in system.conversation(name).messages] == ["Hello", "Hi!"]
    assert len(ThreadMemChatMessageHistory(value, mine).messages) == 2
    assert verbs(system.conversation(value)).thread_of(Text("h1"))[0].message.id == "h1"
    assert mine.update_conversation(value, title="Greeting").title == "Greeting"
    assert mine.erase(conversation=value).messages == 2


# LangGraph passes `str` of a value that is no text to savers.
THREADS = [*((value, name) for value, name in TEXTS if value is not Plain.ADA), *NUMBERS]


@pytest.mark.parametrize(("value", "name"), [*THREADS, (Plain.ADA, "Plain.ADA"), (1.5, "1.5")])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_thread_is_the_conversation_with_its_text(
    system: MemorySystem, value: object, name: str, mode: str
) -> None:
    builder = StateGraph(MessagesState).add_node("select", select_thread_node(system))
    builder = builder.add_node("model", lambda _: {"messages": [AIMessage("Hi!", id="a1")]})
    builder = builder.add_edge(START, "select").add_edge("select", "model")
    graph = builder.compile(checkpointer=ThreadMemSaver(system))
    given: Any = {"messages": [HumanMessage("Hello", id="h1")]}
    config: RunnableConfig = {"configurable": {"thread_id": value}}
    if mode == "sync":
        graph.invoke(given, config)
    else:
        asyncio.run(graph.ainvoke(given, config))
    assert system.conversations() == [name]
    assert len(graph.get_state({"configurable": {"thread_id": name}}).values["messages"]) == 2
    ThreadMemSaver(system).delete_thread(value)  # type: ignore[arg-type]
    assert system.conversations() == []


@pytest.mark.parametrize("value", [Text("ada"), Member.ADA, Strict.ADA])
def test_an_item_and_a_list_have_the_names_of_their_texts(system: MemorySystem, value: Any) -> None:
    store = ThreadMemStore(system)
    store.batch([PutOp((value,), value, {"n": 1})])
    found = store.get(("ada",), "ada")
    assert found is not None
    assert (found.namespace, found.key) == (("ada",), "ada")
    MessageWindowChatMemory(10, id=value, store=system).add("Hello")
    assert len(MessageWindowChatMemory(10, id="ada", store=system).messages) == 1


def text(size: int, seed: int = 0) -> str:
    """A text that no database compresses."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))


NAME, ID, NS = (text(longest, 1) for longest in (LONGEST_NAME, LONGEST_ID, LONGEST_NS))


def thread(name: str, ns: str = "") -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ns, "checkpoint_id": None}}


def saved(system: MemorySystem, name: str, ns: str = "") -> object:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": [HumanMessage("Hello", id="h1")]}
    checkpoint["channel_versions"] = {"messages": 1}
    return ThreadMemSaver(system).put(thread(name, ns), checkpoint, {}, {"messages": 1})


USES: dict[str, tuple[Callable[[MemorySystem, str], Any], str]] = {
    "owner": (lambda system, name: system.for_owner(name).conversation(NAME).append("Hello"), NAME),
    "system": (lambda system, name: MemorySystem(owner=name), NAME),
    "owner of an item": (
        lambda system, name: ThreadMemStore(system.for_owner(name)).put((ID[:-1],), ID, {"a": 1}),
        NAME,
    ),
    "conversation": (lambda system, name: system.conversation(name).append("Hello"), NAME),
    "memory": (lambda system, name: ChatMemory(system=system, conversation_id=name).append("Hello"), NAME),
    "session": (lambda system, name: (system.start_session(name), system.add_memory("Hello")), NAME),
    "history": (
        lambda system, name: ThreadMemChatMessageHistory(name, system).add_user_message("Hello"),
        NAME,
    ),
    "list": (lambda system, name: MessageWindowChatMemory(9, id=name, store=system).add("Hello"), NAME),
    "thread": (saved, NAME),
    "read of a thread": (lambda system, name: ThreadMemSaver(system).get_tuple(thread(name)), NAME),
    "thread of a node": (
        lambda system, name: select_thread_node(system).invoke({"messages": []}, thread(name)),
        NAME,
    ),
    "namespace of a checkpoint": (lambda system, ns: saved(system.for_owner(NAME), NAME, ns), NS),
    "message": (lambda system, id: system.conversation("c").append(HumanMessage("Hello", id=id)), ID),
    "namespace": (lambda system, label: ThreadMemStore(system).put((label,), "k", {"a": 1}), ID[:-1]),
    "key": (lambda system, key: ThreadMemStore(system).put(("n",), key, {"a": 1}), ID),
    "read of a key": (lambda system, key: ThreadMemStore(system).get(("n",), key), ID),
}


@pytest.mark.parametrize("use", USES)
def test_a_name_of_the_greatest_length_is_kept_and_a_longer_one_is_refused(
    system: MemorySystem, use: str
) -> None:
    call, name = USES[use]
    call(system, name)
    before = system.stats()
    for longer in (f"{name}x", text(10_000), "x" * 10_000, "ö" * len(name)):
        with pytest.raises(InputError, match=r"bytes.*shorten it"):
            call(system, longer)
    assert system.stats() == before
    for seen in (system, system.for_owner(NAME)):
        seen.erase()


def test_a_key_of_escaped_characters_is_refused_if_its_bytes_are_too_many(system: MemorySystem) -> None:
    store = ThreadMemStore(system)
    store.put(("n",), "\1" * (LONGEST_ID // 2), {"a": 1})
    with pytest.raises(InputError, match="takes 2002 bytes"):
        store.put(("n",), "\1" * (LONGEST_ID // 2 + 1), {"a": 1})


@pytest.mark.postgres
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_id_that_no_index_of_postgresql_contains_is_an_input_error(
    postgres_url: str, owner: str, mode: str
) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = text(10_000)
    with MemorySystem(postgres_url, owner=owner, embeddings=False) as system:
        saver = ThreadMemSaver(system)
        calls = {
            "sync": lambda: saver.put(thread("t"), checkpoint, {}, {}),
            "async": lambda: asyncio.run(saver.aput(thread("t"), checkpoint, {}, {})),
        }
        with pytest.raises(InputError, match="too long for an index"):
            calls[mode]()
        assert saver.get_tuple(thread("t")) is None
