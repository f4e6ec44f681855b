"""SQL: the stored messages of imported conversations, and the writing of new messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import bindparam, select

from langchain_threadmem.catalogue import queries as catalogue
from langchain_threadmem.catalogue.queries import Profile
from langchain_threadmem.errors import InputError
from langchain_threadmem.importers.chats import Entry
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import State, node, segment
from langchain_threadmem.storage.statements import Conn, Statement
from langchain_threadmem.tree import nodes, placements, trees
from langchain_threadmem.tree.append import NodeWriter
from langchain_threadmem.tree.node import Placement
from langchain_threadmem.tree.nodes import STORED

_MESSAGES = Statement(
    select(*node.c["message", "key", "seq", "state"])
    .select_from(segment.join(node, node_keys.inside(node.c.key)))
    .where(segment.c.tree == bindparam("tree"), STORED),
    "tree",
)

SORTED = "sorted"
"""The metadata field of a linear conversation: whether `sort` has moved its messages."""


class Place(NamedTuple):
    """The key and the number of a stored node."""

    key: int
    seq: int


class NewNode(NamedTuple):
    """An entry to be written as a node, with the role, the encoded body and the time of its message."""

    entry: Entry
    role: str
    body: str
    created: float


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
    """

    where: str
    name: str
    nodes: Sequence[NewNode]
    ids: dict[str, str]
    tip: str | None
    created: float
    profile: Profile


class Added(NamedTuple):
    """The numbers of conversations and of messages that were written."""

    conversations: int
    messages: int


def stored_ids(conn: Conn, owner: str, names: Iterable[str]) -> dict[str, set[str]]:
    """The ids of the stored messages of conversations, by name; new conversations are omitted."""
    tree_of = {name: trees.find(conn, owner, name) for name in dict.fromkeys(names)}
    return {name: set(_places(conn, tree)) for name, tree in tree_of.items() if tree is not None}


def add(conn: Conn, owner: str, chats: Iterable[NewNodes]) -> Added:
    """Write new nodes of conversations, and the profiles of new conversations.

    Raises:
        InputError: The owner has a conversation of the same name with other messages.
    """
    conversations = messages = 0
    # All processes lock conversations in the order of names, which prevents deadlocks.
    for chat in sorted(chats, key=lambda chat: chat.name):
        tree = trees.find_or_create(conn, owner, chat.name, chat.created)
        trees.lock(conn, tree)
        head = trees.head(conn, tree)
        added = _write(conn, tree, head, chat)
        messages += added
        if head.next_seq == 1:
            catalogue.put_profile(conn, tree, chat.profile)
            conversations += 1
            continue
        if chat.profile.title and (profile := catalogue.profile_of(conn, tree)).title is None:
            catalogue.put_profile(conn, tree, profile._replace(title=chat.profile.title))
        if added:
            _mark(conn, tree, is_sorted=False)
    return Added(conversations, messages)


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
        _mark(conn, tree, is_sorted=True)


def _mark(conn: Conn, tree: int, is_sorted: bool) -> None:
    profile = catalogue.profile_of(conn, tree)
    if profile.metadata.get(SORTED) is not None and profile.metadata[SORTED] is not is_sorted:
        catalogue.put_profile(conn, tree, profile._replace(metadata={**profile.metadata, SORTED: is_sorted}))


def _places(conn: Conn, tree: int) -> dict[str, Place]:
    """The places of messages by their ids: the live node or, if there is none, the newest node."""
    rows = conn.all(_MESSAGES, tree)
    rows.sort(key=lambda row: (row[3] == State.LIVE, row[2]))
    return {message: Place(key, seq) for message, key, seq, _ in rows}


def _write(conn: Conn, tree: int, head: trees.Head, chat: NewNodes) -> int:
    """Write the nodes of a conversation that are not stored yet; returns their number."""
    stored = _places(conn, tree)
    if stored and not any(id in stored for id in (*chat.ids.values(), *(n.entry.parent for n in chat.nodes))):
        raise InputError(
            f"{chat.where} is conversation {chat.name!r}, and there is another conversation of this name; "
            "import the file for another owner, or rename the file"
        )
    new_nodes = [new for new in chat.nodes if new.entry.id not in stored]
    keys, seqs = _stored_entries(stored, chat.ids)
    is_new = head.next_seq == 1
    for seq, (entry, *_) in enumerate(new_nodes, head.next_seq):
        seqs[entry.key] = entry.number if is_new and entry.number is not None else seq
    writer = NodeWriter(conn, tree, head)
    for entry, role, body, created in new_nodes:
        keys[entry.key] = writer.add(
            keys.get(entry.parent or ""),
            seqs.get(entry.parent or ""),
            entry.id,
            role,
            body,
            created,
            int(entry.state),
            seqs.get(entry.superseded_by or ""),
            seq=seqs[entry.key],
        )
    writer.flush()
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
    tip = head.tip
    # A thread that was continued here stays the active thread.
    if is_new or tip in {stored[id].key for id in chat.ids.values() if id in stored}:
        ends = live or (new_nodes if is_new else [])
        tip = keys.get(chat.tip or "", keys[ends[-1].entry.key] if ends else tip)
    trees.settle(conn, tree, tip, systems[max(systems)] if systems else head.system)
    return len(new_nodes)


def _stored_entries(
    stored: Mapping[str, Place], ids: Mapping[str, str]
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
