"""How well recall finds the evidence of questions about long conversations, beside `rank_bm25` alone.

A conversation is imported in order with `memory.extend`, then each question goes to
`memory.recall(question, n_results=50, context_depth=0)`. R@k is the share of a question's evidence within
the first k, averaged over the questions of the headline score; NDCG@10 likewise. LoCoMo is scored by
message. BEAM's labels are noisy by message, so a human message and its answer count as one there. Percent.

    python -m benchmarks.recall [--data ../shared/data] [--words]

The data is not part of this repository; its sets are skipped when they are not there.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from rank_bm25 import BM25Okapi

from benchmarks._measure import Line, show
from langchain_threadmem import ChatMemory

DATA = Path("../shared/data")
CUTS = (5, 10, 20, 50)
MOST = max(CUTS)
RECALL, NDCG = "R@{}", "NDCG@10"


@dataclass(frozen=True)
class Set:
    """A data set, and the figures that are aimed at on it."""

    name: str
    file: str
    by_pair: bool
    aims: dict[str, float]


SETS = (
    Set("LoCoMo", "recall_locomo_dev.jsonl", by_pair=False, aims={"R@10": 80, "NDCG@10": 65}),
    Set("BEAM 100K, pairs", "recall_beam100k_dev.jsonl", by_pair=True, aims={"R@5": 70, "R@10": 77}),
)

Finder = Callable[[str], list[str]]
"""From a question to ids of messages, the best first."""


def ours(messages: Sequence[dict[str, Any]], embeddings: Literal[False] | None) -> tuple[Finder, ChatMemory]:
    """A memory that holds the messages."""
    memory = ChatMemory(embeddings=embeddings)
    memory.extend(map(message_of, messages))

    def find(question: str) -> list[str]:
        hits = memory.recall(question, n_results=MOST, context_depth=0)
        return [str(hit.node.message.id) for hit in hits]

    return find, memory


def message_of(row: dict[str, Any]) -> BaseMessage:
    kind = HumanMessage if row["role"] == "human" else AIMessage
    extra = {"time": row["time"]} if row.get("time") else {}
    return kind(row["text"], id=str(row["id"]), name=row["speaker"], additional_kwargs=extra)


def okapi(messages: Sequence[dict[str, Any]]) -> Finder:
    """The plain peer: BM25 over the words of the texts."""
    index = BM25Okapi([tokens(row["text"]) for row in messages])
    ids = [str(row["id"]) for row in messages]

    def find(question: str) -> list[str]:
        scores = index.get_scores(tokens(question))
        return [ids[n] for n in (-scores).argsort(kind="stable")[:MOST]]

    return find


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def pairs_of(messages: Sequence[dict[str, Any]]) -> dict[str, Hashable]:
    """Which pair each message belongs to: a human message opens one, what follows answers it."""
    pair, found = 0, {}
    for row in messages:
        pair += row["role"] == "human"
        found[str(row["id"])] = pair
    return found


def scores(found: Sequence[Hashable], evidence: set[Hashable]) -> dict[str, float]:
    """The figures of one question, each between 0 and 1."""
    result = {RECALL.format(k): len(evidence & set(found[:k])) / len(evidence) for k in CUTS}
    gain = sum(1 / math.log2(rank + 2) for rank, one in enumerate(found[:10]) if one in evidence)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(evidence))))
    return result | {NDCG: gain / ideal}


def evaluate(path: Path, *, by_pair: bool, embeddings: Literal[False] | None) -> dict[str, dict[str, float]]:
    """Mean figures in percent, of this package and of its peer."""
    each: dict[str, list[dict[str, float]]] = {"langchain_threadmem": [], "rank_bm25": []}
    for line in path.read_text(encoding="utf-8").splitlines():
        conversation = json.loads(line)
        messages = conversation["messages"]
        find, memory = ours(messages, embeddings)
        finders = {"langchain_threadmem": find, "rank_bm25": okapi(messages)}
        unit = pairs_of(messages) if by_pair else {str(row["id"]): str(row["id"]) for row in messages}
        for question in conversation["questions"]:
            evidence = {unit[str(one)] for one in question["evidence"]}
            if not question["headline"] or not evidence:
                continue
            for name, finder in finders.items():
                ranked = list(dict.fromkeys(unit[one] for one in finder(question["question"])))
                each[name].append(scores(ranked, evidence))
        memory.close()
    return {
        name: {figure: 100 * fmean(one[figure] for one in all_) for figure in all_[0]}
        for name, all_ in each.items()
    }


def measure(data: Path = DATA, *, embeddings: Literal[False] | None = None) -> list[Line]:
    """The lines of the table; a line that says so for each set that is not there."""
    lines = []
    for one in SETS:
        path = data / one.file
        if not path.exists():
            lines.append(Line(one.name, "skipped", f"{path} is not there; name its folder with --data"))
            continue
        found = evaluate(path, by_pair=one.by_pair, embeddings=embeddings)
        for figure, value in found["langchain_threadmem"].items():
            aim = one.aims.get(figure)
            lines.append(
                Line(
                    f"{one.name} {figure}",
                    f"{value:.1f}",
                    f"rank_bm25 {found['rank_bm25'][figure]:.1f}",
                    "" if aim is None else f"aim: ≥ {aim:g}",
                )
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    options = parser.parse_args()
    show(measure(options.data, embeddings=False if options.words else None))


if __name__ == "__main__":
    main()
