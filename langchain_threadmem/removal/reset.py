"""Verbs: emptying a conversation."""

from __future__ import annotations

from typing import Literal

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.queries import delete_summaries
from langchain_threadmem.tree import nodes, stale_marks, trees

Cascade = Literal["stale", "delete"]
"""The fate of the summaries above an emptied conversation."""


@telemetry.observed("delete_memory", telemetry.of_name)
def erase(runtime: Runtime, name: str, cascade: Cascade = "stale") -> Flow[None]:
    """Empty a conversation in every scope, with its summaries, and delete its checkpoints.

    Summaries of the long-term memory that cover it become stale or are deleted.
    """
    owner = runtime.owner

    def clear(conn: Conn) -> Removed:
        scopes = checkpoint_queries.scopes(conn, owner, name)
        removed = Removed({}, any(watermarks.indexed(conn, tree) for _, tree in scopes))
        long_term = summary_queries.tree_of(conn, owner, "")
        if long_term is not None:
            trees.lock(conn, long_term)
            summary_queries.clear_drafts(conn, long_term)
        for scope, tree in scopes:
            trees.lock(conn, tree)
            if scope == SUMMARIES and long_term is not None:
                covering = sorted(stale_marks.above_tree(conn, tree))
                if cascade == "delete":
                    delete_summaries(conn, owner, long_term, covering)
                    removed.keys[long_term] = covering
                else:
                    stale_marks.mark_stale(conn, covering)
            removed.keys[tree] = [row.key for row in nodes.outline(conn, tree)]
            empty_tree(conn, tree, owner)
            checkpoint_queries.clear(conn, tree)
        return removed

    yield from drop(runtime, (yield from Sql(clear, write=True)))
