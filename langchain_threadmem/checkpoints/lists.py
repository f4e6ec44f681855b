"""SQL: lists of messages stored in the tree by the rule of `checkpoints.placing`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from langchain_threadmem.checkpoints.placing import Element, New, Place, Planned, Use, best, live_of, plan
from langchain_threadmem.checkpoints.values import EncodedMessage
from langchain_threadmem.messages.codec import decode_stored, is_unreadable
from langchain_threadmem.messages.ids import number_in
from langchain_threadmem.messages.tool_pairs import RESULT, follows_call
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, node
from langchain_threadmem.storage.statements import Conn, Query, Statement
from langchain_threadmem.tree import grafts, nodes, superseding, trees
from langchain_threadmem.tree.append import TAKEN, NodeWriter


class Location(NamedTuple):
    """The place of a message of a list.

    Attributes:
        key: Key of the node.
        follows: Key of the node that the message was written under.
        aside: Whether the message is an aside.
    """

    key: int
    follows: int | None
    aside: bool


class StoredList(NamedTuple):
    """A stored list.

    Attributes:
        locations: The place of each message.
        shared: As in `checkpoints.placing.Plan`.
        former: Whether a message of the list is superseded.
    """

    locations: list[Location]
    shared: int | None
    former: bool


_WRITTEN = f"CASE WHEN n.key & {LAST_POSITION} = 0 THEN s.parent ELSE n.key - 1 END"
_SELECT = f"SELECT n.key, {_WRITTEN}, g.parent, n.message, n.body, n.state, n.seq FROM threadmem_node n "
_OF_SEGMENT = (
    f"LEFT JOIN threadmem_segment s ON s.id = n.key >> {POSITION_BITS} "
    "LEFT JOIN threadmem_graft g ON g.key = n.key "
)


def _by_ids(ids: str, numbers: str, marker: str) -> tuple[str, str]:
    # The query of `nodes.versions` for many messages, without and with messages whose ids are numbers.
    condition = f"n.tree = {marker} AND n.message {ids}"
    key_at = (
        "SELECT (SELECT o.key + number.value - o.seq FROM threadmem_node o "
        f"WHERE o.tree = {marker} AND o.opens = 1 AND o.seq <= number.value ORDER BY o.seq DESC LIMIT 1) "
        f"FROM {numbers} AS number"
    )
    named = " UNION ALL ".join(
        f"{_SELECT}{_OF_SEGMENT}WHERE {condition} AND n.named = 1 AND n.state {state}"
        for state in ("= 0", "> 0")
    )
    at_keys = f"n.key IN ({key_at})" if marker == "?" else f"n.key = ANY (ARRAY({key_at}))"
    numbered = f"{_SELECT}{_OF_SEGMENT}WHERE {at_keys} AND {condition} AND n.named = 0"
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
_STATE = Statement(
    select(*node.c["message", "role", "state", "seq"], TAKEN).where(node.c.key == bindparam("key")), "key"
)


def find(conn: Conn, tree_id: int, messages: Sequence[EncodedMessage]) -> list[Location | None]:
    """The places of stored messages; `None` for messages that are not stored."""
    return places_from(conn, messages, conn.each(places_query(tree_id, messages))[0])


def places_query(tree_id: int, messages: Sequence[EncodedMessage]) -> Query:
    """The query for the places of messages."""
    ids = json.dumps([message.id for message in messages])
    numbers = [number for message in messages if (number := number_in(message.id))]
    if not numbers:
        return _PLACES, (tree_id, ids, tree_id, ids)
    return _PLACES_BY_NUMBER, (tree_id, ids, tree_id, ids, tree_id, json.dumps(numbers), tree_id, ids)


def places_from(
    conn: Conn, messages: Sequence[EncodedMessage], rows: Sequence[tuple[Any, ...]]
) -> list[Location | None]:
    """The result of `find`, from the rows of `places_query`."""
    places = _places(conn, rows, messages)
    if not places:
        return [None] * len(messages)
    if len({message.id for message in messages}) < len(messages):
        same = ([place for place in places.get(m.id, ()) if place.content == m.body] for m in messages)
        return [None if place is None else _location(place) for place in map(best, same)]
    place_of = {place.key: place for stored in places.values() for place in stored}
    steps = plan(_elements(messages), places, None).steps
    keys = [step.copies if isinstance(step, New) else step.key for step in steps]
    return [None if key is None else _location(place_of[key]) for key in keys]


class PlacementRows(NamedTuple):
    """The rows for the placing rule: head of the tree, places of the messages, and the preceding node."""

    head: trees.Head
    places: Sequence[tuple[Any, ...]]
    after: Sequence[tuple[Any, ...]]


def placement_queries(tree_id: int, messages: Sequence[EncodedMessage], after: int | None) -> list[Query]:
    """The queries for the placing of a list, or of the messages after the node `after`."""
    return [
        trees.head_query(tree_id),
        places_query(tree_id, messages),
        (_STATE, (after if messages else None,)),
    ]


def placement_rows(answers: Iterator[Sequence[tuple[Any, ...]]]) -> PlacementRows:
    """The rows of `placement_queries`."""
    return PlacementRows(trees.head_of(next(answers)), next(answers), next(answers))


def place(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    after: int | None,
    now: float,
    rows_read: PlacementRows | None = None,
    beginning: Sequence[Location] = (),
    ending: Sequence[Location] = (),
) -> tuple[StoredList, trees.Head]:
    """Store a list of messages by the placing rule; the last message becomes the end of the active thread.

    Args:
        conn: A write transaction.
        tree_id: The tree, which is locked.
        messages: The list, or its messages after a stored beginning without a shared end (see
            `checkpoints.placing.Plan`); each id once.
        after: Key of the last message of the stored beginning that is not an aside.
        now: Time of the new rows, in seconds since 1970.
        rows_read: The rows for the placing, read after the tree was locked; `None` to read the rows here.
        beginning: The places of the stored beginning.
        ending: The stored places of the last of `messages` and of the messages that follow it in the list.

    Returns:
        The place of each message, and the new head of the tree. In addition to the new messages, one row is
        written, whatever the length of the list.
    """
    if rows_read is None:
        rows_read = placement_rows(iter(conn.each(*placement_queries(tree_id, messages, after))))
    head = rows_read.head
    places = _places(conn, rows_read.places, messages)
    place_of = {place.key: place for stored in places.values() for place in stored}
    seqs = {key: place.seq for key, place in place_of.items()}
    home = _home(conn, tree_id, after, seqs, rows_read.after) if messages else None
    elements = _elements(messages, _result_positions(conn, tree_id, messages, places, after))
    planned = plan(
        elements,
        places,
        head.tip,
        after=after,
        home=home,
        is_before=lambda key: any(location.key == key for location in beginning),
    )
    if ending:
        last = planned.steps[-1]
        if isinstance(last, New) or last.key != ending[0].key:
            all_messages = [*messages, *_encoded(conn, ending[1:])]
            return place(conn, tree_id, all_messages, after, now, beginning=beginning)
    writer = _ListWriter(conn, tree_id, head, seqs, now)
    if home is not None and home == after:
        writer.taken[home] = bool(rows_read.after[0][-1])
    locations: list[Location] = []
    for step, message in zip(planned.steps, messages, strict=True):
        if isinstance(step, Use):
            locations.append(_location(place_of[step.key]))
            continue
        parent = locations[step.parent.index].key if isinstance(step.parent, Planned) else step.parent
        if isinstance(step, New):
            locations.append(writer.add(step, parent, message))
        else:
            assert parent is not None
            parent_step = planned.steps[step.parent.index]
            is_version = isinstance(parent_step, New) and not parent_step.beside
            is_answer = is_version and message.role not in ("human", "system")
            writer.graft(step.key, parent, is_answer=is_answer)
            locations.append(_location(place_of[step.key]))
    locations += ending[1:]
    writer.supersede_answers_to_old_versions({location.key for location in locations})
    end = next((location.key for location in reversed(locations) if not location.aside), after)
    head = writer.finish(head.tip if end is None else end)
    former = any(
        isinstance(step, Use) and place_of[step.key].state == State.SUPERSEDED for step in planned.steps
    )
    return StoredList(locations, planned.shared, former), head


class _ListWriter:
    """Writes the new nodes of a list to a tree and changes the stored nodes that they replace or move."""

    def __init__(self, conn: Conn, tree_id: int, head: trees.Head, seqs: dict[int, int], now: float) -> None:
        self._conn = conn
        self._tree = tree_id
        self._head = head
        self._seqs = seqs
        self._now = now
        self._system = head.system
        self._new: list[int] = []
        self._changed = False  # whether the state or the place of a stored node has changed
        self._nodes = NodeWriter(conn, tree_id, head)
        self.taken = self._nodes.taken
        # The number of the new version, by the key of the replaced node or of an answer to the replaced node.
        self._replaced: dict[int, int] = {}

    def add(self, new: New, parent: int | None, message: EncodedMessage) -> Location:
        """Write a message and supersede the node that it replaces, since a message has one live place."""
        aside, number = new.state == State.ASIDE, self._nodes.newest + 1
        under = None if parent is None else self._seq(parent)
        beside = aside or new.supersedes is not None or new.copies is not None or new.beside
        if parent is not None and parent not in self._new and not beside and self._nodes.is_taken(parent):
            self._supersede_answers(parent, message.role)
        if new.supersedes is not None:
            self._supersede([new.supersedes], number)
            if message.role != "system":
                self._replaced[new.supersedes] = number
        created, by = self._now, None
        if new.copies is not None:
            original = nodes.by_keys(self._conn, [new.copies])[0]
            created, by = original.created, original.superseded_by or original.seq
        key = self._nodes.add(
            parent, under, message.id, message.role, message.body, created, int(new.state), by, separate=aside
        )
        self._seqs[key] = number
        self._new.append(key)
        if message.role == "system" and new.state == State.LIVE:
            self._system = key
        return Location(key, parent, aside)

    def graft(self, key: int, parent: int, *, is_answer: bool) -> None:
        """Move a stored message and its descendants under another node."""
        if is_answer:
            self._replaced[key] = self._seq(parent)
        grafts.move(self._conn, self._tree, key, parent, self._seq(parent))
        trees.changed(self._conn, self._tree)
        self._changed = True

    def _supersede(self, keys: Sequence[int], by: int) -> None:
        self._changed = True
        superseding.supersede(self._conn, self._tree, keys, by)

    def _supersede_answers(self, parent: int, role: str) -> None:
        """Supersede the AI and tool messages of a turn that gets a second answer; later turns stay."""
        if role in ("human", "system"):
            return
        old = nodes.answers(
            self._conn, self._tree, parent, self._seq(parent), lambda row: row.state == State.LIVE
        )
        if old:
            self._supersede([row.key for row in old], self._nodes.newest + 1)

    def supersede_answers_to_old_versions(self, listed: Collection[int]) -> None:
        """Supersede the answers to replaced messages, except those that the list contains.

        As in `ChatMemory.edit`, the answers are the AI and tool messages of the turn; later turns stay.
        """
        for key, version in self._replaced.items():
            rows = nodes.answers(
                *(self._conn, self._tree, key, self._seq(key)), lambda row: row.key not in self._replaced
            )
            old = [row.key for row in rows if row.state == State.LIVE and row.key not in listed]
            if old:
                self._supersede(old, version)

    def _seq(self, key: int) -> int:
        if key not in self._seqs:
            row = self._conn.one(_STATE, key)
            assert row is not None, f"node {key} is missing"
            self._seqs[key] = row[3]
        return self._seqs[key]

    def finish(self, tip: int | None) -> trees.Head:
        """Write the rows and the end of the active thread, and return the new head of the tree."""
        before = after = self._head
        self._nodes.flush()
        if self._changed:
            after = trees.head(self._conn, self._tree)
            if self._system == before.system:  # another node may have replaced it
                self._system = after.system
        if not self._new and tip == before.tip:
            return after
        follows = not before.pinned and tip == (self._new[-1] if self._new else before.tip)
        if not follows or self._system != after.system:
            trees.settle(self._conn, self._tree, tip, self._system)
        return after


def _places(
    conn: Conn, rows: Sequence[tuple[Any, ...]], messages: Sequence[EncodedMessage]
) -> dict[str, list[Place]]:
    unread = {message.id: message.body for message in messages if is_unreadable(message.body)}
    places: dict[str, list[Place]] = {}
    for key, written, parent, message, body, state, seq in rows:
        if message in unread:  # The list contains a placeholder for a stored message that cannot be read.
            body = unread[message]
        elif conn.seal is not None:
            body = conn.seal.open_body(message, "", body)
        former = None if parent in (None, written) else written
        current_parent = written if former is None else parent
        place = Place(key, current_parent, message, body, State(state), former, seq)
        places.setdefault(message, []).append(place)
    return places


def _home(
    conn: Conn, tree_id: int, key: int | None, seqs: dict[int, int], rows: Sequence[tuple[Any, ...]]
) -> int | None:
    """The home of a node, see `checkpoints.placing`; `None` for a former version.

    `rows` contains the row of the node from `placement_queries`; if the node is not live, more rows are read.
    The numbers of the nodes are added to `seqs`.
    """
    home: int | None = None
    while key is not None:
        rows = rows or conn.all(_STATE, key)
        assert rows, f"node {key} is missing"
        message, role, state, seqs[key], _ = rows[0]
        rows = ()
        if state == State.LIVE:
            return key if home is None else home
        if role == "system" and home is not None:
            return home  # A new version of a system message makes no new versions of the messages after it.
        listed = [EncodedMessage(message, "", role)]
        places = _places(conn, conn.each(places_query(tree_id, listed))[0], listed)[message]
        own = next(place for place in places if place.key == key)
        live = live_of(place for place in places if place.content == own.content)
        if live is None:
            return None
        home, key = live if home is None else home, own.parent
    return home


def _encoded(conn: Conn, locations: Sequence[Location]) -> list[EncodedMessage]:
    row_of = {row.key: row for row in nodes.by_keys(conn, [place.key for place in locations])}
    rows = [row_of[place.key] for place in locations]
    return [EncodedMessage(row.message, row.body, row.role) for row in rows]


def _elements(messages: Sequence[EncodedMessage], results: Collection[int] = ()) -> list[Element]:
    return [
        Element(message.id, message.body, message.role == "system", n in results)
        for n, message in enumerate(messages)
    ]


def _result_positions(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    places: Mapping[str, object],
    after: int | None,
) -> Collection[int]:
    """The positions of new tool results that are directly after their calls and before a stored message."""
    last = max((n for n, message in enumerate(messages) if message.id in places), default=0)
    new = [n for n in range(last) if messages[n].role == RESULT and messages[n].id not in places]
    if not new:
        return ()
    row = None if after is None else nodes.by_key(conn, after)
    before: list[tuple[str, str]] = []
    while row is not None:  # The call may be in the stored beginning of the list.
        before.insert(0, (row.message, row.body))
        parent = row.parent if row.role == RESULT else None
        row = None if parent is None else nodes.by_seq(conn, tree_id, parent)
    decoded = decode_stored([*before, *((message.id, message.body) for message in messages[:last])])
    return {n for n in new if follows_call(decoded[: len(before) + n + 1])}


def _location(place: Place) -> Location:
    return Location(place.key, place.written, place.state == State.ASIDE)
