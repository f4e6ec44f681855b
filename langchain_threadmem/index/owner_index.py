"""Flows of the index over all vectors of an owner: exact search in memory, or Chroma for many vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import Call, Flow, Sql, run
from langchain_threadmem.engine.runtime import Component, Runtime
from langchain_threadmem.index import vectors as embeddings
from langchain_threadmem.index import watermarks
from langchain_threadmem.index.catch_up_words import WordQueue, add_missing, catch_up_words
from langchain_threadmem.index.embed import embed_all, embed_trees, embedded, in_pieces, model_of
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.vector_index import ClearableIndex, ExactIndex, ExactOwnerIndex, VectorIndex
from langchain_threadmem.index.vectors import NONE, Vectors
from langchain_threadmem.index.watermarks import Reached, Watermark
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees

EXACT_BELOW = 20_000
"""The number of vectors of an owner from which Chroma is searched; see `benchmarks/owners.py`.

An exact search of 20,000 vectors takes 1 ms and 30 MB of memory, a search in Chroma 2 to 4 ms; an exact
search of 50,000 vectors is still faster. Chroma adds a vector in 0.5 ms, and stores 200 vectors in 600 KB.
"""
FEW_TO_ADD = 1_000
"""The maximum number of vectors that a search adds to Chroma, in 0.5 s. More vectors are added in the
background; until then all vectors are searched exactly."""
ADDED_AT_ONCE = 300
"""The number of vectors that are added to Chroma in one step of 0.2 s; an erasure waits for the step."""


class OwnerVectors(Component):
    """The cache of all vectors of an owner with fewer than `EXACT_BELOW` vectors."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.whole = ExactOwnerIndex()
        self.filling = "filling the index", runtime.owner
        """The background job that adds the vectors to Chroma."""

    def drop(self, removed: Mapping[int, Collection[int]]) -> None:
        self.whole = ExactOwnerIndex()


def catch_up_owner(
    runtime: Runtime, wait: bool | None = True, *, whole: bool = False
) -> Flow[VectorIndex | ExactIndex | None]:
    """Update lexicon, vectors and owner-wide index for all conversations of the owner.

    Fewer than `EXACT_BELOW` vectors are searched exactly, in memory, unless the caller has passed an index or
    the index was filled while the owner had more vectors. Vectors are also searched exactly while many of
    them are added to the index in the background.

    Args:
        runtime: The owner's memory.
        wait: As in `index.embed.embed_tree`.
        whole: As in `index.catch_up_words.add_missing`.

    Returns:
        The index to search; `None` without an embedding model, or for a search in SQL.
    """
    owner, model, indexes = runtime.owner, (yield from model_of(runtime)), runtime.get(Indexes)
    chooses_index = indexes.settings.chooses_index
    runtime.embeds_ahead = True
    embeds = bool(model) and wait is not False
    whole = whole or (embeds and bool(wait))  # A hit by meaning is scored by its words, too.

    def missing(conn: Conn) -> tuple[dict[int, int], dict[int, int]]:
        words = {} if runtime.read_only else watermarks.missing(conn, owner, indexes.lexicon)
        return words, watermarks.missing(conn, owner, watermarks.embeddings_of(model)) if embeds else {}

    without_words, without_vectors = yield from Sql(missing)
    if without_words and runtime.get(WordQueue).is_due(without_words, whole=whole):
        yield from add_missing(runtime, without_words, whole)
    if not model:
        return None
    if without_vectors:
        yield from embed_trees(runtime, without_vectors, wait)
    if runtime.read_only or chooses_index:
        exact = yield from _exact_of_owner(runtime, if_few=not runtime.read_only)
        if exact is not None:
            return exact
    index = yield from Call(indexes.index)
    if index is None:
        return None
    yield from _compare(runtime, index)
    if chooses_index:
        count, indexed = yield from Sql(
            lambda conn: (
                _count(conn, owner, model),
                watermarks.total(conn, owner, index.name).documents,
            )
        )
        if count - indexed > FEW_TO_ADD:
            rest: dict[int, int] = {}
            # Chroma blocks all other threads while it adds vectors.
            filling = runtime.get(OwnerVectors).filling
            runtime.ahead.start(filling, lambda: run(_add_some(runtime, index, rest), runtime), gently=True)
        if runtime.ahead.busy(runtime.get(OwnerVectors).filling):
            return (yield from _exact_of_owner(runtime))
    yield from _fill(runtime, index)
    return index


def _fill(runtime: Runtime, index: VectorIndex) -> Flow[None]:
    """Add all missing vectors to an index; again, if another process empties it meanwhile."""
    name = ""
    while name != index.name:
        name = index.name
        lacking: dict[int, int] = {}
        while (yield from _add_some(runtime, index, lacking)):
            pass


def _compare(runtime: Runtime, index: VectorIndex) -> Flow[None]:
    """Empty an index that differs from SQL because it was deleted, restored from a copy or not updated.

    An index is compared at its first use, and whenever it is empty. The keys are compared only if the numbers
    differ, as they also do while another process adds vectors.
    """
    indexes = runtime.get(Indexes)
    count = yield from Call(index.count)
    if count and indexes.compared:
        return
    indexes.compared = True
    stored = yield from Sql(lambda conn: watermarks.total(conn, runtime.owner, index.name))
    if count != stored.documents and any((yield from _differences(runtime, index))):
        yield from empty(index, runtime.owner)


def _add_some(runtime: Runtime, index: VectorIndex, lacking: dict[int, int]) -> Flow[bool]:
    """Add the next missing vectors to an index; return whether there may be more.

    Args:
        runtime: The owner's memory.
        index: The index.
        lacking: The number of missing vectors of each remaining tree; filled from SQL if empty.
    """
    owner, model = runtime.owner, runtime.get(Indexes).model
    if not lacking:
        lacking.update((yield from Sql(lambda conn: watermarks.lacking(conn, owner, model, index.name))))
    piece = next(in_pieces(lacking, ADDED_AT_ONCE), [])
    more = (yield from _add_vectors(runtime, index, piece)) if piece else False
    if more is None:
        lacking.clear()
        return True
    if not more:
        for tree in piece:
            del lacking[tree]
    return bool(lacking)


def _count(conn: Conn, owner: str, model: str) -> int:
    """The number of vectors of an owner."""
    return watermarks.total(conn, owner, watermarks.embeddings_of(model)).documents


def _exact_of_owner(runtime: Runtime, *, if_few: bool = False) -> Flow[ExactIndex | None]:
    """All vectors of the owner, cached and updated; each vector is read once.

    With `if_few` the result is `None` if they are many, or an index outside of the database contains some.
    """
    owner, indexes, vectors = runtime.owner, runtime.get(Indexes), runtime.get(OwnerVectors)
    model = indexes.model
    name = watermarks.embeddings_of(model)
    whole = vectors.whole

    def read(conn: Conn) -> tuple[dict[int, Reached], bool, list[Vectors]] | None:
        if if_few and _count(conn, owner, model) >= EXACT_BELOW:
            return None
        if if_few and indexes.keeps_index and model in watermarks.indexes(conn, owner):
            return None
        current = watermarks.reached(conn, owner, name)
        grown = all(
            tree in current
            and current[tree].epoch == old.epoch
            and current[tree].watermark.documents >= old.watermark.documents
            for tree, old in whole.reached.items()
        )
        before = whole.reached if grown and whole.model == model else {}
        new_trees = [tree for tree in current if tree not in before]
        # Trees with new vectors are read one by one; there are at most as many as new messages.
        parts = [
            embedded(conn, tree, model, old.watermark.seq, current[tree].watermark.seq)
            for tree, old in before.items()
            if old.watermark.seq < current[tree].watermark.seq
        ]
        return current, bool(before), [embeddings.after_marks(conn, model, name, "", new_trees)[0], *parts]

    found = yield from Sql(read)
    if found is None:
        return None
    current, is_continued, parts = found
    if not is_continued:  # The cache is empty, or vectors were removed.
        whole = vectors.whole = ExactOwnerIndex(model)
    whole.add(parts, current)
    return whole.index


def stop_filling(runtime: Runtime) -> Flow[None]:
    """End the background job that adds vectors to the index of an owner, after its running piece."""
    yield from Call(lambda: runtime.ahead.drop(runtime.get(OwnerVectors).filling))


def empty(index: VectorIndex, owner: str) -> Flow[str]:
    """Empty an index; the next search fills it again.

    Returns:
        The reason if bytes of its vectors may be left in files; else an empty text.
    """
    name = index.name
    if isinstance(index, ClearableIndex):
        reason = yield from Call(index.clear)
    else:
        keys = yield from Call(index.keys)
        yield from Call(lambda: index.remove(keys))
        reason = f"the index {name!r}: it has no clear(), so its files may contain removed vectors"
    # Afterwards: a watermark that is stored during the removal may be of removed vectors.
    yield from Sql(lambda conn: watermarks.clear(conn, owner, name), write=True)
    return reason


def _add_vectors(runtime: Runtime, index: VectorIndex, chosen: Sequence[int]) -> Flow[bool | None]:
    """Add the next vectors of trees to an index; return whether a single tree may have more.

    Returns `None` if the index was emptied because vectors of the batch were removed from SQL meanwhile.
    """
    model, name = runtime.get(Indexes).model, index.name
    upper = watermarks.embeddings_of(model)

    def read(conn: Conn) -> tuple[dict[int, Reached], dict[int, int], Vectors, list[int]]:
        at = watermarks.of_trees(conn, name, chosen)
        ends = {tree: state.watermark.seq for tree, state in watermarks.of_trees(conn, upper, chosen).items()}
        if len(at) > 1:
            return at, ends, *embeddings.after_marks(conn, model, upper, name, list(at))
        for tree, state in at.items():
            news = embedded(conn, tree, model, state.watermark.seq, ends[tree], ADDED_AT_ONCE)
            return at, ends, news, [tree] * len(news.keys)
        return at, ends, NONE, []

    at, ends, news, of_tree = yield from Sql(read)
    more = len(at) == 1 and len(of_tree) == ADDED_AT_ONCE
    if more:
        ends[of_tree[0]] = int(news.seqs[-1])
    keys: list[int] = news.keys.tolist()
    yield from Call(lambda: index.add(keys, news.matrix))

    def record(conn: Conn) -> bool:
        trees.lock_all(conn, at)
        current = watermarks.of_trees(conn, name, at)
        unchanged = {
            tree for tree, state in at.items() if tree in current and current[tree].epoch == state.epoch
        }
        vectors = {key for key, model_of in embeddings.models_of(conn, keys) if model_of == model}
        added = [
            tree for tree, key in zip(of_tree, keys, strict=True) if tree in unchanged and key in vectors
        ]
        counts = Counter(added)
        reached = {
            tree: Watermark(ends[tree], at[tree].watermark.documents + counts[tree])
            for tree in unchanged
            if current[tree].watermark == at[tree].watermark  # Else another process has changed it.
        }
        watermarks.put(conn, name, reached)
        return len(added) < len(keys)

    if (yield from Sql(record, write=True)):
        # After the removal of single vectors the files of an index may contain their bytes.
        yield from empty(index, runtime.owner)
        return None
    return more


def needs_index(runtime: Runtime, vectors: int) -> bool:
    """Whether this number of vectors is searched in an index outside of the database."""
    return vectors >= EXACT_BELOW or not runtime.get(Indexes).settings.chooses_index


def index_problems(runtime: Runtime) -> Flow[list[str]]:
    """The sentence about an owner-wide index that differs from SQL, if any; an unused index is not opened."""
    owner, model = runtime.owner, (yield from model_of(runtime))

    def is_used(conn: Conn) -> bool:
        return any(watermarks.indexed(conn, tree) for _, tree in trees.conversations(conn, owner))

    index = (yield from Call(runtime.get(Indexes).index)) if model and (yield from Sql(is_used)) else None
    if index is None:
        return []
    lacking, foreign = yield from _differences(runtime, index)
    if not lacking and not foreign:
        return []
    return [f"the vector index lacks {lacking} vectors and has {foreign} too many; call reindex()"]


def _differences(runtime: Runtime, index: VectorIndex) -> Flow[tuple[int, int]]:
    """The number of vectors that an index lacks, and of those that SQL does not know."""
    owner, model = runtime.owner, runtime.get(Indexes).model
    name = index.name
    # The keys are read before and after, because vectors may be added or removed during the comparison.
    before = yield from Sql(lambda conn: embeddings.entered(conn, owner, model, name))
    indexed = set((yield from Call(index.keys)))
    if index.name != name:
        return 0, 0  # Another process has emptied the index, and fills it again.
    after, embedded_keys = yield from Sql(
        lambda conn: (embeddings.entered(conn, owner, model, name), embeddings.of(conn, owner, model))
    )
    return len((before & after) - indexed), len(indexed - before - embedded_keys)


def flush(runtime: Runtime, only: int | None = None, on_progress: Progress | None = None) -> Flow[int]:
    """Add all new messages to the lexicon, and embed all new messages and summaries.

    Args:
        runtime: The owner's memory.
        only: A conversation, with its summaries; `None` for all conversations of the owner.
        on_progress: As in `index.embed.embed_all`.

    Returns:
        The number of embedded messages and summaries.
    """
    summaries = None if only is None else (yield from Sql(lambda conn: trees.extent(conn, only)))[1]
    for tree in (only,) if summaries is None else (only, summaries):
        yield from catch_up_words(runtime, tree, whole=True)
    return (yield from embed_all(runtime, only, on_progress))


def reindex(runtime: Runtime) -> Flow[int]:
    """Rebuild the owner-wide index from the vectors in SQL.

    Returns:
        The number of vectors in the index; 0 if the owner has few vectors, which are searched without it.
    """
    index = yield from Call(runtime.get(Indexes).index)
    if index is None:
        return 0
    yield from stop_filling(runtime)
    yield from empty(index, runtime.owner)
    yield from catch_up_owner(runtime)
    count = yield from Sql(lambda conn: _count(conn, runtime.owner, runtime.get(Indexes).model))
    if needs_index(runtime, count):
        yield from stop_filling(runtime)
        yield from _fill(runtime, index)
    return (yield from Call(index.count))
