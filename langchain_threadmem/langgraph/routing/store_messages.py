"""Storing the lists of graphs, agents and chat histories, by the list rule (`tree.lists.stored_lists`).

A graph passes its whole list of messages at every step. The beginning of a list that was stored before is
recognised by its fingerprints, so that a step costs as much as its new messages. Every function is
idempotent. Summaries, recalled text and system messages are not stored: no person, model or tool of the
conversation wrote them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import is_not
from typing import Any, Generic, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage

from langchain_threadmem.common.ranges import within
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.embed import embed_soon
from langchain_threadmem.index.latest_vectors import stored_now
from langchain_threadmem.index.removal import NOTHING_REMOVED, Removed, drop
from langchain_threadmem.langgraph._system import Lineage
from langchain_threadmem.messages.codec import decode_stored, encode, is_same_answer, messages_of, text_of
from langchain_threadmem.messages.ids import LONGEST_ID, identify, name_of, own_id
from langchain_threadmem.messages.prompt import newest_human
from langchain_threadmem.messages.quoting import is_made_up, without_blocks
from langchain_threadmem.messages.roles import ANSWERING, is_answer
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.selection.append import check_several, warn_of_reuse, with_own_ids
from langchain_threadmem.selection.moves import heal
from langchain_threadmem.selection.run_selector import (
    Selected,
    ThreadedConversation,
    parent_if_emptied,
    select,
)
from langchain_threadmem.selection.tree_view import add_written, turns
from langchain_threadmem.selection.turn_ends import Speech
from langchain_threadmem.storage.statements import BoundStatement, Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, superseding, trees, turn_branches
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.append import TIP, Parent, drafts_of
from langchain_threadmem.tree.conversation import created_tree_of, read_in_tree, tree_of
from langchain_threadmem.tree.lists import stored_lists
from langchain_threadmem.tree.lists.encoded import EncodedMessage
from langchain_threadmem.tree.lists.list_cache import CachedList, ListCache, PreparedList
from langchain_threadmem.tree.lists.stored_lists import Newest, PlacementRows, StoredList, place_list
from langchain_threadmem.tree.node import ConversationNode
from langchain_threadmem.tree.trees import TreeEpoch

NOTHING = StoredList([], None, former=False)
"""The result of a write of a list that is stored already."""


@dataclass
class ListWrite:
    """The write of a list in a transaction that has locked the tree.

    Attributes:
        conn: The transaction.
        tree: The tree.
        head: The head of the tree before the write.
        prepared: The list.
        otherwise: The parent of the first message, if no message of the list is stored.
        rows_read: The rows for the placing of the list, while the transaction has not written.
        also: The rows of other queries, read with them.
    """

    conn: Conn
    tree: int
    head: trees.Head
    prepared: PreparedList
    otherwise: Parent
    rows_read: PlacementRows | None = None
    also: Sequence[Sequence[tuple[Any, ...]]] = ()
    cached: CachedList | None = None
    stored: StoredList | None = None

    def replace(self, prepared: PreparedList) -> None:
        """Store another list instead."""
        self.prepared, self.rows_read = prepared, None

    @property
    def stored_ids(self) -> set[str]:
        """The ids of the messages after the stored beginning that have a place in the tree."""
        return set() if self.rows_read is None else self.rows_read.message_ids

    @property
    def new_nodes(self) -> list[ConversationNode]:
        """The nodes that were written, if all are live messages of the list; else none."""
        if self.stored is None or len(self.stored.new_places) != self.stored.written:
            return []
        places = self.stored.new_places
        messages = self.prepared.messages[self.prepared.matched :]
        message_of = {str(message.id): message for message in messages if message.id in places}
        if len(message_of) < len(places):
            return []
        return [ConversationNode(at.seq, message_of[id_], at.parent) for id_, at in places.items()]

    def place(self, newest: Newest | None = None) -> StoredList:
        """Store the list; `newest` is the message whose parent a selector has chosen."""
        new = self.prepared
        self.stored, head = place_list(
            *(self.conn, self.tree, new.rest, time.time()),
            after=new.after,
            beginning=new.beginning,
            ending=new.ending,
            newest=newest,
            otherwise=self.otherwise,
            whole=False,
            rows_read=self.rows_read,
        )
        self.rows_read = None
        if new.messages and self.stored.exact:
            self.cached = new.cached(self.tree, head, self.stored)
        if new.base is not None and new.base.outdated:
            self.stored = self.stored._replace(outdated=True)
        return self.stored


def write_list(
    conversation: ThreadedConversation,
    prepared: PreparedList,
    work: Callable[[ListWrite], T],
    otherwise: Parent = TIP,
    also: Sequence[BoundStatement] = (),
) -> Flow[T]:
    """Run a function that stores a list, in one transaction; it may run twice.

    Args:
        conversation: The conversation.
        prepared: The list.
        work: Calls `ListWrite.place`.
        otherwise: As for `ListWrite`.
        also: Queries whose rows `work` needs, too.
    """
    runtime, name = conversation.runtime, conversation.name
    cache = runtime.get(ListCache)
    tree = yield from created_tree_of(conversation)
    # A saver may store an earlier list of the run later, in another thread.
    cache.add_stored(name, prepared.rest, time.time())
    while True:

        def write(conn: Conn, prepared: PreparedList = prepared) -> tuple[T, ListWrite, Removed] | None:
            trees.lock(conn, tree)
            query = stored_lists.placement_query(tree, prepared.rest, prepared.after, otherwise)
            places, *others = conn.each(query, *also)
            rows = stored_lists.placement_rows(places, otherwise)
            if not prepared.is_current(tree, rows.head):
                return None
            list_write = ListWrite(conn, tree, rows.head, prepared, otherwise, rows, others)
            value = work(list_write)
            keys = () if list_write.stored is None else list_write.stored.removed
            left = NOTHING_REMOVED
            if keys:
                left = summary_queries.take_out_removed(conn, runtime.owner, name, keys)
            return value, list_write, left

        written = yield from Sql(write, write=True)
        if written is not None:
            break
        prepared = prepared.without_base(runtime.resources.parts.keep)  # Another writer has changed the tree.
    value, done, removed = written
    if removed.keys:
        yield from drop(runtime, removed)
    if done.cached is not None:
        cache.add_list(name, "", done.cached)
    add_written(runtime, tree, done.new_nodes)
    return value


def prepare(
    conversation: ThreadedConversation, spoken: Sequence[BaseMessage], chunks: Sequence[bytes] = ()
) -> PreparedList:
    """A list that is prepared for storing.

    Args:
        conversation: The conversation.
        spoken: The list.
        chunks: Fingerprints of the first chunks of the list, if they are known.

    Raises:
        InputError: A message cannot be stored.
    """
    write_value = conversation.runtime.resources.parts.keep
    cached = conversation.runtime.get(ListCache).lists(conversation.name)
    prepared = PreparedList.of(list(spoken), cached, write_value, chunks)
    if prepared is None:
        for message in spoken:
            encode(message, write_value)
            name_of("a message id", message.id, most=LONGEST_ID)
        raise InputError("two messages of one list have the same id; give each message its own id")
    return prepared


@telemetry.observed(
    "create_memory", telemetry.of_conversation, lambda stored: {telemetry.COUNT: stored.written}
)
def store(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], routed: str | None = None
) -> Flow[StoredList]:
    """Store a list.

    Args:
        conversation: The conversation.
        given: The list.
        routed: Id of the human message that was routed last, in the graph's state. If it is in the list, and
            no message of the list is stored, the conversation was emptied meanwhile, and the list does not
            continue the messages that were stored since.

    Returns:
        The stored list, without the places of messages that were stored before.
    """
    return (yield from store_spoken(conversation, spoken_of(given), routed)).stored


class StoredSpoken(NamedTuple, Generic[T]):
    """Messages of a list that were stored.

    Attributes:
        messages: The messages with their stored ids.
        stored: The stored list.
        then: What was read after the write in its transaction; `None` if nothing had to be written.
    """

    messages: list[BaseMessage]
    stored: StoredList
    then: T | None = None


def store_spoken(
    conversation: ThreadedConversation,
    spoken: list[BaseMessage],
    routed: str | None,
    prepared: PreparedList | None = None,
    then: Callable[[Conn, int, list[BaseMessage]], T] | None = None,
) -> Flow[StoredSpoken[T]]:
    """Store messages of a list that belong to the conversation.

    Args:
        conversation: The conversation.
        spoken: The messages.
        routed: As for `store`.
        prepared: The list, if it is prepared already.
        then: Reads the tree after the write, in the same transaction.
    """
    if not spoken:
        return StoredSpoken(spoken, NOTHING)
    prepared = prepared or prepare(conversation, spoken)
    turn = next((n for n, message in enumerate(spoken) if message.id == routed), 0)
    if prepared.matched < turn:  # The list before the turn may be a history that was sent with other ids.
        known, _ = yield from recognised(conversation, spoken, turn)
        if known is not spoken:
            spoken, prepared = known, prepare(conversation, known)
    if (yield from _is_stored(conversation, prepared)):
        is_outdated = prepared.base is not None and prepared.base.outdated
        return StoredSpoken(spoken, NOTHING._replace(outdated=is_outdated))
    was_stored = routed in {message.id for message in spoken}
    otherwise = parent_if_emptied(conversation) if was_stored else TIP

    def work(write: ListWrite) -> tuple[list[tuple[str, str]], StoredSpoken[T]]:
        owned, reused = _with_own_ids(conversation, write, spoken)
        stored = write.place()
        after = None if then is None else then(write.conn, write.tree, owned)
        return reused, StoredSpoken(owned, stored, after)

    reused, written = yield from write_list(conversation, prepared, work, otherwise)
    for id_, own in reused:
        warn_of_reuse(id_, own)
    return written


def _with_own_ids(
    conversation: ThreadedConversation, write: ListWrite, spoken: list[BaseMessage]
) -> tuple[list[BaseMessage], list[tuple[str, str]]]:
    """A list whose newest turn has ids of its own, which the write then stores, and the pairs of both ids.

    The list itself if its newest turn reuses no id.
    """
    newest, stored_ids = newest_human(spoken), write.stored_ids
    if newest is None or not any(message.id in stored_ids for message in spoken[newest + 1 :]):
        return spoken, []
    write_value = conversation.runtime.resources.parts.keep
    turn, reused = with_own_ids(write.conn, write.tree, spoken[newest:], write_value)
    if not any(map(is_not, turn, spoken[newest:])):
        return spoken, []
    owned = [*spoken[:newest], *turn]
    write.replace(prepare(conversation, owned).without_base(write_value))
    conversation.runtime.get(ListCache).add_stored(conversation.name, write.prepared.rest, time.time())
    return owned, reused


def _is_stored(conversation: ThreadedConversation, prepared: PreparedList) -> Flow[bool]:
    """Whether all messages of a list are stored, as far as the cache of lists knows."""
    tree = yield from tree_of(conversation)
    if not prepared.is_cached or not tree:
        return False
    head = yield from Sql(lambda conn: trees.head(conn, tree))
    return prepared.is_current(tree, head)


def may_lack_messages(conversation: ThreadedConversation, given: Sequence[BaseMessage]) -> Flow[bool]:
    """Whether a list may lack messages of the list that was stored before it."""
    spoken, tree = spoken_of(given), (yield from tree_of(conversation))
    cached = conversation.runtime.get(ListCache).lists(conversation.name)
    if not tree or not spoken:
        return False
    return not cached or prepare(conversation, spoken).matched < len(cached[0].locations)


def remove_messages(conversation: ThreadedConversation, ids: Collection[str]) -> Flow[None]:
    """Remove messages that a program has deleted from a conversation, with all their versions.

    Only checkpoints that contain the messages return them.
    """
    tree, runtime = (yield from tree_of(conversation)), conversation.runtime

    def write(conn: Conn) -> Removed:
        trees.lock(conn, tree)
        keys = superseding.remove_messages(conn, tree, ids, empties=True)
        return summary_queries.take_out_removed(conn, runtime.owner, conversation.name, keys)

    yield from drop(runtime, (yield from Sql(write, write=True)))


def store_turn(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage, routed: str | None
) -> Flow[None]:
    """Store a list at the end of a run; `routed` is that of `store`."""
    yield from store(conversation, given, routed)
    if lineage.replaced:
        yield from store_branch(conversation, given, lineage)


@telemetry.observed("create_memory", telemetry.of_conversation, lambda count: {telemetry.COUNT: count})
def remember(
    conversation: ThreadedConversation,
    given: Sequence[BaseMessage],
    tip: Parent,
    read_in: TreeEpoch | None = None,
) -> Flow[int]:
    """Store the messages of a finished call, below the parent that the selector chooses for a new question.

    Args:
        conversation: The conversation. If it is linear, a new question continues `tip`.
        given: The messages: those of the call, or a longer list that begins with stored messages.
        tip: The end of the thread that the call has read.
        read_in: The epoch in which the call has read it.

    Returns:
        The number of messages that were written.
    """
    check_several("add_messages", given)
    messages = [message for item in given for message in messages_of(item)]
    if not messages:
        return 0
    encoded = [
        EncodedMessage(draft.id, draft.body, draft.role)
        for message, draft in zip(
            messages, drafts_of(messages, other=conversation.runtime.resources.parts.write), strict=True
        )
    ]
    selected = Selected(tip, "", chosen_in=read_in)
    question = yield from _new_question(conversation, messages)
    if question is not None and any(message.role != "system" for message in encoded[:question]):
        # The question may continue messages that the list adds or changes before it.
        yield from write_list(
            conversation,
            PreparedList.of_encoded(encoded[:question]),
            lambda write: _remember(conversation, write, encoded[:question], selected, None),
        )
    if question is not None and not conversation.is_linear:
        selected = yield from select(conversation, messages[question])

    def work(write: ListWrite) -> int:
        return _remember(conversation, write, encoded, selected, question)

    written = yield from write_list(conversation, PreparedList.of_encoded(encoded), work)
    stored_now(conversation.runtime, selected.vectors)
    if conversation.runtime.embeds_ahead:
        embed_soon(conversation.runtime, (conversation.tree,))
    return written


def _new_question(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[int | None]:
    """The position of the first human message after the last that is stored; `None` if there is none."""
    tree = yield from tree_of(conversation)
    questions = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]

    def after_stored(conn: Conn) -> list[int]:
        ids = {n: messages[n].id for n in questions}
        known = max((n for n, id_ in ids.items() if id_ and nodes.places(conn, tree, id_)), default=-1)
        return [n for n in questions if n > known]

    if tree and any(messages[n].id for n in questions):
        questions = yield from Sql(after_stored)
    return next(iter(questions), None)


def _remember(
    conversation: ThreadedConversation,
    write: ListWrite,
    encoded: Sequence[EncodedMessage],
    selected: Selected,
    question: int | None,
) -> int:
    conn, tree, head = write.conn, write.tree, write.head
    if not trees.keeps_numbers((tree, head.epoch), selected.chosen_in):
        selected = Selected(parent_if_emptied(conversation), "")
    elif selected.version not in (None, head.version):
        selected = selected._replace(placement=selected.unquoted())
    heal.move(conn, tree, selected.moves, selected.chosen_in)
    if selected.vectors is not None:
        selected.vectors.store(conn, conn.each(selected.vectors.places_query())[0])
    write.otherwise = selected.parent
    rule = None if head.system is None else nodes.by_key(conn, head.system)
    # A system message that is in force already is not written again.
    listed = [
        message
        for message in encoded
        if message.role != "system" or rule is None or message.body != rule.body
    ]
    newest, at = None, -1
    if question is not None:
        at = listed.index(encoded[question])
    listed = _own_of_call(conn, tree, head, listed, at)
    write.replace(PreparedList.of_encoded(listed))
    if question is not None:
        is_first = all(message.role == "system" for message in listed[:at])
        newest = Newest(listed[0 if is_first else at].id, selected.parent)
    stored = write.place(newest)
    if question is not None and selected.placement is not None:
        row = nodes.by_key(conn, stored.locations[at].key)
        if row is not None and row.parent == selected.parent:
            stored_placements.put(conn, [(row.key, row.message, selected.placement)])
    return stored.written


def _own_of_call(
    conn: Conn, tree: int, head: trees.Head, listed: list[EncodedMessage], at: int
) -> list[EncodedMessage]:
    """A list in which answers that reuse the id of an answer to another question have ids of their own.

    Args:
        conn: A transaction.
        tree: The tree.
        head: The head of the tree.
        listed: The list.
        at: The position of its new question; -1 if it continues the question at the tip.
    """
    tip = None if at >= 0 or head.tip is None else nodes.by_key(conn, head.tip)
    if at < 0 and (tip is None or tip.role != "human"):
        return listed
    question = tip.message if tip is not None else listed[at].id
    owned = list(listed)
    for n in range(at + 1, len(listed)):
        id_, body, role = listed[n]
        if role not in ANSWERING:
            break
        if any(is_same_answer(row.body, body) for row in nodes.versions(conn, tree, id_)):
            owned[n] = EncodedMessage(own_id(id_, question), body, role)
            warn_of_reuse(id_, owned[n].id)
    return owned


def store_branch(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage
) -> Flow[None]:
    """Store that a new version of an earlier question, or a new answer to it, begins a branch.

    The list is stored already, and ends with that message. The successors of the run do not see the replaced
    message of the lineage and the turns below it; without one, the turns that began after the question.
    """
    spoken = [message for message in given if message.type in ("human", *ANSWERING)]
    if not spoken:
        return
    tree, message = (yield from tree_of(conversation)), str(spoken[-1].id)
    write_value = conversation.runtime.resources.parts.keep

    def write(conn: Conn) -> None:
        trees.lock(conn, tree)
        first = nodes.first_version(conn, tree, message)
        if spoken[-1].type == "human":
            row = nodes.by_message(conn, tree, message)
            # The turn of a new question begins when the question has its place.
            first = None if row is None or row.seq == first else row.seq
        newest, *_ = next(turn_branches.newest_first(conn, tree, lineage.thread), (0, "", False))
        since = newest_turn(conn, tree, spoken, lineage.thread, write_value)
        if first is not None and since is not None and since != newest < first:
            is_unseen = is_unseen_after(conn, tree, lineage)
            turn_branches.begin(conn, tree, lineage.thread, first, since, is_unseen)

    yield from Sql(write, write=True)


def recognised(
    conversation: ThreadedConversation, spoken: list[BaseMessage], newest: int
) -> Flow[tuple[list[BaseMessage], int]]:
    """A list with the stored messages in place of messages that repeat them with other ids.

    A client that has no ids sends its whole history with other ids each time. The human messages right before
    the newest are history if they are stored, else they are new.

    Args:
        conversation: The conversation.
        spoken: The list.
        newest: The position of its newest human message, which is new.

    Returns:
        The list, and the position of the same message.
    """
    for end in dict.fromkeys((newest, start_of_turn(spoken, newest))):
        earlier = yield from _recognised(conversation, spoken[:end])
        if earlier is not None:
            known = spoken_of([*earlier, *spoken[end:]])
            return known, len(known) - (len(spoken) - newest)
    return spoken, newest


def start_of_turn(spoken: Sequence[BaseMessage], newest: int) -> int:
    """The position of the first of the human messages right before and at a position."""
    while newest and isinstance(spoken[newest - 1], HumanMessage):
        newest -= 1
    return newest


def _recognised(
    conversation: ThreadedConversation, messages: Sequence[BaseMessage]
) -> Flow[list[BaseMessage] | None]:
    """The beginning of a list, with stored messages in place of their repetitions; `None` if there are none.

    Human messages and answers without a stored id are compared by their texts, in the order of time; an
    answer may be new. Messages without an answer are no history: a person may repeat a message.
    """
    if not any(map(is_answer, reversed(messages))):
        return None
    last = next(m for m in reversed(messages) if isinstance(m, HumanMessage) or is_answer(m))

    def read_origins(conn: Conn, tree: int) -> tuple[list[int], list[int | None]]:
        # If the last is stored, so are the ids before it, or a saver has stored the list meanwhile.
        if not tree or nodes.places(conn, tree, str(last.id)):
            return [], []
        said = [n for n, m in enumerate(messages) if isinstance(m, HumanMessage) or is_answer(m)]
        return said, [nodes.first_version(conn, tree, str(messages[n].id)) for n in said]

    said, origins = yield from read_in_tree(conversation, read_origins)
    if not said:
        return None
    tree = conversation.tree
    stored = (yield from turns(conversation.runtime, tree)).in_order()
    repeated = _repeated([messages[n] for n in said], origins, stored)
    if not repeated:
        return None
    numbers = {said[n]: speech.id for n, speech in repeated.items()}
    rows = yield from Sql(lambda conn: nodes.by_seqs(conn, tree, numbers.values()))
    found = {n: rows[seq] for n, seq in numbers.items() if seq in rows}
    bodies = [(row.message, row.body, row.role) for row in found.values()]
    known = dict(
        zip(found, decode_stored(bodies, other=conversation.runtime.resources.parts.read), strict=True)
    )
    return [known.get(n, message) for n, message in enumerate(messages)]


def _repeated(
    said: Sequence[BaseMessage], origins: Sequence[int | None], stored: Sequence[tuple[int, Speech]]
) -> dict[int, Speech] | None:
    """The stored speech of each message, by position; `None` if a human message is not stored.

    Args:
        said: Human messages and answers.
        origins: Numbers of the first versions of messages with stored ids.
        stored: The stored speeches in the order of time, with the numbers of their first versions.
    """
    repeated: dict[int, Speech] = {}
    before = len(stored)
    for n in range(len(said) - 1, -1, -1):
        message, origin = said[n], origins[n]
        wanted = isinstance(message, HumanMessage), text_of(message)
        for at in range(before - 1, -1, -1):
            first, speech = stored[at]
            if (wanted == (not speech.is_answer, speech.text)) if origin is None else origin == first:
                before = at
                if origin is None:
                    repeated[n] = speech
                break
        else:
            if wanted[0] or origin is not None:
                return None
    return repeated


def spoken_of(given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of a list without system messages and without messages that were made for a prompt.

    Messages without an id get one. Of several messages with one id, the last is in the place of the first, as
    with LangGraph's reducer. `RemoveMessage` is no message: `add_messages` keeps those that follow
    `REMOVE_ALL_MESSAGES` in an update.
    """
    identify(given)
    spoken: dict[str, BaseMessage] = {}
    for message in without_blocks(list(given)):
        if isinstance(message, (SystemMessage, RemoveMessage)):
            continue
        if message.additional_kwargs and is_made_up(message):
            continue
        spoken[str(message.id)] = message
    return list(spoken.values())


def newest_turn(
    conn: Conn,
    tree: int,
    given: Sequence[BaseMessage],
    thread: str,
    write_value: WriteOpaque,
    newest: Sequence[tuple[Any, ...]] | None = None,
) -> int | None:
    """Number of the first node of the newest turn in a list.

    A graph around a chat appends the messages of earlier turns to its list when the chat returns to them, so
    the last human message of a list may belong to an earlier turn. A list with the former version of a
    question is not part of the branch that a later version began. `newest` is that of
    `turn_branches.newest_first`.
    """
    listed = {message.id: message for message in given}
    turns = turn_branches.newest_first(conn, tree, thread, newest) if listed else ()
    for seq, id_, is_version in turns:
        if id_ not in listed:
            continue
        if is_version:
            body = encode(listed[id_], write_value)
            same = [row.seq for row in nodes.versions(conn, tree, id_) if row.body == body]
            if same and max(same) < seq:
                continue
        return seq
    return None


def is_unseen_after(conn: Conn, tree: int, lineage: Lineage) -> Callable[[int], bool] | None:
    """Whether the successors of a run do not see a turn, by the number of its first node.

    They do not see the replaced message, the turns below it and the turns that its run did not see. `None` if
    the run replaces no stored message.
    """
    versions = nodes.places(conn, tree, lineage.replaced) if lineage.replaced else []
    if not versions:
        return None
    keys = [place.key for place in versions]
    unseen = turn_branches.unseen_by(conn, tree, lineage.thread, min(place.seq for place in versions))

    def is_unseen(seq: int) -> bool:
        first = nodes.message_at(conn, tree, seq)
        row = None if first is None else nodes.by_message(conn, tree, first)
        above = [] if row is None else nodes.spans(conn, row.key)
        return within(unseen, seq) or any(nodes.contain(above, key) for key in keys)

    return is_unseen
