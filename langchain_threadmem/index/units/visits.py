"""Recall counts and rounds of units, written in batches.

A query is a read and does not wait for a writer. Its visits are collected in memory, and written in batches
and before each read that depends on them. A crash loses the visits that are not written yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from langchain_threadmem.common import forking
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.index.units import memory
from langchain_threadmem.index.units.memory import Visit
from langchain_threadmem.index.units.unit import MemoryUnit


class Visits(Component):
    """The visits of one owner that are not written yet."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._lock = forking.lock()
        self._pending: dict[int, Visit] = {}
        self.round = 0
        """The number of the last query; 0 until it is read."""

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, keys: Iterable[int], base: int) -> int:
        """Count a query that recalled units, and return its round.

        Args:
            keys: The keys of the units.
            base: The last stored round.
        """
        with self._lock:
            self.round = max(self.round, base) + 1
            self._put({key: Visit(1, self.round) for key in keys})
            return self.round

    def take(self) -> dict[int, Visit]:
        """Remove and return the visits that are not written yet."""
        with self._lock:
            visits, self._pending = self._pending, {}
            return visits

    def put_back(self, visits: Mapping[int, Visit]) -> None:
        """Add visits again after a failed write."""
        with self._lock:
            self._put(visits)

    def applied(self, key: int, unit: MemoryUnit) -> MemoryUnit:
        """A unit with the visits that are not written yet."""
        visit = self._pending.get(key)
        if visit is None:
            return unit
        return replace(unit, visit_count=unit.visit_count + visit.times, last_visit=visit.round)

    @property
    def unsettled(self) -> bool:
        return bool(self._pending)

    def settle(self) -> Flow[None]:
        """Write all visits."""
        visits = self.take()
        if not visits:
            return
        owner, round_ = self.runtime.owner, self.round
        try:
            yield from Sql(lambda conn: memory.visit(conn, owner, visits, round_), write=True)
        except Exception:
            self.put_back(visits)
            raise

    def _put(self, visits: Mapping[int, Visit]) -> None:
        for key, (times, round) in visits.items():
            before = self._pending.get(key, Visit(0, 0))
            self._pending[key] = Visit(before.times + times, max(before.round, round))


def record(runtime: Runtime, keys: Sequence[int], interval: int) -> Flow[None]:
    """Count a query that recalled units; write the visits of `interval` units together.

    A read-only memory counts no visits.
    """
    if runtime.read_only:
        return
    visits, owner = runtime.get(Visits), runtime.owner
    base = visits.round or (yield from Sql(lambda conn: memory.current_round(conn, owner)))
    visits.add(keys, base)
    if len(visits) >= interval:
        yield from visits.settle()
