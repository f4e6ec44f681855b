"""Filters of fields: two notations with one meaning; a meaningless condition is an error."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, create_engine, insert, select
from sqlalchemy.types import BigInteger, Float, Text

from langchain_threadmem.common.filters.conditions import FieldType, parse
from langchain_threadmem.common.filters.sql import where
from langchain_threadmem.errors import InputError

FIELDS = {
    "source": FieldType.TEXT,
    "rank": FieldType.NUMBER,
    "created": FieldType.TIME,
    "keep": FieldType.FLAG,
    "metadata": FieldType.MAP,
}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Record:
    source: str | None = "ai"
    rank: int | None = 1
    created: datetime | None = NOON
    keep: bool | None = False
    metadata: dict[str, Any] = field(default_factory=dict)


METADATA = {
    "topic": "rye bread",
    "score": 4.5,
    "tags": ["a", "b"],
    "deep": {"er": 1},
    "a.b": "dotted",
    "x') OR '1'='1": "hostile",
    "on": True,
}
RECORD = Record(metadata=METADATA)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"source": "ai"}, True),
        ({"source": {"$eq": "ai"}}, True),
        ({"source": {"$eq": "AI"}}, False),
        ({"source": {"$ne": "user"}}, True),
        ({"source": {"$in": ["user", "ai"]}}, True),
        ({"source": {"$in": []}}, False),
        ({"source": {"$nin": ["user"]}}, True),
        ({"source": {"$nin": ("ai",)}}, False),
        ({"rank": {"$gt": 0, "$lte": 1}}, True),
        ({"rank": {"$gt": 0.5, "$lt": 1}}, False),
        ({"rank": 1, "source": "user"}, False),
        ({"keep": False}, True),
        ({"keep": {"$ne": False}}, False),
        ({"created": NOON}, True),
        ({"created": {"$gte": "2026-03-01T12:00:00Z"}}, True),
        ({"created": {"$gt": "2026-03-01T12:00:00"}}, False),
        ({"created": {"$lt": "2026-03-01T14:00:00+01:00"}}, True),
        ({"created": {"$gt": NOON.timestamp() - 1}}, True),
        ({"created": {"$lt": NOON.replace(tzinfo=None)}}, False),
        ({"metadata.topic": "rye bread"}, True),
        ({'metadata["topic"]': {"$contains": "bread"}}, True),
        ({"metadata['topic']": {"$contains": "Bread"}}, False),
        ({"metadata.tags": {"$contains": "b"}}, True),
        ({"metadata.tags": {"$contains": "c"}}, False),
        ({"metadata.score": {"$contains": "4"}}, False),
        ({"metadata.score": {"$gte": 4}}, True),
        ({"metadata.deep.er": 1}, True),
        ({'metadata.deep["er"]': {"$lt": 1}}, False),
        ({"metadata.topic.er": 1}, False),
        ({'metadata["a.b"]': "dotted"}, True),
        ({"metadata.a.b": "dotted"}, False),
        ({"metadata[\"x') OR '1'='1\"]": "hostile"}, True),
        ({"metadata.on": {"$gt": 0}}, True),
        ({"source": {"$like": "a%"}}, True),
        ({"source": {"$like": "_i"}}, True),
        ({"source": {"$like": "A%"}}, False),
        ({"metadata.topic": {"$like": "bread"}}, True),
        ({"metadata.topic": {"$like": "rye%"}}, True),
        ({"metadata.topic": {"$like": "%rye"}}, False),
        ({"metadata.topic": {"$like": "r%b%d"}}, True),
        ({"metadata.topic": {"$like": "r%d%d"}}, False),
        ({"metadata.topic": {"$like": "rye bread%rye bread"}}, False),
        ({"metadata.topic": {"$like": ".*"}}, False),
        ({"metadata.score": {"$like": "4"}}, False),
        ({"$and": [{"source": "ai"}, {"rank": 2}]}, False),
        ({"$or": [{"source": "user"}, {"rank": 1}]}, True),
        ({"$not": {"source": "user"}}, True),
        ({"$not": {"$or": [{"source": "ai"}, {"rank": 2}]}}, False),
        ({"$or": [{"$and": [{"rank": 1}, {"source": "ai"}]}], "keep": False}, True),
        ([("source", "==", "ai")], True),
        ([("source", "!=", "ai")], False),
        ([("rank", ">", 0), ("rank", ">=", 1), ("rank", "<", 2), ("rank", "<=", 1)], True),
        ([("source", "in", ["ai", "user"]), ("rank", "not in", [2, 3])], True),
        ([("source", "==", "ai"), ("rank", "==", 2)], False),
        ([('metadata["topic"]', "like", "bread")], True),
        ([("metadata.topic", "contains", "rye")], True),
        ([["metadata.tags", "contains", "a"]], True),
    ],
)
def test_a_filter_means_what_it_says(wanted: Any, expected: bool) -> None:
    condition = parse(wanted, FIELDS)
    assert condition is not None
    assert condition.holds(RECORD) is expected
    assert condition.holds(vars(RECORD)) is expected


@pytest.mark.parametrize("wanted", [None, {}, [], ()])
def test_an_empty_filter_asks_for_nothing(wanted: Any) -> None:
    assert parse(wanted, FIELDS) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"$eq": "x"}, False),
        ({"$ne": "x"}, False),
        ({"$nin": ["x"]}, False),
        ({"$gt": "a"}, False),
        ({"$contains": "x"}, False),
        ({"$like": "%"}, False),
        ({"$eq": None}, True),
        ({"$in": ["x", None]}, True),
        ({"$ne": None}, False),
    ],
)
def test_a_value_that_is_not_there_passes_only_as_none(question: dict[str, Any], expected: bool) -> None:
    for name in ("source", "metadata.topic"):
        condition = parse({name: question}, FIELDS)
        assert condition is not None
        assert condition.holds(Record(source=None)) is expected


LOOP: dict[str, Any] = {}
LOOP["$not"] = LOOP


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ("source", "'source'"),
        (7, "7"),
        ({"soruce": "ai"}, "'soruce'"),
        ({"__class__": "ai"}, "'__class__'"),
        ({"source' OR 1=1 --": "ai"}, "OR 1=1"),
        ({1: "ai"}, "1"),
        ({"source.x": "ai"}, "'source.x'"),
        ({"metadata": {"topic": "x"}}, "metadata.topic"),
        ({"metadata": "x"}, "'metadata'"),
        ({"metadata.": "x"}, "'metadata.'"),
        ({"metadata[topic]": "x"}, "topic"),
        ({'metadata["a]': "x"}, "metadata"),
        ({"source": {}}, "'source'"),
        ({"source": {"$regex": ".*"}}, r"'\$regex'"),
        ({"source": {"$EQ": "ai"}}, r"'\$EQ'"),
        ({"source": {"$eq": "ai", "other": 1}}, "'other'"),
        ({"source": {"$not": {"$eq": "ai"}}}, r"'\$not'"),
        ({"$nor": [{"source": "ai"}]}, r"'\$nor'"),
        ({"$and": []}, r"\[\]"),
        ({"$or": {"source": "ai"}}, "'source'"),
        ({"$or": [{}]}, "{}"),
        ({"$not": None}, "None"),
        ({"source": 3}, "3"),
        ({"source": ["ai"]}, r"\['ai'\]"),
        ({"source": {"$eq": {"$gt": 1}}}, "gt"),
        ({"source": {"$gt": None}}, "None"),
        ({"source": {"$in": "ai"}}, "'ai'"),
        ({"source": {"$in": [1]}}, "1"),
        ({"rank": "1"}, "'1'"),
        ({"rank": True}, "True"),
        ({"rank": float("nan")}, "nan"),
        ({"rank": {"$like": "1"}}, "rank"),
        ({"rank": {"$contains": 1}}, "rank"),
        ({"created": "yesterday"}, "'yesterday'"),
        ({"created": {"$gt": 1e300}}, "1e"),
        ({"created": {"$like": "2026%"}}, "created"),
        ({"keep": 1}, "1"),
        ({"keep": {"$gt": False}}, "False"),
        ({"metadata.topic": {"$gt": True}}, "True"),
        ({"metadata.topic": {"$like": 3}}, "3"),
        ({"metadata.topic": object()}, "object"),
        ({"metadata.topic": {"$contains": None}}, "None"),
        (LOOP, "itself"),
        (["source"], "'source'"),
        (("source", "==", "ai"), "'source'"),
        ([("source", "ai")], "'source'"),
        ([("source", "=", "ai")], "'='"),
        ([("source", "$eq", "ai")], r"'\$eq'"),
        ([("source", ["=="], "ai")], "=="),
        ([("other", "==", "ai")], "'other'"),
        ([("source", "==", "ai"), None], "None"),
    ],
)
def test_a_filter_that_means_nothing_is_refused_by_its_value(wanted: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse(wanted, FIELDS)


def test_a_pattern_takes_no_longer_than_its_pieces_allow() -> None:
    condition = parse({"source": {"$like": "%a" * 40 + "b"}}, FIELDS)
    assert condition is not None
    assert not condition.holds(Record(source="a" * 20_000))


TEXTS = st.sampled_from(["ai", "user", "a%", "", "é", "\0", "\ud800", "5"])
RANKS = st.sampled_from([0, 1, 2, 1 << 70, 0.5])
TIMES = st.integers(0, 3).map(lambda n: datetime.fromtimestamp(1_000_000_000.123456 + n / 2, UTC))
ORDER = st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"])
LISTS = st.sampled_from(["$in", "$nin"])
COMPARISONS = st.one_of(
    st.builds(lambda o, v: {"source": {o: v}}, ORDER, TEXTS),
    st.builds(lambda o, v: {"rank": {o: v}}, ORDER, RANKS),
    st.builds(lambda o, v: {"created": {o: v}}, ORDER, TIMES),
    st.builds(lambda o, v: {"source": {o: v}}, LISTS, st.lists(TEXTS | st.none(), max_size=3)),
    st.builds(lambda o, v: {"rank": {o: v}}, LISTS, st.lists(RANKS | st.none(), max_size=3)),
    st.builds(lambda v: {"source": v}, st.none()),
    st.builds(lambda v: {"source": {"$like": v}}, TEXTS),
    st.builds(lambda v: {"metadata.k": v}, TEXTS),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=6,
)
RECORDS = st.builds(
    Record,
    source=st.sampled_from(["ai", "user", "a%", "", "é", "5", None]),
    rank=st.sampled_from([0, 1, 2, None]),
    created=TIMES | st.none(),
    metadata=st.sampled_from([{}, {"k": "ai"}]),
)
TABLE = Table(
    "record",
    MetaData(),
    Column("id", BigInteger, primary_key=True),
    Column("source", Text),
    Column("rank", BigInteger),
    Column("created", Float),
)
ENGINE = create_engine("sqlite://", creator=lambda: sqlite3.connect(":memory:", check_same_thread=False))


@given(FILTERS, st.lists(RECORDS, max_size=6))
def test_sql_leaves_out_no_row_that_a_filter_wants(wanted: Any, records: list[Record]) -> None:
    condition = parse(wanted, FIELDS)
    assert condition is not None
    elements = where(condition, {name: TABLE.c[name] for name in ("source", "rank", "created")})
    with ENGINE.connect() as connection:
        TABLE.create(connection, checkfirst=True)
        for number, record in enumerate(records):
            created = None if record.created is None else record.created.timestamp()
            connection.execute(
                insert(TABLE).values(id=number, source=record.source, rank=record.rank, created=created)
            )
        found = set(connection.execute(select(TABLE.c.id).where(*elements)).scalars())
        connection.rollback()
    assert {number for number, record in enumerate(records) if condition.holds(record)} <= found


def test_sql_answers_alone_what_it_can_say_exactly() -> None:
    columns = {name: TABLE.c[name] for name in ("source", "rank")}
    (element,) = where(parse({"$not": {"source": "ai", "rank": {"$gte": 1}}}, FIELDS), columns)
    assert list(element.compile().params.values()) == ["ai", 1]
    assert where(parse({"$not": {"metadata.topic": "x"}}, FIELDS), columns) == []
    assert where(parse({"$or": [{"source": "ai"}, {"metadata.topic": "x"}]}, FIELDS), columns) == []
    assert where(None, columns) == []
