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
    *(
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<turn_aborted>",
        "<skill>",
    ),
    *("<permissions instructions>", "<INSTRUCTIONS>", "<user_shell_command>", "<subagent_notification>"),
)
"""The beginnings of messages of the user that the program writes."""
_EVENTS = {"user_message": USER, "agent_message": ASSISTANT, "agent_reasoning": ASSISTANT}


def is_log(values: Sequence[Any]) -> bool:
    """Whether the lines of a file are those of a session."""
    if not all(isinstance(value, dict) for value in values):
        return False
    if any(value.get("type") in _LINES and isinstance(value.get("payload"), dict) for value in values):
        return all(isinstance(value.get("type"), str) for value in values)
    return _is_old(values)


def _is_old(values: Sequence[fields.Record]) -> bool:
    """Whether a log has a header line and items after it, as the first versions wrote it."""
    header, others = values[0], values[1:]
    return (
        isinstance(header.get("id"), str)
        and "timestamp" in header
        and "type" not in header
        and "role" not in header
        and bool(others)
        and all(_is_old_line(value) for value in others)
    )


def _is_old_line(value: fields.Record) -> bool:
    return "record_type" in value or value.get("type") in (*TYPES, "message")


def chats(source: Source) -> Chats:
    """The conversation of a log."""
    session = _CodexSession(source.name)
    yield from source.each(lambda line, position: session.read(position, line))
    yield from checked("the log", session.close)
    yield chat_of(
        "the log",
        session.name,
        session.said,
        created=session.created,
        metadata=fields.kept(
            model=session.model, folder=session.folder, branch=session.git_branch, program=session.program
        ),
        branch_of=session.forked_from,
    )


class _CodexSession:
    """The messages of a log, read line by line.

    Attributes:
        name: The id of the session.
        said: The messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: list[Said] = []
        self.created: float | None = None
        self.model: str | None = None
        self.folder: str | None = None
        self.git_branch: str | None = None
        self.program: str | None = None
        self.forked_from: list[str] = []
        self._is_named = False
        self._items: list[tuple[fields.Record, float | None, str | None]] = []
        self._events: list[tuple[str, str, float | None, str | None]] = []
        self._has_items = False
        self._parent: str | None = None

    def read(self, position: str, line: fields.Record) -> None:
        """Read a line."""
        kind, payload = line.get("type"), line.get("payload")
        time = fields.seconds(line.get("timestamp"), position)
        if not isinstance(payload, dict):
            self._read_old(position, line)
        elif kind == "session_meta":
            self._read_header(payload, position)
        elif kind == "turn_context":
            self.model = fields.text(payload, "model") or self.model
        elif kind == "response_item":
            self._add(payload, time)
        elif kind == "compacted":
            self._compact(payload, time)
        elif kind == "event_msg":
            self._read_event(payload, time, position)

    def _read_header(self, payload: fields.Record, position: str) -> None:
        if self._is_named:  # A fork repeats the header of the session that it continues.
            return
        self._is_named = True
        self.name = fields.text(payload, "id") or self.name
        self.created = fields.seconds(payload.get("timestamp"), position)
        self.folder, self.program = fields.text(payload, "cwd"), fields.text(payload, "originator")
        self.git_branch = fields.text(payload.get("git"), "branch")
        if source := fields.text(payload, "forked_from_id"):
            self.forked_from.append(source)

    def _read_old(self, position: str, line: fields.Record) -> None:
        if "record_type" in line:
            return
        if "type" not in line and "role" not in line:
            self._read_header(line, position)
        else:
            self._add(line, fields.seconds(line.get("timestamp"), position))

    def _add(self, item: fields.Record, time: float | None) -> None:
        self._has_items = True
        self._items.append((item, time, self.model))

    def _read_event(self, payload: fields.Record, time: float | None, position: str) -> None:
        kind = payload.get("type")
        if kind in _EVENTS:
            text = payload.get("message") or payload.get("text")
            if isinstance(text, str) and text:
                self._events.append((str(kind), text, time, self.model))
        elif kind == "thread_rolled_back":
            self._flush()
            turns = payload.get("num_turns")
            self._roll_back(turns if isinstance(turns, int) else 1)

    def _compact(self, payload: fields.Record, time: float | None) -> None:
        """A summary of the messages before it, which are not repeated."""
        self._flush()
        if text := fields.text(payload, "message"):
            key = chained_id("import-", self._parent, ["compacted", text])
            self.said.append(Said(key, self._parent, SYSTEM, [text], time, is_aside=True))

    def _flush(self) -> None:
        """Make messages of the items since the last event that changed the place of the next message."""
        if not self._items and not self._has_items:
            for kind, text, time, model in self._events:
                block = "reasoning" if kind == "agent_reasoning" else "message"
                content = {"summary": [{"text": text}]} if block == "reasoning" else {"content": text}
                self._items.append(({"type": block, "role": _EVENTS[kind], **content}, time, model))
            self._events = []
        items = self._items
        self._items = []
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
        key = self._parent
        while turns > 0 and key in by_key:
            one = by_key[key]
            turns -= one.role == USER and not one.is_aside
            key = one.parent
        self._parent = key

    def close(self) -> None:
        """Read the rest."""
        self._flush()


FORMAT = Format("codex", "a session of Codex", chats, is_log=is_log)
