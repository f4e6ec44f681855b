"""SQL: the inverted index from words to nodes.

FTS5 on SQLite and a `tsvector` column with GIN on PostgreSQL return candidates only: for each word of a query
the newest nodes that contain the word, in about 0.1 ms. `recall.scoring` ranks the candidates.

Each entry also contains two words that cannot occur in a text, one for its tree and one for its owner, so
that a search in one conversation or for one owner is an intersection inside the index. FTS5 reads the whole
posting list of these words, so a search on SQLite first looks up the word of the query alone, and intersects
only if the result may be incomplete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import bindparam, select

from langchain_threadmem.common.arrays import Keys
from langchain_threadmem.index.units.queries import OWNED
from langchain_threadmem.storage.migrations import CAN_OVERWRITE
from langchain_threadmem.storage.schema import LEXICON, POSITION_BITS, segment, tree
from langchain_threadmem.storage.statements import Conn, Statement, within

MOST_PER_WORD = 400
LONGEST_WORD = 500
"""The maximum number of letters of a word; PostgreSQL allows 2,046 bytes."""
MOST_BYTES = 500_000
"""The maximum number of bytes of the words of a node; PostgreSQL allows 1 MB."""

MOST_OVERWRITTEN = 1000
"""The maximum number of removed entries that are overwritten, in 0.2 s; for more, a rewrite is faster."""

NO_KEYS: Keys = np.empty(0, np.int64)


class LexiconScope(NamedTuple):
    """The scope of a search: one tree, or all trees of an owner."""

    owner: str
    tree: int | None = None

    @property
    def word(self) -> str:
        """The word that every entry in the scope contains."""
        return owner_word(self.owner) if self.tree is None else tree_word(self.tree)


class NodeWords(NamedTuple):
    """The distinct words of one node, separated by spaces; empty if it has none."""

    key: int
    words: str


_GIVEN = (
    f"(VALUES (CAST(%s AS bigint), CAST(%s AS text))) AS added (key, words) JOIN {segment.name} s "
    f"ON s.id = added.key >> {POSITION_BITS}"
)
_ADD = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} (rowid, words) VALUES (?, ?)",
    postgresql=f"INSERT INTO {LEXICON} (key, words) VALUES (%s, array_to_tsvector(string_to_array(%s, ' '))) "
    "ON CONFLICT (key) DO NOTHING",
    partitioned=f"INSERT INTO {LEXICON} (key, words, tree) SELECT added.key, array_to_tsvector("
    f"string_to_array(added.words, ' ')), s.tree FROM {_GIVEN} ON CONFLICT (key, tree) DO NOTHING",
)
_REMOVE = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}, rowid, words) VALUES ('delete', ?, ?)",
    postgresql=f"DELETE FROM {LEXICON} WHERE key = %s AND %s <> ''",
    partitioned=f"DELETE FROM {LEXICON} l USING {_GIVEN} WHERE l.key = added.key AND l.tree = s.tree",
)
_COMPACT = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}) VALUES ('optimize')", postgresql="SELECT 1"
)
_OVERWRITE = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}, rank) VALUES ('secure-delete', ?)", postgresql=""
)
_STOP_OVERWRITING = Statement.of(
    sqlite=f"DELETE FROM {LEXICON}_config WHERE k = 'secure-delete'", postgresql=""
)
_OVERWRITES = Statement.of(
    sqlite=f"SELECT 1 FROM {LEXICON}_config WHERE k = 'secure-delete' AND v <> 0", postgresql=""
)
# The keys are returned as one text: a Python tuple for each key takes longer than the search.
_HOLDING = Statement.of(
    sqlite=f"SELECT group_concat(rowid) FROM (SELECT rowid FROM {LEXICON} WHERE {LEXICON} MATCH ? "
    "ORDER BY rowid DESC LIMIT ?)",
    postgresql=f"SELECT string_agg(key::text, ',') FROM (SELECT key FROM {LEXICON} "
    "WHERE words @@ %s::tsquery ORDER BY key DESC LIMIT %s) AS newest",
)
_HOLDING_IN_PARTITION = Statement.of(
    sqlite="",
    postgresql=f"SELECT string_agg(key::text, ',') FROM (SELECT key FROM {LEXICON} "
    "WHERE words @@ %s::tsquery AND tree = %s ORDER BY key DESC LIMIT %s) AS newest",
)
# In a search for one node PostgreSQL reads the table from its end, in vain if there is none.
_FOUND = f"WITH found AS MATERIALIZED (SELECT key FROM {LEXICON} WHERE words @@ %s::tsquery"
_IS_ANY = "SELECT count(*) FROM (SELECT key FROM found LIMIT 1) AS first"
_HOLDS = Statement.of(
    sqlite=f"SELECT count(*) FROM (SELECT rowid FROM {LEXICON} WHERE {LEXICON} MATCH ? LIMIT 1)",
    postgresql=f"{_FOUND}) {_IS_ANY}",
)
_HOLDS_IN_PARTITION = Statement.of(sqlite="", postgresql=f"{_FOUND} AND tree = %s) {_IS_ANY}")

_SEGMENTS_OF_TREE = Statement(
    select(segment.c.id).where(segment.c.tree == bindparam("tree"), within(segment.c.id, "segments")),
    *("tree", "segments"),
)
_SEGMENTS_OF_OWNER = Statement(
    select(segment.c.id)
    .join(tree, tree.c.id == segment.c.tree)
    .where(within(segment.c.id, "segments"), OWNED),
    *("segments", "owner"),
)


def tree_word(tree_id: int) -> str:
    """The word that marks a tree; `§` is not a letter, so no text contains the word."""
    return f"§t{tree_id}"


def owner_word(owner: str) -> str:
    """The word that marks an owner."""
    return "§o" + hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def name_word(word: str) -> str:
    """The word that marks messages of a speaker whose name contains a word."""
    return f"§n{word}"


def add(conn: Conn, owner: str, entries: Mapping[int, Iterable[NodeWords]]) -> None:
    """Add nodes of trees to the index."""
    conn.many(_ADD, [row for tree_id, added in entries.items() for row in _rows(tree_id, owner, added)])


def remove(conn: Conn, tree_id: int, owner: str, entries: Sequence[NodeWords]) -> None:
    """Remove nodes from the index; the entries must equal the added entries."""
    expect_removals(conn, [len(entries)])
    conn.many(_REMOVE, _rows(tree_id, owner, entries))


def expect_removals(conn: Conn, counts: Iterable[int]) -> None:
    """Prepare the removal of entries: many are marked as removed until `compact`, not overwritten."""
    if conn.dialect == "sqlite" and not CAN_OVERWRITE:
        conn.run(_STOP_OVERWRITING)
    elif _overwrites(conn) and sum(counts) > MOST_OVERWRITTEN:
        conn.run(_OVERWRITE, 0)


def marked(conn: Conn, tree_id: int) -> bool:
    """Whether the index contains entries of a tree."""
    word = tree_word(tree_id)
    return _holds(conn, f"'{word}'" if conn.dialect == "postgresql" else f'"{word}"', tree_id)


def compact(conn: Conn) -> None:
    """Rewrite the index without the words of removed entries; some seconds for a million entries.

    From SQLite 3.42 on, the words of entries that are removed later are overwritten, so the next call has
    nothing to rewrite.
    """
    if conn.dialect == "sqlite" and not _overwrites(conn):
        conn.run(_COMPACT)
        if CAN_OVERWRITE:
            conn.run(_OVERWRITE, 1)


def _overwrites(conn: Conn) -> bool:
    """Whether the words of removed entries are overwritten, and no others are left."""
    return CAN_OVERWRITE and conn.dialect == "sqlite" and bool(conn.all(_OVERWRITES))


def holding(conn: Conn, words: Sequence[str], scope: LexiconScope, most: int = MOST_PER_WORD) -> list[Keys]:
    """For each word, the keys of the newest nodes that contain it, the newest first.

    Args:
        conn: A transaction.
        words: Terms of the language (`index.language`).
        scope: The scope of the search.
        most: The maximum number of nodes for each word.
    """
    cut = [word[:LONGEST_WORD] for word in words]
    if conn.dialect == "postgresql":
        return [_newest(conn, f"'{scope.word}' & '{word}'", most, scope.tree) for word in cut]
    everywhere = [_newest(conn, f'"{word}"', most) for word in cut]
    within_scope = _within(conn, everywhere, scope)
    return [
        # Nodes outside of the scope may have displaced nodes inside.
        _newest(conn, f'"{scope.word}" AND "{word}"', most) if len(inside) < len(keys) == most else inside
        for word, keys, inside in zip(cut, everywhere, within_scope, strict=True)
    ]


def holding_any(conn: Conn, words: Sequence[str], scope: LexiconScope, most: int = MOST_PER_WORD) -> Keys:
    """The keys of the newest nodes of a scope that contain any of the words, the newest first."""
    if conn.dialect == "postgresql":
        return _newest(conn, f"'{scope.word}' & ({' | '.join(map(repr, words))})", most, scope.tree)
    quoted = " OR ".join(f'"{word}"' for word in words)
    return _newest(conn, f'"{scope.word}" AND ({quoted})', most)


def names_among(conn: Conn, words: Iterable[str], scope: LexiconScope) -> set[str]:
    """The words that are names of speakers in a scope."""
    marked = {word: name_word(word[:LONGEST_WORD]) for word in words}
    if not marked:
        return set()
    # Most queries contain no name, so all words are searched at once first.
    if conn.dialect == "postgresql":
        own = {word: f"'{scope.word}' & '{name}'" for word, name in marked.items()}
        if not _holds(conn, " | ".join(f"({query})" for query in own.values()), scope.tree):
            return set()
        return {word for word, query in own.items() if _holds(conn, query, scope.tree)}
    if not _holds(conn, " OR ".join(f'"{name}"' for name in marked.values())):
        return set()
    lists = holding(conn, list(marked.values()), scope, 1)
    return {word for word, keys in zip(marked, lists, strict=True) if len(keys)}


def _holds(conn: Conn, query: str, tree_id: int | None = None) -> bool:
    """Whether any entry, of a partitioned database in the partition of a tree, meets a query."""
    if conn.partitioned and tree_id is not None:
        return bool(conn.all(_HOLDS_IN_PARTITION, query, tree_id)[0][0])
    return bool(conn.all(_HOLDS, query)[0][0])


def _newest(conn: Conn, query: str, most: int, tree_id: int | None = None) -> Keys:
    if conn.partitioned and tree_id is not None:
        listed = conn.all(_HOLDING_IN_PARTITION, query, tree_id, most)[0][0]
    else:
        listed = conn.all(_HOLDING, query, most)[0][0]
    # Neither database guarantees the order of an aggregated text.
    return np.sort(np.fromstring(listed, np.int64, sep=","))[::-1] if listed else NO_KEYS


def _within(conn: Conn, lists: Sequence[Keys], scope: LexiconScope) -> list[Keys]:
    """The keys that are in a scope, by their segments: a segment belongs to one tree."""
    # Keys are sorted, so if the first and the last key are of one segment, all keys are.
    ends = {int(keys[at]) >> POSITION_BITS for keys in lists if len(keys) for at in (0, -1)}
    if not ends:
        return list(lists)
    segments = [keys >> POSITION_BITS for keys in lists] if len(ends) > 1 else []
    among = np.unique(np.concatenate(segments)).tolist() if segments else list(ends)
    listed = json.dumps(among)
    if scope.tree is None:
        rows = conn.all(_SEGMENTS_OF_OWNER, listed, scope.owner)
    else:
        rows = conn.all(_SEGMENTS_OF_TREE, scope.tree, listed)
    if len(rows) == len(among):
        return list(lists)
    if not rows:
        return [NO_KEYS for _ in lists]
    inside = np.array([row[0] for row in rows], np.int64)
    return [keys[np.isin(segments_of, inside)] for keys, segments_of in zip(lists, segments, strict=True)]


def _rows(tree_id: int, owner: str, entries: Iterable[NodeWords]) -> list[tuple[int, str]]:
    scope = f"{tree_word(tree_id)} {owner_word(owner)}"
    return [(key, f"{scope} {words}") for key, words in entries]


def entered(words: Iterable[str]) -> Iterable[str]:
    """The distinct words of a node, cut to the maximum size, up to the maximum size of an entry."""
    distinct = dict.fromkeys(words)
    size = sum(map(len, distinct))
    if size > LONGEST_WORD:  # A word may be too long.
        distinct = dict.fromkeys(sorted(word[:LONGEST_WORD] for word in distinct))
    if 4 * size < MOST_BYTES:
        return distinct
    budget, entered = MOST_BYTES, []
    for word in distinct:
        budget -= len(word.encode()) + 8  # PostgreSQL stores 8 bytes with each word.
        if budget < 0:
            break
        entered.append(word)
    return entered
