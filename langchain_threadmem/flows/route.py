"""Routing inside LangGraph: lists of messages come in, the tree says which thread they belong to.

A graph hands over its whole list of messages at every step, and a saver may have stored the newest of them
already, below the old tip, or may do so later. So nothing here depends on who wrote first: what is stored is
found by its message id, what is not is appended, and a message that was stored elsewhere than it belongs is
moved by `place`, the only verb that moves. Everything can be called again and changes nothing then.

A human message is *routed* once. What tells is that it hangs elsewhere than its list says, has been answered,
or is a new version of itself; or that the graph's state remembers it (`routed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from typing_extensions import TypedDict

from langchain_threadmem.core.bodies import decode, encode
from langchain_threadmem.core.exact import Writer
from langchain_threadmem.core.fence import Recalled, is_made_up, recalled
from langchain_threadmem.core.nodes import Recollection, State
from langchain_threadmem.core.prompt import newest_human, shown
from langchain_threadmem.core.wanted import Scope, Wanted
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows import revise
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.packing import adds_nothing
from langchain_threadmem.flows.recall import recall
from langchain_threadmem.flows.rows import drafts_of
from langchain_threadmem.flows.select import select
from langchain_threadmem.flows.steps import Flow, Sql
from langchain_threadmem.storage.queries import choices, growth, nodes, revision, trees
from langchain_threadmem.storage.queries.growth import TIP, Draft, Placed
from langchain_threadmem.storage.queries.nodes import NodeRow, Outline
from langchain_threadmem.storage.statements import Conn

_ANSWERS = ("ai", "tool", "function")
_MOST_EXTRA = 50
"""By how many hits recall looks further at most, to make up for those in the active thread."""


class ActiveThread(TypedDict):
    """Which thread a graph is in, and why; fit for a checkpoint and for a user interface.

    Attributes:
        message_id: Id of the human message that was routed.
        node_id: Number of its node.
        parent_id: Number of the node it continues; `None` if it began a thread.
        reason: Why it went there, in a few words.
    """

    message_id: str
    node_id: int
    parent_id: int | None
    reason: str


class Routed(NamedTuple):
    """Where the newest human message of a list belongs.

    Attributes:
        thread: Its place and the reason.
        path: The messages from the root of the thread to it, without system messages.
        messages: The list rewritten to that thread; `None` if it shows the thread already.
    """

    thread: ActiveThread
    path: list[BaseMessage]
    messages: list[BaseMessage] | None


def route(
    conversation: Conversation, given: Sequence[BaseMessage], routed: str | None = None
) -> Flow[Routed | None]:
    """Find the thread of the newest human message, and store what of the list is not stored yet.

    Args:
        conversation: Where the tree is; its selector is asked about a message that was not routed yet.
        given: The list, as a graph's state holds it.
        routed: Id of the human message that the graph's state says was routed last.

    Returns:
        The thread; `None` if the list holds no human message.

    Raises:
        InputError: A message has no id.
        SelectionError: The selector failed, and the conversation says to raise.
    """
    said = _said(given)
    newest = newest_human(said)
    if newest is None:
        return None
    tree = yield from tree_of(conversation)
    if any(message.type in _ANSWERS for message in said[newest:]):
        yield from store(conversation, said)
        reason = "the turn is under way"
    else:
        reason = yield from _route(conversation, said, newest, routed)
    message_id = str(said[newest].id)

    def read(conn: Conn) -> tuple[NodeRow, list[tuple[str, str]], bool]:
        row = nodes.by_message(conn, tree, message_id)
        assert row is not None, f"message {message_id!r} was stored a moment ago"
        path = [
            (one, body) for one, body, role, _ in nodes.thread_messages(conn, row.key) if role != "system"
        ]
        return row, path, _shows(conn, tree, said[:newest], [one for one, _ in path])

    row, bodies, shows = yield from Sql(read)
    path = decode(bodies, other=conversation.runtime.parts.read)
    rewritten = list(given)
    if not shows:
        told = [message for message in given if isinstance(message, SystemMessage)]
        rewritten = [*told, *path[:-1], *said[newest:]]
    if conversation.window is not None:
        earlier = said[:newest] if shows else path[:-1]
        view = {message.id for message in shown(earlier, said[newest:], conversation.window)}
        left = {message.id for message in earlier} - view
        rewritten = [message for message in rewritten if message.id not in left]
    return Routed(
        ActiveThread(message_id=message_id, node_id=row.seq, parent_id=row.parent, reason=reason),
        path,
        None if shows and len(rewritten) == len(given) else rewritten,
    )


def _route(
    conversation: Conversation, said: Sequence[BaseMessage], newest: int, routed: str | None
) -> Flow[str]:
    """Bring an unanswered human message, and those said right before it, to where they belong."""
    tree, other = (yield from tree_of(conversation)), conversation.runtime.parts.keep
    start = newest
    while start and isinstance(said[start - 1], HumanMessage):
        start -= 1
    yield from store(conversation, said[:start])

    def first_unrouted(conn: Conn) -> int:
        for index in range(start, newest + 1):
            above = said[index - 1].id if index else None
            if said[index].id != routed and not _is_routed(conn, tree, said[index], above, other):
                return index
        return newest + 1

    first = yield from Sql(first_unrouted)
    if first > newest:
        # Stored elsewhere with other content, it is a new version of itself, and that is no new message.
        written = yield from store(conversation, said[: newest + 1])
        return "it is a new version of a message" if written else "it has its place already"
    selected = yield from select(conversation, said[newest])
    parent, reason = selected.parent, selected.reason
    drafts = selected.explains(drafts_of([said[first]], other=other))

    def write(conn: Conn) -> list[Placed]:
        places = growth.append(conn, tree, drafts, parent)
        known = places[0].created != drafts[0].created
        if known and places[0].parent == parent and selected.placement is not None:
            # Stored by somebody else before us, who did not know why it goes there.
            choices.put(conn, [(places[0].key, drafts[0].message, selected.placement)])
        return places

    places = yield from Sql(write, write=True)
    # Stored by somebody else before us, under the old tip: only `place` moves.
    if (
        parent is not TIP
        and places[0].parent != parent
        and not (parent is None and (yield from Sql(lambda conn: _is_system(conn, tree, places[0].parent))))
    ):
        yield from revise.place(conversation, places[0].seq, parent, selected.placement)
    yield from store(conversation, said[: newest + 1])
    return reason


def store(conversation: Conversation, given: Sequence[BaseMessage]) -> Flow[int]:
    """Store the end of a list: what follows the last message of it that is stored already.

    A message with a known id and other content is a new version of the old one; an answer beside older
    answers of the same turn supersedes them. Summaries and recalled text, which nobody said, are left out,
    and so are system messages: they belong to the program.

    Args:
        conversation: Where to.
        given: The list, as a graph's state holds it.

    Returns:
        How many messages were written.
    """
    said = _said(given)
    tree, other = (yield from tree_of(conversation)), conversation.runtime.parts.keep
    first = yield from Sql(lambda conn: _first_new(conn, tree, said, other))
    if first == len(said):
        return 0
    tail = said[max(first - 1, 0) :]  # from the last message that is stored already
    drafts = drafts_of(tail, other=other)

    def write(conn: Conn) -> int:
        trees.lock(conn, tree)
        start = _first_new(conn, tree, tail, other)  # Another writer may have been here since.
        if start < len(tail):
            _write(conn, tree, drafts, start)
        return len(tail) - start

    return (yield from Sql(write, write=True))


def recall_elsewhere(
    conversation: Conversation,
    query: str,
    path: Collection[BaseMessage],
    n_results: int,
    *,
    scope: Scope = "conversation",
    min_similarity: float = 0.3,
) -> Flow[list[Recalled]]:
    """What was said about a query in other threads, and summaries that cover more than the active thread, the
    best first.

    Args:
        conversation: The conversation that asks.
        query: The text to recall by.
        path: The active thread, which the model sees anyway.
        n_results: How many messages and summaries at most.
        scope: The other threads of this "conversation", or also all others of its "owner".
        min_similarity: What fits less by meaning is left out; without embeddings, what shares no word.

    Returns:
        Plain values, for `core.fence`.
    """
    if n_results < 1:
        return []
    most = n_results + min(len(path), _MOST_EXTRA)
    hits = yield from recall(conversation, query, Wanted(most, scope), 0)
    own = {message.id for message in path}

    def is_new(hit: Recollection) -> bool:
        if not hit.rank and hit.conversation_id == conversation.name and hit.node.message.id in own:
            return False
        if hit.why.similarity is None:
            return bool(hit.why.terms)
        return hit.why.similarity >= min_similarity

    found: list[Recalled] = []
    for hit in filter(is_new, hits):
        if len(found) == n_results:
            break
        if not hit.rank or not (yield from adds_nothing(conversation, hit, own)):
            found.append(recalled(hit))
    return found


def conversation_name(
    config: Mapping[str, Any], given: str | Callable[[Mapping[str, Any]], str] | None
) -> str:
    """The conversation that a LangGraph run belongs to: what the caller said, else the run's `thread_id`.

    Args:
        config: The run's configuration.
        given: A name, or a function from the configuration to a name.

    Raises:
        InputError: Neither is there.

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


def thread_to(conversation: Conversation, message_id: str) -> Flow[list[BaseMessage]]:
    """The messages from the root to a stored message, without system messages; empty if it is not stored."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> list[tuple[str, str]]:
        row = nodes.by_message(conn, tree, message_id)
        rows = [] if row is None else nodes.thread_messages(conn, row.key)
        return [(one, body) for one, body, role, _ in rows if role != "system"]

    return decode((yield from Sql(read)), other=conversation.runtime.parts.read)


def _said(given: Sequence[BaseMessage]) -> list[BaseMessage]:
    """What of a list people, models and tools have said."""
    said = [message for message in given if not (isinstance(message, SystemMessage) or is_made_up(message))]
    for message in said:
        if message.id is None:
            raise InputError(
                f"a message without an id cannot be followed from turn to turn: {message!r:.80}; "
                "give the state's messages the reducer add_messages, as MessagesState does"
            )
    return said


def _is_routed(conn: Conn, tree: int, message: BaseMessage, above: str | None, other: Writer) -> bool:
    """Whether a human message has the place it was routed to, rather than the one its list implies."""
    rows = nodes.versions(conn, tree, str(message.id))
    if not rows:
        return False
    body = encode(message, other)
    if any(row.body != body for row in rows):
        return True  # It is a new version, or has one.
    parent = None if rows[0].parent is None else nodes.by_seq(conn, tree, rows[0].parent)
    if (None if parent is None or parent.role == "system" else parent.message) != above:
        return True
    return any(row.role in _ANSWERS for row in nodes.children(conn, tree, [(rows[0].key, rows[0].seq)]))


def _is_system(conn: Conn, tree: int, seq: int | None) -> bool:
    row = None if seq is None else nodes.by_seq(conn, tree, seq)
    return row is not None and row.role == "system"


def _first_new(conn: Conn, tree: int, said: Sequence[BaseMessage], other: Writer) -> int:
    """The position after the last message that is stored as it is; usually found at the first look."""
    for index in range(len(said) - 1, -1, -1):
        rows = nodes.versions(conn, tree, str(said[index].id))
        if rows and (body := encode(said[index], other)) and any(row.body == body for row in rows):
            return index + 1
    return 0


def _write(conn: Conn, tree: int, drafts: Sequence[Draft], start: int) -> None:
    """Write the drafts from `start` on, and supersede what they replace."""
    new = drafts[start:]
    before = _stored_as(conn, tree, drafts[start - 1]) if start else None
    old = [row for draft in new for row in nodes.versions(conn, tree, draft.message)]
    replaced: dict[int, NodeRow | Outline] = {row.key: row for row in old}
    for one in old:
        replaced.update({row.key: row for row in nodes.answers(conn, tree, one.key, one.seq)})
    if before is not None:
        parent: int | None = before.seq
        if new[0].role in _ANSWERS:
            other_answers = nodes.answers(conn, tree, before.key, before.seq)
            replaced.update({row.key: row for row in other_answers})
    elif old and old[0].message == new[0].message:
        parent = old[0].parent  # The list was trimmed: the new version stands beside the old one.
    else:
        parent = _tip(conn, tree)
    live = [(row.key, row.seq) for row in replaced.values() if row.state == State.LIVE]
    if old or live:
        revision.replace(conn, tree, new, parent, live)
    else:
        growth.append(conn, tree, new, parent)


def _tip(conn: Conn, tree: int) -> int | None:
    key = trees.head(conn, tree).tip
    row = None if key is None else nodes.by_key(conn, key)
    return None if row is None else row.seq


def _stored_as(conn: Conn, tree: int, draft: Draft) -> NodeRow | None:
    """The place of a message with just this content, the live one first."""
    return next((row for row in nodes.versions(conn, tree, draft.message) if row.body == draft.body), None)


def _shows(conn: Conn, tree: int, before: Sequence[BaseMessage], path: Sequence[str]) -> bool:
    """Whether a list leads up to its human message as the thread does, and shows nothing of other threads.

    A list that was trimmed, or whose beginning was summarised, still shows its thread: its program wants it
    so.
    """
    if (before[-1].id if before else None) != (path[-2] if len(path) > 1 else None):
        return False
    own = set(path)
    strange = [str(message.id) for message in before if message.id not in own]
    return not any(row.state != State.ASIDE for one in strange for row in nodes.versions(conn, tree, one))
