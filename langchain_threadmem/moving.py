"""Moving in: threads of LangGraph's SQLite and PostgreSQL checkpointers are copied into a memory database.

The source is read with the library that wrote it, on a connection that cannot write and that sees one
unchanging snapshot. Checkpoints are copied one at a time, parents before children, under their own ids; what
is there already is skipped, so a copy that was interrupted goes on where it stopped. In the end each
checkpoint is read from both sides and compared, since only that shows that nothing was lost.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.integrations.checkpointer import ThreadMemSaver
from langchain_threadmem.storage.queries.checkpoints import unpack_id

Classes = Sequence[tuple[str, ...]]
Calls = dict[tuple[str, str], list[tuple[int, str, Any]]]
"""Pending writes by task id and task path: index, channel and value, by index."""


@dataclass(frozen=True)
class Imported:
    """What an import did, and what its check found.

    Attributes:
        threads: How many threads were looked at.
        checkpoints: How many checkpoints they have in the source.
        copied: How many of these were not there before.
        writes: How many pending writes were not there before.
        differences: A sentence for each thing that is not the same on both sides.
    """

    threads: int
    checkpoints: int
    copied: int
    writes: int
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether both sides say the same."""
        return not self.differences


class _Place(NamedTuple):
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


def import_checkpoints(
    source: str | Path,
    target: str | Path,
    *,
    owner: str = "user",
    threads: Sequence[str] = (),
    classes: Classes = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Copy threads of a LangGraph checkpointer into a memory database, and compare both sides.

    Each checkpoint is read in whole twice and compared, one at a time: the time grows with the size of the
    source, the memory only with the size of a state. A thread that went on in the target since it was copied
    keeps what came later.

    Args:
        source: A file or `sqlite:///` URL of `SqliteSaver`, or a `postgresql://` URL of `PostgresSaver`; it
            is never written.
        target: As for `MemorySystem`; made if it is not there.
        owner: Whose memory the threads go into.
        threads: The threads to copy; none for all of them.
        classes: Classes of your own in the states, each as `(module, name)`; they have to be importable.
        progress: Called with the steps done and all steps, two for each checkpoint.

    Raises:
        InputError: The source is not there or holds no checkpoints, a thread is not in it, its name is taken
            by another one in the target, a state holds a class that is not listed in `classes`, or the
            package that reads the source is not installed.
        PersistenceError: A database could not be read or written.

    Example:
        >>> import_checkpoints("nowhere.sqlite", "memory.db")
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: there is no database file 'nowhere.sqlite' to import from; ...
    """
    _check_classes(classes)
    with _open(source, target, JsonPlusSerializer(allowed_msgpack_modules=classes or None)) as origin:
        places = origin.places(threads)
        total = 2 * sum(map(len, places.values()))
        with ThreadMemSaver.from_conn_string(target, owner=owner) as opened:
            saver = cast("ThreadMemSaver", opened.with_allowlist(classes)) if classes else opened
            _refuse_strangers(saver, places)
            done = copied = writes = 0
            differences: list[str] = []
            for found in places.values():
                before: CheckpointTuple | None = None
                for place in found:
                    before, is_new, written = _copy(origin, saver, place, before)
                    copied, writes, done = copied + is_new, writes + written, done + 1
                    progress(done, total)
            for thread, found in places.items():
                went_on = not _ids(saver, thread) <= {(place.ns, place.id) for place in found}
                for place in found:
                    differences += [
                        f"{place}: {field}" for field in _differing(origin, saver, place, went_on)
                    ]
                    done += 1
                    progress(done, total)
    return Imported(len(places), total // 2, copied, writes, tuple(differences))


@dataclass(frozen=True)
class _Origin:
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

    def places(self, threads: Sequence[str]) -> dict[str, list[_Place]]:
        """Where the checkpoints of threads lie, parents before children and else the oldest first."""
        found: dict[str, list[_Place]] = defaultdict(list)
        for row in self.query(
            "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints"
        ):
            found[row[0]].append(_Place(*row))
        for thread in threads:
            if thread not in found:
                known = ", ".join(map(repr, sorted(found)[:5])) + (" ..." if len(found) > 5 else "")
                raise InputError(f"the source has no thread {thread!r}; it has {known or 'none'}")
        return {thread: _parents_first(found[thread]) for thread in sorted(set(threads or found))}

    def read(self, place: _Place, checkpoint: str | None = None) -> CheckpointTuple | None:
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

    def calls(self, place: _Place, found: CheckpointTuple) -> Calls:
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
def _open(source: str | Path, target: str | Path, serde: JsonPlusSerializer) -> Iterator[_Origin]:
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
def _open_sqlite(file: Path, target: str | Path, serde: JsonPlusSerializer) -> Iterator[_Origin]:
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
            yield _Origin(
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
def _open_postgres(url: URL, serde: JsonPlusSerializer) -> Iterator[_Origin]:
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
            yield _Origin(
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


def _check_classes(classes: Classes) -> None:
    """A class that cannot be imported would silently be read as plain data, and stored as that."""
    for names in classes:
        try:
            module, name = names
            getattr(import_module(module), name)
        except (ValueError, ImportError, AttributeError) as error:
            raise InputError(
                f"there is no class {':'.join(names)!r}: {error}; name it as MODULE:CLASS, importable here"
            ) from error


def _missing(package: str) -> InputError:
    return InputError(
        f"reading this source needs the package {package!r}; install it with: pip install {package}"
    )


def _parents_first(places: Sequence[_Place]) -> list[_Place]:
    by_id = {(place.ns, place.id): place for place in places}
    ordered: dict[_Place, None] = {}
    for place in sorted(places, key=lambda place: place.id):
        line: list[_Place] = []
        above: _Place | None = place
        while above is not None and above not in ordered and above not in line:
            line.append(above)
            above = by_id.get((above.ns, above.parent or ""))
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)


def _refuse_strangers(saver: ThreadMemSaver, places: Mapping[str, Sequence[_Place]]) -> None:
    """Two threads of one name are not mixed: what is there already has to come from this source."""
    for thread in saver.system.conversations():
        found = {(place.ns, place.id) for place in places.get(thread, ())}
        if found and not found & _ids(saver, thread):
            raise InputError(
                f"owner {saver.system.owner!r} has another thread {thread!r} already; "
                "import it for another owner: --owner NAME"
            )


def _ids(saver: ThreadMemSaver, thread: str) -> set[tuple[str, str]]:
    """Namespace and id of the checkpoints that the target holds of a thread."""
    found = saver._run(saver._addresses({"configurable": {"thread_id": thread}}, None))
    return {(where.ns, unpack_id(where.id)) for _, where in found}


def _copy(
    origin: _Origin, saver: ThreadMemSaver, place: _Place, before: CheckpointTuple | None
) -> tuple[CheckpointTuple, bool, int]:
    """Copy what is not there yet of one checkpoint.

    Args:
        origin: The source.
        saver: The target.
        place: Which one.
        before: The one that was copied before it, most often its parent.

    Returns:
        The checkpoint, whether it is new, and how many pending writes are.
    """
    found = _present(origin.read(place), place)
    there = saver.get_tuple(place.config())
    if there is None:
        config = place.config(place.parent)
        parent = None
        if place.parent is None:
            del config["configurable"]["checkpoint_id"]
        elif before is not None and before.config["configurable"] == config["configurable"]:
            parent = before
        else:
            parent = origin.read(place, place.parent)
        saver.put(config, found.checkpoint, found.metadata, _new_versions(found, parent))
    held = Counter((task, channel) for task, channel, _ in (there and there.pending_writes) or ())
    written = 0
    for (task, path), writes in origin.calls(place, found).items():
        missing = Counter((task, channel) for _, channel, _ in writes) - held
        if missing:
            saver.put_writes(place.config(), _in_position(writes), task, path)
            written += missing.total()
    return found, there is None, written


def _present(found: CheckpointTuple | None, place: _Place) -> CheckpointTuple:
    if found is None:
        raise PersistenceError(
            f"{place} is listed in the source and cannot be found there; check that database"
        )
    return found


def _new_versions(found: CheckpointTuple, parent: CheckpointTuple | None) -> dict[str, Any]:
    """The channels whose values are not those of the parent; the others are stored once for both.

    Versions alone do not tell: a value may be left out of a checkpoint without a new version.
    """
    versions = found.checkpoint["channel_versions"]
    if parent is None:
        return dict(versions)
    old, values = parent.checkpoint["channel_values"], found.checkpoint["channel_values"]
    return {
        channel: version
        for channel, version in versions.items()
        if parent.checkpoint["channel_versions"].get(channel) != version
        or (channel in old) != (channel in values)
        or not _same(old.get(channel), values.get(channel))
    }


def _in_position(writes: Sequence[tuple[int, str, Any]]) -> list[tuple[str, Any]]:
    """The list that a task wrote: each ordinary write where its index says, special ones (errors, interrupts;
    their index is negative) in the gaps that they left, else at the end.
    """
    special = deque((channel, value) for idx, channel, value in writes if idx < 0)
    line: list[tuple[str, Any]] = []
    for idx, channel, value in writes:
        while 0 <= len(line) < idx and special:
            line.append(special.popleft())
        if idx >= 0:
            line.append((channel, value))
    return line + list(special)


def _differing(origin: _Origin, saver: ThreadMemSaver, place: _Place, went_on: bool) -> Iterator[str]:
    """What is not the same on both sides; a thread that went on may have more pending writes here."""
    theirs, ours = _present(origin.read(place), place), saver.get_tuple(place.config())
    if ours is None:
        yield "is not in the target"
        return
    theirs_state, ours_state = dict(theirs.checkpoint), dict(ours.checkpoint)
    theirs_values, ours_values = theirs_state.pop("channel_values"), ours_state.pop("channel_values")
    for name, left, right in (
        ("value of channel", theirs_values, ours_values),
        ("field", theirs_state, ours_state),
        ("metadata", theirs.metadata, ours.metadata),
    ):
        yield from (f"{name} {key!r} differs" for key in _unequal(cast("Any", left), cast("Any", right)))
    if theirs.parent_config != ours.parent_config:
        yield "parent differs"
    expected, actual = list(theirs.pending_writes or ()), list(ours.pending_writes or ())
    rest = iter(actual)
    missing = not all(any(_same(write, other) for other in rest) for write in expected)
    if missing or (len(actual) > len(expected) and not went_on):
        yield "pending writes differ"


def _unequal(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    return [
        key
        for key in sorted({*left, *right})
        if (key in left) != (key in right) or not _same(left[key], right[key])
    ]


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal: by their bytes, since not every class can compare itself, or by `==`,
    since the bytes of a set depend on its order.
    """
    serde = JsonPlusSerializer()
    if serde.dumps_typed(left) == serde.dumps_typed(right):
        return True
    try:
        return type(left) is type(right) and bool(left == right)
    except Exception:  # A class that cannot compare itself, and whose bytes differ.
        return False
