"""Interleaved conversations: reading them, taking them apart into dialogs, weaving new ones.

The files hold conversations into which several dialogs were interleaved. For fitting, their dialogs are
woven anew by laws drawn at random: how many dialogs, how alike they are, how long one is kept to, whether a
return goes to the latest or to any.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.embeddings import LocalEmbeddings

Floats = NDArray[np.float32]
Vectors = Mapping[str, Floats]
LONGEST = 40
"""Turns of a woven conversation, at most."""


@dataclass(frozen=True)
class Conversation:
    """Turns in order; `previous` of each is the turn end that it truly continues."""

    variant: str
    turns: Sequence[TurnEnd]
    dialogs: Sequence[str]
    """For each turn, the dialog it is from."""
    humans: Floats
    answers: Floats

    def kind(self, place: int) -> str:
        """What the turn at `place` does: root, continue, return or branch."""
        previous = self.turns[place].previous
        if previous is None:
            return "root"
        if any(turn.previous == previous for turn in self.turns[:place]):
            return "branch"
        return "continue" if self.turns[place - 1].id == previous else "return"


class Dialog(NamedTuple):
    """One dialog by itself: pairs of a human message and its answer."""

    name: str
    kind: str
    """Where it is from and what it is about; dialogs of one kind are hard to tell apart."""
    turns: Sequence[tuple[str, str]]

    @property
    def source(self) -> str:
        return self.name.split(":")[0]


def read(path: Path, vectors: Vectors, without: Collection[str] = ()) -> list[Conversation]:
    """Read the conversations of a file, less the dialogs of some sources."""
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
    variant: str, turns: Sequence[TurnEnd], dialogs: Sequence[str], vectors: Vectors
) -> Conversation:
    """A conversation with the vectors of its texts."""
    humans = np.array([vectors[turn.human] for turn in turns])
    answers = np.array([vectors[turn.answer] for turn in turns])
    return Conversation(variant, turns, dialogs, humans, answers)


def kinds(paths: Iterable[Path]) -> dict[str, str]:
    """The kind of each dialog, by its name."""
    found: dict[str, str] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for name, group in zip(row["sources"], row["groups"], strict=True):
                source = name.split(":")[0]
                # What it names there is the kind of question, not the subject.
                found.setdefault(name, source if source == "mtb101" else f"{source} {group}")
    return found


def dialogs_of(conversations: Iterable[Conversation], kind_of: Mapping[str, str]) -> dict[str, Dialog]:
    """The dialogs that conversations were made of, whole as far as they are there."""
    found: dict[str, Dialog] = {}
    for one in conversations:
        parts: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for turn, name in zip(one.turns, one.dialogs, strict=True):
            parts[name].append((turn.human, turn.answer))
        for name, turns in parts.items():
            if name not in found or len(found[name].turns) < len(turns):
                found[name] = Dialog(name, kind_of[name], turns)
    return found


def folds(conversations: Sequence[Conversation], count: int) -> dict[str, int]:
    """Put each dialog in a fold; those that share a conversation share a fold."""
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
        self.source: dict[str, list[Dialog]] = defaultdict(list)
        self.kind: dict[str, list[Dialog]] = defaultdict(list)
        for dialog in dialogs:
            self.source[dialog.source].append(dialog)
            self.kind[dialog.kind].append(dialog)

    def draw(self, rng: random.Random, count: int, same_kind: float, same_source: float) -> list[Dialog]:
        """Draw different dialogs, at most `count`, by how likely they are to be alike."""
        first = rng.choice(self.all)
        chance = rng.random()
        pool = (
            self.kind[first.kind]
            if chance < same_kind
            else self.source[first.source]
            if chance < same_kind + same_source
            else self.all
        )
        drawn = [first, *(rng.choice(pool) for _ in range(count - 1))]
        return list({dialog.name: dialog for dialog in drawn}.values())


def weave(rng: random.Random, pools: Pools, vectors: Vectors) -> Conversation:
    """Interleave some dialogs into a new conversation, by a law drawn at random."""
    drawn = pools.draw(rng, rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6, 7]), 0.45, 0.25)
    stay, opening, latest_first = rng.uniform(0.25, 0.95), rng.uniform(0.15, 0.9), rng.random() < 0.5
    ends: list[list[int]] = [[] for _ in drawn]  # the turn ends of each, so far
    waiting, order = list(range(len(drawn))), []  # not begun yet; begun, the latest last
    turns: list[TurnEnd] = []
    names: list[str] = []
    current: int | None = None
    while len(turns) < LONGEST:
        unfinished = [one for one in order if len(ends[one]) < len(drawn[one].turns)]
        others = [one for one in unfinished if one != current]
        if current in unfinished and rng.random() < stay:
            chosen = current
        elif waiting and (not others or rng.random() < opening):
            chosen = waiting.pop(0)
            order.append(chosen)
        elif others:
            chosen = others[-1] if latest_first and rng.random() < 0.5 else rng.choice(others)
        elif unfinished:
            chosen = unfinished[0]
        else:
            break
        assert chosen is not None
        order.remove(chosen)
        order.append(chosen)
        place = len(ends[chosen])
        human, answer = drawn[chosen].turns[place]
        previous = ends[chosen][-1] if place else None
        turns.append(TurnEnd(2 * len(turns) + 2, previous, human, answer))
        names.append(drawn[chosen].name)
        ends[chosen].append(turns[-1].id)
        current = chosen
    return conversation("woven", turns, names, vectors)


def embed(paths: Iterable[Path], cache: Path | None) -> dict[str, Floats]:
    """Embed every text of the files; the vectors are kept in `cache` from one run to the next."""
    texts = sorted(
        {
            message["text"]
            for path in paths
            for line in path.read_text(encoding="utf-8").splitlines()
            for message in json.loads(line)["messages"]
        }
    )
    # Anything else in the cache was made for other texts.
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    if cache is not None and cache.exists():
        with np.load(cache, allow_pickle=False) as stored:
            if stored["digest"].item() == digest:
                return dict(zip(texts, stored["vectors"], strict=True))
    matrix = LocalEmbeddings().embed_array(texts)
    if cache is not None:
        np.savez(cache, digest=np.array(digest), vectors=matrix)
    return dict(zip(texts, matrix, strict=True))
