"""The saver compared with LangGraph's in-memory saver in random walks.

A walk appends, forks from an old checkpoint, replays, trims, edits, empties and changes messages in place.
Then all checkpoints of both savers are compared: as written, after the database was reopened, and in a copy
of the thread. The tree stays valid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import StreamCipher
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langchain_threadmem import MemorySystem, ThreadMemSaver

KINDS = ["append", "append", "long", "fork", "replay", "trim", "drop", "edit", "again", "clear", "mutate"]
KINDS += ["summary", "reorder", "typed", "write", "notes", "nameless", "twice"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1000)), max_size=25)


class Walk:
    """The same steps through several savers."""

    def __init__(self, *savers: BaseCheckpointSaver[Any]) -> None:
        self.savers = savers
        self.parent: str | None = None
        self.values: dict[str, Any] = {}
        self.versions: dict[str, int] = {}
        self.saved: list[tuple[str, dict[str, Any], dict[str, int]]] = []
        self.clock = 0

    @property
    def messages(self) -> list[BaseMessage]:
        return list(self.values.get("messages", ()))

    def id(self) -> str:
        self.clock += 1
        return f"m{self.clock}"

    def said(self, number: int) -> BaseMessage:
        if number % 2:
            return AIMessage(f"answer {number % 7}", id=self.id(), additional_kwargs={"n": [number]})
        return HumanMessage(f"question {number % 7}", id=self.id())

    def config(self, checkpoint: str | None) -> dict[str, Any]:
        return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint}}

    def put(self, **changed: Any) -> None:
        self.clock += 1
        new = dict.fromkeys(changed, self.clock)
        self.versions = self.versions | new
        self.values = self.values | changed
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6()),
            "channel_versions": dict(self.versions),
            "channel_values": dict(self.values),
        }
        for saver in self.savers:
            saver.put(self.config(self.parent), checkpoint, {"step": self.clock}, new)
        self.parent = checkpoint["id"]
        self.saved.append((self.parent, self.values, self.versions))

    def put_writes(self, value: Any) -> None:
        if self.parent is not None:
            for saver in self.savers:
                saver.put_writes(
                    self.config(self.parent), [("messages", value)], f"task{self.clock % 3}", "path"
                )

    def load(self, number: int) -> None:
        """Continue from a stored checkpoint."""
        if self.saved:
            self.parent = self.saved[number % len(self.saved)][0]
            found = self.savers[-1].get_tuple(self.config(self.parent))
            assert found is not None
            self.values = dict(found.checkpoint["channel_values"])
            self.versions = dict(found.checkpoint["channel_versions"])

    def step(self, kind: str, number: int) -> None:
        messages = self.messages
        at = number % len(messages) if messages else 0
        match kind:
            case "append":
                self.put(messages=[*messages, self.said(number)])
            case "long":
                self.put(messages=[*messages, *(self.said(number + n) for n in range(70))])
            case "fork":
                self.load(number)
            case "replay":
                self.load(number)
                self.put(messages=self.messages)
            case "trim" if messages:
                self.put(messages=messages[at:])
            case "drop" if messages:
                self.put(messages=messages[:at] + messages[at + 1 :])
            case "edit" if messages:
                messages[at] = HumanMessage(f"edited {number}", id=messages[at].id)
                self.put(messages=messages)
            case "again" if self.saved:
                kept = self.messages
                self.load(number)
                self.put(messages=kept or [self.said(number)])
            case "clear":
                self.put(messages=[])
            case "mutate" if messages:
                messages[at].content = f"changed in place {number}"
                messages[at].additional_kwargs["changed"] = number
                self.put(messages=[*messages, self.said(number)])
            case "summary" if messages:
                self.put(messages=[SystemMessage(f"summary {number}", id=self.id()), *messages[at:]])
            case "reorder":
                self.put(messages=[*messages[at:], *messages[:at]])
            case "typed":
                self.put(
                    messages=[
                        *messages,
                        HumanMessage("typed", id=self.id(), additional_kwargs={"b": b"x", "d": {1: number}}),
                    ]
                )
            case "write":
                self.put_writes([RemoveMessage(REMOVE_ALL_MESSAGES), *messages, self.said(number)])
                self.put_writes({"messages": messages[at:], "n": number})
            case "notes":
                self.put(notes=[*self.values.get("notes", ()), *messages[:at]])
            case "nameless":
                self.put(notes=[*messages, HumanMessage("no id")])
            case "twice" if messages:
                self.put(messages=[*messages, messages[at]])
            case _:
                pass


def everything(saver: BaseCheckpointSaver[Any], thread: str = "t") -> list[Any]:
    """The contents of all checkpoints of a thread."""
    return [
        (
            found.checkpoint,
            found.metadata,
            found.parent_config and found.parent_config["configurable"]["checkpoint_id"],
            found.pending_writes,
        )
        for found in saver.list({"configurable": {"thread_id": thread}})
    ]


@pytest.mark.parametrize("cipher", [None, StreamCipher()], ids=["plain", "encrypted"])
@given(steps=STEPS)
@settings(max_examples=60)
def test_every_state_of_a_random_walk_is_that_of_the_in_memory_saver(
    cipher: StreamCipher | None, steps: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'memory.db'}?synchronous=OFF"
        theirs = InMemorySaver()
        with MemorySystem(url, embeddings=False, cipher=cipher) as system:
            walk = Walk(theirs, ThreadMemSaver(system))
            for kind, number in steps:
                walk.step(kind, number)
            expected = everything(theirs)
            assert everything(walk.savers[1]) == expected
            assert system.verify().problems == ()
        with MemorySystem(url, embeddings=False, cipher=cipher) as system:
            ours = ThreadMemSaver(system)
            assert everything(ours) == expected
            ours.copy_thread("t", "copy")
            assert everything(ours, "copy") == expected
            ours.delete_thread("t")
            assert everything(ours, "copy") == expected
            assert everything(ours) == []
            assert system.verify().problems == ()


class Forgetful:
    """A saver without its caches."""

    def __init__(self, system: MemorySystem) -> None:
        self.system = system

    def __getattr__(self, name: str) -> Any:
        return getattr(ThreadMemSaver(self.system), name)


CHANGES = ["append", "edit", "edit", "drop", "fork", "replay", "trim", "mutate", "summary", "reorder"]


@given(steps=st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 1000)), max_size=8))
@settings(max_examples=40)
def test_what_is_remembered_of_a_list_changes_nothing_but_the_work(steps: Sequence[tuple[str, int]]) -> None:
    with MemorySystem(embeddings=False) as one, MemorySystem(embeddings=False) as other:
        walk = Walk(ThreadMemSaver(one), Forgetful(other))  # type: ignore[arg-type]
        for kind, number in [("long", 0), ("long", 1), *steps]:
            walk.step(kind, number)
            assert stored(one) == stored(other)


def stored(system: MemorySystem) -> list[Any]:
    conversation = system.conversation("t")
    history = [
        (node.id, node.parent_id, node.state, node.superseded_by, node.message)
        for node in conversation.history
    ]
    return [*history, conversation.tip and conversation.tip.id]
