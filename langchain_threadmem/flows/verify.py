"""Verifying: proof that what is stored is a tree, node by node, and that checkpoints lead to nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from langchain_threadmem.core.bodies import decode
from langchain_threadmem.core.interning import KIND, unpack
from langchain_threadmem.core.nodes import State
from langchain_threadmem.core.splicing import circular
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.flows.index import index_problems
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import checkpoints, grafts, integrity, nodes, trees
from langchain_threadmem.storage.queries.nodes import NodeRow
from langchain_threadmem.storage.queries.reading import Reader
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS
from langchain_threadmem.storage.statements import Conn

ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        conversations: How many were looked at.
        nodes: How many nodes they hold.
        problems: One sentence each; empty if all is well.
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
    """`verify` for everything of the owner, and whether the vector index holds what SQL says."""
    found = yield from verify(runtime.owner)
    problems = yield from index_problems(runtime)
    return replace(found, problems=(*found.problems, *problems))


def verify(owner: str, only: int | None = None) -> Flow[Verification]:
    """Check the database file, the nodes of an owner's conversations (or of one tree), and checkpoints."""
    problems = yield from Sql(integrity.problems)
    named = yield from Sql(lambda conn: trees.conversations(conn, owner))
    chosen = [(name, tree) for name, tree in named if only in (None, tree)]
    count = 0
    for name, tree in chosen:
        try:
            found, held = yield from Sql(lambda conn, tree=tree, name=name: _check(conn, owner, name))  # type: ignore[misc]
        except EncryptionError as error:
            found, held = [str(error)], 0
        problems += [f"conversation {name!r}: {problem}" for problem in found]
        count += held
    saved = yield from Sql(lambda conn: checkpoints.threads(conn, owner))
    for tree, name in saved:
        if only in (None, tree):
            found = yield from Sql(lambda conn, tree=tree: _check_checkpoints(conn, tree))  # type: ignore[misc]
            problems += [f"checkpoints of thread {name!r}: {problem}" for problem in found]
    if only is None:
        problems += yield from Sql(lambda conn: integrity.dangling(conn, owner))
    return Verification(len(chosen), count, tuple(problems))


def problems_of(conn: Conn, owner: str) -> list[str]:
    """What is wrong with the conversations of an owner, one sentence each; without a key to them, nothing."""
    found: list[str] = []
    for name, _ in trees.conversations(conn, owner):
        try:
            found += [f"conversation {name!r}: {problem}" for problem in _check(conn, owner, name)[0]]
        except EncryptionError:
            continue  # Who copies what is encrypted need not be able to read it.
    return found


def _check(conn: Conn, owner: str, name: str) -> tuple[list[str], int]:
    tree = trees.find(conn, owner, name)
    assert tree is not None, f"conversation {name!r} is gone"
    head = trees.head(conn, tree)
    above = Above(integrity.segments(conn, tree), grafts.of_tree(conn, tree), integrity.purged(conn, tree))
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
    unreached = integrity.unreached(conn, tree)
    problems += [f"node {seq} is not found by its number" for seq in unreached]
    if (head.tip is not None and head.tip not in seq_of) or (head.tip is None and seq_of):
        problems.append("the tip of the active thread is no node of it")
    return problems, len(key_of)


def _check_checkpoints(conn: Conn, tree: int) -> list[str]:
    """What checkpoints and pending writes refer to and what is not there."""
    problems = [f"the value {number} is gone" for number in sorted(checkpoints.missing_blobs(conn, tree))]
    reader, runs = Reader(), set()
    for data in checkpoints.of_kind(conn, tree, KIND):
        try:
            found = set(unpack(data).runs())
            reader.gaps(conn, found)
        except (InputError, PersistenceError) as error:
            problems.append(str(error))
        else:
            runs |= found
    gaps = reader.gaps(conn, runs)
    return problems + [f"of the messages {first} to {last} some are gone" for first, last in gaps]


@dataclass(frozen=True, slots=True)
class Above:
    """What says which node another one hangs under, by their keys."""

    segments: dict[int, int | None]
    grafts: dict[int, int]
    purged: Collection[int]

    def of(self, key: int) -> int | None:
        """The node that a node hangs under, past those that were purged."""
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
    try:
        decode([(row.message, row.body) for row in rows])
    except InputError:
        for row in rows:
            try:
                decode([(row.message, row.body)])
            except InputError as error:
                yield f"node {row.seq}: {error}"
