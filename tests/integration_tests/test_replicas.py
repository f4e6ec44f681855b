"""A PostgreSQL server and its replica: reads on the replica, and failover, with streaming replication."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from conftest import ROLE, WordEmbeddings, secured_database
from langchain_core.messages import HumanMessage
from servers import PostgresServer, pgpool
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.storage.database import open_database, without_password
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.pipeline import PREPARE_AFTER
from langchain_threadmem.storage.statements import Conn, Statement

pytestmark = pytest.mark.postgres
ON_REPLICA = Statement.of(sqlite="", postgresql="SELECT pg_is_in_recovery()")


class Pair(NamedTuple):
    """A primary and its replica."""

    primary: PostgresServer
    replica: PostgresServer

    @property
    def url(self) -> str:
        return f"{self.primary.url}?replica={quote(self.replica.url, safe='')}"

    def follow(self, following: bool) -> None:
        """Let the replica replay what it receives, or not."""
        with psycopg.connect(self.replica.url, autocommit=True) as connection:
            connection.execute(f"SELECT pg_wal_replay_{'resume' if following else 'pause'}()")


@contextmanager
def pair() -> Iterator[Pair]:
    # pytest's own folder is closed to the user that PostgreSQL runs as.
    folder = Path(tempfile.mkdtemp(prefix="threadmem-replica-"))
    folder.chmod(0o755)
    started: list[PostgresServer] = []
    try:
        started.append(PostgresServer(folder / "primary"))
        started.append(PostgresServer(folder / "replica", follows=started[0]))
        yield Pair(*started)
    finally:
        for server in reversed(started):
            server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with pair() as found:
        yield found


@pytest.fixture
def system(servers: Pair, owner: str) -> Iterator[MemorySystem]:
    with MemorySystem(servers.url, owner=owner, embeddings=WordEmbeddings()) as found:
        yield found


def read_on_replica(database: Any) -> bool:
    """Whether the replica serves a read, within some seconds."""
    for _ in range(300):
        [[found]] = database.read(lambda conn: conn.all(ON_REPLICA))
        if found:
            return True
        time.sleep(0.1)
    return False


def wait_for_replica(primary: PostgresServer) -> None:
    """Let commits of a primary wait for its replica."""
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        connection.execute("SELECT pg_reload_conf()")
        for _ in range(300):
            if connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall() == [("sync",)]:
                return
            time.sleep(0.1)
    pytest.fail("the replica is not synchronous after 30 s")


def own_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about the replica; psycopg logs lost connections itself."""
    return [record.message for record in caplog.records if "not from the replica" in record.message]


def test_reads_use_the_replica_when_it_has_what_the_system_wrote(system: MemorySystem) -> None:
    memory, database = system.conversation("c"), system.runtime.database
    memory.append("Where do figs grow?", "In the south.")
    assert read_on_replica(database)
    assert [message.text for message in memory.messages] == ["Where do figs grow?", "In the south."]
    assert asyncio.run(database.aread(lambda conn: conn.all(ON_REPLICA))) == [(True,)]
    assert memory.recall("figs")[0].node.message.text == "Where do figs grow?"


def test_a_system_reads_what_it_wrote_while_the_replica_lags(
    system: MemorySystem, servers: Pair, verbs: Any
) -> None:
    verb = verbs(system.conversation("c"))
    verb.append("one", "1")
    assert read_on_replica(system.runtime.database)
    servers.follow(False)
    try:
        for n in range(5):
            verb.append(f"more {n}", "yes")
            assert len(verb.messages()) == 2 * n + 4
        assert system.runtime.database.read(lambda conn: conn.all(ON_REPLICA)) == [(False,)]
    finally:
        servers.follow(True)
    assert read_on_replica(system.runtime.database)
    assert len(verb.messages()) == 12


@pytest.mark.parametrize("first", ["primary", "replica"])
def test_pgpool_that_sends_reads_to_a_replica_that_lags_is_no_reason_to_read_an_older_state(
    servers: Pair, owner: str, verbs: Any, first: str
) -> None:
    weights = [(servers.primary, 0), (servers.replica, 1)]
    MemorySystem(servers.primary.url, owner=owner, embeddings=False).close()
    servers.follow(False)
    try:
        with (
            pgpool(*(weights if first == "primary" else weights[::-1])) as url,
            MemorySystem(url, owner=owner, embeddings=False) as system,
        ):
            verb = verbs(system.conversation("c"))
            for n in range(PREPARE_AFTER + 2):
                verb.append(f"figs {n}", "yes")
                assert [message.text for message in verb.messages()][-2:] == [f"figs {n}", "yes"]
                assert {hit.node.message.text for hit in verb.recall(f"{n}")} == {f"figs {n}"}
            verb.edit(1, "plums")
            assert [message.text for message in verb.messages()] == ["plums"]
            assert system.verify().ok
    finally:
        servers.follow(True)


def test_reads_on_a_replica_name_partitions_after_a_partitioning(servers: Pair, owner: str) -> None:
    name = f"partitioned_{uuid4().hex}"
    with psycopg.connect(servers.primary.url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    primary, replica = (
        make_url(server.url).set(database=name).render_as_string(hide_password=False)
        for server in (servers.primary, servers.replica)
    )
    url = f"{primary}?replica={quote(replica, safe='')}"
    with (
        MemorySystem(url, owner=owner, embeddings=False) as system,
        MemorySystem(url, owner=owner, embeddings=False, read_only=True) as reader,
    ):
        memory, databases = system.conversation("c"), [system.runtime.database, reader.runtime.database]
        memory.append("Where do figs grow?", "In the south.")
        assert all(map(read_on_replica, databases))
        partition(primary, 2)
        memory.append("And olives?", "There, too.")
        for opened, database in zip((system, reader), databases, strict=True):
            assert read_on_replica(database)
            for _ in range(300):  # The replica replays the new tables some moments later.
                if database.read(lambda conn: conn.partitioned):
                    break
                time.sleep(0.1)
            assert database.read(lambda conn: (conn.all(ON_REPLICA), conn.partitioned)) == ([(True,)], True)
            assert len(opened.conversation("c").messages) == 4


def test_callers_that_write_together_read_what_they_wrote(system: MemorySystem) -> None:
    def talk(name: str) -> int:
        memory, served = system.conversation(name), 0
        for n in range(1, 16):
            memory.append(f"{name} {n}")
            assert len(memory.messages) == n
            for _ in range(4):
                assert len(memory.history) == n
                served += system.runtime.database.read(lambda conn: conn.all(ON_REPLICA)) == [(True,)]
        return served

    with ThreadPoolExecutor(4) as pool:
        served = list(pool.map(talk, "abcd"))
    assert sum(served) or read_on_replica(system.runtime.database)


def test_a_system_never_reads_an_older_state_than_before(
    system: MemorySystem, servers: Pair, owner: str
) -> None:
    system.conversation("c").append("one", "1")
    assert read_on_replica(system.runtime.database)
    servers.follow(False)
    try:
        with MemorySystem(servers.primary.url, owner=owner, embeddings=False) as other:
            other.conversation("c").append("two", "2")
        assert len(system.conversation("c").messages) == 2  # The replica lags.
        system.conversation("d").append("three", "3")
        assert [len(system.conversation("c").messages) for _ in range(3)] == [4] * 3
    finally:
        servers.follow(True)


def test_a_restricted_role_reads_the_rows_of_its_owner_on_the_replica(servers: Pair) -> None:
    with secured_database(servers.primary.url) as secured:
        database = make_url(secured.restricted).database
        replica = make_url(servers.replica.url).set(database=database, username=ROLE)
        url = f"{secured.restricted}?replica={quote(replica.render_as_string(False), safe='')}"
        with MemorySystem(url, owner="ada", embeddings=False) as system:
            system.conversation("monday").append("one", "1")
            system.for_owner("bob").conversation("tuesday").append("two", "2")
            assert read_on_replica(system.runtime.database)
            assert system.conversations() == ["monday"]
            assert system.for_owner("bob").conversations() == ["tuesday"]
            assert system.runtime.database.read(lambda conn: conn.all(ON_REPLICA)) == [(True,)]


def test_reads_use_the_primary_while_the_replica_is_down_and_one_line_says_so(
    servers: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_database(servers.url)) as database:
        database.read(lambda conn: None)
        assert read_on_replica(database)
        servers.replica.stop()
        try:
            with caplog.at_level(logging.WARNING):
                found = [database.read(lambda conn: conn.all(ON_REPLICA)) for _ in range(5)]
        finally:
            servers.replica.start()
        assert found == [[(False,)]] * 5
        assert len(own_lines(caplog)) == 1
        monkeypatch.setattr(database, "_ask_at", 0.0)
        assert read_on_replica(database)


def test_a_replica_that_never_answers_is_left_alone_after_one_attempt(
    servers: Pair, owner: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere = quote(f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/postgres", safe="")
        url = f"{servers.primary.url}?replica={nowhere}"
        with MemorySystem(url, owner=owner, embeddings=False) as system:
            memory = system.conversation("c")
            memory.append("one", "1")
            assert [len(memory.messages) for _ in range(4)] == [2] * 4
    [line] = own_lines(caplog)
    assert "timeout" in line


def hold(database: Any, count: int) -> int:
    """Read on as many connections at once; returns the number of reads that fail."""
    arrived, go_on = threading.Semaphore(0), threading.Event()

    def stay(conn: Conn) -> None:
        conn.all(ON_REPLICA)
        arrived.release()
        go_on.wait(60)

    with ThreadPoolExecutor(count) as pool:
        reads = []
        for _ in range(count):
            reads.append(pool.submit(database.read, stay))
            reads[-1].add_done_callback(lambda read: read.exception() and arrived.release())
            assert arrived.acquire(timeout=60)
        go_on.set()
        errors = [error for read in reads if (error := read.exception(60))]
    assert all(isinstance(error, PersistenceError) for error in errors)
    return len(errors)


def test_after_a_lost_connection_each_other_one_is_tested_before_its_use(servers: Pair, owner: str) -> None:
    with closing(open_database(f"{servers.primary.url}?application_name={owner}")) as database:
        assert hold(database, 4) == 0
        with psycopg.connect(servers.primary.url) as connection:
            end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"
            assert len(connection.execute(end, [owner]).fetchall()) == 4
        assert hold(database, 1) <= 1  # None, if the connections were idle for long enough to be tested.
        assert hold(database, 4) == 0


def test_no_acknowledged_turn_is_lost_when_the_replica_takes_over(owner: str) -> None:
    with pair() as servers:
        wait_for_replica(servers.primary)
        ports = f"{servers.primary.port},{servers.replica.port}"
        url = f"postgresql://postgres@/postgres?host=127.0.0.1,127.0.0.1&port={ports}"
        url += f"&target_session_attrs=read-write&replica={quote(servers.replica.url, safe='')}"
        with MemorySystem(url, owner=owner, embeddings=False) as system:
            memory, database = system.conversation("c"), system.runtime.database
            acknowledged, failures = [], 0
            for n in range(30):
                if n == 15:
                    database.write(lambda conn: None)  # The reads use the primary.
                    hold(database, 4)
                    servers.primary.stop()
                while True:
                    try:
                        memory.append(HumanMessage(f"turn {n}", id=f"{n}"))
                        acknowledged.append(f"turn {n}")
                        assert [message.text for message in memory.messages] == acknowledged
                        break
                    except PersistenceError:
                        failures += 1
                        servers.replica.promote()
            assert failures == 1
            assert [node.message.text for node in memory.history] == acknowledged
            assert database.read(lambda conn: conn.all(ON_REPLICA)) == [(False,)]
            assert system.verify().ok


@pytest.mark.parametrize(
    "value", ["memory.db", "sqlite:///memory.db", "postgresql://h/d?pool_size=3", "http://h"]
)
def test_what_is_no_url_of_a_replica_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"replica= of|not supported"):
        open_database(f"postgresql://ada:secret@127.0.0.1:9/nothing?replica={quote(value, safe='')}")


def test_the_password_of_a_replica_is_not_shown() -> None:
    replica = quote("postgresql://ada:secret@other/chats", safe="")
    shown = without_password(f"postgresql://ada:secret@host/chats?pool_size=3&replica={replica}")
    assert shown == "postgresql://ada:***@host/chats?pool_size=3&replica=***"
    with pytest.raises(InputError) as caught:
        without_password(f"mysql://ada:secret@host/chats?replica={replica}")
    assert "secret" not in str(caught.value)
