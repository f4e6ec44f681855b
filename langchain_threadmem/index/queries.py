"""SQL: the documents of messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, BindParameter, bindparam, delete, or_, select

from langchain_threadmem.index import lexicon
from langchain_threadmem.index.documents import Document, DocumentRow, length_of
from langchain_threadmem.index.language import split
from langchain_threadmem.index.lexicon import LONGEST_WORD, NodeWords, entered, name_word
from langchain_threadmem.index.units.queries import OWNED
from langchain_threadmem.storage import node_keys
from langchain_threadmem.storage.schema import SUMMARIES, State, document, node, segment, tree, unit
from langchain_threadmem.storage.statements import Conn, Statement, insert_of, within

_PUT = insert_of(document, replace=True)
_COLUMNS = (
    *node.c["key", "seq", "parent", "role", "state"],
    *document.c["terms", "traits", "speaker", "time"],
)
_TREE: BindParameter[int] = bindparam("tree", type_=BigInteger())
_SINCE = Statement(
    node_keys.after(
        select(*_COLUMNS).join(document, document.c.key == node.c.key),
        _TREE,
        bindparam("seq", type_=BigInteger()),
    ),
    *("tree", "seq"),
)
_OF_OWNER = Statement(
    select(*_COLUMNS, tree.c.id, tree.c.scope)
    .join(document, document.c.key == node.c.key)
    .join(tree, tree.c.id == node.c.tree)
    .where(within(node.c.key, "keys"), OWNED),
    *("keys", "owner"),
)
_STATES = Statement(
    select(*node.c["key", "seq", "parent", "role", "state"], tree.c.id, tree.c.scope)
    .join(tree, tree.c.id == node.c.tree)
    .outerjoin(unit, unit.c.key == node.c.key)
    .where(within(node.c.key, "keys"), OWNED, unit.c.forgotten.is_(None)),
    *("keys", "owner"),
)
_ENTERED = Statement(
    select(document.c.key, document.c.terms, document.c.speaker)
    .select_from(segment.join(document, node_keys.inside(document.c.key)))
    .where(segment.c.tree == _TREE),
    "tree",
)
_OF_KEYS = Statement(
    select(*document.c["key", "terms", "speaker", "traits"]).where(within(document.c.key, "keys")), "keys"
)
_REMOVE_KEYS = Statement(delete(document).where(within(document.c.key, "keys")), "keys")
_DEAD = Statement(
    select(node.c.seq)
    .select_from(segment.join(node, node_keys.inside(node.c.key)).outerjoin(unit, unit.c.key == node.c.key))
    .where(segment.c.tree == _TREE, or_(node.c.state != int(State.LIVE), unit.c.forgotten.is_not(None))),
    "tree",
)
_REMOVE = Statement(delete(document).where(node_keys.in_tree(document.c.key, _TREE)), "tree")


def put(conn: Conn, documents: Iterable[tuple[int, Document]]) -> None:
    """Store the documents of nodes: pairs of key and document."""
    conn.many(_PUT, [(key, *document) for key, document in documents])


def since(conn: Conn, tree_id: int, seq: int) -> list[DocumentRow]:
    """The documents of a tree's nodes with numbers above `seq`, in order."""
    return _records(conn.all(_SINCE, tree_id, seq))


class OwnedRecord(NamedTuple):
    """A record, its tree, and whether it is the record of a summary."""

    record: DocumentRow
    tree: int
    is_summary: bool


def of_owner(conn: Conn, owner: str, keys: Sequence[int]) -> list[OwnedRecord]:
    """The records of nodes, if they are messages or summaries of an owner."""
    rows = conn.all(_OF_OWNER, json.dumps(keys), owner)
    records = _records([row[:-2] for row in rows])
    return [
        OwnedRecord(record, row[-2], row[-1] == SUMMARIES) for record, row in zip(records, rows, strict=True)
    ]


def with_documents(conn: Conn, owner: str, documents: Mapping[int, Document]) -> list[OwnedRecord]:
    """The records of nodes whose documents are not stored, by key; forgotten nodes are omitted."""
    rows = conn.all(_STATES, json.dumps(list(documents)), owner) if documents else []
    return [
        OwnedRecord(
            DocumentRow(key, seq, parent, role, state == State.LIVE, documents[key]),
            tree_id,
            scope == SUMMARIES,
        )
        for key, seq, parent, role, state, tree_id, scope in rows
    ]


def dead(conn: Conn, tree_id: int) -> list[int]:
    """Numbers of the nodes of a tree that are not live, or forgotten."""
    return [row[0] for row in conn.all(_DEAD, tree_id)]


def entry_of(key: int, terms: str, speaker: str) -> NodeWords:
    """The entry of a message in the lexicon; without terms it has no words."""
    words = terms.split()
    if words and speaker:
        words += map(name_word, split(speaker))
    elif len(terms) <= LONGEST_WORD:  # Nothing is too long.
        return NodeWords(key, " ".join(dict.fromkeys(words)))
    return NodeWords(key, " ".join(entered(words)))


def take(conn: Conn, keys: Sequence[int]) -> list[tuple[NodeWords, int]]:
    """Delete the documents of nodes, and return their entries in the lexicon and their lengths."""
    keys_json = json.dumps(keys)
    lengths = [
        (entry_of(key, terms, speaker), length_of(traits))
        for key, terms, speaker, traits in conn.all(_OF_KEYS, keys_json)
    ]
    conn.run(_REMOVE_KEYS, keys_json)
    return [(entry, length) for entry, length in lengths if entry.words]


def _records(rows: Iterable[tuple[Any, ...]]) -> list[DocumentRow]:
    return [
        DocumentRow(key, seq, parent, role, state == State.LIVE, Document(*document))
        for key, seq, parent, role, state, *document in rows
    ]


def forget_words(conn: Conn, tree_id: int, owner: str) -> None:
    """Remove a tree from the lexicon, and the documents of its messages."""
    rows = conn.all(_ENTERED, tree_id)
    entered = [entry for key, terms, speaker in rows if (entry := entry_of(key, terms, speaker)).words]
    lexicon.remove(conn, tree_id, owner, entered)
    conn.run(_REMOVE, tree_id)
