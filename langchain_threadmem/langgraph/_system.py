"""Shared parts of the integrations: systems by URL, the base class, the conversations of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal, Self, TypeGuard, Unpack

from langchain_threadmem.chat_memory import ChatMemory, ThreadOptions, check_options
from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.engine.runtime import Resources, Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph._run_config import (
    ConversationId,
    checked_owner,
    conversation_name,
    lineage_of,
    system_of_run,
)
from langchain_threadmem.langgraph.routing.lineage import Lineage
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.selection.selectors import AnySelector

Scope = Literal["conversation", "owner"]
"""The scope of a search: one conversation, or all conversations of an owner."""

_ANY = "*"
"""The name of the conversation on which a search of all conversations is called; it has no messages."""

_systems = LruCache[str, MemorySystem](64)
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
        config = next((value for value in (*args, *kwargs.values()) if _is_config(value)), None)
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


def _is_config(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and "configurable" in value


class RunConversations:
    """The conversations of runs, by their configurations.

    Args:
        system: The system of the conversations.
        conversation_id: The conversation, or a function from a run's configuration to its name.
        selector: The selector of each conversation.
        owner: The owner of a run; by default the system's owner.
        shared: Whether other conversations are read too. A conversation that the program names is always
            shared, since the threads of all runs are in it.
        **options: Options of each conversation.

    Raises:
        InputError: `system` is not a `MemorySystem`, or an option has the wrong type or is out of its range.
    """

    def __init__(
        self,
        system: MemorySystem,
        conversation_id: ConversationId,
        selector: AnySelector | None = None,
        owner: OwnerOfRun | None = None,
        *,
        shared: bool = False,
        **options: Unpack[ThreadOptions],
    ) -> None:
        check_system(system)
        check_options(node_selector=selector, **options)
        self._system = system
        self._owner = checked_owner(owner)
        self._conversation_id = conversation_id
        self._selector = selector
        self._shared = shared or isinstance(conversation_id, str)
        self._options = options

    def system(self, config: Mapping[str, Any]) -> MemorySystem:
        """The system of the owner of a run; see `system_of_run`."""
        return system_of_run(self._system, self._owner, config, shared=self._shared)

    def of(self, config: Mapping[str, Any]) -> tuple[ThreadedConversation, Lineage]:
        """The conversation of a run, and the origin of the run.

        Raises:
            OwnerRequiredError: The run names no owner.
            OwnerMismatchError: The run names two owners, or another person than the owner of the system.
            InputError: The configuration names no conversation.
        """
        name = conversation_name(config, self._conversation_id)
        conversation = self.system(config).conversation(name, node_selector=self._selector, **self._options)
        return conversation._conversation, lineage_of(config, name)


def memory_of_run(
    memory: ChatMemory | MemorySystem, owner: OwnerOfRun | None, config: Mapping[str, Any]
) -> ChatMemory | MemorySystem:
    """The memory of the owner of a run.

    Raises:
        OwnerRequiredError: The run names no owner.
        OwnerMismatchError: The run names two owners, or another person than the owner of the memory.
    """
    if isinstance(memory, MemorySystem):
        return system_of_run(memory, owner, config, shared=True)
    memory._check_run(config)
    return memory


def check_memory(
    memory: ChatMemory | MemorySystem,
    conversation_id: str | None,
    scope: Scope | None,
    owner: OwnerOfRun | None,
) -> None:
    """Refuse arguments that do not name a conversation or an owner.

    Raises:
        InputError: The arguments name neither, or contradict each other.
    """
    if isinstance(memory, ChatMemory):
        if conversation_id is not None and conversation_id != memory.conversation_id:
            raise InputError(
                f"the memory is the conversation {memory.conversation_id!r}, not {conversation_id!r}; "
                "pass the MemorySystem to choose one by its id"
            )
        if owner is not None:
            raise InputError(f"owner={owner!r} needs a MemorySystem; a ChatMemory has one owner")
        return
    if not isinstance(memory, MemorySystem):
        raise InputError(f"memory is a ChatMemory or a MemorySystem, not {memory!r}")
    if conversation_id is not None:
        name_of("a conversation_id", conversation_id)
    elif scope == "conversation":
        raise InputError("scope='conversation' needs a conversation; pass conversation_id=...")
    checked_owner(owner)


def searched(
    memory: ChatMemory | MemorySystem, conversation_id: str | None, scope: Scope | None
) -> tuple[ChatMemory, Scope]:
    """The conversation whose `recall` is called, and the scope."""
    if isinstance(memory, ChatMemory):
        return memory, scope or "conversation"
    if conversation_id is None:
        return memory.conversation(_ANY), "owner"
    return memory.conversation(conversation_id), scope or "conversation"
