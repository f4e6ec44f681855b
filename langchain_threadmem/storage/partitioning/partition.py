"""The partitioning of an existing database of PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Table
from sqlalchemy.schema import CreateIndex, CreateTable

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage import schema
from langchain_threadmem.storage.database import quoted, unopened
from langchain_threadmem.storage.migrations import LOCK, drop_views
from langchain_threadmem.storage.partitioning.compiler import TREE, WITHOUT_TREE, partitioned_tables
from langchain_threadmem.storage.row_security import check_sees_all_owners
from langchain_threadmem.storage.statements import Conn, Statement

FEWEST, MOST = 2, 1024
_OLD = "_unpartitioned"
_COUNT = Statement.of(
    sqlite="",
    postgresql=f"SELECT count(*) FROM pg_inherits WHERE inhparent = '{schema.node.name}'::regclass",
)
_CONSTRAINTS = Statement.of(
    sqlite="",
    postgresql="SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = to_regclass(%s) "
    "AND contype <> 'n'",  # NOT NULL is a constraint too since PostgreSQL 18.
)
_INDEXES = Statement.of(
    sqlite="",
    postgresql="SELECT i.indexrelid::regclass::text FROM pg_index i WHERE i.indrelid = to_regclass(%s)",
)
_RIGHTS = Statement.of(
    sqlite="",
    postgresql="SELECT format('GRANT %%s ON %%s TO %%s%%s', privilege_type, CAST(%s AS text), "
    "CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, "
    "CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) FROM pg_class, aclexplode(relacl) "
    "WHERE pg_class.oid = to_regclass(%s) AND grantee <> relowner AND NOT relrowsecurity",
)
_OWNER = Statement.of(
    sqlite="", postgresql="SELECT relowner::regrole::text FROM pg_class WHERE oid = to_regclass(%s)"
)


class PartitionedTable(NamedTuple):
    """A table that was partitioned, and its number of rows."""

    name: str
    rows: int


def partition(url: str | Path, partitions: int) -> list[PartitionedTable]:
    """Partition the tables that grow with messages by the hash of their conversation.

    All rows are copied in one transaction, which locks the tables: reads and writes of other processes wait.
    The database needs space for a second copy meanwhile. If the call fails, nothing has changed. Processes
    that have the database open go on. Tables keep their owners and the rights that were granted. Views,
    policies and rights of row-level security are dropped; run `threadmem secure` again.

    Args:
        url: The database, with the role that owns the tables. An older schema is migrated first.
        partitions: The number of partitions of each table, from 2 to 1024; it cannot be changed later.

    Returns:
        The partitioned tables.

    Raises:
        InputError: The database is not PostgreSQL, is partitioned already, or the number is out of range.
        PersistenceError: The role does not own the tables, or the server refused.

    Example:
        ```python
        partition("postgresql://admin@host/name", 8)
        ```
    """
    if isinstance(partitions, bool) or not isinstance(partitions, int) or not FEWEST <= partitions <= MOST:
        raise InputError(f"partitions={partitions!r} is not a number from {FEWEST} to {MOST}")
    database = unopened(url)
    with closing(database):
        if database.dialect != "postgresql":
            raise InputError(
                f"{quoted(url)} is SQLite, which has no partitions; `threadmem convert` copies it into "
                "PostgreSQL"
            )

        def run(conn: Conn) -> list[PartitionedTable]:
            check_sees_all_owners(conn)
            # `tree` is locked first, as by each write, so that no write holds a lock that this one waits for.
            conn.script(
                "SET LOCAL statement_timeout = 0",
                f"SELECT pg_advisory_xact_lock({LOCK})",
                f"LOCK TABLE {schema.tree.name} IN ACCESS EXCLUSIVE MODE",
            )
            ((existing,),) = conn.all(_COUNT)
            if existing:
                raise InputError(
                    f"{quoted(url)} has {existing} partitions already; to change their number, copy the "
                    "memory into a new database (`threadmem convert`) and partition that"
                )
            names = [table.name for table in schema.metadata.sorted_tables]
            drop_views(conn, *(name.removeprefix("threadmem_") for name in [*names, schema.LEXICON]))
            return [
                PartitionedTable(table.name, _copy(conn, table, partitions)) for table in partitioned_tables()
            ]

        return database.write(run)


def _copy(conn: Conn, table: Table, partitions: int) -> int:
    """Replace a table by a partitioned one with its rows; returns their number."""
    name, old = table.name, table.name + _OLD
    conn.script(f"ALTER TABLE {name} RENAME TO {old}")
    for (constraint,) in conn.all(_CONSTRAINTS, old):
        conn.script(f"ALTER TABLE {old} DROP CONSTRAINT {constraint}")
    for (index,) in conn.all(_INDEXES, old):
        conn.script(f"DROP INDEX {index}")
    conn.run(Statement(CreateTable(table)))
    ((owner,),) = conn.all(_OWNER, old)
    for number in range(partitions):
        conn.script(
            f"CREATE TABLE {name}_{number} PARTITION OF {name} "
            f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})",
            f"ALTER TABLE {name}_{number} OWNER TO {owner}",
        )
    conn.script(f"ALTER TABLE {name} OWNER TO {owner}")
    for (grant,) in conn.all(_RIGHTS, name, old):
        conn.script(grant)
    stored = [column.name for column in table.c if name not in WITHOUT_TREE or column.name != TREE]
    columns = ", ".join(stored)
    if name in WITHOUT_TREE:
        # A row without a segment is damaged, and stays for `verify`.
        rows = (
            f"SELECT {', '.join(f'o.{column}' for column in stored)}, coalesce(s.{TREE}, 0) FROM {old} o "
            f"LEFT JOIN {schema.segment.name} s ON s.id = o.key >> {schema.POSITION_BITS}"
        )
        conn.script(f"INSERT INTO {name} ({columns}, {TREE}) {rows}")
    else:
        conn.script(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM {old}")
    conn.script(f"DROP TABLE {old}")
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        conn.run(Statement(CreateIndex(index)))
    conn.script(f"ANALYZE {name}")
    ((count,),) = conn.all(Statement.of(sqlite="", postgresql=f"SELECT count(*) FROM {name}"))
    return int(count)
