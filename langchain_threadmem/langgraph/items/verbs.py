"""Verbs: batches of LangGraph's store operations; message lists."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from langchain_core.messages import BaseMessage
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from langchain_threadmem.common.arrays import Vector
from langchain_threadmem.common.cache import LruCache
from langchain_threadmem.common.filters import store
from langchain_threadmem.engine import telemetry
from langchain_threadmem.engine.embedder import Embedder
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Component, Resources, Runtime
from langchain_threadmem.errors import EmbeddingError, InputError
from langchain_threadmem.langgraph.items import namespaces
from langchain_threadmem.langgraph.items import queries as item_queries
from langchain_threadmem.langgraph.items.queries import ItemRow, ItemVectors, NewItem
from langchain_threadmem.messages import typed_json
from langchain_threadmem.messages.codec import decode, encode
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree.nodes import EVERYTHING

log = logging.getLogger(__package__)

WHOLE = "$"
"""The path of the whole value."""
ROWS_AT_ONCE = 500
Name = tuple[bytes, bytes]
"""The encoded namespace and key of an item."""
VectorsKey = tuple[tuple[bytes, bytes], str, int]
"""The key of cached vectors: a range of namespaces, the model, and their dimensions."""
CACHED_PLACES = 8
"""The number of places whose vectors are cached; 1.5 kB for each text, with 384 dimensions."""


@dataclass(frozen=True, slots=True)
class Index:
    """The fields of an item that are embedded, and the model.

    Attributes:
        embedder: The model.
        model: The name under which vectors are stored; empty for the name of the embedder.
        fields: Paths into a value, in LangGraph's syntax.
        dimensions: The required dimensions of vectors; `None` for the dimensions of the model.
    """

    embedder: Embedder
    model: str = ""
    fields: tuple[str, ...] = (WHOLE,)
    dimensions: int | None = None

    @property
    def name(self) -> str:
        """The name under which vectors are stored."""
        return self.model or self.embedder.model

    def embed(self, texts: Iterable[str], *, query: bool) -> Flow[dict[str, Vector]]:
        """The unit vectors of the texts that are not empty, by text."""
        distinct = [text for text in dict.fromkeys(texts) if text]
        if not distinct:
            return {}
        matrix = yield from self.embedder.embed(distinct, query=query)
        dimensions = matrix.shape[1]
        if not dimensions:
            raise EmbeddingError(
                "the store has an index but no embedding model; "
                'install one with pip install "langchain-threadmem[local]", '
                'or pass index={"embed": ...}, MemorySystem(embeddings=...), or index=None'
            )
        if self.dimensions not in (None, dimensions):
            raise EmbeddingError(
                f"the embedding model has {dimensions} dimensions, but the index has dims={self.dimensions!r}"
                f"; pass dims={dimensions}, or leave dims out"
            )
        return dict(zip(distinct, matrix, strict=True))


class CachedVectors(Component):
    """The vectors of the places that were searched last."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.values = LruCache[VectorsKey, ItemVectors](CACHED_PLACES)

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.close()

    def close(self) -> None:
        self.values.clear()


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The runtime and the options of a store.

    Attributes:
        runtime: The database and the owner.
        index: The index of items; `None` for a store without vectors.
        clock: A function that returns the seconds since 1970.
    """

    runtime: Runtime
    index: Index | None
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        if self.index is not None:
            self.runtime.embedders.add(self.index.embedder)

    @property
    def vectors(self) -> LruCache[VectorsKey, ItemVectors]:
        """The cached vectors."""
        return self.runtime.get(CachedVectors).values


class ReadResult(NamedTuple):
    """The result of an operation that reads.

    Attributes:
        result: The result.
        used: Ids of the items whose time to live begins again.
        vectors: The vectors to cache after the commit.
    """

    result: Result
    used: Sequence[int] = ()
    vectors: tuple[VectorsKey, ItemVectors] | None = None


ItemRead = Callable[[Conn, float], ReadResult]
"""A read at a time in seconds since 1970."""


class ItemWrite(NamedTuple):
    """A change of an item.

    Attributes:
        item: The item to store; `None` to remove the stored item.
        texts: The texts of the item that are embedded.
    """

    item: NewItem | None
    texts: tuple[str, ...] = ()


def _operation(_: object, ops: Sequence[Op]) -> str:
    """The name of the span of a batch: the kind of its operations, if all are of one kind."""
    kinds = {_kind(op) for op in ops}
    return kinds.pop() if len(kinds) == 1 else "batch_items"


def _kind(op: Op) -> str:
    if isinstance(op, PutOp):
        return "delete_item" if op.value is None else "put_item"
    return {GetOp: "get_item", SearchOp: "search_items", ListNamespacesOp: "list_namespaces"}.get(
        type(op), "batch_items"
    )


def _query_attributes(_: object, ops: Sequence[Op]) -> telemetry.Attributes:
    """The queries of a batch, which are message content."""
    queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
    return {telemetry.QUERY: lambda: "\n".join(map(str, queries))} if queries else {}


def _count_attributes(results: Sequence[Result]) -> telemetry.Attributes:
    """The number of items and namespaces that a batch has read."""
    return {
        telemetry.COUNT: sum(
            len(result) if isinstance(result, list) else result is not None for result in results
        )
    }


@telemetry.observed(_operation, _query_attributes, _count_attributes)
def batch(context: StoreContext, ops: Sequence[Op]) -> Flow[list[Result]]:
    """Run a batch of operations; returns their results in order, `None` for a put.

    Raises:
        InvalidNamespaceError: LangGraph's stores do not allow a label.
        InputError: An operation is invalid, or its value cannot be stored exactly.
        EmbeddingError: A text could not be embedded.
    """
    for op in ops:
        # Items may be moved to LangGraph's stores, which do not allow all characters.
        validate_op_namespace(op)
    owner, index = context.runtime.owner, context.index
    writes = dict(_write(index, op) for op in ops if isinstance(op, PutOp))
    queries = {} if index is None else (yield from index.embed(map(_query, ops), query=True))
    reads = {n: _read(context, op, queries) for n, op in enumerate(ops) if not isinstance(op, PutOp)}
    texts = (text for write in writes.values() for text in write.texts)
    vectors = {} if index is None else (yield from index.embed(texts, query=False))
    now = context.clock()

    def transaction(conn: Conn) -> dict[int, ReadResult]:
        answers = {n: read(conn, now) for n, read in reads.items()}
        if writes:
            _apply(conn, context, writes, vectors, now)
            item_queries.prolong(conn, owner, _all_used(answers.values()), now)
        return answers

    answers = yield from Sql(transaction, write=bool(writes))
    for answer in answers.values():
        if answer.vectors is not None:
            context.vectors.put(*answer.vectors)
    used = _all_used(answers.values())
    if used and not writes:
        yield from Sql(lambda conn: item_queries.prolong(conn, owner, used, now), write=True)
    return [answers[n].result if n in answers else None for n in range(len(ops))]


def owners(resources: Resources, now: float = math.inf) -> list[str]:
    """The owners of items that expire until a time in seconds since 1970; by default at any time.

    Raises:
        PersistenceError: Row-level security hides all owners but one.
    """
    return resources.database.read(lambda conn: item_queries.owners(conn, now))


def sweep(context: StoreContext) -> Flow[int]:
    """Remove expired items; returns their number."""
    now = context.clock()
    return (yield from Sql(lambda conn: item_queries.sweep(conn, context.runtime.owner, now), write=True))


def _write(index: Index | None, op: PutOp) -> tuple[Name, ItemWrite]:
    path, key = namespaces.encode(op.namespace), namespaces.encode_label(op.key)
    if op.value is None:
        return (path, key), ItemWrite(None)
    try:
        value = dict(op.value)
    except (TypeError, ValueError) as error:
        raise InputError(f"the value of an item is a dictionary, not {op.value!r}") from error
    if op.ttl is not None and not (isinstance(op.ttl, int | float) and 0 < op.ttl < math.inf):
        raise InputError(f"ttl is a number of minutes above 0, or None for no expiry, not {op.ttl!r}")
    item = NewItem(path, key, typed_json.dumps(value), op.ttl)
    return (path, key), ItemWrite(item, tuple(_texts(index, op.index, value)))


def _texts(index: Index | None, only: object, value: dict[str, Any]) -> Iterator[str]:
    """The texts of a value that are embedded."""
    if index is None or only is False:
        return
    fields = index.fields if only is None else only
    if not isinstance(fields, list | tuple) or not all(isinstance(field, str) for field in fields):
        raise InputError(f"index is None, False or a list of paths into the value, not {only!r}")
    source = value if typed_json.is_plain(value) else typed_json.tag(typed_json.based(value), "value")
    for field in fields:
        for text in get_text_at_path(source, WHOLE if field == WHOLE else tokenize_path(field)):
            # Tokenizers raise errors for unpaired surrogates.
            yield text.encode("utf-8", "replace").decode()


def _apply(
    conn: Conn, context: StoreContext, writes: dict[Name, ItemWrite], vectors: dict[str, Vector], now: float
) -> None:
    ids = item_queries.enter(conn, context.runtime.owner, {path for path, _ in writes}, now)
    item_queries.remove(conn, ids, [name for name, write in writes.items() if write.item is None])
    item_queries.put(conn, ids, [write.item for write in writes.values() if write.item is not None], now)
    if vectors and context.index is not None:
        rows = [
            (*name, number, vectors[text])
            for name, write in writes.items()
            for number, text in enumerate(write.texts)
            if text in vectors
        ]
        item_queries.put_vectors(conn, ids, context.index.name, rows)
    item_queries.prune(conn, ids.values())


def _read(context: StoreContext, op: Op, queries: dict[str, Vector]) -> ItemRead:
    if isinstance(op, GetOp):
        return _get(context.runtime.owner, op)
    if isinstance(op, SearchOp):
        return _search(context, op, queries.get(_query(op)))
    if isinstance(op, ListNamespacesOp):
        return _names(context.runtime.owner, op)
    raise InputError(f"a store runs GetOp, PutOp, SearchOp and ListNamespacesOp, not {op!r}")


def _get(owner: str, op: GetOp) -> ItemRead:
    path, key = namespaces.encode(op.namespace), namespaces.encode_label(op.key)

    def read(conn: Conn, now: float) -> ReadResult:
        row = item_queries.get(conn, owner, path, key, now)
        if row is None:
            return ReadResult(None)
        return ReadResult(
            Item(value=typed_json.loads(row.value), **_head(row)), _ids_to_prolong([row], op.refresh_ttl)
        )

    return read


def _search(context: StoreContext, op: SearchOp, vector: Vector | None) -> ItemRead:
    owner, index = context.runtime.owner, context.index
    bounds = namespaces.below(namespaces.encode(op.namespace_prefix))
    limit, offset = _count("limit", op.limit), _count("offset", op.offset)
    store.check_filter(op.filter)

    def read(conn: Conn, now: float) -> ReadResult:
        scores: dict[int, float] = {}
        found_vectors = None
        if vector is not None and index is not None:
            place = bounds, index.name, len(vector)
            versions = item_queries.versions(conn, owner, bounds, now)
            cached = context.vectors.get(place) or ItemVectors.none(len(vector))
            found_vectors = place, item_queries.vectors(conn, versions, index.name, cached)
            scores = _scores(found_vectors[1], vector)
            unscored = (id for id in versions[:, 0].tolist() if id not in scores)
            passing = _passing(conn, owner, chain(scores, unscored), op.filter)
            page = list(islice(passing, offset, offset + limit))
        elif op.filter:
            ids = item_queries.below(conn, owner, bounds, now)
            page = list(islice(_passing(conn, owner, ids, op.filter), offset, offset + limit))
        else:
            ids = item_queries.below(conn, owner, bounds, now, limit, offset)
            page = list(_passing(conn, owner, ids, None))
        items = [SearchItem(value=value, score=scores.get(row.id), **_head(row)) for row, value in page]
        return ReadResult(items, _ids_to_prolong([row for row, _ in page], op.refresh_ttl), found_vectors)

    return read


def _scores(vectors: ItemVectors, vector: Vector) -> dict[int, float]:
    """The highest cosine of each item with vectors, in descending order."""
    cosines = np.clip(vectors.matrix @ vector, -1, 1)
    order = np.lexsort((vectors.items, -cosines))
    _, first = np.unique(vectors.items[order], return_index=True)
    best = order[np.sort(first)]
    return dict(zip(vectors.items[best].tolist(), cosines[best].tolist(), strict=True))


def _passing(
    conn: Conn, owner: str, ids: Iterable[int], filter_: store.Filter | None
) -> Iterator[tuple[ItemRow, dict[str, Any]]]:
    """The items that pass a filter, read lazily in batches."""
    remaining = iter(ids)
    while piece := list(islice(remaining, ROWS_AT_ONCE)):
        for row in item_queries.by_ids(conn, owner, piece):
            try:
                value = typed_json.loads(row.value)
            except InputError as error:
                log.warning("%r was left out of a search: %s", namespaces.decode_label(row.key), error)
                continue
            if store.passes(value, filter_):
                yield row, value


def _names(owner: str, op: ListNamespacesOp) -> ItemRead:
    limit, offset = _count("limit", op.limit), _count("offset", op.offset)
    depth = None if op.max_depth is None else _count("max_depth", op.max_depth)
    conditions = op.match_conditions or ()
    head: Sequence[str] = ()
    for condition in conditions:
        namespaces.matches((), condition.path, condition.match_type)
        if condition.match_type == "prefix":
            plain = _before_any(condition.path)
            head = max(head, plain, key=len)
    bounds = namespaces.below(namespaces.encode(head))

    def read(conn: Conn, now: float) -> ReadResult:
        names = map(namespaces.decode, item_queries.paths(conn, owner, bounds, now))
        matching = (
            name[:depth]
            for name in names
            if all(namespaces.matches(name, condition.path, condition.match_type) for condition in conditions)
        )
        return ReadResult(list(dict.fromkeys(matching))[offset : offset + limit])

    return read


def _before_any(path: Sequence[str]) -> Sequence[str]:
    """The labels of a pattern up to its first `*`."""
    return path[: path.index(namespaces.ANY)] if namespaces.ANY in path else path


def _query(op: Op) -> str:
    query = op.query if isinstance(op, SearchOp) else None
    if not isinstance(query, str | None):
        raise InputError(f"a query is text, not {query!r}")
    return query or ""


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise InputError(f"{name} is an integer of at least 0, not {value!r}")
    return min(value, EVERYTHING)


def _ids_to_prolong(rows: Iterable[ItemRow], refresh: bool) -> list[int]:
    return [row.id for row in rows if refresh and row.ttl is not None]


def _all_used(answers: Iterable[ReadResult]) -> list[int]:
    return [id for answer in answers for id in answer.used]


def _head(row: ItemRow) -> dict[str, Any]:
    return {
        "namespace": namespaces.decode(bytes(row.path)),
        "key": namespaces.decode_label(bytes(row.key)),
        "created_at": datetime.fromtimestamp(row.created, UTC),
        "updated_at": datetime.fromtimestamp(row.updated, UTC),
    }


def get_list(runtime: Runtime, id: str) -> Flow[list[BaseMessage]]:
    """The list of an id; empty if there is none.

    Raises:
        EncryptionError: The list is encrypted and the memory is not, or vice versa.
    """
    rows = yield from Sql(lambda conn: item_queries.get_list(conn, runtime.owner, id))
    return decode(rows, other=runtime.parts.read)


def put_list(runtime: Runtime, id: str, messages: Sequence[BaseMessage]) -> Flow[None]:
    """Replace a list in one transaction.

    Raises:
        UnsupportedMessageError: A message cannot be stored exactly; the old list stays.
    """
    rows, now = [(message.id, encode(message, runtime.parts.write)) for message in messages], time.time()
    yield from Sql(lambda conn: item_queries.put_list(conn, runtime.owner, id, rows, now), write=True)


def remove_list(runtime: Runtime, id: str) -> Flow[None]:
    """Remove the list of an id, if there is one."""
    yield from Sql(lambda conn: item_queries.remove_list(conn, runtime.owner, id), write=True)
