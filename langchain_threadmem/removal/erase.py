"""Verbs of erasing: rows, words, vectors and bytes are removed, with a receipt.

Unlike forgetting, erasing is a duty towards a person, so nothing is left to be cleaned up some other time:
messages, their words and vectors, checkpoints, and every summary that may quote them go in one transaction;
then the file is written anew, so that its free space holds nothing of them either. In the end what the
receipt says is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from langchain_threadmem.checkpoints import queries as checkpoint_queries
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import ClosedError, InputError, PersistenceError
from langchain_threadmem.index import lexicon, watermarks
from langchain_threadmem.index import removal as index_removal
from langchain_threadmem.index.catch_up import FILLING, empty
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.removal import take_out
from langchain_threadmem.index.vector_index import ClearableIndex
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.messages.tool_pairs import with_results_below
from langchain_threadmem.removal import purging, tables
from langchain_threadmem.storage.schema import SUMMARIES
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.summaries import queries as summary_queries
from langchain_threadmem.tree import nodes, trees
from langchain_threadmem.units.visits import Visits


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was erased, and whether a look afterwards found nothing of it.

    Attributes:
        owner: Whose memory.
        conversation: Which conversation; `None` for more than one.
        before: What had been said before this time; `None` whenever it was said.
        conversations: The conversations of which something was erased.
        tables: How many rows of each table are gone.
        vectors: How many vectors left the index outside of the database; those in it are in `tables`.
        unscrubbed: Which files may still hold bytes of what was erased, and why: somebody was reading an
            older state of the database file, or there was no room to write it anew; another process has the
            vector directory open; a database server or a Chroma server looks after its files itself. Empty if
            none do. `MemorySystem.scrub`, or another `erase`, tries again.
        left: What was found afterwards that should not be there; empty if all is gone.
    """

    owner: str
    conversation: str | None
    before: datetime | None
    conversations: tuple[str, ...] = ()
    tables: tuple[tuple[str, int], ...] = ()
    vectors: int = 0
    unscrubbed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    trees: tuple[int, ...] = ()
    """The trees that were emptied: what `left` is looked for by."""

    @property
    def ok(self) -> bool:
        """Whether nothing was left."""
        return not self.left

    @property
    def scrubbed(self) -> bool:
        """Whether the files were written anew, so that their bytes hold nothing of what was erased."""
        return not self.unscrubbed

    @property
    def rows(self) -> dict[str, int]:
        """How many rows of each table are gone."""
        return dict(self.tables)

    @property
    def messages(self) -> int:
        """How many messages, summaries among them, are gone."""
        return self.rows.get("node", 0)


@dataclass(slots=True)
class _Erased:
    """What one transaction erased."""

    keys: dict[int, list[int]]
    conversations: list[str]
    rows: Counter[str]
    trees: list[int]


def erase(runtime: Runtime, conversation: str | None, before: datetime | None) -> Flow[Receipt]:
    """Erase a conversation, what was said before a time, or everything of the owner."""
    if before is not None and not isinstance(before, datetime):
        raise InputError(f"before= is a datetime, not {before!r}; a time without a zone is UTC")
    if conversation is not None:
        check_name("a conversation", conversation)
    time = None if before is None else before if before.tzinfo else before.replace(tzinfo=UTC)
    owner = runtime.owner
    yield from runtime.get(Visits).settle()

    def write(conn: Conn) -> _Erased:
        if time is None:
            return _erase_whole(conn, owner, conversation)
        return _erase_older(conn, owner, conversation, time)

    yield from Call(lambda: runtime.ahead.drop(FILLING))
    # Asked before, since afterwards nothing may tell which indexes held anything.
    models = yield from _indexed_models(runtime)
    done = yield from Sql(write, write=True)
    keys = [key for found in done.keys.values() for key in found]
    runtime.drop(done.keys, done.trees if time is None else ())
    vectors, unscrubbed, left = 0, [], []
    for model in models:
        taken, why, rest = yield from _take_from_index(runtime, model, keys)
        vectors += taken
        unscrubbed += [why] if why else []
        left += [rest] if rest else []
    unscrubbed += yield from _scrub_database(runtime)
    receipt = Receipt(
        owner,
        conversation,
        time,
        tuple(dict.fromkeys(done.conversations)),
        tuple(sorted((name, count) for name, count in done.rows.items() if count)),
        vectors,
        tuple(unscrubbed),
        trees=tuple(done.trees),
    )
    left += yield from Sql(lambda conn: _left(conn, receipt))
    return replace(receipt, left=tuple(left))


def _indexed_models(runtime: Runtime) -> Flow[list[str]]:
    """The embedding models of which an index outside of the database may hold vectors of the owner."""
    owner = runtime.owner
    models, indexes = (yield from Sql(lambda conn: watermarks.indexes(conn, owner))), runtime.get(Indexes)
    # That of now may hold what a process has left that died.
    also = [indexes.model] if indexes.keeps_index and indexes.model not in ("", *models) else []
    return [*models, *also]


def _take_from_index(runtime: Runtime, model: str, keys: Sequence[int]) -> Flow[tuple[int, str, str]]:
    """Take vectors out of an index; how many it held, why their bytes may be left, and what it still holds.

    One that can be is emptied, whatever it held: it keeps the bytes of what was ever removed from it, and is
    filled again when it is next searched.
    """
    index = yield from Call(lambda: runtime.get(Indexes).index_of(model))
    if index is None:
        return 0, "the vector index: another process has it open, or it cannot be opened from here", ""
    held = yield from Call(lambda: set(index.keys()).intersection(keys))
    why = ""
    if isinstance(index, ClearableIndex):
        why = yield from empty(index, runtime.owner)
    elif held:
        yield from Call(lambda: index.remove(list(held)))
        why = f"the index {index.name!r}: it was told to remove the vectors, and keeps its files itself"
    rest = (yield from Call(lambda: held.intersection(index.keys()))) if held else ()
    left = "the index outside of the database holds vectors of erased messages" if rest else ""
    return len(held), why, left


def _scrub_database(runtime: Runtime) -> Flow[list[str]]:
    """Write the database file anew; why it may still hold what was deleted, if it may."""
    try:
        why = yield from Call(runtime.database.scrub)
    except ClosedError:
        raise
    except PersistenceError as error:
        # What was deleted is gone; its bytes lie in free space a little longer.
        why = str(error)
    return [why] if why else []


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What `MemorySystem.scrub` did.

    Attributes:
        unscrubbed: Which files may still hold bytes of what was deleted, and why; empty if none do.
    """

    unscrubbed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no file holds anything of what was deleted."""
        return not self.unscrubbed


def scrub(runtime: Runtime) -> Flow[Scrubbed]:
    """Write the files anew, so that they hold nothing of what was deleted."""
    yield from Call(lambda: runtime.ahead.drop(FILLING))
    unscrubbed: list[str] = []
    for model in (yield from _indexed_models(runtime)):
        index = yield from Call(lambda: runtime.get(Indexes).index_of(model))  # noqa: B023 - driven before the next turn
        if index is None:
            unscrubbed.append(
                "the vector index: another process has it open, or it cannot be opened from here"
            )
        elif why := (yield from empty(index, runtime.owner)):
            unscrubbed.append(why)
    return Scrubbed((*unscrubbed, *(yield from _scrub_database(runtime))))


def check(runtime: Runtime, receipt: Receipt) -> Flow[Receipt]:
    """A receipt with what is left now of what it says is gone.

    Raises:
        InputError: It is the receipt of another owner.
    """
    if receipt.owner != runtime.owner:
        raise InputError(f"this is a receipt of {receipt.owner!r}, and the memory is {runtime.owner!r}'s")
    left = yield from Sql(lambda conn: _left(conn, receipt))
    return replace(receipt, left=tuple(left))


def _erase_whole(conn: Conn, owner: str, conversation: str | None) -> _Erased:
    """Erase all trees of a conversation, or everything of an owner."""
    found = tables.trees_of(conn, owner, conversation)
    erased = _Erased({}, [], Counter(), [])
    if conversation is not None and found:
        _erase_long_term(conn, owner, erased)
    for tree, name in found:
        trees.lock(conn, tree)
        _empty(conn, owner, tree, erased)
        erased.conversations += [name] if name else []
    erased.rows.update(tables.delete_rest(conn, owner, conversation))
    lexicon.compact(conn)
    return erased


def _erase_older(conn: Conn, owner: str, conversation: str | None, time: datetime) -> _Erased:
    """Erase what was said before a time, with every summary of the conversations that it was said in."""
    erased = _Erased({}, [], Counter(), [])
    seconds = time.timestamp()
    chosen = [
        (tree, name)
        for tree, name in purging.with_older(conn, owner, seconds)
        if conversation in (None, name)
    ]
    if chosen:
        _erase_long_term(conn, owner, erased)
    for tree, name in chosen:
        for scope, other in checkpoint_queries.scopes(conn, owner, name):
            trees.lock(conn, other)
            if scope == SUMMARIES:
                _empty(conn, owner, other, erased)
            elif other != tree:
                _purge_older(conn, owner, other, seconds, erased)
        _purge_older(conn, owner, tree, seconds, erased)
        erased.rows.update(tables.delete_checkpoints_before(conn, tree, seconds))
        summary_queries.uncover(conn, tree)
        erased.conversations.append(name)
    erased.rows.update(tables.delete_older(conn, owner, seconds) if conversation is None else {})
    lexicon.compact(conn)
    return erased


def _erase_long_term(conn: Conn, owner: str, erased: _Erased) -> None:
    """Empty the summaries of the long-term memory: they may quote anything."""
    above = summary_queries.tree_of(conn, owner, "")
    if above is not None:
        trees.lock(conn, above)
        _empty(conn, owner, above, erased)


def _empty(conn: Conn, owner: str, tree: int, erased: _Erased) -> None:
    """Empty a tree, and count what was in it."""
    erased.keys[tree] = [row.key for row in purging.outline(conn, tree)]
    erased.rows.update(tables.count_below(conn, tree))
    index_removal.clear(conn, tree, owner)
    checkpoint_queries.clear(conn, tree)
    erased.trees.append(tree)


def _purge_older(conn: Conn, owner: str, tree: int, seconds: float, erased: _Erased) -> None:
    """Purge what was said before a time, tools' results with their calls."""
    held = purging.outline(conn, tree)
    old = {row.seq for row in held if row.created < seconds}
    old = with_results_below([(row.seq, row.parent, row.role) for row in held], old)
    keys = [row.key for row in held if row.seq in old]
    if not keys:
        return
    if len(keys) == len(held):
        _empty(conn, owner, tree, erased)
        return
    before = tables.count_below(conn, tree)
    take_out(conn, owner, tree, nodes.by_keys(conn, keys))
    purging.purge(conn, owner, tree, set(keys))
    erased.rows.update(before - tables.count_below(conn, tree))
    erased.keys[tree] = keys


def _left(conn: Conn, receipt: Receipt) -> list[str]:
    """What there is of what should be gone, one sentence each."""
    owner = receipt.owner
    found: list[str] = []
    if receipt.before is None:
        held = tables.trees_of(conn, owner, receipt.conversation)
        for tree, name in held:
            found += [
                f"conversation {name!r} has {count} rows of {table!r}"
                for table, count in sorted(tables.count_below(conn, tree).items())
                if count and table != "tree"
            ]
        if receipt.conversation is None:
            found += [
                f"{table!r} has {count} rows" for table, count in tables.count_owned(conn, owner).items()
            ]
    else:
        older = purging.with_older(conn, owner, receipt.before.timestamp())
        found += [
            f"conversation {name!r} holds older messages"
            for _, name in older
            if receipt.conversation in (None, name)
        ]
    found += [
        f"the words of tree {tree} are still in the lexicon"
        for tree in receipt.trees
        if not tables.count_below(conn, tree)["node"] and lexicon.marked(conn, tree)
    ]
    return found
