"""Files of exports that have no chats, and the file that has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

_CONVERSATIONS = "import conversations.json of the same export"


class _OtherFile(NamedTuple):
    """A kind of file without chats.

    Attributes:
        contents: What the file has, and the file to import.
        names: Names of such files.
        fields: Fields that an item of such a file has.
    """

    contents: str
    names: Sequence[str] = ()
    fields: frozenset[str] = frozenset()


_OTHERS = (
    _OtherFile(
        f"the projects of Claude, no chats; {_CONVERSATIONS}", (), frozenset({"prompt_template", "docs"})
    ),
    _OtherFile(
        f"the memories of Claude, no chats; {_CONVERSATIONS}", (), frozenset({"conversations_memory"})
    ),
    _OtherFile(
        f"the account of Claude, no chats; {_CONVERSATIONS}", (), frozenset({"full_name", "email_address"})
    ),
    _OtherFile(
        f"ratings of messages of ChatGPT, no chats; {_CONVERSATIONS}",
        ("message_feedback.json",),
        frozenset({"rating", "conversation_id"}),
    ),
    _OtherFile(
        f"links to shared chats of ChatGPT, no messages; {_CONVERSATIONS}",
        ("shared_conversations.json",),
        frozenset({"conversation_id", "is_anonymous"}),
    ),
    _OtherFile(
        f"snippets of compared answers of ChatGPT, no chats; {_CONVERSATIONS}",
        ("model_comparisons.json",),
        frozenset({"evaluation_name"}),
    ),
    _OtherFile(
        f"the names of files of ChatGPT, no chats; {_CONVERSATIONS}",
        ("conversation_asset_file_names.json",),
    ),
    _OtherFile(
        f"the files of ChatGPT, no chats; {_CONVERSATIONS}",
        ("library_files.json",),
        frozenset({"file_id", "file_name"}),
    ),
    _OtherFile(
        "a list of names of Slack, no chats; import the folder of the export",
        ("channels.json",),
        frozenset({"id", "name", "profile"}),
    ),
    _OtherFile(
        f"data of an account of ChatGPT, no chats; {_CONVERSATIONS}",
        (
            "user.json",
            "users.json",
            "user_settings.json",
            "group_chats.json",
            "shopping.json",
            "sora.json",
            "basispoints.json",
            "codex.json",
        ),
    ),
    _OtherFile(
        "the name of a thread of Jan, no messages; import messages.jsonl beside it, or the folder",
        ("thread.json",),
        frozenset({"object", "assistants"}),
    ),
    _OtherFile(
        "data of an account of Grok, no chats; import prod-grok-backend.json of the same export",
        ("prod-mc-auth-mgmt-api.json", "prod-mc-billing.json"),
    ),
)


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
    if beginning.lstrip()[:1] == "<":
        return _page(name, beginning)
    for other in _OTHERS:
        fields = other.fields
        if fields and values and all(isinstance(value, dict) and fields <= value.keys() for value in values):
            return other.contents
    if name.lower().endswith(".dat"):
        return None
    found = next((other for other in _OTHERS if name.lower() in other.names), None)
    if found is not None:
        return found.contents
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


def _page(name: str, beginning: str) -> str | None:
    """What a page has, if it is of an export."""
    if not beginning.lstrip()[:200].lower().startswith(("<html", "<!doctype", "<head")):
        return None
    if "activity" in name.lower():
        return "the activity as a page; choose the format JSON in Google Takeout, and import MyActivity.json"
    return f"a page for people; {_CONVERSATIONS}, or the JSON of the same export"
