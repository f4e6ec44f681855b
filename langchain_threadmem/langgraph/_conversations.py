"""The conversations of runs, and the memories that integrations search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from langchain_threadmem.chat_memory import ChatMemory, SelectionOptions, check_options
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph._system import (
    ConversationId,
    Lineage,
    check_system,
    checked_owner,
    conversation_name,
    lineage_of,
    system_of_run,
)
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.windows import Window, bound
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.selection.selectors import AnySelector, LinearNodeSelector

ConversationScope = Literal["conversation", "owner"]
"""The scope of a search: one conversation, or all conversations of an owner."""

_ANY = "*"
"""The name of the conversation on which a search of all conversations is called; it has no messages."""


class RunConversations:
    """The conversations of runs, by their configurations.

    Args:
        system: The system of the conversations.
        conversation_id: The conversation, or a function from a run's configuration to its name.
        selector: The selector of each conversation.
        owner: The owner of a run; by default the system's owner.
        shared: Whether other conversations are read too. A conversation that the program names is always
            shared, since the threads of all runs are in it.
        window: The window of each conversation.
        **options: Other options of each conversation.

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
        window: Window | None = None,
        **options: Unpack[SelectionOptions],
    ) -> None:
        check_system(system)
        check_options(node_selector=selector, window=window, **options)
        self._system = system
        self._owner = checked_owner(owner)
        self._conversation_id = conversation_id
        self._selector = selector
        self._shared = shared or isinstance(conversation_id, str)
        self._window, self._options = window, options

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
        name, system = conversation_name(config, self._conversation_id), self.system(config)
        conversation = ThreadedConversation(
            system.runtime,
            name,
            system.settings.context_depth,
            None if self._window is None else bound(self._window, name),
            self._selector or LinearNodeSelector(),
            **self._options,
        )
        return conversation, lineage_of(config, name)


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
    scope: ConversationScope | None,
    owner: OwnerOfRun | None,
) -> None:
    """Refuse arguments that do not name a conversation or an owner."""
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
    memory: ChatMemory | MemorySystem, conversation_id: str | None, scope: ConversationScope | None
) -> tuple[ChatMemory, ConversationScope]:
    """The conversation whose `recall` is called, and the scope."""
    if isinstance(memory, ChatMemory):
        return memory, scope or "conversation"
    if conversation_id is None:
        return memory.conversation(_ANY), "owner"
    return memory.conversation(conversation_id), scope or "conversation"
