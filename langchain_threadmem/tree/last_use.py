"""SQL: the conversations of an owner in the order of their newest messages, by an index.

The column `tree.used` is the time of the newest message, or a bound: a whole multiple of ten minutes, and the
message is at most ten minutes older. So appends write the column at most twice in ten minutes, since an entry
of the index takes a sixth of the time of an append. The newest messages give the order of conversations with
bounds.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterator

from sqlalchemy import bindparam, select, tuple_, update

from langchain_threadmem.storage.schema import tree
from langchain_threadmem.storage.statements import Conn, Statement, within
from langchain_threadmem.tree.trees import is_newest, newest

STEP = 600.0
"""The distance of bounds, in seconds."""
ROWS_AT_ONCE = 100
LATEST = (math.inf, 0)
"""The place before the first conversation."""
_PAGE = Statement(
    select(tree.c.id, tree.c.used)
    .where(
        tree.c.owner == bindparam("owner"),
        tree.c.used >= bindparam("since"),
        tuple_(tree.c.used, tree.c.id) < tuple_(bindparam("used"), bindparam("tree")),
    )
    .order_by(tree.c.used.desc(), tree.c.id.desc())
    .limit(bindparam("most")),
    *("owner", "since", "used", "tree", "most"),
)
_TIMES = Statement(
    select(tree.c.id, newest.c.created)
    .select_from(tree.join(newest, is_newest))
    .where(within(tree.c.id, "trees")),
    "trees",
)
_NAME = Statement(select(tree.c.conversation).where(tree.c.id == bindparam("tree")), "tree")
_PUT = Statement(
    update(tree).where(tree.c.id == bindparam("at")).values(used=bindparam("used")), *("used", "at")
)


def _is_bound(used: float) -> bool:
    return used % STEP == 0


def _bound(time: float) -> float:
    """The lowest bound of a time."""
    return time if _is_bound(time) or math.isinf(time) else time - time % STEP + STEP


def used_after(used: float, created: float) -> float:
    """The value of `tree.used` after a new message.

    Args:
        used: The value before.
        created: The time of the message, in seconds since 1970.

    Example:
        >>> used_after(0.0, 1_234.5), used_after(1_234.5, 1_250.0), used_after(1_800.0, 1_260.0)
        (1234.5, 1800.0, 1800.0)
    """
    if _is_bound(used) and used - STEP < created <= used:
        return used
    return _bound(created) if abs(created - used) < STEP else created


def put(conn: Conn, tree_id: int, used: float) -> None:
    """Store the value of `tree.used`."""
    conn.run(_PUT, used, tree_id)


def latest_first(
    conn: Conn, owner: str, before: tuple[float, int] = LATEST, since: float = -math.inf
) -> Iterator[tuple[float, int]]:
    """The non-empty conversations of an owner, each as the time of its newest message and its tree.

    The cost is one statement for `ROWS_AT_ONCE` conversations, and a second one if some have bounds.

    Args:
        conn: A transaction.
        owner: The owner.
        before: Only conversations after this place.
        since: Only conversations with a message of this time or later, in seconds since 1970.
    """
    found: list[tuple[float, int]] = []  # negative, as a heap
    place = _bound(before[0]), (1 << 62)
    while True:
        rows = conn.all(_PAGE, owner, since, *place, ROWS_AT_ONCE)
        times = {tree_id: used for tree_id, used in rows if not _is_bound(used)}
        if bounds := [tree_id for tree_id, _ in rows if tree_id not in times]:
            times |= dict(conn.all(_TIMES, json.dumps(bounds)))
        for tree_id, time in times.items():
            if since <= time and (time, tree_id) < before:
                heapq.heappush(found, (-time, -tree_id))
        is_last = len(rows) < ROWS_AT_ONCE
        if not is_last:
            place = rows[-1][1], rows[-1][0]
        while found and (is_last or -found[0][0] > place[0]):
            time, tree_id = heapq.heappop(found)
            yield -time, -tree_id
        if is_last:
            return


def latest(conn: Conn, owner: str) -> str | None:
    """The conversation of an owner with the latest message, or `None`."""
    for _, tree_id in latest_first(conn, owner):
        return str(conn.all(_NAME, tree_id)[0][0])
    return None
