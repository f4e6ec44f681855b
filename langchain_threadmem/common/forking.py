"""Forked processes: locks and resources that a child process replaces.

A child of `os.fork()` has one thread. A lock of another thread stays locked in the child, the work of other
threads is never done, and a connection that both processes use breaks for both. So locks are made by `lock`
and `rlock`, which are free in a child, and an object with a thread or a connection is a `Forkable`. On
Windows, which has no fork, this module has no effect.

Example:
    >>> guard = lock()
    >>> with guard:
    ...     pass
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()
_watched: WeakSet[Forkable] = WeakSet()
_forking: list[Forkable] = []
"""The objects whose `before_fork` was called for the current fork."""


def lock() -> threading.Lock:
    """A lock that is free in a forked child."""
    made = threading.Lock()
    _locks.add(made)
    return made


def rlock() -> threading.RLock:
    """A reentrant lock that is free in a forked child."""
    made = threading.RLock()
    _locks.add(made)
    return made


class Forkable:
    """An object that a forked child cannot use unchanged."""

    def watch(self) -> None:
        """Register for `before_fork` and `after_fork`."""
        _watched.add(self)

    def before_fork(self) -> None:
        """Called in the parent, by the thread that forks."""

    def after_fork(self, *, child: bool) -> None:
        """Called in the child, whose locks are free, and in the parent."""


def _before() -> None:
    _forking[:] = _watched
    for one in _forking:
        one.before_fork()


def _after_in_parent() -> None:
    for one in _forking:
        one.after_fork(child=False)
    _forking.clear()


def _after_in_child() -> None:
    for held in list(_locks):
        held._at_fork_reinit()  # As `logging` and `concurrent.futures` do.
    for one in _forking:
        one.after_fork(child=True)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
