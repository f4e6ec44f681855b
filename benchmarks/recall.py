"""The quality and the speed of recall for questions about long conversations.

A conversation is imported in order with `memory.extend`, then each question is passed to
`memory.recall(question, n_results=50, context_depth=0)`. R@k is the share of a question's evidence within the
first k results, averaged over the questions of the headline score; NDCG@10 is averaged likewise. MRR is the
mean of 1 / rank of the first evidence among the results (0 without evidence), Hit@1 the share of questions
whose first result is evidence. "evidence within 2,000 words" is the share of evidence within the first 2,000
words of the results. LoCoMo is scored by message. The labels of BEAM are noisy by message, so a human message
and its answer count as one unit there. The figures are percentages, with 95 % intervals of a bootstrap over
questions. Milliseconds are processor time on one core. The questions of LoCoMo that name the wrong person
("wrong person") do not count in its headline score.

The peers in the same run are BM25 alone (`bm25s`, Lù 2024, with its English stop words), and Chroma alone
over the same vectors.

    python -m benchmarks.recall [--data ../shared/data] [--words]

The data is not part of this repository; missing sets are skipped. If the folder also contains
`longmemeval_s_cleaned.json`, `--longmemeval 50` asks its first 50 questions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, TypeVar

import chromadb
import numpy as np
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks._measure import Line, show
from langchain_threadmem import ChatMemory, LocalEmbeddings

DATA = Path("../shared/data")
CUTS = (5, 10, 20, 50)
MOST = max(CUTS)
ROOM = 2000
RECALL, NDCG, MRR, HIT, WORDS = "R@{}", "NDCG@10", "MRR", "Hit@1", f"evidence within {ROOM:,} words"
OURS, BM25 = "langchain_threadmem", "bm25s"
LONGMEMEVAL = "longmemeval_s_cleaned.json"
SAMPLES = 2000


@dataclass(frozen=True)
class Set:
    """A data set, and the target figures on it, with embeddings and by words alone."""

    name: str
    file: str
    by_pair: bool
    aims: Mapping[str, tuple[float | None, float | None]]
    headline: bool = True


SETS = (
    Set(
        "LoCoMo",
        "recall_locomo_dev.jsonl",
        by_pair=False,
        aims={"R@10": (80, 78), NDCG: (65, None), WORDS: (94, None)},
    ),
    Set(
        "BEAM 100K, pairs",
        "recall_beam100k_dev.jsonl",
        by_pair=True,
        aims={"R@5": (70, None), "R@10": (77, None), NDCG: (70, None)},
    ),
    Set("LoCoMo, wrong person", "recall_locomo_dev.jsonl", by_pair=False, aims={}, headline=False),
)
MOST_MS = (10, 2)
"""The time limits of a query on one core in milliseconds, with its embedding and by words alone."""

Finder = Callable[[str, int], list[str]]
"""A function that returns ids of messages, best first, for a question and a number of results."""
T = TypeVar("T", bound=Hashable)
ENOUGH = 200
"""A number of messages that exceeds `ROOM` words."""


@dataclass
class Result:
    """The results of a contestant: the figures and the processor time of each question."""

    figures: list[dict[str, float]] = field(default_factory=list)
    queries: list[float] = field(default_factory=list)

    def interval(self, figure: str) -> tuple[float, float, float]:
        """Mean and 95 % interval of a figure, in percent."""
        values = 100 * np.array([one[figure] for one in self.figures])
        drawn = np.random.default_rng(7).choice(values, (SAMPLES, len(values))).mean(1)
        low, high = np.percentile(drawn, [2.5, 97.5])
        return float(values.mean()), float(low), float(high)


def conversations(path: Path) -> Iterator[dict[str, Any]]:
    """The conversations of a file, in the format of the JSONL files."""
    if path.suffix == ".jsonl":
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return
    for row in json.loads(path.read_text(encoding="utf-8")):
        yield from_longmemeval(row)


def from_longmemeval(row: Mapping[str, Any]) -> dict[str, Any]:
    """A question of LongMemEval with its sessions, as a conversation."""
    messages, evidence = [], []
    for session, (time_, turns) in enumerate(
        zip(row["haystack_dates"], row["haystack_sessions"], strict=True)
    ):
        for n, turn in enumerate(turns):
            id_ = f"{session}:{n}"
            role = "human" if turn["role"] == "user" else "assistant"
            messages.append(
                {"id": id_, "role": role, "speaker": turn["role"], "text": turn["content"], "time": time_}
            )
            if turn.get("has_answer"):
                evidence.append(id_)
    question = {"question": row["question"], "evidence": evidence, "headline": True}
    return {"id": row["question_id"], "messages": messages, "questions": [question]}


def ours(messages: Sequence[dict[str, Any]], embeddings: Any) -> tuple[Finder, ChatMemory]:
    """The search function of a memory with the messages, and the memory."""
    memory = ChatMemory(embeddings=embeddings)
    memory.extend(map(message_of, messages))

    def find(question: str, most: int) -> list[str]:
        hits = memory.recall(question, n_results=most, context_depth=0)
        return [str(hit.node.message.id) for hit in hits]

    return find, memory


def message_of(row: dict[str, Any]) -> BaseMessage:
    kind = HumanMessage if row["role"] == "human" else AIMessage
    extra = {"time": row["time"]} if row.get("time") else {}
    return kind(row["text"], id=str(row["id"]), name=row["speaker"], additional_kwargs=extra)


def plain(messages: Sequence[dict[str, Any]]) -> Finder:
    """The search function of BM25 over the words of the texts."""
    import bm25s  # Imported here, since other users of this module do not need the package.

    tokens = partial(bm25s.tokenize, stopwords="en", return_ids=False, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens([row["text"] for row in messages]), show_progress=False)
    ids = [str(row["id"]) for row in messages]

    def find(question: str, most: int) -> list[str]:
        asked = tokens(question)[0]
        if not asked:
            return []  # The question has stop words only.
        scores = index.get_scores(asked)
        return [ids[n] for n in (-scores).argsort(kind="stable")[:most]]

    return find


def chroma(messages: Sequence[dict[str, Any]], embeddings: LocalEmbeddings) -> Finder:
    """The search function of a Chroma collection over the same vectors."""
    client = chromadb.EphemeralClient(chromadb.config.Settings(anonymized_telemetry=False))
    name = f"bench-{time.time_ns()}"
    collection = client.create_collection(
        name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    texts = [row["text"] for row in messages]
    collection.add(ids=[str(row["id"]) for row in messages], embeddings=embeddings.embed_array(texts))

    def find(question: str, most: int) -> list[str]:
        vector = np.asarray(embeddings.embed_query(question), np.float32)
        return collection.query(query_embeddings=vector[None], n_results=min(most, len(texts)))["ids"][0]

    return find


def pairs_of(messages: Sequence[dict[str, Any]]) -> dict[str, Hashable]:
    """The pair of each message: a human message opens a pair, to which the messages after it belong."""
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
    first = next((rank for rank, one in enumerate(found, 1) if one in evidence), math.inf)
    return result | {NDCG: gain / ideal, MRR: 1 / first, HIT: float(first == 1)}


def within_room(found: Sequence[T], length: Mapping[T, int]) -> list[T]:
    """The first messages of the results that fit into `ROOM` words."""
    room, kept = ROOM, []
    for one in found:
        room -= length[one]
        if room < 0:
            break
        kept.append(one)
    return kept


def judge(
    conversation: Mapping[str, Any], one: Set, finders: Mapping[str, Finder], results: Mapping[str, Result]
) -> None:
    """Ask all contestants each question of a conversation and record their results."""
    messages = conversation["messages"]
    unit: Mapping[str, Hashable] = (
        pairs_of(messages) if one.by_pair else {str(row["id"]): str(row["id"]) for row in messages}
    )
    length = {str(row["id"]): len(row["text"].split()) for row in messages}
    for question in conversation["questions"]:
        evidence = {unit[str(id_)] for id_ in question["evidence"]}
        if question["headline"] != one.headline or not evidence:
            continue
        for name, finder in finders.items():
            begin = time.process_time()
            found = finder(question["question"], MOST)
            results[name].queries.append(time.process_time() - begin)
            figures = scores(list(dict.fromkeys(unit[id_] for id_ in found)), evidence)
            kept = {unit[id_] for id_ in within_room(finder(question["question"], ENOUGH), length)}
            results[name].figures.append(figures | {WORDS: len(evidence & kept) / len(evidence)})


def evaluate(
    path: Path, one: Set, embeddings: LocalEmbeddings | Literal[False], most: int | None = None
) -> tuple[dict[str, Result], list[float]]:
    """The results of this package and of its peers, and the seconds to add and index a message."""
    results: dict[str, Result] = {OURS: Result(), BM25: Result()}
    if embeddings:
        results["Chroma"] = Result()
    added: list[float] = []
    for conversation in islice(conversations(path), most):
        messages = conversation["messages"]
        begin = time.process_time()
        find, memory = ours(messages, embeddings)
        memory.flush()
        added.append((time.process_time() - begin) / len(messages))
        find("anything", MOST)
        finders: dict[str, Finder] = {OURS: find, BM25: plain(messages)}
        if embeddings:
            finders["Chroma"] = chroma(messages, embeddings)
        judge(conversation, one, finders, results)
        memory.close()
    return results, added


def lines_of(one: Set, results: Mapping[str, Result], added: Sequence[float], words: bool) -> list[Line]:
    """The lines of a data set."""
    how = " by words" if words else ""
    mine = results[OURS]
    found = []
    for figure in (*(RECALL.format(k) for k in CUTS), NDCG, MRR, HIT, WORDS):
        value, low, high = mine.interval(figure)
        peers = ", ".join(
            f"{name} {100 * fmean(question[figure] for question in peer.figures):.1f}"
            for name, peer in results.items()
            if name != OURS
        )
        aim = one.aims.get(figure, (None, None))[words]
        found.append(
            Line(
                f"{one.name}{how}, {figure}",
                f"{value:.1f} ({low:.1f}-{high:.1f})",
                peers,
                "" if aim is None else f"≥ {aim:g}",
                None if aim is None else value >= aim,
            )
        )
    spent = {name: 1e3 * median(peer.queries) for name, peer in results.items()}
    peers = ", ".join(f"{name} {spent[name]:.2g}" for name in spent if name != OURS)
    bar = MOST_MS[words]
    found.append(
        Line(f"{one.name}{how}, ms per query", f"{spent[OURS]:.2g}", peers, f"≤ {bar}", spent[OURS] <= bar)
    )
    what = "ms to add and index a message" if words else "ms to add and embed a message"
    found.append(Line(f"{one.name}{how}, {what}", f"{1e3 * median(added):.2g}"))
    return found


def measure(data: Path = DATA, *, words: bool = False, longmemeval: int = 0) -> list[Line]:
    """The lines of the table; a missing set has one line that reports it."""
    lines: list[Line] = []
    embeddings: LocalEmbeddings | Literal[False] = False if words else LocalEmbeddings()
    extra = Set("LongMemEval", LONGMEMEVAL, by_pair=False, aims={})
    for one in (*SETS, *([extra] if longmemeval else [])):
        path = data / one.file
        if not path.exists():
            lines.append(Line(one.name, "skipped", f"{path} not found; pass its folder with --data"))
            continue
        results, added = evaluate(path, one, embeddings, longmemeval if one is extra else None)
        lines += lines_of(one, results, added, words)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    parser.add_argument("--longmemeval", type=int, default=0, help="the number of questions of LongMemEval")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    show(measure(options.data, words=options.words, longmemeval=options.longmemeval))


if __name__ == "__main__":
    main()
