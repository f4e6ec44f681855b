"""The verbs that summarise messages, sessions, threads and the long-term memory.

If messages are changed or removed during a run, the run stores nothing and starts again. Messages that are
added during a run are summarised by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import get_args

from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError, NodeNotFoundError, SessionNotFoundError, StorageBusyError
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.messages.codec import decode_stored
from langchain_threadmem.messages.ids import is_key, plain_text
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import hierarchy
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.hierarchy import Piece
from langchain_threadmem.summaries.run import (
    WHOLE,
    By,
    Renewal,
    Summarising,
    SummaryPlan,
    Unwritten,
    piece_of,
    pieces_of,
)
from langchain_threadmem.summaries.summarizers import Summarizer, summary_of
from langchain_threadmem.tree import nodes, stale_marks, trees
from langchain_threadmem.tree.conversation import Conversation, node_in, tree_of
from langchain_threadmem.tree.graph import parents_first
from langchain_threadmem.tree.node import ConversationNode, nodes_of
from langchain_threadmem.tree.nodes import NodeRow

ATTEMPTS = 5


@telemetry.observed(
    "summarize_memory", telemetry.of_conversation, lambda nodes: {telemetry.COUNT: len(nodes)}
)
def summarize(
    conversation: Conversation, summarizer: Summarizer | None, node_id: int | None
) -> Flow[list[ConversationNode]]:
    """Summarise one node, or every live answer without a summary; return the summarised nodes."""
    if summarizer is None:
        raise InputError(
            "this memory has no summarizer; make it with ChatMemory(summarizer=LLMSummarizer(...))"
        )
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[NodeRow]:
        if node_id is not None:
            return [node_in(conn, tree, node_id)]
        return [row for row in nodes.since(conn, tree) if row.title is None and row.state == State.LIVE]

    rows = yield from Sql(read)
    written: list[int] = []
    for row, node in zip(rows, nodes_of(rows), strict=True):
        if node_id is None and not is_answer(node.message):
            continue
        summary = yield from summary_of(
            summarizer, node.message, conversation.runtime.usage, conversation.name
        )
        if summary is not None:
            for name, text in (("a title", summary.title), ("a summary", summary.summary)):
                if text:
                    plain_text(name, text)
            put = partial(nodes.put_summary, tree_id=tree, key=row.key, message=row.message, new=summary)
            yield from Sql(put, write=True)
            written.append(row.key)
    return nodes_of(
        (yield from Sql(lambda conn: nodes.by_keys(conn, written))), conversation.runtime.parts.read
    )


@telemetry.observed("summarize_memory", telemetry.of_name, telemetry.written)
def summarize_session(call: Summarising, session: str, by: By | None) -> Flow[MemoryUnit | None]:
    """Update the summaries of a session; return the root, or `None` if a summary could not be written.

    Raises:
        SessionNotFoundError: The session has no messages.
        InputError: `by` is unknown.
    """
    if by is not None and by not in get_args(By):
        raise InputError(f"by={by!r} is neither 'session' nor 'thread'")
    source, tree = yield from _trees(call, session)
    return (yield from _summarize(call, lambda conn: _plan_session(conn, call, session, source, tree, by)))


@telemetry.observed("summarize_memory", telemetry.of_name, telemetry.written)
def summarize_thread(call: Summarising, session: str, node: int) -> Flow[MemoryUnit | None]:
    """Update the summaries of the thread of a node; return the topmost summary.

    Raises:
        SessionNotFoundError: The session has no messages.
        NodeNotFoundError: The session has no node with this number.
        InputError: The session is not summarised by thread, or no message of the thread is live.
    """
    source, tree = yield from _trees(call, session)
    return (yield from _summarize(call, lambda conn: _plan_thread(conn, call, session, source, tree, node)))


def _trees(call: Summarising, session: str) -> Flow[tuple[int, int]]:
    """The trees of a session's messages and of its summaries."""
    owner, now = call.runtime.owner, time.time()

    def find(conn: Conn) -> tuple[int, int]:
        source = trees.find(conn, owner, session)
        if source is None or trees.head(conn, source).next_seq == 1:
            raise SessionNotFoundError(
                f"there is no session {session!r} to summarise; sessions() lists the sessions"
            )
        return source, summary_queries.make_tree(conn, owner, session, now)

    return (yield from Sql(find, write=True))


@telemetry.observed("summarize_memory", telemetry.no_attributes, telemetry.written)
def summarize_long_term_memory(call: Summarising) -> Flow[MemoryUnit | None]:
    """Update the summaries of all sessions, then the summaries above them; return the root."""
    owner, now = call.runtime.owner, time.time()
    for session in (yield from Sql(lambda conn: summary_queries.unfinished(conn, owner))):
        if (yield from summarize_session(call, session, None)) is None:
            unfinished = yield from Sql(lambda conn: summary_queries.unfinished(conn, owner))
            if session in unfinished:
                return None

    tree = yield from Sql(lambda conn: summary_queries.make_tree(conn, owner, "", now), write=True)

    def read(conn: Conn) -> SummaryPlan:
        keys = summary_queries.new_roots(conn, owner)
        rows = {row.key: row for row in unit_queries.by_keys(conn, owner, keys)}
        trees.check_all(conn, {row.tree for row in rows.values()})
        roots = pieces_of([rows[key] for key in keys], call.limits)
        versions = (0, trees.head(conn, tree).version)
        return SummaryPlan(
            "", 2, 0, tree, versions, summary_queries.stored(conn, tree), {WHOLE: roots} if roots else {}
        )

    return (yield from _summarize(call, read))


def _plan_session(
    conn: Conn, call: Summarising, session: str, source: int, tree: int, by: By | None
) -> SummaryPlan:
    before, seq = summary_queries.covered(conn, source)
    chosen: By = by or ("thread" if before == "thread" else "session")
    fresh = before != chosen
    rows = nodes.since(conn, source, 0 if fresh else seq)
    settled = summary_queries.covered_or_forgotten(conn, [row.key for row in rows], anew=fresh)
    row_of = {row.seq: row for row in rows if row.state == State.LIVE and row.key not in settled}
    live = [row_of[seq] for seq in parents_first({seq: row.parent for seq, row in row_of.items()})]
    new: dict[int, list[Piece]] = {}
    threads: dict[int, int] = {}
    if chosen == "thread" and live:
        threads = _threads(conn, source)
    messages = decode_stored([(row.message, row.body, row.role) for row in live])
    for row, message in zip(live, messages, strict=True):
        piece = piece_of(row.key, row.seq, row.created, message, call.limits)
        new.setdefault(threads.get(row.seq, WHOLE), []).append(piece)
    versions = trees.head(conn, source).version, trees.head(conn, tree).version
    seq = rows[-1].seq if rows else seq
    stored = summary_queries.stored(conn, tree)
    return SummaryPlan(session, 1, source, tree, versions, stored, new, chosen, seq, fresh)


def _threads(conn: Conn, source: int) -> dict[int, int]:
    """The thread that each node of a session belongs to, by number."""
    outline = nodes.outline(conn, source)
    return hierarchy.own_threads([(row.seq, row.parent, row.state == State.LIVE) for row in outline])


def _plan_thread(
    conn: Conn, call: Summarising, session: str, source: int, tree: int, node: int
) -> SummaryPlan:
    """The plan of a session thread by thread, cut to the thread of a node."""
    by, seq = summary_queries.covered(conn, source)
    if by == "session":
        raise InputError(
            f"the messages of session {session!r} are summarised in the order of the session; "
            "summarize_session(by='thread') groups them by thread"
        )
    row = nodes.by_seq(conn, source, node) if is_key(node) else None
    if row is None:
        raise NodeNotFoundError(
            f"session {session!r} has no node {node!r}; the `history` of the conversation lists all nodes"
        )
    thread = _threads(conn, source).get(node)
    if thread is None:
        raise InputError(f"node {node} is superseded and in no thread; pass the id of a live node")
    plan = _plan_session(conn, call, session, source, tree, "thread")
    # A summarised message stays in its thread, even if an edit has joined the thread to an older thread.
    above = stale_marks.ancestors(conn, [row.key])
    thread = max((stored.row.thread for stored in plan.stored if stored.row.key in above), default=thread)
    new = {thread: plan.new[thread]} if thread in plan.new else {}
    return replace(plan, new=new, seq=seq, thread=thread)


def _summarize(call: Summarising, read: Callable[[Conn], SummaryPlan]) -> Flow[MemoryUnit | None]:
    owner = call.runtime.owner

    def begin(conn: Conn) -> tuple[Renewal, MemoryUnit | None]:
        run = Renewal(call, read(conn))
        return run, _unit(conn, owner, run.top.row.key if run.is_current and run.top else None)

    def store(conn: Conn, run: Renewal, root: Piece | None) -> tuple[Removed, MemoryUnit | None] | None:
        removed = run.store(conn, root)
        # Another process may replace the summary after this transaction.
        return None if removed is None else (removed, _unit(conn, owner, root.key if root else None))

    for _ in range(ATTEMPTS):
        run, current = yield from Sql(begin)
        if run.is_current:
            return current
        try:
            root = yield from run.build()
        except Unwritten:
            return None
        stored = yield from Sql(partial(store, run=run, root=root), write=True)
        if stored is not None:
            removed, unit = stored
            yield from drop(call.runtime, removed)
            return unit
    raise StorageBusyError(
        f"the messages changed {ATTEMPTS} times while they were summarised; summarise them again later"
    )


def _unit(conn: Conn, owner: str, key: int | None) -> MemoryUnit | None:
    return None if key is None else read_units(conn, owner, [key])[0]
