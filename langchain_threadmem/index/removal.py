"""Removal of single nodes from the derived indexes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from langchain_threadmem.engine.flow import Call, Flow
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index import queries as document_queries
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.units.memory import UnitPlace
from langchain_threadmem.index.watermarks import Watermark
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees


def take_out(conn: Conn, owner: str, tree: int, places: Sequence[UnitPlace]) -> None:
    """Remove nodes of a tree from the lexicon and from the stored vectors.

    After the transaction, call `drop` to remove the nodes from caches and from the vector index.
    """
    embedded: dict[str, list[int]] = {}
    seq_of = {place.key: place.seq for place in places}
    for key, model in embeddings.models_of(conn, list(seq_of)):
        embedded.setdefault(watermarks.embeddings_of(model), []).append(seq_of[key])
    anywhere = {seq for seqs in embedded.values() for seq in seqs}
    for name, watermark in watermarks.of_tree(conn, tree):
        if name.startswith(watermarks.SUMMARIES_OF):
            continue
        if watermarks.is_lexicon(name):
            entries = document_queries.take(conn, list(seq_of))
            lexicon.remove(conn, tree, owner, [entry for entry, _ in entries])
            documents, words = len(entries), sum(length for _, length in entries)
        else:
            seqs = embedded.get(name, ()) if name.startswith(watermarks.embeddings_of("")) else anywhere
            documents, words = sum(seq <= watermark.seq for seq in seqs), 0
        reduced = Watermark(watermark.seq, watermark.documents - documents, watermark.words - words)
        watermarks.put(conn, name, {tree: reduced})
    embeddings.delete_of(conn, list(seq_of))
    for model in filter(embeddings.has_history, {name.partition(":")[2] for name in embedded}):
        # The vectors of other messages depend on the removed messages.
        drop_model(conn, tree, model)


def drop_model(conn: Conn, tree: int, model: str) -> None:
    """Delete the vectors of a model in a tree, with their watermarks; the next search makes them again."""
    embeddings.delete_of_tree(conn, tree, model)
    watermarks.drop(conn, tree, watermarks.embeddings_of(model))
    watermarks.drop_indexes(conn, tree, model)


class Removed(NamedTuple):
    """Nodes that a transaction removed.

    Attributes:
        keys: The keys of the nodes, by tree.
        indexed: Whether an index outside of the database may contain their vectors.
    """

    keys: dict[int, list[int]]
    indexed: bool


NOTHING_REMOVED = Removed({}, indexed=False)


def take_out_removed(conn: Conn, owner: str, keys: Collection[int]) -> Removed:
    """Remove nodes of any tree from the words and the vectors, in the transaction that removes them.

    After the transaction, call `drop`.
    """
    if not keys:
        return NOTHING_REMOVED
    by_tree: dict[int, list[UnitPlace]] = {}
    for place in memory.places(conn, list(keys)):
        by_tree.setdefault(place.tree, []).append(place)
    indexed = any(watermarks.indexed(conn, tree) for tree in by_tree)
    trees.lock_all(conn, by_tree)
    lexicon.expect_removals(conn, [len(keys)])
    for tree, places in sorted(by_tree.items()):
        take_out(conn, owner, tree, places)
        trees.changed(conn, tree)
    return Removed({tree: [place.key for place in places] for tree, places in by_tree.items()}, indexed)


def drop(runtime: Runtime, removed: Removed) -> Flow[None]:
    """Drop removed nodes from the caches and from the vector index."""
    runtime.drop(removed.keys)
    keys = [key for tree_keys in removed.keys.values() for key in tree_keys]
    if removed.indexed and keys:
        index = yield from Call(runtime.get(Indexes).index)
        if index is not None:
            yield from Call(lambda: index.remove(keys))
