"""Flows: generators of steps, and the two drivers that run them, sync and async.

A flow says *what* is to be done, in order; a step knows how to do one thing in both worlds. So each verb
reads top to bottom, is written once, and no transaction stays open while a model thinks: one `Sql` step
is one transaction, and the flow holds plain values between steps. Reads of one state are a `Snapshot`.

A worked example. `recent` is a verb; `run` and `arun` give the two public methods:

    >>> from langchain_threadmem.engine.runtime import Runtime
    >>> from langchain_threadmem.tree import trees
    >>> def conversations_of(owner: str) -> Flow[list[str]]:
    ...     found = yield from Sql(lambda conn: trees.conversations(conn, owner))
    ...     return [name for name, _ in found]
    >>> runtime = Runtime.open(None, owner="ada")
    >>> run(conversations_of("ada"), runtime)
    []
    >>> import asyncio
    >>> asyncio.run(arun(conversations_of("ada"), runtime))
    []
    >>> runtime.close()

Rules of the house, each held by a test in `tests/unit_tests/test_steps.py`:

- Write `yield from`, never a bare call: a generator that nobody drives does nothing and says nothing.
- Catch `Exception` in a flow, never `BaseException`: cancellation must pass through.
- Ids are assigned before the step that writes them: a cancelled caller's queued write still happens.
- Fill caches with what a step returned, not inside its function: it may be rolled back.
- Do not run a flow inside an `Sql` function; return its values and yield the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from langchain_threadmem.errors import DriverError
from langchain_threadmem.storage.group_commit import deliverable, guarded
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.transaction import inside_transaction

if TYPE_CHECKING:
    from langchain_threadmem.engine.runtime import Runtime


T = TypeVar("T")
Flow = Generator["Step[Any]", Any, T]
"""What a verb returns: a generator of steps, whose value is the verb's result. A verb of one step may return
that step: `yield from` and the drivers take either.
"""


class Step(Generic[T]):
    """One thing to do, in either world. `value = yield from step` gives its result, typed."""

    __slots__ = ()

    def __iter__(self) -> Generator[Step[Any], Any, T]:
        value: T = yield self
        return value

    def run(self, runtime: Runtime) -> T:
        """Do it in the calling thread."""
        raise DriverError(f"{type(self).__name__} has no run()")

    def arun(self, runtime: Runtime) -> Coroutine[Any, Any, T]:
        """Do it without blocking the event loop."""
        return asyncio.to_thread(guarded, self.run, runtime)


class Sql(Step[T]):
    """One transaction.

    Args:
        transaction: What to do in it; it is run again if it was queued with one that failed.
        write: Whether it changes anything.
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


class Snapshot(Step[T]):
    """A flow of reads, all of one state of the database: one read transaction.

    No model may be asked in it, and nothing written: whatever thinks or catches up comes before.

    Args:
        reads: A flow that yields `Sql` steps which read, and `Call` steps without an async way: no models.
    """

    __slots__ = ("reads",)

    def __init__(self, reads: Flow[T]) -> None:
        self.reads = reads

    def run(self, runtime: Runtime) -> T:
        return runtime.database.read(self._in)

    def arun(self, runtime: Runtime) -> Coroutine[Any, Any, T]:
        return runtime.database.aread(self._in)

    def _in(self, conn: Conn) -> T:
        return _driven(self.reads, lambda step: _inside(step, conn))


class Call(Step[T]):
    """A call of code that may take milliseconds outside of SQL: an index, a model, a selector, a summarizer.

    Args:
        function: The sync way.
        afunction: The async way; without it, `function` runs in a thread.
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


def run(flow: Flow[T] | Step[T], runtime: Runtime) -> T:
    """Drive a flow to its result in the calling thread.

    Raises:
        DriverError: Called inside an `Sql` function, or the flow yields something that is no step.
    """
    if inside_transaction.get():
        raise _refused(flow)
    if isinstance(flow, Step):
        return flow.run(runtime)
    return _driven(flow, lambda step: step.run(runtime))


def _driven(flow: Flow[T], done: Callable[[Step[Any]], Any]) -> T:
    """The result of a flow, each step of which is done by a function."""
    try:
        step = next(flow)
        while True:
            try:
                if not isinstance(step, Step):
                    raise _no_step(step)
                value = done(step)
            except BaseException as error:
                step = flow.throw(deliverable(error))
            else:
                step = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def _inside(step: Step[T], conn: Conn) -> T:
    """Do a step of a snapshot."""
    if isinstance(step, Sql) and not step.write:
        found: T = step.transaction(conn)
        return found
    if isinstance(step, Call) and step.afunction is None:
        answer: T = step.function()
        return answer
    raise DriverError(
        f"a snapshot reads: {type(step).__name__} cannot be a step of it; yield it before the snapshot"
    )


def arun(flow: Flow[T] | Step[T], runtime: Runtime) -> Coroutine[Any, Any, T]:
    """Drive a flow to its result on the running event loop; see `run`."""
    if inside_transaction.get():
        raise _refused(flow)
    return flow.arun(runtime) if isinstance(flow, Step) else _arun(flow, runtime)


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


def _refused(flow: Flow[Any] | Step[Any]) -> DriverError:
    if not isinstance(flow, Step):
        flow.close()
    return DriverError(
        f"{getattr(flow, '__name__', flow)!r} was run inside an Sql function; "
        "return the values from the function and yield the next step from the flow"
    )


def _no_step(step: object) -> DriverError:
    return DriverError(
        f"a flow yielded {step!r}, which is no step; write `yield from` before a flow or a step"
    )
