"""Values that contain messages: splitting and joining, and recognition of lists by their content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from own_classes import Handle, Note

from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.checkpoints.values import (
    Inline,
    Span,
    StoredValue,
    put_together,
    take_apart,
    unpack,
)
from langchain_threadmem.messages.parts import Parts
from langchain_threadmem.tree.lists.encoded import CHUNK, fingerprints, is_message_list

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)

messages = st.builds(
    lambda kind, text, id_: kind(text, id=id_),
    st.sampled_from([HumanMessage, AIMessage]),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.none() | st.text("ab", min_size=1, max_size=2),
)
others = (
    st.integers(0, 9) | st.just("text") | st.builds(lambda n: RemoveMessage(id=f"r{n}"), st.integers(0, 3))
)
lists = st.lists(messages | others, max_size=6)
values = lists | st.dictionaries(st.sampled_from(["messages", "notes", "x"]), lists | others, max_size=3)


def joined(stored_value: StoredValue) -> Any:
    return put_together(stored_value, lambda run: [], lambda kind, data: SERDE.loads_typed((kind, data)))


@given(values)
def test_a_value_that_was_taken_apart_and_stored_is_put_together_again(value: Any) -> None:
    stored_value = take_apart(value, SERDE.dumps_typed)
    if stored_value is None:
        inner = (
            value
            if isinstance(value, list)
            else [x for v in value.values() for x in (v if isinstance(v, list) else [])]
        )
        assert not any(isinstance(one, HumanMessage | AIMessage) for one in inner)
        return
    stored = unpack(stored_value.pack())
    assert joined(stored) == value
    assert stored.pack() == stored_value.pack()


def test_a_run_of_stored_messages_stands_where_they_stood() -> None:
    stored_value = StoredValue(
        {None: (Span(3, 4), Inline("h5", '{"type":"human","data":{"content":"new"}}'))}, True
    )
    rows = [
        ("h3", '{"type":"human","data":{"content":"3"}}'),
        ("h4", '{"type":"human","data":{"content":"4"}}'),
    ]
    found = put_together(unpack(stored_value.pack()), lambda run: rows, lambda kind, data: None)
    assert [message.id for message in found] == ["h3", "h4", "h5"]


class Special(HumanMessage):
    """A custom class."""


@pytest.mark.parametrize(
    "value", [[Special("x", id="s")], (HumanMessage("x", id="h"),), "x", None, [], {}, [1]]
)
def test_a_value_without_messages_of_the_codec_is_left_whole(value: Any) -> None:
    assert take_apart(value, SERDE.dumps_typed) is None
    assert not is_message_list(value)


def test_a_message_that_cannot_be_stored_exactly_stays_with_the_others() -> None:
    value = [HumanMessage("x", id="h"), HumanMessage("y", id="i", additional_kwargs={"o": object})]
    stored_value = take_apart(value, lambda rest: ("kind", b""))
    assert stored_value is not None
    assert [type(item).__name__ for item in stored_value.lists[None]] == ["Inline", "Serialized"]


def long_list() -> list[BaseMessage]:
    return [HumanMessage(f"text {n}", id=f"h{n}", additional_kwargs={"n": [n]}) for n in range(3 * CHUNK + 5)]


def test_equal_lists_have_equal_digests_of_whole_chunks() -> None:
    assert fingerprints(long_list()) == fingerprints(long_list())
    assert len(fingerprints(long_list())) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "content", "changed"),
        lambda m: m.additional_kwargs["n"].append(1),
        lambda m: m.additional_kwargs.update(n=[float(m.additional_kwargs["n"][0])]),
        lambda m: m.response_metadata.update(more=None),
        lambda m: setattr(m, "id", "other"),
        lambda m: setattr(m, "name", "other"),
    ],
)
def test_any_change_of_a_message_changes_the_digest_of_its_chunk(change: Any) -> None:
    changed = long_list()
    change(changed[CHUNK + 3])
    before, after = fingerprints(long_list()), fingerprints(changed)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]


def test_what_a_digest_could_confuse_has_none() -> None:
    changed = long_list()
    changed[CHUNK].additional_kwargs["n"] = (CHUNK,)
    assert fingerprints(changed) == fingerprints(long_list())[:1]


def test_parts_that_json_does_not_know_have_a_digest_of_what_they_are_stored_as() -> None:
    def listed(part: Any) -> list[BaseMessage]:
        changed = long_list()
        changed[CHUNK].additional_kwargs["n"] = part
        return changed

    parts = [Note(), Note(n=2), (CHUNK,), [CHUNK], Handle]
    found = [fingerprints(listed(part), Parts().write) for part in parts]
    assert [len(one) for one in found] == [3, 3, 3, 3, 1]
    assert len({one[1] for one in found[:4]}) == 4
    assert found[0] == fingerprints(listed(Note()), Parts().write)


@pytest.mark.parametrize("data", [b"", b"{", b"5", b"[[1]]", b'{"a":5}'])
def test_bytes_of_another_format_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        unpack(data)
