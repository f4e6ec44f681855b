"""Settings of a PostgreSQL server, a database or a role that differ from the defaults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError, PersistenceError, StorageBusyError
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.migrations import LOCK
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.statements import Conn, Statement

pytestmark = pytest.mark.postgres


@contextmanager
def new_database(server: str, encoding: str = "UTF8") -> Iterator[str]:
    """A database without tables."""
    name = f"other_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def new_role(server: str, options: str = "") -> Iterator[str]:
    """The URL of a role that may use the tables of a database."""
    name = f"role_{uuid4().hex}"
    MemorySystem(server, owner="anyone", embeddings=False).close()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN {options}")
        for kind, rights in (("TABLES", "SELECT, INSERT, UPDATE, DELETE"), ("SEQUENCES", "USAGE")):
            connection.execute(f"GRANT {rights} ON ALL {kind} IN SCHEMA public TO {name}")
        yield make_url(server).set(username=name).render_as_string(hide_password=False)
        connection.execute(f"DROP OWNED BY {name}")
        connection.execute(f"DROP ROLE {name}")


def with_setting(url: str, setting: str) -> str:
    options = {"options": f"-c {setting}"}
    return make_url(url).update_query_dict(options).render_as_string(hide_password=False)


def by_threads(system: MemorySystem, count: int) -> None:
    memory = system.conversation("busy")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: memory.append(f"q{n}", f"a{n}"), range(count)))


def by_tasks(system: MemorySystem, count: int) -> None:
    async def main() -> None:
        memory = system.conversation("busy")
        await asyncio.gather(*(memory.aappend(f"q{n}", f"a{n}") for n in range(count)))

    asyncio.run(main())


@pytest.mark.parametrize("level", ["repeatable\\ read", "serializable"])
def test_a_write_sees_what_others_have_committed_whatever_the_default_isolation(
    server_url: str, owner: str, level: str
) -> None:
    url = with_setting(server_url, f"default_transaction_isolation={level}")
    shown = Statement.of(sqlite="", postgresql="SHOW transaction_isolation")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        by_threads(system, 24)
        assert len(system.conversation("busy").history) == 48
    database = open_database(url)
    assert database.write(lambda conn: conn.all(shown)) == [("read committed",)]
    database.close()


@pytest.mark.parametrize("run", [by_threads, by_tasks])
def test_a_pool_that_is_larger_than_the_limit_of_its_role_serves_all_callers(
    server_url: str, owner: str, run: Callable[[MemorySystem, int], None]
) -> None:
    with (
        new_role(server_url, "CONNECTION LIMIT 2") as url,
        MemorySystem(url, owner=owner, embeddings=False) as system,
    ):
        run(system, 24)
        assert len(system.conversation("busy").history) == 48


def test_a_role_without_any_connection_is_told(server_url: str) -> None:
    with (
        new_role(server_url, "CONNECTION LIMIT 0") as url,
        pytest.raises(PersistenceError, match="too many connections for role"),
    ):
        open_database(url)


@pytest.mark.parametrize("loop", ["sync", "async"])
def test_the_texts_of_a_database_without_an_encoding_are_texts(
    server_url: str, owner: str, loop: str
) -> None:
    with new_database(server_url, "SQL_ASCII") as url:
        with MemorySystem(url, owner=owner, embeddings=False) as system:
            memory = system.conversation("日本")
            memory.append("Where does müsli come from? 😀", "Überall her.")
            found = asyncio.run(memory.arecall("müsli")) if loop == "async" else memory.recall("müsli")
            assert found[0].node.message.text == "Where does müsli come from? 😀"
        with MemorySystem(url, owner=owner, embeddings=False) as system:
            texts = [message.text for message in system.conversation("日本").messages]
            assert texts == ["Where does müsli come from? 😀", "Überall her."]


def test_a_character_that_the_encoding_of_a_database_lacks_is_named(server_url: str, owner: str) -> None:
    with (
        new_database(server_url, "LATIN1") as url,
        MemorySystem(url, owner=owner, embeddings=False) as system,
    ):
        memory = system.conversation("c")
        memory.append("Müsli?", "Ja.")
        with pytest.raises(PersistenceError, match=r'(?s)no equivalent in encoding "LATIN1".*encoding UTF8'):
            memory.append("日本")
        assert [message.text for message in memory.messages] == ["Müsli?", "Ja."]


@pytest.mark.parametrize("loop", ["sync", "async"])
def test_a_wait_for_a_lock_that_the_server_ends_is_a_busy_database(
    server_url: str, owner: str, loop: str
) -> None:
    url = with_setting(server_url, "lock_timeout=50")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("q", "a")
        with psycopg.connect(server_url) as other:
            other.execute("SELECT FROM threadmem_tree WHERE owner = %s FOR UPDATE", [owner])
            with pytest.raises(StorageBusyError, match=r"(?s)lock_timeout.*nothing was written; try again"):
                asyncio.run(memory.aappend("q", "a")) if loop == "async" else memory.append("q", "a")
        assert len(memory.history) == 2


@pytest.mark.parametrize("change", ["creation", "partition"])
def test_a_change_of_the_tables_waits_for_another_process_longer_than_a_statement_may_take(
    server_url: str, change: str
) -> None:
    waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = %s::oid"

    def changed(url: str) -> None:
        if change == "creation":
            open_database(url).close()
        else:
            partition(url, 2)

    with new_database(server_url) as url, psycopg.connect(url) as other:
        if change == "partition":
            open_database(url).close()
        [number] = other.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()[
            0
        ]
        other.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(changed, with_setting(url, "statement_timeout=500"))
            while not waits.done() and not other.execute(waiting, [number]).fetchall():
                time.sleep(0.01)
            time.sleep(0.8)  # longer than statement_timeout
            other.commit()
            waits.result(60)


def test_a_write_without_the_rights_says_who_gives_them(server_url: str, owner: str) -> None:
    with new_role(server_url) as url, psycopg.connect(server_url, autocommit=True) as connection:
        role = make_url(url).username
        connection.execute(f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role}")
        with MemorySystem(url, owner=owner, embeddings=False) as system:
            with pytest.raises(PersistenceError, match=r"permission denied for sequence.*threadmem secure"):
                system.conversation("c").append("q")
            assert system.conversations() == []


def test_a_role_that_may_only_read_reads_and_is_told_why_a_write_fails(server_url: str, owner: str) -> None:
    with MemorySystem(server_url, owner=owner, embeddings=False) as system:
        system.conversation("c").append("Figs?", "Yes.")
    url = with_setting(server_url, "default_transaction_read_only=on")
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        assert [message.text for message in memory.messages] == ["Figs?", "Yes."]
        with pytest.raises(PersistenceError, match=r"default_transaction_read_only is on.*read_only=True"):
            memory.append("Plums?")
    with MemorySystem(url, owner=owner, embeddings=False, read_only=True) as system:
        assert [hit.node.message.text for hit in system.conversation("c").recall("figs")] == ["Figs?"]


@pytest.mark.parametrize("loop", ["sync", "async"])
@pytest.mark.parametrize("first", ["nowhere:1", "nowhere", "[::1]:1"])
def test_a_url_names_several_servers_as_libpq_does(
    server_url: str, owner: str, first: str, loop: str
) -> None:
    server = make_url(server_url)
    folder = quote(str(server.query["host"]), safe="")  # of a Unix socket
    url = (
        f"postgresql://{server.username}:a,b@{first},{folder}:{server.port or 5432}/{server.database}"
        "?connect_timeout=2&target_session_attrs=read-write"
    )
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        asyncio.run(memory.aappend("Figs?")) if loop == "async" else memory.append("Figs?")
        assert [message.text for message in memory.messages] == ["Figs?"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("pgbouncer=true", '"pgbouncer".*options of libpq, and pool_size'),
        ("row_factory=dict", '"row_factory".*options of libpq'),
        ("host=a&host=b&port=1&port=2", "Can't mix 'multihost' formats.*options of libpq"),
    ],
)
def test_an_option_that_no_server_has_is_refused(options: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        open_database(f"postgresql://ada:secret@/chats?{options}")


def test_a_database_without_a_schema_for_tables_says_how_to_get_one(server_url: str) -> None:
    with (
        new_database(server_url) as url,
        pytest.raises(PersistenceError, match=r"(?s)no schema has been selected.*CREATE SCHEMA"),
    ):
        open_database(with_setting(url, "search_path=nowhere"))


def test_the_server_compiles_no_statement(server_url: str, owner: str) -> None:
    setting = Statement.of(sqlite="", postgresql="SELECT current_setting('jit')")
    database = open_database(server_url)
    try:
        read = [database.read(lambda conn: conn.all(setting))]
        with ThreadPoolExecutor(4) as pool:  # On several connections.
            read += pool.map(lambda n: database.write(lambda conn: conn.all(setting)), range(40))
        assert {tuple(rows) for rows in read} == {(("off",),)}
    finally:
        database.close()


def test_a_search_for_names_does_not_read_all_words(server_url: str) -> None:
    rows_read = Statement.of(
        sqlite="",
        postgresql="SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
        f"WHERE relname = '{lexicon.LEXICON}'",
    )
    with new_database(server_url) as url:
        MemorySystem(url, embeddings=False).close()
        with psycopg.connect(url, autocommit=True) as connection:
            numbers = "generate_series(1::bigint, 20000) n"
            vector = "array_to_tsvector(array['§t1', '§oada', 'figs', 'n' || n])"
            connection.execute(f"INSERT INTO {lexicon.LEXICON} SELECT n, {vector} FROM {numbers}")
            connection.execute(f"VACUUM ANALYZE {lexicon.LEXICON}")
        scope = lexicon.LexiconScope("ada", 1)
        database = open_database(url)
        try:
            names, ((read,),) = database.read(
                lambda conn: (lexicon.names_among(conn, ["what", "figs"], scope), conn.all(rows_read))
            )
        finally:
            database.close()
        assert (names, int(read)) == (set(), 0)


def test_the_state_of_an_owners_indexes_is_read_without_the_trees_of_others(server_url: str) -> None:
    rows_read = Statement.of(
        sqlite="",
        postgresql="SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
        "WHERE relname = 'threadmem_tree'",
    )

    def fill(system: MemorySystem) -> None:
        for number in range(100):
            system.conversation(f"c{number}").append("Figs?")
        system.query("figs")

    with new_database(server_url) as url, MemorySystem(url, owner="ada", embeddings=False) as system:
        fill(system)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO threadmem_tree (owner, conversation, scope, version, epoch, created, sealed) "
                "SELECT 'owner-' || n / 100, 'c' || n, '', 1, 1, 0, false FROM generate_series(1, 50000) n"
            )
            connection.execute("VACUUM ANALYZE")
        fill(system.for_owner("eve"))
        name = system.runtime.get(Indexes).lexicon

        def reads(conn: Conn) -> tuple[int, int, int]:
            ((before,),) = conn.all(rows_read)  # Includes transactions that the server has not counted yet.
            total, reached = watermarks.total(conn, "eve", name), watermarks.reached(conn, "eve", name)
            ((after,),) = conn.all(rows_read)
            return total.documents, len(reached), int(after - before)

        documents, trees, read = system.runtime.database.read(reads)
        assert (documents, trees) == (100, 100)
        assert read <= 1000, read
