"""Verbs of erasing: rows, words, vectors and bytes are removed, with a receipt; conversations are emptied.

One transaction removes messages, their words and vectors, checkpoints, and every summary that may quote the
messages; no clean-up is left for later. Then the caches of the process and the log of the file are emptied,
and the file is rewritten if its free space contains text (`storage.free_space`). At the end the receipt is
checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from langchain_threadmem.common.inputs import zoned
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import ClosedError, InputError, PersistenceError
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index.empty_tree import empty_tree
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.owner_index import empty, stop_filling
from langchain_threadmem.index.removal import Removed, drop, take_out
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.units.visits import Visits
from langchain_threadmem.index.vector_index import ClearableIndex, VectorIndex
from langchain_threadmem.maintenance import upkeep
from langchain_threadmem.maintenance.removal import purging, tables
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.tool_pairs import with_results_below
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, stale_marks, trees
from langchain_threadmem.tree.node import nodes_of

Cascade = Literal["stale", "delete"]
"""The fate of the summaries above an emptied conversation."""
_NOT_OPEN = "the vector index: another process has it open, or it cannot be opened from here"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of an erasure, checked afterwards.

    Attributes:
        owner: The owner of the memory.
        conversation: The erased conversation; `None` for all.
        before: The time before which messages were erased; `None` for all messages.
        conversations: The conversations of which messages were erased.
        tables: The number of deleted rows of each table.
        vectors: The number of vectors that left the index outside of the database; others are in `tables`.
        unscrubbed: The files that may still contain bytes of erased messages, and the reasons: another
            connection read an older state of the database file, or the disk had no space to rewrite it;
            another process has the vector directory open; a database server or a Chroma server manages its
            files itself. Empty if there are none. `MemorySystem.scrub`, or another `erase`, tries again.
        left: The remains that the check has found; empty if there are none.
    """

    owner: str
    conversation: str | None
    before: datetime | None
    conversations: tuple[str, ...] = ()
    tables: tuple[tuple[str, int], ...] = ()
    vectors: int = 0
    unscrubbed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    trees: tuple[int, ...] = ()
    """The trees that were emptied, for the check."""

    @property
    def ok(self) -> bool:
        """Whether the check has found no remains."""
        return not self.left

    @property
    def scrubbed(self) -> bool:
        """Whether the files contain no byte of the erased messages."""
        return not self.unscrubbed

    @property
    def rows(self) -> dict[str, int]:
        """The number of deleted rows of each table."""
        return dict(self.tables)

    @property
    def messages(self) -> int:
        """The number of erased messages, with summaries."""
        return self.rows.get("node", 0)


@dataclass(slots=True)
class _Erased:
    """The result of the transaction of an erasure."""

    keys: dict[int, list[int]]
    conversations: list[str]
    rows: Counter[str]
    trees: list[int]


@telemetry.observed("delete_memory", telemetry.of_name, lambda receipt: {telemetry.COUNT: receipt.messages})
def erase(runtime: Runtime, conversation: str | None, before: datetime | None) -> Flow[Receipt]:
    """Erase a conversation, the messages before a time, or everything of the owner."""
    if before is not None and not isinstance(before, datetime):
        raise InputError(
            f"before={before!r} is not a datetime; pass a datetime (a time without a zone is UTC)"
        )
    if conversation is not None:
        conversation = name_of("a conversation", conversation)
    time = None if before is None else zoned(before)
    owner = runtime.owner
    yield from runtime.get(Visits).settle()

    def write(conn: Conn) -> _Erased:
        if time is None:
            return _erase_whole(conn, owner, conversation)
        return _erase_older(conn, owner, conversation, time)

    yield from stop_filling(runtime)
    # Read before the erasure, which also erases the watermarks of the indexes.
    models = yield from _indexed_models(runtime)
    erased = yield from Sql(write, write=True)
    keys = [key for tree_keys in erased.keys.values() for key in tree_keys]
    runtime.drop(erased.keys, erased.trees if time is None else ())
    vectors, unscrubbed, left = 0, [], []
    for model in models:
        removed, reason, remainder = yield from _take_from_index(runtime, model, keys)
        vectors += removed
        unscrubbed += [reason] if reason else []
        left += [remainder] if remainder else []
    unscrubbed += yield from _scrub_database(runtime)
    receipt = Receipt(
        owner,
        conversation,
        time,
        tuple(dict.fromkeys(erased.conversations)),
        tuple(sorted((name, count) for name, count in erased.rows.items() if count)),
        vectors,
        tuple(unscrubbed),
        trees=tuple(erased.trees),
    )
    left += yield from Sql(lambda conn: _remains(conn, receipt))
    return replace(receipt, left=tuple(left))


def _indexed_models(runtime: Runtime) -> Flow[list[str]]:
    """The embedding models of which an index outside of the database may contain vectors of the owner."""
    owner = runtime.owner
    models, indexes = (yield from Sql(lambda conn: watermarks.indexes(conn, owner))), runtime.get(Indexes)
    # A process that died may have left vectors of the current model without a watermark.
    unmarked = [indexes.model] if indexes.keeps_index and indexes.model not in ("", *models) else []
    return [*models, *unmarked]


def _take_from_index(runtime: Runtime, model: str, keys: Sequence[int]) -> Flow[tuple[int, str, str]]:
    """Remove vectors from an index.

    An index that can be emptied is emptied, since it keeps the bytes of removed vectors; the next search
    fills it again.

    Returns:
        The number of removed vectors, the reason why their bytes may remain, and a sentence about vectors
        that remain; empty texts if there are none.
    """
    index, reason = yield from _open_index(runtime, model)
    if index is None:
        return 0, reason, ""
    stored = yield from Call(lambda: set(index.keys()).intersection(keys))
    if isinstance(index, ClearableIndex):
        reason = yield from empty(index, runtime.owner)
    elif stored:
        yield from Call(lambda: index.remove(list(stored)))
        reason = f"the index {index.name!r}: the vectors were removed, but the index manages its files itself"
    remaining = (yield from Call(lambda: stored.intersection(index.keys()))) if stored else ()
    remainder = "the index outside of the database contains vectors of erased messages" if remaining else ""
    return len(stored), reason, remainder


def _open_index(runtime: Runtime, model: str) -> Flow[tuple[VectorIndex | None, str]]:
    """The index over the vectors of a model; `None` and the reason if it cannot be opened."""
    try:
        index = yield from Call(lambda: runtime.get(Indexes).index_of(model))
    except ClosedError:
        raise
    except PersistenceError as error:
        return None, f"the vector index: {error}"
    return index, "" if index is not None else _NOT_OPEN


def _scrub_database(runtime: Runtime, *, rewrite: bool = False) -> Flow[list[str]]:
    """Clear deleted bytes from the index of words and the file; returns the reasons why some may remain."""
    database = runtime.database
    try:
        yield from Sql(lexicon.compact, write=True)
        reason = yield from Call(lambda: database.scrub(rewrite=True) if rewrite else database.scrub())
    except ClosedError:
        raise
    except PersistenceError as error:
        # The rows are deleted; their bytes remain in free space until the next attempt.
        reason = str(error)
    return [reason] if reason else []


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The result of `MemorySystem.scrub`.

    Attributes:
        unscrubbed: The files that may still contain deleted bytes, and the reasons; empty if there are none.
    """

    unscrubbed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no file contains deleted bytes."""
        return not self.unscrubbed


def scrub(runtime: Runtime) -> Flow[Scrubbed]:
    """Rewrite the files, without the bytes of deleted rows."""
    yield from stop_filling(runtime)
    unscrubbed: list[str] = []
    for model in (yield from _indexed_models(runtime)):
        index, reason = yield from _open_index(runtime, model)
        if index is not None:
            reason = yield from empty(index, runtime.owner)
        unscrubbed += [reason] if reason else []
    return Scrubbed((*unscrubbed, *(yield from _scrub_database(runtime, rewrite=True))))


@telemetry.observed("delete_memory", telemetry.of_name)
def reset(runtime: Runtime, name: str, cascade: Cascade = "delete") -> Flow[None]:
    """Empty a conversation in every scope, with its summaries, and delete its checkpoints.

    Summaries of the long-term memory, which may quote it, are deleted too or become stale.
    """
    owner = runtime.owner

    def clear(conn: Conn) -> Removed:
        own = [tree for _, tree in trees.scopes(conn, owner, name)]
        quoting = summary_queries.lock_quoting(conn, owner, [name], own) if own else []
        indexed = any(watermarks.indexed(conn, tree) for tree in own)
        removed = {tree: [row.key for row in nodes.outline(conn, tree)] for tree in own}
        if cascade == "delete" and own:
            summaries = summary_queries.empty_quoting(conn, owner, [name])
            removed, indexed = removed | summaries.keys, indexed or summaries.indexed
        for tree in quoting:
            stale_marks.mark_stale(conn, stale_marks.above_tree(conn, tree))
            summary_queries.clear_drafts(conn, tree)
        for tree in own:
            empty_tree(conn, tree, owner)
        return Removed(removed, indexed)

    yield from drop(runtime, (yield from Sql(clear, write=True)))


def check(runtime: Runtime, receipt: Receipt) -> Flow[Receipt]:
    """Check a receipt again; returns it with the current remains.

    Raises:
        InputError: The receipt belongs to another owner.
    """
    if not isinstance(receipt, Receipt):
        raise InputError(f"{receipt!r:.200} is not a receipt; pass the result of erase()")
    if receipt.owner != runtime.owner:
        raise InputError(
            f"the receipt belongs to {receipt.owner!r}, and this memory to {runtime.owner!r}; "
            f"use system.for_owner({receipt.owner!r})"
        )
    left = yield from Sql(lambda conn: _remains(conn, receipt))
    return replace(receipt, left=tuple(left))


def _erase_whole(conn: Conn, owner: str, conversation: str | None) -> _Erased:
    """Erase all trees of a conversation, or everything of an owner."""
    owned = tables.trees_of(conn, owner, conversation)
    erased = _Erased({}, [], Counter(), [])
    if conversation is not None and owned:
        _empty_quoting(conn, owner, [conversation], erased)
    lexicon.expect_removals(conn, (tables.count_nodes(conn, tree) for tree, _ in owned))
    for tree, name in owned:
        trees.lock(conn, tree)
        if tree not in erased.keys:
            _empty_tree(conn, owner, tree, erased)
        erased.conversations += [name] if name else []
    erased.rows.update(tables.delete_rest(conn, owner, conversation))
    return erased


def _erase_older(conn: Conn, owner: str, conversation: str | None, time: datetime) -> _Erased:
    """Erase the messages before a time, with all summaries of their conversations."""
    erased = _Erased({}, [], Counter(), [])
    seconds = time.timestamp()
    affected = [
        (tree, name)
        for tree, name in purging.with_older(conn, owner, seconds)
        if conversation in (None, name)
    ]
    if affected:
        _empty_quoting(conn, owner, [name for _, name in affected], erased)
    lexicon.expect_removals(conn, (tables.count_nodes(conn, tree) for tree, _ in affected))
    for tree, name in affected:
        for _, scope_tree in trees.scopes(conn, owner, name):
            trees.lock(conn, scope_tree)
            if scope_tree not in erased.keys:
                _purge_older(conn, owner, tree, scope_tree, seconds, erased)
        erased.rows.update(tables.delete_before(conn, tree, seconds))
        summary_queries.uncover(conn, tree)
        erased.conversations.append(name)
    erased.rows.update(tables.delete_older(conn, owner, seconds) if conversation is None else {})
    return erased


def _empty_quoting(conn: Conn, owner: str, conversations: Sequence[str], erased: _Erased) -> None:
    """Empty the summaries that may quote messages of conversations."""
    for tree in summary_queries.lock_quoting(conn, owner, conversations):
        _empty_tree(conn, owner, tree, erased)


def _empty_tree(conn: Conn, owner: str, tree: int, erased: _Erased) -> None:
    """Empty a tree, and count its rows."""
    erased.keys[tree] = [row.key for row in nodes.outline(conn, tree)]
    erased.rows.update(tables.count_below(conn, tree))
    empty_tree(conn, tree, owner)
    erased.trees.append(tree)


def _purge_older(
    conn: Conn, owner: str, conversation: int, tree: int, seconds: float, erased: _Erased
) -> None:
    """Purge the messages before a time, results of tools with their calls.

    The tree is that of a conversation, or of one of its other channels.
    """
    rows = nodes.outline(conn, tree)
    old_seqs = {row.seq for row in rows if row.created < seconds}
    old_seqs = with_results_below([(row.seq, row.parent, row.role) for row in rows], old_seqs)
    keys = [row.key for row in rows if row.seq in old_seqs]
    removed = purging.removed_before(conn, tree, seconds)
    if not keys and not removed:
        return
    if len(keys) == len(rows) and conversation in (tree, *erased.trees):
        _empty_tree(conn, owner, tree, erased)
        return
    old = {*keys, *removed}
    texts = {text_of(node.message) for node in nodes_of(nodes.with_removed(conn, old))}
    upkeep.redact(conn, conversation, texts)
    before = tables.count_below(conn, tree)
    take_out(conn, owner, tree, memory.places(conn, keys))
    purging.purge(conn, owner, tree, old, channel=tree != conversation)
    erased.rows.update(before - tables.count_below(conn, tree))
    erased.keys[tree] = keys


def _remains(conn: Conn, receipt: Receipt) -> list[str]:
    """The remains of erased messages, one sentence each."""
    owner = receipt.owner
    remains: list[str] = []
    if receipt.before is None:
        owned = tables.trees_of(conn, owner, receipt.conversation)
        for tree, name in owned:
            remains += [
                f"conversation {name!r} has {count} rows of {table!r}"
                for table, count in sorted(tables.count_below(conn, tree).items())
                if count and table != "tree"
            ]
        if receipt.conversation is None:
            remains += [
                f"{table!r} has {count} rows" for table, count in tables.count_owned(conn, owner).items()
            ]
    else:
        older = purging.with_older(conn, owner, receipt.before.timestamp())
        remains += [
            f"conversation {name!r} contains older messages"
            for _, name in older
            if receipt.conversation in (None, name)
        ]
    remains += [
        f"the words of tree {tree} are still in the lexicon"
        for tree in receipt.trees
        if not tables.count_nodes(conn, tree) and lexicon.marked(conn, tree)
    ]
    return remains
