"""The number of SQL statements that each public method sends to SQLite, compared with a budget.

The conversation has a few hundred messages in several threads. Each method is called twice, and the second
call is counted, so that the caches are filled. A statement is one call of the driver's `execute` or
`executemany` in the calling thread; transaction statements and pragmas are not counted. More statements mean
more round trips on PostgreSQL.

    python -m benchmarks.statements
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6

from benchmarks._measure import Line, command
from benchmarks.checkpoint import ask, chat, config_of
from langchain_threadmem import (
    ExtractiveSummarizer,
    MemorySystem,
    SemanticNodeSelector,
    ThreadMemSaver,
)

TURNS, GRAPH_TURNS = 200, 50
SUBJECTS = ("bread", "taxes", "tomatoes", "marathon", "violin", "chess")
BUDGETS = {
    "append": 2,
    "append, semantic selector": 10,
    "recall": 12,
    "retrieve": 13,
    "put": 4,
    "get_tuple": 1,
    "place": 24,
    "edit": 19,
    "regenerate": 18,
    "summarize": 4,
    "summarize_session": 55,
    "query": 18,
    "add_memory": 5,
    "erase": 90,
}
"""The highest allowed number of statements of each method."""
_UNCOUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA")


class WordVectors(Embeddings):
    """A fake embedding model, which adds a fixed random vector for each word."""

    model_name = "word-vectors"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        words = [np.random.default_rng(zlib.crc32(word.encode())) for word in text.lower().split()]
        return list(sum((rng.standard_normal(64) for rng in words), np.ones(64)))


class Counter:
    """The number of statements that the creating thread has sent."""

    def __init__(self) -> None:
        self.statements = 0
        self._thread = threading.get_ident()

    def add(self, sql: str) -> None:
        counted = not sql.lstrip().upper().startswith(_UNCOUNTED)
        self.statements += counted and threading.get_ident() == self._thread


@contextmanager
def counting() -> Iterator[Counter]:
    """Count the statements on connections that are opened inside the context."""
    counter, connect = Counter(), sqlite3.connect

    class CountingCursor(sqlite3.Cursor):
        def execute(self, sql: str, *arguments: Any) -> CountingCursor:
            counter.add(sql)
            return super().execute(sql, *arguments)

        def executemany(self, sql: str, *arguments: Any) -> CountingCursor:
            counter.add(sql)
            return super().executemany(sql, *arguments)

    class CountingConnection(sqlite3.Connection):
        def cursor(self, factory: Any = CountingCursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *arguments: Any) -> Any:
            return self.cursor().execute(sql, *arguments)

    sqlite3.connect = lambda *arguments, **options: connect(  # type: ignore[assignment]
        *arguments, **{"factory": CountingConnection, **options}
    )
    try:
        yield counter
    finally:
        sqlite3.connect = connect


def texts(n: int) -> tuple[str, str]:
    """A question and its answer about one of the subjects."""
    subject = SUBJECTS[n % len(SUBJECTS)]
    return f"What about {subject}, part {n}?", f"Part {n} of {subject} is as follows, in a few words."


def prepared(system: MemorySystem) -> dict[str, Callable[[], Callable[[], object]]]:
    """A function for each method that prepares a call; only the call is counted."""
    linear = system.conversation("linear", summarizer=ExtractiveSummarizer())
    threads = system.conversation("threads", node_selector=SemanticNodeSelector())
    for n in range(TURNS):
        linear.append(*texts(n))
        threads.append(*texts(n))
    saver = ThreadMemSaver(system)
    graph = chat(saver)
    for n in range(GRAPH_TURNS):
        ask(graph, n)
    system.start_session("notes")
    turns = map(texts, count(TURNS))
    first, *answers = [node.id for node in linear.history if node.message.type == "ai"]
    questions = [node.id for node in linear.history if node.message.type == "human"]
    asked = [node.id for node in threads.history if node.message.type == "human"]
    conversations = ["linear", "threads"]
    return {
        "append": lambda: partial(linear.append, *next(turns)),
        "append, semantic selector": lambda: partial(threads.append, *next(turns)),
        "recall": lambda: partial(threads.recall, "What about the violin?"),
        "retrieve": lambda: partial(threads.retrieve, "What about the violin?"),
        "put": lambda: partial(saver.put, *following(saver, *next(turns))),
        "get_tuple": lambda: partial(saver.get_tuple, config_of()),
        "place": lambda: partial(linear.place, questions.pop(), first),
        "edit": lambda: partial(threads.edit, asked.pop(), "What about bread after all?"),
        "regenerate": lambda: partial(linear.regenerate, answers.pop(-10), "In other words."),
        "summarize": lambda: partial(linear.summarize, linear.append(*next(turns))[-1].id),
        "summarize_session": lambda: (
            linear.append(*next(turns)) and partial(system.summarize_session, "linear")
        ),
        "query": lambda: partial(system.query, "What about the violin?"),
        "add_memory": lambda: (
            system.add_memory(*next(turns)[:1]) and partial(system.add_memory, *next(turns)[:1])
        ),
        "erase": lambda: partial(system.erase, conversation=conversations.pop()),
    }


def following(saver: BaseCheckpointSaver[Any], *new: str) -> tuple[Any, Any, Any, Any]:
    """The arguments of `put` for a checkpoint that adds messages to the last checkpoint."""
    last = saver.get_tuple(config_of())
    assert last is not None
    values, versions = last.checkpoint["channel_values"], last.checkpoint["channel_versions"]
    changed = {"messages": saver.get_next_version(str(versions["messages"]), None)}
    checkpoint = {
        **last.checkpoint,
        "id": str(uuid6(clock_seq=-2)),
        "channel_values": {**values, "messages": [*values["messages"], *map(HumanMessage, new)]},
        "channel_versions": {**versions, **changed},
    }
    return last.config, checkpoint, {"source": "loop", "step": 1}, changed


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    lines = []
    with tempfile.TemporaryDirectory() as directory, counting() as counter:
        path = Path(directory) / "memory.db"
        with MemorySystem(path, embeddings=WordVectors(), summarizer=ExtractiveSummarizer()) as system:
            for name, prepare in prepared(system).items():
                system.flush()
                prepare()()
                call, before = prepare(), counter.statements
                call()
                spent, budget = counter.statements - before, BUDGETS[name]
                lines.append(
                    Line(f"SQL statements of {name}", str(spent), "", f"≤ {budget}", spent <= budget)
                )
    return lines


if __name__ == "__main__":
    command(measure, __doc__, full=None)
