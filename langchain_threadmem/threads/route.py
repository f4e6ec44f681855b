"""Routing of LangGraph's message lists to threads of the tree.

A graph passes its whole list of messages at every step, and a saver may store the newest of them below the
old tip, before or after. So no function of this module depends on the order of writes: stored messages are
found by their ids, other messages are appended, and a message in the wrong place is moved as by `place`.
Every function is idempotent.

A run continues the turns of its own branch, and the turns that no run of a graph has stored. `tree.lineage`
records the turns of other branches.

A human message is *routed* once. It counts as routed if a run began a turn with it, if a selector has placed
it below another message than the one before it in the list, if it has an answer or replaces another message,
or if the graph's state contains its id (`routed`). The human messages before a routed message are routed,
too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from typing_extensions import TypedDict

from langchain_threadmem.checkpoints import lists
from langchain_threadmem.checkpoints.values import encode_messages
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import decode_stored, encode, text_of
from langchain_threadmem.messages.prompt import newest_human, shown
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.roles import is_answer
from langchain_threadmem.messages.tool_pairs import exchanges, follows_call
from langchain_threadmem.messages.typed_json import Writer
from langchain_threadmem.recall.options import RecallOptions, Scope
from langchain_threadmem.recall.packing import adds_nothing
from langchain_threadmem.recall.quoting import Recalled, recalled
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.verbs import recall
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.threads import coverage
from langchain_threadmem.threads.events import MoveEvent, Placed, SelectionEvent, move_event, selection_event
from langchain_threadmem.threads.moves import corrections, heal
from langchain_threadmem.threads.run_selector import EVERYTHING, Past, ThreadedConversation, select
from langchain_threadmem.threads.tree_view import turns
from langchain_threadmem.tree import append as writer
from langchain_threadmem.tree import branches, grafts, nodes, revise, superseding, trees
from langchain_threadmem.tree import lineage as lineage_sql
from langchain_threadmem.tree import placements as stored_placements
from langchain_threadmem.tree.append import TIP, Draft
from langchain_threadmem.tree.conversation import created_tree_of, tree_of
from langchain_threadmem.tree.lineage import Span, within
from langchain_threadmem.tree.nodes import NodeRow, Outline
from langchain_threadmem.tree.rows import drafts_of

_ANSWERS = ("ai", "tool", "function")
REPLACED = "__threadmem_replaced"
"""The field of `configurable` in which `ThreadMemSaver.fork` names the message that a run replaces."""
_MOST_EXTRA = 50
"""The maximum number of additional hits, which replace hits in the active thread."""


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


class Lineage(NamedTuple):
    """The branch that a run of a graph continues.

    Attributes:
        thread: The LangGraph thread of the run; empty if it has no name, or that of the conversation.
        rewound: Whether the caller named the checkpoint at which the run begins.
        replaced: Id of the message that the run replaces, from `ThreadMemSaver.fork`; empty if there is none.
    """

    thread: str = ""
    rewound: bool = False
    replaced: str = ""


NO_LINEAGE = Lineage()


class Routed(NamedTuple):
    """The place of the newest human message of a list.

    Attributes:
        thread: Its place and the reason.
        path: The messages from the root of the thread to it, without system messages.
        messages: The list rewritten to that thread, and to the runners-up of `coverage` if they are wanted;
            `None` if the list is unchanged.
        event: The event of the selection; `None` if the message already had a place.
        moves: The events of the earlier turns that were moved in the same transaction.
    """

    thread: ActiveThread
    path: list[BaseMessage]
    messages: list[BaseMessage] | None
    event: SelectionEvent | None = None
    moves: Sequence[MoveEvent] = ()


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
        The thread; `None` if the list contains no human message.

    Raises:
        InputError: A message has no id.
        SelectionError: The selector failed, and `on_selection_failure` is "raise".
    """
    spoken = _spoken(given)
    newest = newest_human(spoken)
    if newest is None:
        return None
    tree = yield from created_tree_of(conversation)
    if any(message.type in _ANSWERS for message in spoken[newest:]):
        yield from store(conversation, spoken)
        placed: Placed | str = "the turn is under way"
    else:
        placed = yield from _route(conversation, spoken, newest, routed, lineage, suggest_at is not None)
    message_id = str(spoken[newest].id)

    def read(conn: Conn) -> tuple[NodeRow, list[tuple[str, str, str]], bool]:
        row = nodes.by_message(conn, tree, message_id)
        assert row is not None, f"message {message_id!r} was stored a moment ago"
        path = _path(conn, row.key)
        return row, path, _shows(conn, tree, spoken[:newest], [id_ for id_, *_ in path])

    row, bodies, shows = yield from Sql(read)
    path = decode_stored(bodies, other=conversation.runtime.parts.read)
    rewritten = list(given)
    if not shows:
        system_messages = [message for message in given if isinstance(message, SystemMessage)]
        rewritten = [*system_messages, *path[:-1], *spoken[newest:]]
    if conversation.window is not None:
        earlier = spoken[:newest] if shows else path[:-1]
        view = {message.id for message in shown(earlier, spoken[newest:], conversation.window)}
        outside = {message.id for message in earlier} - view
        rewritten = [message for message in rewritten if message.id not in outside]
    if covers:
        rewritten = yield from coverage.covered(conversation, rewritten)
    event, moved = None, list[MoveEvent]()
    if isinstance(placed, Placed):
        event = selection_event(conversation.name, placed, path, suggest_at)
        moved = [move_event(conversation.name, turn) for turn in placed.moved]
    reason = placed if isinstance(placed, str) else placed.selected.reason
    return Routed(
        ActiveThread(message_id=message_id, node_id=row.seq, parent_id=row.parent, reason=reason),
        path,
        None if [new.id for new in rewritten] == [old.id for old in given] else rewritten,
        event,
        moved,
    )


def _route(
    conversation: ThreadedConversation,
    spoken: Sequence[BaseMessage],
    newest: int,
    routed: str | None,
    lineage: Lineage,
    suggest: bool,
) -> Flow[Placed | str]:
    """Place an unanswered human message, and the human messages right before it.

    Returns:
        The place of the first of them; the reason if all of them already have places.
    """
    tree, write_value = (yield from created_tree_of(conversation)), conversation.runtime.parts.keep
    start = newest
    while start and isinstance(spoken[start - 1], HumanMessage):
        start -= 1
    for end in dict.fromkeys((newest, start)) if routed is None else ():
        if (yield from _repeats(conversation, spoken[:end])):
            spoken, newest, start = spoken[end:], newest - end, 0
            break
    yield from store(conversation, spoken[:start])
    if lineage.rewound:
        yield from _revive(conversation, spoken[:start])

    def read(conn: Conn) -> tuple[int, int | None, Past]:
        first = newest + 1
        while first > start and spoken[first - 1].id != routed:
            if _is_routed(conn, tree, spoken[:first], write_value):
                break
            first -= 1
        if first > newest:
            return first, None, EVERYTHING
        return first, *_past(conn, tree, spoken, range(first, newest + 1), routed, lineage)

    first, since, past = yield from Sql(read)
    if first > newest:
        # A stored message with other content is a new version, which has the place of the old version.
        written = yield from store(conversation, spoken[: newest + 1])
        return "it is a new version of a message" if written else "it has its place already"
    selected = yield from select(conversation, spoken[newest], past, suggest)
    parent = selected.parent
    drafts = selected.explains(drafts_of([spoken[first]], other=write_value))

    def write(conn: Conn) -> Placed:
        trees.lock(conn, tree)
        active = selected.active
        if active is TIP:
            new = {str(message.id) for message in spoken[first:]}
            active = _tip_before(conn, tree, trees.head(conn, tree), new)
        moved = heal.move(conn, tree, selected.moves)
        stored = nodes.by_message(conn, tree, drafts[0].id)
        if stored is not None and stored.body != drafts[0].body:
            # A saver has stored the message as it was before an earlier node of the graph changed it.
            _write(conn, tree, [drafts[0]._replace(placement=None)], 0, ())
        (key,), (node,) = writer.append(conn, tree, drafts, parent)
        placement, place = selected.placement, (node.id, node.parent_id)
        # Another writer has stored the message below the old tip.
        at_root = parent is None and _above(conn, tree, node.parent_id) is None
        if parent is not TIP and node.parent_id != parent and not at_root:
            here, _ = revise.place_turn(conn, tree, node.id, parent, placement)
            place = here.seq, here.parent
        elif node.placement is None and node.parent_id == parent and placement is not None:
            # Another writer has stored the message without its placement.
            stored_placements.put(conn, [(key, drafts[0].id, placement)])
        origin = _origin(conn, tree, drafts[0].id)
        is_unseen = _is_unseen_after(conn, tree, lineage)
        lineage_sql.begin(conn, tree, lineage.thread, origin or node.id, since, is_unseen)
        return Placed(spoken[first], *place, active, selected, moved)

    placed = yield from Sql(write, write=True)
    if selected.turns is not None and selected.placement is not None and placed.parent_id == parent:
        selected.turns.explain(placed.node_id, selected.placement)
    yield from store(conversation, spoken[: newest + 1])
    return placed


def _repeats(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[bool]:
    """Whether messages repeat stored messages with other ids, as from a client that sends its whole history.

    Human messages and answers without a stored id are compared by their texts, in the order of time. Messages
    without an answer are no history: a person may repeat a message.
    """
    tree = yield from tree_of(conversation)
    said = [message for message in messages if isinstance(message, HumanMessage) or is_answer(message)]
    if not any(map(is_answer, said)):
        return False
    if (yield from Sql(lambda conn: _origin(conn, tree, str(said[-1].id)))) is not None:
        return False
    stored = (yield from turns(conversation.runtime, tree)).in_order()
    origins = yield from Sql(lambda conn: [_origin(conn, tree, str(message.id)) for message in said])
    if origins[-1] is not None:
        return False  # A saver has stored the list meanwhile.
    earlier = reversed(stored)

    def is_stored(message: BaseMessage, origin: int | None) -> bool:
        wanted = isinstance(message, HumanMessage), text_of(message)
        return any(
            wanted == (not speech.is_answer, speech.text) if origin is None else origin == first
            for first, speech in earlier
        )

    return all(map(is_stored, reversed(said), reversed(origins)))


@telemetry.observed("create_memory", telemetry.of_conversation, lambda count: {telemetry.COUNT: count})
def store(conversation: ThreadedConversation, given: Sequence[BaseMessage]) -> Flow[int]:
    """Store the end of a list: the messages after the last stored message.

    A message with a stored id and other content is a new version of the stored message; an answer beside
    older answers of the same turn supersedes them. Summaries, recalled text and system messages are not
    stored: no person, model or tool of the conversation wrote them.

    Returns:
        The number of messages that were written.
    """
    spoken = _spoken(given)
    tree, write_value = (yield from tree_of(conversation)), conversation.runtime.parts.keep
    written = yield from _answer_calls(conversation, spoken)
    first = yield from Sql(lambda conn: _first_new(conn, tree, spoken, write_value))
    if first == len(spoken):
        return written
    tree = yield from created_tree_of(conversation)
    tail = spoken[max(first - 1, 0) :]  # From the last stored message.
    drafts = drafts_of(tail, other=write_value)

    def write(conn: Conn) -> int:
        trees.lock(conn, tree)
        start = _first_new(conn, tree, tail, write_value)  # Another writer may have stored messages since.
        if start < len(tail):
            _write(conn, tree, drafts, start, {message.id for message in spoken[:first]})
        return len(tail) - start

    return written + (yield from Sql(write, write=True))


def store_turn(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage
) -> Flow[None]:
    """Store the end of a list at the end of a run."""
    yield from store(conversation, given)
    if lineage.replaced:
        yield from store_branch(conversation, given, lineage)


def store_branch(
    conversation: ThreadedConversation, given: Sequence[BaseMessage], lineage: Lineage
) -> Flow[None]:
    """Store that a new answer to an earlier question begins a branch, in a run from `ThreadMemSaver.fork`.

    The list is stored already. The successors of the run do not see the replaced message and the turns below
    it.
    """
    spoken = [message for message in given if message.type in ("human", *_ANSWERS)]
    if not spoken or spoken[-1].type == "human":
        return
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> None:
        trees.lock(conn, tree)
        answer = _origin(conn, tree, str(spoken[-1].id))
        newest, _ = next(lineage_sql.newest_first(conn, tree, lineage.thread), (0, None))
        since = _newest_turn(conn, tree, spoken, lineage.thread)
        if answer is not None and since is not None and since != newest < answer:
            is_unseen = _is_unseen_after(conn, tree, lineage)
            lineage_sql.begin(conn, tree, lineage.thread, answer, since, is_unseen)

    yield from Sql(write, write=True)


def _answer_calls(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[int]:
    """Store results that were inserted after the tool calls of an abandoned turn, and return their number.

    The result of a tool comes right before a human message only in an abandoned turn.
    """
    written = 0
    for end in range(2, len(messages)):
        if not (isinstance(messages[end - 1], ToolMessage) and isinstance(messages[end], HumanMessage)):
            continue
        if follows_call(messages[:end]):
            call = exchanges(messages[:end])[-1]
            written += yield from _answer_call(conversation, messages[call : end + 1])
    return written


def _answer_call(conversation: ThreadedConversation, messages: Sequence[BaseMessage]) -> Flow[int]:
    """Store the results between a call and the next message, and graft that message below the last result.

    Both messages must be stored with this content; other versions are not changed.
    """
    tree = yield from tree_of(conversation)
    exchange = encode_messages(messages, conversation.runtime.parts.keep)

    def stored(conn: Conn) -> list[NodeRow | None]:
        rows = [nodes.by_message(conn, tree, item.id) for item in exchange or ()]
        unchanged = [
            row is None or row.body == item.body for row, item in zip(rows, exchange or (), strict=True)
        ]
        return rows if all(unchanged) and rows and rows[0] and rows[-1] else []

    def is_apart(rows: Sequence[NodeRow | None]) -> bool:
        """Whether the message after the results is stored beside the last result."""
        live = [row for row in rows if row is not None and row.state == State.LIVE]
        return bool(rows) and len(live) == len(rows) and live[-1].parent in {row.seq for row in live[:-2]}

    def write(conn: Conn) -> int:
        trees.lock(conn, tree)
        count, tip = stored(conn).count(None), trees.head(conn, tree).tip
        if count:
            lists.place(conn, tree, exchange or (), None, time.time())
        if is_apart(rows := stored(conn)):
            *_, last, following = rows
            assert last is not None
            assert following is not None
            grafts.move(conn, tree, following.key, last.key, last.seq)
            trees.changed(conn, tree)
        trees.move_tip(conn, tree, tip)
        return count

    rows = yield from Sql(stored)
    return (yield from Sql(write, write=True)) if None in rows or is_apart(rows) else 0


def recall_elsewhere(
    conversation: ThreadedConversation,
    query: str,
    path: Sequence[BaseMessage],
    n_results: int,
    *,
    scope: Scope = "conversation",
    min_similarity: float = 0.3,
    lineage: Lineage = NO_LINEAGE,
) -> Flow[list[Recalled]]:
    """Recall messages of other threads, and summaries that cover more than the active thread, the best first.

    Args:
        conversation: The conversation.
        query: The query of the recall.
        path: The messages of the active thread. These messages and the turns that the option `cover` of the
            conversation adds are no results.
        n_results: The maximum number of messages and summaries.
        scope: The other threads of this "conversation", or also all others of its "owner".
        min_similarity: The minimum similarity of a hit; without embeddings a hit shares a word with the
            query.
        lineage: The branch that the run continues; turns of branches that it has not seen are no results.

    Returns:
        Plain values, for `recall.quoting`.
    """
    if n_results < 1:
        return []
    tree = yield from tree_of(conversation)
    unseen = yield from Sql(lambda conn: _unseen(conn, tree, path, lineage))
    index = (yield from turns(conversation.runtime, tree)) if unseen else None
    most = n_results + (_MOST_EXTRA if unseen else min(len(path), _MOST_EXTRA))
    hits = yield from recall(conversation, query, RecallOptions(most, scope), 0)
    own_ids = {message.id for message in (yield from coverage.covered(conversation, list(path)))}

    def is_new(hit: Recollection) -> bool:
        is_here = not hit.rank and hit.conversation_id == conversation.name
        if is_here and (hit.node.message.id in own_ids or (index and index.belongs(hit.node.id, unseen))):
            return False
        if hit.why.similarity is None:
            return bool(hit.why.terms)
        return hit.why.similarity >= min_similarity

    results: list[Recalled] = []
    for hit in filter(is_new, hits):
        if len(results) == n_results:
            break
        if not hit.rank or not (yield from adds_nothing(conversation, hit, own_ids)):
            results.append(recalled(hit))
    return results


def conversation_name(
    config: Mapping[str, Any], given: str | Callable[[Mapping[str, Any]], str] | None
) -> str:
    """The conversation of a LangGraph run: the name that the caller gives, else the run's `thread_id`.

    Args:
        config: The run's configuration.
        given: A name, or a function from the configuration to a name.

    Raises:
        InputError: There is neither a name nor a `thread_id`.

    Example:
        >>> conversation_name({"configurable": {"thread_id": "first"}}, None)
        'first'
    """
    if given is not None:
        return given(config) if callable(given) else given
    thread_id = config.get("configurable", {}).get("thread_id")
    if thread_id is None or thread_id == "":
        raise InputError(
            f"the run has no conversation: its thread_id is {thread_id!r}; pass "
            'config={"configurable": {"thread_id": "..."}} when you invoke the graph, or conversation_id=... '
            "when you build it"
        )
    return str(thread_id)


def lineage_of(config: Mapping[str, Any], conversation: str) -> Lineage:
    """The branch that a LangGraph run continues, by its configuration.

    Example:
        >>> lineage_of({"configurable": {"thread_id": "first"}, "metadata": {"checkpoint_id": "1ef"}}, "all")
        Lineage(thread='first', rewound=True, replaced='')
    """
    thread = str(config.get("configurable", {}).get("thread_id") or "")
    # LangGraph stores the checkpoint that a caller names only in the metadata.
    rewound = bool((config.get("metadata") or {}).get("checkpoint_id"))
    replaced = config.get("configurable", {}).get(REPLACED, "") if rewound else ""
    return Lineage("" if thread == conversation else thread, rewound, replaced)


def thread_to(conversation: ThreadedConversation, message_id: str) -> Flow[list[BaseMessage]]:
    """The messages from the root to a stored message, without system messages; empty if it is not stored."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[tuple[str, str, str]]:
        row = nodes.by_message(conn, tree, message_id)
        return [] if row is None else _path(conn, row.key)

    return decode_stored((yield from Sql(read)), other=conversation.runtime.parts.read)


def _path(conn: Conn, key: int) -> list[tuple[str, str, str]]:
    """Message id, body and role of the nodes from the root to a node, without system messages."""
    return [row[:3] for row in nodes.thread_messages(conn, key) if row[2] != "system"]


def _spoken(given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages of a list without system messages and without messages that were made for a prompt."""
    spoken = [message for message in given if not (isinstance(message, SystemMessage) or is_made_up(message))]
    for message in spoken:
        if message.id is None:
            raise InputError(
                f"a message without an id cannot be followed from turn to turn: {message!r:.80}; "
                "give the message an id, or the state's messages the reducer add_messages"
            )
    return spoken


def _past(
    conn: Conn,
    tree: int,
    spoken: Sequence[BaseMessage],
    unrouted: range,
    routed: str | None,
    lineage: Lineage,
) -> tuple[int | None, Past]:
    """The first node of the turn that a run continues, if it is stored, and the messages that it has seen.

    `unrouted` are the positions of the human messages at the end of the list that are not routed.
    """
    head, new = trees.head(conn, tree), [str(spoken[index].id) for index in unrouted]
    stored = (_origin(conn, tree, message) for message in new)
    before = min((seq for seq in stored if seq is not None), default=head.next_seq)
    end = spoken[unrouted.start - 1].id if unrouted.start else None
    since = _newest_turn(conn, tree, spoken[: unrouted.stop - 1], lineage.thread)
    if since is None:
        earlier = reversed(spoken[: unrouted.start])
        human = next((message.id for message in earlier if isinstance(message, HumanMessage)), None)
        came_from = human or routed or end
        since = None if came_from is None else _origin(conn, tree, came_from)
    if since is None:
        if not lineage.rewound:
            return None, Past(before=before)  # The run has no stored turn.
        since = 0
    hidden = lineage_sql.unseen(conn, tree, lineage.thread, since)
    last = None if end is None else nodes.by_message(conn, tree, end)
    tip = _tip_before(conn, tree, head, new)
    return since, Past(hidden, tip, None if last is None else last.seq, before)


def _newest_turn(conn: Conn, tree: int, given: Sequence[BaseMessage], thread: str) -> int | None:
    """Number of the first node of the newest turn in a list.

    A graph around a chat appends the messages of earlier turns to its list when the chat returns to them, so
    the last human message of a list may belong to an earlier turn.
    """
    ids = {message.id for message in given}
    turns = lineage_sql.newest_first(conn, tree, thread) if ids else ()
    return next((seq for seq, message in turns if message in ids), None)


def _revive(conversation: ThreadedConversation, given: Sequence[BaseMessage]) -> Flow[None]:
    """Make the answers of a list live, which may have been replaced after the checkpoint of the run."""
    tree = yield from tree_of(conversation)

    def former(conn: Conn) -> list[str]:
        ids = [str(message.id) for message in given if message.type == "ai"]
        rows = {id_: nodes.versions(conn, tree, id_) for id_ in ids}
        return [id_ for id_ in ids if {row.state for row in rows[id_]} == {State.SUPERSEDED}]

    for message_id in (yield from Sql(former)):
        yield from corrections.revive(conversation, message_id)


def _is_unseen_after(conn: Conn, tree: int, lineage: Lineage) -> Callable[[int], bool] | None:
    """Whether the successors of a run do not see a turn, by the number of its first node.

    They do not see the replaced message, the turns below it and the turns that its run did not see. `None` if
    the run replaces no stored message.
    """
    versions = nodes.versions(conn, tree, lineage.replaced) if lineage.replaced else []
    if not versions:
        return None
    keys = [row.key for row in versions]
    unseen = lineage_sql.unseen_by(conn, tree, lineage.thread, min(row.seq for row in versions))

    def is_unseen(seq: int) -> bool:
        first = nodes.by_seq(conn, tree, seq)
        row = None if first is None else nodes.by_message(conn, tree, first.message)
        above = [] if row is None else nodes.spans(conn, row.key)
        return within(unseen, seq) or any(nodes.contain(above, key) for key in keys)

    return is_unseen


def _tip_before(conn: Conn, tree: int, head: trees.Head, new: Collection[str]) -> int | None:
    """The end of the active thread before new messages, which a saver may have stored already."""
    tip = None if head.tip is None else nodes.by_key(conn, head.tip)
    if tip is None or tip.message not in new:
        return None if tip is None else tip.seq
    before = (nodes.by_seq(conn, tree, seq) for seq in range(head.next_seq - 1, 0, -1))
    end = next((row for row in before if _is_before(row, new)), None)
    following = end
    while following is not None:  # A moved message has a higher number than the messages below it.
        end = following
        below = nodes.children(conn, tree, [(end.key, end.seq)])
        rows = (nodes.by_key(conn, child.key) for child in reversed(below))
        following = next((row for row in rows if _is_before(row, new)), None)
    return None if end is None else end.seq


def _is_before(row: NodeRow | None, new: Collection[str]) -> bool:
    """Whether a node is live and its message is not a new message."""
    return row is not None and row.state == State.LIVE and row.message not in new


def _unseen(conn: Conn, tree: int, path: Sequence[BaseMessage], lineage: Lineage) -> Sequence[Span]:
    """The numbers of the nodes that a run at the end of a path has not seen."""
    newest = newest_human(path)
    origin = None if newest is None else _origin(conn, tree, str(path[newest].id))
    return () if origin is None else lineage_sql.unseen(conn, tree, lineage.thread, origin)


def _origin(conn: Conn, tree: int, message: str) -> int | None:
    """The number of the first version of a message in any place; `None` if it is not stored."""
    return min((row.seq for row in nodes.versions(conn, tree, message)), default=None)


def _is_routed(conn: Conn, tree: int, spoken: Sequence[BaseMessage], write_value: Writer) -> bool:
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
    if lineage_sql.is_begun(conn, tree, min(row.seq for row in rows)):
        return True
    body = encode(message, write_value)
    is_version = any(row.body != body for row in rows)
    parent = _above(conn, tree, rows[0].parent)
    is_as_listed = (None if parent is None else parent.message) in above
    if any(row.role in _ANSWERS for row in nodes.children(conn, tree, [(row.key, row.seq) for row in rows])):
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
    while row is not None and row.role == "system":
        row = None if row.parent is None else nodes.by_seq(conn, tree, row.parent)
    return row


def _first_new(conn: Conn, tree: int, spoken: Sequence[BaseMessage], write_value: Writer) -> int:
    """The position after the last message that is stored with this content; usually the end of the list."""
    for index in range(len(spoken) - 1, -1, -1):
        rows = nodes.versions(conn, tree, str(spoken[index].id))
        if rows and (body := encode(spoken[index], write_value)) and any(row.body == body for row in rows):
            return index + 1
    return 0


def _write(
    conn: Conn, tree: int, drafts: Sequence[Draft], start: int, earlier: Collection[str | None]
) -> None:
    """Write the drafts from `start` on, and supersede the messages that they replace.

    A new version is a sibling of the old version if the list contains the parent of the old version
    (`earlier`), or if the list was trimmed.
    """
    new = drafts[start:]
    before = _stored_as(conn, tree, drafts[start - 1]) if start else None
    old = [row for draft in new for row in nodes.versions(conn, tree, draft.id)]
    replaced: dict[int, NodeRow | Outline] = {row.key: row for row in old}
    for former in old:
        replaced.update({row.key: row for row in nodes.answers(conn, tree, former.key, former.seq)})
    version = old[0] if old and old[0].message == new[0].id else None
    above = None if version is None or version.parent is None else nodes.by_seq(conn, tree, version.parent)
    if version is not None and (before is None or above is None or above.message in earlier):
        parent = version.parent
    elif before is not None:
        parent = before.seq
        if new[0].role in _ANSWERS:
            other_answers = nodes.answers(conn, tree, before.key, before.seq)
            replaced.update({row.key: row for row in other_answers})
    else:
        tip = nodes.tip(conn, tree)
        parent = None if tip is None else tip.seq
    live = [row.key for row in replaced.values() if row.state == State.LIVE]
    if old or live:
        superseding.replace(conn, tree, new, parent, live)
    else:
        writer.append(conn, tree, new, parent)


def _stored_as(conn: Conn, tree: int, draft: Draft) -> NodeRow | None:
    """The node of a message with the same content; a live node comes before others."""
    return next((row for row in nodes.versions(conn, tree, draft.id) if row.body == draft.body), None)


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
