"""Creation and migration of the database schema.

A migration is a numbered function with a name that says why. It runs in one transaction together
with the row that records it, so a crash leaves it wholly done or not begun. An empty database gets
the tables as `schema` defines them now and every migration is recorded; an older one gets what it lacks,
in order; one written by a newer version is refused and left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.schema import CreateIndex, CreateTable

from langchain_threadmem.errors import InputError, NewerDatabaseError, PersistenceError
from langchain_threadmem.storage import checksums, schema
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

log = logging.getLogger(__package__)


class Migration(NamedTuple):
    """One step from a schema to the next."""

    number: int
    name: str
    apply: Callable[[Conn], None]


def create_all(conn: Conn) -> None:
    """Create every table and index as `schema` defines it."""
    tables = checksums.with_checksums() if conn.dialect == "sqlite" else schema.metadata
    for table in tables.sorted_tables:
        conn.run(Statement(CreateTable(table, if_not_exists=True)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            conn.run(Statement(CreateIndex(index, if_not_exists=True)))
    conn.script(*schema.LEXICON_DDL[conn.dialect])


def share_what_follows(conn: Conn) -> None:
    """Let what follows a message hang under another one, and the forks below a message be found by it."""
    conn.script("DROP INDEX ix_threadmem_segment_tree")
    conn.run(Statement(CreateTable(schema.graft)))
    for table in (schema.segment, schema.graft):
        for index in table.indexes:
            conn.run(Statement(CreateIndex(index)))


def add_lineage(conn: Conn) -> None:
    """Create the table of turns that runs of graphs begin in a conversation."""
    conn.run(Statement(CreateTable(schema.lineage, if_not_exists=True)))


def add_checksums(conn: Conn) -> None:
    """Give every row a checksum, so that damage is found, and every owner a proof of its key."""
    conn.run(Statement(CreateTable(schema.key)))
    checksums.add(conn)


def add_profiles(conn: Conn) -> None:
    """Create the table of titles and metadata of conversations."""
    tables = checksums.with_checksums() if conn.dialect == "sqlite" else schema.metadata
    conn.run(Statement(CreateTable(tables.tables[schema.profile.name], if_not_exists=True)))


MIGRATIONS = (
    Migration(1, "trees of segments, with their derived indexes", create_all),
    Migration(2, "what follows a message is shared by its versions", share_what_follows),
    Migration(3, "which turns a run of a graph did not see", add_lineage),
    Migration(4, "checksums of rows and proofs of keys: damage and wrong keys are found", add_checksums),
    Migration(5, "titles and metadata of conversations", add_profiles),
)

_TABLES = Statement.of(
    sqlite="SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    postgresql="SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) ORDER BY 1",
)
_CREATE_RECORD = Statement(CreateTable(schema.migration, if_not_exists=True))
_LATEST = Statement(select(func.max(schema.migration.c.number)))
_RECORD = insert_of(schema.migration)


def check(conn: Conn, name: str) -> None:
    """Make sure that a database that is only read holds a memory, of the newest schema.

    Args:
        conn: A transaction.
        name: The database, for the error.

    Raises:
        InputError: It holds none.
        NewerDatabaseError: A newer version of this package wrote it.
        PersistenceError: An older one did, and it has to be migrated first.
    """
    tables = [row[0] for row in conn.all(_TABLES)]
    if schema.migration.name not in tables:
        known = ", ".join(map(repr, tables[:5])) + (" ..." if len(tables) > 5 else "")
        raise InputError(
            f"{name} is a database without a memory: it has no table {schema.migration.name!r}, but "
            f"{known or 'none at all'}; check the path"
        )
    found = _found(conn)
    if found < MIGRATIONS[-1].number:
        raise PersistenceError(
            f"{name} has schema {found!r}, and looking at it would not change it to {MIGRATIONS[-1].number}; "
            "open it once with MemorySystem, which does"
        )


def _found(conn: Conn) -> int:
    """The schema of a database; 0 for one without."""
    row = conn.one(_LATEST)
    found = int(row[0] or 0) if row else 0
    newest = MIGRATIONS[-1].number
    if found > newest:
        raise NewerDatabaseError(
            f"the database has schema {found!r}, this version of langchain-threadmem knows up to {newest}; "
            "nothing was changed: upgrade the package (pip install -U langchain-threadmem)"
        )
    return found


def migrate(conn: Conn, now: float) -> None:
    """Bring a database up to the newest schema; does nothing to one that is.

    Args:
        conn: A write transaction; on PostgreSQL the caller holds an advisory lock.
        now: Seconds since 1970, for the record.

    Raises:
        NewerDatabaseError: A newer version of this package wrote the database.
    """
    conn.run(_CREATE_RECORD)
    found = _found(conn)
    if found == 0:
        create_all(conn)
    for migration in MIGRATIONS:
        if migration.number > found:
            if found:
                log.info("migrating the database to schema %d: %s", migration.number, migration.name)
                migration.apply(conn)
            conn.run(_RECORD, migration.number, migration.name, now)
