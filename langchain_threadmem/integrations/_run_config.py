"""The conversation and the branch of a LangGraph run, by its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_threadmem.errors import InputError
from langchain_threadmem.tree.run_lineage import Lineage

REPLACED = "__threadmem_replaced"
"""The field of `configurable` in which `ThreadMemSaver.fork` names the message that a run replaces."""


def conversation_name(
    config: Mapping[str, Any], given: str | Callable[[Mapping[str, Any]], str] | None
) -> str:
    """The conversation of a LangGraph run: the name that the caller gives, else the run's `thread_id`.

    Args:
        config: The run's configuration.
        given: A name, or a function from the configuration to a name.

    Raises:
        InputError: There is neither a name nor a `thread_id`.

    Example:
        >>> conversation_name({"configurable": {"thread_id": "first"}}, None)
        'first'
    """
    if given is not None:
        return given(config) if callable(given) else given
    thread_id = config.get("configurable", {}).get("thread_id")
    if thread_id is None or thread_id == "":
        raise InputError(
            f"the run has no conversation: its thread_id is {thread_id!r}; pass "
            'config={"configurable": {"thread_id": "..."}} when you invoke the graph, or conversation_id=... '
            "when you build it"
        )
    return str(thread_id)


def lineage_of(config: Mapping[str, Any], conversation: str) -> Lineage:
    """The branch that a LangGraph run continues, by its configuration.

    Example:
        >>> lineage_of({"configurable": {"thread_id": "first"}, "metadata": {"checkpoint_id": "1ef"}}, "all")
        Lineage(thread='first', rewound=True, replaced='')
    """
    thread = str(config.get("configurable", {}).get("thread_id") or "")
    # LangGraph stores the checkpoint that a caller names only in the metadata.
    rewound = bool((config.get("metadata") or {}).get("checkpoint_id"))
    replaced = config.get("configurable", {}).get(REPLACED, "") if rewound else ""
    return Lineage("" if thread == conversation else thread, rewound, replaced)
