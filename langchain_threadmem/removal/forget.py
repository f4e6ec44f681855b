"""Verbs of forgetting: the least important units leave memory and stay in history.

One statement chooses the units and marks them; the same transaction removes their words and vectors, and the
index over all vectors follows. Neighbours and children of the other units are read past forgotten ones, so no
link dangles.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.removal import Removed, drop, take_out
from langchain_threadmem.removal import purging
from langchain_threadmem.removal.scores import Scorer, count_to_forget, least_important
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.summaries.queries import delete_summaries
from langchain_threadmem.tree import branches, nodes, stale_marks, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.navigate import MessageRef, message_in
from langchain_threadmem.tree.rows import is_lost, is_recallable, nodes_of
from langchain_threadmem.units import memory
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.memory import Place
from langchain_threadmem.units.visits import Visits

log = logging.getLogger(__package__)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of `MemorySystem.forget`.

    Attributes:
        units: The number of forgotten units.
        left: The number of units that are left in memory.
        purged: Whether the units were removed from history too.
    """

    units: int
    left: int
    purged: bool = False


def forget(
    runtime: Runtime,
    percentage: float,
    *,
    above: int | None = None,
    until_below: bool = False,
    purge: bool = False,
    scorer: Scorer | None = None,
) -> Flow[Forgotten]:
    """Forget units, in one pass or several.

    Args:
        runtime: The runtime.
        percentage: The share of the units that may be forgotten, from 0 to 1, that one pass forgets.
        above: The number of units up to which nothing is forgotten; `None` for one pass in any case.
        until_below: Whether passes follow until the memory holds at most `above` units.
        purge: Whether the units are removed from history too.
        scorer: The importance of units; `None` for the usual order.
    """
    count_to_forget(0, percentage)
    owner = runtime.owner
    yield from runtime.get(Visits).settle()
    gone = 0
    left = yield from Sql(lambda conn: memory.size(conn, owner))
    while above is None or left > above:
        keys = yield from _pass(runtime, percentage, scorer, purge=purge)
        gone += len(keys)
        left = yield from Sql(lambda conn: memory.size(conn, owner))
        if not keys or above is None or not until_below:
            break
    return Forgotten(gone, left, purge)


def when_full(runtime: Runtime, most: int, percentage: float) -> Flow[None]:
    """One pass if the memory holds more than `most` units; a failure is logged, and the next addition tries
    again.
    """
    owner = runtime.owner
    try:
        if (yield from Sql(lambda conn: memory.at_most(conn, owner))) > most:
            yield from forget(runtime, percentage, above=most)
    except ThreadMemError as error:
        log.warning("nothing was forgotten, though memory may be too large: %s", error)


def _pass(runtime: Runtime, percentage: float, scorer: Scorer | None, *, purge: bool) -> Flow[list[int]]:
    owner, now = runtime.owner, time.time()
    chosen: list[int] = []
    if scorer is not None:
        found = yield from Sql(lambda conn: memory.candidates(conn, owner))
        count = count_to_forget(len(found), percentage)
        chosen = yield from Call(lambda: least_important(found, scorer, count))

    def write(conn: Conn) -> Removed:
        if scorer is None:
            most = count_to_forget(memory.may_go(conn, owner), percentage)
            keys = memory.forget(conn, owner, most, now) if most else []
        else:
            keys = memory.forget_named(conn, owner, chosen, now)
        removed = leave_indexes(conn, owner, keys)
        if purge:
            _purge(conn, owner, removed)
        return removed

    removed = yield from Sql(write, write=True)
    yield from drop(runtime, removed)
    return [key for keys in removed.keys.values() for key in keys]


def forget_message(conversation: Conversation, message: MessageRef, *, purge: bool) -> Flow[None]:
    """Forget one message, in all its versions if it is removed from history too.

    Args:
        conversation: The conversation of the message.
        message: The `id` of the message, or of its node.
        purge: Whether the message is removed from history too.

    Raises:
        NodeNotFoundError: The conversation has no such message.
        InputError: The message is not in memory: a tool call, a result or a system message, a message that
            was superseded or forgotten, or one that is exempt from forgetting.
    """
    runtime, tree, now = conversation.runtime, (yield from tree_of(conversation)), time.time()
    yield from runtime.get(Visits).settle()

    def write(conn: Conn) -> Removed:
        row = message_in(conn, tree, message)
        versions = {row.key, *(one.key for one in branches.versions(conn, tree, row) if purge)}
        keys = memory.forget_named(conn, runtime.owner, versions, now)
        if not keys or not all(map(is_recallable, nodes_of(nodes.by_keys(conn, keys)))):
            raise InputError(
                f"message {message!r} cannot be forgotten: it calls a tool, it is a result or a system "
                "message, it was replaced or forgotten before, or it is exempt (never_delete)"
            )
        removed = leave_indexes(conn, runtime.owner, keys)
        if purge:
            removed.keys[tree] = sorted(versions)
            _purge(conn, runtime.owner, removed)
        return removed

    removed = yield from Sql(write, write=True)
    yield from drop(runtime, removed)


def leave_indexes(conn: Conn, owner: str, keys: Sequence[int]) -> Removed:
    """Remove units from the words and the vectors, in the transaction that forgets them."""
    by_tree: dict[int, list[Place]] = {}
    for place in memory.places(conn, keys):
        by_tree.setdefault(place.tree, []).append(place)
    indexed = any(watermarks.indexed(conn, tree) for tree in by_tree)
    for tree, found in sorted(by_tree.items()):
        trees.lock(conn, tree)
        take_out(conn, owner, tree, found)
        trees.changed(conn, tree)
    return Removed({tree: [place.key for place in found] for tree, found in by_tree.items()}, indexed)


def _purge(conn: Conn, owner: str, removed: Removed) -> None:
    """Remove forgotten units from history too; summaries that covered them become stale.

    Tool calls and their results stay in history.
    """
    everything = [key for keys in removed.keys.values() for key in keys]
    stale_marks.mark_stale(conn, stale_marks.ancestors(conn, everything))
    session_of = {
        row.tree: row.session for row in unit_queries.by_keys(conn, owner, everything) if row.id is None
    }
    for tree, keys in list(removed.keys.items()):
        if tree not in session_of:
            delete_summaries(conn, owner, tree, keys)
            continue
        rows = nodes.by_keys(conn, keys)
        found = zip(rows, nodes_of(rows), strict=True)
        purged = {row.key for row, node in found if is_recallable(node) or is_lost(node)}
        purging.purge(conn, owner, tree, purged)
        summaries = summary_queries.tree_of(conn, owner, session_of[tree])
        if summaries is not None and trees.head(conn, tree).next_seq == 1:
            # The session is empty, so its summaries cannot be made anew.
            held = [stored.row.key for stored in summary_queries.stored(conn, summaries)]
            delete_summaries(conn, owner, summaries, held)
            removed.keys.setdefault(summaries, []).extend(held)
