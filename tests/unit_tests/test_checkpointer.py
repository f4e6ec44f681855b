"""`ThreadMemSaver`: storing and loading of checkpoints, on every database, sync and async."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import ormsgpack
import pytest
from conftest import StreamCipher
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from own_classes import ODD, Handle, Letter, Note, Point
from sqlalchemy import bindparam, select

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.langgraph.checkpoints.queries import owners_of_run, pack_id, unpack_id
from langchain_threadmem.messages.typed_json import Opaque
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Statement
from langchain_threadmem.tree import nodes

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


class Both:
    """Calls the sync or the async methods of a saver."""

    def __init__(self, saver: ThreadMemSaver, loop: asyncio.AbstractEventLoop | None) -> None:
        self.saver = saver
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._loop is None:
                found = getattr(self.saver, name)(*arguments, **options)
                return list(found) if name == "list" else found
            twin = getattr(self.saver, f"a{name}")(*arguments, **options)
            return self._loop.run_until_complete(gathered(twin) if name == "list" else twin)

        return call

    def save(
        self, thread: str = "t", parent: str | None = None, ns: str = "", version: int = 1, **values: Any
    ) -> str:
        """Put a checkpoint whose channels all have a new version; returns its id."""
        metadata = values.pop("metadata", {})
        checkpoint = checkpoint_of(values, version)
        versions = dict(checkpoint["channel_versions"])
        self.put(config_of(thread, parent, ns), checkpoint, metadata, versions)
        return checkpoint["id"]

    def values(self, checkpoint: str | None = None, thread: str = "t", ns: str = "") -> dict[str, Any]:
        found = self.get_tuple(config_of(thread, checkpoint, ns))
        assert found is not None
        values: dict[str, Any] = found.checkpoint["channel_values"]
        return values

    def tree(self, thread: str = "t") -> list[tuple[int, int | None, str, str]]:
        history = self.saver.system.conversation(thread).history
        return [(n.id, n.parent_id, n.message.id or "", n.state.name.lower()) for n in history]


async def gathered(found: Any) -> list[Any]:
    return [one async for one in found]


def checkpoint_of(values: dict[str, Any], version: int) -> Checkpoint:
    made = empty_checkpoint() | {"channel_values": values, "channel_versions": dict.fromkeys(values, version)}
    return made | {"id": str(uuid6())}  # type: ignore[return-value]


def config_of(thread: str, checkpoint: str | None = None, ns: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}}


def rows(system: MemorySystem, table: str) -> int:
    count = (
        f"SELECT count(*) FROM threadmem_{table} t JOIN threadmem_tree o ON o.id = t.tree WHERE o.owner = "
    )
    statement = Statement.of(sqlite=count + "?", postgresql=count + "%s")
    return int(system.runtime.database.read(lambda conn: conn.all(statement, system.owner))[0][0])


def human(name: str, text: str | None = None) -> HumanMessage:
    return HumanMessage(text or name, id=name)


def ai(name: str, text: str | None = None) -> AIMessage:
    return AIMessage(text or name, id=name)


@pytest.fixture(params=["sync", "async"])
def loop(request: pytest.FixtureRequest, system: MemorySystem) -> Iterator[asyncio.AbstractEventLoop | None]:
    made = asyncio.new_event_loop() if request.param == "async" else None
    yield made
    if made is not None:
        made.run_until_complete(system.aclose())
        made.close()


@pytest.fixture
def saver(system: MemorySystem, loop: asyncio.AbstractEventLoop | None) -> Both:
    return Both(ThreadMemSaver(system), loop)


@pytest.mark.parametrize("again", [False, True], ids=["moved since", "stored again since"])
@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
def test_an_answer_comes_to_where_its_question_was_moved(saver: Both, again: bool, sealed: bool) -> None:
    if sealed:
        saver.saver.serde = EncryptedSerializer(StreamCipher())
    said = [human("h1"), ai("a1"), human("h2"), ai("a2"), human("h3")]
    parent = saver.save(messages=said)
    saver.saver.system.conversation("t").place(5, 2)
    if again:  # The list, through the old place, is known by now.
        parent = saver.save(parent=parent, version=2, messages=said)
    last = saver.save(parent=parent, version=3, messages=[*said, ai("a3")])
    threads = saver.saver.system.conversation("t").threads()
    assert [[node.message.id for node in thread] for thread in threads] == [
        ["h1", "a1", "h2", "a2"],
        ["h1", "a1", "h3", "a3"],
    ]
    assert saver.values(last)["messages"] == [*said, ai("a3")]
    assert saver.saver.system.verify().ok


def test_an_answer_comes_to_a_moved_question_below_a_rewritten_system_message(saver: Both) -> None:
    said = [SystemMessage("one", id="s"), human("h1"), human("h2")]
    parent = saver.save(messages=said)
    conversation = saver.saver.system.conversation("t")
    conversation.place(3, None)
    conversation.place(2, 4)
    said[0] = SystemMessage("two", id="s")
    for version in (2, 3):  # once looked up, once known
        parent = saver.save(parent=parent, version=version, messages=said[:2])
    saver.save(parent=parent, version=4, messages=[*said[:2], ai("a1")])
    assert ["h2", "h1", "a1"] in [[node.message.id for node in thread] for thread in conversation.threads()]


def test_an_answer_in_a_former_version_stays_there(saver: Both) -> None:
    old = saver.save(messages=[human("h1"), ai("a1"), human("h2"), ai("a2")])
    saver.save(parent=old, version=2, messages=[human("h1"), ai("a1"), human("h2", "edited")])
    for version in (3, 4):  # once looked up, once known
        old = saver.save(parent=old, version=version, messages=[human("h1"), ai("a1"), human("h2")])
    saver.save(parent=old, version=5, messages=[human("h1"), ai("a1"), human("h2"), ai("a3")])
    assert saver.tree()[2:] == [
        (3, 2, "h2", "superseded"),
        (4, 3, "a2", "superseded"),
        (5, 2, "h2", "live"),
        (6, 3, "a3", "live"),
    ]


def test_an_answer_below_a_redacted_message_follows_its_new_version(saver: Both) -> None:
    old = saver.save(messages=[human("h1"), ai("a1"), human("h2")])
    saver.save(parent=old, version=2, messages=[human("h1"), ai("a1", "edited"), human("h2")])
    for version in (3, 4):  # once looked up, once known
        old = saver.save(parent=old, version=version, messages=[human("h1"), ai("a1"), human("h2")])
    saver.save(parent=old, version=5, messages=[human("h1"), ai("a1"), human("h2"), ai("a2")])
    assert saver.tree() == [
        (1, None, "h1", "live"),
        (3, 4, "h2", "live"),
        (4, 1, "a1", "live"),
        (5, 3, "a2", "live"),
    ]


def test_the_messages_of_the_root_namespace_are_the_conversation(saver: Both) -> None:
    first = saver.save(messages=[human("h1"), ai("a1")])
    saver.save(parent=first, version=2, messages=[human("h1"), ai("a1"), human("h2")])
    assert saver.tree() == [(1, None, "h1", "live"), (2, 1, "a1", "live"), (3, 2, "h2", "live")]


def test_other_channels_and_namespaces_are_no_part_of_it(saver: Both) -> None:
    saver.save(notes=[human("n1")])
    saver.save(ns="child:1", messages=[human("c1")])
    assert saver.values()["notes"] == [human("n1")]
    assert saver.values(ns="child:1")["messages"] == [human("c1")]
    assert saver.tree() == []


def test_a_channel_whose_version_did_not_change_keeps_the_value_of_the_checkpoint_before(saver: Both) -> None:
    first = saver.save(messages=[human("h1")], count=1)
    second = checkpoint_of({"messages": [human("h1")], "count": 2}, 1)
    second["channel_versions"]["count"] = 2
    saver.put(config_of("t", first), second, {}, {"count": 2})
    assert saver.values() == {"messages": [human("h1")], "count": 2}


def test_versions_of_a_parent_that_another_system_has_replaced_are_read_again(saver: Both, url: str) -> None:
    first = saver.save(count=1, total=5)
    with MemorySystem(url, owner=saver.saver.system.owner, embeddings=False) as other:
        replaced = checkpoint_of({"count": 2, "total": 6}, 2) | {"id": first}
        ThreadMemSaver(other).put(config_of("t"), replaced, {}, replaced["channel_versions"])
    second = checkpoint_of({"count": 1, "total": 7}, 1)
    second["channel_versions"]["total"] = 3
    saver.put(config_of("t", first), second, {}, {"total": 3})
    assert saver.values() == {"count": 1, "total": 7}


def test_forks_with_the_same_versions_keep_their_own_values(saver: Both) -> None:
    root = saver.save(version=1, count=0)
    one = saver.save(parent=root, version=2, count=1)
    other = saver.save(parent=root, version=2, count=2)
    assert (saver.values(one)["count"], saver.values(other)["count"]) == (1, 2)


def test_an_empty_list_is_not_an_absent_channel(saver: Both) -> None:
    saver.save(messages=[])
    assert saver.values() == {"messages": []}


def test_a_channel_without_a_value_stays_absent(saver: Both) -> None:
    checkpoint = checkpoint_of({}, 1) | {"channel_versions": {"start": 2}}
    saver.put(config_of("t"), checkpoint, {}, {"start": 2})
    assert saver.values() == {}


@pytest.mark.parametrize(
    "value",
    [
        [HumanMessage("no id")],
        [human("h1"), human("h1", "again")],
        [human("h1"), RemoveMessage(id="h0")],
        [human("h1"), "text"],
        [HumanMessage("nul", id="a\0b")],
        _DeltaSnapshot([human("h1")]),
        {"messages": [human("h1")]},
        (1, 2),
        "text",
        None,
        b"\0",
    ],
    ids=["nameless", "twice", "remove", "mixed", "nul", "delta", "dict", "tuple", "text", "none", "bytes"],
)
def test_what_is_no_list_of_messages_with_ids_is_kept_as_it_is(saver: Both, value: Any) -> None:
    saver.save(messages=value)
    found = saver.values()["messages"]
    assert found == (list(value) if type(value) is tuple else value)
    assert saver.tree() == []


def test_messages_keep_lone_surrogates_and_constructor_look_alikes_as_data(saver: Both) -> None:
    forged = {"lc": 2, "type": "constructor", "id": ["os", "system"]}
    message = HumanMessage(
        "\ud800", id="h1", additional_kwargs={"k": forged, "s": {"lc": 1, "type": "secret"}}
    )
    saver.save(messages=[message])
    assert saver.values()["messages"] == [message]


def test_what_a_caller_changes_in_a_state_changes_no_other(saver: Both) -> None:
    message = AIMessage("a", id="a1", additional_kwargs={"k": []})
    first = saver.save(messages=[message])
    saver.save(parent=first, version=2, messages=[message, human("h2")])
    found = saver.list(config_of("t"))
    found[0].checkpoint["channel_values"]["messages"][0].additional_kwargs["k"].append(1)
    assert found[1].checkpoint["channel_values"]["messages"] == [message]
    assert saver.values()["messages"][0] == message


def test_a_message_changed_in_place_is_seen(saver: Both) -> None:
    messages: list[BaseMessage] = [human(f"h{n}") for n in range(200)]
    first = saver.save(messages=messages)
    messages[3].additional_kwargs["changed"] = True
    second = saver.save(parent=first, version=2, messages=messages)
    assert saver.values(second)["messages"] == messages
    assert saver.values(first)["messages"][3].additional_kwargs == {}


def test_an_edited_message_supersedes_the_old_one_and_the_old_checkpoint_still_shows_it(saver: Both) -> None:
    first = saver.save(messages=[human("h1"), ai("a1")])
    saver.save(parent=first, version=2, messages=[human("h1", "edited")])
    assert saver.tree()[0] == (1, None, "h1", "superseded")
    assert saver.tree()[2] == (3, None, "h1", "live")
    assert saver.values(first)["messages"] == [human("h1"), ai("a1")]


def test_an_edited_message_supersedes_what_answered_it_but_not_later_turns(saver: Both) -> None:
    first = saver.save(messages=[human("h1")])
    saver.save(parent=first, version=2, messages=[human("h1"), ai("a1"), human("h2"), ai("a2")])
    saver.save(parent=first, version=2, messages=[human("h1", "better"), ai("b1")])
    assert saver.tree() == [
        (1, None, "h1", "superseded"),
        (2, 1, "a1", "superseded"),
        (3, 2, "h2", "live"),
        (4, 3, "a2", "live"),
        (5, None, "h1", "live"),
        (6, 5, "b1", "live"),
    ]


def test_however_much_follows_a_replaced_message_one_is_written(saver: Both, system: MemorySystem) -> None:
    said = [human(f"m{n}") for n in range(200)]
    first = saver.save(messages=said)
    for version in (2, 3):
        said[1] = human("m1", f"version {version}")
        saver.save(parent=first, version=version, messages=said)
    assert rows(system, "node") == 202
    assert [message.text for message in system.conversation("t").messages] == [m.text for m in said]
    assert len(saver.values(first)["messages"]) == 200
    assert system.verify().problems == ()


def test_an_edited_message_keeps_what_the_list_still_shows_after_it(saver: Both) -> None:
    first = saver.save(messages=[human("h1"), ai("a1"), ai("a2")])
    saver.save(parent=first, version=2, messages=[human("h1", "better"), ai("a1")])
    assert saver.tree() == [
        (1, None, "h1", "superseded"),
        (2, 4, "a1", "live"),
        (3, 2, "a2", "superseded"),
        (4, None, "h1", "live"),
    ]


def test_an_edit_does_what_editing_the_conversation_does(saver: Both, system: MemorySystem) -> None:
    said = [human("h1"), ai("a1"), ai("a2"), human("h2"), ai("b2")]
    first = saver.save(messages=said[:1])
    saver.save(parent=first, version=2, messages=said)
    saver.save(parent=first, version=2, messages=[human("h1", "better")])
    other = system.conversation("other")
    other.extend(said)
    other.edit(1, human("h1", "better"))
    assert saver.tree() == saver.tree("other")


def test_a_system_message_rewritten_at_each_turn_moves_nothing(saver: Both) -> None:
    said: list[BaseMessage] = []
    for n in range(6):
        said += [human(f"h{n}"), ai(f"a{n}")]
        messages = [SystemMessage(f"It is {n} o'clock.", id="s"), *said]
        saver.save(version=n + 1, messages=messages)
        assert saver.values()["messages"] == messages
    assert [name for _, _, name, state in saver.tree() if state == "live"].count("h0") == 1
    assert len(saver.tree()) == 6 + len(said)
    conversation = saver.saver.system.conversation("t")
    assert conversation.messages == messages
    assert len(conversation.threads()) == 1


def test_a_second_answer_supersedes_the_first_but_not_later_turns(saver: Both) -> None:
    asked = saver.save(messages=[human("h1")])
    answered = saver.save(parent=asked, version=2, messages=[human("h1"), ai("a1"), ai("a2")])
    saver.save(parent=answered, version=3, messages=[human("h1"), ai("a1"), ai("a2"), human("h2"), ai("a3")])
    saver.save(parent=asked, version=2, messages=[human("h1"), ai("b1")])
    states = {message: state for _, _, message, state in saver.tree()}
    assert states == dict.fromkeys(["a1", "a2"], "superseded") | dict.fromkeys(
        ["h1", "h2", "a3", "b1"], "live"
    )


def test_two_questions_to_one_answer_are_two_threads(saver: Both) -> None:
    root = saver.save(messages=[human("h1"), ai("a1")])
    saver.save(parent=root, version=2, messages=[human("h1"), ai("a1"), human("h2")])
    saver.save(parent=root, version=2, messages=[human("h1"), ai("a1"), human("h3")])
    assert saver.tree()[2:] == [(3, 2, "h2", "live"), (4, 2, "h3", "live")]


def test_a_summary_in_front_of_what_was_said_is_an_aside(saver: Both) -> None:
    first = saver.save(messages=[human("h1"), ai("a1")])
    summed = [SystemMessage("summary", id="s"), ai("a1"), human("h2")]
    saver.save(parent=first, version=2, messages=summed)
    assert saver.values()["messages"] == summed
    assert saver.tree()[2:] == [(3, None, "s", "aside"), (4, 2, "h2", "live")]
    tip = saver.saver.system.conversation("t").tip
    assert tip is not None
    assert (tip.message.id, tip.state) == ("h2", State.LIVE)


def test_pending_writes_come_in_the_order_in_which_they_are_applied(saver: Both) -> None:
    at = config_of("t", saver.save(n=1))
    saver.put_writes(at, [("n", 1), ("n", 2)], "task-b", "path-2")
    saver.put_writes(at, [("n", 3)], "task-a", "path-2")
    saver.put_writes(at, [("n", 4)], "task-c", "path-1")
    found = saver.get_tuple(config_of("t")).pending_writes
    assert [(task, value) for task, _, value in found] == [
        ("task-c", 4),
        ("task-a", 3),
        ("task-b", 1),
        ("task-b", 2),
    ]


def test_the_same_writes_twice_are_once_and_the_first_stays(saver: Both) -> None:
    at = config_of("t", saver.save(n=1))
    saver.put_writes(at, [("n", 1)], "task")
    saver.put_writes(at, [("n", 2)], "task")
    assert [value for _, _, value in saver.get_tuple(at).pending_writes] == [1]


def test_a_second_error_of_a_task_takes_the_place_of_the_first(saver: Both) -> None:
    at = config_of("t", saver.save(n=1))
    saver.put_writes(at, [("__error__", "first")], "task")
    saver.put_writes(at, [("__error__", "second")], "task")
    assert [value for _, _, value in saver.get_tuple(at).pending_writes] == ["second"]


def test_a_write_of_a_long_stored_path_costs_a_few_bytes(saver: Both) -> None:
    path: list[BaseMessage] = [human(f"h{n}", "long " * 50) for n in range(300)]
    at = config_of("t", saver.save(messages=path))
    value = [RemoveMessage(REMOVE_ALL_MESSAGES), *path, HumanMessage("new")]
    saver.put_writes(at, [("messages", value), ("other", {"messages": path, "n": (1,)})], "task")
    size = Statement.of(
        sqlite="SELECT sum(length(w.data)) FROM threadmem_write w JOIN threadmem_tree t ON t.id = w.tree "
        "WHERE t.owner = ?",
        postgresql="SELECT sum(length(w.data)) FROM threadmem_write w JOIN threadmem_tree t ON t.id = w.tree "
        "WHERE t.owner = %s",
    )
    system = saver.saver.system
    assert system.runtime.database.read(lambda conn: conn.all(size, system.owner))[0][0] < 2000
    written = [value for _, _, value in saver.get_tuple(at).pending_writes]
    assert written == [value, {"messages": path, "n": [1]}]


def test_a_write_comes_back_with_the_id_that_its_message_was_given_later(saver: Both) -> None:
    message = HumanMessage("hello")
    at = saver.save(n=1)
    saver.put_writes(config_of("t", at), [("messages", [message])], "task")
    message.id = "given"
    saver.save(parent=at, version=2, messages=[message])
    assert saver.get_tuple(config_of("t", at)).pending_writes == [("task", "messages", [message])]


def test_a_write_comes_back_as_it_was_though_its_message_was_changed_later(saver: Both) -> None:
    message = HumanMessage("hello")
    at = saver.save(n=1)
    saver.put_writes(config_of("t", at), [("messages", [message])], "task")
    message.id, message.content = "given", "changed"
    saver.save(parent=at, version=2, messages=[message])
    found = saver.get_tuple(config_of("t", at)).pending_writes
    assert found == [("task", "messages", [HumanMessage("hello", id="given")])]


def test_the_input_comes_back_with_the_id_that_its_message_was_given_later(saver: Both) -> None:
    message = HumanMessage("hello")
    first = saver.save(__start__={"messages": [message]})
    message.id = "given"
    saver.save(parent=first, version=2, messages=[message])
    assert saver.values(first) == {"__start__": {"messages": [message]}}


def test_list_is_newest_first_and_takes_before_limit_and_filter(saver: Both) -> None:
    ids = [saver.save(n=n, metadata={"step": n, "odd": n % 2 == 1}) for n in range(40)]

    def listed(**options: Any) -> list[int]:
        found = saver.list(config_of("t"), **options)
        return [one.metadata["step"] for one in found]

    assert listed() == list(range(39, -1, -1))
    assert listed(limit=2) == [39, 38]
    assert listed(before=config_of("t", ids[5]), limit=2) == [4, 3]
    assert listed(filter={"odd": True}, limit=3) == [39, 37, 35]
    assert listed(filter={"odd": True, "step": 2}) == []
    assert listed(limit=0) == []


@pytest.mark.parametrize("config", [config_of("t"), {"configurable": {"thread_id": "t"}}, None])
def test_a_list_with_a_limit_reads_no_further_checkpoints(
    saver: Both, config: Any, counted_rows: Callable[[], list[int]]
) -> None:
    ids = [saver.save(n=n) for n in range(20)]
    counts = counted_rows()
    assert len(saver.list(config, limit=2)) == 2
    assert len(saver.list(config, before=config_of("t", ids[10]), limit=2)) == 2
    assert max(counts) == 2


@pytest.mark.parametrize(
    "key", ["x') OR '1'='1", "$.step", 'step"', "step'; DROP TABLE x; --", "ſtep", "\0"], ids=range(6)
)
def test_a_hostile_filter_matches_nothing(saver: Both, key: str) -> None:
    saver.save(n=1, metadata={"step": 1})
    assert saver.list(config_of("t"), filter={key: 1}) == []
    assert saver.list(config_of("t"), filter={"step": {"$ne": 0}}) == []
    assert len(saver.list(config_of("t"))) == 1


def test_list_without_a_configuration_lists_all_threads_of_this_owner_alone(saver: Both, url: str) -> None:
    saver.save("one", n=1)
    saver.save("two", n=1)
    with MemorySystem(url, owner=f"other-{uuid4()}", embeddings=False) as other:
        theirs = ThreadMemSaver(other)
        theirs.put(config_of("one"), checkpoint_of({"n": 2}, 1), {}, {"n": 1})
        assert [one.checkpoint["channel_values"] for one in theirs.list(None)] == [{"n": 2}]
        theirs.delete_thread("one")
        assert theirs.get_tuple(config_of("one")) is None
    assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} == {"one", "two"}


def test_deleting_a_thread_leaves_nothing_of_it_and_all_of_others(saver: Both, system: MemorySystem) -> None:
    for thread in ("one", "two"):
        at = saver.save(thread, messages=[human(thread)], notes=[human("n")], text="x")
        saver.put_writes(config_of(thread, at), [("n", 1)], "task")
    counts = {table: rows(system, table) for table in ("checkpoint", "blob", "write", "node", "segment")}
    saver.delete_thread("one")
    assert {table: 2 * rows(system, table) for table in counts} == counts
    assert saver.values(thread="two")["text"] == "x"
    assert system.conversations() == ["two"]


def test_resetting_a_conversation_deletes_its_checkpoints(saver: Both, system: MemorySystem) -> None:
    saver.save(messages=[human("h1")])
    system.conversation("t").reset()
    assert saver.get_tuple(config_of("t")) is None
    assert saver.save(messages=[human("h1")])
    assert saver.values() == {"messages": [human("h1")]}


def test_taking_a_run_back_supersedes_what_it_alone_said(saver: Both, system: MemorySystem) -> None:
    kept = saver.save(messages=[human("h1"), ai("a1")], metadata={"run_id": "first"})
    second = [human("h1"), ai("a1"), human("h2"), ai("a2")]
    gone = saver.save(parent=kept, version=2, messages=second, metadata={"run_id": "second"})
    saver.put_writes(config_of("t", gone), [("n", 1)], "task")
    saver.delete_for_runs(["second", "unknown"])
    assert saver.get_tuple(config_of("t", gone)) is None
    assert [state for *_, state in saver.tree()] == ["live", "live", "superseded", "superseded"]
    assert (rows(system, "blob"), rows(system, "write")) == (1, 0)
    tip = system.conversation("t").tip
    assert tip is not None
    assert tip.message.id == "a1"


def test_the_owner_of_a_run_is_found_by_its_checkpoints(saver: Both, system: MemorySystem) -> None:
    run = f"run of {system.owner}"
    saver.save(messages=[human("h1")], metadata={"run_id": run})
    found = system.resources.database.read(lambda conn: (owners_of_run(conn, run), owners_of_run(conn, "no")))
    assert found == ([system.owner], [])


def test_taking_a_run_back_revives_what_it_had_superseded(saver: Both, system: MemorySystem) -> None:
    first = saver.save(messages=[human("h1")])
    saver.save(parent=first, version=2, messages=[human("h1"), ai("a1")])
    before = saver.tree()
    saver.save(parent=first, version=2, messages=[human("h1", "better"), ai("b1")], metadata={"run_id": "r1"})
    saver.delete_for_runs(["r1"])
    assert saver.tree()[:2] == before
    assert [state for _, _, _, state in saver.tree()[2:]] == ["superseded", "superseded"]
    assert system.verify().problems == ()


def test_taking_a_run_back_gives_what_followed_back_to_the_old_version(
    saver: Both, system: MemorySystem
) -> None:
    first = saver.save(messages=[human("h1"), ai("a1"), human("h2")])
    before = saver.tree()
    edited = [human("h1", "better"), ai("a1"), human("h2")]
    saver.save(parent=first, version=2, messages=edited, metadata={"run_id": "r1"})
    saver.delete_for_runs(["r1"])
    assert saver.tree() == [*before, (4, None, "h1", "superseded")]
    assert system.verify().problems == ()


def test_taking_a_run_back_revives_one_version_of_a_message_at_most(saver: Both) -> None:
    first = saver.save(messages=[human("h1", "one")])
    second = saver.save(messages=[human("h1", "two")], metadata={"run_id": "r1"})
    saver.save(messages=[human("h1", "three")], metadata={"run_id": "r2"})
    saver.delete_for_runs(["r1"])
    assert [state for _, _, _, state in saver.tree()] == ["live"]
    saver.delete_for_runs(["r2"])
    assert [state for _, _, _, state in saver.tree()].count("live") <= 1
    assert saver.values(first)["messages"] == [human("h1", "one")]
    assert saver.get_tuple(config_of("t", second)) is None


def test_taking_a_run_back_revives_no_place_that_its_message_was_moved_away_from(
    saver: Both, system: MemorySystem
) -> None:
    run = {"run_id": "r1"}
    first = saver.save(messages=[human("h1"), ai("a1")])
    asked = [human("h1"), ai("a1"), human("h2")]
    second = saver.save(parent=first, version=2, messages=asked, metadata=run)
    moved = system.conversation("t").place(3, None)
    saver.save(parent=second, version=3, messages=[human("h2"), ai("a2")], metadata=run)
    saver.delete_for_runs(["r1"])
    assert [(id, state) for id, _, name, state in saver.tree() if name == "h2"] == [
        (3, "superseded"),
        (moved.id, "superseded"),
    ]


def test_verify_notices_messages_and_values_that_checkpoints_miss(saver: Both, system: MemorySystem) -> None:
    saver.save(messages=[human("h1"), ai("a1"), human("h2")], n=1)
    assert system.verify().problems == ()
    delete(system, "node", "role = 'ai'")
    assert any("are missing" in problem for problem in system.verify().problems)
    delete(system, "blob", "kind <> '#'")
    assert any("value 2 is missing" in problem for problem in system.verify().problems)


def delete(system: MemorySystem, table: str, where: str) -> None:
    sql = (
        f"DELETE FROM threadmem_{table} WHERE {where} "
        "AND tree IN (SELECT id FROM threadmem_tree WHERE owner = {})"
    )
    statement = Statement.of(sqlite=sql.format("?"), postgresql=sql.format("%s"))
    system.runtime.database.write(lambda conn: conn.run(statement, system.owner))


def test_a_copy_is_equal_and_independent(saver: Both, system: MemorySystem) -> None:
    first = saver.save(messages=[human("h1"), ai("a1")], notes=[human("n1")])
    saver.save(parent=first, version=2, messages=[human("h1", "edited")])
    saver.put_writes(config_of("t", first), [("messages", [human("h1"), human("new")])], "task")
    before = saver.list(config_of("t"))
    saver.copy_thread("t", "copy")
    after = saver.list(config_of("copy"))
    assert [(one.checkpoint, one.metadata, one.pending_writes) for one in after] == [
        (one.checkpoint, one.metadata, one.pending_writes) for one in before
    ]
    assert saver.tree("copy") == saver.tree("t")
    saver.delete_thread("t")
    assert saver.values(first, "copy")["messages"] == [human("h1"), ai("a1")]
    assert system.verify().problems == ()


def test_a_copy_never_lands_on_something(saver: Both) -> None:
    saver.save("one", n=1)
    saver.save("two", n=1)
    with pytest.raises(InputError, match="'two', which is not empty"):
        saver.copy_thread("one", "two")


def test_pruning_leaves_the_latest_checkpoint_and_the_whole_conversation(
    saver: Both, system: MemorySystem
) -> None:
    first = saver.save(messages=[human("h1")], text="old")
    saver.save(parent=first, version=2, messages=[human("h1"), ai("a1")], text="new")
    saver.prune(["t", "unknown"])
    assert [one.checkpoint["channel_values"]["text"] for one in saver.list(config_of("t"))] == ["new"]
    assert rows(system, "blob") == 2
    assert len(saver.tree()) == 2


def test_no_checkpoint_names_a_removed_parent(saver: Both) -> None:
    first = saver.save(messages=[human("h1")], metadata={"run_id": "r1"})
    for thread in ("pruned", "undone"):
        saver.copy_thread("t", thread)
        latest = saver.save(thread, parent=first, version=2, messages=[human("h1"), human("h2")])
    saver.prune(["pruned"])
    saver.delete_for_runs(["r1"])
    for thread in ("pruned", "undone"):
        assert saver.get_tuple(config_of(thread)).parent_config is None
        with pytest.raises(InputError, match="no earlier state"):
            saver.fork(config_of(thread), "h2")
    assert saver.get_tuple(config_of("undone")).checkpoint["id"] == latest


def test_an_empty_checkpoint_id_names_the_latest_checkpoint(saver: Both) -> None:
    saver.save(parent="", d=_DeltaSnapshot([1]))
    first = saver.get_tuple(config_of("t"))
    assert first.parent_config is None
    saver.put_writes(first.config, [("d", 2)], "task")
    latest = checkpoint_of({}, 2) | {"channel_versions": {"d": 2}}
    saver.put(first.config, latest, {}, {"d": 2})
    assert saver.get_tuple(config_of("t", "")) == saver.get_tuple(config_of("t"))
    assert saver.list(config_of("t", "")) == saver.list(config_of("t"))
    assert saver.get_delta_channel_history(config=config_of("t", ""), channels=["d"]) == {
        "d": {"seed": _DeltaSnapshot([1]), "writes": [("task", "d", 2)]}
    }


def test_pruning_leaves_what_a_delta_channel_is_made_of(saver: Both) -> None:
    delta = {"counters_since_delta_snapshot": {"d": (1, 1)}}
    oldest = saver.save(d=_DeltaSnapshot([0]))
    seed = saver.save(parent=oldest, version=2, d=_DeltaSnapshot([1]))
    saver.put_writes(config_of("t", seed), [("d", 2)], "task")
    latest = checkpoint_of({}, 1) | {"channel_versions": {"d": 3}}
    saver.put(config_of("t", seed), latest, delta, {"d": 3})
    before = saver.get_delta_channel_history(config=config_of("t"), channels=["d"])
    saver.prune(["t"])
    assert saver.get_tuple(config_of("t", oldest)) is None
    assert saver.get_delta_channel_history(config=config_of("t"), channels=["d"]) == before
    assert before == {"d": {"seed": _DeltaSnapshot([1]), "writes": [("task", "d", 2)]}}


def test_pruning_by_deleting_leaves_nothing(saver: Both, system: MemorySystem) -> None:
    saver.save(messages=[human("h1")])
    saver.prune(["t"], strategy="delete")
    assert saver.list(config_of("t")) == []
    assert rows(system, "node") == 0


def test_an_unknown_strategy_is_refused(saver: Both) -> None:
    with pytest.raises(InputError, match="'keep_latest', 'delete'"):
        saver.prune(["t"], strategy="keep_all")


def test_delta_history_of_a_thread_without_checkpoints_is_empty(saver: Both) -> None:
    assert saver.get_delta_channel_history(config=config_of("t"), channels=["d"]) == {"d": {"writes": []}}
    assert saver.get_delta_channel_history(config=config_of("t"), channels=[]) == {}


def test_putting_a_checkpoint_again_replaces_it_and_leaves_no_old_value(
    saver: Both, system: MemorySystem
) -> None:
    checkpoint = checkpoint_of({"n": 1}, 1)
    saver.put(config_of("t"), checkpoint, {}, {"n": 1})
    saver.put(config_of("t"), checkpoint | {"channel_values": {"n": 2}}, {"step": 1}, {"n": 1})
    assert saver.values() == {"n": 2}
    assert (rows(system, "checkpoint"), rows(system, "blob")) == (1, 1)


def test_another_writer_on_the_same_thread_is_noticed(saver: Both, system: MemorySystem) -> None:
    messages: list[BaseMessage] = [human(f"h{n}") for n in range(100)]
    first = saver.save(messages=messages)
    system.conversation("t").edit(50, "edited meanwhile")
    second = saver.save(parent=first, version=2, messages=[*messages, ai("a1")])
    assert saver.values(second)["messages"] == [*messages, ai("a1")]
    assert system.verify().problems == ()


def test_setup_may_be_called_often(saver: Both) -> None:
    saver.setup()
    saver.setup()
    saver.save(n=1)
    saver.setup()
    assert saver.values() == {"n": 1}


def test_versions_rise_by_one_and_those_of_another_saver_go_on() -> None:
    with ThreadMemSaver.from_conn_string(None) as saver:
        assert [saver.get_next_version(version, None) for version in (None, 1, 41)] == [1, 2, 42]
        old = f"{41:032}.{0.5:016}"
        assert old < saver.get_next_version(old, None) < f"{43:032}"


def test_a_saver_opened_by_url_closes_its_database(url: str) -> None:
    with ThreadMemSaver.from_conn_string(url, owner=f"o-{uuid4()}") as saver:
        assert saver.get_tuple(config_of("t")) is None
    with pytest.raises(PersistenceError, match="closed"):
        saver.get_tuple(config_of("t"))


def test_a_saver_opened_by_url_closes_its_database_async(url: str) -> None:
    async def use() -> None:
        async with ThreadMemSaver.from_conn_string(url, owner=f"o-{uuid4()}") as saver:
            await saver.asetup()
            assert await saver.aget_tuple(config_of("t")) is None

    asyncio.run(use())


def test_a_system_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="from_conn_string"):
        ThreadMemSaver("sqlite://")  # type: ignore[arg-type]


def test_a_configuration_without_a_thread_is_refused() -> None:
    with ThreadMemSaver.from_conn_string(None) as saver, pytest.raises(InputError, match="names no thread"):
        saver.get_tuple({"configurable": {}})


def forge(system: MemorySystem, kind: str, data: bytes) -> None:
    sql = "UPDATE threadmem_blob SET kind = {0}, data = {0}"
    statement = Statement.of(sqlite=sql.format("?"), postgresql=sql.format("%s"))
    system.runtime.database.write(lambda conn: conn.run(statement, kind, data))


@pytest.fixture
def alone() -> Iterator[MemorySystem]:
    with MemorySystem(embeddings=False) as system:
        yield system


def test_a_forged_class_is_not_imported_and_that_is_said(
    alone: MemorySystem, caplog: pytest.LogCaptureFixture
) -> None:
    saver = Both(ThreadMemSaver(alone, serde=STRICT), None)
    saver.save(n=1)
    inner = ormsgpack.packb(("antigravity", "fly", "argument"))
    forge(alone, "msgpack", ormsgpack.packb(ormsgpack.Ext(0, inner)))
    with caplog.at_level(logging.WARNING):
        assert saver.values() == {"n": "argument"}
    assert "Blocked deserialization of antigravity.fly" in caplog.text


@pytest.mark.parametrize("kind", ["pickle", "json", "text"])
def test_a_format_that_is_never_written_is_never_read(alone: MemorySystem, kind: str) -> None:
    saver = Both(ThreadMemSaver(alone), None)
    saver.save(n=1)
    forge(alone, kind, b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(PersistenceError, match=f"format '{kind}'"):
        saver.values()


def test_langgraphs_strict_mode_holds_for_the_default_serializer(
    alone: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_msgpack, "STRICT_MSGPACK_ENABLED", True)
    saver = Both(ThreadMemSaver(alone), None)
    saver.save(n=1)
    forge(alone, "msgpack", ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("antigravity", "fly", "a")))))
    assert saver.values() == {"n": "a"}
    assert "antigravity" not in sys.modules


def test_a_strict_saver_gives_back_the_classes_that_are_listed(alone: MemorySystem) -> None:
    saver = ThreadMemSaver(alone, serde=STRICT)
    Both(saver, None).save(note=Note(), point=Point())
    clone = saver.with_allowlist([("own_classes", "Note")])
    assert Both(clone, None).values() == {"note": Note(), "point": {"x": 1, "y": 2.5}}
    assert Both(saver, None).values()["note"] == {"text": "note", "n": 1}


@pytest.mark.parametrize("value", [*ODD[:5], [Note(n=2), {"deep": Point()}]])
def test_values_of_a_callers_classes_come_back_as_they_were(saver: Both, value: Any) -> None:
    first = saver.save(state=value, messages=[human("h1")])
    saver.put_writes(config_of("t", first), [("state", value), ("messages", [ai("a1")])], "task")
    assert saver.values()["state"] == value
    assert type(saver.values()["state"]) is type(value)
    assert ("task", "state", value) in saver.get_tuple(config_of("t")).pending_writes


def test_messages_of_a_callers_class_come_back_as_they_were(saver: Both) -> None:
    said = [Letter("one", id="h1", stamp="red"), ai("a1")]
    first = saver.save(messages=said)
    saver.put_writes(config_of("t", first), [("messages", [Letter("two", id="h2")])], "task")
    assert saver.values()["messages"] == said
    assert [type(message) for message in saver.values()["messages"]] == [Letter, AIMessage]
    assert saver.get_tuple(config_of("t")).pending_writes == [("task", "messages", [Letter("two", id="h2")])]


def test_a_list_that_stays_outside_of_the_tree_is_told_of_once(
    alone: MemorySystem, caplog: pytest.LogCaptureFixture
) -> None:
    class Strange(HumanMessage):
        pass

    for _ in range(2):
        Both(ThreadMemSaver(alone), None).save(messages=[Strange("x", id="h1"), ai("a1")])
    assert caplog.text.count("outside of the conversation's tree") == 1


@pytest.mark.parametrize("part", ODD)
def test_a_message_with_a_part_that_json_does_not_know_is_in_the_tree_like_the_others(
    saver: Both, part: Any
) -> None:
    call = {"name": "look", "args": {}, "id": "c", "type": "tool_call"}
    said = [human("h1"), AIMessage("", id="a1", tool_calls=[call])]
    tool = ToolMessage("seen", id="t1", tool_call_id="c", artifact=part)
    first = saver.save(messages=said)
    saver.put_writes(config_of("t", first), [("messages", [tool])], "task")
    assert saver.get_tuple(config_of("t")).pending_writes == [("task", "messages", [tool])]
    second = saver.save(parent=first, version=2, messages=[*said, tool])
    saver.save(parent=second, version=3, messages=[*saver.values()["messages"], ai("a2")])
    assert saver.values()["messages"] == [*said, tool, ai("a2")]
    assert [row[2:] for row in saver.tree()] == [(name, "live") for name in ("h1", "a1", "t1", "a2")]
    assert saver.saver.system.conversation("t").history[2].message == tool


def test_a_strict_saver_shows_parts_as_data_and_leaves_the_tree_as_it_was(saver: Both) -> None:
    said: list[BaseMessage] = [human("h1"), AIMessage("x", id="a1", additional_kwargs={"note": Note()})]
    first = saver.save(messages=said)
    saver.saver.serde = STRICT
    shown = saver.values()["messages"]
    assert isinstance(shown[1].additional_kwargs["note"], Opaque)
    saver.save(parent=first, version=2, messages=[*shown, human("h2")])
    assert [row[2:] for row in saver.tree()] == [(name, "live") for name in ("h1", "a1", "h2")]
    saver.saver.serde = JsonPlusSerializer()
    assert saver.values()["messages"] == [*said, human("h2")]


def test_what_no_serializer_takes_is_an_error_as_with_langgraphs_own_savers(saver: Both) -> None:
    with pytest.raises(TypeError, match="not msgpack serializable"):
        saver.save(messages=[ToolMessage("seen", id="t1", tool_call_id="c", artifact=Handle())])
    assert saver.tree() == []


@pytest.mark.parametrize(
    "text",
    [
        "1ef4f797-8335-6428-8001-8a1503f9b875",
        "1EF4F797-8335-6428-8001-8A1503F9B875",
        "x" * 15,
        "",
        "é",
        "\ud800",
    ],
)
def test_ids_of_every_kind_come_back(text: str) -> None:
    assert unpack_id(pack_id(text)) == text


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows of messages that are read from here on, one for each read."""
    read: list[int] = []
    real = nodes.opened_messages

    def counted(conn: Any, answers: Any) -> Any:
        rows = real(conn, answers)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(nodes, "opened_messages", counted)
    return read


def test_what_was_read_or_written_before_is_not_read_again(
    saver: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[BaseMessage] = [HumanMessage(f"m{n}", id=str(n)) for n in range(20)]
    first = saver.save(messages=said)
    assert saver.values()["messages"] == said
    read = rows_read(monkeypatch)
    longer = [*said, HumanMessage("more", id="more")]
    saver.save(parent=first, version=2, messages=longer)
    assert saver.values()["messages"] == longer
    assert saver.values(first)["messages"] == said
    assert read == [0, 0]


def test_of_what_another_process_has_written_the_new_part_is_read(
    saver: Both, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[BaseMessage] = [HumanMessage(f"m{n}", id=str(n)) for n in range(20)]
    first = saver.save(messages=said)
    longer = [*said, HumanMessage("more", id="more")]
    with MemorySystem(url, owner=saver.saver.system.owner, embeddings=False) as other:
        Both(ThreadMemSaver(other), saver._loop).save(parent=first, version=2, messages=longer)
    read = rows_read(monkeypatch)
    assert saver.values()["messages"] == longer
    assert saver.values()["messages"] == longer
    assert read == [1, 0]


@pytest.mark.parametrize("tree_stays", [False, True])
def test_a_write_refers_to_no_message_of_a_conversation_that_another_process_has_emptied(
    saver: Both, url: str, tree_stays: bool
) -> None:
    saver.save(messages=[human("h1"), ai("a1")])
    with MemorySystem(url, owner=saver.saver.system.owner, embeddings=False) as other:
        if tree_stays:
            ThreadMemSaver(other).delete_thread("t")
        else:
            other.erase(conversation="t")
        other.conversation("t").append("Something else", "Another answer")
        at = Both(ThreadMemSaver(other), saver._loop).save(n=1)
    saver.put_writes(config_of("t", at), [("messages", [ai("a1")])], "task")
    found = saver.get_tuple(config_of("t", at))
    assert found is not None
    assert found.pending_writes == [("task", "messages", [ai("a1")])]
    assert saver.saver.system.verify().problems == ()


def test_a_write_refers_to_no_message_that_another_process_has_purged(saver: Both, url: str) -> None:
    at = saver.save(messages=[human("h1"), ai("a1")])
    with MemorySystem(url, owner=saver.saver.system.owner, embeddings=False) as other:
        other.conversation("t").forget("a1")
    saver.put_writes(config_of("t", at), [("messages", [ai("a1")])], "task")
    found = saver.get_tuple(config_of("t", at))
    assert found is not None
    assert found.pending_writes == [("task", "messages", [ai("a1")])]


def test_thousands_of_writes_of_a_task_come_back(saver: Both) -> None:
    at = saver.save(n=1)
    writes = [("n", n) for n in range(7500)]
    saver.put_writes(config_of("t", at), writes, "task")
    found = saver.get_tuple(config_of("t", at))
    assert found is not None
    assert found.pending_writes == [("task", *write) for write in writes]


def test_a_write_that_follows_the_checkpoint_with_its_message_refers_to_it(
    saver: Both, system: MemorySystem
) -> None:
    at = saver.save(messages=[human("h1"), ai("a1")])
    saver.put_writes(config_of("t", at), [("messages", [ai("a1")])], "task")
    found = saver.get_tuple(config_of("t", at))
    assert found is not None
    assert found.pending_writes == [("task", "messages", [ai("a1")])]
    of_owner = select(schema.write.c.data).join(schema.tree, schema.tree.c.id == schema.write.c.tree)
    stored = Statement(of_owner.where(schema.tree.c.owner == bindparam("owner")), "owner")
    [(data,)] = system.runtime.database.read(lambda conn: conn.all(stored, system.owner))
    assert b"a1" not in bytes(data)


def test_a_write_is_bound_though_another_process_has_changed_the_tree(
    saver: Both, url: str, system: MemorySystem
) -> None:
    said = [human("h1"), ai("a1"), human("h2"), ai("a2")]
    at = saver.save(messages=said)
    with MemorySystem(url, owner=saver.saver.system.owner, embeddings=False) as other:
        other.conversation("t").forget("a1")
    saver.put_writes(config_of("t", at), [("messages", [ai("a2")])], "task")
    found = saver.get_tuple(config_of("t", at))
    assert found is not None
    assert found.pending_writes == [("task", "messages", [ai("a2")])]
    of_owner = select(schema.write.c.data).join(schema.tree, schema.tree.c.id == schema.write.c.tree)
    stored = Statement(of_owner.where(schema.tree.c.owner == bindparam("owner")), "owner")
    [(data,)] = system.runtime.database.read(lambda conn: conn.all(stored, system.owner))
    assert b"a2" not in bytes(data)


def test_a_message_whose_parent_was_purged_is_redacted_where_it_is(saver: Both, system: MemorySystem) -> None:
    at = saver.save(messages=[human("h1"), human("h2")])
    system.conversation("t").forget("h1")
    saver.save(parent=at, version=2, messages=[human("h2", "redacted")])
    assert saver.tree() == [(3, None, "h2", "live")]
    assert system.verify().problems == ()


def test_a_message_that_was_read_before_is_new_each_time(saver: Both) -> None:
    saver.save(messages=[AIMessage("answer", id="a", response_metadata={"cost": [1]})])
    spoilt = saver.values()["messages"][0]
    spoilt.content = "changed"
    spoilt.additional_kwargs["changed"] = True
    spoilt.response_metadata["cost"].append(2)
    [again] = saver.values()["messages"]
    assert again == AIMessage("answer", id="a", response_metadata={"cost": [1]})


@pytest.mark.parametrize("purge", [False, True], ids=["forgotten", "purged"])
def test_what_another_process_took_out_is_not_shown_from_what_was_read_before(
    url: str, owner: str, saver: Both, purge: bool
) -> None:
    saver.save(messages=[HumanMessage("first", id="1"), AIMessage("second", id="2")])
    assert len(saver.values()["messages"]) == 2
    with MemorySystem(url, owner=owner, embeddings=False) as other:
        other.forget(0.5, purge=purge)
        expected = ThreadMemSaver(other).get_tuple(config_of("t"))
    assert expected is not None
    assert saver.values() == expected.checkpoint["channel_values"]
    assert len(saver.values()["messages"]) == (1 if purge else 2)


def test_a_result_put_behind_its_call_answers_it_in_the_tree(system: MemorySystem, saver: Both) -> None:
    calls = [{"name": "look", "args": {}, "id": name} for name in ("c1", "c2")]
    asked = [HumanMessage("q", id="h1"), AIMessage("", tool_calls=calls, id="a1")]
    left = [ToolMessage("one", tool_call_id="c1", id="t1"), HumanMessage("next", id="h2")]
    first = saver.save(messages=[*asked, *left])
    patched = [*asked, ToolMessage("cancelled", tool_call_id="c2", id="t2"), *left]
    second = saver.save(parent=first, version=2, messages=patched)
    assert saver.values(second)["messages"] == patched
    assert saver.values(first)["messages"] == [*asked, *left]
    threads = [[node.message.id for node in thread] for thread in system.conversation("t").threads()]
    assert threads == [["h1", "a1", "t2", "t1", "h2"]]
    assert system.conversation("t").verify().ok


def test_a_result_that_answers_no_call_before_it_is_an_aside(system: MemorySystem, saver: Both) -> None:
    asked = [HumanMessage("q", id="h1"), AIMessage("a", id="a1")]
    first = saver.save(messages=[*asked, HumanMessage("next", id="h2")])
    orphan = ToolMessage("?", tool_call_id="c1", id="t1")
    saver.save(parent=first, version=2, messages=[*asked, orphan, HumanMessage("next", id="h2")])
    assert [node.message.id for node in system.conversation("t").history if node.state is State.ASIDE] == [
        "t1"
    ]
