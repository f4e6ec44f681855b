"""Verbs of upkeep: deleting threads, taking runs back, copying, pruning.

What a checkpoint refers to and what refers to nothing any more is settled in the same transaction, so no
reader ever meets a checkpoint without its values. Messages are never deleted alone: a run that is taken back
leaves what it said superseded, and what that had superseded live again; a conversation goes as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.known_lists import CONVERSATION
from langchain_threadmem.checkpoints.queries import Address, CheckpointRow
from langchain_threadmem.checkpoints.save import Archive, expand
from langchain_threadmem.checkpoints.spans import Reader
from langchain_threadmem.checkpoints.values import KIND, Item, Run, StoredValue, unpack
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.parts import Stored
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import copying, revision, trees


def delete_for_runs(archive: Archive, runs: Sequence[str]) -> Flow[None]:
    """Delete what runs saved, supersede what they alone said, and revive what that had superseded."""
    owner = archive.runtime.owner

    def write(conn: Conn) -> None:
        doomed: dict[int, list[CheckpointRow]] = {}
        for run in dict.fromkeys(map(str, runs)):
            for row in checkpoint_queries.of_run(conn, owner, run):
                doomed.setdefault(row.tree, []).append(row)
        for tree in sorted(doomed):
            trees.lock(conn, tree)
            _take_back(archive, conn, tree, doomed[tree])

    if runs:
        yield from Sql(write, write=True)


def _take_back(archive: Archive, conn: Conn, tree: int, rows: Sequence[CheckpointRow]) -> None:
    blobs = checkpoint_queries.blobs(conn, tree)
    doomed = {Address(row.tree, row.ns, row.id) for row in rows}
    checkpoint_queries.remove(conn, doomed)
    left = checkpoint_queries.of_tree(conn, tree)
    reader = Reader()
    kept = reader.keys(conn, _runs(left, blobs))
    keys = reader.keys(conn, _runs(rows, blobs)) - kept
    for home, mine in copying.live_by_tree(conn, keys).items():
        trees.lock(conn, home)
        revision.supersede(conn, home, mine, None)
        summary_queries.reopen(conn, home, revision.revive(conn, home, keys, kept))
    newest = max((row for row in left if not row.ns), key=lambda row: row.id, default=None)
    if newest is not None:
        state, _ = expand(archive.load(newest.kind, newest.data))
        refs = dict(zip(state.get("channel_versions", {}), newest.refs, strict=True))
        ends = [run.last for run in _runs_of(blobs.get(refs.get(CONVERSATION, 0)))]
        spoken = copying.spoken(conn, ends)
        if spoken is not None:
            trees.settle(conn, tree, spoken, trees.head(conn, tree).system)
    checkpoint_queries.collect(conn, tree)


def _runs(rows: Sequence[CheckpointRow], blobs: Mapping[int, Stored]) -> set[Run]:
    """The messages that checkpoints refer to."""
    return {run for ref in {ref for row in rows for ref in row.refs} for run in _runs_of(blobs.get(ref))}


def _runs_of(value: Stored | None) -> list[Run]:
    return list(unpack(value[1]).runs()) if value is not None and value[0] == KIND else []


def copy_thread(archive: Archive, source: str, target: str) -> Flow[None]:
    """Copy a thread: every message whatever its state, every checkpoint, value and pending write."""
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
                f"thread {target!r} holds something already, so {source!r} cannot be copied to it; "
                "choose another target, or delete_thread() it first"
            )
        segments: dict[int, int] = {}
        for scope, tree in checkpoint_queries.scopes(conn, owner, source):
            if scope == SUMMARIES:
                continue  # The copy gets its own when it is summarised.
            copy = trees.find_or_create(conn, owner, target, now, scope)
            segments |= copying.copy_tree(conn, tree, copy)

        def moved(value: Stored) -> Stored:
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


def _moved(mixture: StoredValue, segments: Mapping[int, int]) -> StoredValue:
    def move(_: str | None, item: Item) -> Item:
        return Run(*(copying.moved(key, segments) for key in item)) if isinstance(item, Run) else item

    return mixture.mapped(move)


def keep_latest(archive: Archive, thread: str) -> Flow[None]:
    """Delete all checkpoints of a thread but the latest of each namespace."""

    def write(conn: Conn) -> None:
        tree = trees.find(conn, archive.runtime.owner, thread)
        if tree is None:
            return
        trees.lock(conn, tree)
        spaces: dict[str, dict[bytes, CheckpointRow]] = {}
        for row in checkpoint_queries.of_tree(conn, tree):
            spaces.setdefault(row.ns, {})[row.id] = row
        for ns, rows in spaces.items():
            kept = _needed(archive, rows)
            checkpoint_queries.remove(conn, [Address(tree, ns, id_) for id_ in rows if id_ not in kept])
        checkpoint_queries.collect(conn, tree)

    yield from Sql(write, write=True)


def _needed(archive: Archive, rows: Mapping[bytes, CheckpointRow]) -> set[bytes]:
    """The latest checkpoint, and those above it that its delta channels without a value are made of."""
    latest = rows[max(rows)]
    chain = [latest]
    while (above := chain[-1].parent) is not None and above in rows and len(chain) < len(rows):
        chain.append(rows[above])
    states = [expand(archive.load(row.kind, row.data)) for row in chain]
    values = [
        dict(zip(state.get("channel_versions", {}), row.refs, strict=True))
        for (state, _), row in zip(states, chain, strict=True)
    ]
    deltas = {name for _, metadata in states for name in metadata.get("counters_since_delta_snapshot") or ()}
    missing = {name for name in deltas if values[0].get(name) == 0}
    kept = {latest.id}
    for row, refs in zip(chain[1:], values[1:], strict=True):
        if not missing:
            break
        kept.add(row.id)
        missing = {name for name in missing if not refs.get(name)}
    return kept
