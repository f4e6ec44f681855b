"""The inverted index: which nodes hold a word.

FTS5 on SQLite and a `tsvector` column with GIN on PostgreSQL give candidates only: for each word of a query
the newest nodes that hold it, 0.1 ms a word whatever the size. Ranking is `core.ranking`, the same on both.

Each entry also holds two words that no text can spell, one for its tree and one for its owner, so that
a search in one conversation or for one owner is an intersection inside the index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from langchain_threadmem.storage.schema import LEXICON
from langchain_threadmem.storage.statements import Conn, Statement

MOST_PER_WORD = 1000


class Entry(NamedTuple):
    """The words of one node."""

    key: int
    words: Sequence[str]


_ADD = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} (rowid, words) VALUES (?, ?)",
    postgresql=f"INSERT INTO {LEXICON} (key, words) VALUES (%s, array_to_tsvector(string_to_array(%s, ' '))) "
    "ON CONFLICT (key) DO NOTHING",
)
_REMOVE = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}, rowid, words) VALUES ('delete', ?, ?)",
    postgresql=f"DELETE FROM {LEXICON} WHERE key = %s AND %s <> ''",
)
_HOLDING = Statement.of(
    sqlite=f"SELECT rowid FROM {LEXICON} WHERE {LEXICON} MATCH ? ORDER BY rowid DESC LIMIT ?",
    postgresql=f"SELECT key FROM {LEXICON} WHERE words @@ %s::tsquery ORDER BY key DESC LIMIT %s",
)


def tree_word(tree_id: int) -> str:
    """The word that marks a tree; `§` is no letter, so no text holds it."""
    return f"§t{tree_id}"


def owner_word(owner: str) -> str:
    """The word that marks an owner."""
    return "§o" + hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def add(conn: Conn, tree_id: int, owner: str, entries: Iterable[Entry]) -> None:
    """Enter nodes into the index."""
    conn.many(_ADD, _rows(tree_id, owner, entries))


def remove(conn: Conn, tree_id: int, owner: str, entries: Iterable[Entry]) -> None:
    """Take nodes out of the index; the entries must be those that were added."""
    conn.many(_REMOVE, _rows(tree_id, owner, entries))


def holding(conn: Conn, word: str, scope: str, most: int = MOST_PER_WORD) -> list[int]:
    """Keys of the newest nodes that hold a word.

    Args:
        conn: A transaction.
        word: One word, as `core.words.words` makes them.
        scope: A tree's or an owner's word.
        most: How many at most.
    """
    query = f'"{scope}" AND "{word}"' if conn.dialect == "sqlite" else f"'{scope}' & '{word}'"
    return [row[0] for row in conn.all(_HOLDING, query, most)]


def _rows(tree_id: int, owner: str, entries: Iterable[Entry]) -> list[tuple[int, str]]:
    scope = f"{tree_word(tree_id)} {owner_word(owner)}"
    return [(entry.key, " ".join([scope, *sorted(set(entry.words))])) for entry in entries]
