"""`ThreadMemStore`: values by namespace and key, on both databases, sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import DERIVED, Word, WordEmbeddings
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from store_calls import NS, Calls, Clock, Make, keys, made

from langchain_threadmem import MemorySystem, ThreadMemStore
from langchain_threadmem.errors import ClosedError, InputError
from langchain_threadmem.langgraph.items.queries import _BELOW
from langchain_threadmem.storage.statements import Statement

AWKWARD = [
    "a",
    "ab",
    "a_b",
    "aXb",
    "a%",
    "%",
    "_",
    "*",
    "a*",
    "\\",
    "a\\b",
    ".",
    "a.b",
    "a/b",
    ":",
    "?",
    "%s",
]
AWKWARD += [
    "",
    " ",
    "\0",
    "a\0b",
    "a\1",
    "\ud800",
    "ü",
    "A",
    "🧵",
    "langgraph",
    "'; DROP TABLE threadmem_item; --",
]


def is_refused(label: str) -> bool:
    return not label or "." in label or "\0" in label


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, system: MemorySystem, clock: Clock) -> Iterator[Make]:
    yield from made(request.param, system, clock)


@pytest.fixture
def store(make: Make) -> Calls:
    return make()


def count(system: MemorySystem, table: str) -> int:
    statement = Statement.of(
        sqlite=f"SELECT count(*) FROM threadmem_{table}", postgresql=f"SELECT count(*) FROM threadmem_{table}"
    )
    return int(system.runtime.database.read(lambda conn: conn.all(statement))[0][0])


# --- putting, getting, deleting


def test_what_was_put_is_got(store: Calls, clock: Clock) -> None:
    store.put(NS, "likes", {"food": "figs", "n": [1, 2.5, None, True]})
    item = store.get(NS, "likes")
    assert (item.namespace, item.key) == (NS, "likes")
    assert item.value == {"food": "figs", "n": [1, 2.5, None, True]}
    assert item.created_at.timestamp() == item.updated_at.timestamp() == clock.now


def test_nothing_is_got_where_nothing_was_put(store: Calls) -> None:
    store.put(NS, "likes", {})
    assert store.get(NS, "other") is None
    assert store.get(("users",), "likes") is None
    assert store.get((*NS, "more"), "likes") is None


def test_a_second_put_replaces_the_value_and_keeps_the_time_of_creation(store: Calls, clock: Clock) -> None:
    store.put(NS, "likes", {"food": "figs"})
    clock.minutes(1)
    store.put(NS, "likes", {"drink": "tea"})
    item = store.get(NS, "likes")
    assert item.value == {"drink": "tea"}
    assert (item.updated_at - item.created_at).total_seconds() == 60


def test_what_was_deleted_is_gone(store: Calls, system: MemorySystem) -> None:
    store.put(NS, "likes", {"food": "figs"})
    store.put(NS, "other", {})
    store.delete(NS, "likes")
    store.delete(NS, "never there")
    assert store.get(NS, "likes") is None
    assert keys(store.search(())) == ["other"]


def test_deleting_the_last_item_leaves_no_row(make: Make) -> None:
    with MemorySystem(None, embeddings=WordEmbeddings()) as system:
        store = make(system, index=True)
        store.put(NS, "likes", {"food": "figs"})
        assert [count(system, table) for table in ("namespace", "item", "item_vector")] == [1, 1, 1]
        store.delete(NS, "likes")
        assert [count(system, table) for table in ("namespace", "item", "item_vector")] == [0, 0, 0]


def test_an_item_is_a_copy(store: Calls) -> None:
    value = {"food": ["figs"]}
    store.put(NS, "likes", value)
    value["food"].append("plums")
    store.get(NS, "likes").value["food"].append("pears")
    store.search(NS)[0].value["food"].append("dates")
    assert store.get(NS, "likes").value == {"food": ["figs"]}


def test_values_come_back_as_they_were(store: Calls) -> None:
    value = {
        "tuple": (1, ("a",)),
        "set": {1},
        "bytes": b"\x00",
        "keys": {1: "one", "#": "hash"},
        "inf": float("inf"),
        "nul": "\0",
        "surrogate": "\ud800",
        "lc": {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]},
        "secret": {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]},
    }
    store.put(NS, "k", value)
    back = store.get(NS, "k").value
    assert back == value
    assert list(map(type, back.values())) == list(map(type, value.values()))


@pytest.mark.parametrize("value", DERIVED)
def test_text_and_numbers_of_a_subclass_are_stored_and_found_as_their_base(store: Calls, value: Any) -> None:
    store.put(NS, "k", {"v": value, "all": (value,)})
    assert store.get(NS, "k").value == {"v": value, "all": (value,)}
    assert keys(store.search(NS, filter={"v": value})) == ["k"]
    assert keys(store.search(NS, filter={"v": {"$gte": value}})) == ["k"]


@pytest.mark.parametrize("name", [Word("pear"), np.str_("pear")])
def test_names_of_a_subclass_of_text_name_what_their_base_names(store: Calls, name: str) -> None:
    store.put((name,), name, {name: 1})
    item = store.get(("pear",), "pear")
    assert (item.namespace, item.key, item.value) == (("pear",), "pear", {"pear": 1})
    assert store.get((name,), name) == item


def test_a_value_that_cannot_be_stored_exactly_is_refused_with_its_path(store: Calls) -> None:
    store.put(NS, "k", {"a": 1})
    with pytest.raises(InputError, match=r"'value.a\[1\].b'"):
        store.batch([PutOp(NS, "other", {}), PutOp(NS, "k", {"a": [1, {"b": object()}]})])
    assert store.get(NS, "k").value == {"a": 1}
    assert store.get(NS, "other") is None


@pytest.mark.parametrize("wrong", [[1], "text", 7])
def test_a_value_that_is_no_dictionary_is_refused(store: Calls, wrong: Any) -> None:
    with pytest.raises(InputError, match="is a dictionary"):
        store.put(NS, "k", wrong)


# --- names


def test_no_character_of_a_label_or_key_has_a_meaning(store: Calls) -> None:
    labels = [label for label in AWKWARD if not is_refused(label)]
    names = [(one, other) for one in labels for other in labels[::5]]
    places = [(name, key) for name in names for key in AWKWARD[::3]]
    store.batch([PutOp(name, key, {"at": [*name, key]}) for name, key in places])
    found = store.batch([GetOp(name, key) for name, key in places])
    assert [(item.namespace, item.key, item.value) for item in found] == [
        (name, key, {"at": [*name, key]}) for name, key in places
    ]
    for label in labels:
        (page,) = store.batch([SearchOp((label,), limit=1000)])
        assert [(item.namespace, item.key) for item in page] == [at for at in places if at[0][0] == label]
    listed = ListNamespacesOp(limit=1000)
    assert store.batch([listed]) == [sorted(names)]


@pytest.mark.parametrize("label", [7, *(label for label in AWKWARD if is_refused(label))])
def test_a_batch_refuses_the_labels_that_langgraph_refuses(store: Calls, label: Any) -> None:
    store.put(("fine",), "k", {})
    refused: list[Op] = [
        PutOp(("fine", label), "k", {}),
        GetOp((label,), "k"),
        SearchOp((label,)),
        ListNamespacesOp((MatchCondition("prefix", (label,)),)),
    ]
    for op in refused:
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("fine",), "k", None), op])
    assert store.get(("fine",), "k") is not None


def test_namespaces_are_compared_by_label(store: Calls) -> None:
    for namespace in [("foo",), ("foobar",), ("foo", "bar"), ("fo",), ("FOO",), ("foo_", "bar")]:
        store.put(namespace, "k", {})
    assert [item.namespace for item in store.search(("foo",))] == [("foo",), ("foo", "bar")]
    assert store.list_namespaces(prefix=("foo",)) == [("foo",), ("foo", "bar")]
    assert store.list_namespaces(suffix=("bar",)) == [("foo", "bar"), ("foo_", "bar")]


def test_the_empty_prefix_is_everything(store: Calls) -> None:
    store.put(("a",), "1", {})
    store.put(("b", "c"), "2", {})
    assert keys(store.search(())) == ["1", "2"]


def test_a_star_stands_for_one_label_when_namespaces_are_listed(store: Calls) -> None:
    for namespace in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "*", "1"), ("a", "1")]:
        store.put(namespace, "k", {})
    assert store.list_namespaces(prefix=("a", "*", "1")) == [("a", "x", "1"), ("a", "y", "1")]
    assert store.list_namespaces(suffix=("y", "*")) == [("a", "y", "1"), ("a", "y", "2")]
    assert store.list_namespaces(prefix=("*", "*", "*"), suffix=("2",)) == [("a", "y", "2")]
    assert [item.namespace for item in store.search(("b", "*"))] == [("b", "*", "1")]


def test_listed_namespaces_can_be_cut_and_paged(store: Calls) -> None:
    for namespace in [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c"),
    ]:
        store.put(namespace, "k", {})
    cut = [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == cut
    assert store.list_namespaces(max_depth=1) == [("a",)]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3, limit=1, offset=1) == cut[1:2]


@pytest.mark.parametrize(
    "op",
    [
        GetOp("users", "k"),
        GetOp(NS, 7),  # type: ignore[arg-type]
        PutOp(NS, "k" * 3000, {}),
        PutOp(NS, "k", {}, ttl=0),
        PutOp(NS, "k", {}, ttl=float("nan")),
        SearchOp(NS, limit=-1),
        SearchOp(NS, offset=-1),
        SearchOp(NS, limit="1"),  # type: ignore[arg-type]
        SearchOp(NS, query=7),  # type: ignore[arg-type]
        SearchOp(NS, filter={"a": {"$in": [1]}}),
        ListNamespacesOp(max_depth=-1),
        ListNamespacesOp(match_conditions=(MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
        "get",
    ],
)
def test_an_operation_that_means_nothing_is_refused(store: Calls, op: Any) -> None:
    with pytest.raises(InputError):
        store.batch([op])


def test_all_below_a_namespace_is_one_range_of_an_index() -> None:
    with MemorySystem() as system:
        plan = Statement.of(sqlite="EXPLAIN QUERY PLAN " + _BELOW.sql("sqlite"), postgresql="")
        rows = system.runtime.database.read(lambda conn: conn.all(plan, "ada", b"a", b"b", 0, 100, 0))
    assert "(owner=? AND path>? AND path<?)" in rows[0][3]


# --- searching


def test_search_gives_the_oldest_first_in_pages(store: Calls) -> None:
    for n in range(7):
        store.put(("a", str(n % 2)), str(n), {"n": n})
    store.put(("a", "0"), "0", {"n": 0})
    everything = keys(store.search(("a",), limit=100))
    assert everything == list("0123456")
    pages = [keys(store.search(("a",), limit=3, offset=offset)) for offset in (0, 3, 6, 9)]
    assert pages == [list("012"), list("345"), list("6"), []]
    assert keys(store.search(("a",), limit=0)) == []
    assert len(store.search(("a",), limit=10**30)) == 7


def test_search_filters_before_it_counts(store: Calls) -> None:
    store.batch([PutOp(NS, str(n), {"n": n, "even": n % 2 == 0}) for n in range(1200)])
    assert keys(store.search(NS, filter={"even": True}, limit=3, offset=1)) == ["2", "4", "6"]
    assert keys(store.search(NS, filter={"n": {"$gte": 1197, "$ne": 1198}})) == ["1197", "1199"]


@pytest.mark.parametrize(
    "key", ["x') OR '1'='1", 'a"', "$.secret", "a.b", "ü", "\0", "' UNION SELECT 1 --", "%s", "?"]
)
def test_a_hostile_filter_key_finds_only_what_has_that_key(store: Calls, key: str) -> None:
    store.put(NS, "secret", {"secret": 1, "a": {"b": 1}})
    store.put(NS, "own", {key: 1})
    assert keys(store.search((), filter={key: 1})) == ["own"]
    assert keys(store.search((), filter={"secret": f"1' OR {key}"})) == []


# --- owners, batches, opening


def test_no_owner_sees_anothers_items(url: str, owner: str, make: Make) -> None:
    mine = make(index=True)
    mine.put(NS, "secret", {"text": "the vault opens with heron"})
    with MemorySystem(url, owner=f"{owner}%", embeddings=WordEmbeddings()) as system:
        theirs = make(system, index=True)
        assert theirs.get(NS, "secret") is None
        assert theirs.search(()) == theirs.search((), query="heron") == []
        assert theirs.search((), filter={"text": {"$ne": ""}}) == []
        assert theirs.list_namespaces() == []
        theirs.put(NS, "secret", {"text": "nothing"})
        theirs.delete(NS, "secret")
        assert mine.get(NS, "secret").value == {"text": "the vault opens with heron"}
        assert mine.search((), query="heron")[0].score > 0


def test_reads_of_a_batch_see_what_was_there_before_it(store: Calls) -> None:
    store.put(NS, "k", {"n": 1})
    results = store.batch([PutOp(NS, "k", {"n": 2}), GetOp(NS, "k"), PutOp(NS, "new", {}), SearchOp(NS)])
    assert results[0] is results[2] is None
    assert results[1].value == {"n": 1}
    assert keys(results[3]) == ["k"]


def test_the_last_put_to_a_key_wins(store: Calls) -> None:
    store.batch(
        [PutOp(NS, "k", {"n": 1}), PutOp(NS, "gone", {}), PutOp(NS, "k", {"n": 2}), PutOp(NS, "gone", None)]
    )
    assert [(item.key, item.value) for item in store.search(NS)] == [("k", {"n": 2})]


def test_an_empty_batch_is_nothing(store: Calls) -> None:
    assert store.batch([]) == []


def test_the_operations_may_come_from_a_generator(store: Calls) -> None:
    assert store.batch(PutOp(NS, str(n), {}) for n in range(3)) == [None] * 3
    assert keys(store.search(NS)) == ["0", "1", "2"]


def test_items_outlive_the_store(url: str, owner: str) -> None:
    with ThreadMemStore.from_conn_string(url, owner=owner) as store:
        store.setup()
        store.put(NS, "k", {"n": 1})

    async def read() -> Any:
        async with ThreadMemStore.from_conn_string(url, owner=owner) as store:
            await store.asetup()
            return await store.aget(NS, "k")

    assert asyncio.run(read()).value == {"n": 1}
    with pytest.raises(ClosedError):
        store.get(NS, "k")


def test_a_store_leaves_the_system_it_was_given_open(system: MemorySystem) -> None:
    with ThreadMemStore(system) as store:
        store.put(NS, "k", {})
    assert store.get(NS, "k") is not None


@pytest.mark.parametrize(
    "options",
    [
        {"index": "text"},
        {"index": {"dimensions": 3}},
        {"index": {"fields": "text"}},
        {"index": {"dims": 0}},
        {"index": {"dims": 3, "embed": 3}},
        {"index": {"distance_type": "l2"}},
        {"ttl": 5},
        {"ttl": {"default": 5}},
        {"ttl": {"default_ttl": 0}},
        {"ttl": {"sweep_interval_minutes": -1}},
        {"ttl": {"omit_expired": False}},
    ],
)
def test_a_setting_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ThreadMemStore.from_conn_string("sqlite://", **options)


def test_a_store_needs_a_system() -> None:
    with pytest.raises(InputError, match="from_conn_string"):
        ThreadMemStore("sqlite:///x.db")  # type: ignore[arg-type]
