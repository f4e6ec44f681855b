"""Import of threads from LangGraph's SQLite and PostgreSQL checkpointers, and from others.

The source is read with the library that wrote it, a database on a read-only connection with one snapshot.
Checkpoints are copied one at a time, parents before children, under their own ids. Existing checkpoints are
skipped, so that an interrupted import can be resumed. At the end, each checkpoint is read from both sides and
compared.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_threadmem.apps.transfer.langgraph_sources import CheckpointRef, Origin, open_origin
from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.langgraph.checkpoints.queries import unpack_id
from langchain_threadmem.langgraph.saver import ThreadMemSaver

Classes = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Attributes:
        threads: The number of threads.
        checkpoints: The number of their checkpoints in the source.
        copied: The number of checkpoints that were copied.
        writes: The number of pending writes that were copied.
        differences: A sentence for each difference between source and target.
    """

    threads: int
    checkpoints: int
    copied: int
    writes: int
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether source and target are equal."""
        return not self.differences


def import_checkpoints(
    source: str | Path | BaseCheckpointSaver[Any],
    target: str | Path,
    *,
    owner: str = "user",
    threads: Sequence[str] = (),
    classes: Classes = (),
    progress: Progress = lambda done, total: None,
) -> Imported:
    """Copy threads of a LangGraph checkpointer into a memory database, and compare both sides.

    Each checkpoint is read twice and compared, one at a time: the time depends on the size of the source, the
    memory on the size of a state. A thread that was continued in the target after an earlier import keeps its
    later checkpoints.

    Args:
        source: A file or `sqlite:///` URL of `SqliteSaver`, a `postgresql://` URL of `PostgresSaver`, or any
            other checkpointer with synchronous methods, such as a `MongoDBSaver`; it is never written.
        target: As for `MemorySystem`; created if it does not exist.
        owner: The owner of the copied threads.
        threads: The threads to copy; empty for all threads.
        classes: Custom classes in the states, each as `(module, name)`; they must be importable.
        progress: Called with the number of steps done and of all steps, two for each checkpoint.

    Raises:
        InputError: The source does not exist or has no checkpoints, a thread is unknown, the target has
            another thread of the same name, a state contains a class that is not in `classes`, or the package
            that reads the source is not installed.
        PersistenceError: A database cannot be read or written.

    Example:
        >>> import_checkpoints("nowhere.sqlite", "memory.db")
        Traceback (most recent call last):
        langchain_threadmem.errors.InputError: there is no database file 'nowhere.sqlite' to import from; ...
    """
    _check_classes(classes)
    serde = JsonPlusSerializer(allowed_msgpack_modules=classes or None)
    with open_origin(source, target, classes) as origin:
        refs = origin.checkpoints(threads)
        total = 2 * sum(map(len, refs.values()))
        with ThreadMemSaver.from_conn_string(target, owner=owner, serde=serde) as saver:
            _check_same_threads(saver, refs)
            done = copied = writes = 0
            differences: list[str] = []
            for thread_refs in refs.values():
                previous: CheckpointTuple | None = None
                for ref in thread_refs:
                    previous, is_new, new_writes = _copy(origin, saver, ref, previous)
                    copied, writes, done = copied + is_new, writes + new_writes, done + 1
                    progress(done, total)
            for thread, thread_refs in refs.items():
                is_continued = not _ids(saver, thread) <= {(ref.ns, ref.id) for ref in thread_refs}
                for ref in thread_refs:
                    differences += [
                        f"{ref}: {field}" for field in _differences(origin, saver, ref, is_continued)
                    ]
                    done += 1
                    progress(done, total)
    return Imported(len(refs), total // 2, copied, writes, tuple(differences))


def _check_classes(classes: Classes) -> None:
    """Refuse classes that cannot be imported: their objects would be read and stored as plain data."""
    for names in classes:
        try:
            module, name = names
            getattr(import_module(module), name)
        except (ValueError, ImportError, AttributeError) as error:
            raise InputError(
                f"there is no class {':'.join(names)!r}: {error}; pass an importable class as MODULE:CLASS"
            ) from error


def _check_same_threads(saver: ThreadMemSaver, refs: Mapping[str, Sequence[CheckpointRef]]) -> None:
    """Refuse a thread of the target that has the name of a source thread and no checkpoint of it."""
    for thread in saver.system.conversations():
        source_ids = {(ref.ns, ref.id) for ref in refs.get(thread, ())}
        if source_ids and not source_ids & _ids(saver, thread):
            raise InputError(
                f"owner {saver.system.owner!r} already has another thread {thread!r}; "
                "import the source for another owner: --owner NAME"
            )


def _ids(saver: ThreadMemSaver, thread: str) -> set[tuple[str, str]]:
    """Namespaces and ids of the checkpoints of a thread in the target."""
    addresses = run(
        saver._addresses({"configurable": {"thread_id": thread}}, None, None), saver.system.runtime
    )
    return {(address.ns, unpack_id(address.id)) for _, address in addresses}


def _copy(
    origin: Origin, saver: ThreadMemSaver, ref: CheckpointRef, previous: CheckpointTuple | None
) -> tuple[CheckpointTuple, bool, int]:
    """Copy one checkpoint, or its pending writes that the target does not have.

    Args:
        previous: The checkpoint that was copied before, in most cases its parent.

    Returns:
        The checkpoint, whether it is new, and the number of new pending writes.
    """
    current = _require(origin.read(ref), ref)
    stored = saver.get_tuple(ref.config())
    if stored is None:
        config = ref.config(ref.parent)
        parent = None
        if ref.parent is None:
            del config["configurable"]["checkpoint_id"]
        elif previous is not None and previous.config["configurable"] == config["configurable"]:
            parent = previous
        else:
            parent = origin.read(ref, ref.parent)
        saver.put(config, current.checkpoint, current.metadata, _new_versions(current, parent))
    stored_writes = Counter((task, channel) for task, channel, _ in (stored and stored.pending_writes) or ())
    new_writes = 0
    for (task, path), writes in origin.calls(ref, current).items():
        missing = Counter((task, channel) for _, channel, _ in writes) - stored_writes
        if missing:
            saver.put_writes(ref.config(), _in_call_order(writes), task, path)
            new_writes += missing.total()
    return current, stored is None, new_writes


def _require(checkpoint: CheckpointTuple | None, ref: CheckpointRef) -> CheckpointTuple:
    if checkpoint is None:
        raise PersistenceError(
            f"{ref} is listed in the source, but cannot be read; check the source database"
        )
    return checkpoint


def _new_versions(current: CheckpointTuple, parent: CheckpointTuple | None) -> dict[str, Any]:
    """The channels whose values are not those of the parent; the others are stored once for both.

    Equal versions are not sufficient: a checkpoint may omit a value without a new version.
    """
    versions = current.checkpoint["channel_versions"]
    if parent is None:
        return dict(versions)
    parent_values, values = parent.checkpoint["channel_values"], current.checkpoint["channel_values"]
    return {
        channel: version
        for channel, version in versions.items()
        if parent.checkpoint["channel_versions"].get(channel) != version
        or (channel in parent_values) != (channel in values)
        or not _is_equal(parent_values.get(channel), values.get(channel))
    }


def _in_call_order(writes: Sequence[tuple[int, str, Any]]) -> list[tuple[str, Any]]:
    """The writes of a task in order: ordinary writes at their indices, special writes (errors and interrupts,
    whose index is negative) in the gaps or at the end.
    """
    special = deque((channel, value) for idx, channel, value in writes if idx < 0)
    ordered: list[tuple[str, Any]] = []
    for idx, channel, value in writes:
        while 0 <= len(ordered) < idx and special:
            ordered.append(special.popleft())
        if idx >= 0:
            ordered.append((channel, value))
    return ordered + list(special)


def _differences(
    origin: Origin, saver: ThreadMemSaver, ref: CheckpointRef, is_continued: bool
) -> Iterator[str]:
    """The differences between source and target; a continued thread may have more pending writes."""
    expected, actual = _require(origin.read(ref), ref), saver.get_tuple(ref.config())
    if actual is None:
        yield "is not in the target"
        return
    expected_state, actual_state = dict(expected.checkpoint), dict(actual.checkpoint)
    expected_values, actual_values = expected_state.pop("channel_values"), actual_state.pop("channel_values")
    for name, left, right in (
        ("value of channel", expected_values, actual_values),
        ("field", expected_state, actual_state),
        ("metadata", expected.metadata, actual.metadata),
    ):
        yield from (
            f"{name} {key!r} differs" for key in _differing_keys(cast("Any", left), cast("Any", right))
        )
    if expected.parent_config != actual.parent_config:
        yield "parent differs"
    expected_writes, actual_writes = (
        sorted(one.pending_writes or (), key=itemgetter(0, 1)) for one in (expected, actual)
    )
    remaining = iter(actual_writes)
    missing = not all(
        any(_is_equal(write, candidate) for candidate in remaining) for write in expected_writes
    )
    if missing or (len(actual_writes) > len(expected_writes) and not is_continued):
        yield "pending writes differ"


def _differing_keys(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    return [
        key
        for key in sorted({*left, *right})
        if (key in left) != (key in right) or not _is_equal(left[key], right[key])
    ]


def _is_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal: by their bytes, since not every class can compare itself, or by `==`,
    since the bytes of a set depend on its order.
    """
    serde = JsonPlusSerializer()
    if serde.dumps_typed(left) == serde.dumps_typed(right):
        return True
    try:
        return type(left) is type(right) and bool(left == right)
    except Exception:  # The class has no comparison, and the bytes differ.
        return False
