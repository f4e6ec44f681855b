"""The statements and round trips that calls send to PostgreSQL, counted in the messages of the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import MemorySystem, ThreadMemSaver

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform != "linux", reason="libpq traces its messages into a file on Linux only"),
]
CONFIG: Any = {"configurable": {"thread_id": "graph"}}


class Sent(NamedTuple):
    """What a call sent.

    Attributes:
        statements: The executed statements, each row of many included, without `BEGIN` and `COMMIT`.
        transactions: The transactions.
        trips: The answers that the client waited for.
    """

    statements: int
    transactions: int
    trips: int


class Wire:
    """The messages that the connections of a test send, as libpq traces them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._read = 0

    def trace(self, connection: psycopg.Connection[Any]) -> None:
        connection.pgconn.trace(self._file.fileno())

    def sent(self) -> Sent:
        """What was sent since the last call."""
        self._file.seek(self._read)
        traced = [line.split(b"\t") for line in self._file.read().splitlines()]
        self._read = self._file.tell()
        messages = [fields[3:5] for fields in traced if len(fields) > 3 and fields[1] == b"F"]
        kinds = [message[0] for message in messages]
        begun = sum(message[0] == b"Parse" and b'"BEGIN' in message[1] for message in messages)
        executed = kinds.count(b"Execute") + kinds.count(b"Query")
        return Sent(executed - 2 * begun, begun, kinds.count(b"Flush"))


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Traces all connections that are opened from now on."""
    with TemporaryFile() as file:
        wire, connect = Wire(file), psycopg.connect

        def traced(*arguments: Any, **options: Any) -> Any:
            connection = connect(*arguments, **options)
            wire.trace(connection)
            return connection

        monkeypatch.setattr(psycopg, "connect", traced)
        yield wire


@pytest.fixture
def system(postgres_url: str, owner: str, wire: Wire) -> Iterator[MemorySystem]:
    """A system that prepares no statements, so that each execution names its statement."""
    mark = "&" if "?" in postgres_url else "?"
    url = f"{postgres_url}{mark}prepared_statements=false"
    with MemorySystem(url, owner=owner, embeddings=False) as found:
        yield found


def test_a_database_is_opened_with_one_statement(postgres_url: str, system: MemorySystem, wire: Wire) -> None:
    system.conversation("c").append("question", "answer")
    wire.sent()
    with MemorySystem(postgres_url, owner=system.owner, embeddings=False) as again:
        assert wire.sent()[:2] == (1, 0)
        assert len(again.conversation("c").messages) == 2
    assert wire.sent() <= Sent(5, 2, 6)


def test_the_writes_of_a_task_are_sent_in_one_statement(system: MemorySystem, wire: Wire) -> None:
    saver = ThreadMemSaver(system)
    config: Any = {"configurable": {"thread_id": "graph", "checkpoint_ns": "", "checkpoint_id": str(uuid4())}}
    saver.put_writes(config, [("a", 1)], "first")
    wire.sent()
    saver.put_writes(config, [("a", 2), ("b", 3)], "second")
    assert wire.sent()[:2] == (1, 0)


BUDGETS = {
    "sync": Sent(14, 8, 14),
    "async": Sent(14, 8, 14),
    "exit": Sent(4, 2, 4),
}
"""What a turn may send, by durability; LangGraph decides which writes overlap."""
SLACK = 4
"""What a turn may send in addition if its writes overlap."""


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("durability", BUDGETS)
def test_a_turn_of_a_graph_sends_no_more_than_its_budget(
    system: MemorySystem, wire: Wire, mode: str, durability: Any
) -> None:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}", id=str(uuid4()))]}

    graph = StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model")
    chat = graph.compile(ThreadMemSaver(system))

    def ask(n: int) -> Coroutine[Any, Any, Any]:
        given = {"messages": [HumanMessage(f"question {n}")]}
        if mode == "sync":
            return asyncio.to_thread(chat.invoke, given, CONFIG, durability=durability)
        return chat.ainvoke(given, CONFIG, durability=durability)  # type: ignore[no-any-return]

    async def turns() -> list[Sent]:
        sent = []
        for n in range(6):
            await ask(n)
            sent.append(wire.sent())
        return sent[1:]  # The first turn creates the conversation.

    counted = asyncio.run(turns())
    least, most = (Sent(*map(of, zip(*counted, strict=True))) for of in (min, max))
    budget = BUDGETS[durability]
    assert all(count <= allowed for count, allowed in zip(least, budget, strict=True)), (counted, budget)
    # A write that is stored while the checkpoint after it is stored takes another transaction.
    assert all(count <= allowed + SLACK for count, allowed in zip(most, budget, strict=True)), counted
    assert min(counted).statements > 3
