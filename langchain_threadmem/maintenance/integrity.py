"""SQL: checks of the database file, of its rows and of the links between them; removal of damaged rows."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import BigInteger, bindparam, case, delete, func, literal_column, or_, select, union

from langchain_threadmem.index import watermarks
from langchain_threadmem.index.removal import drop_model
from langchain_threadmem.maintenance.removal.tables import TABLES, Id, scope
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage import checksums, node_keys
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    LEXICON,
    POSITION_BITS,
    State,
    document,
    embedding,
    graft,
    node,
    segment,
    summary,
    tree,
    unit,
    watermark,
)
from langchain_threadmem.storage.statements import ONE, ZERO, Conn, Statement, within
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.nodes import STORED

_CHECK = Statement.of(sqlite="PRAGMA integrity_check", postgresql="SELECT 'ok'")
_UNITS_WITHOUT_SUMMARY = Statement(
    select(node.c.message)
    .select_from(
        tree.join(segment, segment.c.tree == tree.c.id)
        .join(unit, node_keys.inside(unit.c.key))
        .join(node, node.c.key == unit.c.key)
        .outerjoin(summary, summary.c.key == unit.c.parent)
    )
    .where(tree.c.owner == bindparam("owner"), unit.c.parent.is_not(None), summary.c.key.is_(None)),
    "owner",
)
_SUMMARIES_WITHOUT_TEXT = Statement(
    select(summary.c.id)
    .select_from(tree.join(summary, summary.c.tree == tree.c.id).outerjoin(node, node.c.key == summary.c.key))
    .where(tree.c.owner == bindparam("owner"), node.c.key.is_(None)),
    "owner",
)
_HIDDEN = Statement(node_keys.keys_of(bindparam("tree")).where(~STORED), "tree")
_REPEATED = Statement(
    select(node.c.message)
    .where(node.c.tree == bindparam("tree"), node.c.state == ZERO)
    .group_by(node.c.message)
    .having(func.count() > ONE),
    "tree",
)
_before = node.alias("before")
_follows = case(
    (node.c.key.op("&")(literal_column(f"{LAST_POSITION}")) == ZERO, segment.c.parent),
    else_=node.c.key - ONE,
)
_of_owner = (tree.c.owner == bindparam("owner"), tree.c.scope == "")
_tip = node.alias("tip")
# The index contains tree and message, so that only the states of repeated messages are read.
_several = (
    select(node.c.tree, node.c.message)
    .select_from(tree.join(node, node.c.tree == tree.c.id))
    .where(*_of_owner)
    .group_by(node.c.tree, node.c.message)
    .having(func.count() > ONE)
    .subquery()
)
_SUSPECTS = Statement(
    union(
        select(tree.c.id)
        .select_from(
            tree.join(segment, segment.c.tree == tree.c.id)
            .join(node, node_keys.inside(node.c.key))
            .outerjoin(_before, _before.c.key == _follows)
        )
        .where(
            *_of_owner,
            or_(
                ~node.c.state.between(ZERO, literal_column(f"{int(State.ASIDE)}")),
                node.c.tree != tree.c.id,
                _before.c.tree != tree.c.id,
                node.c.parent.is_distinct_from(_before.c.seq),
                node.c.parent >= node.c.seq,
            ),
        ),
        select(_several.c.tree)
        .join(node, (node.c.tree == _several.c.tree) & (node.c.message == _several.c.message))
        .where(node.c.state == ZERO)
        .group_by(_several.c.tree, _several.c.message)
        .having(func.count() > ONE),
        select(tree.c.id).select_from(tree.join(graft, graft.c.tree == tree.c.id)).where(*_of_owner),
        select(tree.c.id).where(*_of_owner, tree.c.sealed),
        select(tree.c.id)
        .select_from(tree.join(node, node.c.tree == tree.c.id))
        .where(
            *_of_owner,
            ~select(segment.c.id)
            .where(segment.c.id == node.c.key.op(">>")(literal_column(f"{POSITION_BITS}")))
            .where(segment.c.tree == tree.c.id)
            .correlate(node, tree)
            .exists(),
        ),
        select(tree.c.id)
        .select_from(tree.outerjoin(_tip, _tip.c.key == tree.c.tip))
        .where(*_of_owner, tree.c.tip.is_not(None), _tip.c.tree.is_distinct_from(tree.c.id)),
    ),
    "owner",
)
_SIZES = Statement(
    select(tree.c.id, trees.newest.c.seq)
    .select_from(tree.join(trees.newest, trees.is_newest))
    .where(*_of_owner),
    "owner",
)
_TEXTS = Statement(
    select(tree.c.id, *node.c["message", "role", "body"])
    .select_from(tree.join(segment, segment.c.tree == tree.c.id).join(node, node_keys.inside(node.c.key)))
    .where(within(tree.c.id, "trees"), STORED),
    "trees",
)
_DELETE_WORDS = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}) VALUES ('delete-all')", postgresql=f"DELETE FROM {LEXICON}"
)
_DELETE_DOCUMENTS = Statement(delete(document))
_DELETE_MARKS = Statement(
    delete(watermark).where(watermark.c.name.startswith(watermarks.lexicon_of(""), autoescape=True))
)
_DELETE_VECTOR = Statement(
    delete(embedding).where(
        embedding.c.key == bindparam("key", type_=BigInteger()), embedding.c.model == bindparam("model")
    ),
    *("key", "model"),
)
_TREE_OF = Statement(select(node.c.tree).where(node.c.key == bindparam("key", type_=BigInteger())), "key")


def problems(conn: Conn) -> list[str]:
    """Faults of an SQLite file; PostgreSQL checks its own files."""
    faults = [str(row[0]) for row in conn.all(_CHECK) if row[0] != "ok"]
    return [f"the database file: {fault}" for fault in (*faults, *checksums.wrong_types(conn))]


def damaged(conn: Conn, owner: str, only_tree: int | None = None) -> list[str]:
    """Rows that differ from the written rows, of one tree or of the whole database, one sentence each."""
    faults: list[str] = []
    for entry in TABLES:
        if only_tree is None:
            keys = checksums.damaged_keys(conn, entry.table)
        elif entry.under is Id.TREE:
            keys = checksums.damaged_keys(conn, entry.table, scope(entry), only_tree)
        else:
            continue
        if entry.table.primary_key.columns.keys()[0] == "owner":  # The names of other owners are not shown.
            keys = [key if key[0] == owner else ("another owner's",) for key in keys]
        faults += [f"the row {key!r} of {entry.table.name!r} differs from the written row" for key in keys]
    return faults


def dangling(conn: Conn, owner: str) -> list[str]:
    """Faulty links of an owner's summaries, one sentence each."""
    return [
        *(
            f"unit {row[0]!r} belongs to a summary that does not exist"
            for row in conn.all(_UNITS_WITHOUT_SUMMARY, owner)
        ),
        *(f"summary {row[0]!r} has no text" for row in conn.all(_SUMMARIES_WITHOUT_TEXT, owner)),
    ]


def hidden(conn: Conn, tree_id: int) -> set[int]:
    """Keys of the purged and the removed nodes of a tree."""
    return {row[0] for row in conn.all(_HIDDEN, tree_id)}


def suspects(conn: Conn, owner: str) -> set[int]:
    """The trees of an owner's conversations that need a closer check: those with a node that does not follow
    its parent in the order of keys, with moved or removed nodes, or with two live nodes of a message, and
    encrypted trees.
    """
    return {row[0] for row in conn.all(_SUSPECTS, owner)}


def sizes(conn: Conn, owner: str) -> dict[int, int]:
    """The number of the newest node of each of an owner's conversations, by tree."""
    return dict(conn.all(_SIZES, owner))


def texts(conn: Conn, tree_ids: Collection[int]) -> list[tuple[Any, ...]]:
    """The nodes of trees: tree, message id, role and body."""
    return conn.all(_TEXTS, json.dumps(list(tree_ids)))


def repeated(conn: Conn, tree_id: int) -> list[str]:
    """The ids of the messages of a tree that have several live nodes."""
    return [row[0] for row in conn.all(_REPEATED, tree_id)]


def delete_damaged(conn: Conn) -> list[str]:
    """Delete damaged derived rows, and the rows that were written with them; returns one sentence each."""
    repairs: list[str] = []
    documents, marks = checksums.damaged_keys(conn, document), checksums.damaged_keys(conn, watermark)
    for tree_id, name in marks:
        watermarks.drop(conn, tree_id, name)
    faults = [fault for fault in problems(conn) if LEXICON in fault]
    if documents or marks or faults:
        # The index entries of a damaged row are unknown, so all entries of the index of words are removed.
        for statement in (_DELETE_WORDS, _DELETE_DOCUMENTS, _DELETE_MARKS):
            conn.run(statement)
        repairs.append("the index of words was rebuilt")
    broken = checksums.damaged_keys(conn, embedding)
    for tree_id, model in sorted(_trees_of(conn, broken)):
        drop_model(conn, tree_id, model)
    for key, model in broken:  # Includes vectors whose node does not exist.
        conn.run(_DELETE_VECTOR, key, model)
    if broken:
        repairs.append(
            f"{plural(len(broken), 'damaged vector')} removed; the next search embeds the messages"
        )
    return repairs


def _trees_of(conn: Conn, rows: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """The trees and the models of rows of vectors."""
    return {(row[0], model) for key, model in rows if (row := conn.one(_TREE_OF, key)) is not None}
