"""What integrations share: the system of a database and owner, and the check of a run's owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.errors import OwnerMismatchError
from langchain_threadmem.memory_system import MemorySystem

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


OWNER_KEYS = ("owner", "user_id", "langgraph_auth_user_id")
"""What a run's `configurable` calls the person that it is for; the last is LangGraph Server's name."""


def check_owner(config: Mapping[str, Any], owner: str) -> None:
    """Refuse a run that is for somebody else: a system holds the memory of one owner.

    Args:
        config: The run's configuration.
        owner: Whose memory it would use.

    Raises:
        OwnerMismatchError: It names another owner, as `owner` or as a user's id.

    Example:
        >>> check_owner({"configurable": {"user_id": "ada"}}, "ada")
    """
    configurable = config.get("configurable") or {}
    for key in OWNER_KEYS:
        named = configurable.get(key)
        if named is not None and str(named) != owner:
            raise OwnerMismatchError(
                f"the run is for {key}={named!r}, and the memory is that of the owner {owner!r}; use "
                f"MemorySystem(url, owner={str(named)!r}) for this run, or leave {key!r} out of its "
                "configurable"
            )
