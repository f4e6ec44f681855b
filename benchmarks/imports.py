"""The time and memory of importing a synthetic ChatGPT export, of a second import, and of sorting.

The export has conversations of 20 messages, a regenerated answer in every fourth of them, and texts of a few
sentences. Each import runs in a new interpreter, whose peak memory is read at its end.

    python -m benchmarks.imports [--full] [--sort]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._measure import Line, duration, show, within
from benchmarks.import_time import REPORT

MESSAGES = 20
CONVERSATIONS, FEW = 10_000, 1_000
MINUTE, AGAIN = 60.0, 20.0
"""The time limits for 10,000 conversations and for a second import of the same file, in seconds."""
LARGE, MOST_MEGABYTES = 300, 350
"""The size of a large export, and the memory limit of a process that imports it, in megabytes."""
TOPICS = {
    "figs": "Figs grow on old trees in warm gardens, and are picked when they are soft (case {n}, {m}). ",
    "ferries": "The ferry leaves the harbour in the morning, and its crossing takes an hour ({n}, {m}). ",
    "roofs": "A roof of slate needs strong rafters, and its tiles are nailed from the eaves up ({n}, {m}). ",
    "bees": "Bees leave the hive on warm days, and return to the queen with pollen ({n}, {m}). ",
    "dough": "Dough of rye flour needs a sour starter, and rises overnight in a cool oven ({n}, {m}). ",
}
"""A sentence for each topic."""
PROGRAM = """
import sys, time
from langchain_threadmem import MemorySystem
database, path, sort = sys.argv[1:]
with MemorySystem(database, embeddings=False) as system:
    begin = time.perf_counter()
    report = system.import_file(path, sort=bool(sort))
    print(time.perf_counter() - begin, report.new_messages, report.moved)
"""


class Imported(NamedTuple):
    """The costs of an import.

    Attributes:
        seconds: The wall-clock time, in seconds.
        processor: The processor time of the process, in seconds.
        messages: The number of new messages.
        moved: The number of messages that the sort has moved.
        megabytes: The peak memory of the process, in megabytes.
    """

    seconds: float
    processor: float
    messages: int
    moved: int
    megabytes: float


def conversation(n: int, sentences: int) -> dict[str, Any]:
    """A conversation in ChatGPT's export format: two alternating topics, some with a fork."""
    mapping: dict[str, Any] = {"top": {"id": "top", "parent": None, "children": [], "message": None}}
    parent, topics = "top", list(TOPICS)
    for m in range(MESSAGES):
        key = f"{n:08x}-0000-4000-8000-{m:012x}"
        topic = topics[(n + m // 4 % 2) % len(topics)]
        text = TOPICS[topic].format(n=n, m=m) * sentences
        mapping[key] = {
            "id": key,
            "parent": parent,
            "children": [],
            "message": {
                "id": key,
                "author": {"role": "assistant" if m % 2 else "user", "name": None, "metadata": {}},
                "create_time": 1_700_000_000.0 + 1_000 * n + m,
                "content": {"content_type": "text", "parts": [text]},
                "recipient": "all",
                "metadata": {"model_slug": "synthetic"} if m % 2 else {},
            },
        }
        if not (n % 4 == 0 and m == MESSAGES - 3):  # The next message is its sibling.
            parent = key
    return {
        "conversation_id": f"{n:08x}-1111-4111-8111-111111111111",
        "title": f"About {topics[n % len(topics)]} {n}",
        "create_time": 1_700_000_000.0 + 1_000 * n,
        "update_time": 1_700_000_000.0 + 1_000 * n + MESSAGES,
        "current_node": key,
        "mapping": mapping,
    }


def write(path: Path, number: int) -> None:
    """Write an export of `number` conversations."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(number):
            file.write(",\n" if n else "[")
            json.dump(conversation(n, 3), file)
        file.write("]")


def write_large(path: Path, megabytes: int) -> None:
    """Write an export of about `megabytes` megabytes."""
    room = iter(range(sys.maxsize))
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < megabytes << 20:
            file.write(",\n".join(json.dumps(conversation(n, 9)) for n in islice(room, 100)) + ",\n")
        json.dump(conversation(next(room), 9), file)
        file.write("]")


def imported(database: Path, path: Path, *, sort: bool = False) -> Imported:
    """Import a file in a new interpreter."""
    command = [sys.executable, "-c", PROGRAM + REPORT, str(database), str(path), "sort" if sort else ""]
    answer = iter(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    seconds, messages, moved, processor, kilobytes = answer
    return Imported(float(seconds), float(processor), int(messages), int(moved), float(kilobytes) / 1024)


def measure(*, full: bool = False) -> list[Line]:
    """The lines of the table."""
    return list(_lines(full))


def _lines(full: bool) -> Iterator[Line]:
    number = CONVERSATIONS if full else FEW
    share = number / CONVERSATIONS
    with tempfile.TemporaryDirectory() as folder:
        path, database = Path(folder, "conversations.json"), Path(folder, "memory.db")
        write(path, number)
        first, second = imported(database, path), imported(database, path)
        size = path.stat().st_size >> 20
        what = f"import {number:,} conversations of ChatGPT, {first.messages:,} messages, {size} MB"
        yield within(what, first.seconds, most=MINUTE * share, beside=_costs(first))
        again = f"the same import again: {second.messages} new messages"
        yield within(again, second.seconds, most=AGAIN * share, beside=_costs(second))
        if full:
            database.unlink()
            write_large(path, LARGE)
            large = imported(database, path)
            yield Line(
                f"memory of a process that imports {LARGE} MB",
                f"{large.megabytes:.0f} MB",
                f"{large.messages:,} messages in {duration(large.seconds)}",
                f"≤ {MOST_MEGABYTES} MB",
                large.megabytes <= MOST_MEGABYTES,
            )


def _costs(found: Imported) -> str:
    return f"{duration(found.processor)} CPU, {found.megabytes:.0f} MB of memory"


def sorting(number: int) -> Line:
    """The line of an import with `sort`, by words alone."""
    with tempfile.TemporaryDirectory() as folder:
        path, database = Path(folder, "conversations.json"), Path(folder, "memory.db")
        write(path, number)
        found = imported(database, path, sort=True)
    return Line(
        f"import {number:,} conversations and sort them",
        duration(found.seconds),
        f"{found.moved:,} messages moved; {_costs(found)}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="10,000 conversations, and a file of 300 MB")
    parser.add_argument("--sort", action="store_true", help="also sort 100 conversations")
    options = parser.parse_args()
    show([*measure(full=options.full), *([sorting(100)] if options.sort else [])])


if __name__ == "__main__":
    main()
