"""SQL: the list rule: lists of messages stored in the tree, by the rule of `tree.lists.placing`.

`place_list` is the one function that stores a list: of a checkpoint, of a graph's node, of an agent, of a
chat history. A list of stored messages writes nothing.

A message that a list replaces under its id is *edited* if the list ends its old answers: it is asked again,
and the old version stays in the history with its answers. Otherwise it is *redacted*: nobody has answered the
old version, or its answers stay. A redaction holds in each branch of the conversation, and no reader returns
an earlier version of the message, except a checkpoint that contains it. Messages that a list has merged into
one (`tree.lists.merged`) are edited.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, select

from langchain_threadmem.common.visited import Visited
from langchain_threadmem.messages.codec import (
    UNREADABLE,
    USAGE,
    decode_stored,
    is_unreadable,
    without_usage,
)
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.tool_pairs import RESULT, follows_call
from langchain_threadmem.storage.schema import LAST_POSITION, POSITION_BITS, State, graft, node
from langchain_threadmem.storage.statements import BoundStatement, Conn, Statement, beside
from langchain_threadmem.tree import grafts, nodes, superseding, trees
from langchain_threadmem.tree.append import AT_NUMBER, TAKEN, TIP, NodeWriter, Parent
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.merged import MergedRun, lift_merged, merged_runs
from langchain_threadmem.tree.lists.placing import (
    Element,
    New,
    Planned,
    PlanStep,
    StoredPlace,
    Use,
    best,
    live_of,
    plan,
)
from langchain_threadmem.tree.lists.reused_ids import own_answers


class Location(NamedTuple):
    """The place of a message of a list.

    Attributes:
        key: Key of the node; 0 for an aside that is not stored.
        follows: Key of the node that the message was written under.
        aside: Whether the message is an aside.
    """

    key: int
    follows: int | None
    aside: bool


class NodePlace(NamedTuple):
    """The place of a node.

    Attributes:
        key: Key of the node.
        seq: Number of the node.
        parent: Number of its parent; `None` for a root.
    """

    key: int
    seq: int
    parent: int | None


class StoredList(NamedTuple):
    """A stored list.

    Attributes:
        locations: The place of each message.
        shared: As in `tree.lists.placing.ListPlan`.
        former: Whether a message of the list is superseded.
        written: The number of messages that were written.
        removed: Keys of the earlier versions of redacted messages, which leave the indexes.
        outdated: Whether a message of the list is an earlier version of a redacted message, or was removed.
        exact: Whether the stored nodes are the messages of the list, with all their parts, and no message is
            an aside that is not stored.
        added: The messages that were written.
        new_places: The places of the live nodes among them, by message id, in the order of their numbers.
        newest: The place of the message whose parent a selector has chosen, if it is the only place of the
            message and below that parent.
    """

    locations: list[Location]
    shared: int | None
    former: bool
    written: int = 0
    removed: Sequence[int] = ()
    outdated: bool = False
    exact: bool = True
    added: Sequence[nodes.MessageRow] = ()
    new_places: Mapping[str, NodePlace] = MappingProxyType({})
    newest: NodePlace | None = None


class Newest(NamedTuple):
    """A human message whose parent a selector has chosen.

    Attributes:
        message_id: Id of the message.
        parent: Number of the parent; `None` for a new root; `TIP` for the tip.
    """

    message_id: str
    parent: Parent


_WRITTEN = f"CASE WHEN n.key & {LAST_POSITION} = 0 THEN s.parent ELSE n.key - 1 END"
_MESSAGE = 3
"""The position of the message id in a row of `places_query`."""
_SELECT = f"SELECT n.key, {_WRITTEN}, g.parent, n.message, n.body, n.state, n.seq FROM threadmem_node n "
_OF_IDS = (
    f"{_SELECT}LEFT JOIN threadmem_segment s ON s.id = n.key >> {POSITION_BITS} "
    "LEFT JOIN threadmem_graft g ON g.key = n.key WHERE "
)
_PLACES = Statement.of(
    sqlite=f"{_OF_IDS}n.tree = ? AND n.message IN (SELECT value FROM json_each(?))",
    postgresql=f"{_OF_IDS}n.tree = %s AND "
    "n.message = ANY (ARRAY(SELECT json_array_elements_text(CAST(%s AS json))))",
)
_HAS_GRAFTS = exists().where(graft.c.tree == node.c.tree, graft.c.parent == node.c.key)
_STATE = Statement(
    select(*node.c["message", "role", "state", "seq"], TAKEN, _HAS_GRAFTS).where(
        node.c.key == bindparam("key")
    ),
    "key",
)


def find(conn: Conn, tree_id: int, messages: Sequence[EncodedMessage]) -> list[Location | None]:
    """The places of stored messages; `None` for messages that are not stored."""
    return places_from(conn, messages, conn.each(places_query(tree_id, messages))[0])


def places_query(tree_id: int, messages: Sequence[EncodedMessage]) -> BoundStatement:
    """The query for the places of messages."""
    return _PLACES, (tree_id, json.dumps([message.id for message in messages]))


def places_from(
    conn: Conn, messages: Sequence[EncodedMessage], rows: Sequence[tuple[Any, ...]]
) -> list[Location | None]:
    """The result of `find`, from the rows of `places_query`."""
    bodies = {message.id: message.body for message in messages}
    places = _places(conn, rows, messages, bodies, fills=False).by_id
    if not places:
        return [None] * len(messages)
    if len({message.id for message in messages}) < len(messages):
        same = ([place for place in places.get(m.id, ()) if place.content == m.body] for m in messages)
        return [None if place is None else _location(place) for place in map(best, same)]
    place_of = {place.key: place for stored in places.values() for place in stored}
    steps = plan(_elements(messages, (), bodies), places, None).steps
    keys = [step.copies if isinstance(step, New) else step.key for step in steps]
    return [None if key is None else _location(place_of[key]) for key in keys]


_HEAD_SIZE, _STATE_SIZE, _PARENT_SIZE = len(trees.Head._fields), 6, 5
"""The columns of `placement_query`: the head, those of `_STATE`, of `AT_NUMBER`, and of the places."""


class PlacementRows(NamedTuple):
    """The rows for the placing rule.

    Attributes:
        head: Head of the tree.
        places: Places of the messages.
        after: The preceding node.
        parents: The parent that a selector has chosen, by its number.
    """

    head: trees.Head
    places: Sequence[tuple[Any, ...]]
    after: Sequence[tuple[Any, ...]]
    parents: Mapping[int, tuple[Any, ...]] = MappingProxyType({})

    @property
    def message_ids(self) -> set[str]:
        """The ids of the messages that have a place."""
        return {row[_MESSAGE] for row in self.places}


def placement_query(
    tree_id: int, messages: Sequence[EncodedMessage], after: int | None, parent: Parent = TIP
) -> BoundStatement:
    """The query for the placing of a list, or of the messages after the node `after`.

    Args:
        tree_id: The tree.
        messages: The list, or its messages after a stored beginning.
        after: Key of the last message of the stored beginning.
        parent: The parent that a selector has chosen for one of the messages.
    """
    state = _STATE, (after if messages else None,)
    chosen = ((AT_NUMBER, (tree_id, parent)),) if isinstance(parent, int) else ()
    return beside(trees.head_query(tree_id), state, *chosen, places_query(tree_id, messages))


def placement_rows(rows: Sequence[tuple[Any, ...]], parent: Parent = TIP) -> PlacementRows:
    """The rows of `placement_query` for the same `parent`."""
    if not rows:
        raise trees.erased()
    first, chosen_at = rows[0], _HEAD_SIZE + _STATE_SIZE
    after, places_at = first[_HEAD_SIZE:chosen_at], chosen_at
    parents = {}
    if isinstance(parent, int):
        places_at += _PARENT_SIZE
        if first[chosen_at] is not None:
            parents[parent] = first[chosen_at:places_at]
    places = [row[places_at:] for row in rows if row[places_at] is not None]
    return PlacementRows(
        trees.Head(*first[:_HEAD_SIZE]), places, [after] if after[0] is not None else [], parents
    )


def place_list(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    now: float,
    *,
    after: int | None = None,
    beginning: Sequence[Location] = (),
    ending: Sequence[Location] = (),
    newest: Newest | None = None,
    otherwise: Parent = TIP,
    whole: bool = True,
    later: Mapping[str, int] = MappingProxyType({}),
    rows_read: PlacementRows | None = None,
) -> tuple[StoredList, trees.Head]:
    """Store a list of messages by the placing rule; the last message becomes the end of the active thread.

    Args:
        conn: A write transaction.
        tree_id: The tree, which is locked.
        messages: The list, or its messages after a stored beginning without a shared end (see
            `tree.lists.placing.ListPlan`); each id once.
        now: Time of the new rows, in seconds since 1970.
        after: Key of the last message of the stored beginning that is not an aside.
        beginning: The places of the stored beginning.
        ending: The stored places of the last of `messages` and of the messages that follow it in the list.
        newest: The message whose parent a selector has chosen. If it has a live place, it keeps that place.
        otherwise: The parent of the first message, if it is new and the list has no stored beginning.
        whole: Whether the list is to be read back as it is: its asides are stored, and its end becomes the
            end of the active thread even if the list adds no message.
        later: The hashes of the bodies that were stored after the list was made, by message id.
        rows_read: The rows for the placing, read after the tree was locked; `None` to read the rows here.

    Returns:
        The place of each message, and the new head of the tree. In addition to the new messages, one row is
        written, whatever the length of the list.
    """
    if rows_read is None:
        chosen_parent = TIP if newest is None else newest.parent
        query = placement_query(tree_id, messages, after, chosen_parent)
        rows_read = placement_rows(conn.each(query)[0], chosen_parent)
    head = rows_read.head
    contents = {
        message.id: message.body if whole or USAGE not in message.body else without_usage(message.body)
        for message in messages
    }
    places, emptied, bodies = _places(conn, rows_read.places, messages, contents, whole=whole)

    def is_before(key: int) -> bool:
        return any(location.key == key for location in beginning)

    merged: Mapping[int, MergedRun] = {}
    if places and (edited := _edited(messages, places, bodies)):
        merged = merged_runs(conn, tree_id, messages, edited, bodies, is_before)
        lift_merged(places, merged)
    own = own_answers(conn, tree_id, messages, places, after, is_before) if whole and places else {}
    if own:
        rows, of_own = (
            conn.each(places_query(tree_id, [*own.values()]))[0],
            {m.id: m.body for m in own.values()},
        )
        contents, places = contents | of_own, places | _places(conn, rows, [*own.values()], of_own).by_id
        messages = [one for n, given in enumerate(messages) for one in (own.get(n), given) if one]
    # Positions in the list with the answers of `own`, each before the answer that reuses its id.
    inserted = {n + before for before, n in enumerate(own)} if own else ()
    writer = _ListWriter(conn, tree_id, head, places, now, emptied, rows_read.parents, whole=whole)
    home = writer.home_of(after, rows_read.after) if messages else None
    chosen = {} if newest is None else {newest.message_id: writer.key_of(newest.parent)}
    results, exchange = _results(conn, tree_id, messages, places, after, rows_read.after)
    results = {*results, *inserted} if own else results
    if results or exchange:
        after_results = [*[n + 1 for n in results], *([0] if exchange else [])]
        _lift(conn, tree_id, places, {messages[n].id for n in after_results})
    planned = plan(
        _elements(messages, results, contents, {n + 1 for n in inserted} if own else ()),
        places,
        writer.key_of(otherwise),
        after=after,
        home=home,
        is_before=is_before,
        chosen=chosen,
        beside=exchange,
        later=later,
    )
    if ending:
        last = planned.steps[-1]
        if isinstance(last, New) or last.key != ending[0].key:
            all_messages = [*messages, *_encoded(conn, ending[1:])]
            return place_list(conn, tree_id, all_messages, now, after=after, beginning=beginning, later=later)
    placed = [*writer.apply(planned.steps, messages), *ending[1:]]
    writer.apply_edits(beginning, placed, merged)
    locations = [at for n, at in enumerate(placed) if n not in inserted] if own else placed
    end = writer.end_of(None if ending else planned.home, locations, after)
    written = len(writer.added)
    stays = not written and not whole and newest is None
    head = writer.finish(head.tip if end is None or stays else end)
    outdated = State.REMOVED in writer.states
    former = outdated or State.SUPERSEDED in writer.states
    # A list with an answer that reuses its id is placed again when it grows.
    shared = planned.shared
    if own:
        shared = min(own) if shared is None else min(shared, *own)
    exact = whole or _is_exact(bodies, messages, locations)
    stored = StoredList(
        *(locations, shared, former, written, writer.removed, outdated, exact, writer.added),
        new_places=writer.new_places,
        newest=None if newest is None else writer.place_below(newest),
    )
    return stored, head


class _ListWriter:
    """Writes the new nodes of a list to a tree and changes the stored nodes that they replace or move."""

    def __init__(
        self,
        conn: Conn,
        tree_id: int,
        head: trees.Head,
        places: Mapping[str, Sequence[StoredPlace]],
        now: float,
        emptied: Collection[int],
        parents: Mapping[int, tuple[Any, ...]],
        *,
        whole: bool,
    ) -> None:
        self._conn = conn
        self._tree = tree_id
        self._head = head
        self._places = places
        self._place_of: dict[int, StoredPlace] = {}
        self._seqs: dict[int, int | None] = {}
        for stored in places.values():
            for place in stored:
                self._place_of[place.key] = place
                if place.state != State.REMOVED:
                    self._seqs[place.key] = place.seq
        self._now = now
        self._emptied = emptied
        self._whole = whole
        self._system = head.system
        self._grafted: dict[int, bool] = {}  # whether a node has grafts, by key
        self._new: list[int] = []
        self._locations: list[Location] = []
        self._changed = False  # whether the state or the place of a stored node has changed
        self._nodes = NodeWriter(conn, tree_id, head)
        self._nodes.read |= parents
        self._parents: dict[Parent, int | None] = {}  # the keys of parents, by the number of the parent
        self._versions: dict[int, int] = {}  # the new version, by the key of the replaced node
        self._answers: dict[
            int, int
        ] = {}  # the new version, by the key of a moved answer to the replaced node
        self.new_places: dict[str, NodePlace] = {}
        self.removed: list[int] = []
        self.added: list[nodes.MessageRow] = []
        self.states: set[State] = set()
        """The states of the stored nodes of the list before the write; of new nodes if they are removed."""

    def place_below(self, newest: Newest) -> NodePlace | None:
        """See `StoredList.newest`."""
        parent, stored = self.key_of(newest.parent), self._places.get(newest.message_id, ())
        number = None if parent is None else self._seq(parent)
        added = self.new_places.get(newest.message_id)
        if added is not None:
            return added if not stored and added.parent == number else None
        if len(stored) != 1 or self._changed or stored[0].state != State.LIVE or stored[0].parent != parent:
            return None
        return NodePlace(stored[0].key, stored[0].seq, number)

    def key_of(self, parent: Parent) -> int | None:
        """The key of the parent of new nodes; `None` for a root."""
        if parent is TIP:
            return self._head.tip
        if parent not in self._parents:
            key, seq = self._nodes.under(parent)
            if key is not None and seq is not None:
                self._seqs[key] = seq
            self._parents[parent] = key
        return self._parents[parent]

    def home_of(self, key: int | None, rows: Sequence[tuple[Any, ...]]) -> int | None:
        """The home of a node, see `tree.lists.placing`; `None` for a former version.

        `rows` contains the row of the node from `placement_query`; if the node is not live, more rows are
        read.
        """
        home: int | None = None
        visited = Visited()
        while key is not None:
            rows = rows or self._conn.all(_STATE, key)
            assert rows, f"node {key} is missing"
            message, role, state, seq, is_taken, has_grafts = rows[0]
            rows = ()
            if state == State.LIVE:
                self._seqs[key] = seq
                if home is None:
                    self._nodes.taken[key], self._grafted[key] = bool(is_taken), bool(has_grafts)
                return key if home is None else home
            visited.add(key)
            if role == "system" and home is not None:
                return (
                    home  # A new version of a system message makes no new versions of the messages after it.
                )
            listed = [EncodedMessage(message, "", role)]
            (found,) = self._conn.each(places_query(self._tree, listed))
            places = _places(self._conn, found, listed, {message: ""}, fills=False).by_id[message]
            own = next(place for place in places if place.key == key)
            same = (place for place in places if place.content == own.content)
            live = live_of(places if state == State.REMOVED else same)
            if live is None:
                return None
            home, key = live if home is None else home, own.parent
        return home

    def apply(self, steps: Sequence[PlanStep], messages: Sequence[EncodedMessage]) -> list[Location]:
        """Apply the steps of a plan; returns the place of each message."""
        for step, message in zip(steps, messages, strict=True):
            if isinstance(step, Use):
                if self._whole and step.key in self._emptied:  # A checkpoint contains the message.
                    superseding.fill(self._conn, [(step.key, message.id, message.body)])
                place = self._place_of[step.key]
                self.states.add(place.state)
                self._locations.append(_location(place))
                continue
            parent = self._key(step.parent)
            if isinstance(step, New):
                if step.state == State.REMOVED:
                    self.states.add(step.state)
                self._locations.append(self._add(step, parent, message))
                continue
            assert parent is not None
            above = steps[step.parent.index] if isinstance(step.parent, Planned) else None
            is_version = isinstance(above, New) and not above.beside
            self._graft(step.key, parent, is_answer=is_version and message.role not in ("human", "system"))
            self._locations.append(_location(self._place_of[step.key]))
        return self._locations

    def _key(self, node: int | Planned | None) -> int | None:
        return self._locations[node.index].key if isinstance(node, Planned) else node

    def _add(self, new: New, parent: int | None, message: EncodedMessage) -> Location:
        """Write a message and supersede the node that it replaces, since a message has one live place."""
        aside, number = new.state == State.ASIDE, self._nodes.newest + 1
        if aside and not self._whole:
            return Location(0, parent, aside)
        under = None if parent is None else self._seq(parent)
        beside = aside or new.supersedes is not None or new.copies is not None or new.beside
        if parent is not None and parent not in self._new and not beside:
            self._supersede_answers(parent, message.role)
        if new.supersedes is not None:
            self._supersede([new.supersedes], number)
        created, by = self._now, None
        if new.copies is not None:
            original = nodes.by_keys(self._conn, [new.copies])[0]
            created, by = original.created, original.superseded_by or original.seq
        is_removed = new.state == State.REMOVED
        key = self._nodes.add(
            *(parent, under, message.id, message.role, message.body, created, int(new.state), by),
            separate=aside or is_removed,
        )
        self._seqs[key] = under if is_removed else number
        self._new.append(key)
        if new.state == State.LIVE:
            self.new_places[message.id] = NodePlace(key, number, under)
        self.added.append((message.id, message.body, message.role, key, int(new.state)))
        if new.supersedes is not None and message.role != "system":
            self._versions[new.supersedes] = key
        if message.role == "system" and new.state == State.LIVE:
            self._system = key
        return Location(key, parent, aside)

    def _graft(self, key: int, parent: int, *, is_answer: bool) -> None:
        """Move a stored message and its descendants under another node."""
        if is_answer:
            self._answers[key] = parent
        grafts.move(self._conn, self._tree, key, parent, self._number(parent))
        trees.changed(self._conn, self._tree)
        self._changed = True

    def _supersede(self, keys: Sequence[int], by: int) -> None:
        self._changed = True
        superseding.supersede(self._conn, self._tree, keys, by)

    def _supersede_answers(self, parent: int, role: str) -> None:
        """Supersede the AI and tool messages of a turn that gets a second answer; later turns stay."""
        if role in ("human", "system") or not self._has_children(parent):
            return
        number = self._seq(parent)
        if number is None:
            return
        old = nodes.answers(self._conn, self._tree, parent, number, lambda row: row.state == State.LIVE)
        if old:
            self._supersede([row.key for row in old], self._nodes.newest + 1)

    def _has_children(self, key: int) -> bool:
        if self._nodes.is_taken(key):
            return True
        if key not in self._grafted:
            self._grafted[key] = bool(grafts.below(self._conn, self._tree, [key]))
        return self._grafted[key]

    def apply_edits(
        self,
        beginning: Sequence[Location],
        locations: Sequence[Location],
        merged: Mapping[int, MergedRun],
    ) -> None:
        """Supersede the answers to edited messages, and remove the earlier versions of redacted messages.

        As in `ChatMemory.edit`, the answers are the AI and tool messages of the turn; later turns stay. If
        the list continues below the replaced message, the message is redacted, although a program may have
        trimmed its answers from the list.

        Args:
            beginning: The places of the stored beginning of the list.
            locations: The places of the other messages.
            merged: The messages that are merged into replaced messages, see `merged_runs`.
        """
        if not (self._versions or self._answers):
            return
        listed = {location.key for location in (*beginning, *locations)}
        edited: set[int] = set()
        for key, run in merged.items():
            if (merging := self._versions.get(key)) is not None:
                self._supersede(run.keys, self._number(merging))
                edited.add(merging)
        for key, version in (*self._versions.items(), *self._answers.items()):
            if (old := self._answers_outside(key, listed)) and not self._continues(key):
                self._supersede(old, self._number(version))
                edited.add(version)
        redacted = {key: version for key, version in self._versions.items() if version not in edited}
        if redacted:
            self._nodes.flush()
        for key, version in redacted.items():
            stored = self._places[self._place_of[key].message_id]
            old = [place.key for place in stored if place.state != State.REMOVED]
            superseding.redact(
                *(self._conn, self._tree, old, version, self._number(version)), empties=not self._whole
            )
            self.removed += old

    def _continues(self, key: int) -> bool:
        """Whether the last stored message of the list is below a node."""
        last = next((here.key for here in reversed(self._locations) if here.key in self._place_of), None)
        return last is not None and last != key and nodes.contain(nodes.spans(self._conn, last), key)

    def _answers_outside(self, key: int, listed: Collection[int]) -> list[int]:
        """The live answers to a replaced or moved message that the list does not contain."""
        replaced = self._versions.keys() | self._answers.keys()
        number = self._place_of[key].seq
        rows = nodes.answers(self._conn, self._tree, key, number, lambda row: row.key not in replaced)
        return [row.key for row in rows if row.state == State.LIVE and row.key not in listed]

    def _number(self, key: int) -> int:
        number = self._seq(key)
        assert number is not None, f"node {key} is removed"
        return number

    def _seq(self, key: int) -> int | None:
        """The number that children of a node have as their parent: that of the nearest node not removed."""
        if key not in self._seqs:
            row = self._conn.one(_STATE, key)
            assert row is not None, f"node {key} is missing"
            _, _, state, seq, *_ = row
            is_hidden = state in nodes.HIDDEN
            self._seqs[key] = nodes.remaining(self._conn, self._tree, seq) if is_hidden else seq
        return self._seqs[key]

    def end_of(
        self, home: int | Planned | None, locations: Sequence[Location], after: int | None
    ) -> int | None:
        """The key of the node in which the active thread ends after the list."""
        if home is not None and locations:
            return self._key(home)
        return next((location.key for location in reversed(locations) if not location.aside), after)

    def _stored_end(self, key: int | None) -> int | None:
        """The key of a node, of the live version that replaced it, or of the nearest remaining ancestor."""
        if key is None or key in self._new or (key == self._head.tip and not self.removed):
            return key
        row = self._conn.one(_STATE, key)
        assert row is not None, f"node {key} is missing"
        return self._nodes.under(row[3])[0] if row[2] == State.REMOVED else key

    def finish(self, tip: int | None) -> trees.Head:
        """Write the rows and the end of the active thread, and return the new head of the tree."""
        before = after = self._head
        self._nodes.flush()
        tip = self._stored_end(tip)
        if self._changed:
            after = trees.head(self._conn, self._tree)
            if self._system == before.system:  # another node may have replaced it
                self._system = after.system
        if not self._new and tip == before.tip:
            return after
        follows = not before.pinned and tip == (self._new[-1] if self._new else before.tip)
        if not follows or self._system != after.system:
            trees.set_head(self._conn, self._tree, tip, self._system)
        return after


class _FoundPlaces(NamedTuple):
    """The places of messages.

    Attributes:
        by_id: The places, by message id.
        emptied: The keys of the removed places that are those of the messages, but have no body any more.
        bodies: The stored bodies, by key.
    """

    by_id: dict[str, list[StoredPlace]]
    emptied: set[int]
    bodies: dict[int, str]


def _places(
    conn: Conn,
    rows: Sequence[tuple[Any, ...]],
    messages: Sequence[EncodedMessage],
    contents: Mapping[str, str],
    *,
    whole: bool = True,
    fills: bool = True,
) -> _FoundPlaces:
    """The places of messages.

    Args:
        conn: A transaction.
        rows: The rows of `places_query`.
        messages: The messages.
        contents: The parts of their bodies that are compared, by message id.
        whole: As for `place_list`.
        fills: Whether a removed place without a body is a place of its message.
    """
    found = _FoundPlaces({}, set(), {})
    if not rows:
        return found
    given = {message.id: message.body for message in messages}
    seal = conn.seal
    for key, written, parent, message, stored, state, seq in rows:
        body = found.bodies[key] = stored if seal is None else seal.open_body(message, "", stored)
        own = given[message]
        if UNREADABLE in own and is_unreadable(own):
            body = own  # The list contains a placeholder for a stored message that cannot be read.
        if fills and state == State.REMOVED and superseding.empty_body(message, own) == body:
            body = own
            found.emptied.add(key)
        content = contents[message] if body == own else body if whole else without_usage(body)
        former = None if parent in (None, written) else written
        current_parent = written if former is None else parent
        place = StoredPlace(key, current_parent, message, content, State(state), former, seq)
        found.by_id.setdefault(message, []).append(place)
    return found


def _edited(
    messages: Sequence[EncodedMessage],
    places: Mapping[str, Sequence[StoredPlace]],
    bodies: Mapping[int, str],
) -> list[tuple[EncodedMessage, StoredPlace]]:
    """The messages whose live place has another body, with that place."""
    return [
        (message, place)
        for message in messages
        for place in places.get(message.id, ())
        if place.state == State.LIVE and bodies[place.key] != message.body
    ]


def _is_exact(
    bodies: Mapping[int, str], messages: Sequence[EncodedMessage], locations: Sequence[Location]
) -> bool:
    """Whether each message has a location with exactly its body; new messages have no stored body."""
    for location, message in zip(locations, messages, strict=False):
        if not location.key or bodies.get(location.key, message.body) != message.body:
            return False
    return True


def _encoded(conn: Conn, locations: Sequence[Location]) -> list[EncodedMessage]:
    row_of = {row.key: row for row in nodes.by_keys(conn, [place.key for place in locations])}
    rows = [row_of[place.key] for place in locations]
    return [EncodedMessage(row.message, row.body, row.role) for row in rows]


def _elements(
    messages: Sequence[EncodedMessage],
    results: Collection[int],
    contents: Mapping[str, str],
    apart: Collection[int] = (),
) -> list[Element]:
    return [
        Element(message.id, contents[message.id], message.role == "system", n in results, n in apart)
        for n, message in enumerate(messages)
    ]


def _results(
    conn: Conn,
    tree_id: int,
    messages: Sequence[EncodedMessage],
    places: Mapping[str, Sequence[StoredPlace]],
    after: int | None,
    after_rows: Sequence[tuple[Any, ...]],
) -> tuple[Collection[int], Collection[int]]:
    """The tool results that are directly after their calls and before a stored message.

    Returns:
        Their positions; and, if `after` is such a result, the keys of its call and of the results before it.
    """
    if not places:
        return (), ()
    last = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].id in places), -1)
    found = [n for n in range(last) if messages[n].role == RESULT and _is_apart(messages, places, n)]
    is_after_result = last >= 0 and bool(after_rows) and after_rows[0][1] == RESULT
    if not found and not (is_after_result and _live_parent(places, messages[0]) not in (None, after)):
        return (), ()
    row = None if after is None else nodes.by_key(conn, after)
    before: list[nodes.NodeRow] = []
    while row is not None:  # The call may be in the stored beginning of the list.
        before.insert(0, row)
        parent = row.parent if row.role == RESULT else None
        row = None if parent is None else nodes.by_seq(conn, tree_id, parent)
    stored = [
        *((row.message, row.body) for row in before),
        *((item.id, item.body) for item in messages[:last]),
    ]
    decoded = decode_stored(stored)
    positions = {
        n
        for n in found
        if not is_made_up(decoded[len(before) + n]) and follows_call(decoded[: len(before) + n + 1])
    }
    is_answer = len(before) > 1 and follows_call(decoded[: len(before)])
    return positions, {row.key for row in before[:-1]} if is_answer else ()


def _lift(conn: Conn, tree_id: int, places: dict[str, list[StoredPlace]], ids: Collection[str]) -> None:
    """Give the live places of messages below removed messages the nearest remaining message as parent."""
    for id_ in ids:
        stored = places.get(id_, [])
        for n, place in enumerate(stored):
            if place.state == State.LIVE and place.parent is not None:
                row = nodes.by_key(conn, place.key)
                above = None if row is None or row.parent is None else nodes.by_seq(conn, tree_id, row.parent)
                parent = None if above is None else above.key
                if parent != place.parent:
                    stored[n] = replace(place, parent=parent, former=place.written)


def _is_apart(
    messages: Sequence[EncodedMessage], places: Mapping[str, Sequence[StoredPlace]], n: int
) -> bool:
    """Whether a message is not stored, or the message after it is stored, but not below it."""
    own = places.get(messages[n].id)
    if own is None:
        return True
    return _live_parent(places, messages[n + 1]) not in (None, *(place.key for place in own))


def _live_parent(places: Mapping[str, Sequence[StoredPlace]], message: EncodedMessage) -> int | None:
    """Key of the parent of the live place of a message."""
    return next((place.parent for place in places.get(message.id, ()) if place.state == State.LIVE), None)


def _location(place: StoredPlace) -> Location:
    written = place.parent if place.former is None else place.former
    return Location(place.key, written, place.state == State.ASIDE)
