"""Repair of derived data: indexes, words and vectors are rebuilt from the messages."""

from __future__ import annotations

from langchain_threadmem import integrity
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.catch_up import catch_up_owner_words, index_problems, reindex
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage.statements import Statement

_REINDEX = Statement.of(sqlite="REINDEX", postgresql="SELECT 1")


def repair(runtime: Runtime) -> Flow[list[str]]:
    """Repair the derived data of a database; messages and other data that is not derived are not changed.

    Database indexes are rebuilt if the check of the file finds a fault. If a row of the words of messages or
    a watermark of an index is damaged, the index of words is rebuilt. Damaged vectors are deleted with all
    vectors of the same conversation, and the next search embeds these messages. A vector index that differs
    from the database is rebuilt. Checksums detect damaged rows on SQLite only.

    Returns:
        The repairs, one sentence each; `verify` reports the remaining problems.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> from langchain_threadmem.engine.flow import run
        >>> system = MemorySystem(embeddings=False)
        >>> run(repair(system.runtime), system.runtime)
        []
    """
    repairs: list[str] = []
    if (yield from Sql(integrity.problems)):
        yield from Sql(lambda conn: conn.run(_REINDEX), write=True)
        if not (yield from Sql(integrity.problems)):
            repairs.append("the indexes of the database file were rebuilt")
    repairs += yield from Sql(integrity.delete_damaged, write=True)
    if repairs:
        yield from catch_up_owner_words(runtime)
    if (yield from index_problems(runtime)):
        count = yield from reindex(runtime)
        repairs.append(f"the vector index was rebuilt with {plural(count, 'vector')}")
    return repairs
