"""The time to search all vectors of an owner, exactly or in a Chroma collection of the owner, by size.

For each size the same random unit vectors are stored as in SQL and added to a collection on disk. "Exact" is
a matrix product over vectors in memory. Each process decodes the bytes of SQL once and opens Chroma once;
these times are separate. The second part has many small owners and measures the time and the disk space of
one more collection. The third part has an owner with many short conversations: the first query, which indexes
their words and embeds them with a fake model, and an erasure while Chroma is filled in the background.

    python -m benchmarks.owners [--full]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import median

import chromadb
import numpy as np
from chromadb.config import Settings
from numpy.typing import NDArray

from benchmarks._measure import Line, command, duration, rounds, within
from benchmarks.forgetting import StandIn
from langchain_threadmem import MemorySystem
from langchain_threadmem.index.chroma import ChromaIndex
from langchain_threadmem.index.owner_index import OwnerVectors
from langchain_threadmem.index.vector_index import ExactIndex
from langchain_threadmem.index.vectors import Vectors

DIMENSIONS = 384
SIZES = (100, 1_000, 5_000, 10_000, 20_000)
MORE = (50_000,)
OWNERS = 100
MOST = 48
AT_A_TIME = 5
CONVERSATIONS = 10_000


def unit_vectors(number: int) -> NDArray[np.float32]:
    """Random unit vectors around a hundred centers, no harder to search than vectors of texts."""
    dice = np.random.default_rng(7)
    subjects = dice.normal(size=(100, DIMENSIONS))
    matrix = subjects[dice.integers(0, 100, number)] + 1.5 * dice.normal(size=(number, DIMENSIONS))
    found: NDArray[np.float32] = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return found


def kept(matrix: NDArray[np.float32]) -> bytes:
    """The bytes of vectors, as in the database."""
    return matrix.astype(np.float16).tobytes()


def exact_of(stored: bytes) -> ExactIndex:
    """An exact index over vectors in the format of the database."""
    matrix = np.frombuffer(stored, np.float16).reshape(-1, DIMENSIONS).astype(np.float32)
    numbers = np.arange(1, len(matrix) + 1)
    index = ExactIndex()
    index.extend(Vectors(numbers, numbers, matrix))
    return index


def one_owner(client: chromadb.api.ClientAPI, matrix: NDArray[np.float32], repeats: int) -> Line:
    """The line for one number of vectors."""
    number = len(matrix)
    stored = kept(matrix)
    begin = time.perf_counter()
    exact = exact_of(stored)
    loaded = time.perf_counter() - begin
    begin = time.perf_counter()
    index = ChromaIndex(client, f"owner of {number}", "random", "bench")
    index.add(range(1, number + 1), matrix)
    added = time.perf_counter() - begin
    asked: Iterator[NDArray[np.float32]] = cycle(unit_vectors(997)[:50])

    def ask(one: ExactIndex | ChromaIndex) -> None:
        for _ in range(AT_A_TIME):
            one.search(next(asked), MOST)

    times = rounds({"exact": lambda: ask(exact), "Chroma": lambda: ask(index)}, repeats, AT_A_TIME)
    found = [set(exact.search(v, 10).keys.tolist()) for v in unit_vectors(50)]
    near = [set(index.search(v, 10).keys.tolist()) for v in unit_vectors(50)]
    same = sum(len(one & other) for one, other in zip(found, near, strict=True)) / sum(map(len, found))
    return Line(
        f"{number:,} vectors, a search",
        f"exact {duration(median(times['exact']))}, Chroma {duration(median(times['Chroma']))}",
        f"decoded from SQL in {duration(loaded)}; added to Chroma in {duration(added)}; "
        f"{same:.0%} of the ten nearest found by Chroma",
    )


def many_owners(client: chromadb.api.ClientAPI, directory: Path, number: int) -> Line:
    """The line for the cost of each of many small collections."""
    matrix = unit_vectors(number)
    before = size_of(directory)
    spent = []
    for n in range(OWNERS):
        begin = time.perf_counter()
        ChromaIndex(client, f"small owner {n}", "random", "bench").add(range(1, number + 1), matrix)
        spent.append(time.perf_counter() - begin)
    grown = (size_of(directory) - before) / OWNERS
    return Line(
        f"{OWNERS} owners of {number:,} vectors, each",
        f"{duration(median(spent))}, {grown / 1e3:.0f} KB on disk",
        f"in SQL {len(kept(matrix)) / 1e3:.0f} KB",
    )


def many_conversations(number: int = CONVERSATIONS) -> list[Line]:
    """The lines for indexing many conversations of two messages, and for an erasure during the indexing."""
    spent: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        MemorySystem(Path(directory) / "memory.db", embeddings=StandIn()) as system,
    ):
        for n in range(number):
            system.conversation(f"c{n}").append(f"question {n} about bread", f"answer {n} about tea")

        def timed(what: str, call: Callable[[], object]) -> object:
            begin = time.perf_counter()
            found = call()
            spent[what] = time.perf_counter() - begin
            return found

        timed("the first query", lambda: system.query("bread", k_limit=1))
        timed("a query while the index is filled", lambda: system.query("tea", k_limit=1))
        timed(
            "the wait of an erasure while the index is filled",
            lambda: system.runtime.ahead.wait(system.runtime.get(OwnerVectors).filling),
        )
        timed("a whole erasure while the index is filled", lambda: system.erase(conversation="c5"))
        timed("a query after the erasure", lambda: system.query("bread", k_limit=1))
        assert system.verify().ok
    beside = f"{number:,} conversations of two messages"
    bars = {"the wait of an erasure while the index is filled": 1.0}
    return [
        within(what, seconds, most=bars[what], beside=beside)
        if what in bars
        else Line(what, duration(seconds), beside)
        for what, seconds in spent.items()
    ]


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        client = chromadb.PersistentClient(directory, Settings(anonymized_telemetry=False))
        lines = [Line("opening Chroma, without its import", duration(time.perf_counter() - begin))]
        matrix = unit_vectors(max(SIZES + MORE if full else SIZES))
        sizes = SIZES + MORE if full else SIZES
        lines += [one_owner(client, matrix[:number], 21 if full else 11) for number in sizes]
        lines.append(many_owners(client, Path(directory), 200))
        client.close()  # type: ignore[attr-defined] # the base class lacks it
    return lines + many_conversations()


if __name__ == "__main__":
    command(measure, __doc__, full="up to 50,000 vectors; takes some minutes")
