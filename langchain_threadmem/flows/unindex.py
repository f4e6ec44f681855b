"""Taking single nodes out of the derived indexes, while the rest of their tree stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from langchain_threadmem.flows.indexes import Indexes
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Call, Flow
from langchain_threadmem.storage.queries import (
    digests,
    embeddings,
    gists,
    lexicon,
    marks,
    nodes,
    trees,
)
from langchain_threadmem.storage.queries.marks import Mark
from langchain_threadmem.storage.statements import Conn


class Numbered(Protocol):
    """What has to be known of a node to take it out: a row of it, or a part of one."""

    @property
    def key(self) -> int: ...
    @property
    def seq(self) -> int: ...


def take_out(conn: Conn, owner: str, tree: int, rows: Sequence[Numbered]) -> None:
    """Take nodes of a tree out of its words and vectors, as far as they are in them.

    After the transaction, `drop` removes them from the memory of the process and from the vector index.
    """
    embedded: dict[str, list[int]] = {}
    seq_of = {row.key: row.seq for row in rows}
    for key, model in embeddings.models_of(conn, list(seq_of)):
        embedded.setdefault(marks.embeddings_of(model), []).append(seq_of[key])
    anywhere = {seq for seqs in embedded.values() for seq in seqs}
    for name, mark in marks.of_tree(conn, tree):
        if name.startswith(digests.MARK):
            continue
        if marks.is_lexicon(name):
            taken = gists.take(conn, list(seq_of))
            lexicon.remove(conn, tree, owner, [entry for entry, _ in taken])
            documents, words = len(taken), sum(length for _, length in taken)
        else:
            held = embedded.get(name, ()) if name.startswith(marks.embeddings_of("")) else anywhere
            documents, words = sum(seq <= mark.seq for seq in held), 0
        marks.put(conn, tree, name, Mark(mark.seq, mark.documents - documents, mark.words - words))
    embeddings.delete_of(conn, list(seq_of))
    for model in filter(embeddings.has_history, {name.partition(":")[2] for name in embedded}):
        # Other vectors were made of these messages too.
        embeddings.delete_of_tree(conn, tree, model)
        marks.drop(conn, tree, marks.embeddings_of(model))
        marks.drop(conn, tree, marks.index_of(model))


def delete_summaries(conn: Conn, owner: str, tree: int, keys: Sequence[int]) -> None:
    """Delete summaries from a tree of them; what lay below them is below nothing from then on.

    If the newest go, their numbers are given again, so nothing may say that it knows these already.
    """
    take_out(conn, owner, tree, nodes.by_keys(conn, keys))
    before = trees.head(conn, tree).next_seq
    digests.delete(conn, keys)
    newest = trees.head(conn, tree).next_seq - 1
    if newest + 1 < before:
        trees.begin_epoch(conn, tree)
        for name, mark in marks.of_tree(conn, tree):
            marks.put(conn, tree, name, mark._replace(seq=min(mark.seq, newest)))


class Removed(NamedTuple):
    """Nodes that a transaction removed.

    Attributes:
        keys: Their keys, by tree.
        indexed: Whether an index outside of the database may hold vectors of them.
    """

    keys: dict[int, list[int]]
    indexed: bool


def drop(runtime: Runtime, removed: Removed, trees: Iterable[int] = ()) -> Flow[None]:
    """Drop removed nodes from the memory of the process and from the vector index.

    Args:
        runtime: Whose memory.
        removed: The nodes.
        trees: Trees that are gone themselves.
    """
    runtime.drop(removed.keys, trees)
    keys = [key for found in removed.keys.values() for key in found]
    if removed.indexed and keys:
        index = yield from Call(runtime.get(Indexes).index)
        if index is not None:
            yield from Call(lambda: index.remove(keys))
