"""Fit the numbers of `langchain_threadmem.core.network` and measure them.

    python -m benchmarks.fit_choosing --data ../shared/data --write   # fit, measure, write the data file
    python -m benchmarks.fit_choosing --data ../shared/data --shipped # measure what is shipped
    python -m benchmarks.fit_choosing --data ../shared/data --leave   # fit without each variant, measure it

In use a selector has to live with its own mistakes, and errors come in chains: a message whose true parent
was taken by an earlier error. So networks are fitted on the states of the true trees first, then on those of
trees that the last networks grew. Each conversation is grown, and described, by what was fitted on the other
folds (dialogs that share a conversation share a fold), so that the mistakes are as many as in use. Besides
the conversations of the files, their dialogs are woven into others.

Measured is what counts in use: turns are appended one by one, the tree running free, never shown the true
parent. Nothing is fitted on the sources in `UNSEEN`, whose licences do not allow it; they show what a new
kind of dialog gets.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks._dialogs import (
    Conversation,
    Pools,
    Vectors,
    dialogs_of,
    embed,
    folds,
    kinds,
    read,
    weave,
)
from benchmarks._learn import Recipe, State, fit_compatibility, fit_networks, fit_wording
from langchain_threadmem.core import network
from langchain_threadmem.core.choosing import CHANCES_KEPT, LEAST_CHANCE
from langchain_threadmem.core.cues import ENGLISH
from langchain_threadmem.core.evidence import Compatibility
from langchain_threadmem.core.features import FEATURES, describe
from langchain_threadmem.core.network import WAYS, Networks, Way
from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.core.wording import Wording

TRAIN = ("threads_train.jsonl", "threads2_train.jsonl")
DEV = "threads_dev.jsonl"
UNSEEN = ("locomo", "beam", "inscit")
FOLDS = 4
WOVEN = 800
ROUNDS = 2
NETWORKS = 4
RANK = 96
STEPS = 1200
RECIPE = Recipe()
ROUGH = Recipe(epochs=10)
"""For networks that only grow trees to learn from."""


@dataclass(frozen=True)
class Grown:
    """What became of a conversation: the parents chosen, how sure, and the states met on the way."""

    chosen: Sequence[int | None]
    sure: Sequence[float]
    states: Sequence[State]


@dataclass
class Tally:
    """Counts of one variant."""

    messages: int = 0
    right: int = 0
    last: int = 0
    returns: int = 0
    returns_right: int = 0
    roots: int = 0
    roots_chosen: int = 0
    roots_right: int = 0


@dataclass(frozen=True)
class Fitted:
    """Networks for one way to go, and the compatibility they were fitted with."""

    way: Way
    networks: Networks
    wording: Wording
    learned: Compatibility | None


def grow(
    one: Conversation, way: Way, networks: Networks | None, wording: Wording, learned: Compatibility | None
) -> Grown:
    """Place the turns one by one; without networks where they truly belong."""
    tree: list[TurnEnd] = []
    chosen: list[int | None] = []
    sure: list[float] = []
    states: list[State] = []
    for i, turn in enumerate(one.turns):
        parent = turn.previous if networks is None else None
        chances: Sequence[tuple[int | None, float]] = ()
        if tree:
            vector = None if way == "words" else one.humans[i]
            found = describe(
                tree, one.humans[:i], one.answers[:i], turn.human, vector, ENGLISH, wording, learned
            )
            ids = [tree[place].id for place in found.positions.tolist()] + [None]
            if turn.previous in ids:
                states.append(State(found.rows.astype(np.float32), ids.index(turn.previous)))
            if networks is not None:
                scores = network.score(networks, found.rows)
                weighed = np.exp(scores - scores.max())
                weighed /= weighed.sum()
                best = np.argsort(-weighed, kind="stable")[:CHANCES_KEPT].tolist()
                chances = [(ids[row], float(weighed[row])) for row in best if weighed[row] >= LEAST_CHANCE]
                parent = ids[best[0]]
        chosen.append(parent)
        sure.append(chances[0][1] if chances else 1.0)
        tree.append(TurnEnd(turn.id, parent, turn.human, turn.answer, chances=chances))
    return Grown(chosen, sure, states)


class Course:
    """Everything that is fitted on: conversations, their folds, and compatibility from the other folds."""

    def __init__(
        self, conversations: Sequence[Conversation], kind_of: dict[str, str], vectors: Vectors
    ) -> None:
        dialogs = dialogs_of(conversations, kind_of)
        place = folds(conversations, FOLDS)
        self.real = len(conversations)
        self.conversations = list(conversations)
        self.fold = [place[one.dialogs[0]] for one in conversations]
        self.learned = fit_compatibility(dialogs, vectors, rank=RANK, steps=STEPS, seed=FOLDS)
        self.wording = fit_wording(dialogs, seed=FOLDS)
        self.learned_without, self.wording_without = [], []
        rng = random.Random(1)
        for fold in range(FOLDS):
            inside = [one for name, one in dialogs.items() if place[name] == fold]
            outside = {name: one for name, one in dialogs.items() if place[name] != fold}
            self.learned_without.append(
                fit_compatibility(outside, vectors, rank=RANK, steps=STEPS, seed=fold)
            )
            self.wording_without.append(fit_wording(outside, seed=fold))
            self.conversations += [weave(rng, Pools(inside), vectors) for _ in range(WOVEN // FOLDS)]
            self.fold += [fold] * (WOVEN // FOLDS)

    def fit(self, way: Way) -> Fitted:
        """Fit the networks for one way to go; prints how they do on the folds they did not see."""
        grown = self._grow(way, None)
        rough = self._fit_folds(grown, ROUGH)
        for _ in range(ROUNDS):
            grown = self._grow(way, rough)
            show(f"{way}: other folds", tally(self.conversations[: self.real], grown[: self.real]))
            rough = self._fit_folds(grown, RECIPE)
        show(
            f"{way}: other folds", tally(self.conversations[: self.real], self._grow(way, rough)[: self.real])
        )
        states = [state for one in grown for state in one.states]
        learned = self.learned if way == "local" else None
        return Fitted(way, fit_networks(states, RECIPE, NETWORKS), self.wording, learned)

    def _grow(self, way: Way, networks: Sequence[Networks] | None) -> list[Grown]:
        return [
            grow(
                one,
                way,
                networks[fold] if networks else None,
                self.wording_without[fold],
                self.learned_without[fold] if way == "local" else None,
            )
            for one, fold in zip(self.conversations, self.fold, strict=True)
        ]

    def _fit_folds(self, grown: Sequence[Grown], recipe: Recipe) -> list[Networks]:
        found = []
        for fold in range(FOLDS):
            outside = [one for one, its in zip(grown, self.fold, strict=True) if its != fold]
            found.append(fit_networks([state for one in outside for state in one.states], recipe, 2))
        return found


def measure(conversations: Sequence[Conversation], fitted: Fitted) -> tuple[dict[str, Tally], list[Grown]]:
    """Grow conversations and count, by variant."""
    grown = [grow(one, fitted.way, fitted.networks, fitted.wording, fitted.learned) for one in conversations]
    return tally(conversations, grown), grown


def tally(conversations: Sequence[Conversation], grown: Sequence[Grown]) -> dict[str, Tally]:
    """Count by variant."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for one, its in zip(conversations, grown, strict=True):
        counts = tallies[one.variant]
        last: list[int | None] = [None, *(turn.id for turn in one.turns[:-1])]
        for i, (mine, turn, before) in enumerate(zip(its.chosen, one.turns, last, strict=True)):
            true = turn.previous
            counts.messages += 1
            counts.right += mine == true
            counts.last += before == true
            counts.returns += one.kind(i) == "return"
            counts.returns_right += one.kind(i) == "return" and mine == true
            # The first message of a conversation is a root for anyone.
            counts.roots += i > 0 and true is None
            counts.roots_chosen += i > 0 and mine is None
            counts.roots_right += i > 0 and mine is None and true is None
    return dict(tallies)


def show(title: str, tallies: dict[str, Tally]) -> None:
    """Print a table of percentages."""
    print(f"\n{title:24}{'right':>8}{'last':>8}{'returns':>9}{'root P':>8}{'root R':>8}{'messages':>10}")

    def percent(part: int, whole: int) -> float:
        return 100 * part / max(whole, 1)

    for variant, tally in tallies.items():
        print(
            f"  {variant:22}{percent(tally.right, tally.messages):8.1f}"
            f"{percent(tally.last, tally.messages):8.1f}"
            f"{percent(tally.returns_right, tally.returns):9.1f}"
            f"{percent(tally.roots_right, tally.roots_chosen):8.1f}"
            f"{percent(tally.roots_right, tally.roots):8.1f}{tally.messages:10}"
        )
    right = np.mean([percent(tally.right, tally.messages) for tally in tallies.values()])
    last = np.mean([percent(tally.last, tally.messages) for tally in tallies.values()])
    back = percent(sum(t.returns_right for t in tallies.values()), sum(t.returns for t in tallies.values()))
    print(f"  {'macro (returns: all)':22}{right:8.1f}{last:8.1f}{back:9.1f}", flush=True)


def show_sure(conversations: Sequence[Conversation], grown: Sequence[Grown]) -> None:
    """Print how often those choices were right that the networks were sure of."""
    pairs = [
        (sure, mine == turn.previous)
        for one, its in zip(conversations, grown, strict=True)
        for sure, mine, turn in list(zip(its.sure, its.chosen, one.turns, strict=True))[1:]
    ]
    for level in (0.5, 0.8, 0.9, 0.99):
        above = [right for sure, right in pairs if sure >= level]
        print(
            f"  p >= {level:<4} {100 * len(above) / len(pairs):5.1f} % of choices, "
            f"{100 * np.mean(above) if above else 0:5.1f} % right"
        )


def write(path: Path, fitted: Sequence[Fitted], about: dict[str, object]) -> None:
    """Write the data file of the package."""
    wording = fitted[0].wording
    arrays: dict[str, np.ndarray] = {
        "features": np.array(FEATURES),
        "about": np.array(json.dumps(about)),
        "words": np.array(" ".join(wording.vocabulary)),
    }
    for name in ("answer", "message", "opener", "closing"):
        arrays[f"word_{name}"] = getattr(wording, name).astype(np.float16)
    for one in fitted:
        for field in fields(Networks):
            arrays[f"{one.way}_{field.name}"] = getattr(one.networks, field.name).astype(np.float32)
        if one.learned is not None:
            # Half precision changes no choice and halves the file.
            arrays |= {name: getattr(one.learned, name).astype(np.float16) for name in network.COMPATIBILITY}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    print(f"\n{path}: {path.stat().st_size / 1024:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, help="an .npz file for the vectors")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--write", action="store_true", help="write the data file of the package")
    parser.add_argument("--shipped", action="store_true", help="measure what is shipped, fit nothing")
    parser.add_argument("--leave", action="store_true", help="fit without each variant, and measure it")
    options = parser.parse_args()
    paths = [options.data / name for name in (*TRAIN, DEV)]
    missing = [path for path in paths if not path.exists()]
    if missing:
        sys.exit(f"{', '.join(map(str, missing))}: not there; name the folder of the data with --data")
    vectors = embed(paths, options.cache)
    kind_of = kinds(paths)
    known = [one for path in paths[:2] for one in read(path, vectors, UNSEEN) if one.variant not in UNSEEN]
    unseen = [one for path in paths[:2] for one in read(path, vectors) if one.variant in UNSEEN]
    dev = read(paths[2], vectors)

    if options.leave:
        leave_one_out(known, kind_of, vectors, options.ways)
        return
    fitted = []
    course = None if options.shipped else Course(known, kind_of, vectors)
    for way in options.ways:
        if course is None:
            learned = network.compatibility() if way == "local" else None
            fitted.append(Fitted(way, network.networks(way), network.wording(), learned))
        else:
            fitted.append(course.fit(way))
        for title, conversations in (("dev", dev), ("unseen sources", unseen)):
            counts, grown = measure(conversations, fitted[-1])
            show(f"{way}: {title}", counts)
            show_sure(conversations, grown)
    if options.write:
        if course is None or list(options.ways) != list(WAYS):
            sys.exit("--write needs all ways, freshly fitted")
        about = {
            "sources": dict(
                Counter(name.split(":")[0] for name in {n for one in known for n in one.dialogs})
            ),
            "conversations": len(known),
            "woven": WOVEN,
            "recipe": asdict(RECIPE),
            "fitted": time.strftime("%Y-%m-%d"),
        }
        write(Path(network.__file__).with_name(network.FILE), fitted, about)


def leave_one_out(
    known: Sequence[Conversation], kind_of: dict[str, str], vectors: Vectors, ways: Sequence[Way]
) -> None:
    """Fit without each variant, and without its sources anywhere else; then measure it."""
    totals: dict[Way, dict[str, Tally]] = {way: {} for way in ways}
    for variant in dict.fromkeys(one.variant for one in known):
        left = [one for one in known if one.variant == variant]
        sources = {name.split(":")[0] for one in left for name in one.dialogs} if variant != "mix" else set()
        if variant == "single":
            sources = set()
        rest = [
            one
            for one in known
            if one.variant != variant and not any(name.split(":")[0] in sources for name in one.dialogs)
        ]
        course = Course(rest, kind_of, vectors)
        for way in ways:
            totals[way] |= measure(left, course.fit(way))[0]
    for way in ways:
        show(f"{way}: left out", totals[way])


if __name__ == "__main__":
    main()
