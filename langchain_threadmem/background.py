"""Work beside the caller: one thread that does what may wait, one thing after the other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from langchain_threadmem.errors import ClosedError

T = TypeVar("T")
log = logging.getLogger(__name__)


class Background:
    """Runs functions in a thread of its own, in the order in which they were submitted.

    Example:
        >>> background = Background()
        >>> background.submit("adding", lambda: 1 + 1).result()
        2
        >>> background.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def submit(self, what: str, work: Callable[[], T]) -> Future[T]:
        """Have something done; an error in it is logged under `what`, and raised by the future's `result`.

        Raises:
            ClosedError: After `close`.
        """
        with self._lock:
            if self._closed:
                raise ClosedError(f"{what} cannot begin: the memory was closed; open it again")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="threadmem-background")
            future = self._pool.submit(work)
        future.add_done_callback(lambda done: _report(what, done))
        return future

    def close(self) -> None:
        """Finish what is being done, and drop what waits."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _report(what: str, done: Future[T]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        log.warning("%s failed: %r", what, error)
