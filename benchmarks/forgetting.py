"""The cost of forgetting among 100,000 messages, of an erasure, and of a query of short-term memory.

The messages are in one session or in a hundred. Forgetting is timed twice: the statement that chooses and
marks the forgotten units, and the whole method, which also removes them from the word index. A fake embedding
model produces the vectors of short-term memory. Erasing one of many conversations of 20 messages is timed
beside VACUUM of the file, before any message is in the index of words, and after all are: SQLite before 3.42
rewrites this index in each erasure.

    python -m benchmarks.forgetting [--full]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks._measure import Line, command, duration
from langchain_threadmem import MemorySystem
from langchain_threadmem.maintenance.removal import forgettable
from langchain_threadmem.storage.statements import Conn

MANY = 100_000
SHARE = 0.1
DIMENSIONS = 384


class StandIn(Embeddings):
    """A fake embedding model, whose vector of a text is fixed and random."""

    model_name = "stand-in"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(np.random.default_rng(abs(hash(text))).standard_normal(DIMENSIONS))


class _UndoneError(Exception):
    """Raised to roll a transaction back."""


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    repeats = 7 if full else 3
    return [
        *(line for sessions in (1, 100) for line in _forgetting(sessions, repeats)),
        *(_erasing(10_000 if full else 2_000, 4 * repeats + 1, indexed) for indexed in (False, True)),
        *(_short_term(capacity, 200 if full else 50) for capacity in (200, 5_000)),
    ]


def _forgetting(sessions: int, repeats: int) -> list[Line]:
    what = f"{MANY:,} messages in {sessions} session{'s' * (sessions > 1)}"
    with (
        tempfile.TemporaryDirectory() as directory,
        MemorySystem(Path(directory) / "memory.db", embeddings=False) as system,
    ):
        each = MANY // sessions
        for number in range(sessions):
            first = number * each
            texts = [f"message {n} about bread and tea" for n in range(first, first + each)]
            system.conversation(f"session {number}").extend(texts)
        system.flush()
        spent = [_statement(system) for _ in range(repeats)]
        begin = time.perf_counter()
        gone = system.forget(SHARE).units
        whole = time.perf_counter() - begin
    assert gone == MANY * SHARE
    return [
        Line(
            f"the statement that forgets {SHARE:.0%} of {what}",
            duration(median(spent)),
            "",
            "< 1 s",
            median(spent) < 1,
        ),
        Line(f"forget {SHARE:.0%} of {what}, word index included", duration(whole), "", "< 1 s", whole < 1),
    ]


def _erasing(conversations: int, repeats: int, indexed: bool) -> Line:
    with (
        tempfile.TemporaryDirectory() as directory,
        MemorySystem(Path(directory) / "memory.db", embeddings=False) as system,
    ):
        for number in range(conversations):
            system.conversation(f"c{number}").extend([f"message {n} about bread and tea" for n in range(20)])
        if indexed:
            system.flush()
        system.scrub()
        spent, rewriting = [], []
        for number in range(repeats):
            begin = time.perf_counter()
            receipt = system.erase(conversation=f"c{number * 47}")
            spent.append(time.perf_counter() - begin)
            assert receipt.ok
            assert receipt.messages == 20
        for _ in range(3):
            begin = time.perf_counter()
            system.runtime.database.scrub(rewrite=True)
            rewriting.append(time.perf_counter() - begin)
    taken = median(spent)
    return Line(
        f"erase one of {conversations:,} conversations of 20 messages{', with the index of words' * indexed}",
        duration(taken),
        f"{taken / median(rewriting):.3f} × VACUUM",
        "≤ 20 ms",
        taken <= 0.02,
    )


def _statement(system: MemorySystem) -> float:
    taken = []

    def write(conn: Conn) -> None:
        begin = time.perf_counter()
        found = forgettable.forget(conn, system.owner, int(MANY * SHARE), 1.0)
        taken.append(time.perf_counter() - begin)
        assert len(found) == MANY * SHARE
        raise _UndoneError

    try:
        system.runtime.database.write(write)
    except _UndoneError:
        return taken[0]
    raise AssertionError("the transaction was committed")


def _short_term(capacity: int, repeats: int) -> Line:
    model = StandIn()
    with MemorySystem(embeddings=model) as system:
        nodes = system.conversation("session").extend([f"message {n}" for n in range(capacity)])
        system.enable_stm(capacity, restore_session_id="session")
        spent = []
        for node in [nodes[0], *nodes[: repeats % (capacity + 1)]]:
            vector = model.embed_query(str(node.message.content))
            begin = time.perf_counter()
            [unit], *_ = system.query(
                query_vector=vector, short_term_only=True, k_limit=5, recall_context=False
            )
            spent.append(time.perf_counter() - begin)
            assert unit.content == node.message.content
    taken = median(spent[1:])
    bar = ("< 1 ms", taken < 1e-3) if capacity == 200 else ("", None)
    return Line(f"a query of short-term memory, {capacity:,} units", duration(taken), "", *bar)


if __name__ == "__main__":
    command(measure, __doc__, full="longer rounds")
