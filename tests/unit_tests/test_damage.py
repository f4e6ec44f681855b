"""Damage: an unreadable message is reported, replaced and removable; other messages are read as before."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import StreamCipher, WordEmbeddings
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_threadmem import (
    ChatMemory,
    ExtractiveSummarizer,
    MemorySystem,
    ThreadMemSaver,
    ThreadMemStore,
    select_thread_node,
)
from langchain_threadmem.engine.flow import Sql, run
from langchain_threadmem.errors import LostDatabaseError, PersistenceError, ThreadMemError
from langchain_threadmem.formats.exporters.formats import SUFFIXES
from langchain_threadmem.messages.codec import UNREADABLE
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.statements import Conn, Statement
from torture.flips import every_kind, read_turned

Change = Callable[..., None]


def change(system: MemorySystem, sql: str, *values: Any) -> None:
    """Change rows without their checksums."""
    path = system.runtime.database.path
    if path is not None:
        with sqlite3.connect(path) as connection:
            connection.execute(sql.replace("%s", "?"), values)
        connection.close()
    else:
        statement = Statement.of(sqlite="", postgresql=sql)
        system.runtime.database.write(lambda conn: conn.run(statement, *values))


def tree_of(system: MemorySystem, conversation: str = "c") -> int:
    statement = Statement.of(
        sqlite="SELECT id FROM threadmem_tree WHERE owner = ? AND conversation = ?",
        postgresql="SELECT id FROM threadmem_tree WHERE owner = %s AND conversation = %s",
    )
    found = system.runtime.database.read(lambda conn: conn.all(statement, system.owner, conversation))
    return int(found[0][0])


@pytest.fixture(params=["plain", "encrypted"])
def damaged(request: pytest.FixtureRequest, url: str, owner: str) -> Iterator[MemorySystem]:
    """Four messages, of which the second is unreadable."""
    cipher = StreamCipher() if request.param == "encrypted" else None
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=cipher) as system:
        memory = system.conversation("c")
        memory.append("the heron stands in the water", "it waits for a fish")
        memory.append("bread needs salt", "and time")
        where = "WHERE tree = %s AND seq = 2"
        change(system, f"UPDATE threadmem_node SET body = substr(body, 1, 40) {where}", tree_of(system))
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=cipher) as system:
        yield system


def lost(messages: list[Any]) -> list[int]:
    return [n for n, message in enumerate(messages, 1) if UNREADABLE in message.response_metadata]


def test_a_thread_with_an_unreadable_message_shows_the_rest(damaged: MemorySystem, verbs: Any) -> None:
    shown = verbs(damaged.conversation("c")).messages()
    assert [message.type for message in shown] == ["human", "ai", "human", "ai"]
    assert lost(shown) == [2]
    assert shown[2].content == "bread needs salt"


def test_history_shows_where_a_message_cannot_be_read(damaged: MemorySystem) -> None:
    nodes = damaged.conversation("c").history
    assert lost([node.message for node in nodes]) == [2]
    assert [node.parent_id for node in nodes] == [None, 1, 2, 3]


def test_recall_finds_what_can_be_read(damaged: MemorySystem, verbs: Any) -> None:
    hits = verbs(damaged.conversation("c")).recall("salt in bread", n_results=1)
    assert [hit.node.id for hit in hits] == [3]


def test_a_conversation_with_an_unreadable_message_goes_on(damaged: MemorySystem, verbs: Any) -> None:
    memory = verbs(damaged.conversation("c"))
    assert memory.append("more", "yes")[0].id == 5
    assert len(memory.messages()) == 6


def test_a_conversation_with_an_unreadable_message_is_exported(damaged: MemorySystem) -> None:
    assert "and time" in damaged.conversation("c").export("json")


def test_verify_names_an_unreadable_message(damaged: MemorySystem, verbs: Any) -> None:
    assert "conversation 'c': node 2 " in str(damaged.verify())
    assert "node 2 " in str(verbs(damaged.conversation("c")).verify())


def test_an_unreadable_message_is_not_moved(damaged: MemorySystem) -> None:
    memory = damaged.conversation("c")
    change(damaged, "UPDATE threadmem_node SET body = '{' WHERE tree = %s AND seq = 3", tree_of(damaged))
    with pytest.raises(PersistenceError, match="node 3 cannot be read"):
        memory.place(3, None)


@pytest.mark.parametrize(
    "remove",
    [
        lambda system: system.forget(1.0, purge=True),
        lambda system: system.erase(conversation="c"),
        lambda system: system.erase(before=datetime.now(UTC)),
        lambda system: system.conversation("c").reset(),
    ],
    ids=["purge", "conversation", "time", "reset"],
)
def test_an_unreadable_message_can_be_removed(
    damaged: MemorySystem, remove: Callable[[MemorySystem], Any]
) -> None:
    remove(damaged)
    assert damaged.conversation("c").history == []
    assert damaged.verify().problems == ()


def test_a_graph_goes_on_with_an_unreadable_message_as_it_is(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        ask(chat(ThreadMemSaver(system)), "a heron")
        where = "WHERE tree = %s AND seq = 1"
        change(system, f"UPDATE threadmem_node SET body = substr(body, 1, 40) {where}", tree_of(system, "t"))
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        state = ask(chat(ThreadMemSaver(system)), "a swan")
        assert lost(state["messages"]) == [1]
        assert len(system.conversation("t").history) == 4


def test_a_damaged_reason_is_shown_as_that(url: str, owner: str, verbs: Any) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c", node_selector=lambda tree, message: 2)
        for text in ("one", "two", "three"):
            memory.append(text, "yes")
        key = next(node.id for node in memory.history if node.placement)
        keys = "SELECT key FROM threadmem_node WHERE tree = %s AND seq = %s"
        sql = f"UPDATE threadmem_placement SET chances = '[[1' WHERE key IN ({keys})"
        change(system, sql, tree_of(system), key)
        node = verbs(memory).history()[key - 1]
        assert node.placement.reason == "[This cannot be read.]"
        assert f"the placement of node {key} cannot be read" in str(system.verify())


def test_a_store_with_an_unreadable_value_gives_the_others(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False, cipher=StreamCipher()) as system:
        store = ThreadMemStore(system)
        for name in ("a", "b", "c"):
            store.put(("birds",), name, {"name": name})
        spaces = "SELECT id FROM threadmem_namespace WHERE owner = %s"
        where = f"WHERE key = %s AND namespace IN ({spaces})"
        change(system, f"UPDATE threadmem_item SET value = substr(value, 1, 40) {where}", b"b", owner)
        assert [item.key for item in store.search(("birds",))] == ["a", "c"]
        with pytest.raises(PersistenceError):
            store.get(("birds",), "b")
        store.delete(("birds",), "b")
        assert system.verify().problems == ()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("threadmem_node", "created", 1e300),
        ("threadmem_tree", "created", 1e18),
        ("threadmem_node", "parent", "x"),
        ("threadmem_message_summary", "title", b"\xff"),
        ("threadmem_document", "terms", b"\xff"),
    ],
)
def test_a_value_of_another_type_raises_a_typed_error(
    tmp_path: Path, table: str, column: str, value: Any, verbs: Any
) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=False) as system:
        memory = system.conversation("c", summarizer=ExtractiveSummarizer())
        memory.append("the heron stands in the water", "it waits for a fish")
        memory.summarize()
        memory.recall("heron")
        change(system, f"UPDATE {table} SET {column} = %s", value)
    with MemorySystem(path, embeddings=False) as system:
        memory = verbs(system.conversation("c"))

        def read() -> None:
            memory.history()
            memory.recall("heron")
            system.list_conversations()

        with pytest.raises(PersistenceError, match=rf"of '{table}' differs from the written row.*verify\(\)"):
            read()
        assert f"of '{table}' differs from the written row" in str(system.verify())


def test_a_damaged_index_is_named_as_the_reason_of_an_error(tmp_path: Path) -> None:
    path, index = tmp_path / "memory.db", "type = 'index' AND name = 'threadmem_node_seq'"

    def change_schema(sql: str, *rows: Any) -> list[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            return connection.execute(sql, *rows).fetchall()

    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("the heron stands in the water", "it waits for a fish")
    (row,) = change_schema(f"DELETE FROM sqlite_master WHERE {index} RETURNING *")
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("the robin sings", "in the morning")
    change_schema("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)

    def fail(conn: Conn) -> None:
        raise ValueError("what was read cannot be used")

    with (
        MemorySystem(path, embeddings=False) as system,
        pytest.raises(PersistenceError, match=r"missing from index threadmem_node_seq.*verify\(\)"),
    ):
        run(Sql(fail), system.runtime)


# Checkpoints


def chat(saver: ThreadMemSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"about {state['messages'][-1].content}")]}

    return StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model").compile(saver)


def ask(graph: Any, text: str) -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config_of())


def config_of() -> Any:
    return {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["plain", "encrypted"])
def saver(request: pytest.FixtureRequest, url: str, owner: str) -> Iterator[ThreadMemSaver]:
    cipher = StreamCipher() if request.param == "encrypted" else None
    with MemorySystem(url, owner=owner, embeddings=False, cipher=cipher) as system:
        found = ThreadMemSaver(system)
        graph = chat(found)
        ask(graph, "a heron")
        ask(graph, "a swan")
        yield found


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE threadmem_blob SET data = %s WHERE tree = %s AND id = (SELECT max(id) FROM threadmem_blob "
        "WHERE tree = %s)",
        "UPDATE threadmem_checkpoint SET data = %s WHERE tree = %s AND id = (SELECT id "
        "FROM threadmem_checkpoint WHERE tree = %s ORDER BY id DESC LIMIT 1)",
    ],
    ids=["value", "checkpoint"],
)
def test_an_unreadable_checkpoint_is_named_and_the_others_are_read(saver: ThreadMemSaver, sql: str) -> None:
    before = [found.config for found in saver.list(config_of())]
    tree = tree_of(saver.system, "t")
    change(saver.system, sql, b"\xc1", tree, tree)
    newest = before[0]["configurable"]["checkpoint_id"]
    with pytest.raises(PersistenceError, match=f"checkpoint '{newest}' of thread 't'"):
        saver.get_tuple(config_of())
    assert [found.config for found in saver.list(config_of())] == before[1:]
    assert saver.get_tuple(before[1]) is not None
    saver.delete_thread("t")
    assert saver.system.verify().problems == ()


# The file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def on_file(file: Path) -> Iterator[ChatMemory]:
    system = MemorySystem(file, embeddings=False)
    memory = system.conversation("c")
    memory.append("one", "two")
    yield memory
    system.close()


def replace(file: Path) -> None:
    shutil.copy(file, file.with_suffix(".copy"))
    file.with_suffix(".copy").rename(file)


@pytest.mark.parametrize("lose", [Path.unlink, replace], ids=["deleted", "replaced"])
def test_a_write_to_a_file_that_is_not_there_any_more_says_so(
    on_file: ChatMemory, file: Path, lose: Callable[[Path], None], verbs: Any
) -> None:
    lose(file)
    with pytest.raises(LostDatabaseError, match=r"memory\.db' was (deleted|replaced) while it was open"):
        verbs(on_file).append("three", "four")


def test_reading_makes_no_file_in_the_place_of_one_that_was_deleted(on_file: ChatMemory, file: Path) -> None:
    file.unlink()
    with pytest.raises(LostDatabaseError):
        assert on_file.history
    assert not file.exists()


def test_verify_says_that_a_file_is_no_database_any_more(file: Path, verbs: Any) -> None:
    with MemorySystem(file, embeddings=False) as system:
        system.conversation("c").append("one", "two")
    system = MemorySystem(file, embeddings=False)
    with file.open("r+b") as opened:
        opened.write(b"\0" * file.stat().st_size)
    assert "file is not a database" in str(verbs(system.conversation("c")).verify())
    assert "file is not a database" in str(system.verify())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[str]]:
    """A database with every kind of data, and the data read from it."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    known = every_kind(path)
    return path.read_bytes(), known


@settings(max_examples=60)
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_bit_that_was_turned_over_is_named_or_changes_nothing(
    sound: tuple[bytes, list[str]], tmp_path_factory: pytest.TempPathFactory, at: float, bit: int
) -> None:
    data, expected = bytearray(sound[0]), sound[1]
    place = int(at * len(data))
    data[place] ^= 1 << bit
    path = tmp_path_factory.mktemp("turned") / "memory.db"
    path.write_bytes(data)
    lines: list[Any] = []
    read_turned(path, expected, 8 * place + bit, lambda *line: lines.append(line))
    assert lines[-1] == ("done",)
    assert "lost" not in [line[1] for line in lines if line[0] == "problem"]


@pytest.mark.parametrize(
    "table",
    [
        table
        for table in checksums.tables()
        if table.name not in ("threadmem_summary_draft", "threadmem_key_proof")
    ],
    ids=lambda table: table.name,
)
def test_every_table_has_checksums(sound: tuple[bytes, list[str]], tmp_path: Path, table: Any) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(sound[0])
    connection = sqlite3.connect(path)
    column = table.c.keys()[-1]
    changed = connection.execute(f"UPDATE {table.name} SET {column} = 7").rowcount
    connection.commit()
    connection.close()
    with MemorySystem(path, embeddings=False) as system:
        assert str(system.verify()).count(f"of {table.name!r} differs from the written row") == changed > 0


def test_sound_conversations_are_verified_together(
    system: MemorySystem, counted_rows: Callable[[], list[int]]
) -> None:
    for n in range(20):
        system.conversation(f"c{n}").append(f"question {n}", f"answer {n}")
    system.verify()  # The statements are compiled.
    statements = counted_rows()
    verification = system.verify()
    assert (verification.conversations, verification.nodes, verification.ok) == (20, 40, True)
    of_twenty = len(statements)
    for n in range(20, 30):
        system.conversation(f"c{n}").append(f"question {n}", f"answer {n}")
    statements.clear()
    assert system.verify().nodes == 60
    assert len(statements) <= of_twenty + 10  # one for each, which compares the vectors
    edited = system.conversation("c7")
    edited.edit(1, "another question")
    edited.append("a second question", "a second answer")
    edited.place(4, 1)
    statements.clear()
    assert system.verify().ok
    assert len(statements) <= of_twenty + 10
    tree = "SELECT id FROM threadmem_tree WHERE conversation = 'c11' AND owner = "
    update = "UPDATE threadmem_node SET parent = 2 WHERE seq = 2 AND tree = ({})"
    damage = Statement.of(sqlite=update.format(f"{tree}?"), postgresql=update.format(f"{tree}%s"))
    system.runtime.database.write(lambda conn: conn.run(damage, system.owner))
    problems = system.verify().problems
    assert [problem for problem in problems if "'c11'" in problem]
    assert not [problem for problem in problems if "'c12'" in problem]


def test_a_damaged_type_of_a_column_is_found(tmp_path: Path) -> None:
    """SQLite reads a table whose type of a column is no known word, and stores its numbers as integers."""
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("a heron", "grey")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    data = path.read_bytes()
    at = data.index(b"going_back FLOAT") + len(b"going_back ")
    path.write_bytes(data[:at] + b"VLOAT" + data[at + 5 :])
    with MemorySystem(path, embeddings=False) as system:
        assert [message.content for message in system.conversation("c").messages] == ["a heron", "grey"]
        [problem] = system.verify().problems
        assert "'threadmem_selector_bias'" in problem
        assert "VLOAT" in problem


NODES = "UPDATE threadmem_node SET {} WHERE tree = %s AND {}"
CIRCLES = {
    "segments": "UPDATE threadmem_segment SET parent = id * 16777216 WHERE tree = %s AND parent IS NOT NULL",
    "moved messages": "UPDATE threadmem_graft SET parent = key WHERE tree = %s",
    "messages": NODES.format("parent = seq", "seq > 0"),
    "two messages": NODES.format("parent = 3 - seq", "seq < 3"),
    "versions": NODES.format("superseded_by = seq", "superseded_by IS NOT NULL"),
    "two versions": NODES.format("superseded_by = 3 - seq, state = 1", "seq < 3"),
    "removed messages": NODES.format("superseded_by = 3 - seq, state = 4", "seq < 3"),
    "summaries": "UPDATE threadmem_unit SET parent = key WHERE parent IS NOT NULL AND %s > 0",
}


@pytest.mark.parametrize("circle", CIRCLES)
def test_every_call_ends_if_damaged_links_form_a_circle(circle: str, url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c", summarizer=ExtractiveSummarizer())
        for n in range(4):
            memory.append(f"question {n} about a heron", f"answer {n}")
        memory.edit(3, "another question")
        memory.regenerate(5, "another answer")
        memory.place(7, None)
        system.summarize_session("c")
        change(system, CIRCLES[circle], tree_of(system))
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        memory = system.conversation("c")
        has_checksums = system.runtime.database.dialect == "sqlite"
        assert not (has_checksums and system.verify().ok)
        for call in [*reads(system), *writes(system)]:
            with suppress(ThreadMemError if has_checksums else Exception):
                call()
        system.erase(conversation="c")
        assert memory.history == []
        assert system.verify().ok


def reads(system: MemorySystem) -> Iterator[Callable[[], Any]]:
    memory = system.conversation("c")
    yield from (system.verify, lambda: memory.messages, lambda: memory.history, lambda: memory.graph)
    yield from (memory.threads, memory.list_threads, memory.roots, memory.to_mermaid)
    yield from (partial(memory.export, form) for form in SUFFIXES)
    yield from (
        lambda: memory.recall("heron"),
        lambda: system.query("heron"),
        lambda: memory.sort(dry_run=True),
    )
    yield lambda: [system.unfold(hit[0].id) for hit in system.query("heron")]
    for node in range(1, 13):
        for read in (memory.thread, memory.siblings, memory.versions, memory.fork_point, memory.thread_of):
            yield partial(read, node)


def writes(system: MemorySystem) -> Iterator[Callable[[], Any]]:
    memory = system.conversation("c", summarizer=ExtractiveSummarizer())
    threaded = StateGraph(MessagesState).add_node("select", select_thread_node(system))
    graph = threaded.add_edge(START, "select").compile()
    said = {"messages": [HumanMessage("a robin")]}
    yield lambda: graph.invoke(said, {"configurable": {"thread_id": "c"}})
    for node in range(1, 13):
        yield partial(memory.switch, node, revive=True)
        yield partial(memory.regenerate, node, "a new answer")
        yield partial(memory.edit, node, "a new question")
        yield partial(memory.place, node, 13 - node)
        yield partial(memory.checkout, node)
        yield partial(memory.append, f"more {node}", "yes")
    yield from (lambda: system.summarize_session("c"), memory.sort, lambda: memory.forget(2))
