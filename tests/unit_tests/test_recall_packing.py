"""`recall(max_tokens=...)`: whole turns within the budget, no duplicates, no messages of the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_threadmem import ChatMemory, MemorySystem, Recollection

Wrap = Callable[[ChatMemory], Any]
NOTHING_SHOWN: dict[str, Any] = {"window": lambda messages: []}


def kites(memory: ChatMemory) -> ChatMemory:
    for n in range(6):
        memory.append(f"Which kite for wind {n}?", f"For wind {n} take kite number {n}.")
    return memory


def ids(hits: list[Recollection]) -> list[list[int]]:
    return [[node.id for node in hit.thread] for hit in hits]


def tokens(hits: list[Recollection]) -> int:
    return sum(count_tokens_approximately([node.message]) for hit in hits for node in hit.thread)


def test_turns_are_whole_and_come_once(system: MemorySystem, verbs: Wrap) -> None:
    memory = kites(system.conversation("c", **NOTHING_SHOWN))
    hits = verbs(memory).recall("kite wind 3", 10, context_depth=0, max_tokens=10_000)
    threads = ids(hits)
    assert [7, 8] in threads
    assert all(len(thread) == 2 and thread[0] % 2 == 1 for thread in threads)
    assert len({n for thread in threads for n in thread}) == sum(map(len, threads))
    assert all(hit.node in hit.thread for hit in hits)


@pytest.mark.parametrize("room", [25, 60, 150])
def test_the_budget_is_kept_and_used(system: MemorySystem, verbs: Wrap, room: int) -> None:
    memory = kites(system.conversation("c", **NOTHING_SHOWN))
    hits = verbs(memory).recall("kite wind", 50, context_depth=0, max_tokens=room)
    turn = tokens(memory.recall("kite wind 1", 1, context_depth=0, max_tokens=10_000))
    assert room - turn - 5 < tokens(hits) <= room


def test_what_the_window_shows_is_left_out(system: MemorySystem, verbs: Wrap) -> None:
    memory = kites(system.conversation("c", window=lambda messages: messages[-4:]))
    shown = {9, 10, 11, 12}
    found = {n for thread in ids(verbs(memory).recall("kite wind", 50, max_tokens=10_000)) for n in thread}
    assert found == set(range(1, 13)) - shown


def test_turns_above_come_along_as_far_as_they_fit(system: MemorySystem, verbs: Wrap) -> None:
    memory = kites(system.conversation("c", **NOTHING_SHOWN))
    verb = verbs(memory)
    assert ids(verb.recall("wind 3", 1, context_depth=4, max_tokens=10_000)) == [[3, 4, 5, 6, 7, 8]]
    assert ids(verb.recall("wind 3", 1, context_depth=3, max_tokens=10_000)) == [[5, 6, 7, 8]]
    one = tokens(verb.recall("wind 3", 1, context_depth=0, max_tokens=10_000))
    assert ids(verb.recall("wind 3", 1, context_depth=4, max_tokens=2 * one + 5)) == [[5, 6, 7, 8]]


def test_a_turn_that_is_too_long_makes_room_for_shorter_ones(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("c", **NOTHING_SHOWN)
    memory.append("Tell me all of the kite.", "kite " * 500)
    memory.append("A kite?", "A kite.")
    assert ids(verbs(memory).recall("kite", 10, context_depth=0, max_tokens=40)) == [[3, 4]]


def test_a_turn_with_a_file_fits(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("c", **NOTHING_SHOWN)
    file = {"type": "file", "base64": "JVBERi0x" * 50_000, "mime_type": "application/pdf"}
    memory.append(HumanMessage([{"type": "text", "text": "Which kite is this?"}, file]), "A box kite.")
    assert ids(verbs(memory).recall("kite", 1, max_tokens=300)) == [[1, 2]]


def test_a_tool_exchange_stays_in_one_piece(system: MemorySystem, verbs: Wrap) -> None:
    memory = system.conversation("c", **NOTHING_SHOWN)
    call = AIMessage("", tool_calls=[{"name": "wind", "args": {}, "id": "w"}])
    memory.append(
        "Is there wind for the kite?", call, ToolMessage("5 knots", tool_call_id="w"), "Yes, 5 knots."
    )
    assert ids(verbs(memory).recall("kite", 1, max_tokens=1000)) == [[1, 2, 3, 4]]


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(0, 6), st.integers(1, 20))
def test_no_budget_is_ever_exceeded(room: int, depth: int, n_results: int) -> None:
    memory = kites(ChatMemory(embeddings=False, **NOTHING_SHOWN))
    hits = memory.recall("kite wind 2", n_results, depth, max_tokens=room)
    assert tokens(hits) <= room
    assert len(hits) <= n_results
    memory.close()
