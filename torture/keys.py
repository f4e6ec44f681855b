"""SIGKILL while the key of an encrypted memory changes."""

from __future__ import annotations

import random
from itertools import count

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import EncryptionError
from langchain_threadmem.maintenance import encrypted_rows
from torture.children import Child, Report
from torture.cipher import StreamCipher
from torture.databases import Place
from torture.kills import Memory
from torture.tally import Tally, rounds
from torture.work import Work

OLD, NEW = StreamCipher(b"old"), StreamCipher(b"new")
STEPS = 12
"""The number of verbs that fill a memory."""
ROWS_AT_ONCE = 4
"""The rows of a transaction, so that a short change of the key has many."""
UNTIL_KILLED = 0.06
"""The mean time until a process that changes the key is killed, in seconds."""


def keys(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Change the keys of memories, interrupted by kills, until the time is over."""
    for _ in rounds(seconds):
        memory = Memory(place, cipher=OLD)
        memory.ledger.take(memory.child(random_.getrandbits(64), _fill).end(), tally)
        for attempt in count():
            child = Child(lambda report, memory=memory: _change(memory, report))
            # Later attempts live longer, so that the change ends on a slow machine too.
            child.listen(random_.expovariate(1 / UNTIL_KILLED) * (1 + attempt / 4), until="changed")
            if any(line[0] in ("changed", "problem") for line in child.lines):
                memory.ledger.take(child.end(), tally)
                break
            memory.ledger.take(child.kill(), tally)
            tally.add("kills")
        memory.cipher = NEW
        tally.add("runs")
        memory.settle(tally, random_.getrandbits(64))
        place.drop(memory.url)


def _fill(work: Work) -> None:
    for _ in range(STEPS):
        work.step()


def _change(memory: Memory, report: Report) -> None:
    """Begin or continue the change; a process that was killed may have completed it."""
    encrypted_rows.ROWS_AT_ONCE = ROWS_AT_ONCE
    try:
        with memory.opened() as system:
            system.rekey(NEW)
    except EncryptionError:
        with MemorySystem(memory.url, owner=memory.owner, embeddings=False, cipher=NEW) as system:
            system.conversations()
    report("changed")
