"""Joined appends: appends in one transaction are stored as if each had its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from sqlalchemy import func, select

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import MessageIdConflictError, NodeNotFoundError, UnsupportedMessageError
from langchain_threadmem.messages.codec import encode, messages_of
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.group_commit import run_all
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.storage.transaction import Database
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.append import TIP, Append, Draft

NAMES = ("one", "two")
HOW_MANY_TREES = Statement(select(func.count()).select_from(schema.tree))


def draft(role: str, name: str, *, is_given: bool) -> Draft:
    (message,) = messages_of((role, f"{role} {name}"))
    # An id belongs to one content only, so it names it.
    return Draft(message, role, encode(message), 1.0, f"{role}-{name}", is_given)


@st.composite
def writes(draw: st.DrawFn) -> list[tuple[int, list[tuple[str, str, bool]], Any]]:
    count = draw(st.integers(1, 12))
    made = []
    for n in range(count):
        said = [
            # What is given may come again; what is not is new each time.
            (draw(st.sampled_from(["human", "ai", "system"])), draw(st.sampled_from("abc")), True)
            if draw(st.booleans())
            else ("human", f"{n}.{m}", False)
            for m in range(draw(st.integers(1, 3)))
        ]
        made.append((draw(st.sampled_from([0, 1])), said, draw(st.sampled_from([TIP, TIP, TIP, None, 1, 2]))))
    return made


def contents(database: Database, stored: list[int]) -> Any:
    return database.read(lambda conn: [(trees.head(conn, one), nodes.since(conn, one, 1)) for one in stored])


def two_trees(database: Database) -> list[int]:
    found = database.write(lambda conn: [trees.find_or_create(conn, "ada", name, 1.0) for name in NAMES])
    first = [draft("human", "root", is_given=False), draft("ai", "root", is_given=False)]
    for tree in found:
        database.write(Append(tree, first))
    return found


@given(writes())
@settings(max_examples=60)
def test_together_they_give_what_they_give_one_by_one(given_writes: Any) -> None:
    databases = [open_database(None), open_database(None)]
    try:
        ours = [two_trees(database) for database in databases]
        appends = [
            [Append(tree[which], [draft(role, name, is_given=known) for role, name, known in said], parent)
             for which, said, parent in given_writes]
            for tree in ours
        ]  # fmt: skip
        alone = [databases[0].write(append) for append in appends[0]]
        joined = databases[1].write(lambda conn: run_all(conn, appends[1]))
        assert joined == alone
        assert contents(databases[0], ours[0]) == contents(databases[1], ours[1])
    finally:
        for database in databases:
            database.close()


def test_what_cannot_be_stored_leaves_no_conversation() -> None:
    with MemorySystem(embeddings=False) as system:
        with pytest.raises(UnsupportedMessageError):
            system.conversation("c").append(HumanMessage("Hello", additional_kwargs={"a": object()}))
        assert system.runtime.database.read(lambda conn: conn.all(HOW_MANY_TREES)) == [(0,)]


def test_other_writes_between_them_keep_their_place() -> None:
    database = open_database(None)
    tree = two_trees(database)[0]

    def checkout(conn: Conn) -> str:
        trees.move_tip(conn, tree, nodes.by_seq(conn, tree, 2).key)  # type: ignore[union-attr]
        return "moved"

    third, fork = (Append(tree, [draft("human", name, is_given=False)]) for name in "cd")
    results = database.write(lambda conn: run_all(conn, [third, checkout, fork]))
    assert [results[0].nodes[0].parent_id, results[1], results[2].nodes[0].parent_id] == [2, "moved", 2]
    database.close()


@pytest.mark.parametrize("error", [MessageIdConflictError, NodeNotFoundError])
def test_one_that_fails_fails_alone(tmp_path: Path, error: type[Exception]) -> None:
    async def main() -> list[Any]:
        async with MemorySystem(tmp_path / "m.db", embeddings=False) as system:
            memories = [system.conversation(name) for name in "abc"]
            for memory in memories:
                await memory.aappend({"role": "user", "content": "q", "id": "q"}, "a")
            bad = (
                memories[1].aappend({"role": "user", "content": "other", "id": "q"})
                if error is MessageIdConflictError
                else memories[1].aedit(99, "x")
            )
            results = await asyncio.gather(
                memories[0].aappend("more"), bad, memories[2].aappend("more"), return_exceptions=True
            )
            return [*results, *[len(await memory.ahistory()) for memory in memories]]

    first, failed, last, *lengths = asyncio.run(main())
    assert isinstance(failed, error)
    assert [first[0].id, last[0].id, lengths] == [3, 3, [3, 2, 3]]


def test_many_callers_share_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    together = Append.together

    def counted(conn: Conn, appends: Any) -> Any:
        seen.append(len(appends))
        return together(conn, appends)

    monkeypatch.setattr(Append, "together", staticmethod(counted))

    async def main() -> None:
        async with MemorySystem(tmp_path / "m.db", embeddings=False) as system:
            memory = system.conversation("c")
            await memory.aappend("first")
            await asyncio.gather(*(memory.aappend(f"q{n}", f"a{n}") for n in range(16)))

    asyncio.run(main())
    assert sum(seen) == 17
    assert max(seen) > 1
