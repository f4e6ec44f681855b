"""Message bodies: a message that is read equals the message that was written, or it was refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)

from langchain_threadmem import ChatMemory
from langchain_threadmem.errors import InputError, UnsupportedMessageError
from langchain_threadmem.messages.codec import (
    MESSAGE_CLASSES,
    UNREADABLE,
    clone,
    decode,
    decode_stored,
    encode,
    text_of,
    unreadable,
    unreadable_among,
)
from langchain_threadmem.messages.typed_json import TAG

texts = st.text(st.characters(codec=None), max_size=12)  # lone surrogates and NUL among them
keys = st.one_of(texts, st.sampled_from([TAG, "v", "lc", "type", "id"]))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=8),
    st.datetimes(timezones=st.sampled_from([None, UTC])),
    st.dates(),
    st.decimals(allow_nan=False),
    st.uuids(),
)
odd_keys = st.one_of(keys, st.integers(), st.tuples(st.integers(), texts))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(odd_keys, inner, max_size=3),
        st.frozensets(st.integers(), max_size=3),
        st.sets(texts, max_size=3),
    ),
    max_leaves=8,
)
kwargs = st.dictionaries(keys, values, max_size=3)
blocks = st.lists(
    st.one_of(texts, st.builds(lambda t: {"type": "text", "text": t}, texts), st.dictionaries(keys, values)),
    max_size=3,
)
contents = st.one_of(texts, blocks)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=4,
)
calls = st.lists(
    st.builds(
        lambda name, args: {"name": name, "args": args, "id": "c1", "type": "tool_call"},
        texts,
        st.dictionaries(keys, jsons, max_size=3),  # langchain's chunks write arguments as JSON themselves
    ),
    max_size=2,
)
usage = st.none() | st.builds(
    lambda n: {"input_tokens": n, "output_tokens": 1, "total_tokens": n + 1}, st.integers(0, 9)
)
common: dict[str, Any] = {
    "content": contents,
    "additional_kwargs": kwargs,
    "response_metadata": kwargs,
    "id": st.just("m1"),
    "name": st.none() | texts,
}
by_class: dict[type[BaseMessage], dict[str, Any]] = {
    HumanMessage: {},
    SystemMessage: {},
    AIMessage: {"tool_calls": calls, "usage_metadata": usage},
    ToolMessage: {
        "tool_call_id": texts,
        "artifact": values,
        "status": st.sampled_from(["success", "error"]),
    },
    FunctionMessage: {"name": texts},
    ChatMessage: {"role": texts},
}


def families(cls: type[BaseMessage]) -> dict[str, Any]:
    return next(fields for base, fields in by_class.items() if issubclass(cls, base))


messages = st.sampled_from(list(MESSAGE_CLASSES.values())).flatmap(
    lambda cls: st.builds(cls, **{**common, **families(cls)})
)


def shape(value: Any) -> Any:
    """A value with the types of all its parts, which `==` does not compare."""
    if isinstance(value, dict):
        return dict, [(shape(key), shape(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [shape(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), value
    return type(value), repr(value)


@given(messages)
def test_what_is_read_is_what_was_written(message: BaseMessage) -> None:
    (back,) = decode([("m1", encode(message))])
    assert back == message
    assert type(back) is type(message)
    assert {name: shape(v) for name, v in back.__dict__.items()} == {
        name: shape(v) for name, v in message.__dict__.items()
    }


@given(values)
def test_any_listed_value_keeps_its_types(value: Any) -> None:
    message = HumanMessage("x", id="m1", additional_kwargs={"value": value})
    (back,) = decode([("m1", encode(message))])
    assert shape(back.additional_kwargs) == shape(message.additional_kwargs)


@pytest.mark.parametrize(
    "data",
    [
        {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]},
        {"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "true"}},
        {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"], "kwargs": {}},
        {TAG: "tuple", "v": [1, 2]},
        {TAG: "dict", "v": [[1, 2]]},
        {TAG: "uuid", "v": "not a uuid"},
        {TAG: "no such tag"},
    ],
)
def test_data_that_looks_like_an_instruction_comes_back_as_data(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    message = AIMessage(
        [data], id="m1", additional_kwargs={"k": data, "t": (data,)}, response_metadata={"m": data}
    )
    text = encode(message)
    assert decode([("m1", text)]) == [message]
    assert "sk-secret" not in text


def test_a_plain_body_is_langchains_own_shape_without_defaults() -> None:
    message = HumanMessage("größer", name="Ada", id="m1")
    body = encode(message)
    assert body == '{"type":"human","data":{"content":"größer","name":"Ada"}}'
    theirs = message_to_dict(message)
    ours = json.loads(body)
    assert ours["type"] == theirs["type"]
    assert ours["data"].items() <= theirs["data"].items()


def test_an_id_is_no_part_of_the_body() -> None:
    assert encode(HumanMessage("x", id="a")) == encode(HumanMessage("x", id="b"))


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (HumanMessage("x", additional_kwargs={"a": {"b": [0, object()]}}), "additional_kwargs.a.b[1]"),
        (AIMessage("x", response_metadata={"m": complex(1, 2)}), "response_metadata.m"),
        (ToolMessage("x", tool_call_id="c", artifact=np.zeros(3)), "artifact"),
        (HumanMessage("x", additional_kwargs={"e": ValueError("inside")}), "additional_kwargs.e"),
    ],
)
def test_a_value_of_another_class_is_refused_with_its_path(message: BaseMessage, path: str) -> None:
    with pytest.raises(UnsupportedMessageError) as caught:
        encode(message)
    assert repr(path) in str(caught.value)


def test_a_message_of_another_class_is_refused() -> None:
    class Letter(HumanMessage):
        pass

    with pytest.raises(UnsupportedMessageError, match="Letter"):
        encode(Letter("x"))


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(UnsupportedMessageError, match="nested too deeply"):
        encode(clone(HumanMessage("x"), additional_kwargs={"deep": deep}))


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(UnsupportedMessageError, match="contains itself"):
        encode(clone(HumanMessage("x"), additional_kwargs=loop))


def test_a_number_too_long_for_json_is_refused() -> None:
    with pytest.raises(UnsupportedMessageError):
        encode(HumanMessage("x", additional_kwargs={"n": 10**5000}))


def test_not_a_number_survives() -> None:
    (back,) = decode([("m1", encode(HumanMessage("x", additional_kwargs={"n": float("nan")})))])
    assert str(back.additional_kwargs["n"]) == "nan"


def test_decoded_messages_share_nothing_mutable() -> None:
    body = encode(AIMessage("x"))
    first, second = decode([("a", body), ("b", body)])
    first.additional_kwargs["changed"] = True
    assert isinstance(first, AIMessage)
    first.tool_calls.append({"name": "f", "args": {}, "id": "c"})
    assert second == AIMessage("x", id="b")
    assert decode([("c", body)]) == [AIMessage("x", id="c")]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nonsense",
        "null",
        "[]",
        "{}",
        '{"type":"human"}',
        '{"type":"system.exit","data":{}}',
        '{"type":"human","data":[]}',
        '{"type":"human","data":{"content":"a"}},{"type":"human","data":{"content":"b"}}',
        '{"type":"human","typed":true,"data":{"content":{"#":"import","v":"os"}}}',
        '{"type":"human","typed":true,"data":{"content":{"#":"uuid","v":"?"}}}',
        '{"type":"human","typed":true,"data":{"content":{"#":"set","v":[[]]}}}',
        '{"type":["human"],"data":{}}',
    ],
)
def test_a_corrupt_body_is_an_input_error(body: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        decode([("m1", body)])


def test_one_corrupt_body_among_good_ones_shifts_nothing() -> None:
    good = encode(HumanMessage("x"))
    with pytest.raises(InputError):
        decode([("a", f"{good},{good}"), ("b", good)])


def test_every_tag_has_an_example_that_survives() -> None:
    held = {
        "tuple": (1, "a"),
        "set": {1},
        "frozenset": frozenset("a"),
        "dict": {1: "one", (2, 3): "pair"},
        "float": float("inf"),
        "bytes": b"\x00\xff",
        "datetime": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        "date": date(2026, 1, 2),
        "decimal": Decimal("1.10"),
        "uuid": UUID(int=7),
        "surrogate": "\ud800",
    }
    message = HumanMessage("\ud800", id="m1", additional_kwargs=held)
    (back,) = decode([("m1", encode(message))])
    assert shape(back.additional_kwargs) == shape(held)
    assert back.content == "\ud800"


def test_chunks_are_stored_as_chunks() -> None:
    chunk = AIMessageChunk("par", id="m1")
    assert type(decode([("m1", encode(chunk))])[0]) is AIMessageChunk


def test_text_of_content_blocks_is_their_text() -> None:
    assert text_of(HumanMessage([{"type": "text", "text": "a"}, {"type": "image", "url": "x"}, "b"])) == "ab"


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", additional_kwargs={"audio": {"id": "a1", "data": "UklG", "transcript": "I see."}}),
        AIMessage("", additional_kwargs={"refusal": "I see."}),
        AIMessage([{"type": "refusal", "refusal": "I see."}]),
    ],
    ids=["audio", "refusal of a completion", "refusal of a response"],
)
def test_text_of_an_answer_without_content_is_its_transcript_or_refusal(message: AIMessage) -> None:
    assert text_of(message) == "I see."


def test_the_transcript_of_an_answer_is_recalled(verbs: Callable[[ChatMemory], Any]) -> None:
    memory = ChatMemory(embeddings=False)
    audio = {"id": "a1", "data": "UklG", "transcript": "Herons are grey."}
    _, answer = memory.append("What is it?", AIMessage("", additional_kwargs={"audio": audio}))
    assert answer.message.additional_kwargs == {"audio": audio}
    assert [hit.node.id for hit in verbs(memory).recall("herons")] == [answer.id]


@pytest.mark.parametrize(
    "body",
    [
        encode(HumanMessage("Hello")),
        encode(HumanMessage('Quotes " and \\ and \n and \u0007 and é and 🧵')),
        encode(AIMessage("Hi", response_metadata={"model": "m"}, tool_calls=[])),
        encode(AIMessage([{"type": "text", "text": "a"}], additional_kwargs={"n": (1, 2)})),
        encode(ToolMessage("found", tool_call_id="c1")),
        unreadable("human"),
        "",
        "null",
        "1,2",
        '{"type":"human","data":{"content":"a"}},{"type":"human","data":{"content":"b"}}',
        '{"type":"human","data":{"content":"a\nb"}}',
        '{"type":"human","data":{"content":"\\x"}}',
        '{"type":"human","data":{"content":"a"}',
        '{"type":"human","data":{"content":"a"}}}',
        '{"type":"human","data":["content"]}',
        '{"type":"human","data":{"content":1}}',
        '{"type":"nobody","data":{"content":"a"}}',
        '{"type":["human"],"data":{"content":"a"}}',
        '{"data":{"content":"a"}}',
        '{"type":"human","data":{"content":"a","n":{"#":"nothing"}},"typed":true}',
    ],
)
def test_the_messages_that_cannot_be_read_are_those_that_are_read_as_placeholders(body: str) -> None:
    around = encode(HumanMessage("before")), encode(AIMessage("after", response_metadata={"a": 1}))
    rows = [("h1", around[0], "human"), ("x1", body, "human"), ("a1", around[1], "ai")]
    placeholders = [n for n, found in enumerate(decode_stored(rows)) if UNREADABLE in found.response_metadata]
    assert unreadable_among(rows) == placeholders
    assert 0 not in placeholders
    assert 2 not in placeholders
