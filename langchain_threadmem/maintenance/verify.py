"""Verification: a proof that stored conversations are trees and that no reference dangles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.flow import Flow, Sql, Steps, snapshot
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import (
    ClosedError,
    DriverError,
    EncryptionError,
    StorageBusyError,
)
from langchain_threadmem.index.owner_index import index_problems
from langchain_threadmem.maintenance import integrity, upkeep
from langchain_threadmem.messages.codec import unreadable_among
from langchain_threadmem.storage import encryption_keys
from langchain_threadmem.storage.encryption import UNREADABLE_NOTE
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import grafts, nodes, trees
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.graph import circular
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.trees import NO_TREE

ROWS_AT_ONCE = 20_000


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
        outcome = "no problems" if self.ok else "; ".join(self.problems)
        return f"{self.conversations} conversations, {self.nodes} nodes: {outcome}"


def verify_system(runtime: Runtime) -> Flow[Verification]:
    """Run `verify` for an owner, and compare the vector index with the database."""
    verification = yield from verify(runtime.owner)
    problems = [*verification.problems]
    problems += (yield from _attempt("the vector index", index_problems(runtime), problems)) or []
    return replace(verification, problems=tuple(dict.fromkeys(problems)))


def verify_conversation(conversation: Conversation) -> Flow[Verification]:
    """Run `verify` for one conversation."""
    problems: list[str] = []
    tree = yield from _attempt(f"conversation {conversation.name!r}", tree_of(conversation), problems)
    verification = yield from verify(conversation.runtime.owner, tree or NO_TREE)
    return replace(verification, problems=tuple(dict.fromkeys([*verification.problems, *problems])))


def verify(owner: str, only_tree: int | None = None) -> Flow[Verification]:
    """Check the database file, the nodes of an owner's conversations (or of one tree), and checkpoints.

    All rows are read in one transaction. Damage is reported as a problem, never raised as an error.
    """
    problems: list[str] = []
    verification = yield from _attempt("the database", snapshot(_verify(owner, only_tree)), problems)
    return verification or Verification(0, 0, tuple(problems))


def _verify(owner: str, only_tree: int | None) -> Flow[Verification]:
    problems: list[str] = []

    def attempt(subject: str, check: Callable[[Conn], T]) -> Flow[T | None]:
        return _attempt(subject, Sql(check), problems)

    problems += (yield from attempt("the database file", integrity.problems)) or []
    rows = partial(integrity.damaged, owner=owner, only_tree=only_tree)
    problems += (yield from attempt("the rows of the database", rows)) or []
    conversations = (
        yield from attempt("the conversations", lambda conn: trees.conversations(conn, owner))
    ) or []
    checked = [(name, tree) for name, tree in conversations if only_tree in (None, tree)]
    sound = {} if problems or only_tree is not None else (yield from _sound(owner))
    total = 0
    for name, tree in checked:
        if tree in sound:
            total += sound[tree]
            continue
        subject = f"conversation {name!r}"
        result, node_count = (yield from attempt(subject, partial(_check, owner=owner, name=name))) or ([], 0)
        problems += [f"{subject}: {problem}" for problem in result]
        total += node_count
    for capability in upkeep.registered():
        subjects = (yield from attempt(capability.subject, partial(capability.subjects, owner=owner))) or []
        for tree, subject in subjects:
            if only_tree in (None, tree):
                result = (yield from attempt(subject, partial(capability.problems, tree=tree))) or []
                problems += [f"{subject}: {problem}" for problem in result]
    if only_tree is None:
        problems += (yield from attempt("the summaries", lambda conn: integrity.dangling(conn, owner))) or []
    return Verification(len(checked), total, tuple(dict.fromkeys(problems)))


def _sound(owner: str) -> Flow[dict[int, int]]:
    """The trees that a few statements for all conversations find sound, with the numbers of their nodes.

    All other conversations are checked one by one, and so are all if the statements meet damage.
    """
    try:
        return (yield from Sql(partial(_find_sound, owner=owner)))
    except (ClosedError, StorageBusyError, DriverError):
        raise
    except Exception:  # Damage may raise anything.
        return {}


def _find_sound(conn: Conn, owner: str) -> dict[int, int]:
    if conn.seal is not None:
        return {}
    encryption_keys.check(conn)
    sizes, suspects = integrity.counts(conn, owner)
    if conn.dialect != "sqlite":  # A row with a correct checksum is readable.
        suspects |= stored_placements.unreadable_trees(conn, owner)
    for group in _groups(sizes):
        rows = integrity.bodies(conn, group)
        unreadable = unreadable_among([(message, body, role) for _, message, role, body in rows])
        suspects.update(rows[n][0] for n in unreadable)
    return {tree: count for tree, count in sizes.items() if tree not in suspects}


def _groups(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Groups of trees of at most `ROWS_AT_ONCE` nodes, or of one tree."""
    group: list[int] = []
    total = 0
    for tree, size in sizes.items():
        if group and total + size > ROWS_AT_ONCE:
            yield group
            group, total = [], 0
        group.append(tree)
        total += size
    if group:
        yield group


def _attempt(subject: str, check: Steps[T], problems: list[str]) -> Flow[T | None]:
    """The result of a check; if damage stops the check, `None`, and the error is added to `problems`."""
    try:
        return (yield from check)
    except (ClosedError, StorageBusyError, DriverError):
        raise  # These errors are not damage.
    except Exception as error:  # Damage may raise anything.
        problems.append(f"{subject}: {error}")
        return None


def problems_of(conn: Conn, owner: str) -> list[str]:
    """The problems of an owner's conversations, one sentence each; encrypted conversations are skipped."""
    problems: list[str] = []
    for name, _ in trees.conversations(conn, owner):
        try:
            problems += [f"conversation {name!r}: {problem}" for problem in _check(conn, owner, name)[0]]
        except EncryptionError:
            continue  # A copy of an encrypted memory needs no key.
    return problems


def _check(conn: Conn, owner: str, name: str) -> tuple[list[str], int]:
    tree = trees.find(conn, owner, name)
    assert tree is not None, f"conversation {name!r} does not exist"
    head = trees.head(conn, tree)
    expected = Parents(trees.segments(conn, tree), grafts.of_tree(conn, tree), integrity.hidden(conn, tree))
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
        last = rows[-1].seq
    for seq, parent in parents.items():
        problems += _check_parent(seq, parent, key_of, expected)
    problems += [f"node {seq} descends from itself" for seq in circular(parents)]
    problems += [
        f"the placement of node {seq} cannot be read"
        for seq, placement in stored_placements.read(conn, tree)
        if placement is None
    ]
    problems += [f"message {message!r} has several live nodes" for message in integrity.repeated(conn, tree)]
    if (head.tip is not None and head.tip not in seq_of) or (head.tip is None and seq_of):
        problems.append("the tip of the active thread is not a node of the conversation")
    return problems, len(key_of)


@dataclass(frozen=True, slots=True)
class Parents:
    """The parents of nodes by key, as they follow from segments and grafts."""

    segments: dict[int, int | None]
    grafts: dict[int, int]
    hidden: Collection[int]

    def of(self, key: int) -> int | None:
        """The parent of a node; purged and removed nodes are skipped."""
        parent: int | None = key
        visited = Visited()
        while parent == key or parent in self.hidden:
            assert parent is not None
            visited.add(parent)
            stored = parent - 1 if parent & LAST_POSITION else self.segments.get(parent >> POSITION_BITS)
            parent = self.grafts.get(parent, stored)
        return parent


def _check_parent(seq: int, parent: int | None, key_of: dict[int, int], expected: Parents) -> Iterator[str]:
    key = key_of[seq]
    if (segment := key >> POSITION_BITS) not in expected.segments:
        yield f"node {seq} belongs to segment {segment}, which does not exist"
    elif parent is not None and parent not in key_of:
        yield f"node {seq} continues node {parent}, which does not exist"
    elif (None if parent is None else key_of[parent]) != expected.of(key):
        yield f"node {seq} does not follow its parent {parent} in the order of keys"


def _check_bodies(rows: Sequence[NodeRow]) -> Iterator[str]:
    unreadable = set(unreadable_among([(row.message, row.body, row.role) for row in rows]))
    for n, row in enumerate(rows):
        if n in unreadable:
            yield f"node {row.seq} ({row.message!r}) cannot be read: damaged, or encrypted with another key"
        elif UNREADABLE_NOTE in (row.title, row.summary):
            yield f"the summary of node {row.seq} cannot be read: damaged, or encrypted with another key"
