"""Nodes are found by their numbers, whatever their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from sqlalchemy import BigInteger, bindparam, select

from langchain_threadmem import MemorySystem
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import node
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.append import Draft

_before = node_keys.before(
    select(node.c.seq), bindparam("tree", type_=BigInteger()), bindparam("seq", type_=BigInteger())
)
BEFORE = Statement(_before, "tree", "seq")
FEW_BEFORE = Statement(_before.limit(3), "tree", "seq")
PARENTS = st.lists(st.integers(0, 100), min_size=1, max_size=24)


def of_tree(system: MemorySystem, read: Callable[[Conn, int], Any], name: str = "c") -> Any:
    def in_tree(conn: Conn) -> Any:
        return read(conn, trees.find_or_create(conn, system.owner, name, 0.0))

    return system.runtime.database.write(in_tree)


def said(name: str) -> Draft:
    return Draft(HumanMessage("q"), "human", "{}", 0.0, name, given=True)


def grown(conn: Conn, tree: int, choices: list[int]) -> int:
    """Append chains of one or two messages below given nodes; returns the number of nodes."""
    count = 0
    for n, choice in enumerate(choices):
        drafts = [said(f"m{n}-{k}") for k in range(1 + choice % 2)]
        writer.append(conn, tree, drafts, choice % (count + 1) or None)
        count += len(drafts)
    return count


@settings(max_examples=40)
@given(PARENTS)
def test_any_node_is_found_by_its_number(choices: list[int]) -> None:
    system = MemorySystem(None, embeddings=False)

    def look(conn: Conn, tree: int) -> list[int | None]:
        count = grown(conn, tree, choices)
        found = [nodes.by_seq(conn, tree, seq) for seq in range(count + 2)]
        return [count, *(row and row.seq for row in found)]

    count, *found = of_tree(system, look)
    assert found == [None, *range(1, count + 1), None]
    system.close()


@settings(max_examples=40)
@given(PARENTS, st.integers(0, 60))
def test_nodes_are_read_in_the_order_of_their_numbers(choices: list[int], seq: int) -> None:
    system = MemorySystem(None, embeddings=False)

    def look(conn: Conn, tree: int) -> tuple[int, list[int], list[int]]:
        count = grown(conn, tree, choices)
        after = [row.seq for row in nodes.since(conn, tree, seq)]
        return count, after, [row[0] for row in conn.all(BEFORE, tree, seq)]

    count, after, before = of_tree(system, look)
    assert after == list(range(seq + 1, count + 1))
    assert before == list(range(min(seq - 1, count), 0, -1))
    system.close()


@settings(max_examples=40)
@given(PARENTS, PARENTS)
def test_the_newest_node_is_that_of_its_own_tree(choices: list[int], others: list[int]) -> None:
    system = MemorySystem(None, embeddings=False)
    count = of_tree(system, lambda conn, tree: grown(conn, tree, choices))
    of_tree(system, lambda conn, tree: grown(conn, tree, others), "other")
    assert of_tree(system, lambda conn, tree: trees.head(conn, tree).next_seq) == count + 1
    system.close()


@pytest.mark.parametrize(
    "read",
    [
        lambda conn, tree, last: nodes.by_seq(conn, tree, last - 1),
        lambda conn, tree, last: nodes.since(conn, tree, last - 3),
        lambda conn, tree, last: nodes.since(conn, tree, last // 2, 3),
        lambda conn, tree, last: conn.all(FEW_BEFORE, tree, last // 2),
        lambda conn, tree, last: trees.head(conn, tree),
    ],
    ids=["one", "newest", "middle", "backwards", "head"],
)
def test_reading_costs_the_same_in_a_long_conversation(read: Callable[[Conn, int, int], Any]) -> None:
    assert steps_of(read, 2000) < 1.5 * steps_of(read, 20)


def steps_of(read: Callable[[Conn, int, int], Any], messages: int) -> int:
    """The number of SQLite instructions of a read in a conversation without forks."""
    system = MemorySystem(None, embeddings=False)
    drafts = [said(f"m{n}") for n in range(messages)]
    of_tree(system, lambda conn, tree: writer.append(conn, tree, drafts))
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return 0

    database = system.resources.database
    assert isinstance(database, SqliteDatabase)

    def counting(conn: Conn, tree: int) -> None:
        database._writer.set_progress_handler(counted, 1)
        read(conn, tree, messages)
        database._writer.set_progress_handler(None, 1)

    of_tree(system, counting)
    system.close()
    return count


def test_what_follows_a_deleted_summary_is_found(system: MemorySystem) -> None:
    def look(conn: Conn, tree: int) -> list[int]:
        drafts = [said(f"m{n}") for n in range(5)]
        keys = writer.append(conn, tree, drafts).keys
        summary_queries.delete(conn, [keys[0], keys[1], keys[3]])
        return [row.seq for row in nodes.since(conn, tree)]

    assert of_tree(system, look) == [3, 5]
