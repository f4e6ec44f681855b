"""SQL: watermarks, the number of the last node of a tree in each derived index."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import and_, bindparam, delete, func, select

from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import recallable, tree, watermark
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within, within_rows

_LEXICON, _INDEX = "lexicon:", "chroma@"
SUMMARIES_OF = "summaries:"
"""The prefix of the name of the watermark of summarised messages; the grouping follows."""


class Watermark(NamedTuple):
    """The state of an index in a tree.

    Attributes:
        seq: The number of the last node that was added.
        documents: The number of nodes of the tree in the index.
        words: The number of their words; 0 for an index of vectors.
    """

    seq: int = 0
    documents: int = 0
    words: int = 0


class Reached(NamedTuple):
    """The watermark of an index in a tree, and the epoch of the tree."""

    epoch: int = 0
    watermark: Watermark = Watermark()


class TreeBehind(NamedTuple):
    """A tree with nodes that an index lacks.

    Attributes:
        tree: The tree.
        epoch: The epoch of the tree.
        after: The number of the last node that was added.
        last: The number of the newest node.
    """

    tree: int
    epoch: int
    after: int
    last: int


_owned = tree.alias("owned")
# PostgreSQL joins the tables by reading the trees of all owners, if it knows few of this owner.
_own = select(_owned.c.id).where(_owned.c.owner == bindparam("owner"))
_OF_OWNER = within_rows(watermark.c.tree, _own)
# SQLite joins the tables faster: 3.4 instead of 5 ms for 10,000 conversations.
_TOTAL = Statement.of(
    sqlite=f"SELECT sum(documents), sum(words) FROM {tree.name} t JOIN {watermark.name} w ON w.tree = t.id "
    "WHERE t.owner = ? AND w.name = ?",
    postgresql=f"SELECT sum(documents), sum(words) FROM {watermark.name} "
    f"WHERE tree = ANY (ARRAY(SELECT id FROM {tree.name} WHERE owner = %s)) AND name = %s",
)
_SET = insert_of(watermark, replace=True)
# Encrypted messages are in no index outside of their conversation.
_IS_INDEXED = (recallable, ~tree.c.sealed)
_INDEXED = (tree.c.owner == bindparam("owner"), *_IS_INDEXED)
_NAMED = (watermark.c.tree == tree.c.id) & (watermark.c.name == bindparam("name"))
_reached_seq = func.coalesce(watermark.c.seq, 0)
_last = node_keys.newest(tree.c.id, "seq")
_missing = select(tree.c.id, _last - _reached_seq).outerjoin(watermark, _NAMED).where(_reached_seq < _last)
_MISSING = Statement(_missing.where(*_INDEXED).order_by(tree.c.id), "name", "owner")
_NEWEST_BEHIND, _BEHIND_IN = (
    Statement(
        select(tree.c.id, tree.c.epoch, _reached_seq, _last)
        .outerjoin(watermark, _NAMED)
        .where(_reached_seq < _last, condition)
        .order_by(node_keys.newest(tree.c.id, "created").desc())
        .limit(bindparam("most")),
        *("name", parameter, "most"),
    )
    for condition, parameter in ((and_(*_INDEXED), "owner"), (tree.c.id == bindparam("tree"), "tree"))
)
_MISSING_IN = Statement(_missing.where(within(tree.c.id, "trees")), "name", "trees")
_REACHED = Statement(
    select(tree.c.id, tree.c.epoch, *watermark.c[Watermark._fields])
    .join(watermark, _NAMED)
    .where(_OF_OWNER, within_rows(tree.c.id, _own), *_IS_INDEXED)
    .order_by(tree.c.id),
    *("name", "owner"),
)
_upper = watermark.alias("made")
_LACKING = Statement(
    select(tree.c.id, _upper.c.documents - func.coalesce(watermark.c.documents, 0))
    .join(_upper, (_upper.c.tree == tree.c.id) & (_upper.c.name == bindparam("made")))
    .outerjoin(watermark, _NAMED)
    .where(_reached_seq < _upper.c.seq, *_INDEXED)
    .order_by(tree.c.id),
    *("made", "name", "owner"),
)
_OF_TREES = Statement(
    select(tree.c.id, tree.c.epoch, *(func.coalesce(watermark.c[column], 0) for column in Watermark._fields))
    .outerjoin(watermark, _NAMED)
    .where(within(tree.c.id, "trees")),
    *("name", "trees"),
)
_LEXICONS = Statement(
    select(watermark.c.tree, watermark.c.name).where(
        within(watermark.c.tree, "trees"),
        watermark.c.name.startswith(_LEXICON, autoescape=True),
        watermark.c.name != bindparam("name"),
    ),
    *("trees", "name"),
)
_INDEXES = Statement(
    select(watermark.c.name, func.max(watermark.c.documents))
    .where(_OF_OWNER, watermark.c.name.startswith(_INDEX, autoescape=True))
    .group_by(watermark.c.name),
    "owner",
)
_CLEAR = Statement(
    delete(watermark).where(_OF_OWNER, watermark.c.name == bindparam("name")), *("owner", "name")
)
_OF_TREE = Statement(
    select(watermark.c.name, *watermark.c[Watermark._fields]).where(watermark.c.tree == bindparam("tree")),
    "tree",
)
_DROP = Statement(
    delete(watermark).where(watermark.c.tree == bindparam("tree"), watermark.c.name == bindparam("name")),
    "tree",
    "name",
)


def is_lexicon(name: str) -> bool:
    """Whether a name is the name of a lexicon's watermark."""
    return name.startswith(_LEXICON)


def lexicon_of(language: str) -> str:
    """The name of the watermark of a language's lexicon."""
    return f"{_LEXICON}{language}"


def other_lexicons(conn: Conn, trees: Collection[int], name: str) -> list[tuple[int, str]]:
    """The lexicons of other languages with words of trees: pairs of tree and watermark's name."""
    return [(row[0], row[1]) for row in conn.all(_LEXICONS, json.dumps(list(trees)), name)]


def embeddings_of(model: str) -> str:
    """The name of the watermark of a model's vectors."""
    return f"vectors:{model}"


def index_of(model: str, collection: str) -> str:
    """The name of the watermark of an owner-wide index over a model's vectors.

    An index that is emptied is a new collection with a new id. So a watermark that another process stores
    after its vectors were dropped is no watermark of the new collection.
    """
    return f"{_INDEX}{collection}:{model}"


def _model_of(name: str) -> str | None:
    """The model of an owner-wide index, by the name of its watermark; `None` for another index."""
    return name.partition(":")[2] if name.startswith(_INDEX) else None


def get(conn: Conn, tree_id: int, name: str) -> Reached:
    """The watermark of an index in a tree; zeros for an empty index, and for a tree that does not exist."""
    return of_trees(conn, name, [tree_id]).get(tree_id, Reached())


def indexes(conn: Conn, owner: str) -> list[str]:
    """The embedding models whose vectors of an owner are in an owner-wide index."""
    return sorted({_model_of(name) or "" for name, documents in conn.all(_INDEXES, owner) if documents})


def indexed(conn: Conn, tree_id: int) -> bool:
    """Whether an index outside of the database contains vectors of a tree."""
    return any(
        mark.documents and not name.startswith((_LEXICON, embeddings_of("")))
        for name, mark in of_tree(conn, tree_id)
    )


def of_tree(conn: Conn, tree_id: int) -> list[tuple[str, Watermark]]:
    """All watermarks of a tree, with their names."""
    return [(row[0], Watermark(*row[1:])) for row in conn.all(_OF_TREE, tree_id)]


def total(conn: Conn, owner: str, name: str) -> Watermark:
    """The sums of an index's watermarks in all trees of an owner; `seq` is 0."""
    row = conn.one(_TOTAL, owner, name) or (0, 0)
    return Watermark(0, int(row[0] or 0), int(row[1] or 0))


def put(conn: Conn, name: str, to: Mapping[int, Watermark]) -> None:
    """Store the watermarks of an index, by tree."""
    conn.later(_SET, [(tree, name, *mark) for tree, mark in to.items()])


def of_trees(conn: Conn, name: str, trees: Collection[int]) -> dict[int, Reached]:
    """The watermarks of an index in trees that exist; zeros for an empty index."""
    return {
        row[0]: Reached(row[1], Watermark(*row[2:]))
        for row in conn.all(_OF_TREES, name, json.dumps(list(trees)))
    }


def missing(conn: Conn, owner: str, name: str) -> dict[int, int]:
    """The approximate number of nodes above the watermark of an index, by tree of an owner."""
    return {row[0]: row[1] for row in conn.all(_MISSING, name, owner)}


def missing_in(conn: Conn, name: str, trees: Collection[int]) -> dict[int, int]:
    """The approximate number of nodes above the watermark of an index, by tree."""
    return {row[0]: row[1] for row in conn.all(_MISSING_IN, name, json.dumps(list(trees)))}


def behind(conn: Conn, owner: str, name: str, tree_id: int | None, most: int) -> list[TreeBehind]:
    """The trees with nodes above the watermark of an index, those with the newest messages first.

    Args:
        conn: A transaction.
        owner: The owner.
        name: The name of the watermarks.
        tree_id: A single tree of the owner; `None` for all.
        most: The maximum number of trees.
    """
    rows = (
        conn.all(_NEWEST_BEHIND, name, owner, most)
        if tree_id is None
        else conn.all(_BEHIND_IN, name, tree_id, most)
    )
    return [TreeBehind(*row) for row in rows]


def past_purged(conn: Conn, name: str, at: Mapping[int, Watermark]) -> dict[int, Watermark]:
    """The watermarks of trees raised to the newest numbers, past purged messages.

    Args:
        conn: The transaction that has read `at`.
        name: The name of the watermarks.
        at: The watermarks of trees in which the transaction has found no stored message above them.
    """
    behind = missing_in(conn, name, at) if at else {}
    return {tree: at[tree]._replace(seq=at[tree].seq + count) for tree, count in behind.items()}


def lacking(conn: Conn, owner: str, model: str, name: str) -> dict[int, int]:
    """The number of vectors above the watermark of an index of vectors, by tree of an owner."""
    return {row[0]: row[1] for row in conn.all(_LACKING, embeddings_of(model), name, owner)}


def reached(conn: Conn, owner: str, name: str) -> dict[int, Reached]:
    """The watermarks of an index, by tree of an owner."""
    return {row[0]: Reached(row[1], Watermark(*row[2:])) for row in conn.all(_REACHED, name, owner)}


def clear(conn: Conn, owner: str, name: str) -> None:
    """Delete the watermarks of an index, and of its former collections, in all trees of an owner."""
    model = _model_of(name)
    former = (
        [] if model is None else [row[0] for row in conn.all(_INDEXES, owner) if _model_of(row[0]) == model]
    )
    for one in {name, *former}:
        conn.run(_CLEAR, owner, one)


def drop_indexes(conn: Conn, tree_id: int, model: str) -> None:
    """Delete the watermarks of the owner-wide indexes over a model's vectors in a tree."""
    for name, _ in of_tree(conn, tree_id):
        if _model_of(name) == model:
            drop(conn, tree_id, name)


def drop(conn: Conn, tree_id: int, name: str) -> None:
    """Delete the watermark of an index in a tree."""
    conn.run(_DROP, tree_id, name)
