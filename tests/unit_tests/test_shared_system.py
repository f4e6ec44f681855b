"""Systems by URL: several adapters share one system."""

from __future__ import annotations

from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from langchain_threadmem import ThreadMemChatMessageHistory, ThreadMemMiddleware, ThreadMemRetriever
from langchain_threadmem.langgraph._system import shared_system


def test_there_is_one_system_for_each_database_and_owner(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    ada, bob = shared_system(url, "ada"), shared_system(url, "bob")
    assert shared_system(url, "ada").runtime is ada.runtime is not bob.runtime
    assert (ada.owner, bob.owner) == ("ada", "bob")
    assert ada.resources is bob.resources


def test_the_database_stays_open_when_the_system_of_one_owner_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    ada, bob = shared_system(path, "ada"), shared_system(path, "bob")
    ada.conversation("c").append("Hello", "Hi!")
    ada.close()
    assert (bob.conversations(), shared_system(path, "ada").conversations()) == ([], ["c"])


def test_a_database_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    first = shared_system(path)
    first.conversation("c").append("Hello", "Hi!")
    first.resources.close()
    assert shared_system(path).conversations() == ["c"]


def test_what_one_adapter_stores_another_finds(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    history = ThreadMemChatMessageHistory.from_conn_string(url, "monday", owner="ada")
    history.add_messages([HumanMessage("My fig tree has brown leaves.")])
    retriever = ThreadMemRetriever.from_conn_string(url, owner="ada", conversation_id="monday", k=1)
    assert [found.page_content for found in retriever.invoke("fig")] == ["My fig tree has brown leaves."]
    middleware = ThreadMemMiddleware.from_conn_string(url, owner="ada", conversation_id="monday")
    state = {"messages": [HumanMessage("And the fig?", id="h2")]}
    create_agent(FakeListChatModel(responses=["Water it."]), [], middleware=[middleware]).invoke(state)
    assert len(shared_system(url, "ada").conversation("monday").history) == 3
    assert ThreadMemRetriever.from_conn_string(url, owner="bob").invoke("fig") == []
