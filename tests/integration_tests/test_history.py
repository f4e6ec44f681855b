"""`ThreadMemChatMessageHistory` under LangChain's `RunnableWithMessageHistory`, with a fake chat model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from langchain_threadmem import MemorySystem, ThreadMemChatMessageHistory
from langchain_threadmem.errors import ClosedError, InputError, PersistenceError

CONFIG: Any = {"configurable": {"session_id": "s"}}


def echo(messages: list[BaseMessage]) -> AIMessage:
    """Answers with the number of received messages and the last of them."""
    return AIMessage(f"{len(messages)}: {messages[-1].content}")


def chain(system: MemorySystem, model: Any = None, **options: Any) -> RunnableWithMessageHistory:
    return RunnableWithMessageHistory(
        model or RunnableLambda(echo),
        lambda session_id: ThreadMemChatMessageHistory(session_id, system, **options),
    )


def stored(system: MemorySystem) -> list[Any]:
    return [message.content for message in system.conversation("s").messages]


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, system: MemorySystem) -> Iterator[Any]:
    """Invokes a runnable directly, or on an event loop."""
    if request.param == "sync":
        yield lambda runnable, given: runnable.invoke(given, CONFIG)
        return
    loop = asyncio.new_event_loop()
    yield lambda runnable, given: loop.run_until_complete(runnable.ainvoke(given, CONFIG))
    loop.run_until_complete(system.aclose())
    loop.close()


def test_a_conversation_goes_on_from_call_to_call(system: MemorySystem, call: Any) -> None:
    runnable = chain(system)
    assert call(runnable, "one").content == "1: one"
    assert call(runnable, [HumanMessage("two")]).content == "3: two"
    assert call(runnable, HumanMessage("three")).content == "5: three"
    assert stored(system) == ["one", "1: one", "two", "3: two", "three", "5: three"]
    assert [node.parent_id for node in system.conversation("s").history] == [None, 1, 2, 3, 4, 5]


def test_a_system_message_in_the_input_is_kept_once_and_shown_first(system: MemorySystem, call: Any) -> None:
    runnable = chain(system)
    rule = SystemMessage("Be brief.")
    call(runnable, [rule, HumanMessage("one")])
    call(runnable, [rule, HumanMessage("two")])
    shown = system.conversation("s").messages
    assert [message.type for message in shown] == ["system", "human", "ai", "human", "ai"]
    assert len(system.conversation("s").history) == 5


def test_a_dictionary_with_keys_for_input_and_history(system: MemorySystem, call: Any) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You help {who}."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    runnable = RunnableWithMessageHistory(
        prompt | RunnableLambda(lambda value: echo(value.to_messages())),
        lambda session_id: ThreadMemChatMessageHistory(session_id, system),
        input_messages_key="question",
        history_messages_key="history",
    )
    assert call(runnable, {"who": "Ada", "question": "one"}).content == "2: one"
    assert call(runnable, {"who": "Ada", "question": "two"}).content == "4: two"
    assert stored(system) == ["one", "2: one", "two", "4: two"]


def test_an_output_key_names_the_answer(system: MemorySystem, call: Any) -> None:
    def answer(given: dict[str, Any]) -> dict[str, Any]:
        return {"answer": echo(given["question"]), "sources": []}

    runnable = RunnableWithMessageHistory(
        RunnableLambda(answer),
        lambda session_id: ThreadMemChatMessageHistory(session_id, system),
        input_messages_key="question",
        output_messages_key="answer",
    )
    assert call(runnable, {"question": "one"})["answer"].content == "1: one"
    assert stored(system) == ["one", "1: one"]


def test_a_stream_is_stored_as_one_message(system: MemorySystem) -> None:
    model = FakeListChatModel(responses=["first", "second"])
    assert "".join(chunk.content for chunk in chain(system, model).stream("one", CONFIG)) == "first"

    async def stream() -> str:
        parts = [chunk.content async for chunk in chain(system, model).astream("two", CONFIG)]
        await system.aclose()
        return "".join(parts)

    found = [type(message) for message in system.conversation("s").messages]
    assert found == [HumanMessage, AIMessage]
    assert stored(system) == ["one", "first"]
    assert asyncio.run(stream()) == "second"


def test_what_an_async_call_said_is_in_the_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    async def talk() -> None:
        async with MemorySystem(url, embeddings=False) as system:
            await chain(system).ainvoke("one", CONFIG)
            parts = [
                chunk
                async for chunk in chain(system, FakeListChatModel(responses=["streamed"])).astream(
                    "two", CONFIG
                )
            ]
            assert len(parts) > 1
            await chain(system).abatch(["three"], [CONFIG])
            history = ThreadMemChatMessageHistory("s", system)
            await history.aadd_messages([HumanMessage("four"), AIMessage("by hand")])

    asyncio.run(talk())
    with MemorySystem(url, embeddings=False) as reopened:
        assert stored(reopened) == [
            "one",
            "1: one",
            "two",
            "streamed",
            "three",
            "5: three",
            "four",
            "by hand",
        ]
        assert reopened.verify().ok


def test_a_batch_over_several_sessions(system: MemorySystem) -> None:
    configs: Any = [{"configurable": {"session_id": name}} for name in "abc"]
    found = chain(system).batch(["one", "two", "three"], configs)
    assert [answer.content for answer in found] == ["1: one", "1: two", "1: three"]
    assert sorted(system.conversations()) == ["a", "b", "c"]


def test_two_calls_at_once_both_survive_as_sibling_threads(system: MemorySystem) -> None:
    chain(system).invoke("zero", CONFIG)
    together = Barrier(2, timeout=120)

    def slow(messages: list[BaseMessage]) -> AIMessage:
        together.wait()
        return echo(messages)

    found = chain(system, RunnableLambda(slow)).batch(["left", "right"], [CONFIG, CONFIG])
    assert sorted(answer.content for answer in found) == ["3: left", "3: right"]
    threads = [[n.message.content for n in thread] for thread in system.conversation("s").threads()]
    assert sorted(threads) == [["zero", "1: zero", word, f"3: {word}"] for word in ("left", "right")]


def test_async_calls_at_once_on_a_new_session_become_two_roots(system: MemorySystem) -> None:
    async def talk() -> list[list[Any]]:
        together = asyncio.Barrier(2)

        async def slow(messages: list[BaseMessage]) -> AIMessage:
            await together.wait()
            return echo(messages)

        await chain(system, RunnableLambda(slow)).abatch(["left", "right"], [CONFIG, CONFIG])
        threads = await system.conversation("s").athreads()
        await system.aclose()
        return [[node.message.content for node in thread] for thread in threads]

    assert sorted(asyncio.run(talk())) == [["left", "1: left"], ["right", "1: right"]]


def fail(monkeypatch: pytest.MonkeyPatch, system: MemorySystem, *transactions: str) -> None:
    """Make transactions of a database fail."""

    def full(transaction: Any) -> Any:
        raise PersistenceError("the disk is full")

    for name in transactions:
        monkeypatch.setattr(system.runtime.database, name, full)


def test_an_error_of_a_read_reaches_the_caller(
    system: MemorySystem, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    call(chain(system), "one")
    fail(monkeypatch, system, "read", "aread")
    with pytest.raises(PersistenceError, match="disk is full"):
        call(chain(system), "two")
    monkeypatch.undo()
    assert stored(system) == ["one", "1: one"]


def test_an_error_of_a_write_is_logged_by_langchain(
    system: MemorySystem, monkeypatch: pytest.MonkeyPatch, call: Any, caplog: pytest.LogCaptureFixture
) -> None:
    call(chain(system), "one")
    fail(monkeypatch, system, "write", "awrite")
    with pytest.raises(PersistenceError, match="disk is full"):
        ThreadMemChatMessageHistory("s", system).add_messages([HumanMessage("two")])
    call(chain(system), "two")
    assert "the disk is full" in caplog.text
    monkeypatch.undo()
    assert stored(system) == ["one", "1: one"]


def test_a_failing_model_stores_nothing(system: MemorySystem, call: Any) -> None:
    def down(messages: list[BaseMessage]) -> AIMessage:
        raise ConnectionError("model down")

    with pytest.raises(ConnectionError):
        call(chain(system, RunnableLambda(down)), "one")
    assert stored(system) == []


def test_what_was_shown_stays_while_others_write_until_the_turn_is_stored(system: MemorySystem) -> None:
    history = ThreadMemChatMessageHistory("s", system)
    history.add_messages([HumanMessage("one"), AIMessage("1")])
    assert len(history.messages) == 2
    system.conversation("s").append("other", "writer")
    assert len(history.messages) == 2
    history.add_messages([HumanMessage("two"), AIMessage("2")])
    assert [message.content for message in history.messages] == ["one", "1", "two", "2"]
    assert len(system.conversation("s").threads()) == 2


def test_clear_removes_this_session_only(system: MemorySystem) -> None:
    for session in ("s", "other"):
        ThreadMemChatMessageHistory(session, system).add_user_message("hello")
    history = ThreadMemChatMessageHistory("s", system)
    history.clear()
    assert history.messages == []
    assert system.conversations() == ["other"]

    async def clear() -> list[str]:
        other = ThreadMemChatMessageHistory("other", system)
        await other.aclear()
        assert await other.aget_messages() == []
        left = await system.aconversations()
        await system.aclose()
        return left

    assert asyncio.run(clear()) == []


def test_a_window_limits_what_the_model_is_shown(system: MemorySystem, call: Any) -> None:
    runnable = chain(system, window=lambda messages: messages[-2:])
    for text, shown in [("one", 1), ("two", 3), ("three", 3)]:
        assert call(runnable, text).content == f"{shown}: {text}"
    assert len(stored(system)) == 6


def test_a_node_selector_sorts_the_turns_into_threads(system: MemorySystem, call: Any) -> None:
    runnable = chain(system, node_selector=lambda tree, message: None)
    call(runnable, "one")
    call(runnable, "two")
    assert [len(thread) for thread in system.conversation("s").threads()] == [2, 2]


def test_a_connection_string_opens_one_system_for_all_calls_and_again_after_it_was_closed(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    def history(owner: str = "user") -> ThreadMemChatMessageHistory:
        return ThreadMemChatMessageHistory.from_conn_string(url, "s", owner=owner)

    history().add_user_message("hello")
    assert history().memory._conversation.runtime is history().memory._conversation.runtime
    assert [message.content for message in history().messages] == ["hello"]
    assert history("another").messages == []
    old = history()
    old.memory.close()
    with pytest.raises(ClosedError):
        _ = old.messages
    assert [message.content for message in history().messages] == ["hello"]
    history().memory.close()
    history("another").memory.close()


@pytest.mark.parametrize(("session", "system"), [("", MemorySystem()), ("s", None), ("s", "sqlite://")])
def test_a_session_and_a_system_are_wanted(session: str, system: Any) -> None:
    with pytest.raises(InputError):
        ThreadMemChatMessageHistory(session, system)


def test_options_are_checked_in_python_without_assertions() -> None:
    program = (
        "from langchain_threadmem import MemorySystem, ThreadMemChatMessageHistory\n"
        "ThreadMemChatMessageHistory('s', MemorySystem(embeddings=False), context_depth=-1)"
    )
    result = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True)
    assert "InputError: context_depth must be non-negative" in result.stderr
