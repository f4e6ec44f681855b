"""Creation and migration of the database schema.

A migration is a numbered function. It runs in one transaction with the row that records it, so that after a
crash it is complete or not begun. In an empty database the tables of `schema` are created and all migrations
are recorded; in an older database the missing migrations run in order; the database of a newer version is
refused and not changed.
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
    """A change from one version of the schema to the next."""

    number: int
    name: str
    apply: Callable[[Conn], None]


def create_all(conn: Conn) -> None:
    """Create the tables and indexes of `schema`."""
    tables = checksums.with_checksums() if conn.dialect == "sqlite" else schema.metadata
    for table in tables.sorted_tables:
        conn.run(Statement(CreateTable(table, if_not_exists=True)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            conn.run(Statement(CreateIndex(index, if_not_exists=True)))
    conn.script(*schema.LEXICON_DDL[conn.dialect])


def share_what_follows(conn: Conn) -> None:
    """Create the table of grafts, and index segments by the node they fork from."""
    conn.script("DROP INDEX ix_threadmem_segment_tree")
    conn.run(Statement(CreateTable(schema.graft)))
    for table in (schema.segment, schema.graft):
        for index in table.indexes:
            conn.run(Statement(CreateIndex(index)))


def add_lineage(conn: Conn) -> None:
    """Create the table of turns that LangGraph runs begin."""
    conn.run(Statement(CreateTable(schema.lineage, if_not_exists=True)))


def add_checksums(conn: Conn) -> None:
    """Add checksums of rows, which detect damage, and the table of proofs of keys."""
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
    """Check that a read-only database is a memory with the newest schema.

    Args:
        conn: A transaction.
        name: The database, for the error.

    Raises:
        InputError: The database is not a memory.
        NewerDatabaseError: A newer version of this package wrote the database.
        PersistenceError: The database has an older schema and must be migrated first.
    """
    tables = [row[0] for row in conn.all(_TABLES)]
    if schema.migration.name not in tables:
        names = ", ".join(map(repr, tables[:5])) + (" ..." if len(tables) > 5 else "")
        raise InputError(
            f"{name} is a database without a memory: it has no table {schema.migration.name!r}, but "
            f"{names or 'none at all'}; check the path"
        )
    version = _version(conn)
    if version < MIGRATIONS[-1].number:
        raise PersistenceError(
            f"{name} has schema {version!r} and is read-only, so it is not migrated to schema "
            f"{MIGRATIONS[-1].number}; open it once with MemorySystem to migrate it"
        )


def is_newest(conn: Conn) -> bool:
    """Whether a database has the tables of the newest schema.

    Raises:
        NewerDatabaseError: A newer version of this package wrote the database.
    """
    tables = [row[0] for row in conn.all(_TABLES)]
    return schema.migration.name in tables and _version(conn) == MIGRATIONS[-1].number


def _version(conn: Conn) -> int:
    """The schema of a database; 0 for an empty database."""
    row = conn.one(_LATEST)
    version = int(row[0] or 0) if row else 0
    newest = MIGRATIONS[-1].number
    if version > newest:
        raise NewerDatabaseError(
            f"the database has schema {version!r}, but this version of langchain-threadmem supports schemas "
            f"up to {newest}; nothing was changed; upgrade the package (pip install -U langchain-threadmem)"
        )
    return version


def migrate(conn: Conn, now: float) -> None:
    """Migrate a database to the newest schema, if it has an older one.

    Args:
        conn: A write transaction; on PostgreSQL the caller has an advisory lock.
        now: Seconds since 1970, for the record.

    Raises:
        NewerDatabaseError: A newer version of this package wrote the database.
    """
    conn.run(_CREATE_RECORD)
    version = _version(conn)
    if version == 0:
        create_all(conn)
    for migration in MIGRATIONS:
        if migration.number > version:
            if version:
                log.info("migrating the database to schema %d: %s", migration.number, migration.name)
                migration.apply(conn)
            conn.run(_RECORD, migration.number, migration.name, now)
