"""The URLs and paths of databases, and opening one immediately or at its first transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack, cast
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langchain_threadmem.errors import InputError
from langchain_threadmem.storage.sqlite import SqliteDatabase
from langchain_threadmem.storage.transaction import Database

_FORMS = "sqlite:///memory.db or postgresql://user@host/name"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|:")
"""The beginning of a URL; a single letter is a Windows drive."""
_POOL = {"pool_size": 1, "max_overflow": 0}
"""The options of the pool, and the least value of each."""
_PREPARED = "prepared_statements"
_SWITCH = {"true": True, "false": False}
_PASSWORD = re.compile(r"(://[^/:@]*):.*@")
_HOSTS = re.compile(r"(postgres(?:ql)?(?:\+\w+)?://(?:[^/?#]*@)?+)([^@/?#]*,[^@/?#]*)(.*)", re.DOTALL)
"""A URL with several servers in the form of libpq, which SQLAlchemy takes as options."""
_REPLICA = "replica"
_REPLICA_VALUE = re.compile(rf"(?<=[?&]{_REPLICA}=)[^&]*")


class Opening(TypedDict, total=False):
    """How a database is opened; the size of the pool takes precedence over the URL."""

    pool_size: int | None
    max_overflow: int | None
    read_only: bool


class ServerOptions(TypedDict, total=False):
    """The options of a PostgreSQL database; its URL may contain all but the last one."""

    pool_size: int
    max_overflow: int
    prepared_statements: bool
    read_only: bool


def with_options(url: URL, pool: Mapping[str, int | None]) -> tuple[URL, ServerOptions]:
    """A URL without the options of this package, and these options, of which those in `pool` come first."""
    options: dict[str, int] = {}
    for name, minimum in _POOL.items():
        value = pool[name] if pool[name] is not None else url.query.get(name)
        if value is not None:
            options[name] = _number(name, value, minimum)
    prepared = url.query.get(_PREPARED)
    if prepared is not None:
        if prepared not in _SWITCH:
            raise InputError(
                f"{_PREPARED}={prepared!r} is neither true nor false; without it, poolers are found out"
            )
        options[_PREPARED] = _SWITCH[str(prepared)]
    return url.difference_update_query([*pool, _PREPARED]), cast("ServerOptions", options)


def with_replica(url: URL) -> tuple[URL, URL | None]:
    """A URL without its option `replica`, and the URL of the replica, if there is one."""
    value = url.query.get(_REPLICA)
    if value is None:
        return url, None
    replica = parse_url(value) if isinstance(value, str) and is_url(value) else None
    if not isinstance(replica, URL) or replica.query.keys() & {*_POOL, _PREPARED, _REPLICA}:
        raise InputError(
            f"replica= of {url.set(query={}).render_as_string()!r} is not the URL of one PostgreSQL server "
            "without options of the pool; write ?replica=postgresql%3A%2F%2Fuser%40host%2Fname"
        )
    return url.difference_update_query([_REPLICA]), replica


def _number(name: str, value: object, minimum: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if type(number) is not int or number < minimum:
        raise InputError(f"{name}={value!r} is not a number of connections; pass {minimum} or more")
    return number


def sqlite_file(url: str | Path) -> Path | None:
    """The file of a URL or a path; `None` if there is no file.

    Raises:
        InputError: The URL is not the URL of a supported database.

    Example:
        >>> str(sqlite_file("sqlite:///memory.db")), sqlite_file("postgresql://user@host/name")
        ('memory.db', None)
    """
    location = parse_url(url)
    return None if isinstance(location, URL) else location[0]


def is_url(location: str | Path) -> bool:
    """Whether a location is a URL and not a path; the URL may be invalid.

    Example:
        >>> [is_url(name) for name in ("sqlite:memory.db", "http://host", "C:/memory.db", "a/memory.db")]
        [True, True, False, False]
    """
    return isinstance(location, str) and ("://" in location or _SCHEME.match(location) is not None)


def parse_url(url: str | Path | None) -> URL | tuple[Path | None, str]:
    """Parse a URL: returns the URL of a server, or an SQLite file (`None` for a database in memory) and its
    `synchronous` option.
    """
    if url is None or str(url) == ":memory:":
        return None, "NORMAL"
    if isinstance(url, Path):
        return url, "NORMAL"
    if not isinstance(url, str) or not url.strip():
        raise InputError(
            f"{url!r} is not a database; pass a path, {_FORMS}, or None for a database in memory"
        )
    if not is_url(url):
        return Path(url), "NORMAL"
    masked = _REPLICA_VALUE.sub("***", _PASSWORD.sub(r"\1:***@", url))
    if "://" not in url:
        raise InputError(
            f"{masked!r} is not a database URL; write {_FORMS}, or pass a file of this name as a pathlib.Path"
        )
    try:
        parsed = _server_url(url)
    except (ArgumentError, ValueError) as error:
        raise InputError(f"{masked!r} is not a database URL; write {_FORMS}") from error
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed
    if backend != "sqlite":
        raise InputError(f"{backend!r} databases are not supported (in {masked!r}); write {_FORMS}")
    if parsed.host is not None or (url.endswith("///") and not parsed.database):
        name = f"{parsed.host or 'memory.db'}" + (f"/{parsed.database}" if parsed.database else "")
        raise InputError(
            f"{masked!r} has no file; write sqlite:///{name} (three slashes, four before an absolute path), "
            "or sqlite:// for a database in memory"
        )
    if unknown := set(parsed.query) - {"synchronous"}:
        raise InputError(
            f"{masked!r} has the unknown option {min(unknown)!r}; SQLite supports only synchronous="
        )
    file = parsed.database
    path = None if file in (None, "", ":memory:") else Path(str(file))
    return path, str(parsed.query.get("synchronous", "NORMAL"))


def _server_url(url: str) -> URL:
    """Parse a URL, whose servers may be written as in libpq, `postgresql://a:5432,b:5433/name`.

    Raises:
        ArgumentError: The URL is invalid.
        ValueError: A port is no number.
    """
    several = _HOSTS.fullmatch(url)
    if several is None:
        return make_url(url)
    hosts, ports = [], []
    for server in several[2].split(","):
        host, _, port = server.rpartition(":") if re.search(r":[^:\]]*$", server) else (server, "", "")
        hosts.append(unquote(host.removeprefix("[").removesuffix("]")))
        ports.append(str(int(port or "5432")))
    return make_url(several[1] + several[3]).update_query_dict(
        {"host": ",".join(hosts), "port": ",".join(ports)}
    )


def without_password(database: str | Path) -> str:
    """A database as it may be shown: a URL without its password, or a path.

    Example:
        >>> without_password("postgresql://ada:secret@host/chats"), without_password("memory.db")
        ('postgresql://ada:***@host/chats', 'memory.db')
    """
    location = parse_url(database)
    if not isinstance(location, URL):
        return str(location[0] or database)
    return _REPLICA_VALUE.sub("***", location.render_as_string())


def quoted(database: str | Path) -> str:
    """A database in quotes, without its password."""
    return repr(without_password(database))


def open_database(url: str | Path | None, **opening: Unpack[Opening]) -> Database:
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
    database = unopened(url, **opening)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def unopened(url: str | Path | None, **opening: Unpack[Opening]) -> Database:
    """The database of a URL, which the first transaction opens; this call does not access it.

    Args:
        url: `sqlite:///file.db`, a path to an SQLite file, `postgresql://user@host/name`, or
            `None` (`sqlite://`) for a database in memory. For SQLite, `?synchronous=FULL` waits for the disk;
            for PostgreSQL, `?pool_size=20&max_overflow=0` limits the number of connections, and
            `?prepared_statements=false` (or `true`) decides whether connections prepare statements, which is
            otherwise found out; `?replica=` is the percent-encoded URL of a replica that serves reads.
        opening: The size of the pool of PostgreSQL, and whether to allow reads only; opening then refuses a
            database that does not exist or is not a memory.

    Raises:
        InputError: The URL is not the URL of a supported database, or an option does not apply to it.
    """
    location = parse_url(url)
    read_only = opening.get("read_only", False)
    pool = {"pool_size": opening.get("pool_size"), "max_overflow": opening.get("max_overflow")}
    if isinstance(location, URL):
        from langchain_threadmem.storage.postgres import PostgresDatabase
        from langchain_threadmem.storage.replicas import ReplicatedDatabase

        server, replica = with_replica(location)
        server, options = with_options(server, pool)
        options["read_only"] = read_only
        if replica is not None:
            return ReplicatedDatabase(server, replica, **options)
        return PostgresDatabase(server, **options)
    for name, value in pool.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for PostgreSQL, but {str(url)!r} is SQLite; leave it out")
    return SqliteDatabase(*location, read_only=read_only)
