"""Messages in common formats of chat exports; errors name the line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.exporters.json import parse_conversation
from langchain_threadmem.messages.records import message_from

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
tool_calls = json_values | st.lists(
    st.fixed_dictionaries({"name": json_values, "args": json_values, "id": json_values})
    | st.fixed_dictionaries({"function": json_values})
    | st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({"name": json_values, "arguments": json_values})}
    ),
    max_size=2,
)
ai_records = st.fixed_dictionaries({"role": st.just("ai"), "content": json_values, "tool_calls": tool_calls})


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("nonsense", "line 3 is not JSON"),
        ("5", "line 3 is 5"),
        ('{"messages": 5}', "'messages' of line 3"),
        (
            '{"messages": [{"role": "user", "content": "x"}, {"role": "usr", "content": "x"}]}',
            "line 3, message 2",
        ),
        ('{"role": "assistant"}', "line 3 has no content"),
        ('{"role": ["user"], "content": "x"}', "line 3 has the role"),
        ('{"role": "assistant", "tool_calls": [{"function": {"arguments": "{"}}]}', "arguments .* line 3"),
        ('{"role": "assistant", "tool_calls": [5]}', "tool call of line 3"),
    ],
)
def test_a_bad_line_is_named(line: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        parse_conversation('{"role": "user", "content": "x"}\n\n' + line)


@pytest.mark.parametrize(
    "text",
    [
        '[{"type": "human", "data": {"content": "Hello", "id": "h"}}, '
        '{"type": "ai", "data": {"content": "Hi"}}]',
        '[{"type": "human", "content": "Hello", "id": "h"}, {"type": "ai", "content": "Hi", "id": 5}]',
        '[{"role": "user", "content": "Hello", "id": "h"}, {"role": "assistant", "content": "Hi"}]',
        '{"role": "user", "content": "Hello", "id": "h"}\n{"type": "ai", "data": {"content": "Hi"}}\n',
        '{"id": "c", "messages": [{"id": "h", "role": "human", "text": "Hello", "parent": null}, '
        '{"id": 1, "role": "assistant", "text": "Hi", "gap": 3}]}\n{"id": "d", "messages": []}',
        '\ufeff[{"messages": [{"role": "user", "content": "Hello", "id": "h"}, '
        '{"role": "ai", "content": "Hi"}]}]',
    ],
)
def test_a_conversation_is_read_from_each_shape(text: str) -> None:
    assert parse_conversation(text) == [HumanMessage("Hello", id="h"), AIMessage("Hi")]


def test_a_conversation_is_chosen_by_its_index() -> None:
    lines = "\n".join(json.dumps({"messages": [{"role": "user", "text": text}]}) for text in "abc")
    assert parse_conversation(lines, index=2) == [HumanMessage("c")]


@pytest.mark.parametrize(
    "other",
    [
        {"refusal": "I cannot help with that."},
        {"audio": {"id": "a1", "data": "UklGRg==", "transcript": "Hello", "expires_at": 1}},
        {"function_call": {"name": "f", "arguments": "{}"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_answer_of_openai_may_have_no_content(other: dict[str, Any]) -> None:
    record = {"role": "assistant", "content": None, **other}
    assert message_from(record, "line 1") == AIMessage("", additional_kwargs=other)


def test_an_answer_that_only_calls_a_tool_is_no_empty_message() -> None:
    text = '[{"type": "ai", "data": {"content": "", "tool_calls": [{"name": "f", "args": {}, "id": "1"}]}}]'
    assert parse_conversation(text)[0].tool_calls[0]["name"] == "f"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no messages"),
        ("[]", "no messages"),
        ('{"messages": []}', "no messages"),
        ('[{"role": "user"', "the text is not JSON.*line 1"),
        ('{"role": "user", "content": "x"}\n{', "line 2 is not JSON"),
        ('[{"role": "user", "content": "x"}, {"role": "robot", "content": "x"}]', "element 2 .*'robot'"),
        ('[{"content": "x"}]', "element 1 has the role None"),
        ('[{"role": "user", "content": "  "}]', "element 1 has empty content"),
        ('[{"role": "user", "content": []}]', "element 1 has empty content"),
        ('{"messages": [{"role": "user", "text": ""}]}', "line 1, message 1 has empty content"),
        ("[5]", "element 1 is 5"),
        ('[{"role": "user", "content": 5}]', "element 1 has the content 5"),
    ],
)
def test_a_conversation_that_cannot_be_read_is_explained(text: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        parse_conversation(text)


@pytest.mark.parametrize("index", [-1, 1])
def test_an_index_without_a_conversation_is_refused(index: int) -> None:
    with pytest.raises(InputError, match="choose from 0 to 0"):
        parse_conversation('{"role": "user", "content": "x"}', index=index)


@settings(max_examples=100)
@given(st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=3) | ai_records, max_size=3))
def test_any_list_is_a_conversation_or_an_input_error(records: list[Any]) -> None:
    with suppress(InputError):
        assert len(parse_conversation(json.dumps(records))) == len(records) > 0
