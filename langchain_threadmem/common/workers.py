"""Background threads of the package: jobs in pieces, whose results no caller needs.

A job can stop between two pieces, and does not prevent the process from ending.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple
from weakref import WeakSet

from langchain_threadmem.common import forking

log = logging.getLogger(__package__)
GRACE = 2.0
"""The time in seconds that `close` waits for the running piece of a job."""
IDLE = 10.0
"""The time in seconds that the thread of `Gradual` waits for the next job, since a thread starts slowly."""


class _Job(NamedTuple):
    """A job of `Gradual.start`."""

    piece: Callable[[], bool]
    gently: bool


class Gradual(forking.Forkable):
    """Runs jobs piece by piece, in a thread that ends when there was no job for `IDLE` seconds.

    A job is a function that does the next piece and returns whether pieces are left. An error ends the job;
    it is logged and stored for `failure`. The next call of `start` starts the job again.

    Args:
        name: The name of the work, for the log and the thread.

    Example:
        >>> todo = ["b", "a"]
        >>> gradual = Gradual("emptying a list")
        >>> gradual.start("list", lambda: bool(todo.pop() and todo))
        >>> while gradual.busy("list"):
        ...     pass
        >>> todo
        []
        >>> gradual.close()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: dict[Hashable, _Job] = {}
        self._failed: dict[Hashable, Exception] = {}
        self._running: Hashable = None
        self._dropped = False
        self._pieces = 0
        self._thread: threading.Thread | None = None
        self._closed = False
        self._changed = threading.Condition()
        self.watch()

    def after_fork(self, *, child: bool) -> None:
        """Drop the jobs in a child, since the parent runs them."""
        if child:
            self._jobs.clear()
            self._running, self._thread = None, None
            self._changed = threading.Condition()

    def start(self, name: Hashable, piece: Callable[[], bool], *, gently: bool = False) -> None:
        """Start a job; returns at once.

        Args:
            piece: Does the next piece, and returns whether pieces are left.
            gently: Pause after each piece for as long as the piece took, for pieces that block other threads.
        """
        with self._changed:
            if self._closed:
                return
            self._jobs[name] = _Job(piece, gently)
            self._changed.notify_all()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name=f"threadmem {self._name}", daemon=True
                )
                self._thread.start()
                _working.add(self)

    def busy(self, name: Hashable) -> bool:
        """Whether a job waits or runs."""
        with self._changed:
            return name in self._jobs or self._running == name

    def failure(self, name: Hashable) -> Exception | None:
        """The error of a job since the last call, if the job has not succeeded after it."""
        with self._changed:
            return self._failed.pop(name, None)

    def forget_failures(self) -> None:
        """Drop the errors of jobs that failed: an error refers to the texts that the job worked on."""
        with self._changed:
            self._failed.clear()

    def drop(self, name: Hashable) -> None:
        """Stop a job and wait for its running piece; the caller continues the work."""
        with self._changed:
            self._jobs.pop(name, None)
            self._dropped = self._dropped or self._running == name
            self.wait(name)

    def wait(self, name: Hashable) -> None:
        """Wait for the running piece of a job, if any."""
        with self._changed:
            pieces = self._pieces
            self._changed.wait_for(lambda: self._running != name or self._pieces != pieces)

    def close(self) -> None:
        """Stop all jobs; waits up to `GRACE` seconds for the running piece."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            thread.join(GRACE)

    def _work(self) -> None:
        while (named := self._next()) is not None:
            name, job = named
            begin = time.monotonic()
            has_more, error = False, None
            try:
                has_more = job.piece()
            except Exception as raised:
                error = raised
            finally:
                self._finish(name, job if has_more else None, error)
            if job.gently:
                time.sleep(min(time.monotonic() - begin, GRACE))
            del named, job, error  # A waiting thread keeps no texts.

    def _next(self) -> tuple[Hashable, _Job] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed, IDLE)
            if not self._jobs:
                self._thread = None
                return None
            name = next(iter(self._jobs))
            self._running, self._dropped = name, False
            return name, self._jobs.pop(name)

    def _finish(self, name: Hashable, job: _Job | None, error: Exception | None) -> None:
        with self._changed:
            self._running = None
            self._pieces += 1
            self._changed.notify_all()
            if self._closed:
                return
            if job is not None and not self._dropped:
                self._jobs.setdefault(name, job)
            if error is None:
                self._failed.pop(name, None)
            else:
                self._jobs.pop(name, None)
                self._failed[name] = error
        if error is not None:
            log.warning("%s failed: %r", self._name, error)


_working: WeakSet[Gradual] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Stop all jobs, since a thread that runs a model while the interpreter exits may crash the process."""
    for gradual in list(_working):
        gradual.close()
