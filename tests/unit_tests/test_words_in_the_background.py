"""After an import, searches answer at once from what is indexed and what is new, and the rest follows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WordEmbeddings
from langchain_core.messages import HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem, Recollection, SemanticNodeSelector
from langchain_threadmem.apps.cli import main
from langchain_threadmem.errors import PersistenceError
from langchain_threadmem.index import catch_up_words, unindexed, watermarks
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.unindexed import Unindexed
from langchain_threadmem.langchain.tools import recall_tool

Wrap = Callable[[Any], Any]
FEW, IMPORTED = 20, 60
SOON = 120.0


class Held:
    """The background work of a memory, which a test does piece by piece."""

    def __init__(self, system: MemorySystem, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: dict[Hashable, Callable[[], bool]] = {}
        monkeypatch.setattr(system.runtime.ahead, "start", self._start)
        monkeypatch.setattr(system.runtime.ahead, "busy", lambda name: name in self.jobs)

    def _start(self, name: Hashable, piece: Callable[[], bool], *, gently: bool = False) -> None:
        self.jobs[name] = piece

    def step(self) -> bool:
        """Do one piece, and return whether there are more."""
        for name, piece in list(self.jobs.items()):
            if not piece():
                del self.jobs[name]
        return bool(self.jobs)

    def finish(self) -> None:
        while self.step():
            pass


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up_words, "FEW", FEW)
    monkeypatch.setattr(unindexed, "NEWEST", FEW)
    monkeypatch.setattr(catch_up_words, "WORDS_AT_ONCE", 8)
    monkeypatch.setattr(unindexed, "NEWEST_EACH", 4)


@pytest.fixture
def system(url: str, owner: str) -> Iterator[MemorySystem]:
    with MemorySystem(url, owner=owner, embeddings=False) as found:
        yield found


@pytest.fixture
def held(system: MemorySystem, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(system, monkeypatch)


def said(number: int) -> str:
    return f"The ship number{number} carries cargo{number % 7} to a harbour."


def imported(system: MemorySystem, name: str = "c", messages: int = IMPORTED) -> ChatMemory:
    memory = system.conversation(name)
    memory.extend([HumanMessage(said(number)) for number in range(messages)])
    return memory


def texts(hits: list[Recollection]) -> list[str]:
    return [hit.node.message.text for hit in hits]


def found(memory: Any, query: str, **options: Any) -> list[str]:
    """The texts of hits that contain the query."""
    return [text for text in texts(memory.recall(query, 3, **options)) if f" {query} " in text]


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_the_first_search_finds_the_newest_messages_and_later_searches_all(
    system: MemorySystem, held: Held, verbs: Wrap, scope: str
) -> None:
    memory = imported(system)
    newest = f"number{IMPORTED - 1}"
    assert found(verbs(memory), newest, scope=scope) == [said(IMPORTED - 1)]
    assert found(verbs(memory), "number0", scope=scope) == []
    assert held.jobs
    left = [IMPORTED]
    while held.step():
        left.append(verbs(system).stats().unindexed)
        assert found(verbs(memory), newest, scope=scope) == [said(IMPORTED - 1)]
        assert found(verbs(memory), "number0", scope=scope) == [said(0)]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) > 2
    assert verbs(system).stats().unindexed == 0
    for number in range(IMPORTED):
        assert found(verbs(memory), f"number{number}", scope=scope) == [said(number)]
    assert verbs(system).verify().ok


@pytest.mark.parametrize("scope", ["conversation", "owner"])
def test_what_was_just_said_is_found_while_the_import_is_indexed(
    system: MemorySystem, held: Held, verbs: Wrap, scope: str
) -> None:
    memory, other = imported(system), system.conversation("other")
    for number in range(5):
        assert found(verbs(memory), f"number{IMPORTED - 1}", scope=scope)
        memory.append(f"A lantern{number} hangs here", "I see.")
        other.append(f"A candle{number} burns here", "I see.")
        assert found(verbs(memory), f"lantern{number}", scope=scope)
        assert found(verbs(other), f"candle{number}", scope=scope)
        held.step()


def test_few_messages_are_indexed_by_the_search(
    system: MemorySystem, held: Held, verbs: Wrap, caplog: pytest.LogCaptureFixture
) -> None:
    memory = imported(system, messages=FEW)
    assert found(verbs(memory), "number0") == [said(0)]
    assert (verbs(system).stats().unindexed, held.jobs, caplog.records) == (0, {}, [])


def test_one_warning_says_what_a_search_may_not_find(
    system: MemorySystem, held: Held, verbs: Wrap, caplog: pytest.LogCaptureFixture
) -> None:
    memory = imported(system)
    for _ in range(3):
        verbs(memory).recall("number0")
        verbs(memory).recall("number0", scope="owner")
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"{IMPORTED} messages are added to the index of words")


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("call", ["flush", "flush all", "wait", "wait for all", "repeated"])
def test_a_caller_can_wait_for_all_messages(system: MemorySystem, verbs: Wrap, call: str) -> None:
    memory = imported(system)
    if call == "repeated":
        verbs(memory).recall("number0")  # Leaves the messages to the background.
        call = "wait"
    if call.startswith("flush"):
        assert verbs(system if call == "flush all" else memory).flush() == 0
        assert found(verbs(memory), "number0") == [said(0)]
    else:
        scope = "owner" if call == "wait for all" else "conversation"
        assert found(verbs(memory), "number0", wait=True, scope=scope) == [said(0)]
    assert verbs(system).stats().unindexed == 0


def test_every_search_answers_at_once(system: MemorySystem, held: Held, verbs: Wrap) -> None:
    memory, newest = imported(system), f"number{IMPORTED - 1}"
    memory.append("Always answer in French.", "Oui.")
    stored = IMPORTED + 2
    [[unit]] = verbs(system).query(newest, k_limit=1, recall_context=False)
    assert unit.content == said(IMPORTED - 1)
    assert [info.id for info in verbs(system).list_conversations(query=newest)] == ["c"]
    assert said(IMPORTED - 1) in recall_tool(system).invoke({"query": newest})
    assert [one.text for one in verbs(memory).instructions()] == ["Always answer in French."]
    assert [one.text for one in verbs(memory).instructions(scope="owner")] == ["Always answer in French."]
    assert found(verbs(memory), newest, scope="thread") == [said(IMPORTED - 1)]
    threads = system.conversation("c", node_selector=SemanticNodeSelector())
    assert [message.text for message in verbs(threads).retrieve(newest, 1, 0)] == [said(IMPORTED - 1)]
    verbs(threads).append("Which ship carries cargo3?", "Several do.")
    assert verbs(system).stats().unindexed == stored + 2
    held.finish()
    assert verbs(system).stats().unindexed == 0


@pytest.mark.usefixtures("held")
def test_a_query_that_embeds_all_messages_finds_all(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        imported(system)
        for number in (0, 30, IMPORTED - 1):
            [[unit]] = verbs(system).query(f"number{number}", k_limit=1, recall_context=False)
            assert unit.content == said(number)


def test_a_memory_that_was_indexed_in_the_background_gives_the_same_results(
    system: MemorySystem, held: Held, url: str, owner: str, verbs: Wrap
) -> None:
    def hits(memory: Any) -> list[tuple[int, float, str]]:
        return [
            (hit.node.id, hit.score, str(hit.why))
            for scope in ("conversation", "owner")
            for hit in memory.recall("Which ship carries cargo3 to number5?", 20, scope=scope)
        ]

    memory = imported(system)
    before = hits(verbs(memory))
    held.finish()
    assert hits(verbs(memory)) != before
    with MemorySystem(url, owner=f"{owner} too", embeddings=False) as other:
        same = imported(other)
        other.flush()
        expected = hits(verbs(same))
    assert [each[0] for each in hits(verbs(memory))] == [each[0] for each in expected]
    assert [each[1:] for each in hits(verbs(memory))] == [each[1:] for each in expected]


def test_two_processes_index_each_message_once(
    system: MemorySystem, held: Held, url: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = imported(system)
    with MemorySystem(url, owner=owner, embeddings=False) as other:
        their = Held(other, monkeypatch)
        both = memory, other.conversation("c")
        for each in both:
            assert found(each, f"number{IMPORTED - 1}")
        while held.step() | their.step():
            pass
        for each in both:
            assert [found(each, f"number{number}") for number in range(IMPORTED)] == [
                [said(number)] for number in range(IMPORTED)
            ]
        name = system.runtime.get(Indexes).lexicon
        indexed = system.runtime.database.read(lambda conn: watermarks.total(conn, owner, name))
        assert indexed.documents == IMPORTED
        assert system.verify().ok


REMOVALS: dict[str, Callable[[MemorySystem, ChatMemory], object]] = {
    "erased": lambda system, memory: system.erase(conversation="c"),
    "purged": lambda system, memory: [memory.forget(number) for number in (IMPORTED, 1)],
    "reset": lambda system, memory: memory.reset(),
    "forgotten": lambda system, memory: [memory.forget(number, purge=False) for number in (IMPORTED, 1)],
    "edited": lambda system, memory: [memory.edit(number, "Nothing") for number in (IMPORTED, 1)],
}


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("removal", REMOVALS)
def test_what_is_removed_meanwhile_is_found_no_more(
    system: MemorySystem, held: Held, verbs: Wrap, removal: str, steps: int
) -> None:
    memory = imported(system)
    imported(system, "another", 3 * FEW)
    for scope in ("conversation", "owner"):
        assert found(verbs(memory), f"number{IMPORTED - 1}", scope=scope)
    for _ in range(steps):
        held.step()
    REMOVALS[removal](system, memory)
    for _ in range(2):
        for query in ("number0", f"number{IMPORTED - 1}"):
            hits = verbs(memory).recall(query, 5, scope="conversation")
            assert f"{query} " not in " ".join(texts(hits))
        held.finish()
    assert verbs(system).verify().ok
    assert found(verbs(memory), "number7", scope="owner")


def test_an_erased_text_leaves_the_messages_in_memory(system: MemorySystem, held: Held) -> None:
    memory = imported(system)
    assert found(memory, f"number{IMPORTED - 1}")
    new = system.runtime.get(Unindexed)
    assert any(f"number{IMPORTED - 1}" in tree.holding for tree in new._trees.values())
    system.erase(conversation="c")
    assert new._trees == {}
    assert held.jobs
    held.finish()
    assert system.stats().unindexed == 0


@pytest.fixture
def reopened(url: str, owner: str) -> Iterator[Callable[[], MemorySystem]]:
    if url.endswith("://"):
        pytest.skip("a memory that is not on disk ends with its system")
    opened: list[MemorySystem] = []

    def reopen() -> MemorySystem:
        for system in opened:
            system.close()
        opened.append(MemorySystem(url, owner=owner, embeddings=False))
        return opened[-1]

    yield reopen
    for system in opened:
        system.close()


def test_the_next_process_continues_what_a_closed_one_has_begun(
    reopened: Callable[[], MemorySystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up_words, "WORDS_AT_ONCE", 1)
    system = reopened()
    imported(system, messages=300).recall("number0")
    left = [300]
    for _ in range(3):
        system = reopened()
        left.append(system.stats().unindexed)
        system.conversation("c").recall("number0")
    limit = time.monotonic() + SOON
    while system.stats().unindexed and time.monotonic() < limit:
        time.sleep(0.01)
    assert system.stats().unindexed == 0
    assert left == sorted(left, reverse=True)
    assert found(system.conversation("c"), "number123") == [said(123)]
    assert system.verify().ok


def test_an_error_of_the_background_is_raised_by_the_next_search(
    system: MemorySystem, verbs: Wrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = imported(system)

    def fail(*_: object) -> bool:
        raise PersistenceError("the disk is full")

    def search_on() -> None:
        while True:
            verbs(memory).recall("number0")

    with monkeypatch.context() as broken:
        broken.setattr(catch_up_words, "_add_words", fail)
        with pytest.raises(PersistenceError, match="the disk is full"):
            search_on()
    verbs(memory).recall("number0")
    limit = time.monotonic() + SOON
    while system.stats().unindexed and time.monotonic() < limit:
        time.sleep(0.01)
    assert found(verbs(memory), "number0") == [said(0)]


def test_the_command_line_searches_all_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "memory.db"
    with MemorySystem(file, owner="ada", embeddings=False) as system:
        imported(system)
    for options in ([], ["--conversation", "c"]):
        assert main.main(["search", "number0", "--words", "--db", str(file), "--owner", "ada", *options]) == 0
        assert "number0" in capsys.readouterr().out.partition("\n")[2]
    assert caplog.records == []
