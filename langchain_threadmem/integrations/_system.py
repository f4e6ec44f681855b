"""The parts that integrations share: the system, the check of a run's owner, the conversation of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, Unpack

from langchain_threadmem.chat_memory import ThreadOptions
from langchain_threadmem.common import forking
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.engine.flow import Flow, Sql, averb, verb
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, OwnerMismatchError
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.threads import route
from langchain_threadmem.threads.route import Lineage
from langchain_threadmem.threads.select import ThreadedConversation
from langchain_threadmem.threads.selectors import AnySelector

ConversationId = str | Callable[[Mapping[str, Any]], str] | None
"""The conversation of a run: its name, a function from the run's configuration; `None`: the `thread_id`."""

_systems = LruCache[tuple[str, str], MemorySystem](64)
_opening = forking.lock()


def shared_system(url: str | Path, owner: str = "user") -> MemorySystem:
    """The system of an owner in the database behind a URL, opened at the first call.

    LangChain makes some of its objects anew for every call; they share one system. It stays open until it is
    closed or the process ends; the next call after that opens it again.

    Args:
        url: As for `MemorySystem`.
        owner: The owner of the memory.

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


def check_system(system: object, instead: str = "pass MemorySystem(url)") -> None:
    """Refuse an argument `system` that is no `MemorySystem`.

    Raises:
        InputError: It is none; `instead` names the next step.
    """
    if not isinstance(system, MemorySystem):
        raise InputError(f"system is a MemorySystem, not {system!r}; {instead}")


class SystemIntegration:
    """An integration over a system: its set-up, and `with`, which closes a system of its own.

    Args:
        system: The system.
    """

    def __init__(self, system: MemorySystem) -> None:
        check_system(system, f"for a URL use {type(self).__name__}.from_conn_string")
        self.system = system
        self._owns_system = False

    @property
    def _runtime(self) -> Runtime:
        return self.system.runtime

    @verb
    def setup(self) -> Flow[None]:
        """Open the database, which makes the tables that are missing. Further calls do nothing."""
        yield from Sql(lambda conn: None)

    asetup = averb(setup)

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


OWNER_KEYS = ("owner", "user_id", "langgraph_auth_user_id")
"""Keys of a run's `configurable` that name the owner; the last is LangGraph Server's."""


def check_owner(config: Mapping[str, Any], owner: str) -> None:
    """Refuse a run for another owner than that of the system.

    Args:
        config: The run's configuration.
        owner: The owner of the system.

    Raises:
        OwnerMismatchError: The configuration names another owner, as `owner` or as a user's id.

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


class RunConversations:
    """The conversations of runs, by their configurations.

    Args:
        system: The system that holds them.
        conversation_id: The conversation, or a function from a run's configuration to its name.
        selector: The selector of each conversation.
        **options: Options of each conversation.

    Raises:
        InputError: `system` is no `MemorySystem`.
    """

    def __init__(
        self,
        system: MemorySystem,
        conversation_id: ConversationId,
        selector: AnySelector | None = None,
        **options: Unpack[ThreadOptions],
    ) -> None:
        check_system(system)
        self.system = system
        self._conversation_id = conversation_id
        self._selector = selector
        self._options = options

    def of(self, config: Mapping[str, Any]) -> tuple[ThreadedConversation, Lineage]:
        """The conversation of a run, and the origin of the run.

        Raises:
            OwnerMismatchError: The run is for another owner.
            InputError: The configuration names no conversation.
        """
        check_owner(config, self.system.owner)
        name = route.conversation_name(config, self._conversation_id)
        conversation = self.system.conversation(name, node_selector=self._selector, **self._options)
        return conversation._conversation, route.lineage_of(config, name)
