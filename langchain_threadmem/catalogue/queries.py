"""SQL: conversations with their profiles, and threads without their texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import bindparam, literal_column, select

from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.encryption import Seal
from langchain_threadmem.storage.schema import SUMMARIES, digest, node, profile, tree
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree.nodes import STORED
from langchain_threadmem.tree.trees import is_newest, newest


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


class Row(NamedTuple):
    """A conversation of the list.

    Attributes:
        tree: The tree of the conversation.
        conversation: The name of the conversation.
        messages: The number of the newest message, which is the number of all messages ever stored.
        used: The time of the newest message, in seconds since 1970.
        newest: The key of the newest message.
        created: The creation time of the conversation, in seconds since 1970.
        profile: The profile.
    """

    tree: int
    conversation: str
    messages: int
    used: float
    newest: int
    created: float
    profile: Profile


Outline = tuple[int, int, int | None, bool, int, float]
"""A node without its content: key, number, number of the parent, is a system message, state, time."""


_ROWS = Statement(
    select(
        tree.c.id,
        tree.c.conversation,
        newest.c.seq,
        newest.c.created,
        newest.c.key,
        tree.c.created,
        *profile.c["title", "metadata", "archived"],
    )
    .select_from(tree.join(newest, is_newest).outerjoin(profile, profile.c.tree == tree.c.id))
    .where(within(tree.c.id, "trees"))
    .order_by(newest.c.created.desc(), tree.c.id.desc()),
    "trees",
)
_OUTLINE = Statement(
    node_keys.keys_of(bindparam("tree"))
    .with_only_columns(
        *node.c["key", "seq", "parent"],
        node.c.role == literal_column("'system'"),
        *node.c["state", "created"],
    )
    .where(STORED),
    "tree",
)
_PROFILE = Statement(
    select(*profile.c["title", "metadata", "archived"]).where(profile.c.tree == bindparam("tree")), "tree"
)
_PUT = insert_of(profile, replace=True)
_TREES_OF = Statement(select(node.c.tree).where(within(node.c.key, "keys")).distinct(), "keys")
_summaries = tree.alias("summaries")
_SUMMARIES = Statement(
    select(tree.c.id, digest.c.key)
    .select_from(
        tree.join(
            _summaries,
            (_summaries.c.owner == tree.c.owner)
            & (_summaries.c.conversation == tree.c.conversation)
            & (_summaries.c.scope == SUMMARIES),
        ).join(digest, (digest.c.tree == _summaries.c.id) & (digest.c.id == tree.c.conversation))
    )
    .where(within(tree.c.id, "trees")),
    "trees",
)


def rows_of(conn: Conn, trees: Iterable[int]) -> list[Row]:
    """Non-empty conversations, the latest first."""
    rows = conn.all(_ROWS, json.dumps(list(trees)))
    return [Row._make((*row[:6], _profile(conn.seal, row[0], row[6:]))) for row in rows]


def outline(conn: Conn, tree_id: int) -> dict[int, Outline]:
    """The nodes of a conversation by their numbers, without purged nodes."""
    return {row[1]: row for row in conn.all(_OUTLINE, tree_id)}


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
