"""The owner of a run: which user's memory a call of a graph, a store or a tool reads and writes.

One compiled graph serves many users, and each run names its user: in LangGraph's context
(`graph.invoke(..., context={"user_id": "ada"})`), in the configuration
(`{"configurable": {"user_id": "ada"}}`), or as the user that LangGraph's Agent Server has authenticated. An
`OwnerOfRun` names the field or computes the owner.

A memory of one owner is refused to a run that names another person, where the memory is more than the run's
own thread: see `check_person`.

Example:
    >>> run = Run({"configurable": {"user_id": "ada"}})
    >>> owner_of_run("user_id", run), owner_of_run(lambda run: run.configurable["user_id"], run)
    ('ada', 'ada')
    >>> owner_of_run("tenant", run)
    Traceback (most recent call last):
    langchain_threadmem.errors.OwnerRequiredError: the run has no owner: neither its context nor its ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from langchain_threadmem.common.inputs import value_in
from langchain_threadmem.errors import InputError, OwnerMismatchError, OwnerRequiredError
from langchain_threadmem.messages.ids import name_of, plain_text

RUNTIME = "__pregel_runtime"
"""LangGraph's key for its `Runtime` in a configuration."""
USER = "langgraph_auth_user"
"""The Agent Server's key for the authenticated user."""
_USER_ID = f"{USER}_id"
_HEADER = "x-user-id"
"""The request header that names a user; the Agent Server copies it to `configurable`."""
PERSON_FIELDS = ("user_id", "userId", "langgraph_user_id", _HEADER)
"""The fields of a context, and keys of `configurable`, that name the person of a run, beside the `USER`.

The documentation of LangGraph has `user_id`, templates of LangGraph.js have `userId`, and the default
namespace of langmem's memories has `langgraph_user_id`.
"""
_CONTEXT, _CONFIGURABLE = " in its context", " in its configurable"


class NamedOwner(NamedTuple):
    """A value by which a run names a person or another owner.

    Attributes:
        field: The field of the context, or the key of `configurable`.
        value: The value.
        place: Where the run has the field, for messages of errors.
    """

    field: str
    value: Any
    place: str = ""

    @property
    def name(self) -> str | None:
        """The name of the owner; `None` if the value is no name."""
        try:
            return name_of("an owner", self.value, numbers=True)
        except InputError:
            return None

    def __str__(self) -> str:
        return f"{self.field}={self.value!r}{self.place}"


class Run(Mapping[str, Any]):
    """A run of a graph: the argument of a function for `owner=`.

    The run is a mapping with the keys of the configuration and of its `configurable`.

    Args:
        config: The configuration of the call. Keys that its `configurable` lacks are read from the run that
            makes the call, if any.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        # Without this module, whose import takes long, there is no run.
        module = sys.modules.get("langchain_core.runnables.config")
        outer: Mapping[str, Any] = {} if module is None else module.var_child_runnable_config.get() or {}
        self.configurable: Mapping[str, Any] = {
            **(outer.get("configurable") or {}),
            **((config or {}).get("configurable") or {}),
        }
        """The `configurable` of the run."""
        self._values = {**self.configurable, **outer, **(config or {}), "configurable": self.configurable}

    @property
    def context(self) -> Any:
        """The `context` with which the graph was invoked; `None` without a context."""
        return getattr(self.configurable.get(RUNTIME), "context", None)

    @property
    def user(self) -> str | None:
        """The identity of the user that LangGraph's Agent Server has authenticated.

        Some calls of the server, such as the deletion of a thread, have no configuration; the user is then
        that of the request.
        """
        return _of_user(self._authenticated, "identity") or self.configurable.get(_USER_ID) or None

    @property
    def _authenticated(self) -> Any:
        server = getattr(self.configurable.get(RUNTIME), "server_info", None)
        return self.configurable.get(USER) or getattr(server, "user", None) or _user_of_request()

    def field(self, name: str) -> Any:
        """A field of the context, or a key of `configurable`; `None` if both lack it.

        Raises:
            OwnerMismatchError: The context and `configurable` have different values.
        """
        if name in (USER, _USER_ID):
            return self.user
        values = list(self._named(name))
        _check_agree(values)
        return values[0].value if values else None

    def _named(self, field: str) -> Iterator[NamedOwner]:
        for place, holder in ((_CONTEXT, self.context), (_CONFIGURABLE, self.configurable)):
            value = value_in(holder, field)
            if value is not None and value != "":
                yield NamedOwner(field, value, place)

    @property
    def persons(self) -> list[NamedOwner]:
        """The persons whom the run names, in its context, its `configurable` and by authentication.

        If the Agent Server has authenticated a user, the names that it adds by itself do not count: it copies
        headers of the request that begin with `x-`, and writes a `user_id` that is the user's identity in a
        run and the display name in an update of a state (langgraph-api 0.16.7, `api/threads.py`).
        """
        user = self._authenticated
        if user is None and not self.configurable:
            return []
        identity = _of_user(user, "identity")
        ids = [*([NamedOwner(USER, identity)] if identity else ()), *self._named(_USER_ID)]
        named = [each for field in PERSON_FIELDS for each in self._named(field)]
        if ids:
            added = {_HEADER} if _user_of_request() is None else {_HEADER, "user_id"}
            named = [each for each in named if each.place == _CONTEXT or each.field not in added]
        return [*ids, *named]

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


_SERVER = "langgraph_api.utils"
"""A module of LangGraph's Agent Server."""


def in_agent_server() -> bool:
    """Whether this process is an Agent Server, which also works for no user."""
    return _SERVER in sys.modules


def _user_of_request() -> Any:
    """The user of the request that the Agent Server of this process handles; `None` elsewhere."""
    context = getattr(sys.modules.get(_SERVER), "get_auth_ctx", None)
    return None if context is None else getattr(context(), "user", None)


def _of_user(user: Any, name: str) -> Any:
    """A property of an authenticated user, who may be a text; `None` without the property."""
    try:
        return user if isinstance(user, str) else value_in(user, name)
    except NotImplementedError:  # Starlette's base class of users raises it.
        return None


OwnerOfRun = str | Callable[[Run], Any]
"""The owner of a run: the name of a field of the context or of `configurable`, or a function of the run."""


class ContextField:
    """The owner of a run from a field of its context or of its `configurable`, for `MemorySystem(owner=...)`.

    Args:
        name: The name of the field; `langgraph_auth_user` for the user that LangGraph's Agent Server
            authenticated.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> system = MemorySystem(owner=ContextField("user_id"), embeddings=False)
    """

    def __init__(self, name: str) -> None:
        self.name = plain_text("a field of the context", name)

    def __call__(self, run: Run) -> Any:
        value = run.field(self.name)
        if value is not None and self.name in (*PERSON_FIELDS, USER, _USER_ID):
            _check_agree([NamedOwner(self.name, value), *run.persons])
        return value

    def __repr__(self) -> str:
        return f"ContextField({self.name!r})"


def owner_of_run(owner: OwnerOfRun, run: Run) -> str:
    """The owner of a run.

    Args:
        owner: A field of the context or of `configurable`, or a function of the run. The owner is a text, a
            number, a UUID, a member of an enumeration of these, or a user with an `identity`.

    Raises:
        OwnerRequiredError: The run names no owner, or names it in another form.
        OwnerMismatchError: The owner is a field, and the run names two owners, or names another person in a
            field for persons.
    """
    choose = ContextField(owner) if isinstance(owner, str) else owner
    try:
        value = choose(run)
    except OwnerMismatchError:
        raise
    except Exception as error:  # The function is a caller's code.
        raise OwnerRequiredError(
            f"the run has no owner: {choose!r} failed with {error!r}; {_next(choose, run)}"
        ) from error
    identity = value_in(value, "identity")
    value = value if identity is None else identity
    if value is None or value == "":
        missing = (
            f"neither its context nor its configurable has {choose.name!r}"
            if isinstance(choose, ContextField)
            else f"{choose!r} returned {value!r}"
        )
        raise OwnerRequiredError(f"the run has no owner: {missing}; {_next(choose, run)}")
    try:
        return name_of("an owner", value, numbers=True)
    except InputError as error:
        raise OwnerRequiredError(f"the run has no owner: {error}; {_next(choose, run)}") from error


def _next(choose: Callable[[Run], Any], run: Run) -> str:
    outside = "outside of a run use system.for_owner(name)"
    if not isinstance(choose, ContextField):
        named = next((each for each in run.persons if each.field in PERSON_FIELDS), None)
        if named is None:
            return f"let the function return the name of the owner; {outside}"
        return f"the run has {named}, which run.field({named.field!r}) returns; {outside}"
    given = f"{{{choose.name!r}: ...}}"
    return (
        f"pass config={{'configurable': {given}}}, which get_state, get_state_history and update_state need, "
        f"since they take no context, or context={given} to a run; {outside}"
    )


def check_person(run: Run, owner: str) -> None:
    """Refuse a run that names another person than the owner of a memory.

    Everything that reads more than the thread of the run does this check: searches of all conversations,
    stores, retrievers, tools, and the methods of a `MemorySystem`. What stores the run's own thread, such as
    a saver, does not, so that it can replace another saver.

    Example:
        >>> check_person(Run({"configurable": {"user_id": "ada", "owner": "langchain-ai"}}), "ada")
        >>> check_person(Run({"configurable": {"user_id": "bob"}}), "ada")
        Traceback (most recent call last):
        langchain_threadmem.errors.OwnerMismatchError: the run is for user_id='bob' in its configurable, ...
    """
    for person in run.persons:
        if person.name != owner:
            name = str(person.value) if person.name is None else person.name
            raise OwnerMismatchError(
                f"the run is for {person}, and the memory is that of the owner {owner!r}; pass "
                f"owner={person.field!r} to serve the person of each run, use system.for_owner({name!r}) or "
                f"MemorySystem(url, owner={name!r}) for this run, or pass owner=lambda run: {owner!r} to "
                "share the memory with everyone"
            )


def _check_agree(values: list[NamedOwner]) -> None:
    """Refuse a run that names two owners."""
    for other in values[1:]:
        if other.name != values[0].name:
            raise OwnerMismatchError(
                f"the run names two owners, {values[0]} and {other}; name one of them in the run, or pass a "
                "function that chooses, such as owner=lambda run: run.context.user_id"
            )
