"""Repair of derived data: indexes, words and vectors that are made from the messages anew."""

from __future__ import annotations

from langchain_threadmem import integrity
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.catch_up import catch_up_owner_words, index_problems, reindex
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage.statements import Statement

_REINDEX = Statement.of(sqlite="REINDEX", postgresql="SELECT 1")


def repair(runtime: Runtime) -> Flow[list[str]]:
    """Mend the derived data of a database; messages and all that is not made from them stay as they are.

    Database indexes are rebuilt if the check of the file finds a fault. If a row of the words of messages or
    of the progress of an index is damaged, all words are made from the messages anew. Damaged vectors are
    deleted with those of the same conversation, and the next search embeds these messages anew. An index of
    vectors that differs from SQL is filled anew. Checksums find damaged rows on SQLite alone.

    Returns:
        The repairs, one sentence each; `verify` finds the problems that are left.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> from langchain_threadmem.engine.flow import run
        >>> system = MemorySystem(embeddings=False)
        >>> run(repair(system.runtime), system.runtime)
        []
    """
    done: list[str] = []
    if (yield from Sql(integrity.problems)):
        yield from Sql(lambda conn: conn.run(_REINDEX), write=True)
        if not (yield from Sql(integrity.problems)):
            done.append("the indexes of the database file were built anew")
    done += yield from Sql(integrity.mend, write=True)
    if done:
        yield from catch_up_owner_words(runtime)
    if (yield from index_problems(runtime)):
        count = yield from reindex(runtime)
        done.append(f"the vector index was filled anew with {plural(count, 'vector')}")
    return done
