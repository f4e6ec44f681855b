"""Flows: generators of steps, and the drivers that run a flow sync or async.

A flow yields steps in order, and each step has a sync and an async implementation, so a verb is written once.
An `Sql` step is one transaction. A flow has only plain values between its steps, so no transaction is open
while a model answers. A `snapshot` reads one state of the database in several steps.

An example: `conversations_of` is a flow, and `run` and `arun` drive it to its result.

    >>> from langchain_threadmem.engine.runtime import Runtime
    >>> from langchain_threadmem.tree import trees
    >>> def conversations_of(owner: str) -> Flow[list[str]]:
    ...     rows = yield from Sql(lambda conn: trees.conversations(conn, owner))
    ...     return [name for name, _ in rows]
    >>> runtime = Runtime.open(None, owner="ada")
    >>> run(conversations_of("ada"), runtime)
    []
    >>> import asyncio
    >>> asyncio.run(arun(conversations_of("ada"), runtime))
    []
    >>> runtime.close()

In a class with a `_runtime`, `verb` makes the sync method of a flow method, and `averb` the async method.

    >>> class Owner:
    ...     def __init__(self, name: str) -> None:
    ...         self._runtime = Runtime.open(None, owner=name)
    ...
    ...     @verb
    ...     def conversations(self) -> Flow[list[str]]:
    ...         '''The names of the conversations.'''
    ...         return (yield from conversations_of(self._runtime.owner))
    ...
    ...     aconversations = averb(conversations)
    >>> ada = Owner("ada")
    >>> ada.conversations(), asyncio.run(ada.aconversations())
    ([], [])
    >>> ada._runtime.close()

Rules, each checked by `tests/unit_tests/test_steps.py` or `test_flow_rules.py`:

- Write `yield from` before a flow or a step: a generator that is not driven does nothing.
- Catch `Exception` in a flow, never `BaseException`, which includes cancellation.
- Assign ids before the step that writes them: a queued write is executed even if its caller is cancelled.
- Fill caches with the result of a step, not inside its function: the transaction may be rolled back.
- Do not run a flow inside an `Sql` function; return its values and yield the next step.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import wraps
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol, TypeVar

from langchain_threadmem.common.type_variables import P, T
from langchain_threadmem.errors import DriverError, PersistenceError, ThreadMemError
from langchain_threadmem.storage.group_commit import deliverable, guarded
from langchain_threadmem.storage.transaction import inside_transaction

if TYPE_CHECKING:
    from langchain_threadmem.engine.runtime import Runtime
    from langchain_threadmem.storage.statements import Conn


_OF_DAMAGE = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError),
    OSError,  # by a time that is out of range
    struct.error,
)
"""The errors that values of the wrong type or range raise, of which a damaged row may be the cause."""


class Step(Generic[T]):
    """One operation, sync or async; `value = yield from step` returns its typed result."""

    __slots__ = ()

    def __iter__(self) -> Generator[Step[Any], Any, T]:
        value: T = yield self
        return value

    def run(self, runtime: Runtime) -> T:
        """Run the step in the calling thread."""
        raise DriverError(f"{type(self).__name__} has no run()")

    def arun(self, runtime: Runtime) -> Coroutine[Any, Any, T]:
        """Run the step without blocking the event loop."""
        raise DriverError(f"{type(self).__name__} has no arun()")


Flow = Generator[Step[Any], Any, T]
"""A generator of steps; its return value is the result."""
Steps = Flow[T] | Step[T]
"""A flow or a single step: `yield from` and the drivers accept both."""


class Sql(Step[T]):
    """One transaction.

    Args:
        transaction: The function that runs in the transaction. A queued write may run twice, if another write
            of its group fails.
        write: Whether the function writes.
    """

    __slots__ = ("transaction", "write")

    def __init__(self, transaction: Callable[[Conn], T], *, write: bool = False) -> None:
        self.transaction = transaction
        self.write = write

    def run(self, runtime: Runtime) -> T:
        if self.write:
            return runtime.database.write(self.transaction)
        return runtime.database.read(self.transaction)

    def arun(self, runtime: Runtime) -> Coroutine[Any, Any, T]:
        if self.write:
            return runtime.database.awrite(self.transaction)
        return runtime.database.aread(self.transaction)


class Call(Step[T]):
    """A call of code that may take milliseconds outside of SQL: an index, a model, a selector, a summarizer.

    Args:
        function: The sync implementation.
        afunction: The async implementation; without it, `function` runs in a thread.
    """

    __slots__ = ("afunction", "function")

    def __init__(
        self, function: Callable[[], T], afunction: Callable[[], Awaitable[T]] | None = None
    ) -> None:
        self.function = function
        self.afunction = afunction

    def run(self, runtime: Runtime) -> T:
        return self.function()

    async def arun(self, runtime: Runtime) -> T:
        if self.afunction is not None:
            return await self.afunction()
        return await asyncio.to_thread(guarded, self.function)


def snapshot(reads: Flow[T]) -> Sql[T]:
    """The step that runs a flow of reads in one read transaction, so that all of them read one state.

    Args:
        reads: A flow of `Sql` steps that read and of `Call` steps without `afunction`. Steps that write or
            call a model come before the snapshot.

    Raises:
        DriverError: The flow yields another step.
    """
    return Sql(lambda conn: _driven(reads, lambda step: _inside(step, conn)))


def _inside(step: Step[Any], conn: Conn) -> object:
    """The result of a step of a snapshot."""
    if isinstance(step, Sql) and not step.write:
        return step.transaction(conn)
    if isinstance(step, Call) and step.afunction is None:
        return step.function()
    raise DriverError(
        f"a snapshot reads: {type(step).__name__} cannot be a step of it; yield it before the snapshot"
    )


def run(flow: Steps[T], runtime: Runtime) -> T:
    """Drive a flow to its result in the calling thread.

    Raises:
        DriverError: The call is inside an `Sql` function, or the flow yields a value that is not a step.
    """
    if inside_transaction.get():
        raise _refused(flow)
    try:
        if isinstance(flow, Step):
            return flow.run(runtime)
        return _driven(flow, methodcaller("run", runtime))
    except _OF_DAMAGE as error:
        _raise_damage(error, None if isinstance(error, ThreadMemError) else runtime.database.damage())
        raise


def _driven(flow: Flow[T], do: Callable[[Step[Any]], object]) -> T:
    """The result of a flow; `do` returns the result of each step."""
    try:
        step = next(flow)
        while True:
            try:
                if not isinstance(step, Step):
                    raise _no_step(step)
                value = do(step)
            except BaseException as error:
                step = flow.throw(deliverable(error))
            else:
                step = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def arun(flow: Steps[T], runtime: Runtime) -> Coroutine[Any, Any, T]:
    """Drive a flow to its result on the running event loop; see `run`."""
    if inside_transaction.get():
        raise _refused(flow)
    return _typed(flow.arun(runtime) if isinstance(flow, Step) else _arun(flow, runtime), runtime)


async def _typed(running: Coroutine[Any, Any, T], runtime: Runtime) -> T:
    try:
        return await running
    except _OF_DAMAGE as error:
        if not isinstance(error, ThreadMemError):
            _raise_damage(error, await asyncio.to_thread(runtime.database.damage))
        raise


def _raise_damage(error: Exception, damage: str | None) -> None:
    """Raise damage of the database in place of an error that the damage may have caused."""
    if damage:
        raise PersistenceError(
            f"{damage}, and what was read cannot be used ({type(error).__name__}); run verify() to see all "
            "damage, or restore a backup"
        ) from error


async def _arun(flow: Flow[T], runtime: Runtime) -> T:
    try:
        step = next(flow)
        while True:
            try:
                if not isinstance(step, Step):
                    raise _no_step(step)
                value = await step.arun(runtime)
            except BaseException as error:
                step = flow.throw(deliverable(error))
            else:
                step = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def _refused(flow: Steps[Any]) -> DriverError:
    if not isinstance(flow, Step):
        flow.close()
    return DriverError(
        f"{getattr(flow, '__name__', flow)!r} was run inside an Sql function; "
        "return the values from the function and yield the next step from the flow"
    )


def _no_step(step: object) -> DriverError:
    return DriverError(
        f"a flow yielded {step!r}, which is not a step; write `yield from` before a flow or a step"
    )


class HasRuntime(Protocol):
    """A class whose methods may be verbs."""

    @property
    def _runtime(self) -> Runtime: ...


HasRuntimeT = TypeVar("HasRuntimeT", bound=HasRuntime)


def verb(flow: Callable[Concatenate[HasRuntimeT, P], Steps[T]]) -> Callable[Concatenate[HasRuntimeT, P], T]:
    """A method that runs a flow method, with the parameters and the docstring of the flow method.

    For type checkers and `inspect.signature` the method returns the result of the flow.
    """
    # The annotation "Flow[list[str]]" becomes "list[str]".
    flow.__annotations__["return"] = flow.__annotations__["return"].partition("[")[2].removesuffix("]")

    @wraps(flow)
    def method(self: HasRuntimeT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        choose: Callable[..., HasRuntimeT] | None = getattr(self, "_for_call", None)
        target = self if choose is None else choose(*args, **kwargs)
        return run(flow(target, *args, **kwargs), target._runtime)

    return method


def averb(
    method: Callable[Concatenate[HasRuntimeT, P], T],
) -> Callable[Concatenate[HasRuntimeT, P], Coroutine[Any, Any, T]]:
    """The async form of a method that `verb` made, whose name has the prefix `a`."""
    flow: Callable[Concatenate[HasRuntimeT, P], Steps[T]] = method.__wrapped__  # type: ignore[attr-defined]

    @wraps(flow)
    async def amethod(self: HasRuntimeT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        choose: Callable[..., HasRuntimeT] | None = getattr(self, "_for_call", None)
        target = self if choose is None else choose(*args, **kwargs)
        return await arun(flow(target, *args, **kwargs), target._runtime)

    amethod.__name__ = f"a{method.__name__}"
    amethod.__qualname__ = method.__qualname__.removesuffix(method.__name__) + amethod.__name__
    # Examples show the sync form.
    description = (method.__doc__ or "").partition("\n        Example:")[0].rstrip()
    amethod.__doc__ = f"Async `{method.__name__}`.\n\n        {description}\n        "
    return amethod
