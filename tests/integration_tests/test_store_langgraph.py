"""`ThreadMemStore` in a graph, beside LangGraph's own `InMemoryStore`, and under many writers."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from langchain_threadmem import MemorySystem, ThreadMemStore

# --- the same answers as InMemoryStore

WORDS = ["red", "green", "car", "apple"]


class Axes(Embeddings):
    """Embeds each word as an axis, so that half precision of cosines changes no order."""

    model_name = "axes"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(word in text) for word in WORDS]


class Reference:
    """`InMemoryStore` without its accidental behaviour.

    Searches ask for all items and are cut into pages here: `InMemoryStore` orders items by the age of their
    namespace, `ThreadMemStore` by their own age, and repeats items without a vector on each page. Each put
    is a batch of its own, after the removal of old vectors: `InMemoryStore` fails if two items of a batch
    have the same text, and keeps the vectors of replaced values. It also lists namespaces that were only
    read.
    """

    def __init__(self) -> None:
        self.store = InMemoryStore(index={"dims": len(WORDS), "embed": Axes(), "fields": ["text"]})
        self.age: dict[tuple[tuple[str, ...], str], int] = {}
        self.puts = 0

    def batch(self, ops: list[Op]) -> list[Any]:
        results = [None if isinstance(op, PutOp) else self.read(op) for op in ops]
        last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for name, op in last.items():
            self.store._vectors[op.namespace].pop(op.key, None)
            self.store.batch([op])
            self.puts += 1
            if op.value is None:
                self.age.pop(name, None)
            else:
                self.age.setdefault(name, self.puts)
        return results

    def read(self, op: Op) -> Any:
        for namespace in [namespace for namespace, held in self.store._data.items() if not held]:
            del self.store._data[namespace]
        if not isinstance(op, SearchOp):
            (result,) = self.store.batch([op])
            return result
        found: list[SearchItem]
        (found,) = self.store.batch([op._replace(limit=10**6, offset=0)])  # type: ignore[assignment, list-item]
        found.sort(
            key=lambda item: (-2 if item.score is None else item.score, -self.age[item.namespace, item.key])
        )
        return found[::-1][op.offset : op.offset + op.limit]


labels = st.sampled_from(["a", "b", "ab"])
paths = st.lists(labels, min_size=1, max_size=3).map(tuple)
numbers = st.sampled_from([0, 1, 2, 2.5, -1])
scalars = numbers | st.sampled_from(["1", "7", "x", "red"]) | st.booleans() | st.none()
values = st.fixed_dictionaries(
    {},
    optional={
        "text": st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join),
        "n": scalars,
        "deep": st.fixed_dictionaries({"n": scalars}, optional={"m": scalars}),
        "list": st.lists(scalars, max_size=2),
    },
)
filters = st.dictionaries(
    st.sampled_from(["n", "deep", "list", "text"]),
    scalars
    | st.dictionaries(st.sampled_from(["$eq", "$ne"]), scalars, min_size=1)
    | st.fixed_dictionaries({"n": scalars | st.fixed_dictionaries({"$ne": scalars})})
    | st.lists(scalars, max_size=2),
    max_size=2,
)
orders = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), numbers, min_size=1).map(
    # InMemoryStore fails where a value has no number to compare.
    lambda order: {"size": order}
)
sized = values.flatmap(lambda value: numbers.map(lambda size: {**value, "size": size}))
pages = {"limit": st.integers(0, 4), "offset": st.integers(0, 3)}
ops: st.SearchStrategy[Op] = st.one_of(
    st.builds(PutOp, paths, st.sampled_from("xyz"), sized | sized | st.none(), st.none(), st.none()),
    st.builds(PutOp, paths, st.sampled_from("xyz"), sized, st.sampled_from([False, ["deep.n"]]), st.none()),
    st.builds(GetOp, paths, st.sampled_from("xyz"), st.booleans()),
    st.builds(
        SearchOp,
        paths | st.just(()),
        filter=st.none() | filters | orders,
        query=st.none() | st.sampled_from(WORDS),
        refresh_ttl=st.booleans(),
        **pages,
    ),
    st.builds(
        ListNamespacesOp,
        match_conditions=st.none()
        | st.lists(
            st.builds(
                MatchCondition,
                st.sampled_from(["prefix", "suffix"]),
                st.lists(labels | st.just("*"), max_size=3).map(tuple),
            ),
            max_size=2,
        ).map(tuple),
        max_depth=st.none() | st.integers(0, 3),
        **pages,
    ),
)


def shape(result: Any) -> Any:
    if isinstance(result, list):
        return [shape(part) for part in result]
    if isinstance(result, SearchItem):
        score = None if result.score is None else round(result.score, 2) + 0.0
        return result.namespace, result.key, result.value, score
    return (
        result
        if result is None or isinstance(result, tuple)
        else (result.namespace, result.key, result.value)
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ops, max_size=8), max_size=6))
def test_random_batches_give_what_the_in_memory_store_gives(url: str, batches: list[list[Op]]) -> None:
    reference = Reference()
    with MemorySystem(url, owner=f"owner-{uuid4()}", embeddings=Axes()) as system:
        store = ThreadMemStore(system, index={"dims": len(WORDS), "fields": ["text"]})
        for batch in batches:
            assert shape(store.batch(batch)) == shape(reference.batch(batch))
        whole = SearchOp((), limit=1000)
        assert shape(store.batch([whole])) == shape(reference.batch([whole]))


# --- in a graph


def remember(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
    assert isinstance(runtime.store, BaseStore)
    known = runtime.store.search(("facts",), query=str(state["messages"][-1].content), limit=1)
    runtime.store.put(("facts",), str(uuid4()), {"text": state["messages"][-1].content})
    return {"messages": [("ai", known[0].value["text"] if known else "nothing")]}


async def aremember(state: MessagesState, runtime: Runtime) -> dict[str, Any]:
    assert isinstance(runtime.store, BaseStore)
    known = await runtime.store.asearch(("facts",), query=str(state["messages"][-1].content), limit=1)
    await runtime.store.aput(("facts",), str(uuid4()), {"text": state["messages"][-1].content})
    return {"messages": [("ai", known[0].value["text"] if known else "nothing")]}


SAID = ["green apple", "red car", "what about the apple", "and the car"]
HEARD = ["nothing", "green apple", "green apple", "red car"]


def test_a_graph_remembers_across_threads(system: MemorySystem) -> None:
    graph = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember")
    compiled = graph.compile(store=ThreadMemStore(system, index={"embed": Axes(), "fields": ["text"]}))
    answers = [compiled.invoke({"messages": text})["messages"][-1].content for text in SAID]
    assert answers == HEARD


def test_an_async_graph_remembers_across_threads(system: MemorySystem) -> None:
    graph = StateGraph(MessagesState).add_node("remember", aremember).add_edge(START, "remember")

    async def talk() -> list[Any]:
        compiled = graph.compile(store=ThreadMemStore(system, index={"embed": Axes(), "fields": ["text"]}))
        answers = [(await compiled.ainvoke({"messages": text}))["messages"][-1].content for text in SAID]
        await system.aclose()
        return answers

    assert asyncio.run(talk()) == HEARD


# --- many writers


def work(store: ThreadMemStore, writer: int) -> None:
    for n in range(30):
        here, there = ("w", str((writer + n) % 3)), ("w", str((writer + 2 * n + 1) % 3))
        store.batch(
            [
                GetOp(there, "shared"),
                PutOp(there, "shared", {"n": n}, ttl=5),
                PutOp(here, f"{writer}-{n}", {"n": n}),
                PutOp(here, "shared", None if n % 3 else {"n": n}, ttl=5),
                SearchOp(("w",), limit=5),
            ]
        )


def kept(store: ThreadMemStore) -> Counter[str]:
    return Counter(item.key for item in store.search(("w",), limit=1000) if item.key != "shared")


def expected(writers: Iterable[int]) -> Counter[str]:
    return Counter(f"{writer}-{n}" for writer in writers for n in range(30))


def test_many_threads_lose_nothing_and_wait_for_nobody_for_ever(system: MemorySystem) -> None:
    store = ThreadMemStore(system)
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(work, store, writer) for writer in range(5)]
        sweeps = pool.submit(lambda: [store.sweep_ttl() for _ in range(30)])
        for future in [*done, sweeps]:
            future.result(timeout=300)
    assert kept(store) == expected(range(5))


def test_many_tasks_lose_nothing(system: MemorySystem) -> None:
    store = ThreadMemStore(system)

    async def all_at_once() -> list[Any]:
        await asyncio.gather(*(store.aput(("w", str(n % 7)), f"{n}", {"n": n}) for n in range(200)))
        found = await asyncio.gather(*(store.aget(("w", str(n % 7)), f"{n}") for n in range(200)))
        await system.aclose()
        return [item and item.value["n"] for item in found]

    assert asyncio.run(all_at_once()) == list(range(200))


SCRIPT = f"""
from __future__ import annotations
import sys
from langgraph.store.base import GetOp, PutOp, SearchOp
from langchain_threadmem import ThreadMemStore
{inspect.getsource(work)}
with ThreadMemStore.from_conn_string(sys.argv[1], owner=sys.argv[2]) as store:
    work(store, int(sys.argv[3]))
"""


def test_many_processes_lose_nothing(url: str, owner: str) -> None:
    with ThreadMemStore.from_conn_string(url, owner=owner) as store:
        started = [
            subprocess.Popen([sys.executable, "-c", SCRIPT, url, owner, str(writer)], stderr=subprocess.PIPE)
            for writer in range(3)
        ]
        for process in started:
            assert process.communicate(timeout=600)[1].decode() == ""
            assert process.returncode == 0
        assert kept(store) == expected(range(3))


def test_an_item_that_expires_under_many_hands_is_no_error(system: MemorySystem) -> None:
    store = ThreadMemStore(system)

    def churn(_: int) -> None:
        for n in range(40):
            store.put(("x", str(n % 2)), "k", {"n": n}, ttl=1e-5)
            store.get(("x", "0"), "k")
            store.sweep_ttl()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4), timeout=300))
    assert pytest.approx(0, abs=2) == len(store.search(("x",)))
