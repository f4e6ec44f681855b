"""The verbs `recall`, `retrieve` and `recent`.

A recall searches and reads the hits, with their ancestors, in one snapshot of the database, after it has
updated the indexes if they lack messages. `retrieve` returns messages in the order in which a model should
read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.child_runs import call_as_run
from langchain_threadmem.engine.flow import Flow, Sql, snapshot
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.tool_pairs import RESULT, start_of_results
from langchain_threadmem.recall.options import RecallOptions, check_context_depth
from langchain_threadmem.recall.packing import packed
from langchain_threadmem.recall.recollections import (
    Pairs,
    found_of,
    recollections,
    said_in,
    threads_of,
)
from langchain_threadmem.recall.results import Hits, Recollection
from langchain_threadmem.recall.search import Hit, search
from langchain_threadmem.recall.sources import MemorySource, PreparedQuery, catch_up, is_outdated, prepare
from langchain_threadmem.recall.versions import newest_first, sought_in
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes, read, trees
from langchain_threadmem.tree.conversation import Conversation, found_tree_of, tree_of
from langchain_threadmem.tree.node import nodes_of
from langchain_threadmem.tree.nodes import NodeRow

Order = Literal["chronological", "relevance"]
Fallback = Literal["nothing", "recent"]
ReadHits = Callable[[Pairs], Flow[list[T]]]
"""Reads the results of hits."""
Known = Callable[[Recollection], bool]
"""Whether the caller of a recall has a message or summary, which is then no hit."""
MOST_UPDATES = 3
"""The maximum number of updates of the indexes, if messages are written between an update and the search."""


@telemetry.observed(
    "search_memory", telemetry.of_query, lambda hits: telemetry.records(hit.node.message for hit in hits)
)
def recall(
    conversation: Conversation,
    query: str,
    options: RecallOptions,
    context_depth: int | None,
    known: Known | None = None,
) -> Flow[list[Recollection]]:
    """The messages and summaries that answer a query best, the best first; see `ChatMemory.recall`."""
    depth = depth_of(conversation, context_depth)
    shown: set[str | None] = set()
    is_limited = options.max_tokens is not None
    if is_limited and (options.scope != "owner" or (yield from found_tree_of(conversation))):
        # A window may be a caller's code, so it runs outside the snapshot.
        shown = {message.id for message in (yield from read.messages(conversation))}

    def read_hits(hits: Pairs) -> Flow[list[Recollection]]:
        if options.max_tokens is not None:
            return (yield from packed(conversation, hits, depth, options.max_tokens, shown))
        return (yield from recollections(conversation.runtime, hits, depth))

    return Hits((yield from _results(conversation, query, options, read_hits, known)))


def _results(
    conversation: Conversation,
    query: str,
    options: RecallOptions,
    read_hits: ReadHits[T],
    known: Known | None = None,
) -> Flow[list[T]]:
    """Search and read the hits in one snapshot; reranked hits are read in a second snapshot."""
    if not isinstance(query, str):
        raise InputError(f"a query is text, not {query!r:.80}; pass the text of a message")
    if not options.n_results or not query.strip():
        return []
    runtime = conversation.runtime
    runtime.embeds_ahead = True
    tree = None
    if options.scope != "owner":
        tree = yield from tree_of(conversation)
    elif runtime.encrypted:
        raise InputError(
            "scope='owner' searches indexes on disk, which an encrypted memory does not have; "
            "recall in one conversation at a time"
        )
    prepared = yield from prepare(runtime, tree, query, options)
    embeds = bool(prepared.vector.size)
    for left in range(MOST_UPDATES, -1, -1):
        result = yield from snapshot(
            _searched(conversation, tree, prepared, options, read_hits, known, checks=left > 0, embeds=embeds)
        )
        if result is not None:
            break
        if tree is None:
            prepared = yield from prepare(runtime, tree, query, options)
        else:
            yield from catch_up(runtime, tree, options)
        embeds = False
    hits, results = result or ([], [])
    if not hits and tree is None:
        yield from Sql(lambda conn: trees.check_unsealed(conn, runtime.owner))
    if options.reranker is None:
        return results
    ranked = yield from _reranked(conversation, query, hits, options)
    return (yield from snapshot(_read_again(runtime, ranked, read_hits)))


def _read_again(runtime: Runtime, hits: Sequence[Hit[int]], read_hits: ReadHits[T]) -> Flow[list[T]]:
    """The results of hits that still exist, since messages may be erased while a model reads them."""
    found = yield from found_of(runtime, hits)
    return (yield from read_hits([(hit, found[hit.key]) for hit in hits if hit.key in found]))


def _searched(
    conversation: Conversation,
    tree: int | None,
    query: PreparedQuery,
    options: RecallOptions,
    read_hits: ReadHits[T],
    known: Known | None,
    *,
    checks: bool,
    embeds: bool,
) -> Flow[tuple[Pairs, list[T]] | None]:
    """The hits and their results; with a reranker the hits alone.

    `None` if `checks` is set and the lexicon lacks messages, or the vectors and `embeds` is set: of a message
    that was edited meanwhile the search finds neither the old nor the new version.
    """
    runtime = conversation.runtime
    if checks and (yield from Sql(lambda conn: is_outdated(conn, runtime, tree, options, embeds=embeds))):
        return None
    hits = yield from search(
        MemorySource(runtime, tree, query, options),
        options.looked_at,
        options.condition,
        sought=sought_in(query.text, runtime.get(Indexes).language),
        known=None if known is None else (lambda found: known(found.recollection)),
    )
    return hits, [] if options.reranker is not None else (yield from read_hits(hits))


def _reranked(
    conversation: Conversation, query: str, hits: Pairs, options: RecallOptions
) -> Flow[list[Hit[int]]]:
    """The hits with the scores of a reranker, the best first."""
    reranker = options.reranker
    assert reranker is not None
    texts = [text_of(found.recollection.node.message) for _, found in hits]
    arerank = getattr(reranker, "arerank", None)
    scores = yield from call_as_run(
        "rerank",
        conversation.name,
        {"query": query, "texts": texts},
        lambda: reranker.rerank(query, texts),
        None if arerank is None else (lambda: arerank(query, texts)),
    )
    try:
        rated = [
            (hit._replace(score=float(score)), found)
            for score, (hit, found) in zip(scores, hits, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{reranker!r} gave {scores!r:.200} for {len(texts)} texts; return one score for each text"
        ) from error
    rated.sort(key=lambda pair: -pair[0].score)
    sought = sought_in(query, conversation.runtime.get(Indexes).language)
    ordered = newest_first(rated, [said_in(*pair) for pair in rated], sought)
    return [hit._replace(score=place.score) for (hit, _), (place, _) in ordered[: options.n_results]]


def depth_of(conversation: Conversation, context_depth: int | None) -> int:
    """The number of ancestors, by default the conversation's.

    Raises:
        InputError: The number is not an integer of at least 0.
    """
    depth = conversation.context_depth if context_depth is None else context_depth
    check_context_depth(depth)
    return depth


@telemetry.observed("search_memory", telemetry.of_query, telemetry.records)
def retrieve(
    conversation: Conversation,
    query: str,
    n_results: int,
    context_depth: int | None,
    order: Order,
    fallback: Fallback,
    *,
    linear: bool,
) -> Flow[list[BaseMessage]]:
    """The hits of a query and their ancestors as messages for a model, each once.

    Args:
        context_depth: The number of ancestors of each hit; `None` for the conversation's default.
        order: Oldest first, or the best hit first.
        fallback: The result without hits: "nothing", or the most "recent" messages.
        linear: Whether to return the last messages for any query, as in a linear conversation.
    """
    if order not in ("chronological", "relevance"):
        raise InputError(f"order={order!r} is neither 'chronological' nor 'relevance'")
    if fallback not in ("nothing", "recent"):
        raise InputError(f"fallback={fallback!r} is neither 'nothing' nor 'recent'")
    depth, options = depth_of(conversation, context_depth), RecallOptions(n_results, rank=0)
    if linear:
        return (yield from recent(conversation, n_results))

    def read_hits(hits: Pairs) -> Flow[list[BaseMessage]]:
        return (yield from _context(conversation, hits, depth, order))

    messages = yield from _results(conversation, query, options, read_hits)
    return messages or ((yield from recent(conversation, n_results)) if fallback == "recent" else [])


def _context(conversation: Conversation, hits: Pairs, depth: int, order: Order) -> Flow[list[BaseMessage]]:
    """The messages of hits and of their ancestors, each once."""
    threads = yield from threads_of(hits, depth)
    rows = list({row.key: row for thread in threads.values() for row in reversed(thread)}.values())
    by_id = {node.id: node for node in nodes_of(rows, conversation.runtime.parts.read)}
    if order == "relevance":
        return [node.message for node in by_id.values()]
    above = yield from Sql(lambda conn: nodes.nearest_above(conn, rows))
    return [by_id[id].message for id in graph.orderly(above)]


def recent(conversation: Conversation, n_results: int) -> Flow[list[BaseMessage]]:
    """The last messages of the active thread, oldest first, without system messages.

    If the first message is a tool result, the messages from its call on are added.
    """
    tree = yield from tree_of(conversation)

    def read_rows(conn: Conn) -> list[NodeRow]:
        tip = trees.head(conn, tree).tip
        if tip is None or not n_results:
            return []
        reach = n_results
        while True:
            rows = nodes.thread(conn, tip, reach)
            spoken = [row for row in rows if row.role != "system"]
            start = start_of_results([row.role for row in spoken], max(len(spoken) - n_results, 0))
            if len(rows) < reach or (len(spoken) >= n_results and spoken[start].role != RESULT):
                return spoken[start:]
            reach *= 2

    return [node.message for node in nodes_of((yield from Sql(read_rows)), conversation.runtime.parts.read)]
