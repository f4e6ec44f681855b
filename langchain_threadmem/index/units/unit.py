"""Units of memory: messages (rank 0), summaries of a session (1) and of long-term memory (2).

Units are immutable values that are read from storage. Every stored message is a unit; text that is added to a
session becomes a message of its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage

from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.codec import clone
from langchain_threadmem.messages.display import Displayed
from langchain_threadmem.messages.roles import source_named, source_of
from langchain_threadmem.messages.text import plural
from langchain_threadmem.tree.node import EPOCH

SUMMARY_SOURCE = "ai-summary"
"""The source of summaries."""
_CLASSES: dict[str, type[BaseMessage]] = {"user": HumanMessage, "ai": AIMessage, "system": SystemMessage}


@dataclass(frozen=True, slots=True)
class MemoryUnit(Displayed):
    """A message or a summary, which can be recalled.

    Attributes:
        id: The id of the message; the session for the summary of a session; the owner for the summary of the
            long-term memory. Unique among the units of one rank and `group_id`.
        content: The text of the message or of the summary.
        source: The speaker: "user", "ai", "system", "tool" or any other role; "ai-summary" for summaries.
        creation_time: The time of the message; for a summary, the time of the first message that it covers.
        end_time: The time of the message; for a summary, the time of the last message that it covers.
        rank: 0 for a message, 1 for a summary of a session, 2 for a summary of the long-term memory.
        group_id: The session of the unit; for rank 2 the owner.
        parent_id: The `id` of the summary that covers the unit.
        children_ids: The ids of the units that a summary covers, in order; empty for messages.
        pre_id: The id of the previous message in the session; `None` for summaries.
        next_id: The id of the next message in the session; `None` for summaries.
        visit_count: The number of queries that recalled the unit.
        last_visit: The round of the last query that recalled the unit or a unit below it; 0 for none.
        never_delete: Whether the unit is exempt from forgetting.
        metadata: The `additional_kwargs` of a message; `{"action": "summary", "level": 1, ...}` of a summary.
        title: The title of a summary; empty for messages.
        stale: Whether a unit that the summary covers was changed or removed after the summary was written.
        node_id: The number of the message in its conversation, as in `ChatMemory`; `None` for summaries.

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

    def _cells(self) -> dict[str, str]:
        times = [f"{time:%Y-%m-%d %H:%M}" for time in (self.creation_time, self.end_time) if time != EPOCH]
        return {
            "session": self.group_id or "",
            "source": self.source,
            "title": self.title,
            "text": self.content,
            "covers": plural(len(self.children_ids), "unit") if self.children_ids else "",
            "time": " to ".join(dict.fromkeys(times)),
            "state": "stale" if self.stale else "",
        }

    def _line(self) -> str:
        return f"{self.source}: {f'{self.title}: ' if self.title else ''}{self.content}"


def message_from(
    content: str | BaseMessage, source: str | None = None, metadata: Mapping[str, Any] | None = None
) -> BaseMessage:
    """The message for content that is added to a memory.

    Args:
        content: A message, or text. A message is returned unchanged if there is no metadata.
        source: The speaker of the text: "user", "ai", "system" or any other role; "ai" by default.
        metadata: Values that are added to the message's `additional_kwargs`.

    Raises:
        InputError: The text is empty, the source differs from that of the message, or an argument has the
            wrong type.

    Example:
        >>> message_from("Hello").type, message_from("Hello", "user").type
        ('ai', 'human')
    """
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata={metadata!r:.80} is not a mapping; pass a dictionary of names and values")
    if not isinstance(source, str | None):
        raise InputError(f"source={source!r:.80} is not text; pass 'ai', 'user', 'system', or another role")
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
    speaker = source_named(source or "ai")
    if cls := _CLASSES.get(speaker):
        return cls(content=content, additional_kwargs=extra)
    return ChatMessage(content=content, role=speaker, additional_kwargs=extra)
