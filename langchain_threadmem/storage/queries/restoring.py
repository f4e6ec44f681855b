"""Restoring: a tree that was saved elsewhere is put back, every node under its own number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langchain_threadmem.core.nodes import MessageSummary, State
from langchain_threadmem.storage.queries import nodes, strides, summaries, trees
from langchain_threadmem.storage.queries.ends import Anchor, next_key
from langchain_threadmem.storage.statements import Conn


class Saved(NamedTuple):
    """A node as it was saved elsewhere, to be put back under its own number."""

    seq: int
    parent: int | None
    message: str
    role: str
    body: str
    created: float
    state: int
    superseded_by: int | None
    summary: MessageSummary | None


def restore(conn: Conn, tree_id: int, saved: Sequence[Saved], tip: int | None) -> None:
    """Fill an empty tree with nodes under the numbers they had.

    Args:
        conn: A write transaction.
        tree_id: A tree without nodes.
        saved: Nodes, parents before children, and otherwise in the order of their numbers.
        tip: Number of the node in which the active thread ends.
    """
    ends: dict[int | None, Anchor] = {None: Anchor(None, None, taken=False)}
    system = Anchor(None, 0, taken=False)
    for row in saved:
        above = ends[row.parent]
        # Numbers rise along a segment.
        key = next_key(conn, tree_id, above.key, above.taken or row.seq < (above.seq or 0))
        ends[row.parent] = above._replace(taken=True)
        ends[row.seq] = Anchor(key, row.seq, taken=False)
        if row.role == "system" and row.state == State.LIVE:
            system = max(system, ends[row.seq], key=lambda one: one.seq or 0)
    nodes.insert(
        conn,
        [
            (
                *(ends[row.seq].key, tree_id, *row[:-1], nodes.named(row.message, row.seq)),
                strides.opens(ends[row.seq].key or 0, row.seq, row.parent),
            )
            for row in saved
        ],
    )
    for row in saved:
        if row.summary is not None:
            summaries.put(conn, tree_id, ends[row.seq].key or 0, row.message, row.summary)
    trees.settle(conn, tree_id, ends[tip].key, system.key)
