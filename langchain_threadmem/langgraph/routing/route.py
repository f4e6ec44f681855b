"""Routing of LangGraph's message lists to threads of the tree.

A graph passes its whole list of messages at every step, and a saver may store the newest of them below the
old tip, before or after. So no function of this module depends on the order of writes: stored messages are
found by their ids, other messages are appended, and a message in the wrong place is moved as by `place`.
Every function is idempotent.

A run continues the turns of its own branch, and the turns that no run of a graph has stored.
`tree.turn_branches` records the turns of other branches.

A human message is *routed* once. It counts as routed if a run began a turn with it, if a selector has placed
it below another message than the one before it in the list, if it has an answer or replaces another message,
or if the graph's state contains its id (`routed`). The human messages before a routed message are routed,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from typing_extensions import TypedDict

from langchain_threadmem.common.ranges import Range, within
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.index.latest_vectors import stored_now
from langchain_threadmem.langgraph._system import NO_LINEAGE, Lineage
from langchain_threadmem.langgraph.routing.events import (
    MoveEvent,
    Placed,
    SelectionEvent,
    StoredThread,
    move_event,
    selection_event,
)
from langchain_threadmem.langgraph.routing.store_messages import (
    ListWrite,
    is_unseen_after,
    newest_turn,
    prepare,
    recognised,
    spoken_of,
    start_of_turn,
    store,
    store_branch,
    store_spoken,
    write_list,
)
from langchain_threadmem.messages.codec import decode_stored, encode
from langchain_threadmem.messages.prompt import newest_human, shown, without_empty_answers
from langchain_threadmem.messages.roles import ANSWERING
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.selection import coverage
from langchain_threadmem.selection.moves import corrections, heal
from langchain_threadmem.selection.prompts.runners_up import ThreadRead, read_thread
from langchain_threadmem.selection.run_selector import (
    EVERYTHING,
    Past,
    Selected,
    ThreadedConversation,
    parent_if_emptied,
    select,
)
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import BoundStatement, Conn, beside
from langchain_threadmem.tree import branches, nodes, revise, trees, turn_branches
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.append import TIP, NodeWriter
from langchain_threadmem.tree.conversation import read_in_tree, tree_of
from langchain_threadmem.tree.lists.list_cache import PreparedList
from langchain_threadmem.tree.lists.stored_lists import Newest, NodePlace, StoredList
from langchain_threadmem.tree.nodes import NodeRow


class ActiveThread(TypedDict):
    """The active thread of a graph, and the reason; plain values for a checkpoint or a user interface.

    Attributes:
        message_id: Id of the human message that was routed.
        node_id: Number of its node.
        parent_id: Number of the node that it continues; `None` if it began a thread.
        reason: The reason for its place, in a few words.
    """

    message_id: str
    node_id: int
    parent_id: int | None
    reason: str


class Routed(NamedTuple):
    """The place of the newest human message of a list.

    Attributes:
        thread: Its place and the reason.
        path: The thread down to it.
        messages: The list rewritten to that thread, and to the runners-up of `coverage` if they are wanted;
            `None` if the list is unchanged.
        event: The event of the selection; `None` if the message already had a place.
        moves: The events of the earlier turns that were moved in the same transaction.
    """

    thread: ActiveThread
    path: StoredThread
    messages: list[BaseMessage] | None
    event: SelectionEvent | None = None
    moves: Sequence[MoveEvent] = ()


class Kept(NamedTuple):
    """The place of a message that no selector was asked for.

    Attributes:
        reason: The reason, in a few words.
    """

    reason: str


_HISTORY_SIZE = len(turn_branches.EarlierTurns._fields)
UNDER_WAY = Kept("the turn is under way")
NEW_VERSION = Kept("it is a new version of a message")
IN_PLACE = Kept("it has its place already")


def route(
    conversation: ThreadedConversation,
    given: Sequence[BaseMessage],
    routed: str | None = None,
    lineage: Lineage = NO_LINEAGE,
    suggest_at: float | None = None,
    covers: bool = True,
) -> Flow[Routed | None]:
    """Find the thread of the newest human message, and store the new messages of the list.

    Args:
        conversation: The conversation; its selector chooses the place of a message that is not routed yet.
        given: The list in the graph's state.
        routed: Id of the human message that was routed last, in the graph's state.
        lineage: The branch that the run continues.
        suggest_at: The minimum probability with which another place is suggested, while the message continues
            the active thread; `None` to put it in the place that the selector chooses.
        covers: Whether the rewritten list includes the runners-up, by the option `cover` of the conversation.

    Returns:
        The thread; `None` if the list contains no human message, or if its newest human message is not stored
        and an answer to the message is: the message was purged, or its id has changed.

    Raises:
        SelectionError: The selector failed, and `on_selection_failure` is "raise".
    """
    spoken = spoken_of(given)
    newest = newest_human(spoken)
    if newest is None:
        return None
    sent = spoken
    if routed is None:
        spoken, newest = yield from recognised(conversation, spoken, newest)
    found = None
    while found is None:  # If the conversation is emptied after the write, the message is stored again.
        if any(message.type in ANSWERING for message in spoken[newest:]):
            stored = yield from store(conversation, spoken, routed)
            outcome: Placed | Kept = UNDER_WAY
        else:
            outcome, stored = yield from _route(
                conversation, spoken, newest, routed, lineage, suggest_at is not None
            )
        place = outcome.place_of(spoken[newest]) if isinstance(outcome, Placed) else None
        found = yield from _stored(conversation, spoken, newest, place)
        if found is not None:
            break
        if stored.outdated or (yield from _is_any_stored(conversation, spoken[newest + 1 :])):
            return None
    seq, parent, path, shows, read = found
    shows = shows and not stored.outdated
    if shows and spoken is sent:
        rewritten = [message for message in given if not isinstance(message, RemoveMessage)]
    else:
        system_messages = [message for message in given if isinstance(message, SystemMessage)]
        rewritten = [*system_messages, *(spoken[:newest] if shows else path.messages[:-1]), *spoken[newest:]]
    if conversation.window is not None:
        earlier = spoken[:newest] if shows else path.messages[:-1]
        view = {message.id for message in shown(earlier, spoken[newest:], conversation.window)}
        outside = {message.id for message in earlier} - view
        rewritten = [message for message in rewritten if message.id not in outside]
    # Providers refuse an answer without content; its node stays in the tree.
    rewritten = without_empty_answers(whole_exchanges(rewritten))
    if covers:
        rewritten = yield from coverage.covered(conversation, rewritten, read=read)
    is_unchanged = not stored.outdated and [new.id for new in rewritten] == [old.id for old in given]
    event, moved = None, list[MoveEvent]()
    if isinstance(outcome, Placed):
        event = selection_event(conversation.name, outcome, path, suggest_at)
        moved = [move_event(conversation.name, turn) for turn in outcome.moved]
    reason = outcome.selected.reason if isinstance(outcome, Placed) else outcome.reason
    return Routed(
        ActiveThread(message_id=str(spoken[newest].id), node_id=seq, parent_id=parent, reason=reason),
        path,
        None if is_unchanged else rewritten,
        event,
        moved,
    )


class _ThreadOfNewest(NamedTuple):
    """A stored message of a list.

    Attributes:
        seq: Number of its node.
        parent: Number of the parent; `None` for a root.
        path: The thread down to it.
        shows: Whether the list shows them.
        read: The thread, for its blocks.
    """

    seq: int
    parent: int | None
    path: StoredThread
    shows: bool
    read: ThreadRead


def _stored(
    conversation: ThreadedConversation, spoken: Sequence[BaseMessage], newest: int, place: NodePlace | None
) -> Flow[_ThreadOfNewest | None]:
    """Read the thread of a message of a list; `None` if the message is not stored.

    `place` is the place of the message, if it was just stored.
    """
    tree, message_id = (yield from tree_of(conversation)), str(spoken[newest].id)

    def read(conn: Conn) -> tuple[NodePlace, list[tuple[str, str, str]], bool, ThreadRead] | None:
        at = place
        if at is None:
            row = nodes.by_message(conn, tree, message_id)
            at = None if row is None else NodePlace(row.key, row.seq, row.parent)
        found = None if at is None else read_thread(conn, tree, at.key)
        if at is None or found is None:
            return None
        thread, path = found
        return at, path, _shows(conn, tree, spoken[:newest], [id_ for id_, *_ in path]), thread

    if (found := (yield from Sql(read))) is None:
        return None
    at, path, shows, thread = found
    stored = StoredThread(path, conversation.runtime.resources.parts.read)
    return _ThreadOfNewest(at.seq, at.parent, stored, shows, thread)


def _is_any_stored(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[bool]:
    tree = yield from tree_of(conversation)
    ids = [str(message.id) for message in messages]
    return (yield from Sql(lambda conn: any(nodes.by_message(conn, tree, id_) for id_ in ids)))


def _route(
    conversation: ThreadedConversation,
    spoken: Sequence[BaseMessage],
    newest: int,
    routed: str | None,
    lineage: Lineage,
    suggest: bool,
) -> Flow[tuple[Placed | Kept, StoredList]]:
    """Place an unanswered human message, and the human messages right before it.

    Returns:
        The place of the first of them, or the reason if all of them already have places; and the stored list.
    """
    write_value, start = conversation.runtime.resources.parts.keep, start_of_turn(spoken, newest)
    earlier = list(spoken[:start])
    unchecked: PreparedList | None = None
    following, last = list(spoken[start:]), newest - start
    chunks: Sequence[bytes] = ()
    found: tuple[int, int | None, Past, int] | None = None

    def read(
        conn: Conn, tree: int, before: Sequence[BaseMessage]
    ) -> tuple[int, int | None, Past, int] | None:
        spoken, start = [*before, *following], len(before)
        newest = start + last
        known = _read_known(conn, tree, spoken, newest, lineage)
        if unchecked is not None and not unchecked.is_current(tree, known.head):
            return None
        first, at = newest + 1, known.places[0].seq if len(known.places) == 1 else 0
        while first > start:
            places = known.places_of(conn, tree, str(spoken[first - 1].id))
            # A person may say a message again that was removed.
            is_removed = bool(places) and all(place.state in nodes.HIDDEN for place in places)
            if spoken[first - 1].id == routed and not is_removed:
                break
            if places and not is_removed and _is_routed(conn, tree, spoken[:first], write_value):
                break
            first -= 1
        if first > newest:
            return first, None, EVERYTHING, at
        unrouted = range(first, newest + 1)
        return first, *_past(conn, tree, spoken, unrouted, routed, lineage, known, write_value), at

    if earlier:
        given, prepared = earlier, prepare(conversation, earlier)
        unchecked = prepared if prepared.is_cached and not lineage.rewound else None
        if unchecked is None:
            then = None if lineage.rewound else read
            earlier, _, found = yield from store_spoken(conversation, earlier, routed, prepared, then)
        if earlier is given:
            chunks = prepared.chunks
    if lineage.rewound:
        yield from _revive(conversation, earlier)
    spoken, newest = [*earlier, *following], len(earlier) + last
    if found is None:
        found = yield from read_in_tree(conversation, lambda conn, tree: read(conn, tree, earlier))
    if found is None:  # Another writer changed the tree.
        yield from store(conversation, earlier, routed)
        return (yield from _route(conversation, spoken, newest, routed, lineage, suggest))
    first, began, past, at = found
    if first > newest:
        # A stored message with other content is a new version, which has the place of the old version.
        stored = yield from store(conversation, spoken[: newest + 1], str(spoken[newest].id))
        yield from _keep_in_thread(conversation, spoken[:newest], str(spoken[newest].id), lineage)
        branch = lineage if lineage.rewound else lineage._replace(replaced=str(spoken[newest].id))
        yield from store_branch(conversation, spoken[: newest + 1], branch)
        return NEW_VERSION if stored.written else IN_PLACE, stored
    selected = yield from select(conversation, spoken[newest], past, suggest)

    queries = _Queries(conversation.tree, selected, began, lineage, at)

    def work(write: ListWrite) -> tuple[Placed, StoredList]:
        return _place(conversation, write, spoken[first : newest + 1], queries)

    prepared = prepare(conversation, spoken[: newest + 1], chunks)
    placed, stored = yield from write_list(conversation, prepared, work, selected.parent, queries.all)
    stored_now(conversation.runtime, selected.vectors)
    selected = placed.selected
    if (
        selected.turns is not None
        and selected.placement is not None
        and placed.place.parent == selected.parent
    ):
        selected.turns.explain(placed.place.seq, selected.placement)
    return placed, stored


def _keep_in_thread(
    conversation: ThreadedConversation, before: Sequence[BaseMessage], message_id: str, lineage: Lineage
) -> Flow[None]:
    """Move a new version to the thread of the version before it, if the list is another thread.

    The list of a graph with a node is the thread of its last question, and the list rule puts a new version
    below the end of the list if it does not contain the parent of the former version.
    """
    tree, write_value = conversation.tree, conversation.runtime.parts.keep
    listed = {message.id for message in before}

    def read(conn: Conn) -> tuple[int, int] | None:
        new, places = nodes.by_message(conn, tree, message_id), nodes.places(conn, tree, message_id)
        replaced = [place.key for place in places if place.superseded_by is not None]
        if new is None or new.state != State.LIVE or not replaced:
            return None
        rows = [row for row in nodes.with_removed(conn, replaced) if row.body != new.body]
        if not rows or rows[-1].parent in (None, new.parent):
            return None
        end = nodes.by_seq(conn, tree, rows[-1].parent)
        if end is None or end.state != State.LIVE or end.message in listed:
            return None
        below = nodes.children(conn, tree, [(new.key, new.seq)])
        if below or stored_placements.by_key(conn, new.key) is not None:
            return None
        since = newest_turn(conn, tree, before, lineage.thread, write_value) or 0
        hidden = turn_branches.unseen(conn, tree, lineage.thread, since) if since or lineage.rewound else ()
        return None if _is_hidden(conn, tree, end, hidden) else (new.seq, end.seq)

    def move(conn: Conn) -> None:
        trees.lock(conn, tree)
        found = read(conn)
        if found is not None:
            revise.place_turn(conn, tree, *found, None)

    if (yield from Sql(read)) is not None:
        yield from Sql(move, write=True)


class _Queries(NamedTuple):
    """The selection for a new message, and the queries that the write of the message needs.

    Attributes:
        tree: The tree; `NO_TREE` if the write creates it.
        selected: The selection.
        since: The first node of the turn that the run continues.
        lineage: The branch that the run continues.
        at: Number of the node of the message, if it has one place; else 0.
    """

    tree: int
    selected: Selected
    since: int | None
    lineage: Lineage
    at: int

    @property
    def all(self) -> list[BoundStatement]:
        """The query whose rows `_place` takes: for the history of the turn, beside the places of vectors."""
        if not self.tree:
            return []
        vectors = self.selected.vectors
        history = turn_branches.history_query(self.tree, self.lineage.thread, self.since, self.at)
        return [history if vectors is None else beside(history, vectors.places_query())]


def _place(
    conversation: ThreadedConversation,
    write: ListWrite,
    new: Sequence[BaseMessage],
    queries: _Queries,
) -> tuple[Placed, StoredList]:
    """Store a list whose last messages are new, the first of them below the selected parent."""
    conn, tree, head = write.conn, write.tree, write.head
    _, selected, since, lineage, at = queries
    if not trees.keeps_numbers((tree, head.epoch), selected.chosen_in):
        # The conversation was emptied meanwhile, so the selection names and quotes removed messages.
        parent = write.otherwise = parent_if_emptied(conversation)
        reason = "starts a new thread" if parent is None else "continues the active thread"
        selected, since, write.also = Selected(parent, reason), None, ()
    elif selected.version not in (None, head.version):
        selected = selected._replace(placement=selected.unquoted())
    active, parent, message_id = selected.active, selected.parent, str(new[0].id)
    if active is TIP:
        active = _tip_before(conn, tree, head, {str(message.id) for message in new})
    moved = heal.move(conn, tree, selected.moves, selected.chosen_in)
    if moved:
        write.rows_read, write.also = None, ()
    if selected.vectors is not None:
        if write.also:
            rows = [row[_HISTORY_SIZE:] for row in write.also[0]]
        else:
            (rows,) = conn.each(selected.vectors.places_query())
        selected.vectors.store(conn, rows)
    stored = write.place(Newest(message_id, parent))
    here: NodeRow | NodePlace | None = stored.newest
    history = None
    if here is None:
        here, stored = _placed_before(conversation, write, message_id, selected, stored)
        first = nodes.first_version(conn, tree, message_id) or here.seq
    else:
        first = here.seq
        if write.also and (here.seq == at or message_id in stored.new_places):
            history = turn_branches.earlier_turns(write.also[0])
        if parent is not TIP and selected.placement is not None:
            stored_placements.put(conn, [(here.key, message_id, selected.placement)])
    is_unseen = is_unseen_after(conn, tree, lineage)
    turn_branches.begin(conn, tree, lineage.thread, first, since, is_unseen, history)
    place = NodePlace(here.key, here.seq, here.parent)
    return Placed(new[0], place, active, selected, moved), stored


def _placed_before(
    conversation: ThreadedConversation,
    write: ListWrite,
    message_id: str,
    selected: Selected,
    stored: StoredList,
) -> tuple[NodeRow, StoredList]:
    """The node of a new message that was stored before, in another place or meanwhile, below its parent."""
    conn, tree, parent = write.conn, write.tree, selected.parent
    here = nodes.by_message(conn, tree, message_id)
    if here is None:  # The message was removed, and a checkpoint that contains it is cached.
        write.replace(write.prepared.without_base(conversation.runtime.resources.parts.keep))
        stored = write.place(Newest(message_id, parent))
        here = nodes.by_message(conn, tree, message_id)
    assert here is not None, f"message {message_id!r} was just stored"
    if parent is not TIP:
        _, parent = NodeWriter(conn, tree, write.head).under(parent)  # It may have been purged meanwhile.
        # Another writer may have stored the message below the old tip.
        at_root = parent is None and _above(conn, tree, here.parent) is None
        if here.parent != parent and not at_root:
            here, _ = revise.place_turn(conn, tree, here.seq, parent, selected.placement)
        elif here.parent == parent and selected.placement is not None:
            stored_placements.put(conn, [(here.key, message_id, selected.placement)])
    return here, stored


def thread_to(conversation: ThreadedConversation, message_id: str) -> Flow[list[BaseMessage]]:
    """The messages from the root to a stored message, without system messages; empty if it is not stored."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[tuple[str, str, str]]:
        row = nodes.by_message(conn, tree, message_id)
        return [] if row is None else _path(conn, row.key)

    return decode_stored((yield from Sql(read)), other=conversation.runtime.resources.parts.read)


def _path(conn: Conn, key: int) -> list[tuple[str, str, str]]:
    """Message id, body and role of the nodes from the root to a node, without system messages."""
    return [row[:3] for row in nodes.thread_messages(conn, key) if row[2] != "system"]


class _NewestRead(NamedTuple):
    """Rows about the newest human message of a list, which one round trip reads.

    Attributes:
        head: The head of the tree.
        message: Id of the message.
        places: Its places.
        end: Id of the message before it; `None` for the first message.
        last: The node of that message.
        turns: The rows of `turn_branches.newest_query`.
    """

    head: trees.Head
    message: str
    places: list[nodes.MessagePlace]
    end: str | None
    last: NodeRow | None
    turns: Sequence[tuple[Any, ...]]

    def places_of(self, conn: Conn, tree: int, message: str) -> list[nodes.MessagePlace]:
        """The places of this or of another message."""
        return self.places if message == self.message else nodes.places(conn, tree, message)

    def node_of(self, conn: Conn, tree: int, message: str) -> NodeRow | None:
        """The node of the message before it, or of another message."""
        return self.last if message == self.end else nodes.by_message(conn, tree, message)


def _read_known(
    conn: Conn, tree: int, spoken: Sequence[BaseMessage], newest: int, lineage: Lineage
) -> _NewestRead:
    message, end = str(spoken[newest].id), str(spoken[newest - 1].id) if newest else None
    if not tree:
        return _NewestRead(trees.head(conn, tree), message, [], end, None, ())
    rows, turns, *last = conn.each(
        beside(trees.head_query(tree), nodes.places_query(tree, message)),
        turn_branches.newest_query(tree, lineage.thread),
        *([] if end is None else [nodes.versions_query(tree, end)]),
    )
    before, size = nodes.versions_from(conn, last[0]) if last else [], len(trees.Head._fields)
    return _NewestRead(
        trees.head_of(rows),
        message,
        [nodes.MessagePlace(*row[size:]) for row in rows if row[size] is not None],
        end,
        before[0] if before else None,
        turns,
    )


def _past(
    conn: Conn,
    tree: int,
    spoken: Sequence[BaseMessage],
    unrouted: range,
    routed: str | None,
    lineage: Lineage,
    known: _NewestRead,
    write_value: WriteOpaque,
) -> tuple[int | None, Past]:
    """The first node of the turn that a run continues, if it is stored, and the messages that it has seen.

    `unrouted` are the positions of the human messages at the end of the list that are not routed.
    """
    head, new = known.head, [str(spoken[index].id) for index in unrouted]
    read_in = tree, head.epoch
    stored = [place.seq for message in new for place in known.places_of(conn, tree, message)]
    before = min(stored, default=head.next_seq)
    since = newest_turn(conn, tree, spoken[: unrouted.stop - 1], lineage.thread, write_value, known.turns)
    earlier = [str(message.id) for message in reversed(spoken[: unrouted.start])]
    last = None
    for message in earlier:
        if (last := known.node_of(conn, tree, message)) is not None:
            break  # The messages after it were removed.
    if last is not None and last.parent != since:
        # The question of the last turn may have been deleted from the list.
        since = max(_question_above(conn, tree, last) or 0, since or 0) or None
    if since is None:
        humans = (m.id for m in reversed(spoken[: unrouted.start]) if isinstance(m, HumanMessage))
        came_from = next(humans, None) or routed or next(iter(earlier), None)
        since = None if came_from is None else nodes.first_version(conn, tree, came_from)
    if since is None:
        if not lineage.rewound:
            return None, Past(before=before, read_in=read_in, head=head)  # The run has no stored turn.
        since = 0
    history_query = turn_branches.history_query(tree, lineage.thread, since)
    (history,) = conn.each(beside(history_query, nodes.key_query(head.tip)))
    hidden = turn_branches.unseen(conn, tree, lineage.thread, since, turn_branches.earlier_turns(history))
    end = None
    if hidden and last is not None and _is_seen(conn, tree, last, new, ()):
        end = last = _end_below(conn, tree, last, new, hidden)
    tips = [row[_HISTORY_SIZE:] for row in history if row[_HISTORY_SIZE] is not None]
    tip = _tip_before(conn, tree, head, new, nodes.versions_from(conn, tips), hidden, end)
    open_until = since if lineage.rewound else None
    seq = None if last is None else last.seq
    return since, Past(hidden, tip, seq, before, read_in, open_until, head)


def _question_above(conn: Conn, tree: int, row: NodeRow) -> int | None:
    """The number of the first version of the human message that a node answers, also if it was removed."""
    question = nodes.question_above(conn, row.key)
    return None if question is None else nodes.first_version(conn, tree, question)


def _revive(conversation: ThreadedConversation, given: Sequence[BaseMessage]) -> Flow[None]:
    """Make the answers of a list live, which may have been replaced after the checkpoint of the run."""
    tree = yield from tree_of(conversation)

    def former(conn: Conn) -> list[str]:
        ids = [str(message.id) for message in given if message.type == "ai"]
        rows = {id_: nodes.versions(conn, tree, id_) for id_ in ids}
        return [id_ for id_ in ids if {row.state for row in rows[id_]} == {State.SUPERSEDED}]

    for message_id in (yield from Sql(former)):
        yield from corrections.revive(conversation, message_id)


def _tip_before(
    conn: Conn,
    tree: int,
    head: trees.Head,
    new: Collection[str],
    tips: Sequence[NodeRow] | None = None,
    hidden: Sequence[Range] = (),
    end: NodeRow | None = None,
) -> int | None:
    """The end of the active thread before new messages, which a saver may have stored already.

    Args:
        conn: A transaction.
        tree: The tree.
        head: The head of the tree.
        new: The ids of the new messages.
        tips: The node at the tip, if the transaction has read it.
        hidden: The numbers of the nodes that the run does not see.
        end: The node in which the thread of the run's list ends, if the run does not see some nodes.
    """
    if tips is None:
        tips = nodes.versions_from(conn, conn.each(nodes.key_query(head.tip))[0])
    tip = tips[0] if tips else None
    if tip is None or tip.message not in new:
        return None if tip is None else tip.seq
    if end is None:
        before = (nodes.by_seq(conn, tree, seq) for seq in range(head.next_seq - 1, 0, -1))
        newest = next((row for row in before if _is_seen(conn, tree, row, new, hidden)), None)
        end = None if newest is None else _end_below(conn, tree, newest, new, hidden)
    return None if end is None else end.seq


def _end_below(conn: Conn, tree: int, row: NodeRow, new: Collection[str], hidden: Sequence[Range]) -> NodeRow:
    """The end of the thread that follows a node; a moved message has a higher number than those below it."""
    following: NodeRow | None = row
    visited = Visited()
    while following is not None:
        row = following
        visited.add(row.key)
        below = nodes.children(conn, tree, [(row.key, row.seq)])
        rows = (nodes.by_key(conn, child.key) for child in reversed(below))
        following = next((child for child in rows if _is_seen(conn, tree, child, new, hidden)), None)
    return row


def _is_seen(
    conn: Conn, tree: int, row: NodeRow | None, new: Collection[str], hidden: Sequence[Range]
) -> bool:
    """Whether a node is live, no new message, and not hidden."""
    if row is None or row.state != State.LIVE or row.message in new:
        return False
    return not _is_hidden(conn, tree, row, hidden)


def _is_hidden(conn: Conn, tree: int, row: NodeRow, hidden: Sequence[Range]) -> bool:
    """Whether the turn of a node began, in its first version, among hidden nodes."""
    if not within(hidden, row.seq):
        return False
    first = _question_above(conn, tree, row)
    return first is None or within(hidden, first)


def _is_routed(conn: Conn, tree: int, spoken: Sequence[BaseMessage], write_value: WriteOpaque) -> bool:
    """Whether the human message at the end of a list is stored in the place to which it was routed.

    The list itself implies a place below the message before it, or within the tool exchange before it, which
    may have grown. A list of one message implies no place: a saver stores the message below the tip. An
    edited message has the place of the message that it replaces.
    """
    message, index = spoken[-1], len(spoken) - 2
    above = {spoken[index].id if index >= 0 else None}
    while index > 0 and isinstance(spoken[index], ToolMessage):
        index -= 1
        above.add(spoken[index].id)
    rows = nodes.versions(conn, tree, str(message.id))
    if not rows:
        return False
    origin = nodes.first_version(conn, tree, str(message.id))
    if origin is not None and turn_branches.is_begun(conn, tree, origin):
        return True
    body = encode(message, write_value)
    is_version = any(row.body != body for row in rows)
    parent = _above(conn, tree, rows[0].parent)
    is_as_listed = (None if parent is None else parent.message) in above
    if any(row.role in ANSWERING for row in nodes.children(conn, tree, [(row.key, row.seq) for row in rows])):
        return True
    is_elsewhere = is_version or not is_as_listed
    if is_elsewhere and any(stored_placements.by_key(conn, row.key) for row in rows):
        return True
    own_keys = {row.key for row in rows}
    return index < 0 and any(
        version.key not in own_keys for version in branches.versions(conn, tree, rows[0])
    )


def _above(conn: Conn, tree: int, seq: int | None) -> NodeRow | None:
    """The node with a number, or the nearest node above it that is not a system message."""
    row = None if seq is None else nodes.by_seq(conn, tree, seq)
    visited = Visited()
    while row is not None and row.role == "system":
        visited.add(row.key)
        row = None if row.parent is None else nodes.by_seq(conn, tree, row.parent)
    return row


def _is_moved(conn: Conn, tree: int, message: str) -> bool:
    row = nodes.by_message(conn, tree, message)
    placement = None if row is None else stored_placements.by_key(conn, row.key)
    return placement is not None and placement.is_move


def _shows(conn: Conn, tree: int, before: Sequence[BaseMessage], path: Sequence[str]) -> bool:
    """Whether a list is the thread of its last human message and contains no message of another thread.

    A list that a program has trimmed or summarised still is its thread. A list that lacks a message above a
    moved message, and a list of the new human messages alone, are not.
    """
    if all(isinstance(message, HumanMessage) for message in before):
        return [message.id for message in before] == path[:-1]
    if (before[-1].id if before else None) != (path[-2] if len(path) > 1 else None):
        return False
    above = dict(zip(path, ["", *path[:-1]], strict=True))
    own_ids = [str(message.id) for message in before if message.id in above]
    for above_id, id_ in pairwise(["", *own_ids]):
        if above[id_] != above_id and _is_moved(conn, tree, id_):
            return False
    thread_ids = set(path)
    foreign = [str(message.id) for message in before if message.id not in thread_ids]
    return not any(row.state != State.ASIDE for id_ in foreign for row in nodes.versions(conn, tree, id_))
