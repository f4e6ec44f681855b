"""Systems by URL, for adapters that know only where the memory is: one for each database and owner."""

from __future__ import annotations

from pathlib import Path

from langchain_threadmem.core import forking
from langchain_threadmem.core.cache import LruCache
from langchain_threadmem.system import MemorySystem

_systems = LruCache[tuple[str, str], MemorySystem](64)
_opening = forking.lock()


def shared_system(url: str | Path, owner: str = "user") -> MemorySystem:
    """The system of an owner in the database behind a URL, opened by the first who asks.

    LangChain makes some of its objects anew for every call; they share one system. It stays open until
    somebody closes it, or the process ends; then the next who asks opens it again.

    Args:
        url: As for `MemorySystem`.
        owner: Whose memory it is.

    Example:
        >>> shared_system("sqlite://", "ada") is shared_system("sqlite://", "ada")
        True
    """
    with _opening:
        system = _systems.get((str(url), owner))
        if system is None or system.runtime.database.closed:
            system = MemorySystem(url, owner=owner)
            _systems.put((str(url), owner), system)
        return system
