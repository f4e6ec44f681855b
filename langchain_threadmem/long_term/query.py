"""Queries: short-term memory, long-term memory, external collections.

A query finds *core hits*, at most `k_limit`, and returns chains: each hit with the messages before and after
it, hits that follow each other in one chain. What is in short-term memory is read from storage again before
it is shown, so nothing is shown that was erased, forgotten or superseded, wherever that happened.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.filters.conditions import Condition, FieldFilter, Kind, parse
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index.documents import Record, document_of_unit
from langchain_threadmem.index.embed import embed
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.long_term.chains import chains_of
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.long_term.search import search
from langchain_threadmem.long_term.sessions import LATEST, switch
from langchain_threadmem.long_term.short_term import Range, ShortTermMemory
from langchain_threadmem.long_term.sources import Sources
from langchain_threadmem.recall import scoring
from langchain_threadmem.recall.postings import Postings
from langchain_threadmem.recall.question import question_of
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees
from langchain_threadmem.units import memory
from langchain_threadmem.units import queries as unit_queries
from langchain_threadmem.units.queries import read_units
from langchain_threadmem.units.unit import MemoryUnit
from langchain_threadmem.units.visits import Visits, record

FIELDS = {
    "id": Kind.TEXT,
    "content": Kind.TEXT,
    "source": Kind.TEXT,
    "title": Kind.TEXT,
    "creation_time": Kind.TIME,
    "end_time": Kind.TIME,
    "rank": Kind.NUMBER,
    "group_id": Kind.TEXT,
    "parent_id": Kind.TEXT,
    "pre_id": Kind.TEXT,
    "next_id": Kind.TEXT,
    "visit_count": Kind.NUMBER,
    "last_visit": Kind.NUMBER,
    "never_delete": Kind.FLAG,
    "stale": Kind.FLAG,
    "node_id": Kind.NUMBER,
    "metadata": Kind.MAP,
}
"""What a query may filter by: the fields of `MemoryUnit`."""
CANDIDATES_PER_HIT = 8
"""How many texts of an external collection are looked at for each hit, where there is a filter."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, checked.

    Attributes:
        text: In words, or `None`.
        vector: As a unit vector, or `None` to embed the text.
        wanted: Which units count.
        k: How many core hits at most.
        within: The lowest and highest cosine that counts.
        context: Whether neighbours come along.
        keep: Whether hits from elsewhere enter short-term memory.
        external_first: Whether external hits come before one's own.
        short: Whether short-term memory is searched.
        long: Whether long-term memory is.
        external: Whether external collections are.
        threshold: From which cosine on a hit in short-term memory comes first.
        interval: After how many visits they are written down.
    """

    text: str | None
    vector: NDArray[np.float32] | None
    wanted: Condition | None
    k: int
    within: Range
    context: bool
    keep: bool
    external_first: bool
    short: bool
    long: bool
    external: bool
    threshold: float
    interval: int


class Core(NamedTuple):
    """A core hit.

    Attributes:
        key: Of a node, or the name of an external collection and an id in it.
        unit: The unit.
        external: The collection, for a hit that is none of one's own.
        vector: Its vector, if it is at hand.
    """

    key: Hashable
    unit: MemoryUnit
    external: ExternalCollection | None = None
    vector: NDArray[np.float32] | None = None


class QueryOptions(TypedDict, total=False):
    """Options of `MemorySystem.query`; `None` means the default of the settings."""

    query_vector: Sequence[float] | NDArray[np.floating] | None
    filters: FieldFilter | None
    k_limit: int | None
    search_range: Range | None
    recall_context: bool | None
    add_ltm_to_stm: bool | None
    query_external_first: bool | None
    short_term_only: bool
    long_term_only: bool
    external_only: bool
    threshold_for_stm_before_ltm: float | None
    compat_k: bool


def question(runtime: Runtime, settings: MemorySettings, text: str | None, options: QueryOptions) -> Question:
    """Check the arguments of a query, and complete them from the settings.

    Raises:
        TypeError: There is no such option.
        InputError: Options contradict each other, or a value is out of its range.
    """
    if unknown := options.keys() - QueryOptions.__annotations__.keys():
        raise TypeError(f"query() got an unexpected keyword argument {min(unknown)!r}")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    query_vector = given.get("query_vector")
    k_limit = given.get("k_limit", settings.k_limit)
    if text is None and query_vector is None:
        raise InputError("a query needs text or query_vector=; pass one of them")
    if text is not None and not isinstance(text, str):
        raise InputError(f"the text of a query is text, not {text!r:.80}; pass query_vector= for a vector")
    if not isinstance(k_limit, int) or isinstance(k_limit, bool) or k_limit < 0:
        raise InputError(f"k_limit={k_limit!r} is no whole number from 0 up")
    only = [name for name in ("short_term_only", "long_term_only", "external_only") if given.get(name)]
    if len(only) > 1:
        raise InputError(f"{' and '.join(f'{name}=True' for name in only)} contradict each other; pass one")
    sources = runtime.get(Sources)
    short, long, external = (
        only in ([], [name]) for name in ("short_term_only", "long_term_only", "external_only")
    )
    if only == ["short_term_only"] and sources.short_term is None:
        raise InputError("short_term_only=True, and there is no short-term memory; call enable_stm() first")
    if only == ["external_only"] and not sources.external:
        raise InputError("external_only=True, and nothing is connected; call connect_external() first")
    if runtime.encrypted and long:
        raise InputError(
            "a query of long-term memory searches indexes on disk, and what is encrypted is in none; "
            "pass short_term_only=True, or recall in one conversation at a time"
        )
    if query_vector is not None and only != ["external_only"] and not runtime.get(Indexes).model:
        raise InputError(
            "query_vector= is compared with vectors, and this memory has no embedding model; pass text, "
            "or MemorySystem(embeddings=...)"
        )
    context = given.get("recall_context", settings.recall_context)
    return Question(
        text=text,
        vector=None if query_vector is None else _unit_vector(query_vector),
        wanted=parse(given.get("filters"), FIELDS),
        k=max(k_limit // 3, 1) if given.get("compat_k") and context and k_limit else k_limit,
        within=_range(given.get("search_range", settings.search_range)),
        context=context,
        keep=given.get("add_ltm_to_stm", settings.add_ltm_to_stm),
        external_first=given.get("query_external_first", settings.query_external_first),
        short=short and sources.short_term is not None,
        long=long,
        external=external and bool(sources.external),
        threshold=given.get("threshold_for_stm_before_ltm", settings.stm_threshold),
        interval=settings.visit_update_interval,
    )


def _unit_vector(given: object) -> NDArray[np.float32]:
    try:
        vector = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"query_vector is a list of numbers, not {given!r:.80}") from error
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 and vector.size else 0.0
    if not 0 < length < float("inf"):
        raise InputError(f"query_vector is a list of finite numbers, not all 0, and not {given!r:.80}")
    return vector / np.float32(length)


def _range(given: object) -> Range:
    ends = tuple(given) if isinstance(given, list | tuple) else ()
    numbers = [end for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) + ends.count(None) != 2 or numbers != sorted(numbers):
        raise InputError(
            f"search_range is the lowest and highest cosine, like (0.75, None), not {given!r:.80}"
        )
    return ends


def query(runtime: Runtime, asked: Question) -> Flow[list[list[MemoryUnit]]]:
    """The units that fit a question, as chains, the best first."""
    if not asked.k:
        return []
    visits = runtime.get(Visits)
    if asked.wanted is not None:
        yield from visits.settle()  # It may ask for visits.
    vector = asked.vector
    if vector is None and asked.text is not None and asked.text.strip():
        made = (yield from embed(runtime, [asked.text], query=True))[0]
        vector = made if made.size else None
    own = yield from _own(runtime, asked, vector)
    foreign = (yield from _foreign(runtime, asked, vector)) if asked.external else []
    ordered = [*foreign, *own] if asked.external_first else [*own, *foreign]
    hits = list({hit.key: hit for hit in ordered}.values())[: asked.k]
    local = [hit.key for hit in hits if hit.external is None and isinstance(hit.key, int)]
    if asked.short or asked.long:
        yield from record(runtime, local, asked.interval)
    short = runtime.get(Sources).short_term
    if short is not None and asked.keep:
        for hit in reversed(hits):
            short.add(hit.key, hit.unit)
            if hit.vector is not None:
                short.fill({hit.key: hit.vector})
    shown = [
        hit._replace(unit=visits.applied(hit.key, hit.unit)) if isinstance(hit.key, int) else hit
        for hit in hits
    ]
    if not asked.context:
        return [[hit.unit] for hit in shown]
    return (yield from chains_of(runtime, [(hit.unit, hit.external) for hit in shown]))


def _own(runtime: Runtime, asked: Question, vector: NDArray[np.float32] | None) -> Flow[list[Core]]:
    """Hits in short-term memory, then in long-term memory."""
    found: list[Core] = []
    if asked.short:
        found = yield from _short(runtime, asked, vector, alone=not asked.long)
    if asked.long and len(found) < asked.k:
        known = {hit.key for hit in found if isinstance(hit.key, int)}
        missing = asked.k - len(found)
        text = asked.text if asked.vector is None else None
        more = yield from search(runtime, vector, text, missing, asked.within, asked.wanted, known)
        found += [Core(hit.key, hit.unit) for hit in more]
    return found


def _short(
    runtime: Runtime, asked: Question, vector: NDArray[np.float32] | None, *, alone: bool
) -> Flow[list[Core]]:
    """Hits in short-term memory that are still in memory, read again.

    Beside long-term memory only those count that are similar enough to come first. Words have no such
    measure, and long-term memory holds everything that short-term memory does: it ranks alone then.
    """
    short = runtime.get(Sources).short_term
    assert short is not None
    if vector is None and not alone:
        return []
    yield from _fill(runtime, short)
    low, high = asked.within
    while True:
        if vector is None:
            words = question_of(asked.text or "", runtime.get(Indexes).language)
            gist_of = partial(document_of_unit, language=runtime.get(Indexes).language)
            scored = short.match(words, asked.k, gist_of, asked.wanted)
        else:
            floor = low if alone else max(asked.threshold, -1.0 if low is None else low)
            scored = short.search(vector, asked.k, (floor, high), asked.wanted)
        keys = [hit.key for hit in scored if isinstance(hit.key, int)]
        fresh = yield from Sql(lambda conn: _still(conn, runtime.owner, keys))  # noqa: B023 - driven before the next turn
        gone = [key for key in keys if key not in fresh]
        for key in gone:
            short.drop(key)
        changed = [
            key for key, unit in fresh.items() if asked.wanted is not None and not asked.wanted.holds(unit)
        ]
        for key, unit in fresh.items():
            short.add(key, unit)
        if not gone and not changed:
            names = {collection.name: collection for collection in runtime.get(Sources).external}
            return [
                Core(hit.key, fresh[hit.key])
                if isinstance(hit.key, int)
                else Core(hit.key, held, names.get(held.group_id or ""))
                for hit in scored
                if (held := short.unit(hit.key)) is not None
            ]


def _still(conn: Conn, owner: str, keys: Sequence[int]) -> dict[int, MemoryUnit]:
    there = memory.present(conn, owner, keys)
    wanted = [key for key in keys if key in there]
    return dict(zip(wanted, read_units(conn, owner, wanted), strict=True))


def _fill(runtime: Runtime, short: ShortTermMemory[Hashable, MemoryUnit]) -> Flow[None]:
    """Vectors for the units in short-term memory that have none: those that are stored, else new ones."""
    model = runtime.get(Indexes).model
    bare = short.bare()
    if not bare or not model:
        return
    local = [key for key in bare if isinstance(key, int)]
    known = yield from Sql(lambda conn: embeddings.by_keys(conn, model, local))
    short.fill({key: known[key] for key in known})
    units_left = [(key, unit) for key in short.bare() if (unit := short.unit(key)) is not None]
    if units_left:
        made = yield from embed(runtime, [unit.content for _, unit in units_left])
        short.fill({key: vector for (key, _), vector in zip(units_left, made, strict=True)})


def _foreign(runtime: Runtime, asked: Question, vector: NDArray[np.float32] | None) -> Flow[list[Core]]:
    """Hits in external collections, which are only read."""
    found: list[tuple[float, Core]] = []
    for collection in runtime.get(Sources).external:
        if vector is None:
            found += yield from _foreign_words(runtime, collection, asked)
        else:
            found += yield from _foreign_vectors(collection, asked, vector)
    found.sort(key=lambda pair: -pair[0])
    return [hit for _, hit in found[: asked.k]]


def _foreign_vectors(
    collection: ExternalCollection, asked: Question, vector: NDArray[np.float32]
) -> Flow[list[tuple[float, Core]]]:
    low, high = asked.within
    count = asked.k if asked.wanted is None and high is None else asked.k * CANDIDATES_PER_HIT
    while True:
        near = yield from Call(lambda: collection.search(vector, count))  # noqa: B023 - driven before the next turn
        hits = [
            (hit.similarity, Core((collection.name, hit.unit.id), hit.unit, collection, hit.vector))
            for hit in near
            if (low is None or hit.similarity >= low)
            and (high is None or hit.similarity <= high)
            and (asked.wanted is None or asked.wanted.holds(hit.unit))
        ]
        past = bool(near) and low is not None and near[-1].similarity < low
        if len(hits) >= asked.k or len(near) < count or past:
            return hits
        count *= 4


def _foreign_words(
    runtime: Runtime, collection: ExternalCollection, asked: Question
) -> Flow[list[tuple[float, Core]]]:
    """What Chroma finds by letters, ranked as texts that stand alone: nothing else is kept of them."""
    language = runtime.get(Indexes).language
    words = question_of(asked.text or "", language)
    # Most stems begin their words, and a text that holds the word then holds the stem.
    letters = [term if word.startswith(term) else word for term, word in words.terms.items()]
    most = asked.k * CANDIDATES_PER_HIT * CANDIDATES_PER_HIT
    units = yield from Call(lambda: collection.holding(letters, most))
    kept = [document_of_unit(unit, language) for unit in units]
    held = Postings(words.terms)
    held.add(Record(n, n, None, "human", True, gist) for n, gist in enumerate(kept, 1))
    parts = scoring.parts_alone(held, words)
    return [
        (score, Core((collection.name, unit.id), unit, collection))
        for unit, own, score in zip(units, parts.own, scoring.alone(parts).tolist(), strict=True)
        if own > 0 and (asked.wanted is None or asked.wanted.holds(unit))
    ]


def enable(runtime: Runtime, capacity: int, restore: str | None) -> Flow[None]:
    """Begin short-term memory, or change its capacity; a session's newest units may be the first in it.

    Raises:
        InputError: The capacity is no number from 1 up.
        SessionNotFoundError: There is no such session.
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
    if session == LATEST:
        latest = yield from Sql(lambda conn: trees.latest(conn, owner))
        if latest is None:
            return []
        session = latest
    name = yield from switch(runtime, session)

    def read(conn: Conn) -> list[tuple[int, MemoryUnit]]:
        tree = trees.find(conn, owner, name)
        keys = [] if tree is None else unit_queries.latest(conn, tree, capacity)
        found = list(zip(keys, read_units(conn, owner, keys), strict=True))
        return sorted(found, key=lambda pair: pair[1].creation_time)

    return (yield from Sql(read))
