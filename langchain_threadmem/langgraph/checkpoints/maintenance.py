"""Verbs that delete the checkpoints of runs, copy conversations and prune checkpoints.

A verb deletes checkpoints and their unreferenced values in one transaction, so that no reader finds a
checkpoint without its values. Messages are not deleted: the messages of a deleted run are superseded, and the
messages that they superseded become live again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.removal import Removed, drop
from langchain_threadmem.langgraph.checkpoints import queries as checkpoint_queries
from langchain_threadmem.langgraph.checkpoints.queries import Address, CheckpointRow
from langchain_threadmem.langgraph.checkpoints.save import Archive, blobs_of
from langchain_threadmem.langgraph.checkpoints.spans import SpanReader
from langchain_threadmem.langgraph.checkpoints.values import (
    CONVERSATION_CHANNELS,
    KIND,
    ListPart,
    Span,
    StoredValue,
    spans_of,
    unpack,
)
from langchain_threadmem.maintenance.removal.erase import reset
from langchain_threadmem.messages.parts import TypedBytes
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.schema import SUMMARIES, State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import copying, nodes, stale_marks, superseding, trees


def delete_thread(runtime: Runtime, thread: str) -> Flow[None]:
    """Delete the conversation of a thread with its checkpoints."""
    return reset(runtime, thread)


def delete_for_runs(archive: Archive, runs: Sequence[str]) -> Flow[None]:
    """Delete the checkpoints of runs, and undo the changes of these runs to the conversations.

    The summaries that may quote messages of the runs are deleted too.
    """
    owner = archive.runtime.owner

    def write(conn: Conn) -> Removed:
        encryption_keys.require(conn)
        rows: dict[int, list[CheckpointRow]] = {}
        for run in dict.fromkeys(map(str, runs)):
            for row in checkpoint_queries.of_run(conn, owner, run):
                rows.setdefault(row.tree, []).append(row)
        names = {tree: trees.conversation_of(conn, tree) for tree in rows}
        summary_queries.lock_quoting(conn, owner, names.values(), rows)
        quoted = [names[tree] for tree in sorted(rows) if _delete(archive, conn, tree, rows[tree])]
        return summary_queries.empty_quoting(conn, owner, quoted)

    if runs:
        yield from drop(archive.runtime, (yield from Sql(write, write=True)))


def _delete(archive: Archive, conn: Conn, tree: int, rows: Sequence[CheckpointRow]) -> bool:
    """Delete checkpoints of a conversation; returns whether a summary covers a message of the runs."""
    blobs = checkpoint_queries.blobs(conn, tree)
    checkpoint_queries.remove(conn, {Address(row.tree, row.ns, row.id) for row in rows})
    remaining = checkpoint_queries.of_tree(conn, tree)
    reader = SpanReader()
    referenced = reader.keys(conn, _spans(remaining, blobs))
    all_rows = {(row.ns, row.id): row for row in (*remaining, *rows)}
    keys: set[int] = set()
    for run in {row.run for row in rows}:
        own_rows = [row for row in rows if row.run == run]
        began = _beginning(archive, own_rows, all_rows)
        listed = reader.keys(conn, _spans(own_rows, blobs)) - referenced
        # The lists of a run also contain earlier messages, to which no other checkpoint may refer.
        keys |= copying.written_since(conn, listed, began)
    keys |= _moved_to(conn, tree, keys, referenced)
    is_summarised = bool(stale_marks.ancestors(conn, keys))
    for home, live in copying.live_by_tree(conn, keys).items():
        trees.lock(conn, home)
        superseding.supersede(conn, home, live, None)
        summary_queries.reopen(conn, home, superseding.revive(conn, home, keys, referenced))
    newest = max((row for row in remaining if not row.ns), key=lambda row: row.id, default=None)
    if newest is not None:
        state, _ = archive.state(newest)
        refs = blobs_of(state, newest)
        values = [blobs[refs[name]] for name in CONVERSATION_CHANNELS if refs.get(name, 0) in blobs]
        ends = [span.last for value in values for span in spans_of(*value)]
        tip = copying.last_not_aside(conn, ends)
        if tip is not None:
            trees.set_head(conn, tree, tip, trees.head(conn, tree).system)
    checkpoint_queries.delete_unused_blobs(conn, tree)
    return is_summarised


def _beginning(
    archive: Archive, rows: Sequence[CheckpointRow], all_rows: Mapping[tuple[str, bytes], CheckpointRow]
) -> float:
    """A time before which no message of a run was stored, in seconds since 1970."""
    first = min(rows, key=lambda row: (bool(row.ns), row.id))
    state, metadata = archive.state(first)
    if metadata.get("source") != "input":  # With durability="exit" the checkpoint is newer than the messages.
        parent = None if first.parent is None else all_rows.get((first.ns, first.parent))
        if parent is None:
            return 0.0
        state, _ = archive.state(parent)
    return datetime.fromisoformat(state["ts"]).timestamp()


def _moved_to(conn: Conn, tree: int, keys: Collection[int], referenced: Collection[int]) -> set[int]:
    """The places to which a selector has moved messages that no remaining checkpoint contains."""
    places: set[int] = set()
    for row in nodes.by_keys(conn, keys):
        versions = nodes.versions(conn, tree, row.message) if row.state == State.SUPERSEDED else []
        if not any(version.key in referenced for version in versions):
            places |= {version.key for version in versions if version.created == row.created}
    return places


def _spans(rows: Sequence[CheckpointRow], blobs: Mapping[int, TypedBytes]) -> set[Span]:
    refs = {ref for row in rows for ref in row.refs}
    return {span for ref in refs & blobs.keys() for span in spans_of(*blobs[ref])}


def copy_thread(archive: Archive, source: str, target: str) -> Flow[None]:
    """Copy a conversation with its messages in all states, checkpoints, values and pending writes."""
    owner, now = archive.runtime.owner, time.time()

    def write(conn: Conn) -> None:
        old = trees.find(conn, owner, source)
        if old is None:
            return
        new = trees.find_or_create(conn, owner, target, now)
        for tree in sorted((old, new)):
            trees.lock(conn, tree)
        if new == old or trees.head(conn, new).next_seq > 1 or checkpoint_queries.addresses(conn, new, None):
            raise InputError(
                f"thread {source!r} cannot be copied to thread {target!r}, which is not empty; choose "
                "another target, or call delete_thread() first"
            )
        segments: dict[int, int] = {}
        for scope, tree in trees.scopes(conn, owner, source):
            if scope == SUMMARIES:
                continue  # the copy gets summaries of its own
            copy = trees.find_or_create(conn, owner, target, now, scope)
            segments |= copying.copy_tree(conn, tree, copy)

        def moved(value: TypedBytes) -> TypedBytes:
            return (KIND, _moved(unpack(value[1]), segments).pack()) if value[0] == KIND else value

        blobs = checkpoint_queries.blobs(conn, old)
        numbers = dict(
            zip(
                blobs,
                checkpoint_queries.put_blobs(conn, new, [moved(value) for value in blobs.values()]),
                strict=True,
            )
        )
        for row in checkpoint_queries.of_tree(conn, old):
            checkpoint_queries.put(
                conn, row._replace(tree=new, refs=[numbers.get(ref, 0) for ref in row.refs])
            )
        pending = []
        for write in checkpoint_queries.writes_of_tree(conn, old):
            kind, data = moved((write.kind, write.data))
            pending.append(write._replace(tree=new, kind=kind, data=data))
        checkpoint_queries.put_writes(conn, pending)

    yield from Sql(write, write=True)


def _moved(stored_value: StoredValue, segments: Mapping[int, int]) -> StoredValue:
    def move(item: ListPart) -> ListPart:
        return Span(*(copying.key_of_copy(key, segments) for key in item)) if isinstance(item, Span) else item

    return stored_value.mapped(move)


def keep_latest(archive: Archive, conversation: str) -> Flow[None]:
    """Delete all checkpoints of a conversation except the latest of each namespace."""

    def write(conn: Conn) -> None:
        tree = trees.find(conn, archive.runtime.owner, conversation)
        if tree is None:
            return
        trees.lock(conn, tree)
        namespaces: dict[str, dict[bytes, CheckpointRow]] = {}
        for row in checkpoint_queries.of_tree(conn, tree):
            namespaces.setdefault(row.ns, {})[row.id] = row
        removed = [
            Address(tree, ns, id_)
            for ns, rows in namespaces.items()
            for id_ in rows.keys() - _needed(archive, rows)
        ]
        checkpoint_queries.remove(conn, removed)
        checkpoint_queries.delete_unused_blobs(conn, tree)

    yield from Sql(write, write=True)


def _needed(archive: Archive, rows: Mapping[bytes, CheckpointRow]) -> set[bytes]:
    """Ids of the latest checkpoint and of the ancestors from which its delta channels are computed."""
    latest = rows[max(rows)]
    chain = [latest]
    while (parent := chain[-1].parent) is not None and parent in rows and len(chain) < len(rows):
        chain.append(rows[parent])
    states = [archive.state(row) for row in chain]
    values = [blobs_of(state, row) for (state, _), row in zip(states, chain, strict=True)]
    deltas = {name for _, metadata in states for name in metadata.get("counters_since_delta_snapshot") or ()}
    missing = {name for name in deltas if values[0].get(name) == 0}
    needed = {latest.id}
    for row, refs in zip(chain[1:], values[1:], strict=True):
        if not missing:
            break
        needed.add(row.id)
        missing = {name for name in missing if not refs.get(name)}
    return needed
