"""Grouping: laws for all inputs, and decision R37."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_threadmem import MemorySystem
from langchain_threadmem.summaries.hierarchy import Limits, calls, group, most_tokens, own_threads

limits = st.builds(Limits, st.integers(2, 8), st.integers(1, 60))
sizes = st.lists(st.integers(1, 40), max_size=40)


def test_tokens_of_a_text_are_its_characters_and_one() -> None:
    assert most_tokens("aaaaa") == 6


@pytest.mark.parametrize("wrong", [{"max_group_size": 1}, {"max_group_size": 0}, {"max_token_count": 0}])
def test_r37_a_group_holds_at_least_two(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
        MemorySystem(embeddings=False, settings=wrong)


def test_r37_units_too_large_to_share_a_group_are_paired() -> None:
    assert group([9, 9], Limits(60, 12)) == (0, [2])
    assert group([9, 9, 9, 9, 9], Limits(60, 12)) == (0, [2, 2, 1])


@given(sizes, limits)
def test_every_unit_is_in_one_group_and_groups_are_fewer_than_units(
    tokens: list[int], limits: Limits
) -> None:
    joined, found = group(tokens, limits)
    assert (joined, sum(found)) == (0, len(tokens))
    assert len(found) < len(tokens) or len(tokens) <= 1


@given(sizes, limits)
def test_a_group_keeps_to_its_limits_unless_every_unit_stood_alone(tokens: list[int], limits: Limits) -> None:
    start, too_large = 0, []
    for size in group(tokens, limits)[1]:
        part = tokens[start : start + size]
        assert size <= limits.size
        if size > 1 and sum(part) > limits.tokens:
            too_large.append(part)
        start += size
    if too_large:
        assert all(one + other > limits.tokens for one, other in pairwise(tokens))


short = st.lists(st.integers(1, 20), min_size=1, max_size=40)


@given(short, short, st.builds(Limits, st.integers(2, 8), st.integers(40, 99)))
def test_what_is_added_later_is_grouped_as_if_it_had_been_there(
    before: list[int], after: list[int], limits: Limits
) -> None:
    groups = group(before, limits)[1]
    joined, more = group(after, limits, begun=before[len(before) - groups[-1] :])
    assert [*groups[:-1], groups[-1] + joined, *more] == group(before + after, limits)[1]


@pytest.mark.parametrize(("units", "expected"), [(0, 0), (1, 1), (3, 1), (4, 3), (7, 4), (10, 7)])
def test_the_number_of_calls_is_known_before_they_are_made(units: int, expected: int) -> None:
    assert calls([1] * units, Limits(3)) == expected


@given(st.data())
def test_each_living_node_belongs_to_one_thread_that_it_is_part_of(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    nodes = [
        (
            n,
            data.draw(st.sampled_from([None, *range(1, n)]) if n > 1 else st.none()),
            data.draw(st.booleans()),
        )
        for n in range(1, count + 1)
    ]
    threads = own_threads(nodes)
    above = {node: parent for node, parent, _ in nodes}
    assert {node for node, _, live in nodes if live} <= threads.keys()
    for node, thread in threads.items():
        path = [node]
        while path[-1] != thread:
            path.append(above[path[-1]])  # type: ignore[arg-type]
        assert all(threads[one] == thread for one in path)
    for thread in set(threads.values()):
        followers = [above[node] for node, of in threads.items() if of == thread and node != thread]
        assert len(followers) == len(set(followers))
