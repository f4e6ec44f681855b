"""Databases of PostgreSQL whose tables are partitioned by conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import ROLE, WordEmbeddings, create_role
from sqlalchemy.engine import make_url

from langchain_threadmem import ExtractiveSummarizer, MemorySystem, SemanticNodeSelector
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.storage.partitioning.compiler import partitioned_tables
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.postgres import PipelinedConn
from langchain_threadmem.storage.row_security import secure

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.postgres
PARTITIONS = 4
ROWS_OF_OTHERS = {
    "tree (id, owner, conversation, scope, version, epoch, created, sealed)": "n, n, n, '', 0, 0, 0, false",
    "segment (id, tree)": "n, n",
    "node (key, tree, seq, message, role, body, created, state)": "n << 24, n, 1, n, 'human', '', 0, 0",
    "message_summary (key, tree, title, summary)": "n << 24, n, '', ''",
    "placement (key, tree, reason, chances)": "n << 24, n, '', '[]'",
    "unit (key, tree, visits)": "n << 24, n, 1",
    "embedding (key, tree, model, vector)": "n << 24, n, 'words', ''",
    "document (key, tree, terms, traits, speaker, time)": "n << 24, n, '', 0, '', 0",
}
"""Rows of other conversations, with the number `n`: tables with columns, and values."""
TALKS = [f"talk {n}" for n in range(6)]


@pytest.fixture
def database(server_url: str) -> Iterator[str]:
    """A new database."""
    name = f"partitions_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        create_role(connection)
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def opened(url: str, **options: Any) -> MemorySystem:
    return MemorySystem(url, embeddings=WordEmbeddings(), summarizer=ExtractiveSummarizer(), **options)


def fill(system: MemorySystem) -> None:
    for talk in TALKS:
        memory = system.conversation(talk, node_selector=SemanticNodeSelector())
        for subject in ("figs", "violins", "figs"):
            memory.append(f"What about {subject} in {talk}?", f"All about {subject}.")
        memory.edit(1, f"What about fresh figs in {talk}?")
        memory.append("And the violins?", "They are in tune.")
        system.summarize_session(talk)
    system.flush()


def seen(system: MemorySystem) -> list[Any]:
    """What a memory returns."""
    memories = [system.conversation(talk) for talk in TALKS]
    return [
        [[node.message.text for node in memory.history] for memory in memories],
        [[hit.node.id for hit in memory.recall("figs")] for memory in memories],
        [hit.node.message.text for hit in memories[0].recall("violins in talk 3", scope="owner")],
        [[thread.title for thread in memory.list_threads()] for memory in memories],
        [info.id for info in system.list_conversations()],
        system.verify().problems,
    ]


def test_a_partitioned_memory_is_the_same_memory(database: str, tmp_path: Path) -> None:
    with opened(database) as system:
        fill(system)
        before = seen(system)
        tables = partition(database, PARTITIONS)
        assert {table.name for table in tables} == {table.name for table in partitioned_tables()}
        assert all(table.rows for table in tables if table.name.endswith(("node", "lexicon", "document")))
        assert seen(system) == before
        # This process has opened the tables before they were partitioned.
        system.conversation("late").append("Where do late figs grow?", "In the south.")
        assert system.conversation("late").recall("figs")[0].node.message.text == "Where do late figs grow?"
    secure(database, ROLE)
    app = make_url(database).set(username=ROLE).render_as_string(hide_password=False)
    with opened(app) as system:
        assert seen(system)[:4] == before[:4]
        system.conversation(TALKS[0]).append("More figs?", "Plenty.")
        assert system.erase(conversation=TALKS[1]).ok
        system.flush()
    with psycopg.connect(database) as connection:
        for table in partitioned_tables():
            misplaced = (
                f"SELECT count(*) FROM {table.name} r JOIN threadmem_tree t ON t.id = r.tree WHERE NOT "
                f"satisfies_hash_partition('{table.name}'::regclass, {PARTITIONS}, "
                "substring(r.tableoid::regclass::text from '[0-9]+$')::int, r.tree)"
            )
            assert connection.execute(misplaced).fetchall() == [(0,)]
            if "key" in table.c:
                of_other = (
                    f"SELECT count(*) FROM {table.name} r LEFT JOIN threadmem_segment s "
                    "ON s.id = r.key >> 24 WHERE s.tree IS DISTINCT FROM r.tree"
                )
                assert connection.execute(of_other).fetchall() == [(0,)]
    convert(database, tmp_path / "copy.db")
    with opened(database) as system, opened(str(tmp_path / "copy.db")) as copy:
        assert [talk for talk in copy.conversations() if talk != TALKS[1]] == system.conversations()
        assert copy.conversation("late").history == system.conversation("late").history


def test_tables_that_an_administrator_partitions_keep_their_owner_and_rights(database: str) -> None:
    with opened(database) as system:
        fill(system)
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            connection.execute(f"ALTER TABLE {table} OWNER TO {ROLE}")
        connection.execute("GRANT SELECT ON threadmem_node TO pg_monitor WITH GRANT OPTION")
        connection.execute("GRANT SELECT ON threadmem_node TO PUBLIC")
    partition(database, PARTITIONS)
    with psycopg.connect(database) as connection:
        rights = "has_table_privilege(%s, 'threadmem_node', %s)"
        for role, right, given in (
            ("pg_monitor", "SELECT WITH GRANT OPTION", True),
            ("pg_monitor", "INSERT", False),
            ("pg_read_all_settings", "SELECT", True),
            ("pg_read_all_settings", "SELECT WITH GRANT OPTION", False),
        ):
            assert connection.execute(f"SELECT {rights}", (role, right)).fetchall() == [(given,)]
    app = make_url(database).set(username=ROLE).render_as_string(hide_password=False)
    with opened(app) as system:
        system.conversation(TALKS[0]).append("More figs?", "Plenty.")
        assert system.conversation(TALKS[0]).recall("figs")
        assert system.erase(conversation=TALKS[0]).ok


def test_only_a_database_of_postgresql_without_partitions_is_partitioned(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["partition", database, "--number", "1"]) == 2
    assert "partitions=1 is not a number from 2 to 1024" in capsys.readouterr().err
    assert main(["partition", database, "--number", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["threadmem_node"] == 0
    assert main(["partition", database]) == 2
    assert "has 3 partitions already" in capsys.readouterr().err
    assert main(["partition", str(tmp_path / "memory.db")]) == 2
    assert "is SQLite, which has no partitions" in capsys.readouterr().err


def test_a_call_reads_one_partition_of_each_table(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(database) as system:
        fill(system)
        partition(database, PARTITIONS)
    sent: list[tuple[str, Any]] = []
    plain = PipelinedConn.all

    def noted(self: PipelinedConn, statement: Any, *values: Any) -> Any:
        sql, order = statement.form("partitioned")
        sent.append((sql, values if order is None else order(values)))
        return plain(self, statement, *values)

    monkeypatch.setattr(PipelinedConn, "all", noted)
    with opened(database, owner="ada") as system:
        memory = system.conversation("talk", node_selector=SemanticNodeSelector())
        for subject in ("figs", "violins", "figs"):
            memory.append(f"What about {subject}?", f"All about {subject}.")
        assert memory.messages
        assert memory.recall("figs")
        assert memory.list_threads()
        memory.edit(1, "What about fresh figs?")
        system.flush()
    reads = [
        (sql, values) for sql, values in sent if sql.startswith(("SELECT", "WITH RECURSIVE", "WITH found"))
    ]
    assert len(reads) > 50
    names = {table.name for table in partitioned_tables()}
    with psycopg.connect(database) as connection:
        # Tables of a few rows would be read as a whole, without looking up any row.
        numbers = "generate_series(1000000::bigint, 1020000)"
        for columns, row in ROWS_OF_OTHERS.items():
            connection.execute(f"INSERT INTO threadmem_{columns} SELECT {row} FROM {numbers} n")
        connection.execute("ANALYZE")
        for sql, values in reads:
            ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values).fetchall()
            for table, number in read_partitions(plan[0]["Plan"], names).items():
                assert number == 1, (table, sql)


def read_partitions(plan: Any, names: set[str]) -> dict[str, int]:
    """The number of partitions of each table that a plan has read."""
    read: dict[str, set[str]] = {}

    def walk(node: Any) -> None:
        table = node.get("Relation Name", "").rpartition("_")[0]
        if table in names and node["Actual Loops"]:
            read.setdefault(table, set()).add(node["Relation Name"])
        for child in node.get("Plans", []):
            walk(child)

    walk(plan)
    return {table: len(partitions) for table, partitions in read.items()}
