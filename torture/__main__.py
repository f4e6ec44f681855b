"""Kill, starve, fork and damage memories, and print what was lost.

    python -m torture                                # ten minutes, SQLite and PostgreSQL
    python -m torture --seed 7 --minutes 60
    python -m torture --url sqlite --loop kills      # one database, one loop

The exit code is 0 only if every loop ran, no acknowledged turn was lost, none was half written, `verify`
raised no false alarm and every error was one of `langchain_threadmem.errors`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain, repeat

from torture.chroma import server
from torture.crowds import clock, contention, forks
from torture.databases import Place, place_of
from torture.erasures import erasures
from torture.faults import faults
from torture.flips import flips
from torture.keys import keys
from torture.kills import kills, warm_up
from torture.model import fuzz
from torture.tally import Tally, table
from torture.verbs import verbs

Loop = Callable[[Place, Tally, float, random.Random], None]
LOOPS: dict[str, tuple[Loop, float]] = {
    "kills": (kills, 10),
    "faults": (faults, 2),
    "forks": (forks, 1),
    "contention": (contention, 1),
    "clock": (clock, 1),
    "keys": (keys, 1),
    "verbs": (verbs, 3),
    "erasures": (erasures, 1),
    "server": (server, 1),
    "fuzz": (fuzz, 1),
    "flips": (flips, 1),
}
"""The loops, with their shares of the time."""


def run(url: str, loops: Sequence[str], seed: int, seconds: float) -> list[Tally]:
    """Run loops on a database for about so many seconds, and count."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    unit = seconds / sum(LOOPS[name][1] for name in loops)
    tallies = []
    with place_of(url) as place, _temporary_files():
        warm_up(place)
        for name in loops:
            loop, share = LOOPS[name]
            if loop is flips and place.name != "sqlite":
                continue  # PostgreSQL has checksums of its own.
            tally = Tally(name, place.name)
            tallies.append(tally)
            begin = time.monotonic()
            try:
                loop(place, tally, unit * share, random.Random(f"{seed} {name}"))
            except Exception:  # The other loops go on.
                tally.add("raw errors", 1, traceback.format_exc())
            tally.seconds = time.monotonic() - begin
            print(table([tally]), file=sys.stderr)
    return tallies


@contextmanager
def _temporary_files() -> Iterator[None]:
    """Keep temporary files, which killed processes leave, in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="threadmem-torture-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = None


def run_all(urls: Sequence[str], loops: Sequence[str], seed: int, seconds: float) -> list[Tally]:
    """Run loops on databases, each in a process of its own, all at the same time."""
    with ProcessPoolExecutor(len(urls), multiprocessing.get_context("fork")) as processes:
        parts = processes.map(run, urls, repeat(loops), repeat(seed), repeat(seconds))
        return list(chain.from_iterable(parts))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of all choices but the moments of the kills")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="the time of all loops; databases run side by side"
    )
    parser.add_argument(
        "--url",
        action="append",
        help="sqlite, postgresql (a server of its own) or the URL of a PostgreSQL server; may be repeated",
    )
    parser.add_argument("--loop", action="append", choices=list(LOOPS), help="may be repeated; default: all")
    options = parser.parse_args()
    urls = options.url or ["sqlite", "postgresql"]
    tallies = run_all(urls, options.loop or list(LOOPS), options.seed, 60 * options.minutes)
    print(table(tallies))
    return 0 if all(tally.ok for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
