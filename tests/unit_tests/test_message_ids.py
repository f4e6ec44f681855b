"""Messages without an id get one; messages are found by any id."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import MessageIdConflictError
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import copying, nodes, trees
from langchain_threadmem.tree.append import drafts_of
from langchain_threadmem.tree.nodes import NodeRow

REVIVE = Statement.of(
    sqlite="UPDATE threadmem_node SET state = 0 WHERE tree = ?",
    postgresql="UPDATE threadmem_node SET state = 0 WHERE tree = %s",
)


def new_ids(number: int) -> list[str]:
    return [draft.id for draft in drafts_of([HumanMessage("Hello")] * number)]


def test_new_ids_are_uuids_in_the_order_of_their_times() -> None:
    ids = new_ids(1000)
    assert {UUID(made).version for made in ids} == {7}
    assert sorted(set(ids)) == ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_makes_ids_of_its_own() -> None:
    new_ids(1)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, " ".join(new_ids(100)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    ours = set(new_ids(1000))
    theirs = os.read(read, 5000).decode().split()
    os.close(read)
    os.close(write)
    assert len(theirs) == 100
    assert ours.isdisjoint(theirs)


def of_tree(system: MemorySystem, name: str, read: Callable[[Conn, int], Any]) -> Any:
    def in_tree(conn: Conn) -> Any:
        tree = trees.find(conn, system.owner, name)
        assert tree is not None
        return read(conn, tree)

    return system.runtime.database.read(in_tree)


def found(system: MemorySystem, name: str, message_id: str) -> list[tuple[int, int]]:
    rows: list[NodeRow] = of_tree(system, name, lambda conn, tree: nodes.versions(conn, tree, message_id))
    return [(row.seq, row.state) for row in rows]


def test_made_ids_differ_between_conversations(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    one, other = verbs(system.conversation("c")), verbs(system.conversation("d"))
    ids = {node.message.id for node in one.append("a", "b") + other.append("a", "b")}
    assert len(ids) == 4


def test_what_was_returned_and_is_appended_again_is_once(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    written = memory.append("a", "b")
    assert memory.append(*(node.message for node in written)) == written


def test_a_made_id_with_other_content_is_refused(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    [node] = memory.append("a")
    with pytest.raises(MessageIdConflictError, match="node 1"):
        memory.append(HumanMessage("other", id=node.message.id))


@pytest.mark.parametrize("number", [1, 2, 3, 999_999_999_999])
def test_a_given_id_may_end_in_any_number(
    system: MemorySystem, verbs: Callable[..., Any], number: int
) -> None:
    memory = verbs(system.conversation("c"))
    said = AIMessage("b", id=f"x-{number:012d}")
    written = memory.append("a", said)
    memory.append("c", "d")
    assert found(system, "c", str(said.id)) == [(2, State.LIVE)]
    assert memory.append(*(node.message for node in written)) == written


def test_a_message_that_was_moved_is_found_in_both_places(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    memory.append("a", "b")
    [moved, _] = memory.append("c", "d")
    memory.place(moved.id, None)
    assert found(system, "c", moved.message.id) == [(5, State.LIVE), (3, State.SUPERSEDED)]
    assert memory.verify().ok


def test_a_new_version_may_keep_a_made_id(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    [old] = memory.append("a")
    memory.edit(old.id, HumanMessage("b", id=old.message.id))
    assert found(system, "c", old.message.id) == [(2, State.LIVE), (1, State.SUPERSEDED)]


def test_a_copy_is_found_by_the_same_ids(system: MemorySystem) -> None:
    written = system.conversation("c").append("a", "b")

    def copy(conn: Conn) -> None:
        source = trees.find_or_create(conn, system.owner, "c", 1.0)
        copying.copy_tree(conn, source, trees.find_or_create(conn, system.owner, "d", 1.0))

    system.runtime.database.write(copy)
    assert [found(system, "d", str(node.message.id)) for node in written] == [[(1, 0)], [(2, 0)]]


def test_a_memory_that_was_loaded_is_found_by_the_same_ids(tmp_path: Any) -> None:
    memory = ChatMemory()
    written = memory.append("a", "b")
    memory.save(tmp_path / "memory.json")
    loaded = ChatMemory.load(tmp_path / "memory.json")
    assert [node.message.id for node in loaded.append(*(node.message for node in written))] == [
        node.message.id for node in written
    ]
    assert len(loaded.thread(2)) == 2


def test_verify_finds_a_message_with_two_live_nodes(system: MemorySystem) -> None:
    memory = system.conversation("c")
    [old] = memory.append(HumanMessage("a", id="given"))
    memory.edit(old.id, HumanMessage("b", id="given"))
    system.runtime.database.write(
        lambda conn: conn.run(REVIVE, trees.find_or_create(conn, system.owner, "c", 1.0))
    )
    assert system.verify().problems == ("conversation 'c': message 'given' has several live nodes",)
