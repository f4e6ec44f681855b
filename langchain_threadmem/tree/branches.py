"""SQL: the siblings of a message, its versions, the fork above it and the newest node below it.

The messages below a node are ranges of keys: the end of its segment, and the segments and grafts whose parent
is in these ranges. A range ends before the next graft of its segment, which has another parent. UNION adds
each range only once; so the search also ends if damaged parents form a circle.
"""

from __future__ import annotations

import json

from sqlalchemy import bindparam, func, select

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, graft, node, segment
from langchain_threadmem.storage.statements import Conn, FormName, Statement, within
from langchain_threadmem.tree import nodes
from langchain_threadmem.tree.nodes import NodeRow, Outline

SHOWN = (State.LIVE, State.SUPERSEDED)
"""The states of the nodes that branches show."""


def _newest_below(form: FormName) -> str:
    """The SQL text for the newest node below a node."""

    def range_from(first: str) -> str:
        end = f"({first} | {LAST_POSITION})"
        before_graft = f"SELECT MIN(g.key) - 1 FROM {graft.name} g WHERE g.key > {first} AND g.key <= {end}"
        return f"{first} AS first, COALESCE(({before_graft}), {end}) AS last"

    first_key = f"(s.id << {POSITION_BITS})"
    is_child = "{0}.tree = given.tree AND {0}.parent BETWEEN below.first AND below.last"
    forks = (
        f"SELECT {range_from(first_key)} FROM {{0}} {segment.name} s WHERE {is_child.format('s')} "
        f"AND NOT EXISTS (SELECT 1 FROM {graft.name} g WHERE g.key = {first_key})"
    )
    grafts = f"SELECT {range_from('h.key')} FROM {{0}} {graft.name} h WHERE {is_child.format('h')}"
    if form == "sqlite":
        step = f"{forks.format('below, given,')} UNION {grafts.format('below, given,')}"
        given = "SELECT ?, ?, ?"
    else:  # PostgreSQL allows one recursive term.
        step = (
            "SELECT next.first, next.last FROM below, given, "
            f"LATERAL ({forks.format('')} UNION ALL {grafts.format('')}) AS next"
        )
        given = "SELECT CAST(%s AS BIGINT), CAST(%s AS BIGINT), CAST(%s AS INTEGER)"
    is_below = "m.key BETWEEN below.first AND below.last AND m.key <> given.key AND m.state <= given.state"
    if form == "partitioned":
        last = f"m.tree = given.tree AND {is_below} ORDER BY m.key DESC LIMIT 1"
        nodes_below = f"CROSS JOIN LATERAL (SELECT m.key, m.seq FROM {node.name} m WHERE {last}) n"
    else:
        nodes_below = f"JOIN {node.name} n ON n.key = (SELECT MAX(m.key) FROM {node.name} m WHERE {is_below})"
    return (
        f"WITH RECURSIVE given(tree, key, state) AS ({given}), below(first, last) AS ("
        f"SELECT {range_from('given.key')} FROM given UNION {step}) "
        f"SELECT n.key FROM below CROSS JOIN given {nodes_below} ORDER BY n.seq DESC LIMIT 1"
    )


_NEWEST_BELOW = Statement.of(
    sqlite=_newest_below("sqlite"),
    postgresql=_newest_below("postgresql"),
    partitioned=_newest_below("partitioned"),
)
_ROOTS = Statement(
    select(*nodes.OUTLINE)
    .select_from(segment.join(node, node.c.key == node_keys.first_key(segment.c.id)))
    .where(segment.c.tree == bindparam("tree"), segment.c.parent.is_(None), node.c.parent.is_(None))
    .order_by(node.c.seq),
    "tree",
)
_FORK_IN = Statement(
    select(
        *(
            select(func.max(table.c.parent))
            .where(
                table.c.tree == bindparam("tree"),
                table.c.parent.between(bindparam("first"), bindparam("last")),
            )
            .scalar_subquery()
            for table in (segment, graft)
        )
    ),
    *("tree", "first", "last"),
)
_SUPERSEDED = Statement(
    select(*node.c["seq", "superseded_by"]).where(
        within(node.c.key, "keys"), node.c.superseded_by.is_not(None)
    ),
    "keys",
)


def newest_below(conn: Conn, tree_id: int, row: NodeRow | Outline) -> int:
    """The key of the newest node below a node that ends a thread; the node's own key if there is none.

    Below a live node, only live nodes are searched. The cost grows with the number of forks below the node.
    """
    key, state = row.key, max(row.state, State.LIVE)
    # Again below each result: a node that was moved is newer than the nodes below it.
    visited = Visited()
    while (newest := conn.one(_NEWEST_BELOW, tree_id, key, state)) is not None:
        visited.add(key)
        key = int(newest[0])
    return key


def roots(conn: Conn, tree_id: int) -> list[Outline]:
    """The nodes of all states without a parent, oldest first."""
    return [Outline(*root) for root in conn.all(_ROOTS, tree_id)]


def siblings(conn: Conn, tree_id: int, row: NodeRow) -> list[Outline]:
    """The nodes with the role and the parent of a node, including the node, oldest first.

    The siblings of a root are the other roots.
    """
    if row.parent is None:
        children = roots(conn, tree_id)
    else:
        parent = nodes.by_seq(conn, tree_id, row.parent)
        assert parent is not None, f"node {row.seq} has no parent"
        children = nodes.children(conn, tree_id, [(parent.key, parent.seq)])
    return [
        child
        for child in children
        if child.role == row.role and (child.state in SHOWN or child.key == row.key)
    ]


def versions(conn: Conn, tree_id: int, row: NodeRow) -> list[Outline]:
    """The siblings of a node that it replaced or that replaced it, including the node, oldest first."""
    candidates = siblings(conn, tree_id, row)
    replaced = conn.all(_SUPERSEDED, json.dumps([sibling.key for sibling in candidates]))
    seqs = {row.seq}
    while more := {seq for pair in replaced if seqs & set(pair) for seq in pair} - seqs:
        seqs |= more
    return [sibling for sibling in candidates if sibling.seq in seqs]


def fork_above(conn: Conn, tree_id: int, row: NodeRow) -> NodeRow | None:
    """The nearest ancestor of a node with more than one live or superseded child; `None` if there is none."""
    for first, last in reversed(nodes.spans(conn, row.key)):
        # A path leaves a segment at a node that also has a child in the segment.
        at = _fork_in(conn, tree_id, first, last - 1) if last == row.key else last
        while at is not None:
            above = nodes.by_key(conn, at)
            if above is not None:
                below = nodes.children(conn, tree_id, [(above.key, above.seq)])
                if sum(child.state in SHOWN for child in below) > 1:
                    return above
            at = _fork_in(conn, tree_id, first, at - 1)
    return None


def _fork_in(conn: Conn, tree_id: int, first: int, last: int) -> int | None:
    """The highest key in a range that is the parent of a segment or a graft."""
    row = conn.one(_FORK_IN, tree_id, first, last)
    return max((key for key in row or () if key is not None), default=None)
