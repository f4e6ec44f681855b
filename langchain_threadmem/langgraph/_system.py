"""Shared parts of the integrations: systems by URL, and the base class of saver and store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Self

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph._run_config import checked_owner, system_of_run

if TYPE_CHECKING:
    from langchain_threadmem.engine.runtime import Resources, Runtime
    from langchain_threadmem.memory_system import MemorySystem

_systems: LruCache[str, MemorySystem] = LruCache(64)
_lock = forking.lock()


def shared_system(url: str | Path, owner: str = "user") -> MemorySystem:
    """The system of an owner in the database behind a URL, which the first call for the URL opens.

    LangChain creates some of its objects for every call; the objects of all owners share one open database,
    which stays open until the process ends.

    Args:
        url: As for `MemorySystem`.
        owner: The owner of the memory.

    Example:
        >>> shared_system("sqlite://", "ada").runtime is shared_system("sqlite://", "ada").runtime
        True
    """
    from langchain_threadmem.memory_system import MemorySystem

    with _lock:
        system = _systems.get(str(url))
        if system is None or system.resources.database.closed:
            system = MemorySystem(url)
            _systems.put(str(url), system)
        return system.for_owner(owner)


def check_system(system: object, instead: str = "pass MemorySystem(url)") -> None:
    """Refuse an argument `system` that is not a `MemorySystem`.

    Raises:
        InputError: It is not a `MemorySystem`; `instead` names the next step.
    """
    # A saver uses the runtime of a system alone; the import takes longer than that of the saver.
    from langchain_threadmem.memory_system import MemorySystem

    if not isinstance(system, MemorySystem):
        raise InputError(f"system is a MemorySystem, not {system!r}; {instead}")


def owners_found(resources: Resources, find: Callable[[], Collection[str]]) -> Collection[str]:
    """The owners that a read of the data of all owners finds.

    Row-level security hides the data of other owners; the owners are then those in use in this process.
    """
    resources.database.open()
    return resources.owners_in_use() if resources.database.row_security else find()


class SystemIntegration:
    """An integration over a system: the owner of a call, set-up, and `with`, which closes its own system.

    Args:
        system: The system.
        owner: The owner of a run; by default the system's owner.
    """

    _shared = False
    """Whether each call reads or writes more than the thread of its run."""

    def __init__(self, system: MemorySystem, owner: OwnerOfRun | None = None) -> None:
        check_system(system, f"for a URL use {type(self).__name__}.from_conn_string")
        self.system = system
        self._owner = checked_owner(owner)
        self._owns_system = False

    @classmethod
    def _on(cls, url: str | Path | None, owner: str, make: Callable[[MemorySystem], Self]) -> Self:
        """An integration over a new system, which `with` closes."""
        from langchain_threadmem.memory_system import MemorySystem

        system = MemorySystem(url, owner=owner)
        try:
            integration = make(system)
        except BaseException:
            system.close()
            raise
        integration._owns_system = True
        return integration

    @property
    def _runtime(self) -> Runtime:
        return self.system.runtime

    def _for_call(self, *args: object, **kwargs: object) -> Self:
        """The integration over the system of the owner of a call."""
        config = None
        for value in (*args, *kwargs.values()):
            if isinstance(value, Mapping) and "configurable" in value:
                config = value
                break
        system = system_of_run(self.system, self._owner, config, shared=self._shared)
        if system is self.system:
            return self
        return self._on_system(system)

    def _on_system(self, system: MemorySystem) -> Self:
        integration = copy(self)
        integration.system, integration._owner = system, None
        return integration

    @property
    def _serves_runs(self) -> bool:
        """Whether each run has its own owner."""
        return self._owner is not None or self.system.owner_of_run is not None

    def setup(self) -> None:
        """Open the database, which creates missing tables. Further calls have no effect."""
        self.system.resources.database.open()

    async def asetup(self) -> None:
        """Async `setup`."""
        await asyncio.to_thread(self.setup)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._owns_system:
            self.system.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._owns_system:
            await self.system.aclose()
