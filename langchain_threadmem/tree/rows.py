"""Conversion between rows of the database and nodes."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from langchain_core.messages import BaseMessage

from langchain_threadmem.engine.runtime import Resources, SharedComponent
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import (
    UNREADABLE,
    Parsed,
    decode_stored,
    encode,
    text_of,
)
from langchain_threadmem.messages.ids import check_name, new_stem
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.messages.tool_pairs import calls_tools
from langchain_threadmem.messages.typed_json import Reader, Writer
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.append import Draft
from langchain_threadmem.tree.node import ConversationNode, MessageSummary, seconds_of
from langchain_threadmem.tree.nodes import NodeRow

MOST_PARSED = 20_000


def nodes_of(rows: Sequence[NodeRow], other: Reader | None = None) -> list[ConversationNode]:
    """The nodes that rows stand for, in their order.

    Args:
        rows: The rows.
        other: Reads parts of messages that JSON does not know, for callers that show them to somebody.
    """
    messages = decode_stored([(row.message, row.body, row.role) for row in rows], other=other)
    return [
        ConversationNode(
            row.seq,
            message,
            row.parent,
            None if row.title is None else MessageSummary(title=row.title, summary=row.summary or ""),
            datetime.fromtimestamp(row.created, UTC),
            State(row.state),
            row.superseded_by,
        )
        for row, message in zip(rows, messages, strict=True)
    ]


def drafts_of(
    messages: Sequence[BaseMessage],
    times: Sequence[datetime | None] | None = None,
    other: Writer | None = None,
) -> list[Draft]:
    """Messages made ready to be written: encoded, with an id and a time.

    An id begins here, before anything is queued, and ends in the number that its node gets.

    Args:
        messages: The messages.
        times: When each was said; now, if nobody knows.
        other: Writes parts that JSON does not know.
    """
    now, beginning = time.time(), new_stem()
    drafts = []
    for message, at in zip(messages, times or [None] * len(messages), strict=True):
        if given := message.id:
            check_name("a message id", given)
        created = now if at is None else _seconds(at)
        body = encode(message, other)
        drafts.append(Draft(message, message.type, body, created, given or beginning, bool(given)))
    return drafts


def _seconds(said: datetime) -> float:
    if not isinstance(said, datetime):
        raise InputError(
            f"{said!r} is no time; pass a datetime, such as datetime.fromisoformat('2020-01-31')"
        )
    return seconds_of(said)


def is_recallable(node: ConversationNode) -> bool:
    """Whether recall may return a node: something said by a person or answered by a model.

    Tool calls and their results come back with the answer they led to, never alone.
    """
    message = node.message
    if message.type not in SPOKEN or calls_tools(message) or is_lost(node):
        return False
    return bool(text_of(message).strip())


def is_lost(node: ConversationNode) -> bool:
    """Whether what was said cannot be read any more: the node only says so."""
    return UNREADABLE in node.message.response_metadata


class DecodedMessages(SharedComponent):
    """Bodies of messages that were parsed before: each turn of a chat reads the messages before it again."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        self._bodies: Parsed = {}

    def bodies(self) -> Parsed:
        """The bodies, by text; a decoder adds to them."""
        if len(self._bodies) > MOST_PARSED:
            self._bodies = {}
        return self._bodies

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self._bodies = {}
