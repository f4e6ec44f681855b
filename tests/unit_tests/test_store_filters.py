"""Filters of the store: LangGraph's meaning, and no ignored condition."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from langchain_threadmem.common.filters.store import check_filter, passes
from langchain_threadmem.errors import InputError

VALUE: dict[str, Any] = {
    "score": 4.5,
    "color": "red",
    "on": True,
    "none": None,
    "tags": ["a", "b"],
    "deep": {"a": 1, "b": {"c": "x"}},
    "text": "12",
    "day": date(2026, 1, 2),
    "odd": Decimal("sNaN"),
    "$ref": 3,
}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, True),
        ({}, True),
        ({"color": "red"}, True),
        ({"color": "Red"}, False),
        ({"color": "red", "score": 1}, False),
        ({"missing": None}, True),
        ({"missing": 1}, False),
        ({"score": {"$gt": 4, "$lt": 5}}, True),
        ({"score": {"$gte": 4.5, "$lte": 4.5}}, True),
        ({"score": {"$gt": 4.5}}, False),
        ({"score": {"$eq": 4.5}}, True),
        ({"score": {"$ne": 4.5}}, False),
        ({"missing": {"$ne": 1}}, True),
        ({"missing": {"$gt": 1}}, False),
        ({"color": {"$gt": 1}}, False),
        ({"score": {"$gt": "red"}}, False),
        ({"color": {"$gte": "r", "$lt": "s"}}, True),
        ({"text": {"$gt": 9}}, True),
        ({"text": {"$gt": "9"}}, True),
        ({"on": {"$gt": 0}}, True),
        ({"tags": {"$gt": 0}}, False),
        ({"tags": ["a", "b"]}, True),
        ({"tags": ("a", "b")}, True),
        ({"tags": ["a"]}, False),
        ({"tags": ["a", {"$ne": "c"}]}, True),
        ({"deep": {"a": 1}}, True),
        ({"deep": {"b": {"c": {"$ne": "y"}}}}, True),
        ({"deep": {"$eq": {"a": 1}}}, False),
        ({"deep": {"$eq": {"a": 1, "b": {"c": "x"}}}}, True),
        ({"color": {"a": 1}}, False),
        ({"day": date(2026, 1, 2)}, True),
        ({"odd": 1}, False),
        ({"odd": {"$gt": 1}}, False),
        ({"score": {"$lt": float("inf")}}, True),
        ({"score": {"$lt": float("nan")}}, False),
        ({"score": {"$lt": 10**400}}, True),
        ({"$ref": 3}, True),
        ({"x') OR '1'='1": 1}, False),
        ({"color": "red' OR '1'='1"}, False),
    ],
)
def test_a_filter_means_what_it_says(wanted: dict[str, Any] | None, expected: bool) -> None:
    check_filter(wanted)
    assert passes(VALUE, wanted) is expected


CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE


@pytest.mark.parametrize(
    "wanted",
    [
        {"score": {"$foo": 1}},
        {"score": {"$GT": 1}},
        {"score": {"$gt": 1, "other": 2}},
        {"score": {"$gt": 1, "$or": 2}},
        {"deep": {"a": {"$regex": ".*"}}},
        {"tags": [{"$in": ["a"]}]},
        {"score": {"$gt": None}},
        {"score": {"$gt": [1]}},
        {"score": {"$lt": {"$gt": 1}}},
        {1: 2},
        {"deep": {1: 2}},
        {"score": object()},
        {"score": {"$eq": object()}},
        {"self": CYCLE},
        ["score"],
        "score",
    ],
)
def test_a_filter_that_means_nothing_is_refused(wanted: Any) -> None:
    with pytest.raises(InputError):
        check_filter(wanted)


def test_an_operator_inside_of_eq_is_data() -> None:
    wanted = {"a": {"$eq": {"b": {"$gt": 1}}}}
    check_filter(wanted)
    assert passes({"a": {"b": {"$gt": 1}}}, wanted)
    assert not passes({"a": {"b": 2}}, wanted)
