"""The conversations of the benchmark: read from `training/`, in three splits, or from JSON Lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from langchain_core.messages import BaseMessage, convert_to_messages

from training.corpus import (
    DIALOGS,
    HELD_OUT,
    UNSEEN_FOLDER,
    Turn,
    Written,
    in_languages,
    written,
)

Split = Literal["test", "train", "chats"]
SPLITS: tuple[Split, ...] = get_args(Split)
SINGLE = "single"
"""The group of conversations about one topic, which a selector should not divide."""
LANGUAGES = "languages"
"""The group of translated conversations."""


class Message(TypedDict, total=False):
    """A message, with the keys of OpenAI's format, an `id` and its `parent`."""

    id: str
    parent: str | None
    role: str
    content: str
    tool_calls: list[dict[str, Any]]
    tool_call_id: str


class Conversation(TypedDict):
    """A conversation: a line of the JSON Lines files.

    Attributes:
        id: Its name, unique in the file.
        group: Its group, for which figures are computed.
        unit: The sampling unit of confidence intervals; a conversation and its translations share a unit.
        language: Its language, as an ISO 639-1 code.
        split: Its split, "test", "train" or "chats".
        messages: Its messages in order.
    """

    id: str
    group: str
    unit: str
    language: str
    split: Split
    messages: list[Message]


def conversations(split: Split) -> list[Conversation]:
    """The conversations of a split.

    Example:
        >>> sorted({one["group"] for one in conversations("test")})
        ['agents', 'calm', 'languages', 'single']
    """
    return list({"test": _test, "train": _train, "chats": _chats}[split]())


def _test() -> Iterator[Conversation]:
    yield from (_conversation(one, "agents", "test") for one in written() if one.part == HELD_OUT)
    yield from (_conversation(one, one.part, "test") for one in written(UNSEEN_FOLDER / "conversations"))
    yield from _half("test")
    yield from _single(UNSEEN_FOLDER / "dialogs", "test")


def _train() -> Iterator[Conversation]:
    yield from (_conversation(one, one.part, "train") for one in written() if one.part != HELD_OUT)
    yield from _half("train")
    yield from _single(DIALOGS, "train")


def _chats() -> Iterator[Conversation]:
    for one in written(UNSEEN_FOLDER / "chats"):
        code = one.name.split("-")[1]
        yield _conversation(one, one.part, "chats", code if len(code) == 2 else "en")


def _half(split: Split) -> Iterator[Conversation]:
    for code, several in in_languages().items():
        half = len(several) // 2
        for one in several[half:] if split == "test" else several[:half]:
            yield _conversation(one, LANGUAGES, split, code)


def _single(folder: Path, split: Split) -> Iterator[Conversation]:
    for one in written(folder):
        for matter in dict.fromkeys(turn.matter for turn in one.turns):
            places = [place for place, turn in enumerate(one.turns) if turn.matter == matter]
            new: dict[int | None, int | None] = {None: None, **{old: at for at, old in enumerate(places)}}
            turns = [replace(one.turns[place], previous=new[one.turns[place].previous]) for place in places]
            yield _conversation(Written(f"{one.name}/{matter}", tuple(turns)), SINGLE, split)


def _conversation(one: Written, group: str, split: Split, language: str = "en") -> Conversation:
    name = f"{language}/{one.name}" if group == LANGUAGES else f"{group}/{one.name}"
    unit = f"{LANGUAGES}/{one.name}" if group == LANGUAGES else name
    messages = list(_messages(one.turns))
    return Conversation(id=name, group=group, unit=unit, language=language, split=split, messages=messages)


def _messages(turns: Sequence[Turn]) -> Iterator[Message]:
    ends: list[str] = []
    for place, turn in enumerate(turns, 1):
        last = Message(id=f"{place}", parent=None, role="user", content=turn.human)
        if turn.previous is not None:
            last["parent"] = ends[turn.previous]
        yield last
        for number, call in enumerate(turn.calls, 1):
            name = f"{place}-call-{number}"
            function = {"name": call.tool, "arguments": call.arguments}
            yield Message(
                id=name,
                parent=last["id"],
                role="assistant",
                content="",
                tool_calls=[{"id": name, "type": "function", "function": function}],
            )
            last = Message(
                id=f"{place}-result-{number}",
                parent=name,
                role="tool",
                content=call.result,
                tool_call_id=name,
            )
            yield last
        yield Message(id=f"{place}-answer", parent=last["id"], role="assistant", content=turn.answer)
        ends.append(f"{place}-answer")


def read(path: Path) -> list[Conversation]:
    """The conversations of a JSON Lines file.

    Raises:
        ValueError: A line is not a valid conversation; the error names the number of the line.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            one: Conversation = json.loads(line)
            check(one)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}, line {number}: {error!r}") from error
        found.append(one)
    return found


def check(one: Conversation) -> None:
    """Check that a conversation has all keys, and that each message continues an earlier one.

    Raises:
        ValueError: A message has an unknown parent, an id is not unique, or the first message is not of a
            person.
        KeyError: A key is missing.
    """
    known: set[str | None] = {None}
    if not one["messages"] or one["messages"][0]["role"] != "user":
        raise ValueError(f"{one['id']!r} does not begin with a message of role 'user'")
    _ = one["group"], one["unit"], one["language"]
    for message in one["messages"]:
        if message["parent"] not in known or message["id"] in known:
            raise ValueError(
                f"the parent of {message['id']!r} is no earlier message, or its id is not unique"
            )
        known.add(message["id"])


def messages_of(rows: Sequence[Message]) -> list[BaseMessage]:
    """LangChain messages with the ids of the rows, without the parents."""
    keys = ("role", "content", "tool_calls", "tool_call_id")
    found = convert_to_messages([{key: row[key] for key in keys if key in row} for row in rows])  # type: ignore[literal-required]
    for message, row in zip(found, rows, strict=True):
        message.id = row["id"]
    return found


def turns_of(one: Conversation) -> Iterator[list[Message]]:
    """The turns: each human message with the messages up to the next human message."""
    turn: list[Message] = []
    for row in one["messages"]:
        if row["role"] == "user" and turn:
            yield turn
            turn = []
        turn.append(row)
    yield turn


def export(folder: Path, splits: Iterable[Split] = SPLITS) -> list[Path]:
    """Write a file of each split, such as `test.jsonl`, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for split in splits:
        paths.append(folder / f"{split}.jsonl")
        lines = (json.dumps(one, ensure_ascii=False) for one in conversations(split))
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def fingerprint(several: Iterable[Conversation]) -> str:
    """The first characters of a hash of conversations; tables of the same data have the same fingerprint."""
    text = json.dumps(list(several), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
