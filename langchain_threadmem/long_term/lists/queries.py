"""SQL: conversations with their profiles, and threads without their texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, or_, select

from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.encryption import Seal
from langchain_threadmem.storage.schema import SUMMARIES, State, node, profile, summary, tree
from langchain_threadmem.storage.statements import ZERO, Conn, Statement, insert_of, within
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.nodes import STORED
from langchain_threadmem.tree.trees import is_newest, newest, time_of_use


class Profile(NamedTuple):
    """The settings of a conversation in the list.

    Attributes:
        title: The title; `None` for a title from the first message.
        metadata: Any JSON object.
        archived: The time of archiving, in seconds since 1970; `None` if the conversation is not archived.
    """

    title: str | None = None
    metadata: Mapping[str, Any] = {}
    archived: float | None = None


class ConversationRow(NamedTuple):
    """A conversation of the list.

    Attributes:
        tree: The tree of the conversation.
        conversation: The name of the conversation.
        messages: The number of live messages of people and models.
        used: The time of the newest message, in seconds since 1970.
        last: The key of the message that was said last; `None` if none is left.
        created: The creation time of the conversation, in seconds since 1970.
        profile: The profile.
    """

    tree: int
    conversation: str
    messages: int
    used: float
    last: int | None
    created: float
    profile: Profile


OutlineTuple = tuple[int, int, int | None, str, int, float, int | None]
"""A node without its content: key, number, number of the parent, role, state, time, number of the node that
replaced it. A list of threads reads all nodes, and builds no object for each.
"""

_unsaid, _earlier = node.alias("unsaid"), node.alias("earlier")
_said: list[ColumnElement[str]] = [literal_column(f"'{role}'") for role in SPOKEN]
_is_unsaid = and_(*(_unsaid.c.role != role for role in _said))
_others = (  # Counted by the index `schema.node_unsaid`.
    select(func.count(_unsaid.c.tree))
    .where(_unsaid.c.tree == tree.c.id, or_(_unsaid.c.state > ZERO, _is_unsaid))
    .correlate(tree)
    .scalar_subquery()
)
_is_first = ~(
    select(_earlier.c.key)
    .where(
        _earlier.c.tree == tree.c.id,
        _earlier.c.message == newest.c.message,
        _earlier.c.key != newest.c.key,  # With `seq <`, SQLite would read all earlier nodes.
    )
    .correlate(tree, newest)
    .exists()
)
_ROWS = Statement(
    select(
        tree.c.id,
        tree.c.conversation,
        newest.c.seq - _others,
        tree.c.used,
        newest.c.created,
        and_(newest.c.state == ZERO, newest.c.role.in_(_said), _is_first),
        newest.c.key,
        tree.c.created,
        *profile.c["title", "metadata", "archived"],
    )
    .select_from(tree.join(newest, is_newest).outerjoin(profile, profile.c.tree == tree.c.id))
    .where(within(tree.c.id, "trees")),
    "trees",
)
_outline = [*node.c["key", "seq", "parent"], *node.c["role", "state", "created", "superseded_by"]]
_OUTLINE = Statement(
    node_keys.keys_of(bindparam("tree")).with_only_columns(*_outline).where(STORED),
    "tree",
)
_OUTLINE_SINCE = Statement(
    node_keys.after(select(*_outline).where(STORED), bindparam("tree"), bindparam("seq")), "tree", "seq"
)
_OUTLINE_OF_SPAN = Statement(
    select(*_outline)
    .where(node.c.key.between(bindparam("first"), bindparam("last")), STORED)
    .order_by(node.c.key),
    *("first", "last"),
)
_VERSIONS = Statement(
    node_keys.keys_of(bindparam("tree")).with_only_columns(*node.c["key", "seq", "message", "role", "state"]),
    "tree",
)
_PROFILE = Statement(
    select(*profile.c["title", "metadata", "archived"]).where(profile.c.tree == bindparam("tree")), "tree"
)
_PUT = insert_of(profile, replace=True)
_TREES_OF = Statement(select(node.c.tree).where(within(node.c.key, "keys")).distinct(), "keys")
_summaries = tree.alias("summaries")
_SUMMARIES = Statement(
    select(tree.c.id, summary.c.key)
    .select_from(
        tree.join(
            _summaries,
            (_summaries.c.owner == tree.c.owner)
            & (_summaries.c.conversation == tree.c.conversation)
            & (_summaries.c.scope == SUMMARIES),
        ).join(summary, (summary.c.tree == _summaries.c.id) & (summary.c.id == tree.c.conversation))
    )
    .where(within(tree.c.id, "trees")),
    "trees",
)


def rows_of(conn: Conn, trees: Iterable[int]) -> list[ConversationRow]:
    """Non-empty conversations, the latest first."""
    rows = [_row(conn, *row) for row in conn.all(_ROWS, json.dumps(list(trees)))]
    return sorted(rows, key=attrgetter("used", "tree"), reverse=True)


def _row(
    conn: Conn,
    tree_id: int,
    conversation: str,
    messages: int,
    used: float,
    newest_time: float,
    is_last: bool,
    key: int,
    created: float,
    *stored: Any,
) -> ConversationRow:
    last = key if is_last else _last_said(conn, tree_id)
    profile = _profile(conn.seal, tree_id, stored)
    return ConversationRow(
        tree_id, conversation, messages, time_of_use(used, newest_time), last, created, profile
    )


def _last_said(conn: Conn, tree_id: int) -> int | None:
    """The key of the live message of a person or a model whose first version is the newest."""
    rows = conn.all(_VERSIONS, tree_id)
    first: dict[str, int] = {}
    for _, seq, message, _, _ in rows:
        first[message] = min(seq, first.get(message, seq))
    said = (
        (first[message], key)
        for key, _, message, role, state in rows
        if state == State.LIVE and role in SPOKEN
    )
    return max(said, default=(0, None))[1]


def outline(conn: Conn, tree_id: int) -> dict[int, OutlineTuple]:
    """The nodes of a conversation by their numbers, without purged nodes."""
    return {row[1]: row for row in conn.all(_OUTLINE, tree_id)}


def outline_since(conn: Conn, tree_id: int, seq: int) -> list[OutlineTuple]:
    """The nodes of a conversation with numbers above `seq`, in the order of their numbers."""
    return conn.all(_OUTLINE_SINCE, tree_id, seq)


def path_to(conn: Conn, tree_id: int, seq: int) -> list[OutlineTuple]:
    """The nodes from a root to a node, root first."""
    row = nodes.by_seq(conn, tree_id, seq)
    assert row is not None  # the parent of a node
    path = nodes.spans(conn, row.key)
    return [node for span in path for node in conn.all(_OUTLINE_OF_SPAN, *span)]


def profile_of(conn: Conn, tree_id: int) -> Profile:
    """The profile of a conversation; an empty profile if none is stored."""
    row = conn.one(_PROFILE, tree_id)
    return Profile() if row is None else _profile(conn.seal, tree_id, row)


def put_profile(conn: Conn, tree_id: int, new: Profile) -> None:
    """Store the profile of a conversation."""
    encryption_keys.claim(conn)
    title, metadata = new.title, json.dumps(dict(new.metadata))
    if (seal := conn.seal) is not None:
        name = _name(tree_id)
        title, metadata = None if title is None else seal.text(name, title), seal.text(name, metadata)
    conn.run(_PUT, tree_id, title, metadata, new.archived)


def trees_of(conn: Conn, keys: Iterable[int]) -> set[int]:
    """The trees of nodes."""
    return {row[0] for row in conn.all(_TREES_OF, json.dumps(list(keys)))}


def summaries_of(conn: Conn, trees: Iterable[int]) -> dict[int, int]:
    """The keys of the summaries of conversations, by tree; conversations without a summary are omitted."""
    return dict(conn.all(_SUMMARIES, json.dumps(list(trees))))


def _profile(seal: Seal | None, tree_id: int, row: Iterable[Any]) -> Profile:
    title, metadata, archived = row
    if metadata is None:
        return Profile()
    if seal is not None:
        name = _name(tree_id)
        title, metadata = (
            None if title is None else seal.open_text(name, title),
            seal.open_text(name, metadata),
        )
    return Profile(title, json.loads(metadata), archived)


def _name(tree_id: int) -> str:
    return f"profile {tree_id}"
