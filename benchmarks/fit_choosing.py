"""Fit the weights of `langchain_threadmem.core.choosing` and measure them.

Listwise softmax regression by Newton's method with an L2 penalty, in two passes: over the
states of the true trees, then over those and the states of the trees that the first weights
grow, because in use a selector has to live with its own mistakes. Measured is what counts in
use: turns are appended one by one, the tree running free, never shown the true parent.

    python benchmarks/fit_choosing.py --data ../shared/data            # fit, print, measure
    python benchmarks/fit_choosing.py --data ../shared/data --shipped  # measure what is shipped
    python benchmarks/fit_choosing.py --data ../shared/data --folds 5  # also cross-validate

Some kinds of conversation are never fitted on (`UNSEEN`), to show what a new kind gets.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.core.choosing import WEIGHTS, describe
from langchain_threadmem.core.nodes import TurnEnd
from langchain_threadmem.embeddings import LocalEmbeddings

TRAIN = ("threads_train.jsonl", "threads2_train.jsonl")
DEV = "threads_dev.jsonl"
UNSEEN = ("locomo", "beam", "inscit")
LARGEST = 4.0
"""No weight exceeds it: a cue that is nearly certain in this data is not so everywhere."""

Floats = NDArray[np.float32]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Conversation:
    """Turns in order; `parents` are the ids of the turn ends they truly continue."""

    variant: str
    sources: frozenset[str]
    turns: Sequence[TurnEnd]
    humans: Floats
    answers: Floats

    @property
    def parents(self) -> list[int | None]:
        return [turn.previous for turn in self.turns]


@dataclass(frozen=True)
class State:
    """One message to place: a row for each candidate, and which of them is right."""

    rows: Table
    right: int


@dataclass
class Tally:
    """Counts of one variant."""

    messages: int = 0
    right: int = 0
    last: int = 0
    roots: int = 0
    roots_chosen: int = 0
    roots_right: int = 0


def read(path: Path, vectors: dict[str, Floats]) -> list[Conversation]:
    """Read the conversations of a file; a turn is a human message and the answer after it."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        # Ids of the files start at 0, those of nodes at 1.
        pairs = list(zip(row["messages"][::2], row["messages"][1::2], strict=True))
        turns = [
            TurnEnd(
                answer["id"] + 1,
                None if human["parent"] is None else human["parent"] + 1,
                human["text"],
                answer["text"],
            )
            for human, answer in pairs
        ]
        humans = np.array([vectors[turn.human] for turn in turns])
        answers = np.array([vectors[turn.answer] for turn in turns])
        found.append(Conversation(row["variant"], frozenset(row["sources"]), turns, humans, answers))
    return found


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


def replay(
    conversation: Conversation, weights: Table | None, words_only: bool
) -> tuple[list[State], list[int | None]]:
    """States met while the turns are placed one by one, and the parents that were chosen.

    Without weights the tree is the true one.
    """
    states: list[State] = []
    tree: list[TurnEnd] = []
    chosen: list[int | None] = []
    for i, turn in enumerate(conversation.turns):
        parent = None if weights is not None else turn.previous
        if tree:
            vector = None if words_only else conversation.humans[i]
            found = describe(tree, conversation.humans[:i], conversation.answers[:i], turn.human, vector)
            ids = [tree[place].id for place in found.positions.tolist()] + [None]
            if turn.previous in ids:
                states.append(State(found.rows, ids.index(turn.previous)))
            if weights is not None:
                parent = ids[int(np.argmax(found.rows @ weights))]
        chosen.append(parent)
        tree.append(TurnEnd(turn.id, parent, turn.human, turn.answer))
    return states, chosen


def fit(states: Sequence[State], penalty: float) -> Table:
    """Find the weights under which the right candidates are likeliest.

    The penalty is on weights per spread of their column.
    """
    rows = np.concatenate([state.rows for state in states])
    sizes = np.array([len(state.rows) for state in states])
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    right = rows[starts + [state.right for state in states]]
    spread = rows.std(0)
    spread[spread == 0] = np.inf
    rows, right = rows / spread, right / spread
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        scores = rows @ weights
        chances = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        chances /= np.repeat(np.add.reduceat(chances, starts), sizes)
        means = np.add.reduceat(rows * chances[:, None], starts)
        slope = (means - right).sum(0) + penalty * weights
        curve = (rows * chances[:, None]).T @ rows - means.T @ means + penalty * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    fitted: Table = (weights / spread).clip(-LARGEST, LARGEST)
    return fitted


def train(conversations: Sequence[Conversation], words_only: bool, penalty: float) -> Table:
    """Both passes."""
    true = [state for one in conversations for state in replay(one, None, words_only)[0]]
    first = fit(true, penalty)
    own = [state for one in conversations for state in replay(one, first, words_only)[0]]
    return fit(true + own, penalty)


def measure(conversations: Sequence[Conversation], weights: Table, words_only: bool) -> dict[str, Tally]:
    """Count by variant."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for one in conversations:
        tally = tallies[one.variant]
        last: list[int | None] = [None, *(turn.id for turn in one.turns[:-1])]
        chosen = replay(one, weights, words_only)[1]
        for i, (mine, true, before) in enumerate(zip(chosen, one.parents, last, strict=True)):
            tally.messages += 1
            tally.right += mine == true
            tally.last += before == true
            # The first message of a conversation is a root for anyone.
            tally.roots += i > 0 and true is None
            tally.roots_chosen += i > 0 and mine is None
            tally.roots_right += i > 0 and mine is None and true is None
    return dict(tallies)


def show(title: str, tallies: dict[str, Tally]) -> None:
    """Print a table of percentages."""
    print(f"\n{title:24}{'right':>8}{'last':>8}{'root P':>8}{'root R':>8}{'messages':>10}")
    for variant, tally in tallies.items():
        print(
            f"  {variant:22}{100 * tally.right / tally.messages:8.1f}{100 * tally.last / tally.messages:8.1f}"
            f"{100 * tally.roots_right / max(tally.roots_chosen, 1):8.1f}"
            f"{100 * tally.roots_right / max(tally.roots, 1):8.1f}{tally.messages:10}"
        )
    right = np.mean([tally.right / tally.messages for tally in tallies.values()])
    last = np.mean([tally.last / tally.messages for tally in tallies.values()])
    print(f"  {'macro':22}{100 * right:8.1f}{100 * last:8.1f}")


def folds(conversations: Sequence[Conversation], count: int) -> list[int]:
    """Put each conversation in a fold; those that share a source share a fold."""
    group = list(range(len(conversations)))

    def head(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    owner: dict[str, int] = {}
    for i, one in enumerate(conversations):
        for source in one.sources:
            group[head(i)] = head(owner.setdefault(source, i))
    heads = sorted({head(i) for i in range(len(conversations))})
    sizes, place = [0] * count, {}
    for one_head in sorted(heads, key=lambda h: -sum(head(i) == h for i in range(len(conversations)))):
        place[one_head] = sizes.index(min(sizes))
        sizes[place[one_head]] += sum(head(i) == one_head for i in range(len(conversations)))
    return [place[head(i)] for i in range(len(conversations))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, help="an .npz file for the vectors")
    parser.add_argument("--penalty", type=float, default=10.0)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--shipped", action="store_true", help="measure the shipped weights, fit nothing")
    options = parser.parse_args()
    paths = [options.data / name for name in (*TRAIN, DEV)]
    missing = [path for path in paths if not path.exists()]
    if missing:
        sys.exit(f"{', '.join(map(str, missing))}: not there; name the folder of the data with --data")
    vectors = embed(paths, options.cache)
    trained = [one for path in paths[:2] for one in read(path, vectors)]
    known = [one for one in trained if one.variant not in UNSEEN]
    unseen = [one for one in trained if one.variant in UNSEEN]
    dev = read(paths[2], vectors)

    pairs = []
    for words_only in (False, True):
        how = "words alone" if words_only else "vectors"
        if options.shipped:
            weights = np.array([pair[words_only] for pair in WEIGHTS.values()])
        else:
            weights = train(known, words_only, options.penalty)
        pairs.append(weights.round(2) + 0.0)
        show(f"dev, {how}", measure(dev, pairs[-1], words_only))
        show(f"unseen kinds, {how}", measure(unseen, pairs[-1], words_only))
        if options.folds:
            fold = folds(known, options.folds)
            together: dict[str, Tally] = defaultdict(Tally)
            for k in range(options.folds):
                inside = [one for one, f in zip(known, fold, strict=True) if f != k]
                outside = [one for one, f in zip(known, fold, strict=True) if f == k]
                for variant, tally in measure(
                    outside, train(inside, words_only, options.penalty), words_only
                ).items():
                    for field, value in vars(tally).items():
                        setattr(together[variant], field, getattr(together[variant], field) + value)
            show(f"{options.folds} folds, {how}", together)
    if not options.shipped:
        print()
        for name, with_vectors, words in zip(WEIGHTS, *pairs, strict=True):
            print(f'    "{name}": ({with_vectors}, {words}),')


if __name__ == "__main__":
    main()
