"""Reads with a concurrent writer: a verb reads one state of the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from langchain_threadmem import ChatMemory, MemorySystem, MessageWindow
from langchain_threadmem.apps.transfer.convert import convert
from langchain_threadmem.engine.flow import Call, Flow, Sql, Step, arun, run, snapshot
from langchain_threadmem.errors import DriverError, PersistenceError
from langchain_threadmem.recall import candidates
from langchain_threadmem.recall import verbs as recall_verbs
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree import nodes, trees

T = TypeVar("T")
Drive = Callable[[Flow[Any] | Step[Any]], Any]
Wrap = Callable[[ChatMemory], Any]


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest, system: MemorySystem) -> Drive:
    if request.param == "sync":
        return lambda flow: run(flow, system.runtime)
    return lambda flow: asyncio.run(asyncio.wait_for(arun(flow, system.runtime), 60))


@contextmanager
def writing(*writes: Callable[[], object], most: int = 400) -> Iterator[None]:
    """Runs writes in another thread, up to a number of them."""
    done, errors = threading.Event(), list[Exception]()

    def work() -> None:
        try:
            for n in range(most):
                if done.is_set():
                    break
                writes[n % len(writes)]()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert errors == []


@pytest.fixture
def talk(system: MemorySystem) -> ChatMemory:
    memory = system.conversation("talk")
    for n in range(30):
        memory.append(f"question {n}", f"answer {n}")
    return memory


def test_all_reads_of_a_snapshot_see_one_state(system: MemorySystem, talk: ChatMemory, drive: Drive) -> None:
    def count() -> Flow[int]:
        return len((yield from Sql(lambda conn: nodes.since(conn, talk._conversation.tree))))

    def reads() -> Flow[tuple[int, int]]:
        before = yield from count()
        # Another connection, on another thread: this one is reading.
        yield from Call(lambda: _elsewhere(lambda: talk.append("more", "and more")))
        return before, (yield from count())

    assert drive(snapshot(reads())) == (60, 60)
    assert drive(count()) == 62


def _elsewhere(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "step",
    [
        Call(lambda: "a model", lambda: asyncio.sleep(0, "a model")),
        Sql(lambda conn: None, write=True),
    ],
    ids=["a model", "a write"],
)
def test_a_snapshot_takes_reads_alone(drive: Drive, step: Step[Any]) -> None:
    def reads() -> Flow[None]:
        yield from step

    with pytest.raises(DriverError, match="before the snapshot"):
        drive(snapshot(reads()))


def test_a_read_that_writes_is_refused(system: MemorySystem, owner: str, drive: Drive) -> None:
    with pytest.raises(PersistenceError, match=r"read-?only"):
        drive(Sql(lambda conn: trees.find_or_create(conn, owner, "first", 0.0)))
    assert system.conversations() == []


def test_what_is_saved_beside_a_writer_can_be_loaded(talk: ChatMemory, verbs: Wrap, tmp_path: Path) -> None:
    verb = verbs(talk)
    with writing(lambda: talk.append("more", "and more"), lambda: talk.edit(1, "edited")):
        for n in range(8):
            verb.save(tmp_path / f"{n}.json")
    for n in range(8):
        again = ChatMemory.load(tmp_path / f"{n}.json", embeddings=False)
        assert again.tip is not None


def test_nothing_is_damaged_for_being_written_meanwhile(
    system: MemorySystem, talk: ChatMemory, verbs: Wrap
) -> None:
    verb = verbs(talk)
    with writing(
        lambda: talk.append("more", "and more"),
        lambda: talk.edit(1, "edited"),
        lambda: talk.reset(),
        lambda: talk.extend(["one", ("ai", "two")]),
    ):
        for _ in range(8):
            assert verb.verify().problems == ()
            assert system.verify().problems == ()


def beside(flow: Flow[T], system: MemorySystem, step: int, write: Callable[[], object]) -> T:
    """The result of a flow with a concurrent write before one of its steps."""

    def steps() -> Flow[T]:
        value, error, count = None, None, 0
        while True:
            try:
                one = flow.send(value) if error is None else flow.throw(error)
            except StopIteration as stop:
                found: T = stop.value
                return found
            if count == step:
                write()
            count += 1
            value = yield from one

    return run(steps(), system.runtime)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "by candidates"])
@pytest.mark.parametrize(
    "options",
    [{}, {"scope": "thread"}, {"scope": "owner"}, {"filters": {"role": "human"}}, {"wait": False}],
    ids=str,
)
def test_a_message_that_is_edited_meanwhile_is_found_once_and_as_it_is(
    system: MemorySystem, options: Any, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "READ_WHOLE", 10_000 if whole else 0)
    memory = system.conversation("zoo", context_depth=1, window=MessageWindow(1))
    last = memory.append("a zebra", "indeed")[0].id

    def edit() -> None:
        nonlocal last
        last = memory.edit(last, f"a zebra once more, {last}").id

    for step in range(16):
        flow = recall_verbs.recall(memory._conversation, "zebra", RecallOptions(3, **options), 1)
        found = [hit.node for hit in beside(flow, system, step, edit) if "zebra" in hit.node.message.text]
        assert [(len(found), node.state) for node in found] == [(1, State.LIVE)], step


def test_a_memory_that_is_written_can_be_converted(
    url: str, owner: str, talk: ChatMemory, tmp_path: Path
) -> None:
    def write(what: str, done: int, total: int) -> None:
        if what == "write" and done < 12:
            _elsewhere(lambda: (talk.append("more", "and more"), talk.edit(1, f"edited {done}")))

    assert convert(url, tmp_path / "copy", owner=owner, progress=write).messages == 60
    assert convert(tmp_path / "copy", tmp_path / "back.db", owner=owner).messages == 60
