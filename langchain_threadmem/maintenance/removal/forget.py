"""Verbs of forgetting: the least important units leave memory and stay in history.

One statement selects the units and marks them; the same transaction removes their words and vectors, and the
index over all vectors is updated afterwards. Links between the remaining units skip forgotten units, so no
link dangles.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.index.removal import Removed, drop, take_out_removed
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.visits import Visits
from langchain_threadmem.maintenance import upkeep
from langchain_threadmem.maintenance.removal import forgettable, purging
from langchain_threadmem.maintenance.removal.scores import Scorer, count_to_forget, least_important
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, stale_marks, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.navigate import MessageRef, message_in
from langchain_threadmem.tree.node import ConversationNode, is_lost, is_recallable, nodes_of
from langchain_threadmem.tree.nodes import NodeRow

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
    max_units: int | None = None,
    until_below: bool = False,
    purge: bool = False,
    scorer: Scorer | None = None,
) -> Flow[Forgotten]:
    """Forget units, in one pass or several.

    Args:
        runtime: The runtime.
        percentage: The share of the units that may be forgotten, from 0 to 1, that one pass forgets.
        max_units: The number of units up to which no unit is forgotten; `None` for exactly one pass.
        until_below: Whether passes are repeated until the memory has at most `max_units` units.
        purge: Whether the units are removed from history too.
        scorer: The importance of units; `None` for the default order (see `maintenance.removal.scores`).
    """
    count_to_forget(0, percentage)
    if max_units is not None and not is_whole(max_units, 0):
        raise InputError(f"max_units={max_units!r} is not a number of units; pass an integer of at least 0")
    if scorer is not None and not callable(scorer):
        raise InputError(
            f"scorer={scorer!r} is not a function of candidates; use those of maintenance.removal.scores"
        )
    owner = runtime.owner
    yield from runtime.get(Visits).settle()
    forgotten = 0

    def count_units(conn: Conn) -> int:
        encryption_keys.require(conn)
        return forgettable.size(conn, owner)

    remaining = yield from Sql(count_units)
    while max_units is None or remaining > max_units:
        count = yield from _pass(runtime, percentage, scorer, purge=purge)
        forgotten += count
        remaining = yield from Sql(count_units)
        if not count or max_units is None or not until_below:
            break
    return Forgotten(forgotten, remaining, purge)


def when_full(runtime: Runtime, max_units: int, percentage: float) -> Flow[None]:
    """Run one pass if the memory has more than `max_units` units; an error is logged, and the next addition
    tries again.
    """
    owner = runtime.owner
    try:
        if (yield from Sql(lambda conn: forgettable.at_most(conn, owner))) > max_units:
            yield from forget(runtime, percentage, max_units=max_units)
    except ThreadMemError as error:
        log.warning("no unit was forgotten, although the memory may be too large: %s", error)


def _pass(runtime: Runtime, percentage: float, scorer: Scorer | None, *, purge: bool) -> Flow[int]:
    """Forget the least important units; return their number."""
    owner, current_time = runtime.owner, time.time()
    least: list[int] = []
    if scorer is not None:
        candidates = yield from Sql(lambda conn: forgettable.candidates(conn, owner))
        count = count_to_forget(len(candidates), percentage)
        least = yield from Call(lambda: least_important(candidates, scorer, count))

    def write(conn: Conn) -> tuple[int, Removed]:
        if scorer is None:
            limit = count_to_forget(forgettable.may_go(conn, owner), percentage)
            keys = forgettable.forget(conn, owner, limit, current_time) if limit else []
        else:
            keys = forgettable.forget_named(conn, owner, least, current_time)
        return len(keys), _remove(conn, owner, keys, purge=purge)

    count, removed = yield from Sql(write, write=True)
    yield from drop(runtime, removed)
    return count


def forget_message(conversation: Conversation, message: MessageRef, *, purge: bool) -> Flow[None]:
    """Forget one message, and all its versions if it is removed from history too.

    The summaries that may quote it are deleted, so that recall does not find it there.

    Args:
        message: The `id` of the message or of its node.
        purge: Whether the message is removed from history too.

    Raises:
        NodeNotFoundError: The conversation has no such message.
        InputError: The message is not in memory: a tool call, a result or a system message, a message that
            was superseded or forgotten, or one that is exempt from forgetting.
    """
    runtime, tree, current_time = conversation.runtime, (yield from tree_of(conversation)), time.time()
    yield from runtime.get(Visits).settle()

    def write(conn: Conn) -> Removed:
        keys = [message_in(conn, tree, message).key]
        if purge:
            keys = [row.key for row in purging.with_versions(conn, tree, keys)]
        keys = forgettable.forget_named(conn, runtime.owner, keys, current_time)
        if not keys or not all(map(is_recallable, nodes_of(nodes.by_keys(conn, keys)))):
            raise InputError(
                f"message {message!r} cannot be forgotten: it is a tool call, a tool result or a system "
                "message, it was superseded or forgotten before, or it is exempt (never_delete)"
            )
        summary_queries.lock_quoting(conn, runtime.owner, [conversation.name])
        emptied = summary_queries.empty_quoting(conn, runtime.owner, [conversation.name])
        removed = _remove(conn, runtime.owner, keys, purge=purge)
        return Removed(removed.keys | emptied.keys, removed.indexed or emptied.indexed)

    removed = yield from Sql(write, write=True)
    yield from drop(runtime, removed)


def _remove(conn: Conn, owner: str, keys: Sequence[int], *, purge: bool) -> Removed:
    """Remove forgotten units from the indexes, and with `purge` from history too.

    With a message leaves what may quote it: its earlier versions, its copies in other channels, the summaries
    of its conversation and of the long-term memory. Tool calls and their results stay in history.
    """
    if not purge:
        return take_out_removed(conn, owner, keys)
    units = unit_queries.by_keys(conn, owner, keys)
    session_of = {unit.tree: unit.session for unit in units if unit.id is None}
    sessions = session_of.values()
    channels = {tree: _channels(conn, owner, session) for tree, session in session_of.items()}
    summary_queries.lock_quoting(conn, owner, sessions, {*session_of, *chain(*channels.values())})
    emptied = summary_queries.empty_quoting(conn, owner, sessions)
    purged: dict[int, set[int]] = {}
    for tree, copies in channels.items():
        rows = purging.with_versions(conn, tree, [unit.key for unit in units if unit.tree == tree])
        left = {row.key: text_of(node.message) for row, node in _removable(rows)}
        upkeep.redact(conn, tree, set(left.values()))
        purged[tree] = set(left)
        for copy in copies:
            purged[copy] = {row.key for row, _ in _removable(purging.copies(conn, copy, rows))}
    removed = take_out_removed(conn, owner, {*keys, *chain(*purged.values())})
    for tree, taken in removed.keys.items():
        if purged.get(tree):
            purging.purge(conn, owner, tree, purged[tree], channel=tree not in session_of)
        elif tree not in session_of:
            stale_marks.mark_stale(conn, stale_marks.ancestors(conn, taken))
            summary_queries.delete_summaries(conn, owner, tree, taken)
    return Removed(removed.keys | emptied.keys, removed.indexed or emptied.indexed)


def _channels(conn: Conn, owner: str, conversation: str) -> list[int]:
    """The trees of a conversation's other channels."""
    scopes = trees.scopes(conn, owner, conversation)
    return [tree for scope, tree in scopes if scope not in ("", SUMMARIES)]


def _removable(rows: Sequence[NodeRow]) -> list[tuple[NodeRow, ConversationNode]]:
    """The nodes that leave history: messages that recall may return, and damaged ones."""
    pairs = zip(rows, nodes_of(rows), strict=True)
    return [(row, node) for row, node in pairs if is_recallable(node) or is_lost(node)]
