"""Typed JSON: a value is read exactly as it was written, or refused with the path to it."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from conftest import DERIVED, Word
from hypothesis import example, given
from hypothesis import strategies as st

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.typed_json import dumps, loads

texts = st.text(st.characters()) | st.sampled_from(["#", "v", "lc", '"#":', '#":', '"#', "\0", "\ud800"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=8)
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
)
hashable = texts | st.integers() | st.tuples(texts, st.integers())
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.frozensets(hashable, max_size=3)
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with the type of each of its parts, in order if it has an order."""
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(part) for part in value]
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(map(repr, map(shape, value)))
    return type(value).__name__, repr(value)


@given(values)
@example({"#": 1})
@example({'a"#': 1, "b": {"#": "tuple", "v": [1]}})
@example({"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]})
@example({"text": '{"#":"tuple","v":[1]}'})
@example(float("inf"))
@example({"s": "\ud800", "n": "\0"})
def test_what_was_written_is_read_back(value: Any) -> None:
    text = dumps(value)
    assert "\0" not in text
    text.encode()
    assert shape(loads(text)) == shape(value)


def derived(value: Any) -> Any:
    """The value with a subclass in place of each text and each integer."""
    if isinstance(value, dict):
        return {derived(key): derived(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(derived, value))
    return {str: Word, int: Number}.get(type(value), lambda same: same)(value)


class Opposite(str):
    """Equals only itself as a key of a dictionary."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Number(int):
    """A number."""


@given(values)
def test_a_value_of_a_subclass_of_text_or_numbers_is_written_as_its_base(value: Any) -> None:
    assert dumps(derived(value)) == dumps(value)


@pytest.mark.parametrize("value", DERIVED)
def test_a_derived_value_comes_back_as_its_base(value: Any) -> None:
    back = loads(dumps({"v": value}))["v"]
    assert (bool(back == value), type(back) in (str, int, float, bool)) == (True, True)


def test_two_keys_that_are_the_same_text_are_refused() -> None:
    with pytest.raises(InputError, match="the same text"):
        dumps({Opposite("a"): 1, "a": 2})


def test_plain_values_are_plain_json() -> None:
    assert dumps({"a": ["ü", 1, None, 1.5, True]}) == '{"a":["ü",1,null,1.5,true]}'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "'value'"),
        ({"a": [1, object()]}, r"'value.a\[1\]'"),
        ({"a": {"b": OrderedDict()}}, "'value.a.b'"),
        ({"a": ({object},)}, r"'value.a\[0\]\[0\]'"),
        ([range(2)], r"'value\[0\]'"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(InputError, match=path):
        dumps(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InputError, match="contains itself"):
        dumps(value)


def test_a_number_with_too_many_digits_is_refused() -> None:
    with pytest.raises(InputError, match="shorten the number"):
        dumps({"n": 10**5000})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"#":"call","v":["os.system"]}',
        '{"#":"uuid","v":"x"}',
        '{"#":"tuple"}',
        '{"#":["set"],"v":[]}',
    ],
)
def test_what_was_never_written_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        loads(text)


def test_each_reading_gives_new_objects() -> None:
    text = dumps({"a": [1]})
    loads(text)["a"].append(2)
    assert loads(text) == {"a": [1]}


def test_every_kind_of_value_has_its_own_type_back() -> None:
    held = [(1,), {1}, frozenset("a"), b"\0", date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)]
    held += [Decimal("1.10"), UUID(int=7), {1: "one"}]
    assert list(map(type, loads(dumps(held)))) == list(map(type, held))
