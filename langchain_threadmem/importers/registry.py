"""The formats of chats that can be imported, and the choice of the format of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from langchain_threadmem.errors import InputError
from langchain_threadmem.importers import (
    chatgpt,
    claude,
    llamabot,
    memforest,
    message_lists,
    sql_history,
)
from langchain_threadmem.importers.chats import Chats
from langchain_threadmem.importers.source import Source

_ITEMS = 20
"""The number of items of a file from which its format is detected."""


def _never(value: object) -> bool:
    return False


class Format(NamedTuple):
    """A format.

    Attributes:
        name: The name of the format in arguments.
        contents: The contents of the files in a few words.
        chats: Reads the conversations of a file.
        is_item: Whether an item of a JSON file has the format, if the format is JSON.
        is_database: Whether an SQLite database has the format, if the format is a database.
    """

    name: str
    contents: str
    chats: Callable[[Source], Chats]
    is_item: Callable[[Any], bool] = _never
    is_database: Callable[[Source], bool] = _never

    def fits(self, source: Source, values: Sequence[Any]) -> bool:
        """Whether a file has the format, given the values of its first items."""
        return self.is_database(source) if source.is_database else any(map(self.is_item, values))

    def can_be(self, source: Source) -> bool:
        """Whether a file is of the type of the format: a database with its tables, or JSON."""
        return self.is_database(source) if source.is_database else self.is_item is not _never


FORMATS = (
    Format("chatgpt", "conversations.json of ChatGPT's export", chatgpt.chats, chatgpt.is_item),
    Format("claude", "conversations.json of Claude's export", claude.chats, claude.is_item),
    Format("langchain", "LangChain's messages_to_dict", message_lists.chats, message_lists.is_langchain_item),
    Format(
        "llamabot", "a document with nodes, of llamabot or ChatMemory.save", llamabot.chats, llamabot.is_item
    ),
    Format(
        "memforest",
        "MemForest's database or memory_units.json",
        memforest.chats,
        memforest.is_item,
        memforest.is_database,
    ),
    Format("messages", "messages of OpenAI or Anthropic", message_lists.chats, message_lists.is_item),
    Format(
        "sql_history",
        "an SQLite database of SQLChatMessageHistory",
        sql_history.chats,
        is_database=sql_history.is_database,
    ),
)
"""All formats; a file has the first format that fits."""


def check(name: str | None) -> None:
    """Check the name of a format.

    Raises:
        InputError: The name is unknown; the error lists the names.
    """
    if name is not None and name not in [format.name for format in FORMATS]:
        raise InputError(f"unknown format {name!r}; use one of {', '.join(f.name for f in FORMATS)}")


def format_of(source: Source, name: str | None, path: str | Path) -> Format:
    """The format with a name, or the detected format of a file.

    Raises:
        InputError: The file has none of the formats, or is not of the type of the named format.
    """
    values = [] if name is not None or source.is_database else _first_values(source, path)
    for format in FORMATS:
        if format.name == name:
            if not format.can_be(source):
                raise InputError(f"{str(path)!r} is not {format.contents}")
            return format
        if name is None and format.fits(source, values):
            return format
    formats = "; ".join(f"{format.name}: {format.contents}" for format in FORMATS)
    raise InputError(f"{str(path)!r} has none of the formats that can be imported ({formats})")


def _first_values(source: Source, path: str | Path) -> list[Any]:
    """The values of the first items, up to an item that cannot be read."""
    values: list[Any] = []
    try:
        values += (item.value for item in islice(source.items(), _ITEMS))
    except InputError as error:
        if not values:
            raise InputError(f"{path}: {error}") from error
    return values
