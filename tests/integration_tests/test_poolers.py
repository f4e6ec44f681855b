"""PgBouncer in transaction mode, which gives each transaction any of its few connections to the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from conftest import ROLE, WordEmbeddings, secured_database
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from servers import POOLED_CONNECTIONS, pgbouncer
from sqlalchemy.engine import make_url

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import InputError, PersistenceError, StorageBusyError
from langchain_threadmem.storage.database import open_database
from langchain_threadmem.storage.statements import Statement

pytestmark = pytest.mark.postgres
CLIENTS, ROUNDS = 50, 2


@pytest.fixture(scope="module")
def restricted(server_url: str, pooled_url: str) -> Iterator[str]:
    """A database with row-level security, for a restricted role, through PgBouncer."""
    with secured_database(server_url) as secured:
        url = make_url(pooled_url).set(database=make_url(secured.owning).database, username=ROLE)
        yield url.render_as_string(hide_password=False)


def chat(system: MemorySystem) -> Any:
    """A graph whose answers name the owner."""

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{system.owner} hears {len(state['messages'])}")]}

    graph = StateGraph(MessagesState).add_node("model", answer).add_edge(START, "model")
    return graph.compile(checkpointer=ThreadMemSaver(system))


def talk(system: MemorySystem) -> list[str]:
    """What a client stores and reads, with each call repeated as often as connections prepare statements."""
    memory, graph, said = system.conversation("talk"), chat(system), []
    for n in range(ROUNDS):
        memory.append(f"{system.owner} asks about figs, part {n}", f"{system.owner} hears of figs")
        graph.invoke({"messages": [HumanMessage(f"{system.owner} goes on")]}, config())
        said += [hit.node.message.text for hit in memory.recall("figs")]
    memory.edit(1, f"{system.owner} asks again")
    said += [node.message.text for node in memory.history]
    return said + [message.text for message in graph.get_state(config()).values["messages"]]


async def atalk(system: MemorySystem) -> list[str]:
    """`talk` with async calls."""
    memory, graph, said = system.conversation("talk"), chat(system), []
    for n in range(ROUNDS):
        await memory.aappend(f"{system.owner} asks about figs, part {n}", f"{system.owner} hears of figs")
        await graph.ainvoke({"messages": [HumanMessage(f"{system.owner} goes on")]}, config())
        said += [hit.node.message.text for hit in await memory.arecall("figs")]
    await memory.aedit(1, f"{system.owner} asks again")
    said += [node.message.text for node in await memory.ahistory()]
    return said + [message.text for message in (await graph.aget_state(config())).values["messages"]]


def config() -> Any:
    return {"configurable": {"thread_id": "graph"}}


@contextmanager
def clients(url: str) -> Iterator[list[MemorySystem]]:
    """Fifty clients, each with one connection to PgBouncer and a new owner."""
    options: Any = {"embeddings": WordEmbeddings(), "pool_size": 1, "max_overflow": 0}
    with ExitStack() as opened:
        yield [
            opened.enter_context(MemorySystem(url, owner=f"client {uuid4()}", **options))
            for _ in range(CLIENTS)
        ]


def by_threads(systems: list[MemorySystem]) -> list[list[str]]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(talk, systems))


def by_tasks(systems: list[MemorySystem]) -> list[list[str]]:
    async def main() -> list[list[str]]:
        return await asyncio.gather(*map(atalk, systems))

    return asyncio.run(main())


@pytest.mark.parametrize("run", [by_threads, by_tasks])
def test_fifty_clients_on_five_connections_read_what_they_wrote_alone(
    restricted: str, server_url: str, run: Callable[[list[MemorySystem]], list[list[str]]]
) -> None:
    of_role = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
    with clients(restricted) as systems, psycopg.connect(server_url) as connection:
        said = run(systems)
        # Counted before clients disconnect: PgBouncer replaces a connection whose client leaves amid a query.
        [count] = connection.execute(of_role, [ROLE]).fetchall()[0]
        owners = [system.owner for system in systems]
    for owner, texts in zip(owners, said, strict=True):
        assert len(texts) > 4 * ROUNDS
        assert [text for text in texts if not text.startswith(f"{owner} ")] == []
    assert 1 < count <= POOLED_CONNECTIONS


PREPARED = Statement.of(sqlite="", postgresql="SELECT count(*) FROM pg_prepared_statements")


def prepared(url: str, **options: str) -> bool:
    """Whether a connection prepares statements that it executes often."""
    asked = make_url(url).update_query_dict(options).render_as_string(hide_password=False)
    with closing(open_database(asked, pool_size=1, max_overflow=0)) as database:
        return [database.read(lambda conn: conn.all(PREPARED)) for _ in range(9)][-1] > [(0,)]


def test_statements_are_prepared_unless_a_pooler_is_found(server_url: str, pooled_url: str) -> None:
    assert prepared(server_url)
    assert not prepared(pooled_url)


def test_a_setting_for_the_calls_of_a_client_is_no_setting_of_other_clients(pooled_url: str) -> None:
    setting = Statement.of(sqlite="", postgresql="SELECT current_setting('jit')")
    database = open_database(pooled_url)
    try:
        assert database.read(lambda conn: conn.all(setting)) == [("off",)]
        assert database.write(lambda conn: conn.all(setting)) == [("off",)]
        for _ in range(5):
            with psycopg.connect(pooled_url, prepare_threshold=None) as connection:
                assert connection.execute("SHOW jit").fetchall() == [("on",)]
    finally:
        database.close()


def test_the_url_decides_whether_statements_are_prepared(server_url: str, pooled_url: str) -> None:
    assert not prepared(server_url, prepared_statements="false")
    assert prepared(pooled_url, prepared_statements="true")  # One client always gets the same connection.


def test_another_value_of_the_option_is_refused() -> None:
    with pytest.raises(InputError, match="prepared_statements='no' is neither true nor false"):
        open_database("postgresql://ada@127.0.0.1:9/nothing?prepared_statements=no")


def test_clients_that_open_an_empty_database_together_create_its_tables_once(
    server_url: str, pooled_url: str
) -> None:
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        url = make_url(pooled_url).set(database=name).render_as_string(hide_password=False)
        barrier = threading.Barrier(8, timeout=60)

        def first(n: int) -> list[str]:
            barrier.wait()
            with MemorySystem(url, owner=str(n), embeddings=False) as system:
                system.conversation("c").append(f"client {n}")
                return [message.text for message in system.conversation("c").messages]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(first, range(8))) == [[f"client {n}"] for n in range(8)]
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_a_wait_of_the_pooler_for_a_connection_ends_in_a_typed_error(
    server_url: str,
) -> None:
    pooler = pgbouncer(server_url, "postgres", size=1, more="query_wait_timeout = 1")
    with pooler as url, closing(open_database(url)) as database:
        began, go_on = threading.Event(), threading.Event()

        def hold(conn: Any) -> None:
            conn.all(PREPARED)
            began.set()
            go_on.wait(60)

        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(database.read, hold)
            assert began.wait(60)
            with pytest.raises(StorageBusyError, match=r"pooler found no free connection.*try again"):
                database.write(lambda conn: conn.all(PREPARED))
            go_on.set()
            held.result(60)
        assert database.read(lambda conn: conn.all(PREPARED)) == [(0,)]


def test_a_client_goes_on_after_the_server_has_ended_all_connections_of_the_pooler(
    server_url: str, pooled_url: str, owner: str
) -> None:
    url = make_url(pooled_url).update_query_dict({"application_name": owner})
    with MemorySystem(url.render_as_string(False), owner=owner, embeddings=False) as system:
        memory = system.conversation("c")
        memory.append("before", "yes")
        with psycopg.connect(server_url, autocommit=True) as connection:
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            assert connection.execute(end, [owner]).fetchall()
        for attempt in range(10):
            try:
                memory.append(HumanMessage("after", id="after"))
                break
            except PersistenceError:
                assert attempt < 9
        assert [message.text for message in memory.messages] == ["before", "yes", "after"]
