"""SQL: the tables of LangGraph's own checkpointers, opened read-only.

Whole checkpoints are read by the library that wrote them. What its saver does not tell (which threads there
are, the indices and paths of pending writes) is asked in SQL, in the same unchanging snapshot.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langchain_threadmem.errors import InputError, PersistenceError

Calls = dict[tuple[str, str], list[tuple[int, str, Any]]]
"""Pending writes by task id and task path: index, channel and value, by index."""


class Place(NamedTuple):
    """Where a checkpoint lies."""

    thread: str
    ns: str
    id: str
    parent: str | None

    def config(self, checkpoint: str | None = None) -> RunnableConfig:
        names = {"thread_id": self.thread, "checkpoint_ns": self.ns}
        return {"configurable": {**names, "checkpoint_id": checkpoint or self.id}}

    def __str__(self) -> str:
        return f"checkpoint {self.id!r} of thread {self.thread!r}, namespace {self.ns!r}"


@dataclass(frozen=True)
class Origin:
    """The database that is copied from.

    Attributes:
        saver: Reads whole checkpoints.
        query: Runs SQL, with `%s` for a value; a saver tells neither which threads there are nor the indices
            and paths of pending writes.
        writes: The columns and the table of pending writes.
        blocked: Classes that a state holds and that nobody has listed.
    """

    saver: BaseCheckpointSaver[Any]
    query: Callable[..., list[Any]]
    writes: str
    blocked: set[str]

    def places(self, threads: Sequence[str]) -> dict[str, list[Place]]:
        """Where the checkpoints of threads lie, parents before children and else the oldest first."""
        found: dict[str, list[Place]] = defaultdict(list)
        for row in self.query(
            "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints"
        ):
            found[row[0]].append(Place(*row))
        for thread in threads:
            if thread not in found:
                known = ", ".join(map(repr, sorted(found)[:5])) + (" ..." if len(found) > 5 else "")
                raise InputError(f"the source has no thread {thread!r}; it has {known or 'none'}")
        return {thread: _parents_first(found[thread]) for thread in sorted(set(threads or found))}

    def read(self, place: Place, checkpoint: str | None = None) -> CheckpointTuple | None:
        """A checkpoint: the one at a place, or another one of its namespace."""
        try:
            found = self.saver.get_tuple(place.config(checkpoint))
        except Exception as error:  # Whatever bytes of any age make a serializer raise.
            raise PersistenceError(f"{place} cannot be read from the source: {error!r}") from error
        if self.blocked:
            raise InputError(
                f"{place} holds objects of {', '.join(sorted(self.blocked))}; "
                "if they are yours, allow them: --allow MODULE:CLASS"
            )
        return found

    def calls(self, place: Place, found: CheckpointTuple) -> Calls:
        """The pending writes of a checkpoint, as the calls that wrote them."""
        values: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        for task, channel, value in found.pending_writes or ():
            values[task, channel].append(value)
        calls: Calls = defaultdict(list)
        for task, path, idx, channel in self.query(
            f"SELECT {self.writes} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s "
            "ORDER BY task_id, idx",
            place.thread,
            place.ns,
            place.id,
        ):
            calls[task, path].append((idx, channel, values[task, channel].popleft()))
        return calls


@contextmanager
def open_origin(source: str | Path, target: str | Path, serde: JsonPlusSerializer) -> Iterator[Origin]:
    url = _url(source)
    if url is not None and url.get_backend_name() in ("postgresql", "postgres"):
        opened = _open_postgres(url, serde)
    elif url is None or url.get_backend_name() == "sqlite":
        opened = _open_sqlite(Path(source if url is None else url.database or ""), target, serde)
    else:
        raise InputError(
            f"cannot import from {url.render_as_string()!r}; pass a file, sqlite:///... or postgresql://..."
        )
    with opened as origin:

        def note(event: SerdeEvent) -> None:
            if event["kind"].endswith("blocked"):
                origin.blocked.add(f"{event['module']}:{event['name']}")

        unregister = register_serde_event_listener(note)
        try:
            yield origin
        finally:
            unregister()


def _url(database: str | Path) -> URL | None:
    """The URL; none for the path of a file."""
    if "://" not in str(database):
        return None
    try:
        return make_url(str(database))
    except ArgumentError:
        raise InputError(
            f"{str(database)!r} is no URL of a database; pass a file, sqlite:///... or postgresql://..."
        ) from None


@contextmanager
def _open_sqlite(file: Path, target: str | Path, serde: JsonPlusSerializer) -> Iterator[Origin]:
    if not file.is_file():
        raise InputError(f"there is no database file {str(file)!r} to import from; check the path")
    url = _url(target)
    goal = Path(target if url is None else url.database or "")
    if (url is None or url.get_backend_name() == "sqlite") and goal.is_file() and goal.samefile(file):
        raise InputError(f"{str(file)!r} cannot be imported into itself; name another file to import into")
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise _missing("langgraph-checkpoint-sqlite") from error
    try:
        with closing(
            sqlite3.connect(
                f"{file.absolute().as_uri()}?mode=ro",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
            )
        ) as conn:
            conn.execute("BEGIN")
            conn.execute("SELECT 1 FROM checkpoints LIMIT 1")
            has_path = "task_path" in [row[1] for row in conn.execute("PRAGMA table_info(writes)")]
            saver = SqliteSaver(conn, serde=serde)
            saver.is_setup = True  # It would write tables.
            saver._has_task_path = has_path
            yield Origin(
                saver,
                lambda sql, *values: conn.execute(sql.replace("%s", "?"), values).fetchall(),
                f"task_id, {'task_path' if has_path else repr('')}, idx, channel FROM writes",
                set(),
            )
    except sqlite3.Error as error:
        raise InputError(
            f"{str(file)!r} cannot be read as a database of langgraph-checkpoint-sqlite: {error}"
        ) from error


@contextmanager
def _open_postgres(url: URL, serde: JsonPlusSerializer) -> Iterator[Origin]:
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError as error:
        raise _missing("langgraph-checkpoint-postgres") from error
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(plain, prepare_threshold=0) as conn:
            conn.read_only = True
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.execute("SELECT 1 FROM checkpoints LIMIT 1")
            yield Origin(
                PostgresSaver(cast("Any", conn), serde=serde),
                lambda sql, *values: conn.execute(sql, values).fetchall(),
                "task_id, task_path, idx, channel FROM checkpoint_writes",
                set(),
            )
    except psycopg.Error as error:
        raise InputError(
            f"{url.render_as_string()!r} cannot be read as a database of langgraph-checkpoint-postgres: "
            f"{error}"
        ) from error


def _missing(package: str) -> InputError:
    return InputError(
        f"reading this source needs the package {package!r}; install it with: pip install {package}"
    )


def _parents_first(places: Sequence[Place]) -> list[Place]:
    by_id = {(place.ns, place.id): place for place in places}
    ordered: dict[Place, None] = {}
    for place in sorted(places, key=lambda place: place.id):
        line: list[Place] = []
        above: Place | None = place
        while above is not None and above not in ordered and above not in line:
            line.append(above)
            above = by_id.get((above.ns, above.parent or ""))
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)
