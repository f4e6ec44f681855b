"""A run that names another owner than the system has is refused by every integration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.base import empty_checkpoint

from langchain_threadmem import (
    MemorySystem,
    ThreadMemChatMessageHistory,
    ThreadMemMiddleware,
    ThreadMemRetriever,
    ThreadMemSaver,
    create_threaded_chat,
    select_thread_node,
)
from langchain_threadmem.errors import OwnerMismatchError
from langchain_threadmem.integrations.tools import recall_tool

ASKED = {"messages": [("user", "Hello")]}
Call = Callable[[MemorySystem, RunnableConfig, str], Any]


def model() -> FakeListChatModel:
    return FakeListChatModel(responses=["Hi!"])


def called(runnable: Any, given: Any, config: RunnableConfig, mode: str) -> Any:
    return runnable.invoke(given, config) if mode == "sync" else asyncio.run(runnable.ainvoke(given, config))


def history(system: MemorySystem, config: RunnableConfig, mode: str) -> Any:
    chain = RunnableWithMessageHistory(
        model(), lambda session_id: ThreadMemChatMessageHistory(session_id, system)
    )
    config["configurable"]["session_id"] = "talk"
    return called(chain, "Hello", config, mode)


def saved(verb: str, *arguments: Any) -> Call:
    def call(system: MemorySystem, config: RunnableConfig, mode: str) -> Any:
        saver = ThreadMemSaver(system)
        config["configurable"] |= {"checkpoint_ns": "", "checkpoint_id": empty_checkpoint()["id"]}
        if mode == "sync":
            return getattr(saver, verb)(config, *arguments)
        return asyncio.run(getattr(saver, f"a{verb}")(config, *arguments))

    return call


CALLS: dict[str, Call] = {
    "node": lambda system, *run: called(select_thread_node(system), {"messages": []}, *run),
    "chat": lambda system, *run: called(create_threaded_chat(model(), system), ASKED, *run),
    "agent": lambda system, *run: called(
        create_agent(model(), [], middleware=[ThreadMemMiddleware(system)]), ASKED, *run
    ),
    "tool": lambda system, *run: called(recall_tool(system), {"query": "Hello"}, *run),
    "retriever": lambda system, *run: called(ThreadMemRetriever(memory=system), "Hello", *run),
    "history": history,
    "get": saved("get_tuple"),
    "put": saved("put", empty_checkpoint(), {}, {}),
    "put_writes": saved("put_writes", [], "task"),
}


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_run_for_another_owner_is_refused(system: MemorySystem, call: Call, mode: str) -> None:
    with pytest.raises(
        OwnerMismatchError, match=r"user_id='mallory'.*'owner-.*MemorySystem\(url, owner='mallory'\)"
    ):
        call(system, {"configurable": {"thread_id": "talk", "user_id": "mallory"}}, mode)
    assert system.conversations() == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_run_may_name_the_owner_that_it_has(system: MemorySystem, owner: str, call: Call) -> None:
    call(system, {"configurable": {"thread_id": "talk", "owner": owner, "user_id": None}}, "sync")


@pytest.mark.parametrize("key", ["owner", "user_id", "langgraph_auth_user_id"])
def test_each_name_of_an_owner_is_heeded(system: MemorySystem, key: str) -> None:
    with pytest.raises(OwnerMismatchError, match=f"{key}=7"):
        list(ThreadMemSaver(system).list({"configurable": {"thread_id": "talk", key: 7}}))
