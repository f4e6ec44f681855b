"""Summarising sessions and the long-term memory: what is new or stale is condensed, and the result stored.

If messages are changed or removed while a run lasts, nothing of it is stored, and it begins again from what
is there now; messages that are added meanwhile are left to the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import get_args

from langchain_threadmem.core import grouping
from langchain_threadmem.core.bodies import decode
from langchain_threadmem.core.nodes import State
from langchain_threadmem.core.units import MemoryUnit
from langchain_threadmem.errors import InputError, SessionNotFoundError, StorageBusyError
from langchain_threadmem.flows.condense import Piece
from langchain_threadmem.flows.renew import (
    WHOLE,
    By,
    Plan,
    Renewal,
    Summarising,
    Unwritten,
    piece_of,
    pieces_of,
)
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.flows.unindex import forget_vectors
from langchain_threadmem.flows.units import read_units
from langchain_threadmem.storage.queries import digests, nodes, trees, units
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn

ATTEMPTS = 5


def summarize_session(how: Summarising, session: str, by: By | None) -> Flow[MemoryUnit | None]:
    """Bring the summaries of a session up to date; its root, or `None` if one could not be written.

    Raises:
        SessionNotFoundError: Nothing was said in it.
        InputError: `by` is unknown.
    """
    if by is not None and by not in get_args(By):
        raise InputError(f"by={by!r} is neither 'session' nor 'thread'")
    owner, now = how.runtime.owner, time.time()

    def find(conn: Conn) -> tuple[int, int]:
        source = trees.find(conn, owner, session)
        if source is None or trees.head(conn, source).next_seq == 1:
            raise SessionNotFoundError(
                f"there is no session {session!r} to summarise; sessions() lists those that there are"
            )
        return source, trees.find_or_create(conn, owner, session, now, SUMMARIES)

    source, tree = yield from Sql(find, write=True)
    return (yield from _summarize(how, lambda conn: _plan_session(conn, how, session, source, tree, by)))


def summarize_long_term_memory(how: Summarising) -> Flow[MemoryUnit | None]:
    """Bring every session's summaries up to date, then those above them; the root of all."""
    owner, now = how.runtime.owner, time.time()
    for session in (yield from Sql(lambda conn: digests.unfinished(conn, owner))):
        if (yield from summarize_session(how, session, None)) is None and (
            yield from Sql(lambda conn, name=session: _is_unfinished(conn, owner, name))  # type: ignore[misc]
        ):
            return None

    tree = yield from Sql(lambda conn: trees.find_or_create(conn, owner, "", now, SUMMARIES), write=True)

    def read(conn: Conn) -> Plan:
        keys = digests.new_roots(conn, owner)
        rows = {row.key: row for row in units.by_keys(conn, owner, keys)}
        roots = pieces_of([rows[key] for key in keys], how.limits)
        versions = (0, trees.head(conn, tree).version)
        return Plan("", 2, 0, tree, versions, digests.held(conn, tree), {WHOLE: roots} if roots else {})

    return (yield from _summarize(how, read))


def _is_unfinished(conn: Conn, owner: str, session: str) -> bool:
    return session in digests.unfinished(conn, owner)


def _plan_session(conn: Conn, how: Summarising, session: str, source: int, tree: int, by: By | None) -> Plan:
    before, seq = digests.covered(conn, source)
    chosen: By = by or ("thread" if before == "thread" else "session")
    fresh = before != chosen
    rows = nodes.since(conn, source, 0 if fresh else seq)
    settled = digests.settled(conn, [row.key for row in rows], anew=fresh)
    live = [row for row in rows if row.state == State.LIVE and row.key not in settled]
    new: dict[int, list[Piece]] = {}
    threads: dict[int, int] = {}
    if chosen == "thread" and live:
        outline = digests.outline(conn, source)
        threads = grouping.own_threads([(n.seq, n.parent, n.state == State.LIVE) for n in outline])
    messages = decode([(row.message, row.body) for row in live])
    for row, message in zip(live, messages, strict=True):
        piece = piece_of(row.key, row.seq, row.created, message, how.limits)
        new.setdefault(threads.get(row.seq, WHOLE), []).append(piece)
    versions = trees.head(conn, source).version, trees.head(conn, tree).version
    seq = rows[-1].seq if rows else seq
    held = digests.held(conn, tree)
    return Plan(session, 1, source, tree, versions, held, new, chosen, seq, fresh)


def _summarize(how: Summarising, read: Callable[[Conn], Plan]) -> Flow[MemoryUnit | None]:
    owner = how.runtime.owner
    for _ in range(ATTEMPTS):
        plan = yield from Sql(read)
        if not plan.new and not any(one.digest.stale for one in plan.held) and not plan.fresh:
            return (yield from Sql(lambda conn, p=plan: _root(conn, owner, p)))  # type: ignore[misc]
        run = Renewal(how, plan)
        try:
            root = yield from run.build()
        except Unwritten:
            return None
        stored = yield from Sql(lambda conn, r=run, top=root: r.store(conn, top), write=True)  # type: ignore[misc]
        if stored is not None:
            yield from forget_vectors(how.runtime, stored)
            return (yield from Sql(lambda conn, p=plan: _root(conn, owner, p)))  # type: ignore[misc]
    raise StorageBusyError(
        f"what was to be summarised changed {ATTEMPTS} times while it was summarised; call it again later"
    )


def _root(conn: Conn, owner: str, plan: Plan) -> MemoryUnit | None:
    key = digests.named(conn, plan.tree, plan.session or owner)
    return None if key is None else read_units(conn, owner, [key])[0]
