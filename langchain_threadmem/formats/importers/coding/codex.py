"""Codex: the log of a session (`rollout-*.jsonl`), with items of OpenAI.

The events that repeat the items are read in logs without items only. A turn that was rolled back is a
branch. A fork begins with the items of the session that it continues. Instructions that the program writes
are asides.

The lines follow openai/codex (codex-rs/protocol) and Sinity/polylogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chats
from langchain_threadmem.formats.importers.libraries.openai_items import TYPES, said_of
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source, checked
from langchain_threadmem.messages.ids import chained_id

_LINES = {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"}
_WRITTEN_BY_PROGRAM = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>"),
    *(
        "<skill>",
        "<permissions instructions>",
        "<INSTRUCTIONS>",
        "<user_shell_command>",
        "<subagent_notification>",
    ),
)
"""The beginnings of messages of the user that the program writes."""
_EVENTS = {"user_message": USER, "agent_message": ASSISTANT, "agent_reasoning": ASSISTANT}


def _is_log(values: Sequence[Any]) -> bool:
    if any(value.get("type") in _LINES and fields.has(value, payload=dict) for value in values):
        return all(fields.has(value, type=str) for value in values)
    header, *others = values  # The first versions wrote a header line and items after it.
    return (
        fields.has(header, id=str)
        and "timestamp" in header
        and not {"type", "role"} & {*header}
        and bool(others)
        and all("record_type" in one or one.get("type") in (*TYPES, "message") for one in others)
    )


def _chats(source: Source) -> Chats:
    session = _CodexSession()
    yield from source.each(lambda line, position: session.read(position, line))
    yield from checked("the log", session.flush)
    header, source_name = session.header, fields.text(session.header, "forked_from_id")
    metadata = fields.kept(
        model=session.model,
        folder=fields.text(header, "cwd"),
        branch=fields.text(header.get("git"), "branch"),
        program=fields.text(header, "originator"),
    )
    yield chat_of(
        "the log",
        fields.text(header, "id") or source.name,
        session.said,
        created=fields.seconds(header.get("timestamp"), "the header"),
        metadata=metadata,
        branch_of=[source_name] if source_name else [],
    )


class _CodexSession:
    """The messages of a log, read line by line.

    Attributes:
        said: The messages.
        header: The first header; a fork repeats that of the session that it continues.
        model: The model of the next item.
    """

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.header: fields.Record = {}
        self.model: str | None = None
        self._items: list[tuple[fields.Record, float | None, str | None]] = []
        self._events: list[tuple[fields.Record, float | None, str | None]] = []
        self._has_items = False
        self._parent: str | None = None

    def read(self, position: str, line: fields.Record) -> None:
        """Read a line; lines of the first versions have no payload."""
        payload, is_old = fields.record(line, "payload") or line, not fields.has(line, payload=dict)
        if is_old and "record_type" in line:
            return
        kind, time = line.get("type"), fields.seconds(line.get("timestamp"), position)
        if kind == "session_meta" or (is_old and not {"type", "role"} & {*line}):
            fields.seconds(payload.get("timestamp"), position)
            self.header = self.header or payload
        elif kind == "turn_context":
            self.model = fields.text(payload, "model") or self.model
        elif kind == "response_item" or is_old:
            self._has_items = True
            self._items.append((payload, time, self.model))
        elif kind == "compacted":  # A summary of the messages before it, which are not repeated.
            self.flush()
            if text := fields.text(payload, "message"):
                key = chained_id("import-", self._parent, ["compacted", text])
                self.said.append(Said(key, self._parent, SYSTEM, [text], time, is_aside=True))
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            self.flush()
            turns = payload.get("num_turns")
            self._roll_back(turns if isinstance(turns, int) else 1)
        elif kind == "event_msg" and (role := _EVENTS.get(str(payload.get("type")))):
            text = payload.get("message") or payload.get("text")
            if isinstance(text, str) and text:
                is_thought = payload["type"] == "agent_reasoning"
                content = {"summary": [{"text": text}]} if is_thought else {"content": text}
                block = {"type": "reasoning" if is_thought else "message", "role": role, **content}
                self._events.append((block, time, self.model))

    def flush(self) -> None:
        """Make messages of the items since the last event that changed the place of the next message."""
        items = self._items if self._has_items else self._events
        self._items, self._events = [], [] if not self._has_items else self._events
        said = said_of(
            [item for item, _, _ in items],
            lambda number: items[number][1],
            lambda number: items[number][2],
            self._parent,
        )
        for one in said:
            text = next((part for part in one.parts if isinstance(part, str)), "")
            one.is_aside = one.role == USER and text.lstrip().startswith(_WRITTEN_BY_PROGRAM)
        self.said += said
        self._parent = said[-1].key if said else self._parent

    def _roll_back(self, turns: int) -> None:
        """Continue before the last turns."""
        by_key = {one.key: one for one in self.said}
        while turns > 0 and (one := by_key.get(self._parent or "")):
            turns -= one.role == USER and not one.is_aside
            self._parent = one.parent


FORMAT = Format("codex", "a session of Codex", _chats, is_log=_is_log)
