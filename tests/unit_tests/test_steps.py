"""Flows and their drivers: the same result sync and async; mistakes are refused."""

from __future__ import annotations

import asyncio
import doctest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.engine import flow
from langchain_threadmem.engine.flow import Call, Flow, Sql, Step, arun, run
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import DriverError
from langchain_threadmem.index.embed import embed
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees

Drive = Callable[[Flow[Any] | Step[Any]], Any]
SOON = 10


@pytest.fixture
def runtime(system: MemorySystem) -> Runtime:
    return system.runtime


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest, runtime: Runtime) -> Drive:
    if request.param == "sync":
        return lambda flow: run(flow, runtime)
    return lambda flow: asyncio.run(asyncio.wait_for(arun(flow, runtime), SOON))


def test_each_kind_of_step_gives_its_result(drive: Drive, runtime: Runtime, owner: str) -> None:
    async def answer() -> str:
        return "asked"

    def flow() -> Flow[list[Any]]:
        tree = yield from Sql(lambda conn: trees.find_or_create(conn, owner, "c", 0.0), write=True)
        found = yield from Sql(lambda conn: trees.find(conn, owner, "c"))
        vectors = yield from embed(runtime, ["two words", "one"])
        searched = yield from Call(lambda: "searched")
        asked = yield from Call(lambda: "asked", answer)
        plain = yield from Call(lambda: "plain")
        return [tree == found, vectors.shape, searched, asked, plain]

    assert drive(flow()) == [True, (2, 64), "searched", "asked", "plain"]


def test_both_drivers_give_the_same_vectors(runtime: Runtime) -> None:
    def flow() -> Flow[Any]:
        return (yield from embed(runtime, ["a text"]))

    assert np.array_equal(run(flow(), runtime), asyncio.run(arun(flow(), runtime)))


def test_a_flow_without_steps_returns_its_value(drive: Drive) -> None:
    def flow() -> Flow[int]:
        return 7
        yield from Call(lambda: None)

    assert drive(flow()) == 7


def test_a_verb_of_one_step_may_be_that_step(drive: Drive, owner: str) -> None:
    made = Sql(lambda conn: trees.find_or_create(conn, owner, "c", 0.0), write=True)

    def flow() -> Flow[int]:
        return (yield from made)

    assert drive(made) == drive(flow())


@pytest.mark.parametrize("write", [False, True])
def test_a_driver_inside_an_sql_function_is_refused(drive: Drive, runtime: Runtime, write: bool) -> None:
    def inner() -> Flow[int]:
        return (yield from Call(lambda: 1))

    def outer() -> Flow[int]:
        return (yield from Sql(lambda conn: run(inner(), runtime), write=write))

    with pytest.raises(DriverError, match="'inner' was run inside an Sql function"):
        drive(outer())


@pytest.mark.parametrize("said_before", [0, 1])
def test_a_verb_inside_an_sql_function_is_refused(
    drive: Drive, system: MemorySystem, said_before: int
) -> None:
    memory = system.conversation("c")
    memory.extend(["before"] * said_before)

    def outer() -> Flow[Any]:
        return (yield from Sql(lambda conn: memory.append("q", "a"), write=True))

    with pytest.raises(DriverError, match="inside an Sql function"):
        drive(outer())
    assert len(memory.history) == said_before


@pytest.mark.parametrize("wrong", [None, 7, "text"])
def test_a_flow_that_yields_no_step_is_refused(drive: Drive, wrong: Any) -> None:
    def flow() -> Flow[None]:
        yield wrong

    with pytest.raises(DriverError, match="not a step; write `yield from`"):
        drive(flow())


def test_a_flow_that_yields_a_flow_is_told_what_to_write(drive: Drive) -> None:
    def inner() -> Flow[None]:
        yield from Call(lambda: None)

    def flow() -> Flow[None]:
        yield inner()  # type: ignore[misc]

    with pytest.raises(DriverError, match="yield from"):
        drive(flow())


def stopping() -> Any:
    raise StopIteration("end")


def make_stopping(kind: str) -> Step[Any]:
    return {
        "read": lambda: Sql(lambda conn: stopping()),
        "write": lambda: Sql(lambda conn: stopping(), write=True),
        "search": lambda: Call(stopping),
        "ask": lambda: Call(stopping),
    }[kind]()


@pytest.mark.parametrize("kind", ["read", "write", "search", "ask"])
def test_stop_iteration_in_a_step_is_a_driver_error(drive: Drive, kind: str) -> None:
    def flow() -> Flow[None]:
        yield from make_stopping(kind)

    with pytest.raises(DriverError, match="StopIteration"):
        drive(flow())


def test_a_flow_may_handle_the_error_of_a_step(drive: Drive) -> None:
    def flow() -> Flow[str]:
        try:
            yield from Call(lambda: 1 / 0)
        except ZeroDivisionError:
            return (yield from Call(lambda: "another way"))
        return "not reached"

    assert drive(flow()) == "another way"


def test_the_error_of_a_step_reaches_the_caller_as_it_is(drive: Drive) -> None:
    def flow() -> Flow[None]:
        yield from Call(lambda: {}["missing"])

    with pytest.raises(KeyError, match="missing"):
        drive(flow())


def test_a_flow_is_closed_when_a_step_fails(drive: Drive) -> None:
    closed: list[bool] = []

    def flow() -> Flow[None]:
        try:
            yield from Call(lambda: 1 / 0)
        finally:
            closed.append(True)

    with pytest.raises(ZeroDivisionError):
        drive(flow())
    assert closed == [True]


def test_a_refused_flow_is_closed_too(drive: Drive, runtime: Runtime) -> None:
    made: list[Flow[None]] = []

    def inner() -> Flow[None]:
        yield from Call(lambda: None)

    def call(conn: Conn) -> None:
        made.append(inner())
        run(made[0], runtime)

    def outer() -> Flow[None]:
        yield from Sql(call)

    with pytest.raises(DriverError):
        drive(outer())
    assert made[0].gi_frame is None  # type: ignore[attr-defined]


def test_cancelling_the_driver_runs_the_flows_finally_block(runtime: Runtime) -> None:
    seen: list[str] = []

    async def never() -> None:
        await asyncio.sleep(60)

    def flow() -> Flow[None]:
        try:
            yield from Call(lambda: None, never)
        except Exception:
            seen.append("swallowed")
        finally:
            seen.append("closed")

    async def main() -> None:
        task = asyncio.ensure_future(arun(flow(), runtime))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SOON)

    asyncio.run(main())
    assert seen == ["closed"]


def test_a_cancelled_appends_turn_is_stored_under_the_ids_it_had(tmp_path: Any) -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    turn = [HumanMessage("q", id="h1"), AIMessage("a", id="a1")]
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("first", "turn")

        async def main() -> None:
            task = asyncio.ensure_future(memory.aappend(*turn))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert [node.message.id for node in await memory.aappend(*turn)] == ["h1", "a1"]

        asyncio.run(asyncio.wait_for(main(), SOON))
        assert [node.message.id for node in memory.history[2:]] == ["h1", "a1"]


def test_nothing_is_cached_of_a_transaction_that_was_rolled_back(drive: Drive, system: MemorySystem) -> None:
    memory = system.conversation("c")

    def flow() -> Flow[int]:
        def make(conn: Conn) -> int:
            tree = trees.find_or_create(conn, system.owner, "c", 0.0)
            raise KeyError(tree)

        return (yield from Sql(make, write=True))

    with pytest.raises(KeyError):
        drive(flow())
    system.conversation("other").append("theirs", "theirs")
    assert memory.messages == []
    memory.append("mine", "mine")
    assert [message.content for message in memory.messages] == ["mine", "mine"]


def test_the_worked_example_runs() -> None:
    found = doctest.testmod(flow)
    assert found.failed == 0
    assert found.attempted >= 6


def test_a_step_of_no_kind_says_so() -> None:
    with pytest.raises(DriverError, match="Step has no run"):
        Step[None]().run(None)  # type: ignore[arg-type]


def test_an_abandoned_flow_leaves_no_transaction_open(system: MemorySystem) -> None:
    def flow() -> Iterator[Step[Any]]:
        yield Sql(lambda conn: 1, write=True)
        yield Sql(lambda conn: 2, write=True)

    started = flow()
    next(started)
    memory: ChatMemory = system.conversation("c")
    assert len(memory.append("q", "a")) == 2
