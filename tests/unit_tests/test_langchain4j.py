"""LangChain4j's chat memories: the cases of its behaviour, its stores, its provider.

Messages are written as in `docs/decisions.md`: `S` system, `U` user, `A` answer, `AT` answer with tool calls,
`T` result, with a number to distinguish them; in a token window, `#n` is the length.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import WordEmbeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import (
    ChatMemoryStore,
    MemorySystem,
    MessageWindow,
    MessageWindowChatMemory,
    TokenWindowChatMemory,
)
from langchain_threadmem.errors import InputError, UnsupportedMessageError
from langchain_threadmem.langchain.langchain4j import (
    ChatMemoryProvider,
    SingleSlotChatMemoryStore,
    SystemChatMemoryStore,
)

BOTH = pytest.mark.parametrize("compat", [None, "langchain4j"])


def message(name: str) -> BaseMessage:
    """`AT:a,b` calls a and b, `T:a` is the result of a; other names are as in the cases."""
    about = name.split("#")[0].split(":")[-1]
    if name.startswith("AT"):
        calls = [{"name": "look", "args": {}, "id": one} for one in about.split(",")]
        return AIMessage(name, tool_calls=calls)
    if name.startswith("T"):
        return ToolMessage(name, tool_call_id=about)
    return {"S": SystemMessage, "A": AIMessage}.get(name[0], HumanMessage)(name)


def names(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.content) for message in messages]


def tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(int(str(message.content).split("#")[1]) for message in messages)


def played(memory: Any, *said: str) -> list[str]:
    """The contents of the memory after each message."""
    seen = []
    for name in said:
        memory.add(message(name))
        seen.append(" ".join(names(memory.messages)))
    return seen


def window(limit: Any, compat: Any = None, **options: Any) -> MessageWindowChatMemory:
    return MessageWindowChatMemory(limit, compat=compat, **options)


class Counting(ChatMemoryStore):
    """Counts reads, writes and deletions."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = [0, 0, 0]

    def get_messages(self, memory_id: Any) -> list[BaseMessage]:
        self.calls[0] += 1
        return super().get_messages(memory_id)

    def update_messages(self, memory_id: Any, messages: Sequence[BaseMessage]) -> None:
        self.calls[1] += 1
        super().update_messages(memory_id, messages)

    def delete_messages(self, memory_id: Any) -> None:
        self.calls[2] += 1
        super().delete_messages(memory_id)

    def since(self) -> tuple[int, ...]:
        found, self.calls = tuple(self.calls), [0, 0, 0]
        return found


MESSAGE_CASES: dict[str, tuple[int, dict[str, Any], list[tuple[str, str]]]] = {
    "01": (3, {}, [("U1", "U1"), ("A1", "U1 A1"), ("U2", "U1 A1 U2"), ("A2", "A1 U2 A2")]),
    "03": (
        3,
        {},
        [("S", "S"), ("U1", "S U1"), ("A1", "S U1 A1"), ("U2", "S A1 U2"), ("A2", "S U2 A2")],
    ),
    "04": (3, {}, [("S1", "S1"), ("U", "S1 U"), ("A", "S1 U A"), ("S2", "U A S2")]),
    "05": (3, {}, [("S", "S"), ("U", "S U"), ("A", "S U A"), ("S", "S U A")]),
    "06 first": (5, {"keep_system_first": True}, [("U", "U"), ("S", "S U"), ("A", "S U A")]),
    "06": (5, {}, [("U", "U"), ("S", "U S"), ("A", "U S A")]),
    "07": (
        3,
        {"keep_system_first": True},
        [("S", "S"), ("m1", "S m1"), ("m2", "S m1 m2"), ("m3", "S m2 m3")],
    ),
    "08": (
        3,
        {"keep_system_first": True},
        [("S1", "S1"), ("U1", "S1 U1"), ("A1", "S1 U1 A1"), ("S2", "S2 U1 A1"), ("U2", "S2 A1 U2")],
    ),
    "09": (2, {}, [("U", "U"), ("AT:a", "U AT:a"), ("T:a", "AT:a T:a"), ("A", "A")]),
    "10": (
        3,
        {},
        [("S", "S"), ("U", "S U"), ("AT:a", "S U AT:a"), ("T:a", "S AT:a T:a"), ("A", "S A")],
    ),
    "11": (2, {}, [("S", "S"), ("U", "S U"), ("AT:a", "S AT:a"), ("T:a", "S")]),
    "12": (
        3,
        {},
        [
            ("U", "U"),
            ("AT:a,b", "U AT:a,b"),
            ("T:a", "U AT:a,b T:a"),
            ("T:b", "AT:a,b T:a T:b"),
            ("A", "A"),
        ],
    ),
    "12 with a system message": (
        4,
        {},
        [
            ("S", "S"),
            ("U", "S U"),
            ("AT:a,b", "S U AT:a,b"),
            ("T:a", "S U AT:a,b T:a"),
            ("T:b", "S AT:a,b T:a T:b"),
            ("A", "S A"),
        ],
    ),
    "16": (
        3,
        {},
        [
            ("U1", "U1"),
            ("A1", "U1 A1"),
            ("S", "U1 A1 S"),
            ("U2", "A1 S U2"),
            ("A2", "S U2 A2"),
            ("U3", "S A2 U3"),
        ],
    ),
    "M1": (1, {}, [("S", "S"), ("U", "S"), ("A", "S")]),
    "M11": (1, {}, [("AT:a", "AT:a"), ("T:a", "")]),
}


@BOTH
@pytest.mark.parametrize("case", MESSAGE_CASES)
def test_message_window_cases(case: str, compat: Any) -> None:
    limit, options, steps = MESSAGE_CASES[case]
    said, expected = [name for name, _ in steps], [held for _, held in steps]
    assert played(window(limit, compat, **options), *said) == expected
    view = MessageWindow(limit, compat=compat, **options)
    for n, held in enumerate(expected):
        assert " ".join(names(view([message(name) for name in said[: n + 1]]))) == held


@BOTH
def test_case_02_clear_twice(compat: Any) -> None:
    memory = window(2, compat)
    memory.add("hello", "world", "banana")
    assert names(memory.messages) == ["world", "banana"]
    for _ in range(2):
        memory.clear()
        assert memory.messages == []


@BOTH
def test_case_05_an_equal_system_message_is_not_written(compat: Any) -> None:
    store = Counting()
    memory = window(3, compat, store=store)
    played(memory, "S", "U", "A")
    store.since()
    memory.add(SystemMessage("S", id="another"))
    assert store.since() == (1, 0, 0)


ORPHANS = {
    "M9": (3, ["T:a"], "", "T:a"),
    "M9 in a talk": (3, ["U", "T:a"], "U", "U T:a"),
    "M10": (2, ["S", "AT:a,b", "T:a", "T:b"], "S", "S T:b"),
    "M10 without a system message": (1, ["AT:a,b", "T:a", "T:b"], "", "T:b"),
    "M12": (3, ["AT:a", "U", "T:a", "A"], "U A", "U T:a A"),
    "M12, two calls": (4, ["AT:a,b", "T:a", "U", "T:b", "A"], "U A", "U T:b A"),
    "M12 behind a system message": (3, ["AT:a", "S", "T:a", "A"], "S A", "S T:a A"),
}


@pytest.mark.parametrize("case", ORPHANS)
def test_r18_orphans_are_gone_by_default_and_stay_as_in_langchain4j_under_compat(case: str) -> None:
    limit, said, strict, exact = ORPHANS[case]
    assert played(window(limit), *said)[-1] == strict
    assert played(window(limit, "langchain4j"), *said)[-1] == exact
    assert played(window(limit, strict_tool_pairs=False), *said)[-1] == exact


@BOTH
def test_case_21_set_copies_the_list(compat: Any) -> None:
    memory = window(2, compat)
    given = [message(name) for name in ("m1", "m2", "m3")]
    memory.set(given)
    assert names(memory.messages) == ["m2", "m3"]
    assert names(given) == ["m1", "m2", "m3"]
    given.clear()
    assert names(memory.messages) == ["m2", "m3"]


@BOTH
def test_case_22_set_evicts_whole_exchanges(compat: Any) -> None:
    memory = window(3, compat)
    memory.set([message(name) for name in ("U0", "AT:a", "T:a", "A", "U1")])
    assert names(memory.messages) == ["A", "U1"]


@BOTH
@pytest.mark.parametrize("nothing", [None, [], ()])
def test_case_24_and_r19_set_refuses_nothing(nothing: Any, compat: Any) -> None:
    store = Counting()
    memory = window(2, compat, store=store)
    memory.add("U")
    store.since()
    with pytest.raises(ValueError, match=r"use clear\(\)"):
        memory.set(nothing)
    assert store.since() == (0, 0, 0)
    assert names(memory.messages) == ["U"]


@BOTH
def test_set_takes_several_system_messages_and_keeps_the_first(compat: Any) -> None:
    memory = window(3, compat, keep_system_first=True)
    memory.set([message(name) for name in ("U", "S1", "S2")])
    assert names(memory.messages) == ["U", "S1", "S2"]
    assert played(memory, "A") == ["S1 S2 A"]
    assert played(memory, "U2") == ["S1 A U2"]


@BOTH
def test_a_new_system_message_replaces_the_first_of_several(compat: Any) -> None:
    memory = window(4, compat)
    memory.set([message(name) for name in ("S1", "S2", "U")])
    assert played(memory, "S2") == ["S2 U S2"]


@BOTH
@pytest.mark.parametrize("limit", [0, -1])
def test_case_25_a_limit_that_is_not_greater_than_zero(limit: int, compat: Any) -> None:
    with pytest.raises(ValueError, match=f"^maxMessages must be greater than zero, but is: {limit}$"):
        window(limit, compat)
    with pytest.raises(ValueError, match=f"^maxTokens must be greater than zero, but is: {limit}$"):
        TokenWindowChatMemory(limit, tokens, compat=compat)


def test_case_25_a_limit_is_required() -> None:
    with pytest.raises(TypeError):
        MessageWindowChatMemory()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="maxMessages"):
        MessageWindowChatMemory(None)  # type: ignore[arg-type]


@BOTH
def test_case_25_a_limit_that_becomes_zero_is_an_error_each_time(compat: Any) -> None:
    limits = [0]
    with pytest.raises(ValueError, match="but is: 0"):
        window(lambda id: limits[0], compat)
    limits[0] = 2
    memory = window(lambda id: limits[0], compat)
    memory.add("one", "two")
    limits[0] = 0
    uses: list[Callable[[], Any]] = [
        lambda: memory.messages,
        lambda: memory.add("three"),
        lambda: memory.set(["three"]),
    ]
    for use in (*uses, *uses):
        with pytest.raises(ValueError, match=r"^maxMessages must be greater than zero, but is: 0$"):
            use()
    limits[0] = 2
    assert names(memory.messages) == ["one", "two"]


@BOTH
def test_case_26_one_function_many_ids(compat: Any) -> None:
    def limits(id: Any) -> int:
        return {"short": 2, "long": 4}.get(id, 3)

    for id, said, kept in (("short", 3, 2), ("long", 5, 4), ("other", 4, 3)):
        memory = window(limits, compat, id=id)
        memory.add(*(f"u{n}" for n in range(said)))
        assert names(memory.messages) == [f"u{n}" for n in range(said)][-kept:]


@BOTH
def test_case_27_and_r20_a_limit_that_changes(compat: Any) -> None:
    limit = [3]
    memory = window(lambda id: limit[0], compat)
    assert played(memory, "A", "B", "C", "D")[-1] == "B C D"
    limit[0] = 5
    assert played(memory, "E") == ["B C D E"]
    limit[0] = 2
    assert names(memory.messages) == ["D", "E"]
    limit[0] = 5  # reading wrote nothing
    assert names(memory.messages) == ["B", "C", "D", "E"]
    limit[0] = 2
    memory.add("F")
    limit[0] = 5
    assert names(memory.messages) == ["E", "F"]


TOKEN_CASES: dict[str, tuple[int, list[tuple[str, str]]]] = {
    "29": (30, [("a#10", "a"), ("b#10", "a b"), ("c#10", "a b c"), ("d#10", "b c d")]),
    "30": (5, [("U#10", ""), ("A#3", "A")]),
    "31": (5, [("S#10", "S"), ("U#1", "S"), ("A#1", "S")]),
    "34": (30, [("a#10", "a"), ("b#20", "a b"), ("c#1", "b c")]),
    "34 at once": (30, [("a#10", "a"), ("b#10", "a b"), ("c#10", "a b c"), ("d#25", "d")]),
    "T5": (20, [("AT:a#5", "AT:a"), ("T:a#10", "AT:a T:a"), ("A#6", "A")]),
    "an oversize message amid others": (5, [("U#2", "U"), ("A#9", ""), ("V#3", "V")]),
    "a system message that fills it": (5, [("S#5", "S"), ("U#1", "S")]),
    "a late system message": (10, [("U#5", "U"), ("A#5", "U A"), ("S#3", "A S"), ("V#4", "S V")]),
}


@BOTH
@pytest.mark.parametrize("overhead", [0, 3])
@pytest.mark.parametrize("case", TOKEN_CASES)
def test_token_window_cases(case: str, overhead: int, compat: Any) -> None:
    limit, steps = TOKEN_CASES[case]
    memory = TokenWindowChatMemory(limit + overhead, lambda given: overhead + tokens(given), compat=compat)
    said, expected = [name for name, _ in steps], [held for _, held in steps]
    assert [" ".join(n.split("#")[0] for n in held.split()) for held in played(memory, *said)] == expected


@BOTH
def test_case_29_the_overhead_of_a_request_counts_once(compat: Any) -> None:
    memory = TokenWindowChatMemory(26, lambda given: 3 + tokens(given), compat=compat)
    assert played(memory, "a#10", "b#10", "c#10")[-1] == "b#10 c#10"
    memory = TokenWindowChatMemory(23, lambda given: 3 + tokens(given), compat=compat)
    assert played(memory, "a#10", "b#10", "c#10")[-1] == "b#10 c#10"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path, owner: str) -> Iterator[ChatMemoryStore]:
    """A store for many ids: in memory, or in a database."""
    if request.param == "memory":
        yield ChatMemoryStore()
        return
    here = tmp_path / "memory.db"
    url = here if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        yield SystemChatMemoryStore(system)


@BOTH
def test_case_37_two_ids_on_one_store(store: ChatMemoryStore, compat: Any) -> None:
    a, b = (window(3, compat, id=id, store=store) for id in "ab")
    a.add("a1")
    b.add("b1")
    a.clear()
    assert a.messages == []
    for memory in (b, window(3, compat, id="b", store=store)):
        found = memory.messages
        assert names(found) == ["b1"]
        found.clear()
        assert names(memory.messages) == ["b1"]


def test_what_a_store_hands_out_and_takes_is_a_copy(store: ChatMemoryStore) -> None:
    given: list[BaseMessage] = [HumanMessage("one")]
    store.update_messages("a", given)
    given.clear()
    store.get_messages("a").clear()
    assert names(store.get_messages("a")) == ["one"]
    assert store.get_messages("b") == []


def test_r36_what_leaves_the_window_leaves_the_store(store: ChatMemoryStore) -> None:
    memory = window(3, id="a", store=store)
    played(memory, "S", "U1", "AT:a", "T:a", "A")
    assert names(store.get_messages("a")) == ["S", "A"]
    memory.set(["one"])
    assert names(store.get_messages("a")) == ["one"]
    memory.clear()
    assert store.get_messages("a") == []


def test_case_38_the_slot_of_another_memory() -> None:
    said = "^This chat memory has id: X but an operation has been requested on a memory with id: Y$"
    slot = window(3, id="X").store
    for call in (slot.get_messages, slot.delete_messages, lambda id: slot.update_messages(id, [])):
        with pytest.raises(InputError, match=said):
            call("Y")
    memory = window(3, id="Y", store=SingleSlotChatMemoryStore("X"))
    with pytest.raises(InputError, match=said):
        memory.add("hello")


@BOTH
@pytest.mark.parametrize(
    "kind", [window, lambda limit, *a, **o: TokenWindowChatMemory(9, len, compat=a[0], **o)]
)
def test_case_39_calls_of_the_store(kind: Any, compat: Any) -> None:
    store = Counting()
    memory = kind(9, compat, store=store)
    assert store.since() == (0, 0, 0)
    memory.add("one", ("ai", "two"), "three")
    assert store.since() == (3, 3, 0)
    assert len(memory.messages) == 3
    assert store.since() == (1, 0, 0)
    memory.set(["one", ("ai", "two")])
    assert store.since() == (0, 1, 0)
    memory.clear()
    assert store.since() == (0, 0, 1)
    memory.add()
    memory.add(None, [])
    assert store.since() == (0, 0, 0)
    memory.add(["one", ("ai", "two")])
    assert store.since() == (2, 2, 0)


def test_case_40_a_provider_makes_each_memory_once() -> None:
    made: list[Any] = []
    barrier = threading.Barrier(10)

    def create(id: Any) -> MessageWindowChatMemory:
        made.append(id)
        return window(3, id=id)

    provider = ChatMemoryProvider(create)

    def ask(_: int) -> MessageWindowChatMemory:
        barrier.wait()
        return provider.get("default")

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(ask, range(10)))
    assert made == ["default"]
    assert all(one is found[0] for one in found)
    assert provider() is provider.get() is found[0]
    assert provider.get("") is not provider.get("   ")
    with pytest.raises(InputError, match="id of a chat memory is None"):
        provider.get(None)


def test_a_provider_that_lets_a_memory_go_leaves_the_store_as_it_is(store: ChatMemoryStore) -> None:
    provider = ChatMemoryProvider(lambda id: window(3, id=id, store=store))
    first = provider.get("a")
    first.add("hello")
    assert provider.evict("a") is first
    assert provider.evict("a") is None
    assert names(provider.get("a").messages) == ["hello"]
    assert provider.get("a") is not first


def test_ids_that_are_odd_and_valid(store: ChatMemoryStore) -> None:
    for id in ("", "   ", "a'b\"; --", "日本", "\N{PILE OF POO}"):
        window(3, id=id, store=store).add(f"I am {id!r}")
    for id in ("", "   ", "a'b\"; --", "日本", "\N{PILE OF POO}"):
        assert names(window(3, id=id, store=store).messages) == [f"I am {id!r}"]


def test_an_id_of_none_is_refused() -> None:
    with pytest.raises(InputError, match="id of a chat memory is None"):
        window(3, id=None)


@pytest.mark.parametrize("id", [7, "a\0b", "\ud800"])
def test_an_id_that_a_database_cannot_keep_is_refused(system: MemorySystem, id: Any) -> None:
    with pytest.raises(InputError, match="id of a memory"):
        window(3, id=id, store=system).add("hello")


def test_a_system_keeps_a_memory_for_another_process(url: str, owner: str) -> None:
    said = [SystemMessage("s"), HumanMessage("u", id="h1"), message("AT:a"), message("T:a")]
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        window(9, id="a", store=system).add(*said)
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        assert window(9, id="a", store=system).messages == said


def test_a_memory_in_a_system_is_no_conversation_of_it(system: MemorySystem) -> None:
    window(9, id="a", store=system).add("tea")
    system.conversation("b").append("cake")
    assert system.conversations() == ["b"]
    hits = system.conversation("b").recall("tea", scope="owner")
    assert {hit.node.message.content for hit in hits} <= {"cake"}
    system.conversation("a").reset()
    assert names(window(9, id="a", store=system).messages) == ["tea"]
    assert system.verify().ok


def test_owners_do_not_share_memories(system: MemorySystem, url: str) -> None:
    with MemorySystem(url, owner=f"other-{uuid4()}", embeddings=WordEmbeddings()) as other:
        window(9, id="a", store=system).add("mine")
        window(9, id="a", store=other).add("theirs")
        window(9, id="a", store=other).clear()
        assert window(9, id="a", store=other).messages == []
    assert names(window(9, id="a", store=system).messages) == ["mine"]


def test_a_message_that_cannot_be_kept_leaves_the_list_as_it_was(system: MemorySystem) -> None:
    memory = window(9, id="a", store=system)
    memory.add("one")
    with pytest.raises(UnsupportedMessageError):
        memory.add(AIMessage("two", additional_kwargs={"odd": object()}))
    assert names(memory.messages) == ["one"]


def test_one_memory_serves_several_threads() -> None:
    memory = window(1000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: memory.add(f"u{n}"), range(400)))
    assert sorted(names(memory.messages)) == sorted(f"u{n}" for n in range(400))


def test_any_object_with_three_methods_is_a_store() -> None:
    class Slow:
        def get_messages(self, memory_id: Any) -> Any:
            return None

        def update_messages(self, memory_id: Any, messages: Any) -> None: ...

        def delete_messages(self, memory_id: Any) -> None: ...

    with pytest.raises(InputError, match="returned None for id 'default'"):
        _ = window(3, store=Slow()).messages
    with pytest.raises(InputError, match="is not a store"):
        window(3, store="memory.db")


def test_what_is_no_message_is_refused_and_nothing_is_added() -> None:
    memory = window(3)
    with pytest.raises(InputError, match="is not a message"):
        memory.add("one", 7)  # type: ignore[arg-type]
    assert memory.messages == []


def test_set_takes_one_message_as_well() -> None:
    memory = window(3)
    for given in ("one", HumanMessage("one")):
        memory.set(given)
        assert names(memory.messages) == ["one"]


@pytest.mark.parametrize("kept", [False, True], ids=["in a slot", "in a system"])
def test_async_verbs_do_the_same(system: MemorySystem, kept: bool) -> None:
    async def play(memory: MessageWindowChatMemory) -> list[list[str]]:
        await memory.aadd(message("S"), message("U1"), message("A1"))
        added = names(await memory.amessages())
        await memory.aset([message("U2")])
        replaced = names(await memory.amessages())
        await memory.aclear()
        return [added, replaced, names(await memory.amessages())]

    memory = window(2, id="ada", store=system if kept else None)
    assert asyncio.run(play(memory)) == [["S", "A1"], ["U2"], []]


def test_an_async_verb_keeps_no_other_task_waiting() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(ChatMemoryStore):
        def get_messages(self, memory_id: Any) -> list[BaseMessage]:
            begun.set()
            assert go_on.wait(60)
            return super().get_messages(memory_id)

    async def play() -> None:
        adding = asyncio.create_task(window(2, store=Slow()).aadd(message("U")))
        await asyncio.to_thread(begun.wait)
        go_on.set()  # The loop runs while the store is slow.
        await adding

    asyncio.run(asyncio.wait_for(play(), 120))
