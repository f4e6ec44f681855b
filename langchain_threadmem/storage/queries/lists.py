"""Lists of messages: finding the stored ones and placing the new ones; `reading` reads them back.

`core.placing` says where each message of a list lives; here that is looked up and written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, literal_column, select

from langchain_threadmem.core.interning import Said
from langchain_threadmem.core.nodes import State
from langchain_threadmem.core.numbered import number_in
from langchain_threadmem.core.placing import Element, New, Place, Planned, Use, live_of, plan_list
from langchain_threadmem.storage.queries import nodes, revision, strides, trees
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, node, segment
from langchain_threadmem.storage.statements import Asked, Conn, Statement


class Located(NamedTuple):
    """Where a message of a list lives.

    Attributes:
        key: Its key.
        follows: Key of the node that it hangs under.
        aside: Whether it is no part of the conversation.
    """

    key: int
    follows: int | None
    aside: bool


_PARENT = f"CASE WHEN n.key & {LAST_POSITION} = 0 THEN s.parent ELSE n.key - 1 END"
_FOUND = f"SELECT n.key, {_PARENT}, n.message, n.body, n.state, n.seq FROM threadmem_node n "
_OF_SEGMENT = f"LEFT JOIN threadmem_segment s ON s.id = n.key >> {POSITION_BITS} "


def _by_ids(ids: str, numbers: str, mark: str) -> tuple[str, str]:
    # As `nodes.of_message`, for many: without, and with those that are found by their numbers.
    wanted = f"n.tree = {mark} AND n.message {ids}"
    key_at = (
        "SELECT (SELECT o.key + one.value - o.seq FROM threadmem_node o "
        f"WHERE o.tree = {mark} AND o.opens = 1 AND o.seq <= one.value ORDER BY o.seq DESC LIMIT 1) "
        f"FROM {numbers} AS one"
    )
    named = " UNION ALL ".join(
        f"{_FOUND}{_OF_SEGMENT}WHERE {wanted} AND n.named = 1 AND n.state {state}" for state in ("= 0", "> 0")
    )
    at_keys = f"n.key IN ({key_at})" if mark == "?" else f"n.key = ANY (ARRAY({key_at}))"
    numbered = f"{_FOUND}{_OF_SEGMENT}WHERE {at_keys} AND {wanted} AND n.named = 0"
    return named, f"{named} UNION ALL {numbered}"


_PLACES, _PLACES_BY_NUMBER = (
    Statement.of(sqlite=sqlite, postgresql=postgresql)
    for sqlite, postgresql in zip(
        _by_ids("IN (SELECT value FROM json_each(?))", "json_each(?)", "?"),
        _by_ids(
            "= ANY (ARRAY(SELECT json_array_elements_text(CAST(%s AS json))))",
            "(SELECT json_array_elements_text(CAST(%s AS json))::bigint AS value)",
            "%s",
        ),
        strict=True,
    )
)
_next = node.alias("following")
_STATE = Statement(
    select(
        *node.c["message", "role", "state", "seq"],
        exists().where(_next.c.key == node.c.key + literal_column("1")),
    ).where(node.c.key == bindparam("key")),
    "key",
)
_NODE = Statement(select(node.c.seq).where(node.c.key == bindparam("key")), "key")
_NEW_SEGMENT = Statement(
    segment.insert().values(tree=bindparam("tree"), parent=bindparam("parent")).returning(segment.c.id),
    "tree",
    "parent",
)


def find(conn: Conn, tree_id: int, messages: Sequence[Said]) -> list[Located | None]:
    """Where messages live that are stored already; `None` for those that are not. Changes nothing."""
    return found(conn, messages, conn.each(finding(tree_id, messages))[0])


def finding(tree_id: int, messages: Sequence[Said]) -> Asked:
    """The question for the places of messages."""
    ids = json.dumps([message.id for message in messages])
    numbers = [number for message in messages if (number := number_in(message.id))]
    if not numbers:
        return _PLACES, (tree_id, ids, tree_id, ids)
    return _PLACES_BY_NUMBER, (tree_id, ids, tree_id, ids, tree_id, json.dumps(numbers), tree_id, ids)


def found(conn: Conn, messages: Sequence[Said], rows: Sequence[tuple[Any, ...]]) -> list[Located | None]:
    """The answer to `finding`, as `find` gives it."""
    places = _places(conn, rows)
    if not places:
        return [None] * len(messages)
    if len({message.id for message in messages}) < len(messages):
        return [_best(message, places.get(message.id, ())) for message in messages]
    known = {row.place.key: row.place for rows in places.values() for row in rows}
    plan = plan_list(_elements(messages), _values(places), None)
    return [_located(known[step.key]) if isinstance(step, Use) else None for step in plan]


class Ground(NamedTuple):
    """What a list is placed by: the head of its tree, and where its messages and the one before them lie."""

    head: trees.Head
    places: Sequence[tuple[Any, ...]]
    after: Sequence[tuple[Any, ...]]


def surveying(tree_id: int, messages: Sequence[Said], after: int | None) -> list[Asked]:
    """The questions for the ground of a list, or of what follows a part of it that is stored."""
    return [
        trees.asking_head(tree_id),
        finding(tree_id, messages),
        (_STATE, (after if messages else None,)),
    ]


def ground(answers: Iterator[Sequence[tuple[Any, ...]]]) -> Ground:
    """The answers to `surveying`."""
    return Ground(trees.head_of(next(answers)), next(answers), next(answers))


def place(
    conn: Conn, tree_id: int, messages: Sequence[Said], after: int | None, now: float, seen: Ground
) -> tuple[list[Located], trees.Head]:
    """Store a list's messages where the placing rule says, and let the active thread end in its last one.

    Args:
        conn: A write transaction.
        tree_id: The tree, which is locked.
        messages: The list, or what follows a part of it that is stored; each id once.
        after: Key of the last message of that part that is no aside.
        now: Seconds since 1970, for the new rows.
        seen: Its ground, seen since the tree was locked.

    Returns:
        Where each message lives, and the head with the version that the tree has now.
    """
    head = seen.head
    places = _places(conn, seen.places)
    known = {row.place.key: row for rows in places.values() for row in rows}
    seqs = {key: row.seq for key, row in known.items()}
    home = _home(conn, tree_id, after, seqs, seen.after) if messages else None
    plan = plan_list(_elements(messages), _values(places), head.tip, after=after, home=home)
    growing = _Growth(conn, tree_id, head, seqs, now)
    if home is not None and home == after:
        growing.taken[home] = bool(seen.after[0][-1])
    located: list[Located] = []
    for step, message in zip(plan, messages, strict=True):
        if isinstance(step, Use):
            located.append(_located(known[step.key].place))
        else:
            parent = located[step.parent.index].key if isinstance(step.parent, Planned) else step.parent
            located.append(growing.add(step, parent, message))
    growing.supersede_answers_to_old_versions({where.key for where in located})
    spoken = [where.key for where in located if not where.aside]
    return located, growing.finish(spoken[-1] if spoken else after if after is not None else head.tip)


class _Growth:
    """New rows of one tree, on their way in."""

    def __init__(self, conn: Conn, tree_id: int, head: trees.Head, seqs: dict[int, int], now: float) -> None:
        self._conn = conn
        self._tree = tree_id
        self._head = head
        self._seqs = seqs
        self._now = now
        self._next = head.next_seq
        self._system = head.system
        self._rows: dict[int, tuple[object, ...]] = {}
        self._superseded = False
        self.taken: dict[int, bool] = {}
        """Of some stored nodes, whether the key after theirs is in use."""
        self._replaced: dict[int, int] = {}  # by the number of what was replaced, that of its new version

    def add(self, new: New, parent: int | None, message: Said) -> Located:
        """Take a key for a message; what it replaces is superseded at once, since one place may be live."""
        aside = new.state == State.ASIDE
        stored = parent is not None and parent not in self._rows
        under = None if parent is None else self._seq(parent)
        key = None
        if parent is not None and not aside and parent & LAST_POSITION != LAST_POSITION:
            if not self._is_taken(parent):
                key = parent + 1
            elif stored and under is not None and new.supersedes is None:
                self._supersede_answers(under, message.role)
        if key is None:
            row = self._conn.one(_NEW_SEGMENT, self._tree, parent)
            assert row is not None
            key = int(row[0]) << POSITION_BITS
        if new.supersedes is not None:
            self._supersede([new.supersedes], self._next)
            if message.role != "system":
                self._replaced[self._seq(new.supersedes)] = self._next
        self._rows[key] = (
            *(key, self._tree, self._next, under, *self._row(message)),
            *(int(new.state), None, nodes.named(message.id, self._next)),
            strides.opens(key, self._next, under),
        )
        self._seqs[key] = self._next
        self._next += 1
        if message.role == "system" and not aside:
            self._system = key
        return Located(key, parent, aside)

    def _is_taken(self, parent: int) -> bool:
        """Whether the key after a node's is in use; below a new node it is only by another new one."""
        if parent + 1 in self._rows:
            return True
        if parent in self._rows:
            return False
        if parent not in self.taken:
            self.taken[parent] = bool(self._conn.all(_NODE, parent + 1))
        return self.taken[parent]

    def _supersede(self, keys: Sequence[int], by: int) -> None:
        self._superseded = True
        revision.supersede(self._conn, self._tree, keys, by)

    def _row(self, message: Said) -> tuple[object, ...]:
        return message.id, message.role, message.body, self._now

    def _supersede_answers(self, under: int, role: str) -> None:
        """A second answer to the same message is a regeneration: what answered before is superseded.

        AI and tool messages of that turn, that is; other people's messages and later turns stay.
        """
        if role in ("human", "system"):
            return
        inside, old = {under}, []
        for row in nodes.since(self._conn, self._tree, under):
            if row.parent in inside and row.role not in ("human", "system") and row.state == State.LIVE:
                inside.add(row.seq)
                old.append(row.key)
        if old:
            self._supersede(old, self._next)

    def supersede_answers_to_old_versions(self, kept: Collection[int]) -> None:
        """What answered an old version of a message is superseded with it, but for what the list still shows.

        That is `ChatMemory.edit`: AI and tool messages of that turn go, later turns stay.
        """
        if not self._replaced:
            return
        by = dict(self._replaced)
        old: dict[int, list[int]] = {}
        for row in nodes.since(self._conn, self._tree, min(by)):
            if row.parent in by and row.role not in ("human", "system") and row.seq not in by:
                by[row.seq] = by[row.parent]
                if row.state == State.LIVE and row.key not in kept:
                    old.setdefault(by[row.seq], []).append(row.key)
        for version, keys in old.items():
            self._supersede(keys, version)

    def _seq(self, key: int) -> int:
        if key not in self._seqs:
            row = self._conn.one(_NODE, key)
            assert row is not None, f"node {key} is gone"
            self._seqs[key] = row[0]
        return self._seqs[key]

    def finish(self, tip: int | None) -> trees.Head:
        """Write the rows, and where the active thread ends now; returns the head with its new version."""
        before = after = self._head
        if self._rows:
            nodes.insert(self._conn, list(self._rows.values()))
        if self._superseded:
            after = trees.head(self._conn, self._tree)
            if self._system == before.system:  # it may have been superseded, and another taken its place
                self._system = after.system
        follows = not before.pinned and tip == max(self._rows, key=self._number, default=before.tip)
        if not follows or self._system != after.system:
            trees.settle(self._conn, self._tree, tip, self._system)
        return after

    def _number(self, key: int) -> int:
        return self._seqs[key]


class _Found(NamedTuple):
    place: Place
    seq: int


def _places(conn: Conn, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[_Found]]:
    found: dict[str, list[_Found]] = {}
    for key, parent, message, body, state, seq in rows:
        if conn.seal is not None:
            body = conn.seal.open_text(message, body)
        found.setdefault(message, []).append(_Found(Place(key, parent, message, body, State(state)), seq))
    return found


def _home(
    conn: Conn, tree_id: int, key: int | None, seqs: dict[int, int], rows: Sequence[tuple[Any, ...]]
) -> int | None:
    """The home of a node, as `core.placing` has it; `None` for a former version.

    `rows` is what `surveying` found of the node, which is enough as a rule. Adds the numbers of the nodes it
    has looked at to `seqs`.
    """
    found: int | None = None
    while key is not None:
        rows = rows or conn.all(_STATE, key)
        assert rows, f"node {key} is gone"
        message, role, state, seqs[key], _ = rows[0]
        rows = ()
        if state == State.LIVE:
            return key if found is None else found
        if role == "system" and found is not None:
            return found  # A system message that was rewritten makes no other version of what follows it.
        places = [one.place for one in _places_of(conn, tree_id, Said(message, "", role))]
        own = next(place for place in places if place.key == key)
        live = live_of(place for place in places if place.content == own.content)
        if live is None:
            return None
        found, key = live if found is None else found, own.parent
    return found


def _places_of(conn: Conn, tree_id: int, message: Said) -> list[_Found]:
    return _places(conn, conn.each(finding(tree_id, [message]))[0])[message.id]


def _values(places: dict[str, list[_Found]]) -> dict[str, list[Place]]:
    return {message: [row.place for row in rows] for message, rows in places.items()}


def _elements(messages: Sequence[Said]) -> list[Element]:
    return [Element(message.id, message.body, message.role == "system") for message in messages]


def _best(message: Said, found: Sequence[_Found]) -> Located | None:
    same = [row.place for row in found if row.place.content == message.body]
    best = max(same, key=lambda place: (place.state == State.LIVE, place.key), default=None)
    return None if best is None else _located(best)


def _located(place: Place) -> Located:
    return Located(place.key, place.parent, place.state == State.ASIDE)
