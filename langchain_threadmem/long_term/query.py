"""The verb `query`: a search of short-term memory, long-term memory and external collections.

A query finds at most `k_limit` *core hits* and returns chains: each hit with the messages before and after
the hit, consecutive hits in one chain. Hits in short-term memory are read from storage again, because another
process may have erased, forgotten or superseded them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.common.arrays import Vector
from langchain_threadmem.common.filters.conditions import Condition, FieldFilter, FieldType, parse
from langchain_threadmem.common.inputs import is_number, is_whole
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.index.embed import embed
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.units import queries as unit_queries
from langchain_threadmem.index.units.queries import read_units
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.index.units.visits import Visits, record
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.long_term.sessions import LATEST, resume, switch
from langchain_threadmem.long_term.short_term import ShortTermMemory
from langchain_threadmem.long_term.sources import (
    ExternalSource,
    ShortTermSource,
    SourceQuery,
    Sources,
    long_term_source,
    said_by,
)
from langchain_threadmem.recall.search import ANY, CosineRange, search
from langchain_threadmem.recall.versions import sought_in
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees

UnitIdentity = tuple[str | None, str | None, int, str]
"""The identity of a unit: its collection, group, rank and id."""
FIELDS = {
    "id": FieldType.TEXT,
    "content": FieldType.TEXT,
    "source": FieldType.TEXT,
    "title": FieldType.TEXT,
    "creation_time": FieldType.TIME,
    "end_time": FieldType.TIME,
    "rank": FieldType.NUMBER,
    "group_id": FieldType.TEXT,
    "parent_id": FieldType.TEXT,
    "pre_id": FieldType.TEXT,
    "next_id": FieldType.TEXT,
    "visit_count": FieldType.NUMBER,
    "last_visit": FieldType.NUMBER,
    "never_delete": FieldType.FLAG,
    "stale": FieldType.FLAG,
    "node_id": FieldType.NUMBER,
    "metadata": FieldType.MAP,
}
"""The fields of `filters`, which are the fields of `MemoryUnit`."""


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query with its checked options.

    Attributes:
        text: The text of the query, or `None`.
        vector: The unit vector of the query, or `None` to embed the text.
        condition: The condition on units.
        k: The maximum number of core hits.
        within: The lowest and the highest cosine of a hit.
        context: Whether hits are returned with their neighbours.
        keep: Whether other hits are added to short-term memory.
        external_first: Whether external hits precede hits of the owner's memory.
        short: Whether short-term memory is searched.
        long: Whether long-term memory is searched.
        external: Whether external collections are searched.
        threshold: The cosine from which a hit in short-term memory precedes long-term memory.
        interval: The number of visits after which visits are stored.
    """

    text: str | None
    vector: NDArray[np.float32] | None
    condition: Condition | None
    k: int
    within: CosineRange
    context: bool
    keep: bool
    external_first: bool
    short: bool
    long: bool
    external: bool
    threshold: float
    interval: int


class QueryOptions(TypedDict, total=False):
    """Keyword options of `MemorySystem.query`; for `None` the setting of the system is used."""

    query_vector: Sequence[float] | NDArray[np.floating] | None
    filters: FieldFilter | None
    k_limit: int | None
    search_range: CosineRange | None
    recall_context: bool | None
    add_ltm_to_stm: bool | None
    query_external_first: bool | None
    short_term_only: bool
    long_term_only: bool
    external_only: bool
    threshold_for_stm_before_ltm: float | None
    compat_k: bool


def question(
    runtime: Runtime, settings: MemorySettings, text: str | None, options: QueryOptions
) -> CheckedQuery:
    """Check the arguments of a query, and add the defaults of the settings.

    Raises:
        TypeError: An option is unknown.
        InputError: Options contradict each other, or a value is out of its range.
    """
    if unknown := options.keys() - QueryOptions.__annotations__.keys():
        raise TypeError(f"query() got an unexpected keyword argument {min(unknown)!r}")
    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    query_vector = values.get("query_vector")
    k_limit = values.get("k_limit", settings.k_limit)
    if text is None and query_vector is None:
        raise InputError("a query needs text or query_vector=; pass one of them")
    if text is not None and not isinstance(text, str):
        raise InputError(f"the text of a query is text, not {text!r:.80}; pass query_vector= for a vector")
    threshold = values.get("threshold_for_stm_before_ltm", settings.stm_threshold)
    if not _is_number(threshold):
        raise InputError(
            f"threshold_for_stm_before_ltm={threshold!r} is not a number; pass a cosine such as 0.8"
        )
    if not is_whole(k_limit, 0):
        raise InputError(f"k_limit={k_limit!r} is not an integer of at least 0")
    only = [name for name in ("short_term_only", "long_term_only", "external_only") if values.get(name)]
    if len(only) > 1:
        raise InputError(f"{' and '.join(f'{name}=True' for name in only)} contradict each other; pass one")
    sources = runtime.get(Sources)
    short, long, external = (
        only in ([], [name]) for name in ("short_term_only", "long_term_only", "external_only")
    )
    if only == ["short_term_only"] and sources.short_term is None:
        raise InputError("short_term_only=True, but short-term memory is disabled; call enable_stm() first")
    if only == ["external_only"] and not sources.external:
        raise InputError(
            "external_only=True, but no external collection is connected; call connect_external() first"
        )
    if runtime.encrypted and long:
        raise InputError(
            "a query of long-term memory searches indexes on disk, which an encrypted memory does not have; "
            "pass short_term_only=True, or recall in one conversation at a time"
        )
    if query_vector is not None and only != ["external_only"] and not runtime.get(Indexes).model:
        raise InputError(
            "query_vector= is compared with vectors, but this memory has no embedding model; pass text, "
            "or MemorySystem(embeddings=...)"
        )
    context = values.get("recall_context", settings.recall_context)
    return CheckedQuery(
        text=text,
        vector=None if query_vector is None else _unit_vector(query_vector),
        condition=parse(values.get("filters"), FIELDS),
        k=max(k_limit // 3, 1) if values.get("compat_k") and context and k_limit else k_limit,
        within=_range(values.get("search_range", settings.search_range)),
        context=context,
        keep=values.get("add_ltm_to_stm", settings.add_ltm_to_stm),
        external_first=values.get("query_external_first", settings.query_external_first),
        short=short and sources.short_term is not None,
        long=long,
        external=external and bool(sources.external),
        threshold=threshold,
        interval=settings.visit_update_interval,
    )


def _unit_vector(value: object) -> NDArray[np.float32]:
    try:
        vector = np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"query_vector is a list of numbers, not {value!r:.80}") from error
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 and vector.size else 0.0
    if not 0 < length < float("inf"):
        raise InputError(f"query_vector is a list of finite numbers, not all 0, and not {value!r:.80}")
    return vector / np.float32(length)


def _is_number(value: object) -> bool:
    return is_number(value) and value == value


def _range(value: object) -> CosineRange:
    ends = tuple(value) if isinstance(value, list | tuple) else ()
    numbers = [end for end in ends if _is_number(end)]
    if len(ends) != 2 or len(numbers) + ends.count(None) != 2 or numbers != sorted(numbers):
        raise InputError(
            f"search_range is the lowest and the highest cosine, such as (0.75, None), not {value!r:.80}"
        )
    return ends


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


@telemetry.observed(
    "search_memory",
    lambda runtime, question: {telemetry.QUERY: lambda: question.text or ""},
    lambda chains: {telemetry.COUNT: sum(map(len, chains))},
)
def query(runtime: Runtime, question: CheckedQuery) -> Flow[list[list[MemoryUnit]]]:
    """The units that match a question, as chains, the best first; of equal texts one is a hit."""
    if not question.k:
        return []
    visits = runtime.get(Visits)
    if question.condition is not None:
        yield from visits.settle()  # The condition may depend on visits.
    vector = question.vector
    if vector is None and question.text is not None and question.text.strip():
        embedded = (yield from embed(runtime, [question.text], query=True))[0]
        vector = embedded if embedded.size else None
    memory_hits = yield from _memory_hits(runtime, question, vector)
    external_hits = (yield from _external_hits(runtime, question, vector)) if question.external else []
    first, last = memory_hits, external_hits
    if question.external_first:
        first, last = last, first
    hits = [*first, *_others(last, first)][: question.k]
    if not hits and question.long:
        yield from Sql(lambda conn: trees.check_unsealed(conn, runtime.owner))
    local = [hit.key for hit in hits if hit.collection is None and isinstance(hit.key, int)]
    if question.short or question.long:
        yield from record(runtime, local, question.interval)
    short = runtime.get(Sources).short_term
    if short is not None and question.keep:
        for hit in reversed(hits):
            short.add(hit.key, hit.unit)
            if hit.vector is not None:
                short.fill({hit.key: hit.vector})
    updated = [
        hit._replace(unit=visits.applied(hit.key, hit.unit)) if isinstance(hit.key, int) else hit
        for hit in hits
    ]
    return (yield from chains_of(runtime, updated)) if question.context else [[hit.unit] for hit in updated]


def _others(hits: Sequence[UnitHit], shown: Sequence[UnitHit]) -> list[UnitHit]:
    """The hits whose texts other hits do not have."""
    if not shown:
        return list(hits)
    wordings = {said_by(None, hit.unit).wording for hit in shown}
    return [hit for hit in hits if said_by(None, hit.unit).wording not in wordings]


def _memory_hits(runtime: Runtime, question: CheckedQuery, vector: Vector | None) -> Flow[list[UnitHit]]:
    """Hits in short-term memory, then in long-term memory.

    If both are searched, hits in short-term memory need a cosine of at least `threshold`. Scores by words
    have no threshold, so without a vector long-term memory, which contains all units, is searched alone.
    """
    hits: list[UnitHit] = []
    short = runtime.get(Sources).short_term if question.short else None
    if short is not None and (vector is not None or not question.long):
        low, high = question.within
        if question.long:
            low = max(question.threshold, -1.0 if low is None else low)
        source = ShortTermSource(
            runtime, short, SourceQuery(question.text, vector, question.condition, (low, high))
        )
        names = {collection.name: collection for collection in runtime.get(Sources).external}
        for hit, unit in (yield from search(source, question.k, question.condition)):
            is_local = isinstance(hit.key, int)
            hits.append(UnitHit(hit.key, unit, None if is_local else names.get(unit.group_id or "")))
    if question.long and len(hits) < question.k:
        text = question.text if question.vector is None else None
        within = ANY if vector is None else question.within
        long_term = yield from long_term_source(
            runtime, SourceQuery(text, vector, question.condition, within)
        )
        excluded = {hit.key for hit in hits if isinstance(hit.key, int)}
        missing = question.k - len(hits)
        shown = {said_by(None, hit.unit).wording for hit in hits}
        more = yield from search(
            long_term,
            missing,
            question.condition,
            within,
            excluded,
            sought=None if text is None else sought_in(text, runtime.get(Indexes).language),
            known=(lambda unit: said_by(None, unit).wording in shown) if shown else None,
        )
        hits += [UnitHit(hit.key, unit) for hit, unit in more]
    return hits


def _external_hits(runtime: Runtime, question: CheckedQuery, vector: Vector | None) -> Flow[list[UnitHit]]:
    """Hits in external collections."""
    hits: list[tuple[float, UnitHit]] = []
    within = ANY if vector is None else question.within
    for collection in runtime.get(Sources).external:
        source = ExternalSource(
            runtime, collection, SourceQuery(question.text, vector, question.condition, within)
        )
        for hit, unit in (yield from search(source, question.k, question.condition, within)):
            hit_vector = None if vector is None else source.vector(hit)
            hits.append((hit.score, UnitHit(hit.key, unit, collection, hit_vector)))
    hits.sort(key=lambda pair: -pair[0])
    return [hit for _, hit in hits[: question.k]]


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


def enable(runtime: Runtime, capacity: int, restore: str | None) -> Flow[None]:
    """Enable short-term memory, or change its capacity; add the newest units of a session, if given.

    Raises:
        InputError: The capacity is not an integer of at least 1.
        SessionNotFoundError: No session has this id.
    """
    fresh = runtime.get(Sources).short_term
    if fresh is None:
        fresh = ShortTermMemory[Hashable, MemoryUnit](capacity, lambda unit: unit.content)
    fresh.resize(capacity)
    if restore is not None:
        for key, unit in (yield from _restored(runtime, restore, capacity)):
            fresh.add(key, unit)
    runtime.get(Sources).short_term = fresh


def _restored(runtime: Runtime, session: str, capacity: int) -> Flow[list[tuple[int, MemoryUnit]]]:
    owner = runtime.owner
    if session == LATEST and (yield from resume(runtime, session)) is None:
        return []
    name = yield from switch(runtime, session)

    def read(conn: Conn) -> list[tuple[int, MemoryUnit]]:
        tree = trees.find(conn, owner, name)
        keys = [] if tree is None else unit_queries.latest(conn, tree, capacity)
        pairs = list(zip(keys, read_units(conn, owner, keys), strict=True))
        return sorted(pairs, key=lambda pair: pair[1].creation_time)

    return (yield from Sql(read))
