"""Whole lists of messages by owner and id: what programs that think in windows keep instead of a tree."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Text, bindparam, delete, select

from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.storage.queries import keys
from langchain_threadmem.storage.schema import chat_memory
from langchain_threadmem.storage.sealing import is_sealed
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

_this = (
    chat_memory.c.owner == bindparam("owner", type_=Text()),
    chat_memory.c.id == bindparam("id", type_=Text()),
)
_GET = Statement(select(chat_memory.c.messages).where(*_this), "owner", "id")
_PUT = insert_of(chat_memory, replace=True)
_REMOVE = Statement(delete(chat_memory).where(*_this), "owner", "id")


Row = tuple[str | None, str]
"""A message: its id, if it has one, and its body."""


def get(conn: Conn, owner: str, id: str) -> list[Row]:
    """The list of an id; empty if there is none.

    Raises:
        EncryptionError: It is encrypted where it should not be, or the other way round.
    """
    found = conn.one(_GET, owner, id)
    rows: list[Row] = [] if found is None else [(message, body) for message, body in json.loads(found[0])]
    if (seal := conn.seal) is not None:
        return [(message, seal.open_text(id, body)) for message, body in rows]
    if any(is_sealed(body) for _, body in rows):
        raise EncryptionError(
            f"chat memory {id!r} is encrypted; "
            "pass MemorySystem(..., cipher=...) the cipher it was written with"
        )
    return rows


def put(conn: Conn, owner: str, id: str, rows: Sequence[Row], now: float) -> None:
    """Store a list in the place of the one before."""
    if (seal := conn.seal) is not None:
        keys.claim(conn)
        rows = [(message, seal.text(id, body)) for message, body in rows]
    conn.run(_PUT, owner, id, json.dumps(rows), now)


def remove(conn: Conn, owner: str, id: str) -> None:
    """Remove the list of an id, if there is one."""
    conn.run(_REMOVE, owner, id)
