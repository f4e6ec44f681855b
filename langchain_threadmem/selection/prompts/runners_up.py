"""SQL: the candidates of the human messages of a thread, and the turns that end with candidates."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import select

from langchain_threadmem.common.ranges import Range
from langchain_threadmem.storage.schema import State, node, placement, unit
from langchain_threadmem.storage.statements import Conn, Statement, within
from langchain_threadmem.tree import nodes, turn_branches
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.node import KEPT_BY_HAND, Chances
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.trees import TreeVersion

_ROLE = attrgetter("role")
_SHORT_TURN, _LONG_TURN = 4, 16
"""The numbers of the newest messages of a thread in which the beginning of its last turn is looked for."""
_PATH = nodes.RangeStatement(
    select(*node.c["seq", "message", "state", "key"], placement.c.chances).outerjoin(
        placement, placement.c.key == node.c.key
    )
)
_THREAD = nodes.RangeStatement(
    select(*node.c["message", "body", "role", "seq", "state"], placement.c.chances).outerjoin(
        placement, placement.c.key == node.c.key
    )
)
_FORGOTTEN = Statement(
    select(unit.c.key).where(within(unit.c.key, "keys"), unit.c.forgotten.is_not(None)), "keys"
)


class ParentChances(NamedTuple):
    """The candidates of a human message.

    Attributes:
        number: Number of the human message.
        stored: The candidates as they are stored; most are read for no prompt.
    """

    number: int
    stored: str

    @property
    def chances(self) -> Chances:
        """The numbers of the turn ends and their probabilities, the likeliest first."""
        return stored_placements.chances_of(self.stored)


class CandidatePath(NamedTuple):
    """A thread from its root to a node.

    Attributes:
        messages: The message ids of its nodes, by number.
        candidates: The candidates of its human messages that have any, by message id.
    """

    messages: dict[int, str]
    candidates: dict[str, ParentChances]


class ThreadRead(NamedTuple):
    """A thread as it was read for a prompt.

    Attributes:
        version: Epoch and version of the tree.
        path: The thread.
    """

    version: TreeVersion
    path: CandidatePath


def read_thread(conn: Conn, tree: int, key: int) -> tuple[ThreadRead, list[tuple[str, str, str]]] | None:
    """The thread down to a node, and message id, body and role of its messages, without system messages.

    `None` if the tree or the node does not exist any more.
    """
    spans, version = nodes.spans_with_version(conn, tree, key)
    if version is None:
        return None
    rows = nodes.opened_messages(conn, [_THREAD.rows(conn, spans)])
    if not rows or rows[-1][4] in nodes.HIDDEN:
        return None
    shown = [row[:3] for row in rows if row[4] not in nodes.HIDDEN and row[2] != "system"]
    found = _candidate_path([(row[3], row[0], row[4], row[5]) for row in rows])
    return ThreadRead(version, found), shown


def path(conn: Conn, key: int) -> CandidatePath:
    """The thread down to a node."""
    rows = _PATH.rows(conn, nodes.spans(conn, key))
    return _candidate_path([(row[0], row[1], row[2], row[4]) for row in rows])


def _candidate_path(rows: Iterable[tuple[int, str, int, str | None]]) -> CandidatePath:
    """A thread from the number, message id, state and stored candidates of its nodes."""
    messages: dict[int, str] = {}
    candidates: dict[str, ParentChances] = {}
    for number, message, state, chances in rows:
        if state == State.PURGED:
            continue
        messages[number] = message
        if chances is not None and chances != stored_placements.NO_CHANCES:
            candidates[message] = ParentChances(number, chances)
    return CandidatePath(messages, candidates)


def moved(conn: Conn, key: int) -> set[str]:
    """The message ids of the human messages of a thread that were moved, or that a person has kept in place.

    Such a message has other candidates than when its answer was asked for, or none.
    """
    rows = _PATH.rows(conn, nodes.spans(conn, key))
    keys = [key for _, _, _, key, chances in rows if chances is not None]
    placements = stored_placements.by_keys(conn, keys) if keys else {}
    changed = {
        number
        for number, placed in placements.items()
        if placed.is_move or placed.reason == KEPT_BY_HAND.reason
    }
    return {message for number, message, *_ in rows if number in changed}


def turns(conn: Conn, tree: int, ends: Iterable[int]) -> dict[int, list[NodeRow]]:
    """The messages of turns, by the numbers of their ends, without system messages.

    A turn that was moved is read in its new place. Turns that were edited, forgotten or purged are omitted.
    """
    found = nodes.by_seqs(conn, tree, ends)
    moved = {
        number: nodes.by_message(conn, tree, row.message)
        for number, row in found.items()
        if row.state == State.SUPERSEDED
    }
    live = {
        number: row for number, row in (found | moved).items() if row is not None and row.state == State.LIVE
    }
    threads = nodes.threads(conn, {row.key for row in live.values()}, _SHORT_TURN)
    if begun := [key for key, rows in threads.items() if "human" not in map(_ROLE, rows)]:
        threads |= nodes.threads(conn, begun, _LONG_TURN)
    read = {number: _last_turn(conn, threads[row.key], row.key) for number, row in live.items()}
    return _without_forgotten(conn, read)


def turns_of(conn: Conn, rows: Sequence[NodeRow]) -> dict[int, list[NodeRow]]:
    """The turns among the first nodes of a tree, by the numbers of their human messages."""
    turn_of: dict[int, int] = {}
    found: dict[int, list[NodeRow]] = {}
    for row in rows:
        if row.state != State.LIVE or row.role == "system":
            continue
        begins = row.seq if row.role == "human" else turn_of.get(row.parent or 0)
        if begins is not None:
            turn_of[row.seq] = begins
            found.setdefault(begins, []).append(row)
    return _without_forgotten(conn, found)


def unseen_at(conn: Conn, tree: int, number: int) -> Sequence[Range]:
    """The numbers of the nodes that the run of a human message does not see."""
    row = nodes.by_seq(conn, tree, number)
    first = None if row is None else nodes.first_version(conn, tree, row.message)
    return turn_branches.unseen_at(conn, tree, number if first is None else first)


def _last_turn(conn: Conn, rows: Sequence[NodeRow], key: int) -> list[NodeRow]:
    """The messages since the last human message of the newest messages of a thread, else of the thread."""
    roles = list(map(_ROLE, rows))
    if "human" not in roles:
        rows = nodes.thread(conn, key)
        roles = list(map(_ROLE, rows))
    first = len(roles) - 1 - roles[::-1].index("human") if "human" in roles else 0
    turn = list(rows[first:])
    return [row for row in turn if row.role != "system"] if "system" in roles else turn


def forgotten(conn: Conn, keys: Collection[int]) -> set[int]:
    """The nodes that were forgotten."""
    return {key for (key,) in conn.all(_FORGOTTEN, json.dumps(list(keys)))} if keys else set()


def _without_forgotten(conn: Conn, read: dict[int, list[NodeRow]]) -> dict[int, list[NodeRow]]:
    left_out = forgotten(conn, [row.key for rows in read.values() for row in rows])
    if not left_out:
        return {number: rows for number, rows in read.items() if rows}
    return {
        number: rows
        for number, rows in read.items()
        if rows and left_out.isdisjoint([row.key for row in rows])
    }
