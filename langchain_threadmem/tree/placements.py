"""SQL: the placement of human messages: reasons and probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from sqlalchemy import bindparam, select

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.encryption import UNREADABLE_NOTE
from langchain_threadmem.storage.schema import choice, node
from langchain_threadmem.storage.statements import Conn, Statement, insert_of
from langchain_threadmem.tree.node import Placement

_PUT = insert_of(choice, replace=True)
_UNREADABLE = Placement(UNREADABLE_NOTE)
_CHOSEN = select(node.c.seq, node.c.message, choice.c.reason, choice.c.chances).join(
    choice, choice.c.key == node.c.key
)
_SINCE = Statement(node_keys.after(_CHOSEN, bindparam("tree"), bindparam("seq")), "tree", "seq")
_BY_KEY = Statement(_CHOSEN.where(node.c.key == bindparam("key")), "key")


def put(conn: Conn, placed: Iterable[tuple[int, str, Placement]]) -> None:
    """Keep why nodes were placed where they are, by their keys and messages; a reason quotes messages, and
    is sealed like one.
    """
    seal = conn.seal
    rows = [
        (key, kept.reason if seal is None else seal.text(message, kept.reason), json.dumps(kept.chances))
        for key, message, kept in placed
    ]
    conn.many(_PUT, rows)


def since(conn: Conn, tree_id: int, seq: int = 0) -> dict[int, Placement]:
    """The choices for the nodes of a tree that were written after the one numbered `seq`."""
    return {found: placement or _UNREADABLE for found, placement in read(conn, tree_id, seq)}


def by_key(conn: Conn, key: int) -> Placement | None:
    """The choice for one node, by its key."""
    row = conn.one(_BY_KEY, key)
    return None if row is None else _placement(conn, *row[1:]) or _UNREADABLE


def read(conn: Conn, tree_id: int, seq: int = 0) -> Iterator[tuple[int, Placement | None]]:
    """`since`, with `None` for a choice that cannot be read."""
    for found, *row in conn.all(_SINCE, tree_id, seq):
        yield found, _placement(conn, *row)


def _placement(conn: Conn, message: str, reason: str, chances: str) -> Placement | None:
    try:
        pairs = tuple((candidate, float(chance)) for candidate, chance in json.loads(chances))
        return Placement(reason if conn.seal is None else conn.seal.open_text(message, reason), pairs)
    except (ValueError, TypeError, EncryptionError):
        return None
