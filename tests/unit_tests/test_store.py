"""`ThreadMemStore`: values by namespace and key, on both databases, in both modes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import WordEmbeddings
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp

from langchain_threadmem import MemorySystem, ThreadMemStore
from langchain_threadmem.errors import ClosedError, EmbeddingError, InputError
from langchain_threadmem.storage.statements import Statement

NS = ("users", "ada")
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
    "\0",
    "a\0b",
]
AWKWARD += [
    "a\1",
    "",
    " ",
    "ü",
    "A",
    "'; DROP TABLE threadmem_item; --",
    "\ud800",
    "🧵",
    "?",
    "%s",
    "langgraph",
]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def minutes(self, minutes: float) -> None:
        self.now += 60 * minutes


class Calls:
    """Calls `store.verb(...)` or `await store.averb(...)`."""

    def __init__(self, store: ThreadMemStore, loop: asyncio.AbstractEventLoop | None) -> None:
        self.store = store
        self._loop = loop

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if self._loop is None:
            found: Callable[..., Any] = getattr(self.store, verb)
            return found
        loop, twin = self._loop, getattr(self.store, f"a{verb}")
        return lambda *arguments, **options: loop.run_until_complete(twin(*arguments, **options))


Make = Callable[..., Calls]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest, system: MemorySystem, clock: Clock) -> Iterator[Make]:
    """Makes stores on the test's system, or on another."""
    loop = asyncio.new_event_loop() if request.param == "async" else None
    opened: list[MemorySystem] = []

    def build(on: MemorySystem = system, **options: Any) -> Calls:
        opened.append(on)
        return Calls(ThreadMemStore(on, clock=clock, **options), loop)

    yield build
    if loop is not None:
        for each in opened:
            loop.run_until_complete(each.aclose())
        loop.close()


@pytest.fixture
def store(make: Make) -> Calls:
    return make()


def keys(found: list[SearchItem]) -> list[str]:
    return [item.key for item in found]


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
    names = [(one, other) for one in AWKWARD for other in AWKWARD[::5]]
    store.batch([PutOp(name, name[1], {"at": list(name)}) for name in names])
    found = store.batch([GetOp(name, name[1]) for name in names])
    assert [(item.namespace, item.key, item.value) for item in found] == [
        (name, name[1], {"at": list(name)}) for name in names
    ]
    for label in AWKWARD:
        (page,) = store.batch([SearchOp((label,), limit=1000)])
        assert [item.namespace for item in page] == [name for name in names if name[0] == label]
    listed = ListNamespacesOp(limit=1000)
    assert store.batch([listed]) == [sorted(names)]


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
        GetOp(("users", 7), "k"),  # type: ignore[arg-type]
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


# --- meaning


def test_search_by_meaning_gives_the_most_similar_first(make: Make) -> None:
    store = make(index={"dims": 64, "fields": ["text"]})
    store.put(NS, "car", {"text": "a red car"})
    store.put(NS, "fruit", {"text": "green apples and pears"})
    store.put(NS, "silent", {"text": "apples"}, index=False)
    found = store.search(NS, query="pears and apples")
    assert keys(found) == ["fruit", "car", "silent"]
    assert 1 >= found[0].score > found[1].score
    assert found[2].score is None
    assert [keys(store.search(NS, query="pears", limit=1, offset=n)) for n in range(4)] == [
        ["fruit"],
        ["car"],
        ["silent"],
        [],
    ]
    assert keys(store.search(NS, query="red car", filter={"text": {"$ne": "a red car"}}))[0] != "car"


def test_an_item_is_as_similar_as_its_most_similar_field(make: Make) -> None:
    store = make(index=True)
    store.put(
        NS, "list", {"notes": [{"text": "a red car"}, {"text": "green apples"}]}, index=["notes[*].text"]
    )
    store.put(NS, "one", {"text": "apples that are green and many other things"}, index=["text"])
    assert keys(store.search(NS, query="green apples")) == ["list", "one"]
    assert store.search(NS, query="green apples")[0].score == pytest.approx(1, abs=1e-3)


def test_a_new_value_is_found_by_its_new_meaning_only(make: Make) -> None:
    store = make(index=True)
    store.put(NS, "k", {"text": "a red car"})
    store.put(NS, "other", {"text": "a red car"})
    store.put(NS, "k", {"text": "green apples"})
    assert keys(store.search(NS, query="a red car")) == ["other", "k"]
    store.put(NS, "k", {"text": "a red car"}, index=False)
    assert store.search(NS, query="a red car")[1].score is None


def test_a_query_without_an_index_is_passed_over(store: Calls) -> None:
    store.put(NS, "k", {"text": "a red car"}, index=["text"])
    assert [item.score for item in store.search(NS, query="car")] == [None]


def test_functions_embed_too(make: Make) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(text.count("a")), float(text.count("b"))] for text in texts]

    store = make(index={"dims": 2, "embed": embed, "fields": ["text"]})
    store.put(NS, "a", {"text": "aaa"})
    store.put(NS, "b", {"text": "bbb"})
    assert [(item.key, item.score) for item in store.search(NS, query="b")] == [("b", 1.0), ("a", 0.0)]


def test_values_that_are_no_json_are_embedded(make: Make) -> None:
    store = make(index=True)
    store.put(NS, "k", {"text": "car \ud800", "t": (1, b"x")})
    assert store.search(NS, query="car")[0].score is not None


def test_dims_that_the_model_does_not_have_are_refused(make: Make) -> None:
    store = make(index={"dims": 3})
    with pytest.raises(EmbeddingError, match="64 dimensions"):
        store.put(NS, "k", {"text": "a"})
    assert store.get(NS, "k") is None


def test_an_index_without_a_model_is_refused_when_it_is_needed(url: str, owner: str, make: Make) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        store = make(system, index=True)
        with pytest.raises(EmbeddingError, match="no embedding model"):
            store.put(NS, "k", {"text": "a"})


# --- time to live


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
    deadline = time.monotonic() + 10
    while (
        store.system.runtime.database.read(lambda conn: conn.all(_rows(system.owner)))
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    assert store.system.runtime.database.read(lambda conn: conn.all(_rows(system.owner))) == []
    assert store.stop_ttl_sweeper(timeout=10)
    assert future.done()


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
