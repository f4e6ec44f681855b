"""SQL: the tables of LangGraph's own checkpointers, opened read-only; and other checkpointers.

Checkpoints are read by LangGraph's savers. The names of threads, and the indices and paths of pending
writes, which a saver does not return, are read with SQL in the same snapshot. LangGraph.js has the same
tables; its values that JSON does not have, its interrupts and its sends become those of Python. Another
checkpointer lists its threads itself, and the indices of its pending writes follow from their order.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import INTERRUPT, TASKS
from langgraph.types import Interrupt, Send
from sqlalchemy.engine import URL

from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.messages.text import listed
from langchain_threadmem.storage.database import parse_url, sqlite_file
from langchain_threadmem.tree.graph import parents_first

Calls = dict[tuple[str, str], list[tuple[int, str, Any]]]
"""Pending writes by task id and task path: index, channel and value, by index."""


class CheckpointRef(NamedTuple):
    """The identity of a checkpoint in the source."""

    thread: str
    ns: str
    id: str
    parent: str | None

    def config(self, checkpoint_id: str | None = None) -> RunnableConfig:
        """LangGraph's config of the checkpoint, or of another checkpoint of the same namespace."""
        names = {"thread_id": self.thread, "checkpoint_ns": self.ns}
        return {"configurable": {**names, "checkpoint_id": checkpoint_id or self.id}}

    def __str__(self) -> str:
        return f"checkpoint {self.id!r} of thread {self.thread!r}, namespace {self.ns!r}"


@dataclass(frozen=True)
class Origin:
    """The source.

    Attributes:
        saver: Reads checkpoints.
        list_checkpoints: Lists the checkpoints of some threads, or of all threads if none is named.
        list_writes: The pending writes of a checkpoint: task id, task path, index and channel; those of a
            task to a channel in order.
        blocked: Classes of the states that were not allowed.
    """

    saver: BaseCheckpointSaver[Any]
    list_checkpoints: Callable[[Sequence[str]], Iterable[CheckpointRef]]
    list_writes: Callable[[CheckpointRef, CheckpointTuple], Iterable[tuple[str, str, int, str]]]
    blocked: set[str]

    def checkpoints(self, threads: Sequence[str]) -> dict[str, list[CheckpointRef]]:
        """The checkpoints of threads, parents before children, otherwise the oldest first."""
        refs: dict[str, list[CheckpointRef]] = defaultdict(list)
        for ref in self.list_checkpoints(threads):
            refs[ref.thread].append(ref)
        for thread in threads:
            if thread not in refs:
                names = {ref.thread for ref in self.list_checkpoints(())}
                raise InputError(
                    f"the source has no thread {thread!r}; it has {listed(sorted(names)) or 'none'}"
                )
        return {thread: _ordered(refs[thread]) for thread in sorted(set(threads or refs))}

    def read(self, ref: CheckpointRef, checkpoint_id: str | None = None) -> CheckpointTuple | None:
        """A checkpoint, or another checkpoint of the same namespace."""
        try:
            saved = self.saver.get_tuple(ref.config(checkpoint_id))
        except Exception as error:  # A serializer may raise anything for old or damaged bytes.
            raise PersistenceError(f"{ref} cannot be read from the source: {error!r}") from error
        if self.blocked:
            raise InputError(
                f"{ref} contains objects of {', '.join(sorted(self.blocked))}; "
                "if you trust these classes, allow them: --allow MODULE:CLASS"
            )
        return saved and _without_javascript(saved)

    def calls(self, ref: CheckpointRef, checkpoint: CheckpointTuple) -> Calls:
        """The pending writes of a checkpoint, as the calls that wrote them."""
        values: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        for task, channel, value in checkpoint.pending_writes or ():
            values[task, channel].append(value)
        calls: Calls = defaultdict(list)
        for task, path, idx, channel in self.list_writes(ref, checkpoint):
            calls[task, path].append((idx, channel, values[task, channel].popleft()))
        return calls


RunsSql = Callable[..., list[Any]]
"""Runs SQL with `%s` for a value, and returns the rows."""


def _of_tables(saver: BaseCheckpointSaver[Any], query: RunsSql, writes: str) -> Origin:
    """A source with tables; `writes` are the columns and the table of pending writes."""

    def list_checkpoints(threads: Sequence[str]) -> Iterator[CheckpointRef]:
        sql = "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints"
        for thread in threads or (None,):
            for row in query(sql) if thread is None else query(f"{sql} WHERE thread_id = %s", thread):
                yield CheckpointRef(*row)

    def list_writes(ref: CheckpointRef, checkpoint: CheckpointTuple) -> list[Any]:
        return query(
            f"SELECT {writes} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s "
            "ORDER BY task_id, idx",
            ref.thread,
            ref.ns,
            ref.id,
        )

    return Origin(saver, list_checkpoints, list_writes, set())


def _of_saver(saver: BaseCheckpointSaver[Any]) -> Origin:
    """A source that is read by its own methods alone."""

    def list_checkpoints(threads: Sequence[str]) -> Iterator[CheckpointRef]:
        for thread in threads or (None,):
            config: RunnableConfig | None = (
                None if thread is None else {"configurable": {"thread_id": thread}}
            )
            try:
                for found in saver.list(config):
                    names = found.config["configurable"]
                    parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id")
                    ns = names.get("checkpoint_ns", "")
                    yield CheckpointRef(str(names["thread_id"]), ns, names["checkpoint_id"], parent)
            except Exception as error:  # A saver of another library may raise anything.
                kind = type(saver).__name__
                raise PersistenceError(f"the {kind} cannot list its checkpoints: {error!r}") from error

    def list_writes(ref: CheckpointRef, checkpoint: CheckpointTuple) -> Iterator[tuple[str, str, int, str]]:
        numbers: Counter[str] = Counter()
        for task, channel, _ in checkpoint.pending_writes or ():
            yield task, "", WRITES_IDX_MAP.get(channel, numbers[task]), channel
            numbers[task] += channel not in WRITES_IDX_MAP

    return Origin(saver, list_checkpoints, list_writes, set())


@contextmanager
def open_origin(
    source: str | Path | BaseCheckpointSaver[Any], target: str | Path, classes: Sequence[tuple[str, ...]]
) -> Iterator[Origin]:
    """Open a source read-only.

    Args:
        source: A file, a URL, or a checkpointer.
        target: Only serves to refuse a copy of a file into itself.
        classes: Custom classes in the states, each as `(module, name)`.
    """
    serde = _SourceSerializer(allowed_msgpack_modules=classes or None)
    opened: AbstractContextManager[Origin]
    if isinstance(source, BaseCheckpointSaver):
        opened = nullcontext(_of_saver(source))
    else:
        location = parse_url(source)
        opened = (
            _open_postgres(location, serde)
            if isinstance(location, URL)
            else _open_sqlite(location[0] or Path(source), target, serde)
        )
    with opened as origin:

        def record_blocked(event: SerdeEvent) -> None:
            if event["kind"].endswith("blocked"):
                origin.blocked.add(f"{event['module']}:{event['name']}")

        unregister = register_serde_event_listener(record_blocked)
        try:
            yield origin
        finally:
            unregister()


@contextmanager
def _open_sqlite(file: Path, target: str | Path, serde: JsonPlusSerializer) -> Iterator[Origin]:
    if not file.is_file():
        raise InputError(f"there is no database file {str(file)!r} to import from; check the path")
    target_file = sqlite_file(target)
    if target_file is not None and target_file.is_file() and target_file.samefile(file):
        raise InputError(f"{str(file)!r} cannot be imported into itself; pass another target file")
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise _missing_package("langgraph-checkpoint-sqlite") from error
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
            saver.is_setup = True  # Otherwise the saver creates tables.
            saver._has_task_path = has_path
            yield _of_tables(
                saver,
                lambda sql, *values: conn.execute(sql.replace("%s", "?"), values).fetchall(),
                f"task_id, {'task_path' if has_path else repr('')}, idx, channel FROM writes",
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
        raise _missing_package("langgraph-checkpoint-postgres") from error
    dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(dsn, prepare_threshold=None) as conn:
            columns = conn.execute("SELECT * FROM checkpoint_writes LIMIT 0").description or ()
            if "task_path" not in [column.name for column in columns]:  # LangGraph.js, and older versions.
                conn.execute(
                    "CREATE TEMP VIEW checkpoint_writes AS SELECT *, '' AS task_path FROM checkpoint_writes"
                )
            conn.commit()
            conn.read_only = True
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.execute("SELECT 1 FROM checkpoints LIMIT 1")
            yield _of_tables(
                PostgresSaver(cast("Any", conn), serde=serde),
                lambda sql, *values: conn.execute(sql, values).fetchall(),
                "task_id, task_path, idx, channel FROM checkpoint_writes",
            )
    except psycopg.Error as error:
        raise InputError(
            f"{url.render_as_string()!r} cannot be read as a database of langgraph-checkpoint-postgres: "
            f"{error}"
        ) from error


class _SourceSerializer(JsonPlusSerializer):
    """LangGraph's serializer, which also reads the values of LangGraph.js."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, text = data
        if kind != "json":
            return super().loads_typed(data)
        defined = json.loads(text, object_hook=_without_undefined)
        return _from_javascript(super().loads_typed((kind, json.dumps(defined).encode())))


_UNDEFINED = {"lc": 2, "type": "undefined"}
_TYPES: dict[str, Callable[[list[Any]], Any]] = {"Set": set, "Map": dict, "Uint8Array": bytes}


def _without_undefined(record: dict[str, Any]) -> dict[str, Any]:
    """An object without the fields that are `undefined` in JavaScript."""
    return {name: value for name, value in record.items() if value != _UNDEFINED}


def _from_javascript(value: Any) -> Any:
    """A value with the sets, maps and bytes of JavaScript as those of Python."""
    if value == _UNDEFINED:
        return None
    if isinstance(value, list):
        return [_from_javascript(one) for one in value]
    if not isinstance(value, dict):
        return value
    record = {name: _from_javascript(one) for name, one in value.items()}
    match record:
        case {"lc": 2, "type": "constructor", "id": [str(name)], "args": [list(items)]} if name in _TYPES:
            try:
                return _TYPES[name](items)
            except TypeError:  # A set of objects, or a map of them.
                return items
    return record


def _without_javascript(saved: CheckpointTuple) -> CheckpointTuple:
    """A checkpoint with sends and interrupts, which LangGraph.js stores as objects, and without the initial
    values of channels that were never written, which it stores, too.
    """
    checkpoint = saved.checkpoint
    values = {
        name: [_object_of(name, one) for one in value] if name == TASKS else value
        for name, value in checkpoint["channel_values"].items()
        if name in checkpoint["channel_versions"]
    }
    writes = [
        (
            task,
            name,
            [_object_of(name, one) for one in value] if name == INTERRUPT else _object_of(name, value),
        )
        for task, name, value in saved.pending_writes or ()
    ]
    return saved._replace(checkpoint={**checkpoint, "channel_values": values}, pending_writes=writes)


def _object_of(channel: str, value: Any) -> Any:
    """The object of Python that a channel of LangGraph has."""
    if channel == INTERRUPT and isinstance(value, dict):
        return Interrupt(value.get("value"), id=value["id"])
    if channel == TASKS and isinstance(value, dict):
        return Send(value["node"], value.get("args"))
    return value


def _missing_package(package: str) -> InputError:
    return InputError(
        f"reading this source needs the package {package!r}; install it with: pip install {package}"
    )


def _ordered(refs: Sequence[CheckpointRef]) -> list[CheckpointRef]:
    """Sort checkpoints by id, but each after its ancestors."""
    by_id = {(ref.ns, ref.id): ref for ref in refs}
    oldest_first = sorted(refs, key=lambda ref: ref.id)
    return parents_first({ref: by_id.get((ref.ns, ref.parent or "")) for ref in oldest_first})
