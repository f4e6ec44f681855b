"""The time that a message brings is the time that a reader sees."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemRetriever, create_threaded_chat
from langchain_threadmem.langchain.tools import read_thread_tool, recall_tool
from langchain_threadmem.recall.quoting import recalled

Wrap = Callable[[ChatMemory], Any]
SAID = datetime(2021, 5, 6, 7, 8, 9, tzinfo=UTC)
SHOWN = "2021-05-06T07:08:09+00:00"


def figs(extra: dict[str, Any]) -> BaseMessage:
    return HumanMessage("figs are ripe", additional_kwargs=extra)


@pytest.mark.parametrize(
    "extra",
    [
        {"time": "2021-05-06T07:08:09Z"},
        {"time": SAID},
        {"timestamp": 1620284889},
        {"timestamp": 1620284889_000},
        {"created_at": "2021-05-06 07:08:09"},
        {"create_time": 1620284889.0},
        {"time": "soon", "created": SHOWN},
        # langchain-community 0.4.2: the loaders of Slack, Telegram and WhatsApp, and of iMessage, whose
        # second time is an hour off in the summers of a zone with daylight saving time.
        {"sender": "Ada", "events": [{"message_time": "1620284889.000100"}, {"message_time": "1620284999"}]},
        {"message_time": 641977689_000000000, "message_time_as_datetime": datetime(2021, 5, 6, 8, 8, 9)},
    ],
    ids=str,
)
def test_a_recalled_message_shows_the_time_that_it_brings(
    system: MemorySystem, verbs: Wrap, extra: dict[str, Any]
) -> None:
    memory = verbs(system.conversation("garden"))
    memory.append(figs(extra))
    hit = memory.recall("figs", 1)[0]
    assert hit.time.replace(microsecond=0) == hit.node.time.replace(microsecond=0) == SAID
    assert hit.node.timestamp.year > 2021
    assert recalled(hit)["time"] == SHOWN
    assert memory.recall("figs", filters={"time": {"$gt": datetime(2022, 1, 1)}}) == []
    assert memory.recall("figs", since=datetime(2022, 1, 1)) == []


@pytest.mark.parametrize("extra", [{}, {"time": "soon"}, {"created": [7]}, {"events": ["x", {}]}], ids=str)
def test_a_message_without_a_time_shows_the_time_of_storage(
    system: MemorySystem, extra: dict[str, Any]
) -> None:
    memory = system.conversation("garden")
    memory.append(figs(extra))
    hit = memory.recall("figs", 1)[0]
    assert hit.time == hit.node.timestamp


def test_tools_retriever_and_prompts_show_the_time_of_a_message(system: MemorySystem) -> None:
    memory = system.conversation("garden")
    memory.append(figs({"time": SHOWN}), AIMessage("Pick them.", additional_kwargs={"time": SHOWN}))
    label = f'role="human" time="{SHOWN}"'
    assert label in recall_tool(memory).invoke({"query": "figs"})
    assert label in read_thread_tool(memory).invoke({"message": 1})
    assert ThreadMemRetriever(memory=memory, k=1).invoke("figs")[0].metadata["time"] == SHOWN
    assert "2021-05-06 07:08" in memory.recall("figs")._repr_html_()  # type: ignore[attr-defined]
    chat = create_threaded_chat(
        FakeListChatModel(responses=["Yes."]), system, scope="owner", min_similarity=-1
    )
    state = chat.invoke({"messages": [("user", "Are figs ripe?")]}, {"configurable": {"thread_id": "new"}})
    assert {hit["time"] for hit in state["recalled"]} == {SHOWN}


def test_a_summary_covers_the_times_of_its_messages(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("garden")
    memory.append(figs({"time": SHOWN}), AIMessage("Pick them.", additional_kwargs={"time": "2021-05-07"}))
    verbs(system).summarize_session("garden")
    covers = verbs(memory).recall("figs", rank=1)[0].why.covers
    assert str(covers) == "summary of 2 messages from 2021-05-06 to 2021-05-07"
