"""Verbs that erase, while other processes recall and summarise: the erased word does not come back."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_threadmem import MemorySystem, ThreadMemSaver
from langchain_threadmem.errors import ThreadMemError
from langchain_threadmem.selection.tree_view import TreeView
from torture.children import LONGEST, Child, Report
from torture.databases import Place
from torture.scenes import ERASED, GONE, KEPT, OLDER, VERBS, Scene, fill, unindexed, where_erased
from torture.tally import Tally, rounds
from torture.work import config_of

READERS = 2
BEFORE, AFTER = 0.3, 0.3
"""The longest times that other processes read before the erasing, and after it, in seconds."""
KILLED = 0.3
"""The share of the erasings that are killed, and run again."""
ERASING = [verb for verb in VERBS.values() if verb.erases]


def erasures(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Erase while others read, until the time is over."""
    filled: dict[Callable[[Scene], None], str] = {}
    for _ in rounds(seconds):
        begin = random_.choice([fill, unindexed])
        if begin not in filled:
            filled[begin] = place.empty()
            begin(Scene(filled[begin], filled[begin], Path()))
        with tempfile.TemporaryDirectory(prefix="threadmem-torture-") as folder:
            url = place.copy(filled[begin])
            _erased(Scene(url, url, Path(folder), is_shared=True), tally, random_)
            place.drop(url)
        tally.add("runs")
    for url in filled.values():
        place.drop(url)


def _erased(scene: Scene, tally: Tally, random_: random.Random) -> None:
    verb = random_.choice(ERASING)
    readers = [Child(partial(_read, scene, random_.getrandbits(64))) for _ in range(READERS)]
    for reader in readers:
        reader.listen(60, until="reading")
    time.sleep(random_.uniform(0, BEFORE))
    lines = []
    if random_.random() < KILLED:
        erasing = Child(lambda report: verb.run(scene))
        erasing.listen(random_.uniform(0, BEFORE))
        lines += erasing.kill()
        tally.add("kills")
    lines += Child(lambda report: verb.run(scene)).end()
    (scene.folder / "erased").touch()
    time.sleep(random_.uniform(0, AFTER))
    for reader in readers:
        lines += reader.kill()
    tally.add("kills", len(readers))
    lines += Child(partial(_settle, scene)).end()
    for word, *values in lines:
        if word == "problem":
            tally.add(values[0], 1, f"{verb.run.__name__}: {values[1]}")


def _read(scene: Scene, seed: int, report: Report) -> None:
    """Read, index and summarise without an end."""
    random_, erased = random.Random(seed), scene.folder / "erased"
    with scene.opened() as system:
        readings = _readings(system)
        report("reading")
        while True:
            name, read = random_.choice([*readings.items()])
            is_erased = erased.exists()
            found = ""
            with suppress(ThreadMemError):
                found = repr(read())
            if is_erased and ERASED in found:
                report("problem", "lost", f"the erased word came back by the {name}: {found}"[:LONGEST])
                return


def _readings(system: MemorySystem) -> dict[str, Callable[[], Any]]:
    """Calls that read messages, or write what may quote them."""
    found: dict[str, Callable[[], Any]] = {
        "query": lambda: system.query(f"question {ERASED}", k_limit=50, search_range=(None, None)),
        "flush": system.flush,
        "titles": system.list_conversations,
        "long-term memory": system.summarize_long_term_memory,
    }
    for name in (KEPT, GONE, OLDER):
        found |= {f"{what} of {name}": read for what, read in _readings_of(system, name).items()}
    return found


def _readings_of(system: MemorySystem, name: str) -> dict[str, Callable[[], Any]]:
    memory, threads = system.conversation(name), system.conversation(name, node_selector=_quoting)
    return {
        "messages": lambda: memory.messages,
        "history": lambda: memory.history,
        "recall": lambda: memory.recall(f"question {ERASED}", n_results=50),
        "recall outside": lambda: memory.recall(f"question {ERASED}", scope="owner"),
        "summary": lambda: system.summarize_session(name),
        "checkpoints": lambda: [*ThreadMemSaver(system).list(config_of(name))],
        "new turn": lambda: threads.append("And another?", "No."),
    }


def _quoting(tree: TreeView, message: BaseMessage) -> int | None:
    """Continues the last turn, with a reason that quotes all turns."""
    ends = tree.turn_ends()
    tree.reason = " ".join(end.human for end in ends)
    return ends[-1].id if ends else None


def _settle(scene: Scene, report: Report) -> None:
    """Read once more, clear the files, and search them for the word."""
    with scene.opened() as system:
        for problem in system.verify().problems:
            report("problem", "false alarms", problem[:LONGEST])
        for name, read in _readings(system).items():
            with suppress(ThreadMemError):
                if ERASED in (found := repr(read())):
                    report("problem", "lost", f"the erased word came back by the {name}: {found}"[:LONGEST])
        system.scrub()
    if found_in := where_erased(scene):
        report("problem", "lost", f"the erased word is in {found_in}"[:LONGEST])
