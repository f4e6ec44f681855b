"""`retrieve`: messages for a prompt, in order, each once, no tool result without its call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import InputError

Wrap = Callable[[ChatMemory], Any]


def named(tree: Any, message: Any) -> int | None:
    """Continue the answer whose number is in the message; otherwise start a thread."""
    return int(message.content.split()[0]) if message.content[0].isdigit() else None


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    """Threads 1-2-3-4, 1-2-5-6 (both on Python) and 7-8 (tea)."""
    memory = system.conversation("talk", node_selector=named)
    turns = [("python snake", "language"), ("2 pandas", "frames"), ("2 numpy", "arrays"), ("tea", "camomile")]
    for human, answer in turns:
        memory.append(human, answer)
    return memory


@pytest.fixture
def linear(system: MemorySystem) -> ChatMemory:
    memory = system.conversation("linear")
    memory.extend(["one", ("ai", "two"), "three", ("ai", "four")])
    return memory


def texts(messages: list[BaseMessage]) -> list[Any]:
    return [message.content for message in messages]


def test_a_linear_memory_gives_its_last_messages_whatever_the_query(linear: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(linear)
    assert texts(verb.retrieve("anything", n_results=3)) == ["two", "three", "four"]
    assert texts(verb.retrieve("", n_results=3, context_depth=0)) == ["two", "three", "four"]
    assert len(verb.retrieve("anything", n_results=99)) == 4
    assert verb.retrieve("anything", n_results=0) == []


def test_a_linear_memory_gives_the_active_thread_only(linear: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(linear)
    verb.checkout(2)
    verb.append("five", "six")
    assert texts(verb.retrieve("x", 3)) == ["two", "five", "six"]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_system_messages_are_not_counted_among_the_last(linear: ChatMemory, verbs: Wrap, n: int) -> None:
    verb = verbs(linear)
    for number in range(4):
        verb.append(SystemMessage(f"rule {number}"))
    verb.append("five")
    assert texts(verb.retrieve("x", n)) == ["one", "two", "three", "four", "five"][-n:]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_last_messages_never_begin_with_a_result_whose_call_is_cut_off(
    system: MemorySystem, verbs: Wrap, n: int
) -> None:
    verb = verbs(system.conversation("tools"))
    calls: list[Any] = [{"name": "f", "args": {}, "id": i} for i in ("a", "b")]
    results = [ToolMessage(i, tool_call_id=i) for i in ("a", "b")]
    verb.append("Q", AIMessage("", tool_calls=calls), *results, "A")
    roles = [message.type for message in verb.retrieve("x", n)]
    assert roles == ["human", "ai", "tool", "tool", "ai"][-(1 if n == 1 else max(n, 4)) :]


def test_hits_come_oldest_first_with_their_context(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert texts(verb.retrieve("arrays", 1)) == ["python snake", "language", "2 numpy", "arrays"]
    assert texts(verb.retrieve("arrays", 1, context_depth=1)) == ["2 numpy", "arrays"]
    assert texts(verb.retrieve("arrays", 1, context_depth=0)) == ["arrays"]


def test_the_best_hit_comes_first_when_asked_for_by_relevance(memory: ChatMemory, verbs: Wrap) -> None:
    found = verbs(memory).retrieve("arrays", 1, context_depth=2, order="relevance")
    assert texts(found) == ["arrays", "2 numpy", "language"]


def test_threads_stay_in_one_piece_and_shared_context_comes_once(memory: ChatMemory, verbs: Wrap) -> None:
    found = texts(verbs(memory).retrieve("frames arrays camomile", 3))
    assert found == ["python snake", "language", "2 pandas", "frames", "2 numpy", "arrays", "tea", "camomile"]


def test_context_that_reaches_less_far_still_hangs_below_what_was_found_above(system: MemorySystem) -> None:
    memory = system.conversation("long", node_selector=named)
    for human, answer in [("zebra", "a1"), ("2 b", "b1"), ("4 c", "c1"), ("2 d", "d1"), ("6 quagga", "e1")]:
        memory.append(human, answer)
    assert texts(memory.retrieve("zebra quagga", 2, context_depth=0)) == ["zebra", "6 quagga"]
    assert texts(memory.retrieve("quagga d1", 2, context_depth=1)) == ["c1", "6 quagga", "2 d", "d1"]


def test_the_default_depth_is_the_memorys(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("shallow", node_selector=named, context_depth=0))
    verb.append("python snake", "language")
    assert texts(verb.retrieve("language", 1)) == ["language"]
    assert texts(verb.retrieve("language", 1, context_depth=1)) == ["python snake", "language"]


def test_nothing_found_gives_nothing_or_the_recent_messages() -> None:
    memory = ChatMemory(node_selector=named, embeddings=False)
    memory.append("python", "language")
    memory.append("tea", "camomile")
    assert memory.retrieve("submarine") == memory.retrieve("") == []
    assert texts(memory.retrieve("submarine", fallback="recent")) == ["tea", "camomile"]
    assert texts(memory.retrieve("submarine", 1, fallback="recent")) == ["camomile"]


def test_a_hit_between_tool_messages_brings_the_whole_exchange(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("tools", node_selector=named))
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])
    verb.append("weather", call, ToolMessage("rain", tool_call_id="c"), "umbrella")
    assert [m.type for m in verb.retrieve("umbrella", 1, context_depth=1)] == ["ai", "tool", "ai"]
    assert [m.type for m in verb.retrieve("umbrella", 1, context_depth=0)] == ["ai"]


@pytest.mark.parametrize(
    "options",
    [
        {"n_results": -1},
        {"n_results": 2.5},
        {"n_results": "3"},
        {"context_depth": -1},
        {"order": "random"},
        {"fallback": "panic"},
    ],
    ids=str,
)
def test_bad_options_are_refused_by_every_memory(
    memory: ChatMemory, linear: ChatMemory, verbs: Wrap, options: dict[str, Any]
) -> None:
    for verb in (verbs(memory), verbs(linear)):
        with pytest.raises(InputError):
            verb.retrieve("tea", **options)


def test_an_empty_memory_gives_nothing(system: MemorySystem, verbs: Wrap) -> None:
    for selector in (None, named):
        verb = verbs(system.conversation("empty", node_selector=selector))
        assert verb.retrieve("tea", fallback="recent") == verb.retrieve("tea") == []


ROLES = st.lists(st.sampled_from(["human", "ai", "system", "call"]), max_size=12)


@given(ROLES, st.integers(0, 20))
def test_the_last_n_are_a_suffix_of_the_thread_that_needs_no_more_than_its_calls(
    roles: list[str], n: int
) -> None:
    memory = ChatMemory(embeddings=False)
    for number, role in enumerate(roles):
        call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": str(number)}])
        made = {"human": HumanMessage("h"), "ai": AIMessage("a"), "system": SystemMessage(f"s{number}")}
        pair = [call, ToolMessage("r", tool_call_id=str(number))]
        memory.extend(pair if role == "call" else [made[role]])
    said = [node.message for node in memory.history if node.message.type != "system"]
    found = memory.retrieve("x", n)
    assert found == said[len(said) - len(found) :]
    assert min(n, len(said)) <= len(found) <= min(n, len(said)) + 1
    assert not found or found[0].type != "tool"
