"""How often a semantic memory continues the right answer, beside always continuing the last one.

Several dialogs are interleaved into each conversation. Turns are appended one by one, the memory's own tree
running free: it is never shown the true parent, and lives with its own mistakes. Parent accuracy is over
all human messages, by variant, and macro over the variants. Percent.

    python -m benchmarks.threads [--data ../shared/data] [--file threads_dev.jsonl] [--words] [--limit 5]

The data is not part of this repository; nothing is measured when it is not there.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks._measure import Line, show
from langchain_threadmem import MemorySystem, SemanticNodeSelector

DATA = Path("../shared/data")
FILE = "threads_dev.jsonl"
AIM = 86.0


@dataclass
class Tally:
    """Counts of one variant."""

    messages: int = 0
    right: int = 0
    last: int = 0

    @property
    def accuracy(self) -> float:
        return 100 * self.right / self.messages

    @property
    def always_last(self) -> float:
        return 100 * self.last / self.messages


def turns_of(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Each human message with the answers that follow it."""
    turn: list[dict[str, Any]] = []
    for row in rows:
        if row["role"] == "human" and turn:
            yield turn
            turn = []
        turn.append(row)
    if turn:
        yield turn


def message_of(row: dict[str, Any]) -> BaseMessage:
    """What the memory is shown: the role and the text, and nothing that tells the thread."""
    return (HumanMessage if row["role"] == "human" else AIMessage)(row["text"])


def play(system: MemorySystem, conversation: dict[str, Any], tally: Tally) -> None:
    """Append a conversation turn by turn and count the right parents."""
    memory = system.conversation(conversation["id"], node_selector=SemanticNodeSelector())
    ids: dict[int | None, Any] = {None: None}  # ids of the file by the numbers of our nodes
    last = None
    for turn in turns_of(conversation["messages"]):
        human, *answers = map(message_of, turn)
        nodes = memory.append(human, *answers)
        ids.update((node.id, row["id"]) for node, row in zip(nodes, turn, strict=True))
        tally.messages += 1
        tally.right += ids[nodes[0].parent_id] == turn[0]["parent"]
        tally.last += last == turn[0]["parent"]
        last = turn[-1]["id"]


def evaluate(
    path: Path, *, embeddings: Literal[False] | None = None, limit: int | None = None
) -> dict[str, Tally]:
    """Counts by variant, over at most `limit` conversations of each."""
    tallies: dict[str, Tally] = {}
    seen: dict[str, int] = defaultdict(int)
    with MemorySystem(embeddings=embeddings) as system:
        for line in path.read_text(encoding="utf-8").splitlines():
            conversation = json.loads(line)
            variant = conversation["variant"]
            seen[variant] += 1
            if limit is None or seen[variant] <= limit:
                play(system, conversation, tallies.setdefault(variant, Tally()))
    return tallies


def measure(
    data: Path = DATA, *, file: str = FILE, embeddings: Literal[False] | None = None, limit: int | None = None
) -> list[Line]:
    """The lines of the table; one line that says so if the data is not there."""
    path = data / file
    if not path.exists():
        return [Line("parent accuracy", "skipped", f"{path} is not there; name its folder with --data")]
    tallies = evaluate(path, embeddings=embeddings, limit=limit)
    lines = [
        Line(
            f"parent accuracy, {variant}",
            f"{tally.accuracy:.1f}",
            f"always-last {tally.always_last:.1f}",
            f"≥ {tally.always_last:.1f}",
            tally.accuracy >= tally.always_last,
        )
        for variant, tally in tallies.items()
    ]
    macro = fmean(tally.accuracy for tally in tallies.values())
    last = fmean(tally.always_last for tally in tallies.values())
    return [
        *lines,
        Line(
            "parent accuracy, macro",
            f"{macro:.1f}",
            f"always-last {last:.1f}",
            f"aim: ≥ {AIM:g}" if file == FILE else "",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--file", default=FILE, help="which file of it")
    parser.add_argument("--words", action="store_true", help="by words alone, without an embedding model")
    parser.add_argument("--limit", type=int, help="how many conversations of each variant")
    options = parser.parse_args()
    show(
        measure(
            options.data, file=options.file, embeddings=False if options.words else None, limit=options.limit
        )
    )


if __name__ == "__main__":
    main()
