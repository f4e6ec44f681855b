"""SQL: nodes selected by key, number, message or thread."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter, ne
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    cast,
    desc,
    func,
    literal_column,
    select,
)

from langchain_threadmem.common.visited import Visited, circle
from langchain_threadmem.messages.codec import encode
from langchain_threadmem.storage import encryption_keys, node_keys
from langchain_threadmem.storage.schema import (
    LAST_POSITION,
    POSITION_BITS,
    State,
    graft,
    message_summary,
    node,
    segment,
    tree,
    unit,
)
from langchain_threadmem.storage.statements import (
    ONE,
    ZERO,
    BoundStatement,
    Conn,
    Statement,
    insert_of,
    range_rows,
    within,
)
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.node import MessageSummary


class NodeRow(NamedTuple):
    """A stored node with its summary."""

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


MessageRow = tuple[str, str, str, int, int]
"""Message id, body, role, key and state of a node."""


class Outline(NamedTuple):
    """A node without its message."""

    key: int
    seq: int
    parent: int | None
    role: str
    state: int
    created: float


OUTLINE = node.c["key", "seq", "parent", "role", "state", "created"]
"""The columns of `Outline`."""
HIDDEN = (State.PURGED, State.REMOVED)
"""The states of nodes that no reader of a conversation returns; they are the highest."""
STORED = and_(*(node.c.state != literal_column(str(int(state))) for state in sorted(HIDDEN)))
"""Whether a node is neither purged nor removed."""


def _rows(stored: ColumnElement[bool] = STORED) -> Select[tuple[int]]:
    columns = [
        *node.c["key", "seq", "parent", "message", "role", "body", "created", "state", "superseded_by"]
    ]
    rows = select(*columns, message_summary.c.title, message_summary.c.summary)
    return rows.outerjoin(message_summary, message_summary.c.key == node.c.key).where(stored)


_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
_SEQ: BindParameter[int] = bindparam("seq", type_=BigInteger())


def _of_message(rows: Select[Any]) -> Statement:
    own = rows.where(node.c.tree == _TREE, node.c.message == bindparam("message"))
    return Statement(own.order_by(node.c.state, desc(node.c.seq)), "tree", "message")


_VERSIONS = _of_message(_rows())
_PLACES = _of_message(select(*node.c["key", "seq", "state", "created", "superseded_by"]))
_RANGE = node.c.key.between(bindparam("first"), bindparam("last"))


def _first_of_segment(key: ColumnElement[int]) -> ColumnElement[int]:
    return node_keys.first_key(node_keys.segment_of(key))


def _grafted(last: ColumnElement[int], column: ColumnElement[int]) -> ColumnElement[int]:
    """A column of the last graft at or before a key, in the segment of the key."""
    return (
        select(column)
        .where(graft.c.key.between(_first_of_segment(last), last))
        .order_by(graft.c.key.desc())
        .limit(ONE)
        .offset(ZERO)
        .correlate_except(graft)
        .scalar_subquery()
    )


def _spans(
    starts: Select[int, int, int, int], name: str, *columns: ColumnElement[int], written: bool = False
) -> Statement:
    """The query for the ranges of keys from the root to nodes, root first.

    If damaged parents form a circle, the path ends where it meets its mark, which moves to the end of the
    path whenever the depth has doubled (Brent's algorithm); see `_ranges`.

    Args:
        starts: A name, the depth 0, the key of each node, and no mark.
        name: The parameter of `starts`.
        *columns: Columns of the tree, whose id is then the first parameter.
        written: Whether to follow the parents that the nodes were written under, not their present parents.
    """
    path = starts.cte("path", recursive=True)
    above: ColumnElement[int] = segment.c.parent
    if not written:
        above = func.coalesce(_grafted(path.c.last, graft.c.parent), above)
    is_marked = path.c.depth.bitwise_and(path.c.depth - ONE) == ZERO
    path = path.union_all(
        select(path.c.start, path.c.depth + ONE, above, case((is_marked, path.c.last), else_=path.c.mark))
        .select_from(path.join(segment, segment.c.id == node_keys.segment_of(path.c.last)))
        .where(path.c.last != path.c.mark)  # NULL, above a root, is not unequal either.
    )
    first = _first_of_segment(path.c.last)
    if not written:
        first = func.coalesce(_grafted(path.c.last, graft.c.key), first)
    of_tree = [select(column).where(tree.c.id == _TREE).scalar_subquery() for column in columns]
    ranges = select(first, path.c.last, path.c.mark, path.c.start, *of_tree)
    ordered = ranges.where(path.c.last.is_not(None)).order_by(path.c.depth.desc())
    return Statement(ordered, *(["tree"] if columns else []), name)


_NO_MARK = cast(literal_column("-1"), BigInteger()).label("mark")
_START = select(
    ZERO.label("start"), ZERO.label("depth"), bindparam("key", type_=BigInteger()).label("last"), _NO_MARK
)
_SPANS = _spans(_START, "key")
_SPANS_WITH_VERSION = _spans(_START, "key", tree.c.epoch, tree.c.version)
_WRITTEN_SPANS = _spans(_START, "key", written=True)
_SPANS_OF = _spans(
    select(node.c.key.label("start"), ZERO.label("depth"), node.c.key.label("last"), _NO_MARK).where(
        within(node.c.key, "keys")
    ),
    "keys",
)


class RangeStatement:
    """The rows of nodes in ranges of keys, in the order of the ranges: one statement for any number.

    Args:
        rows: A query of nodes.
    """

    def __init__(self, rows: Select[Any]) -> None:
        ranges = range_rows("ranges")
        self._one = Statement(rows.where(_RANGE).order_by(node.c.key), "first", "last")
        self._several = Statement(
            rows.where(node.c.key.between(ranges.c.first, ranges.c.last)).order_by(
                ranges.c.place, node.c.key
            ),
            "ranges",
        )

    def queries(self, ranges: Sequence[tuple[int, int]]) -> list[BoundStatement]:
        """The query for ranges; none for no range."""
        if len(ranges) > 1:
            return [(self._several, (json.dumps(ranges),))]
        return [(self._one, range_) for range_ in ranges]

    def rows(self, conn: Conn, ranges: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """The rows of ranges."""
        return list(chain.from_iterable(conn.each(*self.queries(ranges))))


_ROWS_OF_RANGES = RangeStatement(_rows())
_FIRST_OF_RANGE = Statement(
    _rows().where(_RANGE).order_by(node.c.key).limit(bindparam("most")), "first", "last", "most"
)
_MESSAGES_OF_RANGES = RangeStatement(select(*node.c["message", "body", "role", "seq"]).where(STORED))
_QUESTION_OF_RANGE = Statement(
    select(node.c.message)
    .where(_RANGE, node.c.role == literal_column("'human'"), node.c.message != "")
    .order_by(node.c.key.desc())
    .limit(1),
    *("first", "last"),
)
_NODES_OF_RANGES = RangeStatement(select(*node.c["message", "body", "role", "key", "state"]))
_BY_KEY = Statement(_rows().where(node.c.key == bindparam("key")), "key")
_BY_SEQ = Statement(_rows().where(node_keys.is_at(node, _TREE, _SEQ)), "tree", "seq")
_BY_SEQS = Statement(_rows().where(node.c.tree == _TREE, within(node.c.seq, "seqs")), "tree", "seqs")
_MESSAGE_AT = Statement(select(node.c.message).where(node_keys.is_at(node, _TREE, _SEQ)), "tree", "seq")
_STATE_AT = Statement(
    select(*node.c["state", "parent"]).where(node_keys.is_at(node, _TREE, _SEQ)), "tree", "seq"
)
_BY_KEYS = Statement(_rows().where(within(node.c.key, "keys")).order_by(node.c.seq), "keys")
_WITH_REMOVED = Statement(
    _rows(node.c.state != literal_column(str(int(State.PURGED))))
    .where(within(node.c.key, "keys"))
    .order_by(node.c.seq),
    "keys",
)
_SINCE = Statement(node_keys.after(_rows(), _TREE, _SEQ).limit(bindparam("most")), *("tree", "seq", "most"))
_REMOVED_HUMANS = Statement(
    node_keys.after(
        select(*node.c["key", "seq", "parent", "message", "role", "created", "state", "superseded_by"]),
        *(_TREE, _SEQ),
    ).where(
        node.c.state == literal_column(str(int(State.REMOVED))), node.c.role == literal_column("'human'")
    ),
    *("tree", "seq"),
)
_OPENINGS = Statement(
    _rows()
    .add_columns(node.c.tree)
    .where(
        within(node.c.tree, "trees"),
        node.c.seq <= bindparam("most"),
        node.c.role == literal_column("'human'"),
        node.c.state != int(State.ASIDE),  # Custom instructions of an imported chat are no title.
    )
    .order_by(node.c.tree, node.c.seq),
    *("trees", "most"),
)
_AFTER_MARKS = Statement(
    node_keys.after(
        _rows().add_columns(tree.c.id).where(within(tree.c.id, "trees")),
        tree.c.id,
        node_keys.watermark_of(tree.c.id, bindparam("name")),
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
    *("keys", "owner"),
)
_FORKS = Statement(
    select(segment.c.id).where(segment.c.tree == bindparam("tree"), within(segment.c.parent, "keys")),
    *("tree", "keys"),
)
_GRAFTS = Statement(
    select(graft.c.key).where(graft.c.tree == bindparam("tree"), within(graft.c.parent, "keys")),
    *("tree", "keys"),
)
_OUTLINES = Statement(select(*OUTLINE).where(within(node.c.key, "keys")).order_by(node.c.seq), "keys")
_OUTLINE_OF_TREE = Statement(
    node_keys.keys_of(_TREE).with_only_columns(*OUTLINE).where(STORED).order_by(node.c.seq), "tree"
)
_PLACE = Statement(select(node.c.tree, node.c.seq).where(node.c.key == bindparam("key")), "key")
_later, _fork, _branch = node.alias("later"), segment.alias("fork"), segment.alias("branch")
_BELOW = node.c.key, node_keys.end_of(node.c.key)
_RUNS = Statement(
    select(
        node.c.key,
        select(func.max(_later.c.key)).where(_later.c.key.between(*_BELOW)).scalar_subquery(),
        select(func.max(_branch.c.id))
        .where(
            _branch.c.tree == node.c.tree,
            _branch.c.parent
            == select(func.min(_fork.c.parent))
            .where(_fork.c.tree == node.c.tree, _fork.c.parent.between(*_BELOW))
            .correlate(node)
            .scalar_subquery(),
        )
        .correlate(node)
        .scalar_subquery(),
    ).where(within(node.c.key, "keys")),
    "keys",
)
_NO_TEXT = encode(HumanMessage(""))
_PARENT_OF, _SEQ_OF = attrgetter("parent"), attrgetter("seq")
EVERYTHING = (1 << 62) - 1
"""A limit that no number of nodes reaches."""


def spans(conn: Conn, key: int) -> list[tuple[int, int]]:
    """The ranges of keys from the root to a node, root first."""
    return _ranges(conn.all(_SPANS, key))


def _ranges(rows: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """The ranges of a path from its rows: first key, last key and mark.

    Raises:
        InvalidGraphStateError: The path has met its mark.
    """
    if rows and rows[0][1] == rows[0][2]:
        raise circle(rows[0][1])
    return [(row[0], row[1]) for row in rows]


def spans_with_version(
    conn: Conn, tree_id: int, key: int
) -> tuple[list[tuple[int, int]], trees.TreeVersion | None]:
    """The result of `spans`, and epoch and version of the tree; `None` if the tree does not exist."""
    rows = conn.all(_SPANS_WITH_VERSION, tree_id, key)
    epoch, version = rows[0][4:] if rows else (None, None)
    return _ranges(rows), None if epoch is None else (epoch, version)


def written_spans(conn: Conn, key: int) -> list[tuple[int, int]]:
    """`spans` by the parents that the nodes were written under, to which stored lists refer."""
    return _ranges(conn.all(_WRITTEN_SPANS, key))


def spans_of(conn: Conn, keys: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """`spans` of several nodes by key, in one statement."""
    rows_of: dict[int, list[tuple[Any, ...]]] = {key: [] for key in keys}
    for row in conn.all(_SPANS_OF, json.dumps(list(rows_of))) if rows_of else ():
        rows_of[row[3]].append(row)
    return {key: _ranges(rows) for key, rows in rows_of.items()}


def contain(spans: Iterable[tuple[int, int]], key: int) -> bool:
    """Whether one of several ranges of keys contains a key."""
    return any(first <= key <= last for first, last in spans)


def newest(spans: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The parts of ranges of keys that contain their last `most` nodes."""
    parts: list[tuple[int, int]] = []
    for first, last in reversed(spans):
        if most <= 0:
            break
        parts.append((max(first, last - most + 1), last))
        most -= last - first + 1
    return parts[::-1]


def thread(conn: Conn, key: int, most: int | None = None) -> list[NodeRow]:
    """The nodes from the root to a node, or the last `most` of them, oldest first."""
    ranges = spans(conn, key) if most is None else newest(spans(conn, key), most)
    return _opened(conn, _ROWS_OF_RANGES.rows(conn, ranges))


def first_of(conn: Conn, spans: Iterable[tuple[int, int]], most: int) -> list[NodeRow]:
    """The first `most` nodes of ranges of keys."""
    rows: list[tuple[Any, ...]] = []
    for first, last in spans:
        rows += conn.all(_FIRST_OF_RANGE, first, last, most - len(rows))
        if len(rows) == most:
            break
    return _opened(conn, rows)


def threads(conn: Conn, keys: Collection[int], most: int) -> dict[int, list[NodeRow]]:
    """`thread` of several nodes by key.

    The cost is two statements, and further statements for each node with a graft among its ancestors.
    """
    near = spans_of(conn, [key for key in keys if key & LAST_POSITION < most - 1])
    paths: dict[int, list[int]] = {}
    for key in keys:
        path = paths.setdefault(key, [])
        for first, last in newest(near[key], most) if key in near else [(key - most + 1, key)]:
            path += range(first, last + 1)
    row_of = {row.key: row for row in by_keys(conn, {key for path in paths.values() for key in path})}
    threads = {key: [*filter(None, map(row_of.get, path))] for key, path in paths.items()}
    for key, rows in threads.items():
        if any(map(ne, map(_PARENT_OF, rows[1:]), map(_SEQ_OF, rows))):
            threads[key] = thread(conn, key, most)  # a graft is on the path
    return threads


def below(conn: Conn, key: int, most: int) -> list[NodeRow]:
    """The live nodes below a node in its segment, within `most` positions, oldest first."""
    rows = _opened(conn, _ROWS_OF_RANGES.rows(conn, [(key, min(key + most, key | LAST_POSITION))]))
    end = next((n for n, (above, row) in enumerate(pairwise(rows), 1) if row.parent != above.seq), len(rows))
    return [row for row in rows[1:end] if row.state == State.LIVE]


def thread_messages(conn: Conn, key: int, most: int | None = None) -> list[tuple[str, str, str, int]]:
    """Message id, body, role and number of the nodes that `thread` returns."""
    ranges = spans(conn, key) if most is None else newest(spans(conn, key), most)
    return opened_messages(conn, [_MESSAGES_OF_RANGES.rows(conn, ranges)])


def question_above(conn: Conn, key: int) -> str | None:
    """The id of the nearest human message above a node, also of a removed one; `None` if there is none."""
    for first, last in reversed(spans(conn, key)):
        if (row := conn.one(_QUESTION_OF_RANGE, first, last)) is not None:
            return str(row[0])
    return None


def messages_queries(ranges: Sequence[tuple[int, int]]) -> list[BoundStatement]:
    """The queries for the messages of ranges of keys, purged messages included; see `MessageRow`."""
    return _NODES_OF_RANGES.queries(ranges)


def opened_messages(conn: Conn, results: Iterable[Iterable[Any]]) -> list[Any]:
    """The rows of queries with decrypted bodies; each row begins with message id, body and role."""
    rows = list(chain.from_iterable(results))
    if (seal := conn.seal) is None:
        return rows
    return [(row[0], seal.open_body(row[0], row[2], row[1]), *row[2:]) for row in rows]


def thread_ends(conn: Conn, keys: Iterable[int]) -> dict[int, int]:
    """The key of the last node below each node; at a branch, of the newest branch."""
    ends = {key: key for key in keys}
    below = set(ends)
    visited = {key: Visited() for key in ends}
    while below:
        runs = {key: (last, fork) for key, last, fork in conn.all(_RUNS, json.dumps(sorted(below)))}
        below = set()
        for key, end in ends.items():
            last, fork = runs.get(end, (end, None))
            if fork is not None:
                visited[key].add(fork)
            ends[key] = last if fork is None else node_keys.first_in(fork)
            below |= set() if fork is None else {ends[key]}
    return ends


def tip(conn: Conn, tree_id: int) -> NodeRow | None:
    """The node at the end of the active thread."""
    key = trees.head(conn, tree_id).tip
    return None if key is None else by_key(conn, key)


def by_key(conn: Conn, key: int) -> NodeRow | None:
    """A node by its key."""
    row = conn.one(_BY_KEY, key)
    return _opened(conn, [row])[0] if row else None


def key_query(key: int | None) -> BoundStatement:
    """The query for the node with a key, see `versions_from`; it has no row for `None`."""
    return _BY_KEY, (key,)


def by_seq(conn: Conn, tree_id: int, seq: int) -> NodeRow | None:
    """A node of a tree by its number."""
    row = conn.one(_BY_SEQ, tree_id, seq)
    return _opened(conn, [row])[0] if row else None


def by_seqs(conn: Conn, tree_id: int, seqs: Iterable[int]) -> dict[int, NodeRow]:
    """Nodes of a tree by their numbers; unknown numbers are omitted."""
    rows = conn.all(_BY_SEQS, tree_id, json.dumps(sorted(set(seqs))))
    return {row.seq: row for row in _opened(conn, rows)}


def remaining(conn: Conn, tree_id: int, seq: int | None) -> int | None:
    """The number of the nearest node from a node upwards that is neither purged nor removed."""
    visited = Visited()
    while seq is not None and (row := conn.one(_STATE_AT, tree_id, seq)) is not None:
        visited.add(seq)
        state, parent = row
        if state not in HIDDEN:
            return seq
        seq = parent
    return None


def message_at(conn: Conn, tree_id: int, seq: int) -> str | None:
    """The message id of a node by its number, also of a removed version."""
    row = conn.one(_MESSAGE_AT, tree_id, seq)
    return str(row[0]) if row else None


def by_keys(conn: Conn, keys: Iterable[int]) -> list[NodeRow]:
    """Nodes by their keys, in the order of their numbers; unknown keys are omitted."""
    return _opened(conn, conn.all(_BY_KEYS, json.dumps(list(keys))))


def with_removed(conn: Conn, keys: Iterable[int]) -> list[NodeRow]:
    """The result of `by_keys`, with removed nodes."""
    return _opened(conn, conn.all(_WITH_REMOVED, json.dumps(list(keys))))


def since(conn: Conn, tree_id: int, seq: int = 0, most: int = EVERYTHING) -> list[NodeRow]:
    """The first `most` nodes of a tree with numbers above `seq`, in the order of their numbers."""
    return _opened(conn, conn.all(_SINCE, tree_id, seq, most))


def with_removed_humans(conn: Conn, tree_id: int, seq: int = 0) -> list[NodeRow]:
    """The result of `since` with the removed human messages, whose texts are left out."""
    removed = [
        NodeRow._make((*row[:5], _NO_TEXT, *row[5:], None, None))
        for row in conn.all(_REMOVED_HUMANS, tree_id, seq)
    ]
    rows = since(conn, tree_id, seq)
    return sorted([*rows, *removed], key=lambda row: row.seq) if removed else rows


def outline(conn: Conn, tree_id: int) -> list[Outline]:
    """The nodes of a tree without their messages, in the order of their numbers."""
    return [Outline(*row) for row in conn.all(_OUTLINE_OF_TREE, tree_id)]


def openings(conn: Conn, trees: Iterable[int], most: int) -> dict[int, list[NodeRow]]:
    """The human messages among the first `most` nodes of trees, by tree, without asides."""
    rows = conn.all(_OPENINGS, json.dumps(list(trees)), most)
    by_tree: dict[int, list[NodeRow]] = {}
    for row, opening in zip(rows, _opened(conn, [row[:-1] for row in rows]), strict=True):
        by_tree.setdefault(row[-1], []).append(opening)
    return by_tree


def after_marks(conn: Conn, name: str, trees: Mapping[int, int], most: int) -> list[tuple[int, NodeRow]]:
    """The nodes of trees that an index does not contain yet, with their trees, in the order of their numbers.

    Args:
        conn: A transaction.
        name: Name of the index's watermarks.
        trees: Number of the last indexed node of each tree.
        most: The maximum number of nodes if `trees` is a single tree; several trees have no limit.
    """
    if len(trees) == 1:
        ((single, seq),) = trees.items()
        return [(single, row) for row in since(conn, single, seq, most)]
    rows = conn.all(_AFTER_MARKS, json.dumps(list(trees)), name)
    nodes = _opened(conn, [row[:-1] for row in rows])
    return [(row[-1], node) for row, node in zip(rows, nodes, strict=True)]


def of_owner(conn: Conn, owner: str, keys: Iterable[int]) -> list[tuple[NodeRow, int, str]]:
    """The nodes of an owner's conversations that are not forgotten, with their trees and conversations."""
    rows = conn.all(_OF_OWNER, json.dumps(list(keys)), owner)
    nodes = _opened(conn, [row[:-2] for row in rows])
    return [(node, row[-2], row[-1]) for node, row in zip(nodes, rows, strict=True)]


def reach(conn: Conn, newer: int, older: int) -> int:
    """The number of nodes of a tree from one key to another; 0 if the keys are in different trees."""
    ends = conn.one(_PLACE, newer), conn.one(_PLACE, older)
    if ends[0] is None or ends[1] is None or ends[0][0] != ends[1][0]:
        return 0
    return abs(int(ends[0][1]) - int(ends[1][1])) + 1


def nearest_above(conn: Conn, rows: Collection[NodeRow]) -> dict[int, int | None]:
    """The nearest ancestor of each node among `rows`, by number; `None` if no ancestor is among them."""
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
    """The live node of a message, else its newest node."""
    return next(iter(versions(conn, tree_id, message)), None)


def versions(conn: Conn, tree_id: int, message: str) -> list[NodeRow]:
    """All nodes of a message: the live node, then the others from the newest to the oldest."""
    return versions_from(conn, conn.all(_VERSIONS, tree_id, message))


def versions_query(tree_id: int, message: str) -> BoundStatement:
    """The query for the nodes of a message."""
    return _VERSIONS, (tree_id, message)


def versions_from(conn: Conn, rows: Sequence[tuple[Any, ...]]) -> list[NodeRow]:
    """The result of `versions`, from the rows of `versions_query`."""
    return _opened(conn, rows)


class MessagePlace(NamedTuple):
    """A place of a message in any state, also of a removed version."""

    key: int
    seq: int
    state: int
    created: float
    superseded_by: int | None


def places(conn: Conn, tree_id: int, message: str) -> list[MessagePlace]:
    """The places of a message in any state."""
    return [MessagePlace(*row) for row in conn.all(_PLACES, tree_id, message)]


def places_query(tree_id: int, message: str) -> BoundStatement:
    """The query for the places of a message, the rows of `MessagePlace`."""
    return _PLACES, (tree_id, message)


def first_version(conn: Conn, tree_id: int, message: str) -> int | None:
    """The number of the first version of a message in any place; `None` if it is not stored.

    A message that was removed with all its versions and is said again is another message.
    """
    found = places(conn, tree_id, message)
    again = [place for place in found if place.state not in HIDDEN or place.superseded_by is not None]
    return min((place.seq for place in again or found), default=None)


def children(conn: Conn, tree_id: int, above: Collection[tuple[int, int]]) -> list[Outline]:
    """The children of nodes in any state, in the order of their numbers.

    The children of a purged or removed node count as children of its parent. The cost grows with the number
    of children.

    Args:
        conn: A transaction.
        tree_id: The tree.
        above: Key and number of each parent.
    """
    keys, parents = [key for key, _ in above], {seq for _, seq in above}
    result: list[Outline] = []
    visited = Visited()
    while keys:
        below = node_keys.keys_after(keys)
        listed = json.dumps(keys)
        below += [row[0] << POSITION_BITS for row in conn.all(_FORKS, tree_id, listed)]
        below += [row[0] for row in conn.all(_GRAFTS, tree_id, listed)]
        rows = [Outline(*row) for row in conn.all(_OUTLINES, json.dumps(below))]
        result += [row for row in rows if row.state not in HIDDEN and row.parent in parents]
        keys = [row.key for row in rows if row.state in HIDDEN]
        visited.update(keys)
    return sorted(result, key=lambda row: row.seq)


def answers(
    conn: Conn, tree_id: int, key: int, seq: int, among: Callable[[Outline], bool] = lambda row: True
) -> list[Outline]:
    """The AI and tool messages that answer a message, in any state, on all branches of its turn.

    Args:
        conn: A transaction.
        tree_id: The tree.
        key: Key of the message.
        seq: Number of the message.
        among: Selects answers; the answers below an answer that is not selected are omitted.
    """
    result: list[Outline] = []
    above = [(key, seq)]
    visited = Visited()
    while above:
        below = children(conn, tree_id, above)
        rows = [row for row in below if row.role not in ("human", "system") and among(row)]
        result += rows
        above = [(row.key, row.seq) for row in rows]
        visited.update(key for key, _ in above)
    return result


def _opened(conn: Conn, rows: Sequence[Sequence[Any]]) -> list[NodeRow]:
    """The nodes of rows, with decrypted texts."""
    nodes = [NodeRow(*row) for row in rows]
    if (seal := conn.seal) is None:
        return nodes
    return [
        row._replace(
            body=seal.open_body(row.message, row.role, row.body),
            title=None if row.title is None else seal.open_note(row.message, row.title),
            summary=None if row.summary is None else seal.open_note(row.message, row.summary),
        )
        for row in nodes
    ]


_PUT_SUMMARY = insert_of(message_summary, replace=True)


def put_summary(conn: Conn, tree_id: int, key: int, message: str, new: MessageSummary) -> None:
    """Store the summary of a node, or replace it."""
    encryption_keys.claim(conn)
    title, text = new.title, new.summary
    if (seal := conn.seal) is not None:
        title, text = seal.text(message, title), seal.text(message, text)
    conn.run(_PUT_SUMMARY, key, title, text)
    trees.changed(conn, tree_id)
