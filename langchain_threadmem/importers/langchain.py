"""LangChain's `messages_to_dict`: lists of objects with a type and data."""

from __future__ import annotations

from langchain_threadmem.importers import message_lists

chats = message_lists.chats


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a message of `messages_to_dict`, or a list of such messages."""
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "type" in first and isinstance(first.get("data"), dict)
