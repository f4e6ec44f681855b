"""Creation and migration of the database schema.

A migration is a numbered function. It runs in one transaction with the row that records it, so that after a
crash it is complete or not begun. In an empty database the tables of `schema` are created and all migrations
are recorded; in an older database the missing migrations run in order. The database of a newer version is
refused and not changed, and so is a database with a schema before the first migration.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from sqlalchemy import Column, MetaData, Table, Text, func, select
from sqlalchemy.schema import CreateIndex, CreateTable

from langchain_threadmem.errors import InputError, NewerDatabaseError, OlderDatabaseError, PersistenceError
from langchain_threadmem.messages.text import listed
from langchain_threadmem.storage import checksums, schema
from langchain_threadmem.storage.statements import Conn, Statement, insert_of

log = logging.getLogger(__package__)


class Migration(NamedTuple):
    """A change from one version of the schema to the next."""

    number: int
    name: str
    apply: Callable[[Conn], None]


LOCK = 0x7468_7265_6164  # "thread"
"""The advisory lock of PostgreSQL that a change of the schema takes."""
CLEAN = 1
"""The `user_version` of an SQLite file of which every deleted row was overwritten (`storage.free_space`)."""


CAN_OVERWRITE = sqlite3.sqlite_version_info >= (3, 42)
"""Whether FTS5 can overwrite the words of removed entries; else it keeps them until it is rewritten."""


def create_all(conn: Conn) -> None:
    """Create the tables and indexes of `schema`."""
    if conn.dialect == "sqlite":
        conn.script(f"PRAGMA user_version={CLEAN}")
    conn.script(*_definitions(conn.dialect))


@cache
def _definitions(dialect: str) -> tuple[str, ...]:
    """The statements of `create_all`; to compile them takes longer than to execute them."""
    elements: list[CreateTable | CreateIndex] = []
    tables = checksums.with_checksums() if dialect == "sqlite" else schema.metadata
    for table in tables.sorted_tables:
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        elements += [CreateTable(table, if_not_exists=True)]
        elements += [CreateIndex(index, if_not_exists=True) for index in indexes]
    return (*(Statement(element).sql(dialect) for element in elements), *schema.LEXICON_DDL[dialect])


def index_expiries(conn: Conn) -> None:
    """Create the index of the expired items of a namespace."""
    conn.run(Statement(CreateIndex(schema.item_expiry, if_not_exists=True)))


def index_unsaid(conn: Conn) -> None:
    """Create the index of the nodes that a list of conversations does not count."""
    conn.run(Statement(CreateIndex(schema.node_unsaid, if_not_exists=True)))


RENAMED = {  # The new name of `digest` is the old name of the table before it.
    "summary": "message_summary",
    "digest": "summary",
    "choice": "placement",
    "draft": "summary_draft",
    "memory": "visit_round",
    "bias": "selector_bias",
    "gist": "document",
    "mark": "watermark",
    "key": "key_proof",
}
"""The tables of schema 8 with another name in schema 9, without the prefix `threadmem_`."""


def index_nodes_and_rename_tables(conn: Conn) -> None:
    """Index the number and the message id of every node, and name tables as the documentation does."""
    if conn.dialect == "sqlite":
        _copy_nodes(conn)
    else:
        drop_views(conn, "node", *RENAMED)
        conn.script(
            "ALTER TABLE threadmem_node DROP COLUMN named, DROP COLUMN opens",
            "DROP INDEX threadmem_node_unsaid",
        )
    index_unsaid(conn)
    conn.script(
        "CREATE UNIQUE INDEX threadmem_node_seq ON threadmem_node (tree, seq)",
        "CREATE INDEX threadmem_node_message ON threadmem_node (tree, message)",
        "CREATE INDEX threadmem_tree_conversation ON threadmem_tree (conversation)",
    )
    for old, new in RENAMED.items():
        conn.script(f"ALTER TABLE threadmem_{old} RENAME TO threadmem_{new}")
        for (name,) in [] if conn.dialect == "sqlite" else conn.all(_CONSTRAINTS, f"threadmem_{new}"):
            renamed = name.replace(f"threadmem_{old}_", f"threadmem_{new}_", 1)
            conn.script(f"ALTER TABLE threadmem_{new} RENAME CONSTRAINT {name} TO {renamed}")


def _copy_nodes(conn: Conn) -> None:
    """Copy the nodes to a table without `named` and `opens`, which said what the indexes of schema 8 contain.

    The checksums of damaged rows stay wrong.
    """
    kept = ("key", "tree", "seq", "parent", "message", "role", "body", "created", "state", "superseded_by")
    texts = dict.fromkeys(("message", "role", "body"), Text())

    def checksum_of(*names: str) -> str:
        columns = (Column(name, texts.get(name)) for name in names)
        return checksums.expression(Table("node", MetaData(), *columns), "")

    is_intact = f"checksum IS {checksum_of(*kept, 'named', 'opens')}"
    checksum = f"CASE WHEN {is_intact} THEN {checksum_of(*kept)} ELSE checksum END"
    conn.script(
        "CREATE TABLE threadmem_node_9 (key INTEGER NOT NULL, tree INTEGER NOT NULL, seq INTEGER NOT NULL, "
        "parent INTEGER, message TEXT NOT NULL, role TEXT NOT NULL, body TEXT NOT NULL, "
        "created FLOAT NOT NULL, state SMALLINT NOT NULL, superseded_by INTEGER, checksum INTEGER, "
        "PRIMARY KEY (key))",
        f"INSERT INTO threadmem_node_9 SELECT {', '.join(kept)}, {checksum} FROM threadmem_node ORDER BY key",
        "DROP TABLE threadmem_node",
        "ALTER TABLE threadmem_node_9 RENAME TO threadmem_node",
    )


def drop_views(conn: Conn, *tables: str) -> None:
    """Drop the views of tables for row-level security, which `storage.row_security.secure` creates again."""
    for table in tables:
        for (view,) in conn.all(_VIEWS, f"threadmem_{table}", f"threadmem_{table}"):
            log.warning("%s is dropped; run `threadmem secure` again", view)
            conn.script(f"DROP VIEW {view}")


MIGRATIONS = (
    Migration(6, "the first schema that is migrated", create_all),
    Migration(7, "the expired items of a namespace are found by an index", index_expiries),
    Migration(8, "the messages of a conversation are counted by an index", index_unsaid),
    Migration(9, "nodes have plain indexes, and tables other names", index_nodes_and_rename_tables),
)

_VIEWS = Statement.of(
    sqlite="",
    postgresql="SELECT DISTINCT v.oid::regclass::text FROM pg_depend d "
    "JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class "
    "WHERE d.refobjid = to_regclass(%s) AND v.relname = %s AND v.relkind = 'v'",
)
_CONSTRAINTS = Statement.of(
    sqlite="", postgresql="SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) ORDER BY 1"
)
_TABLES = Statement.of(
    sqlite="SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    postgresql="SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) ORDER BY 1",
)
_CREATE_RECORD = Statement(CreateTable(schema.migration, if_not_exists=True))
_LATEST = Statement(select(func.max(schema.migration.c.number)))
_RECORD = insert_of(schema.migration)


_WORDS_VERSION = Statement.of(
    sqlite=f"SELECT v FROM {schema.LEXICON}_config WHERE k = 'version'", postgresql=""
)
_OVERWRITTEN = 5
"""The version of an index of FTS5 in which words were overwritten; SQLite before 3.42 reads only 4."""


def check(conn: Conn, name: str) -> None:
    """Check that a read-only database is a memory with the newest schema.

    Raises:
        InputError: The database is not a memory.
        NewerDatabaseError: A newer version of this package wrote the database.
        OlderDatabaseError: The database has an older schema and must be migrated first.
    """
    tables = [row[0] for row in conn.all(_TABLES)]
    if schema.migration.name not in tables:
        raise InputError(
            f"{name} is a database without a memory: it has no table {schema.migration.name!r}, but "
            f"{listed(tables) or 'none at all'}; check the path"
        )
    version = _version(conn)
    if version < MIGRATIONS[-1].number:
        raise OlderDatabaseError(
            f"{name} has schema {version!r} and is read-only, so it is not migrated to schema "
            f"{MIGRATIONS[-1].number}; open it once with MemorySystem, or run `threadmem reindex` on it"
        )


def delete_words(conn: Conn) -> None:
    """Empty the index of words, which the next search fills again."""
    is_sqlite = conn.dialect == "sqlite"
    conn.script(
        f"INSERT INTO {schema.LEXICON} ({schema.LEXICON}) VALUES ('delete-all')"
        if is_sqlite
        else f"DELETE FROM {schema.LEXICON}",
        f"DELETE FROM {schema.document.name}",
        f"DELETE FROM {schema.watermark.name} WHERE name LIKE 'lexicon:%'",
    )


def _delete_unreadable_words(conn: Conn) -> None:
    """Empty the index of words if a newer version of SQLite wrote it in a form that this one cannot read."""
    if not CAN_OVERWRITE and conn.all(_WORDS_VERSION) == [(_OVERWRITTEN,)]:
        log.warning("SQLite 3.42 or newer has overwritten words of the index; it is made again")
        config = f"{schema.LEXICON}_config"
        conn.script(f"UPDATE {config} SET v = {_OVERWRITTEN - 1} WHERE k = 'version'")
        conn.script(f"DELETE FROM {config} WHERE k = 'secure-delete'")
        delete_words(conn)


def is_newest(version: int | None) -> bool:
    """Whether the number of the newest migration of a database is that of this package.

    Raises:
        NewerDatabaseError: A newer version of this package wrote the database.
        PersistenceError: The schema of the database is before the first migration.
    """
    return _supported(version) == MIGRATIONS[-1].number


def _version(conn: Conn) -> int:
    """The schema of a database; 0 for an empty database."""
    row = conn.one(_LATEST)
    return _supported(row[0] if row else None)


def _supported(version: int | None) -> int:
    version = int(version or 0)
    oldest, newest = MIGRATIONS[0].number, MIGRATIONS[-1].number
    if 0 < version < oldest:
        raise PersistenceError(
            f"the database has schema {version!r}, but this version of langchain-threadmem supports schemas "
            f"from {oldest} on; nothing was changed; open it with the version that wrote it"
        )
    if version > newest:
        raise NewerDatabaseError(
            f"the database has schema {version!r}, but this version of langchain-threadmem supports schemas "
            f"up to {newest}; nothing was changed; upgrade the package (pip install -U langchain-threadmem)"
        )
    return version


def migrate(conn: Conn, time: float) -> None:
    """Migrate a database to the newest schema, if it has an older one.

    Args:
        conn: A write transaction; on PostgreSQL the caller has an advisory lock.
        time: Seconds since 1970, for the record.

    Raises:
        NewerDatabaseError: A newer version of this package wrote the database.
        PersistenceError: The schema of the database is before the first migration.
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
            conn.run(_RECORD, migration.number, migration.name, time)
    if conn.dialect == "sqlite":
        _delete_unreadable_words(conn)
