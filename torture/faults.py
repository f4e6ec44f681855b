"""Full disks, failing disks, cut connections and crashes of the server, while a memory is written to."""

from __future__ import annotations

import random
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.storage.statements import Statement
from torture.databases import Place
from torture.kills import Memory
from torture.tally import Tally, rounds
from torture.work import Work

FAULTS_OF_AN_OWNER = 20
ATTEMPTS = 6
"""The number of verbs that a process tries after the first error."""
ROOM = 60_000
"""The largest number of bytes that a file may grow before the disk is full."""
PAGE_BYTES = 2048
CRASH_EVERY = 40
"""One in this number of faults of a server is a crash, which takes a second; the others cut connections."""
WORKING = 0.05
"""The mean time until a connection is cut or the server crashes, in seconds."""
_OTHERS = Statement.of(
    sqlite="",
    postgresql="SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
)


def faults(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Cause faults until the time is over; each counts as a kill."""
    end = time.monotonic() + seconds
    one = _cut if place.name == "postgresql" else _full
    for _ in rounds(seconds):
        memory = Memory(place)
        tally.add("runs")
        for _ in range(FAULTS_OF_AN_OWNER):
            if time.monotonic() > end:
                break
            one(place, memory, tally, random_)
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)


def _until_it_fails(work: Work) -> int:
    """Work until a typed error, and try again some times; the number of errors."""
    errors = 0
    for _ in range(10_000):
        try:
            work.step()
        except PersistenceError:
            errors += 1
            if errors > ATTEMPTS:
                break
    return errors


def _full(place: Place, memory: Memory, tally: Tally, random_: random.Random) -> None:
    """A process whose disk is full (SQLite's limit of pages), or fails (the system's limit of a file)."""
    room, limit = random_.randrange(ROOM), random_.choice([_limit_pages, _limit_file])

    def work(work: Work) -> None:
        limit(work, memory.url, room)
        assert _until_it_fails(work), "the disk never was full"

    memory.ledger.take(memory.child(random_.getrandbits(64), work).end(), tally)
    tally.add("kills")


def _limit_pages(work: Work, url: str, room: int) -> None:
    pages = Path(url.removeprefix("sqlite:///")).stat().st_size // PAGE_BYTES + room // PAGE_BYTES
    pragma = Statement.of(sqlite=f"PRAGMA max_page_count={pages}", postgresql="")
    work.system.runtime.database.write(lambda conn: conn.all(pragma))


def _limit_file(work: Work, url: str, room: int) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    size = max(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # A write that is too long then fails.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))


def _cut(place: Place, memory: Memory, tally: Tally, random_: random.Random) -> None:
    """A process whose connections the server closes, or whose server crashes."""

    def work(work: Work) -> None:
        for _ in range(1_000_000):
            with suppress(PersistenceError):
                work.step()

    child = memory.child(random_.getrandbits(64), work)
    if child.listen(60, until="checked"):
        for _ in range(random_.randrange(1, 5)):
            child.listen(random_.expovariate(1 / WORKING))
            if random_.randrange(CRASH_EVERY) or not place.crash():
                _cut_connections(place)
            tally.add("kills")
        child.listen(WORKING)  # The pool opens new connections.
    memory.ledger.take(child.kill(), tally)


def _cut_connections(place: Place) -> None:
    import psycopg

    with psycopg.connect(place.new()) as connection:
        connection.execute(_OTHERS.sql("postgresql"))
