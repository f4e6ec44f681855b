"""The verbs that list conversations and threads, and that set titles, metadata and the archive mark."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from langchain_threadmem.catalogue import queries
from langchain_threadmem.catalogue.queries import Outline, Profile, Row
from langchain_threadmem.catalogue.titles import title_of_thread
from langchain_threadmem.common.inputs import is_whole, time_of, zoned
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, SessionNotFoundError
from langchain_threadmem.filters.store import Filter, check_filter, passes
from langchain_threadmem.index import lexicon
from langchain_threadmem.index.catch_up_words import catch_up_owner_words
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.unindexed import Unindexed
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.display import Displayed, table
from langchain_threadmem.messages.ids import is_key, name_of, plain_text
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.messages.text import one_line, plural
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import navigate, nodes, placements, trees
from langchain_threadmem.tree.conversation import Conversation, tree_of
from langchain_threadmem.tree.navigate import MessageRef
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.rows import nodes_of
from langchain_threadmem.units.queries import TITLE

T = TypeVar("T")
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

    def is_listed(row: Row) -> bool:
        if archived != "both" and (row.profile.archived is not None) is not archived:
            return False
        if not passes(row.profile.metadata, metadata):
            return False
        if holding is None or row.tree in holding:
            return True
        return any(text in name.casefold() for name in (row.conversation, row.profile.title or ""))

    def read(conn: Conn) -> tuple[list[ConversationInfo], str | None]:
        rows: list[Row] = []
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

    def read(conn: Conn) -> tuple[list[_Branch], list[NodeRow], dict[int, str], bool, int | None]:
        branches = [branch for branch in _branches(queries.outline(conn, tree)) if branch.place < place]
        page = branches[:limit]
        keys = {key for branch in page for key in (branch.end, branch.last, branch.root, *branch.opening)}
        keys |= {key for branch in page for key in branch.asked}
        titles = placements.titles(conn, keys)
        return page, nodes.by_keys(conn, keys), titles, len(branches) > limit, trees.head(conn, tree).tip

    branches, rows, titles, more, tip = yield from Sql(read)
    node_of = dict(
        zip((row.key for row in rows), nodes_of(rows, conversation.runtime.parts.read), strict=True)
    )
    threads = [_thread(branch, node_of, titles, branch.end == tip) for branch in branches]
    return Page(threads, "{!r} {}".format(*branches[-1].place) if more else None)


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
    yield from catch_up_owner_words(runtime)
    terms = list(dict.fromkeys(runtime.get(Indexes).language.terms(query)))
    scope = lexicon.Scope(runtime.owner, None)

    def read(conn: Conn) -> set[int]:
        lists = dict(zip(terms, lexicon.holding(conn, terms, scope), strict=True))
        # The lists of very common words are cut, and these words distinguish few conversations.
        rare = [term for term in terms if len(lists[term]) < lexicon.MOST_PER_WORD] or terms[:1]
        trees_of = {term: queries.trees_of(conn, lists[term].tolist()) for term in rare}
        new = runtime.get(Unindexed).read(conn)
        for term, trees_of_term in trees_of.items():
            trees_of_term |= new.trees_holding(term)
        return set.intersection(*trees_of.values()) if trees_of else set()

    return (yield from Sql(read))


def _described(conn: Conn, rows: list[Row]) -> list[ConversationInfo]:
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


class _Branch(NamedTuple):
    """A thread.

    Attributes:
        root: The key of its first node.
        opening: The keys of its first two nodes.
        asked: The keys of its first human messages; of a branch those after the fork.
        end: The key of its last node.
        last: The key of the message said last.
        messages: The number of its messages.
        place: Its place in the list.
    """

    root: int
    opening: tuple[int, ...]
    asked: tuple[int, ...]
    end: int
    last: int
    messages: int
    place: tuple[float, int]


def _ends(outline: Mapping[int, Outline]) -> list[int]:
    """The numbers of the last nodes of the threads; a system message alone is not a thread."""
    continued: set[int] = set()
    for _, _, parent, _, state, _, _ in outline.values():
        # A live node continues superseded nodes above it too.
        while state == State.LIVE and parent is not None and parent not in continued:
            continued.add(parent)
            parent = outline[parent][2]
    return [
        seq
        for _, seq, _, role, state, _, _ in outline.values()
        if state == State.LIVE and role != "system" and seq not in continued
    ]


def _first_places(outline: Mapping[int, Outline]) -> dict[int, int]:
    """The numbers of the first places of moved nodes, by number; a moved node keeps its time."""
    first: dict[int, int] = {}
    for seq, created, by in sorted((row[1], row[5], row[6]) for row in outline.values() if row[6]):
        if by in outline and outline[by][5] == created:
            first[by] = first.get(seq, seq)
    return first


class _Path(NamedTuple):
    """The path from a root to a node.

    Attributes:
        opening: The keys of its first two nodes.
        asked: The keys of its first `ASKED` human messages since the root, or since it left an older path.
        forks: Whether it left an older path at a node after which no human message has come yet.
        messages: The number of its messages.
        said: The message that was said last: its time, the number of its first place, its key.
    """

    opening: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    forks: bool = False
    messages: int = 0
    said: tuple[float, int, int] = (-math.inf, 0, 0)


_NO_PATH = _Path()
ASKED = 2
"""The number of human messages in which the title of a thread is searched: the first may be a greeting."""


def _continued(path: _Path, row: Outline, number: int, *, forks: bool) -> _Path:
    """A path with one more node.

    Args:
        path: The path above the node.
        row: The node.
        number: The number of its first place.
        forks: Whether an older path continues the node above it too.
    """
    key, _, _, role, state, created, _ = row
    opening, asked, forks = path.opening, path.asked, path.forks or forks
    if len(opening) < 2:
        opening = (*opening, key)
    if role == "human":
        asked = (key,) if forks else (*asked, key)[:ASKED]
        forks = False
    messages, said = path.messages, path.said
    if state == State.LIVE and role in SPOKEN:
        messages, said = messages + 1, max(said, (created, number, key))
    return _Path(opening, asked, forks, messages, said)


def _branches(outline: Mapping[int, Outline]) -> list[_Branch]:
    """The threads, most recently used first; shared parts of their paths are visited once."""
    first_place = _first_places(outline)
    ends = _ends(outline)
    oldest = _oldest_below(outline, ends, first_place)
    path_of: dict[int | None, _Path] = {None: _NO_PATH}
    branches = []
    for end in ends:
        unvisited: list[int] = []
        seq: int | None = end
        while seq is not None and seq not in path_of:
            unvisited.append(seq)
            seq = outline[seq][2]
        for number in reversed(unvisited):
            parent, place = outline[number][2], first_place.get(number, number)
            forks = parent is not None and oldest[parent] != place
            path_of[number] = _continued(path_of[parent], outline[number], place, forks=forks)
        path, key, created = path_of[end], outline[end][0], outline[end][5]
        time, last = (path.said[0], path.said[2]) if path.messages else (created, key)
        branches.append(
            _Branch(path.opening[0], path.opening, path.asked, key, last, path.messages, (time, end))
        )
    return sorted(branches, key=attrgetter("place"), reverse=True)


def _oldest_below(
    outline: Mapping[int, Outline], ends: Iterable[int], first_place: Mapping[int, int]
) -> dict[int, int]:
    """For each node that threads continue, the first place of the oldest node below it on any thread."""
    oldest: dict[int, int] = {}
    visited: set[int] = set()
    for end in ends:
        seq, parent = end, outline[end][2]
        while seq not in visited and parent is not None:
            visited.add(seq)
            place = first_place.get(seq, seq)
            oldest[parent] = min(place, oldest.get(parent, place))
            seq, parent = parent, outline[parent][2]
    return oldest


def _thread(
    branch: _Branch, node_of: Mapping[int, ConversationNode], titles: Mapping[int, str], active: bool
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
