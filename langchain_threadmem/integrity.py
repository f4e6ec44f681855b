"""SQL: checks of the database file, of its rows and of the links between them; removal of damaged rows."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BigInteger, bindparam, delete, func, literal_column, select

from langchain_threadmem.index import vectors, watermarks
from langchain_threadmem.messages.ids import is_numbered
from langchain_threadmem.messages.text import plural
from langchain_threadmem.removal.tables import TABLES, Id, scope
from langchain_threadmem.storage import checksums, node_keys
from langchain_threadmem.storage.schema import (
    LEXICON,
    State,
    digest,
    embedding,
    gist,
    mark,
    node,
    segment,
    tree,
    unit,
)
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree.nodes import STORED

_CHECK = Statement.of(sqlite="PRAGMA integrity_check", postgresql="SELECT 'ok'")
_ORPHANS = Statement(
    select(node.c.message)
    .select_from(
        tree.join(segment, segment.c.tree == tree.c.id)
        .join(unit, node_keys.inside(unit.c.key))
        .join(node, node.c.key == unit.c.key)
        .outerjoin(digest, digest.c.key == unit.c.parent)
    )
    .where(tree.c.owner == bindparam("owner"), unit.c.parent.is_not(None), digest.c.key.is_(None)),
    "owner",
)
_EMPTY = Statement(
    select(digest.c.id)
    .select_from(tree.join(digest, digest.c.tree == tree.c.id).outerjoin(node, node.c.key == digest.c.key))
    .where(tree.c.owner == bindparam("owner"), node.c.key.is_(None)),
    "owner",
)
_PURGED = Statement(node_keys.keys_of(bindparam("tree")).where(node.c.state == int(State.PURGED)), "tree")
_before = node.alias("before")
_UNREACHED = Statement(
    select(node.c.seq)
    .select_from(
        segment.join(node, node_keys.inside(node.c.key)).outerjoin(_before, _before.c.key == node.c.key - 1)
    )
    .where(
        segment.c.tree == bindparam("tree"),
        node.c.opens == literal_column("0"),
        func.coalesce(_before.c.seq, literal_column("-1")) != node.c.seq - 1,
    ),
    "tree",
)
_NAMES = Statement(
    node_keys.after(
        select(*node.c["seq", "message", "named"]).where(node.c.seq <= bindparam("last"), STORED),
        bindparam("tree"),
        bindparam("before"),
    ),
    *("tree", "before", "last"),
)
_NO_WORDS = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}) VALUES ('delete-all')", postgresql=f"DELETE FROM {LEXICON}"
)
_NO_DOCUMENTS = Statement(delete(gist))
_LEXICONS = Statement(delete(mark).where(mark.c.name.startswith(watermarks.lexicon_of(""), autoescape=True)))
_VECTOR = Statement(
    delete(embedding).where(
        embedding.c.key == bindparam("key", type_=BigInteger()), embedding.c.model == bindparam("model")
    ),
    *("key", "model"),
)
_TREE_OF = Statement(select(node.c.tree).where(node.c.key == bindparam("key", type_=BigInteger())), "key")


def problems(conn: Conn) -> list[str]:
    """Faults of an SQLite file; PostgreSQL checks its own files."""
    return [f"the database file: {row[0]}" for row in conn.all(_CHECK) if row[0] != "ok"]


def damaged(conn: Conn, owner: str, only: int | None = None) -> list[str]:
    """Rows that differ from what was written, of one tree or of the whole database, one sentence each."""
    found: list[str] = []
    for part in TABLES:
        if only is None:
            keys = checksums.wrong(conn, part.table)
        elif part.under is Id.TREE:
            keys = checksums.wrong(conn, part.table, scope(part), only)
        else:
            continue
        if part.table.primary_key.columns.keys()[0] == "owner":  # The names of other owners are not shown.
            keys = [key if key[0] == owner else ("another owner's",) for key in keys]
        found += [f"the row {key!r} of {part.table.name!r} is not what was written" for key in keys]
    return found


def dangling(conn: Conn, owner: str) -> list[str]:
    """Links of an owner's summaries that lead nowhere."""
    return [
        *(f"unit {row[0]!r} lies below a summary that there is not" for row in conn.all(_ORPHANS, owner)),
        *(f"summary {row[0]!r} has no text" for row in conn.all(_EMPTY, owner)),
    ]


def purged(conn: Conn, tree_id: int) -> set[int]:
    """Keys of the purged nodes of a tree."""
    return {row[0] for row in conn.all(_PURGED, tree_id)}


def unfound(conn: Conn, tree_id: int, first: int, last: int) -> list[int]:
    """Numbers of the nodes that are not found by the ids of their messages."""
    rows = conn.all(_NAMES, tree_id, first - 1, last)
    return [seq for seq, message, named in rows if bool(named) == is_numbered(message, seq)]


def unreached(conn: Conn, tree_id: int) -> list[int]:
    """Numbers of the nodes of a tree that the index of node numbers does not reach."""
    return [row[0] for row in conn.all(_UNREACHED, tree_id)]


def mend(conn: Conn) -> list[str]:
    """Delete damaged derived rows, and what was made together with them."""
    done: list[str] = []
    words, marks = checksums.wrong(conn, gist), checksums.wrong(conn, mark)
    for tree_id, name in marks:
        watermarks.drop(conn, tree_id, name)
    faults = [fault for fault in problems(conn) if LEXICON in fault]
    if words or marks or faults:
        # The entries of a damaged row in the index of words are not known, so all entries are removed.
        for statement in (_NO_WORDS, _NO_DOCUMENTS, _LEXICONS):
            conn.run(statement)
        done.append("the words of all messages were made anew")
    broken = checksums.wrong(conn, embedding)
    for tree_id, model in sorted(_trees_of(conn, broken)):
        vectors.delete_of_tree(conn, tree_id, model)
        watermarks.drop(conn, tree_id, watermarks.embeddings_of(model))
        watermarks.drop(conn, tree_id, watermarks.index_of(model))
    for key, model in broken:  # Also of a node that there is not.
        conn.run(_VECTOR, key, model)
    if broken:
        done.append(f"{plural(len(broken), 'damaged vector')} removed; the next search makes new ones")
    return done


def _trees_of(conn: Conn, rows: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """The trees and the models of rows of vectors."""
    return {(found[0], model) for key, model in rows if (found := conn.one(_TREE_OF, key)) is not None}
