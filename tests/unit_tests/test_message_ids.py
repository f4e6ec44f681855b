"""Generated ids end in the number of their node; messages are found by any id."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import MessageIdConflictError
from langchain_threadmem.messages.ids import is_numbered, new_stem, number_in, numbered, stem
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import copying, nodes, trees
from langchain_threadmem.tree.nodes import NodeRow

IDS = st.text("0123456789-aé٣", max_size=16)
IN_INDEX = Statement.of(
    sqlite="SELECT seq FROM threadmem_node WHERE tree = ? AND named = 1 ORDER BY seq",
    postgresql="SELECT seq FROM threadmem_node WHERE tree = %s AND named = 1 ORDER BY seq",
)
UNNAME = "UPDATE threadmem_node SET named = 0 WHERE tree = "
FORGET = Statement.of(sqlite=f"{UNNAME} ?", postgresql=f"{UNNAME} %s")


@given(st.one_of(IDS, st.from_regex(r"\w{0,3}[0-9]{12}", fullmatch=True)), st.integers(1, 10**13))
def test_an_id_that_ends_in_a_number_leads_to_it(message_id: str, number: int) -> None:
    assert is_numbered(message_id, number) == (number_in(message_id) == number)


@given(st.binary(min_size=9, max_size=9), st.integers(1, 10**12 - 1))
def test_a_made_id_is_a_uuid_and_leads_to_its_node(randoms: bytes, number: int) -> None:
    made = numbered(stem(randoms), number)
    assert (UUID(made).version, number_in(made)) == (8, number)


def test_stems_do_not_come_twice() -> None:
    assert len({new_stem() for _ in range(1000)}) == 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_process_makes_stems_of_its_own() -> None:
    new_stem()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, new_stem().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 100).decode()
    os.close(read)
    os.close(write)
    assert theirs not in {new_stem() for _ in range(1000)}


def of_tree(system: MemorySystem, name: str, read: Callable[[Conn, int], Any]) -> Any:
    def in_tree(conn: Conn) -> Any:
        tree = trees.find(conn, system.owner, name)
        assert tree is not None
        return read(conn, tree)

    return system.runtime.database.read(in_tree)


def found(system: MemorySystem, name: str, message_id: str) -> list[tuple[int, int]]:
    rows: list[NodeRow] = of_tree(system, name, lambda conn, tree: nodes.versions(conn, tree, message_id))
    return [(row.seq, row.state) for row in rows]


def in_index(system: MemorySystem, name: str = "c") -> list[int]:
    return [row[0] for row in of_tree(system, name, lambda conn, tree: conn.all(IN_INDEX, tree))]


def test_only_ids_that_were_given_are_entered_into_the_index(
    system: MemorySystem, verbs: Callable[..., Any]
) -> None:
    memory = verbs(system.conversation("c"))
    memory.append("a", "b")
    memory.append(HumanMessage("c", id="given"), "d")
    assert in_index(system) == [3]


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
    assert in_index(system, "d") == []


def test_a_memory_that_was_loaded_is_found_by_the_same_ids(tmp_path: Any) -> None:
    memory = ChatMemory()
    written = memory.append("a", "b")
    memory.save(tmp_path / "memory.json")
    loaded = ChatMemory.load(tmp_path / "memory.json")
    assert [node.message.id for node in loaded.append(*(node.message for node in written))] == [
        node.message.id for node in written
    ]
    assert len(loaded.thread(2)) == 2


def test_verify_finds_an_id_that_leads_nowhere(system: MemorySystem) -> None:
    memory = system.conversation("c")
    memory.append(HumanMessage("a", id="given"), "b")
    system.runtime.database.write(
        lambda conn: conn.run(FORGET, trees.find_or_create(conn, system.owner, "c", 1.0))
    )
    assert memory.verify().problems == ("conversation 'c': node 1 is not found by its message's id",)
