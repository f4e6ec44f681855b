"""Fit the weights of `langchain_threadmem.recall.weights` and measure them.

Each of the two kinds of chat has a listwise softmax regression, fitted by Newton's method with an L2 penalty.
Each conversation is left out in turn: the weights are fitted on the others and measured on it. Then the
weights are fitted on all conversations and printed. The "left out" figures are therefore those of weights
that were fitted without the conversation, and the shipped weights are fitted on all conversations.

    python -m training.fit_recall              # fit, measure, print
    python -m training.fit_recall --out FILE   # fit, measure, write a copy of the module with the new weights
    python -m training.fit_recall --shipped    # measure the shipped weights

The data is not part of this repository; `--data FOLDER` names its folder.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recall import DATA, ENOUGH, MOST, SETS, Set, message_of, pairs_of, scores, within_room
from langchain_threadmem.index.documents import DocumentRow, document_of
from langchain_threadmem.index.language import ENGLISH
from langchain_threadmem.recall import weights as module
from langchain_threadmem.recall.postings import Postings
from langchain_threadmem.recall.question import Question, question_of
from langchain_threadmem.recall.scoring import ScoreParts, parts_of, people_parts, turn_parts
from langchain_threadmem.recall.scoring import scores as score_all
from langchain_threadmem.recall.weights import ASSISTANT, PEOPLE
from training.sources import embed

Floats = NDArray[np.float64]
Weights = Mapping[str, tuple[float, float]]
PENALTY = {"LoCoMo": 2.0, "BEAM 100K, pairs": 1.0}
WEIGHTS: dict[str, Weights] = {"LoCoMo": PEOPLE, "BEAM 100K, pairs": ASSISTANT}
DICTIONARIES = {"LoCoMo": "PEOPLE", "BEAM 100K, pairs": "ASSISTANT"}
"""The names of the dictionaries of weights in `recall.weights`."""
MISTAKEN = 0.3
"""The weight of a question that names the wrong person; other questions have the weight 1."""
FIGURES = ("R@5", "R@10", "R@20", "R@50", "NDCG@10", "MRR", "Hit@1", "words")
"""The figures of `benchmarks.recall`; "words" is the evidence within the first 2,000 words of the results."""


@dataclass(frozen=True)
class Asked:
    """A question with its evidence, and the units, lengths and features of the messages."""

    ledger: Postings
    question: Question
    units: Sequence[int]
    length: Mapping[int, int]
    evidence: frozenset[int]
    parts: ScoreParts
    headline: bool


@dataclass(frozen=True)
class Choice:
    """A row of features for each candidate, and the places of the right candidates."""

    rows: Floats
    right: Sequence[int]
    weight: float


def texts_of(path: Path) -> Iterable[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        conversation = json.loads(line)
        yield from (row["text"] for row in conversation["messages"])
        yield from (row["question"] for row in conversation["questions"])


def ledger_of(messages: Sequence[dict[str, Any]]) -> Postings:
    ledger = Postings()
    for n, row in enumerate(messages):
        message = message_of(row)
        gist = document_of(message, row["text"], 0.0, ENGLISH)
        ledger.add([DocumentRow(n, n + 1, n or None, message.type, True, gist)])
    return ledger


def read(one: Set, path: Path, vectors: Mapping[str, NDArray[np.float32]], alone: bool) -> list[list[Asked]]:
    """The questions of each conversation."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        conversation = json.loads(line)
        messages = conversation["messages"]
        ledger = ledger_of(messages)
        pairs = pairs_of(messages)
        ids = [str(row["id"]) for row in messages]
        units = [int(str(pairs[id_])) for id_ in ids] if one.by_pair else list(range(len(ids)))
        unit = dict(zip(ids, units, strict=True))
        matrix = np.stack([vectors[row["text"]] for row in messages])
        newest = float(ledger.rows["time"].max())
        length = {n: len(row["text"].split()) for n, row in enumerate(messages)}
        asked = []
        for row in conversation["questions"]:
            question = question_of(row["question"], ENGLISH, ledger.names, newest, newest)
            cosine = None if alone else (matrix @ vectors[row["question"]]).astype(float)
            parts = parts_of(ledger, question, ledger.figures(question.terms), cosine)
            evidence = frozenset(unit[str(id_)] for id_ in row["evidence"])
            if evidence:
                asked.append(Asked(ledger, question, units, length, evidence, parts, row["headline"]))
        found.append(asked)
    return found


def choice_of(one: Set, asked: Asked, names: Sequence[str]) -> Choice:
    """The candidates of a question: messages, or turns."""
    values = (turn_parts if one.by_pair else people_parts)(asked.ledger, asked.question, asked.parts)
    rows = np.stack([values[name] for name in names], axis=1).astype(float)
    units, first = np.unique(asked.units, return_index=True)
    right = np.flatnonzero(np.isin(units, sorted(asked.evidence))).tolist()
    return Choice(rows[first], right, 1.0 if asked.headline else MISTAKEN)


def fit(choices: Sequence[Choice], penalty: float) -> Floats:
    """The weights that maximize the penalized likelihood of the right candidates."""
    weights = np.zeros(choices[0].rows.shape[1])

    def loss(tried: Floats) -> float:
        total = 0.5 * penalty * float(tried @ tried)
        for one in choices:
            score = one.rows @ tried
            total += one.weight * float(np.logaddexp.reduce(score) - score[one.right].mean())
        return total

    before = loss(weights)
    for _ in range(60):
        slope, curve = penalty * weights, penalty * np.eye(len(weights))
        for one in choices:
            score = one.rows @ weights
            chances = np.exp(score - np.logaddexp.reduce(score))
            mean = chances @ one.rows
            slope = slope + one.weight * (mean - one.rows[one.right].mean(0))
            curve += one.weight * ((one.rows * chances[:, None]).T @ one.rows - np.outer(mean, mean))
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while loss(weights - size * step) > before and size > 1e-4:
            size /= 2
        weights = weights - size * step
        after = loss(weights)
        if before - after < 1e-5:
            break
        before = after
    return weights


def judged(asked: Asked, values: Floats) -> dict[str, float]:
    """The figures of one question, from the scores of all messages."""
    best = np.argsort(-values, kind="stable")[:ENOUGH].tolist()
    kept = {asked.units[n] for n in within_room(best, asked.length)}
    figures = scores(list(dict.fromkeys(asked.units[n] for n in best[:MOST])), set(asked.evidence))
    return figures | {"words": len(asked.evidence & kept) / len(asked.evidence)}


def total(one: Set, asked: Asked, names: Sequence[str], weights: Floats) -> Floats:
    values = (turn_parts if one.by_pair else people_parts)(asked.ledger, asked.question, asked.parts)
    return sum((w * values[name] for name, w in zip(names, weights, strict=True)), np.zeros(1))


def show(title: str, figures: Sequence[Mapping[str, float]]) -> None:
    print(f"  {title:36}" + "".join(f"{100 * fmean(one[name] for one in figures):9.1f}" for name in FIGURES))


def taught(one: Set, asked: Asked) -> bool:
    """Whether a fit uses a question; those that name the wrong person limit the weight of names."""
    return asked.headline or not one.by_pair


def left_out(
    one: Set, conversations: Sequence[Sequence[Asked]], names: Sequence[str], *, headline: bool = True
) -> list[dict[str, float]]:
    """The figures of each question of a kind, with weights fitted without its conversation."""
    found = []
    for held in range(len(conversations)):
        known = [
            choice_of(one, asked, names)
            for n, questions in enumerate(conversations)
            for asked in questions
            if n != held and taught(one, asked)
        ]
        weights = fit(known, PENALTY[one.name])
        found += [
            judged(asked, total(one, asked, names, weights))
            for asked in conversations[held]
            if asked.headline == headline
        ]
    return found


def write(path: Path, fitted: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Write a copy of the module of the shipped weights with new numbers.

    Args:
        path: The file, which is replaced.
        fitted: The weights of the parts, by the name of a dictionary of the module.
    """
    text = Path(module.__file__).read_text(encoding="utf-8")
    for name, parts in fitted.items():
        before, rest = text.split(f"\n{name}: ")
        block, after = rest.split("\n}", 1)
        for part, pair in parts.items():
            block, count = re.subn(rf'(?<="{part}": )\(.*?\)', str(pair), block)
            assert count == 1, f"{part!r} is not in {name}"
        text = f"{before}\n{name}: {block}\n}}{after}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--cache", type=Path, help="an .npz file for the embeddings")
    parser.add_argument("--out", type=Path, help="the file for the module with the fitted weights")
    parser.add_argument("--shipped", action="store_true", help="measure the shipped weights without a fit")
    parser.add_argument("--each", action="store_true", help="also measure without each part")
    options = parser.parse_args()
    paths = {one.name: options.data / one.file for one in SETS if one.name in WEIGHTS}
    if missing := [path for path in paths.values() if not path.exists()]:
        sys.exit(f"{', '.join(map(str, missing))} not found; pass the folder of the data with --data")
    vectors = embed({text for path in paths.values() for text in texts_of(path)}, options.cache)
    fitted: dict[str, dict[str, tuple[float, float]]] = {}
    for one in (one for one in SETS if one.name in WEIGHTS):
        print(f"\n{one.name:38}" + "".join(f"{name:>9}" for name in FIGURES))
        printed: dict[str, list[float]] = {}
        for alone in (False, True):
            how = "words alone" if alone else "with embeddings"
            conversations = read(one, paths[one.name], vectors, alone)
            headline = [asked for questions in conversations for asked in questions if asked.headline]
            show(
                f"shipped weights, {how}",
                [judged(asked, score_all(asked.ledger, asked.question, asked.parts)) for asked in headline],
            )
            if options.shipped:
                continue
            names = [name for name in WEIGHTS[one.name] if not (alone and "meaning" in name)]
            show(f"left out, {how}", left_out(one, conversations, names))
            show(f"not headline, {how}", left_out(one, conversations, names, headline=False))
            if options.each:
                for name in names:
                    show(f"  without {name}", left_out(one, conversations, [n for n in names if n != name]))
            known = [asked for questions in conversations for asked in questions if taught(one, asked)]
            weights = fit([choice_of(one, asked, names) for asked in known], PENALTY[one.name])
            for name in WEIGHTS[one.name]:
                value = dict(zip(names, weights.round(2).tolist(), strict=True)).get(name, 0.0)
                printed.setdefault(name, []).append(value + 0.0)
        fitted[DICTIONARIES[one.name]] = {name: (first, second) for name, (first, second) in printed.items()}
        for name, pair in fitted[DICTIONARIES[one.name]].items():
            print(f'    "{name}": {pair},')
    if options.out is not None and not options.shipped:
        write(options.out, fitted)


if __name__ == "__main__":
    main()
