"""Verbs: emptying a conversation."""

from __future__ import annotations

from typing import Literal

from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, stale_marks, trees

Cascade = Literal["stale", "delete"]
"""The fate of the summaries above an emptied conversation."""


@telemetry.observed("delete_memory", telemetry.of_name)
def erase(runtime: Runtime, name: str, cascade: Cascade = "delete") -> Flow[None]:
    """Empty a conversation in every scope, with its summaries, and delete its checkpoints.

    Summaries of the long-term memory, which may quote it, are deleted too or become stale.
    """
    owner = runtime.owner

    def clear(conn: Conn) -> Removed:
        own = [tree for _, tree in trees.scopes(conn, owner, name)]
        quoting = summary_queries.lock_quoting(conn, owner, [name], own) if own else []
        indexed = any(watermarks.indexed(conn, tree) for tree in own)
        removed = {tree: [row.key for row in nodes.outline(conn, tree)] for tree in own}
        if cascade == "delete" and own:
            summaries = summary_queries.empty_quoting(conn, owner, [name])
            removed, indexed = removed | summaries.keys, indexed or summaries.indexed
        for tree in quoting:
            stale_marks.mark_stale(conn, stale_marks.above_tree(conn, tree))
            summary_queries.clear_drafts(conn, tree)
        for tree in own:
            empty_tree(conn, tree, owner)
        return Removed(removed, indexed)

    yield from drop(runtime, (yield from Sql(clear, write=True)))
