"""Message parts that JSON cannot represent: stored as opaque data, read by the rules of the serializer."""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ormsgpack
import pytest
from conftest import StreamCipher
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from own_classes import DOCUMENT, ODD, OWN, Handle, Note, Point
from pydantic import BaseModel

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import UnsupportedMessageError
from langchain_threadmem.messages.codec import decode, encode
from langchain_threadmem.messages.parts import Parts
from langchain_threadmem.messages.typed_json import UNTRUSTED, Opaque
from langchain_threadmem.storage.statements import Statement

Wrap = Callable[[Any], Any]
BODIES = "SELECT n.body FROM threadmem_node n JOIN threadmem_tree t ON t.id = n.tree"
STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    return system.conversation("talk")


@pytest.fixture
def alone() -> Iterator[MemorySystem]:
    with MemorySystem(embeddings=False) as system:
        yield system


def turn(part: Any) -> list[Any]:
    """A turn with an opaque part in every field that accepts one."""
    call = {"name": "look", "args": {"at": part}, "id": "c", "type": "tool_call"}
    return [
        HumanMessage([{"type": "text", "text": "look", "part": part}], id="h"),
        AIMessage("", id="a", tool_calls=[call], response_metadata={"part": part}),
        ToolMessage("seen", id="t", tool_call_id="c", artifact=part, additional_kwargs={"part": part}),
    ]


def artifact_of(memory: ChatMemory) -> Any:
    message = memory.messages[-1]
    assert isinstance(message, ToolMessage)
    return message.artifact


@pytest.mark.parametrize("part", ODD)
def test_a_part_comes_back_with_its_message(memory: ChatMemory, verbs: Wrap, part: Any) -> None:
    verb, said = verbs(memory), turn(part)
    verb.append(*said)
    assert verb.messages() == said
    assert type(artifact_of(memory)) is type(part)


def test_an_array_comes_back(memory: ChatMemory) -> None:
    memory.append("look", *turn(np.arange(6).reshape(2, 3))[1:])
    assert artifact_of(memory).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_score_of_numpy_comes_back_from_a_checkpoint_as_a_number(system: MemorySystem) -> None:
    """LangGraph's serializer writes arrays of NumPy, but no numbers of it."""
    found = ToolMessage("seen", tool_call_id="c", artifact={"score": np.float32(0.5), "rank": np.int64(3)})
    builder = StateGraph(MessagesState).add_node("look", lambda state: {"messages": [found]})
    graph = builder.add_edge(START, "look").compile(checkpointer=ThreadMemSaver(system))
    config: Any = {"configurable": {"thread_id": "talk"}}
    graph.invoke({"messages": [("user", "look")]}, config)
    assert graph.get_state(config).values["messages"][-1].artifact == {"score": 0.5, "rank": 3}


def test_every_view_of_a_message_shows_its_part(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    nodes = verb.append(*turn(Note()))
    shown = [nodes[-1], verb.thread(3)[-1], verb.history()[-1], verb.tip(), verb.checkout(3)]
    assert [node.message.artifact for node in shown] == [Note()] * 5
    assert verb.recall("look", context_depth=0)[0].node.message.content[0]["part"] == Note()


def test_only_the_part_is_opaque() -> None:
    message = AIMessage("Hello", additional_kwargs={"plain": [1, "b"], "odd": Note()})
    data = json.loads(encode(message, Parts().write))["data"]
    assert data["content"] == "Hello"
    assert data["additional_kwargs"]["plain"] == [1, "b"]
    assert data["additional_kwargs"]["odd"]["v"][:2] == ["own_classes.Note", "msgpack"]


def test_without_a_serializer_a_part_is_shown_as_data_and_written_again_as_it_was() -> None:
    body = encode(turn(Note())[2], Parts().write)
    [message] = decode([("t", body)])
    assert isinstance(message, ToolMessage)
    assert isinstance(message.artifact, Opaque)
    assert message.artifact.name == "own_classes.Note"
    assert encode(message) == body


@pytest.mark.parametrize("part", ODD)
def test_what_was_read_is_the_same_message_when_it_is_written_again(memory: ChatMemory, part: Any) -> None:
    memory.append(*turn(part))
    memory.append(*memory.messages)
    assert len(memory.history) == 3


def test_what_is_a_dictionary_or_a_list_is_stored_as_one(memory: ChatMemory) -> None:
    memory.append(*turn(OrderedDict(a=1)))
    assert (artifact_of(memory), type(artifact_of(memory))) == ({"a": 1}, dict)


def test_each_class_is_told_of_once(alone: MemorySystem, caplog: pytest.LogCaptureFixture) -> None:
    memory = alone.conversation("talk")

    class Told(BaseModel):
        pass

    with caplog.at_level(logging.WARNING, "langchain_threadmem"):
        memory.append("one", AIMessage("x", additional_kwargs={"a": Told(), "b": Told()}))
        memory.append("two", AIMessage("x", additional_kwargs={"a": Told()}))
    assert [Told.__qualname__ in record.getMessage() for record in caplog.records] == [True]


def test_what_no_serializer_takes_is_refused(memory: ChatMemory, verbs: Wrap) -> None:
    with pytest.raises(UnsupportedMessageError, match=r"<Handle 7>.*'artifact'"):
        verbs(memory).append(
            "look", *turn("plain")[1:2], ToolMessage("x", tool_call_id="c", artifact=Handle())
        )
    assert memory.history == []


# --- readers that may not read it


@pytest.mark.parametrize("part", OWN)
def test_a_strict_reader_shows_the_part_as_data_and_loses_nothing(
    system: MemorySystem, verbs: Wrap, part: Any
) -> None:
    said = turn(part)
    system.conversation("talk").append(*said)
    ThreadMemSaver(system, serde=STRICT)
    shown = verbs(system.conversation("talk")).messages()
    assert [message.id for message in shown] == ["h", "a", "t"]
    assert isinstance(shown[2].artifact, Opaque)
    system.conversation("talk").append(*shown)
    system.resources.parts = Parts()
    assert system.conversation("talk").messages == said
    assert len(system.conversation("talk").history) == 3


def test_a_reader_with_an_allow_list_gives_back_what_is_on_it(system: MemorySystem) -> None:
    system.conversation("talk").append(*turn([Note(), Point()]))
    ThreadMemSaver(system, serde=STRICT).with_allowlist([("own_classes", "Note")])
    note, point = artifact_of(system.conversation("talk"))
    assert (note, type(point)) == (Note(), Opaque)


def test_langgraphs_strict_mode_holds_without_a_saver(
    alone: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_msgpack, "STRICT_MSGPACK_ENABLED", True)
    alone.conversation("talk").append(*turn([Note(), DOCUMENT]))
    note, document = artifact_of(alone.conversation("talk"))
    assert (type(note), document) == (Opaque, DOCUMENT)


def test_a_class_that_is_gone_is_shown_as_data(alone: MemorySystem) -> None:
    class Gone(BaseModel):
        pass

    alone.conversation("talk").append(*turn(Gone()))
    assert isinstance(artifact_of(alone.conversation("talk")), Opaque)


def forged(name: str, kind: str, data: bytes) -> str:
    part = {"#": "opaque", "v": [name, kind, base64.b64encode(data).decode()]}
    return json.dumps(
        {"type": "human", "typed": True, "data": {"content": "x", "additional_kwargs": {"part": part}}}
    )


CALL = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("antigravity", "fly", "argument"))))
CONSTRUCTOR = json.dumps(
    {"lc": 2, "type": "constructor", "id": ["antigravity", "fly"], "args": ["x"]}
).encode()


@pytest.mark.parametrize(
    ("parts", "kind", "data"),
    [
        (Parts(STRICT), "msgpack", CALL),
        (Parts(), UNTRUSTED + "msgpack", CALL),
        (Parts(), "json", CONSTRUCTOR),
        (Parts(), "pickle", b"cantigravity\nfly\n(S'x'\ntR."),
        (Parts(), "repr", b"x"),
        (Parts(), "msgpack", b"\xc1"),
    ],
)
def test_a_forged_part_stays_data_and_imports_nothing(parts: Parts, kind: str, data: bytes) -> None:
    [message] = decode([("h", forged("antigravity.fly", kind, data))], other=parts.read)
    assert isinstance(message.additional_kwargs["part"], Opaque)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("written", [[], ["a", "b"], ["a", "b", 3], "abc!", {"a": 1}])
def test_a_part_that_nobody_wrote_is_refused(written: Any) -> None:
    body = json.dumps({"type": "human", "typed": True, "data": {"content": {"#": "opaque", "v": written}}})
    with pytest.raises(ValueError, match="cannot be read"):
        decode([("h", body)])


def test_a_forged_row_imports_nothing_through_a_strict_system(alone: MemorySystem) -> None:
    ThreadMemSaver(alone, serde=STRICT)
    memory = alone.conversation("talk")
    memory.append("Hello", "Hi!")
    body = forged("antigravity.fly", "msgpack", CALL)
    update = Statement.of(sqlite="UPDATE threadmem_node SET body = ?", postgresql="")
    alone.runtime.database.write(lambda conn: conn.run(update, body))
    assert [message.content for message in memory.messages] == ["x", "x"]
    assert memory.recall("x") is not None
    assert "antigravity" not in sys.modules


# --- files and ciphers


def test_a_file_brings_parts_of_safe_classes_and_shows_others_as_data(
    alone: MemorySystem, tmp_path: Path
) -> None:
    alone.conversation("talk").append(*turn([DOCUMENT, Note()]))
    alone.conversation("talk").save(tmp_path / "talk.json")
    loaded = ChatMemory.load(tmp_path / "talk.json")
    document, note = artifact_of(loaded)
    assert (document, type(note), note.name) == (DOCUMENT, Opaque, "own_classes.Note")
    loaded.save(tmp_path / "again.json")
    assert artifact_of(ChatMemory.load(tmp_path / "again.json")) == [document, note]


def test_an_encrypted_memory_encrypts_parts_too(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        memory = system.conversation("talk")
        memory.append(*turn(Note(text="secret")))
        assert artifact_of(memory) == Note(text="secret")
        bodies = Statement.of(
            sqlite=f"{BODIES} WHERE owner = ?",
            postgresql=f"{BODIES} WHERE owner = %s",
        )
        rows = system.runtime.database.read(lambda conn: conn.all(bodies, owner))
        assert not any("Note" in row[0] for row in rows)
