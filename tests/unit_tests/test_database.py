"""Transactions: atomic, one at a time, with errors that name the next step."""

from __future__ import annotations

import asyncio
import gc
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from sqlalchemy import bindparam, select
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import (
    ClosedError,
    DriverError,
    InputError,
    NewerDatabaseError,
    PersistenceError,
    StorageBusyError,
)
from langchain_threadmem.storage import pipeline, postgres, schema, sqlite
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.statements import Conn, Statement, insert_of
from langchain_threadmem.storage.transaction import Database
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.append import Append, Draft

Run = Callable[[Callable[[Conn], Any]], Any]


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    found = open_database(url)
    yield found
    found.close()


@pytest.fixture(params=["sync", "async"])
def write(request: pytest.FixtureRequest, database: Database) -> Run:
    if request.param == "sync":
        return database.write
    return lambda function: asyncio.run(asyncio.wait_for(database.awrite(function), 60))


@pytest.fixture(params=["sync", "async"])
def read(request: pytest.FixtureRequest, database: Database) -> Run:
    if request.param == "sync":
        return database.read
    return lambda function: asyncio.run(asyncio.wait_for(database.aread(function), 60))


_MEMORY = insert_of(schema.chat_memory, replace=True)
_MESSAGES = Statement(
    select(schema.chat_memory.c.messages)
    .where(schema.chat_memory.c.owner == bindparam("owner"))
    .order_by(schema.chat_memory.c.id),
    "owner",
)


def test_what_is_to_be_written_later_is_written_before_the_next_statement_and_the_commit(
    write: Run, read: Run, owner: str
) -> None:
    def work(conn: Conn) -> list[tuple[Any, ...]]:
        conn.later(_MEMORY, [(owner, "1", "one", 0.0), (owner, "2", "two", 0.0)])
        conn.later(_MEMORY, [(owner, "3", "three", 0.0)])
        found = conn.all(_MESSAGES, owner)
        conn.later(_MEMORY, [(owner, "2", "second", 0.0)])
        conn.later(_MEMORY, [(owner, f"4 {n:03}", "more", 0.0) for n in range(300)])
        conn.later(_MEMORY, [])
        conn.later(_MEMORY, [(owner, "5", "five", 0.0)])
        return found

    assert write(work) == [("one",), ("two",), ("three",)]
    rows = read(lambda conn: conn.all(_MESSAGES, owner))
    assert [row[0] for row in rows] == ["one", "second", "three", *["more"] * 300, "five"]


def test_a_row_that_is_to_be_changed_twice_later_has_the_last_change(
    write: Run, read: Run, owner: str
) -> None:
    def work(conn: Conn) -> None:
        for text in ("one", "two", "three"):
            conn.later(_MEMORY, [(owner, "1", text, 0.0)])

    write(work)
    assert read(lambda conn: conn.all(_MESSAGES, owner)) == [("three",)]


def test_what_is_to_be_written_later_is_not_written_by_a_transaction_that_fails(
    write: Run, read: Run, owner: str
) -> None:
    def fails(conn: Conn) -> None:
        conn.later(_MEMORY, [(owner, "1", "one", 0.0)])
        conn.all(_MESSAGES, owner)
        conn.later(_MEMORY, [(owner, "2", "two", 0.0)])
        raise LookupError

    with pytest.raises(LookupError):
        write(fails)
    assert read(lambda conn: conn.all(_MESSAGES, owner)) == []


def test_text_that_no_database_stores_is_refused_also_if_it_is_to_be_written_later(
    write: Run, owner: str
) -> None:
    with pytest.raises(InputError, match="half of a surrogate pair"):
        write(lambda conn: conn.later(_MEMORY, [(owner, "1", "\ud800", 0.0)]))


def test_rows_are_inserted_only_if_the_query_returns_a_row(write: Run, read: Run, owner: str) -> None:
    other = f"{owner} other"
    write(lambda conn: conn.later(_MEMORY, [(owner, "1", "one", 0.0)]))
    rows = [(other, "1", "two", 0.0), (other, "2", "three", 0.0)]
    assert write(lambda conn: conn.if_any((_MESSAGES, (other,)), _MEMORY, rows)) == []
    assert read(lambda conn: conn.all(_MESSAGES, other)) == []
    assert write(lambda conn: conn.if_any((_MESSAGES, (owner,)), _MEMORY, rows)) == [("one",)]
    assert read(lambda conn: conn.all(_MESSAGES, other)) == [("two",), ("three",)]
    many = [(other, f"4 {n:05}", "more", 0.0) for n in range(250)]
    assert write(lambda conn: conn.if_any((_MESSAGES, (owner,)), _MEMORY, many)) == [("one",)]
    assert len(read(lambda conn: conn.all(_MESSAGES, other))) == 252


def test_what_a_transaction_returns_is_returned(write: Run, read: Run, owner: str) -> None:
    tree = write(lambda conn: trees.find_or_create(conn, owner, "c", 0.0))
    assert read(lambda conn: trees.find(conn, owner, "c")) == tree


def test_a_transaction_that_raises_is_rolled_back_wholly(write: Run, read: Run, owner: str) -> None:
    def half(conn: Conn) -> None:
        trees.find_or_create(conn, owner, "first", 0.0)
        trees.find_or_create(conn, owner, "second", 0.0)
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        write(half)
    assert read(lambda conn: [trees.find(conn, owner, name) for name in ("first", "second")]) == [None, None]


def test_the_next_transaction_after_a_failed_one_works(write: Run, read: Run, owner: str) -> None:
    with pytest.raises(ZeroDivisionError):
        write(lambda conn: 1 / 0)
    assert write(lambda conn: trees.find_or_create(conn, owner, "c", 0.0)) > 0


@pytest.mark.parametrize("inner", ["read", "write"])
def test_a_transaction_inside_another_is_refused(write: Run, database: Database, inner: str) -> None:
    with pytest.raises(DriverError, match="inside another"):
        write(lambda conn: getattr(database, inner)(lambda conn: None))


def test_an_append_inside_a_transaction_is_refused(write: Run, database: Database, owner: str) -> None:
    tree = write(lambda conn: trees.find_or_create(conn, owner, "c", 0.0))
    with pytest.raises(DriverError, match="inside another"):
        write(
            lambda conn: database.write(
                Append(tree, [Draft(HumanMessage("q"), "human", "{}", 1.0, "m", True)])
            )
        )


def test_stop_iteration_in_a_transaction_hangs_nothing(read: Run, write: Run) -> None:
    def stop(conn: Conn) -> None:
        raise StopIteration("end")

    for run in (read, write):
        with pytest.raises((DriverError, StopIteration, RuntimeError)):
            run(stop)


def test_a_broken_statement_is_a_persistence_error(write: Run) -> None:
    with pytest.raises(PersistenceError, match="no_such_table"):
        write(lambda conn: conn.script("DELETE FROM no_such_table"))


def test_two_threads_that_name_a_new_conversation_get_one_tree(database: Database, owner: str) -> None:
    found: list[int] = []
    barrier = threading.Barrier(6)

    def create() -> None:
        barrier.wait(60)
        found.append(database.write(lambda conn: trees.find_or_create(conn, owner, "c", 0.0)))

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    assert len(set(found)) == 1


@pytest.mark.parametrize("verb", ["read", "write", "aread", "awrite"])
def test_a_closed_database_says_so(url: str, verb: str) -> None:
    database = open_database(url)
    database.close()
    database.close()
    with pytest.raises(ClosedError, match="make a new"):
        asyncio.run(_call(getattr(database, verb)))


async def _call(verb: Run) -> None:
    found = verb(lambda conn: None)
    if asyncio.iscoroutine(found):
        await found


def test_closing_on_the_loop_is_closing(url: str) -> None:
    async def main() -> None:
        database = open_database(url)
        await database.awrite(lambda conn: None)
        await database.aread(lambda conn: None)
        await database.aclose()
        await database.aclose()
        with pytest.raises(ClosedError):
            await database.aread(lambda conn: None)

    asyncio.run(main())


@pytest.fixture
def left_open(recwarn: pytest.WarningsRecorder) -> Callable[[], list[str]]:
    """The warnings about connections that were not closed."""

    def forgotten() -> list[str]:
        gc.collect()
        return [str(one.message) for one in recwarn if one.category is ResourceWarning]

    gc.collect()
    return forgotten


def _keep(results: list[Any], write: Run, transaction: Callable[[Conn], Any]) -> None:
    results.append(write(transaction))


def test_what_another_thread_does_while_a_database_is_closed_is_finished_and_leaves_nothing_open(
    url: str, left_open: Callable[[], list[str]]
) -> None:
    database = open_database(url)
    began, go_on = threading.Event(), threading.Event()
    results: list[Any] = []

    def slow(conn: Conn) -> str:
        began.set()
        assert go_on.wait(60)
        return "done"

    worker = threading.Thread(target=_keep, args=(results, database.write, slow))
    worker.start()
    assert began.wait(60)
    closer = threading.Thread(target=database.close)
    closer.start()
    closer.join(0.1)
    go_on.set()
    for thread in (worker, closer):
        thread.join(60)
    del database  # An ended thread holds what it ran no longer.
    assert (results, left_open()) == (["done"], [])


def test_what_another_task_does_while_a_database_is_closed_is_finished_and_leaves_nothing_open(
    url: str, left_open: Callable[[], list[str]]
) -> None:
    async def main() -> str:
        database = open_database(url)
        began = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(conn: Conn) -> str:
            loop.call_soon_threadsafe(began.set)
            if conn.dialect == "postgresql":
                conn.script("SELECT pg_sleep(0.2)")
            else:
                time.sleep(0.2)
            return "done"

        task = asyncio.create_task(database.awrite(slow))
        await began.wait()
        await database.aclose()
        return await task

    assert (asyncio.run(main()), left_open()) == ("done", [])


def test_a_database_that_cannot_be_set_up_leaves_nothing_open(
    url: str, left_open: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(conn: Conn, now: float) -> None:
        raise NewerDatabaseError("newer")

    for place in (sqlite, postgres):
        monkeypatch.setattr(place, "migrate", refuse)
    monkeypatch.setattr(postgres, "is_newest", lambda version: False)
    with pytest.raises(NewerDatabaseError):
        open_database(url)
    assert left_open() == []


def test_the_triggers_of_checksums_are_created_by_the_first_write(tmp_path: Path) -> None:
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as system:
        system.conversation("c").append("a", "b")
    count = Statement.of(sqlite="SELECT count(*) FROM sqlite_temp_master", postgresql="")
    with MemorySystem(tmp_path / "memory.db", embeddings=False) as system:
        assert len(system.conversation("c").messages) == 2
        database: Any = system.resources.database
        assert database._conn.all(count) == [(0,)]
        system.conversation("c").append("c", "d")
        assert database._conn.all(count) != [(0,)]
        assert system.conversation("c").verify().problems == ()


@pytest.mark.parametrize("name", [None, "memory.db"])
def test_a_database_that_was_never_closed_closes_its_connections(tmp_path: Path, name: str | None) -> None:
    system = MemorySystem(None if name is None else str(tmp_path / name), embeddings=False)
    system.conversation("c").append("a", "b")
    assert len(system.conversation("c").messages) == 2
    values = gc.get_referents(*vars(system.runtime.database).values())
    connections = [value for value in values if isinstance(value, sqlite3.Connection)]
    del system
    gc.collect()
    assert connections
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_lock_held_by_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("kept", "yes")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusyError, match=r"another process kept .*memory\.db.*try again"):
            memory.append("q", "a")
        with pytest.raises(StorageBusyError):
            asyncio.run(asyncio.wait_for(memory.aappend("q", "a"), 10))
        assert len(memory.history) == 2  # reading goes on beside a writer
        other.execute("ROLLBACK")
        other.close()
        memory.append("q", "a")
        assert len(memory.history) == 4


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_another_process_creates_is_waited_for(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "memory.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(begin)
    release = threading.Timer(0.2, other.execute, ["COMMIT"])
    release.start()
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("q", "a")
        assert len(system.conversation("c").history) == 2
    release.join()
    other.close()


def test_a_new_file_that_stays_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusyError, match=r"another process kept .*memory\.db.*try again"):
            MemorySystem(tmp_path / "memory.db", embeddings=False)


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match=f"cannot open or write.*{tmp_path.name}"):
        MemorySystem(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match=r"no folder .*missing'.*choose another location"):
        MemorySystem(tmp_path / "missing" / "memory.db")


def test_a_database_in_memory_is_not_opened_read_only() -> None:
    with pytest.raises(InputError, match="pass the path of a file"):
        MemorySystem(read_only=True)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ada, " * 200)
    with pytest.raises(PersistenceError, match=r"letter\.txt.*not a database; check the path"):
        MemorySystem(path)
    assert path.read_text() == "Dear Ada, " * 200


def test_a_database_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    MemorySystem(path, embeddings=False).close()
    connect = sqlite3.connect

    def read_only(file: Path, **options: Any) -> sqlite3.Connection:
        # A permission bit does not stop every user who runs tests; the open mode does.
        return connect(f"file:{file}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite.sqlite3, "connect", read_only)
    refused = pytest.raises(PersistenceError, match=r"memory\.db.*readonly.*permissions")
    with refused, MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("q", "a")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "mysql://host/db",
            "'mysql' databases are not supported.*write sqlite:///memory.db or postgresql://",
        ),
        (
            "http://localhost:8000",
            "'http' databases are not supported.*write sqlite:///memory.db or postgresql://",
        ),
        ("sqlite:///x?synchronous=MAYBE", "OFF, NORMAL, FULL, EXTRA"),
        ("a://b://c", "write sqlite:///memory.db or postgresql://"),
        ("sqlite://memory.db", "write sqlite:///memory.db .three slashes"),
        ("sqlite://data/memory.db", "write sqlite:///data/memory.db .three slashes"),
        ("sqlite:///", "has no file; write sqlite:///memory.db"),
        ("sqlite:memory.db", "write sqlite:///memory.db or"),
        ("sqlite:/memory.db", "write sqlite:///memory.db or"),
        ("file:memory.db?mode=ro", "write sqlite:///memory.db or"),
        ("postgresql:memory", "postgresql://user@host/name"),
        ("postgresql://a:1,b:x/name", "not a database URL.*write .*postgresql://user@host/name"),
        (":memory", "not a database URL"),
        ("", "pass a path"),
        (7, "7 is not a database; pass a path"),
    ],
    ids=str,
)
def test_a_url_of_something_else_is_refused(
    url: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        open_database(url)
    with pytest.raises(InputError, match=says):
        MemorySystem(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", [None, ":memory:", "sqlite://", "sqlite:///:memory:"], ids=str)
def test_what_asks_for_memory_gets_memory(url: str | None) -> None:
    with MemorySystem(url, embeddings=False) as system:
        assert system.runtime.database.path is None


def test_a_file_of_an_odd_name_is_passed_as_a_path(tmp_path: Path) -> None:
    MemorySystem(tmp_path / "sqlite:memory.db", embeddings=False).close()
    assert (tmp_path / "sqlite:memory.db").is_file()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://ada:secret@127.0.0.1:9/nothing", PersistenceError),
        ("postgresql://ada:sec@ret@127.0.0.1:port/nothing", InputError),
        ("postgresq://ada:secret@127.0.0.1:9/nothing", InputError),
    ],
)
def test_a_password_is_not_shown(url: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        open_database(url)
    assert "sec" not in str(caught.value)


def held_open(url: str, **options: int) -> int:
    """The number of threads, of eight, that are in a transaction at once."""
    database, inside, most = open_database(url, **options), [0], [0]
    lock, gate = threading.Lock(), threading.Barrier(8)

    def hold(conn: Conn) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        conn.script("SELECT pg_sleep(0.05)")
        conn.each((Statement.of(sqlite="", postgresql="SELECT 1"), ()))
        with lock:
            inside[0] -= 1

    def call() -> None:
        gate.wait(60)
        database.read(hold)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    database.close()
    return most[0]


@pytest.mark.postgres
def test_the_url_says_how_many_connections_there_are(postgres_url: str) -> None:
    url = make_url(postgres_url).update_query_dict({"pool_size": "2", "max_overflow": "1"})
    assert held_open(url.render_as_string(hide_password=False)) == 3


@pytest.mark.postgres
def test_an_argument_says_how_many_connections_there_are(postgres_url: str) -> None:
    url = make_url(postgres_url).update_query_dict({"pool_size": "3"})
    assert held_open(url.render_as_string(hide_password=False), pool_size=1, max_overflow=0) == 1


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_size_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=f"pool_size='{value}'.*pass 1 or more"):
        open_database(f"postgresql://ada@127.0.0.1:9/nothing?pool_size={value}")


@pytest.mark.parametrize("url", [None, "memory.db", "sqlite:///memory.db"])
def test_sqlite_refuses_a_pool(url: str | None) -> None:
    with pytest.raises(InputError, match="pool_size=5 is for PostgreSQL"):
        open_database(url, pool_size=5)


@pytest.mark.postgres
@pytest.mark.parametrize("verb", ["read", "write"])
def test_callers_wait_for_a_connection_as_long_as_work_goes_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(postgres, "POOL_SECONDS", 0.3)
    database = open_database(postgres_url, pool_size=1, max_overflow=0)
    results: list[Any] = []
    sleep = Statement.of(sqlite="", postgresql="SELECT pg_sleep(0.1)")
    threads = [
        threading.Thread(target=_keep, args=(results, getattr(database, verb), lambda c: c.all(sleep)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    database.close()
    assert len(results) == 8


@pytest.mark.postgres
def test_a_caller_that_waits_for_one_who_does_not_end_is_told(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "POOL_SECONDS", 0.1)
    database = open_database(postgres_url, pool_size=1, max_overflow=0)
    began, go_on = threading.Event(), threading.Event()
    holder = threading.Thread(target=database.read, args=(lambda conn: (began.set(), go_on.wait(60)),))
    holder.start()
    assert began.wait(60)
    with pytest.raises(StorageBusyError, match="allow more connections with pool_size"):
        database.read(lambda conn: None)
    go_on.set()
    holder.join(60)
    database.close()


@pytest.mark.postgres
def test_writes_that_wait_for_each_other_are_all_committed(postgres_url: str) -> None:
    database = open_database(postgres_url)
    lock = Statement.of(sqlite="", postgresql="SELECT pg_advisory_xact_lock(%s)")
    barrier = threading.Barrier(2, timeout=60)
    results: list[Any] = []

    def write(first: int, second: int) -> Callable[[Conn], int]:
        attempts = []

        def transaction(conn: Conn) -> int:
            conn.all(lock, first)
            attempts.append(first)
            if len(attempts) == 1:
                barrier.wait()
            conn.all(lock, second)
            return len(attempts)

        return transaction

    orders = [(1, 2), (2, 1)]
    threads = [
        threading.Thread(target=_keep, args=(results, database.write, write(*order))) for order in orders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    database.close()
    assert sorted(results) == [1, 2]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[Database]:
    """A PostgreSQL database with one connection, whose statements are prepared."""
    database = open_database(f"{postgres_url}{'&' if '?' in postgres_url else '?'}prepared_statements=true")
    yield database
    database.close()


def a_select(text: str) -> Statement:
    return Statement.of(sqlite="?", postgresql=f"SELECT {text}")


@pytest.mark.postgres
def test_a_connection_keeps_the_statements_that_it_executes_most(connection: Database) -> None:
    for round_ in range(pipeline.PREPARE_AFTER + 3):
        for n in range(pipeline.MOST_PREPARED + 5):
            found = connection.read(lambda conn, n=n: conn.all(a_select(f"{n} + %s::int"), 1))
            assert found == [(n + 1,)], round_
    count = Statement.of(sqlite="", postgresql="SELECT count(*) FROM pg_prepared_statements")
    assert connection.read(lambda conn: conn.one(count)) == (pipeline.MOST_PREPARED,)


@pytest.mark.postgres
@pytest.mark.parametrize("good", [0, 2 * pipeline.PREPARE_AFTER])
def test_a_statement_that_failed_is_executed_again(connection: Database, good: int) -> None:
    ratio = a_select("%s / %s")
    for divisor in [*[1] * good, *[0] * (pipeline.PREPARE_AFTER + 2)]:
        if divisor:
            connection.read(lambda conn: conn.all(ratio, 8, 1))
            continue
        with pytest.raises(PersistenceError, match="division by zero"):
            connection.read(lambda conn: conn.all(ratio, 8, 0))
    assert connection.read(lambda conn: conn.all(ratio, 8, 2)) == [(4,)]


@pytest.mark.postgres
def test_an_interrupted_transaction_is_rolled_back_and_its_connection_serves_the_next(
    connection: Database, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = pipeline.Pipeline._wait

    def interrupt(self: object) -> None:
        monkeypatch.setattr(pipeline.Pipeline, "_wait", wait)
        raise KeyboardInterrupt

    def write(conn: Conn) -> None:
        trees.find_or_create(conn, owner, "interrupted", 1.0)
        monkeypatch.setattr(pipeline.Pipeline, "_wait", interrupt)
        conn.all(a_select("pg_sleep(1)"))

    with pytest.raises(KeyboardInterrupt):
        connection.write(write)
    assert connection.read(lambda conn: trees.find(conn, owner, "interrupted")) is None


@pytest.mark.postgres
def test_more_async_callers_than_connections_all_get_their_answers(postgres_url: str, owner: str) -> None:
    async def main() -> None:
        async with MemorySystem(
            postgres_url, owner=owner, embeddings=False, pool_size=1, max_overflow=0
        ) as system:
            memory = system.conversation("c")
            await asyncio.gather(*(memory.aappend(f"q{n}", f"a{n}") for n in range(60)))
            found = await asyncio.gather(*(memory.ahistory() for _ in range(60)))
        assert {len(one) for one in found} == {120}

    asyncio.run(main())


def test_synchronous_full_is_asked_of_the_database(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'memory.db'}?synchronous=full")
    conn: list[Any] = []
    database.write(lambda found: conn.append(found._cursor.execute("PRAGMA synchronous").fetchall()))
    database.close()
    assert conn == [[(2,)]]


def test_each_memory_in_memory_is_its_own() -> None:
    with MemorySystem(embeddings=False) as first, MemorySystem(embeddings=False) as second:
        first.conversation("c").append("q", "a")
        assert second.conversations() == []


@pytest.mark.parametrize("log", [None, b""], ids=["closed", "empty log"])
def test_a_file_on_a_full_disk_is_read_without_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: bytes | None
) -> None:
    path = tmp_path / "memory.db"
    with MemorySystem(path, embeddings=False) as system:
        system.conversation("c").append("q", "a")
    if log is not None:
        path.with_name("memory.db-wal").write_bytes(log)
    before = sorted(tmp_path.iterdir())
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with MemorySystem(path, read_only=True) as system:
        assert len(system.conversation("c").messages) == 2
        assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    error = sqlite.translated(sqlite3.OperationalError("disk I/O error"), "'memory.db'")
    assert "free up space" in str(error)


def test_only_a_memory_that_was_opened_read_only_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    MemorySystem(path, embeddings=False).close()
    with (
        MemorySystem(path, read_only=True) as system,
        pytest.raises(PersistenceError, match="open it without read_only=True"),
    ):
        system.conversation("c").append("q", "a")


def test_a_read_that_writes_is_refused(tmp_path: Path) -> None:
    database = open_database(tmp_path / "memory.db")
    with pytest.raises(PersistenceError, match="readonly database"):
        database.read(lambda conn: trees.find_or_create(conn, "ada", "first", 0.0))
    assert database.read(lambda conn: trees.find(conn, "ada", "first")) is None
    database.close()
