"""SIGKILL during each verb that writes much: at a random moment, and at each of its statements in turn.

A verb that was killed has changed each conversation wholly or not at all, unless it works in parts. Run
again, it gives what it gives without a kill, and no byte of a word that it erases is left.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import cycle
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from langchain_threadmem.formats.importers import verbs as importing
from langchain_threadmem.index import catch_up_words, embed
from langchain_threadmem.storage.pipeline import Pipeline
from torture.children import LONGEST, Child, Report
from torture.databases import Place
from torture.scenes import VERBS, Contents, Reading, Scene, Verb, copy, earlier, where_erased
from torture.tally import Tally, rounds

AGAIN = 0.3
"""The share of kills after which the verb is killed again."""


class Scenes(NamedTuple):
    """What a verb begins with, and what it leads to.

    Attributes:
        place: Where databases are made.
        verb: The verb.
        filled: The database before the verb.
        before: What the databases contain before the verb.
        after: What they contain after a run without a kill.
        statements: The number of its statements.
        seconds: Its time.
    """

    place: Place
    verb: Verb
    filled: str
    before: Reading
    after: Reading
    statements: int
    seconds: float

    @classmethod
    def of(cls, place: Place, verb: Verb) -> Scenes:
        """Fill a database, and run the verb without a kill."""
        filled = place.empty()
        verb.fill(Scene(filled, filled, Path()))
        found = cls(place, verb, filled, {}, {}, 0, 0.0)
        with found.begun() as scene:
            before = {} if verb.fill is earlier else scene.read()  # Reading migrates the database.
            statements, begin = Statements(), time.monotonic()
            with statements.counted():
                verb.run(scene)
            seconds = time.monotonic() - begin
            after = scene.read(derived=True)
            assert all(not contents.problems for contents in after.values()), after
            return cls(place, verb, filled, before or after, after, statements.count, seconds)

    @contextmanager
    def begun(self) -> Iterator[Scene]:
        """Copies of the databases before the verb."""
        with tempfile.TemporaryDirectory(prefix="threadmem-torture-") as folder:
            url = self.place.copy(self.filled)
            other = self.place.empty() if self.verb.run is copy else url
            try:
                yield Scene(url, other, Path(folder))
            finally:
                for made in {url, other}:
                    self.place.drop(made)


class Statements:
    """Counts the statements and the changes of files of a process, and kills it before one of them.

    Args:
        last: The number of the statement before which the process is killed; 0 for none.
    """

    def __init__(self, last: int = 0) -> None:
        self.count = 0
        self._last = last

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the calls of this thread and of those that begin meanwhile."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            owner = getattr(called, "__self__", None)
            is_driver = owner is _FILES or type(owner).__module__ == "sqlite3"
            if not (is_driver and called.__name__ in _CALLS):
                return
        elif event != "call" or frame.f_code not in _CODES:
            return
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


_FILES = sys.modules[os.rename.__module__]
_CALLS = {"execute", "executemany", "executescript", "backup", "rename", "unlink", "mkdir", "rmdir", "fsync"}
_CODES = {Pipeline.execute.__code__, Pipeline.rows.__code__, Pipeline._sync.__code__}


def verbs(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Kill verbs until the time is over: at each of their statements in turn, and at random moments."""
    importing.MESSAGES_AT_ONCE = 14
    catch_up_words.WORDS_AT_ONCE = embed.VECTORS_AT_ONCE = 8
    prepared: dict[str, tuple[Scenes, Iterator[int]]] = {}
    found = [name for name, verb in VERBS.items() if verb.database in ("", place.name)]
    names = cycle(random_.sample(found, len(found)))
    for _, name in zip(rounds(seconds), names, strict=False):
        if name not in prepared:
            scenes = Scenes.of(place, VERBS[name])
            numbers = range(1, scenes.statements + 1)
            prepared[name] = scenes, cycle(random_.sample(numbers, len(numbers)))
        scenes, turns = prepared[name]
        ends = [next(turns) if random_.random() < 0.5 else 0, *[0] * (random_.random() < AGAIN)]
        with scenes.begun() as scene:
            for end in ends:
                child = Child(partial(_live, scenes.verb, scene, end))
                if not end:
                    child.listen(random_.uniform(0, 1.2) * scenes.seconds, until="done")
                lines = child.end() if end else child.kill()
                tally.add("kills", int(["done"] not in lines))
                lines += Child(partial(_check, scenes, scene)).end()
                _take(lines, tally, f"{name}, killed at {ends}: ")
            _take(
                Child(partial(_finish, scenes, scene)).end(), tally, f"{name}, killed at {ends}, completed: "
            )
        tally.add("runs")
    for scenes, _ in prepared.values():
        place.drop(scenes.filled)


def _take(lines: list[list[Any]], tally: Tally, where: str) -> None:
    for word, *values in lines:
        if word == "problem":
            tally.add(values[0], 1, where + values[1])


def _live(verb: Verb, scene: Scene, end: int, report: Report) -> None:
    with Statements(end).counted() if end else nullcontext():
        verb.run(scene)
    report("done")


def _check(scenes: Scenes, scene: Scene, report: Report) -> None:
    """Whether a killed verb has changed each conversation wholly or not at all."""
    nothing = Contents({}, (), [])
    for place, contents in scene.read().items():
        before, after = scenes.before.get(place, nothing), scenes.after.get(place, nothing)
        for problem in {*contents.problems} - {*before.problems}:
            report("problem", "half", f"{place}: {problem}"[:LONGEST])
        for name in {*contents.histories, *before.histories}:
            one, other, found = (each.histories.get(name) for each in (before, after, contents))
            if found not in (one, other) and (one == other or not scenes.verb.parts):
                column = "lost" if found is None else "half"
                report("problem", column, f"{name} of {place}: {found}"[:LONGEST])


def _finish(scenes: Scenes, scene: Scene, report: Report) -> None:
    """Run a killed verb to its end, whose result is that of a run without a kill."""
    scenes.verb.run(scene)
    if scenes.verb.erases and (found := where_erased(scene)):
        report("problem", "lost", f"the erased word is in {found}"[:LONGEST])
    reading = scene.read(derived=True)
    for place, contents in scenes.after.items():
        for field, expected, actual in zip(Contents._fields, contents, reading.get(place, ()), strict=True):
            if expected != actual:
                report("problem", "lost", f"{field} of {place}: {actual} instead of {expected}"[:LONGEST])
