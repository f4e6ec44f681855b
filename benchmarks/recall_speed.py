"""The time of recall by words over 100,000 messages, and by words and vectors over 2,000 messages.

The peers over the same texts are SQLite's `bm25()` (FTS5) and `rank_bm25.BM25Okapi`. The texts are generated
from a vocabulary with word frequencies like those of a language. A query has four words of a message,
including common words. The vectors come from a table, so that no embedding model is timed. Embedding and
indexing do not count; the processor time to index the words of a message is a figure of its own, beside an
insert into FTS5, and so is that of the first recall, which leaves the words to the background.

    python -m benchmarks.recall_speed [--full]
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import accumulate, cycle
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from rank_bm25 import BM25Okapi

from benchmarks._measure import Line, beside, command, rounds, within
from langchain_threadmem import ChatMemory, MemorySystem

MANY, FEW, IMPORTED = 100_000, 2_000, 20_000
VOCABULARY = 20_000
WORDS = 20
DIMENSIONS = 384
AT_A_TIME = 5


def texts_and_queries(number: int, queries: int) -> tuple[list[list[str]], list[list[str]]]:
    """Messages and queries as lists of words, the same in every run."""
    dice = random.Random(7)
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    vocabulary = sorted({"".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(VOCABULARY)})
    dice.shuffle(vocabulary)
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))
    texts = [dice.choices(vocabulary, cum_weights=weights, k=WORDS) for _ in range(number)]
    return texts, [dice.sample(sorted(set(dice.choice(texts))), 4) for _ in range(queries)]


class Table(Embeddings):
    """A fake embedding model with vectors from a table."""

    def __init__(self, texts: Sequence[str]) -> None:
        vectors = np.random.default_rng(7).normal(size=(len(texts), DIMENSIONS))
        self._vectors: dict[str, list[float]] = dict(zip(texts, vectors.tolist(), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vectors[text]


class Fts5:
    """The ranking of SQLite's FTS5."""

    def __init__(self, path: Path, texts: Sequence[Sequence[str]]) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("CREATE VIRTUAL TABLE message USING fts5(words)")
        rows = [(" ".join(text),) for text in texts]
        self._database.executemany("INSERT INTO message (words) VALUES (?)", rows)
        self._database.commit()

    def find(self, query: Sequence[str]) -> list[int]:
        sql = "SELECT rowid FROM message WHERE message MATCH ? ORDER BY bm25(message) LIMIT 10"
        return [row[0] for row in self._database.execute(sql, (" OR ".join(query),))]


def okapi(texts: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], list[int]]:
    index = BM25Okapi(texts)

    def find(query: Sequence[str]) -> list[int]:
        scores = index.get_scores(query)
        best: list[int] = np.argsort(-scores)[:10].tolist()
        return best

    return find


def fill(memory: ChatMemory, texts: Sequence[Sequence[str]]) -> None:
    """Store the texts as alternating human and AI messages."""
    kinds = cycle((HumanMessage, AIMessage))
    memory.extend([kind(" ".join(text)) for kind, text in zip(kinds, texts, strict=False)])


def used(call: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """The seconds of processor time of a call."""
    begin = clock()
    call()
    return clock() - begin


def indexing(texts: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]) -> list[Line]:
    """The lines for the words of new messages."""
    ours, theirs, first = [], [], []
    for n in range(3):
        with tempfile.TemporaryDirectory() as directory, MemorySystem(embeddings=False) as system:
            fill(system.conversation("c"), texts)
            ours.append(used(system.flush) / len(texts))
            theirs.append(used(lambda: Fts5(Path(directory, "fts5.db"), texts)) / len(texts))
            memory = system.conversation("imported")
            fill(memory, texts)
            first.append(used(lambda: memory.recall(" ".join(queries[n])), time.thread_time))  # noqa: B023
    peer = f"{median(ours) / median(theirs):.2f} × FTS5"
    many = f"{len(texts):,} messages"
    return [
        within(f"CPU to index the words of a message, {many}", median(ours), most=4e-5, beside=peer),
        within(f"CPU of the first recall, {many} imported", median(first), most=0.25),
    ]


def asked(find: Callable[[Sequence[str]], object], queries: Sequence[Sequence[str]]) -> Callable[[], None]:
    """A function that runs the next `AT_A_TIME` queries at each call."""
    order = cycle(queries)

    def ask() -> None:
        for _ in range(AT_A_TIME):
            find(next(order))

    return ask


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    repeats = 41 if full else 11
    texts, queries = texts_and_queries(MANY, AT_A_TIME * (repeats + 1))
    flat = [" ".join(words) for words in [*texts[:FEW], *queries]]
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for number, most, vectors in ((MANY, 3e-3, False), (FEW, 5e-3, True)):
            some = texts[:number]
            embeddings: Table | Literal[False] = Table(flat) if vectors else False
            path = Path(directory) / f"{number}.db"
            with MemorySystem(f"sqlite:///{path}", embeddings=embeddings) as system:
                memory = system.conversation("c")
                fill(memory, some)
                memory.flush()
                fts = Fts5(path.with_suffix(".fts5"), some)
                times = rounds(
                    {
                        "langchain_threadmem": asked(lambda words: memory.recall(" ".join(words)), queries),  # noqa: B023
                        "FTS5 bm25()": asked(fts.find, queries),
                        "rank_bm25": asked(okapi(some), queries),
                    },
                    repeats,
                    AT_A_TIME,
                )
            what = f"recall, {number:,} messages, " + ("words and vectors" if vectors else "words alone")
            others = beside(times, "langchain_threadmem")
            lines.append(within(what, median(times["langchain_threadmem"]), most=most, beside=others))
    return lines + indexing(texts[:IMPORTED], queries)


if __name__ == "__main__":
    command(measure, __doc__, full="more queries")
