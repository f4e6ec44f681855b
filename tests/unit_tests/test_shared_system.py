"""Systems by URL: several adapters share one system."""

from __future__ import annotations

from pathlib import Path

from langchain_core.messages import HumanMessage

from langchain_threadmem import ThreadMemChatMessageHistory, ThreadMemMiddleware, ThreadMemRetriever
from langchain_threadmem.integrations._system import shared_system


def test_there_is_one_system_for_each_database_and_owner(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    ada, bob = shared_system(url, "ada"), shared_system(url, "bob")
    assert shared_system(url, "ada") is ada is not bob
    assert (ada.owner, bob.owner) == ("ada", "bob")
    ada.close()
    bob.close()


def test_one_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    first = shared_system(path)
    first.conversation("c").append("Hello", "Hi!")
    first.close()
    again = shared_system(path)
    assert again.conversations() == ["c"]
    again.close()


def test_what_one_adapter_stores_another_finds(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    history = ThreadMemChatMessageHistory.from_conn_string(url, "monday", owner="ada")
    history.add_messages([HumanMessage("My fig tree has brown leaves.")])
    retriever = ThreadMemRetriever.from_conn_string(url, owner="ada", conversation_id="monday", k=1)
    assert [found.page_content for found in retriever.invoke("fig")] == ["My fig tree has brown leaves."]
    middleware = ThreadMemMiddleware.from_conn_string(url, owner="ada", conversation_id="monday")
    assert middleware._system is shared_system(url, "ada")
    assert ThreadMemRetriever.from_conn_string(url, owner="bob").invoke("fig") == []
    for owner in ("ada", "bob"):
        shared_system(url, owner).close()
