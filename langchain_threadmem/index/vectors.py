"""SQL: embeddings as float16 vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, BindParameter, bindparam, delete, func, select

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import (
    embedding,
    node,
    recallable,
    segment,
    tree,
    unit,
    watermark,
)
from langchain_threadmem.storage.statements import BoundStatement, Conn, Statement, insert_of, within
from langchain_threadmem.tree.nodes import EVERYTHING, STORED


class Vectors(NamedTuple):
    """The vectors of nodes, in the order of the nodes' numbers.

    Attributes:
        keys: (n,) keys of the nodes.
        seqs: (n,) numbers of the nodes within their tree, ascending.
        matrix: (n, dimensions) float32 unit vectors; (0, 0) without nodes.
    """

    keys: NDArray[np.int64]
    seqs: NDArray[np.int64]
    matrix: NDArray[np.float32]

    def among(self, chosen: NDArray[np.bool_]) -> Vectors:
        """The chosen vectors; they are not copied if all are chosen."""
        return self if chosen.all() else Vectors(self.keys[chosen], self.seqs[chosen], self.matrix[chosen])


NONE = Vectors(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))

_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
_SEQ: BindParameter[int] = bindparam("seq", type_=BigInteger())
_of_trees = tree.join(segment, segment.c.tree == tree.c.id).join(embedding, node_keys.inside(embedding.c.key))
_of_nodes = _of_trees.join(node, node.c.key == embedding.c.key)
_OF_MODEL = (tree.c.owner == bindparam("owner"), embedding.c.model == bindparam("model"))
_PUT = insert_of(embedding, replace=True)
_of_model = (
    select(node.c.key, node.c.seq, embedding.c.vector)
    .join(embedding, embedding.c.key == node.c.key)
    .where(embedding.c.model == bindparam("model"))
)
_OF_TREE, _BEFORE = (
    Statement(part(_of_model, _TREE, _SEQ).limit(bindparam("most")), "tree", "seq", "model", "most")
    for part in (node_keys.after, node_keys.before)
)
_OF_OWNER = Statement(
    select(node.c.key, node.c.seq, embedding.c.vector)
    .select_from(_of_nodes)
    .where(*_OF_MODEL, recallable, ~tree.c.sealed)
    .order_by(node.c.key),
    *("owner", "model"),
)
# Nodes are found by their range of keys, as in `nodes.after_marks`.
_AFTER_MARKS = Statement(
    node_keys.after(
        select(node.c.key, node.c.seq, embedding.c.vector, tree.c.id)
        .join(embedding, embedding.c.key == node.c.key)
        .where(
            within(tree.c.id, "trees"),
            embedding.c.model == bindparam("model"),
            node.c.seq <= node_keys.watermark_of(tree.c.id, bindparam("made")),
        ),
        tree.c.id,
        node_keys.watermark_of(tree.c.id, bindparam("name")),
    )
    .order_by(None)
    .order_by(tree.c.id, node.c.seq),
    *("trees", "model", "made", "name"),
)
_OF = Statement(select(embedding.c.key).select_from(_of_trees).where(*_OF_MODEL), "owner", "model")
_COUNT = Statement(
    select(func.count()).select_from(_of_trees).where(*_OF_MODEL, recallable), "owner", "model"
)
_ANY = Statement(
    select(embedding.c.vector).select_from(_of_trees).where(*_OF_MODEL).limit(1), "owner", "model"
)
_BY_KEYS = Statement(
    select(embedding.c.key, embedding.c.vector).where(
        within(embedding.c.key, "keys"), embedding.c.model == bindparam("model")
    ),
    *("keys", "model"),
)
_MODELS_OF = Statement(
    select(embedding.c.key, embedding.c.model).where(within(embedding.c.key, "keys")), "keys"
)
_DELETE = Statement(delete(embedding).where(within(embedding.c.key, "keys")), "keys")
_DELETE_OF_TREE = Statement(
    delete(embedding).where(
        node_keys.in_tree(embedding.c.key, _TREE), embedding.c.model == bindparam("model")
    ),
    *("tree", "model"),
)
_HISTORY = " of "
"""The separator between the name of a model and the number of messages of each vector."""


def with_history(model: str, messages: int) -> str:
    """The name under which a model's vectors of several messages are stored.

    Example:
        >>> with_history("all-MiniLM", 3), with_history("all-MiniLM", 1)
        ('all-MiniLM of 3', 'all-MiniLM')
    """
    return model if messages == 1 else f"{model}{_HISTORY}{messages}"


def has_history(model: str) -> bool:
    """Whether the vectors with a name are of several messages each."""
    return model.rpartition(_HISTORY)[2].isdecimal() and _HISTORY in model


_ENTERED = Statement(
    select(embedding.c.key)
    .select_from(_of_nodes.join(watermark, watermark.c.tree == tree.c.id))
    .where(*_OF_MODEL, watermark.c.name == bindparam("name"), node.c.seq <= watermark.c.seq),
    *("owner", "model", "name"),
)


_PLACES = Statement(
    select(
        tree.c.epoch,
        *(func.coalesce(watermark.c[column], 0) for column in ("seq", "documents")),
        *node.c["key", "seq"],
    )
    .select_from(tree)
    .outerjoin(watermark, (watermark.c.tree == tree.c.id) & (watermark.c.name == bindparam("name")))
    .outerjoin(node, (node.c.tree == tree.c.id) & within(node.c.seq, "seqs") & STORED)
    .outerjoin(unit, unit.c.key == node.c.key)
    .where(tree.c.id == _TREE, unit.c.forgotten.is_(None)),
    *("name", "seqs", "tree"),
)


class VectorPlaces(NamedTuple):
    """Where vectors of new messages of a conversation are stored.

    Attributes:
        epoch: Epoch of the tree.
        last: Number of the last node up to which the messages have vectors.
        documents: The number of vectors up to that node.
        keys: The keys of the messages that are neither purged nor forgotten, by number.
    """

    epoch: int
    last: int
    documents: int
    keys: dict[int, int]


def places_query(tree_id: int, name: str, seqs: Iterable[int]) -> BoundStatement:
    """The query for the places of vectors; `name` is that of the watermark of the vectors."""
    return _PLACES, (name, json.dumps(list(seqs)), tree_id)


def places_of(rows: Sequence[tuple[Any, ...]]) -> VectorPlaces | None:
    """The places from the rows of `places_query`; `None` if there are none."""
    keys = {seq: key for *_, key, seq in rows if key is not None}
    if not keys:
        return None
    epoch, last, documents = rows[0][:3]
    return VectorPlaces(epoch, last, documents, keys)


def entered(conn: Conn, owner: str, model: str, name: str) -> set[int]:
    """Keys of the nodes up to an index's watermarks, whose vectors the index should contain."""
    return {row[0] for row in conn.all(_ENTERED, owner, model, name)}


def of(conn: Conn, owner: str, model: str) -> set[int]:
    """Keys of the nodes of an owner with a vector."""
    return {row[0] for row in conn.all(_OF, owner, model)}


def put(conn: Conn, model: str, keys: Iterable[int], matrix: NDArray[np.float32]) -> None:
    """Store the vectors of nodes."""
    conn.later(_PUT, [(key, model, stored(conn, vector)) for key, vector in zip(keys, matrix, strict=True)])


def since(conn: Conn, tree_id: int, model: str, seq: int = 0, most: int = EVERYTHING) -> Vectors:
    """The vectors of the first `most` nodes of a tree with numbers above `seq`."""
    return _vectors(conn, conn.all(_OF_TREE, tree_id, seq, model, most))


def before(conn: Conn, tree_id: int, model: str, seq: int, most: int) -> Vectors:
    """The vectors of the newest `most` nodes of a tree with numbers below `seq`."""
    return _vectors(conn, conn.all(_BEFORE, tree_id, seq, model, most)[::-1])


def after_marks(
    conn: Conn, model: str, upper: str, name: str, trees: Sequence[int]
) -> tuple[Vectors, list[int]]:
    """The vectors of trees between two watermarks, and the tree of each vector.

    Args:
        conn: A transaction.
        model: The embedding model.
        upper: The name of the upper watermarks, up to which vectors are complete.
        name: The name of the lower watermarks, those of an index; an unknown name gives all vectors.
        trees: The trees.
    """
    rows = conn.all(_AFTER_MARKS, json.dumps(trees), model, upper, name)
    return _vectors(conn, [(row[0], row[1], row[2]) for row in rows]), [row[3] for row in rows]


def of_owner(conn: Conn, owner: str, model: str) -> Vectors:
    """The vectors of all conversations of an owner."""
    return _vectors(conn, conn.all(_OF_OWNER, owner, model))


def count(conn: Conn, owner: str, model: str) -> int:
    """The number of vectors of a model in all conversations of an owner."""
    return int(conn.all(_COUNT, owner, model)[0][0])


def dimensions(conn: Conn, owner: str, model: str) -> int | None:
    """The dimensions of the vectors of a model; `None` if the owner has no vectors."""
    row = conn.one(_ANY, owner, model)
    return None if row is None else len(opened(conn, row[0])) // 2


def by_keys(conn: Conn, model: str, keys: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """The vectors of nodes; nodes without a vector are omitted."""
    rows = conn.all(_BY_KEYS, json.dumps(keys), model) if keys else []
    halves = [(row[0], opened(conn, row[1])) for row in rows]
    return {key: np.frombuffer(half, np.float16).astype(np.float32) for key, half in halves if half}


def stored(conn: Conn, vector: NDArray[np.float32]) -> bytes:
    """A vector as float16 bytes; encrypted if the database is."""
    half = vector.astype(np.float16).tobytes()
    return half if conn.seal is None else conn.seal.vector(half)


def opened(conn: Conn, value: bytes) -> bytes:
    """The float16 bytes of a stored vector; empty if they cannot be decrypted."""
    try:
        return bytes(value) if conn.seal is None else conn.seal.open_vector(bytes(value))
    except EncryptionError:
        return b""


def models_of(conn: Conn, keys: Sequence[int]) -> list[tuple[int, str]]:
    """The models of the vectors of nodes: pairs of key and model."""
    return [(row[0], row[1]) for row in conn.all(_MODELS_OF, json.dumps(keys))]


def delete_of(conn: Conn, keys: Sequence[int]) -> None:
    """Delete the vectors of nodes."""
    conn.run(_DELETE, json.dumps(keys))


def delete_of_tree(conn: Conn, tree_id: int, model: str) -> None:
    """Delete the vectors of a model in a tree."""
    conn.run(_DELETE_OF_TREE, tree_id, model)


def _vectors(conn: Conn, rows: list[tuple[int, int, bytes]]) -> Vectors:
    halves = [opened(conn, row[2]) for row in rows]
    rows = [row for row, half in zip(rows, halves, strict=True) if half]
    if not rows:
        return NONE
    flat = np.frombuffer(b"".join(halves), np.float16)
    return Vectors(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        flat.reshape(len(rows), -1).astype(np.float32),
    )
