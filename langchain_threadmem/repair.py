"""Repair of derived data: indexes, words and vectors that are made from the messages anew."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BigInteger, bindparam, delete, select

from langchain_threadmem import integrity
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.index import vectors, watermarks
from langchain_threadmem.index.catch_up import catch_up_owner_words, index_problems, reindex
from langchain_threadmem.messages.text import plural
from langchain_threadmem.storage import checksums
from langchain_threadmem.storage.schema import LEXICON, embedding, gist, mark, node
from langchain_threadmem.storage.statements import Conn, Statement

_REINDEX = Statement.of(sqlite="REINDEX", postgresql="SELECT 1")
_NO_WORDS = Statement.of(
    sqlite=f"INSERT INTO {LEXICON} ({LEXICON}) VALUES ('delete-all')", postgresql=f"DELETE FROM {LEXICON}"
)
_NO_DOCUMENTS = Statement(delete(gist))
_LEXICONS = Statement(delete(mark).where(mark.c.name.startswith(watermarks.lexicon_of(""), autoescape=True)))
_MARK = Statement(
    delete(mark).where(
        mark.c.tree == bindparam("tree", type_=BigInteger()), mark.c.name == bindparam("name")
    ),
    "tree",
    "name",
)
_VECTOR = Statement(
    delete(embedding).where(
        embedding.c.key == bindparam("key", type_=BigInteger()), embedding.c.model == bindparam("model")
    ),
    *("key", "model"),
)
_TREE_OF = Statement(select(node.c.tree).where(node.c.key == bindparam("key", type_=BigInteger())), "key")


def repair(runtime: Runtime) -> Flow[list[str]]:
    """Mend the derived data of a database; messages and all that is not made from them stay as they are.

    Database indexes are rebuilt if the check of the file finds a fault. If a row of the words of messages or
    of the progress of an index is damaged, all words are made from the messages anew. Damaged vectors are
    deleted with those of the same conversation, and the next search embeds these messages anew. An index of
    vectors that differs from SQL is filled anew. Checksums find damaged rows on SQLite alone.

    Returns:
        The repairs, one sentence each; `verify` finds the problems that are left.

    Example:
        >>> from langchain_threadmem import MemorySystem
        >>> from langchain_threadmem.engine.flow import run
        >>> system = MemorySystem(embeddings=False)
        >>> run(repair(system.runtime), system.runtime)
        []
    """
    done: list[str] = []
    if (yield from Sql(integrity.problems)):
        yield from Sql(lambda conn: conn.run(_REINDEX), write=True)
        if not (yield from Sql(integrity.problems)):
            done.append("the indexes of the database file were built anew")
    done += yield from Sql(_mend, write=True)
    if done:
        yield from catch_up_owner_words(runtime)
    if (yield from index_problems(runtime)):
        count = yield from reindex(runtime)
        done.append(f"the vector index was filled anew with {plural(count, 'vector')}")
    return done


def _mend(conn: Conn) -> list[str]:
    """Delete damaged derived rows, and what was made together with them."""
    done: list[str] = []
    words, marks = checksums.wrong(conn, gist), checksums.wrong(conn, mark)
    for tree, name in marks:
        conn.run(_MARK, tree, name)
    faults = [fault for fault in integrity.problems(conn) if LEXICON in fault]
    if words or marks or faults:
        # The entries of a damaged row in the index of words are not known, so all entries are removed.
        for statement in (_NO_WORDS, _NO_DOCUMENTS, _LEXICONS):
            conn.run(statement)
        done.append("the words of all messages were made anew")
    broken = checksums.wrong(conn, embedding)
    for tree, model in sorted(_trees_of(conn, broken)):
        vectors.delete_of_tree(conn, tree, model)
        watermarks.drop(conn, tree, watermarks.embeddings_of(model))
        watermarks.drop(conn, tree, watermarks.index_of(model))
    for key, model in broken:  # Also of a node that there is not.
        conn.run(_VECTOR, key, model)
    if broken:
        done.append(f"{plural(len(broken), 'damaged vector')} removed; the next search makes new ones")
    return done


def _trees_of(conn: Conn, rows: Collection[tuple[int, str]]) -> set[tuple[int, str]]:
    """The trees and the models of rows of vectors."""
    return {(found[0], model) for key, model in rows if (found := conn.one(_TREE_OF, key)) is not None}
