"""aider: `.aider.chat.history.md`, with a heading for each session, questions, answers and notes.

Lines that begin with `>` are written by the program and are asides, `####` begins a line of a question, and
the rest is the answer. Only a session has a time. The marks follow Aider-AI/aider (aider/io.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_threadmem.formats.importers.chats import Chats, chat_of, seconds
from langchain_threadmem.formats.importers.said import ASSISTANT, SYSTEM, USER, Said, entries_of
from langchain_threadmem.formats.importers.source import Source
from langchain_threadmem.messages.ids import chained_id

_SESSION = re.compile(r"^# aider chat started at (.+)$")
_QUESTION, _PROGRAM = "####", ">"


def is_text(text: str) -> bool:
    """Whether a text is a history of aider."""
    return any(map(_SESSION.match, text.splitlines()[:50]))


def chats(source: Source) -> Chats:
    """The conversations of a history: one for each session."""
    name: str | None = None
    started = ""
    lines: list[str] = []
    names: dict[str, int] = {}
    for line in source.lines():
        found = _SESSION.match(line)
        if found:
            if name is not None:
                yield from _chat(name, started, lines)
            started, lines = found[1].strip(), []
            names[started] = names.get(started, 0) + 1
            name = f"aider-{started}" + ("" if names[started] == 1 else f"-{names[started]}")
        else:
            lines.append(line)
    if name is not None:
        yield from _chat(name, started, lines)


def _chat(name: str, started: str, lines: list[str]) -> Chats:
    time = seconds(started, f"session {started!r}")
    said: list[Said] = []
    previous: str | None = None
    for role, text in _blocks(lines):
        key = chained_id("import-", previous, [len(said), role, text])
        said.append(Said(key, previous, role, [text], time))
        previous = previous if role == SYSTEM else key
    yield chat_of(f"session {started!r}", name, entries_of(said), created=time)


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
