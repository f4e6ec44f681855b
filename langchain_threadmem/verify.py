"""Verification: a proof that stored conversations are trees and that no reference dangles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from langchain_threadmem import integrity
from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.checkpoints.spans import Reader
from langchain_threadmem.checkpoints.values import KIND, unpack
from langchain_threadmem.engine.flow import Flow, Sql, snapshot
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import (
    ClosedError,
    DriverError,
    EncryptionError,
    InputError,
    PersistenceError,
    StorageBusyError,
)
from langchain_threadmem.index.catch_up import index_problems
from langchain_threadmem.messages.codec import UNREADABLE, decode_stored
from langchain_threadmem.storage.encryption import UNREADABLE_NOTE
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import grafts, nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.graph import circular
from langchain_threadmem.tree.nodes import NodeRow

T = TypeVar("T")

ROWS_AT_ONCE = 20_000
NO_TREE = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes:
        conversations: The number of conversations that were checked.
        nodes: The number of their nodes.
        problems: The problems, one sentence each.
    """

    conversations: int
    nodes: int
    problems: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether there were no problems."""
        return not self.problems

    def __str__(self) -> str:
        found = "no problems" if self.ok else "; ".join(self.problems)
        return f"{self.conversations} conversations, {self.nodes} nodes: {found}"


def verify_system(runtime: Runtime) -> Flow[Verification]:
    """`verify` for an owner, and a comparison of the vector index with the database."""
    found = yield from verify(runtime.owner)
    problems = [*found.problems]
    problems += (yield from _tried("the vector index", index_problems(runtime), problems)) or []
    return replace(found, problems=tuple(dict.fromkeys(problems)))


def verify_conversation(conversation: Conversation) -> Flow[Verification]:
    """`verify` for one conversation."""
    problems: list[str] = []
    tree = yield from _tried(f"conversation {conversation.name!r}", tree_of(conversation), problems)
    found = yield from verify(conversation.runtime.owner, NO_TREE if tree is None else tree)
    return replace(found, problems=tuple(dict.fromkeys([*found.problems, *problems])))


def verify(owner: str, only: int | None = None) -> Flow[Verification]:
    """Check the database file, the nodes of an owner's conversations (or of one tree), and checkpoints.

    All are read in one transaction. Damage is reported as a problem, never raised as an error.
    """
    problems: list[str] = []
    found = yield from _tried("the database", _on_snapshot(_verify(owner, only)), problems)
    return found or Verification(0, 0, tuple(problems))


def _on_snapshot(check: Flow[T]) -> Flow[T]:
    return (yield from snapshot(check))


def _verify(owner: str, only: int | None) -> Flow[Verification]:
    problems: list[str] = []

    def tried(what: str, check: Callable[[Conn], T]) -> Flow[T | None]:
        return _tried(what, _read(check), problems)

    problems += (yield from tried("the database file", integrity.problems)) or []
    rows = partial(integrity.damaged, owner=owner, only=only)
    problems += (yield from tried("the rows of the database", rows)) or []
    named = (yield from tried("the conversations", lambda conn: trees.conversations(conn, owner))) or []
    chosen = [(name, tree) for name, tree in named if only in (None, tree)]
    count = 0
    for name, _ in chosen:
        what = f"conversation {name!r}"
        found, number = (yield from tried(what, partial(_check, owner=owner, name=name))) or ([], 0)
        problems += [f"{what}: {problem}" for problem in found]
        count += number
    saved = (yield from tried("the checkpoints", lambda conn: checkpoint_queries.threads(conn, owner))) or []
    for tree, name in saved:
        if only in (None, tree):
            what = f"checkpoints of thread {name!r}"
            found = (yield from tried(what, partial(_check_checkpoints, tree=tree))) or []
            problems += [f"{what}: {problem}" for problem in found]
    if only is None:
        problems += (yield from tried("the summaries", lambda conn: integrity.dangling(conn, owner))) or []
    return Verification(len(chosen), count, tuple(dict.fromkeys(problems)))


def _read(check: Callable[[Conn], T]) -> Flow[T]:
    return (yield from Sql(check))


def _tried(what: str, check: Flow[T], problems: list[str]) -> Flow[T | None]:
    """The result of a check; `None`, and one more problem, if damage stops it."""
    try:
        return (yield from check)
    except (ClosedError, StorageBusyError, DriverError):
        raise  # None of them is damage.
    except Exception as error:  # Damage may raise anything.
        problems.append(f"{what}: {error}")
        return None


def problems_of(conn: Conn, owner: str) -> list[str]:
    """The problems of an owner's conversations, one sentence each; none of encrypted ones without a key."""
    found: list[str] = []
    for name, _ in trees.conversations(conn, owner):
        try:
            found += [f"conversation {name!r}: {problem}" for problem in _check(conn, owner, name)[0]]
        except EncryptionError:
            continue  # A copy of an encrypted memory needs no key.
    return found


def _check(conn: Conn, owner: str, name: str) -> tuple[list[str], int]:
    tree = trees.find(conn, owner, name)
    assert tree is not None, f"conversation {name!r} is gone"
    head = trees.head(conn, tree)
    above = Above(trees.segments(conn, tree), grafts.of_tree(conn, tree), integrity.purged(conn, tree))
    seq_of: dict[int, int] = {}
    key_of: dict[int, int] = {}
    parents: dict[int, int | None] = {}
    problems: list[str] = []
    last = 0
    while rows := nodes.since(conn, tree, last, ROWS_AT_ONCE):
        for row in rows:
            seq_of[row.key], key_of[row.seq], parents[row.seq] = row.seq, row.key, row.parent
            if row.state not in [int(state) for state in State]:
                problems.append(f"node {row.seq} has the unknown state {row.state}")
        problems += _check_bodies(rows)
        unfound = integrity.unfound(conn, tree, rows[0].seq, rows[-1].seq)
        problems += [f"node {seq} is not found by its message's id" for seq in unfound]
        last = rows[-1].seq
    for seq, parent in parents.items():
        problems += _check_parent(seq, parent, key_of, above)
    problems += [f"node {seq} descends from itself" for seq in circular(parents)]
    problems += [
        f"why node {seq} is where it is cannot be read"
        for seq, placement in stored_placements.read(conn, tree)
        if placement is None
    ]
    unreached = integrity.unreached(conn, tree)
    problems += [f"node {seq} is not found by its number" for seq in unreached]
    if (head.tip is not None and head.tip not in seq_of) or (head.tip is None and seq_of):
        problems.append("the tip of the active thread is no node of it")
    return problems, len(key_of)


def _check_checkpoints(conn: Conn, tree: int) -> list[str]:
    """The problems of references from checkpoints and pending writes."""
    problems = [
        f"the value {number} is gone" for number in sorted(checkpoint_queries.missing_blobs(conn, tree))
    ]
    reader, spans = Reader(), set()
    for data in checkpoint_queries.of_kind(conn, tree, KIND):
        try:
            found = set(unpack(data).spans())
            reader.gaps(conn, found)
        except (InputError, PersistenceError) as error:
            problems.append(str(error))
        else:
            spans |= found
    gaps = reader.gaps(conn, spans)
    return problems + [f"of the messages {first} to {last} some are gone" for first, last in gaps]


@dataclass(frozen=True, slots=True)
class Above:
    """The parents of nodes, by their keys."""

    segments: dict[int, int | None]
    grafts: dict[int, int]
    purged: Collection[int]

    def of(self, key: int) -> int | None:
        """The parent of a node, past purged nodes."""
        before: int | None = key
        while before == key or before in self.purged:
            assert before is not None
            written = before - 1 if before & LAST_POSITION else self.segments.get(before >> POSITION_BITS)
            before = self.grafts.get(before, written)
        return before


def _check_parent(seq: int, parent: int | None, key_of: dict[int, int], above: Above) -> Iterator[str]:
    key = key_of[seq]
    if (segment := key >> POSITION_BITS) not in above.segments:
        yield f"node {seq} lies in segment {segment}, which there is not"
    elif parent is not None and parent not in key_of:
        yield f"node {seq} continues node {parent}, which there is not"
    elif (None if parent is None else key_of[parent]) != above.of(key):
        yield f"node {seq} does not follow its parent {parent} in the order of keys"


def _check_bodies(rows: Sequence[NodeRow]) -> Iterator[str]:
    messages = decode_stored([(row.message, row.body, row.role) for row in rows])
    for row, message in zip(rows, messages, strict=True):
        if UNREADABLE in message.response_metadata:
            yield f"node {row.seq} ({row.message!r}) cannot be read: damaged, or encrypted with another key"
        elif UNREADABLE_NOTE in (row.title, row.summary):
            yield f"the summary of node {row.seq} cannot be read: damaged, or encrypted with another key"
