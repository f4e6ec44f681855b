"""The owner of a run: which user's memory a call of a graph, a store or a tool reads and writes.

One compiled graph serves many users, and each run names its user: in LangGraph's context
(`graph.invoke(..., context={"user_id": "ada"})`), in the configuration
(`{"configurable": {"user_id": "ada"}}`), or as the user that LangGraph Server has authenticated. An
`OwnerOfRun` names the field or computes the owner.

Example:
    >>> run = Run({"configurable": {"user_id": "ada"}})
    >>> owner_of_run("user_id", run), owner_of_run(lambda run: run.configurable["user_id"], run)
    ('ada', 'ada')
    >>> owner_of_run("tenant", run)
    Traceback (most recent call last):
    langchain_threadmem.errors.OwnerRequiredError: the run has no owner: neither its context nor its ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_threadmem.common.inputs import value_in
from langchain_threadmem.errors import InputError, OwnerRequiredError
from langchain_threadmem.messages.ids import name_of, plain_text

_RUNTIME = "__pregel_runtime"
"""LangGraph's key for its `Runtime` in a configuration."""
_USER = "langgraph_auth_user"
"""LangGraph Server's key for the authenticated user; the key for the user's id ends in `_id`."""


class Run(Mapping[str, Any]):
    """A run of a graph: the argument of a function for `owner=`.

    The run is a mapping with the keys of the configuration and of its `configurable`.

    Args:
        config: The configuration of the call. Keys that its `configurable` lacks are read from the run that
            makes the call, if any.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        from langchain_core.runnables.config import var_child_runnable_config

        outer: Mapping[str, Any] = var_child_runnable_config.get() or {}
        self.configurable: Mapping[str, Any] = {
            **(outer.get("configurable") or {}),
            **((config or {}).get("configurable") or {}),
        }
        """The `configurable` of the run."""
        self._values = {**self.configurable, **outer, **(config or {}), "configurable": self.configurable}

    @property
    def context(self) -> Any:
        """The `context` with which the graph was invoked; `None` without a context."""
        return getattr(self.configurable.get(_RUNTIME), "context", None)

    @property
    def user(self) -> str | None:
        """The identity of the user that LangGraph Server has authenticated."""
        server = getattr(self.configurable.get(_RUNTIME), "server_info", None)
        user = self.configurable.get(_USER) or getattr(server, "user", None)
        identity = value_in(user, "identity")
        return self.configurable.get(f"{_USER}_id") if identity is None else identity

    def field(self, name: str) -> Any:
        """A field of the context, or a key of `configurable`; `None` if both lack it."""
        if name in (_USER, f"{_USER}_id"):
            return self.user
        value = value_in(self.context, name)
        return self.configurable.get(name) if value is None else value

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


OwnerOfRun = str | Callable[[Run], Any]
"""The owner of a run: the name of a field of the context or of `configurable`, or a function of the run."""


class ContextField:
    """The owner of a run from a field of its context or of its `configurable`, for `MemorySystem(owner=...)`.

    Args:
        name: The name of the field; `langgraph_auth_user` for the user that LangGraph Server authenticated.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> system = MemorySystem(owner=ContextField("user_id"), embeddings=False)
    """

    def __init__(self, name: str) -> None:
        self.name = plain_text("a field of the context", name)

    def __call__(self, run: Run) -> Any:
        return run.field(self.name)

    def __repr__(self) -> str:
        return f"ContextField({self.name!r})"


def owner_of_run(owner: OwnerOfRun, run: Run) -> str:
    """The owner of a run.

    Args:
        owner: A field of the context or of `configurable`, or a function of the run. The owner is a text, a
            number, a UUID, a member of an enumeration of these, or a user with an `identity`.
        run: The run.

    Raises:
        OwnerRequiredError: The run names no owner, or names it in another form.
    """
    choose = ContextField(owner) if isinstance(owner, str) else owner
    try:
        value = choose(run)
    except Exception as error:  # The function is a caller's code.
        raise OwnerRequiredError(
            f"the run has no owner: {choose!r} failed with {error!r}; {_NEXT}"
        ) from error
    identity = value_in(value, "identity")
    value = value if identity is None else identity
    if value is None or value == "":
        missing = (
            f"neither its context nor its configurable has {choose.name!r}"
            if isinstance(choose, ContextField)
            else f"{choose!r} returned {value!r}"
        )
        raise OwnerRequiredError(f"the run has no owner: {missing}; {_NEXT}")
    try:
        return name_of("an owner", value, numbers=True)
    except InputError as error:
        raise OwnerRequiredError(f"the run has no owner: {error}; {_NEXT}") from error


_NEXT = (
    "pass context={...} or config={'configurable': {...}} with the owner to the run, or use "
    "system.for_owner(name) outside of a run"
)
