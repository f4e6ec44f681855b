"""The short form of `python -m torture`, and the faults that its checks find."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem
from langchain_threadmem.storage.statements import Statement
from torture.children import Child, Report
from torture.databases import Files
from torture.model import Model
from torture.scenes import KEPT, Scene, Verb, unindexed
from torture.tally import COLUMNS, Tally, table
from torture.verbs import Scenes, Statements, _check, _finish
from torture.work import Ledger, Work, check

ROOT = Path(__file__).parents[2]
LOOPS = ("kills", "faults", "contention", "forks", "clock", "keys", "verbs", "erasures")


def torture(url: str, *loops: str, minutes: float) -> tuple[int, dict[str, dict[str, int]], str]:
    """The exit code, the counts of each loop, and all output."""
    arguments = [f"--url={url}", f"--minutes={minutes}", "--seed=1", *(f"--loop={loop}" for loop in loops)]
    found = subprocess.run(
        [sys.executable, "-m", "torture", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    counts = {}
    for line in found.stdout.splitlines():
        loop, _, *cells = line.split()
        if loop in loops:
            counts[loop] = dict(zip(COLUMNS, map(int, cells), strict=False))
    return found.returncode, counts, found.stdout + found.stderr


def test_on_files_nothing_is_lost_half_written_or_raw() -> None:
    code, counts, output = torture("sqlite", *LOOPS, minutes=0.1)
    assert code == 0, output
    assert set(counts) == set(LOOPS)
    assert counts["kills"]["kills"] > 0
    assert sum(each["acknowledged"] for each in counts.values()) > 0


@pytest.mark.postgres
def test_on_postgresql_nothing_is_lost_half_written_or_raw(postgres_url: str) -> None:
    code, counts, output = torture(postgres_url, "kills", "forks", "verbs", minutes=0.05)
    assert code == 0, output
    assert counts["forks"]["acknowledged"] > 0


@pytest.fixture
def worked(system: MemorySystem) -> tuple[MemorySystem, Ledger]:
    """A memory with acknowledged turns of each verb, an erased conversation, and what is known of it."""
    lines: list[list[Any]] = []
    work = Work(system, lambda *line: lines.append(list(line)), "1", random.Random(4))
    for verb in ("append", "erase", "append", "aappend", "graph", "agraph", "put"):
        work.step(verb)
    ledger, tally = Ledger(), Tally("kills", "")
    ledger.take(lines, tally)
    assert tally.counts["acknowledged"] == 10 - (
        ["erase", "memory-1", ""] not in [line[1:] for line in lines]
    )
    return system, ledger


def test_the_check_of_a_sound_memory_finds_nothing(worked: tuple[MemorySystem, Ledger]) -> None:
    assert check(*worked, random.Random(0)) == []


@pytest.mark.parametrize(
    ("damage", "column"),
    [
        ("DELETE FROM threadmem_node WHERE message LIKE 'a-%' AND tree IN ({})", "lost"),
        ("UPDATE threadmem_node SET body = '' WHERE message LIKE 'a-%' AND tree IN ({})", "lost"),
        ("UPDATE threadmem_node SET parent = NULL WHERE message LIKE 'a-%' AND tree IN ({})", "half"),
        ("UPDATE threadmem_tree SET tip = 12345 WHERE id IN ({})", "false alarms"),
    ],
)
def test_the_check_finds_damage(worked: tuple[MemorySystem, Ledger], damage: str, column: str) -> None:
    system, ledger = worked
    trees = "SELECT id FROM threadmem_tree WHERE scope = '' AND owner = "
    statement = Statement.of(
        sqlite=damage.format(f"{trees}?"), postgresql=damage.format(f"{trees}%s").replace("-%'", "-%%'")
    )
    system.runtime.database.write(lambda conn: conn.run(statement, system.owner))
    with MemorySystem(*_again(system), owner=system.owner, embeddings=False) as again:
        assert column in {found for found, _ in check(again, ledger, random.Random(0))}


def _again(system: MemorySystem) -> tuple[Any]:
    database: Any = system.resources.database
    return (
        database.path or database._url.set(drivername="postgresql").render_as_string(hide_password=False),
    )


def test_the_check_finds_a_conversation_that_was_erased_and_is_there(
    worked: tuple[MemorySystem, Ledger],
) -> None:
    system, ledger = worked
    name = next(name for name, known in ledger.conversations.items() if not known.erasing)
    ledger.conversations[name].erasing = ledger.conversations[name].erased = True
    assert ("lost", f"the erasing of {name}, which can be read again") in check(
        system, ledger, random.Random(0)
    )


def talk(scene: Scene) -> None:
    with scene.opened() as system:
        system.conversation("c").append(HumanMessage("question", id="q"), AIMessage("answer", id="a"))


def found_by(look: Callable[[Scenes, Scene, Report], None], scenes: Scenes, scene: Scene) -> list[str]:
    """The columns of what a check of the loop of verbs reports."""
    lines: list[Any] = []
    look(scenes, scene, lambda *line: lines.append(line))
    return [column for _, column, _ in lines]


def test_the_loop_of_verbs_finds_a_conversation_of_which_a_part_was_written(tmp_path: Path) -> None:
    scenes = Scenes.of(Files(tmp_path), Verb(talk, unindexed))
    with scenes.begun() as scene:
        assert found_by(_check, scenes, scene) == []
        talk(scene)
        assert found_by(_check, scenes, scene) == []
        with scene.opened() as system:
            system.conversation("c").append("and another")
        assert found_by(_check, scenes, scene) == ["half"]
        assert found_by(_finish, scenes, scene) == ["lost", "lost"]


def test_the_loop_of_verbs_finds_an_erased_word_and_a_lost_conversation(tmp_path: Path) -> None:
    scenes = Scenes.of(Files(tmp_path), Verb(lambda scene: None, unindexed, erases=True))
    with scenes.begun() as scene:
        assert found_by(_finish, scenes, scene) == ["lost"]
        with scene.opened() as system:
            system.erase(conversation=KEPT)
        assert found_by(_check, scenes, scene) == ["lost"]


def test_a_process_is_killed_before_each_statement(tmp_path: Path) -> None:
    def live(report: Report, last: int) -> None:
        with Statements(last).counted():
            connection = sqlite3.connect(":memory:")
            for number in range(3):
                report(number)
                connection.execute("SELECT 1")
        report("done")

    assert Child(partial(live, last=1)).end() == [[0]]
    assert Child(partial(live, last=3)).end() == [[0], [1], [2]]
    assert Child(partial(live, last=4)).end() == [[0], [1], [2], ["done"]]


def test_the_model_finds_a_verb_that_does_something_else() -> None:
    model = Model(None)
    model.step("append", 1, None)
    model.memory.append("not told")
    with pytest.raises(AssertionError):
        model.step("checkout", 0, None)


def test_a_table_shows_examples_of_what_was_lost() -> None:
    tally = Tally("kills", "sqlite", seconds=60.0)
    tally.add("runs")
    assert tally.ok
    tally.add("kills", 7)
    tally.add("lost", example="turn 1")
    assert not tally.ok
    shown = table([tally]).splitlines()
    assert shown[1].split() == ["kills", "sqlite", "1", "7", "0", "1", "0", "0", "0", "7"]
    assert shown[-1] == "kills on sqlite: lost: turn 1"
