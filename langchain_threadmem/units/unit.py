"""Units of memory: messages (rank 0), summaries of a session (1) and of long-term memory (2).

Units are values, read from storage and never changed. A message becomes a unit by being stored; plain text
that is added to a session becomes a message of its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import clone
from langchain_threadmem.messages.roles import source_named, source_of
from langchain_threadmem.tree.node import EPOCH

SUMMARY_SOURCE = "ai-summary"
"""The source of every summary."""
_CLASSES: dict[str, type[BaseMessage]] = {"user": HumanMessage, "ai": AIMessage, "system": SystemMessage}


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """Anything that can be recalled: a message, or a summary.

    Attributes:
        id: A message's own id; a session's, for the summary of that session; the owner, for the summary of
            the long-term memory. Unique among the units of one rank and `group_id`.
        content: The text of the message or of the summary.
        source: Who said it: "user", "ai", "system", "tool", a role of one's own; "ai-summary" for summaries.
        creation_time: When it was said; of a summary, when the first message that it covers was.
        end_time: The same for a message; of a summary, when the last message that it covers was said.
        rank: 0 for a message, 1 for a summary within a session, 2 for one of the long-term memory.
        group_id: The session it belongs to; for rank 2 the owner.
        parent_id: `id` of the summary that covers it.
        children_ids: Of a summary: the ids of the units that it was made from, in order.
        pre_id: Of a message: the message before it in the session.
        next_id: Of a message: the one after it.
        visit_count: How often it was recalled.
        last_visit: In which round it, or something below it, was last recalled; 0 for never.
        never_delete: Whether it is exempt from being forgotten.
        metadata: A message's `additional_kwargs`; of a summary `{"action": "summary", "level": 1, ...}`.
        title: Of a summary.
        stale: Of a summary: whether something that it covers changed or went since it was written.
        node_id: Of a message: its number in its conversation, as `ChatMemory` knows it.

    Example:
        >>> unit = MemoryUnit("m1", "I live in Lisbon.", "user")
        >>> unit.rank, unit.to_message().type
        (0, 'human')
    """

    id: str
    content: str
    source: str = "ai"
    creation_time: datetime = EPOCH
    end_time: datetime = EPOCH
    rank: int = 0
    group_id: str | None = None
    parent_id: str | None = None
    children_ids: Sequence[str] = ()
    pre_id: str | None = None
    next_id: str | None = None
    visit_count: int = 0
    last_visit: int = 0
    never_delete: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    stale: bool = False
    node_id: int | None = None

    def to_message(self) -> BaseMessage:
        """The unit as a LangChain message of its source, with its id and metadata."""
        message = message_from(self.content, self.source, self.metadata)
        return clone(message, id=self.id)


def message_from(
    content: str | BaseMessage, source: str | None = None, metadata: Mapping[str, Any] | None = None
) -> BaseMessage:
    """The message for content that is added to a memory.

    Args:
        content: A message, which is kept as it is, or text.
        source: Who says the text: "ai" if nothing else is said; "user", "system", or any role.
        metadata: Becomes, or is added to, the message's `additional_kwargs`.

    Raises:
        InputError: The text is empty, a message comes with the source of another, or an argument has the
            wrong type.

    Example:
        >>> message_from("Hello").type, message_from("Hello", "user").type
        ('ai', 'human')
    """
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata={metadata!r:.80} is no mapping; pass a dictionary of names and values")
    if not isinstance(source, str | None):
        raise InputError(f"source={source!r:.80} is no text; pass 'ai', 'user', 'system', or another role")
    extra = dict(metadata or {})
    if isinstance(content, BaseMessage):
        if source is not None and source_named(source) != source_of(content):
            raise InputError(
                f"source={source!r} does not go with a {type(content).__name__}, whose source is "
                f"{source_of(content)!r}; leave it out, or pass the text alone"
            )
        if not extra:
            return content
        return clone(content, additional_kwargs={**content.additional_kwargs, **extra})
    if not isinstance(content, str) or not content.strip():
        raise InputError(f"a memory is text that is not empty, or a message, not {content!r:.80}")
    said_by = source_named(source or "ai")
    if cls := _CLASSES.get(said_by):
        return cls(content=content, additional_kwargs=extra)
    return ChatMessage(content=content, role=said_by, additional_kwargs=extra)
