"""Long conversations: what a choice reads and embeds does not grow with the conversation."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.common.workers import Gradual
from langchain_threadmem.engine.flow import run
from langchain_threadmem.selection.features.structure import NEWEST, compared_turns
from langchain_threadmem.selection.tree_view import TurnIndexes, read_threads, turns
from langchain_threadmem.selection.turn_ends import NEWEST_NODES, TurnIndex
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree.conversation import tree_of
from tests.conftest import WordEmbeddings

Wrap = Callable[[ChatMemory], Any]
CALL = {"name": "look", "args": {"at": "the wall"}, "id": "c1", "type": "tool_call"}


class Recording(WordEmbeddings):
    """Word embeddings that record the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return super().embed_documents(texts)


FORMS = (
    *(
        "How do I mend the {}?",
        "Who sells a {} nearby?",
        "My {} is broken",
        "A {} weighs how much",
        "Paint it, the {}",
    ),
    *(
        "Which {} lasts?",
        "Tell me of one {} more",
        "Is {} a word",
        "Old {} or new one?",
        "Compare every {} there is",
    ),
)


def said(place: int) -> tuple[str, str]:
    """A question and an answer that share no word with others."""
    return FORMS[place % len(FORMS)].format(f"m{place}"), f"n{place} o{place}"


def grown(system: MemorySystem, above: Sequence[int | None], name: str = "c") -> ChatMemory:
    """A conversation of turns, each below an earlier turn or a root."""
    ends: dict[int | None, int | None] = {None: None}
    parent: list[int | None] = []
    memory = system.conversation(name, node_selector=lambda tree, message: parent[-1])
    for place, before in enumerate(above):
        parent.append(ends[before])
        ends[place] = memory.append(*said(place))[-1].id
    return system.conversation(name, node_selector=SemanticNodeSelector())


def index_of(memory: ChatMemory) -> TurnIndex:
    conversation = memory._conversation
    index = conversation.runtime.get(TurnIndexes).values.get((conversation.tree,))
    assert index is not None
    return index


@pytest.fixture(scope="module")
def threads() -> list[int | None]:
    """Four hundred turns: threads of ten turns, each with a pause after five."""
    first = [None if place % 5 == 0 else place - 1 for place in range(200)]
    again = [place - 196 if place % 5 == 0 else place - 1 for place in range(200, 400)]
    return [*first, *again]


def test_the_first_choice_of_a_process_reads_the_newest_nodes(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        grown(system, [None] * 300).append("question 299 again", "answer")
        system.conversation("c").edit(601, "question 298 again")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        verbs(memory).append("another question", "answer")
        index = index_of(memory)
        assert (index.since > 300, index.last - index.since <= NEWEST_NODES + 2) == (True, True)
        verbs(memory).append("and another", "answer")
        assert index_of(memory) is index, "what was written is not read again"
        memory.place(index.last - 1, None)
        verbs(memory).append("a third", "answer")
        assert index_of(memory).since > 300


def test_a_turn_of_many_tool_calls_takes_no_place_of_other_turns(system: MemorySystem) -> None:
    memory = system.conversation("c", node_selector=lambda tree, message: None)
    calls = [AIMessage("", tool_calls=[CALL]), ToolMessage("it stands", tool_call_id="c1")] * 5
    for place in range(2 * NEWEST):
        memory.append(f"question {place}", *calls, f"answer {place}")
    semantic = system.conversation("c", node_selector=SemanticNodeSelector())
    semantic.append("another question", "answer")
    assert index_of(semantic).count() > NEWEST


def test_a_thread_that_was_not_read_is_continued_at_its_end(
    url: str, owner: str, verbs: Wrap, threads: list[int | None]
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = grown(system, threads)
        memory.extend(
            [(role, f"{text} {n}") for n in range(60) for role, text in (("human", "Add"), ("ai", "Sum"))]
        )
        system.flush()
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c", node_selector=SemanticNodeSelector())
        again = verbs(memory).append("Once more, about m27 n27 o27 and n26 o26", "answer")
        assert again[0].placement is not None
        assert 2 * 229 + 2 in dict(again[0].placement.chances), "the end of the thread"


def test_threads_that_are_read_are_compared_like_those_of_a_whole_index(system: MemorySystem) -> None:
    chance = random.Random(3)
    above = [chance.choice([n - 1, n - 1, chance.randrange(n), None]) if n else None for n in range(500)]
    memory = grown(system, above)
    runtime = memory._conversation.runtime
    tree = run(tree_of(memory._conversation), runtime)
    whole = run(turns(runtime, tree), runtime)
    for _ in range(20):
        runtime.get(TurnIndexes).values.clear()
        part = run(turns(runtime, tree, NEWEST + 1), runtime)
        assert part.since > 0
        near = [2 * chance.randrange(part.since // 2 - 1) + chance.choice([1, 2]) for _ in range(3)]
        run(read_threads(runtime, tree, part, near), runtime)
        expected = {end.id for end in compared_turns(whole.ends(most=NEWEST + 1), whole, near)}
        openings = {end.id for end in map(whole.opening, expected) if end is not None}
        found = compared_turns(part.ends(most=NEWEST + 1), part, near)
        ids = {end.id for end in found}
        assert {whole.end_from(number).id for number in near} <= ids
        assert {whole.leaf(whole.end_from(number).id) for number in near} <= ids
        assert expected - openings <= ids
        for end in found:
            assert end.previous is None or end.previous in [up.id for up in whole.upwards(end.id)]


def test_the_threads_of_several_messages_are_read_in_as_many_statements_as_one(
    system: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = grown(system, [None if place % 25 == 0 else place - 1 for place in range(300)])
    runtime = memory._conversation.runtime
    tree = run(tree_of(memory._conversation), runtime)
    statements: list[object] = []
    read = Conn.all

    def recorded(conn: Conn, statement: Statement, *values: Any) -> list[tuple[Any, ...]]:
        statements.append(statement)
        return read(conn, statement, *values)

    def number(near: list[int]) -> int:
        runtime.get(TurnIndexes).values.clear()
        part = run(turns(runtime, tree, NEWEST + 1), runtime)
        statements.clear()
        run(read_threads(runtime, tree, part, near), runtime)
        return len(statements)

    monkeypatch.setattr(Conn, "all", recorded)
    assert number([21, 71, 122, 171, 222, 271]) == number([121]) > 0


def test_a_message_is_embedded_once_and_its_vector_is_stored_with_the_next(
    url: str, owner: str, verbs: Wrap
) -> None:
    embeddings = Recording()
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        memory = verbs(system.conversation("c", node_selector=SemanticNodeSelector()))
        for place in range(5):
            memory.append(*said(place))
    assert len(embeddings.texts) == len(set(embeddings.texts)) == 9
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        memory = verbs(system.conversation("c", node_selector=SemanticNodeSelector()))
        memory.append(*said(5))
        assert embeddings.texts[9:] == [*said(4), said(5)[0]]
        assert system.flush() == 2, "the newest message and its answer"
        assert system.verify().ok


def test_vectors_of_calls_and_of_other_writers_are_stored_too(url: str, owner: str, verbs: Wrap) -> None:
    embeddings = Recording()
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        memory = verbs(system.conversation("c", node_selector=SemanticNodeSelector()))
        memory.append(
            "question 0", AIMessage("", tool_calls=[CALL]), ToolMessage("r", tool_call_id="c1"), "done"
        )
        memory.append("question 1", "answer 1")
        with MemorySystem(url, owner=owner, embeddings=embeddings) as other:
            other.conversation("c").append("question 2", "answer 2")
            other.conversation("c").recall("question 2")
        memory.append("question 3", "answer 3")
        memory.append("question 4", "answer 4")
        system.flush()
        assert system.verify().ok
        assert {hit.node.message.text for hit in memory.recall("question 2", n_results=1)} == {"question 2"}


def test_vectors_of_a_conversation_that_was_emptied_meanwhile_are_not_stored(
    system: MemorySystem, verbs: Wrap
) -> None:
    memory = system.conversation("c", node_selector=SemanticNodeSelector())
    verbs(memory).append("question 0", "answer 0")
    verbs(memory).append("question 1", "answer 1")
    memory.reset()
    nodes = verbs(memory).append("question 2", "answer 2")
    verbs(memory).append("question 3", "answer 3")
    assert nodes[0].id == 1
    system.flush()
    assert system.verify().ok


def test_one_background_thread_serves_one_job_after_the_other() -> None:
    gradual = Gradual("working")
    seen: list[int] = []

    def piece() -> bool:
        seen.append(threading.get_ident())
        return False

    for _ in range(3):
        gradual.start("job", piece)
        while gradual.busy("job"):
            pass
    gradual.close()
    assert len(set(seen)) == 1
