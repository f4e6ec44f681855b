"""Reading hits as recollections: messages after their ancestors, and summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.tool_pairs import RESULT
from langchain_threadmem.recall.results import Covers, Recollection
from langchain_threadmem.recall.search import Hit
from langchain_threadmem.recall.versions import Said
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.queries import UnitRow, units_of
from langchain_threadmem.units.unit import MemoryUnit


class Found(NamedTuple):
    """A hit that was read.

    Attributes:
        recollection: The message or summary, without ancestors.
        row: The row of the message; `None` for a summary.
    """

    recollection: Recollection
    row: NodeRow | None


Pairs = Sequence[tuple[Hit[int], Found]]
"""Hits with what was read for them, the best first."""


def found_of(runtime: Runtime, hits: Sequence[Hit[int]]) -> Flow[dict[int, Found]]:
    """The messages and summaries of hits, by key; hits that no longer exist are omitted."""
    owner, messages = runtime.owner, {hit.key: hit for hit in hits if not hit.rank}

    def read(conn: Conn) -> tuple[list[tuple[NodeRow, str]], dict[int, Recollection]]:
        rows = nodes.of_owner(conn, owner, list(messages)) if messages else []
        return [(row, name) for row, _, name in rows], summaries_of(conn, owner, hits)

    rows, summaries = yield from Sql(read)
    found = {key: Found(summary, None) for key, summary in summaries.items()}
    for (row, name), node in zip(rows, nodes_of([row for row, _ in rows], runtime.parts.read), strict=True):
        hit = messages[row.key]
        found[row.key] = Found(Recollection(node, hit.score, (node,), hit.why, name), row)
    return found


def said_in(hit: Hit[int], found: Found) -> Said:
    """What a message or summary says."""
    message, summary = found.recollection.node.message, hit.key if hit.rank else None
    return Said(text_of(message), message.type, hit.speaker, hit.time, hit.key, len(hit.why.terms), summary)


def recollections(runtime: Runtime, pairs: Pairs, depth: int) -> Flow[list[Recollection]]:
    """The recollections of hits, the messages after `depth` ancestors.

    More ancestors are read if the thread would begin with a tool result.
    """
    if not depth:
        return [replace(found.recollection, score=hit.score) for hit, found in pairs]
    rows_of = yield from threads_of(pairs, depth)
    decoded = iter(nodes_of([row for rows in rows_of.values() for row in rows], runtime.parts.read))
    thread_of = {key: tuple(islice(decoded, len(rows))) for key, rows in rows_of.items()}
    return [
        replace(
            found.recollection,
            score=hit.score,
            thread=thread_of.get(hit.key, found.recollection.thread),
        )
        for hit, found in pairs
    ]


def threads_of(pairs: Pairs, depth: int) -> Flow[dict[int, list[NodeRow]]]:
    """The rows of the messages among the hits after their ancestors, oldest first, by key."""
    keys = [hit.key for hit, found in pairs if found.row is not None]
    if depth and keys:
        return (yield from Sql(lambda conn: _leading_up(conn, keys, depth)))
    return {hit.key: [found.row] for hit, found in pairs if found.row is not None}


def _leading_up(conn: Conn, keys: Collection[int], depth: int) -> dict[int, list[NodeRow]]:
    """Nodes after `depth` ancestors, oldest first; after more if the first would be a tool result."""
    path_of = nodes.threads(conn, keys, depth + 1)
    torn = [key for key, path in path_of.items() if _is_torn(path)]
    while torn:
        depth += 1
        longer = nodes.threads(conn, torn, depth + 1)
        torn = [key for key in torn if len(longer[key]) > len(path_of[key]) and _is_torn(longer[key])]
        path_of |= longer
    return path_of


def _is_torn(path: Sequence[NodeRow]) -> bool:
    return path[0].role == RESULT and path[0].parent is not None


def summaries_of(conn: Conn, owner: str, hits: Iterable[Hit[int]]) -> dict[int, Recollection]:
    """The summaries among the hits, by key."""
    hit_of = {hit.key: hit for hit in hits if hit.rank}
    rows = unit_queries.by_keys(conn, owner, hit_of) if hit_of else []
    return {
        row.key: _summary(hit_of[row.key], row, unit)
        for row, unit in zip(rows, units_of(owner, rows, {}), strict=True)
    }


def _summary(hit: Hit[int], row: UnitRow, unit: MemoryUnit) -> Recollection:
    node = ConversationNode(row.seq, unit.to_message(), timestamp=unit.end_time)
    covers = Covers(row.messages or 0, unit.creation_time, unit.end_time, unit.stale)
    return Recollection(node, hit.score, (node,), replace(hit.why, covers=covers), row.session, unit.rank)
