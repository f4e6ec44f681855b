"""Programs beside an editor with short logs: sessions of Continue, tasks of Cline, histories of aider.

`.aider.chat.history.md` has a heading for each session, which alone has a time. Lines that begin with `>` are
written by the program and are asides, `####` begins a line of a question, and the rest is the answer.

The fields and marks follow continuedev/continue, cline/cline and Aider-AI/aider (aider/io.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_threadmem.formats.importers import fields
from langchain_threadmem.formats.importers.chats import Chat, Chats
from langchain_threadmem.formats.importers.content_parts import Other, Part
from langchain_threadmem.formats.importers.program import ChatRecord, Program, standard_parts
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, chat_of
from langchain_threadmem.formats.importers.source import Format, Source
from langchain_threadmem.messages.ids import chained_id


def _is_continue(value: Any) -> bool:
    has_history = fields.has(value, sessionId=str, history=list)
    return has_history and all(fields.has(one, message=dict) for one in value["history"])


def _of_continue(value: fields.Record) -> Iterator[ChatRecord]:
    messages: list[fields.Record] = []
    answered = {one["message"].get("toolCallId") for one in value["history"]}
    for one in value["history"]:
        messages.append({"reasoning": fields.at(one, "reasoning", "text"), **one["message"]})
        for state in one.get("toolCallStates") or ():
            id = fields.at(state, "toolCallId")
            if fields.at(state, "output") is not None and id not in answered:
                texts = [item.get("content") for item in state["output"] if isinstance(item, dict)]
                messages.append({"role": "tool", "toolCallId": id, "content": [*filter(None, texts)]})
    yield ChatRecord(value, messages)


CONTINUE = Program("continue", "a session of Continue", _is_continue, conversations=_of_continue)


def _is_cline(value: Any) -> bool:
    return fields.has(value, content=(list, str)) and "ts" in value and "role" in value


def _parts_of_cline(message: fields.Record) -> Iterator[Part]:
    for part in standard_parts(message):
        if isinstance(part, str) and part.lstrip().startswith("<environment_details>"):
            yield Other({"type": "environment_details", "text": part})
        elif isinstance(part, str):
            yield part.strip().removeprefix("<task>").removesuffix("</task>").strip()
        else:
            yield part


CLINE = Program(
    "cline", "api_conversation_history.json of Cline", _is_cline, _parts_of_cline, is_message=_is_cline
)


_SESSION = re.compile(r"^# aider chat started at (.+)$")
_QUESTION, _PROGRAM = "####", ">"


def _chats_of_aider(source: Source) -> Chats:
    """The conversations of a history: one for each session."""
    names: dict[str, int] = {}
    sessions: list[tuple[str, list[str]]] = []
    for line in source.lines():
        if found := _SESSION.match(line):
            sessions.append((found[1].strip(), []))
        elif sessions:
            sessions[-1][1].append(line)
        if found and len(sessions) > 1:
            yield _chat_of_aider(*sessions.pop(0), names)
    if sessions:
        yield _chat_of_aider(*sessions[0], names)


def _chat_of_aider(started: str, lines: list[str], names: dict[str, int]) -> Chat:
    number = names[started] = names.get(started, 0) + 1
    time, position = fields.seconds(started, f"session {started!r}"), f"session {started!r}"
    said: list[Said] = []
    previous: str | None = None
    for role, text in _blocks(lines):
        key = chained_id("import-", previous, [len(said), role, text])
        said.append(Said(key, previous, role, [text], time))
        previous = previous if role == SYSTEM else key
    name = f"aider-{started}" + ("" if number == 1 else f"-{number}")
    return chat_of(position, name, said, created=time)


def _blocks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The role and the text of each block of lines of one kind."""
    role, block = ASSISTANT, [""]
    fence = False
    for line in lines:
        if line.startswith("```"):
            fence = not fence
        if fence:
            kind, text = ASSISTANT, line
        elif line.startswith(_QUESTION):
            kind, text = USER, line.removeprefix(_QUESTION).strip()
        elif line.startswith(_PROGRAM):
            kind, text = SYSTEM, line.removeprefix(_PROGRAM).strip()
        elif line.strip() or role == ASSISTANT:
            kind, text = ASSISTANT, line.rstrip()
        else:
            continue
        if kind != role:
            if "\n".join(block).strip():
                yield role, "\n".join(block).strip()
            role, block = kind, []
        block.append(text)
    if "\n".join(block).strip():
        yield role, "\n".join(block).strip()


AIDER = Format(
    "aider",
    ".aider.chat.history.md",
    _chats_of_aider,
    is_text=lambda text: any(map(_SESSION.match, text.splitlines()[:50])),
)
