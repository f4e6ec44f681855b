"""Conversion between rows of the database and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from langchain_threadmem.engine.runtime import Resources, SharedComponent
from langchain_threadmem.messages.codec import UNREADABLE, Parsed, decode_stored, text_of
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.messages.tool_pairs import calls_tools
from langchain_threadmem.messages.typed_json import ReadOpaque
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, Placement
from langchain_threadmem.tree.nodes import NodeRow

MOST_PARSED = 20_000
"""The number of parsed bodies above which `DecodedMessages` forgets them."""


def nodes_of(
    rows: Sequence[NodeRow],
    other: ReadOpaque | None = None,
    placements: Mapping[int, Placement] | None = None,
) -> list[ConversationNode]:
    """The nodes of rows, in their order.

    Args:
        rows: The rows.
        other: Reads values that are not JSON; without it they are returned as `Opaque` values.
        placements: Placements by number of the node.
    """
    messages = decode_stored([(row.message, row.body, row.role) for row in rows], other=other)
    placement_of = (placements or {}).get
    return [
        ConversationNode(
            row.seq,
            message,
            row.parent,
            None if row.title is None else MessageSummary(title=row.title, summary=row.summary or ""),
            datetime.fromtimestamp(row.created, UTC),
            State(row.state),
            row.superseded_by,
            placement_of(row.seq),
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def is_recallable(node: ConversationNode) -> bool:
    """Whether recall may return a node: a readable text of a person or a model, without tool calls.

    Tool calls and their results are returned only with the answer that follows them.
    """
    message = node.message
    if message.type not in SPOKEN or calls_tools(message) or is_lost(node):
        return False
    return bool(text_of(message).strip())


def is_lost(node: ConversationNode) -> bool:
    """Whether the stored message of a node cannot be read."""
    return UNREADABLE in node.message.response_metadata


class DecodedMessages(SharedComponent):
    """A cache of parsed message bodies, since each turn of a chat reads the messages before it again."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._bodies: Parsed = {}

    def bodies(self) -> Parsed:
        """The parsed bodies by text; decoders add to them."""
        if len(self._bodies) > MOST_PARSED:
            self._bodies = {}
        return self._bodies

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self._bodies = {}
