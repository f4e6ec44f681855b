"""The verbs of sessions: resume, switch, remove, add, context.

A session is a conversation: it also contains the messages that `ChatMemory.append` or a LangGraph
checkpointer stored in the conversation.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.errors import InputError, SessionNotFoundError
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit, message_from
from langchain_threadmem.index.units.visits import Visits
from langchain_threadmem.long_term.sources import Sources
from langchain_threadmem.maintenance.removal.erase import Cascade, reset
from langchain_threadmem.messages.codec import messages_of
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.append import drafts_of

LATEST = "LATEST"
"""The placeholder for the id of the session with the newest message."""


class CurrentSession(Component):
    """The current session of one owner."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.id: str | None = None
        self.added = 0
        """The number of messages that `add_memory` has stored."""

    def prepare_for_child(self) -> bool:
        """Keep the current session in a child process."""
        return True


def resume(runtime: Runtime, session: str) -> Flow[str | None]:
    """The id of a session; `None` for `LATEST` without any session."""
    owner = runtime.owner
    if session == LATEST:
        return (yield from Sql(lambda conn: trees.latest(conn, owner)))
    return name_of("a session id", session)


def switch(runtime: Runtime, session: str) -> Flow[str]:
    """The id of a session with messages.

    Raises:
        SessionNotFoundError: The session has no messages.
    """
    name = yield from resume(runtime, session)
    if name is None:
        raise _not_found(session)
    yield from _check_exists(runtime, name)
    return name


def _check_exists(runtime: Runtime, session: str) -> Flow[None]:
    """Refuse a session without messages."""
    owner, name = runtime.owner, name_of("a session id", session)
    if not (yield from Sql(lambda conn: _has_messages(conn, owner, name))):
        raise _not_found(session)


def _not_found(session: str) -> SessionNotFoundError:
    return SessionNotFoundError(
        f"there is no session {session!r}; sessions() lists all, start_session() starts a new session"
    )


def _has_messages(conn: Conn, owner: str, session: str) -> bool:
    tree = trees.find(conn, owner, session)
    return tree is not None and trees.head(conn, tree).next_seq > 1


def remove(runtime: Runtime, session: str, cascade: Cascade) -> Flow[None]:
    """Remove a session and its summaries; summaries above it become stale or are removed as well.

    Raises:
        SessionNotFoundError: No session has this id.
        InputError: `cascade` is unknown.
    """
    if cascade not in get_args(Cascade):
        raise InputError(f"cascade={cascade!r} is neither 'stale' nor 'delete'")
    yield from _check_exists(runtime, session)
    yield from reset(runtime, session, cascade)


def add(
    runtime: Runtime,
    session: str,
    content: str | BaseMessage,
    source: str | None,
    creation_time: datetime | None,
    metadata: Mapping[str, Any] | None,
    never_delete: bool,
) -> Flow[MemoryUnit]:
    """Store a message at the end of a session's active thread; return its unit."""
    owner, now = runtime.owner, time.time()
    [message] = messages_of(message_from(content, source, metadata))
    drafts = drafts_of([message], [creation_time], runtime.parts.write)

    def write(conn: Conn) -> tuple[int, MemoryUnit]:
        tree = trees.find_or_create(conn, owner, session, now)
        (key,), _ = writer.append(conn, tree, drafts)
        if never_delete:
            unit_queries.protect(conn, key)
        [unit] = read_units(conn, owner, [key])
        return key, unit

    key, unit = yield from Sql(write, write=True)
    short_term = runtime.get(Sources).short_term
    if short_term is not None:
        short_term.add(key, unit)
    return unit


def context(runtime: Runtime, session: str | None, length: int) -> Flow[list[MemoryUnit]]:
    """The last messages of a session, oldest first."""
    owner = runtime.owner
    yield from runtime.get(Visits).settle()

    def read(conn: Conn) -> list[MemoryUnit]:
        tree = None if session is None else trees.find(conn, owner, session)
        return [] if tree is None else read_units(conn, owner, unit_queries.latest(conn, tree, length))

    return (yield from Sql(read))
