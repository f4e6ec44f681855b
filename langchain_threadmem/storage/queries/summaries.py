"""Summaries of single messages."""

from __future__ import annotations

from langchain_threadmem.core.nodes import MessageSummary
from langchain_threadmem.storage.queries import trees
from langchain_threadmem.storage.schema import summary
from langchain_threadmem.storage.statements import Conn, insert_of

_PUT = insert_of(summary, replace=True)


def put(conn: Conn, tree_id: int, key: int, written: MessageSummary) -> None:
    """Store the summary of a node, over an older one if there is one."""
    conn.run(_PUT, key, written.title, written.summary)
    trees.changed(conn, tree_id)
