"""The caches of postings and of summary indexes of conversations, and the flows that update them."""

from __future__ import annotations

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index.catch_up_words import documents_of
from langchain_threadmem.index.documents import DocumentRow
from langchain_threadmem.index.units import memory
from langchain_threadmem.recall.postings import Postings
from langchain_threadmem.recall.scoring import SummaryIndex
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import grafts, nodes, trees


class PostingsCache(TreeCache[Postings]):
    """The postings of conversations, by tree and epoch."""

    capacity = 16


class SummaryIndexCache(TreeCache[SummaryIndex]):
    """The summaries of conversations as scored texts, by tree and epoch."""

    capacity = 16


def postings_of(runtime: Runtime, tree: int, *, shared: bool = True) -> Flow[tuple[Postings, trees.Head]]:
    """The postings of a conversation, and the head of the tree at the time of the read.

    Encrypted messages are in no index on disk, so their postings are computed from the decrypted messages.

    Args:
        runtime: The owner's memory.
        tree: The conversation.
        shared: Whether to use the cached postings, which other threads update at the same time.
    """
    cache = runtime.get(PostingsCache).values

    def read(conn: Conn) -> tuple[trees.Head, list[DocumentRow], list[int], list[tuple[int, int]]]:
        head = trees.head(conn, tree)
        cached = cache.get((tree, head.epoch)) if shared else None
        records = records_of(conn, runtime, tree, cached.last if cached else 0)
        if cached is not None and cached.version == head.version:
            return head, records, [], []
        return head, records, document_queries.dead(conn, tree), grafts.parents(conn, tree)

    head, records, dead, moved = yield from Sql(read)
    postings = cache.setdefault((tree, head.epoch), Postings) if shared else Postings()
    with postings.lock:
        postings.add(records)
        if postings.version < head.version:
            postings.mark_live(dead, head.version)
            postings.set_parents(moved)
    return postings, head


def summary_index_of(runtime: Runtime, tree: int) -> Flow[SummaryIndex]:
    """The summaries in a tree of summaries; all are read again when one changes, because they are few."""
    cache = runtime.get(SummaryIndexCache).values

    def read(conn: Conn) -> tuple[int, SummaryIndex]:
        head = trees.head(conn, tree)
        cached = cache.get((tree, head.epoch))
        if cached is not None and cached.version == head.version:
            return head.epoch, cached
        records = records_of(conn, runtime, tree, 0)
        return head.epoch, SummaryIndex(records, summary_queries.extents(conn, tree), head.version)

    epoch, index = yield from Sql(read)
    if index.whole:
        cache.put((tree, epoch), index)
    return index


def records_of(conn: Conn, runtime: Runtime, tree: int, last: int) -> list[DocumentRow]:
    """The documents of a tree's nodes numbered above `last`, without forgotten nodes."""
    if runtime.indexes_words:
        return document_queries.since(conn, tree, last)
    absent = memory.absent(conn, tree, last)
    rows = [row for row in nodes.since(conn, tree, last) if row.key not in absent]
    return [
        DocumentRow(row.key, row.seq, row.parent, row.role, row.state == State.LIVE, document)
        for row, (_, document) in zip(rows, documents_of(runtime, rows), strict=True)
    ]
