"""Chains: hits that follow each other, between their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.queries import read_units
from langchain_threadmem.units.unit import MemoryUnit

Place = tuple[str | None, str | None, int, str]
"""What a unit is known by: its collection, its group, its rank and its id."""
Source = ExternalCollection | None


def linked(hits: Sequence[MemoryUnit]) -> list[list[MemoryUnit]]:
    """Hits as chains: those that follow each other are one, in the order in which they were said.

    Chains come in the order of their best hits.

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
        first = unit
        seen = {first.id}
        while (before := by_id.get(first.pre_id or "")) is not None and before.id not in seen:
            first = before
            seen.add(first.id)
        chain = [first]
        while (after := by_id.get(chain[-1].next_id or "")) is not None and after not in chain:
            chain.append(after)
        placed |= {link.id for link in chain}
        chains.append(chain)
    return chains


def chains_of(runtime: Runtime, hits: Sequence[tuple[MemoryUnit, Source]]) -> Flow[list[list[MemoryUnit]]]:
    """Hits as chains with one neighbour at each end, taken from where the hit was found; no unit twice."""
    groups: dict[tuple[str | None, str | None, bool], list[MemoryUnit]] = {}
    sources: dict[str | None, Source] = {}
    for unit, source in hits:
        name = None if source is None else source.name
        sources[name] = source
        groups.setdefault((name, unit.group_id, unit.rank == 0), []).append(unit)
    rank = {_place(None if source is None else source.name, unit): n for n, (unit, source) in enumerate(hits)}
    chains = [
        (name, chain)
        for (name, _, is_message), found in groups.items()
        for chain in (linked(found) if is_message else [[unit] for unit in found])
    ]
    chains.sort(key=lambda pair: min(rank.get(_place(pair[0], unit), len(hits)) for unit in pair[1]))
    shown = {_place(name, unit) for name, chain in chains for unit in chain}
    complete: list[list[MemoryUnit]] = []
    for name, chain in chains:
        if chain[0].rank:
            complete.append(chain)
            continue
        ends = [end for end in (chain[0].pre_id, chain[-1].next_id) if end is not None]
        found = yield from _named(runtime, sources[name], chain[0].group_id, ends)
        neighbours = {unit.id: unit for unit in found if _place(name, unit) not in shown}
        shown |= {_place(name, unit) for unit in neighbours.values()}
        before, after = neighbours.get(chain[0].pre_id or ""), neighbours.get(chain[-1].next_id or "")
        complete.append([*_if(before), *chain, *_if(after)])
    return complete


def _place(name: str | None, unit: MemoryUnit) -> Place:
    return name, unit.group_id, unit.rank, unit.id


def _if(unit: MemoryUnit | None) -> Iterable[MemoryUnit]:
    return () if unit is None else (unit,)


def _named(runtime: Runtime, source: Source, group: str | None, ids: Sequence[str]) -> Flow[list[MemoryUnit]]:
    if source is not None:
        return (yield from Call(lambda: source.named(ids)))
    owner = runtime.owner

    def read(conn: Conn) -> list[MemoryUnit]:
        keys = [key for id in ids for key in unit_queries.messages_named(conn, owner, id, group or "")]
        return read_units(conn, owner, keys)

    return (yield from Sql(read))
