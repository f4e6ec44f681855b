"""Lists of texts that alternate, such as UltraChat's.

The fields are those of the data sets on their pages.
"""

from __future__ import annotations

from langchain_threadmem.formats.importers.chats import Bad, Chats, chat_of
from langchain_threadmem.formats.importers.said import ASSISTANT, USER, Said, entries_of
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.ids import chained_id


def is_item(value: object) -> bool:
    """Whether an item is a conversation whose texts alternate."""
    texts = value.get("data") if isinstance(value, dict) else None
    return isinstance(texts, list) and bool(texts) and all(isinstance(text, str) for text in texts)


def chats(source: Source) -> Chats:
    """The conversations of a file; the first text is of the user."""
    for number, item in enumerate(source.objects(), 1):
        if isinstance(item, Bad):
            yield item
            continue
        position, value = item
        id = value.get("id")
        said: list[Said] = []
        previous: str | None = None
        for n, text in enumerate(value["data"]):
            role = ASSISTANT if n % 2 else USER
            said.append(Said(chained_id("import-", previous, [role, text]), previous, role, [text]))
            previous = said[-1].key
        yield chat_of(position, f"{source.name}-{number}" if id is None else str(id), entries_of(said))
