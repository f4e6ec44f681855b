"""Opening a database by its URL, immediately or at its first transaction (see `storage.transaction`)."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.postgres import PostgresDatabase
from langchain_threadmem.storage.replicas import ReplicatedDatabase
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.transaction import Database
from langchain_threadmem.storage.urls import parse_url, with_options, with_replica


def open_database(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> Database:
    """Open a database, and create or migrate its tables.

    Raises:
        InputError: The URL is not the URL of a supported database, an option does not apply to it, or a
            read-only database does not exist or is not a memory.
        PersistenceError: The database cannot be opened.
        NewerDatabaseError: A newer version of this package wrote the database.

    Example:
        >>> database = open_database(None)
        >>> database.dialect
        'sqlite'
        >>> database.close()
    """
    database = unopened(url, pool_size=pool_size, max_overflow=max_overflow, read_only=read_only)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def unopened(
    url: str | Path | None,
    *,
    pool_size: int | None = None,
    max_overflow: int | None = None,
    read_only: bool = False,
) -> Database:
    """The database of a URL, which the first transaction opens; this call does not access it.

    Args:
        url: `sqlite:///file.db`, a path to an SQLite file, `postgresql://user@host/name`, or
            `None` (`sqlite://`) for a database in memory. For SQLite, `?synchronous=FULL` waits for the disk;
            for PostgreSQL, `?pool_size=20&max_overflow=0` limits the number of connections, and
            `?prepared_statements=false` (or `true`) decides whether connections prepare statements, which is
            otherwise found out; `?replica=` is the percent-encoded URL of a replica that serves reads.
        pool_size: The number of connections to PostgreSQL that stay open; overrides the URL.
        max_overflow: The maximum number of additional connections; overrides the URL.
        read_only: Whether to allow reads only; opening then refuses a database that does not exist or is not
            a memory.

    Raises:
        InputError: The URL is not the URL of a supported database, or an option does not apply to it.
    """
    location = parse_url(url)
    pool = {"pool_size": pool_size, "max_overflow": max_overflow}
    if isinstance(location, URL):
        server, replica = with_replica(location)
        server, options = with_options(server, pool)
        if replica is not None:
            return ReplicatedDatabase(server, replica, read_only=read_only, **options)
        return PostgresDatabase(server, read_only=read_only, **options)
    for name, value in pool.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for PostgreSQL, but {str(url)!r} is SQLite; leave it out")
    return SqliteDatabase(*location, read_only=read_only)
