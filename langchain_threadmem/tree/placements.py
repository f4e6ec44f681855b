"""SQL: placements of human messages, with reasons and probabilities, and the bias of an owner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from sqlalchemy import bindparam, delete, select

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.encryption import UNREADABLE_NOTE
from langchain_threadmem.storage.schema import State, node, placement, segment, selector_bias, tree
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree.node import MOVED, Bias, Chances, Placement

_PUT = insert_of(placement, replace=True)
NO_CHANCES = json.dumps(())
"""The stored form of no candidates."""
_UNREADABLE = Placement(UNREADABLE_NOTE)
_CHOSEN = select(node.c.seq, node.c.message, *placement.c["reason", "chances", "title"]).join(
    placement, placement.c.key == node.c.key
)
_SINCE = Statement(node_keys.after(_CHOSEN, bindparam("tree"), bindparam("seq")), "tree", "seq")
_LIVE = Statement(
    node_keys.after(
        select(*node.c["key", "seq", "parent"], placement.c.chances)
        .join(placement, placement.c.key == node.c.key)
        .where(node.c.state == int(State.LIVE)),
        bindparam("tree"),
        bindparam("seq"),
    ),
    *("tree", "seq"),
)
_BIAS = Statement(
    select(*selector_bias.c["new_thread", "going_back", "corrections"]).where(
        selector_bias.c.owner == bindparam("owner")
    ),
    "owner",
)
_PUT_BIAS = insert_of(selector_bias, replace=True)
_DROP_BIAS = Statement(delete(selector_bias).where(selector_bias.c.owner == bindparam("owner")), "owner")
_DROP = Statement(delete(placement).where(placement.c.key == bindparam("key")), "key")
_WITH_REASON = Statement(
    node_keys.after(
        _CHOSEN.add_columns(node.c.key).where(placement.c.reason != ""), bindparam("tree"), bindparam("seq")
    ),
    *("tree", "seq"),
)
_BY_KEY = Statement(_CHOSEN.where(node.c.key == bindparam("key")), "key")
_AMONG = Statement(_CHOSEN.add_columns(node.c.key).where(within(node.c.key, "keys")), "keys")
_OF_OWNER = Statement(
    select(tree.c.id, node.c.message, *placement.c["reason", "chances", "title"])
    .select_from(
        tree.join(segment, segment.c.tree == tree.c.id)
        .join(placement, node_keys.inside(placement.c.key))
        .join(node, node.c.key == placement.c.key)
    )
    .where(tree.c.owner == bindparam("owner"), tree.c.scope == ""),
    "owner",
)


def put(conn: Conn, placed: Iterable[tuple[int, str, Placement]]) -> None:
    """Store placements with the keys and message ids of their nodes.

    Reasons and titles quote messages, so they are encrypted like messages.
    """
    encryption_keys.claim(conn)
    rows = []
    for key, message, new in placed:
        reason, title = new.reason, new.title
        if conn.seal is not None:
            reason, title = (text and conn.seal.text(message, text) for text in (reason, title))
        rows.append((key, reason, json.dumps(new.chances), title or None))
    conn.later(_PUT, rows)


def drop(conn: Conn, key: int) -> None:
    """Delete the placement of a node."""
    conn.run(_DROP, key)


def since(conn: Conn, tree_id: int, seq: int = 0) -> dict[int, Placement]:
    """The placements of the nodes with numbers above `seq`, by number."""
    return {number: placement or _UNREADABLE for number, placement in read(conn, tree_id, seq)}


def by_key(conn: Conn, key: int) -> Placement | None:
    """The placement of a node, by its key."""
    row = conn.one(_BY_KEY, key)
    return None if row is None else _placement(conn, *row[1:]) or _UNREADABLE


def by_keys(conn: Conn, keys: Iterable[int]) -> dict[int, Placement]:
    """The placements of nodes, by number."""
    rows = conn.all(_AMONG, json.dumps(list(keys)))
    return {number: _placement(conn, *row) or _UNREADABLE for number, *row, _ in rows}


def live(conn: Conn, tree_id: int) -> Iterator[tuple[int, int, int | None, Chances]]:
    """The key, number, parent's number and candidates of each live node that was placed by probability."""
    for key, seq, parent, chances in conn.all(_LIVE, tree_id, 0):
        if pairs := chances_of(chances):
            yield key, seq, parent, pairs


def titles(conn: Conn, keys: Iterable[int]) -> dict[int, str]:
    """The titles of the threads that nodes begin, by key of the node; nodes without a title are omitted."""
    stored = ((key, _placement(conn, *row)) for _, *row, key in conn.all(_AMONG, json.dumps(list(keys))))
    return {key: placement.title for key, placement in stored if placement and placement.title}


def read(conn: Conn, tree_id: int, seq: int = 0) -> Iterator[tuple[int, Placement | None]]:
    """`since`, with `None` for a placement that cannot be read."""
    for number, *row in conn.all(_SINCE, tree_id, seq):
        yield number, _placement(conn, *row)


def unreadable_trees(conn: Conn, owner: str) -> set[int]:
    """The trees of an owner's conversations with a placement that cannot be read."""
    return {tree_id for tree_id, *row in conn.all(_OF_OWNER, owner) if _placement(conn, *row) is None}


def drop_reasons(conn: Conn, tree_id: int, seq: int) -> None:
    """Delete the reasons of the nodes with numbers above `seq`, which may quote any earlier message.

    Probabilities and titles stay, and whether a message was moved.
    """
    placed = []
    for _, message, *stored, key in conn.all(_WITH_REASON, tree_id, seq):
        old = _placement(conn, message, *stored) or Placement("")
        placed.append((key, message, replace(old, reason=MOVED if old.is_move else "")))
    put(conn, placed)


def bias_of(conn: Conn, owner: str) -> Bias:
    """The bias of an owner; zero for an owner without corrections."""
    row = conn.one(_BIAS, owner)
    return Bias() if row is None else Bias(*row)


def put_bias(conn: Conn, owner: str, new: Bias) -> None:
    """Store the bias of an owner."""
    conn.run(_PUT_BIAS, owner, new.new_thread, new.going_back, new.corrections)


def drop_bias(conn: Conn, owner: str) -> None:
    """Delete the bias of an owner."""
    conn.run(_DROP_BIAS, owner)


def _placement(conn: Conn, message: str, reason: str, chances: str, title: str | None) -> Placement | None:
    seal = conn.seal

    def opened(text: str | None) -> str:
        return seal.open_text(message, text) if seal is not None and text else text or ""

    try:
        return Placement(opened(reason), _chances(chances), opened(title))
    except (ValueError, TypeError, EncryptionError):
        return None


def chances_of(stored: str) -> Chances:
    """The candidates of a row; empty if they cannot be read."""
    try:
        return _chances(stored)
    except (ValueError, TypeError):
        return ()  # `verify` reports it.


@lru_cache(4096)
def _chances(stored: str) -> Chances:
    return tuple([(candidate, float(chance)) for candidate, chance in json.loads(stored)])
