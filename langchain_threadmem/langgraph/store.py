"""`ThreadMemStore`: LangGraph's long-term store over the same database as the conversations.

Values have a namespace and a key, are found by filters and by meaning, and may expire. The methods of this
module translate LangGraph's settings; the flows are in `langgraph.items.verbs`.

Five differences from LangGraph's stores: items are copies, so that a change of an item does not change the
store; no read returns expired items, even before they are removed; an invalid filter or page is an
`InputError`; pages of a semantic search do not repeat items without a vector; an item that is put again keeps
its `created_at`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig, ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from langchain_threadmem.common.inputs import check_no_class, is_number, is_whole
from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import Flow, arun, averb, run, verb
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import ClosedError, InputError, ThreadMemError
from langchain_threadmem.langgraph._system import SystemIntegration, owners_found
from langchain_threadmem.langgraph.items import verbs as store_verbs
from langchain_threadmem.langgraph.items.verbs import Index, StoreContext
from langchain_threadmem.memory_system import MemorySystem

log = logging.getLogger(__package__)
SWEEP_MINUTES = 5.0


class ThreadMemStore(SystemIntegration, BaseStore):
    """A LangGraph store over a `MemorySystem`; each owner reads only their own items.

    Pass it to `compile(store=...)`; all methods are LangGraph's (`put`, `get`, `search`, `delete`,
    `list_namespaces`, their async forms, `batch` and `abatch`). A search returns the oldest items first, or
    with a `query` the most similar. A search with a query compares all vectors below its namespace, which are
    cached for the eight namespaces searched last, and takes about 12 ms for 10,000 items, 80 ms the first
    time. A `filter` reads every item below the namespace, 80 ms for 10,000.

    Args:
        system: The system that stores the items.
        index: The embedded parts of values, for `search(query=...)`: `True` for whole values by the system's
            model, or LangGraph's dictionary of `embed`, `dims` and `fields`, which are all optional. `None`
            for no index.
        ttl: LangGraph's times to live, in minutes: `default_ttl`, `refresh_on_read` and
            `sweep_interval_minutes`.
        owner: The owner of a run, for a graph with many users: the name of a field of the run's context or
            `configurable`, or a function of the run. By default the system's owner, whose items a run that
            names another person neither reads nor writes. With `owner`, a call outside of a run needs the
            store of one owner: `ThreadMemStore(system.for_owner(name))`.
        clock: A function that returns the seconds since 1970, for tests.

    Raises:
        InputError: A setting is invalid.

    Example:
        >>> store = ThreadMemStore(MemorySystem())
        >>> store.put(("users", "ada"), "likes", {"food": "figs"})
        >>> store.get(("users", "ada"), "likes").value
        {'food': 'figs'}
        >>> [item.key for item in store.search(("users",), filter={"food": {"$ne": "plums"}})]
        ['likes']
    """

    supports_ttl = True
    _shared = True

    def __init__(
        self,
        system: MemorySystem,
        *,
        index: IndexConfig | bool | None = None,
        ttl: TTLConfig | None = None,
        owner: OwnerOfRun | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        SystemIntegration.__init__(self, system, owner)
        self.ttl_config = _ttl(ttl)
        self.index_config = dict(index) if isinstance(index, dict) else None
        """The argument `index`, if it is a dictionary."""
        self._index = _index(system, index)
        self._clock = clock
        self._sweeper: tuple[threading.Thread, threading.Event, Future[None]] | None = None

    @classmethod
    def from_conn_string(
        cls,
        url: str | Path | None,
        *,
        owner: str = "user",
        index: IndexConfig | bool | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """A store on the database of a URL; `with` or `async with` closes the database.

        Args:
            url: As for `MemorySystem`.
            owner: The owner of the memory.
            index: As for `ThreadMemStore`.
            ttl: As for `ThreadMemStore`.

        Example:
            >>> with ThreadMemStore.from_conn_string("sqlite://") as store:
            ...     store.setup()
            ...     store.get(("users",), "ada") is None
            True
        """
        return cls._on(url, owner, lambda system: cls(system, index=index, ttl=ttl))

    @property
    def _sweep(self) -> _Sweep:
        return _Sweep(self.system, self._serves_runs, self._clock)

    @property
    def _context(self) -> StoreContext:
        return StoreContext(self._runtime, self._index, self._clock)

    @verb
    def batch(self, ops: Iterable[Op]) -> Flow[list[Result]]:
        """Run operations in one transaction: all or none. Reads return the state before the writes.

        Keys may contain any character; labels are not empty and contain no `.` and no NUL, as in LangGraph's
        stores.

        Raises:
            InvalidNamespaceError: A label breaks these rules.
            InputError: An operation is invalid, or a value cannot be stored exactly.
            OwnerRequiredError: The run names no owner.
            OwnerMismatchError: The run names two owners, or another person than the owner of the store.
            EmbeddingError: A text could not be embedded.
            PersistenceError: The database could not be read or written.
        """
        return store_verbs.batch(self._context, list(ops))

    abatch = averb(batch)

    def sweep_ttl(self) -> int:
        """Remove expired items, which no read returns: of the owner, or of all owners that runs may have.

        If row-level security restricts the database role to one owner at a time, the owners of runs are those
        that this process has used last; the role that owns the tables sweeps all.

        Returns:
            The number of items.
        """
        return self._sweep.run()

    async def asweep_ttl(self) -> int:
        """Async `sweep_ttl`."""
        return await self._sweep.arun()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Call `sweep_ttl` at intervals in a thread; without `ttl` settings the call has no effect.

        Args:
            sweep_interval_minutes: The interval; by default the interval of the settings, or 5.

        Returns:
            A future that is done when the sweeper has ended; `cancel()` ends the sweeper.
        """
        if self._sweeper is not None and self._sweeper[0].is_alive():
            return self._sweeper[2]
        future: Future[None] = Future()
        if self.ttl_config is None:
            future.set_result(None)
            return future
        minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or SWEEP_MINUTES
        end = threading.Event()
        future.add_done_callback(lambda _: end.set())
        weakref.finalize(self, end.set)  # Ends the sweeper when the store is garbage-collected.
        thread = threading.Thread(
            target=_sweep_at_intervals,
            args=(self._sweep, minutes * 60, end, future),
            name="threadmem-sweeper",
            daemon=True,
        )
        self._sweeper = thread, end, future
        thread.start()
        return future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeper.

        Args:
            timeout: Seconds to wait for the end; `None` for no limit.

        Returns:
            Whether the sweeper has ended.
        """
        if self._sweeper is None:
            return True
        thread, end, _ = self._sweeper
        end.set()
        thread.join(timeout)
        return not thread.is_alive()

    def __exit__(self, *exception: object) -> None:
        self.stop_ttl_sweeper()
        super().__exit__(*exception)

    async def __aexit__(self, *exception: object) -> None:
        self.stop_ttl_sweeper()
        await super().__aexit__(*exception)


@dataclass(frozen=True)
class _Sweep:
    """The removal of the expired items of a store; it does not keep the store alive.

    Attributes:
        system: The system.
        of_runs: Whether each run has its own owner.
        clock: A function that returns the seconds since 1970.
    """

    system: MemorySystem
    of_runs: bool
    clock: Callable[[], float]

    def run(self) -> int:
        """Remove the items; returns their number."""
        return sum(run(*self._of(owner)) for owner in self._owners())

    async def arun(self) -> int:
        """Async `run`."""
        return sum([await arun(*self._of(owner)) for owner in await asyncio.to_thread(self._owners)])

    def _owners(self) -> Collection[str]:
        if not self.of_runs:
            return [self.system.owner]
        resources = self.system.resources
        return owners_found(resources, lambda: store_verbs.owners(resources, self.clock()))

    def _of(self, owner: str) -> tuple[Flow[int], Runtime]:
        runtime = self.system.for_owner(owner).runtime
        return store_verbs.sweep(StoreContext(runtime, None, self.clock)), runtime


def _sweep_at_intervals(sweep: _Sweep, seconds: float, end: threading.Event, future: Future[None]) -> None:
    while not end.wait(seconds):
        try:
            sweep.run()
        except ClosedError:
            break
        except ThreadMemError as error:
            log.warning("expired items could not be removed: %s; trying again in %g s", error, seconds)
    if not future.cancelled():
        future.set_result(None)


def _index(system: MemorySystem, index: Any) -> Index | None:
    if index is None or index is False:
        return None
    if index is True:
        return Index(system.resources.embedder)
    if not isinstance(index, dict) or index.keys() - {"embed", "dims", "fields", "distance_type"}:
        raise InputError(f"index is None, True or a dictionary of embed, dims and fields, not {index!r}")
    fields, dims = index.get("fields") or [store_verbs.WHOLE], index.get("dims")
    if not isinstance(fields, list | tuple) or not all(isinstance(field, str) for field in fields):
        raise InputError(f'the fields of an index are a list of paths like ["text"], not {fields!r}')
    if dims is not None and not is_whole(dims, 1):
        raise InputError(f"the dims of an index are an integer of at least 1, not {dims!r}")
    if index.get("distance_type", "cosine") != "cosine":
        raise InputError(f"the distance is cosine, not {index['distance_type']!r}; leave distance_type out")
    if index.get("embed") is None:
        return Index(system.resources.embedder, fields=tuple(fields), dimensions=dims)
    check_no_class("embed", index["embed"])
    if not (isinstance(index["embed"], str | Embeddings) or callable(index["embed"])):
        raise InputError(f"embed is an embedding model, its name or a function, not {index['embed']!r}")
    embeddings = ensure_embeddings(index["embed"])
    function = index["embed"] if isinstance(embeddings, EmbeddingsLambda) else None
    # LangGraph wraps all functions in one class, so the vectors are named by the function.
    model = "" if function is None else f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    return Index(Embedder(embeddings), model, tuple(fields), dims)


def _ttl(ttl: Any) -> TTLConfig | None:
    if ttl is None:
        return None
    settings = TTLConfig.__annotations__
    if not isinstance(ttl, dict) or ttl.keys() - settings.keys():
        raise InputError(f"ttl is None or a dictionary of {', '.join(settings)}, not {ttl!r}")
    for name in ("default_ttl", "sweep_interval_minutes"):
        minutes = ttl.get(name)
        if minutes is not None and not (is_number(minutes) and minutes > 0):
            raise InputError(f"{name} is a number of minutes above 0, or None, not {minutes!r}")
    if ttl.get("omit_expired") is False:
        raise InputError("omit_expired=False: expired items are never shown here; leave it out")
    return cast("TTLConfig", dict(ttl))
