"""Isolation of owners and conversations; hostile names and queries are data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import InputError, NodeNotFoundError
from langchain_threadmem.storage.statements import Statement

TABLES = ("tree", "segment", "node", "message_summary", "embedding", "watermark", "unit", "summary")
SECRET = "the vault opens with heron"

HOSTILE_QUERIES = [
    '" OR *',
    "heron' OR '1'='1",
    "NEAR(heron vault)",
    "words: heron",
    "heron*",
    "^heron",
    '"',
    "'",
    "%",
    "_",
    "-heron AND NOT vault",
    "') UNION SELECT * FROM threadmem_node --",
    "heron & ! vault | :*",
    "§o",
    "§t1",
    "\0",
    "heron\0vault",
    "\ud800",
    "Ⅳ ﬃ 🧵 ى",
    "x" * 10_000,
]
HOSTILE_NAMES = [
    "c%",
    "c_",
    "%",
    "_",
    "c' OR '1'='1",
    'c"; DROP TABLE threadmem_node; --',
    "C",
    "c ",
    "ç",
    "🧵",
    "?",
    "%s",
]


@pytest.fixture
def pair(url: str, owner: str) -> Iterator[tuple[MemorySystem, MemorySystem]]:
    model = WordEmbeddings()
    with MemorySystem(url, owner=owner, embeddings=model) as mine:
        mine.conversation("c").append(SECRET, f"I will remember that {SECRET}.")
        mine.conversation("c").recall("heron", scope="owner")
        with MemorySystem(url, owner=f"{owner}x", embeddings=model) as theirs:
            yield mine, theirs


def dump(system: MemorySystem, tables: tuple[str, ...] = TABLES) -> dict[str, list[str]]:
    """Every row of the trees and of the derived tables."""

    def rows(table: str) -> list[str]:
        every = Statement.of(**dict.fromkeys(("sqlite", "postgresql"), f"SELECT * FROM threadmem_{table}"))
        return sorted(map(repr, system.runtime.database.read(lambda conn: conn.all(every))))

    return {table: rows(table) for table in tables}


READS: dict[str, Callable[[Any], Any]] = {
    "messages": lambda memory: memory.messages(),
    "history": lambda memory: memory.history(),
    "tip": lambda memory: memory.tip() or [],
    "threads": lambda memory: memory.threads(),
    "roots": lambda memory: memory.roots(),
    "recall": lambda memory: memory.recall("heron vault"),
    "recall of the owner": lambda memory: memory.recall("heron vault", scope="owner"),
    "recall of all versions": lambda memory: memory.recall("heron", include_superseded=True, scope="owner"),
    # A linear memory retrieves its last messages, without a search.
    "retrieve": lambda memory: memory.retrieve("heron vault"),
    "recent": lambda memory: memory.retrieve("nothing of the kind", fallback="recent"),
    "graph": lambda memory: list(memory.graph()),
}


@pytest.mark.parametrize("read", READS)
def test_the_same_name_under_another_owner_shows_nothing(
    pair: tuple[MemorySystem, MemorySystem], verbs: Callable[..., Any], read: str
) -> None:
    mine, theirs = pair
    assert READS[read](verbs(mine.conversation("c")))
    assert READS[read](verbs(theirs.conversation("c"))) == []


def test_another_owners_rows_stay_hidden_beside_ones_own(
    pair: tuple[MemorySystem, MemorySystem], verbs: Callable[..., Any]
) -> None:
    memory = verbs(pair[1].conversation("c"))
    memory.append("a heron stood in the reeds", "how pretty")
    for scope in ("conversation", "owner"):
        found = memory.recall("heron vault", scope=scope)
        assert {hit.node.id for hit in found} == {1, 2}
        assert not any("opens" in node.message.content for hit in found for node in hit.thread)


def test_conversations_are_listed_by_owner(pair: tuple[MemorySystem, MemorySystem]) -> None:
    mine, theirs = pair
    assert (mine.conversations(), theirs.conversations()) == (["c"], [])
    assert asyncio.run(_alist(theirs)) == []


async def _alist(system: MemorySystem) -> list[str]:
    return await system.aconversations()


def test_another_owners_nodes_cannot_be_named(
    pair: tuple[MemorySystem, MemorySystem], verbs: Callable[..., Any]
) -> None:
    memory = verbs(pair[1].conversation("c"))
    calls = [
        lambda: memory.thread(1),
        lambda: memory.checkout(1),
        lambda: memory.edit(1, "x"),
        lambda: memory.regenerate(1, "x"),
        lambda: memory.place(1, None),
    ]
    for call in calls:
        with pytest.raises(NodeNotFoundError):
            call()


def test_verify_counts_ones_own(pair: tuple[MemorySystem, MemorySystem]) -> None:
    assert pair[0].verify().nodes == 2
    assert pair[1].verify().nodes == 0


def test_reset_leaves_every_other_row_as_it_was(url: str, owner: str, verbs: Callable[..., Any]) -> None:
    model = WordEmbeddings()
    with (
        MemorySystem(url, owner=owner, embeddings=model) as mine,
        MemorySystem(url, owner=f"{owner}x", embeddings=model) as theirs,
    ):
        for system in (mine, theirs):
            for name in ("keep", "keep2"):
                system.conversation(name).append(f"heron of {name}", "noted")
                system.conversation(name).edit(1, f"a heron of {name}")
                system.conversation(name).recall("heron")
        before = dump(mine)
        memory = verbs(mine.conversation("kee"))
        memory.append("heron to forget", "noted")
        memory.recall("heron")
        memory.reset()
        after = dump(mine)
        assert {table: after[table] for table in TABLES if table != "tree"} == {
            table: before[table] for table in TABLES if table != "tree"
        }
        assert set(before["tree"]) < set(after["tree"])  # the empty tree itself stays
        assert len(after["tree"]) == len(before["tree"]) + 1
        assert mine.conversation("keep").recall("heron")
        assert theirs.conversation("keep").recall("heron")


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_a_hostile_query_is_only_a_query(
    pair: tuple[MemorySystem, MemorySystem], verbs: Callable[..., Any], scope: str
) -> None:
    mine, theirs = pair
    memory = verbs(theirs.conversation("other"))
    memory.append("bread and butter", "yes please")
    before = dump(mine, ("tree", "node"))
    for query in HOSTILE_QUERIES:
        for hit in memory.recall(query, scope=scope):
            assert hit.conversation_id == "other", query
    assert dump(mine, ("tree", "node")) == before


def test_a_hostile_name_is_only_a_name(
    pair: tuple[MemorySystem, MemorySystem], verbs: Callable[..., Any]
) -> None:
    mine, _ = pair
    for name in HOSTILE_NAMES:
        memory = verbs(mine.conversation(name))
        assert memory.messages() == [], name
        assert memory.recall("heron") == [], name
        memory.append("bread", "butter")
        memory.reset()
        assert len(mine.conversation("c").history) == 2, name
    assert mine.conversations() == ["c"]


@pytest.mark.parametrize("owner_name", ["%", "_", "o' OR '1'='1", '"', "🧵"])
def test_a_hostile_owner_is_only_an_owner(url: str, owner: str, owner_name: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as mine:
        mine.conversation("c").append(SECRET, "noted")
    with MemorySystem(url, owner=owner_name + owner, embeddings=False) as theirs:
        assert theirs.conversations() == []
        assert theirs.conversation("c").recall("heron", scope="owner") == []


@pytest.mark.parametrize("bad", ["", "\0", "a\0b", "\ud800", 7, b"c"])
def test_a_name_that_no_database_keeps_is_refused(system: MemorySystem, bad: Any) -> None:
    with pytest.raises(InputError, match="a conversation_id"):
        system.conversation(bad)
    with pytest.raises(InputError, match="an owner"):
        MemorySystem(owner=bad)


@pytest.mark.parametrize("bad", ["a\0b", "\udfff"])
def test_a_message_id_that_no_database_keeps_is_refused(
    system: MemorySystem, verbs: Callable[..., Any], bad: str
) -> None:
    from langchain_core.messages import HumanMessage

    memory = verbs(system.conversation("c"))
    with pytest.raises(InputError, match="a message id"):
        memory.append(HumanMessage("q", id=bad))
    assert memory.history() == []


def test_any_text_can_be_said_and_found(system: MemorySystem, verbs: Callable[..., Any]) -> None:
    memory = verbs(system.conversation("c"))
    said = [query for query in HOSTILE_QUERIES if query.strip()]
    memory.extend(said)
    assert [node.message.content for node in memory.history()] == said
    assert {hit.node.message.content for hit in memory.recall("heron", n_results=50) if hit.why.terms} == {
        text for text in said if "heron" in text
    }


def test_a_name_is_no_path(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", owner="../../o", embeddings=WordEmbeddings()) as system:
        memory: ChatMemory = system.conversation("../../../etc/c")
        memory.append("q", "a")
        memory.recall("q", scope="owner")
    assert {path.name for path in tmp_path.iterdir()} <= {"memory.db", "memory.db.chroma"}
