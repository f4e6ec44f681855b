"""Shared parts of the integrations: the owner, the conversation and the branch of a run, and its system."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.messages.ids import name_of

if TYPE_CHECKING:
    from langchain_threadmem.engine.runtime import Resources, Runtime
    from langchain_threadmem.memory_system import MemorySystem

ConversationId = str | Callable[[Mapping[str, Any]], str] | None
"""The conversation of a run: its name, a function from the run's configuration; `None`: the `thread_id`."""
REPLACED = "__threadmem_replaced"
"""The field of `configurable` in which `ThreadMemSaver.fork` names the message that a run replaces."""
_systems: LruCache[str, MemorySystem] = LruCache(64)
_lock = forking.lock()


class Lineage(NamedTuple):
    """The branch that a run of a graph continues.

    Attributes:
        thread: The LangGraph thread of the run; empty if it has no name, or that of the conversation.
        rewound: Whether the caller named the checkpoint at which the run begins.
        replaced: Id of the message that the run replaces, from `ThreadMemSaver.fork`; empty if there is none.
    """

    thread: str = ""
    rewound: bool = False
    replaced: str = ""


NO_LINEAGE = Lineage()


def conversation_name(config: Mapping[str, Any], given: ConversationId) -> str:
    """The conversation of a LangGraph run: the name that the caller gives, else the run's `thread_id`.

    Args:
        given: A name, or a function from the configuration to a name.

    Raises:
        InputError: There is neither a name nor a `thread_id`, or it cannot be stored.

    Example:
        >>> conversation_name({"configurable": {"thread_id": "first"}}, None)
        'first'
    """
    if given is not None:
        return name_of("a conversation_id", given(config) if callable(given) else given)
    thread_id = config.get("configurable", {}).get("thread_id")
    if thread_id is None or thread_id == "":
        raise InputError(
            f"the run has no conversation: its thread_id is {thread_id!r}; pass "
            'config={"configurable": {"thread_id": "..."}} when you invoke the graph, or conversation_id=... '
            "when you build it"
        )
    return thread_name(thread_id)


def thread_name(thread_id: object) -> str:
    """The name of a LangGraph thread: of a value that is no text its `str`, which LangGraph passes to savers.

    Raises:
        InputError: The thread has no name, or a name that cannot be stored.

    Example:
        >>> thread_name("first"), thread_name(7)
        ('first', '7')
    """
    plain = thread_id if isinstance(thread_id, str) or thread_id is None else str(thread_id)
    return name_of("a thread_id", plain)


def lineage_of(config: Mapping[str, Any], conversation: str) -> Lineage:
    """The branch that a LangGraph run continues, by its configuration.

    Example:
        >>> lineage_of({"configurable": {"thread_id": "first"}, "metadata": {"checkpoint_id": "1ef"}}, "all")
        Lineage(thread='first', rewound=True, replaced='')
    """
    thread_id = config.get("configurable", {}).get("thread_id")
    thread = thread_name(thread_id) if thread_id and thread_id != conversation else ""
    # LangGraph stores the checkpoint that a caller names only in the metadata.
    rewound = bool((config.get("metadata") or {}).get("checkpoint_id"))
    replaced = config.get("configurable", {}).get(REPLACED, "") if rewound else ""
    return Lineage("" if thread == conversation else thread, rewound, replaced)


def checked_owner(owner: object) -> OwnerOfRun | None:
    """The argument `owner` of an integration.

    Raises:
        InputError: The argument is neither text nor a function.
    """
    if owner is None or callable(owner):
        return owner
    if not isinstance(owner, str) or not owner:
        raise InputError(
            f"owner={owner!r} names no owner of a run; pass the name of a field of the run's context or "
            "configurable, or a function of the run"
        )
    return owner


def system_of_run(
    system: MemorySystem,
    owner: OwnerOfRun | None,
    config: Mapping[str, Any] | None = None,
    *,
    shared: bool = False,
) -> MemorySystem:
    """The system of the owner of a run.

    Args:
        owner: The option `owner` of the integration.
        config: The configuration of the call, if any.
        shared: Whether the call reads or writes more than the thread of the run.

    Raises:
        OwnerRequiredError: The run names no owner.
        OwnerMismatchError: The run names two owners, or a call that is `shared` is for another person.
    """
    if owner is not None:
        return system._of_owner(owner, config)
    system = system.of_run(config)
    if shared:
        system._check_run(config)
    return system


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
