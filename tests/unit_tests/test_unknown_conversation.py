"""Conversations without messages: their verbs read nothing, and only a message creates a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.chat_memory import ConversationOptions
from langchain_threadmem.engine.flow import Flow, Sql, run
from langchain_threadmem.errors import NodeNotFoundError
from langchain_threadmem.tree import trees

READS: dict[str, tuple[object, ...]] = {
    "messages": (),
    "history": (),
    "tip": (),
    "threads": (),
    "roots": (),
    "list_threads": (),
    "doubtful": (),
    "recall": ("visa",),
    "retrieve": ("visa",),
    "sort": (),
    "unsort": (),
    "flush": (),
    "to_mermaid": (),
    "verify": (),
}
NAMING: dict[str, tuple[object, ...]] = {
    "thread": (5,),
    "thread_of": (5,),
    "siblings": (5,),
    "versions": (5,),
    "fork_point": (5,),
    "switch": (5,),
    "checkout": (5,),
    "edit": (5, "new text"),
    "regenerate": (5, "new answer"),
    "place": (5, None),
    "rename_thread": (5, "Visa"),
}


SELECTORS: dict[str, Callable[[], ConversationOptions]] = {
    "linear": lambda: {},
    "semantic": lambda: {"node_selector": SemanticNodeSelector()},
}


def _tree(memory: ChatMemory) -> Flow[int | None]:
    owner, name = memory._runtime.owner, memory.conversation_id
    return (yield from Sql(lambda conn: trees.find(conn, owner, name)))


def exists(memory: ChatMemory) -> bool:
    """Whether the database has a row for the conversation."""
    return run(_tree(memory), memory._runtime) is not None


@pytest.fixture(params=SELECTORS)
def unknown(request: pytest.FixtureRequest, system: MemorySystem) -> ChatMemory:
    return system.conversation("travel", **SELECTORS[request.param]())


@pytest.mark.parametrize("verb", READS)
def test_reading_an_unknown_conversation_does_not_create_it(
    unknown: ChatMemory, verbs: Callable[[ChatMemory], Any], verb: str
) -> None:
    getattr(verbs(unknown), verb)(*READS[verb])
    assert not exists(unknown)


@pytest.mark.parametrize("format", ["json", "graphml", "svg", "html", "markdown", "mermaid"])
def test_exporting_an_unknown_conversation_does_not_create_it(unknown: ChatMemory, format: str) -> None:
    unknown.export(format)
    assert not exists(unknown)


@pytest.mark.parametrize("verb", NAMING)
def test_a_node_of_an_unknown_conversation_does_not_exist(
    unknown: ChatMemory, verbs: Callable[[ChatMemory], Any], verb: str
) -> None:
    with pytest.raises(NodeNotFoundError, match="5"):
        getattr(verbs(unknown), verb)(*NAMING[verb])
    assert not exists(unknown)


def test_the_first_message_creates_a_conversation_that_was_read_before(
    unknown: ChatMemory, verbs: Callable[[ChatMemory], Any]
) -> None:
    verb = verbs(unknown)
    assert verb.messages() == []
    assert not verb.recall("visa")
    verb.append("The visa for Japan", "takes two weeks")
    assert [message.content for message in verb.messages()] == ["The visa for Japan", "takes two weeks"]
    assert {1} <= {hit.node.id for hit in verb.recall("visa")}
    assert exists(unknown)


def test_a_read_after_the_erasure_of_a_conversation_does_not_create_it(
    unknown: ChatMemory, system: MemorySystem
) -> None:
    unknown.append("The visa for Japan", "takes two weeks")
    system.erase(conversation="travel")
    assert unknown.messages == []
    assert not exists(unknown)


def test_a_read_only_memory_searches_the_other_conversations(
    url: str, owner: str, verbs: Callable[[ChatMemory], Any]
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.conversation("travel").append("The visa", "takes two weeks")
        system.conversation("travel").recall("visa")
    with MemorySystem(url, owner=owner, embeddings=False, read_only=True) as system:
        unknown = verbs(system.conversation("unknown"))
        assert len(unknown.recall("visa", scope="owner", max_tokens=100)) == 1
