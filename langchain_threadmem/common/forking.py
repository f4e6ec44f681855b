"""Forked processes: locks and resources that a child process replaces.

A child of `os.fork()` has one thread. A lock of another thread stays locked in the child, the work of other
threads is never done, and a connection that both processes use breaks in both. Locks are therefore created by
`lock` and `rlock`, which are free in a child, and an object with a thread or a connection is a `Forkable`.
Windows has no fork, so this module has no effect there.

Example:
    >>> guard = lock()
    >>> with guard:
    ...     pass
"""

from __future__ import annotations

import os
import threading
from typing import Any, SupportsIndex
from weakref import WeakSet

from langchain_threadmem.errors import InputError

_locks: WeakSet[Any] = WeakSet()
_watched: WeakSet[Forkable] = WeakSet()
_forking: list[Forkable] = []
"""The objects whose `before_fork` was called for the current fork."""


def lock() -> threading.Lock:
    """Create a lock that is free in a forked child."""
    new_lock = threading.Lock()
    _locks.add(new_lock)
    return new_lock


def rlock() -> threading.RLock:
    """Create a reentrant lock that is free in a forked child."""
    new_lock = threading.RLock()
    _locks.add(new_lock)
    return new_lock


class Forkable:
    """An object that a forked child cannot use unchanged, and that is not copied into another process."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Refuse `pickle` and `copy.deepcopy`: neither copies a thread or a connection."""
        raise InputError(
            "a memory has open connections, which cannot be pickled or copied: pass its URL, its owner and "
            "the name of the conversation, and open MemorySystem(url, owner=...) in the other process; in a "
            "web app, call system.conversation(name) in each session"
        )

    def watch(self) -> None:
        """Register for `before_fork` and `after_fork`."""
        _watched.add(self)

    def before_fork(self) -> None:
        """Called in the parent, by the thread that forks."""

    def after_fork(self, *, child: bool) -> None:
        """Called in the child, whose locks are free, and in the parent."""


def _before_fork() -> None:
    _forking[:] = _watched
    for item in _forking:
        item.before_fork()


def _after_in_parent() -> None:
    for item in _forking:
        item.after_fork(child=False)
    _forking.clear()


def _after_in_child() -> None:
    for lock_ in list(_locks):
        lock_._at_fork_reinit()  # As `logging` and `concurrent.futures` do.
    for item in _forking:
        item.after_fork(child=True)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
