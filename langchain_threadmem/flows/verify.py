"""Verifying: proof that what is stored is a tree, node by node, and that checkpoints lead to nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from langchain_threadmem.core.bodies import decode
from langchain_threadmem.core.interning import KIND, unpack
from langchain_threadmem.core.nodes import State
from langchain_threadmem.errors import EncryptionError, InputError, PersistenceError
from langchain_threadmem.flows.index import index_problems
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import checkpoints, integrity, nodes, trees
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
    segments, purged = integrity.segments(conn, tree), integrity.purged(conn, tree)
    seq_of: dict[int, int] = {}
    key_of: dict[int, int] = {}
    problems: list[str] = []
    last = 0
    while rows := nodes.since(conn, tree, last, ROWS_AT_ONCE):
        for row in rows:
            seq_of[row.key], key_of[row.seq] = row.seq, row.key
        for row in rows:
            problems += _check_node(row, seq_of, key_of, segments, purged)
        problems += _check_bodies(rows)
        unfound = integrity.unfound(conn, tree, rows[0].seq, rows[-1].seq)
        problems += [f"node {seq} is not found by its message's id" for seq in unfound]
        last = rows[-1].seq
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


def _check_node(
    row: NodeRow,
    seq_of: dict[int, int],
    key_of: dict[int, int],
    segments: dict[int, int | None],
    purged: Collection[int],
) -> Iterator[str]:
    segment = row.key >> POSITION_BITS
    if segment not in segments:
        yield f"node {row.seq} lies in segment {segment}, which there is not"
        return
    before = _before(row.key, segments)
    while before in purged:
        before = _before(before, segments)
    if row.parent is not None and row.parent not in key_of:
        yield f"node {row.seq} continues node {row.parent}, which there is not"
    elif (None if row.parent is None else key_of[row.parent]) != before:
        yield f"node {row.seq} does not follow its parent {row.parent} in the order of keys"
    if row.parent is not None and row.parent >= row.seq:
        yield f"node {row.seq} is older than its parent {row.parent}"
    if row.state not in [int(state) for state in State]:
        yield f"node {row.seq} has the unknown state {row.state}"


def _before(key: int | None, segments: dict[int, int | None]) -> int | None:
    """The key that a node follows: the one before it, or the one that its segment forks from."""
    if key is None:
        return None
    return key - 1 if key & LAST_POSITION else segments.get(key >> POSITION_BITS)


def _check_bodies(rows: Sequence[NodeRow]) -> Iterator[str]:
    try:
        decode([(row.message, row.body) for row in rows])
    except InputError:
        for row in rows:
            try:
                decode([(row.message, row.body)])
            except InputError as error:
                yield f"node {row.seq}: {error}"
