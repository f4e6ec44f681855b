"""Import of threads from LangGraph's SQLite and PostgreSQL checkpointers.

The source is read with the library that wrote it, on a read-only connection with one snapshot. Checkpoints
are copied one at a time, parents before children, under their own ids. Existing checkpoints are skipped, so
that an interrupted import can be resumed. At the end, each checkpoint is read from both databases and
compared.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_threadmem.checkpoints.queries import unpack_id
from langchain_threadmem.engine.flow import run
from langchain_threadmem.errors import InputError, PersistenceError
from langchain_threadmem.integrations.checkpointer import ThreadMemSaver
from langchain_threadmem.transfer.langgraph_sources import Origin, Place, open_origin

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
    source: str | Path,
    target: str | Path,
    *,
    owner: str = "user",
    threads: Sequence[str] = (),
    classes: Classes = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Copy threads of a LangGraph checkpointer into a memory database, and compare both sides.

    Each checkpoint is read twice and compared, one at a time: the time depends on the size of the source, the
    memory on the size of a state. A thread that was continued in the target after an earlier import keeps its
    later checkpoints.

    Args:
        source: A file or `sqlite:///` URL of `SqliteSaver`, or a `postgresql://` URL of `PostgresSaver`; it
            is never written.
        target: As for `MemorySystem`; made if it does not exist.
        owner: The owner of the copied threads.
        threads: The threads to copy; empty for all threads.
        classes: Custom classes in the states, each as `(module, name)`; they must be importable.
        progress: Called with the steps done and all steps, two for each checkpoint.

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
    with open_origin(source, target, serde) as origin:
        places = origin.places(threads)
        total = 2 * sum(map(len, places.values()))
        with ThreadMemSaver.from_conn_string(target, owner=owner, serde=serde) as saver:
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


def _check_classes(classes: Classes) -> None:
    """Refuse classes that cannot be imported: their objects would be read and stored as plain data."""
    for names in classes:
        try:
            module, name = names
            getattr(import_module(module), name)
        except (ValueError, ImportError, AttributeError) as error:
            raise InputError(
                f"there is no class {':'.join(names)!r}: {error}; name it as MODULE:CLASS, importable here"
            ) from error


def _refuse_strangers(saver: ThreadMemSaver, places: Mapping[str, Sequence[Place]]) -> None:
    """Refuse a thread of the target that has the name of a source thread and no checkpoint of it."""
    for thread in saver.system.conversations():
        found = {(place.ns, place.id) for place in places.get(thread, ())}
        if found and not found & _ids(saver, thread):
            raise InputError(
                f"owner {saver.system.owner!r} has another thread {thread!r} already; "
                "import it for another owner: --owner NAME"
            )


def _ids(saver: ThreadMemSaver, thread: str) -> set[tuple[str, str]]:
    """Namespace and id of the checkpoints that the target holds of a thread."""
    addresses = saver._addresses({"configurable": {"thread_id": thread}}, None)
    found = run(addresses, saver.system.runtime)
    return {(where.ns, unpack_id(where.id)) for _, where in found}


def _copy(
    origin: Origin, saver: ThreadMemSaver, place: Place, before: CheckpointTuple | None
) -> tuple[CheckpointTuple, bool, int]:
    """Copy one checkpoint, or its pending writes that the target does not have.

    Args:
        origin: The source.
        saver: The target.
        place: The checkpoint.
        before: The checkpoint that was copied before, in most cases its parent.

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


def _present(found: CheckpointTuple | None, place: Place) -> CheckpointTuple:
    if found is None:
        raise PersistenceError(
            f"{place} is listed in the source and cannot be found there; check that database"
        )
    return found


def _new_versions(found: CheckpointTuple, parent: CheckpointTuple | None) -> dict[str, Any]:
    """The channels whose values are not those of the parent; the others are stored once for both.

    Equal versions are not sufficient: a checkpoint may omit a value without a new version.
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
    """The writes of a task in order: ordinary writes at their indices, special writes (errors and interrupts,
    whose index is negative) in the gaps or at the end.
    """
    special = deque((channel, value) for idx, channel, value in writes if idx < 0)
    line: list[tuple[str, Any]] = []
    for idx, channel, value in writes:
        while 0 <= len(line) < idx and special:
            line.append(special.popleft())
        if idx >= 0:
            line.append((channel, value))
    return line + list(special)


def _differing(origin: Origin, saver: ThreadMemSaver, place: Place, went_on: bool) -> Iterator[str]:
    """The differences of both sides; a thread that was continued here may have more pending writes."""
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
    except Exception:  # The class has no comparison, and the bytes differ.
        return False
