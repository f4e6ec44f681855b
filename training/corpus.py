"""The conversations and dialogs that were written for this project, read from their files.

`training/conversations` (MIT, like the package) contains conversations of people and assistants about several
matters at a time, with a line for each human message and one for its answer:

    # bread-and-the-car
    bread | my loaves come out flat, what am i doing wrong?
    = How long did you leave the dough to rise?
    car | The orange engine light came on this morning. Safe to drive?
    ~ manual_search {"query": "engine light"} -> steady: have it read soon; flashing: stop
    = If it is steady, yes.
    bread | two hours maybe
    = Try five.
    bread<1 | What if I used dry yeast instead?
    = Then two hours would do.

A message continues the last turn of its matter, or opens the matter; `bread<1` continues the first turn of
the matter again, which makes a branch. Lines with `~` are tool calls. Line breaks are written `\\n`.

`training/languages` contains twenty conversations in English and their translations, a file for each
language. `training/dialogs` contains single dialogs in the same format: a block for each kind of matter, with
its dialogs one after the other. These dialogs are woven into conversations (`training.weave`).
`training/unseen` contains further conversations and dialogs, which no fit uses, and two sets of chats in
seven languages: errors on the chats "read" may be looked at, those "apart" are for a final figure alone. The
texts are invented; their statements are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from langchain_threadmem.messages.tool_pairs import text_of_calls, with_calls
from langchain_threadmem.selection.turn_ends import TurnEnd
from training.sources import Conversation, Dialog, Vectors, conversation

FOLDER = Path(__file__).with_name("conversations")
DIALOGS = Path(__file__).with_name("dialogs")
LANGUAGES = Path(__file__).with_name("languages")
UNSEEN_FOLDER = Path(__file__).with_name("unseen")
"""Conversations in which every third message changes the subject, and single dialogs; no fit uses them."""
HELD_OUT = "agent"
"""The part that no fit uses: agents with tools, five matters each."""
PARTS = tuple(sorted({path.name.split("-")[0] for path in FOLDER.glob("*.txt")} - {HELD_OUT}))
"""The other parts."""
SPOKEN = {
    **dict.fromkeys(("travel", "outing", "errand", "support", "shop"), "services"),
    **dict.fromkeys(("facts", "essay", "exercise", "guide"), "questions"),
    "company": "small talk",
}
"""The subjects of the single dialogs, and their families by style."""
_TURN = re.compile(r"([a-z0-9-]+)(?:<(\d+))? \| (.+)")
_CALL = re.compile(r"~ (\w+) (\{.*\}) -> (.*)")


class Call(NamedTuple):
    """A tool call: the tool, its arguments as JSON, and its result."""

    tool: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Turn:
    """A human message and its answer, their matter, and the place of the turn that they continue."""

    matter: str
    previous: int | None
    human: str
    answer: str
    calls: tuple[Call, ...] = ()

    @property
    def text_of_calls(self) -> str:
        """The text by which the selector compares the calls, see `TurnEnd.calls`."""
        text = ""
        for call in self.calls:
            made = {"name": call.tool, "args": json.loads(call.arguments), "id": call.tool}
            text = text_of_calls(AIMessage("", tool_calls=[made]), text)
            text = text_of_calls(ToolMessage(call.result, tool_call_id=call.tool), text)
        return text

    @property
    def answer_with_calls(self) -> str:
        """The text by which the answer is compared."""
        return with_calls(self.answer, self.text_of_calls)


@dataclass(frozen=True)
class Written:
    """A written conversation."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def part(self) -> str:
        """The part of the collection."""
        return self.name.split("-")[0]


def written(folder: Path = FOLDER) -> list[Written]:
    """All conversations, in the order of their files."""
    return [one for path in sorted(folder.glob("*.txt")) for one in parse(path.read_text(encoding="utf-8"))]


def dialogs(folder: Path = DIALOGS) -> dict[str, Dialog]:
    """All single dialogs by their names; the dialogs of one block are of one kind."""
    return {
        f"{one.part}:{one.name}/{matter}": Dialog(
            f"{one.part}:{one.name}/{matter}",
            f"{one.part} {one.name}",
            [(turn.human, turn.answer_with_calls) for turn in one.turns if turn.matter == matter],
        )
        for one in written(folder)
        for matter in dict.fromkeys(turn.matter for turn in one.turns)
    }


def parse(text: str) -> Iterator[Written]:
    """The conversations of a file.

    Raises:
        ValueError: A line is neither a message, nor a call, nor an answer.

    Example:
        >>> [one] = parse("# talk-a\\nmood | hi\\n= hello!\\nfilm | what's on\\n= Jaws.\\nmood | sad\\n= Oh?")
        >>> one.part, [turn.previous for turn in one.turns]
        ('talk', [None, None, 0])
    """
    for block in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        name, *lines = [line for line in block.split("\n") if line.strip()]
        yield Written(name.strip(), tuple(_turns(name, lines)))


def _turns(name: str, lines: list[str]) -> Iterator[Turn]:
    ends: dict[str, list[int]] = {}
    calls: list[Call] = []
    said = None
    count = 0
    for line in lines:
        if found := _TURN.fullmatch(line):
            said = found
        elif found := _CALL.fullmatch(line):
            calls.append(Call(*found.groups()))
        elif line.startswith("= ") and said is not None:
            matter, back, human = said.groups()
            above = ends.setdefault(matter, [])
            previous = above[int(back) - 1] if back else above[-1] if above else None
            yield Turn(matter, previous, _plain(human), _plain(line[2:]), tuple(calls))
            above.append(count)
            count += 1
            said, calls = None, []
        else:
            raise ValueError(f"{name}: {line!r} is neither a message, nor a call, nor an answer to one")


def _plain(text: str) -> str:
    return text.strip().replace("\\n", "\n")


def in_languages(folder: Path = LANGUAGES) -> dict[str, list[Written]]:
    """The conversations of each language, by its ISO 639-1 code; those at one position are translations."""
    return {path.stem: list(parse(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.txt"))}


def texts_of(several: list[Written]) -> set[str]:
    """All texts of the given conversations."""
    return {text for one in several for turn in one.turns for text in (turn.human, turn.answer_with_calls)}


def kinds(several: list[Written]) -> dict[str, str]:
    """The kind of each dialog, by its name; the dialogs of one conversation are of one kind."""
    return {_name(one, turn): f"{one.part} {one.name}" for one in several for turn in one.turns}


def alone(one: Dialog, vectors: Vectors) -> Conversation:
    """A single dialog as a conversation of one matter."""
    ends = [None, *range(2, 2 * len(one.turns), 2)]
    turns = [
        TurnEnd(2 * place + 2, end, human, answer)
        for place, (end, (human, answer)) in enumerate(zip(ends, one.turns, strict=True))
    ]
    return conversation("single dialog", turns, [one.name] * len(turns), vectors)


def _name(one: Written, turn: Turn) -> str:
    return f"{one.part}:{one.name}/{turn.matter}"


def as_conversation(one: Written, vectors: Vectors) -> Conversation:
    """A conversation in the form for fitting and measuring networks."""
    turns = [
        TurnEnd(
            2 * place + 2,
            None if turn.previous is None else 2 * turn.previous + 2,
            turn.human,
            turn.answer,
            calls=turn.text_of_calls,
        )
        for place, turn in enumerate(one.turns)
    ]
    variant = "one matter" if len({turn.matter for turn in one.turns}) == 1 else one.part
    return conversation(variant, turns, [_name(one, turn) for turn in one.turns], vectors)
