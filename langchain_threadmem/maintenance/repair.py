"""Repair of what is derived from messages, and removal of what cannot be read."""

from __future__ import annotations

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.catch_up_words import catch_up_words
from langchain_threadmem.index.owner_index import index_problems, reindex
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.maintenance import integrity, upkeep
from langchain_threadmem.maintenance.removal import purging
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import is_lost, nodes_of

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


ROWS_AT_ONCE = 1_000

Lost = dict[str, tuple[int, list[int]]]
"""The trees of conversations, and the keys of their messages that cannot be read, by name."""


def count_unreadable(runtime: Runtime) -> Flow[dict[str, int]]:
    """The numbers of an owner's messages, and rows of other capabilities, that cannot be read, by noun."""

    def read(conn: Conn) -> dict[str, int]:
        encryption_keys.check(conn)
        counts = {"message": sum(len(keys) for _, keys in _lost(conn, runtime.owner).values())}
        for one in upkeep.registered():
            counts[one.noun] = one.unreadable(conn, runtime.owner, remove=False)
        return {noun: count for noun, count in counts.items() if count}

    return (yield from Sql(read))


def remove_unreadable(runtime: Runtime) -> Flow[int]:
    """Remove the messages and the rows of other capabilities that cannot be read; returns their number.

    Messages are removed from history, memory and indexes. The messages below them become children of the
    nearest message above that is left. Summaries that cover them are emptied. A checkpoint is removed whole;
    those after it stay.
    """

    def write(conn: Conn) -> tuple[int, list[Removed]]:
        encryption_keys.claim(conn)
        lost = _lost(conn, runtime.owner)
        trees.lock_all(conn, {tree for tree, _ in lost.values()})
        removed = []
        for name, (tree, keys) in lost.items():
            removed.append(summary_queries.take_out_removed(conn, runtime.owner, name, keys))
            purging.purge(conn, runtime.owner, tree, set(keys))
        others = sum(one.unreadable(conn, runtime.owner, remove=True) for one in upkeep.registered())
        return others + sum(len(keys) for _, keys in lost.values()), removed

    count, removed = yield from Sql(write, write=True)
    for one in removed:
        yield from drop(runtime, one)
    return count


def _lost(conn: Conn, owner: str) -> Lost:
    found: Lost = {}
    for name, tree in trees.conversations(conn, owner):
        last, keys = 0, list[int]()
        while rows := nodes.since(conn, tree, last, ROWS_AT_ONCE):
            keys += [row.key for row, node in zip(rows, nodes_of(rows), strict=True) if is_lost(node)]
            last = rows[-1].seq
        if keys:
            found[name] = tree, keys
    return found
