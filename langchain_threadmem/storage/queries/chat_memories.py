"""Whole lists of messages by owner and id: what programs that think in windows keep instead of a tree."""

from __future__ import annotations

from sqlalchemy import Text, bindparam, delete, select

from langchain_threadmem.storage.schema import chat_memory
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

_this = (
    chat_memory.c.owner == bindparam("owner", type_=Text()),
    chat_memory.c.id == bindparam("id", type_=Text()),
)
_GET = Statement(select(chat_memory.c.messages).where(*_this), "owner", "id")
_PUT = insert_of(chat_memory, replace=True)
_REMOVE = Statement(delete(chat_memory).where(*_this), "owner", "id")


def get(conn: Conn, owner: str, id: str) -> str | None:
    """The list of an id, as JSON text; `None` if there is none."""
    row = conn.one(_GET, owner, id)
    return None if row is None else str(row[0])


def put(conn: Conn, owner: str, id: str, messages: str, now: float) -> None:
    """Store a list in the place of the one before."""
    conn.run(_PUT, owner, id, messages, now)


def remove(conn: Conn, owner: str, id: str) -> None:
    """Remove the list of an id, if there is one."""
    conn.run(_REMOVE, owner, id)
