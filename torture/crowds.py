"""Many processes and threads on one memory, processes that fork while they write, and clocks that jump."""

from __future__ import annotations

import os
import random
import threading
import time

from torture.databases import Place
from torture.kills import Memory
from torture.tally import Tally, rounds
from torture.work import Work

PROCESSES = 24
STEPS = 5
"""The number of verbs of a process in a crowd, or with a clock that jumps."""
KILLED = 0.25
"""The share of the processes of a crowd that are killed."""
THREADS, FORKS, TURNS = 3, 4, 5
"""The threads of a process that forks, its forks, and the turns that each of them appends."""
DECADE = 10 * 365 * 86400.0


def contention(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """24 processes on one memory, of which some are killed, until the time is over."""
    for _ in rounds(seconds):
        memory = Memory(place)
        children = [memory.child(random_.getrandbits(64), _some, alone=False) for _ in range(PROCESSES)]
        for child in children:
            if random_.random() < KILLED:
                child.listen(random_.expovariate(2.0), until="end")
                memory.ledger.take(child.kill(), tally)
                tally.add("kills")
        for child in children:
            if child.running:
                memory.ledger.take(child.end(), tally)
        tally.add("runs")
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)


def _some(work: Work) -> None:
    for _ in range(STEPS):
        work.step()


def forks(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Processes whose threads write while they fork, and whose forks write with the same system."""
    for _ in rounds(seconds):
        memory = Memory(place)
        for _ in range(3):
            memory.ledger.take(memory.child(random_.getrandbits(64), _fork, alone=False).end(), tally)
        tally.add("runs")
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)


def _fork(work: Work) -> None:
    errors: list[BaseException] = []

    def append(own: Work) -> None:
        try:
            for _ in range(TURNS):
                own.append()
        except BaseException as error:
            # A fork that waits too long for other threads' transactions cannot use the database, and says so.
            if "was forked during a transaction" not in str(error):
                errors.append(error)

    threads = [threading.Thread(target=append, args=(work.sibling(f"s{n}"),)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    pids = []
    for n in range(FORKS):
        own = work.sibling(f"f{n}")
        pid = os.fork()
        if pid == 0:
            append(own)
            os._exit(len(errors))
        pids.append(pid)
        work.append()
    for thread in threads:
        thread.join()
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * FORKS, "a fork failed"
    if errors:
        raise errors[0]


def clock(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Processes whose clocks jump by up to ten years, forwards and backwards."""
    for _ in rounds(seconds):
        memory = Memory(place)
        for _ in range(4):
            memory.ledger.take(memory.child(random_.getrandbits(64), _jump, alone=False).end(), tally)
        tally.add("runs")
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)


def _jump(work: Work) -> None:
    real, real_ns, offset = time.time, time.time_ns, [0.0]
    time.time = lambda: real() + offset[0]
    time.time_ns = lambda: real_ns() + int(offset[0] * 1e9)
    for _ in range(STEPS):
        offset[0] = work.random.uniform(-DECADE, DECADE)
        work.step()
    shown = [item.id for item in work.system.list_conversations()]
    assert len(shown) == len(set(shown)), "a conversation is listed twice"
