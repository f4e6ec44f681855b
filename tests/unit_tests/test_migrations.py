"""Migrations: an empty database is created, an old one migrated, a newer one refused unchanged."""

from __future__ import annotations

import itertools
import sqlite3
import zipfile
from pathlib import Path

import pytest

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.errors import NewerDatabaseError, OlderDatabaseError, PersistenceError
from langchain_threadmem.storage import migrations
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.migrations import MIGRATIONS, Migration
from langchain_threadmem.storage.statements import Conn, Statement

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
NEXT = range(MIGRATIONS[-1].number + 1, MIGRATIONS[-1].number + 3)


def dump(path: Path) -> list[str]:
    """Every table, row and index of a file, as SQL."""
    with sqlite3.connect(path) as connection:
        # The lexicon itself cannot be read row by row; the tables that it is made of can.
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' ORDER BY 1"
        names = [row[0] for row in connection.execute(tables)]
        found = [repr(row) for row in connection.execute("SELECT * FROM sqlite_master ORDER BY name")]
        found += [
            repr((name, row)) for name in names for row in connection.execute(f'SELECT * FROM "{name}"')
        ]
    connection.close()
    return found


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("question", "answer")
        system.conversation("c").recall("question")
    return path


@pytest.fixture
def eighth(tmp_path: Path) -> Path:
    """A memory of schema 8."""
    with zipfile.ZipFile(SCHEMAS / "8" / "sqlite.zip") as archive:
        archive.extract("memory.db", tmp_path / "eighth")
    return tmp_path / "eighth" / "memory.db"


def set_schema(path: Path, number: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM threadmem_migration WHERE number > ?", (MIGRATIONS[0].number,))
        connection.execute("UPDATE threadmem_migration SET number = ?", (number,))
    connection.close()


def test_a_new_database_records_every_migration(url: str) -> None:
    database = open_database(url)
    rows = database.read(
        lambda conn: conn.all(
            Statement.of(
                sqlite="SELECT number, name FROM threadmem_migration ORDER BY number",
                postgresql="SELECT number, name FROM threadmem_migration ORDER BY number",
            )
        )
    )
    database.close()
    assert rows == [(migration.number, migration.name) for migration in MIGRATIONS]


def test_opening_again_changes_nothing(filled: Path) -> None:
    before = dump(filled)
    open_database(filled).close()
    assert dump(filled) == before


def test_a_newer_database_is_refused_and_left_as_it_is(filled: Path) -> None:
    set_schema(filled, 99)
    before = dump(filled)
    with pytest.raises(NewerDatabaseError, match=r"99.*upgrade the package"):
        MemorySystem(filled)
    assert dump(filled) == before


def test_a_refused_database_is_not_kept_open(filled: Path) -> None:
    set_schema(filled, 99)
    with pytest.raises(NewerDatabaseError):
        open_database(filled)
    assert [path.name for path in filled.parent.iterdir()] == [filled.name]  # no -wal, no -shm


def test_a_database_before_the_first_migration_is_refused_and_left_as_it_is(filled: Path) -> None:
    set_schema(filled, MIGRATIONS[0].number - 1)
    before = dump(filled)
    with pytest.raises(PersistenceError, match="open it with the version that wrote it"):
        MemorySystem(filled)
    assert dump(filled) == before


def test_an_older_database_gets_what_it_lacks_in_order(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    later = [Migration(n, f"step {n}", lambda conn, n=n: ran.append(n)) for n in NEXT]  # type: ignore[misc]
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, *later))
    open_database(filled).close()
    open_database(filled).close()
    assert ran == [*NEXT]


def definitions(path: Path) -> dict[str, object]:
    """The columns of all tables and the statements of all indexes of a file, by name."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        found = {
            name: sql if kind == "index" else connection.execute(f"PRAGMA table_info({name})").fetchall()
            for name, kind, sql in rows
        }
    connection.close()
    return found


@pytest.mark.parametrize("index", ["threadmem_item_expiry", "threadmem_node_unsaid"])
def test_a_database_of_the_first_schema_gets_what_a_new_database_has(
    eighth: Path, filled: Path, index: str
) -> None:
    with sqlite3.connect(eighth) as connection:
        connection.execute(f"DROP INDEX {index}")
    connection.close()
    set_schema(eighth, MIGRATIONS[0].number)
    open_database(eighth).close()
    assert definitions(eighth) == definitions(filled)


def test_a_migration_that_is_interrupted_anywhere_runs_again_from_the_start(
    eighth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, script, left = dump(eighth), Conn.script, 0

    def interrupted(self: Conn, *statements: str) -> None:
        nonlocal left
        for statement in statements:
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            script(self, statement)

    monkeypatch.setattr(Conn, "script", interrupted)
    for steps in itertools.count():
        left = steps
        try:
            open_database(eighth).close()
            break
        except KeyboardInterrupt:
            assert dump(eighth) == before
    assert steps > 10
    with MemorySystem(eighth, owner="ada", embeddings=False) as system:
        assert system.verify().problems == ()


def test_a_migration_keeps_damage_visible(eighth: Path) -> None:
    with sqlite3.connect(eighth) as connection:
        connection.execute(
            "UPDATE threadmem_node SET body = replace(body, 'fish', 'swim') WHERE message = 'q1'"
        )
    connection.close()
    with MemorySystem(eighth, owner="ada", embeddings=False) as system:
        [problem] = system.verify().problems
    assert "'threadmem_node' differs from the written row" in problem


def test_a_read_only_database_of_an_older_schema_is_refused_and_left_as_it_is(eighth: Path) -> None:
    before = dump(eighth)
    with pytest.raises(OlderDatabaseError, match="open it once with MemorySystem"):
        MemorySystem(eighth, read_only=True)
    assert dump(eighth) == before


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(conn: Conn) -> None:
        conn.script("CREATE TABLE half_done (id INTEGER)", "DELETE FROM threadmem_node")
        raise RuntimeError("power cut")

    before = dump(filled)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, Migration(NEXT[0], "half", half)))
    with pytest.raises(RuntimeError, match="power cut"):
        open_database(filled)
    assert dump(filled) == before


def test_tables_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE tree (id INTEGER, theirs TEXT)")
        connection.execute("INSERT INTO tree VALUES (1, 'kept')")
    connection.close()
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("a", "b")
        system.conversation("c").reset()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM tree").fetchall() == [(1, "kept")]
    connection.close()


def test_migrations_are_numbered_without_gaps() -> None:
    first = MIGRATIONS[0].number
    assert [migration.number for migration in MIGRATIONS] == [*range(first, first + len(MIGRATIONS))]


def test_a_memory_in_memory_needs_no_file() -> None:
    memory = ChatMemory(embeddings=False)
    memory.append("a", "b")
    memory.close()
