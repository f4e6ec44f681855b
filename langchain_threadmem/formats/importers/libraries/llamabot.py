"""llamabot's JSON, which is also the format of `ChatMemory.save`: a document with nodes and edges."""

from __future__ import annotations

from langchain_threadmem.errors import InputError, InvalidGraphStateError
from langchain_threadmem.formats.exporters.json import read_document
from langchain_threadmem.formats.importers.chats import Bad, Chat, Chats, Entry, chat_of, text_or_none
from langchain_threadmem.formats.importers.json_items import object_of
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.tree.node import EPOCH, ConversationNode
from langchain_threadmem.tree.revise import HIGHEST_ID


def is_item(value: object) -> bool:
    """Whether an item of a JSON file is a document with nodes."""
    return isinstance(value, dict) and isinstance(value.get("nodes"), list)


def chats(source: Source) -> Chats:
    """The conversations of a file, in most cases one."""
    for number, item in enumerate(source.items(), 1):
        try:
            yield _chat(
                object_of(item), item.where, source.name if number == 1 else f"{source.name}-{number}"
            )
        except (InputError, InvalidGraphStateError) as error:
            yield Bad(f"{item.where}: {error}")


def _chat(value: object, position: str, name: str) -> Chat:
    document = read_document(value)
    if document.nodes and document.nodes[-1].id > HIGHEST_ID:
        raise InputError(f"the node id {document.nodes[-1].id} is too high; use ids up to {HIGHEST_ID}")
    tip = document.metadata.get("tip")
    return chat_of(
        position,
        text_or_none(document.metadata.get("conversation_id")) or name,
        [_entry(node) for node in document.nodes],
        title=text_or_none(document.metadata.get("title")),
        tip=str(tip) if isinstance(tip, int) else None,
    )


def _entry(node: ConversationNode) -> Entry:
    return Entry(
        str(node.id),
        None if node.parent_id is None else str(node.parent_id),
        lambda: node.message,
        None if node.timestamp == EPOCH else node.timestamp.timestamp(),
        node.message.id or f"node-{node.id}",
        node.state,
        None if node.superseded_by is None else str(node.superseded_by),
        node.summary,
        node.placement,
        node.id,
    )
