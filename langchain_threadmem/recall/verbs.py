"""Verbs: recall, retrieve, recent.

`recall.search` scores messages; here the best become recollections, with the part of their thread that leads
up to them, and `retrieve` puts them in the order in which a model should read them. Indexes are brought up to
date first; then all that is found and shown is read from one state of the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.flow import Call, Flow, Sql, snapshot
from langchain_threadmem.errors import InputError
from langchain_threadmem.filters.conditions import Condition
from langchain_threadmem.index.embed import EmbeddingQueue
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.tool_pairs import RESULT, start_of_results
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.packing import packed
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.search import (
    READ_WHOLE,
    Asked,
    Hit,
    asked,
    by_candidates,
    by_ledger,
    is_behind_now,
)
from langchain_threadmem.recall.with_summaries import summaries_of, with_summaries
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import graph, nodes, read, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of
from langchain_threadmem.units.unit import SUMMARY_SOURCE

Order = Literal["chronological", "relevance"]
Fallback = Literal["nothing", "recent"]
READ_AT_ONCE = 256
"""How many hits are read at once to see whether they pass a filter."""
LOOKS = 3
"""How often words are entered and read again, if somebody writes in between."""


def recall(
    conversation: Conversation, query: str, wanted: RecallOptions, context_depth: int | None
) -> Flow[list[Recollection]]:
    """The messages and summaries that fit a query best, the best first; see `ChatMemory.recall`."""
    depth = depth_of(conversation, context_depth)
    if not isinstance(query, str):
        raise InputError(f"a query is text, not {query!r:.80}; pass the text of a message")
    if not wanted.n_results or not query.strip():
        return []
    runtime = conversation.runtime
    runtime.get(EmbeddingQueue).searched = True
    tree = None
    if wanted.scope != "owner":
        tree = yield from tree_of(conversation)
    elif runtime.encrypted:
        raise InputError(
            "scope='owner' searches indexes on disk, and what is encrypted is in none; "
            "recall in one conversation at a time"
        )
    shown: set[str | None] = set()
    if wanted.max_tokens is not None:  # A window may be anybody's code: not to be called in a transaction.
        shown = {message.id for message in (yield from read.messages(conversation))}
    for look in range(1, LOOKS + 1):
        question = yield from asked(runtime, tree, query, wanted)
        found = yield from snapshot(
            _read(conversation, tree, question, wanted, depth, shown, sure=look < LOOKS)
        )
        if found is not None:
            break
    hits, recalled = found or ([], [])
    if wanted.reranker is None:
        return recalled
    hits = yield from _reranked(conversation, query, hits, wanted)
    return (yield from snapshot(_shown(conversation, hits, depth, wanted, shown)))


def _read(
    conversation: Conversation,
    tree: int | None,
    question: Asked,
    wanted: RecallOptions,
    depth: int,
    shown: Collection[str | None],
    *,
    sure: bool,
) -> Flow[tuple[list[Hit], list[Recollection]] | None]:
    """What is found and how it is shown, of one state; with a reranker, what is found alone.

    `None` if somebody wrote since words were entered, and it is to be `sure`: a message that was edited
    meanwhile is found by its old words no more, and by its new ones not yet.
    """
    runtime = conversation.runtime
    if sure and (yield from Sql(lambda conn: is_behind_now(conn, runtime, tree, wanted))):
        return None
    if tree is None:
        # A search of all conversations needs none of its own to exist.
        hits = (yield from by_candidates(runtime, None, question, wanted)).hits
    else:
        size, summaries = yield from Sql(lambda conn: trees.extent(conn, tree))
        find = by_ledger if size < READ_WHOLE or runtime.encrypted else by_candidates
        found = yield from find(runtime, tree, question, wanted)
        hits = found.hits
        if summaries is not None and wanted.ranks - {0}:
            hits = yield from with_summaries(runtime, tree, summaries, found, wanted)
    if wanted.condition is not None:
        hits = yield from _passing(conversation, hits, wanted.condition, wanted.looked_at)
    if wanted.reranker is not None:
        return hits, []
    return hits, (yield from _shown(conversation, hits, depth, wanted, shown))


def _shown(
    conversation: Conversation,
    hits: Sequence[Hit],
    depth: int,
    wanted: RecallOptions,
    shown: Collection[str | None],
) -> Flow[list[Recollection]]:
    if wanted.max_tokens is not None:
        return (yield from packed(conversation, hits, depth, wanted.max_tokens, shown))
    return list((yield from _with_threads(conversation, hits, depth)).values())


def _passing(
    conversation: Conversation, hits: Sequence[Hit], condition: Condition, most: int
) -> Flow[list[Hit]]:
    """The best hits whose messages meet a condition; no more are read than it takes to have enough."""
    passing: list[Hit] = []
    for start in range(0, len(hits), READ_AT_ONCE):
        some = hits[start : start + READ_AT_ONCE]
        found = yield from _with_threads(conversation, some, 0)
        passing += [hit for hit in some if hit.key in found and condition.holds(_record(found[hit.key]))]
        if len(passing) >= most:
            break
    return passing[:most]


def _record(found: Recollection) -> dict[str, object]:
    message = found.node.message
    return {
        "content": text_of(message),
        "role": SUMMARY_SOURCE if found.rank else message.type,
        "speaker": message.name,
        "time": found.node.timestamp,
        "rank": found.rank,
        "metadata": message.additional_kwargs,
    }


def _reranked(
    conversation: Conversation, query: str, hits: Sequence[Hit], wanted: RecallOptions
) -> Flow[list[Hit]]:
    """Hits in the order that a reranker gives them, under its scores."""
    reranker = wanted.reranker
    assert reranker is not None
    found = yield from _with_threads(conversation, hits, 0)
    hits = [hit for hit in hits if hit.key in found]
    texts = [text_of(found[hit.key].node.message) for hit in hits]
    aranked = getattr(reranker, "arerank", None)
    scores = yield from Call(
        lambda: list(reranker.rerank(query, texts)),
        None if aranked is None else (lambda: aranked(query, texts)),
    )
    if len(scores) != len(texts):
        raise InputError(
            f"{reranker!r} gave {len(scores)} scores for {len(texts)} texts; it must give one for each"
        )
    ranked = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
    return [hit._replace(score=float(score)) for score, hit in ranked[: wanted.n_results]]


def depth_of(conversation: Conversation, context_depth: int | None) -> int:
    """The number of ancestors asked for, or the conversation's default.

    Raises:
        InputError: It is negative.
    """
    depth = conversation.context_depth if context_depth is None else context_depth
    if not hasattr(depth, "__index__") or depth < 0:
        raise InputError(f"context_depth must be non-negative, not {depth!r}")
    return depth


def _with_threads(
    conversation: Conversation, hits: Sequence[Hit], depth: int
) -> Flow[dict[int, Recollection]]:
    """Add to each hit the part of its thread that leads up to it, never beginning inside a tool exchange.

    What was erased a moment ago is left out.
    """
    owner = conversation.runtime.owner

    def look(
        conn: Conn,
    ) -> tuple[dict[int, tuple[NodeRow, str]], dict[int, list[NodeRow]], dict[int, Recollection]]:
        messages = [hit.key for hit in hits if not hit.rank]
        rows = nodes.of_owner(conn, owner, messages) if messages else []
        found = {row.key: (row, name) for row, _, name in rows}
        return found, _leading_up(conn, found, depth) if depth else {}, summaries_of(conn, owner, hits)

    found, threads, recalled = yield from Sql(look)
    there = [(hit, *found[hit.key]) for hit in hits if hit.key in found]
    paths = [threads.get(hit.key, [row]) for hit, row, _ in there]
    decoded = iter(nodes_of([row for path in paths for row in path], conversation.runtime.parts.read))
    for (hit, _, name), path in zip(there, paths, strict=True):
        thread = tuple(islice(decoded, len(path)))
        recalled[hit.key] = Recollection(thread[-1], hit.score, thread, hit.why, name)
    return {hit.key: recalled[hit.key] for hit in hits if hit.key in recalled}


def _leading_up(conn: Conn, keys: Iterable[int], depth: int) -> dict[int, list[NodeRow]]:
    """Nodes after their ancestors, oldest first; deeper if that would begin with a tool's result."""
    found = nodes.threads(conn, keys, depth + 1)
    torn = [key for key, path in found.items() if _is_torn(path)]
    while torn:
        depth += 1
        longer = nodes.threads(conn, torn, depth + 1)
        torn = [key for key in torn if len(longer[key]) > len(found[key]) and _is_torn(longer[key])]
        found |= longer
    return found


def _is_torn(path: Sequence[NodeRow]) -> bool:
    return path[0].role == RESULT and path[0].parent is not None


def retrieve(
    conversation: Conversation,
    query: str,
    n_results: int,
    context_depth: int | None,
    order: Order,
    fallback: Fallback,
    *,
    recent_only: bool = False,
) -> Flow[list[BaseMessage]]:
    """What a model is to be shown for a query: messages with their context, each once.

    With `recent_only` it is shown the last messages of the active thread, whatever the query.
    """
    if order not in ("chronological", "relevance"):
        raise InputError(f"order={order!r} is neither 'chronological' nor 'relevance'")
    if fallback not in ("nothing", "recent"):
        raise InputError(f"fallback={fallback!r} is neither 'nothing' nor 'recent'")
    depth_of(conversation, context_depth)
    if recent_only:
        return (yield from recent(conversation, n_results))
    hits = yield from recall(conversation, query, RecallOptions(n_results, rank=0), context_depth)
    if not hits:
        return (yield from recent(conversation, n_results)) if fallback == "recent" else []
    found = {node.id: node for hit in hits for node in hit.thread}
    if order == "relevance":
        return [
            found[n].message for n in dict.fromkeys(node.id for hit in hits for node in reversed(hit.thread))
        ]
    tree = yield from tree_of(conversation)
    above = yield from Sql(lambda conn: nodes.nearest_above(conn, tree, found))
    hung = {n: replace(node, parent_id=above[n]) for n, node in found.items()}
    return [found[n].message for n in graph.orderly(hung, found)]


def recent(conversation: Conversation, n_results: int) -> Flow[list[BaseMessage]]:
    """The last messages of the active thread, oldest first; system messages are not counted.

    One that is a tool's result brings the call along, so there may be a few more.

    Raises:
        InputError: `n_results` is negative.
    """
    if n_results < 0:
        raise InputError(f"n_results={n_results!r} is negative; pass how many messages to return")
    tree = yield from tree_of(conversation)

    def look(conn: Conn) -> list[NodeRow]:
        tip = trees.head(conn, tree).tip
        if tip is None or not n_results:
            return []
        reach = n_results
        while True:
            rows = nodes.thread(conn, tip, reach)
            said = [row for row in rows if row.role != "system"]
            start = max(len(said) - n_results, 0)
            start = start_of_results([row.role for row in said], start)
            if len(rows) < reach or (len(said) >= n_results and said[start].role != RESULT):
                return said[start:]
            reach *= 2

    return [node.message for node in nodes_of((yield from Sql(look)), conversation.runtime.parts.read)]
