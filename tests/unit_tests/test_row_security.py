"""Row-level security of PostgreSQL: a restricted role sees and writes the rows of one owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ROLE, Secured, WordEmbeddings, secured_database
from langchain_core.language_models import FakeListChatModel
from sqlalchemy.engine import make_url

from langchain_threadmem import (
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemSaver,
    ThreadMemStore,
    create_threaded_chat,
)
from langchain_threadmem.apps.cli.main import main
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.langgraph.items.verbs import owners
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.row_security import secure

pytestmark = pytest.mark.postgres
TABLES = [*(name for name in schema.metadata.tables if name != schema.migration.name), schema.LEXICON]
REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.WithCheckOptionViolation)
OTHERS = (
    "INSERT INTO threadmem_graft SELECT key, tree, key FROM threadmem_node ON CONFLICT DO NOTHING",
    "INSERT INTO threadmem_summary_draft SELECT id, 'hash', '[]' FROM threadmem_tree",
    "INSERT INTO threadmem_placement SELECT key, 'nearest', '[]' FROM threadmem_node ON CONFLICT DO NOTHING",
    "INSERT INTO threadmem_profile SELECT id, 'title', '{}' FROM threadmem_tree ON CONFLICT DO NOTHING",
    "INSERT INTO threadmem_message_summary SELECT key, 't', 's' FROM threadmem_node ON CONFLICT DO NOTHING",
    "INSERT INTO threadmem_key_proof SELECT DISTINCT owner, 'proof' FROM threadmem_tree",
    "INSERT INTO threadmem_chat_memory SELECT DISTINCT owner, 'list', '[]', 0 FROM threadmem_tree",
    "INSERT INTO threadmem_lineage SELECT id, 1, 9, '', '' FROM threadmem_tree ON CONFLICT DO NOTHING",
    "INSERT INTO threadmem_write SELECT id, '', '', '', 0, '', '', '', '' FROM threadmem_tree",
)
"""Rows of the tables that `fill` leaves empty."""
Run = Callable[..., list[Any]]
Capsys = pytest.CaptureFixture[str]


def fill(system: MemorySystem) -> None:
    secret = f"the vault of {system.owner} opens with heron"
    system.conversation("talk").append(secret, "Noted.")
    corrected = system.conversation("corrected", node_selector=SemanticNodeSelector())
    corrected.append(secret, "Noted.")
    [human, _] = corrected.append("And the other vault?", "Noted too.")
    corrected.place(human.id, 2 if human.parent_id is None else None)
    system.flush()
    system.query("heron")
    system.conversation("other").recall("heron", scope="owner")
    system.summarize_session("talk")
    ThreadMemStore(system, index=True).put(("facts",), "vault", {"text": secret})
    model = FakeListChatModel(responses=["Noted."])
    chat = create_threaded_chat(model, system, checkpointer=ThreadMemSaver(system))
    for text in (secret, "How do figs grow?", f"And who says that {secret}?"):
        chat.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "graph"}})


@pytest.fixture(scope="module")
def secured(postgres_url: str) -> Iterator[Secured]:
    """A secured database with rows of two owners in each table."""
    with secured_database(postgres_url) as found:
        with MemorySystem(found.restricted, embeddings=WordEmbeddings()) as system:
            for owner in ("ada", "bob"):
                fill(system.for_owner(owner))
        with psycopg.connect(found.owning) as connection:
            for statement in OTHERS:
                connection.execute(statement)
        yield found


@pytest.fixture
def run(secured: Secured) -> Iterator[Run]:
    """Runs a statement as the restricted role, for an owner or for none, and takes its changes back."""
    with psycopg.connect(secured.restricted) as connection:

        def run(statement: str, owner: str | None = None) -> list[Any]:
            try:
                if owner is not None:
                    connection.execute("SELECT set_config('threadmem.owner', %s, true)", [owner])
                cursor = connection.execute(statement)
                return cursor.fetchall() if cursor.description else [cursor.rowcount]
            finally:
                connection.rollback()

        yield run


def by_owning_role(secured: Secured, statement: str) -> list[Any]:
    with psycopg.connect(secured.owning) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture(params=["public", ROLE])
def place(request: pytest.FixtureRequest) -> str:
    """The schema of the tables, or of the views."""
    return str(request.param)


@pytest.mark.parametrize("table", TABLES)
def test_each_row_of_a_table_is_seen_for_one_owner_alone(
    secured: Secured, run: Run, place: str, table: str
) -> None:
    select, every = (f"SELECT t::text FROM {schema}.{table} t" for schema in (place, "public"))
    ada, bob = set(run(select, "ada")), set(run(select, "bob"))
    assert ada
    assert bob
    assert ada.isdisjoint(bob)
    assert ada | bob == set(by_owning_role(secured, every))
    assert run(select) == run(select, "eve") == []


@pytest.mark.parametrize("table", TABLES)
def test_a_row_of_another_owner_is_neither_changed_nor_deleted(run: Run, place: str, table: str) -> None:
    column = {"threadmem_lexicon": "words", "threadmem_key_proof": "proof"}.get(table)
    column = column or next(iter(schema.metadata.tables[table].columns)).name
    assert run(f"UPDATE {place}.{table} SET {column} = {column}", "eve") == [0]
    assert run(f"DELETE FROM {place}.{table}", "eve") == [0]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {place}.threadmem_tree SET owner = 'bob 2'",
        "INSERT INTO {place}.threadmem_visit_round VALUES ('bob 2', 0)",
        "INSERT INTO {place}.threadmem_watermark VALUES ({tree}, 'none', 0, 0, 0)",
        "INSERT INTO {place}.threadmem_document VALUES (({segment}::bigint << 24) + 9, '', 0, '', 0)",
        "INSERT INTO {place}.threadmem_item VALUES (0, {namespace}, '', 0, 0, NULL, NULL, 1, '')",
    ],
)
def test_a_write_for_another_owner_is_refused(secured: Secured, run: Run, place: str, statement: str) -> None:
    of_bob = {
        "tree": "SELECT id FROM threadmem_tree WHERE owner = 'bob'",
        "segment": "SELECT s.id FROM threadmem_segment s JOIN threadmem_tree t ON t.id = tree "
        "WHERE owner = 'bob'",
        "namespace": "SELECT id FROM threadmem_namespace WHERE owner = 'bob'",
    }
    found = {name: by_owning_role(secured, select)[0][0] for name, select in of_bob.items()}
    with pytest.raises(REFUSED, match=r"row-level security|check option"):
        run(statement.format(place=place, **found), "ada")


def test_the_owner_of_a_transaction_is_forgotten_at_its_end(secured: Secured) -> None:
    with psycopg.connect(secured.restricted, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SELECT set_config('threadmem.owner', 'ada', true)")
            assert connection.execute("SELECT id FROM threadmem_tree").fetchall()
        assert connection.execute("SELECT id FROM threadmem_tree").fetchall() == []


def test_the_migrations_are_read_only(run: Run) -> None:
    with pytest.raises(REFUSED, match="permission denied"):
        run("DELETE FROM threadmem_migration", "ada")


def test_an_owner_is_counted_and_verified_without_other_rights(secured: Secured, capsys: Capsys) -> None:
    with MemorySystem(secured.restricted, owner="ada", embeddings=False) as system:
        found = system.stats()
    assert found.messages > 0
    assert found.database.owners is None
    assert main(["stats", secured.restricted, "--owner", "ada"]) == 0
    assert "all owners" in capsys.readouterr().out


def test_work_on_all_owners_needs_the_owning_role(secured: Secured, tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match="the role that owns the tables"):
        convert(secured.restricted, tmp_path / "copy", owner="ada")
    with MemorySystem(tmp_path / "memory.db", owner="eve", embeddings=False) as system:
        system.conversation("talk").append("One", "Two")
    with pytest.raises(PersistenceError, match="the role that owns the tables"):
        convert(tmp_path / "memory.db", secured.restricted, owner="eve")
    with (
        MemorySystem(secured.restricted, owner="user_id") as system,
        pytest.raises(PersistenceError, match="the role that owns the tables"),
    ):
        owners(system.resources)


def test_an_erased_owner_leaves_no_row(postgres_url: str) -> None:
    with secured_database(postgres_url) as secured:
        with MemorySystem(secured.restricted, owner="ada", embeddings=WordEmbeddings()) as system:
            fill(system)
            assert system.erase().ok
        left = [table for table in TABLES if by_owning_role(secured, f"SELECT t::text FROM {table} t")]
        assert left == []


def test_securing_twice_is_securing_once_and_can_be_taken_back(postgres_url: str, capsys: Capsys) -> None:
    def state(secured: Secured) -> list[list[Any]]:
        policies = "SELECT tablename, policyname, qual FROM pg_policies ORDER BY 1"
        tables = "SELECT relname, relrowsecurity, relacl::text FROM pg_class WHERE relname ~ '^threadmem' "
        return [by_owning_role(secured, select) for select in (policies, f"{tables} ORDER BY 1, 2")]

    with secured_database(postgres_url) as secured:
        on = state(secured)
        assert {table for table, *_ in on[0]} == set(TABLES)
        assert main(["secure", secured.owning, "--role", ROLE]) == 0
        assert state(secured) == on
        capsys.readouterr()
        assert main(["secure", secured.owning, "--role", ROLE, "--off", "--sql"]) == 0
        assert state(secured) == on
        script = capsys.readouterr().out
        assert main(["secure", secured.owning, "--role", ROLE, "--off"]) == 0
        policies, tables = off = state(secured)
        assert policies == []
        assert [name for name, secure, rights in tables if secure or ROLE in (rights or "")] == []
        with pytest.raises(PersistenceError, match="permission denied"):
            MemorySystem(secured.restricted, owner="ada")
        assert main(["secure", secured.owning, "--role", ROLE]) == 0
        assert state(secured) == on
        with psycopg.connect(secured.owning) as connection:
            connection.execute(script)
        assert state(secured) == off


@pytest.mark.parametrize(
    ("role", "why"), [("postgres", "superuser"), ("nobody", "no role 'nobody'"), ('a"b', "no role")]
)
def test_a_role_that_policies_cannot_restrict_is_refused(secured: Secured, role: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        secure(secured.owning, role)


def test_a_role_cannot_lift_its_own_restriction(secured: Secured) -> None:
    with pytest.raises(PersistenceError, match="must be owner"):
        secure(secured.restricted, ROLE, off=True)


def test_sqlite_has_no_row_level_security() -> None:
    with pytest.raises(InputError, match="PostgreSQL"):
        secure("sqlite:///memory.db", ROLE)


def test_a_role_that_cannot_create_the_tables_is_told_who_can(
    secured: Secured, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--pgbouncer"):
        pytest.skip("PgBouncer refuses the option search_path of a connection")
    url = make_url(secured.restricted).update_query_dict({"options": "-c search_path=empty"})
    with psycopg.connect(secured.owning, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA empty")
        connection.execute("GRANT USAGE ON SCHEMA empty TO PUBLIC")
    with pytest.raises(PersistenceError, match="threadmem secure"):
        MemorySystem(url.render_as_string(hide_password=False))
