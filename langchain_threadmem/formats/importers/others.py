"""Files of exports that have no chats, and the file that has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

_CONVERSATIONS = "; import conversations.json of the same export"
_OTHERS: tuple[tuple[str, str, set[str]], ...] = (
    ("the projects of Claude, no chats" + _CONVERSATIONS, "", {"prompt_template", "docs"}),
    ("the memories of Claude, no chats" + _CONVERSATIONS, "", {"conversations_memory"}),
    ("the account of Claude, no chats" + _CONVERSATIONS, "", {"full_name", "email_address"}),
    (
        "ratings of messages of ChatGPT, no chats" + _CONVERSATIONS,
        "message_feedback.json",
        {"rating", "conversation_id"},
    ),
    (
        "links to shared chats of ChatGPT, no messages" + _CONVERSATIONS,
        "shared_conversations.json",
        {"conversation_id", "is_anonymous"},
    ),
    (
        "snippets of compared answers of ChatGPT, no chats" + _CONVERSATIONS,
        "model_comparisons.json",
        {"evaluation_name"},
    ),
    (
        "the names of files of ChatGPT, no chats" + _CONVERSATIONS,
        "conversation_asset_file_names.json",
        set(),
    ),
    ("the files of ChatGPT, no chats" + _CONVERSATIONS, "library_files.json", {"file_id", "file_name"}),
    (
        "a list of names of Slack, no chats; import the folder of the export",
        "channels.json",
        {"id", "name", "profile"},
    ),
    (
        "data of an account of ChatGPT, no chats" + _CONVERSATIONS,
        "user.json users.json user_settings.json group_chats.json shopping.json sora.json basispoints.json "
        "codex.json",
        set(),
    ),
    (
        "the name of a thread of Jan, no messages; import messages.jsonl beside it, or the folder",
        "thread.json",
        {"object", "assistants"},
    ),
    (
        "data of an account of Grok, no chats; import prod-grok-backend.json of the same export",
        "prod-mc-auth-mgmt-api.json prod-mc-billing.json",
        set(),
    ),
)
"""What kinds of files have, and the file to import; their names; fields that an item of such a file has."""


def other_file(name: str, beginning: str, values: Sequence[Any]) -> str | None:
    """What a file without chats has, and the file to import; `None` for an unknown file.

    Args:
        name: The name of the file.
        beginning: The text at the beginning of the file.
        values: The values of its first items.

    Example:
        >>> other_file("memories.json", "", [{"conversations_memory": "Keeps bees."}])
        'the memories of Claude, no chats; import conversations.json of the same export'
    """
    start = beginning.lstrip()[:200].lower()
    if start.startswith("<"):
        if not start.startswith(("<html", "<!doctype", "<head")):
            return None
        if "activity" in name.lower():
            return "the activity as a page; choose JSON in Google Takeout, and import MyActivity.json"
        return f"a page for people{_CONVERSATIONS}, or the JSON of the same export"
    for contents, _, fields in _OTHERS:
        if fields and values and all(isinstance(value, dict) and fields <= value.keys() for value in values):
            return contents
    for contents, names, _ in _OTHERS:
        if name.lower() in names.split():
            return contents
    if name.startswith("conversations") and values in ([], [{"conversations": []}]):
        return "no conversations"
    return None


def other_database(tables: Collection[str]) -> str | None:
    """What a database without a format has, and the command for it; `None` for an unknown database.

    Args:
        tables: The names of its tables.

    Example:
        >>> other_database({"checkpoints", "writes"})
        'checkpoints of LangGraph; copy them with threadmem import-checkpoints'
    """
    if "threadmem_tree" in tables:
        return "a memory of this package; copy it with threadmem convert, or open it with --db"
    if "checkpoints" in tables:
        return "checkpoints of LangGraph; copy them with threadmem import-checkpoints"
    return None
