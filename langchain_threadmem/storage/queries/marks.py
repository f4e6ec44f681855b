"""Watermarks: up to which node of a tree each derived index is complete."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, delete, func, select

from langchain_threadmem.storage.queries import strides
from langchain_threadmem.storage.schema import mark, recallable, tree
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

_LEXICON = "lexicon:"


class Mark(NamedTuple):
    """How far an index has come in a tree.

    Attributes:
        seq: Every node up to this number is in the index.
        documents: How many of them it holds.
        words: How many words these have together; 0 for indexes that count none.
    """

    seq: int = 0
    documents: int = 0
    words: int = 0


class Reached(NamedTuple):
    """How far an index has come in a tree, and in which of its epochs."""

    epoch: int
    seq: int
    documents: int


_GET = Statement(
    select(mark.c.seq, mark.c.documents, mark.c.words).where(
        mark.c.tree == bindparam("tree"), mark.c.name == bindparam("name")
    ),
    "tree",
    "name",
)
_TOTAL = Statement(
    select(func.sum(mark.c.documents), func.sum(mark.c.words))
    .join(tree, tree.c.id == mark.c.tree)
    .where(tree.c.owner == bindparam("owner"), mark.c.name == bindparam("name")),
    "owner",
    "name",
)
_SET = insert_of(mark, replace=True)
_last = strides.newest(tree.c.id, "seq")
_BEHIND = Statement(
    select(tree.c.id, _last - func.coalesce(mark.c.seq, 0))
    .outerjoin(mark, (mark.c.tree == tree.c.id) & (mark.c.name == bindparam("name")))
    .where(
        tree.c.owner == bindparam("owner"),
        recallable,
        func.coalesce(mark.c.seq, 0) < _last,
        ~tree.c.sealed,  # no index outside of a conversation may hold what is encrypted in it
    )
    .order_by(tree.c.id),
    "name",
    "owner",
)


_REACHED = Statement(
    select(tree.c.id, tree.c.epoch, *mark.c["seq", "documents"])
    .join(mark, mark.c.tree == tree.c.id)
    .where(tree.c.owner == bindparam("owner"), mark.c.name == bindparam("name"), recallable, ~tree.c.sealed)
    .order_by(tree.c.id),
    "owner",
    "name",
)
_CLEAR = Statement(
    delete(mark).where(
        mark.c.tree.in_(select(tree.c.id).where(tree.c.owner == bindparam("owner"))),
        mark.c.name == bindparam("name"),
    ),
    "owner",
    "name",
)
_OF_TREE = Statement(
    select(*mark.c["name", "seq", "documents", "words"]).where(mark.c.tree == bindparam("tree")), "tree"
)
_DROP = Statement(
    delete(mark).where(mark.c.tree == bindparam("tree"), mark.c.name == bindparam("name")), "tree", "name"
)
_CLEAR_TREE = Statement(delete(mark).where(mark.c.tree == bindparam("tree")), "tree")


def is_lexicon(name: str) -> bool:
    """Whether a mark is that of words."""
    return name.startswith(_LEXICON)


def lexicon_of(language: str) -> str:
    """The mark's name for the words of a language."""
    return f"{_LEXICON}{language}"


def other_lexicons(conn: Conn, tree_id: int, name: str) -> list[str]:
    """Marks of lexicons that a tree was entered into under other languages."""
    return [one for one, _ in of_tree(conn, tree_id) if one.startswith(_LEXICON) and one != name]


def embeddings_of(model: str) -> str:
    """The mark's name for the vectors of an embedding model."""
    return f"vectors:{model}"


def index_of(model: str) -> str:
    """The mark's name for the owner-wide index over an embedding model's vectors."""
    return f"chroma:{model}"


def get(conn: Conn, tree_id: int, name: str) -> Mark:
    """How far an index has come in a tree; nothing yet is zero."""
    row = conn.one(_GET, tree_id, name)
    return Mark(*row) if row else Mark()


def indexed(conn: Conn, tree_id: int) -> bool:
    """Whether an index outside of the database holds vectors of a tree."""
    return any(
        mark.documents and not name.startswith((_LEXICON, embeddings_of("")))
        for name, mark in of_tree(conn, tree_id)
    )


def of_tree(conn: Conn, tree_id: int) -> list[tuple[str, Mark]]:
    """All marks of a tree, by their names."""
    return [(row[0], Mark(*row[1:])) for row in conn.all(_OF_TREE, tree_id)]


def total(conn: Conn, owner: str, name: str) -> Mark:
    """What an index holds of all trees of an owner together; `seq` means nothing here."""
    row = conn.one(_TOTAL, owner, name) or (0, 0)
    return Mark(0, int(row[0] or 0), int(row[1] or 0))


def put(conn: Conn, tree_id: int, name: str, to: Mark) -> None:
    """Record how far an index has come."""
    conn.run(_SET, tree_id, name, *to)


def behind(conn: Conn, owner: str, name: str) -> list[int]:
    """The trees of an owner that hold nodes which an index does not know yet."""
    return [row[0] for row in conn.all(_BEHIND, name, owner)]


def missing(conn: Conn, owner: str, name: str) -> dict[int, int]:
    """The trees of an owner that hold nodes which an index does not know yet, and about how many."""
    return {row[0]: row[1] for row in conn.all(_BEHIND, name, owner)}


def reached(conn: Conn, owner: str, name: str) -> dict[int, Reached]:
    """How far an index has come in each tree of an owner that it knows."""
    return {row[0]: Reached(*row[1:]) for row in conn.all(_REACHED, owner, name)}


def clear(conn: Conn, owner: str, name: str) -> None:
    """Let an index start again in every tree of an owner."""
    conn.run(_CLEAR, owner, name)


def drop(conn: Conn, tree_id: int, name: str) -> None:
    """Let an index start again in one tree."""
    conn.run(_DROP, tree_id, name)


def clear_tree(conn: Conn, tree_id: int) -> None:
    """Forget how far any index has come in a tree."""
    conn.run(_CLEAR_TREE, tree_id)
