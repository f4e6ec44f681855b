"""Catching up: bringing the derived indexes to where the messages are.

An append writes messages and nothing else. Whoever needs an index first brings it up to date: words in one
transaction, vectors in batches (`flows.embedding`), the owner-wide index from the vectors in SQL.
"""

from __future__ import annotations

from langchain_threadmem.core.bodies import text_of
from langchain_threadmem.core.gist import gist_of, unpack
from langchain_threadmem.core.ledger import Ledger, Record
from langchain_threadmem.core.nodes import Placement, State
from langchain_threadmem.core.turns import TurnIndex
from langchain_threadmem.flows.embedding import embed_as_wanted, embedded
from langchain_threadmem.flows.rows import is_recallable, nodes_of
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import Flow, Search, Sql, run
from langchain_threadmem.storage.queries import (
    choices,
    embeddings,
    gists,
    grafts,
    lexicon,
    marks,
    memory,
    nodes,
    removal,
    trees,
)
from langchain_threadmem.storage.queries.embeddings import Vectors
from langchain_threadmem.storage.queries.gists import Kept
from langchain_threadmem.storage.queries.marks import Mark, Reached
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.storage.vectors import ExactIndex, VectorIndex, Whole

WORDS_AT_ONCE = 5000
EXACT_BELOW = 20_000
"""From so many vectors on, an owner's are searched in Chroma; `benchmarks/owners.py` measures it. An exact
search of 20,000 takes 1 ms and 30 MB of memory, one in Chroma 2 to 4 ms; exact is faster even at 50,000.
Chroma takes half a millisecond for each vector that enters it, and 600 KB on disk for an owner with 200.
"""
FEW_TO_ENTER = 1_000
"""How many vectors a search enters into Chroma itself, half a second; more are entered in the background, and
searched exactly meanwhile."""
_FILLING = "filling the index"


def turns(runtime: Runtime, tree: int) -> Flow[TurnIndex]:
    """The turn ends of a conversation, kept in memory and brought up to date."""
    held = runtime.turns.setdefault(tree, TurnIndex)
    last, version = held.last, held.version

    def news(conn: Conn) -> tuple[int, list[nodes.NodeRow], dict[int, Placement]]:
        now = trees.head(conn, tree).version
        start = last if now == version else 0
        return now, nodes.since(conn, tree, start), choices.since(conn, tree, start)

    now, rows, placements = yield from Sql(news)
    if now != version:
        held = TurnIndex(now)
        runtime.turns.put(tree, held)
    held.add(nodes_of(rows), placements)
    return held


def kept_of(runtime: Runtime, rows: list[nodes.NodeRow]) -> list[Kept]:
    """What recall keeps of stored nodes; of those that it may not return, nothing but who and when."""
    language = runtime.language
    return [
        Kept(
            row.key,
            gist_of(
                node.message, text_of(node.message) if is_recallable(node) else "", row.created, language
            ),
        )
        for row, node in zip(rows, nodes_of(rows), strict=True)
    ]


def catch_up_words(runtime: Runtime, tree: int) -> Flow[None]:
    """Enter into the lexicon what was said since it was last asked."""
    name = runtime.lexicon

    def enter(conn: Conn) -> bool:
        trees.lock(conn, tree)
        for other in marks.other_lexicons(conn, tree, name):
            # It was entered under another language: those words are found by nobody any more.
            removal.forget_words(conn, tree, runtime.owner)
            marks.drop(conn, tree, other)
        mark = marks.get(conn, tree, name)
        rows = nodes.since(conn, tree, mark.seq, WORDS_AT_ONCE)
        if rows:
            absent = memory.absent(conn, tree, mark.seq)
            kept = kept_of(runtime, [row for row in rows if row.key not in absent])
            gists.put(conn, kept)
            entries = [gists.entry_of(one.key, one.gist.terms, one.gist.speaker) for one in kept]
            entries = [entry for entry in entries if entry.words]
            lexicon.add(conn, tree, runtime.owner, entries)
            total = sum(unpack(one.gist.traits).length for one in kept)
            marks.put(conn, tree, name, Mark(rows[-1].seq, mark.documents + len(entries), mark.words + total))
        return len(rows) == WORDS_AT_ONCE

    if (yield from Sql(lambda conn: is_behind(conn, tree, name))):
        while (yield from Sql(enter, write=True)):
            pass


def ledger(runtime: Runtime, tree: int) -> Flow[Ledger]:
    """The ledger of a conversation, kept in memory and brought up to date.

    What is encrypted is in no index on disk: its ledger is made from the messages themselves.
    """

    def news(conn: Conn) -> tuple[bool, trees.Head, list[Record], list[int], list[tuple[int, int]]]:
        behind = not runtime.encrypted and is_behind(conn, tree, runtime.lexicon)
        head = trees.head(conn, tree)
        known = runtime.ledgers.get((tree, head.epoch))
        records = records_of(conn, runtime, tree, known.last if known else 0)
        changed = known is None or known.version != head.version
        if not changed:
            return behind, head, records, [], []
        return behind, head, records, gists.dead(conn, tree), grafts.hung(conn, tree)

    behind, head, records, dead, hung = yield from Sql(news)
    if behind:
        yield from catch_up_words(runtime, tree)
        _, head, records, dead, hung = yield from Sql(news)
    held = runtime.ledgers.setdefault((tree, head.epoch), Ledger)
    with held.lock:
        held.add(records)
        if held.version != head.version:
            held.mark_live(dead, head.version)
            held.hang(hung)
    return held


def records_of(conn: Conn, runtime: Runtime, tree: int, last: int) -> list[Record]:
    """What a ledger is to take in of a tree, after the node numbered `last`."""
    if not runtime.encrypted:
        return gists.since(conn, tree, last)
    rows = nodes.since(conn, tree, last)
    return [
        Record(row.key, row.seq, row.parent, row.role, row.state == State.LIVE, one.gist)
        for row, one in zip(rows, kept_of(runtime, rows), strict=True)
    ]


def catch_up_owner(runtime: Runtime, wait: bool | None = True) -> Flow[VectorIndex | ExactIndex | None]:
    """Bring words, vectors and the owner-wide index up to date for every conversation of the owner.

    Fewer than `EXACT_BELOW` vectors are searched exactly, in memory: unless an index was passed, or filled
    when they were more. So are all as long as the index lacks many, which enter it in the background.

    Args:
        runtime: What to work with.
        wait: As for `flows.embedding.catch_up_vectors`.
    """
    owner, model, runtime.searched = runtime.owner, runtime.model, True
    for tree in (yield from Sql(lambda conn: marks.behind(conn, owner, runtime.lexicon))):
        yield from catch_up_words(runtime, tree)
    if not model:
        return None
    if wait is not False:
        lacking = yield from Sql(lambda conn: marks.missing(conn, owner, marks.embeddings_of(model)))
        yield from embed_as_wanted(runtime, lacking, wait)
    if runtime.chooses_index:
        counts = yield from Sql(lambda conn: _counts(conn, owner, model))
        if counts[0] < EXACT_BELOW and not counts[1]:
            return (yield from _exact_of_owner(runtime))
    index = yield from Search(runtime.index)
    if index is None:
        return None
    yield from _compare(runtime, index)
    if runtime.chooses_index:
        made, indexed = yield from Sql(lambda conn: _counts(conn, owner, model))
        if made - indexed > FEW_TO_ENTER:
            runtime.ahead.want(_FILLING, lambda: run(_fill_some(runtime, index), runtime))
        if runtime.ahead.busy(_FILLING):
            return (yield from _exact_of_owner(runtime))
    while (yield from _fill_some(runtime, index)):
        pass
    return index


def _compare(runtime: Runtime, index: VectorIndex) -> Flow[None]:
    """Empty an index that does not hold what it should: it was deleted, put back from a copy, or missed a
    removal. Looked at once, or whenever it is empty.
    """
    held = yield from Search(index.count)
    if not held or not runtime.compared:
        runtime.compared = True
        if held != (yield from Sql(lambda conn: marks.total(conn, runtime.owner, index.name))).documents:
            yield from _empty(index, runtime.owner)


def _fill_some(runtime: Runtime, index: VectorIndex) -> Flow[bool]:
    """Enter some vectors of the next tree that the index is behind in; whether there may be more."""
    owner, model = runtime.owner, runtime.model
    behind = yield from Sql(lambda conn: marks.behind(conn, owner, index.name))
    for tree in behind:
        if (yield from _enter_some(index, tree, model)):
            return True
    return False


def _counts(conn: Conn, owner: str, model: str) -> tuple[int, int]:
    """How many vectors an owner has, and how many of them are in an index of its own."""
    names = marks.embeddings_of(model), marks.index_of(model)
    made, indexed = (marks.total(conn, owner, name).documents for name in names)
    return made, indexed


def _exact_of_owner(runtime: Runtime) -> Flow[ExactIndex]:
    """All vectors of the owner, kept in memory and brought up to date: those of each tree are read once."""
    owner, model = runtime.owner, runtime.model
    name = marks.embeddings_of(model)
    held = runtime.whole

    def news(conn: Conn) -> tuple[dict[int, Reached], bool, list[Vectors]]:
        now = marks.reached(conn, owner, name)
        whole = all(
            tree in now and now[tree].epoch == old.epoch and now[tree].documents >= old.documents
            for tree, old in held.reached.items()
        )
        before = held.reached if whole and held.model == model else {}
        since = {tree: before[tree].seq if tree in before else 0 for tree in now}
        parts = [embedded(conn, tree, model, seq) for tree, seq in since.items() if seq < now[tree].seq]
        return now, bool(before), parts

    now, more, parts = yield from Sql(news)
    if more:
        held.add(parts, now)
        return held.index
    # Something was taken out, or this is the first time.
    held = runtime.whole = Whole(model)
    held.add(parts, now)
    return held.index


def _empty(index: VectorIndex, owner: str) -> Flow[None]:
    keys = yield from Search(index.keys)
    yield from Search(lambda: index.remove(keys))
    yield from Sql(lambda conn: marks.clear(conn, owner, index.name), write=True)


def _enter_some(index: VectorIndex, tree: int, model: str) -> Flow[bool]:
    """Enter the next vectors of a tree; whether there may be more of it."""

    def read(conn: Conn) -> tuple[Mark, int, int, Vectors]:
        mark = marks.get(conn, tree, index.name)
        end = marks.get(conn, tree, marks.embeddings_of(model)).seq
        return mark, end, trees.head(conn, tree).epoch, embedded(conn, tree, model, mark.seq, FEW_TO_ENTER)

    mark, end, epoch, news = yield from Sql(read)
    more = len(news.keys) == FEW_TO_ENTER
    if more:
        end = int(news.seqs[-1])
    entered: list[int] = news.keys.tolist()
    yield from Search(lambda: index.add(entered, news.matrix))

    def record(conn: Conn) -> list[int]:
        trees.lock(conn, tree)
        if trees.head(conn, tree).epoch != epoch:
            return entered
        here = {key for key, made in embeddings.models_of(conn, entered) if made == model}
        if marks.get(conn, tree, index.name) == mark:  # Else somebody else has changed them too.
            marks.put(conn, tree, index.name, Mark(end, mark.documents + len(here)))
        return [key for key in entered if key not in here]

    # The tree was emptied in the meantime, or some of it was forgotten.
    if gone := (yield from Sql(record, write=True)):
        yield from Search(lambda: index.remove(gone))
    return more


def is_behind(conn: Conn, tree: int, name: str) -> bool:
    """Whether an index does not know yet what was said last in a tree."""
    return marks.get(conn, tree, name).seq < trees.head(conn, tree).next_seq - 1


def index_problems(runtime: Runtime) -> Flow[list[str]]:
    """How the owner-wide index differs from SQL; an index that was never filled is not opened for it."""
    owner, model = runtime.owner, runtime.model

    def used(conn: Conn) -> bool:
        return any(marks.indexed(conn, tree) for _, tree in trees.conversations(conn, owner))

    index = (yield from Search(runtime.index)) if model and (yield from Sql(used)) else None
    if index is None:
        return []
    held = set((yield from Search(index.keys)))
    expected = yield from Sql(lambda conn: embeddings.entered(conn, owner, model, index.name))
    lacking, foreign = len(expected - held), len(held - expected)
    if not lacking and not foreign:
        return []
    return [f"the vector index lacks {lacking} vectors and holds {foreign} too many; reindex() mends it"]


def reindex(runtime: Runtime) -> Flow[int]:
    """Fill the owner-wide index again from the vectors in SQL; how many it holds then: none if they are few,
    and are searched without it.
    """
    index = yield from Search(runtime.index)
    if index is None:
        return 0
    yield from Search(lambda: runtime.ahead.drop(_FILLING))
    yield from _empty(index, runtime.owner)
    yield from catch_up_owner(runtime)
    made, _ = yield from Sql(lambda conn: _counts(conn, runtime.owner, runtime.model))
    if made >= EXACT_BELOW or not runtime.chooses_index:
        yield from Search(lambda: runtime.ahead.drop(_FILLING))
        while (yield from _fill_some(runtime, index)):
            pass
    return (yield from Search(index.count))
