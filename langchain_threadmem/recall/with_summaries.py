"""Summaries beside the messages of one conversation.

They are few, one for some sixty messages, so they are kept in memory as messages are, and made anew when one
of them was written, replaced or forgotten. A conversation without summaries has no tree of them, and comes
here never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime, TreeCache
from langchain_threadmem.index.embed import vectors_of
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.results import Covers, Recollection
from langchain_threadmem.recall.search import Found, Hit, records_of, with_digests
from langchain_threadmem.recall.summary_index import SummaryIndex
from langchain_threadmem.recall.unfold import leaves
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.queries import UnitRow, units_of
from langchain_threadmem.units.unit import MemoryUnit


def with_summaries(
    runtime: Runtime, tree: int, summaries: int, found: Found, wanted: RecallOptions
) -> Flow[list[Hit]]:
    """What was found in a conversation, and its summaries, the best first.

    Args:
        runtime: Whose memory.
        tree: The conversation.
        summaries: The tree of its summaries.
        found: The messages that were found.
        wanted: The conditions.
    """
    held = yield from _held(runtime, summaries)
    exact = None
    if found.vector.size:
        exact = yield from vectors_of(runtime, summaries)
    allowed = wanted.condensed(held)
    if wanted.scope == "thread":
        allowed &= yield from Sql(lambda conn: _of_thread(conn, tree, summaries, held))

    def score() -> list[Hit]:
        cosine = None
        if exact is not None:
            keys = held.ledger.rows["key"].tolist()
            known = exact.of(keys)
            cosine = np.array([known[key] @ found.vector if key in known else np.nan for key in keys])
        return with_digests(found, held, cosine, allowed, wanted)

    return (yield from Call(score))


def summaries_of(conn: Conn, owner: str, hits: Iterable[Hit]) -> dict[int, Recollection]:
    """Those of some hits that are summaries and still there, by their keys; each says what it covers."""
    hit_of = {hit.key: hit for hit in hits if hit.rank}
    rows = unit_queries.by_keys(conn, owner, hit_of) if hit_of else []
    return {
        row.key: _recollection(hit_of[row.key], row, unit)
        for row, unit in zip(rows, units_of(owner, rows, {}), strict=True)
    }


def _recollection(hit: Hit, row: UnitRow, unit: MemoryUnit) -> Recollection:
    node = ConversationNode(row.seq, unit.to_message(), timestamp=unit.end_time)
    covers = Covers(row.messages or 0, unit.creation_time, unit.end_time, unit.stale)
    return Recollection(node, hit.score, (node,), replace(hit.why, covers=covers), row.session, unit.rank)


class KnownSummaries(TreeCache[SummaryIndex]):
    """The summaries of conversations as scored texts, by tree and epoch."""

    capacity = 16


def _held(runtime: Runtime, tree: int) -> Flow[SummaryIndex]:
    """The summaries in a tree, kept in memory as long as they are the same."""
    cache = runtime.get(KnownSummaries).values

    def read(conn: Conn) -> tuple[int, SummaryIndex]:
        head = trees.head(conn, tree)
        known = cache.get((tree, head.epoch))
        if known is not None and known.version == head.version:
            return head.epoch, known
        records = records_of(conn, runtime, tree, 0)
        return head.epoch, SummaryIndex(records, summary_queries.extents(conn, tree), head.version)

    epoch, held = yield from Sql(read)
    if held.whole:
        cache.put((tree, epoch), held)
    return held


def _of_thread(conn: Conn, tree: int, summaries: int, held: SummaryIndex) -> NDArray[np.bool_]:
    """Which summaries are of messages in the active thread alone."""
    tip = trees.head(conn, tree).tip
    spans = [] if tip is None else nodes.spans(conn, tip)
    started = [
        key for key, first in summary_queries.firsts(conn, tree, summaries).items() if _is_in(first, spans)
    ]
    inside = [key for key in started if all(_is_in(leaf, spans) for leaf in leaves(conn, [key]))]
    return np.isin(held.ledger.rows["key"], inside)


def _is_in(key: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= key <= last for first, last in spans)
