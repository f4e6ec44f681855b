"""A short soak test; `benchmarks/soak.py` is the long one."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module  # the processes that it starts look for it by this name
    spec.loader.exec_module(module)
    return module


def test_two_processes_of_eight_threads_lose_nothing(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    report = script.soak(tmp_path / "soak.db", turns=2000)
    assert report.turns == 2000
    assert report.ok, report


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM threadmem_node WHERE message = 'a-0-0-0'", "missing"),
        ("UPDATE threadmem_node SET parent = NULL WHERE message = 'a-0-0-0'", "misplaced"),
        ("UPDATE threadmem_node SET message = 'q-0-0-0', state = 1 WHERE message = 'a-0-0-0'", "doubled"),
        ("UPDATE threadmem_tree SET tip = 12345", "problems"),
        ("UPDATE threadmem_node SET body = 'torn' WHERE message = 'never'", None),
    ],
)
def test_the_check_finds_damage(script: ModuleType, tmp_path: Path, damage: str, fault: str | None) -> None:
    path = tmp_path / "soak.db"
    done = [script.work(str(path), 0, 2, 20)]
    assert script.check(path, done).ok
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    report = script.check(path, done)
    assert report.ok == (fault is None)
    assert fault is None or getattr(report, fault)
