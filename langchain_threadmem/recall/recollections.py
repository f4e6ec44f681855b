"""Reading hits as recollections: messages after their ancestors, and summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.messages.tool_pairs import RESULT
from langchain_threadmem.recall.results import Covers, Recollection
from langchain_threadmem.recall.search import Hit
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.queries import UnitRow, units_of
from langchain_threadmem.units.unit import MemoryUnit


class ThreadRows(NamedTuple):
    """The rows of a message and of its ancestors, oldest first, and the name of its conversation."""

    rows: list[NodeRow]
    conversation: str


def recollections(runtime: Runtime, hits: Sequence[Hit[int]], depth: int) -> Flow[dict[int, Recollection]]:
    """The recollections of hits, by key, in the order of the hits; hits that no longer exist are omitted.

    Args:
        runtime: The owner's memory.
        hits: The hits.
        depth: The number of ancestors of each message. More ancestors are read if the thread would begin with
            a tool result.
    """
    owner = runtime.owner

    def read(conn: Conn) -> tuple[dict[int, ThreadRows], dict[int, Recollection]]:
        return threads_of(conn, owner, hits, depth), summaries_of(conn, owner, hits)

    threads, recollection_of = yield from Sql(read)
    decoded = iter(nodes_of([row for thread in threads.values() for row in thread.rows], runtime.parts.read))
    thread_of = {key: tuple(islice(decoded, len(thread.rows))) for key, thread in threads.items()}
    for hit in hits:
        if hit.key in threads:
            thread = thread_of[hit.key]
            name = threads[hit.key].conversation
            recollection_of[hit.key] = Recollection(thread[-1], hit.score, thread, hit.why, name)
    return {hit.key: recollection_of[hit.key] for hit in hits if hit.key in recollection_of}


def threads_of(conn: Conn, owner: str, hits: Iterable[Hit[int]], depth: int) -> dict[int, ThreadRows]:
    """The messages among the hits, each after its ancestors, by the keys of the messages."""
    messages = [hit.key for hit in hits if not hit.rank]
    rows = nodes.of_owner(conn, owner, messages) if messages else []
    thread_of = {row.key: ThreadRows([row], name) for row, _, name in rows}
    if depth:
        for key, path in _leading_up(conn, thread_of, depth).items():
            thread_of[key] = ThreadRows(path, thread_of[key].conversation)
    return thread_of


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
