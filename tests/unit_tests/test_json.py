"""JSON and JSON Lines: a document is read as it was written, and errors name their cause."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
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
)

from langchain_threadmem.errors import InputError, InvalidGraphStateError, UnsupportedMessageError
from langchain_threadmem.formats.exporters.json import (
    from_json,
    parse_conversation,
    to_json,
    to_jsonl,
    to_jsonl_messages,
)
from langchain_threadmem.messages.records import message_from
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode, MessageSummary

CORRUPTED = (
    "Conversation graph has become corrupted. This can happen if the same message was processed "
    "multiple times. Use memory.reset() to clear the conversation and start fresh."
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("lc"), inner, max_size=3)
    ),
    max_leaves=5,
)
json_objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
contents = st.text(max_size=30) | st.lists(
    st.text(max_size=8)
    | st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=8))
    | st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, st.text(max_size=8)),
    max_size=3,
)
tool_calls = st.lists(
    st.builds(
        lambda name, args, id_: {"name": name, "args": args, "id": id_, "type": "tool_call"},
        st.text(max_size=8),
        json_objects,
        st.none() | st.text(max_size=8),
    ),
    max_size=2,
)
common = {
    "content": contents,
    "id": st.none() | st.text(max_size=8),
    "name": st.none() | st.text(max_size=8),
    "additional_kwargs": json_objects.filter(lambda kwargs: "tool_calls" not in kwargs),
    "response_metadata": json_objects,
}
messages = st.one_of(
    st.builds(HumanMessage, **common),
    st.builds(AIMessage, **common, tool_calls=tool_calls),
    st.builds(SystemMessage, **common),
    st.builds(ToolMessage, **common, tool_call_id=st.text(max_size=8), artifact=json_values),
    st.builds(FunctionMessage, **(common | {"name": st.text(max_size=8)})),
    st.builds(ChatMessage, **common, role=st.text(max_size=8) | st.just("user")),
)
zones = st.just(UTC) | st.integers(-839, 839).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@st.composite
def forests(draw: st.DrawFn, message: st.SearchStrategy[BaseMessage] = messages) -> list[ConversationNode]:
    ids = draw(st.lists(st.integers(1, 99), unique=True, max_size=8))
    return [
        ConversationNode(
            node_id,
            draw(message),
            draw(st.sampled_from([None, *ids[:n]])),
            draw(st.none() | st.builds(MessageSummary, title=st.text(), summary=st.text())),
            draw(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=zones)),
            draw(st.sampled_from([State.LIVE, State.SUPERSEDED, State.ASIDE])),
            draw(st.none() | st.integers(1, 99)),
        )
        for n, node_id in enumerate(ids)
    ]


def human(node_id: int, text: str = "Hello", parent: int | None = None, **kwargs: Any) -> ConversationNode:
    return ConversationNode(node_id, HumanMessage(text), parent, **kwargs)


def document(*nodes: dict[str, Any], **more: Any) -> str:
    defaults = {"role": "user", "content": "Hello"}
    return json.dumps({"version": "1.0", "nodes": [defaults | node for node in nodes], **more})


@settings(max_examples=150)
@given(forests())
def test_json_written_and_read_gives_the_same_nodes(nodes: list[ConversationNode]) -> None:
    assert from_json(to_json(nodes)).nodes == sorted(nodes, key=lambda node: node.id)


@settings(max_examples=50)
@given(forests())
def test_json_can_be_written_to_a_file_as_utf8(nodes: list[ConversationNode]) -> None:
    assert json.loads(to_json(nodes).encode())["metadata"]["total_messages"] == len(nodes)


def test_json_has_the_documented_shape() -> None:
    when = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
    summary = MessageSummary(title="Python", summary="User greets.")
    nodes = [
        ConversationNode(2, AIMessage("Hi", id="a"), 1, timestamp=when + timedelta(seconds=5)),
        human(1, timestamp=when, summary=summary),
    ]
    assert json.loads(to_json(nodes, mode="graph")) == {
        "version": "1.0",
        "metadata": {
            "created_at": "2024-01-15T10:30:00Z",
            "last_modified": "2024-01-15T10:30:05Z",
            "mode": "graph",
            "total_messages": 2,
        },
        "nodes": [
            {
                "id": 1,
                "role": "user",
                "content": "Hello",
                "timestamp": "2024-01-15T10:30:00Z",
                "summary": {"title": "Python", "summary": "User greets."},
                "parent_id": None,
            },
            {
                "id": 2,
                "role": "assistant",
                "content": "Hi",
                "timestamp": "2024-01-15T10:30:05Z",
                "summary": None,
                "parent_id": 1,
                "message_id": "a",
            },
        ],
        "edges": [{"from": 1, "to": 2}],
    }


def test_more_metadata_is_kept_and_cannot_replace_what_is_known() -> None:
    metadata = from_json(to_json([], metadata={"owner": "ada", "total_messages": 7})).metadata
    assert (metadata["owner"], metadata["total_messages"]) == ("ada", 0)


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (HumanMessage("x"), "user"),
        (AIMessage("x"), "assistant"),
        (SystemMessage("x"), "system"),
        (ToolMessage("x", tool_call_id="c"), "tool"),
        (FunctionMessage(content="x", name="f"), "function"),
        (ChatMessage(content="x", role="critic"), "critic"),
        (AIMessageChunk(content="x"), "assistant"),
    ],
)
def test_every_class_of_message_keeps_its_role_and_class(message: BaseMessage, role: str) -> None:
    text = to_json([ConversationNode(1, message)])
    assert json.loads(text)["nodes"][0]["role"] == role
    assert type(from_json(text).nodes[0].message) is type(message)


def test_what_looks_like_a_serialized_secret_stays_a_dictionary() -> None:
    secret = {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]}
    constructor = {"lc": 1, "type": "constructor", "id": ["langchain", "x"], "kwargs": {}}
    node = ConversationNode(1, HumanMessage("x", additional_kwargs={"a": secret, "b": constructor}))
    assert from_json(to_json([node])).nodes == [node]


def test_a_value_that_cannot_be_written_exactly_is_refused() -> None:
    node = ConversationNode(1, ToolMessage("x", tool_call_id="c", artifact=object()))
    with pytest.raises(UnsupportedMessageError, match="artifact"):
        to_json([node])


def test_writing_refuses_what_reading_would_refuse() -> None:
    with pytest.raises(InvalidGraphStateError, match="parent 7"):
        to_json([human(1, parent=7)])


def test_missing_fields_take_their_defaults() -> None:
    node = from_json(document({"id": 1})).nodes[0]
    assert node == human(1)


def test_null_summary_and_zoneless_time_are_read() -> None:
    node = from_json(document({"id": 1, "summary": None, "timestamp": "2024-01-15T10:30:00"})).nodes[0]
    assert (node.summary, node.timestamp) == (None, datetime(2024, 1, 15, 10, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", "human"),
        ("human", "human"),
        ("assistant", "ai"),
        ("ai", "ai"),
        ("system", "system"),
        ("tool", "tool"),
    ],
)
def test_both_names_of_a_role_are_read(role: str, kind: str) -> None:
    assert from_json(document({"id": 1, "role": role})).nodes[0].message.type == kind


@pytest.mark.parametrize(("told", "mode"), [("linear", "linear"), ("graph", "graph"), ("threaded", "graph")])
def test_modes_are_read(told: str, mode: str) -> None:
    assert from_json(document(metadata={"mode": told})).mode == mode


def test_a_child_may_have_a_lower_id_than_its_parent() -> None:
    assert from_json(document({"id": 1, "parent_id": 2}, {"id": 2})).nodes[0].parent_id == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (document({"id": 1}, {"id": 1}), r"\[1\]"),
        (document({"id": 0}), "id 0"),
        (document({"id": True}), "id True"),
        (document({"id": "1"}), "id '1'"),
        (document({"id": None}), "id None"),
        (document({"id": 1, "parent_id": 7}), "node 1 has the parent 7"),
        (document({"id": 1, "parent_id": 2}, {"id": 2, "parent_id": 1}), r"\[1, 2\]"),
        (document({"id": 1, "superseded_by": -1}), "superseded_by -1"),
        (document({"id": 1}, {"id": 2}, edges=[{"from": 1, "to": 2}]), "1 to 2"),
        (document({"id": 1}, {"id": 2, "parent_id": 1}, edges=[]), "1 to 2"),
    ],
)
def test_a_corrupt_graph_is_named(text: str, found: str) -> None:
    with pytest.raises(InvalidGraphStateError, match=found) as caught:
        from_json(text)
    assert CORRUPTED in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", r"not a JSON object"),
        ("{}", "'nodes'"),
        ('{"version": "2.0", "nodes": []}', "2.0"),
        (document(metadata={"mode": "round"}), "'round'"),
        (document({"id": 1, "role": "usr"}), "node 1 has the role 'usr'"),
        (document({"id": 1, "content": None}), "node 1 has no content"),
        (document({"id": 1, "content": 5}), "node 1"),
        (document({"id": 1, "timestamp": "noon"}), "node 1 .*noon"),
        (document({"id": 1, "summary": {"title": "x"}}), "node 1 .*summary"),
        (document({"id": 1, "state": "gone"}), "node 1 .*'gone'"),
        (document({"id": 1, "state": "purged"}), "node 1 .*'purged'"),
        (document({"id": 1, "message_id": 5}), "node 1 .*5"),
        (document({"id": 1, "message": {"type": "Path", "data": {}}}), "node 1 .*Path"),
        (
            document({"id": 1, "message": {"type": "human", "data": {"additional_kwargs": 5}}}),
            "node 1 .*kwargs",
        ),
        (document({"id": 1, "message": {"type": "ai", "data": {}}}), "node 1 .*'assistant'"),
        (
            document(
                {
                    "id": 1,
                    "message": {"type": "human", "typed": True, "data": {"x": {"#": "decimal", "v": "?"}}},
                }
            ),
            "node 1",
        ),
    ],
)
def test_a_document_that_cannot_be_read_is_explained(text: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        from_json(text)


@settings(max_examples=100)
@given(st.lists(json_objects | st.fixed_dictionaries({"id": json_values, "role": json_values}), max_size=3))
def test_any_json_is_read_or_refused_with_a_typed_error(nodes: list[Any]) -> None:
    text = json.dumps({"nodes": nodes})
    with suppress(InputError, InvalidGraphStateError):
        assert len(from_json(text).nodes) == len(nodes)


def test_a_very_deep_thread_is_written_and_read() -> None:
    nodes = [human(n, parent=n - 1 or None) for n in range(1, 20_001)]
    assert len(from_json(to_json(nodes)).nodes) == len(nodes)
    assert to_jsonl(nodes).count('"role"') == len(nodes)


def test_jsonl_has_a_line_for_each_thread() -> None:
    nodes = [
        human(1, "a"),
        ConversationNode(2, AIMessage("b"), 1),
        human(3, "c", 2),
        human(4, "d", 2),
        human(5, "e"),
    ]
    lines = [json.loads(line)["messages"] for line in to_jsonl(nodes).splitlines()]
    assert [[message["content"] for message in line] for line in lines] == [
        ["a", "b", "c"],
        ["a", "b", "d"],
        ["e"],
    ]


def test_jsonl_writes_and_reads_tool_calls_in_the_shape_of_openai() -> None:
    call = {"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}
    thread = [HumanMessage("?"), AIMessage("", tool_calls=[call]), ToolMessage("Sunny", tool_call_id="c1")]
    text = to_jsonl([ConversationNode(n, message, n - 1 or None) for n, message in enumerate(thread, 1)])
    assert json.loads(text)["messages"][1]["tool_calls"][0]["function"] == {
        "name": "weather",
        "arguments": '{"city": "Rome"}',
    }
    assert parse_conversation(text) == thread


def test_jsonl_leaves_out_superseded_ends() -> None:
    nodes = [human(1), human(2, "old", 1, state=State.SUPERSEDED), human(3, "new", 1)]
    assert [message["content"] for message in json.loads(to_jsonl(nodes))["messages"]] == ["Hello", "new"]


def test_a_line_stays_one_line_for_every_reader() -> None:
    nodes = [human(1, "a\x85b\u2028c\u2029d\ne\rf\x1c")]
    for text in (to_jsonl(nodes), to_jsonl_messages(nodes)):
        assert len(text.splitlines()) == 1
        assert parse_conversation(text) == [nodes[0].message]


def test_half_a_character_is_written_so_that_a_file_can_hold_it() -> None:
    node = human(1, "cut\ud83d")
    assert from_json(to_json([node]).encode().decode()).nodes == [node]


def test_jsonl_names_the_node_that_has_no_openai_shape() -> None:
    with pytest.raises(UnsupportedMessageError, match="node 3"):
        to_jsonl([ConversationNode(3, AIMessage([{"no": "type"}]))])


@settings(max_examples=100)
@given(forests(messages.filter(lambda message: message.type != "chat")))
def test_jsonl_messages_keep_role_and_content(nodes: list[ConversationNode]) -> None:
    text = to_jsonl_messages(nodes)
    back = [message_from(json.loads(line), "a line") for line in text.splitlines()]
    ordered = [node.message for node in sorted(nodes, key=lambda node: node.id)]
    assert [(m.type, m.content) for m in back] == [(m.type, m.content) for m in ordered]
    assert len(text.splitlines()) == len(nodes)


def test_no_nodes_give_no_lines() -> None:
    assert (to_jsonl([]), to_jsonl_messages([])) == ("", "")
