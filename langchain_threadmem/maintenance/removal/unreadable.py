"""Removal of what cannot be read, damaged or of a lost key: messages, store items and checkpoints."""

from __future__ import annotations

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.maintenance import upkeep
from langchain_threadmem.maintenance.removal import purging
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import is_lost, nodes_of

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
