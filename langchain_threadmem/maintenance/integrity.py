"""SQL: checks of the database file, of its rows and of the links between them; removal of damaged rows."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, case, delete, func, literal_column, or_, select

from langchain_threadmem.index import watermarks
from langchain_threadmem.index.removal import drop_model
from langchain_threadmem.maintenance.removal.tables import TABLES, Id, scope
from langchain_threadmem.messages.codec import MESSAGE_CLASSES, TEXT_ALONE, UNREADABLE
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage import checksums, node_keys
from langchain_threadmem.storage.migrations import delete_words
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    LEXICON,
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
from langchain_threadmem.tree.graph import circular
from langchain_threadmem.tree.nodes import STORED

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
_before, _tip, _same = node.alias("before"), node.alias("tip"), node.alias("same")
_AT_MOST_ASIDE: ColumnElement[int] = literal_column(f"{int(State.ASIDE)}")
_is_first = node.c.key.op("&")(literal_column(f"{LAST_POSITION}")) == ZERO
_predecessor = func.coalesce(graft.c.parent, case((_is_first, segment.c.parent), else_=node.c.key - ONE))
_nodes = tree.join(segment, segment.c.tree == tree.c.id).join(node, node_keys.inside(node.c.key))
_is_faulty = or_(
    ~node.c.state.between(ZERO, _AT_MOST_ASIDE),
    node.c.tree != tree.c.id,
    _before.c.tree != tree.c.id,
    ~_before.c.state.between(ZERO, _AT_MOST_ASIDE),
    _before.c.key.is_distinct_from(_predecessor),
    node.c.parent.is_distinct_from(_before.c.seq),
)
_UNUSUAL = Statement(
    select(tree.c.id, ~STORED, func.coalesce(_is_faulty, literal_column("false")))
    .select_from(
        _nodes.outerjoin(graft, graft.c.key == node.c.key).outerjoin(_before, _before.c.key == _predecessor)
    )
    .where(*_of_owner, or_(_is_faulty, node.c.parent >= node.c.seq)),
    "owner",
)
_PARENTS = Statement(
    select(*node.c["tree", "seq", "parent"]).where(within(node.c.tree, "trees"), STORED), "trees"
)
_alive = (
    select(func.count())
    .where(_same.c.tree == tree.c.id, _same.c.message == node.c.message, _same.c.state == ZERO)
    .scalar_subquery()
)
_several = (
    select(ONE)
    .where(node.c.tree == tree.c.id)
    .group_by(node.c.message)
    .having((func.count() > ONE) & (_alive > ONE))
    .correlate(tree)
    .exists()
)
_SUSPECTS = Statement(
    select(tree.c.id)
    .select_from(tree.outerjoin(_tip, _tip.c.key == tree.c.tip).outerjoin(trees.newest, trees.is_newest))
    .where(
        *_of_owner,
        or_(
            tree.c.sealed,
            tree.c.tip.is_not(None) & _tip.c.tree.is_distinct_from(tree.c.id),
            func.coalesce(_tip.c.state, trees.newest.c.state) > _AT_MOST_ASIDE,
            _several,
        ),
    ),
    "owner",
)
# Subqueries, since SQLite would read the nodes of all trees for each tree if the rows were grouped.
_SIZES = Statement(
    select(
        tree.c.id,
        select(func.count()).where(node.c.tree == tree.c.id).correlate(tree).scalar_subquery(),
        select(func.count())
        .select_from(segment.join(node, node_keys.inside(node.c.key)))
        .where(segment.c.tree == tree.c.id)
        .correlate(tree)
        .scalar_subquery(),
    ).where(*_of_owner),
    "owner",
)
_OPENINGS: list[ColumnElement[str]] = [
    literal_column(f'\'{{"type":"{kind}","data":{{"\'') for kind in MESSAGE_CLASSES
]
_unread = (
    select(tree.c.id, *node.c["message", "role", "body"]).select_from(_nodes).where(STORED, ~tree.c.sealed)
)
_is_other = ~or_(*(func.starts_with(node.c.body, opening) for opening in _OPENINGS)) | or_(
    *(func.strpos(node.c.body, literal_column(f"'{word}'")) > ZERO for word in (UNREADABLE, '"typed"'))
)
_UNREAD = {
    # The checksums of the rows prove that the bodies are those that were written.
    "sqlite": ~or_(
        *(node.c.body.between(opening, opening.op("||")(literal_column("'~'"))) for opening in _OPENINGS)
    )
    | (func.instr(node.c.body, literal_column(f"'{UNREADABLE}'")) > ZERO),
    "postgresql": _is_other | ~func.pg_input_is_valid(node.c.body, literal_column("'json'")),
    # Versions before 16 can check no JSON without an error.
    "old postgresql": node.c.body.op("!~", is_comparison=True)(literal_column(f"'^({TEXT_ALONE.pattern})$'")),
}
_BODIES = {
    dialect: Statement(_unread.where(within(tree.c.id, "trees"), condition), "trees")
    for dialect, condition in _UNREAD.items()
}
_VERSION = Statement.of(sqlite="", postgresql="SELECT current_setting('server_version_num')::integer / 10000")
_DELETE_VECTOR = Statement(
    delete(embedding).where(
        embedding.c.key == bindparam("key", type_=BigInteger()), embedding.c.model == bindparam("model")
    ),
    *("key", "model"),
)
_TREE_OF = Statement(select(node.c.tree).where(node.c.key == bindparam("key", type_=BigInteger())), "key")


def problems(conn: Conn) -> list[str]:
    """Faults of an SQLite file; PostgreSQL checks its own files."""
    faults = (*checksums.page_faults(conn), *checksums.wrong_types(conn))
    return [f"the database file: {fault}" for fault in faults]


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


def counts(conn: Conn, owner: str) -> tuple[dict[int, int], set[int]]:
    """The numbers of the nodes of an owner's conversations, and the trees that need a closer check.

    The latter have a node that does not follow its parent in the order of keys, follows a removed node or
    descends from itself; a node without a segment; two live nodes of a message; a wrong tip; or they are
    encrypted.
    """
    suspects = {row[0] for row in conn.all(_SUSPECTS, owner)}
    sizes = {}
    for tree_id, size, in_segments in conn.all(_SIZES, owner):
        sizes[tree_id] = size
        if size != in_segments:
            suspects.add(tree_id)
    before_parent = set()
    for tree_id, is_hidden, is_faulty in conn.all(_UNUSUAL, owner):
        if is_hidden:
            sizes[tree_id] -= 1
        elif is_faulty:
            suspects.add(tree_id)
        else:
            before_parent.add(tree_id)
    rows = conn.all(_PARENTS, json.dumps(sorted(before_parent - suspects)))
    parents = {(tree_id, seq): parent and (tree_id, parent) for tree_id, seq, parent in rows}
    return sizes, suspects | {tree_id for tree_id, _ in circular(parents)}


def bodies(conn: Conn, tree_ids: Collection[int]) -> list[tuple[Any, ...]]:
    """The nodes of trees whose bodies are not certainly readable: tree, message id, role and body.

    On SQLite, all rows must have correct checksums.
    """
    is_old = conn.dialect != "sqlite" and conn.all(_VERSION)[0][0] < 16
    return conn.all(_BODIES["old postgresql" if is_old else conn.dialect], json.dumps(list(tree_ids)))


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
        delete_words(conn)
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
