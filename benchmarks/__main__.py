"""Run all benchmarks and print one table: `python -m benchmarks [--full] [--data ../shared/data]`.

Without options a run takes one to two minutes. `--full` runs longer rounds and adds search in all vectors of
an owner and PostgreSQL with 600,000 messages. If the data is available, it also adds the quality of recall
and of thread selection on real conversations.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from benchmarks import (
    append,
    checkpoint,
    forgetting,
    growth,
    import_time,
    imports,
    irc,
    long_memory,
    navigation,
    owners,
    people,
    postgres,
    read,
    recall,
    recall_speed,
    revise,
    statements,
    threads,
)
from benchmarks._measure import Line, show


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="longer rounds, and quality on real conversations"
    )
    parser.add_argument("--data", type=Path, default=recall.DATA, help="the folder of the real conversations")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # Peers warn that they are deprecated.
    lines: list[Line] = []
    for speed in (
        append,
        read,
        recall_speed,
        checkpoint,
        postgres,
        revise,
        import_time,
        imports,
        long_memory,
        forgetting,
        navigation,
        people,
        statements,
    ):
        print(f"{speed.__name__} ...", file=sys.stderr)
        lines += speed.measure(full=options.full)
    if options.full:
        print("owners and growth ...", file=sys.stderr)
        lines += [*owners.measure(full=True), *growth.measure()]
        for quality in (recall, threads, irc):
            print(f"{quality.__name__} ...", file=sys.stderr)
            lines += quality.measure(options.data)
    show(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
