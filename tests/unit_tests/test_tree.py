"""The tree view: paths, roots, leaves, threads, order, and refused input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Set

import networkx  # type: ignore[import-untyped, unused-ignore]  # its stubs are optional
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_threadmem.errors import InputError, InvalidGraphStateError, NodeNotFoundError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.graph import (
    leaves,
    living,
    orderly,
    path,
    threads,
    to_graph,
    traverse,
    validate,
)
from langchain_threadmem.tree.node import ConversationNode

DEEP = 5_000
"""More messages than Python would let a recursive function descend."""


def forest(
    parents: dict[int, int | None], superseded: Set[int] = frozenset(), asides: Set[int] = frozenset()
) -> dict[int, ConversationNode]:
    def state(node_id: int) -> State:
        return State.SUPERSEDED if node_id in superseded else State.ASIDE if node_id in asides else State.LIVE

    return {
        node_id: ConversationNode(node_id, HumanMessage(f"m{node_id}"), parent, state=state(node_id))
        for node_id, parent in parents.items()
    }


def parents_of(nodes: dict[int, ConversationNode]) -> dict[int, int | None]:
    return {node_id: node.parent_id for node_id, node in nodes.items()}


def ids(nodes: list[ConversationNode]) -> list[int]:
    return [node.id for node in nodes]


def roots(nodes: list[ConversationNode]) -> list[ConversationNode]:
    return [node for node in living(nodes) if node.parent_id is None]


def nodes_of(parents: dict[int, int | None], **states: Set[int]) -> list[ConversationNode]:
    return list(forest(parents, **states).values())


CHAIN = {1: None, 2: 1, 3: 2, 4: 3}
FORK = {1: None, 2: 1, 3: 2, 4: 2, 5: None}


# --- graph -------------------------------------------------------------------------------------


def test_graph_has_an_edge_from_each_parent_to_its_child() -> None:
    assert sorted(to_graph(nodes_of(FORK)).edges) == [(1, 2), (2, 3), (2, 4)]


def test_graph_carries_every_node_as_data() -> None:
    nodes = forest(FORK, superseded={3}, asides={5})
    assert dict(to_graph(list(nodes.values())).nodes(data="node")) == nodes


def test_graph_of_nothing_is_empty() -> None:
    assert len(to_graph([])) == 0


def test_graph_of_nodes_without_their_parents_is_refused() -> None:
    with pytest.raises(InvalidGraphStateError, match="node 2 has the parent 1, which is missing"):
        to_graph(nodes_of({2: 1}))


def test_networkx_is_not_imported_before_a_graph_is_asked_for() -> None:
    code = "import sys, langchain_threadmem.tree.graph; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- paths -------------------------------------------------------------------------------------


def test_path_starts_with_the_root() -> None:
    assert ids(path(forest(FORK), 4)) == [1, 2, 4]


def test_path_of_an_unknown_node_names_it() -> None:
    with pytest.raises(NodeNotFoundError, match="no node 9"):
        path(forest(CHAIN), 9)


def test_path_names_an_ancestor_that_is_missing() -> None:
    with pytest.raises(InvalidGraphStateError, match="node 3 has the parent 2, which is missing"):
        path(forest({1: None, 3: 2}), 3)


def test_path_in_a_circle_is_refused() -> None:
    with pytest.raises(InvalidGraphStateError, match="in a circle"):
        path(forest({1: 2, 2: 1}), 1)


def test_traverse_counts_the_start_and_gives_the_oldest_first() -> None:
    assert ids(traverse(forest(CHAIN), 4, depth=3)) == [2, 3, 4]


def test_traverse_stops_at_the_root() -> None:
    assert ids(traverse(forest(CHAIN), 2, depth=10)) == [1, 2]


def test_traverse_to_depth_zero_gives_nothing() -> None:
    assert traverse(forest(CHAIN), 4, depth=0) == []


def test_traverse_from_an_unknown_node_gives_nothing() -> None:
    assert traverse(forest(CHAIN), 9, depth=3) == []


def test_traverse_refuses_a_negative_depth() -> None:
    with pytest.raises(InputError, match="not -1"):
        traverse(forest(CHAIN), 4, depth=-1)


# --- roots, leaves, threads --------------------------------------------------------------------


def test_a_leaf_has_no_live_descendant() -> None:
    assert ids(leaves(nodes_of(FORK))) == [3, 4, 5]


def test_a_node_whose_children_are_superseded_or_aside_is_a_leaf() -> None:
    assert ids(leaves(nodes_of({1: None, 2: 1, 3: 1}, superseded={2}, asides={3}))) == [1]


def test_a_live_node_above_a_live_one_is_no_leaf_even_past_a_superseded_one() -> None:
    assert ids(leaves(nodes_of({1: None, 2: 1, 3: 2}, superseded={2}))) == [3]


def test_a_superseded_root_counts_while_a_live_node_hangs_under_it() -> None:
    assert ids(roots(nodes_of({1: None, 2: 1, 3: None, 4: None}, superseded={1, 3}, asides={4}))) == [1]


def test_threads_are_ordered_by_their_leaf() -> None:
    assert [ids(thread) for thread in threads(nodes_of({1: None, 2: None, 3: 2, 4: 1}))] == [[2, 3], [1, 4]]


def test_a_thread_shows_the_superseded_message_it_hangs_under() -> None:
    assert [ids(thread) for thread in threads(nodes_of({1: None, 2: 1}, superseded={1}))] == [[1, 2]]


def test_an_aside_is_no_thread() -> None:
    assert [ids(thread) for thread in threads(nodes_of({1: None, 2: 1, 3: None}, asides={3}))] == [[1, 2]]


def test_a_system_message_alone_is_no_thread() -> None:
    assert threads([ConversationNode(1, SystemMessage("Be brief."))]) == []


def test_a_system_message_with_an_answer_is_part_of_its_thread() -> None:
    system = ConversationNode(1, SystemMessage("Be brief."))
    assert [ids(t) for t in threads([system, ConversationNode(2, HumanMessage("Hello"), 1)])] == [[1, 2]]


def test_a_human_message_alone_is_a_thread() -> None:
    assert [ids(thread) for thread in threads(nodes_of({1: None}))] == [[1]]


def test_the_order_of_the_nodes_does_not_matter() -> None:
    nodes = nodes_of(FORK)
    assert (threads(nodes[::-1]), roots(nodes[::-1])) == (threads(nodes), roots(nodes))


# --- validation --------------------------------------------------------------------------------


def test_a_forest_is_valid() -> None:
    validate(nodes_of(FORK))


def test_a_parent_may_be_younger_than_its_child() -> None:
    validate(nodes_of({1: 2, 2: None}))


def test_ids_used_twice_are_named() -> None:
    with pytest.raises(InvalidGraphStateError, match=r"more than once: \[2, 4\]"):
        validate([*nodes_of(CHAIN), *nodes_of({2: 1, 4: 1})])


def test_a_missing_parent_is_named_with_its_child() -> None:
    with pytest.raises(InvalidGraphStateError, match="node 3 has the parent 7"):
        validate(nodes_of({1: None, 2: 1, 3: 7}))


def test_the_nodes_of_a_circle_are_named() -> None:
    with pytest.raises(InvalidGraphStateError, match=r"\[2, 3\]"):
        validate(nodes_of({1: None, 2: 3, 3: 2}))


def test_a_node_that_is_its_own_parent_is_named() -> None:
    with pytest.raises(InvalidGraphStateError, match=r"\[2\]"):
        validate(nodes_of({1: None, 2: 2}))


# --- preorder ----------------------------------------------------------------------------------


def test_nodes_of_one_thread_stay_together() -> None:
    assert orderly({5: 1, 1: None, 4: 2, 2: None}) == [1, 5, 2, 4]
    assert orderly({}) == []


@pytest.mark.parametrize("parents", [{1: 3, 2: 1, 3: 2}, {1: None, 2: 2}, {1: 2, 2: 1, 3: 2}])
def test_no_order_is_made_of_a_circle(parents: dict[int, int | None]) -> None:
    with pytest.raises(InvalidGraphStateError, match="in a circle"):
        orderly(parents)


# --- laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [lambda n: path(n, DEEP), lambda n: threads([*n.values()])[0], lambda n: orderly(parents_of(n))],
    ids=["path", "threads", "orderly"],
)
def test_depth_is_no_limit(view: Callable[[dict[int, ConversationNode]], list[object]]) -> None:
    assert len(view(forest({n: n - 1 or None for n in range(1, DEEP + 1)}))) == DEEP


@st.composite
def forests(draw: st.DrawFn) -> dict[int, ConversationNode]:
    size = draw(st.integers(0, 25))
    parents = {n: draw(st.none() | st.integers(1, n - 1)) if n > 1 else None for n in range(1, size + 1)}
    some = st.sets(st.integers(1, size or 1))
    return forest(parents, superseded=draw(some), asides=draw(some))


@given(forests())
def test_threads_hold_every_live_node_and_end_in_a_live_one(nodes: dict[int, ConversationNode]) -> None:
    found = threads(list(nodes.values()))
    assert {n.id for n in nodes.values() if n.state == State.LIVE} <= {n.id for t in found for n in t}
    assert all(thread[-1].state == State.LIVE for thread in found)
    assert {thread[0].id for thread in found} == set(ids(roots(list(nodes.values()))))


@given(forests())
def test_paths_and_leaves_agree_with_networkx(nodes: dict[int, ConversationNode]) -> None:
    graph = to_graph(list(nodes.values()))
    live = {n for n, node in nodes.items() if node.state == State.LIVE}
    assert set(ids(leaves(list(nodes.values())))) == {
        n for n in live if not networkx.descendants(graph, n) & live
    }
    assert all(set(ids(path(nodes, n))) == networkx.ancestors(graph, n) | {n} for n in nodes)


@given(forests())
def test_nodes_are_ordered_with_every_subtree_in_one_piece(nodes: dict[int, ConversationNode]) -> None:
    order = orderly(parents_of(nodes))
    assert sorted(order) == sorted(nodes)
    for start, node_id in enumerate(order):
        below = {n for n in nodes if node_id in ids(path(nodes, n))}
        assert set(order[start : start + len(below)]) == below
