"""Branches that a program stores as conversations: the messages that both have are found by their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_threadmem.formats.importers.chats import Chat, Entry, ordered
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode


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
