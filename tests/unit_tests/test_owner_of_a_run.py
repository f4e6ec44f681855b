"""What reads more than the thread of a run refuses a run that names another person than the owner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from langchain_threadmem import (
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemRetriever,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.engine.owners import ContextField, Run, check_person, owner_of_run
from langchain_threadmem.errors import OwnerMismatchError, OwnerRequiredError
from langchain_threadmem.langchain.tools import (
    forget_tool,
    list_threads_tool,
    read_thread_tool,
    recall_tool,
    remember_tool,
)
from langchain_threadmem.langgraph.node import ThreadedState, recall_node, store_turn_node

SECRET = "the vault opens with heron"
ASKED = {"messages": [("user", "What opens the vault with heron?")]}
THREAD = {"thread_id": "talk"}


@dataclass
class Context:
    user_id: str


class PydanticContext(BaseModel):
    user_id: str


def model() -> FakeListChatModel:
    return FakeListChatModel(responses=["Hi!"])


def graph(*nodes: Any, state: Any = ThreadedState, **options: Any) -> Any:
    """A graph of nodes in a sequence."""
    builder = StateGraph(state).add_sequence([(f"node{n}", node) for n, node in enumerate(nodes)])
    return builder.add_edge(START, "node0").compile(**options)


def calling(call: Callable[[Any, str], Any]) -> Callable[[MemorySystem], Any]:
    """A graph with a node that makes a call: `call(system, "a")` returns an awaitable."""

    def of(system: MemorySystem) -> Any:
        def node(_: Any) -> dict[str, Any]:
            call(system, "")
            return {}

        async def anode(_: Any) -> dict[str, Any]:
            await call(system, "a")
            return {}

        return graph(RunnableLambda(node, anode), store=ThreadMemStore(system))

    return of


def verb(
    name: str, *arguments: Any, of: Callable[[MemorySystem], Any] = lambda system: system, **options: Any
) -> Any:
    return calling(lambda system, prefix: getattr(of(system), prefix + name)(*arguments, **options))


def tool(make: Callable[..., Any], **arguments: Any) -> Any:
    return verb("invoke", arguments, of=make)


def listed(system: MemorySystem, prefix: str) -> Any:
    saver = ThreadMemSaver(system)
    if not prefix:
        return list(saver.list(None))

    async def alisted() -> None:
        _ = [found async for found in saver.alist(None)]

    return alisted()


SHARED: dict[str, Callable[[MemorySystem], Any]] = {
    "agent": lambda system: create_agent(
        model(), [], middleware=[ThreadMemMiddleware(system, scope="owner")]
    ),
    "agent of a named conversation": lambda system: create_agent(
        model(), [], middleware=[ThreadMemMiddleware(system, conversation_id="all")]
    ),
    "chat": lambda system: create_threaded_chat(model(), system, scope="owner"),
    "recall node": lambda system: graph(recall_node(system, scope="owner")),
    "node of a named conversation": lambda system: graph(select_thread_node(system, conversation_id="all")),
    "recall": verb("recall", "heron", of=lambda system: system.conversation("talk"), scope="owner"),
    "query": verb("query", "heron"),
    "context": verb("get_context"),
    "conversations": verb("conversations"),
    "list of conversations": verb("list_conversations"),
    "add memory": verb("add_memory", "I live in Lisbon."),
    "retriever": verb("invoke", "heron", of=lambda system: ThreadMemRetriever(memory=system)),
    "retriever of a conversation": verb(
        "invoke", "heron", of=lambda system: ThreadMemRetriever(memory=system.conversation("other"))
    ),
    "recall tool": tool(recall_tool, query="heron"),
    "list tool": tool(list_threads_tool),
    "read tool": tool(read_thread_tool, conversation="other", message=1),
    "remember tool": tool(remember_tool, fact="Ada drinks tea."),
    "forget tool": tool(lambda system: forget_tool(system, confirm=False), conversation="other", message=1),
    "store get": calling(lambda _, prefix: getattr(get_store(), f"{prefix}get")(("facts",), "vault")),
    "store put": calling(
        lambda _, prefix: getattr(get_store(), f"{prefix}put")(("facts",), "vault", {"a": 1})
    ),
    "store search": calling(lambda _, prefix: getattr(get_store(), f"{prefix}search")((), query="heron")),
    "checkpoints of all threads": calling(listed),
    "checkpoint of a message": verb("config_of", "h1", of=ThreadMemSaver),
}


@pytest.fixture
def adas() -> Iterator[MemorySystem]:
    """A system with a conversation, an item and a checkpoint of its owner."""
    with MemorySystem(owner="ada", embeddings=False) as system:
        system.conversation("other").append(SECRET, "Noted.")
        ThreadMemStore(system).put(("facts",), "vault", {"text": SECRET})
        answer = graph(
            lambda _: {"messages": [AIMessage("Hi!", id="a1")]}, checkpointer=ThreadMemSaver(system)
        )
        answer.invoke({"messages": [HumanMessage(SECRET, id="h1")]}, {"configurable": {"thread_id": "told"}})
        yield system


def called(runnable: Any, given: Any, mode: str, configurable: dict[str, Any], **options: Any) -> Any:
    config: RunnableConfig = {"configurable": {**THREAD, **configurable}}
    if mode == "sync":
        return runnable.invoke(given, config, **options)
    return asyncio.run(runnable.ainvoke(given, config, **options))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("call", SHARED.values(), ids=SHARED)
def test_a_run_for_another_person_is_refused(
    adas: MemorySystem, call: Callable[[MemorySystem], Any], mode: str
) -> None:
    before = adas.stats()
    for place, channels in (
        ("context", {"configurable": {}, "context": {"user_id": "bob"}}),
        ("configurable", {"configurable": {"user_id": "bob"}}),
    ):
        with pytest.raises(
            OwnerMismatchError,
            match=rf"user_id='bob' in its {place}.*owner 'ada'; .*MemorySystem\(url, owner='bob'\)",
        ):
            called(call(adas), ASKED, mode, **channels)
    assert (adas.stats(), adas.conversations()) == (before, ["other", "told"])


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("call", SHARED.values(), ids=SHARED)
def test_a_run_may_name_the_owner_and_an_owner_that_is_no_person(
    adas: MemorySystem, call: Callable[[MemorySystem], Any], mode: str
) -> None:
    named = {"user_id": "ada", "owner": "langchain-ai", "repo": "langgraph", "actor_id": "agent-1"}
    called(call(adas), ASKED, mode, named, context={"user_id": "ada", "owner": None})


CHANNELS: dict[str, tuple[dict[str, Any], Any]] = {
    "dictionary": ({}, {"user_id": "bob"}),
    "dataclass": ({}, Context("bob")),
    "pydantic": ({}, PydanticContext(user_id="bob")),
    "camel case": ({}, {"userId": "bob"}),
    "user_id": ({"user_id": "bob"}, None),
    "userId": ({"userId": "bob"}, None),
    "langgraph_user_id": ({"langgraph_user_id": "bob"}, None),
    "header": ({"x-user-id": "bob"}, None),
    "authenticated": ({"langgraph_auth_user": SimpleNamespace(identity="bob")}, None),
    "authenticated as a dictionary": ({"langgraph_auth_user": {"identity": "bob"}}, None),
    "authenticated id": ({"langgraph_auth_user_id": "bob"}, None),
    "number": ({"user_id": 7}, None),
    "no name": ({"user_id": ["bob"]}, None),
}


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_each_channel_names_a_person(channel: tuple[dict[str, Any], Any]) -> None:
    configurable, context = channel
    with MemorySystem(owner="ada", embeddings=False) as system, pytest.raises(OwnerMismatchError):
        called(SHARED["store get"](system), ASKED, "sync", configurable, context=context)


@pytest.mark.parametrize("identity", ["", None])
def test_an_unauthenticated_user_is_no_person(adas: MemorySystem, identity: str | None) -> None:
    anonymous = {"langgraph_auth_user": None, "langgraph_auth_user_id": identity, "user_id": ""}
    called(SHARED["store get"](adas), ASKED, "sync", anonymous)


def saver_graph(system: MemorySystem) -> Any:
    return graph(lambda _: {"messages": [("ai", "Hi!")]}, checkpointer=ThreadMemSaver(system))


def history(system: MemorySystem) -> Any:
    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda messages: f"{len(messages)}"),
        lambda session_id: ThreadMemChatMessageHistory(session_id, system),
    )
    return chain.with_config({"configurable": {"session_id": "talk"}})


OWN_THREAD: dict[str, Callable[[MemorySystem], Any]] = {
    "saver": saver_graph,
    "nodes": lambda system: graph(
        select_thread_node(system),
        recall_node(system),
        lambda _: {"messages": [("ai", "Hi!")]},
        store_turn_node(system),
    ),
    "node of conversations by a function": lambda system: graph(
        select_thread_node(system, conversation_id=lambda config: config["configurable"]["thread_id"])
    ),
    "chat": lambda system: create_threaded_chat(model(), system, checkpointer=ThreadMemSaver(system)),
    "chat without recall": lambda system: create_threaded_chat(model(), system, recall=0, scope="owner"),
    "agent": lambda system: create_agent(
        model(), [], middleware=[ThreadMemMiddleware(system)], checkpointer=ThreadMemSaver(system)
    ),
    "history": history,
}


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("make", OWN_THREAD.values(), ids=OWN_THREAD)
def test_what_keeps_the_thread_of_a_run_serves_any_person(
    system: MemorySystem, make: Callable[[MemorySystem], Any], mode: str
) -> None:
    runnable = make(system)
    for user in ("ada", "bob"):
        configurable = {"user_id": user, "thread_id": f"of {user}", "session_id": f"of {user}", "owner": "x"}
        given = f"I am {user}" if make is history else {"messages": [("user", f"I am {user}")]}
        called(runnable, given, mode, configurable)
    assert system.conversations() == ["of ada", "of bob"]
    assert system.conversation("of bob").messages[0].content == "I am bob"


@pytest.mark.parametrize("verb", ["get_tuple", "put", "put_writes", "list"])
def test_a_saver_takes_the_configurations_of_the_documentation_of_langgraph(
    system: MemorySystem, verb: str
) -> None:
    saver = ThreadMemSaver(system)
    config: RunnableConfig = {
        "configurable": {
            "thread_id": "1",
            "user_id": "1",
            "checkpoint_ns": "",
            "checkpoint_id": empty_checkpoint()["id"],
        }
    }
    calls: dict[str, Callable[[], Any]] = {
        "get_tuple": lambda: saver.get_tuple(config),
        "put": lambda: saver.put(config, empty_checkpoint(), {}, {}),
        "put_writes": lambda: saver.put_writes(config, [], "task"),
        "list": lambda: list(saver.list(config)),
    }
    calls[verb]()


CONTRADICTIONS: dict[str, tuple[dict[str, Any], Any]] = {
    "context and configurable": ({"user_id": "bob"}, {"user_id": "ada"}),
    "two fields": ({"userId": "bob"}, {"user_id": "ada"}),
    "the authenticated user": ({"user_id": "ada", "langgraph_auth_user": {"identity": "bob"}}, None),
    "the authenticated user and the context": ({"langgraph_auth_user_id": "bob"}, Context("ada")),
}


@pytest.mark.parametrize("of_system", [True, False])
@pytest.mark.parametrize("channels", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_channels_that_name_two_persons_are_refused(
    channels: tuple[dict[str, Any], Any], of_system: bool
) -> None:
    owner: Any = {"owner": ContextField("user_id")} if of_system else {}
    with MemorySystem(embeddings=False, **owner) as system:
        chat = create_threaded_chat(
            model(),
            system,
            checkpointer=ThreadMemSaver(system, owner=None if of_system else "user_id"),
            owner=None if of_system else "user_id",
        )
        with pytest.raises(OwnerMismatchError, match=r"two owners, .*'ada'.*'bob'"):
            called(chat, ASKED, "sync", channels[0], context=channels[1])
        assert system.for_owner("ada").conversations() == system.for_owner("bob").conversations() == []


def test_a_field_that_is_no_person_may_not_have_two_values() -> None:
    run = {"configurable": {"tenant": "acme", "user_id": "ada"}}
    assert owner_of_run("tenant", Run(run)) == "acme"
    with MemorySystem(embeddings=False) as system:
        chat = create_threaded_chat(model(), system, owner="tenant")
        with pytest.raises(OwnerMismatchError, match="two owners"):
            called(chat, ASKED, "sync", {"tenant": "acme"}, context={"tenant": "other"})


def test_a_function_chooses_between_the_names_of_a_person() -> None:
    run = Run({"configurable": {"user_id": "42", "langgraph_auth_user": {"identity": "ada@example.com"}}})
    assert owner_of_run(lambda run: run.user, run) == "ada@example.com"
    assert owner_of_run(lambda run: run.field("user_id"), run) == "42"


def test_names_that_the_agent_server_adds_to_the_authenticated_user_are_no_second_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = SimpleNamespace(identity="u-1", display_name="Ada L.")
    update = {"configurable": {"thread_id": "1", "user_id": "Ada L.", "x-user-id": "gateway"}}
    server: Any = ModuleType("langgraph_api.utils")
    server.get_auth_ctx = lambda: SimpleNamespace(user=user)
    monkeypatch.setitem(sys.modules, "langgraph_api.utils", server)
    assert owner_of_run("langgraph_auth_user", Run(update)) == "u-1"
    check_person(Run(update), "u-1")
    with pytest.raises(OwnerMismatchError, match=r"Ada L\.'.*'u-1'"):
        owner_of_run("user_id", Run(update))
    server.get_auth_ctx = lambda: None
    with pytest.raises(OwnerMismatchError, match=r"user_id='Ada L\.'"):
        check_person(Run(update), "u-1")


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("of_system", [True, False])
def test_a_function_shares_a_memory_with_everyone(url: str, owner: str, of_system: bool, mode: str) -> None:
    shared: Any = {"owner": lambda run: owner}
    with MemorySystem(url, embeddings=False, **(shared if of_system else {})) as system:
        handbook = system.for_owner(owner)
        handbook.conversation("handbook").append(SECRET, "Noted.")
        options = {} if of_system else shared
        found = []

        async def arecall(_: Any) -> dict[str, Any]:
            found.extend(await ThreadMemRetriever(memory=system, **options).ainvoke("heron"))
            return {}

        def recall(_: Any) -> dict[str, Any]:
            found.extend(ThreadMemRetriever(memory=system, **options).invoke("heron"))
            return {}

        called(graph(RunnableLambda(recall, arecall)), ASKED, mode, {"user_id": "bob"})
        assert [document.page_content for document in found] == [SECRET, "Noted."][: len(found)]
        assert found


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("call", ["get_state", "get_state_history", "update_state"])
def test_reading_a_state_needs_the_person_in_configurable(adas: MemorySystem, call: str, mode: str) -> None:
    chat = graph(
        lambda _: {"messages": [("ai", "Hi!")]},
        checkpointer=ThreadMemSaver(adas, owner="user_id"),
    )
    called(chat, ASKED, mode, {}, context={"user_id": "ada"})
    arguments: list[Any] = [ASKED] if call == "update_state" else []

    async def acall(config: RunnableConfig) -> Any:
        if call == "get_state_history":
            return [state async for state in chat.aget_state_history(config)]
        return await getattr(chat, f"a{call}")(config, *arguments)

    def answer(configurable: dict[str, Any]) -> Any:
        config: RunnableConfig = {"configurable": {**THREAD, **configurable}}
        if mode == "async":
            return asyncio.run(acall(config))
        found = getattr(chat, call)(config, *arguments)
        return list(found) if call == "get_state_history" else found

    with pytest.raises(
        OwnerRequiredError, match=rf"config=\{{'configurable': \{{'user_id': .*{call}.*take no context"
    ):
        answer({})
    assert answer({"user_id": "ada"})


@pytest.mark.parametrize("value", [UUID(int=7), 7, "bob"])
def test_a_person_is_compared_as_the_name_of_an_owner(value: object) -> None:
    with MemorySystem(owner=str(value), embeddings=False) as system:
        called(SHARED["store get"](system), ASKED, "sync", {"user_id": value})
