"""Imported conversations as values: their messages, the order of writing, and ids of messages without ids."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.graph import circular, parents_first
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement

PIECE_SIZE = 5_000
"""The number of messages in a piece of a long list."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of an imported conversation.

    Attributes:
        key: The id of the entry in the export, unique in the conversation.
        parent: The `key` of the parent entry. An entry whose parent does not exist is a root.
        make: Builds the message. Called for new messages only, since building takes most of the time.
        time: The time of the message, in seconds since 1970; `None` if the export has no time.
        message_id: The id of the message, if it differs from `key`.
        state: See `State`.
        superseded_by: The `key` of the entry that replaced it.
        summary: The summary of the message.
        placement: The reason for the place of the message; the text of a candidate is the `key` of an entry.
        number: The number of the node in a new conversation; by default in the order of time.
        source: The value that the message is built from, which changes with its content; by default the
            message.
    """

    key: str
    parent: str | None
    make: Callable[[], BaseMessage]
    time: float | None = None
    message_id: str | None = None
    state: State = State.LIVE
    superseded_by: str | None = None
    summary: MessageSummary | None = None
    placement: Placement | None = None
    number: int | None = None
    source: object = None

    @property
    def id(self) -> str:
        """The id of the message."""
        return self.message_id or self.key


@dataclass(frozen=True)
class Chat:
    """A conversation of an export, or a piece of it.

    Attributes:
        where: The position in the file, for errors.
        name: The name of the conversation.
        entries: The messages, in any order.
        title: The title; `None` for a title from the first message.
        tip: The `key` of the entry at the end of the active thread, or of an entry aside below it; by default
            the newest entry.
        created: The time of the conversation, in seconds since 1970, if the export has one.
        archived: The time of archiving, if the conversation is archived.
        goes_on: Whether the chat is a later piece of a conversation.
        metadata: Values of the program for the metadata of the conversation.
        branch_of: The names of conversations that this one continues. The chat becomes a branch of the
            first of them that exists, and is a conversation of its own if none does.
        is_part: Whether the chat is a part of a conversation, which need not share a message with it.
    """

    where: str
    name: str
    entries: Sequence[Entry]
    title: str | None = None
    tip: str | None = None
    created: float | None = None
    archived: float | None = None
    goes_on: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    branch_of: Sequence[str] = ()
    is_part: bool = False

    @cached_property
    def ids(self) -> list[str]:
        """The ids of the messages."""
        return [entry.id for entry in self.entries]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the ids and the contents of the messages, for which most messages are not built."""
        sources = [
            (entry.id, content_of(entry.make()) if entry.source is None else entry.source)
            for entry in self.entries
        ]
        return hashlib.sha256(repr(sources).encode(errors="replace")).hexdigest()[:16]


def content_of(message: BaseMessage) -> tuple[Any, ...]:
    """The content of a message: role, text, thought and calls, without values that programs renew.

    Example:
        >>> content_of(BaseMessage("Hello", type="human", id="m1"))
        ('human', 'Hello', None, [])
    """
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return message.type, message.content, message.additional_kwargs.get("reasoning_content"), calls


class Bad(NamedTuple):
    """An item of a file that cannot be imported: a sentence that names the item and the problem."""

    problem: str


Chats = Iterator[Chat | Bad]


def ordered(chat: Chat, default: float) -> list[Entry]:
    """The entries of a conversation with times: parents before children, otherwise by number and time.

    No entry is below an aside: asides are not part of the conversation, and a thread is read from its end up.

    Args:
        chat: The conversation. An entry without a time has the time of its parent.
        default: The time of roots without a time, if the conversation and all its entries have none.

    Raises:
        InputError: An entry is its own ancestor, or two entries have the same key.
    """
    read = chat.entries
    entries = {entry.key: entry for entry in read}
    if len(entries) < len(read):
        raise InputError(f"{chat.where} has two messages with the same id; remove one of them")
    parents = {key: entry.parent for key, entry in entries.items()}
    if circle := circular(parents):
        raise InputError(f"{chat.where} has messages that descend from themselves: {circle[:3]!r}")
    times: dict[str | None, float] = {}
    shown: dict[str, str | None] = {}
    start = chat.created
    if start is None:
        start = min((entry.time for entry in read if entry.time is not None), default=default)
    for key in parents_first(parents):
        entry = entries[key]
        times[key] = times.get(entry.parent, start) if entry.time is None else entry.time
        above = entries.get(entry.parent or "")
        shown[key] = shown[above.key] if above is not None and above.state == State.ASIDE else entry.parent
    order = parents_first(
        {key: shown[key] for key in sorted(parents, key=lambda key: (entries[key].number or 0, times[key]))}
    )
    return [
        entry
        if entry.time is not None and entry.parent == shown[key]
        else replace(entry, time=times[key], parent=shown[key])
        for key in order
        for entry in [entries[key]]
    ]


def tip_shown(tip: str | None, entries: Sequence[Entry]) -> str | None:
    """The nearest entry at or above an entry that is not aside, if there is one."""
    by_key = {entry.key: entry for entry in entries}
    while tip in by_key and by_key[tip].state == State.ASIDE:
        tip = by_key[tip].parent
    return tip if tip in by_key else None


def threads(entries: Sequence[Entry]) -> int:
    """The number of threads of a conversation: live entries without a live entry below them.

    Example:
        >>> parents = {"a": None, "b": "a", "c": "a"}
        >>> threads([Entry(key, parent, BaseMessage) for key, parent in parents.items()])
        2
    """
    parents = {entry.key: entry.parent for entry in entries}
    live = [entry for entry in entries if entry.state == State.LIVE]
    continued: set[str | None] = set()
    for entry in live:
        ancestor = entry.parent
        while ancestor in parents and ancestor not in continued:
            continued.add(ancestor)
            ancestor = parents[ancestor]
    return sum(entry.key not in continued for entry in live)


def with_stored_ids(chat: Chat, time: float, history: Sequence[ConversationNode]) -> Chat:
    """A chat whose beginning has the ids of the equal messages of a stored conversation.

    A message is equal to a stored message if its parent is equal to the parent of that message, and role
    and text are the same.

    Args:
        chat: The chat.
        time: The time of its file.
        history: The nodes of the conversation.
    """
    stored = {node.message.id for node in history}
    if all(id in stored for id in chat.ids):
        return chat
    by_place = {
        (node.parent_id, node.message.type, text_of(node.message)): node
        for node in reversed(history)
        if node.state == State.LIVE
    }
    known = {node.message.id: node for node in history if node.state == State.LIVE}
    equal: dict[str, ConversationNode] = {}
    entries: list[Entry] = []
    for entry in ordered(chat, time):
        found = known.get(entry.id)
        if found is None and entry.state == State.LIVE and (entry.parent is None or entry.parent in equal):
            parent = None if entry.parent is None else equal[entry.parent].id
            message = entry.make()
            found = by_place.get((parent, message.type, text_of(message)))
        if found is not None:
            equal[entry.key] = found
            entry = replace(entry, message_id=found.message.id)
        entries.append(entry)
    return replace(chat, entries=entries)
