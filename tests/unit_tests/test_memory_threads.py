"""Threads, roots, the tip and the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

from langchain_threadmem import ChatMemory, ConversationNode, MemorySystem
from langchain_threadmem.errors import InputError, NodeNotFoundError

Wrap = Callable[[ChatMemory], Any]


def new_thread(tree: Any, message: Any) -> int | None:
    """Continue the answer whose number is in the message; otherwise start a thread."""
    return int(message.content.split()[0]) if message.content[0].isdigit() else None


@pytest.fixture
def memory(system: MemorySystem) -> ChatMemory:
    """Two roots, three threads: 1-2-3-4, 1-2-5-6 and 7-8."""
    memory = system.conversation("talk", node_selector=new_thread)
    for human, answer in [("Python", "p"), ("2 pandas", "q"), ("2 numpy", "r"), ("Tea", "t")]:
        memory.append(human, answer)
    return memory


def ids(nodes: list[ConversationNode]) -> list[int]:
    return [node.id for node in nodes]


def test_threads_are_the_paths_to_the_leaves_the_oldest_leaf_first(memory: ChatMemory, verbs: Wrap) -> None:
    assert [ids(thread) for thread in verbs(memory).threads()] == [[1, 2, 3, 4], [1, 2, 5, 6], [7, 8]]


def test_roots_are_where_threads_began(memory: ChatMemory, verbs: Wrap) -> None:
    assert ids(verbs(memory).roots()) == [1, 7]


def test_thread_leads_from_the_root_to_a_node(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert ids(verb.thread(6)) == [1, 2, 5, 6]
    assert ids(verb.thread(2)) == [1, 2]


@pytest.mark.parametrize("node_id", [9, 0, -1, "1", None])
def test_a_node_that_does_not_exist_is_named(memory: ChatMemory, verbs: Wrap, node_id: Any) -> None:
    verb = verbs(memory)
    for call in (verb.thread, verb.checkout):
        with pytest.raises(NodeNotFoundError, match=f"no node {node_id!r}.* numbered 1 to 8"):
            call(node_id)
    with pytest.raises(KeyError):
        verb.thread(node_id)


def test_the_tip_is_the_last_thing_said_and_messages_end_in_it(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert verb.tip().id == 8
    assert [message.content for message in verb.messages()] == ["Tea", "t"]


def test_checkout_makes_another_thread_the_active_one(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    assert verb.checkout(4).id == 4
    assert [message.content for message in verb.messages()] == ["Python", "p", "2 pandas", "q"]
    assert verb.extend([("ai", "more")])[0].parent_id == 4


def test_a_linear_memory_continues_what_was_checked_out(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("linear"))
    verb.append("a", "b")
    verb.append("c", "d")
    verb.checkout(2)
    assert verb.append("e", "f")[0].parent_id == 2
    assert [ids(thread) for thread in verb.threads()] == [[1, 2, 3, 4], [1, 2, 5, 6]]


def test_the_graph_holds_every_node_and_the_edges_between_them(memory: ChatMemory, verbs: Wrap) -> None:
    verb = verbs(memory)
    graph = verb.graph()
    assert sorted(graph.edges) == [(1, 2), (2, 3), (2, 5), (3, 4), (5, 6), (7, 8)]
    assert [graph.nodes[n]["node"] for n in sorted(graph)] == verb.history()
    assert nx.is_forest(graph)


def test_changing_the_graph_changes_nothing_that_is_stored(memory: ChatMemory) -> None:
    memory.graph.remove_node(1)
    assert len(memory.graph) == 8


def test_an_empty_memory_has_no_threads_no_roots_and_no_tip(system: MemorySystem, verbs: Wrap) -> None:
    verb = verbs(system.conversation("empty"))
    assert (verb.threads(), verb.roots(), verb.tip(), verb.messages(), verb.history()) == (
        [],
        [],
        None,
        [],
        [],
    )
    assert len(verb.graph()) == 0
    with pytest.raises(NodeNotFoundError, match="conversation is empty"):
        verb.thread(1)


def test_a_memory_says_how_many_nodes_it_holds_and_is_true_when_empty() -> None:
    memory = ChatMemory(embeddings=False)
    assert (len(memory), bool(memory)) == (0, True)
    memory.append("a", "b")
    assert len(memory) == 2


def test_one_conversation_does_not_see_another(system: MemorySystem, verbs: Wrap) -> None:
    system.conversation("one").append("mine", "yours")
    assert verbs(system.conversation("two")).history() == []
    assert system.conversations() == ["one"]


def test_another_owner_sees_nothing_on_any_path(
    memory: ChatMemory, url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=f"not {owner}", embeddings=False) as strange:
        verb = verbs(strange.conversation("talk", node_selector=new_thread))
        for read in (verb.messages, verb.history, verb.threads, verb.roots):
            assert read() == []
        assert verb.tip() is None
        assert verb.recall("pandas numpy tea") == verb.recall("pandas", scope="owner") == []
        assert verb.retrieve("pandas") == verb.retrieve("pandas", fallback="recent") == []
        assert "pandas" not in verb.to_mermaid() + verb.export("json") + verb.export("text")
        with pytest.raises(NodeNotFoundError):
            verb.thread(1)
        with pytest.raises(NodeNotFoundError):
            verb.edit(1, "stolen")
        verb.reset()
    assert len(memory.history) == 8


@pytest.mark.parametrize(
    "options",
    [{"context_depth": -1}, {"on_selection_failure": "never"}, {"conversation_id": ""}, {"node_selector": 7}],
)
def test_an_option_out_of_its_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ChatMemory(embeddings=False, **options)


def test_embeddings_belong_to_the_system(system: MemorySystem) -> None:
    with pytest.raises(InputError, match="MemorySystem"):
        ChatMemory(system=system, embeddings=False)


def test_a_tree_verifies_whole(memory: ChatMemory, verbs: Wrap) -> None:
    found = verbs(memory).verify()
    assert (found.ok, found.nodes, list(found.problems)) == (True, 8, [])
