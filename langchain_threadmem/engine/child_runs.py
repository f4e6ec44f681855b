"""Child runs: names, tags and parents of model calls and calls of users' code for LangChain's callbacks.

The run that calls a verb (a LangGraph node, a tool, a chain) is in LangChain's context variable, which model
calls read. So callback handlers and LangSmith show these calls below this run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_threadmem.common.type_variables import T
from langchain_threadmem.engine.flow import Call

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

TAGS = ["threadmem", "nostream"]
"""Tags of all child runs. LangGraph's stream of messages leaves out runs with the tag "nostream"."""


def run_config(name: str, conversation: str) -> RunnableConfig:
    """The configuration of a child run.

    Args:
        name: The name without the prefix "threadmem.". The prefix distinguishes the run from its node, since
            LangGraph streams the messages of runs with the name of their node.
        conversation: The conversation, for the metadata; empty if the run concerns several conversations.

    Example:
        >>> run_config("select_thread", "monday")["run_name"]
        'threadmem.select_thread'
    """
    metadata = {"threadmem_conversation": conversation} if conversation else {}
    return {"run_name": f"threadmem.{name}", "tags": [*TAGS], "metadata": metadata}


def call_as_run(
    name: str,
    conversation: str,
    inputs: Mapping[str, Any],
    function: Callable[[], T],
    afunction: Callable[[], Awaitable[T]] | None = None,
) -> Call[T]:
    """The step that calls users' code, as a child run if a run calls the verb.

    Args:
        name, conversation: As for `run_config`.
        inputs: The inputs of the run.
        function, afunction: As for `Call`.
    """
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.config import var_child_runnable_config

    if var_child_runnable_config.get() is None:
        return Call(function, afunction)

    async def ainvoked(_: Mapping[str, Any]) -> T:
        assert afunction is not None
        return await afunction()

    config = run_config(name, conversation)
    runnable: RunnableLambda[Mapping[str, Any], T] = RunnableLambda(
        lambda _: function(), None if afunction is None else ainvoked
    )
    return Call(
        lambda: runnable.invoke(inputs, config),
        None if afunction is None else lambda: runnable.ainvoke(inputs, config),
    )
