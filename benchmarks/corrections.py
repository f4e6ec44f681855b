"""The rate of wrong choices after five corrections, in conversations of the same kind and of another.

Two owners correct the first five wrong choices with `place`. The first owner has conversations about one
subject (each dialog of the file is a conversation of its own) and merges threads that were split. The second
owner has conversations about several subjects and corrects missed new threads. Further conversations are then
played for the owner and for an owner without corrections. The figures are percentages of wrong choices; in
these conversations the tree is the selector's own, including its wrong choices.

    python -m benchmarks.corrections [--data ../shared/data] [--file threads2_train.jsonl] [--limit 200]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks._measure import Line, show
from benchmarks.threads import DATA, Remembering, conversations_of, message_of, percent, turns_of
from langchain_threadmem import MemorySystem, SemanticNodeSelector

FILE = "threads2_train.jsonl"
CORRECTIONS = 5
MOST_MORE = 1.0
"""The largest allowed rise of the error rate in other conversations, in percentage points."""
Played = dict[str, Any]
Wrong = Callable[[int | None, int | None], bool]


def play(system: MemorySystem, conversation: Played, corrects: Wrong | None = None) -> tuple[int, int]:
    """The numbers of choices and of wrong choices; the owner makes at most `CORRECTIONS` corrections.

    Args:
        system: The memory of the owner.
        conversation: A conversation of the file.
        corrects: Returns whether the owner corrects a choice, from the chosen and the right parent; `None`
            for an owner who makes no corrections.
    """
    memory = system.conversation(str(conversation["id"]), node_selector=SemanticNodeSelector())
    ids: dict[Any, int | None] = {None: None}
    choices = wrong = 0
    for position, turn in enumerate(turns_of(conversation["messages"])):
        human, *answers = memory.append(*map(message_of, turn))
        chosen, right = human.parent_id, ids[turn[0]["parent"]]
        choices += position > 0
        wrong += chosen != right
        if corrects is not None and chosen != right and corrects(chosen, right):
            human = memory.place(human.id, right)
            if system.stats().bias.corrections == CORRECTIONS:
                break
        ids.update((row["id"], node.id) for node, row in zip((human, *answers), turn, strict=True))
    return choices, wrong


def errors(system: MemorySystem, conversations: Iterable[Played]) -> float:
    """The percentage of wrong choices."""
    played = [play(system, conversation) for conversation in conversations]
    return percent(sum(wrong for _, wrong in played), sum(choices for choices, _ in played))


def dialogs(conversations: Iterable[Played]) -> Iterator[Played]:
    """Each dialog as a conversation of its own, where the dialog has no branch."""
    for conversation in conversations:
        found = defaultdict(list)
        for row in conversation["messages"]:
            found[row["dialog"]].append(row)
        for number, rows in found.items():
            parents = [None, *(row["id"] for row in rows)]
            if len(rows) > 2 and all(
                row["parent"] == above for row, above in zip(rows, parents, strict=False)
            ):
                yield {"id": f"{conversation['id']}-{number}", "messages": rows}


def measure(data: Path = DATA, *, file: str = FILE, limit: int = 200) -> list[Line]:
    """The lines of the table; if the data is missing, one line that reports it."""
    path = data / file
    if not path.exists():
        return [Line("corrections", "skipped", f"{path} not found; pass its folder with --data")]
    several = list(conversations_of(path))
    single = list(dialogs(several))
    owners: dict[str, tuple[list[Played], list[Played], Wrong]] = {
        "merges": (single, several, lambda chosen, right: right is not None),
        "splits": (several, single, lambda chosen, right: right is None),
    }
    lines = []
    with MemorySystem(embeddings=Remembering()) as system:
        for name, (own, other, corrects) in owners.items():
            owner, nobody = system.for_owner(name), system.for_owner(f"not {name}")
            rest = iter(own)
            for conversation in rest:
                play(owner, conversation, corrects)
                if owner.stats().bias.corrections == CORRECTIONS:
                    break
            later, elsewhere = list(rest)[:limit], other[:limit]
            before, after = errors(nobody, later), errors(owner, later)
            lines.append(
                Line(
                    f"wrong choices, an owner who {name}",
                    f"{after:.2f}",
                    f"before {before:.2f}",
                    "less",
                    after < before,
                )
            )
            before, after = errors(nobody, elsewhere), errors(owner, elsewhere)
            holds = after <= before + MOST_MORE
            bias = owner.stats().bias
            told = f"before {before:.2f}; bias {bias.new_thread:+.2f}, {bias.going_back:+.2f}"
            lines.append(
                Line("wrong choices, other conversations", f"{after:.2f}", told, f"≤ {MOST_MORE:+g}", holds)
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data")
    parser.add_argument("--file", default=FILE, help="the name of the file in this folder")
    parser.add_argument("--limit", type=int, default=200, help="the number of conversations each time")
    options = parser.parse_args()
    show(measure(options.data, file=options.file, limit=options.limit))


if __name__ == "__main__":
    main()
