"""Summaries of single messages."""

from __future__ import annotations

from langchain_threadmem.core.nodes import MessageSummary
from langchain_threadmem.storage.queries import trees
from langchain_threadmem.storage.schema import summary
from langchain_threadmem.storage.statements import Conn, insert_of

_PUT = insert_of(summary, replace=True)


def put(conn: Conn, tree_id: int, key: int, message: str, written: MessageSummary) -> None:
    """Store the summary of a node with this message, over an older one if there is one."""
    title, text = written.title, written.summary
    if (seal := conn.seal) is not None:
        title, text = seal.text(message, title), seal.text(message, text)
    conn.run(_PUT, key, title, text)
    trees.changed(conn, tree_id)
