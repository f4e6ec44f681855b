"""Whole lists of messages, read and replaced: LangChain4j's chat memory store, kept in the database.

Such a list is no conversation: what leaves it is gone, as it is there. It stands in a table of its own, so
that nothing of it is recalled, counted or shown as a thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.bodies import decode, encode
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import chat_memories


def get(runtime: Runtime, id: str) -> Flow[list[BaseMessage]]:
    """The list of an id; empty if there is none.

    Raises:
        EncryptionError: It is encrypted where it should not be, or the other way round.
    """
    rows = yield from Sql(lambda conn: chat_memories.get(conn, runtime.owner, id))
    return decode(rows, other=runtime.parts.read)


def put(runtime: Runtime, id: str, messages: Sequence[BaseMessage]) -> Flow[None]:
    """Store a list in the place of the one before, in one transaction.

    Raises:
        UnsupportedMessageError: A message cannot be kept exactly; the list before stays.
    """
    rows, now = [(message.id, encode(message, runtime.parts.write)) for message in messages], time.time()
    yield from Sql(lambda conn: chat_memories.put(conn, runtime.owner, id, rows, now), write=True)


def remove(runtime: Runtime, id: str) -> Flow[None]:
    """Remove the list of an id, if there is one."""
    yield from Sql(lambda conn: chat_memories.remove(conn, runtime.owner, id), write=True)
