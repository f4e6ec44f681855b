"""Statements: written once, run on either database, with values bound and never formatted."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

import pytest
from conftest import partitions_of
from sqlalchemy import bindparam, select, text

import langchain_threadmem
from langchain_threadmem import MemorySystem
from langchain_threadmem.index import queries
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.maintenance.removal import tables
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree import trees


class FakeCursor:
    """Records what a `Conn` hands to the driver."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def execute(self, sql: str, parameters: Any = ()) -> None:
        self.calls.append((sql, list(parameters)))

    def executemany(self, sql: str, rows: Any) -> None:
        self.calls.append((sql, [list(row) for row in rows]))

    def fetchall(self) -> list[tuple[int, ...]]:
        return [(1,), (2,)]


def hostile() -> list[str]:
    return ["x') OR '1'='1", "%", "_", "?", ":name", "%s", "%(name)s", "\\", '"', ";--", "$1", "🧵"]


BOTH = Statement(
    select(schema.tree.c.id).where(
        schema.tree.c.owner == bindparam("owner"), schema.tree.c.conversation == bindparam("name")
    ),
    "name",
    "owner",
)


@pytest.mark.parametrize(("dialect", "mark"), [("sqlite", "?"), ("postgresql", "%s")])
def test_each_database_gets_its_own_parameter_marks(dialect: str, mark: str) -> None:
    assert BOTH.sql(dialect).count(mark) == 2


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_values_are_put_in_the_order_the_text_wants(dialect: Any) -> None:
    cursor = FakeCursor()
    Conn(cursor, dialect).run(BOTH, "chat", "ada")
    assert cursor.calls[0][1] == ["ada", "chat"]


def test_a_statement_is_compiled_once() -> None:
    assert BOTH.form("sqlite") is BOTH.form("sqlite")


def test_an_insert_takes_the_columns_in_the_order_of_the_table() -> None:
    cursor = FakeCursor()
    Conn(cursor, "sqlite").many(insert_of(schema.message_summary), [(1, "title", "text")])
    sql, rows = cursor.calls[0]
    assert rows == [[1, "title", "text"]]
    assert "(key, title, summary)" in sql.replace("\n", "").replace('"', "")


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_replacing_overwrites_all_but_the_key(dialect: str) -> None:
    sql = insert_of(schema.watermark, replace=True).sql(dialect)
    assert "ON CONFLICT (tree, name) DO UPDATE" in sql
    assert "tree = excluded" not in sql


def test_one_is_the_first_row() -> None:
    assert Conn(FakeCursor(), "sqlite").one(BOTH, "a", "b") == (1,)


def test_a_script_runs_statement_by_statement() -> None:
    cursor = FakeCursor()
    Conn(cursor, "sqlite").script("one", "two")
    assert [sql for sql, _ in cursor.calls] == ["one", "two"]


def test_a_statement_may_be_written_out_for_each_database() -> None:
    statement = Statement.of(sqlite="A ?", postgresql="B %s")
    assert (statement.sql("sqlite"), statement.sql("postgresql")) == ("A ?", "B %s")


@pytest.mark.parametrize("value", hostile())
def test_hostile_values_are_only_values(system: MemorySystem, value: str) -> None:
    echo = Statement(select(bindparam("value", type_=schema.node.c.body.type)), "value")
    rows = system.runtime.database.read(lambda conn: conn.all(echo, value))
    assert rows == [(value,)]


def test_any_number_of_keys_fits_one_parameter(system: MemorySystem) -> None:
    nodes = system.conversation("c").extend(f"m{n}" for n in range(50))
    of_tree = select(schema.node.c.seq).where(within(schema.node.c.seq, "seqs"))
    statement = Statement(of_tree.where(schema.node.c.tree == bindparam("tree")), "seqs", "tree")

    def read(conn: Conn) -> int:
        tree = trees.find(conn, system.owner, "c")
        return len(conn.all(statement, json.dumps(list(range(100_000))), tree))

    assert system.runtime.database.read(read) == len(nodes) == 50


def test_text_without_parameters_needs_no_names() -> None:
    assert Statement(text("SELECT 1")).sql("sqlite") == "SELECT 1"


def _statements() -> dict[str, str]:
    """The statements of the package that read or change rows, as SQLite gets them."""
    found = {}
    for module in pkgutil.walk_packages(langchain_threadmem.__path__, "langchain_threadmem."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, Statement):
                    sql = value.sql("sqlite")
                    if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
                        found[f"{module.name}.{name}"] = sql
    return found


def _plan(system: MemorySystem, sql: str) -> list[str]:
    """The steps of a statement on SQLite."""
    explain = Statement.of(sqlite=f"EXPLAIN QUERY PLAN {sql}", postgresql="")
    rows = system.runtime.database.read(lambda conn: conn.all(explain, *[1] * sql.count("?")))
    return [row[3] for row in rows]


def test_no_statement_reads_all_nodes_of_all_conversations() -> None:
    with MemorySystem() as system:
        scans = [
            name
            for name, sql in _statements().items()
            for step in _plan(system, sql)
            if step.startswith("SCAN threadmem_node")
        ]
    assert scans == []


def test_the_owners_of_a_thread_are_found_by_an_index() -> None:
    with MemorySystem() as system:
        (step,) = _plan(system, checkpoint_queries._OWNERS_OF_THREAD.sql("sqlite"))
    assert step == "SEARCH threadmem_tree USING INDEX threadmem_tree_conversation (conversation=?)"


@pytest.mark.postgres
def test_the_documents_of_a_conversation_are_found_by_their_keys_among_many(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    if partitions_of(postgres_url):
        pytest.skip("the statements are those of a database without partitions")
    with MemorySystem(postgres_url, embeddings=False) as system:
        system.conversation("c").append("question", "answer")
    table = schema.document.name
    deletion, count = queries._REMOVE, tables._COUNT[table]
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            f"INSERT INTO {table} SELECT (1::bigint << 60) + n, '', 0, '', 0 FROM generate_series(1, 30000) n"
        )
        connection.execute(f"ANALYZE {table}")
        for statement in (deletion, count):
            sql = statement.sql("postgresql")
            steps = connection.execute(f"EXPLAIN {sql}", [1] * sql.count("%s")).fetchall()
            assert not any(f"Seq Scan on {table}" in step for (step,) in steps), steps
        connection.rollback()


@pytest.mark.parametrize(
    ("name", "step"),
    [
        (
            "long_term.lists.queries._ROWS",
            "earlier USING COVERING INDEX threadmem_node_message (tree=? AND message=?)",
        ),
        (
            "summaries.queries._FIRSTS",
            "threadmem_node USING COVERING INDEX threadmem_node_seq (tree=? AND seq=?)",
        ),
        (
            "tree.turn_branches._BEFORE",
            "earlier USING INDEX threadmem_node_message (tree=? AND message=?)",
        ),
    ],
)
def test_one_node_is_found_without_reading_the_others(name: str, step: str) -> None:
    with MemorySystem() as system:
        assert f"SEARCH {step}" in _plan(system, _statements()[f"langchain_threadmem.{name}"])


def test_a_put_finds_the_expired_items_of_its_namespace_by_an_index() -> None:
    with MemorySystem() as system:
        steps = _plan(system, _statements()["langchain_threadmem.langgraph.items.queries._EXPIRED_IN"])
    index = "threadmem_item_expiry (namespace=? AND expires<?)"
    assert [step for step in steps if "threadmem_item" in step] == [
        f"SEARCH threadmem_item USING COVERING INDEX {index}"
    ]


def test_items_are_read_by_their_ids() -> None:
    with MemorySystem() as system:
        steps = _plan(system, _statements()["langchain_threadmem.langgraph.items.queries._BY_IDS"])
    assert steps[0] == "SEARCH threadmem_item USING INTEGER PRIMARY KEY (rowid=?)"
    assert "SEARCH threadmem_namespace USING INTEGER PRIMARY KEY (rowid=?)" in steps
