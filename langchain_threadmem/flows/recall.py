"""Recall: finding what was said, by its words and by its meaning.

Candidates come from the lexicon (messages that share words with the query) and from the vectors (messages
that mean something similar). All of them get both scores, which are added as z-scores (`core.ranking`); the
best are returned with the part of their thread that leads up to them, and with the reason.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from langchain_core.messages import BaseMessage, ToolMessage
from numpy.typing import NDArray

from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.nodes import ConversationNode, Recollection, State, Why
from langchain_threadmem.core.postings import Postings
from langchain_threadmem.core.ranking import Corpus, bm25, fuse
from langchain_threadmem.core.words import query_words
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.index import (
    catch_up_owner,
    catch_up_vectors,
    catch_up_words,
    postings,
    words_of,
)
from langchain_threadmem.flows.rows import nodes_of
from langchain_threadmem.flows.selectors import LinearNodeSelector
from langchain_threadmem.flows.steps import Embed, Flow, Search, Sql
from langchain_threadmem.storage.queries import embeddings, lexicon, marks, nodes, trees
from langchain_threadmem.storage.queries.nodes import NodeRow
from langchain_threadmem.storage.statements import Conn

Scope = Literal["conversation", "owner"]
Order = Literal["chronological", "relevance"]
Fallback = Literal["nothing", "recent"]
FEWEST_CANDIDATES = 64
"""How many candidates each of words and meaning brings at least; more when more results are asked for."""


class _Words(NamedTuple):
    """What the lexicon knows of a query."""

    query: list[str]
    corpus: Corpus
    keys: list[int]


class _Meaning(NamedTuple):
    """What the vectors know of a query."""

    vector: NDArray[np.float32]
    similarity: dict[int, float]


def recall(
    conversation: Conversation,
    query: str,
    n_results: int,
    context_depth: int | None,
    *,
    scope: Scope = "conversation",
    include_superseded: bool = False,
) -> Flow[list[Recollection]]:
    """The messages that fit a query best, the best first; see `ChatMemory.recall`."""
    depth = depth_of(conversation, context_depth)
    if not isinstance(query, str):
        raise InputError(f"a query is text, not {query!r:.80}; pass the text of a message")
    if n_results < 0:
        raise InputError(f"n_results={n_results!r} is negative; pass how many messages to find")
    if scope not in ("conversation", "owner"):
        raise InputError(f"scope={scope!r} is neither 'conversation' nor 'owner'")
    if not n_results or not query.strip():
        return []
    most = max(FEWEST_CANDIDATES, 2 * n_results)
    runtime = conversation.runtime
    # A search of all conversations needs none of its own to exist.
    tree = 0 if scope == "owner" else (yield from tree_of(conversation))
    held_words = None
    if scope == "owner":
        if runtime.encrypted:
            raise InputError(
                "scope='owner' searches indexes on disk, and what is encrypted is in none; "
                "recall in one conversation at a time"
            )
        index = yield from catch_up_owner(runtime)
    elif runtime.encrypted:
        held_words = yield from postings(runtime, tree)
    else:
        yield from catch_up_words(runtime, tree)
    lookup = lexicon.Scope(runtime.owner, None if scope == "owner" else tree)
    found = yield from Sql(lambda conn: _by_words(conn, query, lookup, held_words, most))
    vector = (yield from Embed([query], query=True))[0]
    model = runtime.embedder.model
    meaning = None
    if vector.size:
        if scope == "owner" and index is not None:
            near = yield from Search(lambda: index.search(vector, most))
            similarity = dict(zip(near.keys.tolist(), near.similarity.tolist(), strict=True))
        elif scope == "owner":
            held = yield from Sql(lambda conn: embeddings.of_owner(conn, runtime.owner, model))
            similarity = _nearest(held, vector, most, [])
        else:
            exact = yield from catch_up_vectors(runtime, tree)
            held = exact.vectors if exact else embeddings.NONE
            similarity = _nearest(held, vector, most, found.keys)
        meaning = _Meaning(vector, similarity)
    allowed = None if scope == "owner" else tree
    candidates = yield from Sql(
        lambda conn: _candidates(conn, runtime.owner, allowed, found, meaning, model, include_superseded)
    )
    hits = _best(found, meaning, candidates, n_results)
    return (yield from _with_threads(hits, depth, candidates))


def depth_of(conversation: Conversation, context_depth: int | None) -> int:
    """The number of ancestors asked for, or the conversation's default.

    Raises:
        InputError: It is negative.
    """
    depth = conversation.context_depth if context_depth is None else context_depth
    if depth < 0:
        raise InputError(f"context_depth must be non-negative, not {depth!r}")
    return depth


def _by_words(conn: Conn, query: str, scope: lexicon.Scope, held: Postings | None, most: int) -> _Words:
    """The messages that hold the most and rarest words of a query, cheaply: without reading any of them."""
    wanted = query_words(query)
    if held is not None:
        documents, total = held.documents, held.words
        holding = {word: held.holding(word, lexicon.MOST_PER_WORD) for word in wanted}
    else:
        mark = (
            marks.total(conn, scope.owner, marks.LEXICON)
            if scope.tree is None
            else marks.get(conn, scope.tree, marks.LEXICON)
        )
        documents, total = mark.documents, mark.words
        holding = {word: lexicon.holding(conn, word, scope) for word in wanted}
    frequency = {word: _frequency(conn, keys, documents) for word, keys in holding.items()}
    corpus = Corpus(documents, total, frequency)
    presence: dict[int, float] = {}
    for word, keys in holding.items():
        rarity = corpus.rarity(word)
        for key in keys:
            presence[key] = presence.get(key, 0.0) + rarity
    best = heapq.nlargest(most, zip(presence.values(), presence, strict=True))
    return _Words(wanted, corpus, [key for _, key in best])


def _frequency(conn: Conn, keys: Sequence[int], documents: int) -> int:
    """How many messages hold a word, given the newest of them."""
    if len(keys) < lexicon.MOST_PER_WORD:
        return len(keys)
    # The list was cut: judge by how far back it reaches.
    reach = nodes.reach(conn, keys[0], keys[-1])
    return max(len(keys), min(documents, len(keys) * documents // max(reach, len(keys))))


def _nearest(
    held: embeddings.Vectors, vector: NDArray[np.float32], most: int, others: Sequence[int]
) -> dict[int, float]:
    """Cosines of the nearest messages, and of others that words have found."""
    if not len(held.keys):
        return {}
    cosine = held.matrix @ vector
    best = np.argpartition(cosine, -most)[-most:] if len(cosine) > most else np.arange(len(cosine))
    chosen = dict(zip(held.keys[best].tolist(), cosine[best].tolist(), strict=True))
    if others:
        also = np.isin(held.keys, np.array(others))
        chosen.update(zip(held.keys[also].tolist(), cosine[also].tolist(), strict=True))
    return chosen


class _Candidate(NamedTuple):
    row: NodeRow
    node: ConversationNode
    conversation: str


def _candidates(
    conn: Conn,
    owner: str,
    tree: int | None,
    found: _Words,
    meaning: _Meaning | None,
    model: str,
    include_superseded: bool,
) -> list[_Candidate]:
    """The candidates that belong to this owner (and this tree), with the cosines that were still missing."""
    keys = set(found.keys)
    if meaning is not None:
        missing = [key for key in found.keys if key not in meaning.similarity]
        for key, vector in embeddings.by_keys(conn, model, missing).items():
            meaning.similarity[key] = float(vector @ meaning.vector)
        keys |= meaning.similarity.keys()
    rows = [
        (row, conversation)
        for row, of, conversation in nodes.of_owner(conn, owner, keys)
        if (tree is None or of == tree) and (include_superseded or row.state == State.LIVE)
    ]
    found_nodes = nodes_of([row for row, _ in rows])
    return [
        _Candidate(row, node, conversation)
        for (row, conversation), node in zip(rows, found_nodes, strict=True)
    ]


def _best(
    found: _Words, meaning: _Meaning | None, candidates: Sequence[_Candidate], n_results: int
) -> list[tuple[_Candidate, float, Why]]:
    lexical = bm25(found.query, [words_of(candidate.node) for candidate in candidates], found.corpus)
    similarity = None
    if meaning is not None:
        similarity = np.array(
            [meaning.similarity.get(candidate.row.key, 0.0) for candidate in candidates], np.float32
        )
    scores = fuse([score.score for score in lexical], similarity)
    order = sorted(range(len(candidates)), key=lambda n: (-scores[n], -candidates[n].row.seq))
    return [
        (
            candidates[n],
            float(scores[n]),
            Why(lexical[n].shared, lexical[n].score, None if similarity is None else float(similarity[n])),
        )
        for n in order[:n_results]
        if similarity is not None or lexical[n].score > 0
    ]


def _with_threads(
    hits: Sequence[tuple[_Candidate, float, Why]], depth: int, candidates: Sequence[_Candidate]
) -> Flow[list[Recollection]]:
    """Add to each hit the part of its thread that leads up to it, never beginning inside a tool exchange."""
    threads: Mapping[int, list[ConversationNode]] = {}
    if depth:
        threads = yield from Sql(
            lambda conn: {hit.row.key: leading_up(conn, hit.row.key, depth) for hit, _, _ in hits}
        )
    return [
        Recollection(hit.node, score, tuple(threads.get(hit.row.key, (hit.node,))), why, hit.conversation)
        for hit, score, why in hits
    ]


def leading_up(conn: Conn, key: int, depth: int) -> list[ConversationNode]:
    """A node after its ancestors, oldest first; deeper if it would begin with a tool's result."""
    path = nodes_of(nodes.thread(conn, key, depth + 1))
    while path and isinstance(path[0].message, ToolMessage) and path[0].parent_id is not None:
        depth += 1
        longer = nodes_of(nodes.thread(conn, key, depth + 1))
        if len(longer) == len(path):
            break
        path = longer
    return path


def retrieve(
    conversation: Conversation,
    query: str,
    n_results: int,
    context_depth: int | None,
    order: Order,
    fallback: Fallback,
) -> Flow[list[BaseMessage]]:
    """What a model is to be shown for a query: hits with their context, each message once."""
    if order not in ("chronological", "relevance"):
        raise InputError(f"order={order!r} is neither 'chronological' nor 'relevance'")
    if fallback not in ("nothing", "recent"):
        raise InputError(f"fallback={fallback!r} is neither 'nothing' nor 'recent'")
    depth_of(conversation, context_depth)
    if isinstance(conversation.selector, LinearNodeSelector):
        return (yield from recent(conversation, n_results))
    hits = yield from recall(conversation, query, n_results, context_depth)
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
    return [found[n].message for n in tree_core.orderly(hung, found)]


def recent(conversation: Conversation, n_results: int) -> Flow[list[BaseMessage]]:
    """The last messages of the active thread, oldest first; system messages are not counted.

    One that is a tool's result brings the call along, so there may be a few more.

    Raises:
        InputError: `n_results` is negative.
    """
    if n_results < 0:
        raise InputError(f"n_results={n_results!r} is negative; pass how many messages to return")
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[NodeRow]:
        tip = trees.head(conn, tree).tip
        if tip is None or not n_results:
            return []
        reach = n_results
        while True:
            rows = nodes.thread(conn, tip, reach)
            said = [row for row in rows if row.role != "system"]
            start = max(len(said) - n_results, 0)
            while start and said[start].role == "tool":
                start -= 1
            if len(rows) < reach or (len(said) >= n_results and said[start].role != "tool"):
                return said[start:]
            reach *= 2

    return [node.message for node in nodes_of((yield from Sql(read)))]
