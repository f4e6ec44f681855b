"""SQL: nodes by key, number, message and thread."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    bindparam,
    desc,
    func,
    literal_column,
    select,
    union_all,
)

from langchain_threadmem.messages.ids import number_in
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    POSITION_BITS,
    State,
    graft,
    node,
    segment,
    summary,
    tree,
    unit,
)
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.node import MessageSummary


class NodeRow(NamedTuple):
    """A stored node with its summary, as it lies in the database."""

    key: int
    seq: int
    parent: int | None
    message: str
    role: str
    body: str
    created: float
    state: int
    superseded_by: int | None
    title: str | None
    summary: str | None


class Outline(NamedTuple):
    """A node without what was said in it."""

    key: int
    seq: int
    parent: int | None
    role: str
    state: int


STORED = node.c.state != literal_column(str(int(State.PURGED)))
"""Whether a node still holds its message."""


def _rows() -> Select[tuple[int]]:
    columns = [
        *node.c["key", "seq", "parent", "message", "role", "body", "created", "state", "superseded_by"]
    ]
    rows = select(*columns, summary.c.title, summary.c.summary)
    return rows.outerjoin(summary, summary.c.key == node.c.key).where(STORED)


_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
_SEQ: BindParameter[int] = bindparam("seq", type_=BigInteger())
_IN_TREE = node.c.tree == _TREE


def of_message(rows: Select[Any]) -> CompoundSelect[Any]:
    """Of some rows those that are or were places of a message: parameters `tree`, `message` and `number`.

    Asked by state, as the indexes over ids are, and by the number that the id ends in (`messages.ids`).
    """
    here = rows.where(_IN_TREE, node.c.message == bindparam("message"))
    named = here.where(node.c.named == literal_column("1"))
    return union_all(
        named.where(node.c.state == literal_column("0")),
        named.where(node.c.state > literal_column("0")),
        here.where(node_keys.is_at(node, _TREE, bindparam("number"))),
    )


OF_MESSAGE = ("tree", "message", "number")
_RANGE = node.c.key.between(bindparam("first"), bindparam("last"))

# PostgreSQL shifts by an INTEGER, not by a BIGINT as a parameter beside a key would be.
_BITS: ColumnElement[int] = literal_column(str(POSITION_BITS))
_ZERO: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")


def _grafted(last: ColumnElement[int], column: ColumnElement[int]) -> ColumnElement[int]:
    """A column of the last graft in the segment of a key, up to it."""
    first = last.op(">>")(_BITS).op("<<")(_BITS)
    return (
        select(column)
        .where(graft.c.key.between(first, last))
        .order_by(graft.c.key.desc())
        .limit(_ONE)
        .offset(_ZERO)
        .correlate_except(graft)
        .scalar_subquery()
    )


def _spans(starts: Select[int, int, int], name: str, *, written: bool = False) -> Statement:
    """The ranges that lead to some nodes, root first, as they hang now or as they were written.

    Args:
        starts: For each node a name, the depth 0 and its key.
        name: The parameter of `starts`.
        written: Whether as they were written.
    """
    path = starts.cte("path", recursive=True)
    above: ColumnElement[int] = segment.c.parent
    if not written:
        above = func.coalesce(_grafted(path.c.last, graft.c.parent), above)
    path = path.union_all(
        select(path.c.start, path.c.depth + _ONE, above)
        .select_from(path.join(segment, segment.c.id == path.c.last.op(">>")(_BITS)))
        .where(path.c.last.is_not(None))
    )
    first: ColumnElement[int] = path.c.last.op(">>")(_BITS).op("<<")(_BITS)
    if not written:
        first = func.coalesce(_grafted(path.c.last, graft.c.key), first)
    ranges = select(first, path.c.last, path.c.start)
    return Statement(ranges.where(path.c.last.is_not(None)).order_by(path.c.depth.desc()), name)


_START = select(
    _ZERO.label("start"), _ZERO.label("depth"), bindparam("key", type_=BigInteger()).label("last")
)
_SPANS = _spans(_START, "key")
_WRITTEN_SPANS = _spans(_START, "key", written=True)
_SPANS_OF = _spans(
    select(node.c.key.label("start"), _ZERO.label("depth"), node.c.key.label("last")).where(
        within(node.c.key, "keys")
    ),
    "keys",
)
_ROWS_OF_RANGE = Statement(_rows().where(_RANGE).order_by(node.c.key), "first", "last")
_MESSAGES_OF_RANGE = Statement(
    select(*node.c["message", "body", "role", "seq"]).where(_RANGE, STORED).order_by(node.c.key),
    "first",
    "last",
)
_BY_KEY = Statement(_rows().where(node.c.key == bindparam("key")), "key")
_BY_SEQ = Statement(_rows().where(node_keys.is_at(node, _TREE, _SEQ)), "tree", "seq")
_BY_KEYS = Statement(_rows().where(within(node.c.key, "keys")).order_by(node.c.seq), "keys")
_SINCE = Statement(
    node_keys.after(_rows(), _TREE, _SEQ).limit(bindparam("most")),
    "tree",
    "seq",
    "most",
)
# Nodes are found by their range of keys: joined by their tree, SQLite would index all nodes for it.
_AFTER_MARKS = Statement(
    node_keys.after(
        _rows().add_columns(tree.c.id).where(within(tree.c.id, "trees")),
        tree.c.id,
        node_keys.marked(tree.c.id, bindparam("name")),
    )
    .order_by(None)
    .order_by(tree.c.id, node.c.seq),
    *("trees", "name"),
)
_OF_OWNER = Statement(
    _rows()
    .add_columns(tree.c.id, tree.c.conversation)
    .join(tree, tree.c.id == node.c.tree)
    .outerjoin(unit, unit.c.key == node.c.key)
    .where(
        within(node.c.key, "keys"),
        tree.c.owner == bindparam("owner"),
        tree.c.scope == "",
        unit.c.forgotten.is_(None),
    ),
    "keys",
    "owner",
)
_VERSIONS = Statement(of_message(_rows()).order_by("state", desc("seq")), *OF_MESSAGE)
_FORKS = Statement(
    select(segment.c.id).where(segment.c.tree == bindparam("tree"), within(segment.c.parent, "keys")),
    "tree",
    "keys",
)
_GRAFTS = Statement(
    select(graft.c.key).where(graft.c.tree == bindparam("tree"), within(graft.c.parent, "keys")),
    "tree",
    "keys",
)
_OUTLINES = Statement(
    select(*node.c["key", "seq", "parent", "role", "state"])
    .where(within(node.c.key, "keys"))
    .order_by(node.c.seq),
    "keys",
)
_PLACE = Statement(select(node.c.tree, node.c.seq).where(node.c.key == bindparam("key")), "key")
EVERYTHING = (1 << 62) - 1


def spans(conn: Conn, key: int) -> list[tuple[int, int]]:
    """The ranges of keys that lead from the root to a node, root first."""
    return [(row[0], row[1]) for row in conn.all(_SPANS, key)]


def written_spans(conn: Conn, key: int) -> list[tuple[int, int]]:
    """Like `spans`, but as the messages were written: what stored lists refer to."""
    return [(row[0], row[1]) for row in conn.all(_WRITTEN_SPANS, key)]


def spans_of(conn: Conn, keys: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """The ranges of keys that lead from the root to each of some nodes, root first; one statement."""
    found: dict[int, list[tuple[int, int]]] = {key: [] for key in keys}
    for first, last, key in conn.all(_SPANS_OF, json.dumps(list(found))) if found else ():
        found[key].append((first, last))
    return found


def newest(spans: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Ranges of keys, cut to the last `most` nodes."""
    cut: list[tuple[int, int]] = []
    for first, last in reversed(spans):
        if most <= 0:
            break
        cut.append((max(first, last - most + 1), last))
        most -= last - first + 1
    return cut[::-1]


def thread(conn: Conn, key: int, most: int | None = None) -> list[NodeRow]:
    """The nodes from the root to a node (or the last `most` of them), oldest first."""
    ranges = spans(conn, key) if most is None else newest(spans(conn, key), most)
    return _opened(conn, [row for first, last in ranges for row in conn.all(_ROWS_OF_RANGE, first, last)])


def threads(conn: Conn, keys: Collection[int], most: int) -> dict[int, list[NodeRow]]:
    """For each of some nodes, the last `most` nodes from its root to it, oldest first.

    Two statements, and some more for each node with an ancestor that hangs elsewhere than it was written.
    """
    near = spans_of(conn, [key for key in keys if key & LAST_POSITION < most - 1])
    paths = {}
    for key in keys:
        ranges = newest(near[key], most) if key in near else [(key - most + 1, key)]
        paths[key] = [one for first, last in ranges for one in range(first, last + 1)]
    row_of = {row.key: row for row in by_keys(conn, {one for path in paths.values() for one in path})}
    found = {key: [row_of[one] for one in path if one in row_of] for key, path in paths.items()}
    for key, rows in found.items():
        if any(row.parent != above.seq for above, row in pairwise(rows)):
            found[key] = thread(conn, key, most)  # Something on the way hangs elsewhere.
    return found


def below(conn: Conn, key: int, most: int) -> list[NodeRow]:
    """The live nodes of the segment of one that follow it, up to `most` places further, oldest first."""
    rows = _opened(conn, conn.all(_ROWS_OF_RANGE, key, min(key + most, key | LAST_POSITION)))
    end = next((n for n, (above, row) in enumerate(pairwise(rows), 1) if row.parent != above.seq), len(rows))
    return [row for row in rows[1:end] if row.state == State.LIVE]


def thread_messages(conn: Conn, key: int, most: int | None = None) -> list[tuple[str, str, str, int]]:
    """Message id, body, role and number from the root to a node (or of the last `most` nodes): what is needed
    to show a thread.
    """
    found: list[Any] = []
    for first, last in spans(conn, key) if most is None else newest(spans(conn, key), most):
        found += conn.all(_MESSAGES_OF_RANGE, first, last)
    if (seal := conn.seal) is not None:
        return [(row[0], seal.open_body(row[0], row[2], row[1]), row[2], row[3]) for row in found]
    return found


def by_key(conn: Conn, key: int) -> NodeRow | None:
    """One node by its key."""
    row = conn.one(_BY_KEY, key)
    return _opened(conn, [row])[0] if row else None


def by_seq(conn: Conn, tree_id: int, seq: int) -> NodeRow | None:
    """One node of a tree by its number."""
    row = conn.one(_BY_SEQ, tree_id, seq)
    return _opened(conn, [row])[0] if row else None


def by_keys(conn: Conn, keys: Iterable[int]) -> list[NodeRow]:
    """Nodes by their keys, in the order of their numbers; unknown keys are left out."""
    return _opened(conn, conn.all(_BY_KEYS, json.dumps(list(keys))))


def since(conn: Conn, tree_id: int, seq: int = 0, most: int = EVERYTHING) -> list[NodeRow]:
    """The nodes of a tree that were written after the one numbered `seq`, oldest first."""
    return _opened(conn, conn.all(_SINCE, tree_id, seq, most))


def after_marks(conn: Conn, name: str, trees: Mapping[int, int], most: int) -> list[tuple[int, NodeRow]]:
    """The nodes of trees that an index does not know yet, each with its tree, in the order of their numbers.

    Args:
        conn: A transaction.
        name: What the marks of the index are kept under.
        trees: Up to which number it knows each.
        most: How many nodes of a single tree; of several trees all are read.
    """
    if len(trees) == 1:
        ((single, seq),) = trees.items()
        return [(single, row) for row in since(conn, single, seq, most)]
    rows = conn.all(_AFTER_MARKS, json.dumps(list(trees)), name)
    found = _opened(conn, [row[:-1] for row in rows])
    return [(row[-1], one) for row, one in zip(rows, found, strict=True)]


def of_owner(conn: Conn, owner: str, keys: Iterable[int]) -> list[tuple[NodeRow, int, str]]:
    """Those of some nodes that are in an owner's memory of conversations, with tree and conversation."""
    rows = conn.all(_OF_OWNER, json.dumps(list(keys)), owner)
    found = _opened(conn, [row[:-2] for row in rows])
    return [(node, row[-2], row[-1]) for node, row in zip(found, rows, strict=True)]


def reach(conn: Conn, newer: int, older: int) -> int:
    """How many nodes of a tree lie between two keys; 0 if they are in different trees."""
    ends = conn.one(_PLACE, newer), conn.one(_PLACE, older)
    if ends[0] is None or ends[1] is None or ends[0][0] != ends[1][0]:
        return 0
    return abs(int(ends[0][1]) - int(ends[1][1])) + 1


def nearest_above(conn: Conn, rows: Collection[NodeRow]) -> dict[int, int | None]:
    """For each of some nodes of a tree, by number, the nearest of them that it descends from, if any."""
    seq_of = {row.key: row.seq for row in rows}
    seqs, keys = set(seq_of.values()), sorted(seq_of)
    above = {row.seq: row.parent if row.parent in seqs else None for row in rows}
    paths = spans_of(conn, [row.key for row in rows if row.parent is not None and row.parent not in seqs])
    for key, path in paths.items():
        for first, last in reversed(path):
            at = bisect_left(keys, min(last + 1, key) if first <= key <= last else last + 1) - 1
            if at >= 0 and keys[at] >= first:
                above[seq_of[key]] = seq_of[keys[at]]
                break
    return above


def by_message(conn: Conn, tree_id: int, message: str) -> NodeRow | None:
    """The place of a message: the live one, else the newest."""
    return next(iter(versions(conn, tree_id, message)), None)


def versions(conn: Conn, tree_id: int, message: str) -> list[NodeRow]:
    """All places of a message: the live one first, then the newest."""
    return _opened(conn, conn.all(_VERSIONS, tree_id, message, number_in(message)))


def children(conn: Conn, tree_id: int, above: Iterable[tuple[int, int]]) -> list[Outline]:
    """The nodes directly below some nodes, whatever their state, in the order of their numbers.

    Args:
        conn: A transaction.
        tree_id: The tree.
        above: Key and number of each of those nodes.

    What hung below a purged node hangs below what that hung under. Cost grows with what is below, not with
    what was written since.
    """
    keys, found = [], []
    inside = set()
    for key, seq in above:
        keys.append(key)
        inside.add(seq)
    while keys:
        below = [key + 1 for key in keys if key & LAST_POSITION != LAST_POSITION]
        listed = json.dumps(keys)
        below += [row[0] << POSITION_BITS for row in conn.all(_FORKS, tree_id, listed)]
        below += [row[0] for row in conn.all(_GRAFTS, tree_id, listed)]
        rows = [Outline(*row) for row in conn.all(_OUTLINES, json.dumps(below))]
        found += [row for row in rows if row.state != State.PURGED and row.parent in inside]
        keys = [row.key for row in rows if row.state == State.PURGED]
    return sorted(found, key=lambda row: row.seq)


def answers(
    conn: Conn, tree_id: int, key: int, seq: int, among: Callable[[Outline], bool] = lambda row: True
) -> list[Outline]:
    """Every AI and tool message that answers a message, on all branches of its turn, whatever their state.

    Args:
        conn: A transaction.
        tree_id: The tree.
        key: Of the message.
        seq: Its number.
        among: Which of them count; what is below others does not.
    """
    found: list[Outline] = []
    above = [(key, seq)]
    while above:
        below = children(conn, tree_id, above)
        rows = [row for row in below if row.role not in ("human", "system") and among(row)]
        found += rows
        above = [(row.key, row.seq) for row in rows]
    return found


def _opened(conn: Conn, rows: Sequence[Sequence[Any]]) -> list[NodeRow]:
    """Rows as nodes, what was said in them open."""
    found = [NodeRow(*row) for row in rows]
    if (seal := conn.seal) is None:
        return found
    return [
        row._replace(
            body=seal.open_body(row.message, row.role, row.body),
            title=None if row.title is None else seal.open_note(row.message, row.title),
            summary=None if row.summary is None else seal.open_note(row.message, row.summary),
        )
        for row in found
    ]


_PUT_SUMMARY = insert_of(summary, replace=True)


def put_summaries(conn: Conn, tree_id: int, key: int, message: str, written: MessageSummary) -> None:
    """Store the summary of a node with this message, over an older one if there is one."""
    title, text = written.title, written.summary
    if (seal := conn.seal) is not None:
        title, text = seal.text(message, title), seal.text(message, text)
    conn.run(_PUT_SUMMARY, key, title, text)
    trees.changed(conn, tree_id)
