"""Helpers for tests of the store: calls of its sync or async methods, and a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from langgraph.store.base import SearchItem

from langchain_threadmem import MemorySystem, ThreadMemStore

NS = ("users", "ada")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def minutes(self, minutes: float) -> None:
        self.now += 60 * minutes


class Calls:
    """Calls `store.verb(...)` or `await store.averb(...)`."""

    def __init__(self, store: ThreadMemStore, loop: asyncio.AbstractEventLoop | None) -> None:
        self.store = store
        self._loop = loop

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if self._loop is None:
            found: Callable[..., Any] = getattr(self.store, verb)
            return found
        loop, twin = self._loop, getattr(self.store, f"a{verb}")
        return lambda *arguments, **options: loop.run_until_complete(twin(*arguments, **options))


Make = Callable[..., Calls]


def made(mode: str, system: MemorySystem, clock: Clock) -> Iterator[Make]:
    """Makes stores, and closes those that were used asynchronously."""
    loop = asyncio.new_event_loop() if mode == "async" else None
    opened: list[MemorySystem] = []

    def build(on: MemorySystem = system, **options: Any) -> Calls:
        opened.append(on)
        return Calls(ThreadMemStore(on, clock=clock, **options), loop)

    yield build
    if loop is not None:
        for each in opened:
            loop.run_until_complete(each.aclose())
        loop.close()


def keys(found: list[SearchItem]) -> list[str]:
    """The keys of the items that a search found."""
    return [item.key for item in found]
