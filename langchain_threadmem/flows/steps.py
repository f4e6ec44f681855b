"""Flows: a verb is a generator that yields steps; two short drivers run it, one sync, one async.

A flow says *what* is to be done, in order; a step knows how to do one thing in both worlds. So each verb
reads top to bottom, is written once, and no transaction stays open while a model thinks: one `Sql` step
is one transaction, and the flow holds plain values between steps.

A worked example. `recent` is a verb; `run` and `arun` give the two public methods:

    >>> from langchain_threadmem.flows.runtime import Runtime
    >>> from langchain_threadmem.storage.queries import trees
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
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from langchain_threadmem.core.usage import Purpose
from langchain_threadmem.errors import DriverError
from langchain_threadmem.storage.database import inside_transaction
from langchain_threadmem.storage.queries import embeddings
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.writer import deliverable, guarded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from langchain_threadmem.flows.runtime import Runtime

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


class Embed(Step["NDArray[np.float32]"]):
    """Texts to unit vectors: an array (number of texts, dimensions), or (n, 0) without embeddings."""

    def __init__(self, texts: Sequence[str], *, query: bool = False) -> None:
        self.texts = texts
        self.query = query

    def run(self, runtime: Runtime) -> NDArray[np.float32]:
        made = runtime.embedder.embed(self.texts, query=self.query)
        if made.size and not runtime.embedder.compared:
            self._compare(runtime, made, self._stored(runtime).run(runtime))
        return made

    async def arun(self, runtime: Runtime) -> NDArray[np.float32]:
        made = await runtime.embedder.aembed(self.texts, query=self.query)
        if made.size and not runtime.embedder.compared:
            self._compare(runtime, made, await self._stored(runtime).arun(runtime))
        return made

    def _stored(self, runtime: Runtime) -> Sql[int | None]:
        owner, model = runtime.owner, runtime.model
        return Sql(lambda conn: embeddings.dimensions(conn, owner, model))

    def _compare(self, runtime: Runtime, made: NDArray[np.float32], stored: int | None) -> None:
        """Once for each memory: another model may have made what is stored under the same name."""
        runtime.embedder.expect(stored, made.shape[1])
        runtime.embedder.compared = True


class Search(Step[T]):
    """A question to an index, or a change to it: anything that may take milliseconds outside of SQL."""

    def __init__(self, question: Callable[[], T]) -> None:
        self.question = question

    def run(self, runtime: Runtime) -> T:
        return self.question()


class Ask(Step[T]):
    """A question to somebody else's code: a chat model, a selector, a summarizer.

    Args:
        ask: The sync way.
        aask: The async way; without it, `ask` runs in a thread.
    """

    def __init__(self, ask: Callable[[], T], aask: Callable[[], Awaitable[T]] | None = None) -> None:
        self.ask = ask
        self.aask = aask

    def run(self, runtime: Runtime) -> T:
        return self.ask()

    async def arun(self, runtime: Runtime) -> T:
        return await (asyncio.to_thread(guarded, self.ask) if self.aask is None else self.aask())


class Count(Step[None]):
    """Enter one call of a model into the usage of the memory it was made for."""

    def __init__(self, purpose: Purpose, conversation: str, tokens: Mapping[str, Any] | None) -> None:
        self.call = purpose, conversation, tokens

    def run(self, runtime: Runtime) -> None:
        runtime.usage.add(*self.call)

    async def arun(self, runtime: Runtime) -> None:
        self.run(runtime)


def run(flow: Flow[T] | Step[T], runtime: Runtime) -> T:
    """Drive a flow to its result in the calling thread.

    Raises:
        DriverError: Called inside an `Sql` function, or the flow yields something that is no step.
    """
    if inside_transaction.get():
        raise _refused(flow)
    if isinstance(flow, Step):
        return flow.run(runtime)
    try:
        step = next(flow)
        while True:
            try:
                if not isinstance(step, Step):
                    raise _no_step(step)
                value = step.run(runtime)
            except BaseException as error:
                step = flow.throw(deliverable(error))
            else:
                step = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


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
