"""`threadmem import-checkpoints` of a thread of LangGraph.js, which waits at an interrupt.

The rows are those of @langchain/langgraph 1.7.3 with langgraph-checkpoint-sqlite 1.0.4 and -postgres 1.0.5.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt

from langchain_threadmem import ThreadMemSaver
from langchain_threadmem.apps.transfer.import_checkpoints import import_checkpoints

CONFIG: Any = {"configurable": {"thread_id": "t"}}
ID = "1f1eb43d-6418-63b0-8001-3854090bb04e"
TASK = "52f272f6-2939-52aa-9170-739fb66ce576"


def message(name: str, **fields: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", name], "kwargs": fields}


def constructed(name: str, items: list[Any], method: str | None = None) -> dict[str, Any]:
    return {"lc": 2, "type": "constructor", "id": [name], "method": method, "args": [items], "kwargs": {}}


UNDEFINED = {"lc": 2, "type": "undefined"}
CALL = {"name": "book", "args": {"n": 1, "x": UNDEFINED}, "id": "c1", "type": "tool_call"}
WRITTEN = {
    "messages": [
        message("HumanMessage", content="hello", id="h1", additional_kwargs={}, response_metadata={}),
        message("AIMessage", content="", id="a1", tool_calls=[CALL], invalid_tool_calls=[]),
    ],
    "seen": constructed("Set", ["x"]),
    "shown": constructed("Set", [{"a": 1}]),
    "names": constructed("Map", [["a", {"b": UNDEFINED, "c": 1}]]),
    "bytes": constructed("Uint8Array", [1, 2], "from"),
    "nothing": UNDEFINED,
    "branch:to:b": None,
}
INITIAL = {"count": 7, "__pregel_tasks": []}
"""Values of channels that were never written: they have no version."""
CHECKPOINT = {
    "v": 4,
    "id": ID,
    "ts": "2026-11-28T15:53:21.515Z",
    "channel_versions": {"__start__": 2, **dict.fromkeys(WRITTEN, 3)},
    "versions_seen": {"__input__": {}, "__start__": {"__start__": 1}, "a": {"branch:to:a": 2}},
}
METADATA = {"source": "loop", "step": 1, "parents": {}}
WRITES: list[tuple[str, int, str, Any]] = [
    (TASK, -3, "__interrupt__", [{"id": "c8d9c94c", "value": {"q": "sure?"}}]),
    (TASK, 0, "__pregel_tasks", {"node": "c", "args": {"i": 1}}),
]


def coded(value: Any) -> bytes:
    return json.dumps(value).encode()


def sqlite_source(path: Path) -> str:
    conn = sqlite3.connect(path)
    key = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT"
    conn.execute(
        f"CREATE TABLE checkpoints ({key}, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, "
        "metadata BLOB)"
    )
    conn.execute(
        f"CREATE TABLE writes ({key}, task_id TEXT, idx INTEGER, channel TEXT, type TEXT, value BLOB)"
    )
    checkpoint = {**CHECKPOINT, "channel_values": {**WRITTEN, **INITIAL}}
    conn.execute(
        "INSERT INTO checkpoints VALUES ('t', '', ?, NULL, 'json', ?, ?)",
        (ID, coded(checkpoint), coded(METADATA)),
    )
    conn.executemany(
        "INSERT INTO writes VALUES ('t', '', ?, ?, ?, ?, 'json', ?)",
        [(ID, task, idx, channel, coded(value)) for task, idx, channel, value in WRITES],
    )
    conn.commit()
    conn.close()
    return str(path)


def fill_postgres(conn: Any) -> None:
    key = "thread_id text, checkpoint_ns text"
    conn.execute(
        f"CREATE TABLE checkpoints ({key}, checkpoint_id text, parent_checkpoint_id text, type text, "
        "checkpoint jsonb, metadata jsonb)"
    )
    conn.execute(f"CREATE TABLE checkpoint_blobs ({key}, channel text, version text, type text, blob bytea)")
    conn.execute(
        f"CREATE TABLE checkpoint_writes ({key}, checkpoint_id text, task_id text, idx integer, "
        "channel text, type text, blob bytea)"
    )
    conn.execute(
        "INSERT INTO checkpoints VALUES ('t', '', %s, NULL, NULL, %s, %s)",
        (ID, json.dumps(CHECKPOINT), json.dumps(METADATA)),
    )
    for channel, value in WRITTEN.items():
        conn.execute(
            "INSERT INTO checkpoint_blobs VALUES ('t', '', %s, '3', 'json', %s)", (channel, coded(value))
        )
    for task, idx, channel, value in WRITES:
        conn.execute(
            "INSERT INTO checkpoint_writes VALUES ('t', '', %s, %s, %s, %s, 'json', %s)",
            (ID, task, idx, channel, coded(value)),
        )


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_source(tmp_path / "javascript.sqlite")
        return
    server = request.getfixturevalue("server_url")
    schema = f"source_{uuid4().hex}"
    url = f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE SCHEMA {schema}")
        with psycopg.connect(url, autocommit=True) as inside:
            fill_postgres(inside)
        yield url
        conn.execute(f"DROP SCHEMA {schema} CASCADE")


def test_values_of_javascript_become_those_of_python(source: str, url: str, owner: str) -> None:
    done = import_checkpoints(source, url, owner=owner)
    assert (done.checkpoints, done.copied, done.writes, done.differences) == (1, 1, 2, ())
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        saved = saver.get_tuple(CONFIG)
    assert saved is not None
    call: Any = {"name": "book", "args": {"n": 1}, "id": "c1", "type": "tool_call"}
    values = saved.checkpoint["channel_values"]
    assert values.pop("nothing", None) is None
    assert values == {
        "messages": [HumanMessage("hello", id="h1"), AIMessage("", id="a1", tool_calls=[call])],
        "seen": {"x"},
        "shown": [{"a": 1}],
        "names": {"a": {"c": 1}},
        "bytes": b"\x01\x02",
        "branch:to:b": None,
    }
    assert [write[1:] for write in saved.pending_writes or ()] == [
        ("__interrupt__", [Interrupt({"q": "sure?"}, id="c8d9c94c")]),
        ("__pregel_tasks", Send("c", {"i": 1})),
    ]


def test_a_thread_of_javascript_is_resumed_and_goes_on(source: str, url: str, owner: str) -> None:
    def ask(state: MessagesState) -> Any:
        return {"messages": [ToolMessage(f"booked: {interrupt({'q': 'sure?'})}", tool_call_id="c1")]}

    builder: Any = StateGraph(MessagesState).add_node("a", lambda state: {}).add_node("b", ask)
    builder.add_edge(START, "a").add_edge("a", "b")
    import_checkpoints(source, url, owner=owner)
    with ThreadMemSaver.from_conn_string(url, owner=owner) as saver:
        graph = builder.compile(checkpointer=saver)
        assert graph.get_state(CONFIG).next == ("b",)
        resumed: Any = graph.invoke(Command(resume="yes"), CONFIG)
        assert [one.content for one in resumed["messages"]] == ["hello", "", "booked: yes"]
        later: Any = graph.invoke({"messages": [HumanMessage("more")]}, CONFIG)
        assert later["__interrupt__"][0].value == {"q": "sure?"}
        shown = [one.text for one in saver.system.conversation("t").messages]
    assert shown == ["hello", "", "booked: yes", "more"]
