"""The verbs that list conversations and threads, and that set titles, metadata and the archive mark."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from langchain_threadmem.common.filters.store import Filter, check_filter, passes
from langchain_threadmem.common.inputs import is_whole, time_of, zoned
from langchain_threadmem.common.type_variables import T
from langchain_threadmem.common.visited import Visited
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, SessionNotFoundError
from langchain_threadmem.index import lexicon
from langchain_threadmem.index.catch_up_words import catch_up_words
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.unindexed import new_messages
from langchain_threadmem.index.units.queries import TITLE
from langchain_threadmem.long_term.lists import queries, thread_list
from langchain_threadmem.long_term.lists.queries import ConversationRow, Profile
from langchain_threadmem.long_term.lists.thread_list import Branch, Branches, ThreadLists
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.display import Displayed, table
from langchain_threadmem.messages.ids import is_key, name_of, plain_text
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.selection.titles import title_of_thread
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import navigate, nodes, placements, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.navigate import MessageRef
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement, nodes_of
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.trees import NO_TREE

Archived = bool | Literal["both"]
PREVIEW = 120
"""The length of a preview in characters."""
OPENING = 8
"""The number of messages that are searched for the first human message."""


class Page(list[T]):
    """A page of a list, in order.

    Attributes:
        cursor: The argument `cursor` for the next page; `None` on the last page.
    """

    def __init__(self, items: list[T], cursor: str | None) -> None:
        super().__init__(items)
        self.cursor = cursor

    def _repr_html_(self) -> str:
        rows = [item for item in self if isinstance(item, Displayed)]
        more = f"More: cursor={self.cursor!r}" if self.cursor else ""
        return table(rows, more) if rows else "<small>nothing to list</small>"


@dataclass(frozen=True, slots=True)
class ConversationInfo(Displayed):
    """A conversation of a list.

    Attributes:
        id: The name of the conversation.
        title: The title that was set, else the title of the summary, else the first words of the first
            question, without a greeting and without constant text.
        preview: The beginning of the message that was said last, on one line. A moved message keeps its
            time.
        messages: The number of live messages of people and models.
        started: The creation time of the conversation.
        updated: The time of the newest message; to move messages does not change it.
        metadata: The metadata that was set with `update_conversation`.
        archived: The time of archiving; `None` if the conversation is not archived.
        summary: The summary of the conversation, if any.
    """

    id: str
    title: str
    preview: str
    messages: int
    started: datetime
    updated: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    archived: datetime | None = None
    summary: str | None = None

    def _cells(self) -> dict[str, str]:
        return {
            "conversation": self.id,
            "title": self.title,
            "messages": f"{self.messages:,}",
            "last use": f"{self.updated:%Y-%m-%d %H:%M}",
            "newest message": self.preview,
            "archived": f"{self.archived:%Y-%m-%d %H:%M}" if self.archived else "",
            "summary": self.summary or "",
        }

    def _line(self) -> str:
        updated = f"{self.updated:%Y-%m-%d %H:%M}"
        return f"{self.id}: {self.title} ({plural(self.messages, 'message')}, last use {updated})"


@dataclass(frozen=True, slots=True)
class ThreadInfo(Displayed):
    """A thread of a conversation.

    Attributes:
        id: The id of the last node.
        root_id: The id of the first node.
        title: The title that was set with `rename_thread` or given by a chat model, or the first words
            of its first question; of a branch the first question after the fork.
        preview: The beginning of the message that was said last, on one line.
        messages: The number of live messages of people and models.
        started: The time of the first message.
        updated: The time of the message that was said last.
        active: Whether the thread is the active thread.
        summary: The title and the summary of the newest message, if any.
    """

    id: int
    root_id: int
    title: str
    preview: str
    messages: int
    started: datetime
    updated: datetime
    active: bool
    summary: MessageSummary | None = None

    def _cells(self) -> dict[str, str]:
        return {
            "thread": str(self.id),
            "title": self.title,
            "messages": f"{self.messages:,}",
            "last use": f"{self.updated:%Y-%m-%d %H:%M}",
            "newest message": self.preview,
            "active": "yes" if self.active else "",
            "summary": self.summary.summary if self.summary else "",
        }

    def _line(self) -> str:
        active = ", active" if self.active else ""
        return f"{self.id}: {self.title} ({plural(self.messages, 'message')}{active})"


def list_conversations(
    runtime: Runtime,
    query: str | None = None,
    metadata: Filter | None = None,
    since: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
    archived: Archived = False,
) -> Flow[Page[ConversationInfo]]:
    """The conversations of the owner, most recently used first; see `MemorySystem.list_conversations`."""
    check_filter(metadata)
    if archived != "both":
        _check_archived(archived)
    place, earliest = _place(cursor), _earliest(since)
    _check_limit(limit)
    if not isinstance(query, str | None):
        raise InputError(f"query={query!r} is not a string; pass the words to search for")
    text = (query or "").casefold()
    holding = None if query is None else (yield from _holding(runtime, query))

    def is_listed(row: ConversationRow) -> bool:
        if archived != "both" and (row.profile.archived is not None) is not archived:
            return False
        if not passes(row.profile.metadata, metadata):
            return False
        if holding is None or row.tree in holding:
            return True
        return any(text in name.casefold() for name in (row.conversation, row.profile.title or ""))

    def read(conn: Conn) -> tuple[list[ConversationInfo], str | None]:
        rows: list[ConversationRow] = []
        # A title or a name may contain the query too, so the trees cannot be limited to `holding`.
        for tree_ids in trees.latest_first(conn, runtime.owner, place, earliest, limit + 1):
            rows += filter(is_listed, queries.rows_of(conn, tree_ids))
            if len(rows) > limit:
                break
        end = rows[limit - 1] if len(rows) > limit else None
        return _described(conn, rows[:limit]), None if end is None else f"{end.used!r} {end.tree}"

    return Page(*(yield from Sql(read)))


def list_threads(
    conversation: Conversation, limit: int = 50, cursor: str | None = None
) -> Flow[Page[ThreadInfo]]:
    """The threads of a conversation, most recently used first; see `ChatMemory.list_threads`."""
    place = _place(cursor)
    _check_limit(limit)
    tree = yield from tree_of(conversation)

    lists = conversation.runtime.get(ThreadLists).values
    cached = lists.get((tree,))

    def read(conn: Conn) -> tuple[Branches, list[Branch], bool, list[NodeRow], dict[int, str], int | None]:
        head = trees.head(conn, tree)
        threads = thread_list.current(conn, tree, head, cached)
        page, more = threads.before(place, limit)
        keys = {key for one in page for key in (one.end, one.last, *one.opening, *one.asked)}
        return (
            threads,
            page,
            more,
            nodes.by_keys(conn, keys),
            placements.titles(conn, keys),
            _end_of(conn, tree, head),
        )

    current, page, more, rows, titles, tip = yield from Sql(read)
    if tree != NO_TREE:
        lists.put((tree,), current)
    node_of = dict(
        zip((row.key for row in rows), nodes_of(rows, conversation.runtime.parts.read), strict=True)
    )
    threads = [_thread(branch, node_of, titles, branch.end == tip) for branch in page]
    return Page(threads, "{!r} {}".format(*page[-1].place) if more else None)


def title_of_conversation(conversation: Conversation) -> Flow[str]:
    """The title of a conversation, as in the list; its name if it has no messages."""
    tree = yield from tree_of(conversation)

    def read(conn: Conn) -> str:
        rows = queries.rows_of(conn, [tree])
        return _described(conn, rows)[0].title if rows else conversation.name

    return (yield from Sql(read))


def rename_thread(conversation: Conversation, message: MessageRef, title: str) -> Flow[str]:
    """Set the title of the threads with the root of a message; see `ChatMemory.rename_thread`."""
    title = "" if title == "" else plain_text("a title", title)
    tree = yield from tree_of(conversation)

    def write(conn: Conn) -> tuple[str, list[NodeRow]]:
        trees.lock(conn, tree)
        spans = nodes.spans(conn, navigate.message_in(conn, tree, message).key)
        opening = nodes.first_of(conn, spans, 2)
        # The first node may be a system message.
        titled = next((row for row in opening if row.role != "system"), opening[0])
        new = replace(placements.by_key(conn, titled.key) or Placement(""), title=title)
        if new == Placement(""):
            placements.drop(conn, titled.key)
        else:
            placements.put(conn, [(titled.key, titled.message, new)])
        trees.changed(conn, tree)
        return title, opening

    new, opening = yield from Sql(write, write=True)
    return new or title_of_thread(node.message for node in nodes_of(opening))


def update_conversation(
    runtime: Runtime,
    conversation: str,
    title: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    archived: bool | None = None,
) -> Flow[ConversationInfo]:
    """Set the title, metadata or archive mark of a conversation; see `MemorySystem.update_conversation`."""
    conversation = name_of("a conversation_id", conversation)
    title = title if title is None or title == "" else plain_text("a title", title)
    if archived is not None:
        _check_archived(archived)
    _check_metadata(metadata)
    owner, now = runtime.owner, time.time()

    def write(conn: Conn) -> ConversationInfo:
        tree = trees.find(conn, owner, conversation)
        if tree is None:
            raise SessionNotFoundError(
                f"there is no conversation {conversation!r}; MemorySystem.conversations() lists all"
            )
        trees.lock(conn, tree)
        old = queries.profile_of(conn, tree)
        new = Profile(
            old.title if title is None else title or None,
            old.metadata if metadata is None else metadata,
            old.archived if archived is None else (old.archived or now) if archived else None,
        )
        queries.put_profile(conn, tree, new)
        rows = queries.rows_of(conn, [tree])
        return _described(conn, rows)[0] if rows else _empty(conversation, new)

    return (yield from Sql(write, write=True))


def _place(cursor: str | None) -> tuple[float, int]:
    if cursor is None:
        return trees.LATEST
    try:
        used, number = cursor.split(" ")
        place = float(used), int(number)
        if not (math.isfinite(place[0]) and is_key(place[1])):
            raise ValueError("out of range")
        return place
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"cursor={cursor!r} is not a cursor; pass the cursor of a page, or None") from error


def _earliest(since: datetime | None) -> float:
    if since is None:
        return -math.inf
    if not isinstance(since, datetime):
        raise InputError(f"since={since!r} is not a datetime; pass a datetime (a time without a zone is UTC)")
    return zoned(since).timestamp()


def _check_limit(limit: int) -> None:
    if not is_whole(limit, 1):
        raise InputError(f"limit={limit!r} is not an integer of at least 1; pass a number of list items")


def _check_archived(archived: object) -> None:
    if not isinstance(archived, bool):
        raise InputError(f"archived={archived!r} is neither True nor False; only lists take 'both'")


def _check_metadata(metadata: object) -> None:
    if metadata is None:
        return
    try:
        if not isinstance(metadata, Mapping) or json.loads(json.dumps(dict(metadata))) != dict(metadata):
            raise TypeError("use strings as keys and JSON values")
    except (TypeError, ValueError) as error:
        raise InputError(f"metadata={metadata!r} is not a JSON object: {error}") from error


def _holding(runtime: Runtime, query: str) -> Flow[set[int]]:
    """The trees of conversations whose messages contain every word of a query."""
    if runtime.encrypted:
        return set()  # An encrypted memory has no lexicon.
    yield from catch_up_words(runtime, None)
    terms = list(dict.fromkeys(runtime.get(Indexes).language.terms(query)))
    scope = lexicon.LexiconScope(runtime.owner, None)

    def read(conn: Conn) -> set[int]:
        lists = dict(zip(terms, lexicon.holding(conn, terms, scope), strict=True))
        # The lists of very common words are cut, and these words distinguish few conversations.
        rare = [term for term in terms if len(lists[term]) < lexicon.MOST_PER_WORD] or terms[:1]
        trees_of = {term: queries.trees_of(conn, lists[term].tolist()) for term in rare}
        new = new_messages(conn, runtime)
        for term, trees_of_term in trees_of.items():
            trees_of_term |= new.trees_holding(term)
        return set.intersection(*trees_of.values()) if trees_of else set()

    return (yield from Sql(read))


def _described(conn: Conn, rows: list[ConversationRow]) -> list[ConversationInfo]:
    """Rows of the list with their titles, previews and summaries."""
    summaries = queries.summaries_of(conn, [row.tree for row in rows])
    last = [row.last for row in rows if row.last is not None]
    stored = nodes.by_keys(conn, [*last, *summaries.values()])
    message_of = {row.key: node.message for row, node in zip(stored, nodes_of(stored), strict=True)}
    openings = nodes.openings(conn, [row.tree for row in rows], OPENING)
    infos = []
    for row in rows:
        summary = message_of[summaries[row.tree]] if row.tree in summaries else None
        title = row.profile.title or (None if summary is None else summary.additional_kwargs.get(TITLE))
        said = None if row.last is None else message_of.get(row.last)
        infos.append(
            ConversationInfo(
                row.conversation,
                title
                or title_of_thread(
                    node.message
                    for opening in openings.get(row.tree, ())
                    for node in nodes_of([_current(conn, row.tree, opening)])
                )
                or row.conversation,
                "" if said is None else one_line(text_of(said), PREVIEW),
                row.messages,
                datetime.fromtimestamp(row.created, UTC),
                datetime.fromtimestamp(row.used, UTC),
                dict(row.profile.metadata),
                time_of(row.profile.archived),
                None if summary is None else text_of(summary),
            )
        )
    return infos


def _empty(conversation: str, profile: Profile) -> ConversationInfo:
    now, archived = datetime.now(UTC), time_of(profile.archived)
    return ConversationInfo(
        conversation, profile.title or conversation, "", 0, now, now, dict(profile.metadata), archived
    )


def _current(conn: Conn, tree: int, row: NodeRow) -> NodeRow:
    """The node that has replaced a node at last, else the node."""
    while row.state == State.SUPERSEDED and row.superseded_by is not None:
        newer = nodes.by_seq(conn, tree, row.superseded_by)
        if newer is None or newer.seq <= row.seq:
            break
        row = newer
    return row


def _end_of(conn: Conn, tree: int, head: trees.Head) -> int | None:
    """The key of the end of the active thread, without the system messages below it."""
    row = None if head.tip is None else nodes.by_keys(conn, [head.tip])[0]
    visited = Visited()
    while row is not None and row.role == "system" and row.parent is not None:
        visited.add(row.key)
        row = nodes.by_seq(conn, tree, row.parent)
    return None if row is None else row.key


def _thread(
    branch: Branch, node_of: Mapping[int, ConversationNode], titles: Mapping[int, str], active: bool
) -> ThreadInfo:
    first, end, last = (node_of[key] for key in (branch.root, branch.end, branch.last))
    return ThreadInfo(
        end.id,
        first.id,
        # The first node may be a system message.
        next((titles[key] for key in branch.opening if titles.get(key)), "")
        or title_of_thread(node_of[key].message for key in branch.asked)
        or f"thread {end.id}",
        one_line(text_of(last.message), PREVIEW),
        branch.messages,
        first.timestamp,
        last.timestamp,
        active,
        end.summary,
    )
