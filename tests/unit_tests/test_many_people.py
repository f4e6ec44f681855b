"""One compiled graph, one saver and one store for many users: no user sees the data of another."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from conftest import DATABASES, SECURED, StreamCipher, WordEmbeddings, url_of
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableFieldSpec, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from langchain_threadmem import (
    ChatMemory,
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemRetriever,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
)
from langchain_threadmem.engine.owners import ContextField, Run, owner_of_run
from langchain_threadmem.engine.runtime import CACHED_OWNERS
from langchain_threadmem.errors import EncryptionError, InputError, OwnerMismatchError, OwnerRequiredError
from langchain_threadmem.langchain.tools import (
    forget_tool,
    list_threads_tool,
    read_thread_tool,
    recall_tool,
    remember_tool,
)
from langchain_threadmem.langgraph._system import REPLACED

SECRET = "the vault opens with heron"
THREAD = "talk"
HISTORY_CONFIG = [ConfigurableFieldSpec(id="thread_id", annotation=str)]


@pytest.fixture(params=[*DATABASES, SECURED])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path)


@dataclass
class Context:
    user_id: str


def model() -> FakeListChatModel:
    return FakeListChatModel(responses=["Noted."])


def config_of(user: str | None, thread: str = THREAD) -> RunnableConfig:
    return {"configurable": {"thread_id": thread} | ({} if user is None else {"user_id": user})}


class People:
    """A system that serves the user of each run, and the runnables of every integration on it."""

    def __init__(self, system: MemorySystem, owner: Any) -> None:
        self.system = system
        self.saver = ThreadMemSaver(system, owner=owner)
        self.store = ThreadMemStore(system, index=True, owner=owner)
        self.chat = create_threaded_chat(
            model(), system, checkpointer=self.saver, store=self.store, scope="owner", owner=owner
        )
        agent = create_agent(
            model(), [], middleware=[ThreadMemMiddleware(system, scope="owner", owner=owner)]
        )
        history = RunnableWithMessageHistory(
            RunnableLambda(lambda messages: f"{len(messages)}: {messages}"),
            lambda thread_id: ThreadMemChatMessageHistory(thread_id, system, owner=owner),
            history_factory_config=HISTORY_CONFIG,
        )
        tool = recall_tool(system, owner=owner)
        retriever = ThreadMemRetriever(memory=system, owner=owner)
        whole = RunnableLambda(self._list, self._alist)
        items = RunnableLambda(
            lambda _: self.store.search((), query="heron"),
            lambda _: self.store.asearch((), query="heron"),
        )
        question = "What opens the vault with heron?"
        asked = {"messages": [("user", question)]}
        self.remember = remember_tool(system, owner=owner)
        self.forget = forget_tool(system, owner=owner, confirm=False)
        self.threads = list_threads_tool(system, owner=owner)
        self.reads: dict[str, tuple[Any, Any]] = {
            "chat": (self.chat, asked),
            "agent": (agent, asked),
            "history": (history, question),
            "tool": (tool, {"query": question}),
            "thread": (read_thread_tool(system, owner=owner), {"conversation": "other", "message": 1}),
            "retriever": (retriever, question),
            "checkpoints without a thread": (whole, None),
            "store": (items, None),
        }

    def _list(self, _: object) -> str:
        return str([found.checkpoint["channel_values"] for found in self.saver.list(None)])

    async def _alist(self, _: object) -> str:
        return str([found.checkpoint["channel_values"] async for found in self.saver.alist(None)])

    def keep_secret(self, user: str) -> None:
        """Let a user tell a secret in the conversation and in the store."""
        self.chat.invoke({"messages": [("user", SECRET)]}, config_of(user))
        self.system.for_owner(user).conversation("other").append(SECRET, "Noted.")
        ThreadMemStore(self.system.for_owner(user), index=True).put(("facts",), "vault", {"text": SECRET})


@pytest.fixture(params=["system", "integrations"])
def people(request: pytest.FixtureRequest, url: str) -> Iterator[People]:
    """The owner of a run is named by the system, or by each integration."""
    of_system = request.param == "system"
    owner: Any = {"owner": ContextField("user_id")} if of_system else {}
    with MemorySystem(url, embeddings=WordEmbeddings(), **owner) as system:
        yield People(system, None if of_system else lambda run: run.field("user_id"))


def called(runnable: Any, given: Any, config: RunnableConfig, mode: str) -> str:
    if mode == "sync":
        return str(runnable.invoke(given, config))
    return str(asyncio.run(runnable.ainvoke(given, config)))


READS = ["chat", "agent", "history", "tool", "thread", "retriever", "checkpoints without a thread", "store"]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("read", READS)
def test_a_run_reads_the_memory_of_its_user_alone(people: People, owner: str, read: str, mode: str) -> None:
    people.keep_secret(owner)
    runnable, given = people.reads[read]
    assert SECRET not in called(runnable, given, config_of(f"{owner}-bob"), mode)
    assert SECRET in called(runnable, given, config_of(owner), mode)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("read", READS)
def test_a_run_without_a_user_fails(people: People, read: str, mode: str) -> None:
    runnable, given = people.reads[read]
    with pytest.raises(OwnerRequiredError, match=r"'user_id'|returned None"):
        called(runnable, given, config_of(None), mode)


def test_an_error_for_a_function_without_an_owner_names_the_person_of_the_run() -> None:
    with (
        MemorySystem(owner=lambda run: run.user, embeddings=False) as system,
        pytest.raises(OwnerRequiredError, match=r"has user_id='ada' .* run\.field\('user_id'\) returns"),
    ):
        ThreadMemSaver(system).get_tuple({"configurable": {"thread_id": "t", "user_id": "ada"}})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_configurations_of_checkpoints_name_the_user(people: People, owner: str, mode: str) -> None:
    config, given = config_of(owner), {"messages": [("user", "Hello")]}

    async def returned() -> list[RunnableConfig]:
        await people.chat.ainvoke(given, config)
        states = [state async for state in people.chat.aget_state_history(config)]
        first = states[0].values["messages"][0].id
        return [
            await people.chat.aupdate_state(states[0].config, given),
            *(found for state in states for found in (state.config, state.parent_config) if found),
            await people.saver.afork(config, first),
            await people.saver.aconfig_of(first, config),
        ]

    def returned_in_sync() -> list[RunnableConfig]:
        people.chat.invoke(given, config)
        states = list(people.chat.get_state_history(config))
        first = states[0].values["messages"][0].id
        return [
            people.chat.update_state(states[0].config, given),
            *(found for state in states for found in (state.config, state.parent_config) if found),
            people.saver.fork(config, first),
            people.saver.config_of(first, config),
        ]

    for found in returned_in_sync() if mode == "sync" else asyncio.run(returned()):
        assert found["configurable"].pop("checkpoint_id")
        found["configurable"].pop(REPLACED, None)
        assert found["configurable"] == config["configurable"] | {"checkpoint_ns": ""}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_tool_lists_and_changes_the_memory_of_its_user_alone(people: People, owner: str, mode: str) -> None:
    people.keep_secret(owner)
    bob = config_of(f"{owner}-bob")
    assert called(people.threads, {}, bob, mode) == "Nothing is in memory."
    called(people.remember, {"fact": "Bob has no vault."}, bob, mode)
    missing = called(people.forget, {"conversation": "other", "message": 1}, bob, mode)
    assert "there is no conversation" in missing
    assert people.system.for_owner(f"{owner}-bob").conversations() == ["facts"]
    listed = called(people.threads, {}, config_of(owner), mode)
    assert 'conversation="other"' in listed
    assert "facts" not in listed
    called(people.forget, {"conversation": "other", "message": 1}, config_of(owner), mode)
    assert len(people.system.for_owner(owner).conversation("other").history) == 1
    for tool in (people.threads, people.remember, people.forget):
        arguments = {"fact": "?"} if tool is people.remember else {"conversation": "other", "message": 1}
        with pytest.raises(OwnerRequiredError, match=r"'user_id'|returned None"):
            called(tool, arguments, config_of(None), mode)


USES: dict[str, Callable[[MemorySystem], object]] = {
    "conversations": lambda system: system.conversations(),
    "list": lambda system: system.list_conversations(query="heron"),
    "messages": lambda system: system.conversation("other").messages,
    "export": lambda system: system.conversation("other").export("json"),
    "recall": lambda system: system.conversation("new").recall("heron", scope="owner"),
    "query": lambda system: system.query("heron"),
    "summary": lambda system: system.summarize_long_term_memory(),
    "verify": lambda system: system.verify(),
}


@pytest.mark.parametrize("use", USES)
def test_verbs_outside_of_a_run_need_an_owner(url: str, owner: str, use: str) -> None:
    with MemorySystem(url, owner=ContextField("user_id"), embeddings=WordEmbeddings()) as system:
        system.for_owner(owner).conversation("other").append(SECRET, "Noted.")
        system.for_owner(owner).query("heron")
        shown = str(USES[use](system.for_owner(f"{owner}-bob")))
        assert "heron" not in shown
        with pytest.raises(OwnerRequiredError, match="for_owner"):
            USES[use](system)


def test_erasing_one_owner_leaves_the_others(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        bob = system.for_owner(f"{owner}-bob")
        for one in (system, bob):
            one.conversation("c").append(SECRET, "Noted.")
            one.query("heron")
        receipt = system.erase()
        assert receipt.ok
        assert system.query("heron") == []
        assert bob.query("heron")
        assert bob.verify().ok


def test_users_that_run_at_the_same_time_get_their_own_state(people: People, owner: str) -> None:
    users = [f"{owner}-{n}" for n in range(8)]

    def talk(user: str) -> list[str]:
        for turn in range(3):
            state = people.chat.invoke({"messages": [("user", f"{turn} by {user}")]}, config_of(user))
        return [str(message.content) for message in state["messages"]]

    with ThreadPoolExecutor(8) as pool:
        for user, messages in zip(users, pool.map(talk, users), strict=True):
            assert f"2 by {user}" in messages
            assert all(text == "Noted." or text.endswith(f"by {user}") for text in messages)


def test_the_context_names_the_owner(url: str, owner: str) -> None:
    def answer(state: MessagesState, runtime: Runtime[Context]) -> dict[str, Any]:
        assert runtime.store is not None
        runtime.store.put(("seen",), "by", {"user": runtime.context.user_id})
        return {"messages": [("ai", "Noted.")]}

    with MemorySystem(url, embeddings=False) as system:
        builder = StateGraph(MessagesState, context_schema=Context).add_node("answer", answer)
        graph = builder.add_edge(START, "answer").compile(
            checkpointer=ThreadMemSaver(system, owner="user_id"),
            store=ThreadMemStore(system, owner="user_id"),
        )
        for user in (owner, f"{owner}-bob"):
            graph.invoke({"messages": [("user", user)]}, config_of(None), context=Context(user))
        for user in (owner, f"{owner}-bob"):
            mine = system.for_owner(user)
            assert [message.content for message in mine.conversation(THREAD).messages] == [user, "Noted."]
            item = ThreadMemStore(mine).get(("seen",), "by")
            assert item is not None
            assert item.value == {"user": user}


SERVER: RunnableConfig = {"configurable": {"__pregel_runtime": Runtime()}}
"""The configuration that the Agent Server sets around all that it does."""


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("around", [{}, SERVER], ids=["alone", "server"])
def test_a_run_is_rolled_back_outside_of_a_run_for_its_owner_alone(
    people: People, owner: str, around: RunnableConfig, mode: str
) -> None:
    users = [owner, f"{owner}-bob"]
    for user in users:
        for question in ("One", "Two"):
            config = config_of(user) | {"metadata": {"run_id": f"{question} of {user}"}}
            people.chat.invoke({"messages": [("user", question)]}, config)
    undone = [f"Two of {owner}", "an unknown run"]
    with set_config_context(around):
        if mode == "sync":
            people.saver.delete_for_runs(undone)
        else:
            asyncio.run(people.saver.adelete_for_runs(undone))
    texts = [
        [message.content for message in people.chat.get_state(config_of(user)).values["messages"]]
        for user in users
    ]
    assert texts == [["One", "Noted."], ["One", "Noted.", "Two", "Noted."]]
    hits = people.system.for_owner(owner).conversation(THREAD).recall("Two")
    assert "Two" not in [hit.node.message.content for hit in hits]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("around", [{}, SERVER], ids=["alone", "server"])
def test_an_agent_server_deletes_a_thread_for_its_owner_alone(
    people: People, owner: str, around: RunnableConfig, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does so for no user, after a run without a thread."""
    monkeypatch.setitem(sys.modules, "langgraph_api.utils", ModuleType("langgraph_api.utils"))
    saver, threads = people.saver, [f"{owner} {n}" for n in range(4)]
    configs = [*(config_of(owner, thread) for thread in threads), config_of(f"{owner}-bob", threads[3])]
    for config in configs:
        people.chat.invoke({"messages": [("user", SECRET)]}, config)
    with set_config_context(around):
        if mode == "sync":
            saver.delete_thread(threads[0])
            saver.prune([threads[1], "nobody's"], strategy="delete")
            saver.prune([threads[2]])
            with pytest.raises(OwnerRequiredError, match="several owners"):
                saver.delete_thread(threads[3])
        else:
            asyncio.run(saver.adelete_thread(threads[0]))
            asyncio.run(saver.aprune([threads[1], "nobody's"], strategy="delete"))
            asyncio.run(saver.aprune([threads[2]]))
            with pytest.raises(OwnerRequiredError, match="several owners"):
                asyncio.run(saver.adelete_thread(threads[3]))
    assert [len(list(saver.list(config))) for config in configs] == [0, 0, 1, 6, 6]
    names = {info.id for info in people.system.for_owner(owner).list_conversations()}
    assert names == {*threads[2:]}


def test_a_run_rolls_back_the_runs_of_its_own_user(people: People, owner: str) -> None:
    people.chat.invoke({"messages": [("user", "One")]}, config_of(owner) | {"metadata": {"run_id": owner}})
    undo = RunnableLambda(lambda _: people.saver.delete_for_runs([owner]))
    undo.invoke(None, config_of(f"{owner}-bob"))
    assert people.chat.get_state(config_of(owner)).values["messages"]
    with pytest.raises(OwnerRequiredError):
        undo.invoke(None, config_of(None))
    undo.invoke(None, config_of(owner))
    assert people.chat.get_state(config_of(owner)).values == {}


def test_the_user_of_an_agent_server_is_an_owner() -> None:
    for user in ({"identity": "ada"}, type("User", (), {"identity": "ada"})()):
        run = Run({"configurable": {"langgraph_auth_user": user}})
        assert owner_of_run("langgraph_auth_user", run) == owner_of_run(lambda run: run.user, run) == "ada"


def test_the_user_of_a_request_of_an_agent_server_is_the_owner_of_calls_without_a_configuration(
    monkeypatch: pytest.MonkeyPatch, system: MemorySystem, owner: str
) -> None:
    user: Any = SimpleNamespace(identity=owner)
    server: Any = ModuleType("langgraph_api.utils")
    server.get_auth_ctx = lambda: SimpleNamespace(user=user)
    monkeypatch.setitem(sys.modules, "langgraph_api.utils", server)
    system.conversation(THREAD).append("Hello", "Hi!")
    ThreadMemSaver(system, owner="langgraph_auth_user").delete_thread(THREAD)
    assert system.conversations() == []
    user.identity = f"{owner}-bob"
    with pytest.raises(OwnerMismatchError, match="langgraph_auth_user="):
        ThreadMemStore(system).get(("facts",), "vault")
    monkeypatch.delitem(sys.modules, "langgraph_api.utils")
    with pytest.raises(OwnerRequiredError):
        ThreadMemSaver(system, owner="langgraph_auth_user").delete_thread(THREAD)


@pytest.mark.parametrize("named", [None, "", 2.5, True, ["ada"], b"ada"])
def test_a_value_that_names_nobody_is_refused(named: object) -> None:
    with pytest.raises(OwnerRequiredError):
        owner_of_run("user_id", Run({"configurable": {"user_id": named}}))


def test_a_function_that_fails_is_named_in_the_error() -> None:
    with pytest.raises(OwnerRequiredError, match=r"KeyError.*'tenant'"):
        owner_of_run(lambda run: run["tenant"], Run({"configurable": {}}))


def test_a_history_serves_one_run_owner(system: MemorySystem) -> None:
    history = ThreadMemChatMessageHistory("talk", system, owner="user_id")
    read = RunnableLambda(lambda _: history.messages)
    assert read.invoke(None, config_of("ada")) == []
    with pytest.raises(OwnerMismatchError, match=r"'ada'.*'bob'"):
        read.invoke(None, config_of("bob"))


def test_the_owners_of_an_encrypted_memory_share_the_key(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, cipher=StreamCipher(), embeddings=False) as system:
        bob = system.for_owner(f"{owner}-bob")
        bob.conversation("c").append(SECRET, "Noted.")
        assert [message.content for message in bob.conversation("c").messages] == [SECRET, "Noted."]
        assert system.conversations() == []
    plain = MemorySystem(url, owner=f"{owner}-bob", embeddings=False)
    with plain, pytest.raises(EncryptionError, match="pass its cipher to MemorySystem"):
        _ = plain.conversation("c").messages


def test_the_state_of_an_owner_lasts_while_a_caller_has_it_or_it_was_used_lately() -> None:
    with MemorySystem(embeddings=False) as system:
        system.for_owner("ada").start_session("monday")
        assert system.for_owner("ada").session_id == "monday"
        kept = system.for_owner("bob")
        kept.start_session("tuesday")
        for n in range(2 * CACHED_OWNERS):
            system.for_owner(f"user {n}")
        assert system.for_owner("bob").session_id == "tuesday"
        assert len(system.resources._recent) == CACHED_OWNERS


def test_visits_of_an_owner_who_leaves_memory_are_stored() -> None:
    with MemorySystem(embeddings=False) as system:
        unit = system.for_owner("ada").add_memory("the heron")
        system.for_owner("ada").query("heron")
        for n in range(CACHED_OWNERS):
            system.for_owner(f"user {n}")
        while system.runtime.ahead.busy(("storing", "ada")):
            pass
        assert system.for_owner("ada").unit(unit.id).visit_count == 1


def test_a_conversation_has_one_owner(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="one owner"):
        recall_tool(ChatMemory(), owner="user_id")
    with pytest.raises(InputError, match="owner=3"):
        ThreadMemSaver(system, owner=3)  # type: ignore[arg-type]
