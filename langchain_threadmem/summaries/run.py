"""A summarising run, which writes missing summaries and stores them in one transaction.

Before this transaction the summaries of the run are stored as drafts, by the hash of their texts. A run that
fails changes no stored summary, and the next run uses the drafts instead of calling the summarizer again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage

from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.index.removal import Removed
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import TITLE, UnitRow
from langchain_threadmem.messages.codec import decode_stored, text_of
from langchain_threadmem.messages.roles import source_of
from langchain_threadmem.messages.times import own_time
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import hierarchy
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.hierarchy import Changes, Condenser, Limits, Piece
from langchain_threadmem.summaries.queries import StoredSummary, SummaryRow, delete_summaries
from langchain_threadmem.summaries.summarizers import Summarizer, group_message, summary_of
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import nodes, stale_marks, trees
from langchain_threadmem.tree.append import drafts_of
from langchain_threadmem.tree.node import MessageSummary

log = logging.getLogger(__package__)
By = Literal["session", "thread"]
"""The grouping of a session's messages: in the order of the session, or thread by thread."""
WHOLE = 0
"""The thread of summaries that cover several threads."""


@dataclass
class Summarising:
    """The summarizer, limits and progress of one call of a verb, with its written and expected summaries."""

    runtime: Runtime
    summarizer: Summarizer
    limits: Limits
    progress: Progress | None = None
    written: int = 0
    expected: int = 0


@dataclass
class SummaryPlan:
    """The input of a run: stored summaries, and units without a summary.

    Attributes:
        session: The session; empty for the long-term memory.
        rank: The rank of the summaries.
        source: The tree of the messages; 0 for the long-term memory.
        tree: The tree of the summaries.
        versions: The versions of both trees; a run is stored only if they are unchanged.
        stored: The stored summaries.
        new: The units without a summary, by thread.
        by: The grouping of messages.
        seq: The number of the last message that the summaries will cover.
        fresh: Whether all summaries are written again.
        thread: The only thread to summarise, by its first message; 0 for all threads.
    """

    session: str
    rank: int
    source: int
    tree: int
    versions: tuple[int, int]
    stored: list[StoredSummary]
    new: dict[int, list[Piece]]
    by: By = "session"
    seq: int = 0
    fresh: bool = False
    thread: int = WHOLE


class Unwritten(Exception):  # noqa: N818 - ends a run, and is caught by the verb
    """The summarizer returned no summary; a warning has been logged."""


class Renewal:
    """One run for one hierarchy of summaries."""

    def __init__(self, call: Summarising, plan: SummaryPlan) -> None:
        self.call = call
        self.plan = plan
        self.condenser = Condenser(self._write, self._below, self._read, call.limits)
        self.stored = {summary.row.key: summary for summary in plan.stored}
        self.pieces = {key: self._piece(summary) for key, summary in self.stored.items()}
        self.name = plan.session or call.runtime.owner
        self.old_root = next((summary for summary in plan.stored if summary.row.id == self.name), None)
        self.top = self._top() if plan.thread else self.old_root
        """The stored summary of the session or thread of the run, if any."""

    def _top(self) -> StoredSummary | None:
        keys = (key for key, piece in self.pieces.items() if piece.thread == self.plan.thread)
        return next((self.stored[key] for key in keys if self.pieces[key].parent is None), None)

    @property
    def is_current(self) -> bool:
        """Whether all summaries are up to date and below the root."""
        plan = self.plan
        loose = (row for row in plan.stored if row.parent not in self.stored and row is not self.top)
        if not plan.thread and any(loose):
            return False
        stale = (row.stale for row, _, _ in plan.stored if plan.thread in (WHOLE, row.thread))
        return not plan.new and not any(stale) and not plan.fresh

    def _piece(self, summary: StoredSummary) -> Piece:
        row, above = summary.row, self.stored.get(summary.parent or 0)
        inside = above is not None and above.row.thread == row.thread
        return Piece(
            place=row.place,
            messages=row.messages,
            started=row.started,
            ended=row.ended,
            key=row.key,
            level=row.level,
            thread=row.thread,
            parent=summary.parent if inside else None,
            several=bool(summary.several),
            stale=bool(row.stale),
        )

    def build(self) -> Flow[Piece | None]:
        """Write the missing summaries; return the root of the hierarchy."""
        levels: dict[int, dict[int, list[Piece]]] = {}
        if self.plan.fresh:
            self.condenser.removed += self.pieces.values()
        else:
            for piece in self.pieces.values():
                levels.setdefault(piece.thread, {}).setdefault(piece.level, []).append(piece)
        self._expect()
        if only := self.plan.thread:
            new = self.plan.new.get(only, ())
            return (yield from self.condenser.condense(levels.get(only, {}), new, thread=only))
        if self.plan.by == "thread":
            return (yield from self._by_thread(levels))
        return (yield from self.condenser.condense(levels.get(WHOLE, {}), self.plan.new.get(WHOLE, ())))

    def _by_thread(self, levels: dict[int, dict[int, list[Piece]]]) -> Flow[Piece | None]:
        """Update the hierarchies of all threads, and the hierarchy above their roots."""
        roots: list[Piece] = []
        changed: Changes = {}
        touched: set[int | None] = set()
        threads = sorted((self.plan.new.keys() | levels.keys()) - {WHOLE})
        for thread in threads:
            current = levels.get(thread, {})
            new = self.plan.new.get(thread, ())
            root = yield from self.condenser.condense(current, new, thread=thread)
            before = next(
                (piece for level in current.values() for piece in level if piece.parent is None), None
            )
            above = self.stored[before.key].parent if before is not None else None
            if before is None or above not in self.stored:
                roots += [root] if root is not None else []
            elif root is not before:
                changed[before.key] = root
                touched.add(above)
        if len(threads) == 1 and WHOLE not in levels:
            return roots[0] if roots else None
        return (
            yield from self.condenser.condense(levels.get(WHOLE, {}), roots, changed=changed, touched=touched)
        )

    def _expect(self) -> None:
        new = self.plan.new
        self.call.expected += sum(
            hierarchy.calls([piece.tokens for piece in pieces], self.call.limits) for pieces in new.values()
        )
        if self.plan.by == "thread" and len(new) > 1:
            self.call.expected += hierarchy.calls([1] * len(new), self.call.limits)

    def _write(self, texts: Sequence[str], context: str) -> Flow[MessageSummary]:
        call, tree = self.call, self.plan.tree
        hash_ = hashlib.sha256(json.dumps([context, *texts]).encode()).hexdigest()
        summary = yield from Sql(lambda conn: summary_queries.get_draft(conn, tree, hash_))
        if summary is None:
            message = group_message(texts, context)
            written = yield from summary_of(call.summarizer, message, call.runtime.usage, self.plan.session)
            if written is None or not written.summary.strip():
                log.warning(
                    "%s is not summarised: the summarizer returned no summary; nothing was changed, "
                    "and the next run continues from there",
                    f"session {self.plan.session!r}" if self.plan.session else "the long-term memory",
                )
                raise Unwritten
            summary = written
            put = partial(summary_queries.put_draft, tree_id=tree, version=self.plan.versions[1])
            yield from Sql(lambda conn: put(conn, hash_=hash_, summary=written), write=True)
        call.written += 1
        if call.progress is not None:
            call.progress(call.written, max(call.written, call.expected))
        return summary

    def _below(self, summaries: Sequence[Piece]) -> Flow[list[Piece]]:
        owner, keys = self.call.runtime.owner, [piece.key for piece in summaries]

        def read(conn: Conn) -> list[UnitRow]:
            children = unit_queries.children(conn, keys)
            below = [child for key in keys for child, _ in children.get(key, ())]
            rows = {row.key: row for row in unit_queries.by_keys(conn, owner, below)}
            return [rows[key] for key in below if rows[key].state == State.LIVE and not rows[key].forgotten]

        rows = yield from Sql(read)
        fresh = {piece.key: piece for piece in pieces_of(rows, self.call.limits)}
        return [self.pieces.get(row.key) or fresh[row.key] for row in rows]

    def _read(self, pieces: Sequence[Piece]) -> Flow[None]:
        missing = {piece.key: piece for piece in pieces if piece.text is None}
        if missing:
            owner = self.call.runtime.owner
            rows = yield from Sql(lambda conn: unit_queries.by_keys(conn, owner, list(missing)))
            for piece in pieces_of(rows, self.call.limits):
                missing[piece.key].text, missing[piece.key].tokens = piece.text, piece.tokens

    def store(self, conn: Conn, root: Piece | None) -> Removed | None:
        """Store the summaries of the run.

        Returns:
            The removed summaries; `None` if the memory has changed since it was read.
        """
        plan, owner = self.plan, self.call.runtime.owner
        top = summary_queries.tree_of(conn, owner, "") if plan.source else None
        trees.lock_all(conn, {tree for tree in (top, plan.source, plan.tree) if tree})
        if self._is_outdated(conn):
            return None
        outer = None if self.top is None else summary_queries.above(conn, self.top.row.key)
        indexed = watermarks.indexed(conn, plan.tree)
        if plan.source:
            summary_queries.cover(conn, plan.source, plan.by, plan.seq)
        if root is None and not plan.thread:
            rows = nodes.outline(conn, plan.tree)
            empty_tree(conn, plan.tree, owner)
            return Removed({plan.tree: [row.key for row in rows]}, indexed)
        created, removed = self.condenser.created, self.condenser.removed
        texts = [AIMessage(piece.text or "", additional_kwargs={TITLE: piece.title}) for piece in created]
        drafts = drafts_of(texts)
        for piece, key in zip(created, writer.append(conn, plan.tree, drafts).keys, strict=True):
            piece.key = key
        replaced = [(piece.key, piece.replaces.key) for piece in created if piece.replaces is not None]
        summary_queries.inherit(conn, replaced)
        deleted = [*(piece.key for piece in removed), *(old for _, old in replaced)]
        delete_summaries(conn, owner, plan.tree, deleted)
        self._name(conn, root, created, set(deleted))
        summary_queries.set_parents(
            conn, [(child.key, piece.key) for piece in created for child in piece.children]
        )
        # No summary of a session covers its root.
        above = outer if plan.thread or outer not in self.stored else None
        if root is not None:
            summary_queries.set_parents(conn, [(root.key, above)])
        if above is not None and (created or removed):
            stale_marks.mark_stale(conn, {above, *stale_marks.ancestors(conn, [above])})
        summary_queries.clear_drafts(conn, plan.tree)
        trees.changed(conn, plan.tree)
        return Removed({plan.tree: deleted}, indexed)

    def _is_outdated(self, conn: Conn) -> bool:
        plan = self.plan
        source = trees.head(conn, plan.source).version if plan.source else 0
        if (source, trees.head(conn, plan.tree).version) != plan.versions:
            return True
        children = {
            child.key
            for piece in self.condenser.created
            for child in piece.children
            if child.key and child.key not in self.pieces
        }
        return summary_queries.live(conn, list(children)) != len(children)

    def _name(
        self, conn: Conn, root: Piece | None, created: Sequence[Piece], deleted: Collection[int]
    ) -> None:
        """Set the id of every summary; the id of the root is the session, or the owner.

        The id of a thread's summary is the session only if the session has no other thread.
        """
        if self.top is not self.old_root or (self.plan.thread and self.top is None):
            root = None
        old = self.old_root.row.key if self.old_root is not None else None
        if root is not None and old is not None and old not in deleted and old != root.key:
            summary_queries.rename(conn, old, str(uuid4()))
        rows = []
        for piece in created:
            before = self.stored[piece.replaces.key].row.id if piece.replaces is not None else self.name
            name = self.name if piece is root else str(uuid4()) if before == self.name else before
            where = piece.level, piece.thread, piece.place
            extent = piece.messages, piece.started, piece.ended
            rows.append(SummaryRow(piece.key, self.plan.tree, name, self.plan.rank, *where, *extent))
        summary_queries.put(conn, rows)
        if root is not None and root.key in self.stored and root.key != old:
            summary_queries.rename(conn, root.key, self.name)


def pieces_of(rows: Sequence[UnitRow], limits: Limits) -> list[Piece]:
    """Stored units as pieces of a summary: messages, and the summaries of sessions."""
    messages = decode_stored([(row.message, row.body, row.role) for row in rows])
    return [
        piece_of(row.key, row.seq, row.created, message, limits)
        if row.id is None
        else Piece(
            place=int(1e6 * (row.started or 0)),
            messages=row.messages or 0,
            started=row.started or 0.0,
            ended=row.ended or 0.0,
            text=text_of(message),
            tokens=limits.count(text_of(message)),
            key=row.key,
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def piece_of(key: int, seq: int, created: float, message: BaseMessage, limits: Limits) -> Piece:
    text = text_of(message)
    calls = ", ".join(call["name"] for call in message.tool_calls) if isinstance(message, AIMessage) else ""
    content = f"{source_of(message)}: {text or (calls and f'(calls {calls})')}"
    time = own_time(message)
    said = created if time is None else time
    return Piece(seq, 1, said, said, content, limits.count(text), key)
