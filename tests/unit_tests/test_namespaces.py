"""Namespaces as bytes: reversible, sorted, nested; and filters that are never too wide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.items.namespaces import (
    LONGEST,
    Namespace,
    below,
    decode,
    decode_label,
    encode,
    encode_label,
    matches,
)

AWKWARD = [
    "",
    "a",
    "ab",
    "a_b",
    "a.b",
    "_",
    "%",
    "\\",
    "*",
    ".",
    "/",
    ":",
    "\0",
    "\1",
    "\1\1",
    "\1\2",
    "ü",
    "\ud800",
]
labels = st.sampled_from(AWKWARD) | st.text(st.characters(), max_size=6)
tuples = st.lists(labels, max_size=4).map(tuple)


@given(tuples)
@example(("a_b",))
@example(("a", "b"))
@example(())
@example(("",))
def test_an_encoded_namespace_can_be_read_back(namespace: Namespace) -> None:
    assert decode(encode(namespace)) == namespace


@given(tuples, tuples)
@example(("a_b",), ("a", "b"))
@example(("a\0b",), ("a", "b"))
@example(("",), ())
def test_two_namespaces_never_share_an_encoding(one: Namespace, other: Namespace) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@given(tuples, tuples)
@example(("a", "\0"), ("a\0",))
def test_encoded_namespaces_sort_as_the_tuples_do(one: Namespace, other: Namespace) -> None:
    assert (encode(one) < encode(other)) == (one < other)


@given(tuples, tuples)
@example(("a",), ("ab",))
@example(("a",), ("a\0",))
@example(("a",), ("a\1",))
@example((), ("a",))
def test_a_range_holds_what_begins_with_the_same_labels_and_nothing_else(
    prefix: Namespace, namespace: Namespace
) -> None:
    low, high = below(encode(prefix))
    assert (low <= encode(namespace) < high) == (namespace[: len(prefix)] == prefix)


@given(labels)
def test_a_key_can_be_read_back(key: str) -> None:
    assert decode_label(encode_label(key)) == key


@pytest.mark.parametrize("wrong", ["abc", None, 7, {"a"}, (1,), (None,), (b"a",)])
def test_what_is_no_namespace_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        encode(wrong)


def test_a_namespace_that_no_index_holds_is_refused() -> None:
    encode(("x" * (LONGEST - 1),))
    with pytest.raises(InputError, match="takes 2001 bytes"):
        encode(("x" * LONGEST,))
    with pytest.raises(InputError, match="at most 2000"):
        encode_label("x" * (LONGEST + 1))


@pytest.mark.parametrize(
    ("pattern", "kind", "expected"),
    [
        (("a",), "prefix", True),
        (("a", "*"), "prefix", True),
        (("*", "b"), "prefix", True),
        (("b",), "prefix", False),
        (("c",), "suffix", True),
        (("*", "c"), "suffix", True),
        (("b",), "suffix", False),
        (("a", "b", "c", "*"), "prefix", False),
        ((), "suffix", True),
    ],
)
def test_a_pattern_is_matched_label_by_label(pattern: Namespace, kind: str, expected: bool) -> None:
    assert matches(("a", "b", "c"), pattern, kind) is expected


def test_an_unknown_way_of_matching_is_refused() -> None:
    with pytest.raises(InputError, match="'infix'"):
        matches((), ("a",), "infix")
