"""Repair of indexes, words and vectors, which are rebuilt from messages, and of links to purged messages."""

from __future__ import annotations

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.catch_up_words import catch_up_words
from langchain_threadmem.index.owner_index import index_problems, reindex
from langchain_threadmem.maintenance import integrity
from langchain_threadmem.maintenance.removal import purging
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import trees

_REINDEX = Statement.of(sqlite="REINDEX", postgresql="SELECT 1")


def repair(runtime: Runtime) -> Flow[list[str]]:
    """Repair the derived data of a database, and the owner's links to purged messages; no other data changes.

    Database indexes are rebuilt if the check of the file finds a fault. If a row of the words of messages or
    a watermark of an index is damaged, the index of words is rebuilt. Damaged vectors are deleted with all
    vectors of the same conversation, and the next search embeds these messages. A vector index that differs
    from the database is rebuilt. Checksums detect damaged rows on SQLite only. A message below a purged
    message is attached to its nearest remaining ancestor.

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

    def reattach(conn: Conn) -> int:
        tree_ids = [tree for _, tree in trees.conversations(conn, runtime.owner)]
        return sum(purging.reattach(conn, tree) for tree in tree_ids)

    if (yield from Sql(integrity.problems)):
        yield from Sql(lambda conn: conn.run(_REINDEX), write=True)
        if not (yield from Sql(integrity.problems)):
            repairs.append("the indexes of the database file were rebuilt")
    repairs += yield from Sql(integrity.delete_damaged, write=True)
    if repairs:
        yield from catch_up_words(runtime, None, whole=True)
    if moved := (yield from Sql(reattach, write=True)):
        repairs.append(f"{plural(moved, 'message')} below a purged message attached to the nearest one left")
    if (yield from index_problems(runtime)):
        count = yield from reindex(runtime)
        repairs.append(f"the vector index was rebuilt with {plural(count, 'vector')}")
    return repairs
