"""SIGKILL at random moments: while a memory is opened, checked, written to and erased."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from typing import Literal
from uuid import uuid4

from langchain_core.embeddings import Embeddings

from langchain_threadmem import MemorySystem
from torture.children import Child, Report
from torture.cipher import StreamCipher
from torture.databases import Place
from torture.tally import Tally, rounds
from torture.work import VERBS, Ledger, Work, check, check_copy

KILLS_OF_AN_OWNER = 25
"""The number of kills after which a new owner begins, so that the check of everything stays short."""
COPIED = 0.02
"""The share of the checks that read a copy of the memory too."""
EARLY = 0.2
"""The share of the kills that may come before the process has checked what was stored."""
OPENING, WORKING = 0.03, 0.01
"""The mean time until an early kill, and until a kill after the last awaited line, in seconds."""
ACKNOWLEDGED = 5
"""A process is killed after less than this number of acknowledged verbs, and not much later."""


class Memory:
    """A memory of one owner and what is known of it.

    Args:
        place: Where the memory is made.
        embeddings: The embedding model.
        vectors: The URL of a Chroma server.
        cipher: The cipher of the memory.
    """

    def __init__(
        self,
        place: Place,
        embeddings: Embeddings | Literal[False] = False,
        vectors: str | None = None,
        cipher: StreamCipher | None = None,
    ) -> None:
        self.cipher = cipher
        self._embeddings = embeddings
        self._vectors = vectors
        self.url = place.new()
        self.owner = f"torture-{uuid4()}"
        self.ledger = Ledger()
        self.lives = 0

    def child(self, seed: int, work: Callable[[Work], None], *, alone: bool = True) -> Child:
        """A process that checks what its predecessors have acknowledged, and then works.

        Args:
            seed: The seed of its choices.
            work: What it does after the check.
            alone: Whether no other process works at the same time, and the clocks of all are right.
        """
        self.lives += 1
        life = str(self.lives)

        def live(report: Report) -> None:
            random_ = random.Random(seed)
            with self.opened() as system:
                found = check(system, self.ledger, random_)
                if not (found or self.cipher) and self.ledger.is_kept and random_.random() < COPIED:
                    found = [
                        (column, f"in a copy: {text}")
                        for column, text in check_copy(self.url, self.owner, self.ledger, random_)
                    ]
                for column, text in found:
                    report("problem", column, text[:300])
                report("checked")
                work(Work(system, report, life, random_, alone))

        return Child(live)

    def opened(self) -> MemorySystem:
        return MemorySystem(
            self.url,
            owner=self.owner,
            embeddings=self._embeddings,
            vectors=self._vectors,
            cipher=self.cipher,
        )

    def settle(self, tally: Tally, seed: int) -> None:
        """Check for the last time."""
        self.ledger.take(self.child(seed, lambda work: None).end(), tally)


def warm_up(place: Place) -> None:
    """Import modules and compile statements, which children then need not do."""
    memory, lines = Memory(place), list[list[object]]()
    with memory.opened() as system:
        random_ = random.Random(0)
        work = Work(system, lambda *line: lines.append(list(line)), "0", random_)
        for verb in VERBS:
            work.step(verb)
        memory.ledger.take(lines, Tally("", ""))
        check(system, memory.ledger, random_)
        check_copy(memory.url, memory.owner, memory.ledger, random_)
    place.drop(memory.url)
    gc.collect()
    gc.freeze()  # A child that collects garbage would copy the memory of its parent.


def kills(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Kill processes until the time is over."""
    end = time.monotonic() + seconds
    for _ in rounds(seconds):
        memory = Memory(place)
        tally.add("runs")
        for _ in range(KILLS_OF_AN_OWNER):
            if time.monotonic() > end:
                break
            child = memory.child(random_.getrandbits(64), Work.forever)
            if random_.random() < EARLY:
                child.listen(random_.expovariate(1 / OPENING))
            elif child.listen(60, until="checked"):
                acknowledged = random_.randrange(ACKNOWLEDGED)
                if not acknowledged or child.listen(60, until="done", times=acknowledged):
                    child.listen(random_.expovariate(1 / WORKING))
            memory.ledger.take(child.kill(), tally)
            tally.add("kills")
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)
