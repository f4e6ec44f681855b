"""The conversations and dialogs of the data files, read, divided into folds, embedded and drawn from."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.local_embeddings import LocalEmbeddings
from langchain_threadmem.engine.multilingual_embeddings import MultilingualEmbeddings
from langchain_threadmem.selection.turn_ends import TurnEnd

Floats = NDArray[np.float32]
Vectors = Mapping[str, Floats]
LONGEST_CHAT = 9
"""The highest number of turns from a dialog of a channel or of two people; most dialogs are no longer."""


@dataclass(frozen=True)
class Conversation:
    """A conversation: turns in order, with the end of the turn that each truly continues as `previous`."""

    variant: str
    turns: Sequence[TurnEnd]
    dialogs: Sequence[str]
    """The dialog of each turn."""
    humans: Floats
    answers: Floats

    def kind(self, place: int) -> str:
        """The kind of the turn at `place`: root, continue, return or branch."""
        previous = self.turns[place].previous
        if previous is None:
            return "root"
        if any(turn.previous == previous for turn in self.turns[:place]):
            return "branch"
        return "continue" if self.turns[place - 1].id == previous else "return"


class Dialog(NamedTuple):
    """A single dialog: pairs of a human message and its answer."""

    name: str
    kind: str
    """Source and subject; dialogs of one kind are hard to tell apart."""
    turns: Sequence[tuple[str, str]]
    share: float = 1.0
    """The relative frequency with which the dialog is drawn."""

    @property
    def source(self) -> str:
        return self.name.split(":")[0]


def read(path: Path, vectors: Vectors, without: Collection[str] = ()) -> list[Conversation]:
    """Read the conversations of a file, without the dialogs of some sources."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        names = row["sources"]
        # Ids of the files start at 0, those of nodes at 1.
        pairs = [
            (human, answer)
            for human, answer in zip(row["messages"][::2], row["messages"][1::2], strict=True)
            if names[human["dialog"]].split(":")[0] not in without
        ]
        turns = [
            TurnEnd(
                answer["id"] + 1,
                None if human["parent"] is None else human["parent"] + 1,
                human["text"],
                answer["text"],
            )
            for human, answer in pairs
        ]
        if turns:
            found.append(
                conversation(row["variant"], turns, [names[human["dialog"]] for human, _ in pairs], vectors)
            )
    return found


def conversation(
    variant: str,
    turns: Sequence[TurnEnd],
    dialogs: Sequence[str],
    vectors: Vectors,
    texts: Sequence[tuple[str, str]] | None = None,
) -> Conversation:
    """A conversation with the vectors of its texts, or of `texts` in their place."""
    texts = texts or [(turn.human, turn.answer_with_calls) for turn in turns]
    humans = np.array([vectors[human] for human, _ in texts])
    answers = np.array([vectors[answer] for _, answer in texts])
    return Conversation(variant, turns, dialogs, humans, answers)


def kinds(paths: Iterable[Path]) -> dict[str, str]:
    """The kind of each dialog, by its name."""
    found: dict[str, str] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for name, group in zip(row["sources"], row["groups"], strict=True):
                source = name.split(":")[0]
                # The groups of this source are kinds of questions, not subjects.
                found.setdefault(name, source if source == "mtb101" else f"{source} {group}")
    return found


def dialogs_of(conversations: Iterable[Conversation], kind_of: Mapping[str, str]) -> dict[str, Dialog]:
    """The dialogs that conversations were made of, up to their first branch."""
    found: dict[str, Dialog] = {}
    for one in conversations:
        parts: dict[str, list[tuple[str, str]]] = {}
        ends: dict[str, int | None] = {}
        for turn, name in zip(one.turns, one.dialogs, strict=True):
            if turn.previous == ends.get(name):
                parts.setdefault(name, []).append((turn.human, turn.answer_with_calls))
                ends[name] = turn.id
        for name, turns in parts.items():
            if name not in found or len(found[name].turns) < len(turns):
                found[name] = Dialog(name, kind_of[name], turns)
    return found


def folds(conversations: Sequence[Conversation], count: int) -> dict[str, int]:
    """The fold of each dialog; dialogs that share a conversation share a fold."""
    above: dict[str, str] = {}

    def head(name: str) -> str:
        while above.setdefault(name, name) != name:
            name = above[name]
        return name

    for one in conversations:
        for name in one.dialogs:
            above[head(name)] = head(one.dialogs[0])
    together: dict[str, list[str]] = defaultdict(list)
    for name in above:
        together[head(name)].append(name)
    sizes, place = [0] * count, {}
    for names in sorted(together.values(), key=lambda names: (-len(names), names)):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(names)
        place.update(dict.fromkeys(names, fold))
    return place


class Pools:
    """Dialogs to draw from: all, those of one source, those of one kind."""

    def __init__(self, dialogs: Sequence[Dialog]) -> None:
        self.all = dialogs
        self.shares = list(accumulate(dialog.share for dialog in dialogs))
        self.source: dict[str, list[Dialog]] = defaultdict(list)
        self.kind: dict[str, list[Dialog]] = defaultdict(list)
        for dialog in dialogs:
            self.source[dialog.source].append(dialog)
            self.kind[dialog.kind].append(dialog)

    def draw(self, rng: random.Random, count: int, same_kind: float, same_source: float) -> list[Dialog]:
        """Draw at most `count` different dialogs, all of one kind or of one source by these probabilities."""
        first, *others = rng.choices(self.all, cum_weights=self.shares, k=count)
        chance = rng.random()
        if chance < same_kind + same_source:
            alike = self.kind[first.kind] if chance < same_kind else self.source[first.source]
            others = rng.choices(alike, k=count - 1)
        drawn = [first, *others]
        return list({dialog.name: dialog for dialog in drawn}.values())


def irc(path: Path) -> dict[str, Dialog]:
    """The dialogs of IRC logs: the user who began a conversation asks, all others answer."""
    found: dict[str, Dialog] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        above: dict[int, int] = {}

        def head(place: int, above: dict[int, int] = above) -> int:
            while above.setdefault(place, place) != place:
                place = above[place]
            return place

        for child, parent in row["links"]:
            above[head(child)] = head(parent)
        together: dict[int, list[int]] = defaultdict(list)
        for child in sorted({child for child, _ in row["links"]}):
            if not row["messages"][child]["system"]:
                together[head(child)].append(child)
        for places in together.values():
            said = [row["messages"][place] for place in places]
            turns = _turns([(one["user"] == said[0]["user"], _unaddressed(one["text"])) for one in said])
            if len(turns) > 1:
                name = f"irc:{row['id']}/{places[0]}"
                found[name] = Dialog(name, f"irc {row['id']}", turns[:LONGEST_CHAT])
    return found


def chats(path: Path, most: int) -> dict[str, Dialog]:
    """Dialogs of a file of chats between two people, in the format of the package `chitchat-dataset`."""
    found: dict[str, Dialog] = {}
    for number, chat in sorted(json.loads(path.read_text(encoding="utf-8")).items()):
        said = [(one["sender"], one["text"].strip()) for group in chat["messages"] for one in group]
        turns = _turns([(sender == said[0][0], text) for sender, text in said])
        if len(turns) > 2 and len(found) < most:
            name = f"chats:{number}"
            found[name] = Dialog(name, f"chats {chat.get('prompt', '')}", turns[:LONGEST_CHAT])
    return found


def _turns(said: Sequence[tuple[bool, str]]) -> list[tuple[str, str]]:
    """Pairs of a question and its answer; consecutive lines of one side are one message."""
    sides: list[tuple[bool, list[str]]] = []
    for asks, text in said:
        if sides and sides[-1][0] == asks:
            sides[-1][1].append(text)
        else:
            sides.append((asks, [text]))
    joined = ["\n".join(texts) for _, texts in sides]
    return list(zip(joined[::2], joined[1::2], strict=False))


def _unaddressed(text: str) -> str:
    """A line without the name of the user it is addressed to."""
    return re.sub(r"^[\w|`^\[\]-]{2,16}[:,] +", "", text)


def texts_of(paths: Iterable[Path]) -> set[str]:
    """Every text of the files."""
    return {
        message["text"]
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        for message in json.loads(line)["messages"]
    }


def embed(
    wanted: Collection[str], cache: Path | None, model: LocalEmbeddings | MultilingualEmbeddings | None = None
) -> dict[str, Floats]:
    """Embed texts, by default with the local model; the file `cache` stores the vectors between runs."""
    texts = {_digest(text): text for text in sorted(wanted)}
    held: dict[str, Floats] = {}
    if cache is not None and cache.exists():
        with np.load(cache, allow_pickle=False) as stored:
            held = dict(zip(stored["digests"].tolist(), stored["vectors"], strict=True))
    missing = [digest for digest in texts if digest not in held]
    if missing:
        held |= zip(
            missing, (model or LocalEmbeddings()).embed_array([texts[one] for one in missing]), strict=True
        )
        if cache is not None:
            np.savez(cache, digests=np.array(list(held)), vectors=np.array(list(held.values())))
    return {text: held[digest] for digest, text in texts.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
