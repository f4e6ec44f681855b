"""Short-term memory: recently used units stay, and are found by meaning or by words."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from numpy.typing import NDArray

from langchain_threadmem.common.filters.conditions import FieldType, parse
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.documents import Document, document_of
from langchain_threadmem.index.language import ENGLISH
from langchain_threadmem.long_term.short_term import ShortTermMemory
from langchain_threadmem.recall.question import Question, question_of
from langchain_threadmem.recall.results import Why
from langchain_threadmem.recall.search import Hit

EVERYTHING = (None, None)


def gist(text: str) -> Document:
    return document_of(HumanMessage(text), text, 0.0, ENGLISH)


def asked(text: str) -> Question:
    return question_of(text, ENGLISH)


def axis(number: int, length: int = 8) -> NDArray[np.float32]:
    return np.eye(length, dtype=np.float32)[number]


def filled(capacity: int, *numbers: int) -> ShortTermMemory[int, str]:
    memory = ShortTermMemory[int, str](capacity)
    for number in numbers:
        memory.add(number, f"text {number}")
        memory.fill({number: axis(number)})
    return memory


def test_case_59_the_units_used_last_stay() -> None:
    memory = filled(3, 1, 2, 3, 4)
    assert list(memory) == [2, 3, 4]
    assert memory.search(axis(2), 1, (0.75, None)) == [Hit(2, 1.0, Why(similarity=1.0))]
    assert list(memory) == [3, 4, 2]
    memory.add(5, "text 5")
    assert list(memory) == [4, 2, 5]
    memory.resize(1)
    assert list(memory) == [5]


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "3", None, True])
def test_a_capacity_is_a_number_from_1_up(capacity: Any) -> None:
    with pytest.raises(InputError, match=repr(capacity)):
        ShortTermMemory(capacity)
    with pytest.raises(InputError, match="capacity"):
        filled(2, 1).resize(capacity)


def test_the_nearest_comes_first_and_stays_longest() -> None:
    memory = filled(8, *range(5))
    query = (axis(3) * 3 + axis(1) * 2 + axis(0)) / np.sqrt(np.float32(14))
    assert [hit.key for hit in memory.search(query, 2, EVERYTHING)] == [3, 1]
    assert list(memory) == [0, 2, 4, 1, 3]


@pytest.mark.parametrize(
    ("within", "found"),
    [
        ((0.75, None), [3]),
        ((0.5, None), [3, 1]),
        ((None, 0.75), [1, 0]),
        ((0.5, 0.75), [1]),
        ((0.0, None), [3, 1, 0]),
    ],
)
def test_only_scores_within_the_range_count(within: Any, found: list[int]) -> None:
    memory = filled(8, 0, 1, 3)
    query = (axis(3) * 3 + axis(1) * 2 + axis(0)) / np.sqrt(np.float32(14))
    assert [hit.key for hit in memory.search(query, 9, within)] == found


def test_a_filter_comes_before_the_number_of_results() -> None:
    memory = ShortTermMemory[int, dict[str, str]](8, lambda unit: unit["content"])
    for number, source in enumerate(["user", "ai", "user", "ai"]):
        memory.add(number, {"content": "bread", "source": source})
    wanted = parse({"source": "ai"}, {"source": FieldType.TEXT})
    assert [
        hit.key for hit in memory.match(asked("bread"), 2, lambda unit: gist(unit["content"]), wanted)
    ] == [1, 3]
    memory.fill({number: axis(0) for number in range(4)})
    assert {hit.key for hit in memory.search(axis(0), 2, EVERYTHING, wanted)} == {1, 3}
    assert list(memory)[:2] == [0, 2]


def test_words_are_compared_where_there_are_no_vectors() -> None:
    memory = ShortTermMemory[int, str](4)
    for number, text in enumerate(["rye bread with rye", "a file", "bread", "warm"]):
        memory.add(number, text)
    assert memory.search(axis(0), 5, EVERYTHING) == []
    found = memory.match(asked("rye bread"), 5, gist)
    assert [hit.key for hit in found] == [0, 2]
    assert found[0].score > found[1].score > 0
    assert list(memory) == [1, 3, 2, 0]


def test_what_waits_for_a_vector_is_listed() -> None:
    memory = filled(3, 1, 2)
    memory.add(3, "text 3")
    assert memory.bare() == [3]
    memory.fill({3: axis(3), 99: axis(4)})
    assert memory.bare() == []
    assert 99 not in memory


def test_another_text_needs_another_vector() -> None:
    memory = filled(3, 1, 2)
    memory.add(1, "text 1")
    assert memory.bare() == []
    memory.add(1, "another text")
    assert memory.bare() == [1]
    assert memory.search(axis(1), 1, (0.5, None)) == []
    assert [hit.key for hit in memory.match(asked("another"), 1, gist)] == [1]
    memory.add(1, "a heron")
    assert [hit.key for hit in memory.match(asked("herons"), 1, gist)] == [1]
    assert memory.match(asked("another"), 1, gist) == []


def test_what_was_dropped_is_not_found() -> None:
    memory = filled(3, 1, 2)
    memory.drop(1)
    assert memory.search(axis(1), 5, EVERYTHING) == [Hit(2, 0.0, Why(similarity=0.0))]
    assert memory.unit(1) is None
    assert memory.unit(2) == "text 2"


def test_vectors_of_another_length_are_refused() -> None:
    memory = filled(3, 1)
    with pytest.raises(InputError, match="3 dimensions"):
        memory.search(axis(0, 3), 1, EVERYTHING)
    memory.add(2, "text 2")
    with pytest.raises(InputError, match="3 dimensions"):
        memory.fill({2: axis(0, 3)})


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["add", "drop", "find", "resize"]), st.integers(0, 7))),
)
def test_it_equals_a_plain_list(capacity: int, steps: list[tuple[str, int]]) -> None:
    memory, plain = ShortTermMemory[int, str](capacity), OrderedDict[int, None]()
    for step, number in steps:
        if step == "add":
            memory.add(number, f"text {number}")
            memory.fill({number: axis(number)})
            plain[number] = None
            plain.move_to_end(number)
        elif step == "drop":
            memory.drop(number)
            plain.pop(number, None)
        elif step == "resize":
            capacity = 1 + number % 4
            memory.resize(capacity)
        else:
            found = memory.search(axis(number), 1, (0.5, None))
            assert [hit.key for hit in found] == [number] * (number in plain)
            if number in plain:
                plain.move_to_end(number)
        while len(plain) > capacity:
            plain.popitem(last=False)
        assert list(memory) == list(plain)
        assert sorted(hit.key for hit in memory.search(axis(0) * 0, 9, EVERYTHING)) == sorted(plain)
        assert sorted(hit.key for hit in memory.match(asked("text"), 9, gist)) == sorted(plain)
        for key in plain:  # A search moves what it found; the plain list does the same to stay comparable.
            memory.add(key, f"text {key}")


def test_a_full_memory_finds_the_nearest_vector_and_the_rarest_word() -> None:
    rows = np.random.default_rng(7).standard_normal((200, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    memory = ShortTermMemory[int, str](200)
    for number in range(200):
        memory.add(number, f"rye bread number {number} needs some {number + 7} hours of rest")
    memory.fill(dict(enumerate(rows)))
    for number in range(50):
        assert memory.search(rows[number], 5, (0.75, None))[0].key == number
    assert memory.match(asked("Which bread rests 77 hours?"), 5, gist)[0].key == 70


def test_words_that_were_dropped_are_found_no_more() -> None:
    memory = ShortTermMemory[int, str](3)
    for number in range(500):
        memory.add(number, f"bread {number}")
        memory.match(asked("nothing"), 1, gist)
    assert {hit.key for hit in memory.match(asked("bread"), 9, gist)} == {497, 498, 499}
    assert memory.match(asked("12"), 9, gist) == []
