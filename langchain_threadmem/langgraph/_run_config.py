"""The owner, the conversation and the branch of a LangGraph run, by its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph.routing.lineage import Lineage
from langchain_threadmem.messages.ids import name_of

if TYPE_CHECKING:
    from langchain_threadmem.memory_system import MemorySystem

ConversationId = str | Callable[[Mapping[str, Any]], str] | None
"""The conversation of a run: its name, a function from the run's configuration; `None`: the `thread_id`."""
REPLACED = "__threadmem_replaced"
"""The field of `configurable` in which `ThreadMemSaver.fork` names the message that a run replaces."""


def conversation_name(config: Mapping[str, Any], given: ConversationId) -> str:
    """The conversation of a LangGraph run: the name that the caller gives, else the run's `thread_id`.

    Args:
        config: The run's configuration.
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
        system: The system of the integration.
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
