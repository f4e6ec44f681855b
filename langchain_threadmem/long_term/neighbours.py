"""The neighbours of hits: a query returns each hit in a chain with the messages before and after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.long_term.external import ExternalCollection

UnitIdentity = tuple[str | None, str | None, int, str]
"""The identity of a unit: its collection, group, rank and id."""


class UnitHit(NamedTuple):
    """A unit that matches a query.

    Attributes:
        key: The key of the node; for an external text the name of its collection and its id.
        unit: The unit.
        collection: The external collection of the unit, if any.
        vector: The unit vector of the unit, if it was read.
    """

    key: Hashable
    unit: MemoryUnit
    collection: ExternalCollection | None = None
    vector: NDArray[np.float32] | None = None

    @property
    def source(self) -> str | None:
        """The name of the external collection, if any."""
        return None if self.collection is None else self.collection.name


def linked(hits: Sequence[MemoryUnit]) -> list[list[MemoryUnit]]:
    """Hits as chains of consecutive messages, oldest first; the chains are in the order of their best hits.

    Each hit is in one chain, even if the links of the messages of an external collection disagree.

    Example:
        >>> first, second = MemoryUnit("a", "", next_id="b"), MemoryUnit("b", "", pre_id="a", next_id="c")
        >>> other = MemoryUnit("x", "")
        >>> [[unit.id for unit in chain] for chain in linked([second, other, first])]
        [['a', 'b'], ['x']]
    """
    by_id = {unit.id: unit for unit in hits}
    chains: list[list[MemoryUnit]] = []
    placed: set[str] = set()
    for unit in hits:
        if unit.id in placed:
            continue
        placed.add(unit.id)
        chain = deque([unit])
        while (before := by_id.get(chain[0].pre_id or "")) is not None and before.id not in placed:
            chain.appendleft(before)
            placed.add(before.id)
        while (after := by_id.get(chain[-1].next_id or "")) is not None and after.id not in placed:
            chain.append(after)
            placed.add(after.id)
        chains.append(list(chain))
    return chains


def chains_of(runtime: Runtime, hits: Sequence[UnitHit]) -> Flow[list[list[MemoryUnit]]]:
    """Hits as chains with one neighbour at each end, from the memory or collection of the hit.

    No unit is in two chains.
    """
    groups: dict[tuple[str | None, str | None, bool], list[MemoryUnit]] = {}
    place: dict[UnitIdentity, int] = {}
    for n, hit in enumerate(hits):
        source, unit = hit.source, hit.unit
        groups.setdefault((source, unit.group_id, unit.rank == 0), []).append(unit)
        place.setdefault(_place(source, unit), n)
    chains = [
        (name, chain)
        for (name, _, is_message), units in groups.items()
        for chain in (linked(units) if is_message else [[unit] for unit in units])
    ]
    chains.sort(key=lambda pair: min(place[_place(pair[0], unit)] for unit in pair[1]))
    ends = [
        hits[place[_place(name, unit)]]
        for name, chain in chains
        for unit in (chain[0], chain[-1])
        if not unit.rank
    ]
    neighbours = yield from _neighbours(runtime, ends)
    included = set(place)
    complete: list[list[MemoryUnit]] = []
    for name, chain in chains:
        before = after = None
        if not chain[0].rank:
            before = neighbours.get((name, chain[0].group_id, chain[0].pre_id))
            after = neighbours.get((name, chain[0].group_id, chain[-1].next_id))
        added = [unit for unit in (before, after) if unit is not None and _place(name, unit) not in included]
        included |= {_place(name, unit) for unit in added}
        complete.append(
            [*(unit for unit in added if unit is before), *chain, *(unit for unit in added if unit is after)]
        )
    return complete


def _place(name: str | None, unit: MemoryUnit) -> UnitIdentity:
    return name, unit.group_id, unit.rank, unit.id


def _neighbours(
    runtime: Runtime, ends: Sequence[UnitHit]
) -> Flow[dict[tuple[str | None, str | None, str | None], MemoryUnit]]:
    """The messages before and after messages, by collection, group and id."""
    keys = [hit.key for hit in ends if hit.collection is None and isinstance(hit.key, int)]
    pairs: list[tuple[str | None, MemoryUnit]] = []
    if keys:
        units = yield from Sql(
            lambda conn: read_units(conn, runtime.owner, unit_queries.neighbours(conn, keys))
        )
        pairs += [(None, unit) for unit in units]
    for collection in {hit.collection for hit in ends}:
        if collection is not None:
            ids = [
                id
                for hit in ends
                if hit.collection is collection
                for id in (hit.unit.pre_id, hit.unit.next_id)
                if id is not None
            ]
            units = yield from Call(lambda: collection.named(ids))  # noqa: B023 - driven before the next turn
            pairs += [(collection.name, unit) for unit in units]
    return {(name, unit.group_id, unit.id): unit for name, unit in pairs}
