"""Times to live: expired items are never returned, and are deleted by the sweep."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import DATABASES, SECURED, url_of
from langchain_core.runnables import RunnableLambda
from langgraph.store.base import GetOp, PutOp
from store_calls import NS, Clock, Make, keys, made

from langchain_threadmem import MemorySystem, ThreadMemStore
from langchain_threadmem.engine.owners import ContextField
from langchain_threadmem.storage.statements import Statement


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, system: MemorySystem, clock: Clock) -> Iterator[Make]:
    yield from made(request.param, system, clock)


def test_an_expired_item_is_gone_from_every_read_before_it_is_swept(make: Make, clock: Clock) -> None:
    store = make(index=True)
    store.put(NS, "short", {"text": "car"}, ttl=1)
    store.put(("other",), "long", {"text": "car"})
    clock.minutes(1)
    assert store.get(NS, "short") is None
    assert keys(store.search(())) == keys(store.search((), filter={"text": "car"})) == ["long"]
    assert keys(store.search((), query="car")) == ["long"]
    assert store.list_namespaces() == [("other",)]
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0


def test_a_read_lets_the_time_begin_again(make: Make, clock: Clock) -> None:
    store = make(ttl={"default_ttl": 2})
    for read in (
        lambda: store.get(NS, "k"),
        lambda: store.search(NS),
        lambda: store.search(NS, filter={"a": 1}),
    ):
        store.put(NS, "k", {"a": 1})
        clock.minutes(1.5)
        assert read()
        clock.minutes(1.5)
        assert store.get(NS, "k", refresh_ttl=False) is not None
        clock.minutes(0.5)
        assert store.get(NS, "k") is None


def test_a_read_beside_a_put_lets_the_time_begin_again(make: Make, clock: Clock) -> None:
    store = make(ttl={"default_ttl": 2})
    store.put(NS, "k", {})
    clock.minutes(1.5)
    store.batch([GetOp(NS, "k"), PutOp(NS, "other", {})])
    clock.minutes(1.5)
    assert store.get(NS, "k") is not None


def test_a_search_prolongs_only_what_it_shows(make: Make, clock: Clock) -> None:
    store = make(ttl={"default_ttl": 2})
    store.put(NS, "a", {})
    store.put(NS, "b", {})
    clock.minutes(1.5)
    assert keys(store.search(NS, limit=1)) == ["a"]
    clock.minutes(1)
    assert keys(store.search(NS)) == ["a"]


def test_reading_without_refresh_lets_the_time_run(make: Make, clock: Clock) -> None:
    store = make(ttl={"default_ttl": 2, "refresh_on_read": False})
    store.put(NS, "k", {})
    clock.minutes(1.5)
    assert store.get(NS, "k") is not None
    assert store.search(NS)
    clock.minutes(0.5)
    assert store.get(NS, "k") is None


def test_a_put_sets_its_own_time(make: Make, clock: Clock) -> None:
    store = make(ttl={"default_ttl": 1})
    store.put(NS, "k", {}, ttl=5)
    store.put(NS, "ever", {}, ttl=None)
    clock.minutes(4)
    assert keys(store.search(NS, refresh_ttl=False)) == ["k", "ever"]
    store.put(NS, "k", {})
    clock.minutes(1)
    assert keys(store.search(NS)) == ["ever"]


def test_a_put_over_an_expired_item_makes_a_new_one(make: Make, clock: Clock) -> None:
    store = make(index=True)
    store.put(NS, "k", {"text": "car"}, ttl=1)
    store.put(NS, "other", {"text": "car"})
    clock.minutes(1)
    store.put(NS, "k", {"text": "car"}, index=False)
    item = store.get(NS, "k")
    assert item.created_at.timestamp() == clock.now
    assert keys(store.search(NS)) == ["other", "k"]
    assert store.sweep_ttl() == 0


def test_a_sweep_leaves_others_alone(url: str, make: Make, clock: Clock, owner: str) -> None:
    mine = make(ttl={"default_ttl": 1})
    mine.put(NS, "k", {})
    with MemorySystem(url, owner=f"{owner}-other", embeddings=False) as system:
        theirs = make(system)
        theirs.put(NS, "k", {}, ttl=1)
        theirs.put(NS, "ever", {})
        clock.minutes(1)
        assert mine.sweep_ttl() == 1
        assert theirs.sweep_ttl() == 1
        assert keys(theirs.search(())) == ["ever"]


def test_the_sweeper_sweeps(system: MemorySystem) -> None:
    store = ThreadMemStore(system, ttl={"default_ttl": 1e-5, "sweep_interval_minutes": 0.0005})  # type: ignore[typeddict-item]
    store.put(("a",), "k", {})
    future = store.start_ttl_sweeper()
    assert store.start_ttl_sweeper() is future
    deadline = time.monotonic() + 60
    while (
        store.system.runtime.database.read(lambda conn: conn.all(_rows(system.owner)))
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    assert store.system.runtime.database.read(lambda conn: conn.all(_rows(system.owner))) == []
    assert store.stop_ttl_sweeper(timeout=10)
    assert future.done()


@pytest.fixture(params=[*DATABASES, SECURED])
def users_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path)


@pytest.mark.parametrize("of_system", [True, False])
@pytest.mark.parametrize("sweep", ["sync", "async", "sweeper"])
def test_a_store_for_the_owners_of_runs_sweeps_the_items_of_all_of_them(
    users_url: str, owner: str, clock: Clock, of_system: bool, sweep: str
) -> None:
    users = [f"{owner}-{n}" for n in range(3)]
    named: Any = {"owner": ContextField("user_id")} if of_system else {"owner": f"{owner}-nobody"}
    with MemorySystem(users_url, embeddings=False, **named) as system:
        store = ThreadMemStore(
            system,
            owner=None if of_system else "user_id",
            ttl={"sweep_interval_minutes": 0.0005},  # type: ignore[typeddict-item]
            clock=clock,
        )
        put = RunnableLambda(lambda _: (store.put(NS, "k", {}, ttl=1), store.put(("ever",), "k", {})))
        for user in users:
            put.invoke(None, {"configurable": {"user_id": user}})
        clock.minutes(1)
        if sweep == "sweeper":
            store.start_ttl_sweeper()
            deadline = time.monotonic() + 60
            while any(len(_paths(system, user)) > 1 for user in users) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert store.stop_ttl_sweeper(timeout=10)
        else:
            removed = store.sweep_ttl() if sweep == "sync" else asyncio.run(store.asweep_ttl())
            assert removed >= len(users)  # The tests on a server share its owners.
        assert [len(_paths(system, user)) for user in users] == [1, 1, 1]
        assert (store.sweep_ttl(), asyncio.run(store.asweep_ttl())) == (0, 0)


def _paths(system: MemorySystem, owner: str) -> list[Any]:
    database = system.for_owner(owner).runtime.database
    return database.read(lambda conn: conn.all(_rows(owner)))


def test_a_sweep_without_an_owner_of_runs_is_of_its_owner_in_a_run_too(
    system: MemorySystem, clock: Clock
) -> None:
    store = ThreadMemStore(system, ttl={"default_ttl": 1}, clock=clock)
    store.put(NS, "k", {})
    clock.minutes(1)
    sweep = RunnableLambda(lambda _: store.sweep_ttl())
    assert sweep.invoke(None, {"configurable": {"user_id": "somebody"}}) == 1


def _rows(owner: str) -> Statement:
    sql = f"SELECT path FROM threadmem_namespace WHERE owner = '{owner}'"
    return Statement.of(sqlite=sql, postgresql=sql)


def test_cancelling_ends_the_sweeper(system: MemorySystem) -> None:
    store = ThreadMemStore(system, ttl={"default_ttl": 1})
    future = store.start_ttl_sweeper()
    assert future.cancel()
    assert store.stop_ttl_sweeper(timeout=10)
    assert store.start_ttl_sweeper() is not future
    assert store.stop_ttl_sweeper(timeout=10)


def test_without_settings_there_is_no_sweeper(system: MemorySystem) -> None:
    before = threading.active_count()
    store = ThreadMemStore(system)
    assert store.start_ttl_sweeper().done()
    assert store.stop_ttl_sweeper()
    assert threading.active_count() == before
