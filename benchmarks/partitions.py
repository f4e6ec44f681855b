"""Calls on a partitioned database of PostgreSQL among many owners, in time and in partitions read.

All tables that grow with messages have eight partitions. Rows of other owners, with 100 conversations of two
messages each, are written with SQL; then a new owner has 100 conversations. A figure is the median time of a
call among many owners, beside that among few, with the number of partitions that its statements read: the
plan of each statement, executed again and rolled back, shows the partitions.

    python -m benchmarks.partitions [--full]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import psycopg
from langchain_core.messages import HumanMessage

from benchmarks._measure import Line, command, duration
from benchmarks.growth import before_and_after
from benchmarks.postgres import chat
from benchmarks.statements import WordVectors
from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.storage.partitioning.compiler import partitioned_tables
from langchain_threadmem.storage.partitioning.partition import partition
from langchain_threadmem.storage.pipeline import Pipeline

PARTITIONS = 8
FEW, MANY, VERY_FEW, VERY_MANY = 20, 500, 1_000, 100_000
"""The numbers of other owners; each has 100 conversations."""
OWNERS_AT_ONCE = 2_000
CALLS = 9
TURNS = 20
MOST = 1.5
QUERY = "What about the violin?"
_OTHERS = (
    "INSERT INTO threadmem_tree (owner, conversation, scope, version, epoch, created, sealed, used) "
    "SELECT 'owner-' || n / 100, 'c' || n % 100, '', 1, 1, 1.7e9 + n, false, 1.7e9 + n "
    "FROM generate_series({first}, {last}) n",
    "INSERT INTO threadmem_segment (tree) SELECT id FROM threadmem_tree WHERE id > {tree}",
    "INSERT INTO threadmem_node SELECT (id << 24) + n, tree, n + 1, nullif(n, 0), 'm' || id || '-' || n, "
    'CASE n WHEN 0 THEN \'human\' ELSE \'ai\' END, \'{{"type":"human","data":{{"content":"What about '
    "bread, part ' || tree || '?\"}}}}', 1.7e9, 0 FROM threadmem_segment, generate_series(0, 1) n "
    "WHERE tree > {tree}",
    "INSERT INTO threadmem_document (key, terms, traits, speaker, time, tree) SELECT (id << 24) + n, "
    "'what about bread part ' || tree, 0, '', 1.7e9, tree FROM threadmem_segment, generate_series(0, 1) n "
    "WHERE tree > {tree}",
    "INSERT INTO threadmem_lexicon (key, words, tree) SELECT (s.id << 24) + n, array_to_tsvector(array["
    "'§t' || s.tree, '§o' || owner, 'bread', 'part', 'n' || s.tree % 1000]), s.tree "
    "FROM threadmem_segment s JOIN threadmem_tree t ON t.id = s.tree, generate_series(0, 1) n "
    "WHERE s.tree > {tree}",
)
_SERVER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "'4GB'"}


def fill(url: str, first: int, last: int) -> None:
    """Add the conversations of other owners, from one number of owners to another."""
    with psycopg.connect(url, autocommit=True) as connection:
        for begin in range(first, last, OWNERS_AT_ONCE):
            end = min(begin + OWNERS_AT_ONCE, last)
            ((tree,),) = connection.execute("SELECT coalesce(max(id), 0) FROM threadmem_tree").fetchall()
            for statement in _OTHERS:
                sql = statement.format(first=100 * begin, last=100 * end - 1, tree=tree)
                connection.execute(sql.encode())
        connection.execute("VACUUM ANALYZE")


def calls_of(system: MemorySystem) -> dict[str, Callable[[int], object]]:
    """The measured calls, each with the number of the call."""
    for n in range(100):
        system.conversation(f"c{n}").append(f"What about bread number {n}?", f"Part {n} of bread.")
    memory = system.conversation("talk")
    for n in range(TURNS):
        memory.append(f"What about the violin, number {n}?", f"All about the violin, part {n}.")
    graph = chat(ThreadMemSaver(system), sync=True)
    config: Any = {"configurable": {"thread_id": "graph"}}
    system.flush()
    others = [system.for_owner(f"{system.owner}-{n}") for n in range(CALLS + 1)]
    for other in others:
        for n in range(10):
            other.conversation(f"c{n}").append(f"What about bread number {n}?", "All about bread.")
        other.query(QUERY)
    return {
        "append": lambda n: memory.append(f"And violin {n}?", f"Violin {n}."),
        "messages": lambda n: memory.messages,
        "turn of a graph": lambda n: graph.invoke({"messages": [HumanMessage(f"And bread {n}?")]}, config),
        "list_threads": lambda n: memory.list_threads(limit=10),
        "list_conversations": lambda n: system.list_conversations(limit=10),
        "recall": lambda n: memory.recall(QUERY),
        "recall for the owner": lambda n: memory.recall(QUERY, scope="owner"),
        "query": lambda n: system.query(QUERY),
        "erase of a conversation": lambda n: system.erase(conversation=f"c{n}"),
        "erase of an owner": lambda n: others[n].erase(),
    }


@contextmanager
def recorded() -> Iterator[list[tuple[str, Any]]]:
    """The statements that are sent to PostgreSQL, with their values."""
    sent: list[tuple[str, Any]] = []
    plain = Pipeline.execute

    def execute(self: Pipeline, sql: str, *values: Any) -> int:
        sent.append((sql, *(values or (None,))))
        return plain(self, sql, *values)

    Pipeline.execute = execute  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Pipeline.execute = plain  # type: ignore[method-assign]
    assert sent, "no statement was recorded"


def read_partitions(plan: Any) -> dict[str, set[str]]:
    """The partitions of each table with rows that a plan has read."""
    names = {table.name for table in partitioned_tables()}
    read: dict[str, set[str]] = {}

    def walk(step: Any) -> None:
        table = step.get("Relation Name", "").rpartition("_")[0]
        is_empty = step["Node Type"] == "Seq Scan" and not (
            step.get("Actual Rows") or step.get("Rows Removed by Filter")
        )
        if table in names and step.get("Actual Loops") and not is_empty:
            read.setdefault(table, set()).add(step["Relation Name"])
        for child in step.get("Plans", []):
            walk(child)

    walk(plan)
    return read


def partitions_read(url: str, sent: list[tuple[str, Any]]) -> int:
    """The highest number of partitions of a table that a statement has read."""
    most = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET jit = off")
        for sql, values in sent:
            if sql.lstrip().split(None, 1)[0] not in ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE"):
                continue
            try:
                with connection.transaction(force_rollback=True):
                    explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode()
                    ((plan,),) = connection.execute(explained, values).fetchall()
            except psycopg.Error:
                continue  # A row that was written cannot be written again.
            number = max(map(len, read_partitions(plan[0]["Plan"]).values()), default=0)
            most = max(most, number)
    return most


def measured(url: str, owner: str) -> dict[str, tuple[float, int]]:
    """For each call of a new owner: the median seconds, and the result of `partitions_read`."""
    taken = {}
    with MemorySystem(url, owner=owner, embeddings=WordVectors()) as system:
        for name, call in calls_of(system).items():
            times = []
            for n in range(CALLS):
                begin = time.perf_counter()
                call(n)
                times.append(time.perf_counter() - begin)
            with recorded() as sent:
                call(CALLS)
            taken[name] = median(times), partitions_read(url, sent)
    return taken


def _prepare(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in _SERVER.items():
            connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        connection.execute("SELECT pg_reload_conf()")
    MemorySystem(url, embeddings=False).close()
    partition(url, PARTITIONS)


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    few, many = (VERY_FEW, VERY_MANY) if full else (FEW, MANY)
    before, after = before_and_after(_prepare, fill, measured, (few, many))
    return [
        Line(
            f"{name}, partitions, {100 * many:,} conversations",
            duration(seconds),
            f"{seconds / before[name][0]:.2f} × among {100 * few:,} ({duration(before[name][0])}); reads "
            f"{partitions} of {PARTITIONS}",
            f"≤ {MOST:g} ×",
            seconds <= MOST * before[name][0],
        )
        for name, (seconds, partitions) in after.items()
    ]


if __name__ == "__main__":
    command(measure, __doc__, full="100,000 owners")
