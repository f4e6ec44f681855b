"""Verb: counts of an owner's data, and sizes of the database that contains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from langchain_threadmem.common.usage import Used
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.prompt_words import PromptCounter, PromptWords
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.maintenance import sizes
from langchain_threadmem.maintenance.removal import tables
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import placements
from langchain_threadmem.tree.node import Bias


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """The size of a database, with the data of all owners.

    Attributes:
        owners: The number of owners with data; `None` if row-level security hides the other owners.
        bytes: SQLite: the database file and its write-ahead log. PostgreSQL: the database, including tables
            of other programs.
        table_bytes: The bytes of each table of this package with its indexes, the largest first. Names are
            without the prefix `threadmem_`.
        estimated: Whether `table_bytes` are estimates: the lengths of the values, without indexes. True
            for an SQLite library that was built without `dbstat`.
        index_bytes: The bytes of Chroma's directory; 0 if vectors are searched in SQL or on a server.
    """

    owners: int | None
    bytes: int
    table_bytes: Mapping[str, int]
    estimated: bool
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one owner's data, and the size of the whole database.

    Attributes:
        owner: The owner that the counts are of.
        conversations: The number of conversations with a message.
        messages: The number of their live messages of people and models.
        summaries: The number of summaries of sessions and of the long-term memory.
        vectors: The number of vectors of messages and summaries, of all embedding models.
        checkpoints: The number of LangGraph's checkpoints.
        items: The number of values in the `ThreadMemStore`.
        unindexed: The approximate number of messages that are not in the index of words yet. The next search
            adds up to 2,000, and leaves more to the background. 0 for an encrypted memory, which has none.
        usage: Model calls and tokens since the system was opened, by purpose.
        prompts: The words of prompts since the system was opened, and those that repeat the beginning of an
            earlier prompt. Prompts are the lists that this memory returned for an open question.
        database: The size of the database, with the data of all owners.
        bias: The thresholds of selectors, learned from messages that were placed by hand.
    """

    owner: str
    conversations: int
    messages: int
    summaries: int
    vectors: int
    checkpoints: int
    items: int
    unindexed: int
    usage: Mapping[str, Used]
    prompts: PromptWords
    database: DatabaseSize
    bias: Bias


def statistics(runtime: Runtime) -> Flow[Statistics]:
    """Counts of the owner's data, and the size of the database; see `MemorySystem.stats`."""
    owner, indexes = runtime.owner, runtime.get(Indexes)

    def read(
        conn: Conn,
    ) -> tuple[sizes.Counts, int, Bias, int | None, int, tuple[Mapping[str, int], bool]]:
        counted, bias = sizes.counts(conn, owner), placements.bias_of(conn, owner)
        unindexed = sum(watermarks.missing(conn, owner, indexes.lexicon).values())
        owners = None if conn.restricted else len(tables.owners(conn))
        return counted, unindexed, bias, owners, sizes.size(conn), sizes.table_sizes(conn)

    counted, unindexed, bias, owners, size, (table_bytes, estimated) = yield from Sql(read)
    path, directory = runtime.database.path, indexes.settings.directory
    log = None if path is None else path.with_name(f"{path.name}-wal")
    files, index_bytes = yield from Call(lambda: (bytes_of(path) + bytes_of(log), bytes_of(directory)))
    return Statistics(
        owner,
        *counted,
        unindexed=unindexed,
        usage=runtime.usage.by_purpose(),
        prompts=runtime.get(PromptCounter).total,
        database=DatabaseSize(owners, files or size, table_bytes, estimated, index_bytes),
        bias=bias,
    )


def bytes_of(path: Path | None) -> int:
    """The bytes of a file, or of the files in a directory; 0 if there is none."""
    found = [] if path is None else path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in found if file.is_file())
