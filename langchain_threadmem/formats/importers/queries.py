"""SQL: the stored messages of imported conversations, and the writing of new messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import bindparam, select

from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.importers.chats import Chat, Entry
from langchain_threadmem.long_term.lists import queries as catalogue
from langchain_threadmem.long_term.lists.queries import Profile
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, node, segment
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import grafts, nodes, placements, superseding, trees
from langchain_threadmem.tree.append import NodeWriter
from langchain_threadmem.tree.node import Placement
from langchain_threadmem.tree.nodes import NodeRow

_MESSAGES = Statement(
    select(*node.c["message", "key", "seq", "state"])
    .select_from(segment.join(node, node_keys.inside(node.c.key)))
    .where(segment.c.tree == bindparam("tree")),
    "tree",
)

SORTED = "sorted"
"""The metadata field of a linear conversation: whether `sort` has moved its messages."""
SOURCE, IMPORTED = "source", "imported"
"""The metadata fields of an imported conversation: the format, and the values of the last import."""


class NodeKey(NamedTuple):
    """The key and the number of a stored node."""

    key: int
    seq: int


class NewNode(NamedTuple):
    """An entry to be written as a node, with the role, the encoded body and the time of its message."""

    entry: Entry
    role: str
    body: str
    created: float


class LastImport(NamedTuple):
    """What the last import read, to tell what has changed in the program from what has changed here.

    Attributes:
        title: The title.
        archived: Whether the conversation was archived.
        tip: The key of the entry at the end of the active thread.
        ids: The fingerprint of the messages, see `Chat`.
    """

    title: str | None = None
    archived: bool = False
    tip: str | None = None
    ids: str = ""


class NewNodes(NamedTuple):
    """The new nodes of an imported conversation, parents before children.

    Attributes:
        where: The position in the file, for errors.
        name: The name of the conversation.
        nodes: The nodes.
        ids: The message id of each entry of the file, by its key.
        tip: The key of the entry at the end of the active thread.
        created: The time of the conversation.
        profile: Title, metadata and archive mark of the conversation.
        imported: The values of the file for the next import.
        is_branch: Whether the nodes are a branch of a conversation that has its own title.
        is_part: Whether the conversation need not have one of the messages yet.
        replaced: The stored node of each message whose new version is in `nodes`, by its id.
    """

    where: str
    name: str
    nodes: Sequence[NewNode]
    ids: dict[str, str]
    tip: str | None
    created: float
    profile: Profile
    imported: LastImport
    is_branch: bool = False
    is_part: bool = False
    replaced: Mapping[str, NodeRow] = MappingProxyType({})


class Added(NamedTuple):
    """The numbers of conversations, of messages, and of new versions of messages that were written."""

    conversations: int
    messages: int
    updated: int


class Stored(NamedTuple):
    """A stored conversation that a chat may belong to.

    Attributes:
        name: The name of the conversation.
        ids: The ids of its messages.
        profile: Its profile; `None` for a new conversation.
        versions: The nodes of the messages of the chat that may have changed, by their ids.
    """

    name: str
    ids: Collection[str] = frozenset()
    profile: Profile | None = None
    versions: Mapping[str, Sequence[NodeRow]] = MappingProxyType({})

    @property
    def imported(self) -> LastImport | None:
        """The values of the last import; `None` if the conversation was not imported."""
        value = self.profile.metadata.get(IMPORTED) if self.profile is not None else None
        return (
            LastImport(**value) if isinstance(value, dict) and value.keys() == {*LastImport._fields} else None
        )


def stored(conn: Conn, owner: str, chats: Sequence[tuple[Chat, str]]) -> list[Stored]:
    """The conversation to which each chat belongs: a stored one, or a new one.

    A name that another imported conversation has gets a number: two conversations of a file may have one
    name.

    Args:
        conn: The transaction.
        owner: The owner.
        chats: The chats and their formats.
    """
    names = _Names(conn, owner)
    return [names.of(chat, format) for chat, format in chats]


class _Names:
    """The conversations of an owner by name, with those of the chats before."""

    def __init__(self, conn: Conn, owner: str) -> None:
        self._conn, self._owner = conn, owner
        self._stored: dict[str, Stored] = {}
        self._read: dict[str, tuple[set[str], str]] = {}
        """The ids and the format of the chats before, by the name of their conversation."""

    def of(self, chat: Chat, format: str) -> Stored:
        """The conversation of a chat."""
        if (same := self._same(chat)) is not None:
            return same
        source = next((found for name in chat.branch_of if (found := self._find(name)).ids), None)
        found = source or next(
            one
            for one in (self._find(chat.name if n == 1 else f"{chat.name}-{n}") for n in count(1))
            if self._fits(one, chat, format)
        )
        ids, _ = self._read.setdefault(found.name, (set(), format))
        # A branch, and a later copy of a conversation, may have messages as they were before.
        changed = set() if source is not None else {id for id in chat.ids if id in found.ids} - ids
        ids.update(chat.ids)
        return found._replace(versions=self._versions(found.name, changed)) if changed else found

    def _versions(self, name: str, ids: Collection[str]) -> dict[str, list[NodeRow]]:
        """The nodes of messages; none of those that were removed here, which an import does not renew."""
        rows = [
            row
            for row in self._conn.all(_MESSAGES, trees.find(self._conn, self._owner, name))
            if row[0] in ids
        ]
        removed = {message for message, _, _, state in rows if state in nodes.HIDDEN}
        found: dict[str, list[NodeRow]] = {}
        for row in nodes.by_keys(self._conn, [key for message, key, *_ in rows if message not in removed]):
            found.setdefault(row.message, []).append(row)
        for versions in found.values():
            versions.sort(key=lambda row: (row.state == State.LIVE, row.seq), reverse=True)
        return found

    def _same(self, chat: Chat) -> Stored | None:
        """The conversation whose last import had the messages of a chat; none of them is read."""
        if chat.goes_on or chat.is_part or chat.branch_of or chat.name in self._read:
            return None
        tree = trees.find(self._conn, self._owner, chat.name)
        if tree is None:
            return None
        found = Stored(chat.name, {*chat.ids}, catalogue.profile_of(self._conn, tree))
        imported = found.imported
        return found if imported is not None and imported.ids == chat.fingerprint else None

    def _fits(self, one: Stored, chat: Chat, format: str) -> bool:
        read, read_as = self._read.get(one.name, (set(), None))
        if not (one.ids or read) or not chat.ids or any(id in one.ids or id in read for id in chat.ids):
            return True
        source = one.profile.metadata.get(SOURCE) if one.profile is not None else read_as
        return chat.goes_on or (chat.is_part and source == format) or source is None

    def _find(self, name: str) -> Stored:
        if name not in self._stored:
            tree = trees.find(self._conn, self._owner, name)
            found = Stored(name)
            if tree is not None:
                found = Stored(name, {*_places(self._conn, tree)}, catalogue.profile_of(self._conn, tree))
            self._stored[name] = found
        return self._stored[name]


def add(conn: Conn, owner: str, chats: Iterable[NewNodes]) -> Added:
    """Write new nodes of conversations, and what changed in their profiles."""
    conversations = messages = updated = 0
    # All processes lock conversations in the order of names, which prevents deadlocks.
    for chat in sorted(chats, key=lambda chat: chat.name):
        tree = trees.find_or_create(conn, owner, chat.name, chat.created)
        trees.lock(conn, tree)
        head = trees.head(conn, tree)
        is_new = head.next_seq == 1
        before = None if is_new else catalogue.profile_of(conn, tree)
        added, renewed = _write(
            conn, tree, head, chat, None if before is None else Stored("", (), before).imported
        )
        messages += added
        updated += renewed
        profile = _profile(chat, before)
        if added and before is not None and SORTED in profile.metadata:
            profile = profile._replace(metadata={**profile.metadata, SORTED: False})
        if profile != before and not (is_new and not added):
            catalogue.put_profile(conn, tree, profile)
        conversations += is_new
    return Added(conversations, messages, updated)


def _profile(chat: NewNodes, before: Profile | None) -> Profile:
    """The profile after an import: what was changed here stays, else it follows the program."""
    if before is None:
        return chat.profile._replace(metadata={**chat.profile.metadata, IMPORTED: chat.imported._asdict()})
    if chat.is_branch:
        return before
    last = Stored("", (), before).imported or LastImport(before.title, before.archived is not None)
    title, archived = before.title, before.archived
    if chat.profile.title and title in (None, last.title):
        title = chat.profile.title
    if chat.imported.archived != last.archived and (archived is not None) == last.archived:
        archived = chat.profile.archived
    others = {name: value for name, value in chat.profile.metadata.items() if name != SORTED}
    metadata = {**before.metadata, **others, IMPORTED: chat.imported._asdict()}
    return Profile(title, metadata, archived)


def another(where: str, name: str) -> str:
    """The problem of a chat with the name of a conversation that was not imported."""
    return (
        f"{where} is conversation {name!r}, and there is another conversation of this name; "
        "import the file for another owner, or rename the file"
    )


def unsorted(conn: Conn, owner: str, names: Iterable[str]) -> dict[str, int]:
    """The numbers of messages of the conversations that are not sorted yet, by name."""
    counts = {}
    for name in names:
        tree = trees.find(conn, owner, name)
        if tree is not None and catalogue.profile_of(conn, tree).metadata.get(SORTED) is False:
            counts[name] = trees.head(conn, tree).next_seq - 1
    return counts


def mark_sorted(conn: Conn, owner: str, name: str) -> None:
    """Record in the metadata of a conversation that it is sorted."""
    tree = trees.find(conn, owner, name)
    if tree is not None:
        trees.lock(conn, tree)
        profile = catalogue.profile_of(conn, tree)
        if profile.metadata.get(SORTED) is False:
            sorted_metadata = {**profile.metadata, SORTED: True}
            catalogue.put_profile(conn, tree, profile._replace(metadata=sorted_metadata))


def _places(conn: Conn, tree: int) -> dict[str, NodeKey]:
    """The places of messages by their ids: the live node or, if there is none, the newest node."""
    rows = [row for row in conn.all(_MESSAGES, tree) if row[3] not in nodes.HIDDEN]
    rows.sort(key=lambda row: (row[3] == State.LIVE, row[2]))
    return {message: NodeKey(key, seq) for message, key, seq, _ in rows}


def _write(
    conn: Conn, tree: int, head: trees.Head, chat: NewNodes, last: LastImport | None
) -> tuple[int, int]:
    """Write the nodes that are not stored yet, and new versions; returns the number of each."""
    stored = _places(conn, tree)
    if stored and not chat.is_part and stored.keys().isdisjoint(chat.ids.values()):
        raise InputError(another(chat.where, chat.name))
    # What was changed since the versions were read stays.
    replaced = {id: old for id, old in chat.replaced.items() if id in stored and stored[id].key == old.key}
    new_nodes = [new for new in chat.nodes if new.entry.id not in stored or new.entry.id in replaced]
    keys, seqs = _stored_entries(stored, chat.ids)
    is_new = head.next_seq == 1
    for seq, (entry, *_) in enumerate(new_nodes, head.next_seq):
        seqs[entry.key] = entry.number if is_new and entry.number is not None else seq
    for entry, *_ in new_nodes:
        if entry.id in replaced:
            seqs[entry.id] = seqs[entry.key]
            if entry.state != State.SUPERSEDED:
                superseding.supersede(conn, tree, [replaced[entry.id].key], seqs[entry.key])
    writer = NodeWriter(conn, tree, head)
    for entry, role, body, created in new_nodes:
        keys[entry.id] = keys[entry.key] = writer.add(
            keys.get(entry.parent or ""),
            seqs.get(entry.parent or ""),
            entry.id,
            role,
            body,
            created,
            int(entry.state),
            seqs.get(entry.superseded_by or "", _successor(replaced.get(entry.id))),
            seq=seqs[entry.key],
        )
    writer.flush()
    renewed = {id: old for id, old in replaced.items() if old.state != State.SUPERSEDED}
    tips = {old.key: keys[id] for id, old in renewed.items()}
    for id, old in renewed.items():
        _renew_below(conn, tree, old, keys[id], seqs[id], tips)
    for entry, *_ in new_nodes:
        if entry.summary is not None:
            nodes.put_summary(conn, tree, keys[entry.key], entry.id, entry.summary)
    placements.put(
        conn,
        [
            (keys[entry.key], entry.id, _renumbered(entry.placement, seqs))
            for entry, *_ in new_nodes
            if entry.placement is not None
        ],
    )
    live = [new for new in new_nodes if new.entry.state == State.LIVE]
    systems = {seqs[new.entry.key]: keys[new.entry.key] for new in live if new.role == "system"}
    shown = [
        new for new in live if new.entry.id not in replaced or replaced[new.entry.id].state == State.ASIDE
    ]
    ends = shown or (new_nodes if is_new else [])
    tip = tips.get(head.tip or 0, head.tip)
    # A thread that was continued here stays the active thread, and so does a thread that was chosen here.
    is_of_file = (
        is_new or chat.is_part or head.tip in {stored[id].key for id in chat.ids.values() if id in stored}
    )
    if is_of_file and (ends or last is None or last.tip != chat.imported.tip):
        end = keys.get(chat.tip or "", keys[ends[-1].entry.key] if ends else tip)
        if is_new or not (chat.is_part and _is_older(conn, end, tip)):
            tip = end
    trees.set_head(conn, tree, tip, systems[max(systems)] if systems else head.system)
    return len(new_nodes) - len(replaced), len(replaced)


def _successor(old: NodeRow | None) -> int | None:
    """The number of the node that replaced a message here; `None` for a message that was not replaced."""
    return None if old is None else old.superseded_by


def _renew_below(conn: Conn, tree: int, old: NodeRow, key: int, seq: int, replaced: Collection[int]) -> None:
    """Move what follows the old version of a message below its new version.

    Args:
        conn: A write transaction.
        tree: The tree.
        old: The old version.
        key: The key of the new version.
        seq: The number of the new version.
        replaced: The keys of all old versions, which stay.
    """
    conn.run(superseding.COPY_CHOICE, key, old.key)
    above = nodes.spans(conn, key)
    for child in nodes.children(conn, tree, [(old.key, old.seq)]):
        if child.key not in replaced and not nodes.contain(above, child.key):
            grafts.move(conn, tree, child.key, key, seq)


def _is_older(conn: Conn, key: int | None, other: int | None) -> bool:
    """Whether a node is older than another node."""
    rows = {row.key: row.created for row in nodes.by_keys(conn, [n for n in (key, other) if n is not None])}
    return rows.get(key or 0, 0.0) < rows.get(other or 0, 0.0)


def _stored_entries(
    stored: Mapping[str, NodeKey], ids: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, int]]:
    """The keys and the numbers of the nodes of stored messages, by the keys of their entries.

    They are also given by the ids of messages, since the first entry of a later piece of a list has the id of
    a message of the piece before as its parent.
    """
    places = {**stored, **{entry_key: stored[id] for entry_key, id in ids.items() if id in stored}}
    return (
        {name: place.key for name, place in places.items()},
        {name: place.seq for name, place in places.items()},
    )


def _renumbered(placement: Placement, numbers: Mapping[str, int]) -> Placement:
    """A placement whose candidates are stored nodes; `numbers` has their numbers by the keys of entries."""
    chances = [
        (None if candidate is None else numbers[str(candidate)], chance)
        for candidate, chance in placement.chances
        if candidate is None or str(candidate) in numbers
    ]
    return replace(placement, chances=chances)
